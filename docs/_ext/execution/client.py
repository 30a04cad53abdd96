"""The client that executes the cells of a page in its kernel."""

import ast
import asyncio
from typing import Any

from nbclient import NotebookClient


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
        """Wait until the kernel is ready; raises RuntimeError."""
        self.kc = self.km.client()
        self.kc.start_channels(hb=False)
        self.kc.allow_stdin = False
        await self.kc.wait_for_ready(timeout=self.startup_timeout)

    async def stop_watching(self) -> None:
        """Cancel the tasks that are left."""
        for task in self.watching:
            task.cancel()
        await asyncio.gather(*self.watching, return_exceptions=True)

    async def value_of(self, expression: str) -> tuple[Any, str]:
        """Return what an expression gives in the kernel, or else what is wrong."""
        asked = self.kc.execute("", silent=True, user_expressions={"value": expression})
        reply: Any = await self.async_wait_for_reply(asked)
        answer = reply["content"]["user_expressions"]["value"]
        if answer["status"] == "error":
            return None, f"{answer['ename']}: {answer['evalue']}"[:1000]
        return ast.literal_eval(answer["data"]["text/plain"]), ""
