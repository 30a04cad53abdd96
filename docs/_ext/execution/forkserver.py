"""The root of the processes that kernels are forked from, and who keeps one from build to build.

A build starts a root for itself. `python -m _ext.execution.forkserver -- COMMAND …` runs a command
beside a keeper, and all builds below the command take their root from it; so frameworks stay
imported from one build to the next. The keeper has one root, with a key: versions, environment, the
engine's own version. Whoever asks with another key gets another root, and the old one ends. A root
ends when nobody holds its socket any more, however they ended.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping

SOCKET = "BOOK_KEEPER"
TEMPLATE = pathlib.Path(__file__).with_name("fork_template.py")


class Root:
    """The process that has imported nothing yet, and the socket through which jobs reach it."""

    def __init__(self, kernel: str, environment: Mapping[str, str]) -> None:
        """Start it with the file of the kernel's code, and with the environment of imports."""
        self.control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self.process = subprocess.Popen(
                [sys.executable, "-P", TEMPLATE, str(its.fileno()), kernel],
                env=environment,
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """Wait until it has ended with all below it; kill it where an import keeps it busy."""
        self.control.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Keeper:
    """Gives builds the socket of a root."""

    def __init__(self) -> None:
        self.key = ""
        self.kept: Root | None = None

    def serve(self, listening: socket.socket, until: int) -> None:
        """Serve builds until a descriptor can be read."""
        while until not in (ready := select.select([listening.fileno(), until], [], [])[0]):
            for _ in ready:
                client, _ = listening.accept()
                with client, contextlib.suppress(OSError):
                    # Nothing comes from a build that has ended since.
                    if data := client.recv(1 << 20):
                        root = self.root(**json.loads(data))
                        socket.send_fds(client, [b"root"], [root.control.fileno()])
        if self.kept is not None:
            self.kept.close()

    def root(self, key: str, kernel: str, environment: dict[str, str]) -> Root:
        """Return the root with a key; one of another ends, once its kernels have ended."""
        if self.kept is None or self.key != key or self.kept.process.poll() is not None:
            if self.kept is not None:
                self.kept.control.close()
            self.key, self.kept = key, Root(kernel, environment)
        return self.kept


def run_beside(command: list[str]) -> int:
    """Run a command with a keeper for all builds below it; return its exit status."""
    if sys.platform != "linux":
        return subprocess.call(command)
    # The command is interrupted, too, and has the last word.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    with tempfile.TemporaryDirectory(prefix="book-") as folder:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            path = f"{folder}/keeper"
            listening.bind(path)
            listening.listen()
            process = subprocess.Popen(command, env=os.environ | {SOCKET: path})
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda received, frame: process.send_signal(received))
            Keeper().serve(listening, until=os.pidfd_open(process.pid))
            status = process.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run_beside(sys.argv[2:]))
