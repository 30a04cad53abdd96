"""What keeps a first command from its end is said before it downloads, or repaired."""

import collections
import os
import pathlib
import runpy
import shutil

import pytest

PREFLIGHT = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "docs" / "_preflight.py"))
prepare, problem, repair, usable = (
    PREFLIGHT[name] for name in ("prepare", "problem", "repair", "usable")
)
Usage = collections.namedtuple("Usage", "free")


@pytest.fixture
def place(tmp_path):
    """Return an environment as virtualenv makes it, with two distributions."""
    place = tmp_path / "book" / ".nox" / "cpu-3.11"
    site = place / "lib" / "python3.11" / "site-packages"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(shutil.which("true"))
    (place / "bin" / "pip").write_text(f"#!{place}/bin/python\n", "utf8")
    for name in ("jaxlib", "uv"):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / name).mkdir()
        (site / name / "__init__.py").touch()
        (info / "METADATA").touch()
        lines = [f"{name}/__init__.py,sha256=,0", f"{name}/compiled.pyc,,", f"{name}/__pycache__,,"]
        (info / "RECORD").write_text("\n".join(lines), "utf8")
    (place / "bin" / "uv").touch()
    return place


@pytest.fixture
def disks(monkeypatch):
    """Let each folder's disk have as many bytes free as a test says."""
    free = {}
    usage = lambda folder: Usage(free.get(pathlib.Path(folder).name, 1e12))  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)
    return free


def distributions(place):
    return sorted(path.name for path in place.glob("lib/*/site-packages/*.dist-info"))


def test_an_environment_that_was_made_here_is_used_also_through_a_link(place, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(place)
    assert usable(place) and usable(link)


def test_an_environment_is_made_anew_where_it_was_moved(place):
    moved = place.rename(place.with_name("moved"))
    assert not usable(moved)


@pytest.mark.parametrize("name", ["python", "pip"])
def test_an_environment_is_made_anew_without(place, name):
    (place / "bin" / name).unlink()
    assert not usable(place)


def test_an_environment_is_made_anew_where_its_python_is_gone(place):
    (place / "bin" / "python").unlink()
    (place / "bin" / "python").symlink_to("/nowhere/python3.11")
    assert not usable(place)


def test_what_is_whole_stays_installed(place):
    repair(place)
    assert distributions(place) == ["jaxlib-1.0.dist-info", "uv-1.0.dist-info"]
    assert (place / "bin" / "uv").exists()


@pytest.mark.parametrize(
    "lost", ["jaxlib/__init__.py", "jaxlib-1.0.dist-info/METADATA", "jaxlib-1.0.dist-info/RECORD"]
)
def test_what_is_half_installed_is_installed_again(place, lost):
    (place / "lib" / "python3.11" / "site-packages" / lost).unlink()
    repair(place)
    assert distributions(place) == ["uv-1.0.dist-info"]


def test_an_uv_that_is_half_installed_is_installed_again(place):
    (place / "lib" / "python3.11" / "site-packages" / "uv" / "__init__.py").unlink()
    repair(place)
    assert not (place / "bin" / "uv").exists()


def test_a_folder_that_cannot_be_written_is_to_be_copied(place, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != place)
    assert "cannot be written. Copy the book" in problem(place, "", {})


def test_frameworks_need_a_path_without_a_space(tmp_path, disks):
    place = tmp_path / "my book" / ".nox" / "cpu-3.11"
    assert "/my book' has a space" in problem(place, "cpu", {})
    assert problem(place, "", {"UV_CACHE_DIR": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("frameworks", "backend", "free", "needed"),
    [
        ("cpu", "", 7.9e9, "8.0 GB"),
        ("cpu", "", 8.1e9, None),
        ("cpu", "cpu", 3.9e9, "4.0 GB"),
        ("cpu", "cpu", 4.1e9, None),
        ("jax", "", 1.2e9, "1.3 GB"),
        ("", "", 0.3e9, "0.4 GB"),
        ("", "", 0.5e9, None),
    ],
)
@pytest.mark.parametrize("full", ["book", "cache"])
def test_room_is_wanted_before_anything_is_downloaded(
    tmp_path, monkeypatch, disks, full, frameworks, backend, free, needed
):
    monkeypatch.setattr(PREFLIGHT["sys"], "platform", "linux")
    for name in ("book", "cache"):
        (tmp_path / name).mkdir()
    disks[full] = free
    variables = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_TORCH_BACKEND": backend}
    said = problem(tmp_path / "book" / ".nox" / "cpu-3.11", frameworks, variables)
    if needed is None:
        assert said is None
    else:
        assert said.startswith(f"{needed} are needed in {tmp_path / full}, and {free / 1e9:.1f} GB")


def test_what_was_downloaded_before_takes_no_room_again(tmp_path, disks):
    (tmp_path / "cache").mkdir()
    with (tmp_path / "cache" / "wheel").open("wb") as file:
        file.truncate(300_000_000)
    disks |= {tmp_path.name: 0.2e9, "cache": 0.2e9}
    variables = {"UV_CACHE_DIR": str(tmp_path / "cache")}
    assert problem(tmp_path / ".nox" / "cpu-3.11", "", variables) is None


def test_what_is_installed_wants_no_room(place, disks, tmp_path):
    disks[place.name] = 0
    variables = {"UV_CACHE_DIR": str(tmp_path / "cache")}
    assert problem(place, "cpu", variables) is None
    shutil.rmtree(place / "lib" / "python3.11" / "site-packages" / "jaxlib")
    assert "are needed" in problem(place, "cpu", variables)


def test_packages_of_other_projects_are_not_looked_for(tmp_path):
    variables = {
        "PYTHONPATH": "/of/a/user",
        "PIP_NO_BINARY": ":all:",
        "UV_CACHE_DIR": str(tmp_path),
    }
    prepare(variables, tmp_path)
    assert not variables.keys() & {"PYTHONPATH", "PIP_NO_BINARY"}
    assert variables["UV_CACHE_DIR"] == str(tmp_path)


def test_downloads_are_kept_with_the_book_where_the_home_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    variables = {"XDG_CACHE_HOME": "/nobody"}
    prepare(variables, tmp_path)
    assert variables["UV_CACHE_DIR"] == str(tmp_path / ".uv-cache")
