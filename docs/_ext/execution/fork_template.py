"""A process that has imported frameworks, and from which the kernels of pages are forked.

The root is started as `python -P fork_template.py FD KERNEL`: the socket through which jobs come,
and the file of the kernel's code. A job says what its kernel wants imported. A process that lacks
some of it forks one that imports the first of it, and hands the job on to that; so no framework is
imported twice. These processes compute nothing and initialise no backend, because threads and the
contexts of devices do not survive a fork. A job comes with a connection to whoever asked: the
process id goes out on it, then the exit status; signals come in, and when it is closed the kernel
is killed.
"""

import contextlib
import gc
import importlib.util
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
from typing import Any


class Parent:
    """Forks kernels, and parents that have imported more, until nobody needs it any more."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.retired = False
        self.children: dict[int, tuple[int, socket.socket | None]] = {}
        self.larger: dict[str, tuple[int, socket.socket]] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ)

    def run(self) -> tuple[dict[str, Any], socket.socket]:
        """Serve until the end of this process; only a forked child returns, with its job."""
        while not (self.retired and not self.children):
            for key, _ in self.selector.select():
                if key.fileobj is self.control:
                    if job := self._job():
                        return job
                elif isinstance(key.fileobj, int):
                    self._reap(key.fileobj)
                else:
                    self._listen(*key.data)
        os._exit(0)

    def _job(self) -> tuple[dict[str, Any], socket.socket] | None:
        data, fds, _, _ = socket.recv_fds(self.control, 1 << 20, 1)
        if not data:
            self.retired = True
            self.selector.unregister(self.control)
            for _, control in self.larger.values():
                control.close()
            return None
        job = json.loads(data)
        connection = socket.socket(fileno=fds[0])
        if job["modules"]:
            return self._hand_on(job, connection)
        if job["do"] == "warm":
            with connection, contextlib.suppress(OSError):
                connection.sendall(b'{"ready": true}\n')
            return None
        if (pidfd := self._fork(connection)) is None:
            connection.close()
            return job, connection
        pid, _ = self.children[pidfd]
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps({"pid": pid}).encode() + b"\n")
        self.selector.register(connection, selectors.EVENT_READ, (connection, pid))
        return None

    def _hand_on(
        self, job: dict[str, Any], connection: socket.socket
    ) -> tuple[dict[str, Any], socket.socket] | None:
        """Give a job to the parent that has imported one module more."""
        name, *job["modules"] = job["modules"]
        with connection:
            if name not in self.larger:
                mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                if (pidfd := self._fork(None)) is None:
                    mine.close()
                    return {"do": "import", "module": name}, its
                its.close()
                self.larger[name] = pidfd, mine
            # Where the other has ended, whoever asked learns it from the closed connection.
            with contextlib.suppress(OSError):
                control = self.larger[name][1]
                socket.send_fds(control, [json.dumps(job).encode()], [connection.fileno()])
        return None

    def _fork(self, connection: socket.socket | None) -> int | None:
        """Fork a child, and return what can be read when it ends; None in the child."""
        me = os.getpid()
        # What is imported is never garbage: a collection would copy all of its pages.
        gc.collect()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            self._close()
            end_with(me)
            return None
        pidfd = os.pidfd_open(pid)
        self.children[pidfd] = pid, connection
        self.selector.register(pidfd, selectors.EVENT_READ)
        return pidfd

    def _reap(self, pidfd: int) -> None:
        pid, connection = self.children.pop(pidfd)
        for name, (its, control) in list(self.larger.items()):
            if its == pidfd:
                del self.larger[name]
                control.close()
        self.selector.unregister(pidfd)
        os.close(pidfd)
        if connection is not None:
            # Before the number of its group can be that of another.
            _kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if connection is not None:
            # Not registered any more where the other side has closed it.
            with contextlib.suppress(KeyError):
                self.selector.unregister(connection)
            code = os.waitstatus_to_exitcode(status)
            with connection, contextlib.suppress(OSError):
                connection.sendall(json.dumps({"exit": code}).encode() + b"\n")

    def _listen(self, connection: socket.socket, pid: int) -> None:
        if connection.fileno() < 0:
            return
        try:
            data = connection.recv(1024)
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(connection)
            _kill(pid, signal.SIGKILL)
        # Each byte is the number of a signal.
        for number in data:
            _kill(pid, number)

    def _close(self) -> None:
        """Close in a child what belongs to its parent."""
        self.selector.close()
        self.control.close()
        for _, control in self.larger.values():
            control.close()
        for pidfd, (_, connection) in self.children.items():
            os.close(pidfd)
            if connection is not None:
                connection.close()


def _kill(pid: int, number: int) -> None:
    """Send a signal to a kernel and all that it has started."""
    with contextlib.suppress(OSError):
        os.killpg(pid, number)
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def become_kernel(job: dict[str, Any], started_with: dict[str, str]) -> None:
    """Turn a forked child into the process that a kernel would have been started as."""
    os.setsid()
    os.chdir(job["cwd"])
    # Imports set variables too; they would have done so in a process of the page's own.
    changed = {k: v for k, v in os.environ.items() if started_with.get(k) != v}
    os.environ.clear()
    os.environ.update(job["env"] | changed | {"JPY_PARENT_PID": str(os.getppid())})
    log = os.open(job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.argv = job["argv"]
    # Else this remembers the folder of the parent.
    tempfile.tempdir = None
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


if __name__ == "__main__":
    specification = importlib.util.spec_from_file_location("kernel", sys.argv[2])
    assert specification is not None and specification.loader is not None
    kernel = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(kernel)
    end_with = kernel.end_with
    environment = dict(os.environ)
    parent = Parent(socket.socket(fileno=int(sys.argv[1])))
    while True:
        job, connection = parent.run()
        if job["do"] == "kernel":
            break
        if not kernel.imported_quietly([job["module"]]):
            os._exit(1)
        parent = Parent(connection)
    become_kernel(job, environment)
    del parent, connection
    kernel.main()
    os._exit(0)
