"""What some operations send between devices, for many layouts."""

import functools
import html
import itertools
import json
import math
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from IPython.display import HTML

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

REFUSED = [
    ((4, 4), jax.P(), (8, 8)),
    ((4, 2), jax.P("x", "x"), (8, 8)),
    ((4, 2), jax.P("x"), (6, 8)),
]

UNTUNED = {"xla_backend_optimization_level": 0}

RECEIVED = {
    "all-gather": lambda size, devices: size - size // devices,
    "all-reduce": lambda size, devices: 2 * (size - size // devices),
    "reduce-scatter": lambda size, devices: size * (devices - 1),
    "all-to-all": lambda size, devices: size - size // devices,
    "collective-permute": lambda size, devices: size,
}


def refusal(sizes, spec, shape):
    """Return why JAX refuses a mesh, a spec or a shape, or nothing."""
    try:
        mesh = jax.make_mesh(sizes, ("x", "y"), devices=jax.devices("cpu"))
        jax.device_put(np.zeros(shape), jax.NamedSharding(mesh, spec))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def mesh_of(sizes, kind):
    """Return a mesh of CPUs with axes "x" and "y", "Explicit" or "Auto"."""
    axes = ("x", "y")[: len(sizes)]
    kinds = (jax.sharding.AxisType[kind],) * len(sizes)
    return jax.make_mesh(
        sizes, axes, axis_types=kinds, devices=jax.devices("cpu")
    )


def laid_out(mesh, spec, shape=(SIDE, SIDE)):
    """Return shape, dtype and layout of a float32 array without values."""
    sharding = jax.NamedSharding(mesh, spec)
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)


def numbers(text):
    """Return the integers in a text."""
    return [int(number) for number in re.findall(r"\d+", text or "")]


def reordered(sizes, order):
    """Return 0, 1, … in an array of these sizes, its axes then permuted."""
    ids = np.arange(math.prod(sizes)).reshape(sizes)
    return ids.transpose(order) if order else ids


def groups_along(mesh, ids, order, axes):
    """Return groups (n, devices) along axes of a mesh, or factors of axes.

    All but `order` are as HLO has them: 'x'=4,'y'=2 and 'x':(2)2,'y'.
    """
    sides = []
    for axis, length in re.findall(r"'(\w+)'=(\d+)", mesh):
        factor = re.search(rf"'{axis}'(?::\((\d+)\)(\d+))?", axes)
        before, within = (1, int(length)) if factor else (int(length), 1)
        if factor and factor[1]:
            before, within = map(int, factor.groups())
        sides += [before, within, int(length) // (before * within)]
    outer = [n for n in range(len(sides)) if n % 3 != 1]
    devices = reordered(ids or [math.prod(sides)], order).reshape(sides)
    moved = devices.transpose([*outer, *range(1, len(sides), 3)])
    return moved.reshape(-1, math.prod(sides[1::3]))


def groups(line):
    """Return which devices communicate in an instruction of HLO.

    They are (groups, devices); for a collective-permute, pairs of source and
    destination.
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


def communication(program, sizes):
    """Return (collective, axes, groups, bytes) for each of a program.

    axes: those of a mesh of these sizes along which it goes, "x", "y" or "xy".
    groups: the devices that take part together; pairs of source and
    destination for a collective-permute.
    bytes: what each device has to receive at least.
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
        size = RECEIVED[kind](size, together.shape[1])
        found.append((kind, axes, together.tolist(), size))
    return found


def compiled(function, operands):
    """Return a function's communication, and the layout of its result."""
    lowered = jax.jit(function).lower(*operands)
    program = lowered.compile(compiler_options=UNTUNED)
    mesh = operands[0].sharding.mesh
    spec = program.output_shardings.spec
    result = laid_out(mesh, spec, lowered.out_info.shape)
    return communication(program.as_text(), mesh.axis_sizes), result


def answer(name, sizes, specs):
    """Return (communication, result, refusal) of an operation on operands.

    The mesh has explicit axes. Where JAX refuses these layouts, `refusal` says
    why, and the rest is what the compiler does with automatic axes. No program
    runs.
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
    except Exception as refused:
        if type(refused).__name__ != "ShardingTypeError":
            raise
        auto = mesh_of(sizes, "Auto")
        chosen = compiled(function, [laid_out(auto, spec) for spec in kept])
        return *chosen, " ".join(str(refused).split()).split(". ")[0]


def choices(sizes):
    """Return (operation, layouts of its operands) for each row of a table."""
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


class Row(NamedTuple):
    """An answer in words; operands and result are types without dtype.

    `plain` is the same in numbers and names, for a script.
    """

    mesh: str
    operation: str
    a: str
    b: str
    sent: str
    result: str
    explicit: str
    plain: dict


def plain_array(array):
    """Return (shape, axes of the mesh along which each of its axes lies)."""
    spec = [*array.sharding.spec, *[None] * array.ndim][: array.ndim]
    axes = [[e] if isinstance(e, str) else list(e or ()) for e in spec]
    return array.shape, axes


def row(name, sizes, specs):
    """Return an answer in words."""
    found, result, refused = answer(name, sizes, specs)
    mesh = mesh_of(sizes, "Explicit")
    kept = [laid_out(mesh, spec) for spec in specs]
    kept.append(laid_out(mesh, result.sharding.spec, result.shape))
    plain = {
        "mesh": sizes,
        "arrays": [plain_array(each) for each in kept],
        "sent": found,
        "accepted": not refused,
    }
    *operands, result = [
        str(jax.typeof(each)).removeprefix("float32") for each in kept
    ]
    sent = "; ".join(
        f"{kind} along {axes}, {len(groups[0])} devices, {size} bytes each"
        for kind, axes, groups, size in found
    )
    a, b = [*operands, ""][:2]
    shape = " × ".join(map(str, sizes))
    sent, refused = sent or "nothing", refused or "accepted"
    return Row(shape, name, a, b, sent, result, refused, plain)


def described(name, sizes, specs):
    """Return an answer as lines of text."""
    each = row(name, sizes, specs)
    operands = " and ".join(filter(None, (each.a, each.b)))
    return f"""{name} of {operands}, mesh of {each.mesh}
    sent: {each.sent}
    result: {each.result}
    explicit axes: {each.explicit}"""


def table(rows):
    """Return rows as a table of HTML, folded, each with its plain data."""
    lines = []
    for *words, plain in rows:
        cells = "".join(f"<td>{html.escape(word)}</td>" for word in words)
        data = json.dumps(plain, separators=(",", ":"))
        lines.append(f"<tr data-plain='{data}'>{cells}</tr>")
    *names, _ = Row._fields
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(lines)
    summary = f"<summary>All {len(lines)} choices</summary>"
    return HTML(
        f"<details>{summary}<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></details>"
    )
