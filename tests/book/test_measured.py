"""What is recorded of the CPU was measured as the page on method says."""

import datetime
import itertools
import pathlib

import pytest

from executed.hooks import features, kinds
from executed.options import Options
from executed.source.pages import read_page
from executed.source.snippets import Library
from executed.store.recordings import Recordings
from measured.feature import Measured, moved
from measured.recording import PROCESSES, SPREAD
from measured.schema import Measurement, parts

OPTIONS = Options.from_file()
MEASURED = Measured(OPTIONS)
KIND = MEASURED.kind
FEATURES = features(OPTIONS)
CELL_OPTIONS = {name for feature in FEATURES for name in feature.cell_options}
RECORDINGS = Recordings(OPTIONS.folder("recordings"), kinds(FEATURES))
PAGES = [
    path.relative_to(OPTIONS.folder("recordings") / "cpu").with_suffix("").as_posix()
    for path in sorted(pathlib.Path(OPTIONS.folder("recordings"), "cpu").glob("**/*.ipynb"))
]


def faults(page):
    """Say what of a recording is not as the book says, for a page that measures."""
    outputs = RECORDINGS.read("cpu", page)
    ran = [*map(datetime.datetime.fromisoformat, KIND.moments(outputs))]
    found = set()
    if ran and KIND.disturbed(outputs):
        found.add("disturbed")
    if ran and KIND.processes(outputs) < PROCESSES:
        found.add("few")
    if ran and max(ran) - min(ran) < datetime.timedelta(minutes=SPREAD - 1):
        found.add("close")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_ten_processes_that_nothing_disturbed_are_spread_over_an_hour(page):
    assert faults(page) == set()


DEVICES = sorted({*OPTIONS.devices} & {*RECORDINGS.devices()})


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_that_is_recorded_took_less_time_than_is_possible(device):
    """Published peaks allow each time, and no point lies above its roof with all of its range."""
    judge = MEASURED.judge
    known = judge.known(device, apart=False)
    assert judge.rooflines and known
    assert judge.above(known, known) == []
    library = Library.of(OPTIONS)
    for name in RECORDINGS.pages(device):
        if "\narrays: " in OPTIONS.page_files[name].read_text("utf8"):
            page = read_page(name, OPTIONS.page_files[name], library, cell_options=CELL_OPTIONS)
            outputs = RECORDINGS.read(device, name)
            found = [judge.too_fast(each, moved(page)) for each in judge.measured(outputs)]
            assert [problem for problem in found if problem] == []


# Of which measurements the range of processes spans more than a factor of five, and where a page
# says so. A first call is one sample of a process (docs/method.md).
MOST = 5
WIDE = {
    "busy/": ("timing/busy", "so a range may be wide"),
    "claims/picked": ("claims/jax_docs", "differ by more than a factor of five"),
    "decoding/length/new": ("benchmarks/decoding", "differs by more than a factor of five"),
}


def wide(page):
    """Return the names of what a page measures whose time has a range that wide."""
    for cell in RECORDINGS.read("cpu", page).cells:
        for part in itertools.chain.from_iterable(map(parts, KIND.records(cell.outputs))):
            number = Measurement.from_plain(part).range()
            if number and number.low > 0 and number.high / number.low > MOST:
                yield part["name"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_where_a_range_spans_more_than_a_factor_of_five(page):
    assert not [name for name in wide(page) if not name.startswith(tuple(WIDE))]


@pytest.mark.parametrize("name", WIDE)
def test_what_is_said_of_a_wide_range_stands_there(name):
    page, words = WIDE[name]
    assert words in pathlib.Path("docs", f"{page}.md").read_text("utf8")
    assert any(each.startswith(name) for each in wide(page))
