"""Lesson 8, a model and its optimizer: what answers are checked for."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snippets.programs.practice import kind_of


def first_state(optimizer, params):
    """Return the first state of what is to be an optimizer."""
    assert hasattr(optimizer, "init"), (
        f"it returns {kind_of(optimizer)}, not an optimizer, which "
        "has `init` and `update`"
    )
    return optimizer.init(params)


def check_clipped(clipped):
    """Raise AssertionError unless Adam gets gradients that were clipped."""

    def second(gradients):
        before, now = gradients
        mean = (0.9 * before + now) / 1.9
        return -0.1 * mean / np.sqrt((0.999 * before**2 + now**2) / 1.999)

    def updates_of(optimizer, *gradients):
        params = {"w": jnp.array(50.0), "v": jnp.ones(1), "b": jnp.ones(2)}
        state = first_state(optimizer, params)
        for a, b in gradients:
            grads = {"w": jnp.array(a), "v": jnp.array([b]), "b": jnp.zeros(2)}
            updates, state = optimizer.update(grads, state, params)
        assert jax.tree.structure(updates) == jax.tree.structure(params), (
            "the updates have another structure than the parameters"
        )
        assert not np.any(updates["b"]), (
            "what has no gradient moves as well: `optax.adamw` decays it, "
            "and `optax.adam` does not"
        )
        return np.array([updates["w"], updates["v"][0]])

    raw = np.array([[30.0, -40], [0.3, 0.4]])
    found = updates_of(clipped(0.1, 5.0), *raw)
    mistakes = {
        "the gradients reach Adam as they are; clip them before, since "
        "`optax.chain` calls the first one first": second(raw),
        "each element or array is clipped by itself, which gives the gradient "
        "another direction; clip the norm of all": second(np.clip(raw, -5, 5)),
        "the gradients are clipped to a norm of 1, not of `limit`": second(
            raw / np.array([[50], [1]])
        ),
        "each gradient gets the norm `limit`, also one that is shorter": (
            second(raw / np.array([[10], [0.1]]))
        ),
        "it goes uphill: an update is added, so it has a minus": -second(
            raw / np.array([[10], [1]])
        ),
        "the clipped gradient goes through no Adam": -0.1 * raw[1],
    }
    for mistake, values in mistakes.items():
        assert not np.allclose(found, values, atol=1e-4), mistake
    right = second(raw / np.array([[10], [1]]))
    assert np.allclose(found, right, atol=1e-4), (
        f"after gradients of {raw[0]} and {raw[1]}, and with a limit of 5, "
        f"the update is {found}, not {right}"
    )
    found = updates_of(clipped(0.3, 0.02), *raw)
    right = 3 * second(raw / np.array([[2500], [25]]))
    assert np.allclose(found, right, atol=1e-4), (
        f"at a rate of 0.3 and a limit of 0.02, the update is {found}, not "
        f"{right}"
    )


def head_of(
    state, x, axis=1, ddof=0, epsilon=1e-5, gelu=None, transpose=np.transpose
):
    """Return what PyTorch's module returns, or another that is close to it."""
    gelu = gelu or (lambda y: y * (1 + math.erf(y / 2**0.5)) / 2)
    variance = x.var(axis=axis, ddof=ddof, keepdims=True)
    y = (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(variance + epsilon)
    y = y * state["0.weight"] + state["0.bias"]
    y = y @ transpose(state["1.weight"]) + state["1.bias"]
    y = np.vectorize(gelu)(y)
    return y @ transpose(state["3.weight"]) + state["3.bias"]


def by_tanh(y):
    """Return the approximation of GELU that is JAX's default."""
    inner = (2 / math.pi) ** 0.5 * (y + 0.044715 * y**3)
    return y * (1 + math.tanh(inner)) / 2


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
    found = jax.jit(functools.partial(head, state))(x)
    expected = head_of(state, x)
    assert np.shape(found) == (5, 4), (
        f"it has the shape {np.shape(found)}, not (5, 4)"
    )
    without = [
        state | {name: np.zeros_like(state[name])}
        for name in ("0.bias", "1.bias", "3.bias")
    ]
    unscaled = state | {"0.weight": np.ones(8)}
    mistakes = {
        "it normalizes over the rows, and a layer norm over the 8 numbers of "
        "one row": head_of(state, x, axis=0),
        "the variance divides by 7, and a layer norm's by 8": head_of(
            state, x, ddof=1
        ),
        "it reshapes the weights to transpose them, which mixes their "
        "numbers": head_of(
            state, x, transpose=lambda w: w.reshape(w.shape[::-1])
        ),
        "the GELU is missing": head_of(state, x, gelu=lambda y: y),
        "it has a ReLU, not a GELU": head_of(
            state, x, gelu=lambda y: y * (y > 0)
        ),
        "it has a SiLU, not a GELU": head_of(
            state, x, gelu=lambda y: y / (1 + math.exp(-y))
        ),
        "the scale of the norm is missing": head_of(unscaled, x),
        "the bias of the norm is missing": head_of(without[0], x),
        "the bias of the first linear layer is missing": head_of(
            without[1], x
        ),
        "the bias of the last linear layer is missing": head_of(without[2], x),
    }
    for mistake, values in mistakes.items():
        assert not np.allclose(found[1:], values[1:], atol=5e-3), mistake
    difference = float(np.abs(found - expected).max())
    approximated = head_of(state, x, gelu=by_tanh)
    assert not np.allclose(found, approximated, atol=1e-4), (
        f"it differs by {difference:.0e}: `jax.nn.gelu` approximates by "
        "default, and `torch.nn.GELU` does not"
    )
    assert np.allclose(found[1:], expected[1:], atol=1e-2), (
        f"it differs by up to {difference:.1g} from PyTorch"
    )
    assert np.allclose(found, expected, atol=1e-4), (
        f"it differs by {difference:.0e}, most where the inputs are small: "
        "PyTorch's layer norm adds an epsilon of 1e-5 to the variance"
    )


def check_with_decay(with_decay):
    """Raise AssertionError unless matrices alone are decayed."""
    params = {
        "kernel": jnp.ones((3, 2)),
        "convolution": [jnp.ones((3, 2, 4)), jnp.ones((3, 3, 2, 4))],
        "embedding": [jnp.ones((1, 4)), jnp.ones((4, 1))],
        "norm": {"scale": jnp.ones(40), "shift": jnp.ones(3)},
        "bias": jnp.ones(2),
        "temperature": jnp.ones(()),
    }
    zeros = jax.tree.map(jnp.zeros_like, params)
    for rate, decay in ((0.1, 0.5), (0.2, 0.3)):
        optimizer = with_decay(rate, decay)
        state = first_state(optimizer, params)
        updates, _ = optimizer.update(zeros, state, params)
        kernel = updates["kernel"]
        assert jnp.any(kernel), "without a gradient, the kernel is not decayed"
        assert np.allclose(kernel, -rate * decay), (
            f"the kernel of ones is decayed by {kernel[0, 0]:.3g}, not by "
            f"the rate times the decay, {rate} * {decay}"
        )
    for path, update in jax.tree.leaves_with_path(updates):
        name = jax.tree_util.keystr(path)
        assert update.ndim < 2 or jnp.any(update), (
            f"the parameter {name} of shape {update.shape} is not decayed; "
            "what has two axes or more is a matrix, whatever its name"
        )
        assert update.ndim > 1 or not jnp.any(update), (
            f"the parameter {name} of shape {update.shape} is decayed as "
            "well; `optax.adamw` takes a mask"
        )
    state = optimizer.init(params)
    for scale in (5, -1):
        grads = jax.tree.map(
            functools.partial(jnp.full_like, fill_value=scale), params
        )
        moved, state = optimizer.update(grads, state, params)
    adam = -0.2 * (0.9 * 5 - 1) / 1.9 / np.sqrt((0.999 * 25 + 1) / 1.999)
    assert np.allclose(moved["norm"]["scale"], adam, atol=1e-4), (
        "the scale has a gradient and does not move as Adam moves it; it is "
        "to be trained, and not decayed"
    )
    assert np.allclose(moved["kernel"], adam - 0.06, atol=1e-4), (
        "the kernel has a gradient and does not move as AdamW moves it, by "
        f"{adam:.4f} - 0.06, but by {moved['kernel'][0, 0]:.4f}"
    )


def two_steps(optimizer, params, grads):
    """Return parameters after two steps, the second with other gradients."""
    state, update = optimizer.init(params), jax.jit(optimizer.update)
    for _ in range(2):
        updates, state = update(grads, state, params)
        params = optax.apply_updates(params, updates)
        grads = jax.tree.map(lambda leaf: -2 * leaf, grads)
    return params


def check_last_layer_alone(last_layer_alone):
    """Raise AssertionError unless the other layers stay as they are."""
    params = {
        "first": {"kernel": jnp.ones((2, 3)), "bias": jnp.ones(3)},
        "last": {"kernel": jnp.ones((3, 2))},
    }
    grads = jax.tree.map(lambda leaf: 2 * jnp.ones_like(leaf), params)
    for own in (
        optax.adamw(0.1, weight_decay=0.5),
        optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)),
        optax.stateless(lambda grads, _: jax.tree.map(lambda g: g - 1, grads)),
        optax.stateless(
            lambda grads, params: jax.tree.map(
                lambda g: g * optax.tree.norm(params), grads
            )
        ),
    ):
        optimizer = last_layer_alone(own)
        state = first_state(optimizer, params)
        updates, _ = optimizer.update(grads, state, params)
        assert jax.tree.structure(updates) == jax.tree.structure(params), (
            "the updates have another structure than the parameters, and "
            "cannot be added to them"
        )
        assert jnp.any(updates["last"]["kernel"]), (
            "the last layer does not move"
        )
        assert not np.array_equal(updates["first"]["bias"], [2, 2, 2]), (
            "the updates of the first layer are its gradients: `optax.masked` "
            "hands on what it leaves out, and `set_to_zero` makes it zero"
        )
        assert not any(map(jnp.any, jax.tree.leaves(updates["first"]))), (
            "the first layer moves: a gradient of zero is not enough, since "
            "AdamW decays every parameter; its updates must be zero"
        )
        right, _ = own.update(
            grads["last"], own.init(params["last"]), params["last"]
        )
        assert np.allclose(updates["last"]["kernel"], right["kernel"]), (
            "the last layer does not move as the optimizer moves it where it "
            "gets this layer's gradients and parameters alone; one that clips "
            "the norm would count those of frozen layers"
        )
    start = {
        "embedding": jnp.ones(2),
        "last": jnp.ones(3),
        "middle": {"last": jnp.ones(2)},
    }
    grads = start | {"embedding": jnp.full(2, jnp.inf)}
    found = two_steps(last_layer_alone(optax.adam(0.1)), start, grads)
    assert not jnp.any(jnp.isnan(found["embedding"])), (
        "a frozen layer with an infinite gradient becomes nan: zero times "
        "infinity is no number; write zeros"
    )
    for name in ("embedding", "middle"):
        kept = jax.tree.leaves(found[name])[0]
        assert np.array_equal(kept, [1, 1]), f'"{name}" moves as well'
    right = two_steps(optax.adam(0.1), start["last"], grads["last"])
    assert np.allclose(found["last"], right, atol=1e-5), (
        "the first step of the last layer is right, and the second is not; "
        "return the state of its optimizer"
    )
