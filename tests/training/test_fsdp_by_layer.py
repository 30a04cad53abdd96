import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.core import ShardingTypeError
from jax.ad_checkpoint import checkpoint_name

from snippets.training import data_parallel, fsdp_by_layer, sharded_parameters

MESH = jax.make_mesh((8,), ("data",), devices=jax.devices("cpu"))
GRID = jax.make_mesh((2, 4), ("data", "model"), devices=jax.devices("cpu"))
SHARDED = jax.P(None, "data")
FEATURES = {"up": jax.P(None, None, "model"), "down": jax.P(None, "model")}
BOTH = {"up": jax.P(None, "data", "model"), "down": jax.P(None, "model", "data")}
NETWORKS = (fsdp_by_layer.at_once, fsdp_by_layer.by_layer, fsdp_by_layer.by_layer_twice)


def placed(spec):
    """Return parameters and batch in a layout of the mesh that is set."""
    params = jax.device_put(fsdp_by_layer.first_params(), spec)
    return params, jax.device_put(fsdp_by_layer.some_batch(), jax.P("data"))


@pytest.fixture(scope="module")
def alone():
    params, batch = fsdp_by_layer.first_params(), fsdp_by_layer.some_batch()
    return fsdp_by_layer.train(params, batch, fsdp_by_layer.blocks)


@pytest.fixture(scope="module")
def compiled():
    with jax.set_mesh(MESH):
        return [fsdp_by_layer.compiled_step(*placed(SHARDED), network) for network in NETWORKS]


@pytest.fixture
def on_grid():
    with jax.set_mesh(GRID):
        params, (x, _) = placed(FEATURES)
        yield params, jax.tree.map(lambda stack: stack[0], params), x


def assert_equal(found, expected):
    """Compare losses and parameters; Adam makes much of rounding in gradients close to zero."""
    (losses, params), (expected_losses, expected_params) = found, expected
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for name, weights in expected_params.items():
        assert np.abs(np.array(weights) - np.array(params[name])).mean() < 1e-6


def test_blocks_are_applied_one_after_the_other():
    params, (x, _) = fsdp_by_layer.first_params(), fsdp_by_layer.some_batch()
    expected = x
    for up, down in zip(params["up"], params["down"], strict=True):
        expected = expected + np.tanh(expected @ up) @ down
    np.testing.assert_allclose(fsdp_by_layer.blocks(params, x), expected, rtol=1e-4, atol=1e-4)


def test_training_on_one_device_lowers_the_loss_and_leaves_the_first_parameters(alone):
    losses, params = alone
    assert losses.shape == (5,)
    assert losses[-1] < losses[0] / 2
    first = fsdp_by_layer.first_params()
    assert not np.allclose(first["up"], params["up"])


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_each_way_of_gathering_has_equal_losses_and_keeps_the_layout(network, alone):
    with jax.set_mesh(MESH):
        losses, params = fsdp_by_layer.train(*placed(SHARDED), network)
    assert_equal((losses, params), alone)
    for weights in params.values():
        assert weights.sharding.spec == jax.P(None, "data", None)


def test_a_scan_over_as_many_layers_as_devices_needs_another_axis(monkeypatch):
    monkeypatch.setattr(fsdp_by_layer, "LAYERS", 8)
    first, batch = fsdp_by_layer.first_params(), fsdp_by_layer.some_batch()
    losses, _ = fsdp_by_layer.train(first, batch, fsdp_by_layer.blocks)
    shard_one_axis = sharded_parameters.shard_one_axis
    with jax.set_mesh(MESH):
        params, batch = placed(jax.tree.map(lambda x: shard_one_axis(x, 8), first))
        with pytest.raises(ValueError, match="0th dimension of all xs should be replicated"):
            fsdp_by_layer.train(params, batch, fsdp_by_layer.by_layer)
        params, _ = placed(jax.tree.map(lambda x: jax.P(None, *shard_one_axis(x[0], 8)), first))
        found, _ = fsdp_by_layer.train(params, batch, fsdp_by_layer.by_layer)
    assert np.allclose(found, losses, rtol=1e-4)


def test_the_step_takes_the_memory_of_the_old_state():
    with jax.set_mesh(MESH):
        params, batch = placed(SHARDED)
        opt_state = fsdp_by_layer.OPTIMIZER.init(params)
        old = jax.tree.leaves((params, opt_state))
        new = fsdp_by_layer.train_step(params, opt_state, batch, fsdp_by_layer.by_layer)
        jax.block_until_ready(new)
    assert all(x.is_deleted() for x in old)
    assert not any(x.is_deleted() for x in batch)


def test_temporaries_of_the_three_networks(compiled):
    params = fsdp_by_layer.first_params()
    whole = sum(weights.nbytes for weights in params.values())
    at_once, by_layer, twice = map(fsdp_by_layer.temporaries, compiled)
    assert at_once > 2 * whole
    assert whole < by_layer < 0.6 * at_once
    assert twice < whole / 2


def test_collectives_of_the_three_networks(compiled):
    counts = [data_parallel.count_collectives(each.as_text()) for each in compiled]
    block = 2 * fsdp_by_layer.WIDTH * 4 * fsdp_by_layer.WIDTH
    gathers = [found["all-gather"] for found in counts]
    assert gathers == [
        {"operations": 2, "elements": fsdp_by_layer.LAYERS * block},
        {"operations": 2, "elements": block},
        {"operations": 4, "elements": 2 * block},
    ]
    assert all(set(found) == {"all-gather", "all-reduce"} for found in counts)


def test_on_each_device_is_an_eighth_of_the_weights():
    with jax.set_mesh(MESH):
        params, _ = placed(SHARDED)
    whole = sum(weights.nbytes for weights in params.values())
    assert fsdp_by_layer.on_each_device(params) == whole / 8


def test_a_policy_that_leaves_out_a_name_keeps_what_goes_into_it():
    def body(x, layer):
        whole = jax.tree.map(lambda w: checkpoint_name(jax.reshard(w, jax.P()), "whole"), layer)
        return fsdp_by_layer.block(whole, x), None

    def network(params, x):
        policy = jax.checkpoint_policies.save_anything_except_these_names("whole")
        return jax.lax.scan(jax.checkpoint(body, policy=policy), x, params)[0]

    with jax.set_mesh(MESH):
        params, batch = placed(SHARDED)
        step = fsdp_by_layer.compiled_step(params, batch, network)
    assert fsdp_by_layer.temporaries(step) > sum(weights.nbytes for weights in params.values())


def test_report_says_bytes_and_collectives(compiled, capsys):
    fsdp_by_layer.report(compiled[2])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("MiB of temporaries")
    assert "all-gather: 4, 262144 elements" in lines


def test_a_block_with_sharded_features_must_say_where_the_sums_go(on_grid):
    _, layer, x = on_grid
    with pytest.raises(ShardingTypeError, match="Contracting dimensions are sharded"):
        fsdp_by_layer.block(layer, x)


def test_a_sharded_block_equals_the_block_with_one_all_reduce(on_grid):
    _, layer, x = on_grid
    found = fsdp_by_layer.sharded_block(layer, x)
    assert found.sharding.spec == jax.P("data", None)
    expected = fsdp_by_layer.block(jax.tree.map(np.array, layer), np.array(x))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    elements = fsdp_by_layer.ROWS // 2 * fsdp_by_layer.WIDTH
    collectives = data_parallel.collectives(jax.jit(fsdp_by_layer.sharded_block), layer, x)
    assert collectives == {"all-reduce": {"operations": 1, "elements": elements}}


def test_sharded_sums_are_another_layout_than_the_one_that_came_in(on_grid, raises_declared):
    params, _, x = on_grid
    raises_declared(fsdp_by_layer.features_stay_sharded, params, x)


def test_sharded_sums_are_right_where_they_are_brought_back(on_grid):
    _, layer, x = on_grid
    hidden = jnp.tanh(x @ layer["up"])
    sums = jnp.dot(hidden, layer["down"], out_sharding=jax.P("data", "model"))
    found = jax.reshard(x + sums, jax.P("data"))
    np.testing.assert_allclose(found, fsdp_by_layer.sharded_block(layer, x), rtol=1e-4, atol=1e-4)


def test_sharded_features_have_equal_losses(alone):
    with jax.set_mesh(GRID):
        assert_equal(fsdp_by_layer.train(*placed(FEATURES), fsdp_by_layer.by_features), alone)


def test_both_kinds_of_sharding_go_together(alone):
    def body(x, layer):
        up = jax.reshard(layer["up"], jax.P(None, "model"))
        down = jax.reshard(layer["down"], jax.P("model"))
        return fsdp_by_layer.sharded_block({"up": up, "down": down}, x), None

    def network(params, x):
        return jax.lax.scan(jax.checkpoint(body), x, params)[0]

    with jax.set_mesh(GRID):
        assert_equal(fsdp_by_layer.train(*placed(BOTH), network), alone)


def test_each_network_gathers_on_automatic_axes_as_on_explicit_ones(compiled):
    mesh = sharded_parameters.automatic(MESH)
    spec = jax.NamedSharding(mesh, jax.P(None, "data"))
    with jax.set_mesh(mesh):
        params = jax.device_put(fsdp_by_layer.first_params(), spec)
        batch = jax.device_put(fsdp_by_layer.some_batch(), jax.P("data"))
        found = [fsdp_by_layer.compiled_step(params, batch, network) for network in NETWORKS]
    for ours, explicit in zip(found, compiled, strict=True):
        gathers = [
            data_parallel.count_collectives(each.as_text())["all-gather"]
            for each in (ours, explicit)
        ]
        assert gathers[0] == gathers[1]
