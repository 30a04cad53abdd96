"""Lesson 13, sharding a model: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import form_of, kind_of, mesh_of_eight


def meshes():
    """Return a mesh of eight devices and one of four, both with "data"."""
    eight = mesh_of_eight()
    four = jax.make_mesh((4,), ("data",), devices=eight.devices[:4])
    return eight, four


def require_like(name, found, right):
    """Raise AssertionError unless pytrees agree, but for their layout."""
    structures = jax.tree.structure(found), jax.tree.structure(right)
    assert structures[0] == structures[1], (
        f"{name} is {form_of(found)}, where {form_of(right)} is wanted"
    )
    for x, y in zip(*map(jax.tree.leaves, (found, right)), strict=True):
        assert isinstance(x, jax.Array), (
            f"{name} has a leaf that is {kind_of(x)}"
        )
        assert (x.shape, x.dtype) == (y.shape, y.dtype), (
            f"{name} has an array {x.dtype}{[*x.shape]}, where "
            f"{y.dtype}{[*y.shape]} is wanted"
        )


def check_laid_out(laid_out):
    """Raise AssertionError unless the batch alone is sharded, by rows."""
    params = [{"kernel": jnp.ones((16, 8)), "bias": jnp.zeros(8)}]
    adam = (params, {}, {"count": jnp.array(3), "mean": params})
    x = jnp.arange(64.0).reshape(16, 4)
    batches = {"x": x, "y": x[:, 0], "mask": x > 3}, (x, jnp.arange(16))
    for state, batch in zip((params, adam), batches, strict=True):
        with jax.set_mesh(mesh_of_eight()):
            found = laid_out(state, batch)
        assert isinstance(found, tuple) and len(found) == 2, (
            "it should return two things, the state and the batch"
        )
        require_like("the state", found[0], state)
        require_like("the batch", found[1], batch)
        for x in jax.tree.leaves(found):
            assert len(x.devices()) == 8, (
                f"an array {x.shape} lies on {len(x.devices())} of 8 devices"
            )
        for x in jax.tree.leaves(found[0]):
            assert x.is_fully_replicated, (
                f"an array {x.shape} of the state is sharded, and all of it "
                "should be on each device"
            )
        for x in jax.tree.leaves(found[1]):
            own = x.addressable_shards[0].data.shape
            assert own == (2, *x.shape[1:]), (
                f"a device holds {own} of an array {x.shape} of the batch, "
                f"where its rows are {(2, *x.shape[1:])}"
            )
        same = jax.tree.map(np.array_equal, found, (state, batch))
        assert all(jax.tree.leaves(same)), "the values have changed"


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
        "long": (4000,),
        "small": (8, 124),
        "images": (3, 3, 64, 16),
    }
    params = {"layers": [{k: np.zeros(s) for k, s in shapes.items()}]}
    found = specs_of(params, 8)
    structure = jax.tree.structure(
        found, is_leaf=lambda x: not isinstance(x, dict | list)
    )
    assert structure == jax.tree.structure(params), (
        f"a spec for each array of {form_of(params)} is wanted, and it "
        f"returns {found}"
    )
    found = found["layers"][0]
    right = {
        "kernel": jax.P(None, "data"),
        "wide": jax.P("data"),
        "bias": jax.P(),
        "odd": jax.P(None, "data"),
        "prime": jax.P(),
        "square": jax.P("data"),
        "thousand": jax.P("data"),
        "count": jax.P(),
        "long": jax.P("data"),
        "small": jax.P(),
        "images": jax.P(None, None, "data"),
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
        "long": "it has 4000 elements along its one axis",
        "small": "it has 992 elements, fewer than 1000",
        "images": "its axis of 64 is the largest",
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
    spec, small = specs_of([np.zeros((27, 64)), np.zeros((27, 20))], 3)
    assert not any(small), (
        f"an array (27, 20) over 3 devices gets {small}, and has 540 elements"
    )
    assert tuple(spec)[:1] == ("data",), (
        f"an array (27, 64) over 3 devices gets {spec}; 3 divides 27, and "
        "not 64. Is a number of devices written down?"
    )


def each_has_all(x, rows):
    """Return whether each device has all rows, as far as the type says."""
    mesh, spec = jax.typeof(x).sharding.mesh, jax.typeof(x).sharding.spec
    if mesh.empty or "data" in mesh.auto_axes or np.shape(x)[:1] != (rows,):
        return False
    return not any("data" in str(axis) for axis in spec)


def check_gradient(gradient):
    """Raise AssertionError unless it is the gradient of one device."""

    fetched, whole = [], []

    def loss(params, batch):
        fetched.append(isinstance(batch["x"], np.ndarray))
        whole.append(each_has_all(batch["x"], 16))
        errors = batch["x"] @ params["w"] + params["b"] - batch["y"]
        return jnp.mean(errors**2)

    x = np.sin(np.arange(32, dtype=np.float32)).reshape(16, 2)
    params = {"w": jnp.array([1.0, -2.0]), "b": jnp.array(0.5)}
    numbers = {"x": x, "y": np.cos(3 * x[:, 0])}
    right = jax.grad(loss)(params, numbers)
    fetched.clear()
    whole.clear()
    eight, four = meshes()
    both = jax.make_mesh((4, 2), ("data", "model"), devices=eight.devices)
    for mesh in (eight, four, both):
        with jax.set_mesh(mesh):
            batch = jax.device_put(numbers, jax.P("data"))
            found = gradient(loss, jax.device_put(params, jax.P()), batch)
        require_like("the gradient", found, right)
        assert not any(fetched), (
            "the whole batch is fetched to NumPy; let each device use its rows"
        )
        assert not any(whole), (
            "each device computes with the whole batch; let it use its rows"
        )
        ratios = np.asarray(found["w"]) / np.asarray(right["w"])
        ratios = np.append(ratios, found["b"] / right["b"])
        assert not np.allclose(ratios, mesh.size, rtol=1e-3), (
            f"on {mesh.size} devices the gradient is {mesh.size} times too "
            "large: `jax.grad` inside of `shard_map` already adds up those of "
            "all devices, because the parameters are replicated; take the "
            "mean of the loss instead, inside of what is differentiated"
        )
        assert np.allclose(ratios, 1, rtol=1e-3), (
            f"on a mesh {dict(mesh.shape)} the gradients for w and b are "
            f"{np.array2string(ratios, precision=3)} times as large as on one "
            "device"
        )


def check_first_state(first_state):
    """Raise AssertionError unless nothing is made whole on one device."""
    mesh = mesh_of_eight()
    traced = []

    def init(key):
        traced.append(isinstance(key, jax.core.Tracer))
        return {"kernel": jax.random.normal(key, (72, 41)), "b": jnp.ones(3)}

    specs = {"kernel": jax.P("data"), "b": jax.P()}
    shardings = jax.tree.map(lambda s: jax.NamedSharding(mesh, s), specs)
    key = jax.random.key(5)
    right = init(key)
    traced.clear()
    with jax.set_mesh(mesh):
        state = first_state(init, key, shardings)
    assert isinstance(state, tuple | list) and len(state) == 3, (
        "three pytrees are wanted, the parameters and two averages, and it "
        f"returns {form_of(state)}"
    )
    names = ("the parameters", "an average", "an average")
    for name, tree in zip(names, state, strict=True):
        require_like(name, tree, right)
        shape = tree["kernel"].addressable_shards[0].data.shape
        assert shape == (9, 41), (
            f"a device holds {shape} of a kernel (72, 41), and its shard is "
            "(9, 41); the averages are sharded as the parameters are"
        )
        assert len(tree["b"].devices()) == 8, (
            "an array `b` lies on one device, where `shardings` replicates it"
        )
    params, *averages = jax.device_get(state)
    assert np.allclose(params["kernel"], right["kernel"], atol=1e-6), (
        "the parameters are not those that `init` makes of the key"
    )
    assert not any(np.any(x) for x in jax.tree.leaves(averages)), (
        "the averages do not begin at zero"
    )
    assert np.array_equal(params["b"], right["b"]), (
        "`b` is not what `init` makes"
    )
    assert traced, "`init` is never called"
    assert all(traced), (
        "`init` makes whole arrays on one device before they are sharded; "
        "call it inside of a jitted function"
    )
    with jax.set_mesh(mesh):
        make = jax.jit(lambda key: first_state(init, key, shardings))
        text = make.lower(key).compile().as_text()
    assert "u32[72,41]" in text or "[72,41]" not in text, (
        "in a compiled function, each device makes a whole average (72, 41): "
        "there, `device` lays out nothing; `jnp.zeros_like` of the parameters "
        "is sharded as they are"
    )
    assert "[72,41]" not in text, (
        "each device makes a whole kernel (72, 41), in a compiled function, "
        "and keeps its shard: on explicit axes what `init` makes is "
        "replicated. `jax.sharding.auto_axes` leaves that to the compiler"
    )
    first, second = (jax.tree.leaves(average) for average in state[1:])
    assert not any(a is b for a, b in zip(first, second, strict=True)), (
        "both averages are the same arrays, and a step that donates its state "
        "would give their memory away twice; make zeros for each"
    )
