"""The scan and the gradient, and what the records of their programs show."""

import numpy as np

from snippets.compiled import loops

DATA = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


def test_running_average():
    average, expected = np.zeros(3), []
    for row in DATA:
        average = 0.9 * average + 0.1 * row
        expected.append(average)
    np.testing.assert_allclose(loops.running_average(DATA), expected, rtol=1e-4, atol=1e-6)


def test_squared_error():
    weights, y = np.float32(np.eye(3)), np.zeros_like(DATA)
    expected = np.mean(np.tanh(DATA) ** 2)
    np.testing.assert_allclose(loops.squared_error(weights, DATA, y), expected, rtol=1e-5)


def test_gradient_is_the_derivative_of_the_error():
    weights, y = np.random.default_rng(1).normal(size=(3, 2)), np.ones((20, 2))
    out = np.tanh(DATA @ weights)
    expected = DATA.T @ (2 * (out - y) * (1 - out**2)) / out.size
    result = loops.gradient(np.float32(weights), DATA, np.float32(y))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_scan_stays_a_loop_with_kernels_in_it(recorded):
    record = recorded("loops.running_average")
    for facts in record.targets.values():
        assert facts.loops
        inside = [set(kernel.operations) for kernel in facts.kernels]
        assert any({"mul", "add"} <= operations for operations in inside)
        # Neither the condition of the loop nor its counter is one.
        assert "lt" not in set().union(*inside) and {"add"} not in inside
    # 256 entries, three operations each: those of one round.
    assert record.targets["cpu"].cost.flops < 4 * 256


def test_what_only_the_loss_needs_is_gone(recorded):
    record = recorded("loops.gradient")
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
