import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from snippets.devices import arrays
from snippets.models import checkpoints

LOSSES = [3.0, 1.0, 2.0, 4.0, 5.0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a run that was killed, and an array from sixteen devices."""
    folder = tmp_path_factory.mktemp("checkpoints")
    programs = [
        (1, checkpoints.train_and_die, (str(folder / "run"), 30)),
        (16, checkpoints.save_on_sixteen, (str(folder / "sixteen"),)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        # The bits are compared with those of this process.
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        patch.delenv("XLA_FLAGS")
        ended = checkpoints.run_programs(folder, programs)
    assert [status for status, _ in ended] == [-9, 0], ended
    return folder


def test_a_program_that_raises_is_an_error_with_its_words(tmp_path):
    with pytest.raises(RuntimeError, match=r"a program failed:\n(.*\n)*ZeroDivisionError"):
        checkpoints.run_programs(tmp_path, [(1, divmod, (1, 1)), (1, divmod, (1, 0))])


@pytest.fixture
def manager(folder):
    with ocp.CheckpointManager(folder / "run") as manager:
        yield manager


@pytest.fixture(scope="module")
def like():
    return jax.eval_shape(checkpoints.first_state, jax.random.key(0))


@pytest.fixture(scope="module")
def uninterrupted():
    state = checkpoints.first_state(jax.random.key(0))
    return checkpoints.train(checkpoints.compiled_step(), state, checkpoints.example_batches(), 40)


def test_a_save_that_was_killed_leaves_the_last_whole_one(folder, manager):
    assert checkpoints.names_in(folder / "run") == ["10", "20", "30.orbax-checkpoint-tmp"]
    assert manager.latest_step() == 20


def test_a_relative_path_serves_as_well(tmp_path, monkeypatch):
    def die(process, signal):
        raise SystemExit

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoints.os, "kill", die)
    with pytest.raises(SystemExit):
        checkpoints.train_and_die("run", 20)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        assert manager.latest_step() >= 10


def test_a_resumed_run_has_the_same_bits(manager, like, uninterrupted):
    batches = checkpoints.example_batches()
    state = checkpoints.restore(manager, like, batches)
    generator = state["stats"]["layers"][3]["rngs"]
    assert jax.dtypes.issubdtype(generator["key"].dtype, jax.dtypes.prng_key)
    assert generator["count"][...] == 20
    assert (state["step"], batches.get_state()["next_index"]) == (20, 20)
    state, losses = checkpoints.train(checkpoints.compiled_step(), state, batches, 20)
    whole, all_losses = uninterrupted
    assert np.array_equal(losses, all_losses[20:])
    assert checkpoints.same_bits(state, whole)


def test_without_the_position_of_the_data_the_losses_differ(manager, like, uninterrupted):
    state = checkpoints.restore(manager, like, checkpoints.example_batches())
    state, losses = checkpoints.train(
        checkpoints.compiled_step(), state, checkpoints.example_batches(), 20
    )
    assert not (losses == uninterrupted[1][20:]).any()
    assert not checkpoints.same_bits(state, uninterrupted[0])


def test_a_save_goes_through_where_a_killed_one_lies(tmp_path, like):
    state, batches = checkpoints.first_state(jax.random.key(0)), checkpoints.example_batches()
    (tmp_path / "10.orbax-checkpoint-tmp").mkdir()
    with ocp.CheckpointManager(tmp_path) as manager:
        state, _ = checkpoints.train(checkpoints.compiled_step(), state, batches, 10)
        checkpoints.save(manager, state, batches)
        manager.wait_until_finished()
        assert manager.latest_step() == 10
        again = checkpoints.restore(manager, like, checkpoints.example_batches())
    assert checkpoints.same_bits(state, again)


def test_a_state_moves_to_a_mesh_and_goes_on(manager, like, uninterrupted):
    mesh = jax.make_mesh((8,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    state = checkpoints.restore_state(manager, checkpoints.with_layout(like, mesh))
    assert checkpoints.spec_of(state) == jax.P(None, "model")
    assert state["opt_state"][0].mu["layers"][4]["kernel"].sharding.spec == jax.P("model", None)
    batches = checkpoints.example_batches()
    on_one = checkpoints.restore(manager, like, batches)
    assert checkpoints.same_bits(jax.device_get(on_one["params"]), jax.device_get(state["params"]))
    _, losses = checkpoints.train(checkpoints.compiled_step(), state, batches, 20)
    assert np.allclose(losses, uninterrupted[1][20:], atol=1e-5)


def test_a_state_on_one_device_has_no_partition(raises_declared, manager, like):
    raises_declared(checkpoints.spec_of, checkpoints.restore_state(manager, like))


def test_an_array_from_more_devices_needs_a_layout(raises_declared, folder):
    raises_declared(checkpoints.restore_anyhow, str(folder / "sixteen"))
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    kernel = checkpoints.restore_somewhere(str(folder / "sixteen"), one)["kernel"]
    assert np.array_equal(kernel, np.arange(1024.0).reshape(16, 64))


def test_the_layout_that_was_saved_is_that_of_the_array(folder, tmp_path):
    found = checkpoints.saved_layout(str(folder / "sixteen"))
    assert found["shape"] == (16, 64)
    rows = {f"device {n}": ((n, n + 1), (0, 64)) for n in range(16)}
    assert found["devices"] == rows
    mesh = jax.make_mesh((4,), ("rows",), devices=jax.devices()[4:][::-1])
    kernel = jax.device_put(np.ones((8, 6)), jax.NamedSharding(mesh, jax.P("rows")))
    with ocp.CheckpointManager(tmp_path) as manager:
        manager.save(0, args=ocp.args.StandardSave({"kernel": kernel}))
    expected = arrays.held_by_each(kernel=kernel)["kernel"]
    assert checkpoints.saved_layout(tmp_path) == expected


def test_another_tree_is_refused(raises_declared, manager, like):
    raises_declared(checkpoints.restore_smaller, manager, like)
    raises_declared(checkpoints.restore_without_stats, manager, like)
    raises_declared(checkpoints.restore_with_extra, manager, like)
    raises_declared(checkpoints.restore_everything, manager)


def test_another_dtype_is_converted(manager, like):
    half = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.bfloat16), like["params"])
    state = checkpoints.restore_state(manager, like | {"params": half})
    assert {leaf.dtype for leaf in jax.tree.leaves(state["params"])} == {jnp.dtype(jnp.bfloat16)}


def test_without_a_tree_types_are_lost(manager):
    assert type(checkpoints.restore_state(manager, None)["opt_state"][0]) is dict


def test_the_best_of_two_are_kept_and_the_newest_is_gone(tmp_path):
    options = {"max_to_keep": 2, "best_fn": checkpoints.loss_of, "best_mode": "min"}
    assert checkpoints.steps_kept(tmp_path, LOSSES, **options) == ([1, 2], 1, 2)


def test_the_best_and_the_newest_are_kept(tmp_path):
    options = checkpoints.best_and_newest(2)
    assert checkpoints.steps_kept(tmp_path, LOSSES, **options) == ([1, 3, 4], 1, 4)
