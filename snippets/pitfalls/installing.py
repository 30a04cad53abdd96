"""The packages of JAX that are installed, and requests that fail here."""

import importlib.metadata

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "clip_as_before": (
        TypeError,
        "clip() got an unexpected keyword argument 'a_max'",
    ),
    "first_gpu": (RuntimeError, "Unknown backend cuda"),
    "primitive_as_before": (AttributeError, "has no attribute 'Primitive'"),
}


def installed():
    """Return {package: version} of the installed packages of JAX."""
    found = {
        each.name.replace("_", "-"): each.version
        for each in importlib.metadata.distributions()
    }
    parts = ("jax", "jaxlib", "libtpu")
    return {
        name: found[name]
        for name in sorted(found)
        if name.split("-")[0] in parts
    }


def first_gpu():
    """Return the first NVIDIA GPU; raises RuntimeError if JAX finds none."""
    return jax.devices("cuda")[0]


def primitive_as_before(name):
    """Make a primitive by a name that is gone; raises AttributeError."""
    return jax.core.Primitive(name)


def clip_as_before(x, limit):
    """Return x, at most `limit`, by a parameter that is gone; TypeError."""
    return jnp.clip(jnp.asarray(x), a_max=limit)
