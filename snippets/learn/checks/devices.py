"""Lesson 11, several devices: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import mesh_of_eight


def check_place_batch(place_batch):
    """Raise AssertionError unless each device has its own rows."""
    mesh = mesh_of_eight()
    batch = {
        "x": jnp.arange(128.0).reshape(16, 8),
        "y": jnp.arange(16),
        "count": jnp.array(16),
    }
    placed = place_batch(mesh, batch)
    shapes = {
        name: placed[name].addressable_shards[0].data.shape for name in batch
    }
    assert all(len(x.devices()) == 8 for x in placed.values()), (
        "an array lies on fewer than eight devices"
    )
    assert shapes["x"] != (16, 1), (
        "the columns of x are sharded; the examples are its rows"
    )
    assert shapes["x"] != (16, 8), (
        "each device holds all of x, which is replicated"
    )
    assert shapes == {"x": (2, 8), "y": (2,), "count": ()}, (
        f"the shards on one device are {shapes}"
    )
    same = jax.tree.map(np.array_equal, jax.device_get(placed), batch)
    assert all(jax.tree.leaves(same)), "the values have changed"


def check_multiplied(multiplied):
    """Raise AssertionError unless partial results are added."""
    mesh = mesh_of_eight()
    x = np.arange(64.0, dtype=np.float32).reshape(4, 16)
    w = np.ones((16, 3), np.float32)
    with jax.set_mesh(mesh):
        args = (
            jax.device_put(x, jax.P(None, "data")),
            jax.device_put(w, jax.P("data", None)),
        )
        found = multiplied(*args)
        text = jax.jit(multiplied).lower(*args).compile().as_text()
    assert np.allclose(found, x @ w), "it does not return x @ w"
    assert found.is_fully_replicated, (
        f"the result is laid out as {found.sharding.spec}, not replicated"
    )
    assert "all-gather" not in text, (
        "the shards of x or w are gathered on every device first; ask the "
        "matmul for a replicated result, and the results are added instead"
    )
    assert text.count(" all-reduce(") == 1, (
        f"there are {text.count(' all-reduce(')} all-reduces, where one is "
        "enough"
    )


def check_standardised(standardised):
    """Raise AssertionError unless mean and variance are of the whole."""
    mesh = mesh_of_eight()
    numbers = np.arange(32, dtype=np.float32) ** 2
    with jax.set_mesh(mesh):
        x = jax.device_put(numbers, jax.P("data"))
        found = np.asarray(standardised(x))
        text = jax.jit(standardised).lower(x).compile().as_text()
    right = (numbers - numbers.mean()) / numbers.std()
    shards = numbers.reshape(8, 4)
    own = shards - shards.mean(axis=1, keepdims=True)
    alone = own / shards.std(axis=1, keepdims=True)
    assert not np.allclose(found, alone.ravel(), atol=1e-4), (
        "each device uses the mean and the variance of its own shard; "
        "`jax.lax.pmean` takes the mean over the devices"
    )
    means = np.sqrt(np.mean(shards.var(axis=1)))
    mixed = (numbers - numbers.mean()) / means
    assert not np.allclose(found, mixed, atol=1e-4), (
        "the variance is the mean of the variances within the shards; it has "
        "to be that around the mean of all"
    )
    assert np.allclose(found, right, atol=1e-4), (
        f"the first numbers are {found[:3]}, not {right[:3]}"
    )
    assert "all-gather" not in text, (
        "each device gets the whole array; two numbers for each shard are "
        "enough"
    )
