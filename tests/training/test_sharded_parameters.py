import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax._src.core import ShardingTypeError
from jax.sharding import AxisType

from snippets.training import data_parallel, sharded_parameters

DEVICES = jax.devices("cpu")
MESH = data_parallel.axis_of_devices(DEVICES)
SPLIT = jax.NamedSharding(MESH, jax.P("data"))
COPIED = jax.NamedSharding(MESH, jax.P())
AUTO = sharded_parameters.automatic(MESH)
AUTO_SPLIT = jax.NamedSharding(AUTO, jax.P("data"))


@pytest.fixture(scope="module")
def training():
    return data_parallel.digits()[0]


@pytest.fixture(scope="module")
def data(training):
    return data_parallel.batches(*training, epochs=5)


@pytest.fixture
def state():
    """Return a state of its own for each test, for steps donate it."""
    return data_parallel.first_state(jax.random.key(0))


@pytest.fixture(scope="module")
def specs():
    shapes = jax.eval_shape(data_parallel.first_state, jax.random.key(0))
    return jax.tree.map(lambda x: sharded_parameters.split_one_axis(x, 8), shapes)


@pytest.fixture(scope="module")
def shardings(specs):
    return sharded_parameters.on_mesh(MESH, specs)


@pytest.fixture(scope="module")
def automatic(specs):
    return sharded_parameters.on_mesh(AUTO, specs)


@pytest.fixture(scope="module")
def one_losses(data):
    state = data_parallel.first_state(jax.random.key(0))
    return data_parallel.train(state, data, DEVICES[0])[1]


def equal(losses, expected):
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def assert_laid_out(state, shardings):
    def check(x, sharding):
        assert x.sharding.is_equivalent_to(sharding, x.ndim), (x.shape, x.sharding)

    jax.tree.map(check, state, shardings)


@given(st.lists(st.integers(1, 40), max_size=3), st.integers(1, 8))
@settings(deadline=None)
def test_split_one_axis_takes_the_first_that_divides(shape, parts):
    spec = sharded_parameters.split_one_axis(np.zeros(shape), parts)
    fits = [axis for axis, length in enumerate(shape) if length % parts == 0]
    expected = [None] * fits[0] + ["data"] if fits else []
    assert list(spec) == expected


def test_which_arrays_are_split(specs):
    whole = {"biases": jax.P("data"), "weights": jax.P("data")}
    assert specs.params == [whole, whole, {"biases": jax.P(), "weights": jax.P("data")}]
    assert specs.mean == specs.square == specs.params
    assert specs.steps == jax.P()


def test_bytes_on_each_device_with_copies_and_split(state, shardings):
    copied = sharded_parameters.bytes_on_each_device(jax.device_put(state, COPIED))
    split = sharded_parameters.bytes_on_each_device(jax.device_put(state, shardings))
    numbers = data_parallel.count_numbers(state)
    not_split = 3 * 10 + 1
    assert copied == {device.id: 4 * numbers for device in DEVICES}
    expected = 4 * ((numbers - not_split) // 8 + not_split)
    assert split == {device.id: expected for device in DEVICES}
    assert sharded_parameters.bytes_on_each_device(state) == {DEVICES[0].id: 4 * numbers}


def test_explicit_axes_refuse_the_step_as_it_is(state, data, shardings):
    start, batch = jax.device_put(state, shardings), jax.device_put(data[0], SPLIT)
    with pytest.raises(ShardingTypeError, match="illegally sharded result"):
        data_parallel.train_step(start, batch)


def test_the_gathering_step_has_equal_losses_and_keeps_its_layout(
    state, data, shardings, one_losses
):
    start = jax.device_put(state, shardings)
    step = sharded_parameters.gathering_step
    with jax.set_mesh(MESH):
        end, losses = data_parallel.train(start, data, SPLIT, step)
        found = data_parallel.collectives(step, start, jax.device_put(data[0], SPLIT))
    assert all(x.is_deleted() for x in jax.tree.leaves(start))
    equal(losses, one_losses)
    assert_laid_out(end, shardings)
    split = data_parallel.count_numbers(state.params) - 10
    assert found["all-gather"] == {"operations": 5, "numbers": split}


def test_an_automatic_mesh_has_the_same_devices():
    assert AUTO.axis_names == MESH.axis_names
    assert (AUTO.devices == MESH.devices).all()
    assert set(MESH.axis_types) == {AxisType.Explicit}
    assert set(AUTO.axis_types) == {AxisType.Auto}


def test_the_sharded_step_has_equal_losses_and_keeps_its_layout(state, data, automatic, one_losses):
    start = jax.device_put(state, automatic)
    step = sharded_parameters.step_that_keeps(automatic)
    end, losses = data_parallel.train(start, data, AUTO_SPLIT, step)
    equal(losses, one_losses)
    assert_laid_out(end, automatic)


def test_a_state_made_in_parts_is_the_one_that_was_split(state, specs, shardings):
    key = jax.random.key(0)
    shapes = jax.eval_shape(data_parallel.first_state, key)
    parts = jax.tree.map(lambda x: sharded_parameters.split_one_axis(x, 8), shapes)
    assert parts == specs
    made = jax.jit(data_parallel.first_state, out_shardings=shardings)(key)
    assert_laid_out(made, shardings)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), made, state)


def test_the_step_by_hand_has_equal_losses_and_keeps_its_layout(
    state, data, specs, shardings, one_losses
):
    start = jax.device_put(state, shardings)
    step = sharded_parameters.step_by_hand(MESH, specs)
    end, losses = data_parallel.train(start, data, SPLIT, step)
    equal(losses, one_losses)
    assert_laid_out(end, shardings)


def test_collectives_of_the_steps(state, data, specs, shardings, automatic):
    start, batch = jax.device_put(state, automatic), jax.device_put(data[0], AUTO_SPLIT)
    step = sharded_parameters.step_that_keeps(automatic)
    chosen = data_parallel.collectives(step, start, batch)
    start, batch = jax.device_put(state, shardings), jax.device_put(data[0], SPLIT)
    assert {"all-gather", "all-reduce"} <= set(chosen)
    by_hand = sharded_parameters.step_by_hand(MESH, specs)
    split = data_parallel.count_numbers(state.params) - 10
    assert data_parallel.collectives(by_hand, start, batch) == {
        "all-gather": {"operations": 5, "numbers": split},
        "reduce-scatter": {"operations": 5, "numbers": split // 8},
        "all-reduce": {"operations": 1, "numbers": 11},
    }


def test_exchanged_names_each_collective(state, data):
    start, batch = jax.device_put(state, COPIED), jax.device_put(data[0], SPLIT)
    lines = sharded_parameters.exchanged(data_parallel.train_step, start, batch)
    assert lines == "all-reduce: 1, with 85003 numbers"
    assert sharded_parameters.exchanged(data_parallel.train_step, state, data[0]) == ""


def test_drawn_weights_are_those_of_the_layer(state, shardings):
    params = jax.device_put(state, shardings).params
    for layer, shape in enumerate(("64@data,256", "256@data,256", "256@data,10")):
        svg = sharded_parameters.draw_weights(params, layer).data
        assert f"float32[{shape}" in svg


def test_gather_makes_whole_parameters(state, specs, shardings):
    params = jax.device_put(state, shardings).params
    gathered = jax.jit(
        jax.shard_map(
            lambda parts: sharded_parameters.gather(parts, specs.params),
            mesh=MESH,
            in_specs=(specs.params,),
            out_specs=jax.P(),
            check_vma=False,
        )
    )(params)
    jax.tree.map(np.testing.assert_array_equal, gathered, state.params)


def test_gather_follows_the_axis_of_the_spec():
    spec = jax.P(None, "data")
    x = np.arange(48.0, dtype=np.float32).reshape(3, 16)
    x = jax.device_put(x, jax.NamedSharding(MESH, spec))
    gathered = jax.shard_map(
        lambda part: sharded_parameters.gather(part, spec),
        mesh=MESH,
        in_specs=(spec,),
        out_specs=jax.P(),
        check_vma=False,
    )(x)
    np.testing.assert_array_equal(gathered, x)


def test_the_step_gives_its_layout_whatever_comes_in(state, data, automatic):
    step = sharded_parameters.step_that_keeps(automatic)
    copied = jax.device_put(state, jax.NamedSharding(AUTO, jax.P()))
    new, _ = step(copied, jax.device_put(data[0], AUTO_SPLIT))
    assert_laid_out(new, automatic)


def test_memory_of_the_steps(state, data, specs, shardings, automatic):
    batch = jax.device_put(data[0], SPLIT)
    copied, split = jax.device_put(state, COPIED), jax.device_put(state, shardings)
    of_batch = sharded_parameters.bytes_on_each_device(batch)[DEVICES[0].id]
    held = sharded_parameters.bytes_on_each_device(split)[DEVICES[0].id]
    keeps = sharded_parameters.step_that_keeps(automatic)
    by_hand = sharded_parameters.step_by_hand(MESH, specs)
    with jax.set_mesh(MESH):
        with_copies = sharded_parameters.memory(data_parallel.train_step, copied, batch)
        gathering = sharded_parameters.memory(sharded_parameters.gathering_step, split, batch)
    assert with_copies.arguments == 4 * data_parallel.count_numbers(state) + of_batch
    for memory in (
        gathering,
        sharded_parameters.memory(by_hand, split, batch),
        sharded_parameters.memory(
            keeps, *jax.device_put((state, data[0]), (automatic, AUTO_SPLIT))
        ),
    ):
        assert memory.arguments == held + of_batch
        assert memory.between > 4 * data_parallel.count_numbers(state.params)
        assert memory.results < 1000
    assert gathering.between == pytest.approx(with_copies.between, rel=0.05)
    assert with_copies.results < 1000


@pytest.mark.parametrize("parts", [1, 3, 12])
def test_accumulated_gradients_are_those_of_the_batch(state, training, parts):
    whole = sharded_parameters.whole_gradient(state.params, training)
    added = sharded_parameters.accumulated_gradient(state.params, training, parts)
    assert data_parallel.close(whole, added)


def test_accumulated_gradients_need_less_in_between(state, training):
    in_parts = jax.jit(sharded_parameters.accumulated_gradient, static_argnames="parts")
    whole = sharded_parameters.memory(
        jax.jit(sharded_parameters.whole_gradient), state.params, training
    )
    parts = sharded_parameters.memory(in_parts, state.params, training, 12)
    assert parts.between < whole.between / 2
    assert parts.arguments == whole.arguments
    assert jnp.isfinite(data_parallel.loss(state.params, training))
