"""What a record of a compiled program holds."""

import dataclasses
import functools
from typing import Annotated, Any

from executed.typed_json import Rule

from .hlo import Optimized

FORM = 1


@dataclasses.dataclass(frozen=True)
class Counts:
    """What the compiler counts in a program."""

    flops: float
    transcendentals: float
    bytes: float


@dataclasses.dataclass(frozen=True)
class Cost(Counts):
    """The same of an optimized program, and the seconds that the compiler expects."""

    estimate: float | None


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


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A program for one target."""

    device: str
    hlo: list[str]
    cost: Cost | None
    memory: Memory

    @functools.cached_property
    def program(self) -> Optimized:
        """The program as its HLO says it."""
        return Optimized(self.hlo)


@dataclasses.dataclass(frozen=True)
class Collective:
    """Collectives of one kind: how many, and the bytes of their results."""

    kind: str
    count: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Run:
    """A step compiled for a number of devices."""

    case: str
    target: str
    device: str
    chips: int
    batch: int
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
    function: str
    source: str
    arguments: Any
    command: str
    date: str
    versions: dict[str, str]

    @property
    def compiled_for(self) -> list[str]:
        """The targets that it was compiled for."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class ProgramRecord(Record):
    """A function compiled for one device of each target."""

    jaxpr: list[str]
    operations: dict[str, int]
    picture: Picture
    stablehlo: list[Lowered]
    unoptimized: Counts | None
    targets: dict[str, Compiled]

    @property
    def compiled_for(self) -> list[str]:
        """The targets that it was compiled for."""
        return list(self.targets)


@dataclasses.dataclass(frozen=True)
class ScaleRecord(Record):
    """A step compiled for many devices."""

    parameters: int
    runs: list[Run]

    @property
    def compiled_for(self) -> list[str]:
        """The targets that it was compiled for."""
        return [run.target for run in self.runs]
