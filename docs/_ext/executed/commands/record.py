"""Record what pages print on this machine's device. `nox -s record` calls it.

It needs the frameworks and the group `record` of pyproject.toml, but neither Sphinx nor a network:

    PYTHONPATH=docs/_ext python -m executed.commands.record [--changed] [--again] [page ...]

What the cache of this machine holds already is recorded without being executed. Features may record
pages in their own way: those that measure are executed in several processes, see
`measured.recording`.
"""

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterable, Sequence

from ..hooks import Feature, FeatureError, features, kinds
from ..names import nearest
from ..options import Options
from ..run import devices
from ..run.recorder import Recorder
from ..source.pages import Page, PageError, read_page
from ..source.snippets import Library
from ..store.recordings import Recordings


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
        elif page.record_command and not named:
            print(
                f"      left out {page.docname}, which is recorded by "
                f"'{page.record_command} {page.docname}'"
            )
        elif not (changed and recordings.state(options.device, page.docname, page)[0].current):
            selected.append(page)
    return selected


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
    options = Options.from_file()
    for feature in features_or_exit(options):
        feature.add_arguments(parser)
    arguments = parser.parse_args()
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
        recorder = Recorder(options, recordings)
        own = {feature: [*filter(feature.records, selected)] for feature in loaded}
        taken = {page.docname for pages in own.values() for page in pages}
        plain = [page for page in selected if page.docname not in taken]
        if differ := recorder.from_elsewhere(plain):
            print(f"what is recorded on {name} comes from elsewhere; here are {differ}")
        recorder.record(plain, arguments.again)
        for feature, pages in own.items():
            feature.record(pages, recorder, arguments)
        problems += recorder.problems
    for problem in problems:
        print(f"not recorded: {problem}", file=sys.stderr)
    if problems:
        print("What was recorded before is still there.", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
