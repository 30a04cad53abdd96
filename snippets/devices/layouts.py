"""What a jit exchanges between devices, for all layouts of some operations."""

import functools
import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.core import ShardingTypeError

from snippets.devices.resharding import COLLECTIVES

SIDE = 1024

RESHARD = "jax.reshard(a, …)"

OPERATIONS = {
    "a + b": jnp.add,
    "a @ b": jnp.matmul,
    "a.T": jnp.transpose,
    "a.sum(axis=0)": functools.partial(jnp.sum, axis=0),
    "a.sum(axis=1)": functools.partial(jnp.sum, axis=1),
    RESHARD: jax.reshard,
}

SPECS = {
    (8,): [jax.P(), jax.P("x"), jax.P(None, "x")],
    (4, 2): [
        jax.P(),
        jax.P("x"),
        jax.P("y"),
        jax.P(("x", "y")),
        jax.P(None, "x"),
        jax.P(None, "y"),
        jax.P(None, ("x", "y")),
        jax.P("x", "y"),
        jax.P("y", "x"),
    ],
}

UNTUNED = {"xla_backend_optimization_level": 0}

RECEIVED = {
    "all-gather": lambda size, devices: size - size // devices,
    "all-reduce": lambda size, devices: 2 * (size - size // devices),
    "reduce-scatter": lambda size, devices: size * (devices - 1),
    "all-to-all": lambda size, devices: size - size // devices,
    "collective-permute": lambda size, devices: size,
}


def mesh_of(sizes, kind):
    """Return a mesh of CPUs with axes "x" and "y", "Explicit" or "Auto"."""
    axes = ("x", "y")[: len(sizes)]
    kinds = (jax.sharding.AxisType[kind],) * len(sizes)
    return jax.make_mesh(
        sizes, axes, axis_types=kinds, devices=jax.devices("cpu")
    )


def laid_out(mesh, spec, shape=(SIDE, SIDE)):
    """Return shape, dtype and layout of an array of float32, without numbers."""
    sharding = jax.NamedSharding(mesh, spec)
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)


def numbers(text):
    """Return the whole numbers in a text."""
    return [int(number) for number in re.findall(r"\d+", text or "")]


def reordered(sizes, order):
    """Return 0, 1, … as an array of these sizes, its axes then in another order."""
    ids = np.arange(math.prod(sizes)).reshape(sizes)
    return ids.transpose(order) if order else ids


def groups_along(mesh, ids, order, axes):
    """Return groups (n, devices) along axes of a mesh, or along parts of axes.

    All but `order` are as HLO has them: 'x'=4,'y'=2 and 'x':(2)2,'y'.
    """
    sides = []
    for axis, length in re.findall(r"'(\w+)'=(\d+)", mesh):
        part = re.search(rf"'{axis}'(?::\((\d+)\)(\d+))?", axes)
        before, within = (1, int(length)) if part else (int(length), 1)
        if part and part[1]:
            before, within = map(int, part.groups())
        sides += [before, within, int(length) // (before * within)]
    outer = [n for n in range(len(sides)) if n % 3 != 1]
    devices = reordered(ids or [math.prod(sides)], order).reshape(sides)
    moved = devices.transpose([*outer, *range(1, len(sides), 3)])
    return moved.reshape(-1, math.prod(sides[1::3]))


def groups(line):
    """Return which devices an instruction of HLO lets exchange, (groups, devices).

    For a collective-permute these are pairs of source and destination.
    """
    if listed := re.search(r"(?:groups|pairs)=\{(\{[\d,{}]*\})\}", line):
        return np.array([numbers(group) for group in listed[1].split("},{")])
    ids = r"\[([\d,]+)\](?:<=\[([\d,]+)\])?(?:T\(([\d,]+)\))?"
    if counted := re.search(rf"groups={ids}", line):
        shape, sizes, order = map(numbers, counted.groups())
        return reordered(sizes, order).reshape(shape)
    along = rf"groups=mesh\[(.*?)\](?:, device_ids=\({ids}\))? \{{(.*?)\}}"
    mesh, sizes, _, order, axes = re.search(along, line).groups()
    return groups_along(mesh, numbers(sizes), numbers(order), axes)


def exchanges(program, sizes):
    """Return (collective, axes, devices, bytes) for each exchange of a program.

    axes: those of a mesh of these sizes along which it goes, "x", "y" or "xy".
    devices: how many take part together, 2 for pairs.
    bytes: what each of them has to receive at least.
    """
    found = []
    collective = rf"= (\S+|\(.*?\)) ({COLLECTIVES})(?:-start)?\((.*)"
    for results, kind, rest in re.findall(collective, program):
        shapes = re.findall(r"f32\[([\d,]*)\]", results)
        size = sum(4 * math.prod(numbers(shape)) for shape in shapes)
        together = groups(rest)
        places = np.stack(np.unravel_index(together, sizes))
        differs = (places != places[..., :1]).any(axis=(1, 2))
        axes = "".join(itertools.compress("xy", differs))
        devices = together.shape[1]
        found.append((kind, axes, devices, RECEIVED[kind](size, devices)))
    return found


def compiled(function, operands):
    """Return a function's exchanges, and the shape and layout of its result."""
    lowered = jax.jit(function).lower(*operands)
    program = lowered.compile(compiler_options=UNTUNED)
    mesh = operands[0].sharding.mesh
    spec = program.output_shardings.spec
    result = laid_out(mesh, spec, lowered.out_info.shape)
    return exchanges(program.as_text(), mesh.axis_sizes), result


def answer(name, sizes, specs):
    """Return (exchanges, result, refusal) of an operation on operands laid out so.

    The mesh has explicit axes. Where JAX refuses these layouts, `refusal` says why,
    and the rest is what the compiler does with automatic axes. No program runs.
    """
    function, kept = OPERATIONS[name], specs
    mesh = mesh_of(sizes, "Explicit")
    if name == RESHARD:
        target = jax.NamedSharding(mesh, specs[1])
        function, kept = (
            functools.partial(function, out_shardings=target),
            specs[:1],
        )
    try:
        return *compiled(function, [laid_out(mesh, spec) for spec in kept]), ""
    except ShardingTypeError as refusal:
        auto = mesh_of(sizes, "Auto")
        chosen = compiled(function, [laid_out(auto, spec) for spec in kept])
        return *chosen, " ".join(str(refusal).split()).split(". ")[0]


def choices(sizes):
    """Return (operation, layouts of its operands) for all that the table answers."""
    one_each = [
        s for s in SPECS[sizes] if not any(isinstance(e, tuple) for e in s)
    ]
    found = []
    for name in OPERATIONS:
        if name == RESHARD:
            layouts = itertools.product(SPECS[sizes], repeat=2)
        elif name.endswith("b"):
            layouts = itertools.product(one_each, repeat=2)
        else:
            layouts = [(spec,) for spec in SPECS[sizes]]
        found += [(name, each) for each in layouts]
    return found


def row(name, sizes, specs):
    """Return an answer as a line of text."""
    found, result, refusal = answer(name, sizes, specs)
    mesh = mesh_of(sizes, "Explicit")
    kept = [laid_out(mesh, spec) for spec in specs]
    kept.append(laid_out(mesh, result.sharding.spec, result.shape))
    *operands, result = [
        str(jax.typeof(each)).removeprefix("float32") for each in kept
    ]
    sent = (
        "; ".join("{} {} {} {}".format(*each) for each in found) or "nothing"
    )
    shape = "x".join(map(str, sizes))
    verdict = refusal or "accepted"
    return " | ".join([shape, name, " ".join(operands), sent, result, verdict])
