"""A miniature project for the tests of the engine: a book of a few pages, built in a subprocess."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import runpy
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time

import nbformat
import psutil
import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]
FORK_SERVER = pathlib.Path(__file__).with_name("fork_server.py")
# Another copy of the engine can be tested by naming its folder.
ENGINE = pathlib.Path(os.environ.get("BOOK_ENGINE", REPOSITORY / "docs" / "_ext"))
SCHEMA = json.loads(
    REPOSITORY.joinpath("snippets", "programs", "measurement.schema.json").read_text("utf8")
)
# Every extension of the engine.
EXTENSIONS = sorted(path.parent.name for path in ENGINE.glob("*/__init__.py"))
EXTENSIONS.remove("drawing")
COMMANDS = {"compile": "compiled.command", "versions": "errors.record_versions"}
PATIENCE = 60.0
SPHINX = ("-m", "sphinx")

sys.path.insert(0, str(ENGINE))

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


class Forks:
    """Runs modules in processes forked from one that has imported Sphinx and the engine."""

    def __init__(self):
        requests, self.requests = os.pipe()
        replies, replied = os.pipe()
        subprocess.run(
            [
                *(sys.executable, FORK_SERVER),
                *map(str, (requests, replied, ENGINE, json.dumps(SCHEMA))),
            ],
            env=inherited() | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(requests, replied),
            check=True,
        )
        os.close(requests)
        os.close(replied)
        self.replies = open(replies, "rb", buffering=0)
        self.unread = b""
        while not self.unread.endswith(b"\n"):
            self.unread += self.replies.read(1)
        pid, self.root = self.unread.decode().split()
        self.kept, self.unread = psutil.Process(int(pid)), b""
        self.statuses = {}
        self.pids = []

    def start(self, **request):
        """Start what `run` in fork_server.py is to run; return its process."""
        line = json.dumps(request).encode() + b"\n"
        while line:
            line = line[os.write(self.requests, line) :]
        wait_until(lambda: self._reply(PATIENCE) or self.pids, "no process was forked")
        return Fork(self, self.pids.pop())

    def status(self, pid, seconds):
        """Return the status of a process; wait at most so long for its end, else return None."""
        end = time.monotonic() + seconds
        while pid not in self.statuses and self._reply(max(0, end - time.monotonic())):
            pass
        return self.statuses.get(pid)

    def kernels(self):
        """Return the kernels that were forked from the root that builds share."""
        return [one for one in self.kept.children(recursive=True) if _leads_a_session(one)]

    def _reply(self, seconds):
        """Take in what is replied within some time; return whether something was."""
        if not select.select([self.replies], [], [], seconds)[0]:
            return False
        found = self.replies.read(1 << 16)
        assert found, "the process that forks builds has ended"
        *lines, self.unread = (self.unread + found).split(b"\n")
        for pid, *status in (map(int, line.split()) for line in lines):
            if status:
                self.statuses[pid] = status[0]
            else:
                self.pids.append(pid)
        return True


class Fork:
    """A forked process, with the parts of `subprocess.Popen` that tests use."""

    def __init__(self, forks, pid):
        self.forks, self.pid, self.returncode = forks, pid, None

    def poll(self):
        """Return the exit status, or None while the process runs."""
        self.returncode = self.forks.status(self.pid, 0)
        return self.returncode

    def wait(self, timeout=4 * PATIENCE):
        """Wait for the end of the process and return its exit status."""
        self.returncode = self.forks.status(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout)
        return self.returncode

    def send_signal(self, number):
        """Send a signal to the process, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _leads_a_session(process):
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(process.pid) == process.pid
    return False


@functools.cache
def forks():
    """Return the Forks of this process of pytest, which start with the first build."""
    return Forks()


def heed_signals():
    """Undo what a program in the background inherits: it ignores Ctrl-C, and perhaps a hang-up."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Build:
    """What came of one build: its exit status and all that it printed."""

    def __init__(self, process, output):
        self.status = process.returncode
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
            own["BOOK_KERNELS"] = forks().root
        return inherited() | own | variables

    def forkable(self, variables):
        """Whether a process that was forked differs in nothing from one that was started."""
        started = {n for n in variables if n.startswith(("PYTHON", "LD_", "LC_"))}
        paths = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
        early = any(os.path.exists(os.path.join(path, "sitecustomize.py")) for path in paths)
        return started <= {"PYTHONPATH"} and not early

    def log(self, out):
        """Return the path of a new file for what a build prints."""
        path = self.root / f"{out.replace('/', '-')}-{time.monotonic_ns()}.log"
        path.touch()
        return path

    @staticmethod
    def arguments(options, out, strict):
        """Return the arguments of sphinx-build."""
        return [*(["-W", "--keep-going"] if strict else []), "-c", ".", *options, "docs", out]

    def start(
        self, *options, out="build/html", strict=True, command=SPHINX, program=False, **variables
    ):
        """Start a build and return its process, which prints into a file.

        It is forked from a process that has Sphinx imported, unless a `program` is asked for, or
        another `command`, or something that a program meets before it has begun.
        """
        log = self.log(out)
        arguments = self.arguments(options, out, strict)
        if command is SPHINX and not program and self.forkable(variables):
            paths = filter(None, [variables.get("PYTHONPATH")])
            process = self.fork("sphinx", arguments, log, log, paths, **variables)
        else:
            with log.open("w") as stream:
                process = subprocess.Popen(
                    [sys.executable, *command, *arguments],
                    cwd=self.root,
                    env=self.environment(**variables),
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    preexec_fn=heed_signals,
                )
        process.log = log
        return process

    def wait(self, process):
        """Wait for a build that was started and return its Build."""
        process.wait(timeout=4 * PATIENCE)
        return Build(process, self.printed(process))

    def printed(self, process):
        """Return what a build that was started has printed so far."""
        return process.log.read_text("utf8")

    def fork(self, module, arguments, stdout, stderr, paths=(), **variables):
        """Run a module with arguments in a forked process and return that."""
        return forks().start(
            module=module,
            arguments=list(map(str, arguments)),
            stdout=str(stdout),
            stderr=str(stderr),
            paths=list(paths),
            folder=str(self.root),
            environment=self.environment(**variables),
        )

    def build(self, *options, **settings):
        """Build the book, as `start` does, and return its Build."""
        return self.wait(self.start(*options, **settings))

    def run(self, module, *arguments, **variables):
        """Run a module of the engine from the command line, as the recorder, and return it done."""
        module = COMMANDS.get(module, f"executed.commands.{module}")
        paths = [str(self.engine), *filter(None, [variables.get("PYTHONPATH")])]
        if not self.forkable(variables):
            return subprocess.run(
                [sys.executable, "-m", module, *arguments],
                cwd=self.root,
                env=self.environment(**variables | {"PYTHONPATH": os.pathsep.join(paths)}),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        stdout, stderr = self.log("stdout"), self.log("stderr")
        variables["PYTHONPATH"] = os.pathsep.join(paths)
        process = self.fork(module, arguments, stdout, stderr, paths, **variables)
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
        return subprocess.CompletedProcess(
            [module, *arguments], process.returncode, stdout.read_text(), stderr.read_text()
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
        kept = {"form": 1, "command": "", "versions": {}, "pages": {docname: [text]}}
        path.write_text(json.dumps(kept), "utf8")
        return path

    def html(self, docname, out="build/html"):
        """Return the text of a built page."""
        return (self.root / out / f"{docname}.html").read_text("utf8")

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
        if forks.cache_info().currsize:
            wait_until(lambda: not forks().kernels(), "kernels of the build are still running")
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
html_logo = html_favicon = None
book_search, book_card, book_preview_prelude = False, "", ""
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
    made.snippet("a.notes", NOTE)
    made.snippet("a.contests", CONTEST)
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


RECORDS = '''
from IPython.display import display

KIND = "application/vnd.jax-measured.record+json"


def measured(name, latency, framework="python", process=None, **fields):
    """Return the record of one process, as the timer would; `process` changes what it measured."""
    alone = {
        "date": "2026-01-02T03:04:05+00:00",
        "first_call": 3 * latency[0],
        "calls": 1,
        "latency": latency,
        "cores": 1.0,
        "disturbed": False,
    }
    return {
        "version": 3,
        "method": 2,
        "name": name,
        "framework": framework,
        "device_kind": "cpu",
        "processor": "A processor",
        "shape": [],
        "dtype": "float32",
        "precision": "highest",
        "work": None,
        "error": None,
        "versions": {framework: "1.2.3"},
        "settings": {},
        "processes": [alone | (process or {})],
    } | fields


def leave(record):
    """Display a record with a text."""
    display({"text/plain": f"{record['name']} was measured", KIND: record}, raw=True)
'''
NOTE = (
    RECORDS
    + '''

def note(name, seconds, framework="python", process=None, **fields):
    """Leave the record of a measurement with the time that the page wants."""
    leave(measured(name, [seconds] * 5, framework, process, **fields))
'''
)


@pytest.fixture
def noting(project):
    """Give the project a snippet `a.notes.note` that leaves records of chosen times."""
    return project.snippet("a.notes", NOTE)


CONTEST = (
    RECORDS
    + '''

def contest(name, *ratios):
    """Leave the record of a comparison of `slow` and `fast`: a ratio for each of its rounds."""
    slow = measured(f"{name}/slow", [0.25 * ratio for ratio in ratios])
    fast = measured(f"{name}/fast", [0.25] * len(ratios))
    leave({"version": 3, "method": 2, "name": name, "alternatives": [slow, fast]})
'''
)


@pytest.fixture
def comparing(project):
    """Give the project a snippet `a.contests.contest` that leaves a chosen comparison."""
    return project.snippet("a.contests", CONTEST)
