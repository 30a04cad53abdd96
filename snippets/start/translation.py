"""The same operations in PyTorch, TensorFlow and JAX, as code that is run."""

import dataclasses
import inspect
import logging
import math
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorflow as tf
import torch
import torch.nn.functional as F

from snippets.start.rows import code, element

FRAMEWORKS = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
LABELS = FRAMEWORKS | {"numpy": "NumPy"}
ARRAYS = {
    "torch": torch.tensor,
    "tensorflow": tf.constant,
    "jax": jnp.array,
    "numpy": np.array,
}

IMAGES = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
KERNELS = (np.arange(54, dtype=np.float32) % 5 - 2).reshape(3, 2, 3, 3)
INPUTS = {
    "v": [3.0, 1.0, 2.0],
    "w": [10.0, 20.0, 30.0],
    "x": [[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]],
    "y": [[0.5, 1.5, -1.0], [2.0, -3.0, 1.0]],
    "a": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "b": [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]],
    "s": [[2.0, 1.0], [1.0, 3.0]],
    "k": [7, -7, 5, -2],
    "d": [2, 2, -3, -3],
    "i": [2, 0],
    "mask": [True, False, True],
    "labels": [0, 2],
    "nchw": IMAGES,
    "nhwc": IMAGES.transpose(0, 2, 3, 1),
    "oihw": KERNELS,
    "hwio": KERNELS.transpose(2, 3, 1, 0),
}


@dataclasses.dataclass
class Row:
    """One operation as a function in each framework, of arrays by their names.

    `given` replaces some of INPUTS. `differs`: the results differ for them.
    `meaning` is what each framework computes, in NumPy, where they differ.
    `view` turns a framework's result into PyTorch's layout.
    `draws` are mean, deviation, least and largest value of a random result.
    `fixed` says that the code holds for the shapes of INPUTS only.
    """

    title: str
    torch: Callable
    tensorflow: Callable
    jax: Callable
    numpy: Callable | None = None
    given: dict = dataclasses.field(default_factory=dict)
    differs: bool = False
    meaning: tuple = ()
    view: dict = dataclasses.field(default_factory=dict)
    draws: tuple = ()
    fixed: bool = False
    tolerance: float = 1e-5

    def __set_name__(self, group, name):
        self.name = f"torch-{name.strip('_').replace('_', '-')}"


def rows(group):
    """Return the rows of a group, which is a class."""
    return [row for row in vars(group).values() if isinstance(row, Row)]


def functions(row):
    """Return {framework: function} of a row, NumPy's where it has one."""
    found = {name: getattr(row, name) for name in LABELS}
    return {name: function for name, function in found.items() if function}


def reads(function):
    """Return the names of the arrays that a function takes."""
    return list(inspect.signature(function).parameters)


def inputs(row, drawn=None):
    """Return the inputs that a row reads: its own, `drawn`, or from INPUTS."""
    read = {name for each in functions(row).values() for name in reads(each)}
    known = INPUTS | row.given if drawn is None else drawn
    return {name: value for name, value in known.items() if name in read}


def evaluate(function, framework, given):
    """Call a function with `given` as arrays; return its result or error."""
    torch.manual_seed(0)
    tf.random.set_seed(0)
    logging.getLogger("tensorflow").setLevel("ERROR")
    array = ARRAYS[framework]
    arrays = {name: array(given[name]) for name in reads(function)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(function(**arrays))
        except Exception as error:
            return error


def plain(value):
    """Return arrays as NumPy arrays, and containers of them as lists."""
    if isinstance(value, (str, bool, int, float, np.ndarray)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return [plain(value[name]) for name in sorted(value)]
    if isinstance(value, torch.Tensor):
        value = value.detach()
    if isinstance(
        value, (torch.Tensor, tf.Tensor, tf.Variable, jax.Array, np.generic)
    ):
        return np.asarray(value)
    return str(value)


def agree(values, tolerance=1e-5):
    """Say whether results have equal structure and, up to rounding, values."""
    first, *others = values
    if isinstance(first, Exception) or isinstance(first, str):
        return all(
            type(first) is type(o) and str(first) == str(o) for o in others
        )
    if isinstance(first, list):
        same = all(
            isinstance(o, list) and len(o) == len(first) for o in others
        )
        return same and all(
            agree(parts, tolerance) for parts in zip(*values, strict=True)
        )
    if any(isinstance(o, (Exception, str, list)) for o in others):
        return False
    first = np.asarray(first)
    return all(
        np.shape(o) == first.shape
        and np.allclose(
            first, o, rtol=tolerance, atol=tolerance, equal_nan=True
        )
        for o in others
    )


def dtypes(value):
    """Return the dtypes of a result, in words; none where it is no array."""
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(dtypes(part) for part in value))
    return str(value.dtype) if isinstance(value, np.ndarray) else ""


def numbers(value):
    """Return a result in a few words: its numbers, or the shape of many."""
    if isinstance(value, Exception):
        return type(value).__name__
    if isinstance(value, list):
        return "  ".join(numbers(part) for part in value)
    if isinstance(value, np.ndarray) and value.size > 12:
        return f"shape {value.shape}"
    if isinstance(value, np.ndarray):
        return numbers_in(value.tolist())
    return numbers_in(value)


def numbers_in(value):
    """Return a number, or the lists of an array, with five decimal digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(numbers_in, value))}]"
    return f"{value + 0:.5g}" if isinstance(value, float) else str(value)


def written(row):
    """Return {framework: code} of a row, NumPy's where it has one."""
    return {name: code(each) for name, each in functions(row).items()}


def results(row):
    """Run a row on its inputs; return {framework: result}."""
    given = inputs(row)
    return {n: evaluate(f, n, given) for n, f in functions(row).items()}


def as_torch(row, found):
    """Return the results of the three frameworks in PyTorch's layout."""
    return [
        row.view[name](found[name]) if name in row.view else found[name]
        for name in FRAMEWORKS
    ]


def alike(row, found):
    """Say whether the results of the three frameworks are the same."""
    return not row.draws and agree(as_torch(row, found), row.tolerance)


def summary(value):
    """Return mean, deviation, least and largest value, in words."""
    return (
        f"mean {np.mean(value):.3g}, deviation {np.std(value):.3g}, "
        f"from {np.min(value):.3g} to {np.max(value):.3g}"
    )


def kinds(found):
    """Return the dtype of the results, or which framework gives which."""
    by_dtype = {}
    for framework, name in FRAMEWORKS.items():
        by_dtype.setdefault(dtypes(found[framework]), []).append(name)
    if len(by_dtype) == 1:
        return next(iter(by_dtype))
    return ", ".join(
        f"{kind} in {' and '.join(names)}" for kind, names in by_dtype.items()
    )


def shown(row, value):
    """Return a result and its dtype in words, or the name of the error."""
    if isinstance(value, Exception):
        return type(value).__name__
    if row.view:
        return f"shape {value.shape} {dtypes(value)}"
    text = summary(value) if row.draws else numbers(value)
    return f"{text} {dtypes(value)}".strip()


def reported(row, found):
    """Return what to say of a row: once where nothing differs, or of each."""
    if alike(row, found) and not row.view:
        return {"all": f"{numbers(found['torch'])} {kinds(found)}".strip()}
    return {name: shown(row, found[name]) for name in FRAMEWORKS}


def as_text(row, found):
    """Return a row with its results as lines of text."""
    own = "".join(f", {name} = {value}" for name, value in row.given.items())
    lines, said = [f"{row.title}{own}"], reported(row, found)
    for framework, text in written(row).items():
        lines.append(f"  {LABELS[framework]}: {text}".replace("\n", "\n    "))
        if framework == "numpy":
            lines.append(f"    gives {shown(row, found[framework])}")
        elif framework in said:
            lines.append(f"    gives {said[framework]}")
    return "\n".join(
        [
            *lines,
            *(f"  all give {said[name]}" for name in said if name == "all"),
        ]
    )


def as_html(row, found):
    """Return a row with its results as a body of a table, with an id."""
    said, texts = reported(row, found), written(row)
    own = [
        f" <small>{element('code', f'{name} = {row.given[name]}')}</small>"
        for name in row.given
    ]
    mark = " <em>differs</em>" if row.differs else ""
    said_of = f"{row.title}{''.join(own)}{mark}"
    head = f'<th colspan="3" scope="rowgroup">{said_of}</th>'
    cells = [
        element("code", texts[name])
        + (element("samp", said[name]) if name in said else "")
        for name in FRAMEWORKS
    ]
    lines = [head, "".join(f"<td>{cell}</td>" for cell in cells)]
    below = [element("samp", said["all"])] if "all" in said else []
    if row.numpy:
        label = element("small", LABELS["numpy"])
        result = element("samp", shown(row, found["numpy"]))
        below.append(label + element("code", texts["numpy"]) + result)
    lines += [f'<td colspan="3">{part}</td>' for part in below]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<tbody id="{row.name}">{body}</tbody>'


class Table:
    """Rows with each framework's results, as text and as an HTML table."""

    def __init__(self, group):
        """Run all rows of a group."""
        self.found = [(row, results(row)) for row in rows(group)]

    def __repr__(self):
        """Return the rows as text."""
        return "\n\n".join(as_text(row, found) for row, found in self.found)

    def _repr_html_(self):
        names = "".join(
            f'<th scope="col">{name}</th>' for name in FRAMEWORKS.values()
        )
        body = "".join(as_html(row, found) for row, found in self.found)
        return f"<table><thead><tr>{names}</tr></thead>{body}</table>"


class Creation:
    """How arrays are made."""

    zeros = Row(
        "Zeros",
        lambda: torch.zeros(2, 3),
        lambda: tf.zeros([2, 3]),
        lambda: jnp.zeros((2, 3)),
    )
    empty = Row(
        "Uninitialized memory (zeros in JAX before 0.11)",
        lambda: tuple(torch.empty(2, 3).shape),
        lambda: tuple(tf.zeros([2, 3]).shape),
        lambda: jnp.empty((2, 3)).shape,
    )
    arange = Row(
        "A range",
        lambda: torch.arange(5),
        lambda: tf.range(5),
        lambda: jnp.arange(5),
        numpy=lambda: np.arange(5),
    )
    arange_float = Row(
        "A range in steps",
        lambda: torch.arange(0.0, 1.0, 0.25),
        lambda: tf.range(0.0, 1.0, 0.25),
        lambda: jnp.arange(0.0, 1.0, 0.25),
        numpy=lambda: np.arange(0.0, 1.0, 0.25),
    )
    linspace = Row(
        "Even spacing with both ends",
        lambda: torch.linspace(0, 1, 5),
        lambda: tf.linspace(0.0, 1.0, 5),
        lambda: jnp.linspace(0, 1, 5),
    )
    tensor = Row(
        "From a list of floats",
        lambda: torch.tensor([0.5, 2.0]),
        lambda: tf.constant([0.5, 2.0]),
        lambda: jnp.array([0.5, 2.0]),
        numpy=lambda: np.array([0.5, 2.0]),
    )
    tensor_integers = Row(
        "From a list of integers",
        lambda: torch.tensor([1, 2]),
        lambda: tf.constant([1, 2]),
        lambda: jnp.array([1, 2]),
        numpy=lambda: np.array([1, 2]),
    )
    from_numpy = Row(
        "From a NumPy array",
        lambda: torch.from_numpy(np.ones(2)),
        lambda: tf.convert_to_tensor(np.ones(2)),
        lambda: jnp.asarray(np.ones(2)),
    )

    def _torch():
        n = np.zeros(2)
        t = torch.from_numpy(n)
        n[0] = 9
        return t

    def _tensorflow():
        n = np.zeros(2)
        t = tf.convert_to_tensor(n)
        n[0] = 9
        return t

    def _jax():
        n = np.zeros(2)
        t = jnp.array(n)
        n[0] = 9
        return t

    from_numpy_shared = Row(
        "Shared memory with NumPy",
        _torch,
        _tensorflow,
        _jax,
        differs=True,
    )
    numpy = Row(
        "To NumPy",
        lambda x: x.numpy(),
        lambda x: x.numpy(),
        lambda x: np.asarray(x),
    )
    to_dtype = Row(
        "Another dtype",
        lambda x: x.to(torch.int32),
        lambda x: tf.cast(x, tf.int32),
        lambda x: x.astype(jnp.int32),
    )
    to_integer = Row(
        "Cast to integers: toward zero",
        lambda v: v.to(torch.int32),
        lambda v: tf.cast(v, tf.int32),
        lambda v: v.astype(jnp.int32),
        given={"v": [-1.7, -0.5, 2.9]},
    )
    one_hot = Row(
        "One-hot rows",
        lambda i: F.one_hot(i, 3),
        lambda i: tf.one_hot(i, 3),
        lambda i: jax.nn.one_hot(i, 3),
    )
    one_hot_outside = Row(
        "One-hot of an absent class",
        lambda i: F.one_hot(i, 3),
        lambda i: tf.one_hot(i, 3),
        lambda i: jax.nn.one_hot(i, 3),
        given={"i": [1, 3]},
        differs=True,
    )
    tril = Row(
        "Lower triangle",
        lambda s: torch.tril(s),
        lambda s: tf.linalg.band_part(s, -1, 0),
        lambda s: jnp.tril(s),
    )
    meshgrid = Row(
        "Grid of coordinates",
        lambda v, w: torch.meshgrid(v, w, indexing="xy")[0],
        lambda v, w: tf.meshgrid(v, w)[0],
        lambda v, w: jnp.meshgrid(v, w)[0],
    )


class Shapes:
    """Shapes of arrays."""

    shape = Row(
        "The shape",
        lambda x: tuple(x.shape),
        lambda x: tuple(x.shape),
        lambda x: x.shape,
    )
    reshape = Row(
        "Reshape",
        lambda x: x.reshape(3, -1),
        lambda x: tf.reshape(x, [3, -1]),
        lambda x: x.reshape(3, -1),
        fixed=True,
    )
    permute = Row(
        "Reorder axes",
        lambda nchw: nchw.permute(0, 2, 3, 1),
        lambda nchw: tf.transpose(nchw, [0, 2, 3, 1]),
        lambda nchw: jnp.transpose(nchw, (0, 2, 3, 1)),
    )
    unsqueeze = Row(
        "Add an axis",
        lambda v: v.unsqueeze(0),
        lambda v: tf.expand_dims(v, 0),
        lambda v: v[None],
    )
    squeeze = Row(
        "Drop an axis of size 1",
        lambda nchw: nchw.squeeze(0),
        lambda nchw: tf.squeeze(nchw, 0),
        lambda nchw: nchw.squeeze(0),
    )
    squeeze_absent = Row(
        "Squeeze an axis of size 2",
        lambda x: x.squeeze(0),
        lambda x: tf.squeeze(x, 0),
        lambda x: x.squeeze(0),
        differs=True,
        fixed=True,
    )
    cat = Row(
        "Join along an axis",
        lambda x, y: torch.cat([x, y], dim=0),
        lambda x, y: tf.concat([x, y], axis=0),
        lambda x, y: jnp.concatenate([x, y], axis=0),
    )
    stack = Row(
        "Join along a new axis",
        lambda v, w: torch.stack([v, w], dim=1),
        lambda v, w: tf.stack([v, w], axis=1),
        lambda v, w: jnp.stack([v, w], axis=1),
    )
    split = Row(
        "Split into sizes 1 and 2",
        lambda v: v.split([1, 2]),
        lambda v: tf.split(v, [1, 2]),
        lambda v: jnp.split(v, [1]),
        fixed=True,
    )
    chunk_uneven = Row(
        "Split three into two",
        lambda v: v.chunk(2),
        lambda v: tf.split(v, 2),
        lambda v: jnp.split(v, 2),
        numpy=lambda v: np.array_split(v, 2),
        differs=True,
        fixed=True,
    )
    expand = Row(
        "Broadcast",
        lambda v: v.expand(2, -1),
        lambda v: tf.broadcast_to(v, [2, len(v)]),
        lambda v: jnp.broadcast_to(v, (2, len(v))),
    )
    repeat = Row(
        "Repeat the whole",
        lambda v: v.repeat(2),
        lambda v: tf.tile(v, [2]),
        lambda v: jnp.tile(v, 2),
    )
    repeat_interleave = Row(
        "Repeat each element",
        lambda v: v.repeat_interleave(2),
        lambda v: tf.repeat(v, 2),
        lambda v: jnp.repeat(v, 2),
    )
    flip = Row(
        "Reverse",
        lambda x: x.flip(1),
        lambda x: tf.reverse(x, [1]),
        lambda x: jnp.flip(x, 1),
    )
    roll = Row(
        "Rotate",
        lambda v: v.roll(1),
        lambda v: tf.roll(v, 1, axis=0),
        lambda v: jnp.roll(v, 1),
    )
    pad = Row(
        "Pad: PyTorch counts from the last axis",
        lambda x: F.pad(x, (1, 0, 0, 1)),
        lambda x: tf.pad(x, [[0, 1], [1, 0]]),
        lambda x: jnp.pad(x, ((0, 1), (1, 0))),
    )


class Indexing:
    """Reading and updating parts of arrays."""

    def _torch(x):
        return x[1, 2], x[0], x[:, 1]

    def _tensorflow(x):
        return x[1, 2], x[0], x[:, 1]

    def _jax(x):
        return x[1, 2], x[0], x[:, 1]

    index = Row(
        "An element, a row, a column",
        _torch,
        _tensorflow,
        _jax,
        fixed=True,
    )
    slice_backwards = Row(
        "A negative step",
        lambda v: v[::-1],
        lambda v: v[::-1],
        lambda v: v[::-1],
        differs=True,
        fixed=True,
    )
    index_select = Row(
        "Rows by number",
        lambda v, i: v[i],
        lambda v, i: tf.gather(v, i),
        lambda v, i: v[i],
    )
    index_python_list = Row(
        "Index with a Python list",
        lambda v: v[[2, 0]],
        lambda v: v[[2, 0]],
        lambda v: v[[2, 0]],
        numpy=lambda v: v[[2, 0]],
        differs=True,
        fixed=True,
    )

    def _jax(x, labels):
        return jnp.take_along_axis(x, labels[:, None], axis=1)[:, 0]

    gather = Row(
        "One element of each row",
        lambda x, labels: x.gather(1, labels[:, None])[:, 0],
        lambda x, labels: tf.gather(x, labels, axis=1, batch_dims=1),
        _jax,
    )
    masked_select = Row(
        "Elements where a mask is true",
        lambda v, mask: v[mask],
        lambda v, mask: tf.boolean_mask(v, mask),
        lambda v, mask: v[mask],
    )
    where = Row(
        "Choose by a mask",
        lambda v, w, mask: torch.where(mask, v, w),
        lambda v, w, mask: tf.where(mask, v, w),
        lambda v, w, mask: jnp.where(mask, v, w),
    )
    masked_fill = Row(
        "Fill where a mask is true",
        lambda v, mask: v.masked_fill(mask, 0.0),
        lambda v, mask: tf.where(mask, 0.0, v),
        lambda v, mask: jnp.where(mask, 0.0, v),
    )
    nonzero = Row(
        "Indices where a mask is true",
        lambda mask: mask.nonzero(),
        lambda mask: tf.where(mask),
        lambda mask: jnp.argwhere(mask),
    )
    outside = Row(
        "Read outside",
        lambda v: v[torch.tensor(7)],
        lambda v: tf.gather(v, 7),
        lambda v: v[jnp.array(7)],
        numpy=lambda v: v[7],
        differs=True,
        fixed=True,
    )
    negative_index = Row(
        "Negative indices",
        lambda v: v[torch.tensor(-1)],
        lambda v: tf.gather(v, -1),
        lambda v: v[jnp.array(-1)],
        differs=True,
        fixed=True,
    )

    def _torch(v):
        v[0] = 9.0
        return v

    set = Row(
        "Set one element",
        _torch,
        lambda v: tf.tensor_scatter_nd_update(v, [[0]], [9.0]),
        lambda v: v.at[0].set(9.0),
    )

    def _torch(v):
        v[0] = 9.0
        return v

    def _tensorflow(v):
        v[0] = 9.0
        return v

    def _jax(v):
        v[0] = 9.0
        return v

    def _numpy(v):
        v[0] = 9.0
        return v

    set_in_place = Row(
        "Set one element in place",
        _torch,
        _tensorflow,
        _jax,
        numpy=_numpy,
        differs=True,
        fixed=True,
    )

    def _torch(v):
        part = v[:2]
        part += 1
        return v

    def _tensorflow(v):
        part = v[:2]
        part += 1
        return v

    def _jax(v):
        part = v[:2]
        part += 1
        return v

    def _numpy(v):
        part = v[:2]
        part += 1
        return v

    alias = Row(
        "Does a slice share memory?",
        _torch,
        _tensorflow,
        _jax,
        numpy=_numpy,
        differs=True,
        fixed=True,
    )
    index_add = Row(
        "Scatter-add: repeats count",
        lambda v, i: v.index_add(0, i, torch.ones(len(i))),
        lambda v, i: tf.tensor_scatter_nd_add(v, i[:, None], tf.ones(len(i))),
        lambda v, i: v.at[i].add(1.0),
    )

    def _torch(v, i):
        v[i] += 1
        return v

    def _numpy(v, i):
        v[i] += 1
        return v

    scatter_repeated = Row(
        "v[i] += 1 where an index repeats",
        _torch,
        lambda v, i: tf.tensor_scatter_nd_add(v, i[:, None], tf.ones(len(i))),
        lambda v, i: v.at[i].add(1.0),
        numpy=_numpy,
        given={"i": [0, 0]},
        differs=True,
        fixed=True,
    )

    def _torch(v):
        v[torch.tensor(7)] = 9.0
        return v

    scatter_outside = Row(
        "Write outside",
        _torch,
        lambda v: tf.tensor_scatter_nd_update(v, [[7]], [9.0]),
        lambda v: v.at[7].set(9.0),
        differs=True,
        fixed=True,
    )
    segment_sum = Row(
        "Sum by group",
        lambda w, g: torch.zeros(3).scatter_add(0, g, w),
        lambda w, g: tf.math.unsorted_segment_sum(w, g, 3),
        lambda w, g: jax.ops.segment_sum(w, g, 3),
        given={"g": [2, 0, 2]},
        fixed=True,
    )
    narrow = Row(
        "A slice that starts at a variable",
        lambda v: v.narrow(0, 1, 2),
        lambda v: tf.slice(v, [1], [2]),
        lambda v: jax.lax.dynamic_slice(v, (1,), (2,)),
        fixed=True,
    )
    narrow_outside = Row(
        "A slice that runs over the end",
        lambda v: v.narrow(0, 2, 2),
        lambda v: tf.slice(v, [2], [2]),
        lambda v: jax.lax.dynamic_slice(v, (2,), (2,)),
        differs=True,
        fixed=True,
    )


class Sorting:
    """Sorting and counting."""

    sort = Row(
        "Sort",
        lambda v: v.sort().values,
        lambda v: tf.sort(v),
        lambda v: jnp.sort(v),
    )
    sort_nan = Row(
        "Sort with NaN",
        lambda v: v.sort().values,
        lambda v: tf.sort(v),
        lambda v: jnp.sort(v),
        given={"v": [float("nan"), 3.0, 1.0]},
        differs=True,
    )
    argsort = Row(
        "Argsort, stable",
        lambda v: v.argsort(stable=True),
        lambda v: tf.argsort(v, stable=True),
        lambda v: jnp.argsort(v),
    )
    sort_descending = Row(
        "Sort, largest first",
        lambda v: v.sort(descending=True).values,
        lambda v: tf.sort(v, direction="DESCENDING"),
        lambda v: jnp.sort(v, descending=True),
    )
    topk = Row(
        "The two largest",
        lambda v: v.topk(2).values,
        lambda v: tf.math.top_k(v, 2).values,
        lambda v: jax.lax.top_k(v, 2)[0],
        fixed=True,
    )
    unique = Row(
        "Unique values",
        lambda k: k.unique(),
        lambda k: tf.sort(tf.unique(k).y),
        lambda k: jnp.unique(k),
    )
    unique_order = Row(
        "Order of unique values",
        lambda k: k.unique(),
        lambda k: tf.unique(k).y,
        lambda k: jnp.unique(k),
        differs=True,
        fixed=True,
    )
    bincount = Row(
        "Count each value",
        lambda i: torch.bincount(i, minlength=3),
        lambda i: tf.math.bincount(i, minlength=3),
        lambda i: jnp.bincount(i, length=3),
    )


class Arithmetic:
    """Operations on each element."""

    promotion = Row(
        "Integers plus floats",
        lambda k: k + 0.5 * torch.ones(4),
        lambda k: tf.cast(k, tf.float32) + 0.5 * tf.ones(4),
        lambda k: k + 0.5 * jnp.ones(4),
        fixed=True,
    )
    promotion_none = Row(
        "Integers plus floats, no cast",
        lambda v, i: i + v[:2],
        lambda v, i: i + v[:2],
        lambda v, i: i + v[:2],
        differs=True,
        fixed=True,
    )
    true_divide = Row(
        "Divide integers",
        lambda k, d: k / d,
        lambda k, d: k / d,
        lambda k, d: k / d,
        numpy=lambda k, d: k / d,
    )
    floor_divide = Row(
        "Whole-number division",
        lambda k, d: k // d,
        lambda k, d: k // d,
        lambda k, d: k // d,
    )
    remainder = Row(
        "Remainder",
        lambda k, d: k % d,
        lambda k, d: k % d,
        lambda k, d: k % d,
    )
    divide_by_zero = Row(
        "Integers divided by zero",
        lambda k: k // 0,
        lambda k: k // 0,
        lambda k: k // 0,
        differs=True,
        fixed=True,
    )
    round = Row(
        "Round: halves go to the even number",
        lambda v: v.round(),
        lambda v: tf.round(v),
        lambda v: jnp.round(v),
        given={"v": [0.5, 1.5, 2.5]},
    )
    overflow = Row(
        "Overflow of int32",
        lambda k: k.to(torch.int32) + 1,
        lambda k: tf.cast(k, tf.int32) + 1,
        lambda k: k.astype(jnp.int32) + 1,
        given={"k": [2147483647]},
    )
    clamp = Row(
        "Clip",
        lambda v: v.clamp(1.5, 2.5),
        lambda v: tf.clip_by_value(v, 1.5, 2.5),
        lambda v: v.clip(1.5, 2.5),
    )
    clamp_nan = Row(
        "Clip NaN",
        lambda v: v.clamp(0, 1),
        lambda v: tf.clip_by_value(v, 0, 1),
        lambda v: v.clip(0, 1),
        given={"v": [float("nan"), 5.0]},
    )
    maximum = Row(
        "The larger of two, with NaN",
        lambda v, w: torch.maximum(v, w),
        lambda v, w: tf.maximum(v, w),
        lambda v, w: jnp.maximum(v, w),
        given={"v": [float("nan"), 5.0], "w": [1.0, 2.0]},
    )
    nan_to_num = Row(
        "Replace NaN",
        lambda v: v.nan_to_num(0.0),
        lambda v: tf.where(tf.math.is_nan(v), 0.0, v),
        lambda v: jnp.nan_to_num(v),
        given={"v": [float("nan"), 2.0]},
    )


class Reductions:
    """Many elements to one."""

    sum = Row(
        "Sum along an axis",
        lambda x: x.sum(dim=0),
        lambda x: tf.reduce_sum(x, axis=0),
        lambda x: x.sum(axis=0),
    )
    sum_keepdim = Row(
        "Sum, keeping the axis",
        lambda x: x.sum(dim=1, keepdim=True),
        lambda x: tf.reduce_sum(x, axis=1, keepdims=True),
        lambda x: x.sum(axis=1, keepdims=True),
    )
    sum_small_integers = Row(
        "Sum of int8",
        lambda k: k.to(torch.int8).sum(),
        lambda k: tf.reduce_sum(tf.cast(k, tf.int8)),
        lambda k: k.astype(jnp.int8).sum(),
        given={"k": [100, 100]},
        differs=True,
    )
    mean = Row(
        "Mean",
        lambda x: x.mean(dim=1),
        lambda x: tf.reduce_mean(x, axis=1),
        lambda x: x.mean(axis=1),
    )
    mean_integers = Row(
        "Mean of integers",
        lambda k: k.mean(),
        lambda k: tf.reduce_mean(k),
        lambda k: k.mean(),
        differs=True,
        fixed=True,
    )

    def _tensorflow(v):
        n = len(v)
        return tf.math.reduce_std(v) * (n / (n - 1)) ** 0.5

    std = Row(
        "Standard deviation, divided by n − 1",
        lambda v: v.std(),
        _tensorflow,
        lambda v: v.std(ddof=1),
    )
    std_default = Row(
        "Standard deviation by default",
        lambda v: v.std(),
        lambda v: tf.math.reduce_std(v),
        lambda v: v.std(),
        numpy=lambda v: v.std(),
        differs=True,
        meaning=(
            lambda v: np.std(v, ddof=1),
            lambda v: np.std(v),
            lambda v: np.std(v),
        ),
    )
    max = Row(
        "Maximum",
        lambda x: x.amax(dim=1),
        lambda x: tf.reduce_max(x, axis=1),
        lambda x: x.max(axis=1),
    )
    max_pair = Row(
        "Maximum with an axis",
        lambda x: x.max(dim=1),
        lambda x: tf.reduce_max(x, axis=1),
        lambda x: x.max(axis=1),
        differs=True,
        fixed=True,
    )
    max_nan = Row(
        "Maximum with NaN",
        lambda v: v.max(),
        lambda v: tf.reduce_max(v),
        lambda v: v.max(),
        given={"v": [1.0, float("nan"), 3.0]},
    )
    argmax = Row(
        "Argmax, ties: the first",
        lambda v: v.argmax(),
        lambda v: tf.argmax(v),
        lambda v: v.argmax(),
        given={"v": [1.0, 3.0, 3.0]},
    )
    argmax_nan = Row(
        "Argmax with NaN",
        lambda v: v.argmax(),
        lambda v: tf.argmax(v),
        lambda v: v.argmax(),
        given={"v": [1.0, float("nan"), 3.0]},
        differs=True,
    )
    argmax_axis = Row(
        "Argmax without an axis",
        lambda x: x.argmax(),
        lambda x: tf.argmax(x),
        lambda x: x.argmax(),
        differs=True,
        fixed=True,
    )
    cumsum = Row(
        "Running sum",
        lambda v: v.cumsum(0),
        lambda v: tf.cumsum(v),
        lambda v: v.cumsum(),
    )

    def _torch(mask):
        return mask.any(), mask.all()

    def _tensorflow(mask):
        return tf.reduce_any(mask), tf.reduce_all(mask)

    def _jax(mask):
        return mask.any(), mask.all()

    any = Row(
        "Any, all",
        _torch,
        _tensorflow,
        _jax,
    )
    logsumexp = Row(
        "Log of a sum of exponentials",
        lambda x: x.logsumexp(dim=1),
        lambda x: tf.reduce_logsumexp(x, axis=1),
        lambda x: jax.nn.logsumexp(x, axis=1),
    )

    def _tensorflow(v, s):
        s = tf.sort(v)
        return s[(len(v) - 1) // 2]

    median = Row(
        "Median of an even number",
        lambda v: v.median(),
        _tensorflow,
        lambda v: jnp.median(v),
        given={"v": [1.0, 2.0, 3.0, 4.0]},
        differs=True,
        meaning=(
            lambda v: np.sort(v)[(len(v) - 1) // 2],
            lambda v: np.sort(v)[(len(v) - 1) // 2],
            lambda v: np.median(v),
        ),
    )


class Algebra:
    """Linear algebra."""

    matmul = Row(
        "Matrix product",
        lambda a, b: a @ b,
        lambda a, b: a @ b,
        lambda a, b: a @ b,
    )
    matmul_vector = Row(
        "Matrix times vector",
        lambda v, x: x @ v,
        lambda v, x: tf.linalg.matvec(x, v),
        lambda v, x: x @ v,
    )
    matmul_vector_operator = Row(
        "The operator @ with a vector",
        lambda v, x: x @ v,
        lambda v, x: x @ v,
        lambda v, x: x @ v,
        differs=True,
        fixed=True,
    )
    dot = Row(
        "Inner product",
        lambda v, w: v @ w,
        lambda v, w: tf.tensordot(v, w, 1),
        lambda v, w: v @ w,
    )
    bmm = Row(
        "Batch of matrix products",
        lambda nchw: torch.bmm(nchw[0], nchw[0]),
        lambda nchw: tf.matmul(nchw[0], nchw[0]),
        lambda nchw: nchw[0] @ nchw[0],
    )
    einsum = Row(
        "Einstein sum",
        lambda x, y: torch.einsum("ij,ij->i", x, y),
        lambda x, y: tf.einsum("ij,ij->i", x, y),
        lambda x, y: jnp.einsum("ij,ij->i", x, y),
    )
    solve = Row(
        "Solve s z = c",
        lambda s, c: torch.linalg.solve(s, c),
        lambda s, c: tf.linalg.solve(s, c[:, None])[:, 0],
        lambda s, c: jnp.linalg.solve(s, c),
        given={"c": [1.0, 2.0]},
        tolerance=1e-3,
    )
    inv = Row(
        "Inverse",
        lambda s: torch.linalg.inv(s),
        lambda s: tf.linalg.inv(s),
        lambda s: jnp.linalg.inv(s),
        tolerance=1e-3,
    )
    inv_singular = Row(
        "Inverse of a singular matrix",
        lambda s: torch.linalg.inv(s),
        lambda s: tf.linalg.inv(s),
        lambda s: jnp.linalg.inv(s),
        numpy=lambda s: np.linalg.inv(s),
        given={"s": [[1.0, 1.0], [1.0, 1.0]]},
        differs=True,
    )
    svd = Row(
        "Singular values",
        lambda x: torch.linalg.svdvals(x),
        lambda x: tf.linalg.svd(x, compute_uv=False),
        lambda x: jnp.linalg.svd(x, compute_uv=False),
        tolerance=1e-3,
    )

    def _torch(x):
        found = torch.linalg.svd(x, full_matrices=False)
        return [tuple(part.shape) for part in found]

    def _jax(x):
        return [part.shape for part in jnp.linalg.svd(x, full_matrices=False)]

    svd_order = Row(
        "Order of the factors of svd",
        _torch,
        lambda x: [tuple(part.shape) for part in tf.linalg.svd(x)],
        _jax,
        differs=True,
        fixed=True,
    )
    eigh = Row(
        "Eigenvalues of a symmetric matrix",
        lambda s: torch.linalg.eigvalsh(s),
        lambda s: tf.linalg.eigvalsh(s),
        lambda s: jnp.linalg.eigvalsh(s),
        tolerance=1e-3,
    )
    cholesky = Row(
        "Cholesky factor",
        lambda s: torch.linalg.cholesky(s),
        lambda s: tf.linalg.cholesky(s),
        lambda s: jnp.linalg.cholesky(s),
        tolerance=1e-3,
    )
    cholesky_indefinite = Row(
        "Cholesky of an indefinite matrix",
        lambda s: torch.linalg.cholesky(s),
        lambda s: tf.linalg.cholesky(s),
        lambda s: jnp.linalg.cholesky(s),
        given={"s": [[-1.0]]},
        differs=True,
    )


class Layers:
    """Layers of networks."""

    linear = Row(
        "Dense layer: the transpose",
        lambda x, y, c: F.linear(x, y, c),
        lambda x, y, c: x @ tf.transpose(y) + c,
        lambda x, y, c: x @ y.T + c,
        given={"c": [1.0, 2.0]},
    )
    gelu = Row(
        "GELU with the error function",
        lambda v: F.gelu(v),
        lambda v: tf.nn.gelu(v),
        lambda v: jax.nn.gelu(v, approximate=False),
        tolerance=1e-4,
    )
    gelu_default = Row(
        "GELU by default",
        lambda v: F.gelu(v),
        lambda v: tf.nn.gelu(v),
        lambda v: jax.nn.gelu(v),
        differs=True,
        meaning=(
            lambda v: v / 2 * (1 + np.vectorize(math.erf)(v / 2**0.5)),
            lambda v: v / 2 * (1 + np.vectorize(math.erf)(v / 2**0.5)),
            lambda v: (
                v
                / 2
                * (1 + np.tanh((2 / np.pi) ** 0.5 * (v + 0.044715 * v**3)))
            ),
        ),
    )
    leaky_relu = Row(
        "Leaky ReLU by default",
        lambda v: F.leaky_relu(v),
        lambda v: tf.nn.leaky_relu(v),
        lambda v: jax.nn.leaky_relu(v),
        given={"v": [-1.0, 1.0]},
        differs=True,
        meaning=(
            lambda v: np.where(v > 0, v, 0.01 * v),
            lambda v: np.where(v > 0, v, 0.2 * v),
            lambda v: np.where(v > 0, v, 0.01 * v),
        ),
    )
    softmax = Row(
        "Softmax",
        lambda x: F.softmax(x, dim=1),
        lambda x: tf.nn.softmax(x),
        lambda x: jax.nn.softmax(x),
    )
    log_softmax = Row(
        "Log-softmax",
        lambda x: F.log_softmax(x, dim=1),
        lambda x: tf.nn.log_softmax(x),
        lambda x: jax.nn.log_softmax(x),
    )
    layer_norm = Row(
        "Layer normalization",
        lambda x: F.layer_norm(x, x.shape[1:]),
        lambda x: tf.keras.layers.LayerNormalization(epsilon=1e-5)(x),
        lambda x: jax.nn.standardize(x, epsilon=1e-5),
        tolerance=1e-3,
    )
    layer_norm_default = Row(
        "Layer normalization: default epsilon",
        lambda x: F.layer_norm(x, x.shape[1:]),
        lambda x: tf.keras.layers.LayerNormalization()(x),
        lambda x: jax.nn.standardize(x),
        given={"x": [[0.0, 0.01]]},
        differs=True,
        meaning=(
            lambda x: (
                (x - x.mean(1, keepdims=True))
                / (x.var(1, keepdims=True) + 1e-5) ** 0.5
            ),
            lambda x: (
                (x - x.mean(1, keepdims=True))
                / (x.var(1, keepdims=True) + 1e-3) ** 0.5
            ),
            lambda x: (
                (x - x.mean(1, keepdims=True))
                / (x.var(1, keepdims=True) + 1e-5) ** 0.5
            ),
        ),
        tolerance=1e-4,
    )
    conv2d = Row(
        "Convolution: order of the axes",
        lambda nchw, oihw: F.conv2d(nchw, oihw),
        lambda nhwc, hwio: tf.nn.conv2d(nhwc, hwio, 1, "VALID"),
        lambda nchw, oihw: jax.lax.conv(nchw, oihw, (1, 1), "VALID"),
        view={"tensorflow": lambda r: np.moveaxis(r, 3, 1)},
        tolerance=1e-3,
    )
    conv2d_same = Row(
        "Convolution with stride 2: where the padding goes",
        lambda nchw, oihw: F.conv2d(nchw, oihw, stride=2, padding=1)[0, 0],
        lambda nhwc, hwio: tf.nn.conv2d(nhwc, hwio, 2, "SAME")[0, :, :, 0],
        lambda nchw, oihw: jax.lax.conv(nchw, oihw, (2, 2), "SAME")[0, 0],
        differs=True,
        fixed=True,
    )

    def _jax(nchw):
        size = (1, 1, 2, 2)
        return jax.lax.reduce_window(
            nchw, -jnp.inf, jax.lax.max, size, size, "VALID"
        )

    max_pool = Row(
        "Max pooling",
        lambda nchw: F.max_pool2d(nchw, 2),
        lambda nhwc: tf.nn.max_pool2d(nhwc, 2, 2, "VALID"),
        _jax,
        view={"tensorflow": lambda r: np.moveaxis(r, 3, 1)},
    )

    def _jax(nchw):
        add, size = jax.lax.add, (1, 1, 2, 2)
        return jax.lax.reduce_window(nchw, 0.0, add, size, size, "VALID") / 4

    avg_pool = Row(
        "Average pooling",
        lambda nchw: F.avg_pool2d(nchw, 2),
        lambda nhwc: tf.nn.avg_pool2d(nhwc, 2, 2, "VALID"),
        _jax,
        view={"tensorflow": lambda r: np.moveaxis(r, 3, 1)},
    )
    interpolate = Row(
        "Enlarge an image",
        lambda nchw: F.interpolate(nchw, (8, 8), mode="bilinear"),
        lambda nhwc: tf.image.resize(nhwc, (8, 8)),
        lambda nchw: jax.image.resize(nchw, (1, 2, 8, 8), "bilinear"),
        view={"tensorflow": lambda r: np.moveaxis(r, 3, 1)},
    )
    interpolate_down = Row(
        "Shrink an image",
        lambda nchw: F.interpolate(nchw, (3, 3), mode="bilinear")[0, 0],
        lambda nhwc: tf.image.resize(nhwc, (3, 3))[0, :, :, 0],
        lambda nchw: jax.image.resize(nchw, (1, 2, 3, 3), "bilinear")[0, 0],
        differs=True,
        fixed=True,
    )

    def _torch(nchw):
        q = nchw.permute(0, 2, 1, 3) / 32
        return F.scaled_dot_product_attention(q, q, q)

    def _tensorflow(nchw):
        q = tf.transpose(nchw, [0, 2, 1, 3]) / 32
        p = tf.nn.softmax(q @ tf.linalg.matrix_transpose(q) / 2)
        return p @ q

    def _jax(nchw):
        q = nchw / 32
        return jax.nn.dot_product_attention(q, q, q)

    attention = Row(
        "Attention: order of the axes",
        _torch,
        _tensorflow,
        _jax,
        view={"jax": lambda r: r.swapaxes(1, 2)},
        tolerance=1e-3,
    )


class Losses:
    """Losses."""

    cross_entropy = Row(
        "Cross entropy from logits",
        lambda x, labels: F.cross_entropy(x, labels),
        lambda x, labels: tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        ),
        lambda x, labels: optax.softmax_cross_entropy_with_integer_labels(
            x, labels
        ).mean(),
        tolerance=1e-4,
    )
    cross_entropy_probabilities = Row(
        "Cross entropy, given probabilities",
        lambda x, labels: F.cross_entropy(F.softmax(x, 1), labels),
        lambda x, labels: tf.keras.losses.SparseCategoricalCrossentropy()(
            labels, tf.nn.softmax(x)
        ),
        lambda x, labels: optax.softmax_cross_entropy_with_integer_labels(
            jax.nn.softmax(x), labels
        ).mean(),
        differs=True,
        fixed=True,
    )
    cross_entropy_outside = Row(
        "Cross entropy, absent label",
        lambda x, labels: F.cross_entropy(x, labels),
        lambda x, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, x
        ),
        lambda x, labels: optax.softmax_cross_entropy_with_integer_labels(
            x, labels
        ).mean(),
        given={"labels": [0, 7]},
        differs=True,
    )
    bce_with_logits = Row(
        "Binary cross entropy from logits",
        lambda v, mask: F.binary_cross_entropy_with_logits(v, mask.float()),
        lambda v, mask: tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(
                tf.cast(mask, tf.float32), v
            )
        ),
        lambda v, mask: optax.sigmoid_binary_cross_entropy(
            v, mask.astype(float)
        ).mean(),
    )
    mse_loss = Row(
        "Squared error",
        lambda x, y: F.mse_loss(x, y),
        lambda x, y: tf.reduce_mean(tf.square(x - y)),
        lambda x, y: optax.squared_error(x, y).mean(),
    )
    mse_axis = Row(
        "Squared error: over which axes",
        lambda x, y: F.mse_loss(x, y),
        lambda x, y: tf.keras.losses.mse(y, x),
        lambda x, y: optax.squared_error(x, y).mean(),
        differs=True,
        fixed=True,
    )
    huber_loss = Row(
        "Huber",
        lambda x, y: F.huber_loss(x, y),
        lambda x, y: tf.keras.losses.Huber()(y, x),
        lambda x, y: optax.huber_loss(x, y).mean(),
    )
    kl_div = Row(
        "Kullback-Leibler: PyTorch and Optax take log p",
        lambda q, p: F.kl_div(p.log(), q, reduction="sum"),
        lambda q, p: tf.keras.losses.KLDivergence()(q, p),
        lambda q, p: optax.losses.kl_divergence(jnp.log(p), q),
        given={"p": [0.2, 0.8], "q": [0.5, 0.5]},
        fixed=True,
    )


class Random:
    """Random numbers."""

    def _torch():
        torch.manual_seed(1)
        first = torch.randn(2)
        torch.manual_seed(1)
        return torch.equal(first, torch.randn(2))

    def _tensorflow():
        tf.random.set_seed(1)
        first = tf.random.normal([2])
        tf.random.set_seed(1)
        return bool(tf.reduce_all(first == tf.random.normal([2])))

    def _jax():
        key = jax.random.key(1)
        first = jax.random.normal(key, 2)
        return bool((first == jax.random.normal(key, 2)).all())

    manual_seed = Row(
        "Seeds and keys",
        _torch,
        _tensorflow,
        _jax,
    )

    def _tensorflow():
        first = tf.random.normal([2])
        return bool(tf.reduce_all(first == tf.random.normal([2])))

    def _jax():
        key = jax.random.key(0)
        first = jax.random.normal(key, 2)
        return bool((first == jax.random.normal(key, 2)).all())

    randn_twice = Row(
        "Two draws in a row",
        lambda: torch.equal(torch.randn(2), torch.randn(2)),
        _tensorflow,
        _jax,
        differs=True,
    )

    def _torch():
        g = torch.Generator().manual_seed(1)
        return torch.rand(10000, generator=g)

    def _tensorflow():
        g = tf.random.Generator.from_seed(1)
        return g.uniform([10000])

    def _jax():
        key = jax.random.key(1)
        return jax.random.uniform(key, 10000)

    generator = Row(
        "A generator without global state",
        _torch,
        _tensorflow,
        _jax,
        draws=(0.5, 0.289, 0, 1),
    )
    rand = Row(
        "Uniform",
        lambda: torch.rand(10000),
        lambda: tf.random.uniform([10000]),
        lambda: jax.random.uniform(jax.random.key(0), 10000),
        draws=(0.5, 0.289, 0, 1),
    )
    randn = Row(
        "Normal",
        lambda: torch.randn(10000),
        lambda: tf.random.normal([10000]),
        lambda: jax.random.normal(jax.random.key(0), 10000),
        draws=(0, 1, -7, 7),
    )
    trunc_normal = Row(
        "Normal, cut at two deviations",
        lambda: torch.nn.init.trunc_normal_(torch.empty(10000), a=-2, b=2),
        lambda: tf.random.truncated_normal([10000]),
        lambda: jax.random.truncated_normal(jax.random.key(0), -2, 2, 10000),
        draws=(0, 0.88, -2, 2),
    )
    randint = Row(
        "Integers, without the upper end",
        lambda: torch.randint(0, 6, (10000,)),
        lambda: tf.random.uniform([10000], 0, 6, tf.int32),
        lambda: jax.random.randint(jax.random.key(0), 10000, 0, 6),
        draws=(2.5, 1.708, 0, 5),
    )
    bernoulli = Row(
        "Bernoulli",
        lambda: torch.bernoulli(torch.full((10000,), 0.3)),
        lambda: tf.cast(tf.random.uniform([10000]) < 0.3, tf.int32),
        lambda: jax.random.bernoulli(jax.random.key(0), 0.3, 10000),
        draws=(0.3, 0.458, 0, 1),
    )

    def _torch():
        p = torch.tensor([0.2, 0.8])
        return torch.multinomial(p, 10000, replacement=True)

    def _tensorflow():
        p = tf.constant([[0.2, 0.8]])
        return tf.random.categorical(tf.math.log(p), 10000)[0]

    def _jax():
        p = jnp.array([0.2, 0.8])
        return jax.random.categorical(
            jax.random.key(0), jnp.log(p), shape=10000
        )

    multinomial = Row(
        "A class from probabilities or logs",
        _torch,
        _tensorflow,
        _jax,
        draws=(0.8, 0.4, 0, 1),
    )
    randperm = Row(
        "Permutation",
        lambda: torch.randperm(10000),
        lambda: tf.random.shuffle(tf.range(10000)),
        lambda: jax.random.permutation(jax.random.key(0), 10000),
        draws=(4999.5, 2886.75, 0, 9999),
    )

    def _jax():
        keep = jax.random.bernoulli(jax.random.key(0), 0.75, 10000)
        return jnp.where(keep, 1 / 0.75, 0.0)

    dropout = Row(
        "Dropout: what stays is scaled up",
        lambda: F.dropout(torch.ones(10000), 0.25),
        lambda: tf.nn.dropout(tf.ones([10000]), 0.25),
        _jax,
        draws=(1, 0.577, 0, 1.3334),
    )


class Control:
    """Control flow and transformations."""

    if_ = Row(
        "A branch on a value",
        lambda x: x.sum() if x.sum() > 0 else -x.sum(),
        lambda x: tf.cond(
            tf.reduce_sum(x) > 0,
            lambda: tf.reduce_sum(x),
            lambda: -tf.reduce_sum(x),
        ),
        lambda x: jax.lax.cond(
            x.sum() > 0, lambda s: s, lambda s: -s, x.sum()
        ),
    )
    cond = Row(
        "A branch in a compiled program",
        lambda x: torch.cond(
            x.sum() > 0, lambda s: s.clone(), lambda s: -s, (x.sum(),)
        ),
        lambda x: tf.cond(
            tf.reduce_sum(x) > 0,
            lambda: tf.reduce_sum(x),
            lambda: -tf.reduce_sum(x),
        ),
        lambda x: jax.lax.cond(
            x.sum() > 0, lambda s: s, lambda s: -s, x.sum()
        ),
    )

    def _torch(v):
        def f(s):
            if s > 0:
                return s
            return -s

        return torch.compile(f, backend="eager")(v[0])

    def _tensorflow(v):
        @tf.function
        def f(s):
            if s > 0:
                return s
            return -s

        return f(v[0])

    def _jax(v):
        @jax.jit
        def f(s):
            if s > 0:
                return s
            return -s

        return f(v[0])

    compile_if = Row(
        "A Python if, compiled",
        _torch,
        _tensorflow,
        _jax,
        differs=True,
        fixed=True,
    )
    switch = Row(
        "One of several functions",
        lambda v, i: [torch.sin, torch.cos][i[0] % 2](v),
        lambda v, i: tf.switch_case(
            i[0] % 2, [lambda: tf.sin(v), lambda: tf.cos(v)]
        ),
        lambda v, i: jax.lax.switch(i[0] % 2, [jnp.sin, jnp.cos], v),
    )

    def _torch(v, s):
        s = v.abs().sum() + 1
        while s < 100:
            s = 2 * s
        return s

    def _tensorflow(v, s):
        s = tf.reduce_sum(tf.abs(v)) + 1
        return tf.while_loop(lambda s: s < 100, lambda s: (2 * s,), [s])[0]

    def _jax(v, s):
        s = jnp.abs(v).sum() + 1
        return jax.lax.while_loop(lambda s: s < 100, lambda s: 2 * s, s)

    while_ = Row(
        "While loop",
        _torch,
        _tensorflow,
        _jax,
    )

    def _torch(v, s):
        s, found = torch.tensor(0.0), []
        for e in v:
            s = 0.5 * s + e
            found.append(s)
        return torch.stack(found)

    def _jax(v):
        def step(s, e):
            s = 0.5 * s + e
            return s, s

        return jax.lax.scan(step, 0.0, v)[1]

    scan = Row(
        "A loop that carries and collects",
        _torch,
        lambda v: tf.scan(lambda s, e: 0.5 * s + e, v, tf.constant(0.0)),
        _jax,
    )
    vmap = Row(
        "The same for each row",
        lambda x: torch.func.vmap(lambda r: r / r.abs().sum())(x + 20),
        lambda x: tf.vectorized_map(
            lambda r: r / tf.reduce_sum(tf.abs(r)), x + 20
        ),
        lambda x: jax.vmap(lambda r: r / jnp.abs(r).sum())(x + 20),
    )
    compile = Row(
        "Compile a function",
        lambda x: torch.compile(lambda x: x * 2 + 1, backend="eager")(x),
        lambda x: tf.function(lambda x: x * 2 + 1, jit_compile=True)(x),
        lambda x: jax.jit(lambda x: x * 2 + 1)(x),
    )

    def _torch(v):
        f = torch.compile(lambda v: v[v > 1], backend="eager")
        return f(v)

    boolean_shape = Row(
        "A shape that depends on values, compiled",
        _torch,
        lambda v: tf.function(lambda v: v[v > 1])(v),
        lambda v: jax.jit(lambda v: v[v > 1])(v),
        differs=True,
        fixed=True,
    )

    def _torch(v, w):
        from torch.utils import _pytree

        return _pytree.tree_map(lambda t: t * 2, {"a": v, "b": [w]})

    def _tensorflow(v, w):
        return tf.nest.map_structure(lambda t: t * 2, {"a": v, "b": [w]})

    tree_map = Row(
        "Map over a tree of arrays",
        _torch,
        _tensorflow,
        lambda v, w: jax.tree.map(lambda t: t * 2, {"a": v, "b": [w]}),
    )


class Gradients:
    """Gradients."""

    def _torch(v):
        v.requires_grad_()
        (v**3).sum().backward()
        return v.grad

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_sum(v**3)
        return tape.gradient(loss, v)

    backward = Row(
        "Gradient of a scalar",
        _torch,
        _tensorflow,
        lambda v: jax.grad(lambda v: (v**3).sum())(v),
    )

    def _torch(v):
        f = torch.func.grad_and_value(lambda v: (v**2).sum())
        gradient, value = f(v)
        return value, gradient

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            value = tf.reduce_sum(v**2)
        return value, tape.gradient(value, v)

    grad_and_value = Row(
        "Value and gradient at once",
        _torch,
        _tensorflow,
        lambda v: jax.value_and_grad(lambda v: (v**2).sum())(v),
    )

    def _torch(v):
        v.requires_grad_()
        for _ in range(2):
            (v**2).sum().backward()
        return v.grad

    def _tensorflow(v):
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(v)
                loss = tf.reduce_sum(v**2)
            g = tape.gradient(loss, v)
        return g

    def _jax(v):
        for _ in range(2):
            g = jax.grad(lambda v: (v**2).sum())(v)
        return g

    backward_twice = Row(
        "Two backward passes in a row",
        _torch,
        _tensorflow,
        _jax,
        differs=True,
        fixed=True,
    )

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_sum(v * tf.stop_gradient(v))
        return tape.gradient(loss, v)

    detach = Row(
        "Stop the gradient",
        lambda v: torch.func.grad(lambda v: (v * v.detach()).sum())(v),
        _tensorflow,
        lambda v: jax.grad(lambda v: (v * jax.lax.stop_gradient(v)).sum())(v),
    )

    def _torch(v):
        v.requires_grad_()
        (v**2).backward()
        return v.grad

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            squares = v**2
        return tape.gradient(squares, v)

    backward_vector = Row(
        "Gradient of several results",
        _torch,
        _tensorflow,
        lambda v: jax.grad(lambda v: v**2)(v),
        differs=True,
        fixed=True,
    )

    def _torch(v, w):
        v.requires_grad_()
        w.sum().requires_grad_().backward()
        return str(v.grad)

    def _tensorflow(v, w):
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_sum(w)
        return str(tape.gradient(loss, v))

    grad_unused = Row(
        "Gradient for an unused input",
        _torch,
        _tensorflow,
        lambda v, w: jax.grad(lambda v: w.sum())(v),
        differs=True,
        fixed=True,
    )

    def _tensorflow(k):
        with tf.GradientTape() as tape:
            tape.watch(k)
            loss = tf.reduce_sum(k * k)
        return str(tape.gradient(loss, k))

    grad_integers = Row(
        "Gradient for integers",
        lambda k: k.requires_grad_(),
        _tensorflow,
        lambda k: jax.grad(lambda k: (k * k).sum())(k),
        differs=True,
        fixed=True,
    )

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            squares = v**2
        return tape.jacobian(squares, v)

    jacobian = Row(
        "Jacobian",
        lambda v: torch.func.jacrev(lambda v: v**2)(v),
        _tensorflow,
        lambda v: jax.jacrev(lambda v: v**2)(v),
    )

    def _tensorflow(v):
        with tf.GradientTape() as outer:
            outer.watch(v)
            with tf.GradientTape() as inner:
                inner.watch(v)
                loss = tf.reduce_sum(v**3)
            g = inner.gradient(loss, v)
        return outer.jacobian(g, v)

    hessian = Row(
        "Second derivatives",
        lambda v: torch.func.hessian(lambda v: (v**3).sum())(v),
        _tensorflow,
        lambda v: jax.hessian(lambda v: (v**3).sum())(v),
    )

    def _tensorflow(v, w):
        with tf.autodiff.ForwardAccumulator(v, w) as forward:
            result = tf.sin(v)
        return forward.jvp(result)

    jvp = Row(
        "Forward mode: derivative along a direction",
        lambda v, w: torch.func.jvp(torch.sin, (v,), (w,))[1],
        _tensorflow,
        lambda v, w: jax.jvp(jnp.sin, (v,), (w,))[1],
        tolerance=1e-4,
    )

    def _tensorflow(v, w):
        with tf.GradientTape() as tape:
            tape.watch(v)
            result = tf.sin(v)
        return tape.gradient(result, v, output_gradients=w)

    vjp = Row(
        "Backward mode with weights",
        lambda v, w: torch.func.vjp(torch.sin, v)[1](w)[0],
        _tensorflow,
        lambda v, w: jax.vjp(jnp.sin, v)[1](w)[0],
        tolerance=1e-4,
    )

    def _torch(w, x):
        f = torch.func.grad(lambda w, r: (w @ r) ** 2)
        return torch.func.vmap(f, (None, 0))(w, x)

    def _tensorflow(w, x):
        with tf.GradientTape() as tape:
            tape.watch(w)
            losses = tf.linalg.matvec(x, w) ** 2
        return tape.jacobian(losses, w)

    def _jax(w, x):
        f = jax.grad(lambda w, r: (w @ r) ** 2)
        return jax.vmap(f, (None, 0))(w, x)

    per_example_gradients = Row(
        "A gradient for each example",
        _torch,
        _tensorflow,
        _jax,
        tolerance=1e-3,
    )

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.nn.relu(v)
        return tape.gradient(loss, v)[0]

    relu_gradient = Row(
        "Slope of ReLU at zero",
        lambda v: torch.func.grad(F.relu)(v[0]),
        _tensorflow,
        lambda v: jax.grad(jax.nn.relu)(v[0]),
        given={"v": [0.0]},
    )

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.abs(v)
        return tape.gradient(loss, v)[0]

    abs_gradient = Row(
        "Slope of the absolute value at zero",
        lambda v: torch.func.grad(torch.abs)(v[0]),
        _tensorflow,
        lambda v: jax.grad(jnp.abs)(v[0]),
        given={"v": [0.0]},
        differs=True,
    )

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_max(v)
        return tape.gradient(loss, v)

    max_gradient = Row(
        "Gradient of a maximum that occurs twice",
        lambda v: torch.func.grad(torch.max)(v),
        _tensorflow,
        lambda v: jax.grad(jnp.max)(v),
        given={"v": [3.0, 3.0, 1.0]},
    )

    def _torch(v):
        def f(s):
            return torch.where(s > 0, s.sqrt(), 0 * s)

        return torch.func.grad(f)(v[0])

    def _tensorflow(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.where(v > 0, tf.sqrt(v), 0 * v)
        return tape.gradient(loss, v)[0]

    def _jax(v):
        def f(s):
            return jnp.where(s > 0, jnp.sqrt(s), 0 * s)

        return jax.grad(f)(v[0])

    where_gradient = Row(
        "NaN from the branch not taken",
        _torch,
        _tensorflow,
        _jax,
        given={"v": [0.0]},
        differs=True,
        meaning=(
            lambda v: np.float32(0.5 / np.sqrt(v[0]) if v[0] > 0 else np.nan),
            lambda v: np.float32(0.5 / np.sqrt(v[0]) if v[0] > 0 else 0),
            lambda v: np.float32(0.5 / np.sqrt(v[0]) if v[0] > 0 else np.nan),
        ),
    )

    def _torch(v, w):
        norm = torch.linalg.vector_norm(torch.cat([v, w]))
        c = (1 / norm).clamp(max=1)
        return [v * c, w * c]

    def _jax(v, w):
        norm = jnp.sqrt(jnp.sum(v**2) + jnp.sum(w**2))
        return [g * jnp.minimum(1, 1 / norm) for g in (v, w)]

    clip_grad_norm = Row(
        "Clip by the global norm",
        _torch,
        lambda v, w: tf.clip_by_global_norm([v, w], 1.0)[0],
        _jax,
        fixed=True,
    )


class Devices:
    """Devices and precision."""

    device = Row(
        "Where an array is",
        lambda x: str(x.device),
        lambda x: x.device,
        lambda x: str(x.device),
        differs=True,
    )

    def _tensorflow(x):
        with tf.device("CPU:0"):
            moved = tf.identity(x)
        return moved

    to = Row(
        "Move to a device",
        lambda x: x.to("cpu"),
        _tensorflow,
        lambda x: jax.device_put(x, jax.devices("cpu")[0]),
    )
    cuda_available = Row(
        "Is there a GPU?",
        lambda: torch.cuda.is_available(),
        lambda: bool(tf.config.list_physical_devices("GPU")),
        lambda: any(d.platform == "gpu" for d in jax.devices()),
    )

    def _torch(x):
        torch.cpu.synchronize()
        return x

    def _tensorflow(x):
        tf.test.experimental.sync_devices()
        return x

    synchronize = Row(
        "Wait for the result",
        _torch,
        _tensorflow,
        lambda x: x.block_until_ready(),
    )

    def _torch():
        m = torch.ones(2, 3, device="meta")
        return tuple((m @ m.T).shape)

    def _tensorflow():
        f = tf.function(lambda x: x @ tf.transpose(x))
        g = f.get_concrete_function(tf.TensorSpec([2, 3]))
        return tuple(g.output_shapes)

    def _jax(s):
        s = jax.ShapeDtypeStruct((2, 3), jnp.float32)
        return jax.eval_shape(lambda x: x @ x.T, s).shape

    meta = Row(
        "Shapes without computing",
        _torch,
        _tensorflow,
        _jax,
    )

    def _jax():
        with jax.enable_x64(True):
            t = jnp.ones(1, jnp.float64)
        return t

    float64 = Row(
        "float64",
        lambda: torch.ones(1, dtype=torch.float64),
        lambda: tf.ones(1, tf.float64),
        _jax,
    )
    float64_asked = Row(
        "float64 without enabling it",
        lambda v: v.to(torch.float64),
        lambda v: tf.cast(v, tf.float64),
        lambda v: v.astype(jnp.float64),
    )


class Training:
    """Training and saving."""

    def _torch(v):
        p = torch.nn.Parameter(v)
        step = torch.optim.SGD([p], lr=0.1)
        (p**2).sum().backward()
        step.step()
        return p

    def _tensorflow(v):
        p = tf.Variable(v)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(p**2)
        p.assign_sub(0.1 * tape.gradient(loss, p))
        return p

    def _jax(v):
        p = v
        g = jax.grad(lambda p: (p**2).sum())(p)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, g)

    sgd = Row(
        "One step of gradient descent",
        _torch,
        _tensorflow,
        _jax,
    )

    def _tensorflow():
        layer = tf.keras.layers.Dense(3)
        layer.build((None, 2))
        return tuple(layer.kernel.shape)

    def _jax():
        g = jax.nn.initializers.glorot_uniform()
        return g(jax.random.key(0), (2, 3)).shape

    linear_weight = Row(
        "Shape of the weights of 2 → 3",
        lambda: tuple(torch.nn.Linear(2, 3).weight.shape),
        _tensorflow,
        _jax,
        differs=True,
    )

    def _torch(v):
        torch.save({"v": v}, "v.pt")
        return torch.load("v.pt")["v"]

    def _tensorflow(v):
        tf.train.Checkpoint(v=tf.Variable(v)).write("v.tf")
        return tf.train.load_checkpoint("v.tf").get_tensor(
            "v/.ATTRIBUTES/VARIABLE_VALUE"
        )

    def _jax(v):
        np.savez("v.npz", v=v)
        return jnp.asarray(np.load("v.npz")["v"])

    save = Row(
        "Save and load arrays",
        _torch,
        _tensorflow,
        _jax,
    )

    def _torch(v):
        class Double(torch.nn.Module):
            def forward(self, v):
                return v * 2

        program = torch.export.export(Double(), (v,))
        return program.module()(v)

    def _tensorflow(v):
        m = tf.Module()
        m.f = tf.function(lambda v: v * 2, [tf.TensorSpec([None])])
        tf.saved_model.save(m, "double")
        return tf.saved_model.load("double").f(v)

    def _jax(v):
        from jax import export

        program = export.export(jax.jit(lambda v: v * 2))(v)
        return export.deserialize(program.serialize()).call(v)

    export = Row(
        "Save a program",
        _torch,
        _tensorflow,
        _jax,
    )

    def _torch():
        rows = torch.arange(4.0)
        return list(torch.utils.data.DataLoader(rows, batch_size=2))

    def _tensorflow():
        rows = tf.data.Dataset.from_tensor_slices(tf.range(4.0))
        return list(rows.batch(2))

    def _jax():
        rows = jnp.arange(4.0)
        return [rows[n : n + 2] for n in range(0, 4, 2)]

    dataloader = Row(
        "Batches of two",
        _torch,
        _tensorflow,
        _jax,
    )
