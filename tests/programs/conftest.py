"""The package for readers' machines, as it is installed."""

import importlib
import os
import pathlib
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MODULES = (
    "cells command offered practising probing process raising reporting results starting "
    "surroundings table timer watching"
).split()


@pytest.fixture(scope="session")
def installed(made_once):
    """Return a folder into which the package is installed, with the name that readers' have."""

    def fill(folder):
        place, dist = folder / "site-packages", folder / "dist"
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", dist]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = dist.iterdir()
        words = "-m pip install --quiet --no-deps --no-index --target".split()
        subprocess.run([sys.executable, *words, place, wheel], check=True, capture_output=True)

    return made_once("installed", fill) / "site-packages"


@pytest.fixture
def command(installed, tmp_path):
    """Run the program in an empty folder; return what it said and how it ended."""

    def run(*words, **variables):
        own = {"PYTHONPATH": str(installed), "JAX_PLATFORMS": "cpu"}
        return subprocess.run(
            [installed / "bin" / "jax-measured", *words],
            cwd=tmp_path,
            env=os.environ | own | variables,
            capture_output=True,
            encoding="utf8",
        )

    return run


@pytest.fixture(scope="session")
def package(installed):
    """Return the modules of the package."""
    sys.path.append(str(installed))
    try:
        found = {name: importlib.import_module(f"jax_measured.{name}") for name in MODULES}
        yield types.SimpleNamespace(**found)
    finally:
        sys.path.remove(str(installed))


@pytest.fixture
def found(package):
    """Return results that say of this machine what the book says of its CPU."""
    comparison = {"version": 3, "method": 2, "name": "gallery", "alternatives": []}
    for name, of in package.results.book()["numbers"]["cpu"].items():
        if name.startswith("gallery/"):
            process = {"date": "2026-01-01T00:00:00+00:00", "calls": 1, "cores": 1.0}
            process |= {"first_call": 0.1, "disturbed": False}
            known = {key: of[key] for key in ("device_kind", "processor", "shape", "versions")}
            known |= {"name": name.partition("@")[0], "framework": name.partition("@")[2]}
            known |= {"version": 3, "method": 2, "dtype": "float32", "precision": "default"}
            known |= {"work": None, "error": None, "settings": {}}
            known["processes"] = [process | {"latency": [each]} for each in of["latency"]]
            comparison["alternatives"].append(known)
    return package.results.content([comparison])


@pytest.fixture
def run(package, tmp_path):
    """Measure cells by names; return what was kept, and what was said of the rest."""

    def measured(**cells):
        every = {"frameworks": ["python"]}
        offered = [every | {"name": name, "cells": [cell]} for name, cell in cells.items()]
        current = package.command.Run(tmp_path / "mine.json", offered, 1)
        current.measure()
        return current.content()["records"], current.told()

    return measured
