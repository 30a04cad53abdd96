"""The projects that `jax-measured new` writes: trained, killed, resumed and tested as by a reader."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import jax
import numpy as np
import pytest
from flax import nnx

from snippets.models import steps
from snippets.programs.start import images, rows, text, train

ROOT = pathlib.Path(__file__).parents[2]
MODELS = "gpt vit resnet mlp".split()
# Of the four, two resume on fewer devices and two on one.
OTHER = {"gpt": 4, "vit": 1, "resnet": 4, "mlp": 1}
RUN = "--steps 20 --every 5 --batch 16".split()
LINE = re.compile(r"step (\d+): loss (\S+), test (\S+), gradient (\S+), \d+ (\w+)/s")
# Trains once to the end, and once until it has a checkpoint of step 10 and is on its way to 15.
KILLED = """
import os, pathlib, signal, time

import train

words = os.environ["WORDS"].split()
train.main([*words, "--folder", "whole"])
take_steps, stretches = train.take_steps, []


def take_steps_and_die(step, state, batches):
    state, values = take_steps(step, state, batches)
    stretches.append(len(values))
    if sum(stretches) == 15:
        while not pathlib.Path("run", "10").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return state, values


train.take_steps = take_steps_and_die
train.main([*words, "--folder", "run"])
"""


@pytest.fixture
def project(package, tmp_path, monkeypatch):
    """Write the project of a model; return a function that runs Python in it."""
    flags = os.environ["XLA_FLAGS"].split()
    flags = " ".join(each for each in flags if "device_count" not in each)
    own = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "WORDS": " ".join(RUN)}
    own |= {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    own |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    # Nothing of this book is there.
    inherited = {name: of for name, of in os.environ.items() if name != "PYTHONPATH"}

    def written(model, devices=8):
        place = tmp_path / f"Ein schönes Projekt/my-{model}"
        assert package.starting.write(str(place), model, devices) == 0

        def python(*words, cwd=place):
            command = [sys.executable, *map(str, words)]
            return subprocess.run(
                command, cwd=cwd, env=inherited | own, capture_output=True, encoding="utf8"
            )

        return place, python

    return written


def numbers(run):
    """Return {step: loss, test loss and norm as they were printed}."""
    return {int(found[1]): found.groups()[1:4] for found in LINE.finditer(run.stdout)}


@pytest.mark.parametrize("model", MODELS)
def test_a_run_that_was_killed_goes_on_as_if_nothing_had_happened(project, model):
    place, python = project(model)
    (place / "killed.py").write_text(KILLED)
    run = python("killed.py")
    assert run.returncode == -9, run.stderr
    whole, killed = (
        numbers(subprocess.CompletedProcess([], 0, stdout=part))
        for part in run.stdout.split("0 steps done")[1:]
    )
    assert [*whole] == [5, 10, 15, 20] and killed == {n: whole[n] for n in (5, 10)}
    assert float(whole[20][0]) < float(whole[5][0])
    shutil.copytree(place / "run", place / "other")

    # From another folder than its own.
    resumed = python(place / "train.py", *RUN, cwd=place.parent)
    assert "8 devices, 10 steps done in" in resumed.stdout, resumed.stderr
    assert numbers(resumed) == {n: whole[n] for n in (15, 20)}
    assert python("-c", "import snippets").returncode

    devices = OTHER[model]
    other = python("train.py", *RUN, "--devices", devices, "--folder", "other")
    assert f"{devices} devices, 10 steps done in" in other.stdout, other.stderr
    for step, found in numbers(other).items():
        expected = np.array(whole[step], np.float32)
        np.testing.assert_allclose(np.array(found, np.float32), expected, rtol=2e-3)
    assert [*numbers(other)] == [15, 20]

    tested = python("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0 and "3 passed" in tested.stdout, tested.stdout
