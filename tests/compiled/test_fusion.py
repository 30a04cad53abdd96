"""Functions that are compiled, and what the records of their programs show."""

import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from compiled.options import compile_targets
from executed.options import Options
from snippets.compiled import fusion

ROOT = pathlib.Path(__file__).parents[2]
ARRAYS = st_numpy.arrays(
    np.float32,
    st.sampled_from([(1,), (7,), (1, 5), (4, 3), (2, 3, 4)]),
    elements=st.floats(-20, 20, width=32),
)
DATA = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


def kernels(record, target):
    return record.targets[target].kernels


@settings(deadline=None, max_examples=40)
@given(ARRAYS)
def test_selu_is_the_formula_of_the_paper(x):
    exact = x.astype(np.float64)
    expected = fusion.SCALE * np.where(
        exact > 0, exact, fusion.ALPHA * np.expm1(np.minimum(exact, 0))
    )
    np.testing.assert_allclose(fusion.selu(x), expected, rtol=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(ARRAYS)
def test_softmax_divides_by_the_sum_over_the_last_axis(x):
    powers = np.exp(x.astype(np.float64))
    expected = powers / powers.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(fusion.softmax(x), expected, rtol=1e-4, atol=1e-7)


def test_softmax_bears_large_numbers():
    np.testing.assert_allclose(fusion.softmax(np.float32([1e4, 1e4])), [0.5, 0.5])


def test_selu_is_one_fused_kernel_everywhere(recorded):
    record = recorded("fusion.selu")
    for target in record.targets:
        (kernel,) = kernels(record, target)
        assert kernel.fused
        assert set(kernel.operations) == {"gt", "exp", "mul", "sub", "select_n"}


def test_selu_reads_once_and_writes_once(recorded):
    record = recorded("fusion.selu")
    array = 4 * 4096 * 4096
    for compiled in record.targets.values():
        assert compiled.traffic == 2 * array
    assert record.unoptimized.bytes > 8 * array


@pytest.fixture(scope="module")
def softmax(recorded):
    return recorded("fusion.softmax")


def test_softmax_is_one_kernel_but_on_tpus_three(softmax):
    count = {target: len(kernels(softmax, target)) for target in softmax.targets}
    assert count == {"cpu": 1, "gpu-h200": 1, "gpu-a100": 1, "tpu-v5e": 3, "tpu-v6e": 3}
    for target in ("gpu-h200", "gpu-a100"):
        assert kernels(softmax, target)[0].name.startswith("triton_softmax")


def test_tpus_compute_the_powers_twice(softmax):
    for target in ("tpu-v5e", "tpu-v6e"):
        operations = [kernel.operations for kernel in kernels(softmax, target)]
        assert sum("exp" in inside for inside in operations) == 2
        cost, before = softmax.targets[target].cost, softmax.unoptimized
        assert cost.transcendentals == 2 * before.transcendentals
        array = softmax.targets[target].memory.arguments
        assert softmax.targets[target].traffic == pytest.approx(3 * array, abs=8)
        assert cost.bytes > 7 * array


def test_matmul():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 7)), rng.normal(size=(7, 3))
    np.testing.assert_allclose(fusion.matrix_product(a, b), a @ b, rtol=1e-5)


def test_convolution_is_a_sum_over_shifted_images():
    rng = np.random.default_rng(0)
    images, kernel = rng.normal(size=(2, 6, 5, 3)), rng.normal(size=(3, 3, 3, 4))
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = sum(
        padded[:, i : i + 6, j : j + 5] @ kernel[i, j] for i in range(3) for j in range(3)
    )
    result = fusion.convolution(np.float32(images), np.float32(kernel))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def product(recorded):
    return recorded("fusion.matrix_product")


@pytest.fixture(scope="module")
def convolution(recorded):
    return recorded("fusion.convolution")


def test_a_matmul_is_one_kernel_everywhere(product):
    for target, facts in product.targets.items():
        (kernel,) = facts.kernels
        assert kernel.operations == ("dot_general",)
        inside = "\n".join(facts.hlo)
        assert ("convolution(" in inside) == target.startswith("tpu")
        if target.startswith("gpu"):
            assert kernel.name.startswith("gemm_fusion")
    assert "ynn_fusion" in "\n".join(product.targets["cpu"].hlo)


def test_the_operations_of_a_matmul_are_counted_alike(product):
    counts = [facts.cost.flops for facts in product.targets.values() if facts.cost]
    assert len(set(counts)) == 1
    assert counts[0] == pytest.approx(2 * 3000**3, rel=1e-6)


def test_tpus_pad_the_last_axis_to_tiles(product):
    memory = {target: f.memory.arguments for target, f in product.targets.items()}
    assert memory["cpu"] == memory["gpu-h200"] == memory["gpu-a100"] == 2 * 4 * 3000 * 3000
    assert memory["tpu-v5e"] == memory["tpu-v6e"] == 2 * 4 * 3000 * 3072


def test_half_of_each_tile_of_the_images_stays_empty(convolution):
    memory = {target: f.memory.arguments for target, f in convolution.targets.items()}
    images, kernel = 4 * 32 * 56 * 56 * 64, 4 * 3 * 3 * 64 * 128
    assert memory["cpu"] == images + kernel
    assert memory["tpu-v5e"] == 2 * images + kernel


def test_an_a100_transposes_around_the_convolution(convolution):
    kernels = {t: f.kernels for t, f in convolution.targets.items()}
    for target in ("gpu-h200", "gpu-a100"):
        whats = [kernel.what for kernel in kernels[target]]
        assert "custom-call __cudnn$convForward" in whats
    assert len(kernels["gpu-h200"]) == 2
    assert len(kernels["gpu-a100"]) == 4
    text = {t: "\n".join(f.hlo) for t, f in convolution.targets.items()}
    assert "dim_labels=bf01_oi01->bf01" in text["gpu-a100"]
    assert "dim_labels=bf01_oi01->bf01" not in text["gpu-h200"]
    memory = {t: f.memory.temporaries for t, f in convolution.targets.items()}
    assert memory["gpu-a100"] > 100 * memory["gpu-h200"]


LEAST = {"gpu-h200": 109e-6, "gpu-a100": 346e-6, "tpu-v5e": 274e-6, "tpu-v6e": 67.5e-6}


def test_the_operations_of_a_matmul_decide_how_long_it_takes_at_least(product):
    targets = compile_targets(Options.from_file(ROOT / "conf.py"))
    for target, least in LEAST.items():
        found = product.number(target, "least", targets[target].peaks)
        assert found == pytest.approx(least, rel=0.01)
    assert product.number("cpu", "least", targets["cpu"].peaks) is None


def test_attention_mixes_values_by_the_softmax_of_the_scores():
    rng = np.random.default_rng(0)
    width, heads, size = 6, 2, 3
    weights = {name: rng.normal(size=(width, heads, size)) for name in ("query", "key", "value")}
    weights["out"] = rng.normal(size=(heads, size, width))
    x = rng.normal(size=(2, 5, width))
    expected = np.zeros_like(x)
    for batch in range(2):
        for head in range(heads):
            query, key, value = (
                x[batch] @ weights[name][:, head] for name in ("query", "key", "value")
            )
            powers = np.exp(query @ key.T / np.sqrt(size))
            mixed = powers / powers.sum(axis=1, keepdims=True) @ value
            expected[batch] += mixed @ weights["out"][head]
    result = fusion.attention_layer({k: np.float32(v) for k, v in weights.items()}, x)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def attention(recorded):
    return recorded("fusion.attention_layer")


def text(record, target):
    return "\n".join(record.targets[target].hlo)


@pytest.mark.parametrize("target", ["gpu-h200", "gpu-a100"])
def test_gpus_make_one_matmul_of_three(attention, target):
    assert "concatenate(" in text(attention, target)
    assert kernels(attention, target)[0].operations == ("dot_general",)
    (softmax,) = [k for k in kernels(attention, target) if k.name.startswith("triton_softmax")]
    assert {"div", "reduce_max", "exp", "reduce_sum"} <= set(softmax.operations)


def test_a_cpu_has_a_matmul_and_the_softmax_in_one_kernel(attention):
    assert any(
        {"dot_general", "div", "reduce_max", "exp", "reduce_sum"} <= set(kernel.operations)
        for kernel in kernels(attention, "cpu")
    )


def test_the_tpus_differ(attention):
    v5e, v6e = kernels(attention, "tpu-v5e"), kernels(attention, "tpu-v6e")
    assert "online-softmax" in [kernel.name for kernel in v5e]
    assert "online-softmax" not in [kernel.name for kernel in v6e]
    assert any({"dot_general", "reduce_max"} <= set(kernel.operations) for kernel in v6e)
    assert attention.targets["tpu-v5e"].cost.transcendentals == 0
    for target in ("tpu-v5e", "tpu-v6e"):
        memory = attention.targets[target].memory
        assert attention.targets[target].traffic == memory.arguments + memory.results


def test_only_tpus_round_to_bfloat16(attention):
    for target in attention.targets:
        assert ("bf16[" in text(attention, target)) == target.startswith("tpu")


def test_running_average():
    average, expected = np.zeros(3), []
    for row in DATA:
        average = 0.9 * average + 0.1 * row
        expected.append(average)
    np.testing.assert_allclose(fusion.running_average(DATA), expected, rtol=1e-4, atol=1e-6)


def test_squared_error():
    weights, y = np.float32(np.eye(3)), np.zeros_like(DATA)
    expected = np.mean(np.tanh(DATA) ** 2)
    np.testing.assert_allclose(fusion.squared_error(weights, DATA, y), expected, rtol=1e-5)


def test_gradient_is_the_derivative_of_the_error():
    weights, y = np.random.default_rng(1).normal(size=(3, 2)), np.ones((20, 2))
    out = np.tanh(DATA @ weights)
    expected = DATA.T @ (2 * (out - y) * (1 - out**2)) / out.size
    result = fusion.gradient(np.float32(weights), DATA, np.float32(y))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_scan_stays_a_loop_with_kernels_in_it(recorded):
    record = recorded("fusion.running_average")
    for facts in record.targets.values():
        assert facts.loops
        inside = [set(kernel.operations) for kernel in facts.kernels]
        assert any({"mul", "add"} <= operations for operations in inside)
        # Neither the condition of the loop nor its counter is one.
        assert "lt" not in set().union(*inside) and {"add"} not in inside
    # 256 entries, three operations each: those of one round.
    assert record.targets["cpu"].cost.flops < 4 * 256


def test_what_only_the_loss_needs_is_gone(recorded):
    record = recorded("fusion.gradient")
    unused = {"integer_pow", "reduce_sum", "div"}
    assert unused <= set(record.operations)
    count = {}
    for target, facts in record.targets.items():
        kernels = facts.kernels
        count[target] = len(kernels)
        assert not unused & {name for kernel in kernels for name in kernel.operations}
    assert count == {"cpu": 3, "gpu-h200": 4, "gpu-a100": 4, "tpu-v5e": 1, "tpu-v6e": 1}
    assert record.targets["tpu-v5e"].memory.temporaries == 0
    assert record.targets["gpu-h200"].memory.temporaries > 0
