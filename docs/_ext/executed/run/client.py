"""The client that executes the cells of a page in its kernel."""

import ast
import asyncio
import contextlib
import pathlib
import time
from typing import Any

from nbclient import NotebookClient

PORTS = ("shell", "iopub", "stdin", "control")


def this_task() -> asyncio.Task[Any]:
    """Return the task that this code is executed by."""
    task = asyncio.current_task()
    assert task is not None
    return task


class Client(NotebookClient):
    """Connects to a kernel, and asks it for values."""

    km: Any
    kc: Any

    def __init__(self, *rest: Any, **named: Any) -> None:
        super().__init__(*rest, **named)
        self.log.disabled = True
        # Where the last cell failed: its line, and the name that it did not know.
        self.failed: dict[str, Any] = {}
        self.on_cell_executed = self._note_failure

    def _note_failure(self, execute_reply: dict[str, Any], **_: Any) -> None:
        self.failed = execute_reply["content"].get("failed") or {}

    async def _async_poll_kernel_alive(self) -> None:
        # An execution that was broken off leaves it behind, and soon there is no connection.
        with contextlib.suppress(AssertionError):
            await super()._async_poll_kernel_alive()

    async def connect(self) -> None:
        """Wait until the kernel is ready; the pauses that jupyter_client makes take 0.3 s."""
        end = time.monotonic() + self.startup_timeout
        ports = [getattr(self.km, f"{name}_port") for name in PORTS]
        # Connected too early, ZeroMQ tries again after a tenth of a second only.
        while not all(pathlib.Path(f"{self.km.ip}-{port}").exists() for port in ports):
            await self._still_starting(end)
        self.kc = self.km.client()
        self.kc.start_channels(hb=False)
        self.kc.allow_stdin = False
        # It welcomes whom it will send outputs; earlier ones would be lost.
        while not await self.kc.iopub_channel.msg_ready():
            await self._still_starting(end)
        await self.async_wait_for_reply(self.kc.kernel_info())

    async def _still_starting(self, end: float) -> None:
        if not await self.km.is_alive():
            raise RuntimeError("Kernel died before replying to kernel_info")
        if time.monotonic() > end:
            raise RuntimeError(f"Kernel didn't respond in {self.startup_timeout} seconds")
        await asyncio.sleep(0.005)

    async def value_of(self, expression: str) -> tuple[Any, str]:
        """Return what an expression gives in the kernel, or else what is wrong."""
        request = self.kc.execute("", silent=True, user_expressions={"value": expression})
        reply: Any = await self.async_wait_for_reply(request)
        answer = reply["content"]["user_expressions"]["value"]
        if answer["status"] == "error":
            return None, f"{answer['ename']}: {answer['evalue']}"[:1000]
        return ast.literal_eval(answer["data"]["text/plain"]), ""
