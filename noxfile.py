"""The commands of the book. `nox --list` shows them; `nox -s docs` runs one.

Each installs what it needs into an environment below .nox/, which is kept for the next time and
shared by all commands that use the same frameworks. BOOK_FRAMEWORKS chooses another set of
frameworks than `cpu`: `cuda`, `tpu` or `jax` (see requirements/).
"""

import hashlib
import logging
import os
import pathlib
import re
import runpy
import shutil
import sys

import nox
from nox.command import CommandFailed

PYTHONS = ["3.11", "3.12", "3.13"]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
if PYTHON not in PYTHONS:
    sys.exit(
        f"This is Python {PYTHON}, and the book needs {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]}. "
        f"Either 'uvx --python {PYTHONS[-1]} nox -s docs', which fetches it, or install it and "
        f"make the virtual environment with it: 'python{PYTHONS[-1]} -m venv .venv'"
    )

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
REQUIREMENTS = pathlib.Path("requirements")
ENGINE = {"PYTHONPATH": "docs/_ext"}
# Each process that tests holds all frameworks.
CORES = min(os.cpu_count() or 1, 4)
TEST = ["pytest", "-n", str(CORES), "--dist", "worksteal"]
# Of the processes in which Sphinx reads and writes pages the first only hands them out.
JOBS = ["-j", str(CORES + 1)]
BUILD = ["sphinx-build", "-W", "--keep-going", *JOBS, "-c", ".", "docs", "build/html"]

# Compiling for a TPU needs another libtpu than running on one, and of the model only its files are
# wanted, not the packages that its code would need.
ALONE = ("compile", "model")
LOCKS = {
    "": sorted(path.stem for path in REQUIREMENTS.glob("*.txt") if path.stem not in ALONE),
    "-compile": ["compile"],
}

# What the locks hold for: the oldest Linux that libtpu runs on, and the oldest macOS of PyTorch.
PLATFORMS = ["x86_64-manylinux_2_31", "aarch64-manylinux_2_31", "aarch64-apple-darwin"]
MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
# Sets that are of use on some of them alone.
ONLY_ON = {"cuda": PLATFORMS[:2], "tpu": PLATFORMS[:1], "compile": PLATFORMS[:1]}

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
YEARS = ["appendix/years"]

# Files for hosts, by the schema that they follow.
HOSTS = {
    "github-workflows": sorted(pathlib.Path(".github", "workflows").glob("*.yml")),
    "readthedocs": [".readthedocs.yaml"],
    "citation-file-format": ["CITATION.cff"],
}


def install(session, *sets, into=FRAMEWORKS, lock=""):
    """Install sets of requirements, each a file of requirements/, in the versions of a lock.

    What follows in the session runs in that environment. Nothing is done where requirements,
    locks and the installed packages are those that an installation of these sets left, or of more.
    With `--install-only` of nox nothing but this is done.
    """
    place = pathlib.Path(".nox", f"{into}-{PYTHON}")
    bin_folder = str(place.absolute() / "bin")
    os.environ |= {"VIRTUAL_ENV": str(place.absolute()), "PATH": bin_folder + os.pathsep + PATH}
    known = [path for path in place.glob("installed-*") if set(sets) <= set(names(path))]
    if any(path.read_text() == digest(place) for path in known):
        return
    session.log(f"Installing {', '.join(sets)} into {place}")
    session.run_install(sys.executable, "-m", "virtualenv", "--quiet", place)
    pip(session, *sets, lock=lock)
    if FRAMEWORKS == "cpu" and FRAMEWORKS in sets:
        pip(session, "model", options=["--no-deps"], lock=None)
    if FRAMEWORKS not in sets or install_mpi(session):
        (place / f"installed-{'-'.join(sets)}").write_text(digest(place))


def compile_installed(session):
    """Let Python compile all that is installed, so that no first call that is shown pays for it.

    On all cores, which pip would not, and without the packages' own tests, a fifth of all. Where
    nothing but a program's result counts, what is imported is compiled when it is.
    """
    place = pathlib.Path(os.environ["VIRTUAL_ENV"])
    done, known = place / "compiled", digest(place)
    if done.is_file() and done.read_text() == known:
        return
    # Packages bring templates that are no Python.
    words = ["-m", "compileall", "-qq", "-j", "0", "-x", r"[/\\]tests?[/\\]", place / "lib"]
    session.run("python", *words, success_codes=[0, 1])
    done.write_text(known)


def names(path):
    """Return the sets of requirements that an installation noted in the name of a file."""
    return path.name.split("-")[1:]


def digest(place):
    """Return a hash of all requirements and locks, and of the names and versions installed."""
    texts = [path.read_bytes() for path in sorted(REQUIREMENTS.rglob("*.txt"))]
    packages = sorted(path.name for path in place.glob("lib/*/site-packages/*.dist-info"))
    return hashlib.sha256(repr((texts, packages)).encode()).hexdigest()


def wheels(platform):
    """Return the options for pip and uv that take wheels alone, but of what has none there."""
    from_source = ["--no-binary", "rjsmin"] if "darwin" in platform else []
    return ["--only-binary", ":all:", *from_source]


def pip(session, *sets, lock="", options=None, env=None):
    """Install sets of requirements in one step, so that what contradicts is seen."""
    options = wheels(sys.platform) if options is None else options
    words = ["--no-compile"]
    words += [word for name in sets for word in ("-r", REQUIREMENTS / f"{name}.txt")]
    if lock is not None:
        words += ["-c", REQUIREMENTS / "locks" / f"{PYTHON}{lock}.txt"]
    session.run_install("python", "-m", "pip", "install", *options, *words, env=env, silent=True)


def install_mpi(session):
    """Install MPI, build mpi4jax for it and for the installed JAX, and say whether that worked.

    Without a C++ compiler it does not. That is said, and all else goes on: the cells that need
    what is missing are left out, and say so. A folder without CUDA as CUDA_PATH keeps the build
    from half a CUDA that it may find.
    """
    try:
        pip(session, "mpi")
        options = ["--no-cache-dir", "--no-build-isolation"]
        cuda = os.environ.get("CUDA_PATH", str(REQUIREMENTS.absolute()))
        pip(session, "mpi4jax", options=options, env={"CUDA_PATH": cuda})
    except CommandFailed:
        session.warn(
            "MPI or mpi4jax could not be installed, see above. mpi4jax needs a C++ compiler, on "
            "Debian 'apt-get install g++'. The cells that need it are left out"
        )
        return False
    return True


@nox.session
def docs(session):
    """Build the site into build/html, executing what changed. Arguments go to sphinx-build.

    With --recorded nothing is executed and no framework installed: the pages show what was
    recorded. That site goes into build/recorded. Pages that measure do so with few samples, for a
    first look; `-D book_preview=0` takes as many as a recording.
    """
    arguments = [word for word in session.posargs if word != "--recorded"]
    if "--recorded" in session.posargs:
        install(session, "docs")
        session.run(*BUILD[:-1], "build/recorded", "-D", "book_recorded=1", *arguments)
        return
    install(session, FRAMEWORKS, "docs")
    session.run(*BUILD, *arguments)


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
    session.install(
        *(
            "-r",
            REQUIREMENTS / "record.txt",
            "-r",
            REQUIREMENTS / "versions" / f"jax-{version}.txt",
        ),
        *("-c", REQUIREMENTS / "versions" / "locks" / f"jax-{version}.txt"),
    )
    session.run("python", "-m", "errors.record_versions", *session.posargs, env=ENGINE)


@nox.session
def jax_years(session):
    """Record the page that compares versions of JAX: all that jax_versions can install, in turns.

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


@nox.session
def recordings(session):
    """List the recordings of all devices and versions by age, and which are of earlier code.

    With --check it fails where one is not current, or missing on the CPU: for whoever publishes.
    """
    install(session, "record")
    session.run("python", "-m", "executed.commands.recordings", *session.posargs, env=ENGINE)


@nox.session
def live(session):
    """Serve the site on this machine, and rebuild and reload it whenever a file is saved."""
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
    """Compile what pages show for devices that are not here, where a record is not current.

    Arguments are the names of functions; `--again` to compile them even so.
    """
    install(session, "compile", into="compile", lock="-compile")
    paths = os.pathsep.join(["docs", ENGINE["PYTHONPATH"]])
    session.run("python", "-m", "_compile", *session.posargs, env={"PYTHONPATH": paths})


@nox.session
def tests(session):
    """Run the tests. Arguments go to pytest."""
    install(session, FRAMEWORKS, "docs", "tests")
    session.run(*TEST, *session.posargs)


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
def timer_check(session):
    """Check the timer: equal functions against themselves, quiet and busy, and other timers.

    It takes seven minutes and wants a machine to itself. `-- --experiments 20 --slower 10` is a
    short version.
    """
    install(session, FRAMEWORKS, "docs", "tests")
    session.run("python", "tests/timer_check.py", *session.posargs)


@nox.session
def lock(session):
    """Renew the locks after a change in requirements/; all else in them keeps its version.

    With --upgrade everything gets the newest version that the requirements allow. With --check
    nothing is written: it fails where a lock is not what the requirements come to, on each
    system, with nothing but wheels.
    """
    # Without a lock, which may contradict the new requirements.
    install(session, "lock", into="lock", lock=None)
    check = "--check" in session.posargs
    arguments = [word for word in session.posargs if word != "--check"]
    wanted = [
        (python, f"locks/{python}{part}", sets)
        for python in PYTHONS
        for part, sets in LOCKS.items()
    ]
    wanted += [
        (python, f"versions/locks/jax-{version}", ["record", f"versions/jax-{version}"])
        for python, version in JAX_VERSIONS
    ]
    stale = []
    for python, file, sets in wanted:
        path = REQUIREMENTS / f"{file}.txt"
        text = locked(session, path, python, sets, arguments)
        if not check:
            path.write_text(text, "utf8")
        elif text != path.read_text("utf8"):
            stale.append(str(path))
    if stale:
        session.error(f"run 'nox -s lock'; it would change {', '.join(stale)}")


def locked(session, path, python, sets, arguments):
    """Return a lock for all platforms: each package once, with who needs it where it is first."""
    known = pathlib.Path(session.create_tmp(), "lock.txt")
    packages = {}
    for platform in PLATFORMS:
        here = [each for each in sets if platform in ONLY_ON.get(each, PLATFORMS)]
        if not here:
            continue
        known.write_bytes(path.read_bytes() if path.exists() else b"")
        session.run(
            *("uv", "pip", "compile", "--quiet", "--custom-compile-command", "nox -s lock"),
            *(*wheels(platform), "--no-binary", "mpi4jax"),
            *("--python-version", python, "--python-platform", platform),
            *("--output-file", known.resolve()),
            *(REQUIREMENTS / f"{each}.txt" for each in here),
            *arguments,
            env=MACOS,
        )
        head, *entries = re.split(r"^(?=\w)", known.read_text("utf8"), flags=re.MULTILINE)
        for entry in entries:
            name, _, version = entry.partition("\n")[0].partition("==")
            packages.setdefault((name, version), entry)
    return head + "".join(packages[each] for each in sorted(packages))
