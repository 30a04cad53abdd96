"""Files that may be shared or damaged: reports a fault in words, and writes a file whole."""

import contextlib
import hashlib
import os
import pathlib


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


def read(path: pathlib.Path) -> str:
    """Return the text of a file; raises FileNotFoundError, and Unusable for one that is no text."""
    try:
        return path.read_text("utf8")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError:
        raise Unusable("it is not UTF-8") from None
    except OSError as error:
        raise Unusable(error.strerror or type(error).__name__) from None


def tree_digest(path: pathlib.Path) -> str:
    """Return a SHA-256 of a file, or of all that lies below a folder, with the names."""
    parts = [part for part in sorted(path.rglob("*")) if "__pycache__" not in part.parts]
    text = "\n".join(f"{part.relative_to(path)} {digest(part)}" for part in [path, *parts])
    return hashlib.sha256(text.encode()).hexdigest()


def digest(path: pathlib.Path) -> str:
    """Return a SHA-256 of a file's content, empty where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError) else str(error.errno)
