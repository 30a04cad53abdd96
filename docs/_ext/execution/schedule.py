"""Execute pages: those that measure alone, all others in parallel, the longest first.

In a preview, whose times nobody may rely on, all of them are others.
"""

import asyncio
import contextlib
import heapq
import json
import math
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from ..options import Options
from ..records.cache import Effort
from ..source.pages import Page
from . import environment, imports, machine, provisioning
from .page_run import Execution, Failure, PageRun, Turns, used_versions

__all__ = ["Execution", "Failure", "execute_all"]

Done = Callable[[Page, Execution], None]
# How many kernels of pages that measure are there at once; all but one of them rest.
STARTING = 2
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

    Pages that measure run one at a time after all others; the kernel of the next one has
    started by then. `efforts` maps the names of pages to what they last took: the longest begin
    first, and those never executed before them. `say` receives a line for each page. `jobs`
    pages run at once: by default one for each core, or a single one on an accelerator, which
    belongs to one process. Of those pages whose work is done by processes that they start, one
    runs at a time. Where `done` raises, the other pages go on; its first error is raised when all
    are done.
    """

    # Imported here, for a build that executes nothing.
    from tqdm import tqdm

    known = {page.docname: efforts.get(page.docname, Effort()) for page in pages}
    ordered = sorted(pages, key=lambda page: known[page.docname].seconds, reverse=True)
    jobs = jobs or (machine.cores() if device == "cpu" else 1)
    errors: list[Exception] = []
    progress = Progress(pages, known, jobs, options)
    with tqdm(total=len(pages), unit="page", disable=not sys.stderr.isatty(), leave=False) as bar:

        def finished(page: Page, execution: Execution) -> None:
            bar.update()
            verdict = "failed" if execution.failures else "executed"
            took = f"{execution.outputs.facts.seconds:.1f} s"
            with tqdm.external_write_mode(file=sys.stderr):
                say(progress.after(page, f"{verdict} {page.docname} in {took}"))
                for line in _cut_outputs(page, execution):
                    say(line)
            try:
                done(page, execution)
            except Exception as error:
                error.add_note(f"while the outputs of the page {page.docname} were kept")
                errors.append(error)

        build = _Build(options, device, finished, jobs, say, known, progress)
        asyncio.run(_until_ended(build.run(ordered)))
    if errors:
        raise errors[0]


def alone(page: Page, options: Options) -> bool:
    """Return whether a page must be executed with nothing beside it."""
    return page.benchmark and not options.preview


class Progress:
    """What of a build is done, what runs, and about how long the rest takes."""

    def __init__(
        self,
        pages: Sequence[Page],
        efforts: Mapping[str, Effort],
        jobs: int,
        options: Options,
    ) -> None:
        """Take the pages, what each last took, and how many run at once."""
        seconds = [each.seconds for each in efforts.values() if each.seconds < math.inf]
        usual = statistics.fmean(seconds) if seconds else 1.0
        self.work = {
            page.docname: (taken if (taken := efforts[page.docname].seconds) < math.inf else usual)
            / (1 if alone(page, options) else jobs)
            for page in pages
        }
        self.total, self.done, self.count = sum(self.work.values()), 0.0, 0
        self.began = time.monotonic()
        self.running: dict[str, None] = {}

    def after(self, page: Page, came: str) -> str:
        """Return what is to be said when a page is done: what came of it, and what is left."""
        self.count += 1
        self.done += self.work[page.docname]
        self.running.pop(page.docname, None)
        parts = [f"[{self.count}/{len(self.work)}] {came}"]
        if 2 < self.count < len(self.work):
            left = (time.monotonic() - self.began) * (self.total - self.done) / self.done
            parts.append(f"about {left / 60:.0f} min left" if left > 90 else "about 1 min left")
        if self.running:
            parts.append(f"now {', '.join(self.running)}")
        return "; ".join(parts)


def _cut_outputs(page: Page, execution: Execution) -> Iterator[str]:
    """Return a line for each cell whose output is too long for its page."""
    for number, cut in execution.cut.items():
        yield f"      {page.docname}: cell {number} printed {cut:,} characters more than are shown"


class _Slots:
    """As many pages at once as there are slots; of those that wait, the first in order."""

    def __init__(self, count: int) -> None:
        self.count = self.free = count
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @contextlib.asynccontextmanager
    async def taken(self, order: int, wanted: int = 1) -> AsyncIterator[None]:
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self.waiting, (order, wanted, turn))
        self._serve()
        await turn
        try:
            yield
        finally:
            self.free += wanted
            # Not at once: who gives slots back may ask for others, and be the first in order.
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        while self.waiting and self.waiting[0][1] <= self.free:
            _, wanted, turn = heapq.heappop(self.waiting)
            if not turn.done():
                self.free -= wanted
                turn.set_result(None)


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
        progress: Progress,
    ) -> None:
        self.progress = progress
        self.options, self.device, self.finished, self.jobs = options, device, finished, jobs
        self.slots, self.crowd = _Slots(jobs), _Slots(1)
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
                for order, (page, modules) in enumerate(ordinary):
                    group.create_task(self._ordinary(order, page, warm, modules))
        numbered = enumerate(measuring)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.jobs, STARTING)):
                group.create_task(self._measure_all(numbered))

    async def _ordinary(
        self,
        order: int,
        page: Page,
        warm: provisioning.Parents | None,
        modules: tuple[str, ...] | None,
    ) -> None:
        # Not in a slot: others run while the parent still imports.
        if modules is None or warm is None or not await warm.ready(modules):
            warm, modules = None, ()
        async with self._in_place(order, self.efforts[page.docname]):
            try:
                await self._execute(page, warm, modules, last=False)
                return
            except provisioning.ParentLost as lost:
                begun = lost.begun
            # A page that may have ended its parent is not let near the build itself.
            if begun:
                with contextlib.suppress(provisioning.ParentLost):
                    await asyncio.sleep(0.2)
                    await self._execute(page, warm, modules)
                    return
            await self._execute(page, None, ())

    async def _measure_all(self, pages: Iterator[tuple[int, Page]]) -> None:
        for order, page in pages:
            await self._measure(order, page)

    async def _measure(self, order: int, page: Page) -> None:
        """Execute a page that measures, alone.

        Kernels start and import beside each other, and rest while cells of one are executed.
        """
        early = imports.early_modules([c.source for c in page.cells], self.options.registry)
        turns = Turns(lambda: self._beside_others(order), lambda: self._alone(order))
        run = PageRun(page, self.options, self._device(page), modules=early, turns=turns)
        self.progress.running[page.docname] = None
        self.finished(page, await run.executed())

    @contextlib.asynccontextmanager
    async def _in_place(self, order: int, effort: Effort) -> AsyncIterator[None]:
        """Wait for a slot. Processes of several pages at once would take each other's cores."""
        async with contextlib.AsyncExitStack() as held:
            if effort.started > HALF:
                await held.enter_async_context(self.crowd.taken(order))
            await held.enter_async_context(self._beside_others(order))
            yield

    @contextlib.asynccontextmanager
    async def _beside_others(self, order: int) -> AsyncIterator[None]:
        async with self.slots.taken(order), self.machine.locked(alone=False):
            yield

    @contextlib.asynccontextmanager
    async def _alone(self, order: int) -> AsyncIterator[None]:
        async with self.slots.taken(order, self.slots.count), self.machine.locked(alone=True):
            yield

    async def _execute(
        self,
        page: Page,
        warm: provisioning.Parents | None,
        modules: tuple[str, ...],
        last: bool = True,
    ) -> None:
        shared = self.jobs > 1 and not alone(page, self.options)
        run = PageRun(page, self.options, self._device(page), warm, modules, shared, last)
        self.progress.running[page.docname] = None
        self.finished(page, await run.executed())


async def _until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine until it or the build is ended; SIGTERM and SIGHUP end it as Ctrl-C does.

    The kernels are shut down first. The exit status is the one that the signal has in a shell.
    """
    task = asyncio.ensure_future(work)
    received = []

    def end(number: int, frame: object) -> None:
        received.append(number)
        loop.call_soon_threadsafe(task.cancel)

    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # One that is ignored, as under nohup, stays ignored.
    known = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in known}
    try:
        await task
    except asyncio.CancelledError:
        if received:
            raise SystemExit(128 + received[0]) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
