"""Record what pages print on this machine's device. `nox -s record` calls it.

It needs the frameworks and what requirements/record.txt lists, but neither Sphinx nor a network:

    PYTHONPATH=docs python -m _ext.commands.record [--changed] [--again] [page ...]

What the cache of this machine holds already is recorded without being executed.
"""

import argparse
import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterable, Sequence

from .. import files
from ..execution import devices
from ..execution.page_run import used_versions
from ..execution.results import Result, run_or_load
from ..measurements.schema import Schema, SchemaError
from ..names import nearest
from ..options import Options
from ..records.markup import Refused
from ..records.recordings import Recordings
from ..source.pages import Page, PageError, find_pages, read_page
from ..source.snippets import Library

PROCESSES = 3


def read_pages(names: Sequence[str], options: Options) -> tuple[list[Page], list[str]]:
    """Return the pages with code, all or those named, and the problems met."""
    found = find_pages(options.folder("pages"))
    library = Library.of(options)
    pages, problems = [], []
    for name in names or found:
        name = name.removeprefix(f"{options.pages}/").removesuffix(".md")
        if name not in found:
            problems.append(f"there is no page '{name}'{nearest(name, found)}")
            continue
        try:
            page = read_page(name, found[name], library)
        except PageError as error:
            problems.append(f"{found[name]}:{error.line}: {error}")
            continue
        if page is not None:
            pages.append(page)
        elif names:
            problems.append(f"the page '{name}' has no code to execute")
    return pages, problems


def schema(options: Options) -> Schema | None:
    """Return the schema of measurements that conf.py names; leaves where it is none."""
    try:
        return Schema.of(options)
    except SchemaError as error:
        raise SystemExit(f"book_measurements of conf.py: {error}") from None


def chosen(
    pages: Sequence[Page], options: Options, recordings: Recordings, named: bool, changed: bool
) -> list[Page]:
    """Return the pages to record on this device, and say which are not.

    A page with a command of its own is recorded where it is `named` alone. Of those that are
    `changed` the code is not that of their recording.
    """
    found = []
    for page in pages:
        if page.device not in (None, options.device):
            print(f"      left out {page.docname}, which is executed on {page.device} only")
        elif page.recorded and not named:
            print(
                f"      left out {page.docname}, which is recorded by "
                f"'{page.recorded} {page.docname}'"
            )
        elif not changed or recordings.state(options.device, page.docname, page)[0].word != (
            "current"
        ):
            found.append(page)
    return found


def record(
    pages: Iterable[Page],
    options: Options,
    jobs: int | None,
    recordings: Recordings,
    again: bool = False,
) -> list[str]:
    """Execute pages and record each that goes well; return the problems met.

    What the cache holds is executed `again` if that is wanted.
    """
    problems: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)

    def trouble(page: Page, message: str) -> None:
        say(f"      {page.docname}: {message}")

    def done(result: Result) -> None:
        file = f"{options.pages}/{result.page.docname}.md"
        if result.failures:
            problems.extend(
                f"{file}:{failure.line}: {failure.message}" for failure in result.failures
            )
            return
        try:
            command = result.page.recorded or options.record_command
            path = recordings.write(result.outputs, command)
        except (files.Unusable, Refused) as error:
            problems.append(f"{file}: its outputs cannot be recorded: {error}")
            return
        except OSError as error:
            problems.append(f"{file}: its recording cannot be written: {error.strerror or error}")
            return
        left = sorted({cell.missing for cell in result.outputs.cells if cell.missing})
        missing = f", but for cells that need {' or '.join(left)}" if left else ""
        if path is None:
            say(f"      {result.page.docname}: the same as recorded")
        else:
            say(f"      recorded {path}{missing}")

    run_or_load(pages, options, done, say, trouble, jobs, again)
    return problems


def other_versions(options: Options, recordings: Recordings) -> str:
    """Say where the recordings of this device are of other versions than those installed."""
    here = used_versions(options)
    for name in recordings.pages(options.device):
        with contextlib.suppress(files.Unusable):
            if outputs := recordings.read(options.device, name):
                there = outputs.facts.versions
                words = [
                    f"{package} {here[package]}, not {there[package]}"
                    for package in here.keys() & there.keys()
                    if here[package] != there[package]
                ]
                return ", ".join(sorted(words))
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
        "--jobs",
        type=int,
        help="pages to execute at once; by default one on an accelerator, and one for each core "
        "on a CPU. Pages that measure are always executed alone",
    )
    asked = parser.parse_args()
    if asked.jobs is not None and asked.jobs < 1:
        parser.error("--jobs must be 1 or more")
    options = Options.from_file()
    try:
        name = os.environ.get("BOOK_DEVICE") or devices.this_device(options)
    except RuntimeError as error:
        parser.error(f"{error}; set BOOK_DEVICE to the device that is meant")
    print(f"recording on {name}", flush=True)
    # One process is one draw of a lottery: where things lie in memory is settled at its start.
    options = dataclasses.replace(options, processes=max(PROCESSES, options.processes))
    # A machine to record on may lack a framework; the cells that need it say so.
    options = dataclasses.replace(options, device=name, leave_out=True)
    # Whatever conf.py says, what is recorded is measured properly.
    options = dataclasses.replace(options, preview=False)
    recordings = Recordings(options.folder("recordings"), schema(options))
    if differ := other_versions(options, recordings):
        print(f"what is recorded on {name} comes from other versions; here are {differ}")
    pages, problems = read_pages(asked.pages, options)
    if not (asked.pages and problems):
        meant = chosen(pages, options, recordings, bool(asked.pages), asked.changed)
        problems += record(meant, options, asked.jobs, recordings, asked.again)
    for problem in problems:
        print(f"not recorded: {problem}", file=sys.stderr)
    if problems:
        print("What was recorded before is still there.", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
