"""A process that has imported frameworks, and from which the kernels of pages are forked.

The root is started as `python -P fork_template.py FD KERNEL`: the socket through which jobs come,
and the file of the kernel's code. A job says by which steps its kernel gets ready: an environment,
then the modules to import. A process that lacks a step forks one that takes it, and hands the job
on to that; so no framework is imported twice. These processes compute nothing and initialise no
backend, because threads and the contexts of devices do not survive a fork. Each ends with the one
that it was forked from.

A job comes with a connection to whoever asked, and the last process forks another that watches the
kernel, and ends after it: the process id goes out on the connection, then the exit status; signals
come in, and when it is closed the kernel is killed.
"""

import contextlib
import gc
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from typing import Any


def forked(lasts: bool = False) -> int:
    """Fork a process that ends with this one, unless it `lasts`; return its number, 0 in itself."""
    me = os.getpid()
    # What is imported is never garbage: a collection would copy all of its pages.
    gc.collect()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if not lasts:
            kernel.end_with(me)
    return pid


def serve(control: socket.socket) -> tuple[dict[str, Any], socket.socket]:
    """Serve until the end of this process; only one that is to watch a kernel returns."""
    larger: dict[str, socket.socket] = {}
    while True:
        # Nobody asks how a child has ended.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        data, fds, _, _ = socket.recv_fds(control, 1 << 20, 1)
        if not data:
            os._exit(0)
        job, connection = json.loads(data), socket.socket(fileno=fds[0])
        if not job["steps"]:
            # Who watches a kernel still has to kill what that has started.
            if not forked(lasts=True):
                _close(control, *larger.values())
                return job, connection
            connection.close()
            continue
        step, *job["steps"] = job["steps"]
        name = json.dumps(step)
        if name not in larger:
            if not isinstance(step, str):
                # What was imported in another environment is not asked for any more.
                _close(*larger.values())
                larger.clear()
            mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if not forked():
                _close(control, connection, mine, *larger.values())
                take(step)
                control, larger = theirs, {}
                continue
            theirs.close()
            larger[name] = mine
        # Where the other has ended, whoever asked learns it from the closed connection.
        with connection, contextlib.suppress(OSError):
            socket.send_fds(larger[name], [json.dumps(job).encode()], [connection.fileno()])


def _close(*sockets: socket.socket) -> None:
    for end in sockets:
        end.close()


def take(step: Any) -> None:
    """Import a module, or have an environment; end where an import fails or prints something."""
    if not isinstance(step, str):
        os.environ.clear()
        os.environ.update(step["environment"])
        time.tzset()
    elif not kernel.imported_quietly([step]):
        os._exit(1)


def watch(connection: socket.socket) -> None:
    """Fork a kernel, and return in it; here hand signals on to it, and say how it ended."""
    if not (pid := forked()):
        connection.close()
        return
    pidfd = os.pidfd_open(pid)
    readable: list[Any] = [pidfd, connection]
    with contextlib.suppress(OSError):
        connection.sendall(b"%d\n" % pid)
        while pidfd not in select.select(readable, [], [])[0]:
            if not (signals := connection.recv(1024)):
                break
            for number in signals:
                _kill(pid, number)
    # Before the number of its group can be that of another.
    _kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(b"%d\n" % code)
    os._exit(0)


def _kill(pid: int, number: int) -> None:
    """Send a signal to a kernel and all that it has started."""
    with contextlib.suppress(OSError):
        os.killpg(pid, number)
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def become_kernel(job: dict[str, Any]) -> None:
    """Turn a forked child into the process that a kernel would have been started as."""
    os.setsid()
    os.chdir(job["cwd"])
    # Imports set variables too; they would have done so in a process of the page's own.
    before = job["environment"]
    changed = {k: v for k, v in os.environ.items() if before.get(k) != v}
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
    kernel.end_with(int(sys.argv[3]))
    job, connection = serve(socket.socket(fileno=int(sys.argv[1])))
    watch(connection)
    become_kernel(job)
    kernel.main()
    os._exit(0)
