"""Show what functions are compiled to, for devices that are not here, from committed records.

A view is a template of Markdown that lies here, filled in from a record and parsed as a part of
the page.
"""

import ast
import functools
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.template import FileRenderer

from drawing.lines import Point, line_chart
from drawing.numbers import seconds_text
from drawing.peaks import Peaks
from executed.assets import load_on_page
from executed.book import book_of
from executed.names import nearest
from executed.nodes import noted
from executed.source.snippets import SnippetError, chapter_of
from executed.store.states import Standing, State

from . import program_files
from .declared import Program, ProgramError, find
from .options import CompiledOptions, Target, compile_targets, programs_folder
from .programs import BEFORE, Collective, Head, ProgramRecord, Run

TEMPLATES = pathlib.Path(__file__).parent
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
REFERENCE = re.compile(r"(?P<name>[\w.]+)@(?P<target>[\w-]+)\.(?P<field>\w+)")
PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
logger = logging.getLogger(__name__)


def amount(value: float, unit: str = "") -> str:
    """Write an amount with three digits and a unit, such as 54 GFLOP."""
    for scale, letter in PREFIXES:
        if value >= 0.9995 * scale:
            return f"{float(f'{value / scale:.3g}'):g} {letter}{unit}"
    return f"{value:.3g} {unit}".strip()


def counted(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def escaped(text: object) -> str:
    """Return Markdown that says just this text."""
    return PUNCTUATION.sub(r"\\\1", str(text))


def listed(collectives: Iterable[Collective], count: str) -> str:
    """Say how many collectives of each kind there are by one of their counts."""
    counts = [(getattr(each, count), each.kind) for each in collectives]
    return ", ".join(f"{number} {kind}" for number, kind in counts if number) or "none"


def versions(record: Head) -> str:
    """List the versions with which a record was made."""
    return ", ".join(f"{name} {version}" for name, version in record.versions.items())


def shapes(program: Program) -> list[str]:
    """Return "name: shape" for each array that a function is compiled for."""
    function: Any = ast.parse(program.definition.source).body[0]
    names = [argument.arg for argument in function.args.args]
    return _named(zip(names, program.arguments, strict=False))


def _named(arguments: Iterable[tuple[str, Any]]) -> list[str]:
    names = []
    for name, value in arguments:
        if isinstance(value, dict):
            names += _named(value.items())
        elif isinstance(value, list):
            names += _named((f"{name}[{number}]", part) for number, part in enumerate(value))
        else:
            names.append(f"{name}: {value}")
    return names


# What a chart over the number of devices can show: its axis, and the scale and the unit of that.
AXES = {
    "flops": ("GFLOP of each device", 1e9, "FLOP"),
    "bytes": ("megabytes of each device", 1e6, "B"),
}


def chart(runs: Sequence[Run], shown: str, labels: Mapping[str, str], title: str) -> str:
    """Return a chart over the number of devices."""
    several = len({run.case for run in runs}) > 1
    series: dict[str, list[Point]] = {}
    axis, scale, unit = AXES[shown]
    for run in runs:
        name = labels[run.target] + (f", {run.case}" if several else "")
        values = {name: run.cost.flops if run.cost else 0}
        if shown == "bytes":
            values = {f"{name}: memory": run.memory.total, f"{name}: sent": run.sent}
        for label, value in values.items():
            hint = f"{label}, {counted(run.chips, 'device')}: {amount(value, unit)}"
            # One device alone sends nothing, which has no place on a logarithmic axis.
            if value:
                series.setdefault(label, []).append(Point(run.chips, value / scale, hint))
    return line_chart(series, "devices", axis, title)


# The numbers of a record: what the table calls each, and how it is written.
FIELDS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "flops": ("floating-point operations", lambda value: amount(value, "FLOP")),
    "transcendentals": ("exp, tanh and the like", amount),
    "bytes": ("main memory traffic", lambda value: amount(value, "B")),
    "intensity": ("FLOP per byte", lambda value: f"{float(f'{value:.3g}'):,.10g}"),
    "least": ("least possible time", seconds_text),
    "arguments": ("memory: arguments", lambda value: amount(value, "B")),
    "results": ("memory: results", lambda value: amount(value, "B")),
    "temporaries": ("memory: temporaries", lambda value: amount(value, "B")),
    "kernels": ("kernels", str),
}


def field_text(record: ProgramRecord, target: str, name: str, peaks: Peaks | None = None) -> str:
    """Write a number of a record with its unit, or nothing."""
    value = record.number(target, name, peaks)
    return "" if value is None else FIELDS[name][1](value)


@functools.cache
def renderer() -> FileRenderer:
    """Return what fills in the templates."""
    templates = FileRenderer([TEMPLATES])
    templates.env.trim_blocks = templates.env.lstrip_blocks = True
    functions = (amount, chart, counted, escaped, field_text, listed, shapes, versions)
    templates.env.filters |= {function.__name__: function for function in functions}
    templates.env.globals["FIELDS"] = FIELDS
    return templates


class _Place:
    """What the directives and the role share: a function is named at a line of a page."""

    env: BuildEnvironment
    get_location: Callable[[], str]

    @property
    def targets(self) -> dict[str, Target]:
        """The targets, in the order of conf.py."""
        return compile_targets(book_of(self.env).options)

    @property
    def labels(self) -> dict[str, str]:
        """What readers call each target."""
        return {name: target.label for name, target in self.targets.items()}

    def warn(self, message: object) -> None:
        """Report what is wrong at this line."""
        logger.warning(str(message), location=self.get_location(), type="book", subtype="compiled")

    def checked(self, what: str, name: str, names: Iterable[str]) -> str:
        """Return a name that is among `names`; raises ProgramError, with the nearest names."""
        names = list(names)
        if name not in names:
            hint = nearest(name, names) or f"; there are {', '.join(names)}"
            raise ProgramError(f"there is no {what} '{name}'{hint}")
        return name

    def look_up(self, written: str, kind: str) -> tuple[Program, Any, State]:
        """Return the program of a name, its record or None, and its state.

        Raises SnippetError or ProgramError.
        """
        book, targets = book_of(self.env), self.targets
        library = book.library
        if not targets:
            raise ProgramError("book_targets of conf.py names no device to compile for")
        program = find(library, written, kind, chapter_of(self.env.docname))
        folder = programs_folder(book.options)
        # A file that is not there is looked for again by every build.
        read = [library.path(module) for module in library.reached([program.definition.module])]
        for path in (*read, folder / program.file, *TEMPLATES.glob("*.jinja")):
            self.env.note_dependency(str(path))
        return program, *program_files.state(folder, program, targets)


class CompiledDirective(_Place, SphinxDirective):
    """The compile view of one function: its source, and the stages of its compilation."""

    required_arguments = 1
    kind, template = "COMPILED", "view.md.jinja"

    def run(self) -> list[nodes.Node]:
        """Return the view, and what is wrong with its record."""
        try:
            program, record, state = self.look_up(self.arguments[0], self.kind)
            facts = self.facts(program, record)
        except (SnippetError, ProgramError) as error:
            self.warn(error)
            return []
        if self.kind == "COMPILED":
            load_on_page(self.env, "origins.js")
        facts |= {"program": program, "record": record, "state": state, "labels": self.labels}
        facts["command"] = book_of(self.env).options.of(CompiledOptions).compile_command
        return self.parse_text_to_nodes(renderer().render(self.template, facts))

    def facts(self, program: Program, record: Any) -> dict[str, Any]:
        """Return what only the template of this directive asks for."""
        on = [name for name in self.targets if record and name in record.targets]
        return {"on": on, "peaks": {name: self.targets[name].peaks for name in on}}


class ScaleDirective(CompiledDirective):
    """A step compiled for many devices: its source, a table, or a chart over the devices."""

    kind, template = "SCALED", "scale.md.jinja"
    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {"show": str.strip, "case": str.strip}

    def run(self) -> list[nodes.Node]:
        """Return the view, with its caption, in which a mistake is reported at its own line."""
        shown = super().run()
        for node in shown:
            if isinstance(node, nodes.container) and "chart-figure" in node["classes"]:
                caption = self.parse_content_to_nodes()
                node += nodes.container("", *caption, classes=["chart-caption"])
        return shown

    def facts(self, program: Program, record: Any) -> dict[str, Any]:
        """Return the fields to show, the runs, and the title of a chart."""
        shown = self.checked(
            "way", self.options.get("show", "table"), ("source", "table", "overlap", *AXES)
        )
        case = self.options.get("case")
        if case is not None:
            self.checked("case", case, program.arguments)
        runs = [run for run in record.runs if case in (None, run.case)] if record else []
        return {"show": shown, "runs": runs, "title": " ".join(self.content)}


class CompiledRole(_Place, SphinxRole):
    """A number of a record: ``{compiled}`fusion.matrix_product@tpu-v5e.bytes```."""

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
        target = self.checked("device", match["target"], devices)
        name = self.checked("field", match["field"], FIELDS)
        program, record, state = self.look_up(match["name"], "COMPILED")
        if record is None:
            return [nodes.inline("", "not compiled yet", classes=["not-recorded"])]
        peaks = self.targets[target].peaks if target in self.targets else None
        if record.number(target, name, peaks) is None:
            raise ProgramError(f"there is no {name} of {program.name} for {target}")
        note = f"{program.name}, {devices[target]}: {FIELDS[name][0]}; compiled with "
        note += f"{versions(record)}, {record.date[:10]}"
        text = field_text(record, target, name, peaks)
        shown: list[nodes.Node] = [noted("", text, note=note, classes=["compiled"])]
        if state.standing is Standing.EARLIER:
            earlier = f" (earlier code, {record.date[:10]})"
            shown.append(nodes.inline("", earlier, classes=["earlier"]))
        return shown


def setup(app: Sphinx) -> None:
    """Register the directives and the role."""
    app.add_directive("compiled", CompiledDirective)
    app.add_directive("compiled-scale", ScaleDirective)
    app.add_role("compiled", CompiledRole())
