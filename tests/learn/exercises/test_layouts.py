"""Answers to the exercises on choosing a layout, and what is said of the wrong ones."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import layouts as checks
from snippets.learn.exercises import layouts as exercises
from snippets.learn.solutions import layouts as solutions
from snippets.programs.practice import problem_of

ROWS, COLUMNS, BOTH = jax.P("model"), jax.P(None, "model"), ("data", "model")


def nbytes(tree):
    return sum(x.nbytes for x in jax.tree.leaves(tree))


def sent(factor, count=nbytes):
    return lambda grads, devices: factor(devices) * count(grads)


def whole_share(devices):
    return 2 * (devices - 1) / devices


def elements(grads):
    return sum(x.size for x in jax.tree.leaves(grads))


def of_float32(grads):
    return 4 * elements(grads)


def of_a_dict(grads):
    return sum(x.nbytes for x in grads.values())


def of_eight(grads, devices):
    return whole_share(8) * nbytes(grads)


def in_a_loop(grads, devices):
    total = 0
    for x in jax.tree.leaves(grads):
        total += 2 * (devices - 1) * x.size * x.dtype.itemsize / devices
    return total


def in_two_halves(grads, devices):
    scattered = nbytes(grads) * (devices - 1) / devices
    return scattered + scattered


def reduced(grads, devices):
    sizes = jax.tree.map(lambda x: x.nbytes, grads)
    return jax.tree.reduce(lambda a, b: a + b, sizes) * 2 * (1 - 1 / devices)


def as_numpy(grads, devices):
    return np.float64(whole_share(devices)) * nbytes(grads)


def as_an_array(grads, devices):
    sizes = jnp.array([x.nbytes for x in jax.tree.leaves(grads)])
    return 2 * (devices - 1) * sizes.sum() / devices


def of_each(grads, devices):
    return jax.tree.map(lambda x: whole_share(devices) * x.nbytes, grads)


def first_leaf(grads, devices):
    return whole_share(devices) * jax.tree.leaves(grads)[0].nbytes


def by_numpy(x, spec, mesh):
    shape = jax.NamedSharding(mesh, spec).shard_shape(x.shape)
    return np.prod(shape) * x.dtype.itemsize


def on_all_devices(shapes, specs, mesh):
    return mesh.size * solutions.bytes_held(shapes, specs, mesh)


def of_one_dict(shapes, specs, mesh):
    pairs = ((x, specs[name]) for name, x in shapes.items())
    return 3 * sum(by_axis(x, spec, mesh) for x, spec in pairs)


def of_two_names(x, spec, mesh):
    share = {"data": mesh.shape.get("data", 1), "model": mesh.shape.get("model", 1)}
    names = [n for each in spec if each for n in ([each] if isinstance(each, str) else each)]
    return x.size * x.dtype.itemsize // math.prod(share.get(name, 1) for name in names)


def as_text(grads, devices):
    return f"{whole_share(devices) * nbytes(grads):.0f} bytes"


def held(each, times=3):
    def bytes_held(shapes, specs, mesh):
        pairs = jax.tree.map(lambda x, spec: each(x, spec, mesh), shapes, specs)
        return times * sum(jax.tree.leaves(pairs))

    return bytes_held


def sharded(x, spec, mesh):
    return math.prod(jax.NamedSharding(mesh, spec).shard_shape(x.shape)) * x.dtype.itemsize


def of_shards(x, spec, mesh):
    count = 1
    for names in spec:
        for name in (names,) if isinstance(names, str) else names or ():
            count *= mesh.shape[name]
    return x.size * x.dtype.itemsize // count


def by_axis(x, spec, mesh):
    shape = list(x.shape)
    for axis, names in enumerate(spec):
        if names is not None:
            names = names if isinstance(names, tuple) else (names,)
            shape[axis] //= math.prod(mesh.shape[name] for name in names)
    return math.prod(shape) * x.dtype.itemsize


def in_float32(x, spec, mesh):
    return math.prod(jax.NamedSharding(mesh, spec).shard_shape(x.shape)) * 4


def only_elements(x, spec, mesh):
    return math.prod(jax.NamedSharding(mesh, spec).shard_shape(x.shape))


def replicated(x, spec, mesh):
    return x.size * x.dtype.itemsize


def eighth_if_sharded(x, spec, mesh):
    return x.size * x.dtype.itemsize // (mesh.size if any(spec) else 1)


def along_named_axis(x, spec, mesh):
    names = [name for name in spec if name]
    return (
        x.size
        * x.dtype.itemsize
        // math.prod(
            mesh.shape[name] if isinstance(name, str) else mesh.size // 2 for name in names
        )
    )


def quarter_for_model(x, spec, mesh):
    count = 4 if "model" in str(spec) else 1
    return x.size * x.dtype.itemsize // (count * (2 if "data" in str(spec) else 1))


def with_arrays(shapes, specs, mesh):
    arrays = jax.tree.map(
        lambda x, spec: jax.device_put(jnp.zeros(x.shape, x.dtype), jax.NamedSharding(mesh, spec)),
        shapes,
        specs,
    )
    return 3 * sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(arrays))


def parameters_and_one(shapes, specs, mesh):
    return held(sharded, 2)(shapes, specs, mesh)


def averages_whole(shapes, specs, mesh):
    return held(sharded, 1)(shapes, specs, mesh) + held(replicated, 2)(shapes, specs, mesh)


def by_leaves(shapes, specs, mesh):
    leaves, structure = jax.tree.flatten(shapes)
    pairs = zip(leaves, structure.flatten_up_to(specs), strict=True)
    return 3 * sum(by_axis(x, spec, mesh) for x, spec in pairs)


def block(x, up, down):
    return lambda: {"x": x, "up": up, "down": down}


def split(rule):
    """Return an answer that takes of the possible meshes the first by a rule."""

    def best_mesh(rows, width, hidden, devices):
        fits = possible(rows, hidden, devices)
        return min(fits, key=functools.partial(rule, rows, width, hidden))

    return best_mesh


def formula(rows, width, hidden, pair):
    data, model = pair
    gradients = 2 * (data - 1) / data * 2 * width * hidden * 4 / model
    activations = 2 * (model - 1) / model * rows / data * width * 4
    return gradients + 2 * activations


def without_factors(rows, width, hidden, pair):
    data, model = pair
    return (data - 1) * hidden + (model - 1) * rows


def bytes_held(rows, width, hidden, pair):
    return 2 * width * hidden / pair[1] + rows * width / pair[0]


def gradients_alone(rows, width, hidden, pair):
    return (pair[0] - 1) / pair[0] / pair[1]


def activations_alone(rows, width, hidden, pair):
    return (pair[1] - 1) / pair[1] / pair[0]


def forward_alone(rows, width, hidden, pair):
    data, model = pair
    return (data - 1) / data * 2 * hidden / model + (model - 1) / model * rows / data


def nearest(distance):
    def rule(rows, width, hidden, pair):
        return distance((pair[0] * pair[1] * rows / hidden) ** 0.5, pair[0])

    return rule


def one_weight(rows, width, hidden, pair):
    data, model = pair
    return (data - 1) / data * hidden / model + 2 * (model - 1) / model * rows / data


def whole_weights(rows, width, hidden, pair):
    data, model = pair
    return (data - 1) / data * hidden + (model - 1) / model * rows / data


def whole_rows(rows, width, hidden, pair):
    data, model = pair
    return (data - 1) / data * hidden / model + (model - 1) / model * rows


def hidden_activations(rows, width, hidden, pair):
    data, model = pair
    return (data - 1) / data * width / model + (model - 1) / model * rows / data


def square(rows, width, hidden, devices):
    data = 2 ** (int(math.log2(devices)) // 2)
    return data, devices // data


def reversed_pair(rows, width, hidden, devices):
    return solutions.best_mesh(rows, width, hidden, devices)[::-1]


def one_or_the_other(rows, width, hidden, devices):
    return (devices, 1) if rows > hidden else (1, devices)


def powers_of_two(rows, width, hidden, devices):
    fits = [pair for pair in possible(rows, hidden, 8) if math.prod(pair) >= devices]
    return min(fits, key=functools.partial(formula, rows, width, hidden))


def rows_over_powers_of_two(rows, width, hidden, devices):
    fits = [pair for pair in possible(rows, hidden, devices) if pair[0] in (1, 2, 4, 8)]
    return min(fits, key=functools.partial(formula, rows, width, hidden))


def of_eight_devices(rows, width, hidden, devices):
    return solutions.best_mesh(rows, width, hidden, 8)


def rows_alone_divided(rows, width, hidden, devices):
    fits = possible(rows, devices, devices)
    return min(fits, key=functools.partial(formula, rows, width, hidden))


def features_alone_divided(rows, width, hidden, devices):
    fits = possible(devices, hidden, devices)
    return min(fits, key=functools.partial(formula, rows, width, hidden))


def model_alone(rows, width, hidden, devices):
    return solutions.best_mesh(rows, width, hidden, devices)[1]


def as_a_list(rows, width, hidden, devices):
    return list(solutions.best_mesh(rows, width, hidden, devices))


def in_loops(rows, width, hidden, devices):
    best = None
    for data in range(1, devices + 1):
        for model in range(1, devices + 1):
            if data * model == devices and rows % data == 0 and hidden % model == 0:
                now = formula(rows, width, hidden, (data, model))
                if best is None or now < best[0]:
                    best = now, (data, model)
    return best[1]


def compiled(rows, width, hidden, devices):
    fits = possible(rows, hidden, devices)
    return min(fits, key=lambda pair: checks.sent_on(pair, rows, width, hidden))


def possible(rows, hidden, devices):
    pairs = [(devices // m, m) for m in range(1, devices + 1) if devices % m == 0]
    return [p for p in pairs if rows % p[0] == 0 and hidden % p[1] == 0]


SENT, HELD = checks.check_bytes_sent, checks.check_bytes_held
SPECS, BEST = checks.check_block_specs, checks.check_best_mesh
X = jax.P("data")
WRONG = [
    (SENT, exercises.bytes_sent, "write `bytes_sent`"),
    (SENT, sent(lambda n: 1), "the compiled program sends 14567"),
    (SENT, sent(lambda n: 2), "the compiled program sends 14567"),
    (SENT, sent(lambda n: n - 1), "the compiled program sends 14567"),
    (SENT, sent(lambda n: (n - 1) / n), "and the compiled program sends 14567"),
    (SENT, sent(lambda n: 2 * (n - 1)), "the compiled program sends 14567"),
    (SENT, sent(whole_share, elements), "the compiled program sends 14567"),
    (SENT, sent(whole_share, of_float32), "the first takes 2 bytes for each element"),
    (SENT, sent(whole_share, of_a_dict), "it raises AttributeError"),
    (SENT, of_eight, "on 4 devices"),
    (SENT, of_each, "should return a number"),
    (SENT, first_leaf, "the compiled program sends 14567"),
    (SENT, as_text, "should return a number"),
    (SENT, lambda grads, devices: None, "should return a number"),
    (HELD, exercises.bytes_held, "really holds"),
    (HELD, held(sharded, 1), "those are the parameters"),
    (HELD, parameters_and_one, "really holds"),
    (HELD, held(sharded, 4), "really holds"),
    (HELD, held(in_float32), "really holds"),
    (HELD, held(only_elements), "really holds"),
    (HELD, held(replicated), "really holds"),
    (HELD, held(eighth_if_sharded), "really holds"),
    (HELD, held(along_named_axis), "really holds"),
    (HELD, held(quarter_for_model), "{'data': 4, 'model': 2}"),
    (HELD, on_all_devices, "really holds"),
    (HELD, of_one_dict, "it raises "),
    (HELD, held(of_two_names), "{'x': 8}"),
    (HELD, averages_whole, "really holds"),
    (HELD, lambda *_: "lots", "should return a number"),
    (SPECS, exercises.block_specs, "holds 144 KiB"),
    (SPECS, block(jax.P(), jax.P(), jax.P()), "holds 160 KiB"),
    (SPECS, block(X, jax.P("data"), jax.P("data")), "holds 80 KiB"),
    (SPECS, block(jax.P(BOTH), jax.P(BOTH), jax.P(BOTH)), "more than 80"),
    (SPECS, block(jax.P(), jax.P(None, BOTH), jax.P(BOTH)), "sends 112 KiB"),
    (SPECS, block(X, ROWS, COLUMNS), "more than 80"),
    (SPECS, block(X, COLUMNS, COLUMNS), "more than 80"),
    (SPECS, block(X, ROWS, ROWS), "more than 80"),
    (SPECS, block(jax.P(), COLUMNS, ROWS), "holds 64 KiB"),
    (SPECS, block(jax.P("data", "model"), COLUMNS, ROWS), "more than 80"),
    (SPECS, block(ROWS, jax.P(None, "data"), X), "holds 72 KiB"),
    (SPECS, block(X, jax.P("data", "model"), jax.P("model", "data")), "more than 80"),
    (SPECS, block("data", COLUMNS, ROWS), "not a `jax.P`"),
    (SPECS, lambda: (X, COLUMNS, ROWS), "a dict with"),
    (SPECS, block(jax.P("rows"), COLUMNS, ROWS), "it raises ValueError"),
    (BEST, exercises.best_mesh, "write `best_mesh`"),
    (BEST, split(bytes_held), "on another mesh"),
    (BEST, split(gradients_alone), "on another mesh"),
    (BEST, split(activations_alone), "on another mesh"),
    (BEST, split(one_weight), "on another mesh"),
    (BEST, split(forward_alone), "on another mesh"),
    (BEST, split(nearest(lambda wanted, data: abs(wanted - data))), "on another mesh"),
    (BEST, split(nearest(lambda wanted, data: (data > wanted, -data))), "on another mesh"),
    (BEST, split(nearest(lambda wanted, data: (data < wanted, data))), "on another mesh"),
    (BEST, split(whole_weights), "on another mesh"),
    (BEST, split(whole_rows), "on another mesh"),
    (BEST, split(hidden_activations), "on another mesh"),
    (BEST, square, "on another mesh"),
    (BEST, reversed_pair, "on another mesh"),
    (BEST, rows_over_powers_of_two, "on 6 devices it returns (2, 3)"),
    (BEST, one_or_the_other, "on another mesh"),
    (BEST, powers_of_two, "data times model must be 6"),
    (BEST, of_eight_devices, "data times model must be 6"),
    (BEST, rows_alone_divided, "must divide the hidden features"),
    (BEST, features_alone_divided, "must divide the rows"),
    (BEST, model_alone, "should return two numbers"),
]
RIGHT = [
    (SENT, in_a_loop),
    (SENT, in_two_halves),
    (SENT, reduced),
    (SENT, as_numpy),
    (SENT, as_an_array),
    (HELD, held(of_shards)),
    (HELD, held(by_axis)),
    (HELD, held(by_numpy)),
    (HELD, with_arrays),
    (HELD, by_leaves),
    (SPECS, block(jax.P("data", None), jax.P(None, "model"), jax.P("model", None))),
    (SPECS, block(jax.P(("data",)), jax.P(None, ("model",)), jax.P(("model",)))),
    (SPECS, lambda: dict(zip(("down", "up", "x"), (ROWS, COLUMNS, X), strict=True))),
    (SPECS, functools.partial(dict, x=X, up=COLUMNS, down=ROWS)),
    (BEST, split(formula)),
    (BEST, split(without_factors)),
    (BEST, split(nearest(lambda wanted, data: abs(math.log(wanted / data))))),
    (BEST, in_loops),
    (BEST, as_a_list),
    (BEST, compiled),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None


@pytest.mark.parametrize(("sizes", "least"), checks.BEST.items())
def test_the_best_mesh_of_a_case_sends_least_when_compiled(sizes, least):
    rows, width, hidden, devices = sizes
    sent = {
        pair: checks.sent_on(pair, rows, width, hidden) for pair in possible(rows, hidden, devices)
    }
    assert sent[least] == min(sent.values())
    for pair, count in sent.items():
        assert count == pytest.approx(formula(rows, width, hidden, pair))


GROUPS = {
    "mesh['axis_0'=2,'axis_1'=4] {'axis_1'}, use": 4,
    "mesh['axis_0'=2,'axis_1'=4] {'axis_0','axis_1'}, use": 8,
    "mesh['axis_0'=1,'axis_1'=4,'axis_2'=2], device_ids=([2,4]T(1,0)) {'axis_1'}, use": 4,
    "[4,2]<=[2,4]T(1,0), use": 2,
    "{{0,1,2},{3,4,5}}, use": 3,
}


@pytest.mark.parametrize(("written", "count"), GROUPS.items())
def test_the_devices_of_a_group_are_read_however_it_is_written(written, count):
    operation = f"= f32[8]{{0}} all-reduce(%x), replica_groups={written}_global_device_ids=true"
    assert checks.group_size(operation) == count


def test_bytes_of_each_collective_are_those_of_its_program():
    mesh = checks.automatic_mesh(data=8)
    own, whole = jax.P("data"), jax.P()

    def sent_for(function, out):
        mapped = jax.shard_map(function, mesh=mesh, in_specs=own, out_specs=out)
        return checks.sent_bytes(jax.jit(mapped).lower(jnp.ones(64)).compile())

    def permuted(x):
        return jax.lax.ppermute(x, "data", [(n, (n + 1) % 8) for n in range(8)])

    def gathered(x):
        return jax.lax.all_gather(x, "data", tiled=True)

    def scattered(x):
        return jax.lax.psum_scatter(x, "data", tiled=True)

    assert sent_for(lambda x: jax.lax.psum(x, "data"), whole) == {"all-reduce": 56}
    assert sent_for(gathered, own) == {"all-gather": 224}
    assert sent_for(scattered, own) == {"reduce-scatter": 28}
    assert sent_for(permuted, own) == {"collective-permute": 32}
    assert sent_for(lambda x: 2 * x, own) == {}
