"""What the other processes notice when one is missing, fails or dies."""

import re

from snippets.programs.launcher import readable

NATIVE = re.compile(
    r"^[WEF]\d{4} [\d:.]+ +\d+ \w+\.(?:cc|h):\d+\] ", re.MULTILINE
)
FATAL = re.compile(
    r"^F\d{4} .*?absl::Status: (.*?)\n(?:\n|RPC|Additional|===|\*\*\*|:)",
    re.M | re.S,
)
CHANGING = (
    (re.compile(r" *\[(?:type\.googleapis\.com/|external/)[^]]*\]"), ""),
    (re.compile(r"Failed to disconnect .* status: INTERNAL: "), ""),
    (re.compile(r"Id: Shutdown::\d+::\d+"), "Id: Shutdown"),
    (
        re.compile(r"Read error .*by peer|Connection closed by peer.*"),
        "connection lost",
    ),
    (re.compile(r"^ *[~^]+\n", re.MULTILINE), ""),
)


def essence(text):
    """Reduce what a dying process wrote to what it says.

    Kept are the lines of the program, errors of Python, and the fatal message
    of the native code. Its stack, repetitions, times and addresses are
    dropped.
    """
    own = NATIVE.split(readable(text))[0]
    fatal = "".join(f"fatal: {message}" for message in FATAL.findall(text))
    for pattern, replacement in CHANGING:
        own, fatal = (
            pattern.sub(replacement, own),
            pattern.sub(replacement, fatal),
        )
    return f"{own.strip()}\n{fatal}".strip()


def missing_program(address, count, number):
    """Wait for one process more than there are, which ends this one."""
    import jax

    try:
        others = count + 1
        jax.distributed.initialize(
            address, others, number, initialization_timeout=1
        )
    except Exception as error:
        print("caught", error)


def exception_program(address, count, number):
    """Raise an exception in process 1 while process 0 waits for data."""
    import jax
    from jax.experimental import multihost_utils

    jax.distributed.initialize(
        address, count, number, shutdown_timeout_seconds=1
    )
    if number == 1:
        raise ValueError("a row without a label")
    multihost_utils.process_allgather(float(number))


def exit_program(address, count, number):
    """End process 1 at once while process 0 waits for data."""
    import os
    import time

    import jax
    from jax.experimental import multihost_utils

    jax.distributed.initialize(
        address, count, number, heartbeat_timeout_seconds=20
    )
    print(multihost_utils.process_allgather(float(number)))
    if number == 1:
        time.sleep(0.5)
        os._exit(7)
    try:
        multihost_utils.process_allgather(float(number))
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        print("caught", type(error).__name__, error)
    time.sleep(600)


def coordinator_program(address, count, number):
    """End process 0, which coordinates, while process 1 computes alone."""
    import os
    import time

    import jax
    from jax.experimental import multihost_utils

    jax.distributed.initialize(address, count, number)
    print(multihost_utils.process_allgather(float(number)))
    multihost_utils.sync_global_devices("both have printed")
    if number == 0:
        os._exit(7)
    time.sleep(600)


def survivors_program(address, count, number):
    """Add up ones over the devices that live; process 1 ends in step 1."""
    import os
    import time

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import multihost_utils

    explicit = (jax.sharding.AxisType.Explicit,)
    jax.config.update("jax_enable_recoverability", True)
    jax.distributed.initialize(
        address, count, number, heartbeat_timeout_seconds=20
    )
    for step in range(3):
        if step == 1 and number == 1:
            os._exit(7)
        try:
            with multihost_utils.live_devices(jax.devices()) as live:
                mesh = jax.sharding.Mesh(live, ("data",), explicit)
                by_rows = jax.NamedSharding(mesh, jax.P("data"))
                one = np.ones(1, np.float32)
                x = jax.make_array_from_process_local_data(by_rows, one)
                total = float(jnp.sum(x))
                print(step, "sum", total)
        except multihost_utils.ProcessFailureError as error:
            print(step, "failed, lost", len(error.failed_devices), "device")
    if number == 0:
        time.sleep(600)
