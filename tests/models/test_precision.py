import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.models import precision

HALF = jnp.bfloat16


@pytest.fixture(scope="module")
def params():
    return precision.first_params(0)


@pytest.fixture(scope="module")
def batch():
    return precision.examples(1, 256)


def test_matmuls_ask_for_the_default_unless_told_otherwise():
    a, b = precision.matrices(8)
    assert precision.precision_in(jax.jit(jnp.dot).lower(a, b)) == "DEFAULT, DEFAULT"
    with jax.default_matmul_precision("highest"):
        assert precision.precision_in(jax.jit(jnp.dot).lower(a, b)) == "HIGHEST, HIGHEST"


def test_fewer_mantissa_bits_mean_larger_errors():
    a, b = precision.matrices(128)
    full, tf32, short = (
        precision.error(precision.rounded_matmul(a, b, bits), a, b) for bits in (23, 10, 7)
    )
    assert full < 2e-6 < tf32 < 1e-3 < short < 1e-2
    assert precision.error(jnp.dot(HALF(a), HALF(b)), a, b) > short
    kept = jnp.dot(HALF(a), HALF(b), preferred_element_type=jnp.float32)
    assert precision.error(kept, a, b) == pytest.approx(short, rel=1e-3)


def test_gradients_have_the_dtype_of_the_parameters(params, batch):
    grads = jax.grad(precision.loss)(params, batch, HALF)
    assert {leaf.dtype for leaf in jax.tree.leaves(grads)} == {jnp.dtype(jnp.float32)}
    grads = jax.grad(precision.loss)(precision.cast(params, HALF), batch, HALF)
    assert {leaf.dtype for leaf in jax.tree.leaves(grads)} == {jnp.dtype(HALF)}


def test_mixed_follows_float32_and_pure_bfloat16_falls_behind(params, batch):
    _, full = precision.train(params, batch, jnp.float32, 100)
    after_mixed, mixed = precision.train(params, batch, HALF, 100)
    after_pure, pure = precision.train(precision.cast(params, HALF), batch, HALF, 100)
    assert np.allclose(mixed, full, atol=5e-3)
    assert pure[-1] > 1.1 * full[-1]
    assert precision.changed(after_mixed, batch, HALF) > 0.99
    assert precision.changed(after_pure, batch, HALF) < 0.95


def test_small_updates_round_to_nothing():
    assert jnp.bfloat16(1) - jnp.bfloat16(0.001) == 1
    assert jnp.bfloat16(0.999) == 1


@pytest.mark.parametrize(("name", "tolerance"), [("float32", 1e-3), ("bfloat16", 1e-2)])
def test_pytorch_has_the_same_losses(params, batch, name, tolerance):
    _, losses = precision.train(params, batch, getattr(jnp, name), 5)
    in_torch = precision.train_torch(params, batch, getattr(torch, name), 5)
    assert np.allclose(losses, in_torch, atol=tolerance)


def test_a_softmax_in_bfloat16_is_less_exact():
    logits = jnp.bfloat16(jnp.linspace(-1, 8, 10))
    exact = jax.nn.log_softmax(logits.astype(jnp.float32))
    assert abs(jax.nn.log_softmax(logits) - exact).max() > 1e-3


def test_float16_needs_a_scale_and_bfloat16_none(params, batch):
    exact = jax.grad(precision.auxiliary)(params, batch, jnp.float32)

    def far(scale):
        return precision.distance(precision.half_gradient(params, batch, scale), exact)

    assert far(1.0) > 0.05 > 0.01 > far(2.0**16)
    assert not far(2.0**44) < 1
    grads = jax.grad(precision.auxiliary)(params, batch, HALF)
    assert precision.distance(grads, exact) < 0.02


def test_the_scale_comes_down_as_in_pytorch(params, batch):
    found = precision.scales(params, batch, 2.0**44, 12)
    assert found == precision.scales_torch(params, batch, 2.0**44, 12)
    assert found[0] == 2.0**43
    assert found[-1] == found[-2]


def test_a_step_that_overflows_changes_nothing_but_the_scale(params, batch):
    opt_state = precision.OPTIMIZER.init(params)
    scaling = jnp.float32(2.0**60), 7
    after, moved, (scale, good) = precision.scaled_step(params, opt_state, scaling, batch)
    assert (scale, good) == (2.0**59, 0)
    pairs = zip(jax.tree.leaves((after, moved)), jax.tree.leaves((params, opt_state)), strict=True)
    assert all((one == other).all() for one, other in pairs)
    scaling = jnp.float32(2.0**16), 1999
    after, _, (scale, good) = precision.scaled_step(params, opt_state, scaling, batch)
    assert (scale, good) == (2.0**17, 2000)
    assert (after[0]["weights"] != params[0]["weights"]).any()


def test_pure_bfloat16_keeps_half_of_the_bytes(params, batch):
    whole = precision.kibibytes(params, batch, jnp.float32)
    half = precision.kibibytes(precision.cast(params, HALF), batch, HALF)
    assert whole["kept"] == pytest.approx(2 * half["kept"], rel=0.01)


def test_what_is_timed_takes_the_same_steps(params, batch):
    advance = precision.stepper(params, batch, jnp.float32)
    _, losses = precision.train(params, batch, jnp.float32, 3)
    assert [float(advance()) for _ in range(3)] == losses.tolist()
    advance = precision.stepper_torch(params, batch, torch.float32)
    assert np.allclose([advance().item() for _ in range(3)], losses, atol=1e-4)
