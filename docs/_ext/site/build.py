"""The order of a build: find outdated pages, execute what is not cached, show, publish."""

import dataclasses
import json
import os
import pathlib

from filelock import FileLock, Timeout
from sphinx.util import logging

from ..execution import schedule as execute
from ..measurements import declared
from ..records import identity, outputs, recordings
from ..records.cache import Store
from ..source import snippets
from ..source.pages import PageError, read_page
from . import measurements, parser
from . import reminders as again
from . import tabs as devices

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class PageState:
    """What the build knows of an executed page between builds."""

    modules: dict
    facts: dict
    records: list = dataclasses.field(default_factory=list)
    # The names that its code would measure, and those of them that were not, by device.
    names: frozenset = frozenset()
    gaps: tuple = ()
    failures: list = dataclasses.field(default_factory=list)
    fresh: bool = False
    # The device whose outputs come first, whether the page is executed on no other, the State
    # of each recording without its content, its facts, and the files that were looked at.
    home: str | None = None
    only: bool = False
    states: dict = dataclasses.field(default_factory=dict)
    recorded: dict = dataclasses.field(default_factory=dict)
    files: dict = dataclasses.field(default_factory=dict)


def configure(app, config):
    """Leave the execution to this engine, show tracebacks as they are; recordings are no pages."""
    config.nb_execution_mode = "off"
    # The lexer for IPython's tracebacks warns of those that the kernel writes here.
    config.nb_render_error_lexer = "none"
    config.exclude_patterns = [*config.exclude_patterns, "_recorded"]


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
    app.book_recordings = pathlib.Path(app.confdir, app.config.book_recordings)
    found = recordings.devices(app.book_recordings)
    home = app.config.book_environment["device"]
    if app.config.book_recorded:
        home = next(
            (device for device in [home, *app.config.book_devices] if device in found), home
        )
    app.env.book_home = home
    app.book_devices = devices.order(app.config, home, found)


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
        if state.failures or changed_modules or state.files != _files(app, docname):
            found.append(docname)
    return found


def _files(app, docname):
    """Return {device: when changed} of the recordings of a page."""
    found = {}
    for device in app.book_devices:
        try:
            found[device] = (
                recordings.path_of(app.book_recordings, device, docname).stat().st_mtime_ns
            )
        except OSError:
            continue
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
        env.book_pages[docname] = PageState({}, {}, files=_files(app, docname), fresh=True)
        _fail(env, docname, [execute.Failure(getattr(error, "line", 1), str(error))])
        return None


def _bring_outputs(app, env, pages):
    if app.config.book_recorded:
        for page in pages:
            _keep(app, env, page, None)
        return
    device = env.book_home
    folder = pathlib.Path(app.confdir, app.config.book_cache, device)
    store = Store(folder)
    missing = []
    for page in pages:
        facts = store.load(page, identity.cache_key(page, device))
        if facts is None:
            missing.append(page)
        else:
            _keep(app, env, page, facts)
    if not missing:
        return
    durations = _Durations(folder / "durations.json")

    def done(page, execution):
        _keep(app, env, page, execution.facts, fresh=True)
        if execution.failures:
            _fail(env, page.docname, execution.failures)
            return
        store.save(page, identity.cache_key(page, device), execution.facts)
        durations.note(page.docname, execution.facts["seconds"])

    limits = execute.Limits(app.config.book_cell_timeout, app.config.book_page_timeout, device)
    execute.execute_all(missing, limits, done, durations.known, logger.info)


def _keep(app, env, page, facts, fresh=False):
    """Keep what is known of a page, and make it ready to be shown.

    `facts` are None where the page was not executed here; then it is shown
    from recordings alone.
    """
    docname, home = page.docname, page.device or env.book_home
    schema = measurements.schema(app.config)
    files = _files(app, docname)
    states = {
        device: recordings.state(app.book_recordings, device, docname, page, schema)
        for device in dict.fromkeys([home, *app.book_devices])
        if page.device is None or device == home or device in files
    }
    for device, state in states.items():
        if state.red:
            _warn_of_recording(app, docname, device, state)
    if facts is None and states[home].recording is not None:
        recording = states[home].recording
        skipped = {key: cell.skipped for key, cell in recording.cells.items() if cell.skipped}
        facts = recording.facts | {"skipped": skipped}
    records = []
    if not app.config.book_recorded:
        for number, framework in facts.get("skipped", {}).items():
            page.code_cells[int(number)].metadata["skipped"] = framework
        records = _records(page, home, page.code_cells, schema)
    others = {
        device: state
        for device, state in states.items()
        if device != home or app.config.book_recorded
    }
    keys = recordings.cell_keys(page)
    for device, state in others.items():
        if state.recording is not None:
            cells = [state.recording.cell(key) for key in keys]
            records += _records(page, device, cells, schema)

    def name_of(device):
        return devices.label(app.config, device)

    live = None if app.config.book_recorded else home
    names, gaps = _declared(page, live, env.book_home, facts, states, keys, schema)
    parser.show(page, devices.panels(page, live, others, name_of, schema), name_of)
    env.book_pages[docname] = PageState(
        page.modules,
        facts or {},
        records,
        names=names,
        gaps=gaps,
        fresh=fresh,
        home=home,
        only=page.device is not None,
        states={device: dataclasses.replace(s, recording=None) for device, s in states.items()},
        recorded={device: s.recording.facts for device, s in states.items() if s.recording},
        files=files,
    )
    if live and (refused := _refused(page, schema)):
        _fail(env, docname, refused)


def _records(page, device, cells, schema):
    """Return the measurements among the outputs of cells, with where they were made."""
    return [
        record | {"page": page.docname, "device": device}
        for cell in cells
        for record in (outputs.records(cell.outputs, schema) if cell else ())
        if not schema.problem(record)
    ]


def _refused(page, schema):
    """Return a failure for each record of an executed page that is no measurement."""
    return [
        execute.Failure(page.line(cell), f"the cell displays a measurement that is none: {problem}")
        for cell in page.code_cells
        for record in outputs.records(cell.outputs, schema)
        if (problem := schema.problem(record))
    ]


def _declared(page, live, built_on, facts, states, keys, schema):
    """Return the names that a page would measure, and the gaps: those that it did not."""
    functions = schema.functions if schema else ()
    of_cells = declared.names([cell.source for cell in page.code_cells], functions)
    gaps = ()
    for device, state in states.items():
        missing = None
        if device == live:
            missing = {int(number): name for number, name in facts.get("skipped", {}).items()}
        elif state.recording is not None:
            cells = enumerate(map(state.recording.cell, keys))
            missing = {
                n: cell.skipped if cell else "" for n, cell in cells if not cell or cell.skipped
            }
        gaps += declared.gaps(of_cells, device, missing)
        if page.device is not None:
            # A page of one device alone is what references without a device mean too.
            gaps += declared.gaps(of_cells, built_on, missing)
    return frozenset().union(*of_cells), gaps


def _warn_of_recording(app, docname, device, state):
    path = recordings.path_of(app.config.book_recordings, device, docname)
    logger.warning(
        f"the recording {path} is {state}; record it again on its device with "
        f"'{devices.command(docname)}', or remove the file",
        location=(docname, 1) if docname in app.env.found_docs else str(path),
        type="book",
        subtype="recording",
    )


def _fail(env, docname, failures):
    env.book_pages[docname].failures, env.book_pages[docname].records = failures, []
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
    for device in recordings.devices(app.book_recordings):
        for docname in recordings.recorded_pages(app.book_recordings, device):
            if docname not in env.book_pages:
                state = recordings.state(app.book_recordings, device, docname, None)
                _warn_of_recording(app, docname, device, state)
    measurements.report_duplicates(env)
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
    app.add_config_value("book_cell_timeout", execute.CELL_TIMEOUT, "", (int, float))
    app.add_config_value("book_page_timeout", execute.PAGE_TIMEOUT, "", (int, float))
    app.add_config_value("book_environment", identity.environment(device), "env")
    app.add_source_parser(parser.PageParser, override=True)
    app.connect("config-inited", configure)
    app.connect("config-inited", lock_output)
    app.connect("builder-inited", start)
    app.connect("env-get-outdated", outdated)
    app.connect("env-before-read-docs", run_pages)
    app.connect("env-updated", dependents)
    app.connect("build-finished", finish)
