"""The order of a build: find outdated pages, execute what is not cached, show, publish."""

import dataclasses
import json
import os
import pathlib

from filelock import FileLock, Timeout
from sphinx.util import logging

from . import again, execute, identity, measurements, outputs, parser, snippets
from .pages import PageError, read_page
from .store import Store

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class PageState:
    """What the build knows of an executed page between builds."""

    modules: dict
    facts: dict
    records: list
    failures: list
    fresh: bool


def configure_myst_nb(app, config):
    """Leave the execution to this engine, and show tracebacks as they are."""
    config.nb_execution_mode = "off"
    # The lexer for IPython's tracebacks warns of those that the kernel writes here.
    config.nb_render_error_lexer = "none"


def lock_output(app, config):
    """Let only one build at a time work in an output folder."""
    pathlib.Path(app.doctreedir).mkdir(parents=True, exist_ok=True)
    app.book_lock = FileLock(pathlib.Path(app.doctreedir, "building.lock"))
    try:
        app.book_lock.acquire(timeout=0)
    except Timeout:
        logger.info(f"waiting for another build of {app.outdir} to finish")
        app.book_lock.acquire()


def start(app):
    """Give the build its library, and the environment its place for the state of pages."""
    app.book_changed = set()
    if not hasattr(app.env, "book_pages"):
        app.env.book_pages = {}
    app.book_records = measurements.all_records(app.env)
    app.book_reminder = again.Reminder(app)
    app.book_reminder.start()
    app.book_library = snippets.Library(pathlib.Path(app.confdir, app.config.book_snippets))


def outdated(app, env, added, changed, removed):
    """Return the pages that failed, and those that reach a module which has changed."""
    for docname in removed:
        env.book_pages.pop(docname, None)
        app.book_changed.add("book_shows_status")
    found = list(app.book_reminder.outdated(env))
    for docname, state in env.book_pages.items():
        # As long as no module has changed, the page reaches the same ones: none is parsed here.
        changed_modules = any(
            app.book_library.digest(name) != digest for name, digest in state.modules.items()
        )
        if state.failures or changed_modules:
            found.append(docname)
    return found


def run_pages(app, env, docnames):
    """Bring the outputs of all pages that will be read: from the cache, or by executing them."""
    if not docnames:
        return
    for state in env.book_pages.values():
        state.fresh = False
    for docname in docnames:
        env.book_pages.pop(docname, None)
    pages = [page for docname in docnames if (page := _read(app, env, docname))]
    if pages:
        _bring_outputs(app, env, pages)
    app.book_changed.add("book_shows_status")


def _read(app, env, docname):
    try:
        return read_page(docname, env.doc2path(docname), app.book_library)
    except (PageError, snippets.SnippetError) as error:
        _fail(env, docname, {}, [execute.Failure(getattr(error, "line", 1), str(error))])
        return None


def _bring_outputs(app, env, pages):
    device = app.config.book_environment["device"]
    folder = pathlib.Path(app.confdir, app.config.book_cache, device)
    store = Store(folder)
    missing = []
    for page in pages:
        facts = store.load(page, identity.cache_key(page, device))
        if facts is None:
            missing.append(page)
        else:
            _keep(env, page, facts, fresh=False)
    if not missing:
        return
    durations = _Durations(folder / "durations.json")

    def done(page, execution):
        if execution.failures:
            parser.show(page)
            _fail(env, page.docname, page.modules, execution.failures, execution.facts)
            return
        store.save(page, identity.cache_key(page, device), execution.facts)
        durations.note(page.docname, execution.facts["seconds"])
        _keep(env, page, execution.facts, fresh=True)

    limits = execute.Limits(app.config.book_cell_timeout, app.config.book_page_timeout, device)
    execute.execute_all(missing, limits, done, durations.known)


def _keep(env, page, facts, fresh):
    records = [
        record | {"page": page.docname}
        for cell in page.code_cells
        for record in outputs.records(cell.outputs)
    ]
    parser.show(page)
    env.book_pages[page.docname] = PageState(page.modules, facts, records, [], fresh)


def _fail(env, docname, modules, failures, facts=None):
    env.book_pages[docname] = PageState(modules, facts or {}, [], failures, True)
    for failure in failures:
        logger.warning(
            failure.message, location=(docname, failure.line), type="book", subtype="page"
        )


class _Durations:
    """How long pages took when they were last executed: a hint for the order, nothing more."""

    def __init__(self, path):
        self.path = path
        try:
            self.known = json.loads(path.read_text("utf8"))
        except (OSError, ValueError):
            self.known = {}

    def note(self, docname, seconds):
        self.known[docname] = round(seconds, 2)
        half_written = self.path.with_suffix(f".{os.getpid()}")
        half_written.write_text(json.dumps(self.known, indent=1), "utf8")
        half_written.replace(self.path)


def dependents(app, env):
    """Return the pages to write again because records or states on other pages changed."""
    measurements.tell_duplicates(env)
    if measurements.all_records(env) != app.book_records:
        app.book_changed.add("book_uses_records")
    return [docname for docname in env.found_docs if app.book_changed & set(env.metadata[docname])]


def finish(app, exception):
    """Publish the records; make the build fail as long as any page fails."""
    if exception is None:
        if app.builder.format == "html":
            measurements.publish(app.env, app.outdir)
        failed = sorted(name for name, state in app.env.book_pages.items() if state.failures)
        if failed:
            logger.info(f"{len(failed)} failed: {', '.join(failed)}", color="red")
            app.statuscode = 1
        app.book_reminder.finish()
    app.book_lock.release()


def setup(app):
    """Register the configuration and the events."""
    device = identity.device_from_environment()
    app.add_config_value("book_snippets", "snippets", "env")
    app.add_config_value("book_cache", "_cache", "")
    app.add_config_value("book_cell_timeout", 120.0, "", (int, float))
    app.add_config_value("book_page_timeout", 300.0, "", (int, float))
    app.add_config_value("book_environment", identity.environment(device), "env")
    app.add_source_parser(parser.PageParser, override=True)
    app.connect("config-inited", configure_myst_nb)
    app.connect("config-inited", lock_output)
    app.connect("builder-inited", start)
    app.connect("env-get-outdated", outdated)
    app.connect("env-before-read-docs", run_pages)
    app.connect("env-updated", dependents)
    app.connect("build-finished", finish)
