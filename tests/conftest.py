"""Settings and fixtures that all tests share."""

import ast
import atexit
import contextlib
import fcntl
import gc
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import runpy
import shutil
import sys

import pytest
from hypothesis import HealthCheck, settings

from executed.source import code
from tests import compiled_programs, memory

ROOT = pathlib.Path(__file__).parent.parent
FRAMEWORKS = ("jax", "torch", "tensorflow")
# Megabytes by which a process may grow before it forgets what it has compiled.
MOST = 300

# JAX reads these once, when it is imported; TensorFlow too.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
# XLA's newer way of making code for fused operations takes twice as long to compile, and programs
# that are cut into parts, to be compiled side by side, a quarter longer. Later versions have no
# other way, and end a process that names a switch that they do not know.
if importlib.metadata.version("jax") == "0.10.2":
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"
    os.environ["XLA_FLAGS"] += " --xla_cpu_parallel_codegen_split_count=1"
# Nor does XLA look for the fastest code, as in JAX's own tests; sites are built with it. That holds
# for the processes that tests start, too: with the older emitters and all optimisations, a program
# that draws random numbers takes seconds to compile.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# By default Hypothesis fails an example that takes 0.2 s, and a search that is slow.
settings.register_profile("book", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("book")
# What keeps threads from waiting on cores that other pages need, and other tests. It is there while
# tests are imported, for what they start must find the environment as it was.
WAITING = {}
compiled, well = None, False
# The order in which tests import frameworks is theirs.
for framework in runpy.run_path(str(ROOT / "conf.py"))["book_frameworks"].values():
    declared = framework.get("environment", {}).get("", {}) | framework.get("in_parallel", {})
    WAITING |= {name: value for name, value in declared.items() if name not in os.environ}
    for name in framework.get("before", ()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def top_level_imports(path):
    """Return the packages that a file imports, also by way of the snippets that it imports."""
    text = path.read_text("utf8")
    names = {*code.imported_modules(text)}
    lines = (line.split() for _, line in code.imports(ast.parse(text)))
    for _, module, _, name, *_ in (line for line in lines if line[1].startswith("snippets")):
        for parts in (module.split("."), [*module.split("."), name]):
            snippet = ROOT.joinpath(*parts).with_suffix(".py")
            names |= top_level_imports(snippet) if snippet.exists() else set()
    return names


def missing_frameworks(test_file):
    """Return the frameworks that a test or its snippet imports and that are absent."""
    imported = top_level_imports(test_file)
    absent = [name for name in FRAMEWORKS if importlib.util.find_spec(name) is None]
    return sorted(imported & set(absent))


def pytest_configure(config):
    # One folder for all processes of a run.
    global compiled
    if not hasattr(config, "workerinput"):
        compiled = compiled_programs.Kept(ROOT / "build" / "compiled")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["compiled"] = str(compiled.run)


def pytest_sessionfinish(exitstatus):
    global well
    well = exitstatus == pytest.ExitCode.OK


def pytest_unconfigure(config):
    if compiled is not None:
        compiled.end(well)


def keeping(config):
    """Return the settings of JAX with which compiled programs are kept."""
    given = getattr(config, "workerinput", {})
    return {
        "jax_compilation_cache_dir": given.get("compiled") or str(compiled.run),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        # Or a program would be known by the path of the folder, too.
        "jax_persistent_cache_enable_xla_caches": "none",
    }


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    os.environ.update(WAITING)
    # Nothing that is imported becomes garbage.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session):
    for name in WAITING:
        os.environ.pop(name, None)
    if "jax" in sys.modules:
        # What XLA has compiled once it does not compile again, for the same program.
        for name, value in keeping(session.config).items():
            sys.modules["jax"].config.update(name, value)
    # What the frameworks made when they were imported lives until the end; searched by each full
    # garbage collection, it takes a tenth of the time of all tests.
    gc.collect()
    gc.freeze()
    # At the end Triton calls a leak what no collection has freed.
    atexit.register(gc.unfreeze)
    # What tests leave behind is looked for less often than after every 700 objects.
    gc.set_threshold(50_000, 20, 20)


def forget():
    """Forget what was compiled, and give its memory back."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()
    memory.give_back()


@pytest.fixture(autouse=True, scope="module")
def forgotten():
    """Forget what a module has compiled, once it is done; return the megabytes held before it.

    JAX looks for leaked tracers by searching all that Python holds, and compiled programs hold
    much. What a module leaves behind is kept from such searches, and from garbage collection.
    """
    yield [memory.held()]
    forget()
    gc.freeze()


@pytest.fixture(autouse=True)
def bounded(forgotten):
    """Forget in the middle of a module, too, where a process has grown by MOST since it did.

    Two hundred answers of a lesson compile a gigabyte of programs.
    """
    yield
    if memory.held() > forgotten[0] + MOST:
        forget()
        forgotten[0] = memory.held()


def pytest_collection_modifyitems(items):
    # Their subject is not the snippets, and to follow each line of them takes time.
    for item in items:
        if item.path.relative_to(ROOT / "tests").parts[0] in ("engine", "book"):
            item.add_marker("no_cover")


not_collected = []


def pytest_ignore_collect(collection_path, config):
    if collection_path.name.startswith("test_"):
        missing = missing_frameworks(collection_path)
        if missing:
            not_collected.append((collection_path.relative_to(ROOT), missing))
            return True
    return None


def pytest_terminal_summary(terminalreporter):
    for path, missing in not_collected:
        terminalreporter.write_line(f"not run: {path}, for {', '.join(missing)} is not installed")


@pytest.fixture
def raises_declared():
    """Call a snippet and require exactly the error that its module declares for it."""

    def check(function, *args, **kwargs):
        target = getattr(function, "__wrapped__", function)
        module = sys.modules[target.__module__]
        error, fragment = module.EXPECTED_ERRORS[target.__name__]
        try:
            function(*args, **kwargs)
        except Exception as raised:
            assert type(raised) is error, f"raised {type(raised)}, declared {error}"
            assert fragment in str(raised), f"no {fragment!r} in {str(raised)!r}"
            return raised
        pytest.fail(f"{target.__name__} did not raise the declared {error.__name__}")

    return check


@pytest.fixture(scope="session")
def made_once(tmp_path_factory, request):
    """Return a function that has a folder filled once, for all processes of a run."""
    root = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        root = root.parent

    def made(name, fill):
        folder = root / name
        with (root / f"{name}.lock").open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.seek(0)
            if not lock.read():
                # Of one that could not be filled.
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                lock.write("made")
        return folder

    return made


@pytest.fixture(scope="session")
def kept_programs(request):
    """Return the environment of a program that finds and leaves compiled programs as tests do."""
    return {name.upper(): str(value) for name, value in keeping(request.config).items()}


@pytest.fixture(scope="module")
def few_objects():
    """Leave out what lives already where JAX searches all objects for what keeps a tracer."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def mpi():
    """Skip a test, saying what is missing, where programs cannot be started with MPI."""
    require_mpi("mpi4py")


@pytest.fixture
def mpi4jax():
    """As `mpi`, for programs that use mpi4jax."""
    require_mpi("mpi4py", "mpi4jax")


def require_mpi(*packages):
    from snippets.programs.launcher import find_mpirun

    try:
        find_mpirun(*packages)
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def browser():
    """Start a browser for the tests of a file."""
    names = ("chromium", "chromium-browser")
    path = os.environ.get("BOOK_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    if not path:
        pytest.skip("no browser: install Debian's chromium, or name one in BOOK_BROWSER")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        # Other hosts are not to be found, which else takes as long as this machine's network does.
        alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", alone])
        yield browser
        browser.close()
