"""The commands of the book. `nox --list` shows them; `nox -s docs` runs one.

Each installs what it needs into an environment of its own, which is kept for
the next time. BOOK_FRAMEWORKS chooses another set of frameworks than `cpu`:
`cuda`, `tpu` or `jax` (see requirements/).
"""

import os

import nox
from nox.command import CommandFailed

nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "tests", "docs"]
FRAMEWORKS = os.environ.get("BOOK_FRAMEWORKS", "cpu")
BUILD = ["sphinx-build", "-W", "--keep-going", "-c", ".", "docs", "build/html"]


def install(session, *sets):
    """Install sets of requirements, each a file of requirements/."""
    session.install(*(word for name in sets for word in ("-r", f"requirements/{name}.txt")))
    if {"docs", "record"} & set(sets):
        install_mpi(session)


def install_mpi(session):
    """Install MPI, and build mpi4jax for it and for the installed JAX.

    Without a C++ compiler this fails. It is said here, and all else goes on: the pages that
    need what is missing fail in the build, and name it. A folder without CUDA as CUDA_PATH
    keeps the build from half a CUDA that it may find.
    """
    try:
        session.install("-r", "requirements/mpi.txt")
        session.install(
            *("--no-cache-dir", "--no-build-isolation", "-r", "requirements/mpi4jax.txt"),
            env={"CUDA_PATH": os.environ.get("CUDA_PATH", os.path.abspath("requirements"))},
        )
    except CommandFailed:
        session.warn(
            "MPI or mpi4jax could not be installed, see above. mpi4jax needs a C++ compiler, on "
            "Debian 'apt-get install g++'. Without it the build of docs/processes fails"
        )


@nox.session
def docs(session):
    """Build the site into build/html, executing what changed. Arguments go to sphinx-build.

    With --recorded nothing is executed and no framework installed: the pages show what was
    recorded. That site goes into build/recorded.
    """
    if "--recorded" in session.posargs:
        arguments = [word for word in session.posargs if word != "--recorded"]
        session.install("-r", "requirements/docs.txt")
        session.run(*BUILD[:-1], "build/recorded", "-D", "book_recorded=1", *arguments)
        return
    install(session, FRAMEWORKS, "docs")
    session.run(*BUILD, *session.posargs)


@nox.session
def record(session):
    """Record what pages print on this machine's device: the pages named, or all."""
    install(session, FRAMEWORKS, "record")
    session.run(
        "python", "-m", "_ext.commands.record", *session.posargs, env={"PYTHONPATH": "docs"}
    )


@nox.session
def recordings(session):
    """List the recordings of all devices: current, stale, missing, unreadable."""
    session.install("-r", "requirements/record.txt")
    session.run("python", "-m", "_ext.commands.recordings", env={"PYTHONPATH": "docs"})


@nox.session
def live(session):
    """Serve the site on this machine, and rebuild and reload it whenever a file is saved."""
    install(session, FRAMEWORKS, "docs", "live")
    session.run(
        "sphinx-autobuild",
        *("-c", ".", "docs", "build/live"),
        *("--watch", "snippets", "--watch", "conf.py", "--ignore", "*/__pycache__/*"),
        *("--port", "0", "--open-browser"),
        *session.posargs,
    )


@nox.session(name="compile")
def compile_programs(session):
    """Compile what pages show for devices that are not here, where a record is not current.

    Arguments are the names of functions; `--again` to compile them even so; `--check` to compare
    the records with a fresh compile; or `--list`, which says what is current, without compiling.
    """
    env = {"PYTHONPATH": "docs"}
    if "--list" in session.posargs:
        session.install("-r", "requirements/record.txt")
    else:
        install(session, "compile")
        session.install("--no-deps", "-r", "requirements/compile_cuda.txt")
    session.run("python", "-m", "_ext.commands.compile", *session.posargs, env=env)


@nox.session
def tests(session):
    """Run the tests; with no arguments also check how much of snippets/ they cover."""
    install(session, FRAMEWORKS, "docs", "tests")
    coverage = ["--cov", "--cov-report=term"] if FRAMEWORKS != "jax" else []
    session.run("pytest", "-n", "2", *(session.posargs or coverage))


@nox.session
def lint(session):
    """Check the style of all Python files."""
    install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def linkcheck(session):
    """Follow every link to another site, and report those that lead nowhere."""
    install(session, FRAMEWORKS, "docs")
    session.run("sphinx-build", "-b", "linkcheck", "-c", ".", "docs", "build/linkcheck")


@nox.session
def build_benchmark(session):
    """Measure the build itself against plain scripts and stock MyST-NB, in one run."""
    install(session, FRAMEWORKS, "docs")
    session.run("python", "tests/build_benchmark.py", *session.posargs)
