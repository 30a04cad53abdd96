"""Wrong answers to the exercises on several devices, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import devices as checks
from snippets.learn.exercises import devices as exercises
from snippets.programs.practice import problem_of


def placed(mesh, batch, spec):
    def sharding(x):
        return jax.NamedSharding(mesh, spec(x))

    return jax.device_put(batch, jax.tree.map(sharding, batch))


def by_columns(mesh, batch):
    return placed(mesh, batch, lambda x: jax.P(None, "data") if x.ndim > 1 else jax.P())


def everywhere(mesh, batch):
    return placed(mesh, batch, lambda x: jax.P())


def on_one_device(mesh, batch):
    return jax.device_put(batch, mesh.devices.ravel()[0])


def gathered(x, w):
    return jnp.matmul(jax.reshard(x, jax.P()), jax.reshard(w, jax.P()))


def by_rows(x, w):
    return jnp.matmul(x, w, out_sharding=jax.P(None, None)) * 2


@jax.shard_map(in_specs=jax.P("data"), out_specs=jax.P("data"))
def with_mean_variances(x):
    mean = jax.lax.pmean(x.mean(), "data")
    return (x - mean) / jnp.sqrt(jax.lax.pmean(x.var(), "data"))


@jax.shard_map(in_specs=jax.P("data"), out_specs=jax.P("data"))
def from_the_whole(x):
    whole = jax.lax.all_gather(x, "data", tiled=True)
    return (x - whole.mean()) / whole.std()


@jax.shard_map(in_specs=jax.P("data"), out_specs=jax.P("data"))
def by_sums(x):
    return (x - jax.lax.psum(x.mean(), "data")) / jnp.sqrt(jax.lax.psum(x.var(), "data"))


WRONG = [
    (checks.check_place_batch, by_columns, "the columns of x are sharded"),
    (checks.check_place_batch, everywhere, "each device holds all of x"),
    (checks.check_place_batch, on_one_device, "fewer than eight devices"),
    (checks.check_place_batch, exercises.place_batch, "it raises "),
    (checks.check_multiplied, exercises.multiplied, "it raises ShardingTypeError"),
    (checks.check_multiplied, gathered, "gathered on every device first"),
    (checks.check_multiplied, by_rows, "it does not return x @ w"),
    (checks.check_standardised, exercises.standardised, "of its own shard"),
    (checks.check_standardised, with_mean_variances, "the mean of the variances"),
    (checks.check_standardised, from_the_whole, "each device gets the whole array"),
    (checks.check_standardised, by_sums, "the first numbers are"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
