"""The site as it is built from recordings, once for all tests of a run."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ADDRESS = "https://book.example/en/"
FRAMEWORKS = ("jax", "jaxlib", "torch", "tensorflow", "sklearn")


@pytest.fixture(scope="session")
def without_frameworks(made_once):
    """Return a function that runs a module of Python where no framework can be imported."""

    def fill(folder):
        lines = [f"sys.modules[{name!r}] = None" for name in FRAMEWORKS]
        (folder / "sitecustomize.py").write_text("\n".join(["import sys", *lines]))

    folder = made_once("nothing", fill)
    paths = os.pathsep.join([str(folder), str(ROOT / "docs" / "_ext")])

    def run(*command):
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": paths, "BOOK_ADDRESS": ADDRESS},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return run


class Site(NamedTuple):
    """A folder with a copy of the recordings, and the site that was built from them."""

    folder: pathlib.Path
    returncode: int
    stdout: str

    @property
    def html(self):
        return self.folder / "html"

    @property
    def recordings(self):
        return self.folder / "recorded"

    def options(self, folder):
        """Return the arguments of sphinx-build that build it, or build it again, in a folder."""
        options = ["-W", "--keep-going", "-j", "3", "-c", ".", "-D", "book_recorded=1"]
        options += ["-D", "book_search=0", "-D", f"book_recordings={self.recordings}"]
        return [*options, "-d", str(folder / "doctrees"), "docs", str(folder / "html")]


@pytest.fixture(scope="session")
def recorded_site(without_frameworks, made_once):
    """Build the site from recordings."""

    def fill(folder):
        site = Site(folder, 0, "")
        shutil.copytree(ROOT / "docs" / "_recorded", site.recordings)
        done = without_frameworks("sphinx", *site.options(folder))
        (folder / "done.json").write_text(json.dumps([done.returncode, done.stdout]), "utf8")

    folder = made_once("recorded_site", fill)
    return Site(folder, *json.loads((folder / "done.json").read_text("utf8")))
