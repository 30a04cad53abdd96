"""The order of a build: find what is outdated, read, execute, put beside recordings, show."""

import functools
import pathlib
from collections.abc import Iterable
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.util import logging

from errors import beside as versions
from errors import listing as errors
from errors.outcomes import declared_errors
from measured import published as measurements
from measured.schema import Schema, single
from pictures import drawn as pictures
from predicted import covering as predictions

from . import files, freshness, parser, tabs
from .app import BookApp, BookEnvironment
from .book import Book, PageState, values
from .options import PREFIX, OptionError, Options, check
from .run import key
from .run.results import Result, run_or_load
from .run.schedule import Failure
from .source.pages import Page, PageError, read_page
from .source.snippets import Library
from .store import outputs
from .store.device_outputs import DeviceResult, editions

logger = logging.getLogger(__name__)


def configure(app: Sphinx, config: Config) -> None:
    """Leave the execution to this engine; what builds leave behind are no pages."""
    try:
        check({**config._raw_config, **values(config)}, pathlib.Path(app.confdir, "conf.py"))
    except OptionError as error:
        raise ConfigError(str(error)) from None
    config.nb_execution_mode = "off"
    # The lexer for IPython's tracebacks warns of those that the kernel writes here.
    config.nb_render_error_lexer = "none"
    # As in `Options.page_files`: what builds and recorders write lies in such folders.
    config.exclude_patterns = [*config.exclude_patterns, "_*", "**/_*"]


def say(app: BookApp, line: str) -> None:
    """Say what is executed and what failed, in a build with `-q` too, where Sphinx says nothing."""
    print(line, file=app._warning, flush=True)


def start(app: BookApp) -> None:
    """Give the build its options, and the environment its place for the state of pages."""
    app.book_changed = set()
    app.book = Book(app)
    app.book_library = Library.of(app.book.options)
    app.env.book_home = app.book.home
    # Directives do not see the application.
    app.env.book_options = app.book.options
    if not hasattr(app.env, "book_pages"):
        app.env.book_pages, app.env.book_shown, app.env.book_texts = {}, [], {}
    app.book_records = measurements.all_records(app.env)
    app.book_errors = errors.all_errors(app.env)
    app.book_partial = any(state.failures for state in app.env.book_pages.values())


def outdated(
    app: BookApp, env: BookEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the pages to read again, besides those that Sphinx finds."""
    for docname in removed:
        env.book_pages.pop(docname, None)
        env.book_texts.pop(docname, None)
        app.book_changed.add("book_shows_status")
    found = freshness.outdated(app, env)
    return sorted(found & env.found_docs)


def run_pages(app: BookApp, env: BookEnvironment, docnames: list[str]) -> None:
    """Take every page that will be read its one way, up to what is shown of it."""
    book = app.book
    for state in env.book_pages.values():
        state.fresh = False
    pages = []
    for docname in docnames:
        env.book_pages.pop(docname, None)
        path = pathlib.Path(env.doc2path(docname))
        env.book_texts[docname] = files.digest(path)
        if page := _read(app, env, docname, path):
            pages.append(page)
    here = [page for page in pages if book.executes(page)]
    for page in pages:
        if page not in here:
            _show(app, env, page, None)
    if here:

        def trouble(page: Page, message: str) -> None:
            _warn(page.docname, 1, message)

        def done(result: Result) -> None:
            _show(app, env, result.page, result)

        run_or_load(here, book.options, done, functools.partial(say, app), trouble)
    if docnames:
        app.book_changed.add("book_shows_status")


def _read(app: BookApp, env: BookEnvironment, docname: str, path: pathlib.Path) -> Page | None:
    try:
        book = app.book
        page = read_page(
            docname, path, app.book_library, book.devices, list(book.options.frameworks)
        )
    except PageError as error:
        failure = Failure(error.line, str(error))
        env.book_pages[docname] = PageState(failures=(failure,), fresh=True)
        env.book_pages[docname].files = app.book.recording_digests(docname)
        _warn(docname, failure.line, failure.message)
        return None
    if page is None:
        parser.forget(docname)
    return page


def _show(app: BookApp, env: BookEnvironment, page: Page, result: Result | None) -> None:
    """Put a page's outputs beside its recordings, and keep what is known of it."""
    book = app.book
    home = page.device or book.home
    digests = book.recording_digests(page.docname)
    live = result.outputs if result else None
    found = editions(page, live, book.recordings, home, book.devices)
    made = book.versions.of_page(page)
    first = found[0].outputs
    used = key.packages(page, book.options)
    records, outdated, refused = _records(page, found, book.schema)
    failed = result.failures if result else ()
    answers, wrong = predictions.right_answers(page, found, book.schema, book.options.label)
    panels = tabs.panels(page, found, book.options, book.schema)
    panels = versions.beside(page, panels, first, made, book.options)
    panels, undrawn = pictures.drawn(page, panels, failed=bool(failed))
    failures = (*failed, *refused, *undrawn, *([] if failed else wrong))
    state = PageState(
        modules=dict(page.modules),
        packages=used,
        benchmark=page.benchmark,
        environment=key.environment_digest(used, book.options, home, page.benchmark)
        if result
        else "",
        home=home,
        only=page.device is not None,
        facts=first.facts if first else None,
        missing={cell.key: cell.missing for cell in first.cells if cell.missing} if first else {},
        records=[] if failures else records,
        outdated=outdated,
        failures=failures,
        fresh=bool(result and result.fresh),
        states={edition.device: edition.recorded for edition in found},
        recorded={e.device: e.recording.facts for e in found if e.recording},
        files=digests,
        errors=declared_errors(page, first, made),
        incomplete=_incomplete(page, found),
        brings=tuple(page.files),
        command=page.recorded,
    )
    env.book_pages[page.docname] = state
    parser.show(page, panels, answers, book.options)
    for failure in failures:
        _warn(page.docname, failure.line, failure.message)


def _records(
    page: Page, found: Iterable[DeviceResult], schema: Schema | None
) -> tuple[list[dict[str, Any]], list[tuple[str, str, str]], list[Failure]]:
    """Return the measurements among the outputs of all devices, with where they were made.

    Beside them are the name, framework and device of those of which the measured code is another
    today, and the failures of cells that display something else as a measurement.
    """
    kept, outdated, failures = [], [], []
    for edition in found:
        for cell in page.cells:
            made = edition.outputs.cell(cell.key) if edition.outputs else None
            for record in outputs.records(made.outputs, schema) if made else ():
                if schema and (problem := schema.problem(record)):
                    message = f"the cell displays a measurement that is none: {problem}"
                    failures.append(Failure(cell.line, message))
                    continue
                each_of = single(record)
                if made and not made.measures:
                    outdated += [(of["name"], of["framework"], edition.device) for of in each_of]
                    continue
                made_at = {"page": page.docname, "device": edition.device}
                if schema and record["method"] < schema.method:
                    made_at["earlier"] = "method"
                elif made and made.standing:
                    made_at["earlier"] = "code"
                kept += [of | made_at for of in each_of]
    return kept, outdated, failures


def _incomplete(page: Page, found: Iterable[DeviceResult]) -> bool:
    """Say whether some cell of a page has outputs of no device."""
    executed = {
        cell.key
        for edition in found
        for cell in (edition.outputs.cells if edition.outputs else ())
        if not cell.missing and not cell.standing
    }
    return any(cell.key not in executed for cell in page.cells)


def _warn(docname: str, line: int, message: str) -> None:
    logger.warning(message, location=(docname, line), type="book", subtype="page")


def dependents(app: BookApp, env: BookEnvironment) -> list[str]:
    """Return the pages to write again because records or states on other pages changed."""
    book = app.book
    measurements.report_duplicates(env)
    if env.book_shown != book.shown:
        # The switch in the header of every page, and its notices.
        env.book_shown = book.shown
        return sorted(env.found_docs)
    # What names nothing is excused as long as a page fails.
    mended = app.book_partial and not any(state.failures for state in env.book_pages.values())
    if mended or measurements.all_records(env) != app.book_records:
        app.book_changed.add("book_uses_records")
    if mended or errors.all_errors(env) != app.book_errors:
        app.book_changed.add("book_uses_errors")
    return sorted(name for name in env.found_docs if app.book_changed & set(env.metadata[name]))


def finish(app: BookApp, exception: Exception | None) -> None:
    """Publish the records; make the build fail as long as any page fails."""
    if exception is None:
        if app.builder.format == "html":
            measurements.publish(app.env, app.outdir)
        failed = sorted(name for name, state in app.env.book_pages.items() if state.failures)
        if failed:
            say(app, f"{len(failed)} failed: {', '.join(failed)}")
            app.statuscode = 1
        if not (app._fail_on_warnings and app._warncount):
            freshness.unfinished(app).unlink()


def setup(app: BookApp) -> None:
    """Register the options and the events."""
    for field in Options.table():
        default = getattr(Options(), field.name)
        # What they may be, `check` says.
        app.add_config_value(PREFIX + field.name, default, field.metadata["rebuild"], Any)
    app.add_source_parser(parser.PageParser, override=True)
    app.connect("config-inited", configure)
    app.connect("builder-inited", start)
    app.connect("env-get-outdated", outdated)
    app.connect("env-before-read-docs", run_pages)
    app.connect("env-updated", dependents)
    # After what other parts add to the finished site.
    app.connect("build-finished", finish, priority=900)
