"""Lesson 12, sharding a model: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import mesh_of_eight


def check_specs_of(specs_of):
    """Raise AssertionError unless large arrays alone are sharded."""
    shapes = {
        "kernel": (64, 256),
        "wide": (256, 64),
        "bias": (256,),
        "odd": (50, 24),
        "prime": (101, 103),
        "square": (64, 64),
        "thousand": (40, 25),
        "count": (),
    }
    params = {
        "layers": [
            {k: jax.ShapeDtypeStruct(s, "float32") for k, s in shapes.items()}
        ]
    }
    found = specs_of(params, 8)["layers"][0]
    right = {
        "kernel": jax.P(None, "data"),
        "wide": jax.P("data"),
        "bias": jax.P(),
        "odd": jax.P(None, "data"),
        "prime": jax.P(),
        "square": jax.P("data"),
        "thousand": jax.P("data"),
        "count": jax.P(),
    }
    reasons = {
        "kernel": "256 is the larger axis",
        "wide": "256 is the larger axis",
        "bias": "it has fewer than 1000 elements",
        "odd": "8 divides 24, and not 50",
        "prime": "8 divides none of its axes",
        "square": "the first of two equal axes is meant",
        "thousand": "it has 1000 elements, and 8 divides 40",
        "count": "it has no axis",
    }
    for name, shape in shapes.items():
        assert isinstance(found[name], jax.P), (
            f"an array {shape} gets {found[name]}, which is no `jax.P`"
        )
        spec = tuple(found[name])
        spec = spec[: max((n + 1 for n, a in enumerate(spec) if a), default=0)]
        assert spec == tuple(right[name]), (
            f"an array {shape} gets {found[name]}, and should get "
            f"{right[name]}: {reasons[name]}"
        )


def check_gradient(gradient):
    """Raise AssertionError unless it is the gradient of one device."""

    def loss(params, batch):
        x, y = batch
        return jnp.mean((x @ params["w"] - y) ** 2)

    x = np.arange(32, dtype=np.float32).reshape(16, 2) / 16
    y = np.ones(16, np.float32)
    params = {"w": jnp.array([1.0, -2.0])}
    right = np.asarray(jax.grad(loss)(params, (x, y))["w"])
    with jax.set_mesh(mesh_of_eight()):
        batch = jax.device_put((x, y), jax.P("data"))
        found = gradient(loss, jax.device_put(params, jax.P()), batch)["w"]
    found = np.asarray(found)
    ratio = found[0] / right[0]
    assert not np.allclose(found, 8 * right), (
        "the gradient is eight times too large: `jax.grad` inside of "
        "`shard_map` already adds up those of all devices, because the "
        "parameters are replicated; take the mean of the loss instead, "
        "inside of what is differentiated"
    )
    assert np.allclose(found, right, rtol=1e-4), (
        f"the gradient is {found}, not {right}: {ratio:.3g} times as large"
    )


def check_first_state(first_state):
    """Raise AssertionError unless nothing is made whole on one device."""
    mesh = mesh_of_eight()
    traced = []

    def init(key):
        traced.append(isinstance(key, jax.core.Tracer))
        return {"kernel": jax.random.normal(key, (64, 32)), "b": jnp.ones(3)}

    specs = {"kernel": jax.P("data"), "b": jax.P()}
    shardings = jax.tree.map(lambda s: jax.NamedSharding(mesh, s), specs)
    with jax.set_mesh(mesh):
        state = first_state(init, jax.random.key(0), shardings)
        right = init(jax.random.key(0))
    assert len(state) == 3, (
        f"it returns {len(state)} pytrees, where the parameters and two "
        "averages are wanted"
    )
    params, *averages = state
    assert np.allclose(params["kernel"], right["kernel"], atol=1e-6), (
        "the parameters are not those that `init` makes"
    )
    assert not any(np.any(a["kernel"]) for a in averages), (
        "the averages do not begin at zero"
    )
    for tree in state:
        shape = tree["kernel"].addressable_shards[0].data.shape
        assert shape == (8, 32), (
            f"a device holds {shape} of a kernel (64, 32), and its shard is "
            "(8, 32); the averages are sharded as the parameters are"
        )
    assert traced[0], (
        "`init` makes whole arrays on one device before they are sharded; "
        "call it inside of a function jitted with `out_shardings`"
    )
    with jax.set_mesh(mesh):
        jaxpr = jax.make_jaxpr(lambda key: first_state(init, key, shardings))(
            jax.random.key(0)
        )
    moved = {"device_put", "reshard"} & {e.primitive.name for e in jaxpr.eqns}
    assert not moved, (
        "whole arrays are made, if in a compiled function, and sharded after "
        "that; a function jitted with `out_shardings` makes shards alone"
    )
