"""Execute pages: those that measure alone, all others in parallel, those with most work first.

In a preview, whose times nobody may rely on, all of them are others.
"""

import asyncio
import contextlib
import dataclasses
import json
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from ..options import Options
from ..source.pages import Page
from ..store.recordings import Effort
from . import environment, imports, machine, provisioning
from .outcome import Result
from .page_run import PageRun, used_versions
from .progress import Progress

# A page that computes less than half of its work itself has processes of its own compute.
HALF = 0.5
# A page that keeps less than this part of a core busy waits for processes that it has started.
IDLE = 0.3
# The variables that the prelude of a preview finds: the name of the page, and whether it shows what
# was recorded.
NAME, LENT = "BOOK_PAGE", "BOOK_LENT"
# What a preview takes at most of a page that is lent its outputs, in seconds of one core: where it
# was recorded for a quarter of an hour, the estimate of what is left would be half of the truth.
MOST = 100.0
# GiB of memory that the process of a page holds, and what it starts.
PAGE = 2.0


def execute_all(
    pages: Sequence[Page],
    options: Options,
    device: str,
    done: Callable[[Result], None],
    efforts: Mapping[str, Effort],
    say: Callable[[str], None],
    lent: Collection[str] = (),
) -> None:
    """Execute pages and call `done` with the Result of each as soon as it is finished.

    Pages that measure run one at a time after all others. `efforts` maps the names of pages to
    what they took: those with most work begin first, and before them those of which nothing is
    known. `say` receives a line for each page. As many pages run at once as there are cores and
    free memory for, or a single one on an accelerator, which belongs to one process. Pages whose
    work is done by processes that they start run one at a time, on a CPU beside the others; so do
    those of them that mostly wait, beside both. In a preview, pages that are `lent` the outputs of
    a recording find that in a variable: nobody sees what they compute.
    """
    expected = {page.docname: efforts.get(page.docname, Effort()) for page in pages}
    if options.preview:
        expected |= {name: _shortened(expected[name]) for name in expected.keys() & lent}
    ordered = sorted(pages, key=lambda page: expected[page.docname].work, reverse=True)
    at_once = machine.places(PAGE) if device == "cpu" else 1
    slots, lock = asyncio.Semaphore(at_once), machine.Machine(say)
    progress = Progress({name: effort.work for name, effort in expected.items()}, say)

    async def execute(page: Page, *fork: Any) -> None:
        run = PageRun(page, options, page.device or device, *fork)
        if options.preview:
            run.variables = {NAME: page.docname, LENT: "1" if page.docname in lent else ""}
        progress.begin(page.docname)
        result = await run.executed()
        verdict = "failed" if result.failures else "executed"
        progress.end(page.docname, verdict, result.outputs.facts.seconds)
        done(result)

    async def execute_beside_others(page: Page, places: asyncio.Semaphore, *fork: Any) -> None:
        async with places, lock.locked(alone=False):
            try:
                await execute(page, *fork)
            except provisioning.ParentLost:
                await execute(page)

    async def execute_each() -> None:
        async with progress.watched():
            await execute_in_order()

    async def execute_in_order() -> None:
        others = [page for page in ordered if not runs_alone(page, options)]
        modules = {page.docname: _modules(page, options, device) for page in others}
        with contextlib.ExitStack() as stack:
            if any(names is not None for names in modules.values()):
                variables = environment.parent_environment(options)
                versions = json.dumps(used_versions(options))
                warm = stack.enter_context(provisioning.Parents(versions, variables))
            fork = {name: () if names is None else (warm, names) for name, names in modules.items()}
            # Processes of several pages at once would take each other's cores. One page of these
            # goes beside those in the slots: it often waits for what it has started.
            single, idle = (asyncio.Semaphore(1) if device == "cpu" else slots for _ in range(2))
            async with asyncio.TaskGroup() as group:
                for page in others:
                    effort = expected[page.docname]
                    waits = idle if effort.cores < IDLE else single
                    places = waits if effort.started > HALF else slots
                    work = execute_beside_others(page, places, *fork[page.docname])
                    group.create_task(work)
        for page in ordered:
            if runs_alone(page, options):
                async with lock.locked(alone=True):
                    await execute(page)

    with _signals_end_it():
        asyncio.run(execute_each())


def _shortened(known: Effort) -> Effort:
    """Return what a page takes that is executed for its errors alone, if anything is known."""
    return dataclasses.replace(known, work=min(known.work, MOST)) if known != Effort() else known


def runs_alone(page: Page, options: Options) -> bool:
    """Return whether no other page may run at the same time."""
    return page.benchmark and not options.preview


def _modules(page: Page, options: Options, device: str) -> tuple[str, ...] | None:
    """Return what the parent of a page's kernel imports; None for a process of its own."""
    own = runs_alone(page, options) or (page.device or device) != "cpu"
    if own or not provisioning.can_fork():
        return None
    return imports.warm_modules([cell.source for cell in page.cells], options.registry)


@contextlib.contextmanager
def _signals_end_it() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the build as Ctrl-C does, with the status they have in a shell.

    The kernels are shut down first.
    """

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    # One that is ignored, as under nohup, stays ignored.
    heard = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    former = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
