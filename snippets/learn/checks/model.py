"""Lesson 8, a model and its optimizer: what answers are checked for."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax


def check_head(head):
    """Raise AssertionError unless the numbers are PyTorch's."""
    generator = np.random.default_rng(0)
    shapes = {
        "0.weight": (8,),
        "0.bias": (8,),
        "1.weight": (16, 8),
        "1.bias": (16,),
        "3.weight": (4, 16),
        "3.bias": (4,),
    }
    state = {
        name: generator.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    x = generator.normal(size=(5, 8)).astype(np.float32)
    x[0] *= 0.01

    def expected(
        epsilon=1e-5, gelu=lambda y: y * (1 + math.erf(y / 2**0.5)) / 2
    ):
        centred = x - x.mean(axis=1, keepdims=True)
        y = centred / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
        y = y * state["0.weight"] + state["0.bias"]
        y = y @ state["1.weight"].T + state["1.bias"]
        y = np.vectorize(gelu)(y)
        return y @ state["3.weight"].T + state["3.bias"]

    def by_tanh(y):
        return (
            y
            * (1 + math.tanh((2 / math.pi) ** 0.5 * (y + 0.044715 * y**3)))
            / 2
        )

    found = head(state, x)
    assert found.shape == (5, 4), f"it has the shape {found.shape}, not (5, 4)"
    difference = float(np.abs(found - expected()).max())
    assert not np.allclose(found, expected(gelu=by_tanh), atol=1e-4), (
        f"it differs by {difference:.0e}: `jax.nn.gelu` approximates by "
        "default, and `torch.nn.GELU` does not"
    )
    assert np.allclose(found[1:], expected()[1:], atol=1e-2), (
        f"it differs by up to {difference:.1g} from PyTorch"
    )
    assert np.allclose(found, expected(), atol=1e-4), (
        f"it differs by {difference:.0e} where the inputs are small: the "
        "epsilon of PyTorch's layer norm is 1e-5"
    )


def check_with_decay(with_decay):
    """Raise AssertionError unless matrices alone are decayed."""
    optimizer = with_decay(0.1, 0.5)
    params = {
        "norm": {"scale": jnp.ones(3)},
        "kernel": jnp.ones((3, 2)),
        "convolution": jnp.ones((3, 3, 2, 4)),
    }
    grads = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(grads, optimizer.init(params), params)
    scale, kernel = updates["norm"]["scale"], updates["kernel"]
    assert jnp.any(kernel), "without a gradient, the kernel is not decayed"
    assert np.allclose(kernel, -0.05), (
        f"the kernel of ones is decayed by {float(kernel[0, 0])}, not by the "
        "rate times the decay, 0.1 * 0.5"
    )
    assert jnp.any(updates["convolution"]), (
        "the kernel of a convolution, of four axes, is not decayed"
    )
    assert not jnp.any(scale), (
        "the scale of the norm is decayed as well; `optax.adamw` takes a mask"
    )
    moved, _ = optimizer.update(params, optimizer.init(params), params)
    assert np.allclose(moved["norm"]["scale"], -0.1, atol=1e-4), (
        "the scale has a gradient and does not move as Adam moves it; it is "
        "to be trained, and not decayed"
    )


def check_last_layer_alone(last_layer_alone):
    """Raise AssertionError unless the other layers stay as they are."""
    params = {
        "first": {"kernel": jnp.ones((2, 3)), "bias": jnp.ones(3)},
        "last": {"kernel": jnp.ones((3, 2))},
    }
    grads = jax.tree.map(lambda leaf: 2 * jnp.ones_like(leaf), params)
    adamw = optax.adamw(0.1, weight_decay=0.5)
    optimizer = last_layer_alone(adamw)
    state = optimizer.init(params)
    updates, _ = optimizer.update(grads, state, params)
    assert jax.tree.structure(updates) == jax.tree.structure(params), (
        "the updates have another structure than the parameters, and cannot "
        "be added to them"
    )
    assert jnp.any(updates["last"]["kernel"]), "the last layer does not move"
    assert not any(map(jnp.any, jax.tree.leaves(updates["first"]))), (
        "the first layer moves: a gradient of zero is not enough, since "
        "AdamW decays every parameter; its updates must be zero"
    )
    own = adamw.init(params["last"])
    right, _ = adamw.update(grads["last"], own, params["last"])
    assert np.allclose(updates["last"]["kernel"], right["kernel"]), (
        "the last layer does not move as the optimizer would move it"
    )
