"""The root of the processes that kernels are forked from, and how it lasts from build to build.

A build starts a root for itself. `python -m executed.run.forkserver -- COMMAND …` starts one and
runs a command, and all builds below the command send their jobs to this root; so frameworks stay
imported from one build to the next.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from .environment import SAME_ORDER

SOCKET = "BOOK_KERNELS"
TEMPLATE = pathlib.Path(__file__).with_name("fork_template.py")
KERNEL = pathlib.Path(__file__).with_name("kernel.py")


def root(control: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[Any]:
    """Start the process that has imported nothing yet, and receives jobs through a socket."""
    return subprocess.Popen(
        [sys.executable, "-P", TEMPLATE, str(control.fileno()), KERNEL, str(os.getpid())],
        env=environment,
        pass_fds=[control.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def lasting(path: str) -> subprocess.Popen[Any]:
    """Start a root that receives the jobs of many builds, through a socket with a path."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
        control.bind(path)
        return root(control, own | SAME_ORDER)


def run_beside(command: list[str]) -> int:
    """Run a command with a root for all builds below it; return its exit status."""
    if sys.platform != "linux":
        return subprocess.call(command)
    # The command is interrupted, too, and has the last word.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    with tempfile.TemporaryDirectory(prefix="book-") as folder, lasting(f"{folder}/root") as server:
        process = subprocess.Popen(command, env=os.environ | {SOCKET: f"{folder}/root"})
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, frame: process.send_signal(received))
        status = process.wait()
        server.kill()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run_beside(sys.argv[2:]))
