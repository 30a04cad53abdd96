"""Writes a project that trains a model, for `jax-measured new`."""

import pathlib
import re
import shlex
import sys

HERE = pathlib.Path(__file__).parent / "projects"
MODELS = sorted(path.name for path in HERE.glob("*"))
# Of a package: https://packaging.python.org/en/latest/specifications/name-normalization/
NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"


class Refused(Exception):
    """Why nothing was written, and what to do."""


def checked(folder):
    """Return the name of the project of a folder; raises Refused."""
    name = folder.absolute().name
    if not re.fullmatch(NAME, name):
        raise Refused(
            f"{name!r} cannot be the name of a package: take letters from a to z, digits, "
            "'-', '_' and '.', with a letter or digit at both ends, such as my-model"
        )
    text = (HERE / MODELS[0] / "pyproject.toml").read_text("utf8")
    libraries = {
        *re.findall(r'^    "([\w-]+)>=', text, re.MULTILINE),
        "scikit-learn",
    }
    if re.sub(r"[-_.]+", "-", name).lower() in libraries:
        raise Refused(
            f"{name!r} is the name of a library that the project needs: choose another"
        )
    if folder.is_dir() and any(folder.iterdir()):
        raise Refused(f"the folder {folder} is not empty: choose another name")
    return name


def write(folder, model, devices):
    """Write a project into a new folder, and say what comes next; return the exit status."""
    path = pathlib.Path(folder)
    try:
        name = checked(path)
        path.mkdir(parents=True, exist_ok=True)
        # Whatever installs the package may leave compiled files beside them.
        files = sorted(
            file for file in (HERE / model).iterdir() if file.is_file()
        )
        for file in files:
            text = file.read_text("utf8")
            text = text.replace('name = "my-model"', f'name = "{name}"')
            text = re.sub(
                r"^DEVICES = \d+$",
                f"DEVICES = {devices}",
                text,
                flags=re.MULTILINE,
            )
            (path / file.name).write_text(text, "utf8")
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{folder} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{', '.join(file.name for file in files)} are in {folder}. Next:\n")
    print(f"    cd {shlex.quote(folder)}")
    print('    pip install ".[test]"')
    print("    python train.py")
    return 0
