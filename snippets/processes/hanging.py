"""Jobs that hang: who waits for whom, and what ends it."""

import re

from snippets.programs.launcher import readable

DUMPED_TWICE = r"Timeout.*Timeout"
FRAME = re.compile(r'File "(?:.*/)?([^"/]+)", line \d+ in (\S+)')


def blocked_in(text):
    """Reduce what a process wrote to its lines and, in a dump, its calls.

    The call in which it stood comes first. Line numbers are dropped, and all
    after the first dump.
    """
    printed, dump, *_ = [*readable(text).split("Timeout"), ""]
    calls = [f"{name}: {function}" for name, function in FRAME.findall(dump)]
    if not calls:
        return printed.strip()
    shown = [calls[0], *(c for c in calls[1:] if c.startswith("process_"))]
    return "\n".join([printed.strip(), "blocked in", *shown]).strip()


def raised_in(text):
    """Reduce what a process wrote to its lines and its error."""
    printed, _, trace = readable(text).partition("Traceback")
    errors = re.findall(r"^\w+Error: .*", trace, re.MULTILINE)
    return "\n".join([printed.strip(), *errors]).strip()


def summed(value):
    """Return the sum of a number of each process, by an all-reduce."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
    rows = jax.NamedSharding(mesh, jax.P("data"))
    own = np.full(1, value, np.float32)
    x = jax.make_array_from_process_local_data(rows, own)
    return float(jnp.sum(x))


def watched_program(address, count, number):
    """Add up a number twice; process 1 is stuck before the second time.

    A step that takes five seconds says where it is.
    """
    import faulthandler
    import time

    import jax

    jax.distributed.initialize(address, count, number)
    summed(0)
    for step in range(2):
        faulthandler.dump_traceback_later(5, repeat=True)
        if (step, number) == (1, 1):
            time.sleep(600)
        print(step, summed(1), flush=True)


def full_pipe_program(address, count, number):
    """Write to a pipe that nobody reads, in process 1."""
    import faulthandler
    import os

    import jax

    def report(log):
        os.write(log, b"a step, and what it printed\n" * 10_000)

    jax.distributed.initialize(address, count, number)
    summed(0)
    _, log = os.pipe()
    faulthandler.dump_traceback_later(5, repeat=True)
    if number == 1:
        report(log)
    print(0, summed(1), flush=True)


def skip_program(address, count, number):
    """Add up a number in each step; process 1 leaves out step 1."""
    import faulthandler

    import jax

    jax.distributed.initialize(address, count, number)
    summed(0)
    faulthandler.dump_traceback_later(5, repeat=True)
    for step in range(4):
        if (step, number) != (1, 1):
            print(step, summed(10**step), flush=True)


def checked_program(address, count, number):
    """Do the same, and compare the number of the step before each sum."""
    import jax
    from jax.experimental import multihost_utils

    jax.distributed.initialize(address, count, number)
    for step in range(4):
        if (step, number) != (1, 1):
            multihost_utils.sync_global_devices(f"step {step}")
            print(step, summed(10**step), flush=True)


def check_same_program(function, *args):
    """Raise AssertionError unless all processes have the same program."""
    import zlib

    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    text = jax.jit(function).lower(*args).as_text()
    number = np.uint32(zlib.crc32(text.encode()))
    multihost_utils.assert_equal(number, "processes have different programs")


def other_program(address, count, number, check=False):
    """Add up the columns in process 0, and everything in process 1."""
    import faulthandler

    import jax
    import numpy as np

    def columns(x):
        return x.sum(axis=0)

    def everything(x):
        return x.sum()

    jax.distributed.initialize(address, count, number)
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
    rows = jax.NamedSharding(mesh, jax.P("data"))
    own = np.ones((4, 3), np.float32)
    x = jax.make_array_from_process_local_data(rows, own)
    function = columns if number == 0 else everything
    if check:
        check_same_program(function, x)
    compiled = jax.jit(function).lower(x).compile()
    faulthandler.dump_traceback_later(5, repeat=True)
    print(compiled(x), flush=True)


def other_program_checked(address, count, number):
    """Do the same, and compare the programs before they run."""
    other_program(address, count, number, check=True)


def slow_program(address, count, number):
    """Say which process was the last to be ready for a collective."""
    import time

    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    jax.distributed.initialize(address, count, number)
    start = time.perf_counter()
    if number == 1:
        time.sleep(0.5)
    own = np.float32(time.perf_counter() - start)
    seconds = multihost_utils.process_allgather(own)
    print("the slowest is process", int(np.argmax(seconds)))


def limited_program(address, count, number):
    """Wait 30 seconds at most for the others in a collective on CPUs."""
    import os

    os.environ["XLA_FLAGS"] = "--xla_cpu_collective_timeout_seconds=30"
    import time

    import jax

    jax.distributed.initialize(address, count, number)
    print(0, summed(1), flush=True)
    try:
        if number == 0:
            time.sleep(600)
        else:
            print(1, summed(1), flush=True)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        print("caught", str(error).rpartition("] ")[2], flush=True)
    os._exit(0)
