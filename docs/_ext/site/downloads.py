"""Write the notebook of each page that readers download: no roles, no directives, with outputs."""

import pathlib
import re

import nbformat

from ..measurements import references, tables
from . import measurements
from . import tabs as devices

ROLE = re.compile(r"\{(measured|verdict|quoted)\}`([^`]+)`")
DIRECTIVE = re.compile(
    r"^```\{(?P<name>measurements|measurement-chart)\} (?P<patterns>.+)\n(?P<body>(?:.*\n)*?)```$",
    re.MULTILINE,
)
COLUMNS = re.compile(r"^:columns: (.+)$", re.MULTILINE)


def plain(text, env):
    """Return the Markdown of a cell with the book's own roles and directives resolved."""
    records = measurements.known(env)

    def role(found):
        kind, content = found.groups()
        try:
            if kind == "measured":
                return references.resolve(content, records).text
            if kind == "verdict":
                return f"**{references.verdict(content, records)[0]}**"
        except references.NotRecorded:
            return "(not recorded)"
        except references.ReferenceProblem:
            return content
        return f"“{content.partition(':')[2].strip()}”"

    def directive(found):
        columns = COLUMNS.search(found["body"])
        columns = (columns[1] if columns else tables.DEFAULT_COLUMNS).split()
        columns = [column for column in columns if column in tables.COLUMNS]
        records = measurements.matching(env, found["patterns"].split())
        head, rows = tables.grid(columns, records, lambda device: device)
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    return ROLE.sub(role, DIRECTIVE.sub(directive, text))


def offer(app, docname, templatename, context, doctree):
    """Write the notebook of a page beside its source, where the theme's button finds it."""
    if docname not in app.env.book_pages or app.builder.format != "html":
        return
    # MyST-NB writes every notebook it has rendered into this folder.
    rendered = pathlib.Path(app.outdir).parent / "jupyter_execute" / f"{docname}.ipynb"
    notebook = nbformat.read(rendered, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell["source"] = plain(cell.source, app.env)
        elif cell.cell_type == "code":
            cell["outputs"] = devices.first_outputs(cell.outputs)
    notebook.metadata.pop("source_map", None)
    target = pathlib.Path(app.outdir, "_sources", f"{docname}.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    context["ipynb_source"] = f"{docname}.ipynb"


def setup(app):
    """Register the event; the theme reads the context at priority 501."""
    app.connect("html-page-context", offer, priority=400)
