import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.benchmarks import first_step
from snippets.benchmarks.race import has_cpp_compiler
from snippets.start import ten_minutes

NAMES = {"w1", "b1", "w2", "b2"}


@pytest.fixture(scope="module")
def problem():
    return ten_minutes.first_weights(8), ten_minutes.noisy_curve(32)


def test_compiled_the_step_is_the_same(problem):
    new, value = ten_minutes.train_step.__wrapped__(*problem, 0.1)
    new_jit, value_jit = ten_minutes.train_step(*problem, 0.1)
    assert value_jit == pytest.approx(float(value), rel=1e-5)
    for name in NAMES:
        np.testing.assert_allclose(new_jit[name], new[name], rtol=1e-4, atol=1e-6)


def test_a_graph_of_tensorflow_does_the_same_step(problem):
    eager, graph = ten_minutes.in_tensorflow(*problem), ten_minutes.in_tensorflow(*problem)
    ten_minutes.train_step_tensorflow(*eager, 0.1)
    tf.function(ten_minutes.train_step_tensorflow)(*graph, 0.1)
    np.testing.assert_allclose(graph[0]["w1"], eager[0]["w1"], rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not has_cpp_compiler(), reason="torch.compile needs a C++ compiler")
def test_the_compiled_step_of_torch_is_the_same(problem):
    step = torch.compile(first_step.pure_step_torch)
    next_step = first_step.stepper(step, *ten_minutes.in_torch(*problem), 0.1)
    losses = ten_minutes.train_torch(*problem, 4, 0.1)
    np.testing.assert_allclose([float(next_step()) for _ in range(4)], losses, rtol=1e-4)


def test_a_stepper_goes_on_and_leaves_the_first_weights_alone(problem):
    weights, batch = problem
    params = jax.tree.map(jnp.array, weights)
    next_step = first_step.stepper(ten_minutes.train_step, params, batch, 0.1)
    _, losses = ten_minutes.train(weights, batch, 3, 0.1)
    np.testing.assert_allclose([next_step() for _ in range(3)], losses, rtol=1e-5)


def test_the_largest_rate_of_the_page_diverges_and_the_others_do_not():
    rates = jnp.array([0.001, 0.1, 0.2])
    given = ten_minutes.first_weights(32), ten_minutes.noisy_curve(256)
    runs = ten_minutes.copies(given[0], 3)
    for _ in range(200):
        runs, last = ten_minutes.step_rates(runs, given[1], rates)
    assert last[1] < last[0] < 0.5
    assert np.isnan(last[2])


def test_a_loop_over_the_rates_gives_the_same(problem):
    rates = jnp.array([0.01, 0.05, 0.1])
    many = ten_minutes.copies(problem[0], 3)
    new, losses = ten_minutes.step_rates(many, *problem[1:], rates)
    alone, values = first_step.step_each_rate([problem[0]] * 3, *problem[1:], list(rates))
    np.testing.assert_allclose(losses, values, rtol=1e-5)
    for i, params in enumerate(alone):
        np.testing.assert_allclose(new["w1"][i], params["w1"], rtol=1e-4, atol=1e-6)
