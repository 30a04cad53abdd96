"""What pages show of a reader's own measurements, computed once: by the command, for its file.

The command's package holds this module and those that it imports. The scripts of a page put texts
and marks in their places, and compute nothing: a reader's numbers are written, compared and judged
as the book's are. What a page asks for has the key under which the file has the answer.
"""

import dataclasses
import fnmatch
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .expressions import ReferenceProblem, read
from .ranges import ENOUGH
from .references import Answered, Measurements, fastest
from .rooflines import Costs, Roofs, by_pattern, roofs
from .schema import CLOCKS, Measurement, single
from .texts import field_text, shape_text
from .works import Work, answer, best

# What the machine of a reader is called among devices.
MINE = "yours"
# Letters of a name that people give, and of a text on a page: read.js takes no longer one.
NAMED, LONGEST = 200, 1000
# What of a record's settings is a variable of the environment; two are the book's own.
VARIABLE = re.compile(r"(?!GOMP_SPINCOUNT|OPENBLAS_THREAD_TIMEOUT)[A-Z_\d]{5,}")


@dataclasses.dataclass(frozen=True)
class Book:
    """What the package knows of the book.

    `roles` are (role, text) of all sentences, `works` the lines of the table of the fastest,
    `rooflines` the options of charts over intensities, {"patterns": names} among them. `numbers`
    are {device: {reference: what was recorded}}, the device of the site first, and `labels` what
    frameworks are called.
    """

    roles: Sequence[tuple[str, str]]
    works: Sequence[str]
    rooflines: Sequence[Mapping[str, str]]
    numbers: Mapping[str, Mapping[str, Mapping[str, Any]]]
    labels: Mapping[str, str]

    @property
    def measurements(self) -> Measurements:
        """What was recorded, as far as it decides which is the fastest."""
        found = (
            _recorded(device, reference, of)
            for device, each in self.numbers.items()
            for reference, of in each.items()
        )
        return _known(found, next(iter(self.numbers)), tuple(self.numbers))


def _recorded(device: str, reference: str, of: Mapping[str, Any]) -> Measurement:
    """Return a measurement of the book from the medians of its processes."""
    name, _, framework = reference.partition("@")
    times = itertools.zip_longest(of["latency"], of["throughput"])
    known: dict[str, Any] = {"name": name, "framework": framework, "device": device}
    known |= {"dtype": "", "precision": "", "work": None, "error": None, "settings": {}}
    process = {"date": of["date"], "first_call": None, "calls": 1}
    known["processes"] = [
        {**process, "latency": [one], "throughput": many and [many]} for one, many in times
    ]
    return Measurement.from_plain({**of, **known})


def _known(found: Iterable[Measurement], home: str, devices: Sequence[str]) -> Measurements:
    by_name: dict[tuple[str, str], dict[str, Measurement]] = {}
    for each in found:
        by_name.setdefault((each.name, each.framework), {})[each.device] = each
    return Measurements(by_name, home, devices, (), partial=True)


def shown(file: Mapping[str, Any], book: Book) -> dict[str, Any]:
    """Return what pages show of a file: see the keys."""
    records = itertools.chain.from_iterable(map(single, file["records"]))
    mine = [Measurement.from_plain({**each, "device": MINE}) for each in records]
    known, limits = book.measurements, _limits(mine, book.rooflines)
    worked = [_with_work(each, book.rooflines) for each in mine]
    numbers = {each.reference: dict(_numbers(each, mine)) for each in worked}
    return {
        "about": about(file["machine"], file["date"][:10], mine),
        "numbers": numbers,
        "answers": dict(_answers(mine, book.roles, known)),
        "fastest": dict(_works(mine, book)),
        "roofs": limits and {**limits._asdict(), "texts": limits.texts},
    }


def about(machine: str, date: str, mine: Sequence[Measurement]) -> str:
    """Say on which machine and when all was measured, with notes on its numbers."""
    versions = {f"{each.framework} {each.version}": None for each in mine if each.version}
    fewest = min(len(each.processes) for each in mine)
    parts = [_short(machine, NAMED), *versions, date]
    if 1 < fewest < ENOUGH:
        parts.append(f"a range of {fewest} processes misses 1 median in {2 ** (fewest - 1)}")
    parts += _switches(mine)
    if disturbed := sum(map(_disturbed, mine)):
        parts.append(f"other programs ran beside {disturbed} of {len(mine)} measurements")
    return _short(", ".join(parts), LONGEST)


def _short(text: str, most: int) -> str:
    """Return a text, or its beginning: a page shows no more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _switches(of: Iterable[Measurement]) -> list[str]:
    """Say which variables of the environment were set."""
    settings = (item for each in of for item in each.settings.items())
    names = dict.fromkeys(_short(f"{k}={value}", NAMED) for k, value in settings if _is_variable(k))
    return [f"with {' and '.join(names)}"] if names else []


def _is_variable(name: str) -> bool:
    return VARIABLE.fullmatch(name) is not None


def _disturbed(of: Measurement) -> bool:
    return any(process.disturbed for process in of.processes)


def _marked(text: str, of: Sequence[Measurement]) -> str:
    """Return a text with the notes on its numbers."""
    marks = [*_switches(of), *(["disturbed"] if any(map(_disturbed, of)) else [])]
    return _short(", ".join([text, *marks]), LONGEST)


def _kinds(of: Iterable[Measurement], everything: Iterable[Measurement]) -> str:
    """Return beside which devices something may stand, in words.

    What was measured on a CPU stands beside a CPU. All of a machine with an accelerator stands
    beside such a machine: what NumPy measured there, too.
    """
    cpu = [] if any(each.accelerated for each in of) else ["cpu"]
    return " ".join(cpu + ["accelerator"] * any(each.accelerated for each in everything))


def _numbers(of: Measurement, mine: Sequence[Measurement]) -> Iterator[tuple[str, Any]]:
    """Yield what stands for a measurement: shape, kinds of device, and numbers with their texts."""
    yield "shape", shape_text(of)
    yield "on", _kinds([of], mine)
    for field in (*CLOCKS, "rate"):
        if value := getattr(of, field):
            texts = _marked(field_text(field, of), [of]), field_text(field, of, with_range=False)
            yield field, [value, *texts]


def _answers(
    mine: Sequence[Measurement], roles: Iterable[tuple[str, str]], known: Measurements
) -> Iterator[tuple[str, list[str]]]:
    """Yield the answer of each role that the file can answer, with the devices it may stand beside.

    The functions of a role for the fastest are those that the book found to be the fastest. What
    compares two devices of the book has no answer.
    """
    own = _known(mine, MINE, (MINE,))
    for role, text in roles:
        try:
            asked = read(role, text)
            asked = fastest(asked, known) if asked.patterns else asked
            terms = tuple(dataclasses.replace(each, device="") for each in asked.terms)
            if len({each.device for each in asked.terms}) != 1:
                continue
            found = Answered.of(dataclasses.replace(asked, terms=terms), own)
        except ReferenceProblem:
            continue
        if found.quantity:
            said, sources = found.quantity.text, found.quantity.sources
            told = said if said.startswith(found.verdict) else f"{found.verdict}: {said}"
            yield asked.key, [_marked(told, sources), _kinds(sources, mine)]


def _works(mine: Sequence[Measurement], book: Book) -> Iterator[tuple[str, list[str]]]:
    """Yield for each work which framework is fastest, in words, and who leads."""
    for line in book.works:
        work = Work.from_line(line)
        if bests := best(each for each in mine if work.counts(each.name)):
            said = answer(bests, lambda name: book.labels.get(name, name))
            yield work.line, [_marked(said.text, bests), " ".join(said.leading)]


def _matching(mine: Iterable[Measurement], patterns: str) -> list[Measurement]:
    return [
        each
        for each in mine
        if any(fnmatch.fnmatchcase(each.name, pattern) for pattern in patterns.split())
    ]


def _costs(options: Mapping[str, str]) -> Costs:
    return Costs(by_pattern(options["arrays"]), by_pattern(options.get("operations", "")))


def _with_work(of: Measurement, rooflines: Iterable[Mapping[str, str]]) -> Measurement:
    """Return a measurement with the operations of a call, where a roofline declares them."""
    for options in rooflines:
        if _matching([of], options["patterns"]):
            return _costs(options).with_work(of)
    return of


def _limits(mine: Sequence[Measurement], rooflines: Iterable[Mapping[str, str]]) -> Roofs | None:
    """Return the roofs of the machine, if its file has them."""
    for options in rooflines:
        costs = _costs(options)
        points = [costs.with_work(each) for each in _matching(mine, options["patterns"])]
        ceilings = _matching(mine, options["ceiling"])
        streams = _matching(mine, options["bandwidth"])
        if found := roofs([*mine, *points], ceilings, streams, costs):
            return found
    return None
