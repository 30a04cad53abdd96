"""Wrong answers to the exercises on sharding a model, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import sharding as checks
from snippets.learn.exercises import sharding as exercises
from snippets.learn.solutions import sharding as solutions
from snippets.programs.practice import problem_of


def first_axis(params, count):
    def spec(x):
        return jax.P("data") if x.size >= 1000 and x.shape[0] % count == 0 else jax.P()

    return jax.tree.map(spec, params)


def small_ones_too(params, count):
    def spec(x):
        fits = [axis for axis in range(x.ndim) if x.shape[axis] % count == 0]
        axis = max(fits, key=lambda axis: x.shape[axis], default=None)
        return jax.P() if axis is None else jax.P(*[None] * axis, "data")

    return jax.tree.map(spec, params)


def undivided(params, count):
    def spec(x):
        axis = max(range(x.ndim), key=lambda axis: x.shape[axis], default=0)
        return jax.P(*[None] * axis, "data") if x.size >= 1000 else jax.P()

    return jax.tree.map(spec, params)


def last_of_equal(params, count):
    def spec(x):
        fits = [axis for axis in range(x.ndim) if x.shape[axis] % count == 0]
        if x.size < 1000 or not fits:
            return jax.P()
        return jax.P(*[None] * max(fits, key=lambda axis: (x.shape[axis], axis)), "data")

    return jax.tree.map(spec, params)


def of_the_sum(loss, params, batch):
    @jax.shard_map(in_specs=(jax.P(), jax.P("data")), out_specs=jax.P())
    def of_shards(params, batch):
        def mean(params):
            return jax.lax.psum(loss(params, batch), "data") / 4

        return jax.grad(mean)(params)

    return of_shards(params, batch)


def of_one_shard(loss, params, batch):
    first = jax.tree.map(lambda x: jnp.asarray(jax.device_get(x)[:2]), batch)
    return jax.grad(loss)(params, first)


def divided_twice(loss, params, batch):
    return jax.tree.map(lambda g: g / 8, solutions.gradient(loss, params, batch))


def parameters_alone(init, key, shardings):
    return (jax.jit(init, out_shardings=shardings)(key),)


def whole_averages(init, key, shardings):
    params = jax.jit(init, out_shardings=shardings)(key)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape), params)
    return params, zeros, zeros


def moved(init, key, shardings):
    params = jax.device_put(jax.jit(init)(key), shardings)
    return params, *(jax.tree.map(jnp.zeros_like, params) for _ in range(2))


def ones(init, key, shardings):
    params, average, _ = solutions.first_state(init, key, shardings)
    return params, average, jax.tree.map(lambda x: x + 1, average)


WRONG = [
    (checks.check_specs_of, first_axis, "256 is the larger axis"),
    (checks.check_specs_of, small_ones_too, "fewer than 1000 elements"),
    (checks.check_specs_of, undivided, "8 divides 24, and not 50"),
    (checks.check_specs_of, last_of_equal, "the first of two equal axes"),
    (checks.check_gradient, exercises.gradient, "eight times too large"),
    (checks.check_gradient, of_the_sum, "2 times as large"),
    (checks.check_gradient, of_one_shard, "the gradient is ["),
    (checks.check_gradient, divided_twice, "0.125 times as large"),
    (checks.check_first_state, exercises.first_state, "`init` makes whole arrays"),
    (checks.check_first_state, moved, "sharded after that"),
    (checks.check_first_state, parameters_alone, "it returns 1 pytrees"),
    (checks.check_first_state, whole_averages, "a device holds (64, 32)"),
    (checks.check_first_state, ones, "do not begin at zero"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
