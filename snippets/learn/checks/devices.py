"""Lesson 12, several devices: what answers are checked for."""

import contextlib
import math
import re

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import form_of, kind_of, mesh_of_eight


def meshes():
    """Return a mesh of eight devices and one of four, both with "data"."""
    eight = mesh_of_eight()
    four = jax.make_mesh((4,), ("data",), devices=eight.devices[:4])
    return eight, four


def require_rows(name, found, numbers, mesh):
    """Raise AssertionError unless an array is sharded by rows.

    `numbers` are its values, in NumPy; without axes, it is replicated.
    """
    assert isinstance(found, jax.Array), (
        f"{name} is {kind_of(found)}; an array is wanted, sharded over devices"
    )
    assert found.devices() == set(mesh.devices.flat), (
        f"{name} lies on {len(found.devices())} of the devices, and the mesh "
        f"that is passed has {mesh.size}"
    )
    assert found.shape == numbers.shape and found.dtype == numbers.dtype, (
        f"{name} was {numbers.dtype}{[*numbers.shape]} and became "
        f"{found.dtype}{[*found.shape]}"
    )
    own = found.addressable_shards[0].data.shape
    right = tuple(n // mesh.size for n in numbers.shape[:1])
    right += numbers.shape[1:]
    assert own == right or own != numbers.shape, (
        f"each device holds all of {name}, which is replicated; its first "
        "axis should be sharded"
    )
    assert own == right, (
        f"on one device the shard of {name} {numbers.shape} is {own}, and by "
        f"rows it is {right}: another axis is sharded than the first"
    )
    assert np.array_equal(found, numbers), f"the values of {name} have changed"


def check_place_rows(place_rows):
    """Raise AssertionError unless each device has its own rows."""
    for mesh in meshes():
        for shape in ((16, 8), (24,), (8, 2, 8)):
            x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
            require_rows("x", place_rows(mesh, jnp.array(x)), x, mesh)


def check_place_batch(place_batch):
    """Raise AssertionError unless each array of a batch is in its place."""
    images = np.arange(512.0, dtype=np.float32).reshape(16, 4, 8)
    dictionary = {"x": images[:, 0], "y": np.arange(16), "count": np.int32(3)}
    for mesh in meshes():
        for numbers in (dictionary, (images, [np.int32(5), np.ones(8)])):
            batch = jax.tree.map(jnp.array, numbers)
            placed = place_batch(mesh, batch)
            structures = jax.tree.structure(placed), jax.tree.structure(batch)
            assert structures[0] == structures[1], (
                f"the batch is {form_of(batch)}, and what is returned is "
                f"{form_of(placed)}"
            )
            right = jax.tree.leaves(jax.tree.map(np.asarray, batch))
            paths = jax.tree.leaves_with_path(placed)
            for (path, x), y in zip(paths, right, strict=True):
                name = f"batch{jax.tree_util.keystr(path)}"
                require_rows(name, x, y, mesh)


def elements(text, kind):
    """Return how many elements each collective of a kind returns.

    `text` is a compiled program.
    """
    found = []
    for returned in re.findall(rf" = (\S.*?) {kind}(?:-start)?\(", text):
        shapes = re.findall(r"\[([\d,]*)\]", returned)
        sizes = [map(int, re.findall(r"\d+", shape)) for shape in shapes]
        found.append(sum(map(math.prod, sizes)))
    return found


def check_multiplied(multiplied):
    """Raise AssertionError unless partial results are added."""
    mesh = mesh_of_eight()
    for rows in (16, 8):
        x = np.sin(np.arange(rows * 16, dtype=np.float32)).reshape(rows, 16)
        w = np.cos(np.arange(128, dtype=np.float32)).reshape(16, 8)
        with jax.set_mesh(mesh):
            args = (
                jax.device_put(x, jax.P(None, "data")),
                jax.device_put(w, jax.P("data", None)),
            )
            found = multiplied(*args)
            assert isinstance(found, jax.Array), (
                f"it returns {kind_of(found)}, and no array of JAX"
            )
            text = jax.jit(multiplied).lower(*args).compile().as_text()
        assert found.shape == (rows, 8), (
            f"x {x.shape} @ w {w.shape} has the shape {(rows, 8)}, not "
            f"{found.shape}"
        )
        assert np.allclose(found, x @ w, atol=1e-4), "it does not return x @ w"
        assert found.is_fully_replicated, (
            f"the result is laid out as {found.sharding.spec}, not replicated"
        )
        assert found.devices() == set(mesh.devices.flat), (
            f"the result lies on {len(found.devices())} of {mesh.size} devices"
        )
        assert not elements(text, "all-gather"), (
            "shards are gathered on every device, of x and w or of the "
            "result; ask the matmul for a replicated result, and the partial "
            "results are added instead"
        )
        added = elements(text, "all-reduce")
        assert added == [8 * rows], (
            f"the all-reduces have {added} elements; one is enough, with the "
            f"{8 * rows} of the result"
        )


def require_standard(found, numbers, devices):
    """Raise AssertionError unless numbers are standardised by all of them.

    What each of so many devices could use instead is said.
    """
    shards = numbers.reshape(devices, -1)
    mean, own = numbers.mean(), shards.mean(axis=1, keepdims=True)
    one_variance = (
        "the variance is made of those within the shards; it has to be that "
        "around the mean of all"
    )
    within = shards.std(axis=1, keepdims=True)
    around = np.sqrt(np.mean((shards - mean) ** 2, axis=1, keepdims=True))
    others = {
        "each device uses the mean and the variance of its own shard; "
        "`jax.lax.pmean` takes the mean over the devices": (own, within),
        "the mean is that of all, and each device divides by the standard "
        "deviation of its own shard": (mean, within),
        "the mean is that of all, and each device divides by what its own "
        "shard is away from it": (mean, around),
        "each device subtracts the mean of its own shard": (
            own,
            numbers.std(),
        ),
        one_variance: (mean, np.sqrt(np.mean(within**2))),
        f"{one_variance}, and is no mean of standard deviations": (
            mean,
            within.mean(),
        ),
        "a mean of standard deviations is none of all": (mean, around.mean()),
        "it divides by the variance, and not by its root": (
            mean,
            numbers.var(),
        ),
    }
    for words, (centre, spread) in others.items():
        wrong = ((shards - centre) / spread).ravel()
        assert not np.allclose(found, wrong, atol=1e-4), words
    right = (numbers - mean) / numbers.std()
    assert np.allclose(found, right, atol=1e-4), (
        f"of {len(numbers)} numbers the first are {found[:3]}, not {right[:3]}"
    )


def check_standardised(standardised):
    """Raise AssertionError unless mean and variance are of the whole.

    `jax.shard_map` keeps the mesh of its first call. Unless this has been,
    there are four devices, where a number written for eight shows.
    """
    mesh, four = meshes()
    with contextlib.suppress(ValueError), jax.set_mesh(four):
        standardised(jax.device_put(jnp.arange(8.0), jax.P("data")))
        mesh = four
    for count in (64, 48):
        numbers = np.arange(count, dtype=np.float32) ** 2 / 16
        with jax.set_mesh(mesh):
            x = jax.device_put(numbers, jax.P("data"))
            found = standardised(x)
            text = jax.jit(standardised).lower(x).compile().as_text()
        assert isinstance(found, jax.Array), (
            f"it returns {kind_of(found)}, and no array of JAX"
        )
        assert found.shape == x.shape, (
            f"the shape {x.shape} has become {found.shape}"
        )
        require_standard(np.asarray(found), numbers, mesh.size)
        assert not found.is_fully_replicated, (
            "each device holds the whole result, which should be sharded as "
            "x is"
        )
        kinds = ("all-gather", "all-reduce", "all-to-all")
        moved = [n for kind in kinds for n in elements(text, kind)]
        assert moved, (
            "right, but nothing is added up over the devices; use "
            "`jax.lax.pmean` or `jax.lax.psum`"
        )
        assert max(moved) < count, (
            "each device gets the whole array; two numbers for each shard are "
            "enough"
        )
