"""The kinds of pictures: what the data of each must be, and how they are drawn."""

import dataclasses
import html
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from drawing import svg
from drawing.numbers import seconds_text
from drawing.rows import Row, lanes, rows
from executed.frameworks import Colour
from executed.typed_json import NOT_NEGATIVE, Rule

SIDE = 52
SOME = Rule(bool, "not empty")
Name = Annotated[str, SOME]
Time = Annotated[float, NOT_NEGATIVE]
Length = Annotated[int, NOT_NEGATIVE]
Share = Annotated[float, Rule(lambda value: 0 <= value <= 1, "from 0 to 1")]
Part = list[Annotated[list[Length], Rule(lambda ends: len(ends) == 2, "a start and an end")]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of picture.

    expected: what its data are, in words.
    form: the type of its data, as `typed_json` has it.
    draw: returns the HTML of data that fit; raises ValueError for what the type cannot say.
    """

    expected: str
    form: Any
    draw: Callable[[Any], str]


@dataclasses.dataclass(frozen=True)
class Array:
    """An array, and which part of it each device holds."""

    shape: list[Length]
    devices: Annotated[dict[Name, Part], SOME]


@dataclasses.dataclass(frozen=True)
class Grid:
    """A share for each row and each column; several may have one name.

    texts: what the cells say, if it is not their shares.
    """

    rows: Annotated[list[Name], SOME]
    columns: Annotated[list[Name], SOME]
    shares: list[list[Share]]
    texts: list[list[str]] | None = None


def _ink(number: int) -> Colour:
    return svg.INKS[number % len(svg.INKS)]


def timeline(events: Sequence[tuple[str, str, float, float]], last: float = 0) -> str:
    """Draw events in their lanes, each from its start to its end, on an axis up to the last."""
    lanes_of: dict[str, list[Row]] = {}
    kinds = list(dict.fromkeys(label for _, label, *_ in events))
    for lane, label, start, end in events:
        if start > end:
            raise ValueError(f"'{label}' ends before it starts")
        hint = f"{lane}, {label}: from {seconds_text(start)} to {seconds_text(end)}"
        row = Row(label, "", start, end, hint, _ink(kinds.index(label)))
        lanes_of.setdefault(lane, []).append(row)
    end = max(end for *_, end in events)
    return lanes(lanes_of, "Timeline", f"{seconds_text(end)} in all", max(end, last) or 1)


def stages(times: Sequence[tuple[str, float]]) -> str:
    """Draw stages one after the other, each from the end of the one before."""
    ends = list(itertools.accumulate(seconds for _, seconds in times))
    stage_rows = [
        Row(
            label,
            seconds_text(seconds),
            end - seconds,
            end,
            f"{label}: {seconds_text(seconds)}, {seconds / (ends[-1] or 1):.0%} of the whole",
            _ink(number),
        )
        for number, ((label, seconds), end) in enumerate(zip(times, ends, strict=True))
    ]
    return rows({"": stage_rows}, "Stages", f"{seconds_text(ends[-1])} in all", "stages")


def memory(moments: Mapping[str, Mapping[str, int]]) -> str:
    """Draw how many bytes there are of each part, at one moment beneath the other."""
    parts: dict[str, list[Row]] = {}
    for moment, amounts in moments.items():
        for part, amount in amounts.items():
            parts.setdefault(part, [])
            text = _bytes_text(amount)
            hint = f"{part}, {moment}: {text}"
            ink = _ink(list(parts).index(part))
            parts[part].append(Row(moment, text, 0, amount, hint, ink))
    return rows(parts, "Memory", "memory", "memory")


def _bytes_text(amount: float) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if amount >= size:
            return f"{svg.number(round(amount / size, 1))} {unit}"
    return f"{amount} bytes"


def tree(data: Any) -> str:
    """Draw what holds what, as lists in lists."""
    if not isinstance(data, (dict, list)):
        raise ValueError("it holds nothing")
    return f'<div class="tree">{_branches(data)}</div>'


def _branches(data: Any) -> str:
    items = data.items() if isinstance(data, dict) else ((f"[{n}]", v) for n, v in enumerate(data))
    return f"<ul>{''.join(_branch(str(name), value) for name, value in items)}</ul>"


def _branch(name: str, value: Any) -> str:
    label = f"<span>{html.escape(name)}</span>"
    if isinstance(value, (dict, list)):
        return f"<li>{label}{_branches(value) if value else ''}</li>"
    leaf = "" if value is None else f" <code>{html.escape(str(value))}</code>"
    return f"<li>{label}{leaf}</li>"


def placement(arrays: Mapping[str, Array]) -> str:
    """Draw for each array which part of it each device holds; equal parts are of one colour."""
    return "".join(_placed(name, array.shape, array.devices) for name, array in arrays.items())


def _placed(name: str, shape: Sequence[int], devices: Mapping[str, Sequence[Sequence[int]]]) -> str:
    for device, part in devices.items():
        within = (
            start <= stop <= length for (start, stop), length in zip(part, shape, strict=False)
        )
        if len(part) != len(shape) or not all(within):
            raise ValueError(f"'{device}' cannot hold {part} of '{name}' of the shape {shape}")
    parts = list(dict.fromkeys(str(part) for part in devices.values()))
    split = [
        axis
        for axis, length in enumerate(shape)
        if any(part[axis] != [0, length] for part in devices.values())
    ]
    # Two axes at most can be drawn: those that are split, then the others in order.
    shown = sorted(list(dict.fromkeys([*split, *range(len(shape))]))[:2])
    items = "".join(
        f"<li>{_part(shape, part, shown, _ink(parts.index(str(part))))}"
        f"<span>{html.escape(device)}</span><code>{_slices(shape, part)}</code></li>"
        for device, part in devices.items()
    )
    lengths = " × ".join(map(str, shape)) or "scalar"
    title = f"{html.escape(name)} <code>{lengths}</code>"
    return f'<div class="placed"><p>{title}</p><ul>{items}</ul></div>'


def _part(
    shape: Sequence[int], part: Sequence[Sequence[int]], axes: Sequence[int], ink: Colour
) -> str:
    """Draw an array, and within it the part that a device holds."""
    sides = [
        (part[axis][0] / max(1, shape[axis]), (part[axis][1] - part[axis][0]) / max(1, shape[axis]))
        for axis in axes
    ]
    (top, height), (left, width) = ([(0.0, 1.0)] * 2 + sides)[-2:]
    high = SIDE if len(axes) > 1 else SIDE // 3
    return svg.element(
        "svg",
        svg.element("rect", class_="track", width="100%", height="100%"),
        svg.element(
            "rect",
            class_="bar",
            x=svg.percent(left),
            y=svg.percent(top),
            width=svg.percent(width),
            height=svg.percent(height),
        ),
        class_="drawing",
        style=ink.style,
        width=SIDE,
        height=high,
        aria_hidden="true",
    )


def _slices(shape: Sequence[int], part: Sequence[Sequence[int]]) -> str:
    """Write a part as it is indexed."""
    written = [
        ":" if [start, stop] == [0, length] else f"{start}:{stop}"
        for length, (start, stop) in zip(shape, part, strict=True)
    ]
    return f"[{', '.join(written)}]"


def grid(data: Grid) -> str:
    """Draw a table of shares; the larger one is, the more of the colour its cell has."""
    if {len(row) for row in data.shares} != {len(data.columns)}:
        raise ValueError(f"a row of shares has another length than the {len(data.columns)} columns")
    if len(data.shares) != len(data.rows):
        raise ValueError(f"there are {len(data.rows)} rows and {len(data.shares)} rows of shares")
    texts = data.texts
    if texts is None:
        texts = [[svg.number(round(share, 2)) for share in row] for row in data.shares]
    if [len(row) for row in texts] != [len(row) for row in data.shares]:
        raise ValueError("there is not one text for each share")
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in data.columns)
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(map(_share, shares, said))}</tr>'
        for name, shares, said in zip(data.rows, data.shares, texts, strict=True)
    )
    table = f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="grid" tabindex="0" style="{_ink(0).style}"><table>{table}</table></div>'


def _share(share: float, text: str) -> str:
    return f'<td style="--share:{share:.0%}">{html.escape(text)}</td>'


KINDS = {
    "timeline": Kind(
        "a list of (lane, event, start, end), times in seconds",
        Annotated[list[tuple[Name, Name, Time, Time]], SOME],
        timeline,
    ),
    "stages": Kind("a list of (stage, seconds)", Annotated[list[tuple[Name, Time]], SOME], stages),
    "tree": Kind("dicts and lists in each other, with texts and numbers as leaves", Any, tree),
    "placement": Kind(
        "a dict {array: {'shape': (…), 'devices': {device: ((start, stop), …)}}}",
        Annotated[dict[Name, Array], SOME],
        placement,
    ),
    "grid": Kind(
        "a dict {'rows': [name, …], 'columns': [name, …], 'shares': [[from 0 to 1, …], …]}, "
        "which may also have 'texts': [[text, …], …]",
        Grid,
        grid,
    ),
    "memory": Kind(
        "a dict {moment: {part: bytes}}",
        Annotated[dict[Name, Annotated[dict[Name, Length], SOME]], SOME],
        memory,
    ),
}
