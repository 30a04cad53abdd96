"""A miniature project for the tests of the engine: a book of a few pages, built in this process."""

import asyncio
import contextlib
import functools
import http.server
import importlib
import io
import json
import os
import pathlib
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import warnings
from unittest import mock

import nbformat
import psutil
import pytest
from bs4 import BeautifulSoup

REPOSITORY = pathlib.Path(__file__).parents[2]
# Another copy of the engine can be tested by naming its folder.
ENGINE = pathlib.Path(os.environ.get("BOOK_ENGINE", REPOSITORY / "docs" / "_ext"))
SCHEMA = json.loads(
    REPOSITORY.joinpath("snippets", "programs", "measurement.schema.json").read_text("utf8")
)
RECORDS = pathlib.Path(__file__).with_name("records.py").read_text("utf8")
# Every extension of the engine.
EXTENSIONS = sorted(path.parent.name for path in ENGINE.glob("*/__init__.py"))
EXTENSIONS.remove("drawing")
COMMANDS = {"compile": "_compile.__main__", "versions": "errors.record_versions"}
PATIENCE = 60.0

sys.path.insert(0, str(ENGINE))

from sphinx.cmd.build import main as sphinx_build  # noqa: E402

from executed.nodes import JOINER  # noqa: E402
from executed.run import forkserver  # noqa: E402

BOOK = runpy.run_path(str(REPOSITORY / "conf.py"))
VERSIONS = {
    "package": "ipykernel",
    "recorded": ["1.0", "2.0", "3.0"],
    "supported": [],
    "prelude": "prelude.py",
    "recordings": "docs/_versions",
    "command": "nox -s versions --",
}
CONF = """
import sys
sys.path.insert(0, {engine!r})
extensions = {extensions!r}
nb_execution_mode = "off"
html_theme = "basic"
book_cell_timeout = 30
book_page_timeout = 60
book_variables = ["STAMPS"]
book_frameworks = {frameworks!r}
book_record_command = "nox -s record --"
book_measurements = "measurement.schema.json"
book_sources = {{"post": {{"title": "A post", "author": "Somebody", "url": "https://post.example"}}}}
"""


def wait_until(condition, what):
    """Wait until `condition()` is true and return what it gave; fail after a minute."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    pytest.fail(f"waited {PATIENCE:g} s in vain: {what}")


def inherited():
    """Return the environment that all builds share."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BOOK_", "PYTHON"))}
    return kept | {"PYTHONUNBUFFERED": "1"}


@functools.cache
def kernel_root():
    """Start the root of the kernels of all builds; return its process, and the folder of it."""
    folder = tempfile.TemporaryDirectory(prefix="root-")
    return forkserver.lasting(f"{folder.name}/socket"), folder


def kernels():
    """Return the kernels that were forked from the root that builds share."""
    processes = psutil.Process(kernel_root()[0].pid).children(recursive=True)
    return [one for one in processes if _leads_a_session(one)]


def _leads_a_session(process):
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(process.pid) == process.pid
    return False


@contextlib.contextmanager
def heeded_signals():
    """Let a program that is started heed Ctrl-C and a hang-up, as none in the background does."""
    numbers = signal.SIGINT, signal.SIGHUP
    former = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, former, strict=True):
            signal.signal(number, handler)


@contextlib.contextmanager
def run_here(folder, arguments, environment, stdout, stderr):
    """Be as a program that was started in a folder, and leave this process as it was."""
    known = set(sys.modules)
    # A browser of the tests leaves its event loop running, beside which no other may begin.
    loop = asyncio._get_running_loop()
    with (
        warnings.catch_warnings(),
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        mock.patch.object(sys, "argv", list(arguments)),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        # As Python does it by default.
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        asyncio._set_running_loop(None)
        try:
            yield
        finally:
            asyncio._set_running_loop(loop)
            for name in sys.modules.keys() - known:
                file = getattr(sys.modules[name], "__file__", None) or ""
                if file.startswith(str(folder)):
                    del sys.modules[name]


def exit_status(function, *arguments):
    """Call what a program calls, and return the status with which the program would end."""
    try:
        return function(*arguments) or 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        traceback.print_exc()
        return 1


class Build:
    """What came of one build: its exit status and all that it printed."""

    def __init__(self, status, output):
        self.status = status
        self.output = output

    @property
    def progress(self):
        """The progress lines, as (verdict, page)."""
        return re.findall(
            r"^\[\d+/\d+\] (\w+) (\S+) in [\d.]+ s(?:;.*)?$", self.output, re.MULTILINE
        )

    @property
    def executed(self):
        """The pages that were executed, well or not, in alphabetical order."""
        return sorted(page for _, page in self.progress)

    @property
    def green(self):
        """Whether the build succeeded and did not break off."""
        return self.status == 0 and "build succeeded" in self.output

    @property
    def warnings(self):
        """The lines that report a warning or an error, each with its file."""
        return [
            line for line in self.output.splitlines() if re.search(r": (WARNING|ERROR): ", line)
        ]


class Project:
    """A miniature book in a folder of its own."""

    engine = ENGINE

    def __init__(self, root):
        self.root = root
        self.own_root = False
        self.stamps = root / "stamps"
        self.stamps.mkdir()
        (root / "measurement.schema.json").write_text(json.dumps(SCHEMA), "utf8")
        self.configure()
        self.page("index", "Nothing is executed here.")

    def configure(self, *lines):
        """Write conf.py, with further lines at its end."""
        text = (
            CONF.format(
                engine=str(self.engine), extensions=EXTENSIONS, frameworks=BOOK["book_frameworks"]
            )
            + "\n".join(map(textwrap.dedent, lines))
            + "\n"
        )
        (self.root / "conf.py").write_text(text, "utf8")

    def snippet(self, module, text):
        """Write the snippet module `chapter.topic`."""
        path = self.root.joinpath("snippets", *module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), "utf8")
        return path

    def page(self, docname, *parts, benchmark=False, notebook=True, device=None, recorded=None):
        """Write a page of prose and cells, or one that never has cells."""
        head = ["---", "orphan: true"]
        head += ["file_format: mystnb", "kernelspec:", "  name: python3"] if notebook else []
        head += ["benchmark: true"] if benchmark else []
        head += [f"device: {device}"] if device else []
        head += [f"recorded: {recorded}"] if recorded else []
        text = "\n".join([*head, "---", f"# Page {docname}", "", "\n\n".join(parts), ""])
        path = self.path(docname)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
        return path

    @staticmethod
    def cell(code="", snippet=None, tags=None):
        """Write a code cell as it stands in a page."""
        lines = ["```{code-cell} python"]
        if snippet:
            lines.append(f":snippet: {snippet}")
        if tags:
            lines.append(f":tags: [{tags}]")
        return "\n".join([*lines, textwrap.dedent(code).strip("\n"), "```"])

    def path(self, docname):
        """Return the file of a page."""
        return self.root / "docs" / f"{docname}.md"

    def line(self, docname, text):
        """Return the number of the first line of a page that holds `text`."""
        lines = self.path(docname).read_text("utf8").splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def edit(self, path, before, after):
        """Replace a text that must be there in a file."""
        text = path.read_text("utf8")
        assert before in text
        path.write_text(text.replace(before, after), "utf8")

    def environment(self, **variables):
        """Return the environment of a build; cells find the folder for their stamps in it."""
        own = {"STAMPS": str(self.stamps), "BOOK_LOCKS": str(self.root)}
        if not self.own_root:
            own["BOOK_KERNELS"] = f"{kernel_root()[1].name}/socket"
        return inherited() | own | variables

    @staticmethod
    def arguments(options, out, strict):
        """Return the arguments of sphinx-build."""
        return [*(["-W", "--keep-going"] if strict else []), "-c", ".", *options, "docs", out]

    def build(self, *options, out="build/html", strict=True, **variables):
        """Build the book in this process, and return its Build."""
        return self.sphinx(*self.arguments(options, out, strict), **variables)

    def built(self, *options, **settings):
        """Build the book, which must succeed, and return its Build."""
        build = self.build(*options, **settings)
        assert build.green, build.output
        return build

    def sphinx(self, *arguments, **variables):
        """Call sphinx-build in this process, and return the Build."""
        said = io.StringIO()
        with run_here(self.root, arguments, self.environment(**variables), said, said):
            return Build(exit_status(sphinx_build, arguments), said.getvalue())

    def start(self, *options, out="build/html", strict=True, **variables):
        """Start a build as a program of its own and return its process."""
        return self.program("-m", "sphinx", *self.arguments(options, out, strict), **variables)

    def program(self, *arguments, **variables):
        """Start a program of Python in the project and return its process."""
        path = self.root / f"{time.monotonic_ns()}.log"
        with path.open("w") as log, heeded_signals():
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.root,
                env=self.environment(**variables),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        process.log = path
        return process

    def wait(self, process):
        """Wait for a build that was started and return its Build."""
        process.wait(timeout=4 * PATIENCE)
        return Build(process.returncode, process.log.read_text("utf8"))

    def run(self, module, *arguments, **variables):
        """Run a command of the engine in this process, as the recorder, and return it done."""
        module = importlib.import_module(COMMANDS.get(module, f"executed.commands.{module}"))
        stdout, stderr = io.StringIO(), io.StringIO()
        command = [module.__name__, *map(str, arguments)]
        with run_here(self.root, command, self.environment(**variables), stdout, stderr):
            status = exit_status(module.main)
        return subprocess.CompletedProcess(command, status, stdout.getvalue(), stderr.getvalue())

    def record(self, *pages, **variables):
        """Call the recorder for the device 'cpu', and return what came of it."""
        return self.run("record", *pages, BOOK_DEVICE="cpu", **variables)

    def recorded(self, *pages, **variables):
        """Record pages for the device 'cpu', which must succeed; return what came of it."""
        done = self.record(*pages, **variables)
        assert done.returncode == 0, done.stderr
        return done

    def recording(self, docname, device="cpu"):
        """Return the path of a page's recording."""
        return self.root / "docs" / "_recorded" / device / f"{docname}.ipynb"

    def recorded_elsewhere(self, docname, *edits, device="gpu-h200"):
        """Make the recording of a page into that of another device; return its path.

        `edits` are pairs of texts: what is replaced in the file, and by what.
        """
        text = self.recording(docname).read_text("utf8")
        sources = [cell["source"] for cell in json.loads(text)["cells"]]
        for before, after in [('"device": "cpu"', f'"device": "{device}"'), *edits]:
            assert before in text
            text = text.replace(before, after)
        # What ran is the same.
        notebook = json.loads(text)
        for cell, source in zip(notebook["cells"], sources, strict=True):
            cell["source"] = source
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path = self.recording(docname, device)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
        return path

    def with_versions(self, **more):
        """Let pages be recorded on versions of a package; `more` of `book_versions` may follow."""
        self.configure(f"book_versions = {VERSIONS | more}")

    def recorded_on(self, version, docname, change=lambda outputs: None):
        """Keep what a page came to with a version, and return the path.

        It is what it came to on this device. `change` may alter the outputs of its only cell.
        """
        from executed.store import matching, outputs

        if not self.recording(docname).exists():
            assert self.record().returncode == 0
        notebook = nbformat.read(self.recording(docname), 4)
        (cell,) = notebook.cells
        change(cell.outputs)
        error = outputs.error(cell.outputs)
        text = {
            "code": matching.lineages([cell.source])[0],
            "type": error.ename if error else "",
            "message": error.evalue if error else "",
            "printed": outputs.printed(cell.outputs),
        }
        path = self.root / VERSIONS["recordings"] / f"{VERSIONS['package']}-{version}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        pages = json.loads(path.read_text("utf8"))["pages"] if path.exists() else {}
        kept = {"form": 1, "command": "", "versions": {}, "pages": pages | {docname: [text]}}
        path.write_text(json.dumps(kept), "utf8")
        return path

    def html(self, docname, out="build/html"):
        """Return the text of a built page, without what joins its ranges."""
        return (self.root / out / f"{docname}.html").read_text("utf8").replace(JOINER, "")

    def soup(self, docname, out="build/html"):
        """Return a built page, parsed."""
        return BeautifulSoup(self.html(docname, out), "html.parser")

    @staticmethod
    def rows(table):
        """Return the texts of the cells of a table on a built page, row by row."""
        return [
            [cell.get_text(strip=True) for cell in row.find_all(["th", "td"])]
            for row in table.find_all("tr")
        ]

    def outputs(self, docname, out="build/html"):
        """Return the texts of the outputs on a built page, one for each cell that has any."""
        found = self.soup(docname, out).select(".cell_output")
        return [each.get_text(" ", strip=True) for each in found]

    def notebook(self, docname, out="build/html"):
        """Return the notebook of a page that readers download."""
        return nbformat.read(self.root / out / "_sources" / f"{docname}.ipynb", 4)

    def records(self, out="build/html"):
        """Return the records that the built site publishes."""
        return json.loads((self.root / out / "measurements.json").read_text("utf8"))

    def cached(self):
        """Return the cached files, one for each page that was executed without a failure."""
        return sorted(self.root.glob("_cache/*/**/*.ipynb"))

    def stamp(self, name):
        """Return the path at which a cell leaves the stamp `name`."""
        return self.stamps / name

    def processes(self):
        """Return the processes that builds of this project have started and that still run."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process):
        # A forked process shows the environment of the one that it was forked from.
        try:
            ours = process.cwd() == str(self.root)
            ours = ours or process.environ().get("STAMPS") == str(self.stamps)
            return ours and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


@pytest.fixture
def project(tmp_path):
    """Return an empty miniature project; no process of it may outlive the test."""
    made = Project(tmp_path)
    try:
        yield made
        wait_until(lambda: not made.processes(), "processes of the build are still running")
        if kernel_root.cache_info().currsize:
            wait_until(lambda: not kernels(), "kernels of the build are still running")
    finally:
        for process in made.processes():
            process.kill()


THEME = """
import runpy
globals().update(
    (name, value)
    for name, value in runpy.run_path({conf!r}).items()
    if name.startswith(("html_", "myst_"))
    or name in ("extensions", "copyright", "author", "release")
    or name.startswith("book_")
)
book_variables = ["STAMPS"]
book_measurements = "measurement.schema.json"
sys.path.insert(0, {engine!r})
html_static_path = [{static!r}]
templates_path = [{templates!r}]
html_logo, html_favicon = None, {mark!r}
book_search, book_card, book_preview_prelude = False, "", ""
# They name pages and modules of the book.
book_modules, book_skill = {{}}, ()
book_versions = {{**book_versions, "without": []}}
"""


def use_theme(project):
    """Give a project the extensions, the theme and the devices of the book."""
    project.configure(
        THEME.format(
            conf=str(REPOSITORY / "conf.py"),
            engine=str(project.engine),
            static=str(REPOSITORY / "docs" / "_static"),
            mark=str(REPOSITORY / "docs" / "_static" / "mark.svg"),
            templates=str(REPOSITORY / "docs" / "_templates"),
        )
    )
    return project


@pytest.fixture
def themed(project):
    """Return a miniature project with the theme of the book."""
    return use_theme(project)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *arguments):
        """Print nothing."""


@pytest.fixture(scope="session")
def served():
    """Return a context in which a folder is served; it gives the address."""

    @contextlib.contextmanager
    def serve(folder):
        handler = functools.partial(Quiet, directory=folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        server.server_close()

    return serve


@pytest.fixture(scope="session")
def empty_project():
    """Return the class of miniature projects, for those that several tests share."""
    return Project


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """Return a project with the theme of the book, `note` and `contest`, for a whole file."""
    made = use_theme(Project(tmp_path_factory.mktemp("book")))
    made.snippet("a.notes", RECORDS)
    return made


STAMP = """
import os, pathlib
stamps = pathlib.Path(os.environ["STAMPS"])
def stamp(name): (stamps / name).touch()
def stamped(name): return (stamps / name).exists()
"""
WAIT = """
import time
def wait_for(name):
    end = time.monotonic() + 25
    while not stamped(name):
        assert time.monotonic() < end, f"{name} never came"
        time.sleep(0.02)
"""


@pytest.fixture
def stamping():
    """Return a cell that defines `stamp`, `stamped` and `wait_for` for the cells after it."""
    return Project.cell(STAMP + WAIT)


@pytest.fixture
def until():
    """Return the function that waits, with an end, until a condition is true."""
    return wait_until


@pytest.fixture
def noting(project):
    """Give the project `a.notes`: `note` leaves a record of a chosen time, `contest` several."""
    return project.snippet("a.notes", RECORDS)
