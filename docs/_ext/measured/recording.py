"""Record pages that measure: in ten processes, spread over an hour.

Those that were recorded before, of the same code and versions, count, and those that other programs
disturbed do not. A page of which only other code has changed is executed once, for what it prints.
"""

import argparse
import datetime
import enum
import time
from collections.abc import Iterable, Sequence

from executed.run.recorder import Recorder, say
from executed.source.pages import Page
from executed.store.output_format import PageOutputs

from .judging import Judge
from .processes import MeasurementKind

# Of ten numbers the second and the ninth are the ends of a range.
PROCESSES = 10
# A machine has other moods an hour later. Minutes between the first process and the last.
SPREAD = 60
# How often a process that was disturbed is repeated at once.
TRIES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command may be told of pages that measure."""
    parser.add_argument(
        "--processes",
        type=_whole,
        default=PROCESSES,
        help="in how many processes pages measure, those recorded before with them; 10 by default",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=SPREAD,
        help="over how long the processes of a page are spread at least; 60 by default",
    )


def _whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("--processes must be 1 or more")
    return number


class Origin(enum.Enum):
    """What a recording is of, seen from here: the code, then the processor and the versions."""

    HERE = enum.auto()
    ELSEWHERE = enum.auto()
    EARLIER_CODE = enum.auto()


class Processes:
    """Executes pages that measure, once for each process, and adds what each measured."""

    def __init__(self, recorder: Recorder, kind: MeasurementKind, judge: Judge) -> None:
        """Take what executes and writes, and what may refuse a process."""
        self.recorder, self.kind, self.judge = recorder, kind, judge
        self.failed: set[str] = set()
        # Pages of which a process does not count, with the reason.
        self.refused: dict[str, str] = {}
        self.counted: set[str] = set()

    def measure(
        self, pages: Sequence[Page], processes: int, again: bool, minutes: float = SPREAD
    ) -> None:
        """Record pages: a process of each, and so on until all have as many.

        So the processes of a page are spread over the whole time, which is so many `minutes` at
        least. Each is kept at once, but for one that is refused, because other programs disturbed
        it or a time is not possible: it is repeated. With `again` none of those counts that were
        recorded before.
        """
        if differ := self.recorder.from_elsewhere(pages):
            say(
                f"what was measured comes from elsewhere; here are {differ}; "
                "what is measured begins anew, with the first process"
            )
        anew = {page.docname for page in pages if again}
        for number in range(1, processes + 1):
            due = self._due(pages, number, anew)
            if number > 1 and due:
                _wait(self._begun(due), minutes * 60 * (number - 1) / (processes - 1))
            for _ in range(TRIES):
                if not due:
                    break
                say(f"process {number} of {processes}: {len(due)} pages")
                self._execute(due, anew)
                anew -= self.counted
                # Of those that were refused now or before one may still be missing.
                due = self._due(pages, number, anew)
                due = [page for page in due if page.docname in self.refused]
        for page in due:
            count = 0 if page.docname in anew else self._count(page)
            self.recorder.problems.append(
                f"{self.recorder.options.page_files[page.docname]}: it has {count} of {processes} "
                f"processes; {self.refused[page.docname]}. Repeat the command when nothing else "
                "runs"
            )

    def _execute(self, pages: Sequence[Page], anew: set[str]) -> None:
        """Execute pages, and keep what counts.

        Unless a page is measured `anew`, its process is added to those recorded of the same code.
        """
        # Unless all goes well, another process of it would be in vain.
        self.failed |= {page.docname for page in pages}
        self.recorder.execute(
            pages, lambda page, outputs: self._take(page, outputs, page.docname in anew), again=True
        )

    def _take(self, page: Page, outputs: PageOutputs, anew: bool) -> None:
        if why := self._refusal(page, outputs):
            say(f"      {page.docname}: {why}, so it does not count")
            self.refused[page.docname] = why
            self.failed.remove(page.docname)
            return
        origin, former = self._former(page)
        if former and origin is not Origin.ELSEWHERE and not anew:
            merge = (
                self.kind.with_new_processes
                if origin is Origin.HERE
                else self.kind.with_former_processes
            )
            outputs = merge(former, outputs) or outputs
        if self.recorder.write(page, outputs):
            self.failed.remove(page.docname)
            self.counted.add(page.docname)

    def _refusal(self, page: Page, outputs: PageOutputs) -> str:
        """Say why what a process gave does not count; empty where it does."""
        if self.kind.disturbed(outputs):
            return "other programs disturbed it"
        return self.judge.refusal(page, outputs)

    def _due(self, pages: Sequence[Page], number: int, anew: set[str]) -> list[Page]:
        """Return the pages that lack their process of that number."""
        left = [page for page in pages if page.docname not in self.failed]
        return [page for page in left if page.docname in anew or self._count(page) < number]

    def _begun(self, pages: Iterable[Page]) -> datetime.datetime | None:
        """Return when the first process of any of the pages ran, the latest of them."""
        firsts = [
            min(map(datetime.datetime.fromisoformat, moments))
            for page in pages
            if (outputs := self._former(page)[1]) and (moments := self.kind.moments(outputs))
        ]
        return max(firsts, default=None)

    def _former(self, page: Page) -> tuple[Origin, PageOutputs | None]:
        """Return a page's recording, and where it is from."""
        device = page.device or self.recorder.options.device
        state, outputs = self.recorder.recordings.state(device, page.docname, page)
        if outputs is None or not state.current:
            return Origin.EARLIER_CODE, outputs
        differs = self.recorder.differences(page, outputs)
        return Origin.ELSEWHERE if differs else Origin.HERE, outputs

    def _count(self, page: Page) -> float:
        """Return in how many processes today's code of a page was measured here."""
        origin, outputs = self._former(page)
        return self.kind.processes(outputs) if outputs and origin is Origin.HERE else 0


def _wait(first: datetime.datetime | None, seconds: float) -> None:
    """Sleep until so many seconds after the first process, and say so."""
    if first is None:
        return
    until = first + datetime.timedelta(seconds=seconds)
    # No longer than that, should the clock have been set back.
    left = min(seconds, (until - datetime.datetime.now(datetime.UTC)).total_seconds())
    if left > 0:
        clock = until.astimezone().strftime("%H:%M")
        say(f"waiting until {clock}, so that the processes are spread; see --minutes")
        time.sleep(left)
