"""Compiled programs are kept between runs of the tests, and only those of a run that went well."""

import os
import subprocess
import sys
import time

import pytest

from tests import compiled_programs

DAY = compiled_programs.DAY


def write(folder, name, size=10, age=0):
    path = folder / f"{name}-cache"
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - age * DAY,) * 2)


def names(folder):
    return {path.name.removesuffix("-cache") for path in compiled_programs.programs(folder)}


@pytest.mark.parametrize("well", [True, False])
def test_the_next_run_has_the_programs_of_one_that_went_well(tmp_path, well):
    first = compiled_programs.Kept(tmp_path)
    write(first.run, "one")
    first.end(well)
    assert not first.run.exists()
    second = compiled_programs.Kept(tmp_path)
    assert names(second.run) == ({"one"} if well else set())


def test_two_runs_at_once_do_not_see_each_other(tmp_path):
    one, other = compiled_programs.Kept(tmp_path), compiled_programs.Kept(tmp_path)
    for run in (one, other):
        write(run.run, "same")
        write(run.run, run.run.name)
    one.end(True)
    assert names(other.run) == {"same", other.run.name}
    other.end(True)
    assert names(one.folder) == {"same", one.run.name, other.run.name}


def test_what_was_read_last_stays_where_there_is_too_much(tmp_path):
    old = tmp_path / "of-other-versions"
    old.mkdir()
    write(old, "oldest", age=9)
    write(old, "old", age=5)
    kept = compiled_programs.Kept(tmp_path, largest=25)
    write(kept.run, "new")
    kept.end(True)
    assert names(old) | names(kept.folder) == {"old", "new"}


def test_what_a_killed_run_left_is_removed_on_another_day(tmp_path):
    left, lately = (compiled_programs.Kept(tmp_path).run for _ in range(2))
    os.utime(left, (time.time() - 2 * DAY,) * 2)
    compiled_programs.Kept(tmp_path).end(True)
    assert (left.exists(), lately.exists()) == (False, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setenv("XLA_FLAGS", "--another"),
        lambda patch: patch.setattr(compiled_programs.machine, "processor", lambda: "another"),
        lambda patch: patch.setattr(
            compiled_programs.importlib.metadata, "version", lambda package: "another"
        ),
    ],
    ids=["flags", "processor", "versions"],
)
def test_programs_are_for_versions_and_a_processor(tmp_path, monkeypatch, change):
    before = compiled_programs.Kept(tmp_path)
    write(before.run, "one")
    before.end(True)
    change(monkeypatch)
    assert names(compiled_programs.Kept(tmp_path).run) == set()


def test_a_program_is_found_in_the_folder_of_another_run(tmp_path, kept_programs):
    words = [sys.executable, "-c", "import jax; jax.jit(lambda x: x + 1)(1.0)"]
    found = []
    for _ in range(2):
        kept = compiled_programs.Kept(tmp_path)
        own = {"JAX_COMPILATION_CACHE_DIR": str(kept.run), "JAX_PLATFORMS": "cpu"}
        subprocess.run(words, env=os.environ | kept_programs | own, check=True)
        found.append(names(kept.run))
        kept.end(True)
    assert found[0] and found[1] == found[0]
