"""The files of an extension: styles and scripts in its folder `static`, and its `templates`."""

import os
import pathlib
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

# Their place among all files: after those of themes and other extensions, before the book's own.
PRIORITY = 700
# Under which the metadata of a page hold scripts, besides the `scripts` of its head.
LOADED = "book_scripts"


def add_assets(app: Sphinx, module: str, *loaded: str) -> None:
    """Let the site have the files beside a module, and every page load those that are named."""
    folder = pathlib.Path(module).parent

    def add_folders(_: Sphinx, config: Config) -> None:
        for name, option in (("static", "html_static_path"), ("templates", "templates_path")):
            path, paths = os.path.relpath(folder / name, app.confdir), getattr(config, option)
            if (folder / name).is_dir() and path not in paths:
                setattr(config, option, [*paths, path])

    app.connect("config-inited", add_folders)
    for name in loaded:
        add = app.add_css_file if name.endswith(".css") else app.add_js_file
        add(name, priority=PRIORITY)


def load_on_page(env: BuildEnvironment, script: str) -> None:
    """Let the page that is read load a script, besides those that its head names."""
    env.metadata[env.docname].setdefault(LOADED, {})[script] = True


def add_scripts_of_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the scripts of a page, on this page alone."""
    facts = context.get("meta") or {}
    for name in dict.fromkeys([*facts.get("scripts", "").split(), *facts.get(LOADED, ())]):
        app.add_js_file(name)


def setup(app: Sphinx) -> None:
    """Give the site the files of the core, and pages what they ask for."""
    add_assets(app, __file__, "executed.css")
    # Before Sphinx's own scripts, which break off where a browser keeps nothing.
    app.add_js_file("elements.js", priority=150)
    # Before everything else, so that a page comes up with the chosen device.
    app.add_js_file("devices.js", priority=50)
    app.connect("html-page-context", add_scripts_of_page)
