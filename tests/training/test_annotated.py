"""Tests of snippets/training/annotated.py."""

import jax
import numpy as np
import optax
import pytest
from flax import nnx

from snippets.models import steps
from snippets.training import annotated as page
from snippets.training.data_parallel import collectives
from snippets.training.sharded_parameters import automatic

MESH = jax.make_mesh((2, 4), ("data", "model"))
SINGLE = jax.make_mesh((1, 1), ("data", "model"), devices=jax.devices()[:1])
KINDS = pytest.mark.parametrize("mesh", [MESH, automatic(MESH)], ids=["explicit", "automatic"])
LAYOUTS = pytest.mark.parametrize("name", page.LAYOUTS)
OPTIMIZER = optax.adam(1e-3)


@pytest.fixture(scope="module")
def data():
    return steps.batches(*steps.digits()[0], epochs=1)


@pytest.fixture(scope="module")
def one_losses(data):
    return page.train_annotated(SINGLE, page.LAYOUTS["replicated"], data)[1]


def made(mesh, rules, out_shardings=True):
    """Return the state of the module, made under jit."""
    with jax.set_mesh(mesh), nnx.logical_axis_rules(rules.items()):
        key = jax.random.key(0)
        shapes = jax.eval_shape(lambda key: page.first_state(key, OPTIMIZER), key)
        layout = nnx.get_named_sharding(shapes, mesh) if out_shardings else None
        return jax.jit(lambda key: page.first_state(key, OPTIMIZER), out_shardings=layout)(key)


@KINDS
@LAYOUTS
def test_losses_are_those_of_one_device(mesh, name, data, one_losses):
    _, losses = page.train_annotated(mesh, page.LAYOUTS[name], data)
    np.testing.assert_allclose(losses, one_losses, rtol=1e-5)


def test_losses_are_those_of_a_module_without_annotations(data, one_losses):
    apply, *state = steps.split_nnx(steps.NnxMlp((64, 256, 10), rngs=nnx.Rngs(0)))
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), OPTIMIZER)
    *_, losses = steps.train(step, *state, OPTIMIZER.init(state[0]), data)
    np.testing.assert_allclose(losses, one_losses, rtol=1e-5)


@KINDS
@LAYOUTS
def test_parameters_and_the_optimizer_are_laid_out_as_annotated(mesh, name):
    rules = page.LAYOUTS[name]
    params, _, opt_state = made(mesh, rules)
    for tree in params, opt_state[0].mu, opt_state[0].nu:
        kernels = tree["up"]["kernel"][...], tree["down"]["kernel"][...]
        specs = (
            jax.P(rules["pixels"], rules["hidden"]),
            jax.P(rules["hidden"], rules["classes"]),
        )
        for kernel, spec in zip(kernels, specs, strict=True):
            expected = jax.NamedSharding(mesh, spec)
            assert kernel.sharding.is_equivalent_to(expected, 2)


def test_automatic_axes_replicate_the_optimizer_without_out_shardings():
    *_, opt_state = made(automatic(MESH), page.LAYOUTS["both"], out_shardings=False)
    assert opt_state[0].mu["up"]["kernel"][...].sharding.is_fully_replicated


@LAYOUTS
def test_bytes_on_a_device_follow_the_rules(name, data):
    held, _ = page.train_annotated(MESH, page.LAYOUTS[name], data[:1])
    shards = {"replicated": 1, "tensor parallel": 4, "both": 8}[name]
    up, bias, down, last = 64 * 256, 256, 256 * 10, 10
    hidden = 1 if name == "replicated" else 4
    elements = up // shards + bias // hidden + down // hidden + last
    assert held == 3 * 4 * elements + 4


def test_tensor_parallel_sends_no_kernel(data):
    rules = page.LAYOUTS["tensor parallel"]
    params, stats, opt_state = made(MESH, rules)
    with jax.set_mesh(MESH), nnx.logical_axis_rules(rules.items()):
        apply, *_ = steps.split_nnx(page.AnnotatedMlp(rngs=nnx.Rngs(0)))
        step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), OPTIMIZER)
        batch = jax.device_put(data[0], jax.P("data"))
        assert set(collectives(step, params, stats, opt_state, batch)) == {"all-reduce"}


def test_rows_of_is_none_unless_an_axis_is_explicit():
    assert page.rows_of(np.ones((4, 2))) is None
    with jax.set_mesh(automatic(MESH)):
        assert page.rows_of(jax.device_put(np.ones((4, 2)), jax.P("data"))) is None
    with jax.set_mesh(MESH):
        assert page.rows_of(np.ones((4, 2))) == jax.P(None, None)
        x = jax.device_put(np.ones((4, 3, 8)), jax.P("data", None, "model"))
        assert page.rows_of(x) == jax.P("data", None, None)


@KINDS
def test_both_gathers_a_kernel_along_data_alone(mesh, data):
    rules = page.LAYOUTS["both"]
    state = made(mesh, rules)
    with jax.set_mesh(mesh), nnx.logical_axis_rules(rules.items()):
        apply, *_ = steps.split_nnx(page.AnnotatedMlp(rngs=nnx.Rngs(0)))
        gradient = steps.gradient_of(steps.cross_entropy(apply))
        batch = jax.device_put(data[0], jax.P("data"))
        sent = collectives(steps.make_step(gradient, OPTIMIZER), *state, batch)
    assert sent["all-gather"] == {"operations": 1, "elements": 64 * 256 // 4}


@KINDS
def test_eager_calls_and_rows_that_are_not_sharded(mesh):
    rules = page.LAYOUTS["both"]
    x = np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32)
    with jax.set_mesh(SINGLE), nnx.logical_axis_rules(rules.items()):
        expected = page.AnnotatedMlp(rngs=nnx.Rngs(0))(x)
    with jax.set_mesh(mesh), nnx.logical_axis_rules(rules.items()):
        model = page.AnnotatedMlp(rngs=nnx.Rngs(0))
        for spec in jax.P(), jax.P("data"):
            y = model(jax.device_put(x, spec))
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_errors(raises_declared):
    raises_declared(page.without_a_mesh)
    raises_declared(page.without_a_rule, MESH)
    with jax.set_mesh(MESH), nnx.logical_axis_rules(page.LAYOUTS["tensor parallel"].items()):
        model = page.AnnotatedMlp(rngs=nnx.Rngs(0))
        x = jax.device_put(np.ones((4, 64), np.float32), jax.P("data"))
        raises_declared(page.without_out_sharding, model, x)
