"""How a page comes by the process of its kernel: forked from a warm parent, or started for it.

nbclient and jupyter_client see no difference: a forked kernel has the few methods of a
`subprocess.Popen` that they use. Whoever asks for a fork holds a connection to the parent that
made it; when the connection is closed, by whatever end of this process, the kernel is killed.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from . import forkserver
from .forkserver import KERNEL

# What differs from page to page, and is set after the fork.
OF_A_PAGE = ("IPYTHONDIR", "TMPDIR")


class ParentLost(Exception):
    """There is no parent to fork from, or it ended and took its kernels along."""


def can_fork() -> bool:
    """Say whether kernels can be forked on this system."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


class ForkedProcess:
    """A kernel that another process has forked; the part of `subprocess.Popen` that is used."""

    stdin = stdout = stderr = None

    def __init__(self, connection: socket.socket) -> None:
        """Take the connection to the process that watches it, which does not block."""
        self.connection = connection
        self.pid = 0
        self.returncode: int | None = None
        self.lost = False
        self._received = b""

    def _read(self, data: bytes) -> None:
        """Take the process id and the exit status; nothing more means that the kernel is gone."""
        self._received += data
        *numbers, _ = self._received.split(b"\n")
        if numbers:
            self.pid = int(numbers[0])
        if len(numbers) > 1:
            self.returncode = int(numbers[1])
        elif not data:
            self.returncode, self.lost = -signal.SIGKILL, True

    async def started(self) -> None:
        """Wait until the kernel has been forked; raises ParentLost."""
        while not self.pid and not self.lost:
            self._read(await asyncio.get_running_loop().sock_recv(self.connection, 1024))
        if self.lost:
            raise ParentLost

    def poll(self) -> int | None:
        """Return the exit status, or None while the kernel runs."""
        with contextlib.suppress(BlockingIOError):
            while self.returncode is None:
                try:
                    data = self.connection.recv(1024)
                except ConnectionError:
                    data = b""
                self._read(data)
        return self.returncode

    def wait(self) -> int | None:
        """Return the exit status of a kernel that has ended."""
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Have a signal sent to the kernel and to all that it has started."""
        with contextlib.suppress(OSError):
            self.connection.send(bytes([number]))


class Parents:
    """The way to the processes that kernels of one environment are forked from."""

    def __init__(self, versions: str, environment: Mapping[str, str]) -> None:
        """Take in which versions and in which environment frameworks are imported."""
        self.first = {"environment": dict(environment), "versions": versions}
        self._own: subprocess.Popen[Any] | None = None
        if path := os.environ.get(forkserver.SOCKET):
            self._control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            with contextlib.suppress(OSError):
                self._control.connect(path)
                return
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._own = forkserver.root(theirs, environment)

    def __enter__(self) -> Self:
        """Begin to use it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of the root; one of this build's own ends, with all that were forked from it."""
        self._control.close()
        if self._own is not None:
            self._own.kill()
            self._own.wait()

    async def fork(self, modules: Sequence[str], job: dict[str, Any]) -> ForkedProcess:
        """Return a kernel forked where these modules are imported; raises ParentLost."""
        connection, theirs = socket.socketpair()
        connection.setblocking(False)
        job |= {"steps": [self.first, *modules], "environment": self.first["environment"]}
        with theirs, contextlib.suppress(OSError):
            # Where the root has ended, the closed connection says so.
            socket.send_fds(self._control, [json.dumps(job).encode()], [theirs.fileno()])
        process = ForkedProcess(connection)
        try:
            await process.started()
        except BaseException:
            connection.close()
            raise
        return process


class _ThisPython(KernelSpecManager):
    """Starts kernels with the interpreter of the build, whatever kernels are installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-P", str(KERNEL), "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


class PageProvisioner(LocalProvisioner):
    """Starts a kernel as a process of its own, or has it forked."""

    def __init__(self, warm: Parents | None, modules: Sequence[str], **named: Any) -> None:
        """Take the parents and what a parent must have imported; None for a process of its own."""
        super().__init__(**named)
        self.warm, self.modules = warm, modules
        self.home = ""

    async def launch_kernel(self, cmd: list[str], **named: Any) -> Any:
        """Start the kernel; see the base class."""
        self.home = named["env"][OF_A_PAGE[0]]
        if self.warm is None:
            return await super().launch_kernel(cmd, **named)
        job = {"argv": cmd[cmd.index(str(KERNEL)) :], "cwd": named["cwd"], "env": named["env"]}
        job["log"] = named["stdout"].name
        process = await self.warm.fork(self.modules, job)
        self.process: Any = process
        # Signals go through the parent, which knows whether the process is still the same.
        self.pid, self.pgid, self.cwd = process.pid, None, named["cwd"]
        return self.connection_info

    def used(self) -> tuple[float, float]:
        """Return the processor seconds of the kernel, and those of all that it has started."""
        # Imported here, for a build that executes nothing.
        import psutil

        if self.process is None or self.process.poll() is not None:
            return 0.0, 0.0
        own = others = 0.0
        with contextlib.suppress(psutil.Error):
            kernel = psutil.Process(self.process.pid)
            times = kernel.cpu_times()
            own, others = times.user + times.system, times.children_user + times.children_system
            for child in kernel.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    others += sum(child.cpu_times()[:4])
        return own, others

    async def end(self) -> int | None:
        """Kill the kernel with all that it started; return the status with which it had ended.

        Raises ParentLost where it had ended with its parent.
        """
        process = self.process
        if process is None:
            return None
        status: int | None = process.poll()
        await self.kill()
        if self.home:
            _kill_all_of(self.home)
        while process.poll() is None:
            await asyncio.sleep(0.002)
        if isinstance(process, ForkedProcess):
            process.connection.close()
            if process.lost:
                raise ParentLost
        return status


def _kill_all_of(home: str) -> None:
    """Kill what a page started that outlived its kernel: it has the variables of the page."""
    # Imported here, for a build that executes nothing.
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(OF_A_PAGE[0]) == home:
                process.kill()


def manager(
    connection_file: pathlib.Path, warm: Parents | None, modules: Sequence[str]
) -> tuple[AsyncKernelManager, PageProvisioner]:
    """Return what manages a kernel and its process, forked from `warm` parents where given."""
    kernel = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=_ThisPython(),
        transport="ipc",
        connection_file=str(connection_file),
    )
    provisioner = PageProvisioner(
        warm, modules, kernel_id="page", kernel_spec=kernel.kernel_spec, parent=kernel
    )
    kernel.provisioner = provisioner
    return kernel, provisioner
