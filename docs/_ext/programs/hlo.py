"""Read the text of optimized HLO: clean it, and find its kernels and collectives.

No framework is needed: a kernel is found in the text that a page shows, not by another way.
"""

import dataclasses
import re

# What names the machine, the compiler's tuning, or nothing at all on one device.
DROPPED = ("backend_config", "frontend_attributes", "sharding", "metadata")
OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
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
COPIES = {"copy", "copy-start", "slice-start"}
COLLECTIVES = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all"),
    *("collective-permute", "collective-broadcast"),
)


def cleaned(text):
    """Return HLO text as lines, without what tells of the machine and of the compiler's tuning.

    Of `metadata`, the name of the operation stays: it says where in the jaxpr
    an instruction comes from.
    """
    lines, skipping = [], False
    for line in text.splitlines():
        if line.strip() in TABLES:
            skipping = True
        elif skipping and not re.match(r"\d+ ", line):
            skipping = False
        if skipping:
            continue
        line = line.rstrip()
        if line.startswith("HloModule "):
            line = _header(line)
        for attribute in DROPPED:
            line = _without(line, attribute)
        if line or (lines and lines[-1]):
            lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _header(line):
    kept = line.split(", ")[:1]
    layout = line.find("entry_computation_layout={")
    if layout >= 0:
        kept.append(line[layout : _closing(line, line.index("{", layout)) + 1])
    return ", ".join(kept)


def _without(line, attribute):
    start = line.find(f", {attribute}=")
    if start < 0:
        return line
    value = start + len(attribute) + 3
    end = _closing(line, value) + 1 if line[value] in '{"' else _end_of_word(line, value)
    kept = ""
    if attribute == "metadata" and (name := OP_NAME.search(line[value:end])):
        kept = f', metadata={{op_name="{name[1]}"}}'
    rest = _without(line[end:], attribute)
    return line[:start] + kept + rest


def _end_of_word(line, position):
    match = re.compile(r"[^,\s]*").match(line, position)
    return match.end()


def _closing(line, position):
    """Return where the brace, or the quote, at `position` is closed."""
    depth, quoted, skip = 0, False, False
    for index in range(position, len(line)):
        character = line[index]
        if skip:
            skip = False
        elif character == "\\":
            skip = True
        elif character == '"':
            quoted = not quoted
        elif not quoted and character == "{":
            depth += 1
        elif not quoted and character == "}":
            depth -= 1
        if depth == 0 and not quoted:
            return index
    return len(line) - 1


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction: its line, counted from 1, and what it calls."""

    line: int
    name: str
    opcode: str
    shape: str
    called: tuple
    text: str

    @property
    def what(self):
        """The opcode, or the routine from outside that it calls."""
        target = CUSTOM_CALL.search(self.text)
        return f"{self.opcode} {target[1]}" if target else self.opcode

    @property
    def operation(self):
        """The operation of the jaxpr that it comes from, or None."""
        found = OP_NAME.search(self.text)
        if not found or "/" not in found[1]:
            return None
        return re.sub(r"[()]", "", found[1].rpartition("/")[2])


@dataclasses.dataclass(frozen=True)
class Kernel:
    """What a device does in one go, and which operations of the jaxpr are in it."""

    name: str
    opcode: str
    line: int
    what: str
    operations: tuple
    size: int

    @property
    def fused(self):
        """Whether several instructions were put together in it."""
        return self.opcode == "fusion" and self.size > 1


class Program:
    """An optimized program, read from its lines."""

    def __init__(self, lines):
        """Read the computations and their instructions."""
        self.computations, self.entry = {}, None
        current = None
        for number, line in enumerate(lines, 1):
            if head := COMPUTATION.match(line):
                current = self.computations.setdefault(head["name"], [])
                self.entry = head["name"] if head["entry"] else self.entry
            elif line == "}":
                current = None
            elif current is not None and (found := INSTRUCTION.match(line.strip())):
                called = tuple(
                    name
                    for names in CALLED.findall(line)
                    for name in re.findall(r"%([\w.-]+)", names)
                )
                current.append(
                    Instruction(
                        number, found["name"], found["opcode"], found["shape"], called, line
                    )
                )

    def steps(self, name=None, seen=()):
        """Return the instructions that a device is told to run: of the entry, and of loops."""
        found = []
        name = name or self.entry
        for instruction in self.computations.get(name, ()):
            if instruction.opcode in CONTROL:
                for called in instruction.called:
                    if called not in seen:
                        found += self.steps(called, (*seen, name))
            elif instruction.opcode not in FREE and instruction.what not in NAMED_ONLY:
                found.append(instruction)
        return found

    def kernels(self):
        """Return the kernels in the order of the text; copies and what only ends are none."""
        return [
            Kernel(i.name, i.opcode, i.line, i.what, *self._inside(i))
            for i in self.steps()
            if i.opcode not in COPIES and not i.opcode.endswith(("-done", "-update"))
        ]

    @property
    def loops(self):
        """Whether there is a loop in it."""
        return any(i.opcode == "while" for called in self.computations.values() for i in called)

    def copies(self):
        """Return the instructions that only copy."""
        return [i for i in self.steps() if i.opcode in COPIES]

    def _inside(self, instruction):
        """Return the operations of the jaxpr in a kernel, and the number of its instructions."""
        operations, waiting, seen, size = {}, [instruction], set(), 0
        while waiting:
            inner = waiting.pop()
            if inner.opcode not in FREE and inner.opcode != "fusion":
                size += 1
                if inner.operation:
                    operations.setdefault(inner.operation)
            for name in inner.called:
                if name not in seen:
                    seen.add(name)
                    waiting += reversed(self.computations.get(name, ()))
        if not operations and instruction.operation:
            operations[instruction.operation] = None
        return tuple(operations), size

    def collectives(self):
        """Return (kind, bytes of its result) for each collective that is started."""
        found = []
        for computation in self.computations.values():
            for instruction in computation:
                kind = instruction.opcode.removesuffix("-start")
                if kind in COLLECTIVES:
                    shape = instruction.shape
                    found.append((kind, _result_bytes(shape, instruction.opcode)))
        return found


def _result_bytes(shape, opcode):
    sizes = [_bytes(dtype, dims) for dtype, dims in TYPE.findall(shape)]
    # Those that start carry their inputs and their results, one after the other.
    if opcode in ("all-gather-start", "collective-permute-start"):
        sizes = sizes[len(sizes) // 2 :] if opcode == "all-gather-start" else sizes[1:2]
    return sum(sizes)


def _bytes(dtype, dims):
    bits = 8 if dtype == "pred" else int(re.search(r"\d+", dtype)[0])
    count = 1
    for dim in filter(None, dims.split(",")):
        count *= int(dim)
    return count * bits // 8
