"""Lesson 14, choosing a layout: what answers are checked for."""

import math
import numbers
import re

import jax
import jax.numpy as jnp
import numpy as np

COLLECTIVE = re.compile(
    r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all"
    r"|collective-permute)\(.*"
)
BYTES = {"f64": 8, "s64": 8, "f32": 4, "s32": 4, "u32": 4, "bf16": 2, "f16": 2}
SENT = {
    "all-reduce": lambda count: 2 * (count - 1) / count,
    "all-gather": lambda count: (count - 1) / count,
    "reduce-scatter": lambda count: count - 1,
    "all-to-all": lambda count: (count - 1) / count,
    "collective-permute": lambda count: 1,
}


def automatic_mesh(**sizes):
    """Return a mesh of CPU devices, as in `automatic_mesh(data=2, model=4)`.

    Its axes are automatic.
    """
    devices = jax.devices("cpu")[: math.prod(sizes.values())]
    types = (jax.sharding.AxisType.Auto,) * len(sizes)
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), types, devices=devices
    )


def block_loss(arrays):
    """Return the mean square of what a block makes of x (rows, width)."""
    hidden = jnp.tanh(arrays["x"] @ arrays["up"])
    return jnp.mean((hidden @ arrays["down"]) ** 2)


def compiled_gradient(mesh, specs, rows, width=64, hidden=256):
    """Return the gradient of `block_loss`, compiled for float32 arrays.

    `specs` says how "x", "up" and "down" are laid out, and their gradients.
    No array is made.
    """
    shapes = {
        "x": (rows, width),
        "up": (width, hidden),
        "down": (hidden, width),
    }
    layout = {name: jax.NamedSharding(mesh, specs[name]) for name in shapes}
    arrays = {
        name: jax.ShapeDtypeStruct(shape, "float32", sharding=layout[name])
        for name, shape in shapes.items()
    }
    gradient = jax.jit(jax.grad(block_loss), out_shardings=layout)
    return gradient.lower(arrays).compile()


def group_size(operation):
    """Return how many devices take part in a collective, from its text."""
    groups = operation.partition("replica_groups=")[2]
    if groups.startswith("mesh["):
        lengths, named = re.match(
            r"mesh\[(.*?)\].*?\{(.*?)\}", groups
        ).groups()
        lengths = dict(re.findall(r"'(\w+)'=(\d+)", lengths))
        names = re.findall(r"'(\w+)'", named)
        return math.prod(int(lengths[name]) for name in names)
    if groups.startswith("["):
        return int(re.match(r"\[\d+,(\d+)\]", groups)[1])
    return len(re.match(r"\{\{([\d,]*)\}", groups)[1].split(","))


def sent_bytes(program):
    """Return {collective: bytes that a device sends} of a compiled program.

    At the least, for devices that are all alike; the body of a loop counts
    once. For programs that are compiled for CPUs.
    """
    sent = {}
    for found in COLLECTIVE.finditer(program.as_text()):
        result, kind = found.groups()
        count = 1 if kind == "collective-permute" else group_size(found[0])
        for dtype, shape in re.findall(r"(\w+)\[([\d,]*)\]", result):
            size = math.prod(map(int, re.findall(r"\d+", shape)))
            total = SENT[kind](count) * size * BYTES.get(dtype, 1)
            sent[kind] = sent.get(kind, 0) + total
    return sent


def whole_number(name, found):
    """Raise AssertionError unless an answer is a number; return it."""
    single = isinstance(found, numbers.Real | jax.Array) and found is not True
    assert single and jnp.shape(found) == (), (
        f"`{name}` should return a number, and returns {found!r}"
    )
    return float(found)


def all_reduced(grads, count):
    """Return a program that all-reduces float32 arrays over `count` devices.

    `grads` is a dict of arrays.
    """
    mesh = automatic_mesh(data=count)
    own, whole = (jax.NamedSharding(mesh, s) for s in (jax.P("data"), jax.P()))
    terms = {
        name: jax.ShapeDtypeStruct((count, *x.shape), x.dtype, sharding=own)
        for name, x in grads.items()
    }

    def total(terms):
        return jax.tree.map(lambda x: x.sum(axis=0), terms)

    return jax.jit(total, out_shardings=whole).lower(terms).compile()


def check_bytes_sent(bytes_sent):
    """Raise AssertionError unless it counts what a device sends."""
    grads = {"kernel": jnp.ones((64, 32)), "bias": jnp.ones(32)}
    grads["scale"] = jnp.ones(())
    for count in 8, 4, 2, 1:
        right = sum(sent_bytes(all_reduced(grads, count)).values())
        found = whole_number("bytes_sent", bytes_sent(grads, count))
        held = sum(x.nbytes for x in grads.values())
        assert abs(found - right) < 1, (
            f"for {held} bytes of gradients on {count} devices it is "
            f"{found:g}, and the compiled program sends {right:.0f}"
        )
    low = [jnp.ones((64, 32), "bfloat16"), (jnp.ones(8),)]
    found = whole_number("bytes_sent", bytes_sent(low, 4))
    assert abs(found - 6192) < 1, (
        f"for bfloat16[64,32] and float32[8] on 4 devices it is {found:g}, "
        "not 6192: the first takes 2 bytes for each element, the second 4"
    )


def on_a_device(params, layout):
    """Return the bytes that device 0 holds of arrays that are laid out so."""
    held = 0
    for x in jax.tree.leaves(jax.device_put(params, layout)):
        [shard] = [s for s in x.addressable_shards if s.device.id == 0]
        held += shard.data.nbytes
    return held


def check_bytes_held(bytes_held):
    """Raise AssertionError unless it counts what a device really holds."""
    params = {
        "up": np.ones((64, 256), np.float32),
        "down": np.ones((256, 64), jnp.bfloat16),
        "scale": np.ones((64, 1), np.float32),
    }
    columns, rows, both = (None, "model"), ("model",), (("data", "model"),)
    two_by_four = automatic_mesh(data=2, model=4)
    cases = (
        (two_by_four, {"up": (), "down": (), "scale": ()}),
        (two_by_four, {"up": columns, "down": rows, "scale": ()}),
        (two_by_four, {"up": ("data", "model"), "down": both, "scale": rows}),
        (
            automatic_mesh(data=4, model=2),
            {"up": both, "down": rows, "scale": ("data",)},
        ),
        (automatic_mesh(x=8), {"up": (None, "x"), "down": (), "scale": ()}),
    )
    for mesh, specs in cases:
        specs = {name: jax.P(*spec) for name, spec in specs.items()}
        layout = {name: jax.NamedSharding(mesh, specs[name]) for name in specs}
        right = 3 * on_a_device(params, layout)
        structs = jax.eval_shape(lambda params: params, params)
        found = bytes_held({"layers": [structs]}, {"layers": [specs]}, mesh)
        found = whole_number("bytes_held", found)
        said = ", ".join(f"{name} {spec}" for name, spec in specs.items())
        assert found != right / 3, (
            f"with {said} it is {found:g}, and those are the parameters; Adam "
            "has two averages of each"
        )
        assert found == right, (
            f"with {said} on a mesh {dict(mesh.shape)} it is {found:g}, and a "
            f"device really holds {right} bytes"
        )


def check_block_specs(block_specs):
    """Raise AssertionError unless the compiled gradient meets the bounds."""
    specs = block_specs()
    assert isinstance(specs, dict) and {*specs} == {"x", "up", "down"}, (
        f'it should return a dict with "x", "up" and "down", not {specs!r}'
    )
    for name, spec in specs.items():
        assert isinstance(spec, jax.P), (
            f'"{name}" gets {spec!r}, which is not a `jax.P`'
        )
    mesh = automatic_mesh(data=2, model=4)
    program = compiled_gradient(mesh, specs, rows=128)
    sent = sent_bytes(program)
    said = ", ".join(
        f"{kind} {count / 1024:g} KiB" for kind, count in sent.items()
    )
    held = program.memory_analysis().argument_size_in_bytes / 1024
    assert held <= 48, (
        f"a device holds {held:g} KiB of the arguments, more than 48; which "
        "of them is whole, or sharded along one axis of the mesh only?"
    )
    assert sum(sent.values()) <= 80 * 1024, (
        f"a device sends {sum(sent.values()) / 1024:g} KiB, more than 80: "
        f"{said}"
    )


def sent_on(split, rows, width, hidden):
    """Return the bytes that a device sends for the gradient of a block."""
    mesh = automatic_mesh(data=split[0], model=split[1])
    specs = {"x": jax.P("data"), "up": jax.P(None, "model")}
    specs["down"] = jax.P("model")
    program = compiled_gradient(mesh, specs, rows, width, hidden)
    return sum(sent_bytes(program).values())


BEST = {
    (128, 64, 256, 8): (2, 4),
    (2048, 64, 256, 8): (8, 1),
    (512, 64, 256, 8): (4, 2),
    (4, 64, 256, 8): (1, 8),
    (128, 64, 2048, 8): (1, 8),
    (384, 64, 1024, 8): (2, 4),
    (10, 64, 8, 8): (2, 4),
    (8, 64, 10, 8): (4, 2),
    (64, 16, 96, 6): (2, 3),
    (96, 16, 48, 6): (3, 2),
    (4, 16, 48, 4): (1, 4),
    (128, 256, 64, 8): (4, 2),
    (1088, 16, 256, 8): (8, 1),
    (192, 16, 256, 8): (2, 4),
}


def check_best_mesh(best_mesh):
    """Raise AssertionError unless no other mesh sends less."""
    for sizes, least in BEST.items():
        rows, width, hidden, devices = sizes
        found = best_mesh(*sizes)
        case = (
            f"for {rows} rows, width {width} and {hidden} hidden features on "
            f"{devices} devices it returns {found!r}"
        )
        assert isinstance(found, tuple | list) and len(found) == 2, (
            f"{case}, and should return two numbers, data and model"
        )
        data, model = found
        assert data * model == devices, (
            f"{case}, and data times model must be {devices}"
        )
        assert rows % data == 0, f"{case}, and {data} must divide the rows"
        assert hidden % model == 0, (
            f"{case}, and {model} must divide the hidden features"
        )
        if (data, model) != least:
            sent = sent_on((data, model), *sizes[:3])
            fewest = sent_on(least, *sizes[:3])
            assert sent == fewest, (
                f"{case}: there the compiled gradient sends {sent:.0f} bytes, "
                f"on another mesh {fewest:.0f}"
            )
