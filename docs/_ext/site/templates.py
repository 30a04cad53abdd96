"""The theme's templates, compiled once and kept; otherwise every build would compile them anew."""

import contextlib
import pathlib

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket

from .app import BookApp


class Compiled(FileSystemBytecodeCache):
    """What is damaged is compiled anew, and what cannot be kept is compiled again next time."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what is kept of a template; nothing where that is of another source."""
        try:
            super().load_bytecode(bucket)
        except Exception:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template."""
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def keep(app: BookApp) -> None:
    """Let a builder that has templates keep them beside the pages that were read."""
    environment = getattr(getattr(app.builder, "templates", None), "environment", None)
    if environment is None:
        return
    folder = pathlib.Path(app.doctreedir, "templates")
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
    environment.bytecode_cache = Compiled(str(folder))


def setup(app: BookApp) -> None:
    """Register the event."""
    app.connect("builder-inited", keep)
