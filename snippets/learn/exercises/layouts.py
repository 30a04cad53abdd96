"""Lesson 14, choosing a layout: four exercises."""

import jax


def bytes_sent(grads, devices):
    """Return the bytes that each device sends to all-reduce gradients.

    `grads` is a pytree of arrays; there are `devices` devices, all alike.
    """
    raise NotImplementedError


def bytes_held(shapes, specs, mesh):
    """Return the bytes of parameters and Adam's two averages on a device.

    `shapes` is a pytree of `jax.ShapeDtypeStruct`, `specs` has a spec for
    each. The averages have the shapes, dtypes and layouts of the parameters.
    """
    leaves = jax.tree.leaves(shapes)
    total = sum(x.size * x.dtype.itemsize for x in leaves)
    return 3 * total // mesh.size


def block_specs():
    """Return {"x": spec, "up": spec, "down": spec} for two times four devices.

    x (128, 64), up (64, 256) and down (256, 64) are float32, and the axes of
    the mesh "data", of two devices, and "model", of four. For the compiled
    gradient each device sends at most 80 KiB, and it holds at most 48 KiB of
    the three arrays.
    """
    return {"x": jax.P("data"), "up": jax.P(), "down": jax.P()}


def best_mesh(rows, width, hidden, devices):
    """Return (data, model), the mesh for which a block sends the least.

    Each device sends what the gradient of x (rows, width) @ up (width,
    hidden) @ down (hidden, width) needs: x is sharded by rows along "data",
    and the hidden features along "model". data times model is `devices`; data
    divides `rows`, and model divides `hidden`.
    """
    raise NotImplementedError
