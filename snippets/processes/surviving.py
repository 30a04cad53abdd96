"""A training job that stops at any moment, and goes on from what it saved."""

import pathlib
import re
import signal

from snippets.processes.detection import slurm_variables
from snippets.programs.launcher import launch

NEVER = 0, "$^"
STAGES = {
    "before the save": (0, r"mkdir .*/20\."),
    "while process 1 writes": (1, r"open .*/20\.[^/]*/.*process_1"),
    "written, not yet renamed": (0, r"rename .*/20\.[^/]*$"),
    "while an old one is removed": (0, r"rmtree .*/1$"),
}


def first_state(mesh):
    """Return the weights of two layers and their momenta, sharded by rows.

    Weights are float32 (8, 64) and (64, 8); the mesh has 1, 2, 4 or 8 devices.
    """
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0))
    shapes = (8, 64), (64, 8)
    params = [
        0.1 * jax.random.normal(key, shape)
        for key, shape in zip(keys, shapes, strict=True)
    ]
    state = {
        "params": params,
        "opt_state": [jnp.zeros_like(x) for x in params],
    }
    return jax.device_put(state, jax.NamedSharding(mesh, jax.P("data")))


def batch_of(number, mesh):
    """Return batch `number`, in any number of processes: x, y float32 (64, 8).

    Each device gets its own rows.
    """
    import jax
    import numpy as np

    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    x = np.random.default_rng(number).normal(size=(64, 8)).astype(np.float32)
    return [
        jax.make_array_from_callback(rows.shape, by_rows, rows.__getitem__)
        for rows in (x, np.sin(x))
    ]


def train_step(params, opt_state, batch):
    """Return new weights and momenta, and the loss: the mean squared error."""
    import jax
    import jax.numpy as jnp

    def mean_squared_error(params):
        first, second = jax.reshard(params, jax.P())
        x, y = batch
        return jnp.mean((jnp.tanh(x @ first) @ second - y) ** 2)

    loss, grads = jax.value_and_grad(mean_squared_error)(params)
    opt_state = jax.tree.map(lambda m, g: 0.9 * m + g, opt_state, grads)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, params, opt_state)
    return params, opt_state, loss


def train(manager, mesh, until):
    """Train to step `until`, from the newest checkpoint on if there is one.

    Calls the manager in each step, which saves at regular steps, when a
    process was sent SIGTERM, and in the last step. Returns whether SIGTERM
    has stopped it.
    """
    import jax
    import orbax.checkpoint as ocp

    step = jax.jit(train_step)
    state, done = first_state(mesh), manager.latest_step()
    if done is not None:
        state = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        state = manager.restore(done, args=ocp.args.StandardRestore(state))
    for number in range((done or 0) + 1, until + 1):
        params, opt_state, loss = step(**state, batch=batch_of(number, mesh))
        state = {"params": params, "opt_state": opt_state}
        print("step", number, float(loss))
        saved = ocp.args.StandardSave(state)
        manager.save(number, args=saved, force=number == until)
        if manager.reached_preemption(number):
            return True
    return False


def surviving_program():
    """Join the others and train; if stopped, end with the status 75."""
    import os
    import sys

    import jax
    import orbax.checkpoint as ocp

    jax.distributed.initialize()
    signal_at(os.environ["EVENT"], int(os.environ["SIGNAL"]))
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
    jax.set_mesh(mesh)
    options = ocp.CheckpointManagerOptions(
        save_interval_steps=10, max_to_keep=2
    )
    folder = os.environ["FOLDER"]
    with ocp.CheckpointManager(folder, options=options) as manager:
        stopped = train(manager, mesh, until=int(os.environ["UNTIL"]))
    if stopped:
        sys.exit(os.EX_TEMPFAIL)


def signal_at(pattern, number):
    """Send this process a signal right before an event, once.

    Python announces each event by its name and arguments, such as the path
    of a file that is to be opened.
    """
    import os
    import re
    import sys

    left = [number]

    def hook(event, values):
        if left and re.search(pattern, f"{event} {[*values, ''][0]}"):
            os.kill(os.getpid(), left.pop())

    sys.addaudithook(hook)


def run_job(
    folder, until, count=2, stage=NEVER, number=signal.SIGKILL, statuses=None
):
    """Run the program in `count` processes with two devices each.

    A stage names a process, and the event before which it is sent a signal.
    Variables tell each process what Slurm would, and what to do.
    """
    own, event = stage

    def variables(port, count, process):
        return slurm_variables(port, count, process) | {
            "FOLDER": str(folder),
            "UNTIL": str(until),
            "EVENT": event if process == own else NEVER[1],
            "SIGNAL": str(int(number)),
        }

    return launch(
        surviving_program,
        count,
        uses=[first_state, batch_of, train_step, train, signal_at],
        statuses=statuses,
        variables=variables,
    )


def kill_at(stage, folder):
    """Kill one process of two at a stage, and stop the other.

    Returns the newest step whose save was completed.
    """
    statuses = [...] * 2
    statuses[stage[0]] = -signal.SIGKILL
    run_job(folder, 20, stage=stage, statuses=statuses)
    return newest_in(folder)


def newest_in(folder):
    """Return the newest step that was saved completely: its name is a number.

    ValueError where there is none.
    """
    names = [path.name for path in pathlib.Path(folder).iterdir()]
    return max(int(name) for name in names if name.isdigit())


def losses_of(finished):
    """Return {step: loss} of each process."""
    found = re.compile(r"^step (\d+) (\S+)$", re.MULTILINE)
    return [
        {int(step): float(loss) for step, loss in found.findall(each.text)}
        for each in finished
    ]
