"""Parameters and the state of the optimizer sharded over devices."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from snippets.devices.arrays import draw
from snippets.devices.resharding import replicate
from snippets.jaxprs.reading import inner_jaxprs
from snippets.models.steps import NnxMlp, gradient_of, split_nnx
from snippets.training.data_parallel import collectives

COLLECTIVES = "psum", "all_gather", "reduce_scatter"


def bytes_on_each_device(tree):
    """Return {device number: bytes it holds of a pytree}."""
    held = {}
    for x in jax.tree.leaves(tree):
        for shard in x.addressable_shards:
            number = shard.device.id
            held[number] = held.get(number, 0) + shard.data.nbytes
    return held


def shard_one_axis(x, devices):
    """Return a spec that shards the first axis `devices` divides, if any."""
    for axis, length in enumerate(x.shape):
        if length % devices == 0:
            return jax.P(*[None] * axis, "data")
    return jax.P()


def sharded_over(mesh, tree):
    """Return for each array of a pytree how its first such axis is sharded.

    It is sharded over the axis "data" of the mesh, replicated over others.
    """
    devices = mesh.shape["data"]
    return jax.tree.map(
        lambda x: jax.NamedSharding(mesh, shard_one_axis(x, devices)), tree
    )


def in_shards(make, layout):
    """Return `make`, compiled, of whose results each device makes its shards.

    `layout` is a pytree of their shardings. Call it, and what it returns,
    under the same mesh, or under none: on explicit axes each device would
    draw replicated random numbers, and then keep its shards of them.
    """
    types = jax.sharding.get_abstract_mesh().axis_types
    if jax.sharding.AxisType.Explicit in types:
        make = jax.sharding.auto_axes(make, out_sharding=layout)
    return jax.jit(make, out_shardings=layout)


def first_state(key):
    """Return the parameters of the network and the state of its optimizer."""
    _, params, _ = split_nnx(NnxMlp(rngs=nnx.Rngs(key)))
    return params, optax.adam(0.001).init(params)


def gathered(function):
    """Return a loss or an `apply` of sharded parameters.

    They are its first argument, and replicated before they are used.
    """

    def of_gathered(params, *args, **kwargs):
        return function(replicate(params), *args, **kwargs)

    return of_gathered


def frozen_gathered(apply):
    """Return an `apply` of sharded statistics that don't change.

    The frozen weights of LoRA are such. They are replicated before they are
    used, and returned sharded as they came.
    """

    def of_gathered(params, frozen, x, train=True):
        y, _ = apply(params, replicate(frozen), x, train)
        return y, frozen

    return of_gathered


def resharded_bytes(jaxpr):
    """Return the bytes of all arrays that a traced function reshards.

    Inner jaxprs are included. On explicit axes alone: on automatic axes a
    constraint takes the place of the reshard.
    """
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "reshard":
            avals = [value.aval for value in equation.outvars]
            total += sum(aval.size * aval.dtype.itemsize for aval in avals)
        total += sum(map(resharded_bytes, inner_jaxprs(equation)))
    return total


def automatic(mesh):
    """Return a mesh of the same devices, whose axes are automatic."""
    auto = (jax.sharding.AxisType.Auto,) * len(mesh.axis_names)
    return jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=auto)


def with_layout_of(tree, other):
    """Return a pytree, laid out as another one of the same structure.

    On automatic axes the compiler still chooses.
    """
    return jax.tree.map(
        lambda x, y: jax.reshard(x, jax.typeof(y).sharding), tree, other
    )


def on_replicas(optimizer):
    """Return an optimizer that gathers arrays, and updates on each device.

    Updates and state are laid out like the gradients and the state before.
    """

    def update(grads, opt_state, params=None):
        given = grads, opt_state
        replicas = replicate((*given, params))
        new = jax.shard_map(
            optimizer.update, in_specs=jax.P(), out_specs=jax.P()
        )(*replicas)
        return with_layout_of(new, given)

    return optax.GradientTransformation(optimizer.init, update)


def compiler_chooses(optimizer):
    """Return an optimizer whose communication the compiler chooses."""

    def update(grads, opt_state, params=None):
        specs = jax.tree.map(
            lambda x: jax.typeof(x).sharding.spec, (grads, opt_state)
        )
        chosen = jax.sharding.auto_axes(optimizer.update, out_sharding=specs)
        return chosen(grads, opt_state, params)

    return optax.GradientTransformation(optimizer.init, update)


def draw_kernel(params, layer):
    """Draw which device holds which shard of the kernel of a layer."""
    return draw(params["layers"][layer]["kernel"][...])


def communication(step, *args):
    """Return lines that name the collectives of a compiled step."""
    found = collectives(step, *args).items()
    return "\n".join(
        f"{kind}: {counts['operations']}, with {counts['elements']} elements"
        for kind, counts in found
    )


class Memory(NamedTuple):
    """Bytes on one device: of arguments, results, and what is in between.

    Results that take the place of donated arguments are not counted.
    """

    arguments: int
    results: int
    temporaries: int


def memory(step, *args):
    """Return the `Memory` that a compiled step needs on one device."""
    stats = step.lower(*args).compile().memory_analysis()
    return Memory(
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes - stats.alias_size_in_bytes,
        stats.temp_size_in_bytes,
    )


def gather(params, specs):
    """Return all of the parameters, gathered from the shards."""

    def gather_one(shard, spec):
        if "data" not in spec:
            return shard
        axis = list(spec).index("data")
        return jax.lax.all_gather(shard, "data", axis=axis, tiled=True)

    return jax.tree.map(gather_one, params, specs)


def is_key(x):
    """Say whether an array consists of typed keys."""
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def folded(stats, number):
    """Return statistics; an integer is folded into each of their keys."""
    fold = jax.vmap(jax.random.fold_in, in_axes=(0, None))
    return jax.tree.map(
        lambda x: fold(x.ravel(), number).reshape(x.shape) if is_key(x) else x,
        stats,
    )


def with_next_keys(new, stats, axes):
    """Return new statistics, with keys for the next step of all devices."""
    later = folded(stats, jax.lax.axis_size(axes))
    return jax.tree.map(lambda x, y: y if is_key(x) else x, new, later)


def check_specs(specs):
    """Raise ValueError where a spec shards over another axis than "data"."""
    for spec in jax.tree.leaves(specs):
        if set(spec) - {None, "data"}:
            raise ValueError(f'{spec}: shard parameters over "data" alone')


def gradient_by_hand(loss, specs, axes=("data",)):
    """Return a gradient that gathers parameters and scatters gradients.

    `specs` shards each parameter over "data" or not, the batch is sharded by
    rows over all `axes`. Keys in the statistics differ between devices and
    steps. ValueError for other specs, and statistics of a device's rows.
    """
    check_specs(specs)

    def of_all(params, stats, batch):
        for axis in set(axes) - {"data"}:
            params = jax.lax.pcast(params, axis, to="varying")
        own = folded(stats, jax.lax.axis_index(axes))
        total, (count, new) = loss(gather(params, specs), own, batch)
        total, count = jax.lax.psum((total, count), axes)
        return total, (count, with_next_keys(new, stats, axes))

    def gradient(params, stats, batch):
        return jax.shard_map(
            gradient_of(of_all),
            in_specs=(specs, jax.P(), jax.P(axes)),
            out_specs=((jax.P(), jax.P()), specs),
        )(params, stats, batch)

    return gradient


def sent_over(jaxpr):
    """Return {axes: elements on a device} that collectives bring.

    They are those that a traced function names, inner jaxprs included.
    """
    found = {}
    for equation in jaxpr.eqns:
        axes = equation.params.get("axes", equation.params.get("axis_name"))
        if equation.primitive.name.startswith(COLLECTIVES):
            axes = (axes,) if isinstance(axes, str) else axes
            sizes = [value.aval.size for value in equation.outvars]
            found[axes] = found.get(axes, 0) + sum(sizes)
        for inner in inner_jaxprs(equation):
            for axes, elements in sent_over(inner).items():
                found[axes] = found.get(axes, 0) + elements
    return found
