"""A training run that is saved, killed, resumed and moved to a mesh."""

import os
import pathlib
import signal
import subprocess
import sys

import cloudpickle
import grain
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx

from snippets.models.steps import (
    cross_entropy,
    gradient_of,
    make_step,
    split_nnx,
)

EXPECTED_ERRORS = {
    "restore_smaller": (ValueError, "Requested shape:"),
    "restore_without_stats": (
        ValueError,
        "User-provided restore item and on-disk value metadata",
    ),
    "restore_with_extra": (ValueError, "Structure mismatch: Target path"),
    "restore_everything": (
        ValueError,
        "Attempted to construct default restoration arguments for item",
    ),
    "restore_anyhow": (ValueError, "Topology mismatch detected."),
    "spec_of": (AttributeError, "object has no attribute 'spec'"),
}

CALL = """import pickle, sys

with open(sys.argv[1], "rb") as file:
    function, arguments = pickle.load(file)
function(*arguments)
"""


def example(number):
    """Return 16 normal values, and which of the first four is the largest."""
    values = np.random.default_rng(number).normal(size=16).astype(np.float32)
    return values, values[:4].argmax().astype(np.int32)


def example_batches():
    """Return an endless iterator of batches of 32, shuffled in each epoch."""
    data = grain.MapDataset.range(512).seed(0).shuffle().repeat()
    reading = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    return iter(data.map(example).batch(32).to_iter_dataset(reading))


def network(rngs):
    """Return a model with dropout: 16 values to four logits for each row."""
    return nnx.Sequential(
        nnx.Linear(16, 64, rngs=rngs),
        nnx.BatchNorm(64, rngs=rngs),
        nnx.tanh,
        nnx.Dropout(0.1, rngs=rngs),
        nnx.Linear(64, 4, rngs=rngs),
    )


def optimizer():
    """Return the optimizer of this page."""
    return optax.adamw(3e-3)


@jax.jit
def first_state(key):
    """Return all that a step reads and changes, and the count of steps."""
    _, params, stats = split_nnx(network(nnx.Rngs(key)))
    opt_state = optimizer().init(params)
    return {
        "params": params,
        "stats": stats,
        "opt_state": opt_state,
        "step": jnp.int32(0),
    }


def compiled_step():
    """Return the training step of the network."""
    apply, _, _ = split_nnx(network(nnx.Rngs(0)))
    return make_step(gradient_of(cross_entropy(apply)), optimizer())


def train(step, state, batches, steps):
    """Return the state after some steps, and the losses, float32 (steps,)."""
    losses = []
    for _ in range(steps):
        params, stats, opt_state, value = step(
            state["params"], state["stats"], state["opt_state"], next(batches)
        )
        state = {
            "params": params,
            "stats": stats,
            "opt_state": opt_state,
            "step": state["step"] + 1,
        }
        losses.append(value)
    return state, np.stack(losses)


def save(manager, state, batches):
    """Save a state and the position of its iterator, under its step."""
    parts = ocp.args.Composite(
        state=ocp.args.StandardSave(state),
        data=grain.checkpoint.CheckpointSave(batches),
    )
    manager.save(int(state["step"]), args=parts)


def restore(manager, like, batches):
    """Return the newest state, shaped like `like`; move the iterator there."""
    parts = ocp.args.Composite(
        state=ocp.args.StandardRestore(like),
        data=grain.checkpoint.CheckpointRestore(batches),
    )
    return manager.restore(manager.latest_step(), args=parts)["state"]


def train_and_die(folder, die_at):
    """Train and save every ten steps; kill this process during a save."""
    state, batches = first_state(jax.random.key(0)), example_batches()
    manager = ocp.CheckpointManager(pathlib.Path(folder).absolute())
    step = compiled_step()
    while True:
        state, _ = train(step, state, batches, steps=10)
        save(manager, state, batches)
        if state["step"] == die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def run_programs(folder, programs):
    """Run functions side by side, each in a process; return how they ended.

    A program is (devices, function, arguments): it has so many virtual
    devices, and ten minutes. `cloudpickle` writes the function to the folder,
    with those of a notebook that it calls. Returned are the exit status and
    what it wrote to standard error. RuntimeError where a program raises.
    """
    running = []
    try:
        for number, (devices, *call) in enumerate(programs):
            path = pathlib.Path(folder) / f"program_{number}.pickle"
            path.write_bytes(cloudpickle.dumps(call))
            variables = {
                "JAX_NUM_CPU_DEVICES": str(devices),
                "PYTHONPATH": os.pathsep.join(sys.path),
            }
            process = subprocess.Popen(
                [sys.executable, "-c", CALL, path],
                env=os.environ | variables,
                stderr=subprocess.PIPE,
                text=True,
            )
            running.append(process)
        texts = [process.communicate(timeout=600)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    for process, text in zip(running, texts, strict=True):
        if process.returncode > 0:
            raise RuntimeError(f"a program failed:\n{text}")
    return [
        (p.returncode, text) for p, text in zip(running, texts, strict=True)
    ]


def names_in(folder):
    """Return the names in a folder."""
    return sorted(path.name for path in pathlib.Path(folder).iterdir())


def same_bits(one, other):
    """Return whether two pytrees have the same structure and the same bits."""

    def bits(leaf):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        return np.asarray(leaf).tobytes()

    same = jax.tree.map(lambda a, b: bits(a) == bits(b), one, other)
    return all(jax.tree.leaves(same))


def save_on_sixteen(folder):
    """Save an array that is sharded over sixteen devices."""
    mesh = jax.make_mesh((16,), ("data",))
    kernel = jnp.arange(1024.0).reshape(16, 64)
    sharded = jax.device_put(kernel, jax.NamedSharding(mesh, jax.P("data")))
    with ocp.CheckpointManager(folder) as manager:
        manager.save(0, args=ocp.args.StandardSave({"kernel": sharded}))


def with_layout(like, mesh):
    """Return shapes and dtypes with shardings: axes of 64 along "model"."""

    def place(leaf):
        spec = jax.P(*("model" if size == 64 else None for size in leaf.shape))
        sharding = jax.NamedSharding(mesh, spec)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    return jax.tree.map(place, like)


def spec_of(state):
    """Return how the first kernel is sharded; fails on a single device."""
    return state["params"]["layers"][0]["kernel"].sharding.spec


def restore_state(manager, like):
    """Return the newest state in the form of `like`, without the data."""
    part = ocp.args.Composite(state=ocp.args.StandardRestore(like))
    return manager.restore(manager.latest_step(), args=part)["state"]


def restore_smaller(manager, like):
    """Ask for fewer logits than were saved, as after a change of the model."""

    def smaller(leaf):
        shape = tuple(3 if size == 4 else size for size in leaf.shape)
        return jax.ShapeDtypeStruct(shape, leaf.dtype)

    params = jax.tree.map(smaller, like["params"])
    return restore_state(manager, like | {"params": params})


def restore_without_stats(manager, like):
    """Ask for a state without the batch statistics that were saved."""
    rest = {name: part for name, part in like.items() if name != "stats"}
    return restore_state(manager, rest)


def restore_with_extra(manager, like):
    """Ask for an average of the weights that was never saved."""
    return restore_state(manager, like | {"average": like["params"]})


def restore_everything(manager):
    """Restore without a word about what was saved."""
    return manager.restore(manager.latest_step())


def restore_anyhow(folder):
    """Restore an array in the layout that it was saved in."""
    with ocp.CheckpointManager(folder) as manager:
        return manager.restore(0, args=ocp.args.StandardRestore())


def restore_somewhere(folder, sharding):
    """Restore an array in a layout of this machine."""
    kernel = jax.ShapeDtypeStruct((16, 64), jnp.float32, sharding=sharding)
    with ocp.CheckpointManager(folder) as manager:
        return manager.restore(
            0, args=ocp.args.StandardRestore({"kernel": kernel})
        )


def saved_layout(folder):
    """Return the shape of an array, and which device saved which rows.

    The array was sharded by rows. Of each axis, a device has (start, stop).
    """
    handler = ocp.StandardCheckpointHandler()
    with ocp.CheckpointManager(folder, item_handlers=handler) as manager:
        saved = manager.item_metadata(0)["kernel"]
    devices = saved.sharding.device_mesh.mesh
    rows, columns = saved.shape
    height = rows // len(devices)
    held = {
        f"device {device.id}": ((n * height, (n + 1) * height), (0, columns))
        for n, device in enumerate(devices)
    }
    return {"shape": saved.shape, "devices": held}


def steps_kept(folder, losses, **options):
    """Save a step for each loss; return those kept, the best, the latest."""
    options = ocp.CheckpointManagerOptions(**options)
    with ocp.CheckpointManager(folder, options=options) as manager:
        for step, loss in enumerate(losses):
            weights = ocp.args.StandardSave({"kernel": jnp.full(2, step)})
            manager.save(step, args=weights, metrics={"loss": loss})
        manager.wait_until_finished()
        return manager.all_steps(), manager.best_step(), manager.latest_step()


def loss_of(metrics):
    """Return the number by which checkpoints are compared."""
    return metrics["loss"]


def best_and_newest(newest):
    """Return options that keep the best checkpoint, and the newest few."""
    rules = ocp.checkpoint_managers
    best = rules.BestN(get_metric_fn=loss_of, reverse=True, n=1)
    return {
        "best_fn": loss_of,
        "best_mode": "min",
        "preservation_policy": rules.AnyPreservationPolicy(
            [best, rules.LatestN(newest)]
        ),
    }
