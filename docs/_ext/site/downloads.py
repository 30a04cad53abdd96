"""Write the notebook of each page that readers download: no roles, no directives, with outputs.

Where conf.py says where on GitHub the notebooks of the site lie, the menu of a page also opens its
notebook on Colab, which takes notebooks from GitHub alone, and on Kaggle.
"""

import csv
import functools
import inspect
import io
import pathlib
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

import nbformat

from .. import files
from ..frameworks import Framework, first_imports
from ..measurements import references, tables
from ..measurements.ranges import compared
from ..programs.declared import ProgramError
from ..source import predictions
from ..source.predictions import FENCE
from ..source.snippets import SnippetError, split_lines
from . import compiled, measurements, tabs
from .app import BookApp, BookEnvironment
from .states import PageState, book_of, pages_of

# Roles of one number, with what finds it.
NUMBERS = {
    "measured": references.resolve,
    "compared": functools.partial(references.resolve, write=compared),
    "paid": references.paid,
}
ROLE = re.compile(rf"\{{({'|'.join(NUMBERS)}|compiled|verdict|quoted)\}}`([^`]+)`")
DIRECTIVE = re.compile(
    r"^```\{(?P<name>measurements|measurement-chart)\} (?P<patterns>.+)\n(?P<body>(?:.*\n)*?)```$",
    re.MULTILINE,
)
# What is set apart by colons. What is in it stays, and the title of a dropdown.
APART = re.compile(
    r"^(?P<colons>:{3,})\{(?P<kind>container|div|dropdown)\} *(?P<title>.*)\n"
    r"(?P<body>(?:.*\n)*?)(?P=colons)$",
    re.MULTILINE,
)
# What is of use on the site alone, and places that links lead to.
OF_SITE = re.compile(
    r"^(?P<fence>[`:]{3,})\{(?:raw|toctree|roofline|measurement-names|measurement-settings)\}.*\n"
    r"(?:.*\n)*?(?P=fence)$\n*|^\([\w-]+\)=\n",
    re.MULTILINE,
)
COLUMNS = re.compile(r"^:columns: (.+)$", re.MULTILINE)
INCLUDED = re.compile(
    r"^```\{(?P<name>literalinclude|csv-table)\} *(?P<argument>.*)\n(?P<body>(?::.*\n)*)```$",
    re.MULTILINE,
)
OPTION = re.compile(r"^:([\w-]+): *(.*)$", re.MULTILINE)
DOWNLOAD = re.compile(r"\{download\}`([^`<]+?) *(?:<[^`]*>)?`")
# What looks like a link in code is none.
LINK = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)|(?P<ticks>`+).+?(?<!`)(?P=ticks)(?!`)|"
    r"(?<!!)\[(?P<text>(?:[^][`]|`[^`]*`)+)\]\((?P<target>[^()\s]+)\)",
    re.MULTILINE | re.DOTALL,
)


def plain(text: str, env: BookEnvironment, records: references.Measurements, docname: str) -> str:
    """Return the Markdown of a cell of a page with roles and directives resolved."""

    def role(found: re.Match[str]) -> str:
        kind, content = found.groups()
        try:
            if kind in NUMBERS:
                number = NUMBERS[kind](content, records)
                return f"{number.text} ({number.earlier})" if number.earlier else number.text
            if kind == "compiled":
                return compiled.plain(content, env.book_options, docname)
            if kind == "verdict":
                return f"**{references.verdict(content, records)[0]}**"
        except references.NotRecorded:
            return "(not recorded)"
        except (references.ReferenceProblem, SnippetError, ProgramError):
            return content
        return f"“{content.partition(':')[2].strip()}”"

    def directive(found: re.Match[str]) -> str:
        given = COLUMNS.search(found["body"])
        named = given[1].split() if given else []
        columns = [column for column in named if column in tables.COLUMNS]
        columns = columns or tables.DEFAULT_COLUMNS.split()
        shown = tables.by_device(measurements.matching(env, found["patterns"].split()))
        labels, parts = measurements.labels(env.book_options), []
        for device, measured in shown.items():
            if shown.keys() - {env.book_home}:
                parts.append(f"On {labels.device(device)}:")
            head, rows = tables.grid(columns, measured, labels)
            parts.append(_table([head, *rows]))
        return "\n\n".join(parts) or "(not recorded)"

    text = OF_SITE.sub("", text)
    text = DIRECTIVE.sub(directive, APART.sub(inside, FENCE.sub(question, text)))
    text = INCLUDED.sub(lambda found: _included(found, env, docname), text)
    return DOWNLOAD.sub(r"`\1`", ROLE.sub(role, text))


def beginning(app: BookApp, docname: str) -> list[nbformat.NotebookNode]:
    """Return the cells that come before those of the page.

    They say where it is from and what it needs, and bring what it imports from beside it.
    """
    state, options = pages_of(app.env)[docname], book_of(app).options
    title, book = app.env.titles[docname].astext(), app.config.project
    if address := published(app, docname):
        title = f"[{title}]({address})"
    lines = [f"*{title}* is a page of *{book}*."]
    used, wanted = _used(app, docname), requirements(app, docname)
    if wanted:
        lines += [f"Its outputs come from {', '.join(f'`{each}`' for each in wanted.values())}."]
    if brought := {e.modules[0]: wanted[e.modules[0]] for e in used if not e.optional}:
        lines += ["The first cell installs what is missing. What is there keeps its version."]
    implied = {name for each in used for name in each.packages[1:]}
    if optional := [e.label for e in used if not e.required and e.packages[0] not in implied]:
        lines += [f"Without {' or '.join(optional)}, skip the cells that need what is missing."]
    cells = [nbformat.v4.new_markdown_cell("\n\n".join(lines), id="needs")]
    folded = {"jupyter": {"source_hidden": True}}
    if brought:
        text = f"{inspect.getsource(install_missing)}\n\ninstall_missing({brought})"
        cells.append(nbformat.v4.new_code_cell(text, id="install", metadata=folded))
    if first := first_imports(options.registry, [name for each in used for name in each.modules]):
        cells.append(nbformat.v4.new_code_cell(first, id="first-imports"))
    for name in state.brings:
        text = f"%%writefile {name}.py\n{app.book_library.file(name)}"
        cells.append(nbformat.v4.new_code_cell(text, id=f"file-{name}", metadata=folded))
    return cells


def install_missing(wanted: dict[str, str]) -> None:
    """Install what is missing, {module: requirement}; what is there stays in its version."""
    import importlib.metadata
    import importlib.util

    from IPython import get_ipython

    there = [module for module in wanted if importlib.util.find_spec(module)]
    missing = [wanted[module] for module in wanted if module not in there]
    if missing:
        known = importlib.metadata.packages_distributions()
        names = sorted({name for module in there for name in known.get(module, ())})
        kept = [f"{name}=={importlib.metadata.version(name)}" for name in names]
        get_ipython().run_line_magic("pip", " ".join(["install --quiet", *missing, *kept]))


def requirements(app: BookApp, docname: str) -> dict[str, str]:
    """Return what a page needs as pip is asked for it, {module: requirement}."""
    facts = pages_of(app.env).get(docname, PageState()).facts
    versions = facts.versions if facts else {}
    return {each.modules[0]: _requirement(each, versions) for each in _used(app, docname)}


def _used(app: BookApp, docname: str) -> list[Framework]:
    """Return the frameworks that a page uses."""
    packages = set(pages_of(app.env).get(docname, PageState()).packages)
    return [each for each in book_of(app).options.registry if packages.issuperset(each.packages)]


def _requirement(framework: Framework, versions: Mapping[str, str]) -> str:
    """Return a framework as pip is asked for it, in the version that outputs come from."""
    found = (versions[name] for name in framework.packages if name in versions)
    # Of a build such as 2.13.0+cpu the package index knows the first part.
    version = next(found, "").partition("+")[0]
    return f"{framework.packages[0]}=={version}" if version else framework.packages[0]


def published(app: BookApp, docname: str) -> str:
    """Return the address of a page, empty where nobody knows where the site is published."""
    base = app.config.html_baseurl
    return f"{base.rstrip('/')}/{app.builder.get_target_uri(docname)}" if base else ""


def followed(text: str, app: BookApp, docname: str) -> str:
    """Return Markdown whose links to other pages have whole addresses, or are plain text."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or urllib.parse.urlsplit(target).scheme:
            return found[0]
        path, _, anchor = target.partition("#")
        name = app.env.path2doc(app.env.relfn2path(path, docname)[1]) if path else docname
        address = published(app, name) if name in app.env.found_docs else ""
        if not address or name is None:
            return found["text"]
        slugs = app.env.metadata[name].get("myst_slugs", {})
        anchor = slugs[anchor][1] if anchor in slugs else anchor
        return f"[{found['text']}]({address}{'#' if anchor else ''}{anchor})"

    return LINK.sub(link, text)


def _table(lines: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown; the first line is its head."""
    head, *rows = [[text.replace("|", "\\|") for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def _included(found: re.Match[str], env: BookEnvironment, docname: str) -> str:
    """Return what a directive shows of a file; what Sphinx could not read either stays."""
    options = dict(OPTION.findall(found["body"]))
    # What a table has in this place is its title.
    name = options.get("file", "") if found["name"] == "csv-table" else found["argument"]
    try:
        text = pathlib.Path(env.relfn2path(name.strip(), docname)[1]).read_text("utf8")
    except (OSError, ValueError):
        return found[0]
    if found["name"] == "csv-table":
        return _table(csv.reader(io.StringIO(text)))
    return f"```{options.get('language', '')}\n{text.rstrip()}\n```"


def inside(found: re.Match[str]) -> str:
    """Return what a container or a dropdown holds, under the title of a dropdown."""
    body = APART.sub(inside, found["body"]).rstrip("\n")
    return f"**{found['title']}**\n\n{body}" if found["kind"] == "dropdown" else body


def question(found: re.Match[str]) -> str:
    """Return a question that readers are to answer before they look, as plain Markdown."""
    try:
        asked = predictions.read(found["question"], split_lines(found["body"]))
    except predictions.PredictionError:
        return ""
    answers = "\n".join(f"- {answer.text}" for answer in asked.answers)
    return f"**Before you look:** {asked.question}\n\n{answers}"


def rendered(env: BookEnvironment) -> pathlib.Path:
    """Return the folder in which MyST-NB leaves what it renders: one of this site alone."""
    return pathlib.Path(env.doctreedir, "rendered")


def target(app: BookApp, docname: str) -> pathlib.Path:
    """Return where the notebook of a page lies in the site."""
    return pathlib.Path(app.outdir, "_sources", f"{docname}.ipynb")


def add_notebook(
    app: BookApp, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Write the notebook of a page beside its source, where the theme's button finds it."""
    if docname not in app.env.book_pages or app.builder.format != "html":
        return
    path = rendered(app.env) / f"{docname}.ipynb"
    if not path.is_file():
        return
    notebook = nbformat.read(path, as_version=4)
    records = measurements.known(app.env)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = plain(cell.source, app.env, records, docname)
            cell["source"] = followed(text, app, docname)
        elif cell.cell_type == "code":
            cell["outputs"] = tabs.first_outputs(cell.outputs)
    notebook["cells"] = [*beginning(app, docname), *notebook.cells]
    notebook.metadata.pop("source_map", None)
    files.write(target(app, docname), nbformat.writes(notebook) + "\n")
    context["ipynb_source"] = f"{docname}.ipynb"


def add_launchers(
    app: BookApp, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Offer the notebook of a page where it runs as it is, in the menu of downloads.

    One that needs more than a notebook can install runs nowhere else.
    """
    folder = book_of(app).options.notebooks
    if not folder or "ipynb_source" not in context:
        return
    if pages_of(app.env)[docname].command or any(each.optional for each in _used(app, docname)):
        return
    address = f"{folder.rstrip('/')}/{context['ipynb_source']}"
    found = {
        "Colab": f"https://colab.research.google.com/github/{address.removeprefix('https://github.com/')}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src={address}",
    }
    for group in context.get("header_buttons", ()):
        if group.get("label") == "download-buttons":
            group["tooltip"] = "Download or run this page"
            button = {"type": "link", "icon": "fas fa-play", "tooltip": "Run this page there"}
            group["buttons"][1:1] = [
                button | {"text": name, "url": url} for name, url in found.items()
            ]


def remove_notebook(app: BookApp, docname: str) -> None:
    """Remove the notebook of a page that has none any more."""
    for path in (target(app, docname), rendered(app.env) / f"{docname}.ipynb"):
        path.unlink(missing_ok=True)


def remove(app: BookApp, docname: str) -> None:
    """Remove what a page that is gone has left in the site."""
    remove_notebook(app, docname)
    if app.builder.format == "html":
        pathlib.Path(app.outdir, "_sources", f"{docname}.md.txt").unlink(missing_ok=True)
        pathlib.Path(app.builder.get_output_path(docname)).unlink(missing_ok=True)


def gone(app: BookApp) -> set[str]:
    """Return the executed pages whose notebook is not in the site any more."""
    if app.builder.format != "html":
        return set()
    states = app.env.book_pages
    return {name for name in states if states[name].home and not target(app, name).is_file()}


def setup(app: BookApp) -> None:
    """Register the events; the theme reads the context, and adds its buttons, at priority 501."""
    app.connect("html-page-context", add_notebook, priority=400)
    app.connect("html-page-context", add_launchers, priority=502)
