"""Show what a function is compiled to, for devices that are not here, from committed records."""

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx_design.dropdown import dropdown_main, dropdown_title

from drawing.numbers import seconds_text
from executed.app import BookApp, BookEnvironment
from executed.names import nearest
from executed.nodes import noted, table_node
from executed.source.snippets import Library, SnippetError
from executed.store.states import State
from executed.tabs import tab_set

from . import program_files as store
from .declared import Program, ProgramError, chapter, find
from .hlo import Kernel
from .jaxpr_views import picture
from .programs import ProgramRecord, ScaleRecord

SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
# Stands in a role for the program before optimizing.
BEFORE = "before"
REFERENCE = re.compile(r"(?P<name>[\w.]+)@(?P<target>[\w-]+)\.(?P<field>\w+)")
logger = logging.getLogger(__name__)


def known(what: str, name: str, names: Iterable[str]) -> str:
    """Return a name that is among `names`; raises ProgramError, with the nearest names."""
    names = list(names)
    if name not in names:
        hint = nearest(name, names) or f"; there are {', '.join(names)}"
        raise ProgramError(f"there is no {what} '{name}'{hint}")
    return name


def amount_text(value: float, unit: str) -> str:
    """Write an amount with three digits and a unit, such as 54 GFLOP."""
    for scale, letter in SCALES:
        if value >= 0.9995 * scale:
            digits = f"{value / scale:.3g}"
            return f"{float(digits):g} {letter}{unit}"
    return f"{value:.3g} {unit}"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


# Finding the record


class _Place:
    """What the directives and the role share: a function is named at a line of a page."""

    env: BookEnvironment
    get_location: Callable[[], str]

    @property
    def labels(self) -> dict[str, str]:
        """What readers call each target, in the order of conf.py."""
        targets = self.env.book_options.compile_targets
        return {name: target.label for name, target in targets.items()}

    def warn(self, message: object) -> None:
        """Report what is wrong at this line."""
        logger.warning(str(message), location=self.get_location(), type="book", subtype="compiled")

    def look_up(self, written: str, kind: str) -> tuple[Program, Any, State]:
        """Return the program of a name, its record or None, and its state.

        Raises SnippetError or ProgramError.
        """
        options = self.env.book_options
        library, targets = Library.of(options), options.compile_targets
        if not targets:
            raise ProgramError("book_targets of conf.py names no device to compile for")
        program = find(library, written, kind, chapter(self.env.docname))
        folder = options.folder("programs")
        # A file that is not there is looked for again by every build.
        read = [library.path(module) for module in library.reached([program.definition.module])]
        for path in (*read, folder / program.file):
            self.env.note_dependency(str(path))
        return program, *store.state(folder, program, targets)


class ProgramDirective(_Place, SphinxDirective):
    """What all directives on compiled programs share."""

    required_arguments = 1
    kind = "COMPILED"

    def run(self) -> list[nodes.Node]:
        """Return the view, and what is wrong with its record."""
        try:
            program, record, state = self.look_up(self.arguments[0], self.kind)
            parts = self.show(program, record)
        except (SnippetError, ProgramError) as error:
            self.warn(error)
            return []
        if state.word != "current":
            day = f", {record.date[:10]}" if record else ""
            text = f"This program: {state}{day}. It is compiled anew by "
            note = nodes.paragraph("", text, classes=["compile-state"])
            note += nodes.literal("", f"{self.env.book_options.compile_command} -- {program.name}")
            parts.append(note)
        return parts

    def show(self, program: Program, record: Any) -> list[nodes.Node]:
        """Return what is shown of a record."""
        raise NotImplementedError


# The compile view


class CompiledDirective(ProgramDirective):
    """The compile view of one function: its source, and the stages of its compilation."""

    def show(self, program: Program, record: ProgramRecord | None) -> list[nodes.Node]:
        """Return the source, and the stages in tabs."""
        view = box("compile-view", source(program))
        if record is not None:
            on = {name: label for name, label in self.labels.items() if name in record.targets}
            stages = [
                ("jaxpr", "jaxpr", jaxpr(record)),
                ("picture", "picture", [picture(program.definition.name, record)]),
                ("stablehlo", "StableHLO", stablehlo(record, on)),
                ("hlo", "optimized HLO", optimized(record, on)),
                ("cost", "cost", [cost_table(record, on)]),
            ]
            view += box("compile-stages", tab_set("stage", stages), provenance(record))
        return [box("compile-frame", view)]


def box(name: str, *children: nodes.Node) -> nodes.container:
    """Return nodes in a container of a class."""
    return nodes.container("", *children, classes=[name])


def source(program: Program) -> nodes.container:
    """Return the source of a function with its arguments, and what it uses, folded."""
    part = box("compile-source", code(program.definition.source.splitlines(), "python"))
    others = program.code.removesuffix(program.definition.source).strip("\n")
    if others:
        needed = code(others.splitlines(), "python")
        part += dropdown_main("", dropdown_title("", "what it needs"), needed)
    if program.kind == "COMPILED":
        function: Any = ast.parse(program.definition.source).body[0]
        names = [argument.arg for argument in function.args.args]
        text = nodes.paragraph("", "Compiled for ")
        for number, argument in enumerate(named(zip(names, program.arguments, strict=False))):
            text += [nodes.Text(", ")] if number else []
            text += nodes.literal("", argument)
        part += text
    return part


def named(arguments: Iterable[tuple[str, Any]]) -> list[str]:
    """Return "name: shape" for each array among declared arguments."""
    found = []
    for name, value in arguments:
        if isinstance(value, dict):
            found += named(value.items())
        elif isinstance(value, list):
            found += named((f"{name}[{number}]", part) for number, part in enumerate(value))
        else:
            found.append(f"{name}: {value}")
    return found


def code(lines: Sequence[str], language: str = "none", marked: Sequence[int] = ()) -> nodes.Node:
    """Return a block of code, with some of its lines marked."""
    text = "\n".join(lines)
    block = nodes.literal_block(text, text, language=language)
    if marked:
        block["highlight_args"] = {"hl_lines": list(marked)}
    return block


def jaxpr(record: ProgramRecord) -> list[nodes.Node]:
    """Return the jaxpr as text. It is the same for all devices."""
    count = sum(record.operations.values())
    text = f"{counted(count, 'operation')}, the same for all devices."
    return [nodes.paragraph("", text), code(record.jaxpr)]


def stablehlo(record: ProgramRecord, on: Mapping[str, str]) -> list[nodes.Node]:
    """Return the StableHLO: once where all devices share it, as tabs where they do not."""
    parts = record.stablehlo
    if len(parts) == 1:
        text = "The same for all devices. No device has had a say yet."
        return [nodes.paragraph("", text), code(parts[0].text)]
    items = [
        (part.targets[0], ", ".join(on[target] for target in part.targets), [code(part.text)])
        for part in parts
    ]
    return [tab_set("lowered", items)]


def optimized(record: ProgramRecord, on: Mapping[str, str]) -> list[nodes.Node]:
    """Return the optimized HLO of each device, with its kernels."""
    items = []
    for target, label in on.items():
        compiled = record.targets[target]
        kernels, copies = compiled.program.kernels(), len(compiled.program.copies())
        marked = [kernel.line for kernel in kernels if kernel.opcode == "fusion"]
        listed = kernel_list(sum(record.operations.values()), kernels, copies)
        text = dropdown_main("", dropdown_title("", "the text"), code(compiled.hlo, marked=marked))
        items.append((target, label, [*listed, text]))
    return [tab_set("device", items)]


def kernel_list(operations: int, kernels: Sequence[Kernel], copies: int) -> list[nodes.Node]:
    """Say how many kernels the operations of the jaxpr became, and which are in each."""
    count, fused = len(kernels), sum(kernel.fused for kernel in kernels)
    text = f"{counted(operations, 'operation')} of the jaxpr became "
    if count == fused == 1:
        text += "1 fused kernel"
    else:
        text += counted(count, "kernel") + (f", {fused} of them fused" if fused else "")
    if copies:
        text += f". {copies} {'copy is' if copies == 1 else 'copies are'} made besides"
    entries = []
    for kernel in kernels:
        line = nodes.paragraph("", "", nodes.literal("", kernel.name))
        inside = ", ".join(kernel.operations) or "no operation of the jaxpr"
        line += nodes.Text(f": {inside}" + ("" if kernel.fused else f" ({kernel.what})"))
        entries.append(nodes.list_item("", line))
    listed = nodes.bullet_list("", *entries, classes=["compile-kernels"])
    return [nodes.paragraph("", text + "."), *([listed] if entries else [])]


def cost_table(record: ProgramRecord, on: Mapping[str, str]) -> nodes.Node:
    """Return the compiler's counts and sizes, a column for each device."""
    rows = [
        [label, *(field_text(record, target, name) for target in (BEFORE, *on))]
        for name, (_, label) in FIELDS.items()
    ]
    counts = [record.unoptimized, *(record.targets[target].cost for target in on)]
    ratios = [c.flops / c.bytes if c and c.bytes else None for c in counts]
    written = ["–" if each is None else f"{float(f'{each:.3g}'):,.10g}" for each in ratios]
    rows.insert(3, ["FLOP per byte", *written])
    head = ["", "before optimizing", *on.values()]
    table = table_node(head, rows, classes=["measurements", "compile-cost"])
    if any(compiled.program.loops for compiled in record.targets.values()):
        text = "The compiler counts what is in a loop once, however many rounds it has. "
        text += "So nothing here is multiplied by the rounds, and there is no estimate."
        table.insert(0, nodes.paragraph("", text))
    return table


def provenance(record: ProgramRecord | ScaleRecord) -> nodes.Node:
    """Say when and with what a record was made."""
    text = f"Compiled {record.date[:10]} with {versions(record)}. Nothing was run."
    return nodes.paragraph("", text, classes=["compile-provenance"])


def versions(record: ProgramRecord | ScaleRecord) -> str:
    """List the versions with which a record was made."""
    return ", ".join(f"{name} {version}" for name, version in record.versions.items())


# Single numbers


# The unit of each field, None for what is counted in whole, and its name in the table.
FIELDS = {
    "flops": ("FLOP", "floating-point operations"),
    "transcendentals": ("", "exp, tanh and the like"),
    "bytes": ("B", "bytes read and written"),
    "estimate": ("s", "estimate of the compiler"),
    **{field: ("B", f"memory: {field}") for field in ("arguments", "results", "temporaries")},
    "kernels": (None, "kernels"),
}


def field(record: ProgramRecord, target: str, name: str) -> float | None:
    """Return a number of a record, or None where the compiler gives none."""
    if target == BEFORE:
        return getattr(record.unoptimized, name, None)
    if target not in record.targets:
        return None
    compiled = record.targets[target]
    if name == "kernels":
        return len(compiled.program.kernels())
    if name == "estimate" and compiled.program.loops:
        return None
    return getattr(compiled.memory, name, getattr(compiled.cost, name, None))


def field_text(record: ProgramRecord, target: str, name: str) -> str:
    """Write a number of a record with its unit, or a dash."""
    value, unit = field(record, target, name), FIELDS[name][0]
    if value is None:
        return "–"
    if unit == "s":
        return seconds_text(value)
    return str(value) if unit is None else amount_text(value, unit).strip()


class CompiledRole(_Place, SphinxRole):
    """A number of a record: ``{compiled}`products.matrix_product@tpu-v5e.estimate```."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number as a text."""
        try:
            return self._number(), []
        except (SnippetError, ProgramError) as error:
            self.warn(error)
            return [nodes.problematic("", self.text)], []

    def _number(self) -> list[nodes.Node]:
        match = REFERENCE.fullmatch(self.text)
        if not match:
            raise ProgramError(f"'{self.text}' is not of the form function@device.field")
        devices = {**self.labels, BEFORE: "before optimizing"}
        target = known("device", match["target"], devices)
        name = known("field", match["field"], FIELDS)
        program, record, state = self.look_up(match["name"], "COMPILED")
        if record is None:
            return [nodes.inline("", "not compiled yet", classes=["not-recorded"])]
        if field(record, target, name) is None:
            raise ProgramError(f"there is no {name} of {program.name} for {target}")
        label = "the compiler's estimate, not a measurement" if name == "estimate" else name
        note = f"{program.name}, {devices[target]}: {label}; compiled with "
        note += f"{versions(record)}, {record.date[:10]}"
        text = field_text(record, target, name)
        shown: list[nodes.Node] = [noted("", text, note=note, classes=["measured"])]
        if state.word == "earlier code":
            earlier = f" (earlier code, {record.date[:10]})"
            shown.append(nodes.inline("", earlier, classes=["earlier"]))
        return shown


def setup(app: BookApp) -> None:
    """Register the directive and the role."""
    app.add_directive("compiled", CompiledDirective)
    app.add_role("compiled", CompiledRole())
