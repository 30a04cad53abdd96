"""The package for readers' machines, as it is installed."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Return a folder into which the package is installed."""
    place = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place / "dist"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (place / "dist").iterdir()
    words = "-m pip install --quiet --no-deps --no-index --no-compile --target".split()
    subprocess.run([sys.executable, *words, place, wheel], check=True, capture_output=True)
    return place


@pytest.fixture
def command(installed, tmp_path):
    """Run the program in an empty folder; return what it said and how it ended."""

    def run(*words):
        own = {"PYTHONPATH": str(installed), "JAX_PLATFORMS": "cpu"}
        return subprocess.run(
            [installed / "bin" / "jax-measured", *words],
            cwd=tmp_path,
            env=os.environ | own,
            capture_output=True,
            encoding="utf8",
        )

    return run
