"""Several processes that compute together, and a launcher that leaves none behind."""

import contextlib
import html
import inspect
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from typing import NamedTuple

from IPython.display import HTML

GUARD = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(os.environ["GUARD_PARENT"]):
    sys.exit("the process that started this one has ended")
os.environ["GUARD_PARENT"] = str(os.getpid())
os.execvp(sys.argv[1], sys.argv[1:])
"""
MACHINE = (
    (re.compile(r'(?<=File ")[^"]*/(?=process_)'), ""),
    (re.compile(r"(localhost|\[::\]):\d+"), r"\1:PORT"),
)


class Finished(NamedTuple):
    """How a process ended.

    `status` is its exit status, minus the number of the signal that ended it, or
    None where it had to be stopped. `text` is what it wrote to standard error.
    """

    number: int
    status: int | None
    text: str


def guarded(command):
    """Return a command that runs `command` and ends when its parent does."""
    return [sys.executable, "-c", GUARD, *map(str, command)]


def write_program(path, program, *arguments, uses=()):
    """Write a function's source and a call of it to a file; return the path.

    The sources of the functions that it `uses` come first. What is printed goes
    to standard error, for native code writes lines of its own to standard output.
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


def run_together(commands, environments, folder, limit, grace):
    """Run commands side by side and return a Finished for each.

    All have `limit` seconds. As soon as one fails, the others have at most
    `grace` seconds more. None runs any longer when this returns or raises.
    """
    end = time.monotonic() + limit
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    running = []
    try:
        for command, environment, log in zip(commands, environments, logs, strict=True):
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
        statuses = [None]
        while None in statuses and time.monotonic() < end:
            time.sleep(0.02)
            statuses = [process.poll() for process in running]
            if any(statuses):
                end = min(end, time.monotonic() + grace)
                grace = limit
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    texts = [log.read_text(errors="replace") for log in logs]
    numbers = range(len(commands))
    return [Finished(*each) for each in zip(numbers, statuses, texts, strict=True)]


@contextlib.contextmanager
def reserved_port():
    """Yield a port that only a program which shares ports, as JAX does, can open.

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
        return "stopped at the time limit"
    if status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"


def require_statuses(finished, statuses=None):
    """Raise RuntimeError, with all outputs, unless all ended as expected."""
    if [process.status for process in finished] != list(
        statuses or [0] * len(finished)
    ):
        outputs = [f"process {n}: {how_it_ended(s)}\n{t}" for n, s, t in finished]
        raise RuntimeError("\n\n".join(outputs))


def launch(
    program,
    count=4,
    devices=2,
    *,
    uses=(),
    limit=60,
    statuses=None,
    variables=None,
):
    """Run a program as `count` processes and return a Finished for each.

    Each process calls `program(address, count, number)`, which may call the
    functions that it `uses`. Where `variables` is given it calls `program()`,
    and `variables(port, count, number)` are in its environment. Raises
    RuntimeError unless all end with status 0, or with `statuses`, within
    `limit` seconds.
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
        finished = run_together(commands, environments, folder, limit, grace)
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


def hello_program(address, count, number):
    """Join the other processes and say who is there."""
    import jax

    jax.distributed.initialize(address, num_processes=count, process_id=number)
    print("process", jax.process_index(), "of", jax.process_count())
    print(jax.local_device_count(), "own devices")
    print(jax.device_count(), "devices in all")


def shared_array(address, count, number):
    """Join; return 4 * count float32 values, four of which this process made."""
    import jax
    import numpy as np

    jax.distributed.initialize(address, count, number)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    own = np.arange(4, dtype=np.float32) + 4 * number
    print("own", own)
    return jax.make_array_from_process_local_data(by_rows, own)


def array_program(address, count, number):
    """Show what this process holds of an array of all processes."""
    import numpy as np

    x = shared_array(address, count, number)
    print("whole", x.shape)
    for shard in x.addressable_shards:
        print("shard", shard.index[0].start, shard.data)
    try:
        np.asarray(x)
    except RuntimeError as error:
        print("RuntimeError:", str(error).partition(". ")[0])


def sums_program(address, count, number):
    """Add up an array of all processes in two ways, and gather it."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import multihost_utils

    x = shared_array(address, count, number)

    @jax.shard_map(mesh=x.sharding.mesh, in_specs=jax.P("data"), out_specs=jax.P())
    def add_shards(shard):
        return jax.lax.psum(shard, "data")

    print("sum", jnp.sum(x))
    print("psum", add_shards(x))
    print("gathered", multihost_utils.process_allgather(x, tiled=True))


def gradient_step(weights, x, y):
    """Return the weights (2,) a step nearer to y = x @ weights, and the error before.

    x is (rows, 2) and y (rows,); the error is the mean of the squares.
    """
    import jax
    import jax.numpy as jnp

    def squared_error(weights):
        return jnp.mean((x @ weights - y) ** 2)

    error, slope = jax.value_and_grad(squared_error)(weights)
    return weights - 0.2 * slope, error


def train_program(address, count, number):
    """Fit y = 3 x0 - x1 by gradient descent; each process has own rows."""
    import jax
    import numpy as np

    jax.distributed.initialize(address, count, number)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    whole = jax.NamedSharding(mesh, jax.P())
    own = np.random.default_rng(number).normal(size=(64 // count, 2))
    x, y = (
        jax.make_array_from_process_local_data(by_rows, np.float32(part))
        for part in (own, 3 * own[:, 0] - own[:, 1])
    )
    weights = jax.device_put(np.zeros(2, np.float32), whole)
    step = jax.jit(gradient_step)
    print("rows", len(own), "of", len(x))
    for _ in range(5):
        weights, error = step(weights, x, y)
        print(f"error {error:.4f}")
    print("weights", *(f"{weight:.3f}" for weight in np.asarray(weights)))


def torch_program(address, count, number):
    """Fit the line of `train_program` with torch.distributed."""
    import numpy as np
    import torch

    meeting = torch.distributed.FileStore("meeting", count)
    torch.distributed.init_process_group(
        "gloo", store=meeting, world_size=count, rank=number
    )
    own = np.random.default_rng(number).normal(size=(64 // count, 2))
    x = torch.tensor(own, dtype=torch.float32)
    y = 3 * x[:, :1] - x[:, 1:]
    line = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(line.weight)
    model = torch.nn.parallel.DistributedDataParallel(line)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(5):
        error = torch.mean((model(x) - y) ** 2)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        print(f"error {error.item():.4f}")
    print("weights", *(f"{weight:.3f}" for weight in line.weight[0].tolist()))
    torch.distributed.destroy_process_group()


def errors(finished):
    """Return a list of the errors that each process printed."""
    lines = [each.text.splitlines() for each in finished]
    return [
        [float(line.split()[1]) for line in own if line.startswith("error")]
        for own in lines
    ]


def train_numpy(count):
    """Return the five errors of `train_program`, computed with NumPy."""
    import numpy as np

    sources = [np.random.default_rng(number) for number in range(count)]
    x = np.concatenate([s.normal(size=(64 // count, 2)) for s in sources])
    y = 3 * x[:, 0] - x[:, 1]
    weights, found = np.zeros(2), []
    for _ in range(5):
        difference = x @ weights - y
        found.append(np.mean(difference**2))
        weights -= 0.2 * 2 * x.T @ difference / len(x)
    return np.array(found)
