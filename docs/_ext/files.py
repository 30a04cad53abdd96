"""Files that may be shared, damaged or full of surprises: read with care, written whole or not."""

import contextlib
import os
import pathlib
import shutil
import stat
import tempfile


class Unusable(Exception):
    """A file cannot be used; the message says why, without naming places of this machine."""


def write(path: pathlib.Path, text: str) -> None:
    """Write a text file in one step: whoever reads it finds the old text or the new one.

    Raises OSError; then nothing is left behind, and what was there before is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf8") as file:
            file.write(text)
        pathlib.Path(name).chmod(0o644)
        pathlib.Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            pathlib.Path(name).unlink()
        raise


def read(path: pathlib.Path, limit: int) -> str:
    """Return the text of a regular file of at most `limit` bytes.

    Raises FileNotFoundError where there is none, and Unusable for a link, a folder, a file
    that is too large, that is not UTF-8, or that cannot be read.
    """
    try:
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            raise Unusable("it is a link to another file")
        if not stat.S_ISREG(facts.st_mode):
            raise Unusable("it is no file")
        if facts.st_size > limit:
            raise Unusable(f"it is larger than {limit} bytes")
        return path.read_bytes()[: limit + 1].decode("utf8")
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path.name) from None
    except UnicodeDecodeError:
        raise Unusable("it is not UTF-8") from None
    except OSError as error:
        raise Unusable(error.strerror or type(error).__name__) from None


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a file in one step, as `write` does."""
    target.parent.mkdir(parents=True, exist_ok=True)
    half_copied = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        shutil.copyfile(source, half_copied)
        half_copied.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            half_copied.unlink()
        raise


def replace_folder(path: pathlib.Path) -> None:
    """Remove a folder that lies where a file belongs."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
