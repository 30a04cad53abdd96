"""How measurements are written: seconds and ratios with their ranges, and whole records."""

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from drawing.numbers import rate_text, ratio_text, seconds_text, unit_of

from .ranges import Range
from .schema import CLOCKS, Measurement, single

DIGITS = (2, 3)
WRITTEN = {"rate": rate_text, "error": "{:.1e}".format, "least": seconds_text}
# What is said of a number that has no range between processes, and beside it.
ONE_PROCESS = "one process"
# By which factor a process is far from the median.
STRAY = 3
ONE_PROCESS_NOTE = f" ({ONE_PROCESS})"


def field_text(field: str, measurement: Measurement, with_range: bool = True) -> str:
    """Write the value of one field of a measurement."""
    value = getattr(measurement, field)
    if value is None:
        return ""
    if field in CLOCKS:
        seconds = measurement.range(field)
        assert seconds is not None
        return seconds_ranged(seconds) if with_range else seconds_text(value)
    return WRITTEN.get(field, str)(value)


def shape_text(measurement: Measurement) -> str:
    """Write the shapes of a measurement's arrays."""
    return ", ".join("×".join(map(str, shape)) or "scalar" for shape in measurement.shape)


def lines(record: Mapping[str, Any]) -> str:
    """Write what a record says, a line for each measurement, and how the first compares."""
    first, *others = measurements = [Measurement.from_plain(plain) for plain in single(record)]
    texts = []
    for measurement in measurements:
        name = f"{measurement.name} [{measurement.framework}]"
        text = f"{name} {field_text('latency', measurement)}"
        for words, field in (("of many", "throughput"), ("first call", "first_call")):
            if getattr(measurement, field):
                text += f", {words} {field_text(field, measurement)}"
        texts.append(text)
    for other in others:
        if ratio := first.ratio(other):
            sides = (f"{side.alternative} [{side.framework}]" for side in (first, other))
            texts.append(f"{' against '.join(sides)}: {compared(ratio)}")
    return "\n".join(texts)


def sampling(measurement: Measurement) -> str:
    """Say in sentences what a number was taken of."""
    processes = measurement.processes
    rounds = [len(process.latency) for process in processes]
    few, most = min(rounds), max(rounds)
    rounds_text = f"{few} rounds" if few == most else f"{few} to {most} rounds"
    text = f"{len(processes)} process{'es' * (len(processes) > 1)} of {rounds_text}"
    cores = [process.cores for process in processes if process.cores is not None]
    text += f", {statistics.median(cores):.1f} cores busy." if cores else "."
    if disturbed := sum(process.disturbed for process in processes):
        text += f" The machine did other work during {disturbed} of them."
    if dropped := sum(process.dropped for process in processes):
        text += f" Left out for want of a core: {dropped} of {sum(rounds) + dropped} rounds."
    return text


def in_groups(number: Range, write: Callable[[float], str]) -> list[str]:
    """Say where the processes fall into two groups."""
    texts = [f"{len(each)} around {write(statistics.median(each))}" for each in number.groups]
    return [f"The processes fall into two groups: {' and '.join(texts)}."] if texts else []


def strays(number: Range) -> list[str]:
    """Say how far from the median single processes are that are far off and form no group."""
    far = [] if number.groups else [each / number.value for each in number.processes]
    far = [each for each in far if not 1 / STRAY < each < STRAY]
    texts = " and ".join(map(ratio_text, far))
    processes = "1 process" if len(far) == 1 else f"{len(far)} processes"
    return [f"{processes} of {number.count} took {texts} the median."] if far else []


def _decimals(number: Range) -> int:
    """Return to which power of ten a number is written: no digit that its range does not bear."""
    largest = math.floor(math.log10(number.value))
    width = number.high - number.low
    borne = largest - math.floor(math.log10(width)) + 1 if width > 0 else DIGITS[1]
    return min(max(borne, DIGITS[0]), DIGITS[1]) - 1 - largest


def _rounded(value: float, places: int, is_ratio: bool = False) -> str:
    """Write a number with so many decimals, or none and zeros; two digits at least.

    A ratio has as many as tell it from 1.
    """
    while is_ratio and value != 1 and round(value, places) == 1:
        places += 1
    if value > 0:
        places = max(places, DIGITS[0] - 1 - math.floor(math.log10(value)))
    return f"{round(value, places):.{max(places, 0)}f}"


def ranged(number: Range, unit: str = "") -> str:
    """Write a number with its unit and, where it has one, its range."""
    places, is_ratio = _decimals(number), unit.startswith("×")
    value, low, high = (_rounded(part, places, is_ratio) for part in number.numbers)
    return f"{value}{unit}" + _around(number, low, high)


def _around(number: Range, low: str, high: str) -> str:
    """Write in brackets the range of a number, or that it has none."""
    if number.is_alone:
        return ONE_PROCESS_NOTE
    return f" ({low}–{high})" if number.low < number.high else ""


def seconds_ranged(number: Range) -> str:
    """Write seconds with a unit and their range."""
    unit, scale = unit_of(round(number.value, _decimals(number)))
    return ranged(number.scaled(scale), f" {unit}")


def calls_text(value: float) -> str:
    """Write a number of calls, a whole one."""
    calls = math.ceil(value)
    return f"{calls} call{'s' * (calls != 1)}"


def calls_ranged(number: Range) -> str:
    """Write a number of calls with its range: whole ones, and no digit that the range lacks."""
    places = min(_decimals(number), 0)
    value, low, high = (round(math.ceil(part), places) for part in number.numbers)
    return calls_text(value) + _around(number, f"{low}", f"{high}")


def compared(number: Range) -> str:
    """Say in one of three ways how a ratio compares the first with the second.

    One process decides nothing: what it measured stands without such words.
    """
    if number.is_alone:
        return f"{_of_one_process(number)} the time{ONE_PROCESS_NOTE}"
    if number.differs:
        word = "slower" if number.value > 1 else "faster"
        return ranged(number if number.value > 1 else number.inverse, f"× {word}")
    return _not_told(number)


def times(number: Range) -> str:
    """Write a ratio as a factor, or say that it is none that can be told from 1."""
    if number.is_alone:
        return _of_one_process(number) + ONE_PROCESS_NOTE
    return ranged(number, "×") if number.differs else _not_told(number)


def _of_one_process(number: Range) -> str:
    """Write the ratio of one process: two digits."""
    return f"{_rounded(number.value, 1 - math.floor(math.log10(number.value)))}×"


def _not_told(number: Range) -> str:
    if number.is_equal:
        percent = math.ceil(100 * math.expm1(number.distance) - 1e-9) or 1
        return f"about equal (within {percent} %)"
    return f"cannot tell ({_rounded(number.low, 1)}–{_rounded(number.high, 1)}×)"
