"""The state of a run, and the functions that change it, or read it."""

import functools
import math

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx

from snippets.jaxprs.reading import inner_jaxprs
from snippets.models.checkpoints import best_and_newest
from snippets.models.steps import (
    accumulated,
    cross_entropy,
    gradient_of,
    in_bfloat16,
    make_step,
    split_nnx,
)
from snippets.programs.start.mlp import network
from snippets.programs.start.rows import in_order, on_devices
from snippets.training.sharded_parameters import gathered, sharded_over

STATE = "params", "stats", "opt_state"


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


def mesh_over(devices):
    """Return a mesh of devices, with one explicit axis, "data"."""
    axes = (jax.sharding.AxisType.Explicit,)
    return jax.sharding.Mesh(devices, ("data",), axis_types=axes)


def checkpoints_in(folder, **options):
    """Return the manager of a folder; it keeps the best and the newest two."""
    return ocp.CheckpointManager(
        folder.absolute(),
        options=ocp.CheckpointManagerOptions(**best_and_newest(2), **options),
        item_handlers=ocp.StandardCheckpointHandler(),
    )


def state_on(mesh, optimizer, sharding):
    """Return shapes, dtypes and shardings of the state, as a pytree.

    With "fsdp", parameters and optimizer state are sharded. With "data" they
    are replicated, as statistics always are.
    """
    make = functools.partial(first_state, optimizer=optimizer)
    shapes = jax.eval_shape(make, jax.random.key(0))
    layout = sharded_over(mesh, shapes)
    replicated = jax.NamedSharding(mesh, jax.P())
    for part in STATE if sharding == "data" else ["stats"]:
        layout[part] = jax.tree.map(lambda _: replicated, shapes[part])
    return jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(
            x.shape, x.dtype, sharding=sharding
        ),
        shapes,
        layout,
    )


def shapes_in(state):
    """Return {path: shape} of the arrays of a state; a key is its data."""
    shapes = {}
    for path, x in jax.tree.leaves_with_path(state):
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x = jax.eval_shape(jax.random.key_data, x)
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        shapes[name] = x.shape
    return shapes


def check_shapes(saved, wanted, where):
    """Raise SystemExit where a checkpoint has other arrays than a state."""
    for name in sorted(saved.keys() | wanted.keys()):
        if saved.get(name) != wanted.get(name):
            raise SystemExit(
                f"{where} was saved by another model or optimizer: its "
                f"{name} is {saved.get(name, 'missing')}, and this program's "
                f"{wanted.get(name, 'missing')}. Take another --folder, or "
                "change the program back"
            )


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


def take_steps(step, state, batches):
    """Take a step for each batch.

    Returns the state, and losses and norms of gradients, float32 (steps, 2).
    A batch is made while the step before it runs. On a CPU each step waits
    for the one before, which virtual devices need.
    """
    values = []
    for batch in batches:
        if jax.default_backend() == "cpu":
            jax.block_until_ready(values[-1:])
        *new, value = step(**state, batch=batch)
        state = dict(zip(STATE, new, strict=True))
        values.append(value)
    return state, np.array(values, np.float32)


def evaluated(loss, state, rows, size, mesh):
    """Return the mean loss of all rows: a sum, divided by a count."""
    sums = np.zeros(2)
    for batch in in_order(rows, size):
        batch = on_devices(batch, mesh)
        total, (count, _) = loss(state["params"], state["stats"], batch)
        sums += float(total), float(count)
    return sums[0] / sums[1]


def flops_of(jaxpr):
    """Return the FLOPs of the matmuls and convolutions in a jaxpr.

    The body of a `scan` counts as often as it runs.
    """
    total = 0
    for equation in jaxpr.eqns:
        kind, params = equation.primitive.name, equation.params
        times = params["length"] if kind == "scan" else 1
        total += times * sum(map(flops_of, inner_jaxprs(equation)))
        if kind == "dot_general":
            x, _ = equation.invars
            (axes, _), _ = params["dimension_numbers"]
            summed = math.prod(x.aval.shape[axis] for axis in axes)
            total += 2 * equation.outvars[0].aval.size * summed
        if kind == "conv_general_dilated":
            _, kernel = equation.invars
            outputs, *_ = params["dimension_numbers"].rhs_spec
            summed = kernel.aval.size // kernel.aval.shape[outputs]
            total += 2 * equation.outvars[0].aval.size * summed
    return total


def share_of_peak(loss, state, batch, peak):
    """Return the share of a peak, in TFLOP/s, of one step a second.

    The model needs the FLOPs of its loss forward, and twice those backward.
    Only matmuls and convolutions count, and nothing that is computed again.
    The share is 0 without a peak, which is then 0.
    """
    if not peak > 0:
        return 0.0
    traced = jax.make_jaxpr(loss)(state["params"], state["stats"], batch)
    return 3 * flops_of(traced) / (peak * 1e12)
