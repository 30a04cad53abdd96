"""Optimizer state on the host and in 8 bits, against Optax's state on the device."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from snippets.models.steps import cross_entropy, gradient_of, make_step, stateless, train
from snippets.training import optimizer_on_host
from snippets.training.sharded_parameters import gathered, sharded_over

X = jax.random.normal(jax.random.key(1), (16, 8))
DATA = [(np.array(X), np.arange(16, dtype=np.int32) % 8)] * 5


def first_params():
    kernels = jax.random.normal(jax.random.key(0), (2, 8, 16)) / 3
    return {"up": kernels[0], "down": kernels[1].T, "bias": jnp.zeros(8)}


def network(params, x):
    return jnp.tanh(x @ params["up"]) @ params["down"] + params["bias"]


def trained(optimizer, mesh=None, to_host=False):
    """Return the step, its last state and its losses."""
    loss = cross_entropy(stateless(network))
    state = jax.device_get((first_params(), {}, optimizer.init(first_params())))
    if mesh is None:
        step = make_step(gradient_of(loss), optimizer)
        params, stats, _ = jax.tree.map(jnp.array, state)
        _, _, *found = train(step, params, stats, optimizer.init(params), DATA)
        return step, *found
    *layout, of_state = sharded_over(mesh, state)
    if to_host:
        of_state = optimizer_on_host.in_host_memory(of_state)
    explicit = mesh.axis_types[0] == jax.sharding.AxisType.Explicit
    shardings = None if explicit else (*layout, of_state, None)
    step = make_step(gradient_of(gathered(loss) if explicit else loss), optimizer, shardings)
    args = jax.device_put(state, (*layout, of_state))
    _, _, *found = train(step, *args, [jax.device_put(batch, jax.P("data")) for batch in DATA])
    return step, *found


@pytest.fixture(params=["Explicit", "Auto"])
def mesh(request):
    axis_type = jax.sharding.AxisType[request.param]
    mesh = jax.make_mesh((4,), ("data",), (axis_type,), devices=jax.devices("cpu")[:4])
    with jax.set_mesh(mesh):
        yield mesh


def test_state_on_the_host_trains_as_on_the_device(mesh):
    adam = optax.adam(1e-2)
    _, state, expected = trained(adam, mesh)
    assert optimizer_on_host.kinds(state) == {"device"}
    _, state, losses = trained(optimizer_on_host.on_host(adam), mesh, to_host=True)
    assert optimizer_on_host.kinds(state) == {"pinned_host"}
    np.testing.assert_array_equal(losses, expected)
    assert state[0].mu["up"].sharding.spec[0] == "data"


def test_on_one_device_without_a_mesh():
    adam = optax.adam(1e-2)
    _, _, expected = trained(adam)
    optimizer = optimizer_on_host.on_host(adam)
    assert optimizer_on_host.kinds(optimizer.init(first_params())) == {"pinned_host"}
    _, state, losses = trained(optimizer)
    assert optimizer_on_host.kinds(state) == {"pinned_host"}
    np.testing.assert_array_equal(losses, expected)


def test_update_without_a_copy(raises_declared):
    params = first_params()
    state = optimizer_on_host.on_host(optax.adam(1e-2)).init(params)
    raises_declared(optimizer_on_host.update_from_host, optax.adam(1e-2), params, state, params)


def test_the_copies_are_the_state_there_and_back():
    mesh = jax.make_mesh((4,), ("data",), devices=jax.devices("cpu")[:4])
    with jax.set_mesh(mesh):
        adam = optimizer_on_host.on_host(optax.adam(1e-2))
        step, state, _ = trained(adam, mesh, to_host=True)
        params = jax.device_put(first_params(), sharded_over(mesh, first_params()))
        batch = jax.device_put(DATA[0], jax.P("data"))
        jaxpr = step.trace(params, {}, state, batch).jaxpr
        found = optimizer_on_host.brought(jaxpr.jaxpr)
    # Two averages of both kernels and the bias on four devices, and the count.
    once = 4 * 2 * (8 * 16 + 16 * 8 + 8) // 4 + 4
    assert found == {"device": once, "host": once}


def test_a_checkpoint_keeps_the_kind_of_its_shardings_alone(mesh, tmp_path):
    optimizer = optimizer_on_host.on_host(optax.adam(1e-2))
    step, state, _ = trained(optimizer, mesh, to_host=True)
    layout = jax.tree.map(lambda x: x.sharding, state)
    for kind, tree in (
        ("pinned_host", optimizer_on_host.shapes(state, layout)),
        ("device", optimizer_on_host.shapes(state)),
    ):
        found = optimizer_on_host.save_and_restore(tmp_path / kind, state, tree)
        assert optimizer_on_host.kinds(found) == {kind}
        same = jax.tree.map(lambda a, b: bool((np.array(a) == np.array(b)).all()), found, state)
        assert all(jax.tree.leaves(same))
    # The page says that this step compiles again, and returns state on the host.
    params = jax.device_put(first_params(), sharded_over(mesh, first_params()))
    compiled = step._cache_size()
    batch = jax.device_put(DATA[0], jax.P("data"))
    try:
        _, _, state, _ = step(params, {}, found, batch)
    except jax.errors.JaxRuntimeError as error:
        # JAX refuses it after some other programs; alone it runs.
        assert "Memory kind mismatch" in str(error)
        return
    assert step._cache_size() > compiled
    assert optimizer_on_host.kinds(state) == {"pinned_host"}


def test_orbax_refuses_shapes_of_explicit_axes(tmp_path):
    mesh = jax.make_mesh((4,), ("data",), devices=jax.devices("cpu")[:4])
    with jax.set_mesh(mesh):
        state = {"x": jax.device_put(jnp.ones(8), jax.P("data"))}
        like = jax.eval_shape(lambda: state)
        with pytest.raises(ValueError, match="AbstractMesh"):
            optimizer_on_host.save_and_restore(tmp_path / "a", state, like)


def test_a_cpu_counts_no_bytes_on_the_host():
    state = optimizer_on_host.on_host(optax.adam(1e-2)).init(first_params())
    plan = jax.jit(lambda x: x).lower(state).compile().memory_analysis()
    assert plan.host_argument_size_in_bytes == 0


def test_bytes_of_llama():
    weights = optimizer_on_host.llama()
    # The number of weights that Meta's checkpoint has.
    assert sum(x.size for x in weights.values()) == 6_738_415_616
    adam = optax.adam(1e-3)
    found = optimizer_on_host.bytes_of_state(adam, weights)
    assert found == {"device": 8 * 6_738_415_616 + 4}
    found = optimizer_on_host.bytes_of_state(optimizer_on_host.on_host(adam), weights)
    assert found == {"host": 8 * 6_738_415_616 + 4}


def test_bytes_are_those_of_real_states():
    in_8_bits = optimizer_on_host.adam_in_8_bits(1e-3)
    for optimizer in optax.adam(1e-3), in_8_bits, optax.adafactor(1e-3):
        state = optimizer.init(first_params())
        counted = optimizer_on_host.bytes_of_state(optimizer, first_params())
        assert counted == {"device": sum(x.nbytes for x in jax.tree.leaves(state))}


def test_8_bits_are_as_near_as_the_format():
    x = jax.random.normal(jax.random.key(0), (5, 64)) * 10.0 ** jnp.arange(-8, 12, 4)[:, None]
    x = x.at[2].set(0)
    small = optimizer_on_host.to_8_bits(x, jax.random.key(1))
    assert small.values.dtype == jnp.float8_e4m3fn
    assert small.scale.shape == (5, 1)
    found = np.float64(optimizer_on_host.from_8_bits(small))
    largest = np.abs(np.float64(x)).max(axis=1, keepdims=True)
    # A step is an eighth of a number at most, or the smallest of its row.
    allowed = np.maximum(np.abs(np.float64(x)) / 8, largest * 2.0**-9 / 448) * 1.001
    assert (np.abs(found - np.float64(x)) <= allowed).all()


def test_adam_in_8_bits_follows_adam(mesh):
    _, _, expected = trained(optax.adam(1e-2), mesh)
    _, state, losses = trained(optimizer_on_host.adam_in_8_bits(1e-2), mesh)
    np.testing.assert_allclose(losses, expected, rtol=0.03)
    assert losses[-1] < losses[0] - 0.1
    assert state[1][0]["up"].values.dtype == jnp.float8_e4m3fn
    both = optimizer_on_host.on_host(optimizer_on_host.adam_in_8_bits(1e-2))
    _, state, found = trained(both, mesh, to_host=True)
    assert optimizer_on_host.kinds(state) == {"pinned_host"}
    np.testing.assert_allclose(found, losses, rtol=1e-5)


def test_small_squares_next_to_large_ones_make_no_large_step():
    params = {"row": jnp.zeros((1, 4))}
    grads = {"row": jnp.array([[1.0, 1e-2, 1e-4, 0.0]])}
    optimizer = optimizer_on_host.adam_in_8_bits(1e-3)
    state = optimizer.init(params)
    for _ in range(50):
        updates, state = optimizer.update(grads, state)
        assert np.abs(updates["row"]).max() < 2e-3
    np.testing.assert_allclose(updates["row"][0, :3], -1e-3, rtol=0.5)


def test_averages_that_decay_to_nothing_make_no_nan():
    params = {"row": jnp.zeros((1, 4))}
    optimizer = optimizer_on_host.adam_in_8_bits(1e-3)
    update, state = jax.jit(optimizer.update), optimizer.init(params)
    grads = {"row": jnp.array([[1e-30, 1e-30, 0.0, 0.0]])}
    for number in range(400):
        updates, state = update(jax.tree.map(lambda g, n=number: g * (n == 0), grads), state)
        assert jnp.isfinite(updates["row"]).all()
        assert jnp.isfinite(optimizer_on_host.from_8_bits(state[1][0]["row"])).all()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_scales_are_float32_for_all_floats(dtype):
    x = jax.random.normal(jax.random.key(0), (3, 32)).astype(dtype)
    small = optimizer_on_host.to_8_bits(x, jax.random.key(1))
    assert small.scale.dtype == jnp.float32
    optimizer, params = optimizer_on_host.adam_in_8_bits(1e-2), {"x": x}

    def body(carry, _):
        params, state = carry
        updates, state = optimizer.update({"x": params["x"]}, state, params)
        return (optax.apply_updates(params, updates), state), None

    carry, _ = jax.lax.scan(body, (params, optimizer.init(params)), None, length=3)
    assert carry[0]["x"].dtype == dtype


def test_a_scalar_has_no_row():
    with pytest.raises(ValueError, match="a scalar has no row"):
        optimizer_on_host.adam_in_8_bits(1e-3).init({"x": jnp.float32(1)})


def test_further_arguments_reach_the_optimizer():
    params, grads = first_params(), jax.tree.map(jnp.ones_like, first_params())
    for optimizer in optax.polyak_sgd(), optax.adam(1e-3):
        expected, _ = optimizer.update(grads, optimizer.init(params), params, value=2.0)
        for wrap in lambda x: x, lambda x: optax.chain(optax.identity(), x):
            far = wrap(optimizer_on_host.on_host(optimizer))
            updates, _ = far.update(grads, far.init(params), params, value=2.0)
            jax.tree.map(np.testing.assert_array_equal, updates, expected)


def test_copies_within_a_memory_are_not_counted_and_those_of_a_loop_are():
    x = jnp.ones(4)
    stays = jax.jit(lambda x: jax.device_put(x, jax.devices()[0]) + 1)
    assert optimizer_on_host.brought(stays.trace(x).jaxpr.jaxpr) == {}

    def body(x, _):
        there = jax.device_put(x, jax.memory.Space.Host)
        return jax.device_put(there, jax.memory.Space.Device), None

    looped = jax.jit(lambda x: jax.lax.scan(body, x, None, length=5))
    found = optimizer_on_host.brought(looped.trace(x).jaxpr.jaxpr)
    assert found == {"host": 5 * x.nbytes, "device": 5 * x.nbytes}
