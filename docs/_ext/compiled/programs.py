"""What a record of a compiled program holds."""

import dataclasses
from typing import Annotated, Any

from drawing.peaks import Peaks
from executed.typed_json import Rule

FORM = 3
# Stands among targets for the program before optimizing.
BEFORE = "before"


@dataclasses.dataclass(frozen=True)
class Counts:
    """What the compiler counts in a program."""

    flops: float
    transcendentals: float
    bytes: float


@dataclasses.dataclass(frozen=True)
class Memory:
    """The bytes that a program needs on each device."""

    arguments: int
    results: int
    temporaries: int

    @property
    def total(self) -> int:
        """The bytes of all three."""
        return self.arguments + self.results + self.temporaries


@dataclasses.dataclass(frozen=True)
class Node:
    """An operation, argument or result in a picture, and where it is drawn."""

    label: str
    detail: str
    kind: str
    x: float
    y: float
    origin: str = ""


@dataclasses.dataclass(frozen=True)
class Edge:
    """A line from one node to another, and the points that it goes through."""

    from_: int
    to: int
    through: list[list[float]]


@dataclasses.dataclass(frozen=True)
class Picture:
    """A jaxpr drawn from top to bottom."""

    nodes: list[Node]
    edges: list[Edge]


@dataclasses.dataclass(frozen=True)
class Lowered:
    """The StableHLO that some targets share."""

    targets: list[str]
    text: list[str]
    origins: str = ""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """What a device does in one go: its line, counted from 1, and what is in it.

    `what` is its opcode, or the routine from outside that it calls; `operations` are those of the
    jaxpr. Several instructions were put together in one that is `fused`.
    """

    name: str
    line: int
    what: str
    operations: tuple[str, ...]
    fused: bool


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A program for one target, with what its text says: kernels, copies, whether it has loops.

    `traffic` is how many bytes its steps read from main memory and write to it.
    """

    device: str
    hlo: list[str]
    kernels: list[Kernel]
    copies: int
    loops: bool
    traffic: int
    cost: Counts | None
    memory: Memory
    origins: str = ""


@dataclasses.dataclass(frozen=True)
class Collective:
    """Collectives of one kind: how many, and the bytes of their results.

    Of those that loops start and end, `beside` have a matmul in between. For those that are
    `waiting` in loops a device waits at once.
    """

    kind: str
    count: int
    bytes: int
    looped: int = 0
    beside: int = 0
    waiting: int = 0


@dataclasses.dataclass(frozen=True)
class Run:
    """A step compiled for a number of devices."""

    case: str
    target: str
    device: str
    chips: int
    batch: int
    collectives: list[Collective]
    cost: Counts | None
    memory: Memory

    @property
    def moved(self) -> int:
        """The bytes that all collectives of one step combine, on each device."""
        return sum(collective.bytes for collective in self.collectives)

    @property
    def sent(self) -> float:
        """The bytes that each device must send at least to all-reduce as much as `moved`."""
        return 2 * (self.chips - 1) / self.chips * self.moved


@dataclasses.dataclass(frozen=True)
class Head:
    """What every record says: its function, and how it was made."""

    form: Annotated[int, Rule(lambda value: value == FORM, str(FORM))]
    function: str
    source: str
    arguments: Any
    command: str
    date: str
    versions: dict[str, str]


@dataclasses.dataclass(frozen=True)
class ProgramRecord(Head):
    """A function compiled for one device of each target.

    `refused` has what the compiler of a target said where it did not compile it.
    """

    jaxpr: list[str]
    operations: dict[str, int]
    picture: Picture
    stablehlo: list[Lowered]
    unoptimized: Counts | None
    targets: dict[str, Compiled]
    refused: dict[str, str] = dataclasses.field(default_factory=dict)
    origins: str = ""

    def number(self, target: str, name: str, peaks: Peaks | None = None) -> float | None:
        """Return one of its numbers, or None where there is none; `least` is by published peaks."""
        compiled = self.targets.get(target)
        counts = compiled.cost if compiled else self.unoptimized
        moved = compiled.traffic if compiled else getattr(self.unoptimized, "bytes", None)
        if name == "bytes":
            return moved
        if name == "intensity":
            return counts.flops / moved if counts and moved else None
        if name == "kernels":
            return len(compiled.kernels) if compiled else None
        if name != "least":
            return getattr(counts, name, getattr(compiled and compiled.memory, name, None))
        # Of what is in a loop the rounds are not known. Where the compiler counts nothing, the
        # operations are those before optimizing.
        counts = counts or self.unoptimized
        if compiled is None or compiled.loops or peaks is None or counts is None:
            return None
        return peaks.seconds(compiled.traffic, counts.flops)


@dataclasses.dataclass(frozen=True)
class ScaleRecord(Head):
    """A step compiled for many devices."""

    parameters: int
    runs: list[Run]
