"""Find the lines of a function's code that the lines of its programs come from.

JAX writes down for each equation which lines were running when it was traced, and the compilers
pass that on. `6/20` is line 6 of the self-contained code, called by line 20; `6/20,19` is line 19
as well, for a kernel that several lines became. `0` is none of them.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any
from unittest import mock

from . import hlo

NONE = "0"
MARKED = re.compile(r" # ([\d/]+)$")
LOCATION = re.compile(r"(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)")
FRAME = re.compile(r"(\d+) \{file_location_id=(\d+) parent_frame_id=(\d+)\}")
FRAME_OF = re.compile(r"\bstack_frame_id=(\d+)")
DEFINED = re.compile(r"(#loc\d*) = loc\((.*)\)")
PLACED = re.compile(r"loc\((#loc\d*)\)$")


def chain(numbers: Iterable[int | str]) -> str:
    """Return how lines are written that call each other, the innermost first."""
    return "/".join(dict.fromkeys(map(str, numbers))) or NONE


def within(inner: str, outer: str) -> str:
    """Return the chain of what is traced by something else."""
    return chain(line for line in (*inner.split("/"), *outer.split("/")) if line != NONE)


def of_equation(info: Any, file: str) -> str:
    """Return the lines of a file that an equation comes from, by its source info."""
    frames = info.traceback.frames if info.traceback else ()
    return chain(frame.line_num for frame in frames if frame.file_name == file)


def of_jaxpr(jaxpr: Any, file: str) -> list[str]:
    """Return for each line of a jaxpr's text where it comes from.

    What an equation has on further lines, indented or behind a bracket, is a part of it.
    """
    from jax._src import source_info_util

    def mark(info: Any, num_frames: int = 1) -> str:
        return of_equation(info, file)

    # JAX itself would print the innermost line alone.
    with mock.patch.object(source_info_util, "summarize", mark):
        text = jaxpr.pretty_print(source_info=True, use_color=False)
    found, around = [], [(-1, NONE)]
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" ]"))
        while depth <= around[-1][0]:
            around.pop()
        if match := MARKED.search(line):
            around.append((depth, within(match[1], around[-1][1])))
        found.append(around[-1][1])
    return found


def of_stablehlo(text: str, file: str) -> list[str]:
    """Return for each line of a lowered program, given with its locations, where it comes from."""
    defined = dict(DEFINED.findall(text))

    @functools.cache
    def numbers(name: str) -> tuple[str, ...]:
        value = defined.get(name, "")
        own = re.match(rf'"{re.escape(file)}":(\d+):', value)
        inner = re.findall(r"#loc\d+", value)
        return (own[1],) if own else tuple(line for each in inner for line in numbers(each))

    lines = [line for line in text.rstrip().splitlines() if not DEFINED.match(line)]
    placed = map(PLACED.search, lines)
    return [chain(numbers(match[1])) if match else NONE for match in placed]


def of_hlo(text: str, read: hlo.Optimized, file: str) -> dict[int, str]:
    """Return for each instruction of an optimized program, by its line, where it comes from.

    `text` has the tables that are left out of what was read. A kernel comes from all that is in it.
    """
    frames, frame_of = _frames(text, file), {}
    for line in text.splitlines():
        instruction, frame = hlo.INSTRUCTION.match(line.strip()), FRAME_OF.search(line)
        if instruction and frame:
            frame_of[instruction["name"]] = frame[1]
    found = {i.line: frames.get(frame_of.get(i.name, ""), NONE) for i in read.named.values()}
    for kernel in read.kernels():
        inside = dict.fromkeys(found[i.line] for i in read.inside(read.named[kernel.name]))
        found[kernel.line] = ",".join(each for each in inside if each != NONE) or NONE
    return found


def _frames(text: str, file: str) -> dict[str, str]:
    """Return the chain of each stack frame in the tables of a program."""

    def table(name: str) -> str:
        return text.partition(f"\n{name}\n")[2].partition("\n\n")[0]

    named = (line.partition(" ") for line in table("FileNames").splitlines())
    files = {number for number, _, name in named if name == f'"{file}"'}
    locations = LOCATION.findall(table("FileLocations"))
    lines = {place: line for place, own, line in locations if own in files}
    called = {frame: (place, by) for frame, place, by in FRAME.findall(table("StackFrames"))}

    def numbers(frame: str) -> Iterable[str]:
        while frame in called:
            place, by = called[frame]
            if place in lines:
                yield lines[place]
            # They are written one too high, so that 0 is a frame that nothing called.
            frame = str(int(by) - 1)

    return {frame: chain(numbers(frame)) for frame in called}


def runs(origins: Sequence[str]) -> str:
    """Return what is kept: all in a row, `0*3` for three of a kind."""
    counted = ((each, len(list(same))) for each, same in itertools.groupby(origins))
    return " ".join(each if count == 1 else f"{each}*{count}" for each, count in counted)
