"""The same operations in PyTorch, TensorFlow and JAX, as code that is run."""

import ast
import dataclasses
import html
import inspect
import linecache
import logging
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorflow as tf
import torch
import torch.nn.functional as F

FRAMEWORKS = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
LABELS = FRAMEWORKS | {"numpy": "NumPy"}

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


@dataclasses.dataclass(frozen=True)
class Row:
    """One operation as code in each framework; the last line is its result.

    `given` replaces some of INPUTS. `differs`: the results differ for them.
    `meaning` is what each framework computes, in NumPy, where they differ.
    `view` turns a framework's result, the array `r`, into PyTorch's layout.
    `draws` are mean, deviation, least and largest value of a random result.
    `fixed` says that the text holds for the shapes of INPUTS only.
    """

    name: str
    title: str
    torch: str
    tensorflow: str
    jax: str
    numpy: str = ""
    given: dict = dataclasses.field(default_factory=dict)
    differs: bool = False
    meaning: tuple = ()
    view: dict = dataclasses.field(default_factory=dict)
    draws: tuple = ()
    fixed: bool = False
    tolerance: float = 1e-5


def names_for(framework, given):
    """Return what a row's text may use: modules, and `given` as arrays."""
    modules = {
        "torch": {"torch": torch, "F": F},
        "tensorflow": {"tf": tf},
        "jax": {"jax": jax, "jnp": jnp, "optax": optax},
        "numpy": {},
    }
    array = {
        "torch": torch.tensor,
        "tensorflow": tf.constant,
        "jax": jnp.array,
        "numpy": np.array,
    }[framework]
    arrays = {name: array(value) for name, value in given.items()}
    return {"__name__": "__main__", "np": np, **modules[framework], **arrays}


def used(text):
    """Return the names that Python text reads."""
    return {
        node.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name)
    }


def inputs(row, drawn=None):
    """Return the inputs that a row reads: its own, `drawn`, or from INPUTS."""
    read = set().union(*map(used, written(row).values()))
    known = INPUTS | row.given if drawn is None else drawn
    return {name: value for name, value in known.items() if name in read}


def evaluate(text, framework, given):
    """Run text in a framework; return its last expression, or the error."""
    torch.manual_seed(0)
    tf.random.set_seed(0)
    logging.getLogger("tensorflow").setLevel("ERROR")
    file = f"<{framework} {hash(text)}>"
    linecache.cache[file] = (
        len(text),
        None,
        text.splitlines(keepends=True),
        file,
    )
    names = names_for(framework, given)
    *before, last = ast.parse(text).body
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(ast.Module(before, []), file, "exec"), names)
            return plain(
                eval(compile(ast.Expression(last.value), file, "eval"), names)
            )
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
    """Return {framework: text} of a row, NumPy's where it has one."""
    texts = {name: getattr(row, name) for name in [*FRAMEWORKS, "numpy"]}
    return {
        name: inspect.cleandoc(text) for name, text in texts.items() if text
    }


def results(row):
    """Run a row on its inputs; return {framework: result}."""
    return {
        n: evaluate(text, n, inputs(row)) for n, text in written(row).items()
    }


def as_torch(row, found):
    """Return the results of the three frameworks in PyTorch's layout."""
    return [
        eval(row.view[name], {"r": found[name], "np": np})
        if name in row.view
        else found[name]
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


def element(tag, text, **attributes):
    """Return an HTML element that holds text."""
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{given}>{html.escape(text, quote=False)}</{tag}>"


def as_html(row, found):
    """Return a row with its results as a body of a table, with an id."""
    said, texts = reported(row, found), written(row)
    own = [
        " " + element("code", f"{name} = {row.given[name]}")
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
        result = element("samp", shown(row, found["numpy"]))
        below.append(f"NumPy {element('code', texts['numpy'])} {result}")
    lines += [f'<td colspan="3">{part}</td>' for part in below]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<tbody id="{row.name}">{body}</tbody>'


class Table:
    """Rows with each framework's results, as text and as an HTML table."""

    def __init__(self, rows):
        """Run all rows."""
        self.found = [(row, results(row)) for row in rows]

    def __repr__(self):
        """Return the rows as text."""
        return "\n\n".join(as_text(row, found) for row, found in self.found)

    def _repr_html_(self):
        names = "".join(
            f'<th scope="col">{name}</th>' for name in FRAMEWORKS.values()
        )
        body = "".join(as_html(row, found) for row, found in self.found)
        return f"<table><thead><tr>{names}</tr></thead>{body}</table>"


CREATION = [
    Row(
        "torch-zeros",
        "Zeros",
        "torch.zeros(2, 3)",
        "tf.zeros([2, 3])",
        "jnp.zeros((2, 3))",
    ),
    Row(
        "torch-empty",
        "Uninitialized memory (zeros in JAX before 0.11)",
        "tuple(torch.empty(2, 3).shape)",
        "tuple(tf.zeros([2, 3]).shape)",
        "jnp.empty((2, 3)).shape",
    ),
    Row(
        "torch-arange",
        "A range",
        "torch.arange(5)",
        "tf.range(5)",
        "jnp.arange(5)",
        numpy="np.arange(5)",
    ),
    Row(
        "torch-arange-float",
        "A range in steps",
        "torch.arange(0.0, 1.0, 0.25)",
        "tf.range(0.0, 1.0, 0.25)",
        "jnp.arange(0.0, 1.0, 0.25)",
        numpy="np.arange(0.0, 1.0, 0.25)",
    ),
    Row(
        "torch-linspace",
        "Even spacing with both ends",
        "torch.linspace(0, 1, 5)",
        "tf.linspace(0.0, 1.0, 5)",
        "jnp.linspace(0, 1, 5)",
    ),
    Row(
        "torch-tensor",
        "From a list of floats",
        "torch.tensor([0.5, 2.0])",
        "tf.constant([0.5, 2.0])",
        "jnp.array([0.5, 2.0])",
        numpy="np.array([0.5, 2.0])",
    ),
    Row(
        "torch-tensor-integers",
        "From a list of integers",
        "torch.tensor([1, 2])",
        "tf.constant([1, 2])",
        "jnp.array([1, 2])",
        numpy="np.array([1, 2])",
    ),
    Row(
        "torch-from-numpy",
        "From a NumPy array",
        "torch.from_numpy(np.ones(2))",
        "tf.convert_to_tensor(np.ones(2))",
        "jnp.asarray(np.ones(2))",
    ),
    Row(
        "torch-from-numpy-shared",
        "Shared memory with NumPy",
        """
        n = np.zeros(2)
        t = torch.from_numpy(n)
        n[0] = 9
        t
        """,
        """
        n = np.zeros(2)
        t = tf.convert_to_tensor(n)
        n[0] = 9
        t
        """,
        """
        n = np.zeros(2)
        t = jnp.array(n)
        n[0] = 9
        t
        """,
        differs=True,
    ),
    Row("torch-numpy", "To NumPy", "x.numpy()", "x.numpy()", "np.asarray(x)"),
    Row(
        "torch-to-dtype",
        "Another dtype",
        "x.to(torch.int32)",
        "tf.cast(x, tf.int32)",
        "x.astype(jnp.int32)",
    ),
    Row(
        "torch-to-integer",
        "Cast to integers: toward zero",
        "v.to(torch.int32)",
        "tf.cast(v, tf.int32)",
        "v.astype(jnp.int32)",
        given={"v": [-1.7, -0.5, 2.9]},
    ),
    Row(
        "torch-one-hot",
        "One-hot rows",
        "F.one_hot(i, 3)",
        "tf.one_hot(i, 3)",
        "jax.nn.one_hot(i, 3)",
    ),
    Row(
        "torch-one-hot-outside",
        "One-hot of an absent class",
        "F.one_hot(i, 3)",
        "tf.one_hot(i, 3)",
        "jax.nn.one_hot(i, 3)",
        given={"i": [1, 3]},
        differs=True,
    ),
    Row(
        "torch-tril",
        "Lower triangle",
        "torch.tril(s)",
        "tf.linalg.band_part(s, -1, 0)",
        "jnp.tril(s)",
    ),
    Row(
        "torch-meshgrid",
        "Grid of coordinates",
        'torch.meshgrid(v, w, indexing="xy")[0]',
        "tf.meshgrid(v, w)[0]",
        "jnp.meshgrid(v, w)[0]",
    ),
]

SHAPES = [
    Row(
        "torch-shape",
        "The shape",
        "tuple(x.shape)",
        "tuple(x.shape)",
        "x.shape",
    ),
    Row(
        "torch-reshape",
        "Reshape",
        "x.reshape(3, -1)",
        "tf.reshape(x, [3, -1])",
        "x.reshape(3, -1)",
        fixed=True,
    ),
    Row(
        "torch-permute",
        "Reorder axes",
        "nchw.permute(0, 2, 3, 1)",
        "tf.transpose(nchw, [0, 2, 3, 1])",
        "jnp.transpose(nchw, (0, 2, 3, 1))",
    ),
    Row(
        "torch-unsqueeze",
        "Add an axis",
        "v.unsqueeze(0)",
        "tf.expand_dims(v, 0)",
        "v[None]",
    ),
    Row(
        "torch-squeeze",
        "Drop an axis of size 1",
        "nchw.squeeze(0)",
        "tf.squeeze(nchw, 0)",
        "nchw.squeeze(0)",
    ),
    Row(
        "torch-squeeze-absent",
        "Squeeze an axis of size 2",
        "x.squeeze(0)",
        "tf.squeeze(x, 0)",
        "x.squeeze(0)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-cat",
        "Join along an axis",
        "torch.cat([x, y], dim=0)",
        "tf.concat([x, y], axis=0)",
        "jnp.concatenate([x, y], axis=0)",
    ),
    Row(
        "torch-stack",
        "Join along a new axis",
        "torch.stack([v, w], dim=1)",
        "tf.stack([v, w], axis=1)",
        "jnp.stack([v, w], axis=1)",
    ),
    Row(
        "torch-split",
        "Split into sizes 1 and 2",
        "v.split([1, 2])",
        "tf.split(v, [1, 2])",
        "jnp.split(v, [1])",
        fixed=True,
    ),
    Row(
        "torch-chunk-uneven",
        "Split three into two",
        "v.chunk(2)",
        "tf.split(v, 2)",
        "jnp.split(v, 2)",
        numpy="np.array_split(v, 2)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-expand",
        "Broadcast",
        "v.expand(2, -1)",
        "tf.broadcast_to(v, [2, len(v)])",
        "jnp.broadcast_to(v, (2, len(v)))",
    ),
    Row(
        "torch-repeat",
        "Repeat the whole",
        "v.repeat(2)",
        "tf.tile(v, [2])",
        "jnp.tile(v, 2)",
    ),
    Row(
        "torch-repeat-interleave",
        "Repeat each element",
        "v.repeat_interleave(2)",
        "tf.repeat(v, 2)",
        "jnp.repeat(v, 2)",
    ),
    Row(
        "torch-flip",
        "Reverse",
        "x.flip(1)",
        "tf.reverse(x, [1])",
        "jnp.flip(x, 1)",
    ),
    Row(
        "torch-roll",
        "Rotate",
        "v.roll(1)",
        "tf.roll(v, 1, axis=0)",
        "jnp.roll(v, 1)",
    ),
    Row(
        "torch-pad",
        "Pad: PyTorch counts from the last axis",
        "F.pad(x, (1, 0, 0, 1))",
        "tf.pad(x, [[0, 1], [1, 0]])",
        "jnp.pad(x, ((0, 1), (1, 0)))",
    ),
]

INDEXING = [
    Row(
        "torch-index",
        "An element, a row, a column",
        "x[1, 2], x[0], x[:, 1]",
        "x[1, 2], x[0], x[:, 1]",
        "x[1, 2], x[0], x[:, 1]",
        fixed=True,
    ),
    Row(
        "torch-slice-backwards",
        "A negative step",
        "v[::-1]",
        "v[::-1]",
        "v[::-1]",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-index-select",
        "Rows by number",
        "v[i]",
        "tf.gather(v, i)",
        "v[i]",
    ),
    Row(
        "torch-index-python-list",
        "Index with a Python list",
        "v[[2, 0]]",
        "v[[2, 0]]",
        "v[[2, 0]]",
        numpy="v[[2, 0]]",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-gather",
        "One element of each row",
        "x.gather(1, labels[:, None])[:, 0]",
        "tf.gather(x, labels, axis=1, batch_dims=1)",
        "jnp.take_along_axis(x, labels[:, None], axis=1)[:, 0]",
    ),
    Row(
        "torch-masked-select",
        "Elements where a mask is true",
        "v[mask]",
        "tf.boolean_mask(v, mask)",
        "v[mask]",
    ),
    Row(
        "torch-where",
        "Choose by a mask",
        "torch.where(mask, v, w)",
        "tf.where(mask, v, w)",
        "jnp.where(mask, v, w)",
    ),
    Row(
        "torch-masked-fill",
        "Fill where a mask is true",
        "v.masked_fill(mask, 0.0)",
        "tf.where(mask, 0.0, v)",
        "jnp.where(mask, 0.0, v)",
    ),
    Row(
        "torch-nonzero",
        "Indices where a mask is true",
        "mask.nonzero()",
        "tf.where(mask)",
        "jnp.argwhere(mask)",
    ),
    Row(
        "torch-outside",
        "Read outside",
        "v[torch.tensor(7)]",
        "tf.gather(v, 7)",
        "v[jnp.array(7)]",
        numpy="v[7]",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-negative-index",
        "Negative indices",
        "v[torch.tensor(-1)]",
        "tf.gather(v, -1)",
        "v[jnp.array(-1)]",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-set",
        "Set one element",
        """
        v[0] = 9.0
        v
        """,
        "tf.tensor_scatter_nd_update(v, [[0]], [9.0])",
        "v.at[0].set(9.0)",
    ),
    Row(
        "torch-set-in-place",
        "Set one element in place",
        """
        v[0] = 9.0
        v
        """,
        """
        v[0] = 9.0
        v
        """,
        """
        v[0] = 9.0
        v
        """,
        numpy="""
        v[0] = 9.0
        v
        """,
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-alias",
        "Does a slice share memory?",
        """
        part = v[:2]
        part += 1
        v
        """,
        """
        part = v[:2]
        part += 1
        v
        """,
        """
        part = v[:2]
        part += 1
        v
        """,
        numpy="""
        part = v[:2]
        part += 1
        v
        """,
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-index-add",
        "Scatter-add: repeats count",
        "v.index_add(0, i, torch.ones(len(i)))",
        "tf.tensor_scatter_nd_add(v, i[:, None], tf.ones(len(i)))",
        "v.at[i].add(1.0)",
    ),
    Row(
        "torch-scatter-repeated",
        "v[i] += 1 where an index repeats",
        """
        v[i] += 1
        v
        """,
        "tf.tensor_scatter_nd_add(v, i[:, None], tf.ones(len(i)))",
        "v.at[i].add(1.0)",
        numpy="""
        v[i] += 1
        v
        """,
        given={"i": [0, 0]},
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-scatter-outside",
        "Write outside",
        """
        v[torch.tensor(7)] = 9.0
        v
        """,
        "tf.tensor_scatter_nd_update(v, [[7]], [9.0])",
        "v.at[7].set(9.0)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-segment-sum",
        "Sum by group",
        "torch.zeros(3).scatter_add(0, g, w)",
        "tf.math.unsorted_segment_sum(w, g, 3)",
        "jax.ops.segment_sum(w, g, 3)",
        given={"g": [2, 0, 2]},
        fixed=True,
    ),
    Row(
        "torch-narrow",
        "A slice that starts at a variable",
        "v.narrow(0, 1, 2)",
        "tf.slice(v, [1], [2])",
        "jax.lax.dynamic_slice(v, (1,), (2,))",
        fixed=True,
    ),
    Row(
        "torch-narrow-outside",
        "A slice that runs over the end",
        "v.narrow(0, 2, 2)",
        "tf.slice(v, [2], [2])",
        "jax.lax.dynamic_slice(v, (2,), (2,))",
        differs=True,
        fixed=True,
    ),
]

SORTING = [
    Row("torch-sort", "Sort", "v.sort().values", "tf.sort(v)", "jnp.sort(v)"),
    Row(
        "torch-sort-nan",
        "Sort with NaN",
        "v.sort().values",
        "tf.sort(v)",
        "jnp.sort(v)",
        given={"v": [float("nan"), 3.0, 1.0]},
        differs=True,
    ),
    Row(
        "torch-argsort",
        "Argsort, stable",
        "v.argsort(stable=True)",
        "tf.argsort(v, stable=True)",
        "jnp.argsort(v)",
    ),
    Row(
        "torch-sort-descending",
        "Sort, largest first",
        "v.sort(descending=True).values",
        'tf.sort(v, direction="DESCENDING")',
        "jnp.sort(v, descending=True)",
    ),
    Row(
        "torch-topk",
        "The two largest",
        "v.topk(2).values",
        "tf.math.top_k(v, 2).values",
        "jax.lax.top_k(v, 2)[0]",
        fixed=True,
    ),
    Row(
        "torch-unique",
        "Unique values",
        "k.unique()",
        "tf.sort(tf.unique(k).y)",
        "jnp.unique(k)",
    ),
    Row(
        "torch-unique-order",
        "Order of unique values",
        "k.unique()",
        "tf.unique(k).y",
        "jnp.unique(k)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-bincount",
        "Count each value",
        "torch.bincount(i, minlength=3)",
        "tf.math.bincount(i, minlength=3)",
        "jnp.bincount(i, length=3)",
    ),
]

ARITHMETIC = [
    Row(
        "torch-promotion",
        "Integers plus floats",
        "k + 0.5 * torch.ones(4)",
        "tf.cast(k, tf.float32) + 0.5 * tf.ones(4)",
        "k + 0.5 * jnp.ones(4)",
        fixed=True,
    ),
    Row(
        "torch-promotion-none",
        "Integers plus floats, no cast",
        "i + v[:2]",
        "i + v[:2]",
        "i + v[:2]",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-true-divide",
        "Divide integers",
        "k / d",
        "k / d",
        "k / d",
        numpy="k / d",
        tolerance=1e-5,
    ),
    Row(
        "torch-floor-divide",
        "Whole-number division",
        "k // d",
        "k // d",
        "k // d",
    ),
    Row("torch-remainder", "Remainder", "k % d", "k % d", "k % d"),
    Row(
        "torch-divide-by-zero",
        "Integers divided by zero",
        "k // 0",
        "k // 0",
        "k // 0",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-round",
        "Round: halves go to the even number",
        "v.round()",
        "tf.round(v)",
        "jnp.round(v)",
        given={"v": [0.5, 1.5, 2.5]},
    ),
    Row(
        "torch-overflow",
        "Overflow of int32",
        "k.to(torch.int32) + 1",
        "tf.cast(k, tf.int32) + 1",
        "k.astype(jnp.int32) + 1",
        given={"k": [2147483647]},
    ),
    Row(
        "torch-clamp",
        "Clip",
        "v.clamp(1.5, 2.5)",
        "tf.clip_by_value(v, 1.5, 2.5)",
        "v.clip(1.5, 2.5)",
    ),
    Row(
        "torch-clamp-nan",
        "Clip NaN",
        "v.clamp(0, 1)",
        "tf.clip_by_value(v, 0, 1)",
        "v.clip(0, 1)",
        given={"v": [float("nan"), 5.0]},
    ),
    Row(
        "torch-maximum",
        "The larger of two, with NaN",
        "torch.maximum(v, w)",
        "tf.maximum(v, w)",
        "jnp.maximum(v, w)",
        given={"v": [float("nan"), 5.0], "w": [1.0, 2.0]},
    ),
    Row(
        "torch-nan-to-num",
        "Replace NaN",
        "v.nan_to_num(0.0)",
        "tf.where(tf.math.is_nan(v), 0.0, v)",
        "jnp.nan_to_num(v)",
        given={"v": [float("nan"), 2.0]},
    ),
]

REDUCTIONS = [
    Row(
        "torch-sum",
        "Sum along an axis",
        "x.sum(dim=0)",
        "tf.reduce_sum(x, axis=0)",
        "x.sum(axis=0)",
    ),
    Row(
        "torch-sum-keepdim",
        "Sum, keeping the axis",
        "x.sum(dim=1, keepdim=True)",
        "tf.reduce_sum(x, axis=1, keepdims=True)",
        "x.sum(axis=1, keepdims=True)",
    ),
    Row(
        "torch-sum-small-integers",
        "Sum of int8",
        "k.to(torch.int8).sum()",
        "tf.reduce_sum(tf.cast(k, tf.int8))",
        "k.astype(jnp.int8).sum()",
        given={"k": [100, 100]},
        differs=True,
    ),
    Row(
        "torch-mean",
        "Mean",
        "x.mean(dim=1)",
        "tf.reduce_mean(x, axis=1)",
        "x.mean(axis=1)",
    ),
    Row(
        "torch-mean-integers",
        "Mean of integers",
        "k.mean()",
        "tf.reduce_mean(k)",
        "k.mean()",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-std",
        "Standard deviation, divided by n − 1",
        "v.std()",
        """
        n = len(v)
        tf.math.reduce_std(v) * (n / (n - 1)) ** 0.5
        """,
        "v.std(ddof=1)",
    ),
    Row(
        "torch-std-default",
        "Standard deviation by default",
        "v.std()",
        "tf.math.reduce_std(v)",
        "v.std()",
        numpy="v.std()",
        differs=True,
        meaning=("np.std(v, ddof=1)", "np.std(v)", "np.std(v)"),
    ),
    Row(
        "torch-max",
        "Maximum",
        "x.amax(dim=1)",
        "tf.reduce_max(x, axis=1)",
        "x.max(axis=1)",
    ),
    Row(
        "torch-max-pair",
        "Maximum with an axis",
        "x.max(dim=1)",
        "tf.reduce_max(x, axis=1)",
        "x.max(axis=1)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-max-nan",
        "Maximum with NaN",
        "v.max()",
        "tf.reduce_max(v)",
        "v.max()",
        given={"v": [1.0, float("nan"), 3.0]},
    ),
    Row(
        "torch-argmax",
        "Argmax, ties: the first",
        "v.argmax()",
        "tf.argmax(v)",
        "v.argmax()",
        given={"v": [1.0, 3.0, 3.0]},
    ),
    Row(
        "torch-argmax-nan",
        "Argmax with NaN",
        "v.argmax()",
        "tf.argmax(v)",
        "v.argmax()",
        given={"v": [1.0, float("nan"), 3.0]},
        differs=True,
    ),
    Row(
        "torch-argmax-axis",
        "Argmax without an axis",
        "x.argmax()",
        "tf.argmax(x)",
        "x.argmax()",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-cumsum",
        "Running sum",
        "v.cumsum(0)",
        "tf.cumsum(v)",
        "v.cumsum()",
    ),
    Row(
        "torch-any",
        "Any, all",
        "mask.any(), mask.all()",
        "tf.reduce_any(mask), tf.reduce_all(mask)",
        "mask.any(), mask.all()",
    ),
    Row(
        "torch-logsumexp",
        "Log of a sum of exponentials",
        "x.logsumexp(dim=1)",
        "tf.reduce_logsumexp(x, axis=1)",
        "jax.nn.logsumexp(x, axis=1)",
    ),
    Row(
        "torch-median",
        "Median of an even number",
        "v.median()",
        """
        s = tf.sort(v)
        s[(len(v) - 1) // 2]
        """,
        "jnp.median(v)",
        given={"v": [1.0, 2.0, 3.0, 4.0]},
        differs=True,
        meaning=(
            "np.sort(v)[(len(v) - 1) // 2]",
            "np.sort(v)[(len(v) - 1) // 2]",
            "np.median(v)",
        ),
    ),
]

ALGEBRA = [
    Row("torch-matmul", "Matrix product", "a @ b", "a @ b", "a @ b"),
    Row(
        "torch-matmul-vector",
        "Matrix times vector",
        "x @ v",
        "tf.linalg.matvec(x, v)",
        "x @ v",
    ),
    Row(
        "torch-matmul-vector-operator",
        "The operator @ with a vector",
        "x @ v",
        "x @ v",
        "x @ v",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-dot", "Inner product", "v @ w", "tf.tensordot(v, w, 1)", "v @ w"
    ),
    Row(
        "torch-bmm",
        "Batch of matrix products",
        "torch.bmm(nchw[0], nchw[0])",
        "tf.matmul(nchw[0], nchw[0])",
        "nchw[0] @ nchw[0]",
    ),
    Row(
        "torch-einsum",
        "Einstein sum",
        "torch.einsum('ij,ij->i', x, y)",
        "tf.einsum('ij,ij->i', x, y)",
        "jnp.einsum('ij,ij->i', x, y)",
    ),
    Row(
        "torch-solve",
        "Solve s z = c",
        "torch.linalg.solve(s, c)",
        "tf.linalg.solve(s, c[:, None])[:, 0]",
        "jnp.linalg.solve(s, c)",
        given={"c": [1.0, 2.0]},
        tolerance=1e-3,
    ),
    Row(
        "torch-inv",
        "Inverse",
        "torch.linalg.inv(s)",
        "tf.linalg.inv(s)",
        "jnp.linalg.inv(s)",
        tolerance=1e-3,
    ),
    Row(
        "torch-inv-singular",
        "Inverse of a singular matrix",
        "torch.linalg.inv(s)",
        "tf.linalg.inv(s)",
        "jnp.linalg.inv(s)",
        numpy="np.linalg.inv(s)",
        given={"s": [[1.0, 1.0], [1.0, 1.0]]},
        differs=True,
    ),
    Row(
        "torch-svd",
        "Singular values",
        "torch.linalg.svdvals(x)",
        "tf.linalg.svd(x, compute_uv=False)",
        "jnp.linalg.svd(x, compute_uv=False)",
        tolerance=1e-3,
    ),
    Row(
        "torch-svd-order",
        "Order of the factors of svd",
        """
        found = torch.linalg.svd(x, full_matrices=False)
        [tuple(part.shape) for part in found]
        """,
        "[tuple(part.shape) for part in tf.linalg.svd(x)]",
        "[part.shape for part in jnp.linalg.svd(x, full_matrices=False)]",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-eigh",
        "Eigenvalues of a symmetric matrix",
        "torch.linalg.eigvalsh(s)",
        "tf.linalg.eigvalsh(s)",
        "jnp.linalg.eigvalsh(s)",
        tolerance=1e-3,
    ),
    Row(
        "torch-cholesky",
        "Cholesky factor",
        "torch.linalg.cholesky(s)",
        "tf.linalg.cholesky(s)",
        "jnp.linalg.cholesky(s)",
        tolerance=1e-3,
    ),
    Row(
        "torch-cholesky-indefinite",
        "Cholesky of an indefinite matrix",
        "torch.linalg.cholesky(s)",
        "tf.linalg.cholesky(s)",
        "jnp.linalg.cholesky(s)",
        given={"s": [[-1.0]]},
        differs=True,
    ),
]

LAYERS = [
    Row(
        "torch-linear",
        "Dense layer: the transpose",
        "F.linear(x, y, c)",
        "x @ tf.transpose(y) + c",
        "x @ y.T + c",
        given={"c": [1.0, 2.0]},
    ),
    Row(
        "torch-gelu",
        "GELU with the error function",
        "F.gelu(v)",
        "tf.nn.gelu(v)",
        "jax.nn.gelu(v, approximate=False)",
        tolerance=1e-4,
    ),
    Row(
        "torch-gelu-default",
        "GELU by default",
        "F.gelu(v)",
        "tf.nn.gelu(v)",
        "jax.nn.gelu(v)",
        differs=True,
        meaning=("v / 2 * (1 + np.vectorize(math.erf)(v / 2**0.5))",) * 2
        + (
            "v / 2 * (1 + np.tanh((2 / np.pi) ** 0.5"
            " * (v + 0.044715 * v**3)))",
        ),
        tolerance=1e-5,
    ),
    Row(
        "torch-leaky-relu",
        "Leaky ReLU by default",
        "F.leaky_relu(v)",
        "tf.nn.leaky_relu(v)",
        "jax.nn.leaky_relu(v)",
        given={"v": [-1.0, 1.0]},
        differs=True,
        meaning=(
            "np.where(v > 0, v, 0.01 * v)",
            "np.where(v > 0, v, 0.2 * v)",
            "np.where(v > 0, v, 0.01 * v)",
        ),
    ),
    Row(
        "torch-softmax",
        "Softmax",
        "F.softmax(x, dim=1)",
        "tf.nn.softmax(x)",
        "jax.nn.softmax(x)",
    ),
    Row(
        "torch-log-softmax",
        "Log-softmax",
        "F.log_softmax(x, dim=1)",
        "tf.nn.log_softmax(x)",
        "jax.nn.log_softmax(x)",
    ),
    Row(
        "torch-layer-norm",
        "Layer normalisation",
        "F.layer_norm(x, x.shape[1:])",
        "tf.keras.layers.LayerNormalization(epsilon=1e-5)(x)",
        "jax.nn.standardize(x, epsilon=1e-5)",
        tolerance=1e-3,
    ),
    Row(
        "torch-layer-norm-default",
        "Layer normalisation: default epsilon",
        "F.layer_norm(x, x.shape[1:])",
        "tf.keras.layers.LayerNormalization()(x)",
        "jax.nn.standardize(x)",
        given={"x": [[0.0, 0.01]]},
        differs=True,
        meaning=(
            "(x - x.mean(1, keepdims=True))"
            " / (x.var(1, keepdims=True) + 1e-5) ** 0.5",
            "(x - x.mean(1, keepdims=True))"
            " / (x.var(1, keepdims=True) + 1e-3) ** 0.5",
            "(x - x.mean(1, keepdims=True))"
            " / (x.var(1, keepdims=True) + 1e-5) ** 0.5",
        ),
        tolerance=1e-4,
    ),
    Row(
        "torch-conv2d",
        "Convolution: order of the axes",
        "F.conv2d(nchw, oihw)",
        'tf.nn.conv2d(nhwc, hwio, 1, "VALID")',
        'jax.lax.conv(nchw, oihw, (1, 1), "VALID")',
        view={"tensorflow": "np.moveaxis(r, 3, 1)"},
        tolerance=1e-3,
    ),
    Row(
        "torch-conv2d-same",
        "Convolution with stride 2: where the padding goes",
        "F.conv2d(nchw, oihw, stride=2, padding=1)[0, 0]",
        'tf.nn.conv2d(nhwc, hwio, 2, "SAME")[0, :, :, 0]',
        'jax.lax.conv(nchw, oihw, (2, 2), "SAME")[0, 0]',
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-max-pool",
        "Max pooling",
        "F.max_pool2d(nchw, 2)",
        'tf.nn.max_pool2d(nhwc, 2, 2, "VALID")',
        """
        size = (1, 1, 2, 2)
        jax.lax.reduce_window(
            nchw, -jnp.inf, jax.lax.max, size, size, "VALID"
        )
        """,
        view={"tensorflow": "np.moveaxis(r, 3, 1)"},
    ),
    Row(
        "torch-avg-pool",
        "Average pooling",
        "F.avg_pool2d(nchw, 2)",
        'tf.nn.avg_pool2d(nhwc, 2, 2, "VALID")',
        """
        size = (1, 1, 2, 2)
        jax.lax.reduce_window(
            nchw, 0.0, jax.lax.add, size, size, "VALID"
        ) / 4
        """,
        view={"tensorflow": "np.moveaxis(r, 3, 1)"},
    ),
    Row(
        "torch-interpolate",
        "Enlarge an image",
        'F.interpolate(nchw, (8, 8), mode="bilinear")',
        "tf.image.resize(nhwc, (8, 8))",
        'jax.image.resize(nchw, (1, 2, 8, 8), "bilinear")',
        view={"tensorflow": "np.moveaxis(r, 3, 1)"},
    ),
    Row(
        "torch-interpolate-down",
        "Shrink an image",
        'F.interpolate(nchw, (3, 3), mode="bilinear")[0, 0]',
        "tf.image.resize(nhwc, (3, 3))[0, :, :, 0]",
        'jax.image.resize(nchw, (1, 2, 3, 3), "bilinear")[0, 0]',
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-attention",
        "Attention: order of the axes",
        """
        q = nchw.permute(0, 2, 1, 3) / 32
        F.scaled_dot_product_attention(q, q, q)
        """,
        """
        q = tf.transpose(nchw, [0, 2, 1, 3]) / 32
        p = tf.nn.softmax(q @ tf.linalg.matrix_transpose(q) / 2)
        p @ q
        """,
        """
        q = nchw / 32
        jax.nn.dot_product_attention(q, q, q)
        """,
        view={"jax": "r.swapaxes(1, 2)"},
        tolerance=1e-3,
    ),
]

LOSSES = [
    Row(
        "torch-cross-entropy",
        "Cross entropy from logits",
        "F.cross_entropy(x, labels)",
        """
        tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, x
            )
        )
        """,
        """
        optax.softmax_cross_entropy_with_integer_labels(
            x, labels
        ).mean()
        """,
        tolerance=1e-4,
    ),
    Row(
        "torch-cross-entropy-probabilities",
        "Cross entropy, given probabilities",
        "F.cross_entropy(F.softmax(x, 1), labels)",
        """
        tf.keras.losses.SparseCategoricalCrossentropy()(
            labels, tf.nn.softmax(x)
        )
        """,
        """
        optax.softmax_cross_entropy_with_integer_labels(
            jax.nn.softmax(x), labels
        ).mean()
        """,
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-cross-entropy-outside",
        "Cross entropy, absent label",
        "F.cross_entropy(x, labels)",
        """
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, x
        )
        """,
        """
        optax.softmax_cross_entropy_with_integer_labels(
            x, labels
        ).mean()
        """,
        given={"labels": [0, 7]},
        differs=True,
    ),
    Row(
        "torch-bce-with-logits",
        "Binary cross entropy from logits",
        """
        F.binary_cross_entropy_with_logits(
            v, mask.float()
        )
        """,
        """
        tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(
                tf.cast(mask, tf.float32), v
            )
        )
        """,
        """
        optax.sigmoid_binary_cross_entropy(
            v, mask.astype(float)
        ).mean()
        """,
    ),
    Row(
        "torch-mse-loss",
        "Squared error",
        "F.mse_loss(x, y)",
        "tf.reduce_mean(tf.square(x - y))",
        "optax.squared_error(x, y).mean()",
    ),
    Row(
        "torch-mse-axis",
        "Squared error: over which axes",
        "F.mse_loss(x, y)",
        "tf.keras.losses.mse(y, x)",
        "optax.squared_error(x, y).mean()",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-huber-loss",
        "Huber",
        "F.huber_loss(x, y)",
        "tf.keras.losses.Huber()(y, x)",
        "optax.huber_loss(x, y).mean()",
    ),
    Row(
        "torch-kl-div",
        "Kullback-Leibler: PyTorch and Optax take log p",
        'F.kl_div(p.log(), q, reduction="sum")',
        "tf.keras.losses.KLDivergence()(q, p)",
        "optax.losses.kl_divergence(jnp.log(p), q)",
        given={"p": [0.2, 0.8], "q": [0.5, 0.5]},
        fixed=True,
    ),
]

RANDOM = [
    Row(
        "torch-manual-seed",
        "Seeds and keys",
        """
        torch.manual_seed(1)
        first = torch.randn(2)
        torch.manual_seed(1)
        torch.equal(first, torch.randn(2))
        """,
        """
        tf.random.set_seed(1)
        first = tf.random.normal([2])
        tf.random.set_seed(1)
        bool(tf.reduce_all(first == tf.random.normal([2])))
        """,
        """
        key = jax.random.key(1)
        first = jax.random.normal(key, 2)
        bool((first == jax.random.normal(key, 2)).all())
        """,
    ),
    Row(
        "torch-randn-twice",
        "Two draws in a row",
        "torch.equal(torch.randn(2), torch.randn(2))",
        """
        first = tf.random.normal([2])
        bool(tf.reduce_all(first == tf.random.normal([2])))
        """,
        """
        key = jax.random.key(0)
        first = jax.random.normal(key, 2)
        bool((first == jax.random.normal(key, 2)).all())
        """,
        differs=True,
    ),
    Row(
        "torch-generator",
        "A generator without global state",
        """
        g = torch.Generator().manual_seed(1)
        torch.rand(10000, generator=g)
        """,
        """
        g = tf.random.Generator.from_seed(1)
        g.uniform([10000])
        """,
        """
        key = jax.random.key(1)
        jax.random.uniform(key, 10000)
        """,
        draws=(0.5, 0.289, 0, 1),
    ),
    Row(
        "torch-rand",
        "Uniform",
        "torch.rand(10000)",
        "tf.random.uniform([10000])",
        "jax.random.uniform(jax.random.key(0), 10000)",
        draws=(0.5, 0.289, 0, 1),
    ),
    Row(
        "torch-randn",
        "Normal",
        "torch.randn(10000)",
        "tf.random.normal([10000])",
        "jax.random.normal(jax.random.key(0), 10000)",
        draws=(0, 1, -7, 7),
    ),
    Row(
        "torch-trunc-normal",
        "Normal, cut at two deviations",
        """
        torch.nn.init.trunc_normal_(
            torch.empty(10000), a=-2, b=2
        )
        """,
        "tf.random.truncated_normal([10000])",
        """
        jax.random.truncated_normal(
            jax.random.key(0), -2, 2, 10000
        )
        """,
        draws=(0, 0.88, -2, 2),
    ),
    Row(
        "torch-randint",
        "Integers, without the upper end",
        "torch.randint(0, 6, (10000,))",
        "tf.random.uniform([10000], 0, 6, tf.int32)",
        "jax.random.randint(jax.random.key(0), 10000, 0, 6)",
        draws=(2.5, 1.708, 0, 5),
    ),
    Row(
        "torch-bernoulli",
        "Bernoulli",
        "torch.bernoulli(torch.full((10000,), 0.3))",
        "tf.cast(tf.random.uniform([10000]) < 0.3, tf.int32)",
        "jax.random.bernoulli(jax.random.key(0), 0.3, 10000)",
        draws=(0.3, 0.458, 0, 1),
    ),
    Row(
        "torch-multinomial",
        "A class from probabilities or logs",
        """
        p = torch.tensor([0.2, 0.8])
        torch.multinomial(p, 10000, replacement=True)
        """,
        """
        p = tf.constant([[0.2, 0.8]])
        tf.random.categorical(tf.math.log(p), 10000)[0]
        """,
        """
        p = jnp.array([0.2, 0.8])
        jax.random.categorical(
            jax.random.key(0), jnp.log(p), shape=10000
        )
        """,
        draws=(0.8, 0.4, 0, 1),
    ),
    Row(
        "torch-randperm",
        "Permutation",
        "torch.randperm(10000)",
        "tf.random.shuffle(tf.range(10000))",
        "jax.random.permutation(jax.random.key(0), 10000)",
        draws=(4999.5, 2886.75, 0, 9999),
    ),
    Row(
        "torch-dropout",
        "Dropout: what stays is scaled up",
        "F.dropout(torch.ones(10000), 0.25)",
        "tf.nn.dropout(tf.ones([10000]), 0.25)",
        """
        keep = jax.random.bernoulli(
            jax.random.key(0), 0.75, 10000
        )
        jnp.where(keep, 1 / 0.75, 0.0)
        """,
        draws=(1, 0.577, 0, 1.3334),
    ),
]

CONTROL = [
    Row(
        "torch-if",
        "A branch on a value",
        "x.sum() if x.sum() > 0 else -x.sum()",
        """
        tf.cond(
            tf.reduce_sum(x) > 0,
            lambda: tf.reduce_sum(x),
            lambda: -tf.reduce_sum(x),
        )
        """,
        """
        jax.lax.cond(
            x.sum() > 0, lambda s: s, lambda s: -s, x.sum()
        )
        """,
    ),
    Row(
        "torch-cond",
        "A branch in a compiled program",
        """
        torch.cond(
            x.sum() > 0, lambda s: s.clone(), lambda s: -s, (x.sum(),)
        )
        """,
        """
        tf.cond(
            tf.reduce_sum(x) > 0,
            lambda: tf.reduce_sum(x),
            lambda: -tf.reduce_sum(x),
        )
        """,
        """
        jax.lax.cond(
            x.sum() > 0, lambda s: s, lambda s: -s, x.sum()
        )
        """,
    ),
    Row(
        "torch-compile-if",
        "A Python if, compiled",
        """
        def f(s):
            if s > 0:
                return s
            return -s

        torch.compile(f, backend="eager")(v[0])
        """,
        """
        @tf.function
        def f(s):
            if s > 0:
                return s
            return -s

        f(v[0])
        """,
        """
        @jax.jit
        def f(s):
            if s > 0:
                return s
            return -s

        f(v[0])
        """,
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-switch",
        "One of several functions",
        "[torch.sin, torch.cos][i[0] % 2](v)",
        """
        tf.switch_case(
            i[0] % 2, [lambda: tf.sin(v), lambda: tf.cos(v)]
        )
        """,
        "jax.lax.switch(i[0] % 2, [jnp.sin, jnp.cos], v)",
    ),
    Row(
        "torch-while",
        "While loop",
        """
        s = v.abs().sum() + 1
        while s < 100:
            s = 2 * s
        s
        """,
        """
        s = tf.reduce_sum(tf.abs(v)) + 1
        tf.while_loop(lambda s: s < 100, lambda s: (2 * s,), [s])[0]
        """,
        """
        s = jnp.abs(v).sum() + 1
        jax.lax.while_loop(lambda s: s < 100, lambda s: 2 * s, s)
        """,
    ),
    Row(
        "torch-scan",
        "A loop that carries and collects",
        """
        s, found = torch.tensor(0.0), []
        for e in v:
            s = 0.5 * s + e
            found.append(s)
        torch.stack(found)
        """,
        "tf.scan(lambda s, e: 0.5 * s + e, v, tf.constant(0.0))",
        """
        def step(s, e):
            s = 0.5 * s + e
            return s, s

        jax.lax.scan(step, 0.0, v)[1]
        """,
    ),
    Row(
        "torch-vmap",
        "The same for each row",
        "torch.func.vmap(lambda r: r / r.abs().sum())(x + 20)",
        """
        tf.vectorized_map(
            lambda r: r / tf.reduce_sum(tf.abs(r)), x + 20
        )
        """,
        "jax.vmap(lambda r: r / jnp.abs(r).sum())(x + 20)",
    ),
    Row(
        "torch-compile",
        "Compile a function",
        'torch.compile(lambda x: x * 2 + 1, backend="eager")(x)',
        "tf.function(lambda x: x * 2 + 1, jit_compile=True)(x)",
        "jax.jit(lambda x: x * 2 + 1)(x)",
    ),
    Row(
        "torch-boolean-shape",
        "A shape that depends on values, compiled",
        """
        f = torch.compile(lambda v: v[v > 1], backend="eager")
        f(v)
        """,
        "tf.function(lambda v: v[v > 1])(v)",
        "jax.jit(lambda v: v[v > 1])(v)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-tree-map",
        "Map over a tree of arrays",
        """
        from torch.utils import _pytree
        _pytree.tree_map(lambda t: t * 2, {"a": v, "b": [w]})
        """,
        'tf.nest.map_structure(lambda t: t * 2, {"a": v, "b": [w]})',
        'jax.tree.map(lambda t: t * 2, {"a": v, "b": [w]})',
    ),
]

GRADIENTS = [
    Row(
        "torch-backward",
        "Gradient of a scalar",
        """
        v.requires_grad_()
        (v**3).sum().backward()
        v.grad
        """,
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_sum(v**3)
        tape.gradient(loss, v)
        """,
        "jax.grad(lambda v: (v**3).sum())(v)",
    ),
    Row(
        "torch-grad-and-value",
        "Value and gradient at once",
        """
        f = torch.func.grad_and_value(lambda v: (v**2).sum())
        gradient, value = f(v)
        value, gradient
        """,
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            value = tf.reduce_sum(v**2)
        value, tape.gradient(value, v)
        """,
        "jax.value_and_grad(lambda v: (v**2).sum())(v)",
    ),
    Row(
        "torch-backward-twice",
        "Two backward passes in a row",
        """
        v.requires_grad_()
        for _ in range(2):
            (v**2).sum().backward()
        v.grad
        """,
        """
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(v)
                loss = tf.reduce_sum(v**2)
            g = tape.gradient(loss, v)
        g
        """,
        """
        for _ in range(2):
            g = jax.grad(lambda v: (v**2).sum())(v)
        g
        """,
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-detach",
        "Stop the gradient",
        "torch.func.grad(lambda v: (v * v.detach()).sum())(v)",
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_sum(v * tf.stop_gradient(v))
        tape.gradient(loss, v)
        """,
        "jax.grad(lambda v: (v * jax.lax.stop_gradient(v)).sum())(v)",
    ),
    Row(
        "torch-backward-vector",
        "Gradient of several results",
        """
        v.requires_grad_()
        (v**2).backward()
        v.grad
        """,
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            squares = v**2
        tape.gradient(squares, v)
        """,
        "jax.grad(lambda v: v**2)(v)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-grad-unused",
        "Gradient for an unused input",
        """
        v.requires_grad_()
        w.sum().requires_grad_().backward()
        str(v.grad)
        """,
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_sum(w)
        str(tape.gradient(loss, v))
        """,
        "jax.grad(lambda v: w.sum())(v)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-grad-integers",
        "Gradient for integers",
        "k.requires_grad_()",
        """
        with tf.GradientTape() as tape:
            tape.watch(k)
            loss = tf.reduce_sum(k * k)
        str(tape.gradient(loss, k))
        """,
        "jax.grad(lambda k: (k * k).sum())(k)",
        differs=True,
        fixed=True,
    ),
    Row(
        "torch-jacobian",
        "Jacobian",
        "torch.func.jacrev(lambda v: v**2)(v)",
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            squares = v**2
        tape.jacobian(squares, v)
        """,
        "jax.jacrev(lambda v: v**2)(v)",
    ),
    Row(
        "torch-hessian",
        "Second derivatives",
        "torch.func.hessian(lambda v: (v**3).sum())(v)",
        """
        with tf.GradientTape() as outer:
            outer.watch(v)
            with tf.GradientTape() as inner:
                inner.watch(v)
                loss = tf.reduce_sum(v**3)
            g = inner.gradient(loss, v)
        outer.jacobian(g, v)
        """,
        "jax.hessian(lambda v: (v**3).sum())(v)",
    ),
    Row(
        "torch-jvp",
        "Forward mode: derivative along a direction",
        "torch.func.jvp(torch.sin, (v,), (w,))[1]",
        """
        with tf.autodiff.ForwardAccumulator(v, w) as forward:
            result = tf.sin(v)
        forward.jvp(result)
        """,
        "jax.jvp(jnp.sin, (v,), (w,))[1]",
        tolerance=1e-4,
    ),
    Row(
        "torch-vjp",
        "Backward mode with weights",
        "torch.func.vjp(torch.sin, v)[1](w)[0]",
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            result = tf.sin(v)
        tape.gradient(result, v, output_gradients=w)
        """,
        "jax.vjp(jnp.sin, v)[1](w)[0]",
        tolerance=1e-4,
    ),
    Row(
        "torch-per-example-gradients",
        "A gradient for each example",
        """
        f = torch.func.grad(lambda w, r: (w @ r) ** 2)
        torch.func.vmap(f, (None, 0))(w, x)
        """,
        """
        with tf.GradientTape() as tape:
            tape.watch(w)
            losses = tf.linalg.matvec(x, w) ** 2
        tape.jacobian(losses, w)
        """,
        """
        f = jax.grad(lambda w, r: (w @ r) ** 2)
        jax.vmap(f, (None, 0))(w, x)
        """,
        tolerance=1e-3,
    ),
    Row(
        "torch-relu-gradient",
        "Slope of ReLU at zero",
        "torch.func.grad(F.relu)(v[0])",
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.nn.relu(v)
        tape.gradient(loss, v)[0]
        """,
        "jax.grad(jax.nn.relu)(v[0])",
        given={"v": [0.0]},
    ),
    Row(
        "torch-abs-gradient",
        "Slope of the absolute value at zero",
        "torch.func.grad(torch.abs)(v[0])",
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.abs(v)
        tape.gradient(loss, v)[0]
        """,
        "jax.grad(jnp.abs)(v[0])",
        given={"v": [0.0]},
        differs=True,
    ),
    Row(
        "torch-max-gradient",
        "Gradient of a maximum that occurs twice",
        "torch.func.grad(torch.max)(v)",
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.reduce_max(v)
        tape.gradient(loss, v)
        """,
        "jax.grad(jnp.max)(v)",
        given={"v": [3.0, 3.0, 1.0]},
    ),
    Row(
        "torch-where-gradient",
        "NaN from the branch not taken",
        """
        f = lambda s: torch.where(s > 0, s.sqrt(), 0 * s)
        torch.func.grad(f)(v[0])
        """,
        """
        with tf.GradientTape() as tape:
            tape.watch(v)
            loss = tf.where(v > 0, tf.sqrt(v), 0 * v)
        tape.gradient(loss, v)[0]
        """,
        """
        f = lambda s: jnp.where(s > 0, jnp.sqrt(s), 0 * s)
        jax.grad(f)(v[0])
        """,
        given={"v": [0.0]},
        differs=True,
        meaning=(
            "np.float32(0.5 / np.sqrt(v[0]) if v[0] > 0 else np.nan)",
            "np.float32(0.5 / np.sqrt(v[0]) if v[0] > 0 else 0)",
            "np.float32(0.5 / np.sqrt(v[0]) if v[0] > 0 else np.nan)",
        ),
    ),
    Row(
        "torch-clip-grad-norm",
        "Clip by the global norm",
        """
        norm = torch.linalg.vector_norm(torch.cat([v, w]))
        c = (1 / norm).clamp(max=1)
        [v * c, w * c]
        """,
        "tf.clip_by_global_norm([v, w], 1.0)[0]",
        """
        norm = jnp.sqrt(jnp.sum(v**2) + jnp.sum(w**2))
        [g * jnp.minimum(1, 1 / norm) for g in (v, w)]
        """,
        fixed=True,
    ),
]

DEVICES = [
    Row(
        "torch-device",
        "Where an array is",
        "str(x.device)",
        "x.device",
        "str(x.device)",
        differs=True,
    ),
    Row(
        "torch-to",
        "Move to a device",
        'x.to("cpu")',
        """
        with tf.device("CPU:0"):
            moved = tf.identity(x)
        moved
        """,
        'jax.device_put(x, jax.devices("cpu")[0])',
    ),
    Row(
        "torch-cuda-available",
        "Is there a GPU?",
        "torch.cuda.is_available()",
        'bool(tf.config.list_physical_devices("GPU"))',
        'any(d.platform == "gpu" for d in jax.devices())',
    ),
    Row(
        "torch-synchronize",
        "Wait for the result",
        """
        torch.cpu.synchronize()
        x
        """,
        """
        tf.test.experimental.sync_devices()
        x
        """,
        "x.block_until_ready()",
    ),
    Row(
        "torch-meta",
        "Shapes without computing",
        """
        m = torch.ones(2, 3, device="meta")
        tuple((m @ m.T).shape)
        """,
        """
        f = tf.function(lambda x: x @ tf.transpose(x))
        g = f.get_concrete_function(tf.TensorSpec([2, 3]))
        tuple(g.output_shapes)
        """,
        """
        s = jax.ShapeDtypeStruct((2, 3), jnp.float32)
        jax.eval_shape(lambda x: x @ x.T, s).shape
        """,
    ),
    Row(
        "torch-float64",
        "float64",
        "torch.ones(1, dtype=torch.float64)",
        "tf.ones(1, tf.float64)",
        """
        with jax.enable_x64(True):
            t = jnp.ones(1, jnp.float64)
        t
        """,
    ),
    Row(
        "torch-float64-asked",
        "float64 without enabling it",
        "v.to(torch.float64)",
        "tf.cast(v, tf.float64)",
        "v.astype(jnp.float64)",
    ),
]

TRAINING = [
    Row(
        "torch-sgd",
        "One step of gradient descent",
        """
        p = torch.nn.Parameter(v)
        step = torch.optim.SGD([p], lr=0.1)
        (p**2).sum().backward()
        step.step()
        p
        """,
        """
        p = tf.Variable(v)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(p**2)
        p.assign_sub(0.1 * tape.gradient(loss, p))
        p
        """,
        """
        p = v
        g = jax.grad(lambda p: (p**2).sum())(p)
        jax.tree.map(lambda p, g: p - 0.1 * g, p, g)
        """,
    ),
    Row(
        "torch-linear-weight",
        "Shape of the weights of 2 → 3",
        "tuple(torch.nn.Linear(2, 3).weight.shape)",
        """
        layer = tf.keras.layers.Dense(3)
        layer.build((None, 2))
        tuple(layer.kernel.shape)
        """,
        """
        g = jax.nn.initializers.glorot_uniform()
        g(jax.random.key(0), (2, 3)).shape
        """,
        differs=True,
    ),
    Row(
        "torch-save",
        "Save and load arrays",
        """
        torch.save({"v": v}, "v.pt")
        torch.load("v.pt")["v"]
        """,
        """
        tf.train.Checkpoint(v=tf.Variable(v)).write("v.tf")
        tf.train.load_checkpoint("v.tf").get_tensor(
            "v/.ATTRIBUTES/VARIABLE_VALUE"
        )
        """,
        """
        np.savez("v.npz", v=v)
        jnp.asarray(np.load("v.npz")["v"])
        """,
    ),
    Row(
        "torch-export",
        "Save a program",
        """
        class Double(torch.nn.Module):
            def forward(self, v):
                return v * 2

        program = torch.export.export(Double(), (v,))
        program.module()(v)
        """,
        """
        m = tf.Module()
        m.f = tf.function(lambda v: v * 2, [tf.TensorSpec([None])])
        tf.saved_model.save(m, "double")
        tf.saved_model.load("double").f(v)
        """,
        """
        from jax import export

        program = export.export(jax.jit(lambda v: v * 2))(v)
        export.deserialize(program.serialize()).call(v)
        """,
    ),
    Row(
        "torch-dataloader",
        "Batches of two",
        """
        rows = torch.arange(4.0)
        list(torch.utils.data.DataLoader(rows, batch_size=2))
        """,
        """
        rows = tf.data.Dataset.from_tensor_slices(
            tf.range(4.0)
        )
        list(rows.batch(2))
        """,
        """
        rows = jnp.arange(4.0)
        [rows[n : n + 2] for n in range(0, 4, 2)]
        """,
    ),
]
