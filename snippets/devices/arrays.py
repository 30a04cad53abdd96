"""Arrays over several devices: meshes, layouts, and who holds what."""

import jax
import jax.numpy as jnp
import numpy as np
from IPython.display import HTML
from jax import P, lax, reshard
from jax._src.core import ShardingTypeError
from jax.sharding import auto_axes, explicit_axes

EXPECTED_ERRORS = {
    "matmul": (
        ShardingTypeError,
        "ambiguous how the output should be sharded",
    ),
    "add": (ShardingTypeError, "incompatible shardings for broadcasting"),
    "rows_at": (ShardingTypeError, "PartitionSpec for the gather indexing"),
    "count": (ShardingTypeError, "PartitionSpec for the scatter update"),
}

COLOURS = (
    "#2f6fb3",
    "#b0522a",
    "#2d7d46",
    "#8a57b0",
    "#b5476a",
    "#0d7c86",
    "#7d6b1a",
    "#6a6f78",
)


def place(x, mesh, *axes):
    """Lay x out over a mesh, its k-th axis along the k-th name in `axes`."""
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P(*axes)))


def blocks(array):
    """Return {block: its devices}; a block is (start, stop) for each axis."""
    held = {}
    layout = array.sharding.devices_indices_map(array.shape)
    for device, index in layout.items():
        sides = zip(index, array.shape, strict=True)
        block = tuple(side.indices(length)[:2] for side, length in sides)
        held.setdefault(block, []).append(device.id)
    return held


def held_by_each(**arrays):
    """Return each array's shape, and each device's (start, stop) per axis."""
    found = {}
    for name, array in arrays.items():
        devices = {}
        for device, index in array.sharding.devices_indices_map(
            array.shape
        ).items():
            sides = zip(index, array.shape, strict=True)
            block = tuple(side.indices(length)[:2] for side, length in sides)
            devices[f"device {device.id}"] = block
        found[name] = {"shape": array.shape, "devices": devices}
    return found


def label(x, y, text, anchor="middle", fill="currentColor"):
    """Return a text of SVG, by default in the colour of the text around."""
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place} fill="{fill}">{text}</text>'


def box(x, y, width, height, colour, text):
    """Return a filled rectangle of SVG with a text in its middle."""
    size = f'width="{width - 2}" height="{height - 2}"'
    rect = f'<rect x="{x + 1}" y="{y + 1}" {size} rx="3" fill="{colour}"/>'
    return rect + label(x + width / 2, y + height / 2 + 5, text, fill="white")


def picture(width, height, shapes, meaning):
    """Return a picture of SVG, sizes in pixels; `meaning` says it in words."""
    size = f'width="{width}" viewBox="0 0 {width} {height:g}"'
    svg = f'<svg {size} font-size="14" role="img" aria-label="{meaning}">'
    return HTML(svg + "".join(shapes) + "</svg>")


def draw(array):
    """Draw the blocks of an array of up to two axes, and who holds them."""
    rows, columns = (1, 1, *array.shape)[-2:]
    height, width = (48 if rows == 1 else 192) / rows, 400 / columns
    shapes, words = [label(50, 18, jax.typeof(array), "start")], []
    for block, devices in blocks(array).items():
        (top, bottom), (left, right) = ((0, 1), (0, 1), *block)[-2:]
        x, y, names = 50 + left * width, 48 + top * height, str(devices)[1:-1]
        w, h = (right - left) * width, (bottom - top) * height
        shapes.append(box(x, y, w, h, COLOURS[devices[0] % 8], names))
        shapes += [label(50 + n * width, 40, n) for n in (left, right)]
        shapes += [label(42, 53 + n * height, n, "end") for n in (top, bottom)]
        words.append(f"rows {top}:{bottom}, columns {left}:{right} on {names}")
    meaning = f"Who holds what of {jax.typeof(array)}: {'; '.join(words)}"
    return picture(470, 54 + rows * height, dict.fromkeys(shapes), meaning)


@jax.jit
def add(x, y):
    """Return x + y; raises ShardingTypeError if their layouts differ."""
    return x + y


@jax.jit
def matmul(x, w):
    """Return x @ w; ShardingTypeError for a result of ambiguous layout."""
    return x @ w


@jax.jit
def matmul_by_rows(x, w):
    """Return x @ w, its rows sharded over "x", its columns not."""
    return jnp.matmul(x, w, out_sharding=jax.P("x", None))


@jax.jit
def rows_at(table, ids):
    """Return the rows of a table (n, m) at ids (k,), integers.

    Raises ShardingTypeError if either is sharded over explicit axes.
    """
    return table[ids]


@jax.jit
def rows_by_ids(table, ids):
    """Return the rows of a table (n, m) at ids (k,), sharded over "x"."""
    return table.at[ids].get(out_sharding=jax.P("x"))


@jax.jit
def count(ids):
    """Return how often each of 0 to 7 is among ids (k,).

    Raises ShardingTypeError if the ids are sharded over explicit axes.
    """
    return jnp.zeros(8).at[ids].add(1)


@jax.jit
def gram(x):
    """Return x @ x.T, its rows sharded; the compiler chooses what is sent."""
    return auto_axes(lambda x: x @ x.T, out_sharding=P("x"))(x)


@jax.jit
@explicit_axes(in_sharding=P("x"))
def typed(x):
    """Return 2 * x, on a mesh of automatic axes; prints the type of x."""
    print(jax.typeof(x))
    return 2 * x


def loss(w, batch):
    """Return the sum of the squares of batch (n, 16) @ w (16, m)."""
    return jnp.sum((batch @ w) ** 2)


def add_gradients(w, total, batches):
    """Return `total` and the gradients with respect to w of all batches."""

    def step(total, batch):
        return total + jax.grad(loss)(w, batch), None

    return lax.scan(step, total, batches)[0]


@jax.jit
def sum_in_each(w, batches):
    """Return the sum of the gradients of batches (k, n, 16), n sharded."""
    return add_gradients(w, jnp.zeros_like(w), batches)


@jax.jit
def sum_once(w, batches):
    """Return the same; the devices add up their sums after the last batch."""
    total = reshard(jnp.zeros_like(w), P(unreduced={"x"}))
    total = add_gradients(reshard(w, P(reduced={"x"})), total, batches)
    return reshard(total, P())


@jax.jit
@jax.shard_map(axis_names={"x"}, in_specs=P("x"), out_specs=P())
def total_by_hand(x):
    """Return the sum of each column; along "y" the compiler shards it."""
    return lax.psum(x.sum(axis=0), "x")
