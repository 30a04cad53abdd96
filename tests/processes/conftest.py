"""What several tests of real processes share."""

import contextlib
import time

import psutil
import pytest

from snippets.processes.launcher import find_mpirun


def wait_until(condition, seconds=30):
    """Wait until `condition()` is true; return what it gave at last."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


class Watched:
    """The processes on this machine that have a word on their command line."""

    def __init__(self, word):
        self.word = word

    def running(self, *words):
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if self.word in line and all(word in line for word in words):
                    found.append(process)
        return found

    def wait_for(self, count, *words):
        """Wait until `count` processes with all the words run."""
        assert wait_until(lambda: len(self.running(*words)) == count), self.running()

    def wait_for_the_end_of_all(self):
        assert wait_until(lambda: not self.running()), self.running()


@pytest.fixture
def watched(tmp_path):
    """Watch the processes whose command lines name the test's folder; kill those that remain."""
    watched = Watched(str(tmp_path))
    yield watched
    for process in watched.running():
        process.kill()


@pytest.fixture
def mpi():
    """Skip a test, saying what is missing, where programs cannot be started with MPI."""
    _require("mpi4py")


@pytest.fixture
def mpi4jax():
    """As `mpi`, for programs that use mpi4jax."""
    _require("mpi4py", "mpi4jax")


def _require(*packages):
    try:
        find_mpirun(*packages)
    except RuntimeError as error:
        pytest.skip(str(error))
