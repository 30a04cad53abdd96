"""Write the notebook of each page that readers download: its prose, its cells and their outputs.

Where conf.py says where on GitHub the notebooks of the site lie, the menu of a page also opens its
notebook on Colab, which takes notebooks from GitHub alone, and on Kaggle.
"""

import copy
import inspect
import pathlib
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import nbformat
from docutils import nodes
from selectolax.lexbor import LexborHTMLParser
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from . import files
from .book import ShownPage, book_of
from .frameworks import Framework, first_imports
from .hooks import Feature
from .markdown import markdown, say_once
from .source.expansion import HIDING_TAGS

# How notebooks hide the source of a cell: in Jupyter and VS Code, and on Colab.
HIDDEN = {"jupyter": {"source_hidden": True}, "cellView": "form"}
# Seconds that nobody waits for without having been told.
LONG = 300
# What the theme's menu of downloads calls by endings.
OFFERED = {".ipynb": "Notebook", ".md": "Markdown", ".pdf": "Print"}


def prose(
    body: str, doctree: nodes.document, address: str, features: Sequence[Feature]
) -> dict[int | None, str]:
    """Return the Markdown before each code cell of a page, by its number, and behind the last.

    Links have whole addresses where the page has one, and are plain text where it has none.
    """
    tree = LexborHTMLParser(f"<article>{body}</article>")
    cells = [
        node for node in doctree.findall(nodes.container) if node.get("nb_element") == "cell_code"
    ]
    for node in tree.css(".noted > .note, .headerlink, .framework-tabs > label, .provenance"):
        node.decompose()
    for link in tree.css("a[href]"):
        target = link.attributes["href"] or ""
        if address:
            link.attrs["href"] = urllib.parse.urljoin(address, target)
        elif not urllib.parse.urlsplit(target).scheme:
            link.unwrap()
    say_once(tree, features)
    by_cell: dict[int | None, str] = {}
    rest = tree.css("article")[0].html or ""
    for node, cell in zip(tree.css("div.cell"), cells, strict=True):
        before, _, rest = rest.partition(node.html or "")
        before += "".join(feature.prose(node) for feature in features)
        by_cell[cell["cell_index"]] = markdown(before, features).strip()
    return {**by_cell, None: markdown(rest, features).strip()}


def beginning(app: Sphinx, docname: str) -> list[nbformat.NotebookNode]:
    """Return the cells that come before those of the page.

    They say where it is from and what it needs, and bring what it imports from beside it.
    """
    book = book_of(app.env)
    options = book.options
    title, project = app.env.titles[docname].astext(), app.config.project
    if address := published(app, docname):
        title = f"[{title}]({address})"
    lines = [f"*{title}* is a page of *{project}*."]
    used, wanted = _used(app, docname), requirements(app, docname)
    if wanted:
        lines += [f"Its outputs come from {', '.join(f'`{pin}`' for pin in wanted.values())}."]
    if brought := {e.modules[0]: wanted[e.modules[0]] for e in used if not e.optional}:
        lines += ["The first cell installs what is missing. What is there keeps its version."]
    seconds = [facts.seconds for facts in book.pages[docname].outcome.recorded.values()]
    if seconds and seconds[0] >= LONG:
        lines += [f"All its cells took {seconds[0] / 60:.0f} minutes where they were recorded."]
    implied = {name for e in used for name in e.packages[1:]}
    if optional := [e.label for e in used if not e.required and e.packages[0] not in implied]:
        lines += [f"Without {' or '.join(optional)}, skip the cells that need what is missing."]
    cells = [nbformat.v4.new_markdown_cell("\n\n".join(lines), id="needs")]
    if brought:
        text = f"{inspect.getsource(install_missing)}\n\ninstall_missing({brought})"
        cells.append(nbformat.v4.new_code_cell(text, id="install", metadata=HIDDEN))
    if first := first_imports(options.registry, [name for e in used for name in e.modules]):
        cells.append(nbformat.v4.new_code_cell(first, id="first-imports"))
    for name in book.pages[docname].outcome.brings:
        text = book.library.file(name)
        quoted = repr(text) if "'''" in text else f"r'''{text}'''"
        code = f'{inspect.getsource(bring)}\n\nbring("{name}.py", {quoted})'
        cells.append(nbformat.v4.new_code_cell(code, id=f"file-{name}", metadata=HIDDEN))
    return cells


def bring(name: str, text: str) -> None:
    """Write a file of the book beside the notebook; one of somebody else is left as it is."""
    import pathlib

    path, title = pathlib.Path(name), text.partition("\n")[0]
    if path.exists() and path.read_text("utf8", "replace").partition("\n")[0] != title:
        raise FileExistsError(f"there is another {name} here: move it, or move this notebook")
    path.write_text(text, "utf8")


def install_missing(wanted: dict[str, str]) -> None:
    """Install what is missing, {module: requirement}; what is there stays in its version."""
    import importlib.metadata
    import importlib.util

    from IPython import get_ipython

    there = [module for module in wanted if importlib.util.find_spec(module)]
    missing = [wanted[module] for module in wanted if module not in there]
    if missing:
        distributions = importlib.metadata.packages_distributions()
        names = sorted({name for module in there for name in distributions.get(module, ())})
        kept = [f"{name}=={importlib.metadata.version(name)}" for name in names]
        get_ipython().run_line_magic("pip", " ".join(["install --quiet", *missing, *kept]))


def requirements(app: Sphinx, docname: str) -> dict[str, str]:
    """Return what a page needs as pip is asked for it, {module: requirement}."""
    page = book_of(app.env).pages.get(docname)
    versions = page.outcome.facts.versions if page and page.outcome.facts else {}
    return {entry.modules[0]: _requirement(entry, versions) for entry in _used(app, docname)}


def _used(app: Sphinx, docname: str) -> list[Framework]:
    """Return the frameworks that a page uses."""
    book = book_of(app.env)
    page = book.pages.get(docname)
    packages = set(page.inputs.packages if page else ())
    return [entry for entry in book.options.registry if packages.issuperset(entry.packages)]


def _requirement(framework: Framework, versions: Mapping[str, str]) -> str:
    """Return a framework as pip is asked for it, in the version that outputs come from."""
    candidates = (versions[name] for name in framework.packages if name in versions)
    # Of a build such as 2.13.0+cpu the package index knows the first part.
    version = next(candidates, "").partition("+")[0]
    return f"{framework.packages[0]}=={version}" if version else framework.packages[0]


def published(app: Sphinx, docname: str) -> str:
    """Return the address of a page, empty where nobody knows where the site is published."""
    base = app.config.html_baseurl
    return f"{base.rstrip('/')}/{app.builder.get_target_uri(docname)}" if base else ""


def _notebook_path(env: BuildEnvironment, docname: str) -> pathlib.Path:
    return pathlib.Path(env.doctreedir, "notebooks", f"{docname}.ipynb")


def keep(env: BuildEnvironment, docname: str, shown: ShownPage) -> None:
    """Keep the notebook of a page with what its first device printed, for whenever it is written.

    A page that is written again because another page changed is not executed or read again.
    """
    notebook = copy.deepcopy(shown.notebook)
    for number, panels in shown.panels.items():
        cell = notebook.cells[number]
        cell.metadata.pop("helpers", None)
        if HIDING_TAGS.intersection(cell.metadata.get("tags", ())):
            cell.metadata.update(copy.deepcopy(HIDDEN))
        cell["outputs"] = copy.deepcopy(panels[0].outputs or [])
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output["execution_count"] = cell.execution_count
    for key in ("source_map", "scripts"):
        notebook.metadata.pop(key, None)
    files.write(_notebook_path(env, docname), nbformat.writes(notebook))


def add_notebook(
    app: Sphinx, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Write the notebook of a page beside its source, where the theme's button finds it."""
    book = book_of(app.env)
    if docname not in book.pages or app.builder.format != "html":
        return
    path = _notebook_path(app.env, docname)
    if not path.is_file():
        return
    notebook = nbformat.read(path, as_version=4)
    before = prose(context["body"], doctree, published(app, docname), book.features)
    cells = beginning(app, docname)
    for number, cell in [*enumerate(notebook.cells), (None, None)]:
        if text := before.get(number):
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"text-{len(cells)}"))
        if cell and cell.cell_type == "code":
            cells.append(cell)
    notebook["cells"] = cells
    target = pathlib.Path(app.outdir, "_sources", f"{docname}.ipynb")
    files.write(target, nbformat.writes(notebook) + "\n")
    context["ipynb_source"] = f"{docname}.ipynb"


def add_launchers(
    app: Sphinx, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Offer the notebook of a page where it runs as it is, in the menu of downloads.

    One that needs more than a notebook can install runs nowhere else.
    """
    book = book_of(app.env)
    folder = book.options.notebooks
    if not folder or "ipynb_source" not in context:
        return
    page = book.pages[docname].outcome
    if page.command or any(entry.optional for entry in _used(app, docname)):
        return
    address = f"{folder.rstrip('/')}/{context['ipynb_source']}"
    services = {
        "Colab": f"https://colab.research.google.com/github/{address.removeprefix('https://github.com/')}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src={address}",
    }
    for group in _menus(context):
        group["tooltip"] = "Download or run this page"
        button = {"type": "link", "icon": "fas fa-play", "tooltip": "Run this page there"}
        group["buttons"][1:1] = [
            button | {"text": name, "url": url} for name, url in services.items()
        ]


def name_downloads(
    app: Sphinx, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Say in words what the theme's menu of downloads offers."""
    for button in [button for group in _menus(context) for button in group["buttons"]]:
        button["text"] = OFFERED.get(button["text"], button["text"])


def _menus(context: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        group
        for group in context.get("header_buttons", ())
        if group.get("label") == "download-buttons"
    ]


def setup(app: Sphinx) -> None:
    """Register the events; the theme reads the context, and adds its buttons, at priority 501."""
    app.connect("html-page-context", add_notebook, priority=400)
    app.connect("html-page-context", add_launchers, priority=502)
    app.connect("html-page-context", name_downloads, priority=503)
