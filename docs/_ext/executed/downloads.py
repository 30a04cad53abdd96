"""Write the notebook of each page that readers download: its prose, its cells and their outputs.

Where conf.py says where on GitHub the notebooks of the site lie, the menu of a page also opens its
notebook on Colab, which takes notebooks from GitHub alone, and on Kaggle.
"""

import inspect
import pathlib
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

import nbformat
from docutils import nodes
from selectolax.lexbor import LexborHTMLParser, LexborNode

from . import files, tabs
from .app import BookApp, BookEnvironment
from .book import PageState
from .frameworks import Framework, first_imports
from .markdown import markdown

# Stands in for a code cell; its number is that in the notebook.
CELL = re.compile(r"^bookcell(\d+)$", re.MULTILINE)


def prose(body: str, doctree: nodes.document, address: str) -> dict[int | None, str]:
    """Return the Markdown before each code cell of a page, by its number, and behind the last.

    Links have whole addresses where the page has one, and are plain text where it has none.
    """
    tree = LexborHTMLParser(f"<article>{body}</article>")
    cells = [
        each for each in doctree.findall(nodes.container) if each.get("nb_element") == "cell_code"
    ]
    for node in tree.css(".noted > .note, .headerlink"):
        node.decompose()
    for link in tree.css("a[href]"):
        target = link.attributes["href"] or ""
        if address:
            link.attrs["href"] = urllib.parse.urljoin(address, target)
        elif not urllib.parse.urlsplit(target).scheme:
            link.unwrap()
    for node, cell in zip(tree.css("div.cell"), cells, strict=True):
        stands_in = f"<p>bookcell{cell['cell_index']}</p>"
        if asked := node.css_first(".predict"):
            stands_in = _question(asked) + stands_in
        node.replace_with(LexborHTMLParser(f"<div>{stands_in}</div>").css("div")[0])
    for label in tree.css(".framework-tabs > label"):
        label.decompose()
    text = markdown(tree.css("article")[0].html or "")
    first, *rest = CELL.split(text)
    numbers = [*map(int, rest[::2]), None]
    return dict(zip(numbers, map(str.strip, [first, *rest[1::2]]), strict=True))


def _question(asked: LexborNode) -> str:
    """Return a question that readers are to answer before they look."""
    question = asked.css("legend")[0].inner_html
    answers = "".join(f"<li>{answer.inner_html}</li>" for answer in asked.css("button"))
    return f"<p><strong>Before you look:</strong> {question}</p><ul>{answers}</ul>"


def beginning(app: BookApp, docname: str) -> list[nbformat.NotebookNode]:
    """Return the cells that come before those of the page.

    They say where it is from and what it needs, and bring what it imports from beside it.
    """
    state, options = app.env.book_pages[docname], app.book.options
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
    facts = app.env.book_pages.get(docname, PageState()).facts
    versions = facts.versions if facts else {}
    return {each.modules[0]: _requirement(each, versions) for each in _used(app, docname)}


def _used(app: BookApp, docname: str) -> list[Framework]:
    """Return the frameworks that a page uses."""
    packages = set(app.env.book_pages.get(docname, PageState()).packages)
    return [each for each in app.book.options.registry if packages.issuperset(each.packages)]


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


def rendered(env: BookEnvironment) -> pathlib.Path:
    """Return the folder in which MyST-NB leaves what it renders: one of this site alone."""
    return pathlib.Path(env.doctreedir, "rendered")


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
    before = prose(context["body"], doctree, published(app, docname))
    cells = beginning(app, docname)
    for number, cell in [*enumerate(notebook.cells), (None, None)]:
        if text := before.get(number):
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"text-{len(cells)}"))
        if cell and cell.cell_type == "code":
            cell["outputs"] = tabs.first_outputs(cell.outputs)
            cells.append(cell)
    notebook["cells"] = cells
    for key in ("source_map", "scripts"):
        notebook.metadata.pop(key, None)
    target = pathlib.Path(app.outdir, "_sources", f"{docname}.ipynb")
    files.write(target, nbformat.writes(notebook) + "\n")
    context["ipynb_source"] = f"{docname}.ipynb"


def add_launchers(
    app: BookApp, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Offer the notebook of a page where it runs as it is, in the menu of downloads.

    One that needs more than a notebook can install runs nowhere else.
    """
    folder = app.book.options.notebooks
    if not folder or "ipynb_source" not in context:
        return
    if app.env.book_pages[docname].command or any(each.optional for each in _used(app, docname)):
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


def setup(app: BookApp) -> None:
    """Register the events; the theme reads the context, and adds its buttons, at priority 501."""
    app.connect("html-page-context", add_notebook, priority=400)
    app.connect("html-page-context", add_launchers, priority=502)
