"""jax.shard_map and five collectives, each with NumPy beside it."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from snippets.devices.arrays import COLOURS, box, label, picture

EXPECTED_ERRORS = {
    "own_sum": (
        ValueError,
        "which require replication which can't be statically inferred",
    ),
    "added_twice": (
        TypeError,
        "the manual axis types do not match",
    ),
    "on_two_meshes": (
        ValueError,
        "should match the mesh passed to shard_map",
    ),
}


def numbered(devices):
    """Return ten times the device plus 1, 2, …: (devices * devices,), int."""
    return (10 * np.arange(devices)[:, None] + 1 + np.arange(devices)).ravel()


def held(array):
    """Return what each device holds of an array, as a list of NumPy arrays."""
    shards = sorted(
        array.addressable_shards, key=lambda shard: shard.device.id
    )
    return [np.asarray(shard.data) for shard in shards]


def number_box(x, y, number, owner):
    """Return a box in the colour of the device that had the number before.

    A number that none had is grey; a zero that none had is an empty box.
    """
    if number in owner or number:
        return box(x, y, 30, 28, COLOURS[owner.get(number, -1)], number)
    place = f'x="{x + 2}" y="{y + 2}" width="26" height="24"'
    frame = f'<rect {place} rx="3" fill="none" stroke="currentColor"/>'
    return frame + label(x + 15, y + 19, number)


def draw_collective(before, after):
    """Draw what each device holds before and after, up to eight in a line."""
    old, new = held(before), held(after)
    owner = {int(v): d for d, block in enumerate(old) for v in block.ravel()}
    shapes, words = [], []
    start, most = 130 + 30 * old[0].size, new[0].size
    height = 8 + 28 * math.ceil(most / 8)
    for d, sides in enumerate(zip(old, new, strict=True)):
        y = 8 + height * d
        shapes.append(label(70, y + 19, f"device {d}", "end"))
        shapes.append(label(start - 25, y + 19, "→"))
        for left, block in zip((80, start), sides, strict=True):
            for k, value in enumerate(map(int, block.ravel())):
                x, down = left + 30 * (k % 8), 28 * (k // 8)
                shapes.append(number_box(x, y + down, value, owner))
        words.append(
            f"device {d} holds {sides[0]} before and {sides[1]} after"
        )
    width = start + 30 * min(most, 8)
    return picture(width, 8 + height * len(old), shapes, "; ".join(words))


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def plus_own_number(x):
    """Return a block plus the number of the device along "i"."""
    return x + jax.lax.axis_index("i")


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P())
def own_sum(x):
    """Return the sum of a block; ValueError unless all are known to agree."""
    return x.sum(keepdims=True)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def own_sums(x):
    """Return the sum of each block."""
    return x.sum(keepdims=True)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P())
def psum(x):
    """Return the sum of the blocks, on all devices."""
    return jax.lax.psum(x, "i")


def psum_numpy(blocks):
    """Return the same sum for each of the blocks (devices, n)."""
    return [blocks.sum(axis=0)] * len(blocks)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P())
def all_gather(x):
    """Return the blocks, concatenated, on all devices."""
    return jax.lax.all_gather(x, "i", tiled=True, to="invarying")


def all_gather_numpy(blocks):
    """Return all values for each of the blocks (devices, n)."""
    return [blocks.ravel()] * len(blocks)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def psum_scatter(x):
    """Return the sum of the blocks, sharded over the devices."""
    return jax.lax.psum_scatter(x, "i", tiled=True)


def psum_scatter_numpy(blocks):
    """Return a shard of the sum for each of the blocks (devices, n)."""
    return np.split(blocks.sum(axis=0), len(blocks))


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def shift(x):
    """Return the block of the previous device, in a ring."""
    devices = jax.lax.axis_size("i")
    ring = [(source, (source + 1) % devices) for source in range(devices)]
    return jax.lax.ppermute(x, "i", ring)


def shift_numpy(blocks):
    """Return the blocks (devices, n), each moved on by one."""
    return np.roll(blocks, 1, axis=0)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def shift_to_end(x):
    """Return the block of the previous device; the first gets zeros."""
    devices = jax.lax.axis_size("i")
    line = [(source, source + 1) for source in range(devices - 1)]
    return jax.lax.ppermute(x, "i", line)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def all_to_all(x):
    """Return the k-th chunk of each block on the k-th device."""
    return jax.lax.all_to_all(x, "i", split_axis=0, concat_axis=0, tiled=True)


def all_to_all_numpy(blocks):
    """Return the k-th chunks of all blocks (devices, n), for each k."""
    chunks = blocks.reshape(len(blocks), len(blocks), -1)
    return chunks.swapaxes(0, 1).reshape(blocks.shape)


def agrees(collective, collective_numpy, x):
    """Return whether devices hold after a collective what NumPy computes."""
    blocks = np.stack(held(x))
    return np.array_equal(held(collective(x)), collective_numpy(blocks))


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def added_twice(x):
    """Add a block to zeros twice, in a loop; raises TypeError."""
    start = jnp.zeros(x.shape, x.dtype)
    return jax.lax.fori_loop(0, 2, lambda _, total: total + x, start)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def added_twice_from_varying(x):
    """Add a block to zeros twice, in a loop whose carry varies over "i"."""
    start = jax.lax.pcast(jnp.zeros(x.shape, x.dtype), "i", to="varying")
    return jax.lax.fori_loop(0, 2, lambda _, total: total + x, start)


@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def doubled(x):
    """Return twice a block, on the first mesh that it is called on."""
    return 2 * x


def doubled_anywhere(x):
    """Return twice an array, block by block, on the mesh of the call."""
    return jax.shard_map(
        lambda block: 2 * block, in_specs=jax.P("i"), out_specs=jax.P("i")
    )(x)


def on_meshes(function, x, sizes):
    """Return the results of a function on meshes of the first devices."""
    results = []
    for size in sizes:
        mesh = jax.make_mesh((size,), ("i",), devices=jax.devices()[:size])
        with jax.set_mesh(mesh):
            results.append(function(jax.device_put(x, jax.P("i"))))
    return results


def on_two_meshes(x):
    """Call `doubled` on two devices after four; raises ValueError."""
    return on_meshes(doubled, x, (4, 2))


def exact_gelu(x):
    """Return x Φ(x), with Φ the distribution function of a normal."""
    return jax.nn.gelu(x, approximate=False)


@jax.custom_jvp
def own_gelu(x):
    """Return `exact_gelu`, whose derivative is written out."""
    return exact_gelu(x)


@own_gelu.defjvp
def own_gelu_jvp(primals, tangents):
    """Return the value, and Φ(x) + x φ(x) times the tangent."""
    ((x,), (dx,)) = primals, tangents
    below = jax.lax.erfc(-x / math.sqrt(2)) / 2
    density = jnp.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return own_gelu(x), (below + x * density) * dx


def derivatives(activation, x):
    """Return the derivative at each x (n,), by a gradient in `shard_map`."""

    def of_block(block):
        return jax.grad(lambda block: activation(block).sum())(block)

    return jax.shard_map(of_block, in_specs=jax.P("i"), out_specs=jax.P("i"))(
        x
    )


def outcome(function, *args):
    """Return "works", or the name of the error and how it begins."""
    try:
        function(*args)
    except ValueError as error:
        return f"ValueError: {str(error).partition(',')[0]}"
    return "works"
