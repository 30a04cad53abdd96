"""Lesson 1, ten minutes: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np


def check_without(without):
    """Raise AssertionError unless a changed copy is returned."""
    x = jnp.arange(1.0, 5.0)
    found = without(x, 2)
    assert found is not None, "it returns nothing; return the changed copy"
    assert not np.array_equal(found, x), (
        "nothing has changed; `.at[...].set` returns a new array"
    )
    assert np.array_equal(found, [1, 2, 0, 4]), (
        f"from {x}, without element 2, it makes {found}, not [1. 2. 0. 4.]"
    )


def check_update(update):
    """Raise AssertionError unless new parameters are returned."""
    params = {"w": jnp.array([1.0, 2.0]), "layer": {"b": jnp.array(4.0)}}
    grads = {"w": jnp.array([1.0, 0.0]), "layer": {"b": jnp.array(2.0)}}
    before = jax.tree.map(jnp.array, params)
    found = update(params, grads, 0.5, 0.25)
    assert found is not None, (
        "it returns nothing; in JAX a step returns the new parameters"
    )
    same = jax.tree.map(jnp.array_equal, params, before)
    assert all(jax.tree.leaves(same)), (
        "it changes the dictionary that it was given; return a new one"
    )
    w, b = np.asarray(found["w"]), float(found["layer"]["b"])
    assert not np.allclose(w, [0.5, 2.0]), (
        "this is gradient descent without the decay"
    )
    assert np.allclose(w, [0.375, 1.75]) and np.isclose(b, 2.5), (
        f"w becomes {w} and b {b}, and should become [0.375 1.75] and 2.5"
    )


def check_losses_after(losses_after):
    """Raise AssertionError unless one gradient serves all rates."""
    calls = []

    def loss(params, batch):
        calls.append(params)
        return jnp.sum((params["w"] - batch) ** 2)

    params, batch = {"w": jnp.array([3.0, 0.0])}, jnp.array([1.0, 0.0])
    rates = jnp.array([0.0, 0.25, 0.5, 1.0])
    found = losses_after(loss, params, batch, rates)
    assert found.shape == (4,), (
        f"four rates have four losses, not the shape {found.shape}"
    )
    assert not np.allclose(found, [4, 9, 16, 36]), (
        "the losses grow with the rate: the step goes uphill"
    )
    assert np.allclose(found, [4, 1, 0, 4]), (
        f"the losses are {found}, not [4. 1. 0. 4.]"
    )
    assert len(calls) == 2, (
        f"the loss is called {len(calls)} times; twice is enough, once for "
        "the gradient and once for all rates, by `jax.vmap`"
    )
