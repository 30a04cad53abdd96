"""Lesson 1, ten minutes: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import equations_of, kind_of


def check_without(without):
    """Raise AssertionError unless a changed copy is returned."""
    for values, i in (
        ([1.5, 2.5, 1.5, -4.0], 2),
        ([-1.5, 2.5, 3.0, -1.5, 2.5], 0),
        ([7, 5], 1),
    ):
        x = jnp.array(values)
        right = np.where(np.arange(len(x)) == i, 0, x)
        found = without(x, i)
        assert found is not None, "it returns nothing; return the changed copy"
        assert not x.is_deleted(), (
            "the array that it was given is gone, and its caller may need it; "
            "don't donate it"
        )
        assert isinstance(found, jax.Array), (
            f"it returns {kind_of(found)}, not a JAX array"
        )
        assert not np.array_equal(found, x), (
            "nothing has changed; `.at[...].set` returns a new array"
        )
        assert np.array_equal(found, right), (
            f"from {x}, without element {i}, it makes {found}, not {right}"
        )
        assert found.dtype == x.dtype, (
            f"from an array of {x.dtype} it makes one of {found.dtype}"
        )


def check_update(update):
    """Raise AssertionError unless new parameters are returned."""
    params = {"w": jnp.array([1.0, -2.0]), "layer": {"b": jnp.array(4.0)}}
    grads = {"w": jnp.array([1.0, 0.0]), "layer": {"b": jnp.array(2.0)}}
    before = jax.tree.map(np.array, (params, grads))
    found = update(params, grads, 0.5, 0.25)
    assert found is not None, (
        "it returns nothing; in JAX a step returns the new parameters"
    )
    given = jax.tree.leaves((params, grads))
    assert not any(leaf.is_deleted() for leaf in given), (
        "the arrays that it was given are gone, and their caller may need "
        "them; don't donate them"
    )
    same = jax.tree.map(np.array_equal, (params, grads), before)
    assert all(jax.tree.leaves(same)), (
        "it changes the dictionary that it was given; return a new one"
    )
    assert jax.tree.structure(found) == jax.tree.structure(params), (
        "what it returns is not nested as `params` is; return new parameters "
        "in the same dictionaries"
    )
    w, b = np.asarray(found["w"]), float(found["layer"]["b"])
    assert not np.allclose(w, [0.5, -2.0]), (
        "this is gradient descent without the decay"
    )
    assert np.allclose(w, [0.375, -1.75]) and np.isclose(b, 2.5), (
        f"w becomes {w} and b {b}, and should become [0.375 -1.75] and 2.5"
    )
    others = [jnp.array(2.1), (jnp.array([1.3, -1.0]), jnp.ones((2, 3)))]
    halves = jax.tree.map(lambda p: p / 2, others)
    grads = jax.tree.map(jnp.array, others)
    found = update(others, grads, 0.25, 1)
    assert jax.tree.structure(found) == jax.tree.structure(others), (
        f"parameters that are a list of an array and a tuple become {found}; "
        "`jax.tree.map` keeps lists and tuples as they are"
    )
    right = jax.tree.map(np.allclose, found, halves)
    assert all(jax.tree.leaves(right)), (
        "with another rate and another decay it is wrong; use both as they "
        "are passed"
    )


def check_losses_after(losses_after):
    """Raise AssertionError unless one gradient serves all rates."""
    calls = []

    def loss(params, batch):
        calls.append(params)
        return jnp.sum((params["w"] - batch) ** 2) + params["b"] ** 2

    params = {"w": jnp.array([3.0, 0.0]), "b": jnp.array(1.0)}
    batch = jnp.array([1.0, 0.0])
    rates = jnp.array([0.0, 0.25, 0.5, 2.0])
    found = losses_after(loss, params, batch, rates)
    assert isinstance(found, jax.Array) and found.shape == (4,), (
        "four rates have four losses, a JAX array of shape (4,); it returns "
        f"{found!r}"
    )
    assert not np.allclose(found, [5, 11.25, 20, 125]), (
        "the losses grow with the rate: the step goes uphill"
    )
    assert np.allclose(found, [5, 1.25, 0, 45]), (
        f"the losses are {found}, not [5. 1.25 0. 45.]"
    )
    assert len(calls) == 2, (
        f"the loss is called {len(calls)} times; twice is enough, once for "
        "the gradient and once for all rates, by `jax.vmap`"
    )
    program = jax.make_jaxpr(
        lambda: losses_after(loss, params, batch, rates)
    )()
    equations = list(equations_of(program))
    assert not {"scan", "while"} & {
        each.primitive.name for each in equations
    }, (
        "right, but it takes one rate after the other, in a loop; `jax.vmap` "
        "computes all at once"
    )
    differences = [
        each.outvars[0].aval.shape
        for each in equations
        if each.primitive.name == "sub"
    ]
    assert batch.shape in differences, (
        "right, but the gradient is computed for each rate; compute it once, "
        "for the parameters themselves"
    )
