"""The client that executes the cells of a page in its kernel."""

import asyncio
import pathlib
import queue
import time
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

# How long a kernel may take to answer a question of the build.
ANSWER = 30.0
PORTS = ("shell", "iopub", "stdin", "control")


def this_task() -> asyncio.Task[Any]:
    """Return the task that this code is executed by."""
    task = asyncio.current_task()
    assert task is not None
    return task


class Client(NotebookClient):
    """Leaves no task behind, however the execution of a cell ended."""

    km: Any
    kc: Any

    def __init__(self, *rest: Any, **named: Any) -> None:
        super().__init__(*rest, **named)
        self.log.disabled = True
        self.watching: set[asyncio.Task[Any]] = set()

    async def _async_poll_kernel_alive(self) -> None:
        self.watching.add(this_task())
        await super()._async_poll_kernel_alive()

    async def _async_poll_output_msg(self, *rest: Any) -> None:
        self.watching.add(this_task())
        await super()._async_poll_output_msg(*rest)

    async def connect(self) -> None:
        """Wait until the kernel is ready, without the pauses that jupyter_client makes."""
        end = time.monotonic() + self.startup_timeout
        ports = [getattr(self.km, f"{name}_port") for name in PORTS]
        # Connected too early, ZeroMQ tries again after a tenth of a second only.
        while not all(pathlib.Path(f"{self.km.ip}-{port}").exists() for port in ports):
            await self._still_starting(end)
            await asyncio.sleep(0.005)
        self.kc = self.km.client()
        self.kc.start_channels(hb=False)
        self.kc.allow_stdin = False
        # It welcomes whom it will send outputs; earlier ones would be lost.
        while not await self.kc.iopub_channel.msg_ready():
            await self._still_starting(end)
            await asyncio.sleep(0.005)
        await self.async_wait_for_reply(self.kc.kernel_info())

    async def _still_starting(self, end: float) -> None:
        if not await self.km.is_alive():
            raise RuntimeError("Kernel died before replying to kernel_info")
        if time.monotonic() > end:
            raise RuntimeError(f"Kernel didn't respond in {self.startup_timeout} seconds")

    async def stop_watching(self) -> None:
        for task in self.watching:
            task.cancel()
        await asyncio.gather(*self.watching, return_exceptions=True)

    async def ask(self, request: str, **content: Any) -> dict[str, Any] | None:
        """Return what the kernel answers on its control channel, or None where it does not."""
        message = self.kc.session.msg(request, content)
        self.kc.control_channel.send(message)
        end = time.monotonic() + ANSWER
        while (left := end - time.monotonic()) > 0:
            try:
                reply = await self.kc.control_channel.get_msg(timeout=min(left, 1))
            except queue.Empty:
                if not await self.km.is_alive():
                    raise DeadKernelError("Kernel died") from None
                continue
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return dict(reply["content"])
        return None
