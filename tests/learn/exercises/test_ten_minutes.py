"""Wrong answers to the exercises of the first lesson, and what is said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import ten_minutes as checks
from snippets.learn.exercises import ten_minutes as exercises
from snippets.learn.solutions import ten_minutes as solutions
from snippets.programs.practice import problem_of


def dropped(x, i):
    x.at[i].set(0)
    return x


def says_nothing(x, i):
    x = x.at[i].set(0)


def the_rest(x, i):
    return jnp.delete(x, i)


def without_decay(params, grads, rate, decay):
    return solutions.update(params, grads, rate, 0.0)


def in_the_dictionary(params, grads, rate, decay):
    new = solutions.update(params, grads, rate, decay)
    params.update(new)
    return params


def decay_apart(params, grads, rate, decay):
    return jax.tree.map(lambda p, g: p - rate * g - decay * p, params, grads)


def uphill(loss, params, batch, rates):
    return solutions.losses_after(loss, params, batch, -rates)


def smallest(loss, params, batch, rates):
    return solutions.losses_after(loss, params, batch, rates).min()


def of_the_old(loss, params, batch, rates):
    return jnp.full(rates.shape, loss(params, batch))


WRONG = [
    (checks.check_without, exercises.without, "it raises TypeError: JAX arrays are immutable"),
    (checks.check_without, dropped, "nothing has changed"),
    (checks.check_without, says_nothing, "it returns nothing"),
    (checks.check_without, the_rest, "not [1. 2. 0. 4.]"),
    (checks.check_update, without_decay, "without the decay"),
    (checks.check_update, in_the_dictionary, "the dictionary that it was given"),
    (checks.check_update, decay_apart, "and should become"),
    (checks.check_losses_after, uphill, "the step goes uphill"),
    (checks.check_losses_after, smallest, "four rates have four losses"),
    (checks.check_losses_after, of_the_old, "not [4. 1. 0. 4.]"),
    (checks.check_losses_after, exercises.losses_after, "twice is enough"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


def test_a_numpy_copy_is_no_wrong_answer():
    def copied(x, i):
        x = np.array(x)
        x[i] = 0
        return jnp.array(x)

    assert problem_of(checks.check_without, copied) is None
