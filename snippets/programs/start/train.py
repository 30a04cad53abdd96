"""Trains the model: sharded over devices, logged, saved, and resumed where it stopped."""

import argparse
import contextlib
import functools
import itertools
import os
import pathlib
import signal
import sqlite3
import sys
import time

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx

from snippets.models.steps import (
    accumulated,
    cross_entropy,
    gradient_of,
    in_bfloat16,
    make_step,
    split_nnx,
)
from snippets.processes.cluster import join_by_launcher
from snippets.programs.start.images import OPTIONS, UNIT, load
from snippets.programs.start.mlp import network
from snippets.programs.start.rows import batch_of, in_order
from snippets.project.gpt import make_optimizer
from snippets.training.sharded_parameters import gathered, sharded_over

DEVICES = 8
STATE = "params", "stats", "opt_state"


def positive(text):
    """Return a whole number from 1 on, for argparse; ValueError for others."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def parsed(words=None):
    """Return the options in the words of a command line."""
    parser = argparse.ArgumentParser(description="Train the model.")
    folder = pathlib.Path(sys.argv[0]).with_name("run")
    for name, default, about in (
        ("--steps", 1000, "of the whole run, also where it is resumed"),
        ("--batch", 64, "rows of a step, on all devices together"),
        ("--parts", 1, "microbatches into which a device cuts its rows"),
        ("--every", 100, "steps between two lines, and two checkpoints"),
        ("--devices", DEVICES, "of a CPU; of others, all are taken"),
    ):
        text = f"{about} ({default})"
        parser.add_argument(name, type=positive, default=default, help=text)
    parser.add_argument(
        "--folder",
        type=pathlib.Path,
        default=folder,
        help=f"of the checkpoints ({folder})",
    )
    parser.add_argument(
        "--bfloat16", action="store_true", help="compute the model in it"
    )
    for name, about in OPTIONS.items():
        parser.add_argument(name, help=about)
    return parser.parse_args(words)


def devices_of(count):
    """Return the devices of all processes; a CPU gets `count` virtual ones.

    Call it once, before anything else uses JAX.
    """
    jax.config.update("jax_num_cpu_devices", count)
    join_by_launcher()
    return jax.devices()


def check(options, devices, rows, manager):
    """Raise SystemExit where a batch can't be dealt out, or drawn.

    Or where the newest checkpoint was trained with batches of another size.
    """
    shares = devices * options.parts
    if options.batch % shares:
        raise SystemExit(
            f"--batch {options.batch} doesn't divide among {devices} devices "
            f"with --parts {options.parts} each: take a multiple of {shares}"
        )
    if options.batch > rows:
        raise SystemExit(
            f"--batch {options.batch} is too large: there are {rows} rows to "
            "train with"
        )
    if (done := manager.latest_step()) is None:
        return
    known = manager.metadata(done).custom_metadata or {}
    if known.get("batch", options.batch) != options.batch:
        raise SystemExit(
            f"step {done} in {manager.directory} was saved with --batch "
            f"{known['batch']}: the number of a step would select other rows "
            f"with --batch {options.batch}. Keep the size, or take another "
            "--folder"
        )


def on_devices(batch, mesh):
    """Return a batch with its rows sharded over a mesh.

    Each process brings the rows of its own devices.
    """
    count, own = jax.process_count(), jax.process_index()
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    return tuple(
        jax.make_array_from_process_local_data(
            by_rows, np.split(part, count)[own]
        )
        for part in batch
    )


def with_norm(gradient):
    """Return the gradient; its value becomes (mean, norm of the gradients)."""

    def both(params, stats, batch):
        (value, stats), grads = gradient(params, stats, batch)
        return ((value, optax.tree.norm(grads)), stats), grads

    return both


def first_state(key, optimizer):
    """Return all that a step reads and changes: a dict with keys `STATE`."""
    _, params, stats = split_nnx(network(nnx.Rngs(key)))
    state = params, stats, optimizer.init(params)
    return dict(zip(STATE, state, strict=True))


def state_on(mesh, optimizer):
    """Return shapes, dtypes and shardings of the state, as a pytree.

    Parameters and optimizer state are sharded, statistics replicated.
    """
    make = functools.partial(first_state, optimizer=optimizer)
    shapes = jax.eval_shape(make, jax.random.key(0))
    layout = sharded_over(mesh, shapes)
    replicated = jax.NamedSharding(mesh, jax.P())
    layout["stats"] = jax.tree.map(lambda _: replicated, shapes["stats"])
    return jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(
            x.shape, x.dtype, sharding=sharding
        ),
        shapes,
        layout,
    )


def restored(manager, mesh, optimizer):
    """Return (steps done, state): the newest that was saved, or the first.

    SystemExit where what was saved belongs to another model or optimizer.
    """
    like, done = state_on(mesh, optimizer), manager.latest_step()
    if done is None:
        layout = jax.tree.map(lambda x: x.sharding, like)
        make = functools.partial(first_state, optimizer=optimizer)
        return 0, jax.jit(make, out_shardings=layout)(jax.random.key(0))
    try:
        args = ocp.args.StandardRestore(like)
        return done, manager.restore(done, args=args)
    except (KeyError, TypeError, ValueError) as error:
        raise SystemExit(
            f"step {done} in {manager.directory} was saved by another model "
            "or optimizer: take another --folder, or change the program "
            f"back. Orbax says: {str(error).split('. ')[0]}"
        ) from None


def evaluated(loss, state, rows, size, mesh):
    """Return the mean loss of all rows: a sum, divided by a count."""
    sums = np.zeros(2)
    for batch in in_order(rows, size):
        batch = on_devices(batch, mesh)
        total, (count, _) = loss(state["params"], state["stats"], batch)
        sums += float(total), float(count)
    return sums[0] / sums[1]


def say(text):
    """Print a line at once, in one of all processes."""
    if jax.process_index() == 0:
        print(text, flush=True)


def functions_of(options, optimizer):
    """Return the step, and the loss without dropout, both compiled."""
    apply, *_ = split_nnx(nnx.eval_shape(lambda: network(nnx.Rngs(0))))
    apply = in_bfloat16(apply) if options.bfloat16 else apply
    loss = gathered(cross_entropy(apply))
    gradient = (
        accumulated(loss, options.parts)
        if options.parts > 1
        else gradient_of(loss)
    )
    testing = cross_entropy(functools.partial(apply, train=False))
    step = make_step(with_norm(gradient), optimizer)
    return step, jax.jit(gathered(testing))


def stretches(first, last, every):
    """Return (begin, end) of stretches of steps, with a line after each.

    An end is a multiple of `every`, or the last step.
    """
    if first >= last:
        say("nothing is left to do: --steps counts those of the whole run")
        return []
    ends = range(first - first % every + every, last, every)
    return itertools.pairwise([first, *ends, last])


def take_steps(step, state, batches):
    """Take a step for each batch.

    Returns the state, and losses and norms of gradients, float32 (steps, 2).
    On a CPU it waits for each step, which virtual devices need.
    """
    values = []
    for batch in batches:
        *new, value = step(**state, batch=batch)
        state = dict(zip(STATE, new, strict=True))
        values.append(value)
        if jax.default_backend() == "cpu":
            jax.block_until_ready(value)
    return state, np.array(values, np.float32)


def report(number, values, of_test, rate):
    """Print the line of a step: its (loss, norm), the test loss, labels/s."""
    loss, norm = values
    say(
        f"step {number}: loss {loss:.6f}, test {of_test:.6f}, "
        f"gradient {norm:.3f}, {rate:.0f} {UNIT}/s"
    )


def train(options, mesh, manager, until):
    """Train from the newest checkpoint on; return the losses, float32.

    Each is the loss before its step.
    """
    training, test = load(options)
    check(options, mesh.size, len(training[0]), manager)
    optimizer, losses = make_optimizer(options.steps), []
    step, testing = functions_of(options, optimizer)
    first, state = restored(manager, mesh, optimizer)
    say(f"devices: {mesh.size}, steps done: {first}, {manager.directory}")
    size = options.batch * training[1][0].size
    for begin, end in stretches(first, until, options.every):
        start, numbers = time.perf_counter(), range(begin, end)
        drawn = (batch_of(training, n, options.batch) for n in numbers)
        batches = (on_devices(batch, mesh) for batch in drawn)
        state, values = take_steps(step, state, batches)
        rate = len(values) * size / (time.perf_counter() - start)
        of_test = evaluated(testing, state, test, options.batch, mesh)
        report(end, values[-1], of_test, rate)
        known = {"batch": options.batch}
        args = ocp.args.StandardSave(state)
        manager.save(end, args=args, custom_metadata=known)
        losses.extend(values[:, 0])
    return np.array(losses, np.float32)


def run(options, devices, until=None):
    """Train on some devices; return the losses of the steps that it takes.

    It goes on from what the folder has, and ends with the step `until`, or
    that of the options.
    """
    axes = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(devices, ("data",), axis_types=axes)
    keep = ocp.CheckpointManagerOptions(max_to_keep=2)
    folder = options.folder.absolute()
    with (
        jax.set_mesh(mesh),
        ocp.CheckpointManager(folder, options=keep) as manager,
    ):
        return train(options, mesh, manager, until or options.steps)


@contextlib.contextmanager
def held(folder):
    """Keep other runs out of a folder; SystemExit where one has it.

    The lock of a database ends with its process, in whatever way that ends.
    Of several processes of one run, the first holds it.
    """
    if jax.process_index():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = sqlite3.connect(folder / "lock", timeout=0)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        raise SystemExit(
            f"another run trains in {folder}: wait for it, or take another "
            "--folder"
        ) from None
    with contextlib.closing(lock):
        yield


def stop(number, frame):
    """End the process at Ctrl-C with one line; what was saved remains."""
    os.write(1, b"stopped: the same command goes on from what is saved\n")
    os._exit(130)


def main(words=None):
    """Train as a command line says."""
    signal.signal(signal.SIGINT, stop)
    options = parsed(words)
    devices = devices_of(options.devices)
    with held(options.folder):
        run(options, devices)


if __name__ == "__main__":
    main()
