"""The packages of JAX that are installed, and requests that fail here."""

import importlib.metadata

import jax

EXPECTED_ERRORS = {
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
