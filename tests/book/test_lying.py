"""No number makes a build red: the site is built from recordings whose times lie."""

import json
import pathlib
import random
import re
import shutil

import pytest

from tests.book.test_recorded import run, without_frameworks  # noqa: F401

ROOT = pathlib.Path(__file__).parents[2]
KIND = "application/vnd.jax-measured.record+json"


def lie(seconds, by):
    """Return a time, or each in a list, times a factor between 0.05 and 20."""
    if isinstance(seconds, list):
        return [lie(each, by) for each in seconds]
    return seconds and seconds * 20 ** by.uniform(-1, 1)


def lie_about(recording):
    """Let all times of a recording lie, each by a factor of its own.

    What is displayed and the value of its cell as well lies twice in the same way. Of every second
    page only one process is left, as a build measures.
    """
    alone = random.Random(recording.stem).random() > 0.5
    notebook = json.loads(recording.read_text("utf8"))
    for output in (output for cell in notebook["cells"] for output in cell["outputs"]):
        if record := output.get("data", {}).get(KIND):
            for part in record.get("alternatives", [record]):
                by = random.Random(json.dumps(part))
                if alone:
                    del part["processes"][1:]
                for process in part["processes"]:
                    for clock in {"first_call", "latency", "throughput"} & process.keys():
                        process[clock] = lie(process[clock], by)
    recording.write_text(json.dumps(notebook), "utf8")


@pytest.fixture
def recordings(tmp_path):
    """Return a copy of the committed recordings in which all times lie."""
    copy = tmp_path / "recorded"
    shutil.copytree(ROOT / "docs" / "_recorded", copy)
    for recording in sorted(copy.rglob("*.ipynb")):
        if KIND in recording.read_text("utf8"):
            lie_about(recording)
    return copy


def test_the_site_is_built_from_recordings_that_lie(recordings, without_frameworks, tmp_path):  # noqa: F811
    options = ["-W", "--keep-going", "-j", "3", "-c", ".", "-D", "book_recorded=1"]
    options += ["-D", "book_search=0", "-D", f"book_recordings={recordings}"]
    folders = ["-d", tmp_path / "doctrees", "docs", tmp_path / "html"]
    done = run(["sphinx", *options, *map(str, folders)], without_frameworks)
    assert done.returncode == 0, re.findall(r".*(?:WARNING|ERROR).*", done.stdout)[:20]
