"""Files that may be shared, damaged or full of surprises: read with care, written whole or not."""

import contextlib
import hashlib
import json
import os
import pathlib
import stat
from typing import Any


class Unusable(Exception):
    """A file cannot be used; the message says why, without naming places of this machine."""


def write(path: pathlib.Path, text: str) -> None:
    """Write a text: whoever reads the file finds the old one or the new one; raises OSError.

    After an error nothing is left behind, and what was there before is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    half_written = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        half_written.write_text(text, "utf8")
        half_written.replace(path)
    finally:
        with contextlib.suppress(OSError):
            half_written.unlink()


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


def digest(path: pathlib.Path) -> str:
    """Return a SHA-256 of a file's content, empty where there is none.

    What is no file, such as a pipe, is not read, for it may have no end.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return f"{mode:o}"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError) else str(error.errno)


def remembered(path: pathlib.Path, limit: int) -> dict[str, Any]:
    """Return the JSON object that a build left for the next; empty where it cannot be used."""
    try:
        found = json.loads(read(path, limit))
    except (OSError, Unusable, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
