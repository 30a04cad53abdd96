"""Layouts that an NNX module names itself."""

import functools

import jax
import optax
from flax import nnx
from jax._src.core import ShardingTypeError

from snippets.models.steps import (
    cross_entropy,
    gradient_of,
    make_step,
    split_nnx,
    train,
)
from snippets.training.sharded_parameters import (
    bytes_on_each_device,
    in_shards,
)

EXPECTED_ERRORS = {
    "without_a_mesh": (
        ValueError,
        "An auto mesh context or metadata is required",
    ),
    "without_a_rule": (ValueError, "is not found in mesh"),
    "without_out_sharding": (
        ShardingTypeError,
        "Contracting dimensions are sharded",
    ),
}


def rows_of(x):
    """Return a spec for results that are sharded as the rows of x are.

    The last axis is not sharded. It is None where no axis of the mesh is
    explicit: there the compiler chooses, and layers take no spec.
    """
    if not jax.sharding.get_abstract_mesh().explicit_axes:
        return None
    return jax.P(*jax.typeof(x).sharding.spec[:-1], None)


def annotated_linear(inputs, outputs, rngs):
    """Return `nnx.Linear` between axes of these (name, size)."""
    (of_inputs, columns), (of_outputs, width) = inputs, outputs
    return nnx.Linear(
        columns,
        width,
        kernel_init=nnx.with_partitioning(
            nnx.initializers.lecun_normal(), (of_inputs, of_outputs)
        ),
        bias_init=nnx.with_partitioning(
            nnx.initializers.zeros_init(), (of_outputs,)
        ),
        rngs=rngs,
    )


class AnnotatedMlp(nnx.Module):
    """An MLP on (rows, 64) with 10 classes, whose parameters name axes.

    A mesh has to be set when it is made.
    """

    def __init__(self, width=256, *, rngs):
        pixels, hidden = ("pixels", 64), ("hidden", width)
        self.up = annotated_linear(pixels, hidden, rngs)
        self.down = annotated_linear(hidden, ("classes", 10), rngs)

    def __call__(self, x):
        """Return logits (rows, 10), sharded as the rows of x are."""
        hidden = nnx.tanh(self.up(x))
        return self.down(hidden, out_sharding=rows_of(x))


LAYOUTS = {
    "replicated": {"pixels": None, "hidden": None, "classes": None},
    "tensor parallel": {"pixels": None, "hidden": "model", "classes": None},
    "both": {"pixels": "data", "hidden": "model", "classes": None},
}


def first_state(key, optimizer):
    """Return parameters, statistics and optimizer state of `AnnotatedMlp`."""
    _, params, stats = split_nnx(AnnotatedMlp(rngs=nnx.Rngs(key)))
    return params, stats, optimizer.init(params)


def train_annotated(mesh, rules, data, rate=1e-3):
    """Train on a mesh with rules; return bytes on a device, and losses.

    `rules` is {name: axis of the mesh or None}; the axis "data" shards rows.
    """
    optimizer = optax.adam(rate)
    with jax.set_mesh(mesh), nnx.logical_axis_rules(rules.items()):
        make = functools.partial(first_state, optimizer=optimizer)
        key = jax.random.key(0)
        shapes = jax.eval_shape(make, key)
        layout = nnx.get_named_sharding(shapes, mesh)
        state = in_shards(make, layout)(key)
        held = max(bytes_on_each_device(state).values())
        apply, *_ = split_nnx(AnnotatedMlp(rngs=nnx.Rngs(0)))
        gradient = gradient_of(cross_entropy(apply))
        step = make_step(gradient, optimizer, (*layout, None))
        rows = [jax.device_put(batch, jax.P("data")) for batch in data]
        return held, train(step, *state, rows)[-1]


def without_a_mesh():
    """Make a module before a mesh is set; raises ValueError."""
    return AnnotatedMlp(rngs=nnx.Rngs(0))


def without_a_rule(mesh):
    """Make a module whose names are no axes of the mesh; raises ValueError."""
    with jax.set_mesh(mesh):
        return AnnotatedMlp(rngs=nnx.Rngs(0))


def without_out_sharding(model, x):
    """Call its layers one by one; raises ShardingTypeError."""
    return model.down(nnx.tanh(model.up(x)))
