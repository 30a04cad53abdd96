"""Answers to the exercises on several devices, and what is said of the wrong ones."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import devices as checks
from snippets.learn.exercises import devices as exercises
from snippets.learn.solutions import devices as solutions
from snippets.programs.practice import problem_of

ROWS = jax.P("data")


def put(spec):
    return lambda mesh, x: jax.device_put(x, jax.NamedSharding(mesh, spec))


def unchanged(mesh, x):
    return x


def on_one_device(mesh, batch):
    return jax.device_put(batch, mesh.devices.ravel()[0])


def on_a_mesh_of_its_own(mesh, x):
    return put(ROWS)(jax.make_mesh((8,), ("data",), devices=jax.devices("cpu")[:8]), x)


def with_the_device_in_front(mesh, x):
    return put(ROWS)(mesh, x.reshape(mesh.size, -1, *x.shape[1:]))


def by_hand(mesh, x):
    return [
        jax.device_put(p, d)
        for p, d in zip(jnp.split(x, mesh.size), mesh.devices.flat, strict=True)
    ]


def by_the_last_axis(mesh, x):
    return put(jax.P(*[None] * (x.ndim - 1), "data"))(mesh, x)


def in_a_context(mesh, x):
    with jax.set_mesh(mesh):
        return jax.device_put(x, ROWS)


def without_the_mesh(mesh, x):
    return jax.device_put(x, ROWS)


def by_jit(mesh, x):
    return jax.jit(lambda x: x, out_shardings=jax.NamedSharding(mesh, ROWS))(x)


def by_callback(mesh, x):
    numbers, sharding = np.asarray(x), jax.NamedSharding(mesh, ROWS)
    return jax.make_array_from_callback(x.shape, sharding, lambda index: numbers[index])


def placed(mesh, batch, spec):
    def sharding(x):
        return jax.NamedSharding(mesh, spec(x))

    return jax.device_put(batch, jax.tree.map(sharding, batch))


def spec_of(x):
    return ROWS if x.ndim else jax.P()


def by_columns(mesh, batch):
    return placed(mesh, batch, lambda x: jax.P(None, "data") if x.ndim == 2 else spec_of(x))


def everywhere(mesh, batch):
    return placed(mesh, batch, lambda x: jax.P())


def matrices_alone(mesh, batch):
    return placed(mesh, batch, lambda x: ROWS if x.ndim > 1 else jax.P())


def by_name(mesh, batch):
    put_rows = functools.partial(put(ROWS), mesh)
    count = put(jax.P())(mesh, batch["count"])
    return {"x": put_rows(batch["x"]), "y": put_rows(batch["y"]), "count": count}


def without_the_count(mesh, batch):
    kept = [x for x in jax.tree.leaves(batch) if x.ndim]
    return placed(mesh, kept, spec_of)


def with_an_axis_for_the_count(mesh, batch):
    repeated = jax.tree.map(lambda x: x if x.ndim else jnp.full(mesh.size, x), batch)
    return placed(mesh, repeated, spec_of)


def with_a_plain_count(mesh, batch):
    return jax.tree.map(lambda x: put(ROWS)(mesh, x) if x.ndim else int(x), batch)


def with_the_count_where_it_was(mesh, batch):
    return jax.tree.map(lambda x: put(ROWS)(mesh, x) if x.ndim else x, batch)


def of_eight(mesh, batch):
    return solutions.place_batch(jax.make_mesh((8,), ("data",)), batch)


def as_floats(mesh, batch):
    return placed(mesh, jax.tree.map(jnp.float32, batch), spec_of)


def leaf_by_leaf(mesh, batch):
    return jax.tree.map(lambda x: put(spec_of(x))(mesh, x), batch)


def batch_by_jit(mesh, batch):
    shardings = jax.tree.map(lambda x: jax.NamedSharding(mesh, spec_of(x)), batch)
    return jax.jit(lambda batch: batch, out_shardings=shardings)(batch)


def specs_in_a_context(mesh, batch):
    with jax.set_mesh(mesh):
        return jax.device_put(batch, jax.tree.map(spec_of, batch))


def unflattened(mesh, batch):
    leaves, structure = jax.tree.flatten(batch)
    found = [put(ROWS if x.shape else jax.P())(mesh, x) for x in leaves]
    return jax.tree.unflatten(structure, found)


def gathered(x, w):
    return jnp.matmul(jax.reshard(x, jax.P()), jax.reshard(w, jax.P()))


def doubled(x, w):
    return jnp.matmul(x, w, out_sharding=jax.P(None, None)) * 2


def matmul(out_sharding):
    return lambda x, w: jnp.matmul(x, w, out_sharding=out_sharding)


def result_gathered(x, w):
    return jax.reshard(jnp.matmul(x, w, out_sharding=ROWS), jax.P())


def by_shard_map(reduce, **options):
    def multiplied(x, w):
        @jax.shard_map(in_specs=(jax.P(None, "data"), ROWS), out_specs=jax.P(), **options)
        def of_shards(x, w):
            return reduce(x @ w)

        return of_shards(x, w)

    return multiplied


def summed(x):
    return jax.lax.psum(x, "data")


@jax.shard_map(in_specs=(jax.P(None, "data"), ROWS), out_specs=jax.P())
def shard_map_alone(x, w):
    return jax.lax.psum(x @ w, "data")


def averaged(x):
    return jax.lax.pmean(x, "data")


def in_numpy(x, w):
    return np.asarray(x) @ np.asarray(w)


def operands_added(x, w):
    @jax.shard_map(in_specs=(jax.P(None, "data"), ROWS), out_specs=jax.P(), check_vma=False)
    def of_shards(x, w):
        first = jax.lax.axis_index("data") * len(w)
        places = jnp.zeros((x.shape[0], 16)), (0, first), jnp.zeros((16, w.shape[1])), (first, 0)
        x = summed(jax.lax.dynamic_update_slice(places[0], x, places[1]))
        return x @ summed(jax.lax.dynamic_update_slice(places[2], w, places[3]))

    return of_shards(x, w)


def unreduced(x, w):
    partial = jnp.matmul(x, w, out_sharding=jax.P(unreduced={"data"}))
    return jax.reshard(partial, jax.P())


def einsum(x, w):
    return jnp.einsum("nk,km->nm", x, w, out_sharding=jax.P())


def each(function, out=ROWS):
    return lambda x: jax.shard_map(function, in_specs=ROWS, out_specs=out)(x)


def kept(function):
    """Return a function that keeps the mesh of its first call, as a decorated one does."""
    return jax.shard_map(function, in_specs=ROWS, out_specs=ROWS)


def with_mean_variances(x):
    return (x - averaged(x.mean())) / jnp.sqrt(averaged(x.var()))


def with_mean_deviations(x):
    return (x - averaged(x.mean())) / averaged(x.std())


def from_the_whole(x):
    whole = jax.lax.all_gather(x, "data", tiled=True)
    return (x - whole.mean()) / whole.std()


def from_the_sum(x):
    own, size = jax.lax.axis_index("data"), len(x)
    zeros = jnp.zeros(size * jax.lax.axis_size("data"))
    zeros = jax.lax.pcast(zeros, "data", to="varying")
    whole = summed(jax.lax.dynamic_update_slice(zeros, x, (own * size,)))
    return (x - whole.mean()) / whole.std()


def by_sums(x):
    return (x - summed(x.mean())) / jnp.sqrt(summed(x.var()))


def of_own_spread(x):
    return (x - averaged(x.mean())) / x.std()


def around_the_mean(x):
    centred = x - averaged(x.mean())
    return centred / jnp.sqrt((centred**2).mean())


def of_own_mean(x):
    centred = x - averaged(x.mean())
    return (x - x.mean()) / jnp.sqrt(averaged((centred**2).mean()))


def by_variance(x):
    centred = x - averaged(x.mean())
    return centred / averaged((centred**2).mean())


def divided_by_counts(x):
    centred = x - summed(x.sum()) / 64
    return centred / jnp.sqrt(summed((centred**2).sum()) / 64)


def divided_by_eight(x):
    centred = x - summed(x.mean()) / 8
    return centred / jnp.sqrt(summed((centred**2).mean()) / 8)


def one_less(x):
    count = len(x) * jax.lax.axis_size("data")
    centred = x - averaged(x.mean())
    return centred / jnp.sqrt(summed((centred**2).sum()) / (count - 1))


def standard_everywhere(x):
    return jax.reshard(solutions.standardised(x), jax.P())


def of_squares(x):
    mean, squares = averaged(jnp.stack([x.mean(), (x**2).mean()]))
    return (x - mean) / jnp.sqrt(squares - mean**2)


def with_gathered_means(x):
    means = jax.lax.all_gather(x.mean(), "data")
    centred = x - means.mean()
    return centred / jnp.sqrt(jax.lax.all_gather((centred**2).mean(), "data").mean())


def counted(x):
    count = summed(len(x))
    centred = x - summed(x.sum()) / count
    return centred / (summed((centred**2).sum()) / count) ** 0.5


def without_shard_map(x):
    return (x - x.mean()) / x.std()


WRONG = [
    (checks.check_place_rows, exercises.place_rows, "write `place_rows`"),
    (checks.check_place_rows, unchanged, "x lies on 1 of the devices"),
    (checks.check_place_rows, on_one_device, "x lies on 1 of the devices"),
    (checks.check_place_rows, put(jax.P()), "each device holds all of x"),
    (checks.check_place_rows, put(jax.P(None, "data")), "another axis is sharded than the first"),
    (checks.check_place_rows, by_the_last_axis, "another axis is sharded than the first"),
    (checks.check_place_rows, put(jax.P("data", None)), "it raises ValueError"),
    (checks.check_place_rows, put(jax.P("rows")), "it raises ValueError"),
    (checks.check_place_rows, on_a_mesh_of_its_own, "the mesh that is passed has 4"),
    (checks.check_place_rows, with_the_device_in_front, "x was float32[16, 8] and became"),
    (checks.check_place_rows, by_hand, "x is a list; an array is wanted"),
    (checks.check_place_rows, without_the_mesh, "it raises "),
    (checks.check_place_batch, exercises.place_batch, "it raises "),
    (checks.check_place_batch, by_columns, "another axis is sharded than the first"),
    (checks.check_place_batch, everywhere, "each device holds all of batch"),
    (checks.check_place_batch, on_one_device, "lies on 1 of the devices"),
    (checks.check_place_batch, matrices_alone, "each device holds all of batch['y']"),
    (checks.check_place_batch, by_name, "it raises TypeError: tuple indices"),
    (checks.check_place_batch, without_the_count, "and what is returned is"),
    (checks.check_place_batch, with_an_axis_for_the_count, "batch['count'] was int32[] and became"),
    (checks.check_place_batch, with_a_plain_count, "batch['count'] is an int; an array is wanted"),
    (checks.check_place_batch, with_the_count_where_it_was, "batch['count'] lies on 1 of"),
    (checks.check_place_batch, of_eight, "the mesh that is passed has 4"),
    (checks.check_place_batch, as_floats, "batch['count'] was int32[] and became float32[]"),
    (checks.check_multiplied, exercises.multiplied, "it raises ShardingTypeError"),
    (checks.check_multiplied, gathered, "shards are gathered on every device"),
    (checks.check_multiplied, result_gathered, "shards are gathered on every device"),
    (checks.check_multiplied, doubled, "it does not return x @ w"),
    (checks.check_multiplied, matmul(ROWS), "not replicated"),
    (checks.check_multiplied, matmul(jax.P(None, "data")), "not replicated"),
    (checks.check_multiplied, by_shard_map(averaged), "it does not return x @ w"),
    (checks.check_multiplied, by_shard_map(lambda x: x), "it raises ValueError"),
    (checks.check_multiplied, by_shard_map(lambda x: x, check_vma=False), "not return x @ w"),
    (checks.check_multiplied, operands_added, "one is enough, with the 128 of the result"),
    (checks.check_multiplied, in_numpy, "it returns a NumPy array, and no array of JAX"),
    (checks.check_multiplied, lambda x, w: einsum(x, w).T, "has the shape (16, 8), not (8, 16)"),
    (checks.check_standardised, exercises.standardised, "of its own shard"),
    (checks.check_standardised, each(with_mean_variances), "is made of those within the shards"),
    (checks.check_standardised, each(with_mean_deviations), "no mean of standard deviations"),
    (checks.check_standardised, each(from_the_whole), "each device gets the whole array"),
    (checks.check_standardised, each(from_the_sum), "each device gets the whole array"),
    (checks.check_standardised, each(by_sums), "the first are"),
    (checks.check_standardised, each(of_own_spread), "standard deviation of its own shard"),
    (checks.check_standardised, each(around_the_mean), "by what its own shard is away from it"),
    (checks.check_standardised, each(of_own_mean), "subtracts the mean of its own shard"),
    (checks.check_standardised, each(by_variance), "by the variance, and not by its root"),
    (checks.check_standardised, each(divided_by_counts), "of 48 numbers the first are"),
    (checks.check_standardised, each(one_less), "of 64 numbers the first are"),
    (checks.check_standardised, each(divided_by_eight), "of 64 numbers the first are"),
    (checks.check_standardised, kept(divided_by_eight), "of 64 numbers the first are"),
    (checks.check_standardised, lambda x: (x, x), "it returns a tuple"),
    (checks.check_standardised, standard_everywhere, "each device holds the whole result"),
    (checks.check_standardised, each(lambda x: averaged(x), jax.P()), "has become (16,)"),
]
RIGHT = [
    (checks.check_multiplied, shard_map_alone),
    (checks.check_place_rows, in_a_context),
    (checks.check_place_rows, by_jit),
    (checks.check_place_rows, by_callback),
    (checks.check_place_rows, put(jax.P(("data",)))),
    (checks.check_place_batch, leaf_by_leaf),
    (checks.check_place_batch, batch_by_jit),
    (checks.check_place_batch, specs_in_a_context),
    (checks.check_place_batch, unflattened),
    (checks.check_multiplied, jax.jit(matmul(jax.P(None, None)))),
    (checks.check_multiplied, functools.partial(jnp.matmul, out_sharding=jax.P())),
    (checks.check_multiplied, einsum),
    (checks.check_multiplied, by_shard_map(summed)),
    (checks.check_multiplied, unreduced),
    (checks.check_standardised, each(of_squares)),
    (checks.check_standardised, each(with_gathered_means)),
    (checks.check_standardised, each(counted)),
    (checks.check_standardised, jax.jit(without_shard_map)),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
