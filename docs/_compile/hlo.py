"""Read the text of optimized HLO: clean it, and find its kernels and collectives.

A kernel is found in the text that a page shows, not by another way.
"""

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator

from compiled.programs import Kernel

# What names the machine, the compiler's tuning, or nothing at all on one device.
DROPPED = ("backend_config", "frontend_attributes", "sharding", "metadata")
OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
# A text, a brace, or what lies between them; outside of braces a comma or a space ends a value.
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|[^{}",\s]+|[,\s]+')
COMPUTATION = re.compile(r"(?P<entry>ENTRY )?%?(?P<name>[\w.-]+) \(.*\) -> .*\{$")
INSTRUCTION = re.compile(r"(?:ROOT )?%(?P<name>[\w.-]+) = (?P<shape>.*?) (?P<opcode>[a-z][\w-]*)\(")
CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|branch_computations|"
    r"true_computation|false_computation|called_computations)=(\{[^}]*\}|%[\w.-]+)"
)
CUSTOM_CALL = re.compile(r'custom_call_target="([^"]*)"')
TYPE = re.compile(r"\b([a-z]+\d+[a-z\d]*|pred)\[([\d,]*)\]")
# They pass on, name or allocate what is there; nothing is computed.
FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"),
    *("partition-id", "replica-id", "opt-barrier"),
}
NAMED_ONLY = {"custom-call AllocateBuffer", "custom-call ConcatBitcast"}
CONTROL = {"while", "call", "conditional", "async-start"}
# These hand on what another instruction started.
PASSED_ON = {"get-tuple-element", "custom-call-update"}
COPIES = {"copy", "copy-start", "slice-start"}
COLLECTIVES = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all"),
    *("collective-permute", "collective-broadcast"),
)


def cleaned(text: str) -> list[str]:
    """Return HLO text as lines, without what tells of the machine and of the compiler's tuning.

    Of `metadata`, the name of the operation stays: it says where in the jaxpr
    an instruction comes from.
    """
    lines: list[str] = []
    skipping = False
    for line in map(str.rstrip, text.splitlines()):
        skipping = line.strip() in TABLES or (skipping and re.match(r"\d+ ", line) is not None)
        if skipping:
            continue
        if line.startswith("HloModule "):
            line = _header(line)
        for attribute in DROPPED:
            line = _without(line, attribute)
        if line or (lines and lines[-1]):
            lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _header(line: str) -> str:
    kept = line.split(", ")[:1]
    layout = line.find("entry_computation_layout={")
    if layout >= 0:
        kept.append(line[layout : _end(line, line.index("{", layout))])
    return ", ".join(kept)


def _without(line: str, attribute: str) -> str:
    before, mark, rest = line.partition(f", {attribute}=")
    if not mark:
        return line
    end = _end(rest, 0)
    kept = ""
    if attribute == "metadata" and (name := OP_NAME.search(rest[:end])):
        kept = f', metadata={{op_name="{name[1]}"}}'
    return before + kept + _without(rest[end:], attribute)


def _end(line: str, start: int) -> int:
    """Return where the value that begins at `start` ends: a word, a text, or what is in braces."""
    depth = 0
    for token in TOKEN.finditer(line, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(line)


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction: its line, counted from 1, and what it calls."""

    line: int
    name: str
    opcode: str
    shape: str
    called: tuple[str, ...]
    text: str

    @property
    def kind(self) -> str:
        """The opcode, also of what only starts it."""
        return self.opcode.removesuffix("-start")

    @property
    def what(self) -> str:
        """Its kind, or the routine from outside that it calls."""
        target = CUSTOM_CALL.search(self.text)
        return f"{self.kind} {target[1]}" if target else self.kind

    @property
    def operands(self) -> list[str]:
        """The names of what it takes."""
        taken = self.text.partition(f" {self.opcode}(")[2].partition(")")[0]
        return re.findall(r"%([\w.-]+)", taken)

    @property
    def counts(self) -> bool:
        """Whether all of its result are whole numbers or truth values, one of each."""
        types = TYPE.findall(self.shape)
        return all(not dims and dtype[0] in "sup" for dtype, dims in types)

    @property
    def operation(self) -> str | None:
        """The operation of the jaxpr that it comes from, or None."""
        name = OP_NAME.search(self.text)
        if not name or "/" not in name[1]:
            return None
        return re.sub(r"[()]", "", name[1].rpartition("/")[2])


class Optimized:
    """An optimized program, read from its lines."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Read the computations and their instructions."""
        self.computations: dict[str, list[Instruction]] = {}
        self.named: dict[str, Instruction] = {}
        self.entry = ""
        current: list[Instruction] | None = None
        for number, line in enumerate(lines, 1):
            if line.endswith("{") and (head := COMPUTATION.match(line)):
                current = self.computations.setdefault(head["name"], [])
                self.entry = head["name"] if head["entry"] else self.entry
            elif line == "}":
                current = None
            elif current is not None and (instruction := INSTRUCTION.match(line.strip())):
                names = re.findall(r"%([\w.-]+)", " ".join(CALLED.findall(line)))
                parts = instruction["name"], instruction["opcode"], instruction["shape"]
                made = Instruction(number, *parts, tuple(names), line)
                self.named[made.name] = made
                current.append(made)

    def _walk(self, name: str) -> Iterator[Instruction]:
        for instruction in self.computations.get(name, ()):
            yield instruction
            for called in instruction.called if instruction.opcode in CONTROL else ():
                yield from self._walk(called)

    def steps(self) -> list[Instruction]:
        """Return the instructions that a device is told to run: of the entry, and of loops.

        What only counts the rounds of a loop, or asks whether there is another, is none of them.
        """
        return [
            i
            for i in self._walk(self.entry)
            if i.opcode not in CONTROL | FREE and i.what not in NAMED_ONLY and not self._counts(i)
        ]

    def _counts(self, step: Instruction) -> bool:
        """Say whether a step makes numbers that count, out of nothing else."""
        taken = [self.named[name] for name in step.operands if name in self.named]
        return step.counts and all(operand.counts for operand in taken)

    def result(self, instruction: Instruction) -> str:
        """Return the type of what an instruction makes, or what it starts when that is done."""
        done = instruction.kind + "-done"
        ends = [
            i.shape
            for i in self.named.values()
            if i.opcode == done and instruction.name in i.operands
        ]
        return ends[0] if ends and instruction.kind != instruction.opcode else instruction.shape

    def kernels(self) -> list[Kernel]:
        """Return the kernels in the order of the text; copies and what only ends are none."""
        return [
            self._kernel(i)
            for i in self.steps()
            if i.opcode not in COPIES and not i.opcode.endswith(("-done", "-update"))
        ]

    @property
    def loops(self) -> bool:
        """Whether there is a loop in it."""
        return any(i.opcode == "while" for called in self.computations.values() for i in called)

    def copies(self) -> list[Instruction]:
        """Return the instructions that only copy."""
        return [i for i in self.steps() if i.opcode in COPIES]

    def inside(self, instruction: Instruction) -> Iterator[Instruction]:
        """Return what is computed in an instruction: itself, or what a fusion calls."""
        waiting, seen = [instruction], set()
        while waiting:
            inner = waiting.pop()
            if inner.opcode not in FREE and inner.kind != "fusion":
                yield inner
            for name in inner.called:
                if name not in seen:
                    seen.add(name)
                    waiting += reversed(self.computations.get(name, ()))

    def _kernel(self, instruction: Instruction) -> Kernel:
        """Return a kernel with the operations of the jaxpr that are in it."""
        inside = list(self.inside(instruction))
        operations = dict.fromkeys(inner.operation for inner in inside if inner.operation)
        if not operations and instruction.operation:
            operations[instruction.operation] = None
        return Kernel(
            name=instruction.name,
            line=instruction.line,
            what=instruction.what,
            operations=tuple(operations),
            fused=instruction.kind == "fusion" and len(inside) > 1,
        )

    def collectives(self) -> list[tuple[str, int]]:
        """Return (kind, bytes of its result) for each collective that is started."""
        return [
            (instruction.kind, _bytes(self.result(instruction)))
            for computation in self.computations.values()
            for instruction in computation
            if instruction.kind in COLLECTIVES
        ]

    def beside_matmuls(self) -> dict[str, list[bool | None]]:
        """Return for each collective that a loop runs whether a matmul is between start and end.

        By kind. A device can compute that matmul while it communicates. None for a collective
        that the device waits for at once.
        """
        found: dict[str, list[bool | None]] = {}
        whiles = (i for each in self.computations.values() for i in each if i.opcode == "while")
        for name in dict.fromkeys(name for loop in whiles for name in loop.called):
            for kind, beside in self._scheduled(self.computations.get(name, ())):
                found.setdefault(kind, []).append(beside)
        return found

    def _scheduled(self, instructions: Iterable[Instruction]) -> list[tuple[str, bool | None]]:
        """Return the collectives of one computation, in the order in which they start.

        On a TPU, three fusions may run one collective: the first is called
        `async-collective-start`, and the second also multiplies. Three custom calls may run one
        on the SparseCore: only the first says which.
        """
        found: list[tuple[str, bool | None]] = []
        running: dict[str, int] = {}
        source: dict[str, str] = {}
        for one in instructions:
            names = [source[each] for each in one.operands if source.get(each) in running]
            name = max(names, key=names.count, default="")
            kind = self._communicates(one)
            begins = one.opcode.endswith("-start") or "collective-start" in one.name
            if name and (one.opcode.endswith("-done") or "collective-done" in one.name):
                del running[name]
            elif kind:
                found.append((kind, False if begins else None))
                if begins:
                    running[one.name], source[one.name] = len(found) - 1, one.name
            else:
                if _goes_on(one) or one.opcode in PASSED_ON:
                    source[one.name] = name
                if any(map(_multiplies, self.inside(one))):
                    for number in running.values():
                        found[number] = (found[number][0], True)
        return found

    def _communicates(self, instruction: Instruction) -> str | None:
        """Return which collective an instruction starts or runs, or None; a loop runs none."""
        if instruction.opcode in ("while", "call", "conditional") or _goes_on(instruction):
            return None
        if any("all-reduce-scatter" in name for name in instruction.called):
            return "reduce-scatter"
        kinds = {inner.kind for inner in self.inside(instruction)}
        return next((kind for kind in COLLECTIVES if kind in kinds), None)


def _goes_on(instruction: Instruction) -> bool:
    return any("async_collective" in name for name in instruction.called)


def _multiplies(instruction: Instruction) -> bool:
    return instruction.opcode in ("dot", "convolution") or "gemm" in instruction.what


def _bytes(shape: str) -> int:
    sizes = []
    for dtype, dims in TYPE.findall(shape):
        bits = 8 if dtype == "pred" else int(re.findall(r"\d+", dtype)[0])
        sizes.append(math.prod(map(int, filter(None, dims.split(",")))) * bits // 8)
    return sum(sizes)
