"""List the recordings of every device and version by age, and say which are of earlier code.

`nox -s recordings` calls it. It executes nothing and needs no framework. With `--check` it leaves
with 1 where a recording is not of the code of today: a gate for whoever publishes.
"""

import argparse
import collections
import sys
from collections.abc import Iterable

from ..hooks import kinds
from ..options import Options
from ..source.pages import Page
from ..store.recordings import Recordings
from ..store.states import Standing, State
from .record import features_or_exit, read_pages


def states(
    pages: Iterable[Page], recordings: Recordings, home: str
) -> dict[str, dict[str, tuple[State, str]]]:
    """Return {device: {page: (State, day)}}, the oldest first, of all recordings that there are.

    Of the device that is `home` those that are missing are among them.
    """
    by_name = {page.docname: page for page in pages}
    by_device = {}
    for device in dict.fromkeys([home, *recordings.devices()]):
        by_page = {}
        for name in sorted({*recordings.pages(device), *(by_name if device == home else ())}):
            page = by_name.get(name)
            if page and page.device not in (None, device) and device == home:
                continue
            state, outputs = recordings.state(device, name, page)
            by_page[name] = state, outputs.facts.day if outputs else ""
        by_device[device] = dict(sorted(by_page.items(), key=lambda item: item[1][1]))
    return by_device


def main() -> None:
    """Print the list, and with `--check` leave with 1 where something is not current."""
    parser = argparse.ArgumentParser(prog="recordings", description="List the recordings.")
    parser.add_argument("--check", action="store_true", help="fail where one is not current")
    arguments = parser.parse_args()
    options = Options.from_file()
    features = features_or_exit(options)
    pages, problems = read_pages([], options, features)
    recordings = Recordings(options.folder("recordings"), kinds(features))
    by_device = states(pages, recordings, options.home)
    current = not problems
    for device, by_page in by_device.items():
        count = collections.Counter(state.standing for state, _ in by_page.values())
        print(f"{device}: " + ", ".join(f"{number} {word}" for word, number in count.items()))
        for name, (state, day) in by_page.items():
            print(f"  {day:<10} {name:<34} {state}")
        current = current and set(count) <= {Standing.CURRENT}
    for name, standing in [item for feature in features for item in feature.listed(pages).items()]:
        print(f"{name}: {standing}")
        current = current and standing == Standing.CURRENT
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"'{options.record_command} --changed' records what is not current on this device.")
    sys.exit(1 if problems or (arguments.check and not current) else 0)


if __name__ == "__main__":
    main()
