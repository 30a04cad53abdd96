"""What a record of a compiled program holds; its file is compared with it."""

import dataclasses
import functools
from typing import Annotated, Any

from ..typed_json import LEAST_1, NOT_NEGATIVE, Rule
from .hlo import Optimized

FORM = 1
Line = str
Text = list[Line]
Number = Annotated[float, NOT_NEGATIVE]
Count = Annotated[int, NOT_NEGATIVE]
Place = Annotated[float, NOT_NEGATIVE]
Point = list[Place]


@dataclasses.dataclass(frozen=True)
class Counts:
    """What the compiler counts in a program."""

    flops: Number
    transcendentals: Number
    bytes: Number


@dataclasses.dataclass(frozen=True)
class Cost(Counts):
    """The same of an optimized program, and the seconds that the compiler expects."""

    estimate: Number | None


@dataclasses.dataclass(frozen=True)
class Memory:
    """The bytes that a program needs on each device."""

    arguments: Count
    results: Count
    temporaries: Count

    @property
    def total(self) -> int:
        """The bytes of all three."""
        return self.arguments + self.results + self.temporaries


@dataclasses.dataclass(frozen=True)
class Node:
    """An operation, argument or result in a picture, and where it is drawn."""

    label: Line
    detail: Line
    kind: Line
    x: Place
    y: Place


@dataclasses.dataclass(frozen=True)
class Edge:
    """A line from one node to another, and the points that it goes through."""

    from_: Count
    to: Count
    through: list[Point]


@dataclasses.dataclass(frozen=True)
class Picture:
    """A jaxpr drawn from top to bottom."""

    nodes: list[Node]
    edges: list[Edge]


@dataclasses.dataclass(frozen=True)
class Lowered:
    """The StableHLO that some targets share."""

    targets: Text
    text: Text


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A program for one target."""

    device: Line
    hlo: Text
    cost: Cost | None
    memory: Memory

    @functools.cached_property
    def program(self) -> Optimized:
        """The program as its HLO says it."""
        return Optimized(self.hlo)


@dataclasses.dataclass(frozen=True)
class Collective:
    """Collectives of one kind: how many, and the bytes of their results."""

    kind: Line
    count: Count
    bytes: Count


@dataclasses.dataclass(frozen=True)
class Run:
    """A step compiled for a number of devices."""

    case: Line
    target: Line
    device: Line
    chips: Annotated[int, LEAST_1]
    batch: Count
    collectives: list[Collective]
    cost: Cost | None
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
class Record:
    """What every record says: of which function it is, and how it was made."""

    form: Annotated[int, Rule(lambda value: value == FORM, str(FORM))]
    function: Line
    source: str
    arguments: Any
    command: Line
    date: str
    versions: dict[Line, Line]


@dataclasses.dataclass(frozen=True)
class ProgramRecord(Record):
    """A function compiled for one device of each target."""

    jaxpr: Text
    operations: dict[Line, Count]
    picture: Picture
    stablehlo: list[Lowered]
    unoptimized: Counts | None
    targets: dict[Line, Compiled]

    @property
    def contradiction(self) -> str:
        """What in it cannot be, empty where all is well."""
        ends = [end for edge in self.picture.edges for end in (edge.from_, edge.to)]
        if max(ends, default=-1) >= len(self.picture.nodes):
            return "an edge of the picture leads nowhere"
        if sorted(name for part in self.stablehlo for name in part.targets) != sorted(self.targets):
            return "it does not have StableHLO for each device"
        return ""


@dataclasses.dataclass(frozen=True)
class ScaleRecord(Record):
    """A step compiled for many devices."""

    parameters: Count
    runs: list[Run]
