"""The process that owns the parents of kernels, and that imports no framework itself.

A build starts one for itself and talks to it over a pair of sockets: `python forkserver.py FD`.
When the build is gone, however it ended, the socket is closed, and the keeper ends with all
parents. `python -m _ext.execution.forkserver -- COMMAND …` runs a command beside a keeper to which
all builds below the command can connect; so parents stay warm from one build to the next. Parents
are told apart by what they have imported and by a key: versions, environment, the engine's own
code. Those of an older key go as soon as a newer one is asked for, others after half an hour
without use.
"""

import contextlib
import functools
import json
import os
import pathlib
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

SOCKET = "BOOK_KEEPER"
PARENTS = pathlib.Path(__file__).with_name("fork_template.py")
IDLE = 1800.0


class Keeper:
    """Makes the parents that are asked for, and hands jobs on to them."""

    def __init__(self, idle: float = IDLE) -> None:
        """Take the seconds after which parents that nobody uses are dropped."""
        self.idle = idle
        self.selector = selectors.DefaultSelector()
        self.parents: dict[tuple[str, tuple[str, ...]], socket.socket] = {}
        self.roots: list[subprocess.Popen[bytes]] = []
        self.used: dict[str, float] = {}

    def serve(self, *clients: socket.socket, until: int | None = None) -> None:
        """Serve clients until the last is gone, or until a descriptor can be read.

        A client that listens stands for all those that connect to it.
        """
        for client in clients:
            self.selector.register(client, selectors.EVENT_READ, self._client)
        if until is not None:
            self.selector.register(until, selectors.EVENT_READ)
        left = len(clients)
        while left:
            for key, _ in self.selector.select(60):
                if key.fd == until:
                    return
                if key.data(key.fileobj) is False and key.fileobj in clients:
                    left -= 1
            self._retire(lambda key: time.monotonic() - self.used[key] > self.idle)

    def _client(self, client: socket.socket) -> bool:
        """Do what a client asks for; False where it is gone."""
        if client.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            accepted, _ = client.accept()
            self.selector.register(accepted, selectors.EVENT_READ, self._client)
            return True
        try:
            data, fds, _, _ = socket.recv_fds(client, 1 << 20, 1)
        except OSError:
            data, fds = b"", []
        if not data:
            self.selector.unregister(client)
            client.close()
            return False
        try:
            request = json.loads(data)
            key = request["key"]
            self.used[key] = time.monotonic()
            self._retire(lambda other: other != key)
            about = request["kernel"], request["environment"], tuple(request["modules"])
            parent = self._parent(key, *about)
            # Where the parent is gone, whoever asked learns it from the closed connection.
            with contextlib.suppress(OSError):
                socket.send_fds(parent, [json.dumps(request["job"]).encode()], fds)
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _parent(
        self, key: str, kernel: str, environment: dict[str, str], modules: tuple[str, ...]
    ) -> socket.socket:
        """Return the socket of a parent, which is made where there is none yet."""
        if (key, modules) in self.parents:
            return self.parents[key, modules]
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            if modules:
                smaller = self._parent(key, kernel, environment, modules[:-1])
                job = {"do": "parent", "modules": modules[-1:]}
                with contextlib.suppress(OSError):
                    socket.send_fds(smaller, [json.dumps(job).encode()], [its.fileno()])
            else:
                root = subprocess.Popen(
                    [sys.executable, "-P", PARENTS, str(its.fileno()), kernel, str(os.getpid())],
                    env=environment,
                    pass_fds=[its.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self.roots.append(root)
        self.parents[key, modules] = mine
        self.selector.register(mine, selectors.EVENT_READ, self._forget)
        return mine

    def _forget(self, parent: socket.socket) -> None:
        """Forget a parent that has ended; it never sends anything."""
        self.selector.unregister(parent)
        parent.close()
        self.parents = {key: other for key, other in self.parents.items() if other is not parent}
        self.roots = [root for root in self.roots if root.poll() is None]

    def _retire(self, unwanted: Callable[[str], bool]) -> None:
        """Let go of parents; each ends once the kernels forked from it have ended."""
        for (key, _), parent in list(self.parents.items()):
            if unwanted(key):
                self._forget(parent)

    def close(self) -> None:
        """End all parents, and wait until they are gone."""
        for root in self.roots:
            root.kill()
        for root in self.roots:
            root.wait()
        for parent in self.parents.values():
            # The others end with the one that they were forked from; its end closes this.
            parent.settimeout(5)
            with contextlib.suppress(OSError):
                parent.recv(1)


def run_beside(command: list[str]) -> int:
    """Run a command with a keeper for all builds below it; return its exit status."""
    if sys.platform != "linux":
        return subprocess.call(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with tempfile.TemporaryDirectory(prefix="book-") as folder:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            path = f"{folder}/keeper"
            listening.bind(path)
            listening.listen()
            begin = functools.partial(_begin, os.getpid())
            process = subprocess.Popen(command, env=os.environ | {SOCKET: path}, preexec_fn=begin)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda received, frame: process.send_signal(received))
            keeper = Keeper()
            try:
                keeper.serve(listening, until=os.pidfd_open(process.pid))
            finally:
                keeper.close()
            status = process.wait()
    return status if status >= 0 else 128 - status


def _begin(parent: int) -> None:
    """Let the process of a command be interrupted, and end with its keeper."""
    import ctypes

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--"]:
        sys.exit(run_beside(sys.argv[2:]))
    keeper = Keeper()
    try:
        keeper.serve(socket.socket(fileno=int(sys.argv[1])))
    finally:
        keeper.close()
