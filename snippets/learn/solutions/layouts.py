"""Lesson 14, choosing a layout: solutions."""

import math

import jax


def bytes_sent(grads, devices):
    """Return the bytes that each device sends to all-reduce gradients.

    `grads` is a pytree of arrays; there are `devices` devices, all alike.
    """
    total = sum(x.nbytes for x in jax.tree.leaves(grads))
    return 2 * (devices - 1) / devices * total


def bytes_held(shapes, specs, mesh):
    """Return the bytes of parameters and Adam's two averages on a device.

    `shapes` is a pytree of `jax.ShapeDtypeStruct`, `specs` has a spec for
    each. The averages have the shapes, dtypes and layouts of the parameters.
    """

    def held(x, spec):
        shape = jax.NamedSharding(mesh, spec).shard_shape(x.shape)
        return math.prod(shape) * x.dtype.itemsize

    return 3 * sum(jax.tree.leaves(jax.tree.map(held, shapes, specs)))


def block_specs():
    """Return {"x": spec, "up": spec, "down": spec} for two times four devices.

    x (128, 64), up (64, 256) and down (256, 64) are float32, and the axes of
    the mesh "data", of two devices, and "model", of four. For the compiled
    gradient each device sends at most 80 KiB, and it holds at most 48 KiB of
    the three arrays.
    """
    columns, rows = jax.P(None, "model"), jax.P("model")
    return {"x": jax.P("data"), "up": columns, "down": rows}


def best_mesh(rows, width, hidden, devices):
    """Return (data, model), the mesh for which a block sends the least.

    Each device sends what the gradient of x (rows, width) @ up (width,
    hidden) @ down (hidden, width) needs: x is sharded by rows along "data",
    and the hidden features along "model". data times model is `devices`; data
    divides `rows`, and model divides `hidden`.
    """

    def sent(split):
        data, model = split
        weights = 2 * width * hidden / model
        activations = 2 * rows / data * width
        return sum(
            (count - 1) / count * elements
            for count, elements in ((data, weights), (model, activations))
        )

    splits = [(devices // m, m) for m in range(1, devices + 1)]
    fitting = [
        (data, model)
        for data, model in splits
        if data * model == devices and rows % data == hidden % model == 0
    ]
    return min(fitting, key=sent)
