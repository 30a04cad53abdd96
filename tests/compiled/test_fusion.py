"""SELU and softmax, and what the records of their programs show."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from snippets.compiled import fusion

ARRAYS = st_numpy.arrays(
    np.float32,
    st.sampled_from([(1,), (7,), (1, 5), (4, 3), (2, 3, 4)]),
    elements=st.floats(-20, 20, width=32),
)


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
