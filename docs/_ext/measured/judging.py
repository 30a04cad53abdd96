"""What a measurement must satisfy where it is recorded: no time less than is possible.

That is less than published peaks allow, or than the highest rates that were measured. A build asks
neither: on a machine that does other things a number may be anything.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from drawing.numbers import seconds_text
from executed.files import Unusable
from executed.options import Options
from executed.source.pages import Page
from executed.store.output_format import PageOutputs
from executed.store.recordings import Recordings

from .options import MeasuredOptions
from .processes import MeasurementKind
from .rooflines import Costs, Reached, by_pattern, reached, roofs
from .schema import Measurement, single

# The fastest process of a roof and one that is judged by it have had other moments.
SLACK = 1.1
CHART = re.compile(
    r"^[`:]{3,}\{measurement-chart\} (?P<patterns>.+)\n(?P<options>(?::[\w-]+:.*\n)+)", re.MULTILINE
)
# Says in the head of a page how many arrays as large as the first a call reads or writes at least.
HEAD = "arrays"
OPTION = re.compile(r"^:([\w-]+): *(.*)$", re.MULTILINE)


class Roofline(NamedTuple):
    """What a roofline of a page is made of, each by patterns over names."""

    points: Sequence[str]
    ceilings: Sequence[str]
    streams: Sequence[str]
    costs: Costs

    def reached(self, known: Iterable[Measurement], judged: Iterable[Measurement]) -> list[Reached]:
        """Return the judged measurements, with the known roofs of their processor."""
        points = [self.costs.with_work(each) for each in _matching(judged, self.points)]
        processors = {point.processor for point in points}
        known = [each for each in known if each.processor in processors]
        ceilings, streams = _matching(known, self.ceilings), _matching(known, self.streams)
        limits = roofs([*known, *points], ceilings, streams, self.costs)
        return reached(points, limits, self.costs) if limits else []


def rooflines_of(text: str) -> Iterator[Roofline]:
    """Yield the rooflines of a page."""
    for chart in CHART.finditer(text):
        options = dict(OPTION.findall(chart["options"]))
        if options.get("x") == "intensity":
            arrays, operations = (by_pattern(options.get(n, "")) for n in ("arrays", "operations"))
            ceilings, streams = (options.get(n, "").split() for n in ("ceiling", "bandwidth"))
            costs = Costs(arrays, operations)
            yield Roofline(chart["patterns"].split(), ceilings, streams, costs)


def _matching(measurements: Iterable[Measurement], patterns: Sequence[str]) -> list[Measurement]:
    return [m for m in measurements if any(fnmatch.fnmatchcase(m.name, p) for p in patterns)]


class Judge:
    """Judges the measurements of pages by published peaks and by a device's recordings."""

    def __init__(self, options: Options, kind: MeasurementKind) -> None:
        """Take the options and the kind of output that measurements are."""
        self.options, self.kind = options, kind
        self.recordings = Recordings(options.folder("recordings"), (kind,))

    @functools.cached_property
    def rooflines(self) -> list[Roofline]:
        """The rooflines of all pages."""
        texts = (path.read_text("utf8") for path in self.options.page_files.values())
        return [roofline for text in texts for roofline in rooflines_of(text)]

    def measured(self, outputs: PageOutputs, apart: bool = False) -> Iterator[Measurement]:
        """Yield what a page measured; with `apart` what each of its processes did."""
        for cell in outputs.cells:
            for record in self.kind.records(cell.outputs):
                if self.kind.problem(record) is None:
                    for plain in single(record):
                        yield from map(Measurement.from_plain, _processes(plain, apart))

    @functools.cache  # noqa: B019
    def known(self, device: str, apart: bool) -> Sequence[Measurement]:
        """Return what was measured on a device, once: what is recorded meanwhile adds little."""
        found = list[Measurement]()
        for page in self.recordings.pages(device):
            try:
                outputs = self.recordings.read(device, page)
            except Unusable:
                continue
            found += self.measured(outputs, apart) if outputs else ()
        return found

    def too_fast(self, measurement: Measurement, arrays: Mapping[str, float]) -> str:
        """Say that something took less time than published peaks allow, if it did."""
        peaks = self.options.of(MeasuredOptions).peaks.get(measurement.device_kind or "")
        least = Costs(arrays, {}).least(measurement, peaks) if peaks else None
        if least is None or measurement.seconds >= least:
            return ""
        took, limit = seconds_text(measurement.seconds), seconds_text(least)
        return f"{measurement.reference} took {took}, less than the {limit} of published peaks"

    def refusal(self, page: Page, outputs: PageOutputs) -> str:
        """Say why what a process of a page measured is not recorded; empty where it is."""
        try:
            arrays = moved(page)
        except ValueError as error:
            return str(error)
        judged = list(self.measured(outputs, apart=True))
        problems = [self.too_fast(each, arrays) for each in judged]
        names = {each.name for each in judged}
        others = self.known(outputs.facts.device, True) if self._drawn(names) else []
        problems += self.above([*judged, *others], judged, SLACK)
        return next(filter(None, problems), "")

    def _drawn(self, names: Iterable[str]) -> bool:
        """Say whether a roofline shows anything of these names."""
        patterns = [pattern for roofline in self.rooflines for pattern in roofline.points]
        return any(fnmatch.filter([*names], pattern) for pattern in patterns)

    def above(
        self, known: Sequence[Measurement], judged: Sequence[Measurement], slack: float = 1
    ) -> list[str]:
        """Say of what was judged that it lies above a roof with all of its range."""
        points = (each for line in self.rooflines for each in line.reached(known, judged))
        return list(dict.fromkeys(each.problem for each in points if each.is_above(slack)))


def _processes(plain: dict[str, Any], apart: bool) -> list[dict[str, Any]]:
    """Return a record, or one for each of its processes."""
    return [{**plain, "processes": [each]} for each in plain["processes"]] if apart else [plain]


def moved(page: Page) -> dict[str, float]:
    """Return what the head of a page says of the arrays that a call moves; raises ValueError."""
    try:
        return by_pattern(str(page.notebook.metadata.get(HEAD, "")))
    except ValueError:
        raise ValueError(f"'{HEAD}' in the head must say such as a/b=2 a/*=1") from None
