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
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from . import ENGINE_VERSION, forkserver

KERNEL = pathlib.Path(__file__).with_name("kernel.py")
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
        """Take the connection to the parent, which does not block."""
        self.connection = connection
        self.pid = 0
        self.returncode: int | None = None
        self.lost = False
        self._received = b""

    def _read(self, data: bytes) -> None:
        """Take what the parent says; nothing means that it is gone, and the kernel with it."""
        if not data and self.returncode is None:
            self.returncode, self.lost = -signal.SIGKILL, True
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            facts = json.loads(line)
            self.pid = facts.get("pid", self.pid)
            if "exit" in facts:
                self.returncode = facts["exit"]

    async def started(self) -> None:
        """Wait until the kernel has been forked; raises ParentLost."""
        while not self.pid and self.returncode is None:
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
        """Let the parent send a signal to the kernel and to all that it has started."""
        with contextlib.suppress(OSError):
            self.connection.send(bytes([number]))

    def kill(self) -> None:
        """Kill the kernel."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the kernel to end."""
        self.send_signal(signal.SIGTERM)


class Parents:
    """The way to the parents of kernels that have one environment."""

    def __init__(self, key: str, environment: Mapping[str, str]) -> None:
        """Take what says in which versions parents import frameworks, and their environment."""
        environment = dict(environment)
        key = "\n".join([key, str(ENGINE_VERSION), sys.version, json.dumps(environment)])
        self._facts: dict[str, Any] = {
            "key": key,
            "kernel": str(KERNEL),
            "environment": environment,
        }
        self._warm: dict[tuple[str, ...], asyncio.Task[bool]] = {}
        self._own: forkserver.Root | None = None
        self._control = self._root()

    def _root(self) -> socket.socket:
        """Return the socket of a root: the keeper's, or else one for this build alone."""
        if path := os.environ.get(forkserver.SOCKET):
            with (
                contextlib.suppress(OSError),
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as keeper,
            ):
                keeper.connect(path)
                keeper.send(json.dumps(self._facts).encode())
                if fds := socket.recv_fds(keeper, 16, 1)[1]:
                    return socket.socket(fileno=fds[0])
        self._own = forkserver.Root(str(KERNEL), self._facts["environment"])
        return self._own.control

    def _ask(self, modules: Sequence[str], job: dict[str, Any]) -> socket.socket:
        """Send a job for the parent that has imported these modules; return the connection."""
        mine, its = socket.socketpair()
        mine.setblocking(False)
        data = [json.dumps({"modules": list(modules), **job}).encode()]
        with its:
            # Where the root has ended, whoever waits learns it from the closed connection.
            with contextlib.suppress(OSError):
                socket.send_fds(self._control, data, [its.fileno()])
        return mine

    def close(self) -> None:
        """Let go of the root, and wait for one of this build's own until it has ended."""
        self._control.close()
        if self._own is not None:
            self._own.close()
            self._own = None

    async def ready(self, modules: tuple[str, ...]) -> bool:
        """Wait until a parent has imported these modules; False where it cannot."""
        if modules not in self._warm:
            self._warm[modules] = asyncio.create_task(self._become_ready(modules))
        return await asyncio.shield(self._warm[modules])

    async def _become_ready(self, modules: tuple[str, ...]) -> bool:
        with self._ask(modules, {"do": "warm"}) as connection:
            try:
                return bool(await asyncio.get_running_loop().sock_recv(connection, 1024))
            except ConnectionError:
                return False

    async def fork(self, modules: Sequence[str], job: dict[str, Any]) -> ForkedProcess:
        """Return a kernel forked from the parent of these modules; raises ParentLost."""
        process = ForkedProcess(self._ask(modules, {"do": "kernel", **job}))
        try:
            await process.started()
        except BaseException:
            process.connection.close()
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
            for each in kernel.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    others += sum(each.cpu_times()[:4])
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
    made = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=_ThisPython(),
        transport="ipc",
        connection_file=str(connection_file),
    )
    provisioner = PageProvisioner(
        warm, modules, kernel_id="page", kernel_spec=made.kernel_spec, parent=made
    )
    made.provisioner = provisioner
    return made, provisioner
