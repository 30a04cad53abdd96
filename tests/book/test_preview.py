import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile

import pytest
from torch._inductor.runtime.cache_dir_utils import default_cache_dir

from snippets.programs import timer

ROOT = pathlib.Path(__file__).parents[2]
PRELUDE = ROOT / "docs" / "_preview" / "prelude.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder in which a page is about to be executed."""
    work = tmp_path / "page" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "page"))
    for name in ("TORCHINDUCTOR_VEC_ISA_OK", "TORCHINDUCTOR_COMPILE_THREADS"):
        monkeypatch.setenv(name, "2")
    return work


def test_the_timer_of_a_page_takes_few_samples(folder):
    shutil.copy(timer.__file__, folder / "timer.py")
    runpy.run_path(str(PRELUDE))
    hurried = runpy.run_path(str(folder / "timer.py"))
    changed = {
        name for name, value in hurried.items() if name.isupper() and value != getattr(timer, name)
    }
    assert changed == {"PREVIEW", "LONGEST_REST"}
    found = hurried["compare"]("x", {"a": sum, "b": max}, [1, 2])
    assert [len(each.latency) for each in found.alternatives.values()] == [1, 1]


def test_a_page_without_the_timer_is_left_alone(folder):
    runpy.run_path(str(PRELUDE))
    assert list(folder.iterdir()) == []


def test_pages_share_the_headers_that_torch_compiles(folder, monkeypatch):
    for name in ("one", "other"):
        (folder / name).mkdir()
        monkeypatch.setenv("TMPDIR", str(folder / name))
        runpy.run_path(str(PRELUDE))
        monkeypatch.setattr(tempfile, "tempdir", str(folder / name))
        header = pathlib.Path(default_cache_dir(), "precompiled_headers")
        (header / name).touch()
    assert sorted(path.name for path in header.iterdir()) == ["one", "other"]


@pytest.fixture
def flags_of(folder, monkeypatch):
    """Return a function that says which flags of XLA a page finds."""

    def found(page, lent=""):
        monkeypatch.delenv("XLA_FLAGS", raising=False)
        monkeypatch.setenv("BOOK_LENT", lent)
        monkeypatch.setenv("BOOK_PAGE", page)
        runpy.run_path(str(PRELUDE))
        return os.environ.get("XLA_FLAGS")

    return found


@pytest.mark.parametrize(
    ("page", "lent", "fast"),
    [
        ("a/one", "", True),
        ("a/one", "1", True),
        ("project/devices", "", True),
        ("pitfalls/numbers", "", False),
        ("pitfalls/numbers", "1", True),
        # Of a version of JAX that is recorded.
        ("", "", False),
    ],
)
def test_pages_of_which_it_makes_no_difference_are_compiled_fast(flags_of, page, lent, fast):
    flags = flags_of(page, lent)
    assert flags.split()[0] == "--xla_backend_optimization_level=0" if fast else flags is None


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_each_compiler_knows_the_flags(flags_of, framework):
    program = {
        "jax": "import jax; print(jax.jit(lambda x: x + 1)(1))",
        "tensorflow": "import tensorflow as tf\n"
        "print(int(tf.function(lambda x: x + 1, jit_compile=True)(1)))",
    }
    own = os.environ | {"XLA_FLAGS": flags_of("project/devices")}
    words = [sys.executable, "-c", program[framework]]
    run = subprocess.run(words, env=own, capture_output=True, text=True)
    assert run.stdout.split() == ["2"], run.stderr


def test_pages_that_are_named_are_there(folder):
    names = runpy.run_path(str(PRELUDE))["_optimized"]
    assert names and all((ROOT / "docs" / f"{name}.md").exists() for name in names)
