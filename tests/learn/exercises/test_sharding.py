"""Answers to the exercises on sharding a model, and what is said of the wrong ones."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import sharding as checks
from snippets.learn.exercises import sharding as exercises
from snippets.learn.solutions import sharding as solutions
from snippets.programs.practice import problem_of

ROWS, WHOLE = jax.P("data"), jax.P()


def put(state_spec, batch_spec):
    def laid_out(state, batch):
        return jax.device_put(state, state_spec), jax.device_put(batch, batch_spec)

    return laid_out


def unchanged(state, batch):
    return state, batch


def batch_alone(state, batch):
    return jax.device_put(batch, ROWS)


def state_where_it_was(state, batch):
    return state, jax.device_put(batch, ROWS)


def batch_first(state, batch):
    return solutions.laid_out(state, batch)[::-1]


def of_two_arrays(state, batch):
    x, y = batch
    return jax.device_put(state, WHOLE), (jax.device_put(x, ROWS), jax.device_put(y, ROWS))


def parameters_alone_replicated(state, batch):
    params, *rest = state
    state = type(state)([jax.device_put(params, WHOLE), *rest])
    return state, jax.device_put(batch, ROWS)


def leaves(state, batch):
    return put(WHOLE, ROWS)(jax.tree.leaves(state), jax.tree.leaves(batch))


def large_ones_sharded(state, batch):
    specs = jax.tree.map(lambda x: ROWS if x.ndim > 1 else WHOLE, state)
    return jax.device_put(state, specs), jax.device_put(batch, ROWS)


def with_shardings(state, batch):
    mesh = jax.sharding.get_mesh()
    return put(jax.NamedSharding(mesh, WHOLE), jax.NamedSharding(mesh, ROWS))(state, batch)


def array_by_array(state, batch):
    state = jax.tree.map(lambda x: jax.device_put(x, WHOLE), state)
    return state, jax.tree.map(lambda x: jax.device_put(x, ROWS), batch)


def by_jit(state, batch):
    return jax.jit(lambda *both: both, out_shardings=(WHOLE, ROWS))(state, batch)


def both_at_once(state, batch):
    return jax.device_put((state, batch), (WHOLE, ROWS))


def rule(spec):
    return lambda params, count: jax.tree.map(functools.partial(spec, count), params)


def along(axis):
    return jax.P(*[None] * axis, "data")


def first_axis(count, x):
    return ROWS if x.size >= 1000 and x.shape[0] % count == 0 else WHOLE


def largest_that(fits, threshold=1000, largest=max):
    def spec(count, x):
        axes = [axis for axis in range(x.ndim) if fits(x.shape[axis], count)]
        if x.size < threshold or not axes:
            return WHOLE
        return along(largest(axes, key=lambda axis: x.shape[axis]))

    return spec


def divided(length, count):
    return length % count == 0


def last_of_equal(count, x):
    axes = [axis for axis in range(x.ndim) if x.shape[axis] % count == 0]
    if x.size < 1000 or not axes:
        return WHOLE
    return along(max(axes, key=lambda axis: (x.shape[axis], axis)))


def largest_if_divided(count, x):
    axis = max(range(x.ndim), key=lambda axis: x.shape[axis], default=0)
    return along(axis) if x.size >= 1000 and x.shape[axis] % count == 0 else WHOLE


def of_matrices(count, x):
    if x.size < 1000 or x.ndim != 2:
        return WHOLE
    return largest_that(divided)(count, x)


def by_bytes(count, x):
    return largest_that(divided, 0)(count, x) if x.nbytes >= 1000 else WHOLE


def of_each_device(count, x):
    return largest_that(divided, 125 * count)(count, x)


def as_a_list(params, count):
    return [largest_that(divided)(count, x) for x in jax.tree.leaves(params)]


def as_text(count, x):
    return tuple(largest_that(divided)(count, x))


def under_another_name(count, x):
    return jax.P(*["model" if each else None for each in largest_that(divided)(count, x)])


def in_a_loop(count, x):
    best = None
    for axis, length in enumerate(x.shape):
        if length % count == 0 and (best is None or length > x.shape[best]):
            best = axis
    return WHOLE if x.size < 1000 or best is None else along(best)


def with_all_axes(count, x):
    found = in_a_loop(count, x)
    return jax.P(*found, *[None] * (x.ndim - len(found)))


def by_sorting(count, x):
    if np.prod(x.shape) < 1000:
        return jax.P()
    order = sorted(range(len(x.shape)), key=lambda axis: -x.shape[axis])
    return next((along(axis) for axis in order if x.shape[axis] % count == 0), jax.P())


def by_leaves(params, count):
    arrays, structure = jax.tree.flatten(params)
    return jax.tree.unflatten(structure, [in_a_loop(count, x) for x in arrays])


def of_shards(differentiated, out=WHOLE, **options):
    """Return an answer that computes `differentiated(loss)(params, batch)` on each device."""

    def gradient(loss, params, batch):
        specs = {"in_specs": (WHOLE, ROWS), "out_specs": out}
        return jax.shard_map(differentiated(loss), **specs, **options)(params, batch)

    return gradient


def pmean(tree):
    return jax.tree.map(lambda x: jax.lax.pmean(x, "data"), tree)


def of_reduced(reduce):
    def differentiated(loss):
        return jax.grad(lambda params, batch: reduce(loss(params, batch)))

    return differentiated


def scaled(function):
    def differentiated(loss):
        return lambda *args: jax.tree.map(function, jax.grad(loss)(*args))

    return differentiated


def over_all_devices(gradient):
    return gradient / jax.sharding.get_abstract_mesh().size


def of_one_shard(loss, params, batch):
    first = jax.tree.map(lambda x: jnp.asarray(jax.device_get(x)[:2]), batch)
    return jax.grad(loss)(params, first)


def divided_twice(loss, params, batch):
    return jax.tree.map(lambda g: g / 8, solutions.gradient(loss, params, batch))


def one_leaf(loss, params, batch):
    grads = of_shards(jax.grad)(loss, params, batch)
    return grads | {"w": grads["w"] / jax.sharding.get_mesh().size}


def on_the_host(loss, params, batch):
    return jax.grad(loss)(params, jax.device_get(batch))


def with_the_loss(loss, params, batch):
    return jax.value_and_grad(loss)(params, batch)


def for_the_batch(loss, params, batch):
    return jax.grad(loss, argnums=1)(params, batch)


def whole(loss, params, batch):
    return jax.grad(loss)(params, batch)


def varying(loss):
    def gradient(params, batch):
        own = jax.tree.map(lambda x: jax.lax.pcast(x, "data", to="varying"), params)
        return pmean(jax.grad(loss)(own, batch))

    return gradient


def parameters_alone(init, key, shardings):
    return (jax.jit(init, out_shardings=shardings)(key),)


def whole_averages(init, key, shardings):
    params, *_ = solutions.first_state(init, key, shardings)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape), params)
    return params, zeros, zeros


def moved(init, key, shardings):
    params = jax.device_put(jax.jit(init)(key), shardings)
    return params, *(jax.tree.map(jnp.zeros_like, params) for _ in range(2))


def moved_inside(init, key, shardings):
    def make(key):
        return moved(init, key, shardings)

    return jax.jit(make)(key)


def averages_of(params):
    zeros = jax.tree.map(jnp.zeros_like, params)
    return params, zeros, zeros


def out_shardings_alone(init, key, shardings):
    return averages_of(jax.jit(init, out_shardings=shardings)(key))


def all_out_shardings(init, key, shardings):
    def make(key):
        return averages_of(init(key))

    return jax.jit(make, out_shardings=(shardings,) * 3)(key)


def ones(init, key, shardings):
    params, average, _ = solutions.first_state(init, key, shardings)
    return params, average, jax.tree.map(lambda x: x + 1, average)


def first_values(init, key, shardings):
    params, *_ = solutions.first_state(init, key, shardings)
    return params, params, params


def another_key(init, key, shardings):
    return solutions.first_state(init, jax.random.key(0), shardings)


def of_a_known_init(init, key, shardings):
    kernel = jax.random.normal(key, (72, 41), out_sharding=ROWS)
    return averages_of({"kernel": kernel, "b": jax.device_put(jnp.ones(3), WHOLE)})


def kernel_alone(init, key, shardings):
    params, first, second = solutions.first_state(init, key, shardings)
    return params, {"kernel": first["kernel"]}, {"kernel": second["kernel"]}


def bias_averaged(init, key, shardings):
    params, first, second = solutions.first_state(init, key, shardings)
    return params, first, second | {"b": params["b"]}


def one_average(init, key, shardings):
    return solutions.first_state(init, key, shardings)[:2]


def then_averages(init, key, shardings):
    params = jax.jit(jax.sharding.auto_axes(init, out_sharding=shardings))(key)
    return params, *(jax.tree.map(jnp.zeros_like, params) for _ in range(2))


def one_average_twice(init, key, shardings):
    make = jax.sharding.auto_axes(init, out_sharding=shardings)
    return averages_of(jax.jit(make)(key))


def zeros_on_devices(init, key, shardings):
    params, *_ = then_averages(init, key, shardings)

    def zeros():
        return jax.tree.map(lambda x, s: jnp.zeros(x.shape, device=s), params, shardings)

    return params, zeros(), zeros()


def with_specs(init, key, shardings):
    specs = jax.tree.map(lambda sharding: sharding.spec, shardings)
    make = jax.sharding.auto_axes(lambda key: averages_of(init(key)), out_sharding=(specs,) * 3)
    return jax.jit(make, out_shardings=(shardings,) * 3)(key)


def decorated(init, key, shardings):
    @jax.jit
    @functools.partial(jax.sharding.auto_axes, out_sharding=[shardings] * 3)
    def make(key):
        return list(averages_of(init(key)))

    return make(key)


def inside(init, key, shardings):
    @jax.jit
    def make(key):
        return averages_of(jax.sharding.auto_axes(init, out_sharding=shardings)(key))

    return make(key)


def of_replicated_rows(loss, params, batch):
    return jax.grad(loss)(params, jax.device_put(batch, jax.P()))


def of_replicated_rows_compiled(loss, params, batch):
    return jax.jit(jax.grad(loss))(params, jax.reshard(batch, jax.P()))


def of_rows_gathered_by_each(loss, params, batch):
    @jax.shard_map(in_specs=(jax.P(), jax.P("data")), out_specs=jax.P(), check_vma=False)
    def gradient(params, batch):
        batch = jax.tree.map(lambda x: jax.lax.all_gather(x, "data", tiled=True), batch)
        return jax.grad(loss)(params, batch)

    return gradient(params, batch)


WRONG = [
    (checks.check_gradient, of_rows_gathered_by_each, "with the whole batch"),
    (checks.check_gradient, of_replicated_rows_compiled, "with the whole batch"),
    (checks.check_gradient, of_replicated_rows, "with the whole batch"),
    (checks.check_laid_out, exercises.laid_out, "write `laid_out`"),
    (checks.check_laid_out, unchanged, "lies on 1 of 8 devices"),
    (checks.check_laid_out, put(ROWS, ROWS), "of the state is sharded"),
    (checks.check_laid_out, put(WHOLE, WHOLE), "a device holds (16, 4) of an array (16, 4)"),
    (checks.check_laid_out, put(ROWS, WHOLE), "of the state is sharded"),
    (checks.check_laid_out, put(WHOLE, jax.P(None, "data")), "it raises ValueError"),
    (checks.check_laid_out, batch_alone, "two things, the state and the batch"),
    (checks.check_laid_out, state_where_it_was, "lies on 1 of 8 devices"),
    (checks.check_laid_out, batch_first, "the state is {'mask': *, 'x': *, 'y': *}, where"),
    (checks.check_laid_out, of_two_arrays, "it raises ValueError"),
    (checks.check_laid_out, parameters_alone_replicated, "lies on 1 of 8 devices"),
    (checks.check_laid_out, leaves, "the state is [*, *], where"),
    (checks.check_laid_out, large_ones_sharded, "an array (16, 8) of the state is sharded"),
    (checks.check_specs_of, exercises.specs_of, "write `specs_of`"),
    (checks.check_specs_of, rule(first_axis), "256 is the larger axis"),
    (checks.check_specs_of, rule(largest_that(divided, 0)), "fewer than 1000 elements"),
    (checks.check_specs_of, rule(largest_that(lambda *_: True)), "8 divides 24, and not 50"),
    (checks.check_specs_of, rule(largest_that(divided, 1001)), "it has 1000 elements"),
    (checks.check_specs_of, rule(largest_that(divided, largest=min)), "256 is the larger axis"),
    (
        checks.check_specs_of,
        lambda params, count: rule(largest_that(divided))(params, 8),
        "Is a number of devices written down?",
    ),
    (checks.check_specs_of, rule(last_of_equal), "the first of two equal axes"),
    (checks.check_specs_of, rule(largest_if_divided), "8 divides 24, and not 50"),
    (checks.check_specs_of, rule(of_matrices), "4000 elements along its one axis"),
    (checks.check_specs_of, rule(by_bytes), "fewer than 1000 elements"),
    (checks.check_specs_of, rule(of_each_device), "and has 540 elements"),
    (checks.check_specs_of, as_a_list, "a spec for each array of"),
    (checks.check_specs_of, rule(as_text), "which is no `jax.P`"),
    (checks.check_specs_of, rule(under_another_name), "and should get"),
    (checks.check_specs_of, rule(lambda count, x: WHOLE), "256 is the larger axis"),
    (checks.check_gradient, exercises.gradient, "8 times too large"),
    (checks.check_gradient, of_shards(jax.grad), "8 times too large"),
    (checks.check_gradient, of_shards(scaled(lambda g: g / 8)), "[0.5 0.5 0.5] times as large"),
    (checks.check_gradient, of_shards(scaled(over_all_devices)), "{'data': 4, 'model': 2}"),
    (checks.check_gradient, of_shards(of_reduced(lambda x: jax.lax.psum(x, "data"))), "8 times"),
    (
        checks.check_gradient,
        of_shards(of_reduced(lambda x: jax.lax.psum(x, "data") / 4)),
        "[2. 2. 2.] times as large",
    ),
    (checks.check_gradient, of_one_shard, "times as large"),
    (checks.check_gradient, divided_twice, "[0.125 0.125 0.125] times as large"),
    (checks.check_gradient, on_the_host, "the whole batch is fetched to NumPy"),
    (checks.check_gradient, one_leaf, "[1. 1. 8.] times as large"),
    (checks.check_gradient, with_the_loss, "the gradient is (*, {'b': *, 'w': *}), where"),
    (checks.check_gradient, for_the_batch, "the gradient is {'x': *, 'y': *}, where"),
    (checks.check_gradient, of_shards(jax.grad, check_vma=False), "times as large"),
    (checks.check_gradient, of_shards(lambda loss: loss), "it raises "),
    (checks.check_first_state, exercises.first_state, "`init` makes whole arrays"),
    (checks.check_first_state, moved, "each device makes a whole kernel"),
    (checks.check_first_state, moved_inside, "each device makes a whole kernel"),
    (checks.check_first_state, out_shardings_alone, "each device makes a whole kernel"),
    (checks.check_first_state, all_out_shardings, "each device makes a whole kernel"),
    (checks.check_first_state, parameters_alone, "three pytrees are wanted"),
    (checks.check_first_state, one_average, "three pytrees are wanted"),
    (checks.check_first_state, whole_averages, "a device holds (72, 41)"),
    (checks.check_first_state, zeros_on_devices, "each device makes a whole average"),
    (checks.check_first_state, one_average_twice, "both averages are the same arrays"),
    (checks.check_first_state, ones, "do not begin at zero"),
    (checks.check_first_state, first_values, "do not begin at zero"),
    (checks.check_first_state, bias_averaged, "do not begin at zero"),
    (checks.check_first_state, kernel_alone, "an average is {'kernel': *}, where"),
    (checks.check_first_state, of_a_known_init, "`init` is never called"),
    (checks.check_first_state, another_key, "are not those that `init` makes"),
]
RIGHT = [
    (checks.check_laid_out, with_shardings),
    (checks.check_laid_out, array_by_array),
    (checks.check_laid_out, by_jit),
    (checks.check_laid_out, both_at_once),
    (checks.check_specs_of, rule(in_a_loop)),
    (checks.check_specs_of, rule(with_all_axes)),
    (checks.check_specs_of, rule(by_sorting)),
    (checks.check_specs_of, by_leaves),
    (checks.check_gradient, whole),
    (checks.check_gradient, jax.jit(whole, static_argnums=0)),
    (checks.check_gradient, of_shards(varying)),
    (
        checks.check_gradient,
        of_shards(scaled(lambda g: g / jax.lax.axis_size("data"))),
    ),
    (
        checks.check_gradient,
        of_shards(lambda loss: lambda *args: pmean(jax.grad(loss)(*args)), check_vma=False),
    ),
    (checks.check_first_state, then_averages),
    (checks.check_first_state, with_specs),
    (checks.check_first_state, decorated),
    (checks.check_first_state, inside),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
