"""The sidebar of pages of sphinx-book-theme, made once for the site; the way to a page above it.

The theme resolves the whole tree of pages and parses it again for each page, a quarter of the time
of a build from recordings. Here it does so once, and each page marks in it what leads to itself.
"""

import functools
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment.adapters.toctree import _get_toctree_ancestors
from sphinx.util.osutil import relative_uri

from .asset_bundle import builder_of, is_wanted

# The module of the theme whose function makes a sidebar.
THEIRS = "pydata_sphinx_theme.toctree"


def add_sidebar(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Replace the theme's function that makes the sidebar; other uses of it stay the theme's."""
    theirs = context.get("generate_toctree_html")
    if theirs is None or not is_wanted(app):
        return
    if caption := caption_of(app, pagename):
        context["parents"] = [{"title": caption, "link": ""}, *context["parents"]]

    def generate(kind: str, startdepth: int = 1, **options: Any) -> Any:
        # Where others are collapsed, each page has a tree of its own.
        if (kind, startdepth) != ("sidebar", 0) or options.get("collapse"):
            return theirs(kind, startdepth, **options)
        return sidebar(app, pagename, functools.partial(theirs, kind, startdepth), context, options)

    context["generate_toctree_html"] = generate


def caption_of(app: Sphinx, pagename: str) -> str | None:
    """Return the caption in the sidebar under which a page lies."""
    ancestors = _get_toctree_ancestors(app.env.toctree_includes, pagename)
    highest = [pagename, *ancestors][-1]
    trees = app.env.tocs[app.config.root_doc].findall(addnodes.toctree)
    captions = (tree["caption"] for tree in trees if highest in tree["includefiles"])
    return next(captions, None)


def sidebar(
    app: Sphinx, pagename: str, theirs: Any, context: dict[str, Any], options: dict[str, Any]
) -> str:
    """Return the sidebar of a page: its own entry leads nowhere, what is above it is open."""
    builder, root = builder_of(app), app.config.root_doc
    made = app.__dict__.setdefault("_sidebars", {})
    key = repr(sorted(options.items()))
    if key not in made:
        of_page, of_root = context["toctree"], functools.partial(builder._get_local_toctree, root)
        context["toctree"] = of_root
        made[key] = str(theirs(**options))
        context["toctree"] = of_page
    tree = LexborHTMLParser(made[key])
    own = builder.get_target_uri(pagename)
    for link in tree.css("a.internal"):
        # A page that lists itself does so with a link to nowhere.
        to = str(link.attributes["href"]).replace("#", builder.get_target_uri(root))
        link.attrs["href"] = "#" if to == own else relative_uri(own, to)
        if to == own:
            _mark(link)
    assert tree.body is not None
    return tree.body.inner_html or ""


def _mark(link: LexborNode) -> None:
    """Mark the entry of the page that is shown, and open it and all that it lies in."""
    link.attrs["class"] = f"current {link.attributes['class']}"
    node = link.parent
    while node is not None and node.tag in ("li", "ul", "details"):
        if node.tag != "details":
            marks = ["current", "active"] if node.tag == "li" else ["current"]
            node.attrs["class"] = " ".join([*(node.attributes.get("class") or "").split(), *marks])
        for fold in node.css("li > details") if node.tag == "li" else ():
            if fold.parent == node:
                fold.attrs["open"] = "open"
        node = node.parent


def stand_behind_theirs(app: Sphinx) -> None:
    """Call `add_sidebar` right after the theme's function is there.

    The theme renders each part of a page twice, first to see whether it is empty. By priorities
    alone this would come after that.
    """
    listeners = app.events.listeners["html-page-context"]
    own = next(each for each in listeners if each.handler is add_sidebar)
    theirs = [each for each in listeners if each.handler.__module__ == THEIRS]
    if theirs:
        listeners.remove(own)
        listeners.insert(listeners.index(theirs[-1]) + 1, own)


def setup(app: Sphinx) -> None:
    """Register the events."""
    app.connect("html-page-context", add_sidebar)
    app.connect("builder-inited", stand_behind_theirs, priority=900)
