"""The commands of the book. `nox --list` shows them; `nox -s docs` runs one.

Each installs what it needs into an environment below .nox/, which is kept for the next time and
shared by all commands that use the same frameworks. BOOK_FRAMEWORKS chooses another set of
frameworks than `cpu`: `cuda`, `tpu` or `jax` (see pyproject.toml).
"""

import contextlib
import fcntl
import logging
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib

import nox
from nox.command import CommandFailed

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
if PYTHON not in PYTHONS:
    sys.exit(
        f"This is Python {PYTHON}, and the book needs {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]}. "
        f"Either 'uvx --python {PYTHONS[-1]} nox -s docs', which fetches it, or install it and "
        f"make the virtual environment with it: 'python{PYTHONS[-1]} -m venv .venv'"
    )

PREFLIGHT = runpy.run_path("docs/_preflight.py")
PREFLIGHT["prepare"](os.environ, pathlib.Path(".nox").absolute())

# News only to whoever wants environments that uv makes.
logging.getLogger("nox").addFilter(lambda record: record.msg != "uv binary not found.")
# Nox would install the frameworks once for each session: minutes and gigabytes.
nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "tests", "docs"]
FRAMEWORKS = os.environ.get("BOOK_FRAMEWORKS", "cpu")
PATH = os.environ["PATH"]
# Hundreds of processes import the same. What Python has compiled for one of them is kept for all,
# even where that is switched off.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
UV = "uv==0.13.9"
LOCK = pathlib.Path("requirements.lock")
ENGINE = {"PYTHONPATH": "docs/_ext"}
MACHINE = runpy.run_path("docs/_ext/executed/run/machine.py")
PLACES = MACHINE["places"]
# Each process that tests holds all frameworks and 300 MB of compiled programs, and starts others.
TEST = ["pytest", "-n", str(min(PLACES(2), 4)), "--dist", "worksteal"]
# Of the processes in which Sphinx reads and writes pages the first only hands them out.
JOBS = ["-j", str(min(PLACES(0.5), 4) + 1)]
BUILD = ["sphinx-build", "-W", "--keep-going", *JOBS, "-c", ".", "docs", "build/html"]
RECORDED = ["-D", "book_recorded=1"]
SITE = pathlib.Path("build", "html", "index.html")

# What the lock holds for: the oldest Linux that libtpu runs on, and the oldest macOS of PyTorch.
PLATFORMS = ["x86_64-manylinux_2_31", "aarch64-manylinux_2_31", "aarch64-apple-darwin"]
MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
# What groups need in several versions: they name it themselves, and jax the version of jaxlib.
NOT_LOCKED = ["jax", "jaxlib", "libtpu"]
# What the lock knows nothing of.
ALONE = ["model", "compile"]

# Without a traceback where somebody ends it during its first build.
SERVE = """
import contextlib, sphinx_autobuild.__main__
with contextlib.suppress(KeyboardInterrupt):
    sphinx_autobuild.__main__.main()
"""

# The versions of JAX that pages are recorded on. From 0.11 on it needs a later Python.
JAX_VERSIONS = [
    ("3.11" if int(version.split(".")[1]) < 11 else "3.12", version)
    for version in runpy.run_path("conf.py")["book_versions"]["recorded"]
]

# The pages that compare these versions.
YEARS = ["appendix/upgrades", "appendix/years"]

# Files for hosts, by the schema that they follow.
HOSTS = {
    "github-workflows": sorted(pathlib.Path(".github", "workflows").glob("*.yml")),
    "readthedocs": [".readthedocs.yaml"],
    "citation-file-format": ["CITATION.cff"],
}


def install(session, *groups, into=FRAMEWORKS):
    """Install groups of pyproject.toml in the versions of the lock, where they are not there yet.

    What follows in the session runs in that environment. With `--install-only` of nox nothing but
    this is done.
    """
    place = pathlib.Path(".nox", f"{into}-{PYTHON}").absolute()
    os.environ |= {"VIRTUAL_ENV": str(place), "PATH": f"{place / 'bin'}{os.pathsep}{PATH}"}
    frameworks = FRAMEWORKS if FRAMEWORKS in groups else ""
    if problem := PREFLIGHT["problem"](place, frameworks, os.environ):
        session.error(problem)
    if frameworks:
        check_headers(session)
    if frameworks and not shutil.which("c++"):
        session.warn(
            "there is no C++ compiler: the cells that need one, or mpi4jax, are left out. "
            "For all of them 'apt-get install g++' first, on macOS 'xcode-select --install'"
        )
    with installing(session, place):
        if not PREFLIGHT["usable"](place):
            words = ["--quiet", "--clear", place]
            session.run_install(sys.executable, "-m", "virtualenv", *words)
        if not frameworks:
            uv_install(session, place, *groups)
            return
        uv_install(session, place, *groups, "mpi")
        if FRAMEWORKS == "cpu":
            uv_install(session, place, "model", options=["--no-deps"])
        install_mpi4jax(session, place)


@contextlib.contextmanager
def installing(session, place):
    """Install while no other command does, and repair what one left that was ended meanwhile.

    The file of the lock is empty again once all is installed.
    """
    place.parent.mkdir(exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            session.log("waiting for another command that installs")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if file.read():
            PREFLIGHT["repair"](place)
        file.write("unfinished")
        file.flush()
        yield
        file.truncate(0)


def check_headers(session):
    """Refuse a Python without its header files beside a C++ compiler, before anything is fetched.

    What torch.compile and mpi4jax compile includes them. Distributions have them in a package of
    their own.
    """
    headers = pathlib.Path(sysconfig.get_path("include"), "Python.h")
    if (shutil.which("g++") or shutil.which("clang++")) and not headers.exists():
        session.error(
            f"there is a C++ compiler, but not {headers}, which it needs for torch.compile and "
            "mpi4jax. Install it, on Debian and Ubuntu 'apt-get install python3-dev', on Fedora "
            "'dnf install python3-devel'"
        )


def uv_install(session, place, *groups, options=None, **settings):
    """Install groups in one step, so that what contradicts is seen, and as wheels by default.

    Each environment has an uv of its own, so that it does not matter how Nox was installed.
    """
    uv = place / "bin" / "uv"
    if not uv.exists():
        session.run_install(place / "bin" / "python", "-m", "pip", "install", UV, silent=True)
    words = ["--python", place, "--constraint", LOCK, UV, *of_groups(groups)]
    words += wheels(sys.platform) if options is None else options
    session.run_install(uv, "pip", "install", *words, silent=True, **settings)


def of_groups(groups):
    """Return the options of uv that name groups."""
    return [word for group in groups for word in ("--group", group)]


def wheels(platform):
    """Return the options of uv that take wheels alone, but of what has none there."""
    from_source = ["--no-binary", "rjsmin"] if "darwin" in platform else []
    return ["--only-binary", ":all:", *from_source]


def install_mpi4jax(session, place):
    """Build mpi4jax for the installed MPI and the installed JAX.

    Without a C++ compiler nothing is tried. Where it fails, it is said, and all else goes on: the
    cells that need what is missing are left out, and say so. A folder without CUDA as CUDA_PATH
    keeps the build from half a CUDA that it may find.
    """
    if not shutil.which("c++"):
        return
    options = ["--no-cache", "--no-build-isolation"]
    cuda = os.environ.get("CUDA_PATH", str(pathlib.Path("docs").absolute()))
    try:
        uv_install(session, place, "mpi4jax", options=options, env={"CUDA_PATH": cuda})
    except CommandFailed:
        session.warn(
            "mpi4jax could not be installed, see above. The cells that need it are left out"
        )


def compile_installed(session):
    """Let Python compile all that is installed, so that no first call that is shown pays for it.

    On all cores, and without the packages' own tests, a fifth of all. Where nothing but a
    program's result counts, what is imported is compiled when it is.
    """
    place = pathlib.Path(os.environ["VIRTUAL_ENV"])
    done = place / "compiled"
    installed = "\n".join(sorted(map(str, place.glob("lib/*/site-packages/*.dist-info"))))
    if done.is_file() and done.read_text() == installed:
        return
    # Packages bring templates that are no Python.
    words = ["-m", "compileall", "-qq", "-j", "0", "-x", r"[/\\]tests?[/\\]", place / "lib"]
    session.run("python", *words, success_codes=[0, 1])
    done.write_text(installed)


@nox.session
def docs(session):
    """Build the site into build/html, executing what changed. Arguments go to sphinx-build.

    The first time it is there after a minute, with recorded outputs, and is written again once all
    pages were executed. Pages that measure show recorded numbers, as long as the code is the same;
    `-D book_preview=0` measures. With --recorded nothing is executed and no framework installed.
    That site goes into build/recorded.
    """
    arguments = [word for word in session.posargs if word != "--recorded"]
    if "--recorded" in session.posargs:
        install(session, "docs")
        session.run(*BUILD[:-1], "build/recorded", *RECORDED, *arguments)
        return
    if not arguments:
        build_to_look_at(session)
    if MACHINE["free"]() < 2:
        session.warn(
            f"{MACHINE['free']():.1f} GiB of memory are free, and some pages take 2. Where one "
            "ends for want of it, close other programs, or build from recorded outputs: "
            "'nox -s docs -- --recorded'"
        )
    install(session, FRAMEWORKS, "docs")
    session.run(*BUILD, *arguments)


def build_to_look_at(session):
    """Build the site from recordings, while the frameworks are installed, where there is none."""
    if SITE.exists() or "CI" in os.environ:
        return
    install(session, "docs")
    # What is wrong with either, the steps that follow say. With an argument it only installs.
    words = [sys.executable, "-m", "nox", "--install-only", "-s", "docs", "--", "-q"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, **quiet) as installing:
        try:
            folders = ["-d", "build/to_look_at"]
            session.run(*BUILD, *folders, *RECORDED, silent=True, success_codes=range(256))
        except KeyboardInterrupt:
            installing.terminate()
            raise
        session.log(
            f"{SITE} shows the site with recorded outputs. Now the frameworks are installed and "
            "all pages executed. Ctrl-C leaves this site whole"
        )


@nox.session
def record(session):
    """Record what pages print on this machine's device: the pages named, or all.

    With --changed only those whose recording is of earlier code; with --again also what was
    executed here already.
    """
    install(session, FRAMEWORKS, "record")
    compile_installed(session)
    session.run("python", "-m", "executed.commands.record", *session.posargs, env=ENGINE)


@nox.session(venv_backend="virtualenv", reuse_venv=True)
@nox.parametrize("python, version", JAX_VERSIONS)
def jax_versions(session, version):
    """Record the errors of pages on other versions of JAX: of the pages named, or of all.

    With --changed only of those that have changed since.

    `nox -s "jax_versions(python='3.11', version='0.4.31')"` is a single one. One whose
    Python is not on this machine is left out, and said to be.
    """
    uv_install(session, pathlib.Path(session.virtualenv.location), "record", f"jax-{version}")
    session.run("python", "-m", "errors.record_versions", *session.posargs, env=ENGINE)


@nox.session
def jax_years(session):
    """Record the pages that compare versions of JAX: all that jax_versions can install.

    Nothing else should run on the machine meanwhile.
    """
    words = ["-m", "nox", "-s", "jax_versions", "--install-only"]
    session.run_install(sys.executable, *words, external=True)
    install(session, FRAMEWORKS, "record")
    compile_installed(session)
    places = sorted(pathlib.Path(".nox").iterdir())
    pythons = [
        place.absolute() / "bin" / "python" for place in places if "jax_versions" in place.name
    ]
    env = ENGINE | {"JAX_PYTHONS": os.pathsep.join(str(each) for each in pythons if each.exists())}
    session.run("python", "-m", "executed.commands.record", *(session.posargs or YEARS), env=env)


@nox.session(venv_backend="virtualenv", reuse_venv=True)
def messages(session):
    """Read what JAX, in the versions of the book, and the libraries around it can say.

    The field for errors looks there first. It fetches the wheels and installs none of them, and
    needs a Python that can read them all, 3.12 at least.
    """
    folder = pathlib.Path(session.virtualenv.location, "wheels")
    names = [f"jax=={version}" for _, version in JAX_VERSIONS]
    names += ["flax", "optax", "orbax-checkpoint", "equinox", "chex", "diffrax", "numpyro"]
    names += ["blackjax", "grain", "keras", "opt_einsum", "lineax", "optimistix"]
    for name in names:
        words = ["--no-deps", "--only-binary", ":all:", "--python-version", JAX_VERSIONS[-1][0]]
        words += ["--dest", folder, name]
        session.run("python", "-m", "pip", "download", "--quiet", *words, silent=True)
    session.run("python", "tests/pitfalls/make_messages.py", folder)


@nox.session
def recordings(session):
    """List the recordings of all devices and versions by age, and which are of earlier code.

    With --check it fails where one is not current, or missing on the CPU: for whoever publishes.
    """
    install(session, "record")
    session.run("python", "-m", "executed.commands.list_recordings", *session.posargs, env=ENGINE)


@nox.session
def live(session):
    """Serve the site on this machine, and rebuild and reload it whenever a file is saved.

    The first time the site with recorded outputs is there after a minute, in build/html.
    """
    if not session.posargs:
        build_to_look_at(session)
    install(session, FRAMEWORKS, "docs", "live")
    # Beside it the frameworks stay imported while nothing is built.
    session.run(
        *("python", "-m", "executed.run.forkserver", "--"),
        *("python", "-c", SERVE),
        # Sphinx's own search will do, until all is done.
        *("-q", "-D", "book_search=0", *JOBS, "-c", ".", "docs", "build/live"),
        *("--watch", "snippets", "--watch", "conf.py", "--ignore", "*/__pycache__/*"),
        *("--port", "0", "--open-browser"),
        *session.posargs,
        env=ENGINE,
    )


@nox.session(name="compile")
def compile_programs(session):
    """Compile what modules declare, for devices that are not here, where a record is not current.

    Arguments are the names of functions; `--again` to compile them even so.
    """
    install(session, "compile", into="compile")
    paths = os.pathsep.join(["docs", ENGINE["PYTHONPATH"]])
    session.run("python", "-m", "_compile", *session.posargs, env={"PYTHONPATH": paths})


@nox.session
def tests(session):
    """Run the tests. Arguments go to pytest.

    With --changed only those that a change reaches, since the branch left main.
    """
    install(session, FRAMEWORKS, "docs", "tests")
    choose = ["python", "tests/changed.py"] if "--changed" in session.posargs else []
    session.run(*choose, *TEST, *(word for word in session.posargs if word != "--changed"))


@nox.session
def coverage(session):
    """Run the tests of snippets/, and check how much of it they cover.

    Python tells the tracer of every call, those inside of the frameworks too. So it takes longer.
    """
    install(session, FRAMEWORKS, "docs", "tests")
    folders = sorted(path for path in pathlib.Path("snippets").iterdir() if path.is_dir())
    chapters = [pathlib.Path("tests", path.name) for path in folders if path.name != "__pycache__"]
    session.run(*TEST, "--cov", "--cov-report=term", *(session.posargs or chapters))


@nox.session
def lint(session):
    """Check the style of all Python files, the types of the engine, and what hosts read."""
    install(session, "lint", "docs", into="lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    for schema, paths in HOSTS.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *paths)


@nox.session
def page_check(session):
    """Look at every page of build/html in a browser, with validators and Lighthouse; a table.

    And at the workflows, with actionlint.

    Arguments go to tests/page_check/check.py: `--site build/recorded`, `--only` pages, and the
    pages that Lighthouse looks at, or `all`, or `some`, the default. It needs Debian's chromium,
    and npm with Node 20.
    """
    if not shutil.which("npm"):
        session.skip("no page is checked: npm cannot be found")
    install(session, FRAMEWORKS, "docs", "tests")
    folder = pathlib.Path("tests", "page_check")
    done = folder / "node_modules" / ".package-lock.json"
    if not done.is_file() or done.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
        words = ["--prefix", folder, "--no-audit", "--no-fund"]
        session.run_install("npm", "ci", *words, external=True)
    session.run("node", folder / "workflows.mjs", *HOSTS["github-workflows"], external=True)
    if not shutil.which("chromium"):
        session.skip("no page is checked: chromium cannot be found")
    session.run("python", folder / "check.py", *(session.posargs or ["some"]))


@nox.session
def linkcheck(session):
    """Follow every link to another site, and report those that lead nowhere."""
    install(session, FRAMEWORKS, "docs")
    session.run("sphinx-build", "-b", "linkcheck", "-c", ".", "docs", "build/linkcheck")


@nox.session
def build_benchmark(session):
    """Measure the build itself against plain scripts and stock MyST-NB, in one run."""
    install(session, FRAMEWORKS, "docs")
    compile_installed(session)
    session.run("python", "tests/build_benchmark.py", *session.posargs)


@nox.session
def variations(session):
    """Vary what the book teaches in hundreds of examples a function: ten minutes and more."""
    install(session, FRAMEWORKS, "docs", "tests")
    examples = {"BOOK_EXAMPLES": os.environ.get("BOOK_EXAMPLES", "200")}
    session.run("pytest", "tests/book/test_variations.py", *session.posargs, env=examples)


@nox.session
def composition(session):
    """Train each model of the book with each step in each layout, of which the tests do a part."""
    install(session, FRAMEWORKS, "docs", "tests")
    every = {"BOOK_ALL_CASES": "1"}
    session.run(*TEST, "tests/book/test_composition.py", *session.posargs, env=every)


@nox.session
def mutants(session):
    """Put mistakes that readers make into the code of pages; a table of which are noticed.

    Arguments are pages.
    """
    install(session, FRAMEWORKS, "docs", "tests")
    session.run("python", "tests/mutants.py", *session.posargs)


@nox.session
def prices(session):
    """Print what each extension costs: lines, seconds of a build. --write puts it in engine.md."""
    install(session, FRAMEWORKS, "docs", "tests")
    session.run("python", "tests/prices.py", *session.posargs)


@nox.session
def stress(session):
    """Build the site and run the tests under load, with little memory and a clock that jumps.

    It takes hours. Arguments go to tests/stress.py: `one_core --only docs` is one row of its table.
    """
    install(session, FRAMEWORKS, "docs", "tests")
    session.run("python", "tests/stress.py", *session.posargs)


@nox.session
def timer_check(session):
    """Check the timer: equal functions against themselves, quiet and busy, and other timers.

    It takes seven minutes and wants a machine to itself. `-- --experiments 20 --slower 10` is a
    short version.
    """
    install(session, FRAMEWORKS, "docs", "tests")
    session.run("python", "tests/timer_check.py", *session.posargs)


@nox.session
def lock(session):
    """Renew the lock after a change of groups in pyproject.toml; all else keeps its version.

    With --upgrade everything gets the newest version that the groups allow. With --check nothing
    is written: it fails where the lock is not what the groups come to. Both look whether each
    system can have it, with nothing but wheels.
    """
    install(session, into="lock")
    groups = tomllib.loads(pathlib.Path("pyproject.toml").read_text("utf8"))["dependency-groups"]
    versions = {f"jax-{version}": python for python, version in JAX_VERSIONS}
    together = [name for name in groups if name not in [*ALONE, *versions]]
    new = pathlib.Path(session.create_tmp(), "lock.txt")
    new.write_bytes(LOCK.read_bytes())
    words = ["--universal", "--python-version", PYTHONS[0], "--output-file", new]
    words += ["--custom-compile-command", "nox -s lock", "--annotation-style", "line"]
    words += ["--no-binary", "rjsmin", *(f"--no-emit-package={name}" for name in NOT_LOCKED)]
    resolve(session, together, *words, *(word for word in session.posargs if word != "--check"))
    if "--check" not in session.posargs:
        shutil.copy(new, LOCK)
    elif new.read_bytes() != LOCK.read_bytes():
        session.error(f"run 'nox -s lock'; it would change {LOCK}")
    wanted = [(python, together, PLATFORMS) for python in PYTHONS]
    wanted += [(python, ["compile"], PLATFORMS[:1]) for python in PYTHONS]
    wanted += [(python, ["record", name], PLATFORMS) for name, python in versions.items()]
    known = {*NOT_LOCKED, *names(LOCK.read_text("utf8"))}
    for python, needed, platforms in wanted:
        for platform in platforms:
            words = ["--constraint", LOCK, "--python-version", python]
            words += ["--python-platform", platform, *wheels(platform), "--no-annotate"]
            missing = names(resolve(session, needed, *words)) - known
            if missing:
                session.error(f"{', '.join(missing)}: name them in {needed[-1]}, and in NOT_LOCKED")


def resolve(session, groups, *words):
    """Return what groups come to, with nothing but wheels, but of what never has one."""
    words = ["--no-python-downloads", "--only-binary", ":all:", "--no-binary", "mpi4jax", *words]
    words += ["--quiet", *of_groups(groups)]
    return session.run("uv", "pip", "compile", *words, env=MACOS, silent=True)


def names(text):
    """Return the packages of a lock."""
    return set(re.findall(r"^([\w-]+)==", text, re.MULTILINE))
