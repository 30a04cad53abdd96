"""List the recordings of every device: current, stale, missing, unreadable.

`nox -s recordings` calls it. It executes nothing and needs no framework.
"""

import collections
import sys
from collections.abc import Iterable

from ..options import Options
from ..records.recordings import Recordings
from ..records.states import State
from ..source.pages import Page
from .record import read_pages, schema


def states(pages: Iterable[Page], recordings: Recordings) -> dict[str, dict[str, State]]:
    """Return {device: {page name: State}} for the pages and for recordings without a page."""
    by_name = {page.docname: page for page in pages}
    found = {}
    for device in recordings.devices():
        meant = {name for name, page in by_name.items() if not recordings.refusal(page, device)}
        names = sorted(meant | set(recordings.pages(device)))
        found[device] = {
            name: recordings.state(device, name, by_name.get(name))[0] for name in names
        }
    return found


def main() -> None:
    """Print the list, and leave with 1 where a strict build would fail."""
    options = Options.from_file()
    pages, problems = read_pages([], options)
    rules = schema(options)
    found = states(pages, Recordings(options.folder("recordings"), rules))
    if of_versions := Recordings.of_versions(options, rules):
        found |= states(pages, of_versions)
    for device, of_device in found.items():
        count = collections.Counter(state.word for state in of_device.values())
        print(f"{device}: " + ", ".join(f"{number} {word}" for word, number in count.items()))
        for name, state in of_device.items():
            print(f"  {name:<34} {state}")
    if not found:
        print(f"there are no recordings in {options.recordings}")
    red = [state for of_device in found.values() for state in of_device.values() if state.red]
    for problem in problems:
        print(problem, file=sys.stderr)
    if red:
        print(
            "A strict build fails on what is stale or unreadable. Record it again on its device "
            f"with '{options.record_command} PAGE', or remove the file.",
            file=sys.stderr,
        )
    sys.exit(1 if red or problems else 0)


if __name__ == "__main__":
    main()
