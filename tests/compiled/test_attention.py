"""The attention layer, and what the record of its program shows."""

import numpy as np
import pytest

from snippets.compiled import attention


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
    result = attention.attention_layer({k: np.float32(v) for k, v in weights.items()}, x)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def record(recorded):
    return recorded("attention.attention_layer")


def text(record, target):
    return "\n".join(record.targets[target].hlo)


def kernels(record, target):
    return record.targets[target].kernels


@pytest.mark.parametrize("target", ["gpu-h200", "gpu-a100"])
def test_gpus_make_one_matmul_of_three(record, target):
    assert "concatenate(" in text(record, target)
    assert kernels(record, target)[0].operations == ("dot_general",)
    (softmax,) = [k for k in kernels(record, target) if k.name.startswith("triton_softmax")]
    assert {"div", "reduce_max", "exp", "reduce_sum"} <= set(softmax.operations)


def test_a_cpu_has_a_matmul_and_the_softmax_in_one_kernel(record):
    assert any(
        {"dot_general", "div", "reduce_max", "exp", "reduce_sum"} <= set(kernel.operations)
        for kernel in kernels(record, "cpu")
    )


def test_the_tpus_differ(record):
    v5e, v6e = kernels(record, "tpu-v5e"), kernels(record, "tpu-v6e")
    assert "online-softmax" in [kernel.name for kernel in v5e]
    assert "online-softmax" not in [kernel.name for kernel in v6e]
    assert any({"dot_general", "reduce_max"} <= set(kernel.operations) for kernel in v6e)
    assert record.targets["tpu-v5e"].cost.transcendentals == 0
    for target in ("tpu-v5e", "tpu-v6e"):
        memory = record.targets[target].memory
        assert record.targets[target].traffic == memory.arguments + memory.results


def test_only_tpus_round_to_bfloat16(record):
    for target in record.targets:
        assert ("bf16[" in text(record, target)) == target.startswith("tpu")
