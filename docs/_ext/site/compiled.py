"""Show what a function is compiled to, for devices that are not here, from committed records.

A record is data from elsewhere: whatever it holds is shown as text, and a
number has been checked to be one (programs.py).
"""

import ast
import html
import pathlib

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx_design.shared import create_component

from ..measurements import charts
from ..measurements.references import ratio_text, seconds_text
from ..programs import functions as programs
from ..programs import hlo
from ..source.snippets import Library, SnippetError
from .tables import table_node

SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
logger = logging.getLogger(__name__)


def amount_text(value, unit):
    """Write an amount with three digits and a unit, such as 54 GFLOP."""
    for scale, letter in SCALES:
        if value >= 0.9995 * scale:
            digits = f"{value / scale:.3g}"
            return f"{float(digits):g} {letter}{unit}"
    return f"{value:.3g} {unit}"


def number_text(value):
    """Write a number with three digits."""
    return f"{float(f'{value:.3g}'):,.10g}"


# Finding the record


def bring(directive, written, kind):
    """Return (program, record or None, State) for what a page names; None after a warning."""
    env, config = directive.env, directive.config
    root = pathlib.Path(env.book_root)
    library = Library(root / config.book_snippets)
    where = directive.get_location()
    try:
        program = programs.find(library, written, kind, programs.chapter(env.docname))
    except (SnippetError, programs.ProgramError) as error:
        logger.warning(str(error), location=where, type="book", subtype="compiled")
        return None
    for module in library.reached([program.definition.module]):
        env.note_dependency(str(library.path(module)))
    path = root / config.book_compiled / program.file
    # A file that is not there is looked for again by every build.
    env.note_dependency(str(path))
    record, state = programs.state(path.parent, program)
    if state.word != "current":
        logger.warning(
            f"the compiled program of '{program.name}' is {state}; run "
            f"'{programs.COMMAND} -- {program.name}' and commit "
            f"{pathlib.Path(config.book_compiled, program.file).as_posix()}",
            location=where,
            type="book",
            subtype="compiled",
        )
    return program, record, state


class _Directive(SphinxDirective):
    """What all directives on compiled programs share."""

    required_arguments = 1
    kind = "COMPILED"

    def run(self):
        found = bring(self, self.arguments[0], self.kind)
        if found is None:
            return []
        program, record, state = found
        parts = []
        if state.word != "current":
            text = f"The record of this program is {state}. It is made by "
            note = nodes.paragraph("", text, classes=["compile-state"])
            note += nodes.literal("", f"{programs.COMMAND} -- {program.name}")
            parts.append(note)
        return [*self.show(program, record), *parts]


# The compile view


class CompiledDirective(_Directive):
    """The compile view of one function: its source, and the stages of its compilation."""

    def show(self, program, record):
        view = nodes.container(classes=["compile-view"])
        view += source(program)
        if record is not None:
            stages = nodes.container(classes=["compile-stages"])
            stages += tabs(
                "stage",
                {
                    "jaxpr": ("jaxpr", jaxpr(record)),
                    "picture": ("picture", picture(program, record)),
                    "stablehlo": ("StableHLO", stablehlo(record)),
                    "hlo": ("optimized HLO", optimized(record)),
                    "cost": ("cost", [cost_table(record, list(record["targets"]))]),
                },
            )
            stages += provenance(record)
            view += stages
        frame = nodes.container(classes=["compile-frame"])
        frame += view
        return [frame]


def source(program):
    """Return the source of a function with its arguments, and what it uses, folded."""
    part = nodes.container(classes=["compile-source"])
    part += code(program.definition.source, "python")
    others = program.code.removesuffix(program.definition.source).strip("\n")
    part += folded("what it needs", [code(others, "python")]) if others else []
    if program.kind == "COMPILED":
        text = nodes.paragraph("", "Compiled for ")
        names = [argument.arg for argument in _function(program).args.args]
        for number, argument in enumerate(
            _named(dict(zip(names, program.arguments, strict=False)))
        ):
            text += [nodes.Text(", ")] if number else []
            text += nodes.literal("", argument)
        part += text
    return part


def _function(program):
    return ast.parse(program.definition.source).body[0]


def _named(arguments):
    found = []
    for name, value in arguments.items():
        if isinstance(value, dict):
            found += _named(value)
        elif isinstance(value, list):
            found += _named({f"{name}[{n}]": part for n, part in enumerate(value)})
        else:
            found.append(f"{name}: {value}")
    return found


def folded(summary, children):
    """Return nodes that a reader can unfold."""
    opening = f"<details><summary>{html.escape(summary)}</summary>"
    return [
        nodes.raw("", opening, format="html"),
        *children,
        nodes.raw("", "</details>", format="html"),
    ]


def code(text, language="none", marked=()):
    """Return a block of code, with some of its lines marked."""
    block = nodes.literal_block(text, text, language=language)
    if marked:
        block["highlight_args"] = {"hl_lines": list(marked)}
    return block


def tabs(group, items):
    """Return tabs, {key: (label, nodes)}, that switch together with others of their group."""
    tab_set = create_component("tab-set", classes=["sd-tab-set", f"{group}-tabs"])
    for key, (label, children) in items.items():
        head = nodes.rubric("", label, classes=["sd-tab-label"])
        head["sync_id"], head["sync_group"] = key, group
        content = create_component("tab-content", classes=["sd-tab-content"], children=children)
        tab_set += create_component("tab-item", classes=["sd-tab-item"], children=[head, content])
    return tab_set


def jaxpr(record):
    """Return the jaxpr as text. It is the same for all devices."""
    count = sum(record["operations"].values())
    return [
        nodes.paragraph("", f"{counted(count, 'operation')}, the same for all devices."),
        code("\n".join(record["jaxpr"])),
    ]


def counted(count, noun):
    """Write a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def stablehlo(record):
    """Return the StableHLO: once where all devices share it, as tabs where they do not."""
    parts = record["stablehlo"]
    if len(parts) == 1:
        text = "The same for all devices. No device has had a say yet."
        return [nodes.paragraph("", text), code("\n".join(parts[0]["text"]))]
    return [
        tabs(
            "lowered",
            {
                part["targets"][0]: (
                    ", ".join(programs.TARGETS[target] for target in part["targets"]),
                    [code("\n".join(part["text"]))],
                )
                for part in parts
            },
        )
    ]


def in_order(record):
    """Return the targets of a record in the order of the book."""
    return [target for target in programs.TARGETS if target in record["targets"]]


def optimized(record):
    """Return the optimized HLO of each device, with its kernels."""
    items = {}
    for target in in_order(record):
        lines = record["targets"][target]["hlo"]
        program = hlo.Program(lines)
        kernels = program.kernels()
        fusions = [kernel for kernel in kernels if kernel.opcode == "fusion"]
        items[target] = (
            programs.TARGETS[target],
            [
                *kernel_list(record, kernels, program.copies()),
                code("\n".join(lines), marked=[kernel.line for kernel in fusions]),
            ],
        )
    return [tabs("device", items)]


def kernel_list(record, kernels, copies):
    """Say how many kernels the operations of the jaxpr became, and which are in each."""
    count, fused = len(kernels), sum(kernel.fused for kernel in kernels)
    text = f"{counted(sum(record['operations'].values()), 'operation')} of the jaxpr became "
    if count == fused == 1:
        text += "1 fused kernel"
    else:
        text += counted(count, "kernel") + (f", {fused} of them fused" if fused else "")
    if copies:
        text += f". {len(copies)} {'copy is' if len(copies) == 1 else 'copies are'} made besides"
    entries = []
    for kernel in kernels:
        line = nodes.paragraph("", "", nodes.literal("", kernel.name))
        inside = ", ".join(kernel.operations) or "no operation of the jaxpr"
        line += nodes.Text(f": {inside}" + ("" if kernel.fused else f" ({kernel.what})"))
        entries.append(nodes.list_item("", line))
    listed = nodes.bullet_list("", *entries, classes=["compile-kernels"])
    return [nodes.paragraph("", text + "."), *([listed] if entries else [])]


def cost_table(record, targets):
    """Return the compiler's counts and sizes, a column for each device."""
    targets = [target for target in in_order(record) if target in targets]
    before = record["unoptimized"]
    loops = any(hlo.Program(facts["hlo"]).loops for facts in record["targets"].values())
    rows = [
        ["floating-point operations", *_costs(record, targets, before, "flops", "FLOP")],
        ["exp, tanh and the like", *_costs(record, targets, before, "transcendentals", "")],
        ["bytes read and written", *_costs(record, targets, before, "bytes", "B")],
        [
            "FLOP per byte",
            _intensity(before),
            *(_intensity(record["targets"][target]["cost"]) for target in targets),
        ],
        [
            "estimate of the compiler",
            "–",
            *(_field_text(record, target, "estimate") for target in targets),
        ],
    ]
    for field in ("arguments", "results", "temporaries", "kernels"):
        name = field if field == "kernels" else f"memory: {field}"
        rows.append([name, "–", *(_field_text(record, target, field) for target in targets)])
    head = ["", "before optimizing", *(programs.TARGETS[target] for target in targets)]
    table = table_node(head, rows, classes=["measurements", "compile-cost"])
    if loops:
        text = "The compiler counts what is in a loop once, however many rounds it has. "
        text += "So nothing here is multiplied by the rounds, and there is no estimate."
        table.insert(0, nodes.paragraph("", text))
    return table


def _costs(record, targets, before, field, unit):
    every = [before, *(record["targets"][target]["cost"] for target in targets)]
    return [amount_text(cost[field], unit).strip() if cost else "–" for cost in every]


def _intensity(cost):
    return number_text(cost["flops"] / cost["bytes"]) if cost and cost["bytes"] else "–"


def provenance(record):
    """Say when and with what a record was made."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    text = f"Compiled {record['date'][:10]} with {versions}. Nothing was run."
    return nodes.paragraph("", text, classes=["compile-provenance"])


# The picture of a jaxpr

ACROSS, DOWN, HEIGHT = 24, 74, 42


def picture(program, record):
    """Return the jaxpr as a drawing from top to bottom."""
    drawn = record["picture"]
    labels = max((len(node["label"]) for node in drawn["nodes"]), default=0)
    details = max((len(node["detail"]) for node in drawn["nodes"]), default=0)
    width = round(max(90, 8.4 * labels, 6.6 * details) + 16)
    step = width + ACROSS
    right = [node["x"] for node in drawn["nodes"]]
    right += [x for edge in drawn["edges"] for x, _ in edge["through"]]
    total = step * max(right, default=0) + width + 4
    height = DOWN * max((node["y"] for node in drawn["nodes"]), default=0) + HEIGHT + 4

    def place(x, y):
        return 2 + step * x + width / 2, 2 + DOWN * y

    parts = []
    for edge in drawn["edges"]:
        above, below = drawn["nodes"][edge["from"]], drawn["nodes"][edge["to"]]
        x, y = place(above["x"], above["y"])
        points = [(x, y + HEIGHT)]
        for through in edge["through"]:
            x, y = place(*through)
            points += [(x, y), (x, y + HEIGHT)]
        x, y = place(below["x"], below["y"])
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*points, (x, y)])
        parts.append(f'<polyline points="{path}" fill="none" opacity="0.6"/>')
        parts.append(
            f'<path d="M{x:.1f} {y:.1f}l-4 -8h8z" fill="currentColor" stroke="none" opacity="0.6"/>'
        )
    for node in drawn["nodes"]:
        x, y = place(node["x"], node["y"])
        dashed = "" if node["kind"] == "operation" else ' stroke-dasharray="4 3"'
        parts.append(
            f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width}" height="{HEIGHT}" rx="7" '
            f'fill="none"{dashed}/>'
        )
        for text, below, style in ((node["label"], 18, ' class="label"'), (node["detail"], 34, "")):
            parts.append(
                f'<text x="{x:.1f}" y="{y + below:.1f}" text-anchor="middle" stroke="none" '
                f'fill="currentColor"{style}>{html.escape(text)}</text>'
            )
    count = sum(node["kind"] == "operation" for node in drawn["nodes"])
    title = (
        f"The jaxpr of {program.definition.name}, drawn from its arguments at the top to its "
        f"result at the bottom, with {counted(count, 'operation')} in between"
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}" '
        f'style="max-width: {total:.0f}px; min-width: {0.7 * total:.0f}px" role="img" '
        'class="jaxpr-picture" stroke="currentColor">'
        f"<title>{html.escape(title)}</title>{''.join(parts)}</svg>"
    )
    scrolled = nodes.container(classes=["table-scroll"])
    scrolled += nodes.raw("", svg, format="html")
    return [scrolled]


# The cost by itself, and single numbers


class CostDirective(_Directive):
    """The table of costs of one function, for all devices or some."""

    option_spec = {"devices": directives.unchanged}  # noqa: RUF012

    def show(self, program, record):
        chosen = self.options.get("devices", " ".join(programs.TARGETS)).split()
        for target in chosen:
            if target not in programs.TARGETS:
                known = ", ".join(programs.TARGETS)
                raise self.error(f"there is no device '{target}'; there are {known}")
        return [] if record is None else [cost_table(record, chosen), provenance(record)]


def field(record, target, name):
    """Return a number of a record, or None where the compiler gives none."""
    if target == programs.BEFORE:
        return (record["unoptimized"] or {}).get(name)
    facts = record["targets"][target]
    if name in facts["memory"]:
        return facts["memory"][name]
    if name in ("kernels", "fusions", "copies"):
        program = hlo.Program(facts["hlo"])
        if name == "copies":
            return len(program.copies())
        return sum(name == "kernels" or kernel.fused for kernel in program.kernels())
    if name == "estimate" and hlo.Program(facts["hlo"]).loops:
        return None
    return facts["cost"] and facts["cost"].get(name)


UNITS = {"flops": "FLOP", "transcendentals": "", "kernels": None, "fusions": None, "copies": None}
FIELDS = (*UNITS, "bytes", "estimate", "arguments", "results", "temporaries")


def _field_text(record, target, name):
    value = field(record, target, name)
    if value is None:
        return "–"
    if name == "estimate":
        return seconds_text(value)
    unit = UNITS.get(name, "B")
    return str(value) if unit is None else amount_text(value, unit).strip()


class CompiledRole(SphinxRole):
    """A number of a record: ``{compiled}`products.matrix_product@tpu-v5e.estimate```.

    Two of them with ' / ' in between give a ratio.
    """

    def run(self):
        found = [self._single(part.strip()) for part in self.text.split(" / ")]
        if None in found or len(found) > 2:
            return [nodes.problematic("", self.text)], []
        (value, text, origin), *others = found
        if others:
            text = ratio_text(value / others[0][0])
            origin = f"{origin}; {others[0][2]}"
        return [nodes.abbreviation("", text, explanation=origin, classes=["measured"])], []

    def _single(self, text):
        match = programs.REFERENCE.fullmatch(text)
        labels = {**programs.TARGETS, programs.BEFORE: "before optimizing"}
        if not match or match["field"] not in FIELDS or match["target"] not in labels:
            return self._warn(
                f"'{text}' is not of the form function@device.field with a device of "
                f"{', '.join(labels)} and a field of {', '.join(FIELDS)}"
            )
        found = bring(self, match["name"], "COMPILED")
        if found is None or found[1] is None:
            return None
        program, record, _ = found
        target, name = match["target"], match["field"]
        present = target in record["targets"] or target == programs.BEFORE
        value = field(record, target, name) if present else None
        if not value:
            return self._warn(f"the compiler gives no {name} of {program.name} for {target}")
        versions = ", ".join(f"{n} {v}" for n, v in record["versions"].items())
        label = "the compiler's estimate, not a measurement" if name == "estimate" else name
        origin = f"{program.name}, {labels[target]}: {label}; compiled with {versions}"
        return value, _field_text(record, target, name), f"{origin}, {record['date'][:10]}"

    def _warn(self, message):
        logger.warning(message, location=self.get_location(), type="book", subtype="compiled")


# Many devices


CHARTS = ("flops", "bytes")


class ScaleDirective(_Directive):
    """A step compiled for many devices: its source, a table, or a chart over the devices."""

    kind = "SCALED"
    has_content = True
    option_spec = {  # noqa: RUF012
        "show": lambda value: directives.choice(value, ("source", "table", *CHARTS)),
        "case": directives.unchanged,
    }

    def show(self, program, record):
        what, case = self.options.get("show", "table"), self.options.get("case")
        if what == "source":
            return [source(program)]
        if record is None:
            return []
        runs = [run for run in record["runs"] if case in (None, run["case"])]
        if not runs:
            known = ", ".join(dict.fromkeys(run["case"] for run in record["runs"]))
            raise self.error(f"there is no case '{case}'; there are: {known}")
        if what == "table":
            return [scale_table(runs), provenance(record)]
        svg = scale_chart(runs, what, " ".join(self.content))
        figure = nodes.container(classes=["measurement-figure"])
        figure += nodes.raw("", svg, format="html")
        caption = nodes.container(classes=["measurement-caption"])
        caption += self.parse_content_to_nodes()
        figure += caption
        return [figure]


def scale_table(runs):
    """Return a table of runs on more and more devices."""
    head = ["device", "number", "batch", "for each", "collectives", "combined", "sent by each"]
    head += ["FLOP of each", "memory of each"]
    rows = []
    for run in runs:
        kinds = ", ".join(f"{entry['count']} {entry['kind']}" for entry in run["collectives"])
        each = run["batch"] // run["chips"] if run["chips"] else 0
        row = [programs.TARGETS.get(run["target"], run["target"]), run["chips"], run["batch"], each]
        row += [kinds or "none", amount_text(programs.moved(run), "B") if kinds else "–"]
        row += [amount_text(programs.sent(run), "B") if kinds else "–"]
        row += [amount_text(run["cost"]["flops"], "FLOP") if run["cost"] else "–"]
        rows.append([*row, amount_text(programs.memory(run), "B")])
    return table_node(head, rows, classes=["measurements", "compile-scale"])


def scale_chart(runs, what, title):
    """Return a chart over the number of devices: of FLOP, or of the bytes of each device."""
    several = len({run["case"] for run in runs}) > 1
    series = {}
    for run in runs:
        name = programs.TARGETS.get(run["target"], run["target"])
        name += f", {run['case']}" if several else ""
        if what == "bytes":
            for label, value in (("memory", programs.memory(run)), ("sent", programs.sent(run))):
                series.setdefault(f"{name}: {label}", []).append((run["chips"], value / 1e6))
        elif run["cost"] and run["cost"]["flops"]:
            series.setdefault(name, []).append((run["chips"], run["cost"]["flops"] / 1e9))
    if what == "flops":
        return charts.line_chart(series, "devices", "GFLOP of each device", title)
    return charts.line_chart(series, "devices", "megabytes of each device", title, from_zero=True)


def start(app):
    """Tell directives, which do not see the application, where the project is."""
    app.env.book_root = str(app.confdir)


def setup(app):
    """Register the configuration, the directives and the role."""
    app.add_config_value("book_compiled", "docs/_recorded/compiled", "env")
    app.add_directive("compiled", CompiledDirective)
    app.add_directive("compiled-cost", CostDirective)
    app.add_directive("compiled-scale", ScaleDirective)
    app.add_role("compiled", CompiledRole())
    app.connect("builder-inited", start)
