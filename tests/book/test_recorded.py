"""The committed recordings are enough for the whole site."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FRAMEWORKS = ("jax", "jaxlib", "torch", "tensorflow", "sklearn")


@pytest.fixture
def without_frameworks(tmp_path):
    """Return an environment in which no framework can be imported."""
    lines = [f"sys.modules[{name!r}] = None" for name in FRAMEWORKS]
    (tmp_path / "sitecustomize.py").write_text("\n".join(["import sys", *lines]))
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "docs")])}


def run(command, environment):
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_cpu_recording_is_of_the_whole_book(without_frameworks):
    listed = run(["_ext.commands.recordings"], without_frameworks)
    assert listed.returncode == 0, listed.stdout
    assert re.search(r"^cpu: \d+ current$", listed.stdout, re.MULTILINE), listed.stdout


def test_the_site_is_built_from_recordings_without_any_framework(without_frameworks, tmp_path):
    options = ["-W", "--keep-going", "-c", ".", "-D", "book_recorded=1"]
    folders = ["-d", str(tmp_path / "doctrees"), "docs", str(tmp_path / "html")]
    built = run(["sphinx", *options, *folders], without_frameworks)
    assert built.returncode == 0, built.stdout
    assert "executed" not in built.stdout
    page = (tmp_path / "html" / "randomness" / "keys.html").read_text("utf8")
    assert "Array(" in page
    assert "Recorded 20" in page
