"""Record what pages come to with the version of a framework that is installed.

`nox -s jax_versions` calls it in an environment of each version. It needs what the recording on
a device needs, and leaves what it records in a folder of its own:

    PYTHONPATH=docs python -m _ext.commands.versions [page ...]

Pages that `book_versions` of conf.py names as `without` are left out: they need more than the
package. On a version that the book supports every other page must go well. On another an outcome
that a page does not declare is recorded like any other, and the cells that need what a failed one
would have made are left out. There a prelude is executed before each page, which gives names of
today to what the version has under others.
"""

import argparse
import dataclasses
import importlib.metadata
import sys
from typing import Any

from ..options import Options
from ..records.recordings import Recordings
from . import record


def of_version(options: Options, version: str) -> tuple[Options, str]:
    """Return the options to record one version with, and what its edition is called."""
    known: Any = options.versions
    edition = f"{known['package']}-{version}"
    old = version not in known["supported"]
    changed = dataclasses.replace(
        options,
        device="cpu",
        leave_out=True,
        any_outcome=old,
        prelude=(options.root / known["prelude"]).read_text("utf8") if old else "",
        cache=f"{options.cache}/{edition}",
        record_command=known["command"],
    )
    return changed, edition


def main() -> None:
    """Read the command line, and leave with 1 where a page could not be recorded."""
    parser = argparse.ArgumentParser(prog="versions", description="Record pages on this version.")
    parser.add_argument("pages", nargs="*", help="such as pitfalls/control_flow; by default all")
    parser.add_argument("--jobs", type=int, help="pages to execute at once")
    asked = parser.parse_args()
    options = Options.from_file()
    recordings = Recordings.of_versions(options, record.schema(options))
    if recordings is None:
        parser.error("conf.py has no book_versions")
    version = importlib.metadata.version(options.versions["package"])
    if version not in options.versions["recorded"]:
        parser.error(
            f"{options.versions['package']} {version} is installed, and conf.py lists "
            f"{', '.join(options.versions['recorded'])}"
        )
    options, edition = of_version(options, version)
    print(f"recording {edition}", flush=True)
    problems = record.record(asked.pages, options, asked.jobs, recordings, edition)
    for problem in problems:
        print(f"not recorded: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
