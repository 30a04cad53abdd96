import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from snippets.benchmarks import transformer

SIZE = transformer.Size(layers=2, width=32, heads=2, vocabulary=64, length=16, batch=3)
FLOAT32, BFLOAT16 = (jnp.float32, torch.float32), (jnp.bfloat16, torch.bfloat16)


@pytest.fixture(scope="module")
def numbers():
    return transformer.draw(SIZE)


def losses(numbers, dtypes, steps=3):
    """Return the losses of the first steps of JAX and of PyTorch."""
    in_jax = transformer.keep_training(numbers, SIZE.heads, dtypes[0])
    in_torch = transformer.keep_training_torch(numbers, SIZE, dtypes[1])
    return [[float(step()) for _ in range(steps)] for step in (in_jax, in_torch)]


def test_the_same_weights_give_the_same_losses_in_float32(numbers):
    in_jax, in_torch = losses(numbers, FLOAT32)
    np.testing.assert_allclose(in_jax, in_torch, rtol=2e-6)
    assert in_jax == sorted(in_jax, reverse=True)


def test_and_close_ones_in_bfloat16(numbers):
    exact, _ = losses(numbers, FLOAT32)
    for short in losses(numbers, BFLOAT16):
        np.testing.assert_allclose(short, exact, rtol=1e-3)
        assert short != exact


def test_steps_of_the_page_begin_with_the_same_loss(numbers):
    assert transformer.ways()["jit@jax"] == (jnp.bfloat16, None)
    steps = {
        key: transformer.keep_training(numbers, SIZE.heads, *way)
        for key, way in transformer.ways().items()
    }
    steps |= transformer.steps_torch(numbers, SIZE)
    first = {key: float(step()) for key, step in steps.items()}
    assert first["float32@torch"] == pytest.approx(first["float32@jax"], rel=2e-6)
    assert list(first.values()) == pytest.approx([first["float32@jax"]] * 4, rel=1e-3)


def test_weights_and_averages_stay_float32_and_the_old_ones_are_gone(numbers):
    weights, tokens = jax.device_put(numbers)
    state = transformer.OPTIMIZER.init(weights)
    old = jax.tree.leaves((weights, state))
    *new, value = transformer.train_step(weights, state, tokens, SIZE.heads, jnp.bfloat16)
    assert all(array.is_deleted() for array in old)
    kept = [leaf.dtype for leaf in jax.tree.leaves(new) if leaf.ndim]
    assert {value.dtype, *kept} == {jnp.dtype("float32")}


def matmuls(dtype, size=SIZE):
    """Return the lines of a step's program that multiply matrices."""
    weights, tokens = transformer.draw(size)
    state = transformer.OPTIMIZER.init(weights)
    lowered = transformer.train_step.lower(weights, state, tokens, size.heads, dtype)
    return [line for line in lowered.as_text().splitlines() if "dot_general" in line]


def test_matmuls_are_of_bfloat16_or_of_full_float32():
    short, exact = matmuls(jnp.bfloat16), matmuls(jnp.float32)
    assert len(short) == len(exact) > 15
    assert all("HIGHEST" in line for line in exact)
    assert not any("HIGHEST" in line for line in short)
    own = [line for line in short if "bf16" in line.partition("->")[0]]
    assert len(own) == len(short)


def test_a_matmul_of_rows_is_a_matmul():
    x = np.random.default_rng(0).standard_normal((3, 4, 4), np.float32)
    weights = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])
    found = transformer.product(x, weights, jnp.float32)
    np.testing.assert_allclose(found, x @ weights, rtol=1e-5)
    change = np.ones_like(found)
    exact = np.einsum("abi,abo->io", x, change)
    for args in ((x, change), (transformer.rows(x), transformer.rows(change))):
        gradient = transformer.weights_gradient(args[0], weights, args[1])
        np.testing.assert_allclose(gradient, exact, rtol=1e-4)
        assert transformer.multiplied_in(args[0], weights, args[1]) == "f32"


def test_all_matmuls_of_weights_have_two_axes():
    of_weights = [line for line in matmuls(jnp.bfloat16) if "batching_dims" not in line]
    shapes = [re.findall(r"tensor<([\dx]+)xbf16>", line) for line in of_weights]
    assert len(shapes) == 3 * 5
    assert {one.count("x") for of_line in shapes for one in of_line} == {1}


def test_one_layer_is_compiled_however_many_there_are():
    assert len(matmuls(jnp.float32)) == len(matmuls(jnp.float32, SIZE._replace(layers=5)))


def test_no_position_looks_ahead(numbers):
    weights, tokens = numbers
    changed = tokens.copy()
    changed[:, 9] += 1
    before, after = (
        transformer.logits(weights, each % SIZE.vocabulary, SIZE.heads, jnp.float32)
        for each in (tokens[:, :-1], changed[:, :-1])
    )
    np.testing.assert_array_equal(before[:, :9], after[:, :9])
    assert (abs(before - after).max((0, 2)) > 1e-3)[9:].all()


def test_norms_are_computed_in_float32():
    x = np.float32([[1, 2, 3, 6], [0, 0, 0, 8]])
    exact = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    found = transformer.normed(jnp.bfloat16(x), jnp.bfloat16([2, 1, 1, 1]))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, exact * [2, 1, 1, 1], atol=1e-6)


def test_the_operations_are_those_of_the_matmuls(numbers):
    model, tokens = transformer.in_torch(numbers, SIZE)
    with FlopCounterMode(display=False) as counter:
        transformer.loss_torch(model, tokens, torch.float32).backward()
    found = counter.get_flop_counts()["Global"]
    multiplied = sum(flops for op, flops in found.items() if op in MULTIPLY)
    attention = 12 * SIZE.layers * SIZE.width * SIZE.length**2 * SIZE.batch
    assert transformer.operations(SIZE) - attention == multiplied > attention


MULTIPLY = (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm)


def test_the_large_model_has_124_million_weights():
    with torch.device("meta"):
        model = transformer.TransformerTorch(transformer.LARGE)
    assert round(sum(p.numel() for p in model.parameters()) / 1e6) == 124
    assert transformer.size_here() == transformer.SMALL


def test_both_models_have_the_same_weights(numbers):
    weights, tokens = numbers
    model, in_torch = transformer.in_torch(numbers, SIZE)
    assert sum(p.numel() for p in model.parameters()) == sum(
        array.size for array in jax.tree.leaves(weights)
    )
    assert all(p.requires_grad and p.dtype == torch.float32 for p in model.parameters())
    assert (in_torch.numpy() == tokens).all() and in_torch.dtype == torch.int64
    with torch.no_grad():
        model.tokens.weight.zero_()
    assert weights["tokens"].any()


def test_the_plan_grows_with_the_batch(numbers):
    taken = transformer.planned(numbers, SIZE.heads, jnp.float32)
    larger = transformer.draw(SIZE._replace(batch=12))
    assert transformer.planned(larger, SIZE.heads, jnp.float32) > 2 * taken > 0
    assert transformer.peak_torch(lambda: None) is None


def test_tokens_are_counted_by_throughput_where_there_is_one():
    samples = types.SimpleNamespace(latency=[0.1, 0.2, 9.0], throughput=None)
    assert transformer.tokens_a_second(samples, SIZE) == 48 / 0.2
    samples.throughput = [0.1, 0.1, 0.2]
    assert transformer.tokens_a_second(samples, SIZE) == 48 / 0.1


def test_the_loss_is_one_graph_of_pytorch(numbers):
    model, tokens = transformer.in_torch(numbers, SIZE)
    whole = torch.compile(transformer.loss_torch, fullgraph=True, backend="eager")
    found = whole(model, tokens, torch.bfloat16)
    assert found.item() == transformer.loss_torch(model, tokens, torch.bfloat16).item()


def test_on_a_cpu_each_layer_is_compiled(numbers):
    steps = transformer.compiled_torch(numbers, SIZE)
    model = steps["compile@torch"].args[0]
    assert all(layer._compiled_call_impl for layer in model.layers)
    with torch.compiler.set_stance("force_eager"):
        found = float(steps["compile@torch"]())
    assert found == float(transformer.steps_torch(numbers, SIZE)["eager@torch"]())


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on a CPU bfloat16 is converted")
def test_a_cpu_converts_bfloat16_back_and_forth():
    weights, tokens = transformer.draw(SIZE)
    state = transformer.OPTIMIZER.init(weights)
    conversions = []
    for dtype in (jnp.bfloat16, jnp.float32):
        lowered = transformer.train_step.lower(weights, state, tokens, SIZE.heads, dtype)
        conversions.append(lowered.compile().as_text().count(" convert("))
    assert conversions[0] > 40 > 4 > conversions[1]
