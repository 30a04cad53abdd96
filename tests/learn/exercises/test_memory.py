"""Wrong answers to the exercises on data, precision and memory, and what is said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import memory as checks
from snippets.learn.exercises import memory as exercises
from snippets.learn.solutions import memory as solutions
from snippets.programs.practice import problem_of


def one_order(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed, 0, start)


def never_the_same(count, size, seed, epoch, start=0):
    order = np.random.default_rng().permutation(count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def sum_of_seed_and_epoch(count, size, seed, epoch, start=0):
    order = np.random.default_rng(seed + epoch).permutation(count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def the_first_eight(count, size, seed, epoch, start=0):
    whole = count // size
    order = np.random.default_rng((seed, epoch)).permutation(whole * size)
    return [order[i * size : (i + 1) * size] for i in range(start, whole)]


def from_an_example_on(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).permutation(count)[start:]
    return [order[i * size : (i + 1) * size] for i in range(len(order) // size)]


def drawn_with_repetition(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).integers(0, 4, count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def step(params, batch, rate, forward="bfloat16", error="float32"):
    def loss(params):
        x, y = batch
        low = jax.tree.map(lambda leaf: leaf.astype(forward), params)
        predicted = x.astype(forward) @ low["kernel"] + low["bias"]
        return jnp.mean((predicted.astype(error) - y.astype(error)) ** 2)

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def in_float32(params, batch, rate):
    return step(params, batch, rate, forward="float32")


def squared_in_bfloat16(params, batch, rate):
    return step(params, batch, rate, error="bfloat16")


def multiplied_in_bfloat16(params, batch, rate):
    def loss(params):
        x, y, low = jax.tree.map(lambda leaf: leaf.astype("bfloat16"), (*batch, params))
        e = x @ low["kernel"] + low["bias"] - y
        return jnp.mean((e * e).astype("float32"))

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def wrong_way(params, batch, rate):
    return step(params, batch, -rate)


def rounded_before(params, batch, rate):
    def loss(params):
        x, y = jax.tree.map(lambda leaf: leaf.astype("bfloat16").astype("float32"), batch)
        return jnp.mean((x @ params["kernel"] + params["bias"] - y) ** 2)

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def another_loss(kernels, x):
    return 2 * solutions.deep_loss(kernels, x)


def around_the_whole(kernels, x):
    return jax.checkpoint(exercises.deep_loss)(kernels, x)


def everything_kept(kernels, x):
    policy = jax.checkpoint_policies.everything_saveable

    def step(x, kernels):
        return solutions.thick_layer(kernels, x), None

    kept = jax.checkpoint(step, policy=policy)
    return jnp.mean(jax.lax.scan(kept, x, kernels)[0] ** 2)


WRONG = [
    (checks.check_batches_of, one_order, "all epochs have the same order"),
    (checks.check_batches_of, never_the_same, "no run can be repeated"),
    (checks.check_batches_of, sum_of_seed_and_epoch, "epoch 1 of one seed"),
    (checks.check_batches_of, the_first_eight, "only 8 of 10 examples occur"),
    (checks.check_batches_of, from_an_example_on, "from batch 1 on"),
    (checks.check_batches_of, drawn_with_repetition, "an example occurs twice"),
    (checks.check_batches_of, exercises.batches_of, "the batches have sizes [4, 4, 2]"),
    (checks.check_mixed_step, exercises.mixed_step, "are lost in bfloat16"),
    (checks.check_mixed_step, in_float32, "nothing is computed in bfloat16"),
    (checks.check_mixed_step, rounded_before, "the matmul multiplies numbers that are not"),
    (checks.check_mixed_step, squared_in_bfloat16, "the error is squared in bfloat16"),
    (checks.check_mixed_step, multiplied_in_bfloat16, "the error is squared in bfloat16"),
    (checks.check_mixed_step, wrong_way, "after the step"),
    (checks.check_deep_loss, another_loss, "another gradient"),
    (checks.check_deep_loss, exercises.deep_loss, "MiB beside its arguments"),
    (checks.check_deep_loss, around_the_whole, "the inputs of all layers are 2 MiB"),
    (checks.check_deep_loss, everything_kept, "the gradient needs"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
