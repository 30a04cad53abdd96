"""Execute pages: those that measure alone, all others in parallel, the longest first.

In a preview, whose times nobody may rely on, all of them are others.
"""

import asyncio
import contextlib
import itertools
import json
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from ..options import Options
from ..records.recordings import Effort
from ..source.pages import Page
from . import environment, imports, machine, provisioning
from .page_run import Execution, Failure, PageRun, used_versions

__all__ = ["Execution", "Failure", "execute_all"]

Done = Callable[[Page, Execution], None]
# A page that computes less than half of its work itself has processes of its own compute.
HALF = 0.5


def execute_all(
    pages: Sequence[Page],
    options: Options,
    device: str,
    done: Done,
    efforts: Mapping[str, Effort],
    say: Callable[[str], None],
    jobs: int | None = None,
) -> None:
    """Execute pages and call `done(page, execution)` for each as soon as it is finished.

    Pages that measure run one at a time after all others. `efforts` maps the names of pages to
    what they took: the longest begin first, and those of which nothing is known before them. `say`
    receives a line for each page. `jobs` pages run at once: by default one for each core, or a
    single one on an accelerator, which belongs to one process. Of those pages whose work is done by
    processes that they start, one runs at a time.
    """
    known = {page.docname: efforts.get(page.docname, Effort()) for page in pages}
    ordered = sorted(pages, key=lambda page: known[page.docname].seconds, reverse=True)
    jobs = jobs or (machine.cores() if device == "cpu" else 1)
    numbers = itertools.count(1)

    def finished(page: Page, execution: Execution) -> None:
        verdict = "failed" if execution.failures else "executed"
        took = f"{execution.outputs.facts.seconds:.1f} s"
        say(f"[{next(numbers)}/{len(pages)}] {verdict} {page.docname} in {took}")
        for cell, count in execution.left_out.items():
            more = f"{count:,} characters more than are shown"
            say(f"      {page.docname}: cell {cell} printed {more}")
        done(page, execution)

    build = _Build(options, device, finished, jobs, say, known)
    asyncio.run(_until_ended(build.run(ordered)))


def alone(page: Page, options: Options) -> bool:
    """Return whether a page must be executed with nothing beside it."""
    return page.benchmark and not options.preview


class _Build:
    """The execution of some pages, for one device."""

    def __init__(
        self,
        options: Options,
        device: str,
        finished: Done,
        jobs: int,
        say: Callable[[str], None],
        efforts: Mapping[str, Effort],
    ) -> None:
        self.options, self.device, self.finished, self.jobs = options, device, finished, jobs
        self.slots = asyncio.Semaphore(jobs)
        # Processes of several pages at once would take each other's cores.
        self.starting_processes = asyncio.Semaphore(1)
        self.efforts = efforts
        self.machine = machine.Machine(say)

    def _device(self, page: Page) -> str:
        return page.device or self.device

    def _modules(self, page: Page) -> tuple[str, ...] | None:
        """Return what the parent of a page's kernel imports; None for a process of its own."""
        own = alone(page, self.options) or self._device(page) != "cpu"
        if own or not provisioning.can_fork():
            return None
        return imports.warm_modules([c.source for c in page.cells], self.options.registry)

    async def run(self, pages: Sequence[Page]) -> None:
        measuring = [page for page in pages if alone(page, self.options)]
        others = [page for page in pages if not alone(page, self.options)]
        ordinary = [(page, self._modules(page)) for page in others]
        with contextlib.ExitStack() as stack:
            warm = None
            if any(modules is not None for _, modules in ordinary):
                variables = environment.kernel_environment(self.options, "cpu", shared=True)
                versions = json.dumps(used_versions(self.options))
                warm = provisioning.Parents(versions, variables)
                stack.callback(warm.close)
            async with asyncio.TaskGroup() as group:
                for page, modules in ordinary:
                    group.create_task(self._ordinary(page, warm, modules))
        for page in measuring:
            async with self.machine.locked(alone=True):
                await self._execute(page)

    async def _ordinary(
        self,
        page: Page,
        warm: provisioning.Parents | None,
        modules: tuple[str, ...] | None,
    ) -> None:
        async with contextlib.AsyncExitStack() as held:
            if self.efforts[page.docname].started > HALF:
                await held.enter_async_context(self.starting_processes)
            await held.enter_async_context(self.slots)
            await held.enter_async_context(self.machine.locked(alone=False))
            try:
                await self._execute(page, *((warm, modules) if modules is not None else ()))
            except provisioning.ParentLost:
                await self._execute(page)

    async def _execute(
        self,
        page: Page,
        warm: provisioning.Parents | None = None,
        modules: tuple[str, ...] = (),
    ) -> None:
        shared = self.jobs > 1 and not alone(page, self.options)
        run = PageRun(page, self.options, self._device(page), warm, modules, shared)
        self.finished(page, await run.executed())


async def _until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine until it or the build is ended; SIGTERM and SIGHUP end it as Ctrl-C does.

    The kernels are shut down first. The exit status is the one that the signal has in a shell.
    """
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    received = []

    def end(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        # One that is ignored, as under nohup, stays ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    try:
        await task
    except asyncio.CancelledError:
        if received:
            raise SystemExit(128 + received[0]) from None
        raise
