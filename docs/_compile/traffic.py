"""Count the bytes that the steps of an optimized program read from main memory and write to it."""

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .hlo import Instruction, Optimized

# An array: its dtype, its lengths, their order from the closest in memory on, and what follows.
ARRAY = re.compile(r"\b([a-z]+\d+[a-z\d]*|pred)\[([\d,]*)\](?:\{([\d,]*)(?::([^}]*))?\})?")
TILE = re.compile(r"T\(([\d,]+)\)")
# A layout names a memory other than the main one.
ELSEWHERE = re.compile(r"S\([1-9]\d*\)")
SLICES = {"dynamic-slice", "slice", "gather"}
# What only gives an array another name or shape.
NAMES = {"bitcast", "reshape"}


def sizes(shape: str) -> list[int]:
    """Return the bytes of each array of a type, with the padding of its tiles.

    Those of an array that is not in the main memory are 0.
    """
    return [0 if ELSEWHERE.search(rest) else n for n, rest in _arrays(shape)]


def _arrays(shape: str) -> Iterator[tuple[int, str]]:
    for dtype, lengths, order, rest in ARRAY.findall(shape):
        dims = _numbers(lengths)
        if tile := TILE.search(rest):
            # From the farthest in memory to the closest, whose last ones are cut into tiles.
            dims = [dims[axis] for axis in reversed(_numbers(order))]
            widths = _numbers(tile[1])[-len(dims) :] if dims else []
            for axis, width in enumerate(widths, len(dims) - len(widths)):
                dims[axis] = -(-dims[axis] // width) * width
        bits = 8 if dtype == "pred" else int(re.findall(r"\d+", dtype)[0])
        yield math.prod(dims) * bits // 8, rest


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


def _whole(instruction: Instruction) -> int:
    """Return the bytes of its result, in whichever memory."""
    return sum(size for size, _ in _arrays(instruction.shape))


def traffic(program: Optimized) -> int:
    """Return the bytes of all steps; what is in a loop counts once, as the compiler does it.

    A step reads each of its arguments once, or the parts that it cuts out of it, and writes its
    result once, or the part of an array that it changes in place.
    """
    named, total = program.named, 0
    for step in program.steps():
        if step.opcode.endswith(("-done", "-update")):
            continue
        step = dataclasses.replace(step, shape=program.result(step))
        inner = [i for name in step.called for i in program.computations.get(name, ())]
        inside = inner if step.kind == "fusion" else []
        total += _written(step, inside, named)
        for number, name in enumerate(step.operands):
            if name not in step.operands[:number]:
                there = sum(sizes(named[name].shape))
                total += int(min(there, _read(step, number, name, inside)))
    return total


def _read(step: Instruction, number: int, name: str, inside: Iterable[Instruction]) -> float:
    """Return the most bytes that a step reads of an argument."""
    if not inside:
        return _used(name, [step])
    parameters = (i for i in inside if re.search(rf" parameter\({number}\)", i.text))
    return sum(_used(parameter.name, inside) for parameter in parameters)


def _used(name: str, among: Iterable[Instruction]) -> float:
    """Return the bytes that instructions use of what has a name; infinite where it is all."""
    total = 0.0
    for user in (i for i in among if name in i.operands):
        of_it = user.operands[0] == name and name not in user.operands[1:]
        if user.opcode in NAMES:
            total += _used(user.name, among)
        elif of_it and user.kind in SLICES:
            total += _whole(user)
        elif not (of_it and user.opcode == "dynamic-update-slice"):
            return math.inf
    return total


def _written(
    step: Instruction, inside: Sequence[Instruction], named: Mapping[str, Instruction]
) -> int:
    """Return the bytes that a step writes."""
    written = sum(sizes(step.shape))
    last = next((i for i in inside if "ROOT " in i.text), step)
    while last.opcode in NAMES and inside:
        last = named[last.operands[0]]
    if last.opcode == "dynamic-update-slice":
        return min(written, _whole(named[last.operands[1]]))
    return written
