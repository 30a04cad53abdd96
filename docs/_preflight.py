"""What keeps a first command from its end, seen before it downloads anything.

noxfile.py reads this with Nox's Python, where nothing else is installed.
"""

import csv
import os
import pathlib
import shutil
import sys
from collections.abc import Mapping, MutableMapping

# What other projects of a user need, and what breaks here what is installed or how.
FOREIGN = ["PYTHONPATH", "PIP_NO_BINARY"]
# Bytes on the disk of what is installed with no frameworks, and with JAX alone.
SIZES = {"": 0.4e9, "jax": 1.3e9}


def prepare(environment: MutableMapping[str, str], folder: pathlib.Path) -> None:
    """Change the environment of all commands to one in which they work."""
    for name in FOREIGN:
        environment.pop(name, None)
    if not os.access(_existing(uv_cache(environment)), os.W_OK):
        environment["UV_CACHE_DIR"] = str(folder / ".uv-cache")


def uv_cache(environment: Mapping[str, str]) -> pathlib.Path:
    """Return the folder in which uv keeps what it has downloaded."""
    if own := environment.get("UV_CACHE_DIR"):
        return pathlib.Path(own)
    home = environment.get("XDG_CACHE_HOME") or pathlib.Path("~", ".cache").expanduser()
    return pathlib.Path(home, "uv")


def usable(place: pathlib.Path) -> bool:
    """Say whether an environment was made to its end, where it is now, and has its Python still."""
    pip = place / "bin" / "pip"
    if not (place / "bin" / "python").exists() or not pip.is_file():
        return False
    # Its programs begin with the place of their Python.
    return str(place.resolve()) in pip.read_text("utf8", "replace")


def repair(place: pathlib.Path) -> None:
    """Let what was half installed when a command was ended count as not installed.

    uv would take it for installed, or fail where it reads it.
    """
    for distribution in place.glob("lib/*/site-packages/*.dist-info"):
        if not _whole(distribution):
            shutil.rmtree(distribution)
    if not any(place.glob("lib/*/site-packages/uv-*.dist-info")):
        (place / "bin" / "uv").unlink(missing_ok=True)


def _whole(distribution: pathlib.Path) -> bool:
    record = distribution / "RECORD"
    if not record.is_file() or not (distribution / "METADATA").is_file():
        return False
    names = [row[0] for row in csv.reader(record.read_text("utf8").splitlines()) if row]
    # virtualenv lists what it would have compiled.
    files = [distribution.parent / name for name in names if not name.endswith(("pyc", "cache__"))]
    return bool(files) and all(file.exists() for file in files)


def problem(place: pathlib.Path, frameworks: str, environment: Mapping[str, str]) -> str | None:
    """Return why what is asked for cannot be installed, with what to do, or None."""
    if not os.access(_existing(place), os.W_OK):
        return (
            f"{_existing(place)} cannot be written. Copy the book to where you may write, "
            "'cp -r . ~/book', and run the command there"
        )
    if frameworks and " " in str(place):
        return (
            f"the path {str(place.parent.parent)!r} has a space, where the linker that "
            "torch.compile calls takes it to end. Move the book to a folder without one, or build "
            "it from recorded outputs, 'nox -s docs -- --recorded'"
        )
    if usable(place) and (not frameworks or any(place.glob("lib/*/site-packages/jaxlib"))):
        return None
    cache = uv_cache(environment)
    for folder in (_existing(place), _existing(cache)):
        need = _needed(frameworks, environment)
        free = shutil.disk_usage(folder).free
        if free < need and folder.stat().st_dev == _existing(cache).stat().st_dev:
            # What was downloaded before is linked from there, and takes no room again.
            free += sum(path.lstat().st_size for path in cache.rglob("*") if path.is_file())
        if free < need:
            return (
                f"{need / 1e9:.1f} GB are needed in {folder}, and {free / 1e9:.1f} GB are free. "
                "Free some, or use another disk: move the book, or let UV_CACHE_DIR name the "
                "folder of downloads. UV_TORCH_BACKEND=cpu halves the frameworks"
            )
    return None


def _needed(frameworks: str, environment: Mapping[str, str]) -> float:
    if frameworks in SIZES:
        return SIZES[frameworks]
    # Without CUDA PyTorch is small.
    small = environment.get("UV_TORCH_BACKEND") == "cpu" or sys.platform == "darwin"
    return 4e9 if small else 8e9


def _existing(path: pathlib.Path) -> pathlib.Path:
    """Return the nearest folder above a path, or the path, that is there."""
    path = path.absolute()
    return next(each for each in (path, *path.parents) if each.exists())
