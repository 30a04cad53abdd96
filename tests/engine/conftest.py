"""A miniature project for the tests of the engine: a book of a few pages, built in a subprocess."""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import nbformat
import psutil
import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]
# Another copy of the engine can be tested by naming the folder that holds its `_ext`.
ENGINE = pathlib.Path(os.environ.get("BOOK_ENGINE", REPOSITORY / "docs"))
SCHEMA = REPOSITORY / "snippets" / "timing" / "measurement.schema.json"
PATIENCE = 60.0

sys.path.insert(0, str(ENGINE))

CONF = """
import sys
sys.path.insert(0, {engine!r})
extensions = ["_ext"]
nb_execution_mode = "off"
html_theme = "basic"
book_cell_timeout = 30
book_page_timeout = 60
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


class Build:
    """What came of one build: its exit status and all that it printed."""

    def __init__(self, process, output):
        self.status = process.returncode
        self.output = output

    @property
    def progress(self):
        """The progress lines, as (verdict, page)."""
        return re.findall(r"^\[\d+/\d+\] (\w+) (\S+) in [\d.]+ s$", self.output, re.MULTILINE)

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

    def __init__(self, root):
        self.root = root
        self.engine = ENGINE
        self.stamps = root / "stamps"
        self.stamps.mkdir()
        schema = json.loads(SCHEMA.read_text("utf8")) | {"functions": ["measure", "note"]}
        (root / "measurement.schema.json").write_text(json.dumps(schema), "utf8")
        self.configure()
        self.page("index", "Nothing is executed here.")

    def configure(self, *lines):
        """Write conf.py, with further lines at its end."""
        text = CONF.format(engine=str(self.engine)) + "\n".join(map(textwrap.dedent, lines)) + "\n"
        (self.root / "conf.py").write_text(text, "utf8")

    def copy_engine(self):
        """Use a copy of the engine that a test may change; return the folder that holds it."""
        self.engine = self.root / "engine"
        shutil.copytree(ENGINE / "_ext", self.engine / "_ext")
        self.configure()
        return self.engine

    def snippet(self, module, text):
        """Write the snippet module `chapter.topic`."""
        path = self.root.joinpath("snippets", *module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), "utf8")
        return path

    def page(self, docname, *parts, benchmark=False, notebook=True, device=None):
        """Write a page of prose and cells, or one that never has cells."""
        head = ["---", "orphan: true"]
        head += ["file_format: mystnb", "kernelspec:", "  name: python3"] if notebook else []
        head += ["benchmark: true"] if benchmark else []
        head += [f"device: {device}"] if device else []
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
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BOOK_", "PYTHON"))}
        return kept | {"STAMPS": str(self.stamps), "PYTHONUNBUFFERED": "1", **variables}

    def start(self, *options, out="build/html", strict=True, command=("-m", "sphinx"), **variables):
        """Start a build and return its process, which keeps what it prints in a file."""
        log = open(self.root / f"{out.replace('/', '-')}-{time.monotonic_ns()}.log", "w+")
        arguments = [*(["-W", "--keep-going"] if strict else []), "-c", ".", *options, "docs", out]
        process = subprocess.Popen(
            [sys.executable, *command, *arguments],
            cwd=self.root,
            env=self.environment(**variables),
            stdout=log,
            stderr=subprocess.STDOUT,
            # A program that was started in the background ignores Ctrl-C, and so would its builds.
            preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        process.log = log
        return process

    def wait(self, process):
        """Wait for a build that was started and return its Build."""
        process.wait(timeout=4 * PATIENCE)
        process.log.seek(0)
        with process.log:
            return Build(process, process.log.read())

    def printed(self, process):
        """Return what a build that was started has printed so far."""
        return pathlib.Path(process.log.name).read_text("utf8")

    def build(self, *options, **settings):
        """Build the book and return its Build."""
        return self.wait(self.start(*options, **settings))

    def run(self, module, *arguments, **variables):
        """Run a module of the engine from the command line, as the recorder, and return it done."""
        paths = [str(self.engine), *filter(None, [variables.pop("PYTHONPATH", "")])]
        return subprocess.run(
            [sys.executable, "-m", f"_ext.commands.{module}", *arguments],
            cwd=self.root,
            env=self.environment(PYTHONPATH=os.pathsep.join(paths), **variables),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def record(self, *pages, **variables):
        """Record pages for the device 'cpu' and return the recorder's process, done."""
        return self.run("record", *pages, BOOK_DEVICE="cpu", **variables)

    def recording(self, docname, device="cpu"):
        """Return the path of a page's recording."""
        return self.root / "docs" / "_recorded" / device / f"{docname}.ipynb"

    def recorded_elsewhere(self, docname, *edits, device="gpu-h200"):
        """Make the recording of a page into that of another device; return its path.

        `edits` are pairs of texts: what is replaced in the file, and by what.
        """
        text = self.recording(docname).read_text("utf8")
        for before, after in [('"device": "cpu"', f'"device": "{device}"'), *edits]:
            assert before in text
            text = text.replace(before, after)
        path = self.recording(docname, device)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
        return path

    def html(self, docname, out="build/html"):
        """Return the text of a built page."""
        return (self.root / out / f"{docname}.html").read_text("utf8")

    def notebook(self, docname, out="build"):
        """Return the notebook of a page that readers download."""
        return nbformat.read(self.root / out / "jupyter_execute" / f"{docname}.ipynb", 4)

    def records(self, out="build/html"):
        """Return the records that the built site publishes."""
        return json.loads((self.root / out / "measurements.json").read_text("utf8"))

    def cached(self):
        """Return the cached files, one for each page that was executed without a failure."""
        return sorted(self.root.glob("_cache/cpu/executed/*/base.ipynb"))

    def stamp(self, name):
        """Return the path at which a cell leaves the stamp `name`."""
        return self.stamps / name

    def processes(self):
        """Return the processes that builds of this project have started and that still run."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process):
        try:
            ours = process.environ().get("STAMPS") == str(self.stamps)
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
    finally:
        for process in made.processes():
            process.kill()


THEME = """
import runpy
globals().update(
    (name, value)
    for name, value in runpy.run_path({conf!r}).items()
    if name.startswith(("html_", "myst_"))
    or name in ("extensions", "copyright", "author", "book_devices")
)
sys.path.insert(0, {engine!r})
html_static_path = [{static!r}]
templates_path = [{templates!r}]
"""


def use_theme(project):
    """Give a project the extensions, the theme and the devices of the book."""
    project.configure(
        THEME.format(
            conf=str(REPOSITORY / "conf.py"),
            engine=str(project.engine),
            static=str(REPOSITORY / "docs" / "_static"),
            templates=str(REPOSITORY / "docs" / "_templates"),
        )
    )
    return project


@pytest.fixture
def themed(project):
    """Return a miniature project with the theme of the book."""
    return use_theme(project)


@pytest.fixture(scope="session")
def empty_project():
    """Return the class of miniature projects, for those that several tests share."""
    return Project


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """Return a project with the theme of the book and the snippet `note`, for a whole file."""
    made = use_theme(Project(tmp_path_factory.mktemp("book")))
    made.snippet("a.notes", NOTE)
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


NOTE = '''
from IPython.display import display

KIND = "application/vnd.jax-measured.record+json"


def note(name, median, framework="python", **fields):
    """Leave a record as the timer would, with the time that the page wants."""
    record = {
        "version": 1,
        "name": name,
        "framework": framework,
        "device_kind": "cpu",
        "processor": "A processor",
        "threads": 2,
        "shape": [],
        "dtype": "float32",
        "precision": "highest",
        "samples": [median] * 5,
        "calls_per_sample": 1,
        "first_call": 3 * median,
        "work": None,
        "error": None,
        "median": median,
        "spread": 0.01,
        "stable": True,
        "rate": None,
        "versions": {framework: "1.2.3"},
        "date": "2026-01-02T03:04:05+00:00",
    } | fields
    display({"text/plain": f"{name} took {median}", KIND: record}, raw=True)
'''


@pytest.fixture
def noting(project):
    """Give the project a snippet `a.notes.note` that leaves records of chosen times."""
    return project.snippet("a.notes", NOTE)
