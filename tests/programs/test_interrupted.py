"""A build or a program that is interrupted leaves none of the processes that it started."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import psutil
import pytest

ROOT = pathlib.Path(__file__).parents[2]

SLEEPING = """
def sleep_program(*ignored):
    import time
    time.sleep(600)
"""
CALLS = {
    "launch": ("launch(sleep_program, count=2, limit=600)", 2),
    "launch_mpi": ("launch_mpi(sleep_program, count=3, limit=600)", 3 + 1),
}

CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "docs" / "_ext")!r})
extensions = ["executed", "measured"]
book_snippets = {str(ROOT / "snippets")!r}
"""
PAGE = """---
file_format: mystnb
kernelspec:
  name: python3
---

# A page

```{{code-cell}} python
:snippet: programs.{name}
{sleeping}
{call}
```
"""


def wait_until(condition, seconds=600):
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


@pytest.fixture(params=CALLS)
def call(request):
    """Return (name of the launcher, call of it, number of processes; mpirun is one)."""
    if request.param == "launch_mpi":
        request.getfixturevalue("mpi")
    return request.param, *CALLS[request.param]


def start(command, folder):
    """Start a command whose temporary files, and so whose processes, are in the folder.

    SIGINT is handled as in a terminal, even if this process was told to ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, *command],
            env=os.environ | {"TMPDIR": str(folder)},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def end(started, number, watched):
    """Send a signal to the process alone, and wait until nothing runs that it started."""
    started.send_signal(number)
    try:
        started.wait(timeout=600)
    finally:
        started.kill()
    assert started.returncode != 0
    watched.wait_for_the_end_of_all()


# A program that is sent SIGTERM ends at once, as with SIGKILL; a build does not.
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_that_is_interrupted(tmp_path, watched, number, call):
    name, line, count = call
    script = tmp_path / "launching.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from snippets.programs.launcher import {name}\n{SLEEPING}\n{line}\n"
    )
    started = start([script], tmp_path)
    watched.wait_for(count, "process_")
    end(started, number, watched)


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("launch", signal.SIGINT),
        ("launch", signal.SIGTERM),
        ("launch", signal.SIGKILL),
        ("launch_mpi", signal.SIGKILL),
    ],
    indirect=["call"],
)
def test_a_build_that_is_interrupted(tmp_path, watched, number, call):
    name, line, count = call
    name = f"launcher.{name}"
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text(PAGE.format(name=name, sleeping=SLEEPING, call=line))
    started = start(["-m", "sphinx", "-W", "--keep-going", ".", "html"], tmp_path)
    watched.wait_for(count, "process_")
    end(started, number, watched)
