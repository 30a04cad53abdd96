"""Programs that XLA has compiled for the tests, kept from one run to the next.

A run reads and writes them in a folder of its own. If it ends well, what is new is kept, so no
program of a process that was killed meanwhile is ever read. Nothing else is kept: all that a test
traces, calls or compares is done again.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import pathlib
import shutil
import tempfile
import time

from executed.run import machine

# Of all of them, in bytes; what was read last is kept.
LARGEST = 2**29
DAY = 24 * 60 * 60


def programs(folder):
    """Return the files of programs in a folder."""
    return [path for path in folder.glob("*-cache") if path.is_file()]


def name():
    """Return the name of what programs are for: versions, and a kind of processor."""
    versions = [importlib.metadata.version(package) for package in ("jax", "jaxlib")]
    facts = [*versions, machine.processor(), os.environ.get("XLA_FLAGS", "")]
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()
    return f"jax-{versions[0]}-{digest[:12]}"


class Kept:
    """The programs for these versions below a folder, and the folder of a run that uses them."""

    def __init__(self, root, largest=LARGEST):
        self.root, self.largest = root, largest
        self.folder = root / name()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.folder))
        for path in programs(self.folder):
            # Another run may end just now, and remove it.
            with contextlib.suppress(OSError):
                os.link(path, self.run / path.name)

    def end(self, well):
        """Remove the folder of the run; what is new in it is kept if the run ended well."""
        for path in programs(self.run) if well else ():
            with contextlib.suppress(OSError):
                os.link(path, self.folder / path.name)
        shutil.rmtree(self.run, ignore_errors=True)
        for left in self.root.glob("*/run-*"):
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left, ignore_errors=True)
        self._remove_oldest()

    def _remove_oldest(self):
        found = [(path.stat(), path) for each in self.root.iterdir() for path in programs(each)]
        found.sort(key=lambda each: -max(each[0].st_atime, each[0].st_mtime))
        room = self.largest
        for facts, path in found:
            room -= facts.st_size
            if room < 0:
                path.unlink(missing_ok=True)
