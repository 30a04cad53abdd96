"""Operations on sharded arrays: which work, what they send, what helps."""

import ast
import dataclasses
import html
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import P, lax, reshard
from jax._src.core import ShardingTypeError
from jax.sharding import auto_axes

from snippets.devices.resharding import collectives
from snippets.start.rows import code, element

LAYOUTS = {
    'P("x", None)': P("x", None),
    'P(None, "x")': P(None, "x"),
    'P("x", "y")': P("x", "y"),
}
X = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32)
IDS = np.array([3, 1])
ROWS = P("x")
COLUMNS = P(None, "x")
REPLICATED = P()


@dataclasses.dataclass
class Operation:
    """A function of x (8, 16), and another for layouts that it refuses."""

    call: Callable
    instead: Callable | None = None


@dataclasses.dataclass
class Outcome:
    """What became of a function of x in one layout.

    `error` is that of `call`, after which `instead` was taken. `sent` and
    `backward` count the collectives of the result and of its gradient; the
    second is None where there is no gradient, and an error if refused.
    """

    error: Exception | None
    result: str
    sent: dict
    backward: dict | Exception | None


def costs(function, x):
    """Return (result's type, collectives, collectives of the gradient)."""
    (result,) = jax.make_jaxpr(function)(x).out_avals
    sent = collectives(function, x)
    if not jnp.issubdtype(result.dtype, jnp.floating):
        return str(result), sent, None

    def backward(x, g):
        return jax.vjp(function, x)[1](g)

    g = np.ones(result.shape, result.dtype)
    g = jax.device_put(g, result.sharding.spec)
    try:
        return str(result), sent, collectives(backward, x, g)
    except ShardingTypeError as error:
        return str(result), sent, error


def outcome(operation, x):
    """Return the Outcome of an operation on x, of its other way if refused."""
    try:
        return Outcome(None, *costs(operation.call, x))
    except (ShardingTypeError, ValueError) as error:
        return Outcome(error, *costs(operation.instead, x))


def operations(group):
    """Return {name: operation} of a group, which is a class."""
    found = vars(group).items()
    return {name: op for name, op in found if isinstance(op, Operation)}


def outcomes(operation):
    """Return {layout: Outcome} of an operation on X."""
    return {
        name: outcome(operation, jax.device_put(X, spec))
        for name, spec in LAYOUTS.items()
    }


def written(function):
    """Return what a lambda returns, as one line of code."""
    return ast.unparse(ast.parse(code(function)))


def counted(sent):
    """Return collectives and how many, in words."""
    return ", ".join(f"{n} {name}" for name, n in sent.items()) or "nothing"


def sends(found):
    """Return what the result and its gradient send, in words."""
    if found.backward is None:
        return f"{found.result}, sends {counted(found.sent)}"
    refused = isinstance(found.backward, Exception)
    back = "refused" if refused else counted(found.backward)
    return f"{found.result}, sends {counted(found.sent)}; backward {back}"


def reason(error):
    """Return the class and the first sentence of an error."""
    message = str(error).splitlines()[0].partition(". ")[0]
    return f"{type(error).__name__}: {message}"


class Table:
    """Operations and their outcomes, as text and as an HTML table."""

    def __init__(self, *groups):
        """Compile all operations of some groups for all layouts."""
        self.found = {
            f"{group.__name__}-{name}".lower(): (op, outcomes(op))
            for group in groups
            for name, op in operations(group).items()
        }

    def __repr__(self):
        """Return the outcomes as text."""
        lines = []
        for operation, found in self.found.values():
            lines.append(written(operation.call))
            for layout, one in found.items():
                if one.error:
                    lines.append(f"  {layout}: {reason(one.error)}")
                    lines.append(f"    {written(operation.instead)}")
                    lines.append(f"    {sends(one)}")
                else:
                    lines.append(f"  {layout}: {sends(one)}")
        return "\n".join(lines)

    def _repr_html_(self):
        names = "".join(
            f'<th scope="col">{element("code", name)} '
            f"{element('small', str(jax.typeof(jax.device_put(X, spec))))}"
            "</th>"
            for name, spec in LAYOUTS.items()
        )
        bodies = []
        for name, (operation, found) in self.found.items():
            title = element("code", written(operation.call))
            cells = []
            for one in found.values():
                if one.error:
                    cells.append(
                        f"<em>refused</em>{element('samp', reason(one.error))}"
                        + element("code", written(operation.instead))
                        + element("samp", sends(one))
                    )
                else:
                    cells.append(element("samp", sends(one)))
            row = "".join(
                f'<td data-layout="{html.escape(layout)}">{cell}</td>'
                for layout, cell in zip(found, cells, strict=True)
            )
            bodies.append(
                f'<tbody id="{name.replace("_", "-")}">'
                f'<tr><th colspan="3" scope="rowgroup">{title}</th></tr>'
                f"<tr>{row}</tr></tbody>"
            )
        body = "".join(bodies)
        given = 'data-examples="reshape, refused"'
        return f"<table {given}><thead><tr>{names}</tr></thead>{body}</table>"


class Elementwise:
    """Operations on each element, with arrays that are broadcast."""

    scalar = Operation(
        lambda x: 2 * jnp.tanh(x),
    )
    bias = Operation(
        lambda x: x + jnp.arange(16.0),
    )
    column = Operation(
        lambda x: x * x[:, :1],
        lambda x: x * reshard(x, REPLICATED)[:, :1],
    )
    transposed = Operation(
        lambda x: x[:, :8] + x[:, :8].T,
        lambda x: x[:, :8] + reshard(x[:, :8].T, jax.typeof(x).sharding.spec),
    )
    where = Operation(
        lambda x: jnp.where(x > 0, x, 0.0),
    )
    select = Operation(
        lambda x: jnp.select([x > 1, x < -1], [x, -x], 0.0),
    )
    triangle = Operation(
        lambda x: jnp.triu(x),
    )
    random = Operation(
        lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    )
    astype = Operation(
        lambda x: x.astype(jnp.bfloat16),
    )


class Reductions:
    """Operations that reduce or scan an axis."""

    total = Operation(
        lambda x: x.sum(),
    )
    rows = Operation(
        lambda x: x.sum(axis=1),
    )
    columns = Operation(
        lambda x: x.max(axis=0),
    )
    argmax = Operation(
        lambda x: x.argmax(axis=1),
    )
    softmax = Operation(
        lambda x: jax.nn.softmax(x, axis=1),
    )
    logsumexp = Operation(
        lambda x: jax.nn.logsumexp(x, axis=0),
    )
    norm = Operation(
        lambda x: jnp.linalg.norm(x, axis=1),
    )
    cumsum = Operation(
        lambda x: jnp.cumsum(x, axis=1),
        lambda x: jnp.cumsum(reshard(x, ROWS), axis=1),
    )
    median = Operation(
        lambda x: jnp.median(x, axis=0),
        lambda x: jnp.median(reshard(x, COLUMNS), axis=0),
    )
    segments = Operation(
        lambda x: jax.ops.segment_sum(x, IDS[[0, 1] * 4], 4),
        lambda x: (
            jnp.zeros((4, 16))
            .at[IDS[[0, 1] * 4]]
            .add(x, out_sharding=REPLICATED)
        ),
    )


class Sorting:
    """Operations that compare the elements of an axis."""

    sort = Operation(
        lambda x: jnp.sort(x, axis=0),
        lambda x: jnp.sort(reshard(x, COLUMNS), axis=0),
    )
    argsort = Operation(
        lambda x: jnp.argsort(x, axis=1),
        lambda x: jnp.argsort(reshard(x, ROWS), axis=1),
    )
    top_k = Operation(
        lambda x: lax.top_k(x, 2)[0],
        lambda x: lax.top_k(reshard(x, ROWS), 2)[0],
    )
    searchsorted = Operation(
        lambda x: jnp.searchsorted(jnp.arange(4.0), x[:, 0]),
        lambda x: jnp.searchsorted(
            jnp.arange(4.0), reshard(x, ROWS)[:, 0], method="compare_all"
        ),
    )
    unique = Operation(
        lambda x: jnp.unique(x, size=4),
        lambda x: jnp.unique(reshard(x, REPLICATED), size=4),
    )
    nonzero = Operation(
        lambda x: jnp.nonzero(x.sum(axis=1) > 0, size=3)[0],
        lambda x: jnp.nonzero(reshard(x.sum(axis=1), REPLICATED) > 0, size=3)[
            0
        ],
    )


class Indexing:
    """Reads: indices, slices and gathers."""

    row = Operation(
        lambda x: x[0],
        lambda x: reshard(x, COLUMNS)[0],
    )
    last = Operation(
        lambda x: x[:, -1],
        lambda x: reshard(x, ROWS)[:, -1],
    )
    slices = Operation(
        lambda x: x[2:6],
    )
    uneven = Operation(
        lambda x: x[1:],
        lambda x: reshard(x, COLUMNS)[1:],
    )
    strided = Operation(
        lambda x: x[::2],
    )
    reversed = Operation(
        lambda x: x[:, ::-1],
    )
    traced = Operation(
        lambda x: x[jnp.argmax(x.sum(axis=1))],
        lambda x: reshard(x, COLUMNS)[jnp.argmax(x.sum(axis=1))],
    )
    gather = Operation(
        lambda x: x[IDS],
        lambda x: x.at[IDS].get(out_sharding=REPLICATED),
    )
    along = Operation(
        lambda x: jnp.take_along_axis(x, x.argmax(axis=1, keepdims=True), 1),
        lambda x: jnp.take_along_axis(
            reshard(x, ROWS), reshard(x, ROWS).argmax(axis=1, keepdims=True), 1
        ),
    )
    dynamic = Operation(
        lambda x: lax.dynamic_slice(x, (2, 0), (2, 16)),
        lambda x: lax.dynamic_slice(reshard(x, COLUMNS), (2, 0), (2, 16)),
    )
    diagonal = Operation(
        lambda x: jnp.diagonal(x),
        lambda x: jnp.diagonal(reshard(x, REPLICATED)),
    )


class Updates:
    """Writes: new arrays with other elements."""

    row = Operation(
        lambda x: x.at[0].set(0.0),
        lambda x: x.at[0].set(0.0, out_sharding=jax.typeof(x).sharding.spec),
    )
    scatter = Operation(
        lambda x: x.at[IDS].add(1.0),
        lambda x: x.at[IDS].add(1.0, out_sharding=jax.typeof(x).sharding.spec),
    )
    dynamic = Operation(
        lambda x: lax.dynamic_update_slice(x, jnp.ones((4, 16)), (2, 0)),
        lambda x: lax.dynamic_update_slice(
            x, reshard(jnp.ones((4, 16)), jax.typeof(x).sharding.spec), (2, 0)
        ),
    )
    where = Operation(
        lambda x: jnp.where(jnp.arange(8)[:, None] == 0, 0.0, x),
    )


class Shapes:
    """Operations that move elements, or none at all."""

    transpose = Operation(
        lambda x: x.T,
    )
    new_axis = Operation(
        lambda x: x[None],
    )
    broadcast = Operation(
        lambda x: jnp.broadcast_to(x, (3, 8, 16)),
    )
    split_axis = Operation(
        lambda x: x.reshape(8, 4, 4),
    )
    merge = Operation(
        lambda x: x.reshape(128),
        lambda x: x.reshape(128, out_sharding=ROWS),
    )
    mix = Operation(
        lambda x: x.reshape(16, 8),
        lambda x: x.reshape(16, 8, out_sharding=ROWS),
    )
    concatenate = Operation(
        lambda x: jnp.concatenate([x, x], axis=0),
    )
    stack = Operation(
        lambda x: jnp.stack([x, x]),
    )
    sections = Operation(
        lambda x: jnp.split(x, 2, axis=0)[1],
    )
    pad = Operation(
        lambda x: jnp.pad(x, ((0, 1), (0, 0))),
        lambda x: jnp.pad(reshard(x, COLUMNS), ((0, 1), (0, 0))),
    )
    tile = Operation(
        lambda x: jnp.tile(x, (2, 1)),
        lambda x: jnp.concatenate([x, x]),
    )
    repeat = Operation(
        lambda x: jnp.repeat(x, 2, axis=0),
        lambda x: jnp.repeat(
            x, 2, axis=0, out_sharding=jax.typeof(x).sharding.spec
        ),
    )
    roll = Operation(
        lambda x: jnp.roll(x, 1, axis=0),
        lambda x: jnp.roll(reshard(x, COLUMNS), 1, axis=0),
    )
    flip = Operation(
        lambda x: jnp.flip(x, axis=0),
    )
    diff = Operation(
        lambda x: jnp.diff(x, axis=0),
        lambda x: jnp.diff(reshard(x, COLUMNS), axis=0),
    )


class Matmuls:
    """Matmuls, convolutions and decompositions."""

    weights = Operation(
        lambda x: x @ W,
    )
    gram = Operation(
        lambda x: x @ x.T,
        lambda x: jnp.einsum("ij,kj->ik", x, x, out_sharding=ROWS),
    )
    inner = Operation(
        lambda x: x.T @ x,
        lambda x: jnp.einsum("ij,ik->jk", x, x, out_sharding=ROWS),
    )
    outer = Operation(
        lambda x: jnp.outer(x.sum(axis=1), x.sum(axis=1)),
        lambda x: jnp.outer(x.sum(axis=1), reshard(x.sum(axis=1), REPLICATED)),
    )
    convolution = Operation(
        lambda x: lax.conv_general_dilated(
            x[:, None], jnp.ones((1, 1, 3)), (1,), "SAME"
        ),
    )
    fourier = Operation(
        lambda x: jnp.abs(jnp.fft.fft(x, axis=0)),
    )
    solve = Operation(
        lambda x: jnp.linalg.solve(jnp.eye(8), x),
        lambda x: auto_axes(jnp.linalg.solve, out_sharding=REPLICATED)(
            jnp.eye(8), x
        ),
    )
    svd = Operation(
        lambda x: jnp.linalg.svd(x, compute_uv=False),
        lambda x: jnp.linalg.svd(reshard(x, REPLICATED), compute_uv=False),
    )
    svd_of_batch = Operation(
        lambda x: jnp.linalg.svd(x.reshape(8, 4, 4), compute_uv=False),
        lambda x: jnp.linalg.svd(
            reshard(x, ROWS).reshape(8, 4, 4), compute_uv=False
        ),
    )
    qr_of_batch = Operation(
        lambda x: jnp.linalg.qr(x.reshape(8, 4, 4)).R,
        lambda x: (
            auto_axes(jnp.linalg.qr, out_sharding=ROWS)(x.reshape(8, 4, 4)).R
        ),
    )
    attention = Operation(
        lambda x: jax.nn.dot_product_attention(*[x.reshape(8, 4, 2, 2)] * 3),
        lambda x: jax.nn.dot_product_attention(
            *[reshard(x.reshape(8, 4, 2, 2), ROWS)] * 3
        ),
    )


class Loops:
    """Transformations and loops."""

    vmap = Operation(
        lambda x: jax.vmap(lambda row: row / row.sum())(x),
    )
    fori = Operation(
        lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sin(x), x),
    )
    cond = Operation(
        lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    )
    scan = Operation(
        lambda x: lax.scan(lambda c, row: (c + row, c), 0 * x.sum(axis=0), x)[
            1
        ],
        lambda x: lax.scan(
            lambda c, row: (c + row, c),
            0 * reshard(x, COLUMNS)[0],
            reshard(x, COLUMNS),
        )[1],
    )
    map = Operation(
        lambda x: lax.map(lambda row: row.sum(), x),
        lambda x: jax.vmap(lambda row: row.sum())(x),
    )
    prefix = Operation(
        lambda x: lax.associative_scan(jnp.add, x),
        lambda x: lax.associative_scan(jnp.add, reshard(x, COLUMNS)),
    )


GROUPS = (
    Elementwise,
    Reductions,
    Sorting,
    Indexing,
    Updates,
    Shapes,
    Matmuls,
    Loops,
)
