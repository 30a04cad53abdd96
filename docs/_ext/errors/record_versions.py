"""Record what declared errors come to with the version of a framework that is installed.

`nox -s jax_versions` calls it in an environment of each version. It needs what the recording on
a device needs, and leaves what it records in one file a version:

    PYTHONPATH=docs/_ext python -m errors.record_versions [--changed] [page ...]

A page is executed up to the last cell of which something is kept, see `records.versions`. Pages
that `book_versions` of conf.py names as `without` are left out: they need more than the package.
On a version that the book supports every other page must go well. On another an outcome that a
page does not declare is kept like any other, and the cells that need what a failed one would have
made are left out. There a prelude is executed before each page, which gives names of today to what
the version has under others.
"""

import argparse
import dataclasses
import importlib.metadata
import sys

from executed import files
from executed.commands import record
from executed.hooks import features
from executed.options import Options
from executed.run.outcome import Result
from executed.run.results import run_or_load

from .options import ErrorOptions
from .version_files import Versions, recorded_cells, recorded_pages, text_of


def version_options(options: Options, version: str) -> tuple[Options, str]:
    """Return the options to record one version with, and what it is called."""
    spec = options.of(ErrorOptions).versions
    name = f"{spec.package}-{version}"
    old = version not in spec.supported
    changed = dataclasses.replace(
        options,
        device="cpu",
        leave_out=True,
        any_outcome=old,
        prelude=(options.root / spec.prelude).read_text("utf8") if old else "",
        cache=f"{options.cache}/{name}",
        # Nothing that is measured is kept.
        preview=True,
    )
    return changed, name


def main() -> None:
    """Read the command line, and leave with 1 where a page could not be recorded."""
    parser = argparse.ArgumentParser(prog="versions", description="Record pages on this version.")
    parser.add_argument("pages", nargs="*", help="such as pitfalls/control_flow; by default all")
    parser.add_argument(
        "--changed", action="store_true", help="only those of which a text is left out"
    )
    arguments = parser.parse_args()
    options = Options.from_file()
    spec = options.of(ErrorOptions).versions
    if not spec.package:
        parser.error("conf.py has no book_versions")
    version = importlib.metadata.version(spec.package)
    if version not in spec.recorded:
        parser.error(
            f"{spec.package} {version} is installed, and conf.py lists {', '.join(spec.recorded)}"
        )
    options, name = version_options(options, version)
    versions = Versions(options)
    print(f"recording {name}", flush=True)
    read, problems = record.read_pages(arguments.pages, options, features(options))
    pages = recorded_pages(read, options)
    try:
        if arguments.changed:
            pages = [page for page in pages if versions.count_missing(name, page)]
        everything = not arguments.pages and not problems
        gone = versions.pages(name) - {page.docname for page in recorded_pages(read, options)}
    except files.Unusable as error:
        parser.error(f"{versions.path(name)}: {error}; restore the file, or remove it")

    paths = options.page_files

    def done(result: Result) -> None:
        page, outputs = result.page, result.outputs
        file = paths[page.docname]
        if result.failures:
            problems.extend(f"{file}:{f.line}: {f.message}" for f in result.failures)
            return
        texts = [
            text_of(code, cell, cell_outputs)
            for code, cell in recorded_cells(page).items()
            if (cell_outputs := outputs.cell(cell.key)) is not None
        ]
        try:
            facts = outputs.facts.versions
            versions.write(name, page.docname, texts, facts, gone if everything else set())
        except (OSError, files.Unusable) as error:
            problems.append(f"{file}: its texts cannot be kept: {error}")

    run_or_load(
        pages,
        options,
        done,
        lambda line: print(line, flush=True),
        lambda page, message: print(f"      {page.docname}: {message}", flush=True),
    )
    for problem in problems:
        print(f"not recorded: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
