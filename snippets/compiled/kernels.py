"""Kernels in Pallas: softmax, RMSNorm, a tiled matmul and attention."""

import contextlib
import functools
import io
import itertools
import logging
import math

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

COMPILED = {
    "softmax": ["float32[4096,4096]"],
    "attention": [
        "float32[8,2048,128]",
        "float32[8,2048,128]",
        "float32[8,2048,128]",
    ],
    "plain_attention": [
        "float32[8,2048,128]",
        "float32[8,2048,128]",
        "float32[8,2048,128]",
    ],
    "narrow_softmax": ["float32[1600,1024]"],
    "large_softmax": ["float32[16384,1024]"],
    "sorted_rows": ["float32[1024,1024]"],
}
EXPECTED_ERRORS = {
    "without_a_rule": (
        ValueError,
        "Linearization failed to produce known values",
    ),
    "of_shards_untyped": (
        ValueError,
        "Please specify how the output should be varying across mesh axes",
    ),
}


def softmax_kernel(x_ref, out_ref):
    """Write the softmax of each row of a block."""
    x = x_ref[...]
    exps = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    out_ref[...] = exps / jnp.sum(exps, axis=-1, keepdims=True)


def whole_blocks(size, block):
    """Return how many blocks fill an axis; ValueError if they do not.

    No block fills an axis of size 0.
    """
    if min(size, block) < 1 or size % block:
        raise ValueError(
            f"blocks of {block} do not fill an axis of {size}: pass a size of "
            f"block that divides {size}, or pad the axis"
        )
    return size // block


def like(shape, *arrays):
    """Return the type of a kernel's result, with the dtype of the first array.

    Inside `shard_map` it varies over each axis over which one array does.
    """
    kinds = [jax.typeof(array).manual_axis_type for array in arrays]
    varying = frozenset().union(*(kind.varying for kind in kinds))
    return jax.ShapeDtypeStruct(
        shape,
        arrays[0].dtype,
        manual_axis_type=kinds[0].update(varying=varying),
    )


def by_rows(kernel, *arrays, rows=128, interpret=False):
    """Run a kernel on blocks of `rows` rows of arrays (m, n); same result.

    `rows` must divide m, and the arrays must have one shape, or ValueError is
    raised. `interpret` is that of `pallas_call`: False, True or
    `pltpu.InterpretParams()`, which also works inside `shard_map`.
    """
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ValueError(f"the arrays have several shapes: {sorted(shapes)}")
    m, n = arrays[0].shape
    block = pl.BlockSpec((rows, n), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(whole_blocks(m, rows),),
        in_specs=[block] * len(arrays),
        out_specs=block,
        out_shape=like((m, n), *arrays),
        interpret=interpret,
    )(*arrays)


def softmax(x, rows=128, interpret=False):
    """Return the softmax of each row of x, float32[m,n], by a kernel."""
    return by_rows(softmax_kernel, x, rows=rows, interpret=interpret)


def rms_norm_kernel(x_ref, scale_ref, out_ref):
    """Write the rows of a block, divided by their root mean square."""
    x = x_ref[...]
    mean = jnp.mean(x * x, axis=-1, keepdims=True)
    normed = x * jax.lax.rsqrt(mean + 1e-6) * scale_ref[...]
    out_ref[...] = normed.astype(out_ref.dtype)


def rms_norm(x, scale, rows=128, interpret=False):
    """Return RMSNorm of the rows of x, float32[m,n], by a kernel.

    `scale` has shape (n,); the formula is that of Zhang and Sennrich 2019,
    section 4, with 1e-6 under the root. The rest is as in `by_rows`.
    """
    if scale.shape != x.shape[1:]:
        raise ValueError(f"rows of {x.shape[1:]}, and a scale {scale.shape}")
    block = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    shared = pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0))
    return pl.pallas_call(
        rms_norm_kernel,
        grid=(whole_blocks(x.shape[0], rows),),
        in_specs=[block, shared],
        out_specs=block,
        out_shape=like(x.shape, x, scale),
        interpret=interpret,
    )(x, scale[None])


def matmul_kernel(a_ref, b_ref, out_ref, sum_ref):
    """Add the matmul of two blocks to the accumulator; write it at last."""

    @pl.when(pl.program_id(2) == 0)
    def start():
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += jnp.dot(
        a_ref[...], b_ref[...], preferred_element_type=jnp.float32
    )

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def finish():
        out_ref[...] = sum_ref[...].astype(out_ref.dtype)


def matmul(a, b, tile=512, interpret=False):
    """Return a @ b in the dtype of a, (m, k) @ (k, n), in square tiles.

    All sizes must be multiples of `tile`, or ValueError is raised. Sums are
    float32.
    """
    (m, k), (inner, n) = a.shape, b.shape
    if inner != k:
        raise ValueError(f"no matmul of {a.shape} and {b.shape}")
    return pl.pallas_call(
        matmul_kernel,
        grid=tuple(whole_blocks(size, tile) for size in (m, n, k)),
        in_specs=[
            pl.BlockSpec((tile, tile), lambda i, j, step: (i, step)),
            pl.BlockSpec((tile, tile), lambda i, j, step: (step, j)),
        ],
        out_specs=pl.BlockSpec((tile, tile), lambda i, j, step: (i, j)),
        out_shape=like((m, n), a, b),
        scratch_shapes=[pltpu.VMEM((tile, tile), jnp.float32)],
        interpret=interpret,
    )(a, b)


def hidden(scores, queries, keys, causal, segments):
    """Return scores of two blocks, very low where a query sees no key.

    They are low and not -inf, because a query may see no key of a block.
    """
    seen = jnp.full(scores.shape, True)
    if causal:
        q, k = (
            tile * scores.shape[axis]
            + jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis)
            for axis, tile in enumerate((queries, keys))
        )
        seen = k <= q
    if segments:
        query_ids, key_ids = segments
        seen &= query_ids[...] == key_ids[...]
    return jnp.where(seen, scores, jnp.finfo(scores.dtype).min)


def attention_kernel(query_ref, key_ref, value_ref, *refs, causal=False):
    """Add what one block of keys contributes to one block of queries.

    The largest score of each query so far, the sum of its exponentials and
    its weighted values stay in scratch memory (Dao et al. 2022, algorithm 1).
    With `causal`, blocks of later keys are left out. Blocks of segment ids,
    of queries and of keys, may stand before the result.
    """
    *segments, out_ref, top_ref, total_ref, sum_ref = refs
    queries, keys = pl.program_id(1), pl.program_id(2)

    @pl.when(keys == 0)
    def start():
        top_ref[...] = jnp.full_like(top_ref, -jnp.inf)
        total_ref[...] = jnp.zeros_like(total_ref)
        sum_ref[...] = jnp.zeros_like(sum_ref)

    @pl.when(not causal or keys <= queries)
    def add():
        query = query_ref[...] / math.sqrt(query_ref.shape[-1])
        scores = jnp.dot(
            query, key_ref[...].T, preferred_element_type=jnp.float32
        )
        if causal or segments:
            scores = hidden(scores, queries, keys, causal, segments)
        top = jnp.maximum(top_ref[...], scores.max(axis=-1, keepdims=True))
        exps = jnp.exp(scores - top)
        before = jnp.exp(top_ref[...] - top)
        total_ref[...] = before * total_ref[...] + exps.sum(-1, keepdims=True)
        sum_ref[...] = before * sum_ref[...] + jnp.dot(
            exps, value_ref[...], preferred_element_type=jnp.float32
        )
        top_ref[...] = top

    @pl.when(keys == pl.num_programs(2) - 1)
    def finish():
        out_ref[...] = (sum_ref[...] / total_ref[...]).astype(out_ref.dtype)


def attention(
    query,
    key,
    value,
    tile=256,
    interpret=False,
    causal=False,
    segment_ids=None,
):
    """Return attention, (heads, time, width), without its matrix of scores.

    `key` and `value` may have fewer heads, each for as many heads of queries
    in a row. With `causal`, a position sees no later one. With `segment_ids`,
    int[time], it sees only positions of its own segment. Without both, there
    may be another number of keys. `tile` must divide the numbers of
    positions. Otherwise ValueError is raised.
    """
    heads, time, width = query.shape
    groups, length, _ = key.shape
    alike = causal or segment_ids is not None
    if (
        key.shape != value.shape
        or key.shape[2] != width
        or min(heads, groups) < 1
        or heads % groups
        or (alike and length != time)
    ):
        shapes = f"{query.shape}, {key.shape} and {value.shape}"
        raise ValueError(f"no attention of {shapes}, causal: {causal}")
    segments, of_segments = [], []
    if segment_ids is not None:
        if segment_ids.shape != (time,):
            raise ValueError(
                f"segment_ids of shape {segment_ids.shape}: pass one for each "
                f"of {time} positions; jax.vmap takes those of a batch"
            )
        segments = [segment_ids[:, None], segment_ids[None]]
        of_segments = [
            pl.BlockSpec((tile, 1), lambda h, i, j: (i, 0)),
            pl.BlockSpec((1, tile), lambda h, i, j: (0, block(i, j))),
        ]

    def block(i, j):
        return jnp.minimum(i, j) if causal else j

    def at(h, i, j):
        return jax.lax.div(h, heads // groups), block(i, j), 0

    queries = pl.BlockSpec((None, tile, width), lambda h, i, j: (h, i, 0))
    keys = pl.BlockSpec((None, tile, width), at)
    return pl.pallas_call(
        functools.partial(attention_kernel, causal=causal),
        grid=(heads, whole_blocks(time, tile), whole_blocks(length, tile)),
        in_specs=[queries, keys, keys, *of_segments],
        out_specs=queries,
        out_shape=like(query.shape, query, key, value, *segments),
        scratch_shapes=[
            pltpu.VMEM((tile, 1), jnp.float32),
            pltpu.VMEM((tile, 1), jnp.float32),
            pltpu.VMEM((tile, width), jnp.float32),
        ],
        interpret=interpret,
    )(query, key, value, *segments)


def plain_attention(query, key, value):
    """Return the same by its formula, with all scores at once."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return jax.nn.softmax(scores) @ value


def without_a_rule(x):
    """Differentiate through a kernel as it is."""
    return jax.grad(lambda x: softmax(x, interpret=True).sum())(x)


def softmax_gradient_kernel(y_ref, g_ref, out_ref):
    """Write the gradient of a block from its softmax y and the one of y."""
    y, g = y_ref[...], g_ref[...]
    out_ref[...] = y * (g - jnp.sum(y * g, axis=-1, keepdims=True))


@jax.custom_vjp
def softmax_with_gradient(x):
    """Return `softmax`, interpreted, whose gradient is also a kernel."""
    return softmax(x, interpret=pltpu.InterpretParams())


def softmax_forward(x):
    """Return the softmax, and as residual the same."""
    y = softmax(x, interpret=pltpu.InterpretParams())
    return y, y


def softmax_backward(y, g):
    """Return the gradient of x from the residual and the gradient of y."""
    interpret = pltpu.InterpretParams()
    return (by_rows(softmax_gradient_kernel, y, g, interpret=interpret),)


def softmax_of_shards(x, axis, rows=64, interpret=False):
    """Return `softmax` of x, whose rows are sharded over an axis of the mesh.

    `rows` must divide those of each device, or ValueError is raised.
    """
    return jax.shard_map(
        lambda shard: softmax(shard, rows, interpret),
        in_specs=jax.P(axis),
        out_specs=jax.P(axis),
    )(x)


def with_gradient_of(reference, kernel):
    """Return `kernel` with the gradient of `reference`, of the same arrays."""

    @jax.custom_vjp
    def call(*arrays):
        return kernel(*arrays)

    def forward(*arrays):
        return call(*arrays), arrays

    def backward(arrays, g):
        return jax.vjp(reference, *arrays)[1](g)

    call.defvjp(forward, backward)
    return call


def gradients(function, *arrays):
    """Return those of the sum of the squares of function's result."""
    every = tuple(range(len(arrays)))
    return jax.grad(lambda *args: jnp.sum(function(*args) ** 2), every)(
        *arrays
    )


def of_shards_untyped(x, axis):
    """Say of a result in shard_map only shape and dtype; raises ValueError."""

    def call(shard):
        out_shape = jax.ShapeDtypeStruct(shard.shape, shard.dtype)
        return pl.pallas_call(softmax_kernel, out_shape)(shard)

    specs = jax.P(axis)
    return jax.shard_map(call, in_specs=specs, out_specs=specs)(x)


def row_sums_kernel(x_ref, out_ref):
    """Add the rows of a block to the result, which all blocks share."""

    @pl.when(pl.program_id(0) == 0)
    def start():
        out_ref[...] = jnp.zeros_like(out_ref)

    out_ref[...] += jnp.sum(x_ref[...], axis=0, keepdims=True)


def row_sums(x, semantics, interpret, rows=128):
    """Return the sum of all rows of x, float32[m,n], shape (1, n).

    `semantics` is "arbitrary", blocks in order, or "parallel", where the
    cores of a chip may share them.
    """
    return pl.pallas_call(
        row_sums_kernel,
        grid=(whole_blocks(x.shape[0], rows),),
        in_specs=[pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0)),
        out_shape=like((1, x.shape[1]), x),
        compiler_params=pltpu.CompilerParams(dimension_semantics=(semantics,)),
        interpret=interpret,
    )(x)


def races(function):
    """Say whether the interpreter reports a race in a call of `function`.

    It prints a race, and from JAX 0.12 on it raises one. Another error is
    raised on.
    """
    printed = io.StringIO()
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(printed):
            jax.block_until_ready(function())
    except jax.errors.JaxRuntimeError as error:
        pltpu.reset_tpu_interpret_mode_state()
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.effects_barrier()
        if "RACE DETECTED" not in str(error):
            raise
        return True
    finally:
        logging.disable(logging.NOTSET)
    return "RACE DETECTED" in printed.getvalue()


def narrow_softmax(x):
    """Take blocks of 100 rows, which tiles of eight rows do not fill."""
    return softmax(x, rows=100)


def large_softmax(x):
    """Take the whole array as one block."""
    return softmax(x, rows=x.shape[0])


def sort_kernel(x_ref, out_ref):
    """Sort each row of a block."""
    out_ref[...] = jnp.sort(x_ref[...], axis=-1)


def sorted_rows(x):
    """Return the rows of x sorted, by a kernel."""
    return by_rows(sort_kernel, x)


def bytes_moved(grid, blocks):
    """Return the bytes that a grid moves between main memory and a chip.

    `blocks` has, for each argument and result, how its index follows from
    that of the grid, and its bytes. A block is moved again whenever its index
    is another than one step before.
    """
    total = 0
    for index, size in blocks:
        steps = [index(*at) for at in itertools.product(*map(range, grid))]
        total += size * sum(1 for _ in itertools.groupby(steps))
    return total


def matmul_bytes(size, tile, itemsize=2):
    """Return the bytes that `matmul` moves for square matrices."""
    block = tile * tile * itemsize
    blocks = [
        (lambda i, j, step: (i, step), block),
        (lambda i, j, step: (step, j), block),
        (lambda i, j, step: (i, j), block),
    ]
    return bytes_moved((whole_blocks(size, tile),) * 3, blocks)
