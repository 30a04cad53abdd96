"""The order of a build: find what is outdated, read, execute, put beside recordings, show."""

import functools
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError
from sphinx.util import logging

from . import downloads, files, freshness, render
from .book import Book, BuiltPage, Inputs, Outcome, book_of
from .hooks import Conclusion, FeatureError, PageResults, features
from .options import PREFIX, OptionError, Options, Table, declared, own_extensions, read
from .panels import Panel, panels
from .run import key
from .run.outcome import Failure, Result
from .run.results import run_or_load
from .source.pages import Page, PageError, read_page
from .status import STATUS
from .store.device_outputs import DeviceResult, device_results
from .waiting import pages_with

logger = logging.getLogger(__name__)


def _add_options(app: Sphinx, table: type[Table]) -> None:
    """Let conf.py and the command line of Sphinx set the options of a table."""
    defaults = table()
    for field in table.fields():
        # What they may be, `options.read` says.
        default = getattr(defaults, field.name)
        app.add_config_value(PREFIX + field.name, default, field.metadata["rebuild"], Any)


def configure(app: Sphinx, config: Config) -> None:
    """Read the options, and leave the execution to this engine."""
    names = [name for name in config if name.name.startswith(PREFIX)]
    values = {**config._raw_config, **{value.name: value.value for value in names}}
    try:
        options = read(values, pathlib.Path(app.confdir, "conf.py"))
    except OptionError as error:
        raise ConfigError(str(error)) from None
    config.nb_execution_mode = "off"
    # The lexer for IPython's tracebacks warns of those that the kernel writes here.
    config.nb_render_error_lexer = "none"
    # As in `Options.page_files`: what builds and recorders write lies in such folders.
    config.exclude_patterns = [*config.exclude_patterns, "_*", "**/_*", ".*", "**/.*"]
    # Before what features do then.
    app.connect("builder-inited", functools.partial(start, options=options), priority=100)


def start(app: Sphinx, options: Options) -> None:
    """Make the book, with what the last build knew of its pages."""
    try:
        loaded = features(options)
    except FeatureError as error:
        raise ConfigError(str(error)) from None
    # Of a notebook that an .rst page includes: its parser asks docutils for options.
    app.env.settings["nb_execution_mode"] = "off"
    former = getattr(app.env, "book", None)
    setattr(app.env, "book", Book(options, loaded, app.builder.get_relative_uri, former))  # noqa: B010


def say(app: Sphinx, line: str) -> None:
    """Say what is executed and what failed, in a build with `-q` too, where Sphinx says nothing."""
    print(line, file=app._warning, flush=True)


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the pages to read again, besides those that Sphinx finds."""
    book = book_of(env)
    for docname in removed:
        book.pages.pop(docname, None)
        book.texts.pop(docname, None)
        book.changed = True
    return sorted(freshness.outdated(app, env) & env.found_docs)


def run_pages(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Take every page that will be read its one way, up to what is shown of it."""
    book = book_of(env)
    book.changed = book.changed or bool(docnames)
    pages = []
    for docname in docnames:
        book.pages.pop(docname, None)
        path = pathlib.Path(env.doc2path(docname))
        book.texts[docname] = files.digest(path)
        if page := _read(book, docname, path):
            pages.append(page)
    here = [page for page in pages if book.executes(page)]
    for page in pages:
        if not book.executes(page):
            _take(env, page, None)

    def trouble(page: Page, message: str) -> None:
        _warn(page.docname, 1, message)

    def done(result: Result) -> None:
        _take(env, result.page, result)

    if here:
        run_or_load(here, book.options, done, functools.partial(say, app), trouble)


def _read(book: Book, docname: str, path: pathlib.Path) -> Page | None:
    names = {name for feature in book.features for name in feature.cell_options}
    try:
        return read_page(
            docname, path, book.library, book.devices, list(book.options.frameworks), names
        )
    except PageError as error:
        failure = Failure(error.line, str(error))
        inputs = Inputs(files=book.digests(docname))
        book.pages[docname] = BuiltPage(inputs, Outcome(failures=(failure,)))
        _warn(docname, failure.line, failure.message)
        return None


def _take(env: BuildEnvironment, page: Page, result: Result | None) -> None:
    """Put a page's outputs beside its recordings, and keep what is known of it and shown of it."""
    book = book_of(env)
    home = page.device or book.home
    digests = book.digests(page.docname)
    live = result.outputs if result else None
    failed = result.failures if result else ()
    preview = book.options.preview
    results = device_results(page, live, book.recordings, home, book.devices, preview, bool(failed))
    taken = PageResults(page, results, bool(failed))
    conclusions = {feature.name: feature.conclude(taken) for feature in book.features}
    cells: Sequence[list[Panel]] = panels(page, results, book.options, book.recordings.kinds)
    failures = [*failed, *(f for c in conclusions.values() for f in c.failures)]
    for feature in book.features:
        cells, problems = feature.show(taken, cells)
        failures += problems
    packages = key.packages(page, book.options)
    inputs = Inputs(
        modules=dict(page.modules),
        packages=packages,
        environment=key.environment_digest(packages, book.options, home, page.benchmark)
        if result
        else "",
        device=home,
        benchmark=page.benchmark,
        files=digests,
        named_files=page.named_files,
    )
    first = results[0].outputs
    outcome = Outcome(
        facts=first.facts if first else None,
        failures=tuple(failures),
        incomplete=_incomplete(page, results),
        states={r.device: r.recorded for r in results},
        recorded={r.device: r.recording.facts for r in results if r.recording},
        lent=results[0].lent,
        only=page.device is not None,
        command=page.record_command,
        brings=tuple(page.files),
        conclusions={name: c for name, c in conclusions.items() if c != Conclusion()},
    )
    book.pages[page.docname] = BuiltPage(inputs, outcome)
    if result and result.fresh:
        book.fresh.add(page.docname)
    shown = book.shown_pages[page.docname] = render.show(page, cells, book.features)
    downloads.keep(env, page.docname, shown)
    for failure in failures:
        _warn(page.docname, failure.line, failure.message)


def _incomplete(page: Page, results: Iterable[DeviceResult]) -> bool:
    """Say whether some cell of a page has outputs of no device."""
    executed = {
        cell.key
        for result in results
        for cell in result.cells
        if not cell.lacking and not cell.standing
    }
    return any(cell.key not in executed for cell in page.cells)


def _warn(docname: str, line: int, message: str) -> None:
    logger.warning(message, location=(docname, line), type="book", subtype="page")


def dependents(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return the pages to write again because of what changed on other pages."""
    book = book_of(env)
    if book.shown_before != book.shown:
        # The switch in the header of every page, and its notices.
        book.shown_before = book.shown
        return sorted(env.found_docs)
    return pages_with(env, [*book.concluded_otherwise(), *([STATUS] if book.changed else [])])


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Make the build fail as long as any page fails."""
    if exception is None:
        pages = book_of(app.env).pages
        failed = sorted(name for name, page in pages.items() if page.outcome.failures)
        if failed:
            say(app, f"{len(failed)} failed: {', '.join(failed)}")
            app.statuscode = 1
        if not (app._fail_on_warnings and app._warncount):
            freshness.unfinished(app).unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    """Register the options and the events."""
    for table in (Options, *declared(own_extensions(app.config.extensions), "options")):
        _add_options(app, table)
    app.add_source_parser(render.PageParser, override=True)
    app.connect("config-inited", configure)
    app.connect("env-get-outdated", outdated)
    app.connect("env-before-read-docs", run_pages)
    app.connect("env-updated", dependents)
    # After what other parts add to the finished site.
    app.connect("build-finished", finish, priority=900)
