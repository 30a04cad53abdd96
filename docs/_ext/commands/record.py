"""Record what pages print on this machine's device. `nox -s record` calls it.

It needs the frameworks and what requirements/record.txt lists, but neither Sphinx nor a network:

    PYTHONPATH=docs python -m _ext.commands.record [page ...]
"""

import argparse
import difflib
import os
import pathlib
import subprocess
import sys

from ..execution import schedule as execute
from ..measurements.schema import Schema
from ..options import Options
from ..records import recordings
from ..records import sanitising as foreign
from ..source.pages import PageError, find_pages, read_page
from ..source.snippets import Library, SnippetError

PAGES = pathlib.Path("docs")
RECORDED = PAGES / "_recorded"
SNIPPETS = "snippets"


def this_device():
    """Return the short name of the device that JAX finds on this machine."""
    # In a process of its own: asking JAX takes hold of the device.
    code = f"import jax, runpy; print(runpy.run_path({str(execute.KERNEL)!r})['device']()[0])"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("JAX cannot be asked for its device; is it installed?")
    return done.stdout.splitlines()[-1]


def read_pages(names, library):
    """Return the pages with code, all or those named, and the problems met."""
    found = find_pages(PAGES)
    pages, problems = [], []
    for name in names or found:
        name = name.removeprefix(f"{PAGES}/").removesuffix(".md")
        if name not in found:
            near = difflib.get_close_matches(name, found, n=3, cutoff=0.4)
            hint = f"; the nearest are {', '.join(near)}" if near else ""
            problems.append(f"there is no page '{name}'{hint}")
            continue
        try:
            page = read_page(name, found[name], library)
        except (PageError, SnippetError) as error:
            problems.append(f"{found[name]}:{getattr(error, 'line', 1)}: {error}")
            continue
        if page is not None:
            pages.append(page)
        elif names:
            problems.append(f"the page '{name}' has no code to execute")
    return pages, problems


def record(names, device):
    """Execute pages and record each that goes well; return the problems met."""
    pages, problems = read_pages(names, Library(SNIPPETS))
    if names and problems:
        return problems
    schema = Schema.of(Options.from_file())

    def done(page, execution):
        if execution.failures:
            problems.extend(
                f"{PAGES / page.docname}.md:{failure.line}: {failure.message}"
                for failure in execution.failures
            )
            return
        try:
            path = recordings.write(RECORDED, page, execution.facts, schema)
        except (recordings.RecordingError, foreign.Refused) as error:
            problems.append(f"{PAGES / page.docname}.md: its outputs cannot be recorded: {error}")
            return
        left = sorted(set(execution.facts["skipped"].values()))
        missing = f", but for cells that need {' or '.join(left)} (not installed)" if left else ""
        print(f"      recorded {path}{missing}", flush=True)

    meant = [page for page in pages if page.device in (None, device)]
    for page in pages:
        if page not in meant:
            print(f"      left out {page.docname}, which is executed on {page.device} only")
    limits = execute.Limits(execute.CELL_TIMEOUT, execute.PAGE_TIMEOUT, device)
    execute.execute_all(meant, limits, done, {}, lambda line: print(line, flush=True))
    return problems


def main():
    """Read the command line, and leave with 1 where a page could not be recorded."""
    parser = argparse.ArgumentParser(prog="record", description="Record pages on this device.")
    parser.add_argument("pages", nargs="*", help="such as benchmarks/matmul; by default all")
    names = parser.parse_args().pages
    device = os.environ.get("BOOK_DEVICE") or this_device()
    print(f"recording on {device}", flush=True)
    problems = record(names, device)
    for problem in problems:
        print(f"not recorded: {problem}", file=sys.stderr)
    if problems:
        print("What was recorded before is still there.", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
