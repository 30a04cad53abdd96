"""Record what pages print on this machine's device. `nox -s record` calls it.

It needs the frameworks and the group `record` of pyproject.toml, but neither Sphinx nor a network:

    PYTHONPATH=docs/_ext python -m executed.commands.record [--changed] [--again] [page ...]

What the cache of this machine holds already is recorded without being executed. Pages that measure
are executed in ten processes, spread over an hour; those that were recorded before, of the same
code and versions, count, and those that other programs disturbed do not. A page of which only other
code has changed is executed once, for what it prints.
"""

import argparse
import contextlib
import dataclasses
import datetime
import enum
import math
import os
import sys
import time
from collections.abc import Iterable, Sequence

from .. import files
from ..hooks import Feature, FeatureError, features, kinds
from ..names import nearest
from ..options import Options
from ..run import devices, key, machine
from ..run.outcome import Result
from ..run.page_run import used_versions
from ..run.results import run_or_load
from ..source.pages import Page, PageError, read_page
from ..source.snippets import Library
from ..store.output_format import PageOutputs
from ..store.recordings import Recordings
from ..store.sanitising import Refused

# Of ten numbers the second and the ninth are the ends of a range.
PROCESSES = 10
# A machine has other moods an hour later. Minutes between the first process and the last.
SPREAD = 60
# How often a process that was disturbed is repeated at once.
TRIES = 3


def read_pages(
    names: Sequence[str], options: Options, loaded: Iterable[Feature] = ()
) -> tuple[list[Page], list[str]]:
    """Return the pages with code, all or those named, and the problems met."""
    paths = options.page_files
    cell_options = {name for feature in loaded for name in feature.cell_options}
    library = Library.of(options)
    pages, problems = [], []
    for name in names or paths:
        name = name.removeprefix(f"{options.pages}/").removesuffix(".md").removesuffix(".ipynb")
        if name not in paths:
            problems.append(f"there is no page '{name}'{nearest(name, paths)}")
            continue
        try:
            page = read_page(name, paths[name], library, cell_options=cell_options)
        except PageError as error:
            problems.append(f"{paths[name]}:{error.line}: {error}")
            continue
        if page is not None:
            pages.append(page)
        elif names:
            problems.append(f"the page '{name}' has no code to execute")
    return pages, problems


def features_or_exit(options: Options) -> tuple[Feature, ...]:
    """Return the features of a book; leaves where its options do not allow one."""
    try:
        return features(options)
    except FeatureError as error:
        raise SystemExit(str(error)) from None


def select(
    pages: Sequence[Page], options: Options, recordings: Recordings, named: bool, changed: bool
) -> list[Page]:
    """Return the pages to record on this device, and say which are not.

    A page with a command of its own is recorded where it is `named` alone. Of those that are
    `changed` the code is not that of their recording.
    """
    selected = []
    for page in pages:
        if page.device not in (None, options.device):
            print(f"      left out {page.docname}, which is executed on {page.device} only")
        elif page.recorded and not named:
            print(
                f"      left out {page.docname}, which is recorded by "
                f"'{page.recorded} {page.docname}'"
            )
        elif not (changed and recordings.state(options.device, page.docname, page)[0].current):
            selected.append(page)
    return selected


class Origin(enum.Enum):
    """What a recording is of, seen from here: the code, then the processor and the versions."""

    HERE = enum.auto()
    ELSEWHERE = enum.auto()
    EARLIER_CODE = enum.auto()


class Recorder:
    """Executes pages and records each that goes well; `problems` are those that were met."""

    def __init__(self, options: Options, recordings: Recordings, loaded: Sequence[Feature]) -> None:
        """Take where recordings are kept, and the features, which may refuse some."""
        self.options, self.recordings, self.features = options, recordings, loaded
        self.problems: list[str] = []
        self.failed: set[str] = set()
        # Pages of which a process does not count, with the reason.
        self.refused: dict[str, str] = {}
        self.counted: set[str] = set()

    def record(self, pages: Iterable[Page], again: bool = False, anew: bool = True) -> None:
        """Execute pages, those `again` that the cache holds, and write their recordings.

        Unless all is to be measured `anew`, what pages measure is added to what was recorded of
        the same code, and what was recorded stays where none of the code that is measured changed.
        """
        run_or_load(
            pages,
            self.options,
            lambda result: self._done(result, anew),
            _say,
            lambda page, message: _say(f"      {page.docname}: {message}"),
            again,
        )

    def measure(
        self, pages: Sequence[Page], processes: int, again: bool, minutes: float = SPREAD
    ) -> None:
        """Record pages that measure: a process of each, and so on until all have as many.

        So the processes of a page are spread over the whole time, which is so many `minutes` at
        least. Each is kept at once, but for one that is refused, because other programs disturbed
        it or a time is not possible: it is repeated. With `again` none of those counts that were
        recorded before.
        """
        anew = {page.docname for page in pages if again}
        for number in range(1, processes + 1):
            due = self._due(pages, number, anew)
            if number > 1 and due:
                _wait(self._begun(due), minutes * 60 * (number - 1) / (processes - 1))
            for _ in range(TRIES):
                if not due:
                    break
                _say(f"process {number} of {processes}: {len(due)} pages")
                for fresh in (True, False):
                    if part := [page for page in due if (page.docname in anew) is fresh]:
                        self.record(part, again=True, anew=fresh)
                anew -= self.counted
                # Of those that were refused now or before one may still be missing.
                due = self._due(pages, number, anew)
                due = [page for page in due if page.docname in self.refused]
        for page in due:
            count = 0 if page.docname in anew else self._processes(page)
            self.problems.append(
                f"{self.options.page_files[page.docname]}: it has {count} of {processes} processes"
                f"; {self.refused[page.docname]}. Repeat the command when nothing else runs"
            )

    def _due(self, pages: Sequence[Page], number: int, anew: set[str]) -> list[Page]:
        """Return the pages that lack their process of that number."""
        left = [page for page in pages if page.docname not in self.failed]
        return [page for page in left if page.docname in anew or self._processes(page) < number]

    def _begun(self, pages: Iterable[Page]) -> datetime.datetime | None:
        """Return when the first process of any of the pages ran, the latest of them."""
        firsts = [
            min(map(datetime.datetime.fromisoformat, moments))
            for page in pages
            for kind in self.recordings.kinds
            if (outputs := self._former(page)[1]) and (moments := kind.moments(outputs))
        ]
        return max(firsts, default=None)

    def _former(self, page: Page) -> tuple[Origin, PageOutputs | None]:
        """Return a page's recording, and where it is from."""
        device = page.device or self.options.device
        state, outputs = self.recordings.state(device, page.docname, page)
        if outputs is None or not state.current:
            return Origin.EARLIER_CODE, outputs
        differs = differences(outputs, page, self.options)
        return Origin.ELSEWHERE if differs else Origin.HERE, outputs

    def _processes(self, page: Page) -> float:
        """Return in how many processes today's code of a page was measured here."""
        origin, outputs = self._former(page)
        if outputs is None or origin is not Origin.HERE:
            return 0
        return min((kind.processes(outputs) for kind in self.recordings.kinds), default=math.inf)

    def _refusal(self, page: Page, outputs: PageOutputs) -> str:
        """Say why what a process gave does not count; empty where it does."""
        if any(kind.disturbed(outputs) for kind in self.recordings.kinds):
            return "other programs disturbed it"
        reasons = (feature.refusal(page, outputs) for feature in self.features)
        return next(filter(None, reasons), "")

    def _done(self, result: Result, anew: bool) -> None:
        file = self.options.page_files[result.page.docname]
        # Unless all goes well, another process of it would be in vain.
        self.failed.add(result.page.docname)
        if result.failures:
            self.problems += [f"{file}:{f.line}: {f.message}" for f in result.failures]
            return
        outputs = result.outputs
        if result.page.benchmark and (why := self._refusal(result.page, outputs)):
            _say(f"      {result.page.docname}: {why}, so it does not count")
            self.refused[result.page.docname] = why
            self.failed.remove(result.page.docname)
            return
        origin, former = self._former(result.page)
        if former and origin is not Origin.ELSEWHERE and not anew:
            for kind in self.recordings.kinds:
                merge = kind.joined if origin is Origin.HERE else kind.kept
                outputs = merge(former, outputs) or outputs
        try:
            command = result.page.recorded or self.options.record_command
            path = self.recordings.write(outputs, command)
        except (files.Unusable, Refused) as error:
            self.problems.append(f"{file}: its outputs cannot be recorded: {error}")
            return
        except OSError as error:
            self.problems.append(
                f"{file}: its recording cannot be written: {error.strerror or error}"
            )
            return
        self.failed.remove(result.page.docname)
        self.counted.add(result.page.docname)
        left = sorted({cell.missing for cell in outputs.cells if cell.missing})
        missing = f", but for cells that need {' or '.join(left)}" if left else ""
        if path is None:
            _say(f"      {result.page.docname}: the same as recorded")
        else:
            _say(f"      recorded {path}{missing}")


def _say(line: str) -> None:
    print(line, flush=True)


def _wait(first: datetime.datetime | None, seconds: float) -> None:
    """Sleep until so many seconds after the first process, and say so."""
    if first is None:
        return
    until = first + datetime.timedelta(seconds=seconds)
    # No longer than that, should the clock have been set back.
    left = min(seconds, (until - datetime.datetime.now(datetime.UTC)).total_seconds())
    if left > 0:
        clock = until.astimezone().strftime("%H:%M")
        _say(f"waiting until {clock}, so that the processes are spread; see --minutes")
        time.sleep(left)


def differences(outputs: PageOutputs, page: Page, options: Options) -> list[str]:
    """Say what is another here than where a page was recorded: versions, the processor."""
    used = {"python", *key.packages(page, options)}
    there, here = outputs.facts.versions, used_versions(options)
    differing = [
        f"{name} {here.get(name, 'missing')}, not {there.get(name, 'missing')}"
        for name in sorted(used & (there.keys() | here.keys()))
        if there.get(name) != here.get(name)
    ]
    if outputs.facts.processor != (processor := machine.processor()):
        differing.append(f"{processor}, not {outputs.facts.processor}")
    return differing


def from_elsewhere(pages: Iterable[Page], options: Options, recordings: Recordings) -> str:
    """Say what is another here, of the first of these pages whose recording is from elsewhere."""
    for page in pages:
        with contextlib.suppress(files.Unusable):
            outputs = recordings.read(options.device, page.docname)
            if outputs and (differing := differences(outputs, page, options)):
                return ", ".join(differing)
    return ""


def main() -> None:
    """Read the command line, and leave with 1 where a page could not be recorded."""
    parser = argparse.ArgumentParser(prog="record", description="Record pages on this device.")
    parser.add_argument("pages", nargs="*", help="such as benchmarks/matmul; by default all")
    parser.add_argument(
        "--changed", action="store_true", help="only those whose recording is of earlier code"
    )
    parser.add_argument(
        "--again", action="store_true", help="execute also what the cache of this machine holds"
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=PROCESSES,
        help="in how many processes pages measure, those recorded before with them; 10 by default",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=SPREAD,
        help="over how long the processes of a page are spread at least; 60 by default",
    )
    arguments = parser.parse_args()
    if arguments.processes < 1:
        parser.error("--processes must be 1 or more")
    options = Options.from_file()
    try:
        name = os.environ.get("BOOK_DEVICE") or devices.this_device(options)
    except RuntimeError as error:
        parser.error(f"{error}; set BOOK_DEVICE to the device that is meant")
    print(f"recording on {name}", flush=True)
    # A machine to record on may lack a framework; the cells that need it say so.
    options = dataclasses.replace(options, device=name, leave_out=True)
    # Whatever conf.py says, what is recorded is measured properly.
    options = dataclasses.replace(options, preview=False)
    loaded = features_or_exit(options)
    recordings = Recordings(options.folder("recordings"), kinds(loaded))
    pages, problems = read_pages(arguments.pages, options, loaded)
    if not (arguments.pages and problems):
        selected = select(pages, options, recordings, bool(arguments.pages), arguments.changed)
        measuring = [page for page in selected if page.benchmark]
        if differ := from_elsewhere(measuring or selected, options, recordings):
            anew = "; what is measured begins anew, with the first process" if measuring else ""
            print(f"what is recorded on {name} comes from elsewhere; here are {differ}{anew}")
        recorder = Recorder(options, recordings, loaded)
        recorder.record([page for page in selected if not page.benchmark], arguments.again)
        recorder.measure(measuring, arguments.processes, arguments.again, arguments.minutes)
        problems += recorder.problems
    for problem in problems:
        print(f"not recorded: {problem}", file=sys.stderr)
    if problems:
        print("What was recorded before is still there.", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
