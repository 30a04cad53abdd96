"""List the recordings of every device: current, stale, missing, unreadable.

`nox -s recordings` calls it. It executes nothing and needs no framework.
"""

import collections
import sys

from ..measurements.schema import Schema
from ..options import Options
from ..records import recordings
from ..source.snippets import Library
from .record import RECORDED, SNIPPETS, read_pages


def states(pages):
    """Return {device: {page name: State}} for the pages and for recordings without a page."""
    by_name = {page.docname: page for page in pages}
    found = {}
    schema = Schema.of(Options.from_file())
    for device in recordings.devices(RECORDED):
        meant = {name for name, page in by_name.items() if page.device in (None, device)}
        names = sorted(meant | set(recordings.recorded_pages(RECORDED, device)))
        found[device] = {
            name: recordings.state(RECORDED, device, name, by_name.get(name), schema)
            for name in names
        }
    return found


def main():
    """Print the list, and leave with 1 where a strict build would fail."""
    pages, problems = read_pages([], Library(SNIPPETS))
    found = states(pages)
    for device, of_device in found.items():
        count = collections.Counter(state.word for state in of_device.values())
        print(f"{device}: " + ", ".join(f"{number} {word}" for word, number in count.items()))
        for name, state in of_device.items():
            print(f"  {name:<34} {state}")
    if not found:
        print(f"there are no recordings in {RECORDED}")
    red = [state for of_device in found.values() for state in of_device.values() if state.red]
    for problem in problems:
        print(problem, file=sys.stderr)
    if red:
        print(
            "A strict build fails on what is stale or unreadable. Record it again on its device "
            "with 'nox -s record -- PAGE', or remove the file.",
            file=sys.stderr,
        )
    sys.exit(1 if red or problems else 0)


if __name__ == "__main__":
    main()
