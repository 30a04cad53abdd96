"""A process that has imported what builds import, and forks for each build of the tests.

Runs as a script, with (file descriptor to read requests from, file descriptor to write replies to,
folder that holds the engine, schema of measurements) as arguments. A request is a line of JSON;
`start` of Forks in conftest.py writes it. The replies are `pid` for each request, and `pid status`
for each process that has ended. It ends when nobody can write requests any more, however the tests
ended.

The first reply is `pid path` of a root: the kernels of all builds that are told of it are forked
from there.
"""

import atexit
import contextlib
import email
import functools
import gc
import hashlib
import importlib.metadata
import json
import logging
import os
import pathlib
import pkgutil
import runpy
import signal
import sys
import tempfile
import threading
import time

FRAMEWORKS = ("jax", "jaxlib", "torch", "tensorflow", "keras")
# What a build or a command imports, at the latest while it writes.
IMPORTED = """
    sphinx.cmd.build sphinx.application sphinx.builders.html sphinx.builders.latex.transforms
    sphinx_copybutton sphinx_book_theme pydata_sphinx_theme docutils.core docutils.languages.en
    jupytext nbclient jupyter_client.asynchronous jupyter_client.provisioning.local_provisioner
    IPython.lib.lexers pygments.lexers.python
    sqlite3 xml.dom.minidom jinja2.ext
""".split()
WALKED = "executed", "measured", "myst_nb", "myst_parser", "sphinx_design"
# Scripts of processes of their own.
SCRIPTS = ("executed.run.kernel",)
# A book of one page, with the theme of most miniature books and with that of this book.
WARM_CONF = """
import runpy, sys
sys.path.insert(0, {engine!r})
extensions = ["executed", "measured"]
nb_execution_mode = "off"
html_theme = "basic"
book_measurements = "schema.json"
"""
WARM_THEME = """
book = runpy.run_path({conf!r})
globals().update({{name: book[name] for name in book if name.startswith(("html_", "myst_"))}})
html_static_path = [{static!r}]
templates_path = [{templates!r}]
"""
WARM_PAGE = """---
file_format: mystnb
kernelspec:
  name: python3
---
# Page

| A | B |
|---|---|
| `1` | $2$ |

```python
print("text", 1.0)
```

```ipython3
1.0
```

```ipythontb
ValueError: 1.0
```
"""
LONG = 1000


def prepare(engine, schema):
    """Import what builds need, and of the engine all that can be imported without frameworks."""
    sys.path.insert(0, engine)
    for name in ("packages_distributions", "entry_points"):
        looks = while_installed(getattr(importlib.metadata, name))
        setattr(importlib.metadata, name, looks)
    sys.modules.update(dict.fromkeys(FRAMEWORKS))
    for name in IMPORTED:
        _import(name)
    for name in importlib.import_module("sphinx.application").builtin_extensions:
        _import(name)
    for package in filter(None, map(_import, WALKED)):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name not in SCRIPTS and not module.name.endswith("__main__"):
                _import(module.name)
    warm(engine, schema)
    for name in FRAMEWORKS:
        del sys.modules[name]
    sys.path.remove(engine)


def warm(engine, schema):
    """Build a page, so that no build has to do again what is the same in all of them.

    Libraries keep patterns and lexers by themselves, once they were used. Kept here are compiled
    templates, by their text, and what depends on its arguments alone: parsed and minified style
    sheets, the metadata of packages, compiled schemas, and what the files of themes load. All else
    that the engine keeps is forgotten.
    """
    import fastjsonschema
    import jinja2
    import lightningcss
    import sphinx.jinja2glue
    from sphinx.cmd.build import main

    from measured.schema import Schema as schema_of_records

    class Compiled(jinja2.BytecodeCache):
        codes: dict = {}  # noqa: RUF012

        def load_bytecode(self, bucket):
            bucket.code = self.codes.get((bucket.key, bucket.checksum))

        def dump_bytecode(self, bucket):
            self.codes[bucket.key, bucket.checksum] = bucket.code

    init, compiled = sphinx.jinja2glue.BuiltinTemplateLoader.init, Compiled()

    @functools.wraps(init)
    def init_with_compiled(self, *arguments, **named):
        init(self, *arguments, **named)
        self.environment.bytecode_cache = compiled

    sphinx.jinja2glue.BuiltinTemplateLoader.init = init_with_compiled
    lightningcss.process_stylesheet = kept(lightningcss.process_stylesheet)
    fastjsonschema.compile = kept(fastjsonschema.compile)
    email.message_from_string = kept(email.message_from_string)
    book = pathlib.Path(engine).parents[1]
    places = {
        "engine": engine,
        "conf": str(book / "conf.py"),
        "static": str(book / "docs" / "_static"),
        "templates": str(book / "docs" / "_templates"),
    }
    for conf in (WARM_CONF, WARM_CONF + WARM_THEME):
        with tempfile.TemporaryDirectory() as folder, unchanged(folder):
            pathlib.Path("docs").mkdir()
            pathlib.Path("conf.py").write_text(conf.format(**places), "utf8")
            pathlib.Path("schema.json").write_text(schema, "utf8")
            pathlib.Path("docs", "index.md").write_text(WARM_PAGE, "utf8")
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
                main(["-Q", "-c", ".", "docs", "build"])
    importlib.metadata.packages_distributions()
    schema_of_records(json.loads(schema)).problem({})
    # What Sphinx notes for those who work on it nobody reads here, and it costs time in each build.
    logging.disable(logging.DEBUG)
    for module in [m for m in sys.modules.values() if engine in (getattr(m, "__file__", "") or "")]:
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()


def kept(function):
    """Return a function of long texts that is computed once for the same arguments."""
    known = {}

    @functools.wraps(function)
    def found(*arguments, **named):
        said = repr((arguments, sorted(named.items())))
        if len(said) < LONG:
            return function(*arguments, **named)
        key = hashlib.sha256(said.encode("utf8", "surrogatepass")).digest()
        if key not in known:
            known[key] = function(*arguments, **named)
        return known[key]

    return found


def while_installed(function):
    """Return a function of what is installed that is computed once for the same packages."""
    known = {}

    @functools.wraps(function)
    def found(**named):
        key = [named]
        for path in map(pathlib.Path, sys.path):
            if path.is_dir() and any(path.glob("*.dist-info")):
                key.append((path, path.stat().st_mtime_ns))
        key = repr(key)
        if key not in known:
            known[key] = function(**named)
        return known[key]

    return found


@contextlib.contextmanager
def unchanged(folder):
    """Be in a folder, and leave this process as it was."""
    before, path, environment = os.getcwd(), sys.path[:], dict(os.environ)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None


def _import(name):
    """Import a module; one that cannot be imported is left to the builds."""
    with contextlib.suppress(Exception):
        return importlib.import_module(name)


def keep():
    """Start the root of all kernels, which ends with this process; return its pid and its path."""
    from executed.run.forkserver import lasting

    path = os.path.join(tempfile.mkdtemp(prefix="root-"), "socket")
    return lasting(path).pid, path


def served(requests, replies):
    """Fork for each request and return it in the process that was forked for it."""
    running = set()

    def reply(*words):
        os.write(replies, (" ".join(map(str, words)) + "\n").encode())

    def reap(*_):
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                running.discard(ended[0])
                reply(ended[0], os.waitstatus_to_exitcode(ended[1]))

    signal.signal(signal.SIGCHLD, reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError), open(requests, "rb") as lines:
        for line in lines:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            pid = os.fork()
            if not pid:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
                os.close(replies)
                return json.loads(line)
            running.add(pid)
            reply(pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for pid in list(running):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


def run(request):
    """Run a module as `python -m` would in a new process."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        opened = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    time.tzset()
    tempfile.tempdir = None
    sys.path[:0] = [os.getcwd(), *request["paths"]]
    sys.argv = ["-m", *request["arguments"]]
    if not hasattr(sys.modules.get(request["module"]), "__path__"):
        # It runs once more, as `__main__`.
        sys.modules.pop(request["module"], None)
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def main():
    """Serve until the tests have ended; a forked process ends as its module does."""
    requests, replies = map(int, sys.argv[1:3])
    engine, schema = sys.argv[3:]
    # No child of the tests: some of them look at their children.
    if os.fork():
        os._exit(0)
    # The folder of this script.
    del sys.path[0]
    prepare(engine, schema)
    gc.freeze()
    os.write(replies, "{} {}\n".format(*keep()).encode())
    request = served(requests, replies)
    status = 0
    try:
        run(request)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        status = ended.code or 0
    end(status)


def end(status):
    """End a forked process as Python would, but without touching all that was imported.

    To let go of it, the system would have to copy most of the memory that the processes share.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
