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
import orbax.checkpoint as ocp
from jax.experimental.multihost_utils import reached_preemption_sync_point

from snippets.processes.cluster import join_by_launcher
from snippets.programs.start.images import OPTIONS, UNIT, load
from snippets.programs.start.rows import batches_ahead, in_order
from snippets.programs.start.state import (
    check_shapes,
    checkpoints_in,
    evaluated,
    first_state,
    functions_of,
    mesh_over,
    shapes_in,
    share_of_peak,
    state_on,
    take_steps,
)
from snippets.project.gpt import make_optimizer
from snippets.training.sharded_parameters import in_shards

DEVICES = 8
TOLD = []


def positive(text):
    """Return a whole number from 1 on, for argparse; ValueError for others."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def parsed(words=None):
    """Return the options in the words of a command line."""
    parser = argparse.ArgumentParser(description="Train the model.")
    folder = pathlib.Path(sys.argv[0]).with_name("run")
    valued = {
        "--steps": (positive, 1000, "of the whole run, also when resumed"),
        "--batch": (positive, 64, "rows of a step, on all devices together"),
        "--parts": (positive, 1, "microbatches of the rows of a device"),
        "--every": (positive, 100, "steps from one line and save to the next"),
        "--devices": (positive, DEVICES, "of a CPU; of others, all are taken"),
        "--peak": (float, 0.0, "TFLOP/s of a device, for MFU; 0: no MFU"),
        "--folder": (pathlib.Path, folder, "of the checkpoints"),
    }
    for name, (kind, default, about) in valued.items():
        text = f"{about} ({default})"
        parser.add_argument(name, type=kind, default=default, help=text)
    text = "fsdp: of rows and parameters, data: of rows (fsdp)"
    parser.add_argument(
        "--sharding", choices=["fsdp", "data"], default="fsdp", help=text
    )
    flags = {
        "--bfloat16": "compute the model in it",
        "--best": "only print the test loss of the best checkpoint",
    }
    for name, about in flags.items():
        parser.add_argument(name, action="store_true", help=about)
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
    if not rows:
        raise SystemExit("there are no rows to train with: take more data")
    if options.batch > rows:
        raise SystemExit(
            f"--batch {options.batch} is too large: there are {rows} rows to "
            "train with"
        )
    if (done := manager.latest_step()) is None:
        return
    known = manager.metadata(done).custom_metadata or {}
    if options.best:
        return
    if known.get("batch", options.batch) != options.batch:
        raise SystemExit(
            f"step {done} in {manager.directory} was saved with --batch "
            f"{known['batch']}: the number of a step would select other rows "
            f"with --batch {options.batch}. Keep the size, or take another "
            "--folder"
        )


def restored(options, mesh, manager, optimizer):
    """Return (steps done, state): the newest that was saved, or the first.

    With --best it is that of the smallest test loss. SystemExit where there
    is none, and where what was saved has another model or optimizer.
    """
    like = state_on(mesh, optimizer, options.sharding)
    done = manager.best_step() if options.best else manager.latest_step()
    if done is None and options.best:
        raise SystemExit(f"nothing is saved in {manager.directory}: train it")
    if done is None:
        layout = jax.tree.map(lambda x: x.sharding, like)
        make = functools.partial(first_state, optimizer=optimizer)
        return 0, in_shards(make, layout)(jax.random.key(0))
    saved = shapes_in(manager.item_metadata(done))
    where = f"step {done} in {manager.directory}"
    check_shapes(saved, shapes_in(like), where)
    return done, manager.restore(done, args=ocp.args.StandardRestore(like))


def say(text):
    """Print a line at once, in one of all processes."""
    if jax.process_index() == 0:
        print(text, flush=True)


def stretches(first, last, every):
    """Return (begin, end) of stretches of steps, with a line after each.

    An end is a multiple of `every`, or the last step.
    """
    if first >= last:
        say("nothing is left to do: --steps counts those of the whole run")
        return []
    ends = range(first - first % every + every, last, every)
    return itertools.pairwise([first, *ends, last])


def until_told(batches, begin):
    """Yield batches of the steps after `begin`, until SIGTERM comes.

    Of several processes, all end after the same step.
    """
    for number, batch in enumerate(batches, begin + 1):
        yield batch
        if TOLD or reached_preemption_sync_point(number):
            TOLD.append(number)
            return


def report(number, values, of_test, rate, share):
    """Print the line of a step: loss and norm, test loss, labels/s, MFU."""
    loss, norm = values
    line = f"step {number}: loss {loss:.6f}, test {of_test:.6f}, "
    line += f"gradient {norm:.3f}, {rate:.0f} {UNIT}/s"
    say(f"{line}, MFU {share:.1%}" if share else line)


def save(manager, number, state, of_test, options):
    """Save the state after a step; a test loss of NaN is the worst."""
    manager.save(
        number,
        args=ocp.args.StandardSave(state),
        metrics={"loss": np.nan_to_num(of_test, nan=np.inf)},
        custom_metadata={"batch": options.batch},
    )


def stop_if_told(manager, number, state, options):
    """Save the state after a step, and raise SystemExit, if SIGTERM came.

    The scheduler may not wait for an evaluation, so there is none.
    """
    if TOLD:
        save(manager, number, state, np.nan, options)
        say(f"stopped after step {number}, which is saved")
        raise SystemExit(os.EX_TEMPFAIL)


def train(options, mesh, manager, until):
    """Train on from a checkpoint; return float32 losses before each step."""
    training, test = load(options)
    check(options, mesh.size, len(training[0]), manager)
    optimizer, size, losses = make_optimizer(options.steps), options.batch, []
    step, testing = functions_of(options, optimizer)
    first, state = restored(options, mesh, manager, optimizer)
    say(f"devices: {mesh.size}, steps done: {first}, {manager.directory}")
    if options.best:
        say(f"test {evaluated(testing, state, test, size, mesh):.6f}")
        return np.zeros(0, np.float32)
    batches = batches_ahead(training, range(first, until), size, mesh)
    one = next(in_order(training, size))
    share = share_of_peak(testing, state, one, options.peak * mesh.size)
    for begin, end in stretches(first, until, options.every):
        own = until_told(itertools.islice(batches, end - begin), begin)
        start = time.perf_counter()
        state, values = take_steps(step, state, own)
        rate = len(values) / (time.perf_counter() - start)
        losses.extend(values[:, 0])
        stop_if_told(manager, begin + len(values), state, options)
        of_test = evaluated(testing, state, test, size, mesh)
        report(end, values[-1], of_test, rate * one[1].size, rate * share)
        save(manager, end, state, of_test, options)
    return np.array(losses, np.float32)


def run(options, devices, until=None):
    """Train on some devices; return the losses of the steps that it takes.

    It goes on from what the folder has, and ends with the step `until`, or
    that of the options.
    """
    mesh = mesh_over(devices)
    with jax.set_mesh(mesh), checkpoints_in(options.folder) as manager:
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
    """Train as a command line says; at SIGTERM it saves, and ends."""
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, lambda number, frame: TOLD.append(number))
    options = parsed(words)
    devices = devices_of(options.devices)
    with held(options.folder):
        run(options, devices)


if __name__ == "__main__":
    main()
