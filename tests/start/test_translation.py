import ast
import functools
import math
import pathlib
import re

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import strategies as st
from packaging.version import Version

from snippets.start import translation
from snippets.start.translation import (
    FRAMEWORKS,
    INPUTS,
    Row,
    agree,
    alike,
    dtypes,
    functions,
    inputs,
    reads,
    rows,
)

ROOT = pathlib.Path(__file__).parents[2]
GROUPS = {
    name: found
    for name, value in vars(translation).items()
    if isinstance(value, type) and (found := rows(value))
}
ROWS = [row for found in GROUPS.values() for row in found]
PAGE = (ROOT / "docs/start/translation.md").read_text("utf8")
# Of ordinary size, exact in binary, and not 0, at which some functions have no derivative.
FLOATS = st.integers(-40, 40).filter(bool).map(lambda eighths: eighths / 8)


def named(row):
    return row.name


@functools.cache
def on_the_page(name):
    """The results of a row for the inputs that the page uses."""
    return translation.results(next(row for row in ROWS if row.name == name))


def draw_inputs(data, row):
    """Draw the inputs that a row reads, by their names: those that belong together fit."""
    m, n = (
        (2, 3)
        if row.fixed or "labels" in row.given
        else data.draw(st.sampled_from([(2, 3), (1, 4)]))
    )

    def array(strategy, *shape):
        size = math.prod(shape)
        drawn = data.draw(st.lists(strategy, min_size=size, max_size=size))
        return np.array(drawn).reshape(shape)

    def floats(*shape):
        return array(FLOATS, *shape).astype(np.float32)

    def integers(low, high, *shape):
        return array(st.integers(low, high), *shape).tolist()

    def definite():
        factor = floats(2, 2)
        return (factor @ factor.T + 10 * np.eye(2)).astype(np.float32)

    images = functools.cache(lambda: floats(1, 2, 4, 4))
    kernels = functools.cache(lambda: floats(3, 2, 3, 3))
    part = functools.cache(lambda: data.draw(st.floats(0.1, 0.9)))
    drawing = {
        "v": lambda: floats(n),
        "w": lambda: floats(n),
        "x": lambda: floats(m, n),
        "y": lambda: floats(2, n) if row.name == "torch-linear" else floats(m, n),
        "a": lambda: floats(m, n),
        "b": lambda: floats(n, 2),
        "s": definite,
        "k": lambda: integers(-9, 9, 4),
        "d": lambda: array(st.integers(-9, 9).filter(bool), 4).tolist(),
        "i": lambda: integers(0, 2, 2),
        "mask": lambda: array(st.booleans(), n).tolist(),
        "labels": lambda: integers(0, n - 1, m),
        "g": lambda: integers(0, 2, 3),
        "c": lambda: floats(2),
        "p": lambda: [part(), 1 - part()],
        "q": lambda: [0.25, 0.75],
        "nchw": images,
        "nhwc": lambda: images().transpose(0, 2, 3, 1),
        "oihw": kernels,
        "hwio": lambda: kernels().transpose(2, 3, 1, 0),
    }
    return {name: draw() for name, draw in drawing.items() if name in inputs(row)}


def run(row, drawn):
    given = inputs(row, drawn)
    own = functions(row)
    return {name: translation.evaluate(own[name], name, given) for name in FRAMEWORKS}, given


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_row_says_whether_its_frameworks_differ(row):
    found = on_the_page(row.name)
    assert (alike(row, found) or bool(row.draws)) is not row.differs, found
    for framework, result in found.items():
        if isinstance(result, Exception):
            assert row.differs, f"{framework}: {result}"
            assert not isinstance(result, (NameError, AttributeError, SyntaxError, ImportError))


@pytest.mark.parametrize("row", [row for row in ROWS if row.draws], ids=named)
def test_random_rows_have_the_distribution_they_state(row):
    mean, deviation, least, largest = row.draws
    for framework, drawn in on_the_page(row.name).items():
        assert drawn.shape == (10000,), framework
        assert abs(drawn.mean() - mean) < 5 * deviation / 100, framework
        assert drawn.std() == pytest.approx(deviation, rel=0.05), framework
        assert least <= drawn.min() and drawn.max() <= largest, framework


@pytest.mark.parametrize("row", [row for row in ROWS if not row.draws], ids=named)
@hypothesis.settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(data=st.data())
def test_a_row_holds_for_drawn_inputs(row, data):
    sample = on_the_page(row.name)
    drawn = draw_inputs(data, row)
    if row.name == "torch-cross-entropy-outside":
        # A label that does not exist is what the row is about.
        drawn |= row.given
    found, given = run(row, drawn)
    kinds = {name: dtypes(sample[name]) for name in FRAMEWORKS}
    if not isinstance(sample["jax"], Exception) and not any(
        isinstance(result, Exception) for result in found.values()
    ):
        names = [name for name in FRAMEWORKS if not isinstance(sample[name], Exception)]
        assert {n: dtypes(found[n]) for n in names} == {n: kinds[n] for n in names}
    if row.meaning:
        arrays = {name: np.asarray(value) for name, value in given.items()}
        for meaning, result in zip(row.meaning, found.values(), strict=True):
            expected = meaning(*(arrays[name] for name in reads(meaning)))
            assert agree([expected, result], row.tolerance)
    elif row.differs and (row.fixed or not row.given or "labels" in row.given):
        same_outcomes(row, sample, found)
    else:
        assert alike(row, found), (given, found)


def same_outcomes(row, sample, found):
    """Who raises on the page raises the same again, and who agrees there agrees again."""
    for name in FRAMEWORKS:
        failed = isinstance(sample[name], Exception)
        assert isinstance(found[name], type(sample[name])) if failed else True, found[name]
        assert failed or not isinstance(found[name], Exception), found[name]
    for name, other in [("torch", "tensorflow"), ("torch", "jax"), ("tensorflow", "jax")]:
        if not isinstance(sample[name], Exception) and agree([sample[name], sample[other]]):
            assert agree([found[name], found[other]], 1e-3), (name, other, found)


def test_a_norm_adds_the_epsilon_of_the_others():
    """Beside the deviations of the page's inputs, an epsilon is too small to show."""
    (row,) = (row for row in ROWS if row.name == "torch-layer-norm")
    found, _ = run(row, {"x": [[0.0, 0.01]]})
    assert agree(translation.as_torch(row, found), 1e-4)
    assert 0.5 < found["jax"].max() < 0.9


def test_every_row_has_a_name_of_its_own():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"torch(-[a-z0-9]+)+", name) for name in names)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_row_shows_the_code_that_it_runs(row):
    for framework, function in functions(row).items():
        shown = ast.parse(translation.code(function))
        names = {node.id for node in ast.walk(shown) if isinstance(node, ast.Name)}
        assert names >= {*reads(function)}, framework
        called = {node.attr for node in ast.walk(shown) if isinstance(node, ast.Attribute)}
        assert names | called >= {*function.__code__.co_names} - {"torch.utils"}, framework


def test_the_page_shows_every_group_once():
    shown = re.findall(r"^Table\((\w+)\)$", PAGE, flags=re.MULTILINE)
    assert sorted(shown) == sorted(GROUPS)


def test_the_recording_holds_every_row():
    recorded = (ROOT / "docs/_recorded/cpu/start/translation.ipynb").read_text("utf8")
    ids = re.findall(r'<tbody id=\\"(?:out-\w{10}-)?([\w-]+)\\"', recorded)
    assert sorted(ids) == sorted(row.name for row in ROWS)


def test_empty_is_uninitialized_from_the_version_that_the_row_names():
    (row,) = (row for row in ROWS if row.name == "torch-empty")
    since = re.search(r"zeros in JAX before ([\d.]+)", row.title)[1]
    program = str(jax.make_jaxpr(lambda: jnp.empty((2, 3)))())
    zeros = "broadcast_in_dim" in program and "0.0" in program
    assert zeros is (Version(jax.__version__) < Version(since))
    assert zeros or "= empty[" in program
    assert f"From JAX {since} on, `jnp.empty` is" in PAGE


def test_inputs_that_no_row_reads_are_not_kept():
    read = set().union(*(inputs(row) for row in ROWS))
    assert set(INPUTS) <= read


def one():
    return 1


def two():
    return 2


def less():
    return one() < two()


def test_results_that_differ_are_each_said():
    row = Row("Differs", one, two, one, differs=True)
    row.name = "torch-x"
    found = translation.results(row)
    assert not alike(row, found)
    assert translation.reported(row, found) == {
        "torch": "1",
        "tensorflow": "2",
        "jax": "1",
    }
    assert "<em>differs</em>" in translation.as_html(row, found)
    assert "gives 2" in translation.as_text(row, found)


def test_equal_results_are_said_once_with_their_dtypes():
    row = Row(
        "Same",
        lambda: torch.arange(2),
        lambda: tf.range(2),
        lambda: jnp.arange(2),
    )
    said = translation.reported(row, translation.results(row))
    assert said == {"all": "[0, 1] int64 in PyTorch, int32 in TensorFlow and JAX"}


def test_code_in_a_table_is_text():
    row = Row("Less", less, less, less)
    row.name = "torch-z"
    assert "<code>one() &lt; two()</code>" in translation.as_html(row, translation.results(row))
