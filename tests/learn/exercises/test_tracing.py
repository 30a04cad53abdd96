"""Wrong answers to the exercises on jit and tracing, and what is said of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import tracing as checks
from snippets.learn.exercises import tracing as exercises
from snippets.learn.solutions import tracing as solutions
from snippets.programs.practice import problem_of


def not_compiled(x, kind, limit):
    return solutions.limited.__wrapped__(x, kind, limit)


all_static = jax.jit(not_compiled, static_argnames=("kind", "limit"))


@jax.jit(static_argnames="kind")
def only_relu(x, kind, limit):
    return jnp.minimum(jax.nn.relu(x), limit)


@jax.jit(static_argnames="kind")
def without_limit(x, kind, limit):
    return jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)


def one_program_for_each_call(x, rate, steps):
    step = jax.jit(lambda x: x - rate * jnp.tanh(x))
    for _ in range(steps):
        x = step(x)
    return x


@jax.jit(static_argnames="rate")
def static_step(x, rate):
    return x - rate * jnp.tanh(x)


def one_program_for_each_rate(x, rate, steps):
    for _ in range(steps):
        x = static_step(x, rate)
    return x


def one_operation_at_a_time(x, rate, steps):
    for _ in range(steps):
        x = x - rate * jnp.tanh(x)
    return x


@jax.jit(static_argnames="steps")
def one_program_for_each_count(x, rate, steps):
    for _ in range(steps):
        x = x - rate * jnp.tanh(x)
    return x


def one_step_too_few(x, rate, steps):
    return solutions.descend(x, rate, steps - 1)


def one_partial_for_each_step(x, rate, steps):
    for _ in range(steps):
        x = jax.jit(functools.partial(lambda rate, x: x - rate * jnp.tanh(x), rate))(x)
    return x


def full_batches_alone(w, x, y, size):
    rows = len(x) // size * size
    return exercises.evaluate(w, x[:rows], y[:rows], size)


def padding_counted(w, x, y, size):
    missing = -len(x) % size
    filled = np.pad(y, (0, missing), constant_values=9)
    total = exercises.evaluate(w, np.pad(x, ((0, missing), (0, 0))), filled, size)
    return total * len(filled) / len(x)


def as_it_is(w, x, y, size):
    return exercises.evaluate(w, x, y, size)


def without_jit(w, x, y, size):
    return jnp.mean((x @ w - y) ** 2)


WRONG = [
    (checks.check_limited, not_compiled, "`limited` itself is not jitted any more"),
    (checks.check_limited, all_static, "three limits need 3 compilations"),
    (checks.check_limited, only_relu, "it does not return the tanh"),
    (checks.check_limited, without_limit, "the relu of"),
    (checks.check_descend, one_program_for_each_call, "two calls with different rates need 2"),
    (checks.check_descend, one_program_for_each_rate, "define the jitted function once"),
    (checks.check_descend, one_operation_at_a_time, "a step consists of 3 programs"),
    (checks.check_descend, one_program_for_each_count, "four steps and five need 2"),
    (checks.check_descend, one_step_too_few, "after four steps it returns"),
    (checks.check_descend, one_partial_for_each_step, "four steps need 4 compilations"),
    (checks.check_evaluate, full_batches_alone, "the last two of ten rows are left out"),
    (checks.check_evaluate, padding_counted, "rows that only fill up a batch"),
    (checks.check_evaluate, as_it_is, "`summed_error` is compiled 2 times"),
    (checks.check_evaluate, without_jit, "no `summed_error` is compiled"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
