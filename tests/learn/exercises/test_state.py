"""Wrong answers to the exercises on pure functions and state, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import state as checks
from snippets.learn.solutions import state as solutions
from snippets.programs.practice import problem_of


def of_a_flat_dictionary(means, params, decay):
    return {name: decay * means[name] + (1 - decay) * params[name] for name in means}


def the_other_way_round(means, params, decay):
    return solutions.average(params, means, decay)


def in_place(means, params, decay):
    found = solutions.average(means, params, decay)
    means.update(found)
    return means


def as_leaves(means, params, decay):
    return jax.tree.leaves(solutions.average(means, params, decay))


def the_sum(means, params, decay):
    return jax.tree.map(lambda mean, p: decay * mean + p, means, params)


def trained(params, batches, rate, momentum, nesterov=False, late=False):
    velocities = jax.tree.map(jnp.zeros_like, params)
    for x, y in batches:
        grads = {"w": 2 * x.T @ (x @ params["w"] - y) / len(y)}
        old = velocities
        velocities = {"w": momentum * old["w"] + grads["w"]}
        ahead = {"w": momentum * velocities["w"] + grads["w"]}
        used = ahead if nesterov else old if late else velocities
        params = {"w": params["w"] - rate * used["w"]}
    return params


def without_momentum(params, batches, rate, momentum):
    return trained(params, batches, rate, 0.0)


def with_the_old_velocity(params, batches, rate, momentum):
    return trained(params, batches, rate, momentum, late=True)


def with_nesterov(params, batches, rate, momentum):
    return trained(params, batches, rate, momentum, nesterov=True)


def both(params, batches, rate, momentum):
    return trained(params, batches, rate, momentum), params


WRONG = [
    (checks.check_entries, lambda: 5, "5 would be one for each call"),
    (checks.check_entries, lambda: 1, "1 would be a single trace"),
    (checks.check_entries, lambda: 3, "it is not 3"),
    (checks.check_entries, lambda: "2", "it returns the text '2'"),
    (checks.check_average, of_a_flat_dictionary, "it raises TypeError"),
    (checks.check_average, the_other_way_round, "the decay belongs to the average before"),
    (checks.check_average, in_place, "it changes `means`"),
    (checks.check_average, as_leaves, "where the structure of `means` is wanted"),
    (checks.check_average, the_sum, "and should be 0.75 * 1 + 0.25 * 5"),
    (checks.check_train, without_momentum, "those of SGD without momentum"),
    (checks.check_train, with_the_old_velocity, "the velocity is updated first"),
    (checks.check_train, both, "not the parameters"),
    (checks.check_train, with_nesterov, "after three steps the parameters are"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


def test_an_answer_without_jit_is_right_and_not_enough():
    assert "keep `jax.jit`" in problem_of(checks.check_train, trained)
