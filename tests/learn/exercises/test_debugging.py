"""Wrong answers to the exercises on finding what is wrong, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import debugging as checks
from snippets.learn.exercises import debugging as exercises
from snippets.learn.solutions import debugging as solutions
from snippets.programs.practice import problem_of

pytestmark = pytest.mark.usefixtures("few_objects")


def entropy(logits, labels, epsilon=0.0):
    powers = jnp.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True) + epsilon
    return -jnp.mean(jnp.log(probabilities[jnp.arange(len(labels)), labels]))


def with_an_epsilon(logits, labels):
    return entropy(logits, labels, epsilon=1e-7)


def clipped(logits, labels):
    return exercises.cross_entropy(jnp.clip(logits, -1.5, 1.5), labels)


def fresh_list(kernels, x):
    largest = []
    for kernel in kernels:
        x = jnp.tanh(x @ kernel)
        largest.append(x.max())
    return x, jnp.stack(largest)


def of_the_last_layer(kernels, x):
    x, largest = solutions.forward(kernels, x)
    return x, largest[-1]


def of_the_inputs(kernels, x):
    return x, solutions.forward(kernels, x)[1]


def mean_by_name(batches):
    def update(state, x, count):
        new = count + x.size
        return state + (x.sum() - x.size * state) / new

    jitted, mean = jax.jit(update, static_argnames="count"), jnp.zeros(())
    for number, x in enumerate(batches):
        mean = jitted(mean, x, count=number * x.size)
    return mean


def in_one_go(batches):
    return jnp.mean(jnp.stack(batches))


def half_of_it(batches):
    return solutions.mean_of(batches[:2])


WRONG = [
    (checks.check_cross_entropy, exercises.cross_entropy, "for a logit of 1000 it returns nan"),
    (checks.check_cross_entropy, entropy, "it returns infinity"),
    (checks.check_cross_entropy, with_an_epsilon, "not cut off"),
    (checks.check_cross_entropy, clipped, "not 2.1809"),
    (checks.check_forward, exercises.forward, "something outside of the function keeps tracers"),
    (checks.check_forward, fresh_list, "the largest numbers are"),
    (checks.check_forward, of_the_last_layer, "three layers have three"),
    (checks.check_forward, of_the_inputs, "what the layers make of x"),
    (checks.check_mean_of, exercises.mean_of, "has a weak type"),
    (checks.check_mean_of, mean_by_name, "what changes in each iteration must not be static"),
    (checks.check_mean_of, in_one_go, "no jitted `update` is called"),
    (checks.check_mean_of, half_of_it, "the mean of 1, 2, 6 and 3 is not"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
