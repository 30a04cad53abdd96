import contextlib
import functools
import re

import jax
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from jax._src.core import ShardingTypeError
from jax.sharding import AxisType

from snippets.models import convolutions, steps
from snippets.training import data_parallel
from snippets.training import sharded_parameters as page

DEVICES = jax.devices("cpu")
MESH = data_parallel.axis_of_devices(DEVICES)
AUTO = page.automatic(MESH)
OPTIMIZER = optax.adam(0.001)
APPLY, PARAMS, STATS = steps.split_nnx(steps.NnxMlp(rngs=nnx.Rngs(0)))
FIRST = jax.device_get((PARAMS, STATS, OPTIMIZER.init(PARAMS)))
LOSS = steps.cross_entropy(APPLY)
SHARDINGS = page.sharded_over(MESH, FIRST)
SPECS = jax.tree.map(lambda sharding: sharding.spec, SHARDINGS[0])


@pytest.fixture(scope="module")
def data():
    return steps.batches(*steps.digits()[0], epochs=3)


@pytest.fixture(scope="module")
def one_losses(data):
    return steps.train(plain_step(), *FIRST, data)[-1]


@functools.cache
def plain_step():
    return steps.make_step(steps.gradient_of(LOSS), OPTIMIZER)


@functools.cache
def gathering_step():
    return steps.make_step(steps.gradient_of(page.gathered(LOSS)), OPTIMIZER)


@functools.cache
def hand_step():
    with jax.set_mesh(MESH):
        return steps.make_step(page.gradient_by_hand(LOSS, SPECS), OPTIMIZER)


@functools.cache
def automatic_step():
    shardings = (*page.sharded_over(AUTO, FIRST), None)
    return steps.make_step(steps.gradient_of(LOSS), OPTIMIZER, shardings)


def state(mesh=MESH):
    return jax.device_put(FIRST, page.sharded_over(mesh, FIRST))


def on(mesh, batch):
    return jax.device_put(batch, jax.NamedSharding(mesh, jax.P("data")))


def assert_sharded(tree, mesh=MESH):
    def check(x, sharding):
        assert x.sharding.is_equivalent_to(sharding, x.ndim), (x.shape, x.sharding)

    jax.tree.map(check, tree, page.sharded_over(mesh, tree))


@given(st.lists(st.integers(1, 40), max_size=3), st.integers(1, 8))
@settings(deadline=None)
def test_the_first_axis_that_devices_divide_is_sharded(shape, devices):
    spec = page.shard_one_axis(np.zeros(shape), devices)
    fits = [axis for axis, length in enumerate(shape) if length % devices == 0]
    expected = [None] * fits[0] + ["data"] if fits else []
    assert list(spec) == expected


def test_which_arrays_are_sharded():
    specs = nnx.to_pure_dict(SPECS)["layers"]
    both = {"bias": jax.P("data"), "kernel": jax.P("data")}
    assert specs == {0: both, 1: both, 2: {"bias": jax.P(), "kernel": jax.P("data")}}


def test_bytes_on_each_device_replicated_and_sharded():
    replicated = jax.device_put(FIRST, jax.NamedSharding(MESH, jax.P()))
    elements = data_parallel.count_elements(FIRST)
    not_sharded = 3 * 10 + 1
    expected = 4 * ((elements - not_sharded) // 8 + not_sharded)
    devices = [device.id for device in DEVICES]
    assert page.bytes_on_each_device(replicated) == dict.fromkeys(devices, 4 * elements)
    assert page.bytes_on_each_device(state()) == dict.fromkeys(devices, expected)


def test_explicit_axes_refuse_the_step_as_it_is(data):
    with jax.set_mesh(MESH):
        with pytest.raises(ShardingTypeError, match="illegally sharded result"):
            plain_step()(*state(), on(MESH, data[0]))


@pytest.mark.parametrize(
    ("make", "mesh"), [(gathering_step, MESH), (hand_step, MESH), (automatic_step, AUTO)]
)
def test_each_way_has_equal_losses_and_keeps_its_shardings(make, mesh, data, one_losses):
    with jax.set_mesh(mesh):
        *end, losses = steps.train(make(), *state(mesh), [on(mesh, each) for each in data])
    np.testing.assert_allclose(losses, one_losses, rtol=1e-4)
    assert_sharded(end, mesh)


def automatic_gathering_step():
    """Return the step that gathers on automatic axes, where `reshard` to P() does nothing."""
    shardings = (*page.sharded_over(AUTO, FIRST), None)
    return steps.make_step(steps.gradient_of(page.gathered(LOSS)), OPTIMIZER, shardings)


def test_gathering_gathers_on_automatic_axes_as_well(data, one_losses):
    with jax.set_mesh(AUTO):
        step = automatic_gathering_step()
        *end, losses = steps.train(step, *state(AUTO), [on(AUTO, each) for each in data])
        found = data_parallel.collectives(step, *end, on(AUTO, data[0]))
    np.testing.assert_allclose(losses, one_losses, rtol=1e-4)
    assert_sharded(end, AUTO)
    sharded = data_parallel.count_elements(PARAMS) - 10
    assert found["all-gather"] == {"operations": 5, "elements": sharded}


def padded(batch):
    """Return a batch in which some devices have more padding than others."""
    x, labels = batch
    return x, np.where(np.arange(len(labels)) % 24 < 8, -100, labels)


def test_a_masked_loss_is_the_same_in_every_layout(data):
    batches = [padded(each) for each in data]
    expected = steps.train(plain_step(), *FIRST, batches)[-1]
    real = [tuple(part[labels >= 0] for part in (x, labels)) for x, labels in batches]
    np.testing.assert_allclose(
        expected[:1], steps.train(plain_step(), *FIRST, real[:1])[-1], rtol=1e-5
    )
    makes = {gathering_step: MESH, hand_step: MESH, automatic_step: AUTO}
    for make, mesh in makes.items():
        with jax.set_mesh(mesh):
            losses = steps.train(make(), *state(mesh), [on(mesh, each) for each in batches])[-1]
        np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_statistics_of_a_batch_are_refused_by_hand():
    apply, params, stats = steps.split_nnx(convolutions.NnxCnn(rngs=nnx.Rngs(0)))
    specs = jax.tree.map(lambda x: jax.P(), params)
    batch = np.ones((16, 8, 8, 1), np.float32), np.zeros(16, np.int32)
    with jax.set_mesh(MESH):
        gradient = page.gradient_by_hand(steps.cross_entropy(apply), specs)
        arguments = jax.device_put((params, stats), jax.P())
        with pytest.raises(ValueError, match="require replication which can't be"):
            jax.jit(gradient)(*arguments, on(MESH, batch))


MIXING = {"adafactor": optax.adafactor(1e-2), "muon": optax.contrib.muon(1e-2)}
SQUARE = jax.make_mesh((2, 4), ("data", "model"), devices=DEVICES)
MESHES = {"8": MESH, "8 automatic": AUTO, "2x4": SQUARE, "2x4 automatic": page.automatic(SQUARE)}


def over_both_axes(mesh, tree):
    """Return shardings over all axes of a mesh, where their sizes divide."""

    def sharding(x):
        if mesh.axis_names == ("data",):
            return page.sharded_over(mesh, x)
        even = x.ndim == 2 and x.shape[0] % 2 == 0 and x.shape[1] % 4 == 0
        spec = jax.P("data", "model") if even else page.shard_one_axis(x, 2)
        return jax.NamedSharding(mesh, spec)

    return jax.tree.map(sharding, tree)


@pytest.mark.parametrize("spec", [jax.P("machines"), jax.P(None, ("machines", "data"))])
def test_parameters_sharded_over_another_axis_are_refused_by_hand(spec):
    with pytest.raises(ValueError, match='shard parameters over "data" alone'):
        page.gradient_by_hand(LOSS, [spec], ("machines", "data"))


def dropped_nnx():
    """Return (apply, params, stats): half of the elements, times a parameter."""
    dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    graphdef, stats = nnx.split(dropout)

    def apply(params, stats, x, train=True):
        dropout = nnx.merge(graphdef, stats, copy=True)
        return params * dropout(x), nnx.state(dropout)

    return apply, np.ones(32, np.float32), stats


def dropped_by_split_keys():
    """Return the same with a stack of keys, which each call splits."""

    def apply(params, keys, x, train=True):
        keys, own = jax.vmap(jax.random.split, out_axes=1)(keys)
        return params * x * jax.random.bernoulli(own[1], shape=x.shape) * 2, keys

    return apply, np.ones(32, np.float32), jax.random.split(jax.random.key(0), 2)


@pytest.mark.parametrize("wrap", [lambda loss: loss, steps.rematerialized])
@pytest.mark.parametrize("mesh", [MESH, SQUARE, AUTO])
@pytest.mark.parametrize("make", [dropped_nnx, dropped_by_split_keys])
def test_by_hand_each_device_and_step_drops_units_of_its_own(make, mesh, wrap):
    apply, params, stats = make()

    def loss(params, stats, batch):
        y, stats = apply(params, stats, batch)
        return y.sum(), (1, stats)

    masks = []
    with jax.set_mesh(mesh):
        axes = mesh.axis_names
        gradient = jax.jit(page.gradient_by_hand(wrap(loss), jax.P("data"), axes))
        params = jax.device_put(params, jax.P("data"))
        stats = jax.device_put(stats, jax.P())
        # Each row says in a digit of its own whether it was kept.
        rows = on(mesh, np.tile(4.0 ** np.arange(8)[:, None], (1, 32)).astype(np.float32))
        rows = jax.device_put(rows, jax.P(axes))
        for _ in range(2):
            (_, stats), grads = gradient(params, stats, rows)
            kept = np.asarray(grads * 8).astype(int) // 4 ** np.arange(8)[:, None] % 4
            assert set(np.unique(kept)) == {0, 2}
            masks += list(kept)
    assert len({mask.tobytes() for mask in masks}) == 16


@functools.cache
def mixed_on_one(name):
    first = jax.device_get((PARAMS, STATS, MIXING[name].init(PARAMS)))
    batches = steps.batches(*steps.digits()[0], epochs=1)[:3]
    step = steps.make_step(steps.gradient_of(LOSS), MIXING[name])
    return first, batches, steps.train(step, *first, batches)


def take_mixed(name, mesh, wrap):
    """Return (state and losses, its shardings, elements gathered) of three steps."""
    first, batches, _ = mixed_on_one(name)
    with jax.set_mesh(mesh):
        shardings = over_both_axes(mesh, first)
        out = None if mesh.axis_types[0] == AxisType.Explicit else (*shardings, None)
        gradient = steps.gradient_of(page.gathered(LOSS))
        step = steps.make_step(gradient, wrap(MIXING[name]), out)
        given = [on(mesh, each) for each in batches]
        found = data_parallel.collectives(step, *jax.device_put(first, shardings), given[0])
        end = steps.train(step, *jax.device_put(first, shardings), given)
    return end, shardings, found["all-gather"]["elements"]


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("wrap", [page.on_replicas, page.compiler_chooses])
@pytest.mark.parametrize("name", MIXING)
def test_an_optimizer_that_mixes_axes_is_that_of_one_device(name, wrap, mesh):
    (*end, losses), shardings, _ = take_mixed(name, mesh, wrap)
    *expected, expected_losses = mixed_on_one(name)[-1]
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    assert steps.largest_difference(jax.device_get(end[0]), expected[0]) < 1e-5
    assert steps.largest_difference(jax.device_get(end[2]), expected[2]) < 1e-5
    jax.tree.map(
        lambda x, s: x.sharding.is_equivalent_to(s, x.ndim) or pytest.fail(f"{x.sharding}"),
        tuple(end),
        shardings,
    )


@pytest.mark.parametrize("name", MIXING)
def test_explicit_axes_refuse_an_optimizer_that_mixes_them(name):
    with pytest.raises(ShardingTypeError):
        take_mixed(name, MESH, lambda optimizer: optimizer)


def test_what_mixing_axes_gathers():
    size = data_parallel.count_elements(PARAMS)
    of_muon = [
        take_mixed("muon", mesh, wrap)[2] / size
        for mesh, wrap in (
            (MESH, page.on_replicas),
            (AUTO, page.on_replicas),
            (MESH, page.compiler_chooses),
            (AUTO, lambda optimizer: optimizer),
        )
    ]
    assert max(of_muon[:2]) < 3.1 and min(of_muon[2:]) > 10
    assert take_mixed("adafactor", MESH, page.compiler_chooses)[2] / size < 1.1


def test_accumulation_goes_with_sharded_parameters(data, one_losses):
    gradient = steps.accumulated(page.gathered(LOSS), 4)
    step = steps.make_step(gradient, OPTIMIZER)
    with jax.set_mesh(MESH):
        *end, losses = steps.train(step, *state(), [on(MESH, each) for each in data])
    np.testing.assert_allclose(losses, one_losses, rtol=1e-4)
    assert_sharded(end)


def test_an_automatic_mesh_has_the_same_devices():
    assert AUTO.axis_names == MESH.axis_names
    assert (AUTO.devices == MESH.devices).all()
    assert set(MESH.axis_types) == {AxisType.Explicit}
    assert set(AUTO.axis_types) == {AxisType.Auto}


@pytest.mark.parametrize("is_set", [True, False])
@pytest.mark.parametrize("kind", MESHES)
def test_a_state_can_be_made_sharded_and_no_device_makes_all_of_it(kind, is_set):
    key, mesh = jax.random.key(0), MESHES[kind]
    shapes = jax.eval_shape(page.first_state, key)
    layout = page.sharded_over(mesh, shapes)
    with jax.set_mesh(mesh) if is_set else contextlib.nullcontext():
        make = page.in_shards(page.first_state, layout)
        made = make(key)
        assert all(
            x.sharding.is_equivalent_to(sharding, x.ndim)
            for x, sharding in zip(*map(jax.tree.leaves, (made, layout)), strict=True)
        )
        whole = max(x.size for x in jax.tree.leaves(shapes))
        made_at_once = re.findall(r"= [us]32\[([\d,]+)\]", make.lower(key).compile().as_text())
        most = max(np.prod([*map(int, each.split(","))]) for each in made_at_once)
        assert most <= whole / mesh.shape["data"]
    expected = page.first_state(key)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), made, expected)


def test_collectives_of_the_steps(data):
    sharded = data_parallel.count_elements(PARAMS) - 10
    with jax.set_mesh(MESH):
        batch = on(MESH, data[0])
        gathering = data_parallel.collectives(gathering_step(), *state(), batch)
        by_hand = data_parallel.collectives(hand_step(), *state(), batch)
    assert gathering["all-gather"] == {"operations": 5, "elements": sharded}
    assert by_hand == {
        "all-gather": {"operations": 5, "elements": sharded},
        "reduce-scatter": {"operations": 5, "elements": sharded // 8},
        "all-reduce": {"operations": 1, "elements": 12},
    }
    with jax.set_mesh(AUTO):
        chosen = data_parallel.collectives(automatic_step(), *state(AUTO), on(AUTO, data[0]))
    assert {"all-gather", "all-reduce"} <= set(chosen)


def test_between_machines_only_shards_of_gradients_are_added_up(data, one_losses):
    two, both = jax.make_mesh((2, 4), ("machines", "data")), ("machines", "data")
    with jax.set_mesh(two):
        first = jax.device_put(FIRST, page.sharded_over(two, FIRST))
        rows = [jax.device_put(batch, jax.P(both)) for batch in data]
        specs = jax.tree.map(lambda x: jax.typeof(x).sharding.spec, first[0])
        gradient = page.gradient_by_hand(LOSS, specs, axes=both)
        sent = page.sent_over(jax.make_jaxpr(gradient)(*first[:2], rows[0]).jaxpr)
        *end, losses = steps.train(steps.make_step(gradient, OPTIMIZER), *first, rows)
    np.testing.assert_allclose(losses, one_losses, rtol=1e-4)
    whole = data_parallel.count_elements(PARAMS) - 10
    # Gathered and scattered; biases and loss over all; a quarter between machines.
    assert sent == {("data",): whole + whole // 4 + 10, both: 2, ("machines",): whole // 4 + 10}
    assert_sharded(end, two)


def test_communication_names_each_collective(data):
    with jax.set_mesh(MESH):
        replicated = jax.device_put(FIRST, jax.NamedSharding(MESH, jax.P()))
        lines = page.communication(plain_step(), *replicated, on(MESH, data[0]))
    assert lines == "all-reduce: 1, with 85004 elements"
    assert page.communication(plain_step(), *FIRST, data[0]) == ""


def test_drawn_kernels_are_those_of_the_layer():
    params = state()[0]
    for layer, shape in enumerate(("64@data,256", "256@data,256", "256@data,10")):
        assert f"float32[{shape}" in page.draw_kernel(params, layer).data


def test_gather_follows_the_axis_of_the_spec():
    spec = jax.P(None, "data")
    x = np.arange(48.0, dtype=np.float32).reshape(3, 16)
    gathered = jax.shard_map(
        lambda shard: page.gather(shard, spec),
        mesh=MESH,
        in_specs=(spec,),
        out_specs=jax.P(),
        check_vma=False,
    )(jax.device_put(x, jax.NamedSharding(MESH, spec)))
    np.testing.assert_array_equal(gathered, x)


def test_the_step_gives_its_shardings_whatever_comes_in(data):
    with jax.set_mesh(AUTO):
        replicated = jax.device_put(FIRST, jax.NamedSharding(AUTO, jax.P()))
        *new, _ = automatic_step()(*replicated, on(AUTO, data[0]))
    assert_sharded(new, AUTO)


def test_memory_of_the_steps(data):
    of_batch = page.bytes_on_each_device(on(MESH, data[0]))[DEVICES[0].id]
    held = page.bytes_on_each_device(state())[DEVICES[0].id]
    found = []
    with jax.set_mesh(MESH):
        batch = on(MESH, data[0])
        replicated = jax.device_put(FIRST, jax.NamedSharding(MESH, jax.P()))
        all_of_it = page.memory(plain_step(), *replicated, batch)
        found += [page.memory(make(), *state(), batch) for make in (gathering_step, hand_step)]
    with jax.set_mesh(AUTO):
        found.append(page.memory(automatic_step(), *state(AUTO), on(AUTO, data[0])))
    assert all_of_it.arguments == 4 * data_parallel.count_elements(FIRST) + of_batch
    for memory in found:
        assert memory.arguments == held + of_batch
        assert memory.temporaries > 4 * data_parallel.count_elements(PARAMS)
        assert memory.results < 1000
    assert found[0].temporaries == pytest.approx(all_of_it.temporaries, rel=0.05)


def test_cast_before_gather_sends_half_the_bytes(data):
    with jax.set_mesh(MESH):
        sharded, batch = state(), on(MESH, data[0])
        sent = [
            page.resharded_bytes(
                jax.make_jaxpr(steps.gradient_of(loss))(*sharded[:2], batch).jaxpr,
            )
            for loss in (
                page.gathered(steps.cross_entropy(steps.in_bfloat16(APPLY))),
                steps.cross_entropy(steps.in_bfloat16(page.gathered(APPLY))),
            )
        ]
    elements = data_parallel.count_elements(PARAMS)
    assert sent[0] == pytest.approx(2 * 4 * elements, rel=1e-3)
    assert sent[1] == pytest.approx(2 * 2 * elements, rel=1e-3)


def test_frozen_weights_are_returned_in_their_shards():
    seen = []

    def apply(params, frozen, x, train=True):
        seen.append(jax.typeof(frozen).sharding.spec)
        return x @ frozen, frozen

    with jax.set_mesh(MESH):
        frozen = jax.device_put(np.ones((16, 8), np.float32), jax.P("data"))
        x = jax.device_put(np.ones((8, 16), np.float32), jax.P("data"))
        y, after = jax.jit(page.frozen_gathered(apply))((), frozen, x)
    assert seen == [jax.P(None, None)] and (y == 16).all()
    assert after.sharding.is_equivalent_to(frozen.sharding, 2)
