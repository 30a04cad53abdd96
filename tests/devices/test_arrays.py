import re
from xml.etree import ElementTree

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.devices import arrays
from snippets.devices.operations import ROWS, W, X
from snippets.devices.resharding import collectives, collectives_in_loops

EXPLICIT = jax.make_mesh((4, 2), ("x", "y"), devices=jax.devices("cpu"))
AUTO = jax.make_mesh(
    (4, 2),
    ("x", "y"),
    devices=jax.devices("cpu"),
    axis_types=(jax.sharding.AxisType.Auto,) * 2,
)
LAYOUTS = [(), ("x",), ("y",), (None, "y"), ("x", "y"), ("y", "x"), (("x", "y"),)]


def numbers(rows=8, columns=8):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return np.dot(linear, (0.2126, 0.7152, 0.0722))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_axes_of_a_new_mesh_are_explicit():
    assert EXPLICIT.axis_types == (jax.sharding.AxisType.Explicit,) * 2
    assert EXPLICIT.shape == {"x": 4, "y": 2}


@pytest.mark.parametrize("axes", LAYOUTS, ids=str)
def test_blocks_are_what_the_shards_say(axes):
    x = arrays.place(numbers(), EXPLICIT, *axes)
    np.testing.assert_array_equal(x, numbers())
    found = {}
    for shard in x.addressable_shards:
        block = tuple(s.indices(8)[:2] for s in shard.index)
        found.setdefault(block, []).append(shard.device.id)
        np.testing.assert_array_equal(shard.data, numbers()[shard.index])
    assert arrays.blocks(x) == {block: sorted(ids) for block, ids in found.items()}


@pytest.mark.parametrize(
    ("axes", "type_", "shape"),
    [
        (("x",), "float32[8@x,8]", (2, 8)),
        ((None, "y"), "float32[8,8@y]", (8, 4)),
        (("x", "y"), "float32[8@x,8@y]", (2, 4)),
        ((("x", "y"),), "float32[8@(x,y),8]", (1, 8)),
        ((), "float32[8,8]", (8, 8)),
    ],
)
def test_layouts(axes, type_, shape):
    x = arrays.place(numbers(), EXPLICIT, *axes)
    assert str(jax.typeof(x)) == type_
    assert {shard.data.shape for shard in x.addressable_shards} == {shape}


@pytest.mark.parametrize("axes", LAYOUTS, ids=str)
def test_a_picture_has_a_box_for_each_block_and_names_every_device(axes):
    x = arrays.place(numbers(), EXPLICIT, *axes)
    svg = arrays.draw(x).data
    assert svg.count("<rect") == len(arrays.blocks(x))
    inside = re.findall(r'fill="white">([\d, ]+)<', svg)
    assert sorted(int(n) for names in inside for n in names.split(",")) == list(range(8))
    assert str(jax.typeof(x)) in svg
    colours = re.findall('<rect [^>]*fill="([^"]+)"', svg)
    assert len(set(colours)) == len(colours)


@pytest.mark.parametrize("axes", LAYOUTS, ids=str)
def test_a_picture_says_in_words_what_it_shows(axes):
    x = arrays.place(numbers(), EXPLICIT, *axes)
    svg = arrays.draw(x).data
    (words,) = re.findall('role="img" aria-label="([^"]*)"', svg)
    held = {}
    for block in words.split(": ", 1)[1].split("; "):
        found = re.fullmatch(r"rows (\d+):(\d+), columns (\d+):(\d+) on ([\d, ]+)", block)
        top, bottom, left, right = map(int, found.groups()[:4])
        held[(top, bottom), (left, right)] = list(map(int, found[5].split(",")))
    assert held == arrays.blocks(x)


def test_each_side_has_the_edges_of_the_blocks_once():
    svg = arrays.draw(arrays.place(numbers(24, 8), EXPLICIT, "x", "y")).data
    texts = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*"currentColor">(\d+)<', svg)
    above = [(float(x), int(n)) for x, y, n in texts if y == "40"]
    beside = [(float(y), int(n)) for x, y, n in texts if x == "42"]
    assert above == [(50, 0), (250, 4), (450, 8)]
    assert beside == [(53, 0), (101, 6), (149, 12), (197, 18), (245, 24)]


def test_pictures_of_vectors_and_numbers():
    assert arrays.draw(arrays.place(np.arange(8.0), EXPLICIT, "x")).data.count("<rect") == 4
    assert arrays.draw(arrays.place(np.float32(1), EXPLICIT)).data.count("<rect") == 1


def test_pictures_are_readable_on_light_and_dark():
    for colour in arrays.COLOURS:
        assert contrast(colour, "#ffffff") >= 4.5
        assert contrast(colour, "#14181e") >= 3
    assert len(set(arrays.COLOURS)) == 8
    outside = re.findall('<text [^>]*fill="([^"]+)"', arrays.label(0, 0, "a"))
    assert outside == ["currentColor"]


def test_pictures_are_plain_svg_within_their_frame():
    svg = arrays.draw(arrays.place(numbers(10, 3), EXPLICIT)).data
    root = ElementTree.fromstring(svg)
    assert {part.tag for part in root.iter()} == {"svg", "rect", "text"}
    assert root.get("role") == "img"
    width, height = map(float, root.get("viewBox").split()[2:])
    assert str(root.get("width")) == f"{width:g}"
    for part in root:
        assert 0 <= float(part.get("x")) <= width
        assert 0 <= float(part.get("y")) <= height


def test_types_follow_through_operations():
    x = arrays.place(numbers(), EXPLICIT, "x", "y")
    assert str(jax.typeof(jnp.sin(x))) == "float32[8@x,8@y]"
    assert str(jax.typeof(x.T)) == "float32[8@y,8@x]"
    assert str(jax.typeof(x.sum(axis=1))) == "float32[8@x]"
    assert str(jax.typeof(x + jnp.ones(8))) == "float32[8@x,8@y]"


def test_contradicting_layouts_raise(raises_declared):
    x, y = (arrays.place(numbers(), EXPLICIT, axis) for axis in "xy")
    raises_declared(arrays.add, x, y)
    np.testing.assert_array_equal(arrays.add(x, x), 2 * numbers())


def test_a_matmul_over_a_sharded_axis_raises_and_can_be_told(raises_declared):
    x = arrays.place(numbers(8, 4), EXPLICIT, "x", "y")
    w = arrays.place(numbers(4, 6), EXPLICIT, "y")
    raises_declared(arrays.matmul, x, w)
    with jax.set_mesh(EXPLICIT):
        result = arrays.matmul_by_rows(x, w)
    assert str(jax.typeof(result)) == "float32[8@x,6]"
    np.testing.assert_allclose(result, numbers(8, 4) @ numbers(4, 6))


def test_the_class_of_the_errors_is_in_no_public_module():
    for module in (jax, jax.core, jax.errors, jax.sharding, jax.extend.core):
        assert not hasattr(module, "ShardingTypeError")


def test_a_gradient_outside_of_jit_needs_the_mesh():
    x = arrays.place(numbers(), EXPLICIT, "x")
    gradient = jax.grad(lambda x: (x**2).sum())
    with pytest.raises(ValueError, match="Please enter your `jit` into a mesh context"):
        gradient(x)
    with jax.set_mesh(EXPLICIT):
        assert str(jax.typeof(gradient(x))) == "float32[8@x,8]"


TABLE_AND_INDEX = [
    ((), ("x",)),
    (("x",), ()),
    (("x",), ("x",)),
    (("x",), ("y",)),
    ((None, "y"), ("x",)),
]


@pytest.mark.parametrize(("table", "index"), TABLE_AND_INDEX)
def test_a_sharded_index_is_ambiguous_and_can_be_told(table, index, raises_declared):
    ids = np.array([7, 0, 7, 3])
    with jax.set_mesh(EXPLICIT):
        table, ids = (
            jax.device_put(x, jax.P(*axes)) for x, axes in ((numbers(), table), (ids, index))
        )
        raises_declared(arrays.rows_at, table, ids)
        rows = arrays.rows_by_ids(table, ids)
        assert str(jax.typeof(rows)).startswith("float32[4@x,")
        np.testing.assert_array_equal(rows, numbers()[[7, 0, 7, 3]])
        gradient = jax.grad(lambda table: arrays.rows_by_ids(table, ids).sum())(table)
    assert gradient.sharding.is_equivalent_to(table.sharding, 2)
    np.testing.assert_array_equal(np.asarray(gradient)[:, 0], [1, 0, 0, 1, 0, 0, 0, 2])


def test_the_axes_can_be_automatic_inside_one_function():
    ids = np.array([7, 0, 7, 3])
    with jax.set_mesh(EXPLICIT):
        table, ids = jax.device_put((numbers(), ids), jax.P("x"))
        by_compiler = jax.sharding.auto_axes(arrays.rows_at, out_sharding=jax.P("x"))
        rows = by_compiler(table, ids)
    assert str(jax.typeof(rows)) == "float32[4@x,8]"
    np.testing.assert_array_equal(rows, numbers()[[7, 0, 7, 3]])


def test_an_index_that_is_not_sharded_needs_nothing():
    ids = np.array([7, 0, 7, 3])
    with jax.set_mesh(EXPLICIT):
        for axes in ((), (None, "y")):
            table = jax.device_put(numbers(), jax.P(*axes))
            np.testing.assert_array_equal(arrays.rows_at(table, ids), numbers()[ids])


def test_a_scatter_at_sharded_indices_is_ambiguous(raises_declared):
    ids = np.array([7, 0, 7, 3])
    assert arrays.count(ids).tolist() == [1, 0, 0, 1, 0, 0, 0, 2]
    with jax.set_mesh(EXPLICIT):
        raises_declared(arrays.count, jax.device_put(ids, jax.P("x")))


def test_the_loss_of_optax_needs_a_mesh_that_is_set():
    optax = pytest.importorskip("optax")
    sharding = jax.NamedSharding(EXPLICIT, jax.P("x"))
    logits, labels = jax.device_put((numbers(), np.arange(8)), sharding)

    @jax.jit
    @jax.grad
    def gradient(logits, labels):
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    with jax.set_mesh(EXPLICIT):
        expected = gradient(logits, labels)
    assert expected.sharding.is_equivalent_to(sharding, 2)
    if tuple(map(int, jax.__version__.split(".")[:2])) < (0, 11):
        np.testing.assert_allclose(gradient(logits, labels), expected, rtol=1e-5)
    else:
        with pytest.raises(arrays.ShardingTypeError, match="for the scatter update"):
            gradient(logits, labels)


def test_the_compiler_chooses_with_automatic_axes():
    x = arrays.place(numbers(8, 4), AUTO, "x", "y")
    w = arrays.place(numbers(4, 6), AUTO, "y")
    assert str(jax.typeof(x)) == "float32[8,4]"
    result = arrays.matmul(x, w)
    np.testing.assert_allclose(result, numbers(8, 4) @ numbers(4, 6))
    assert len(result.sharding.device_set) == 8


def test_a_mesh_that_is_set_is_used_for_new_arrays():
    with jax.set_mesh(EXPLICIT):
        x = jax.device_put(numbers(), jax.P("x"))
        assert str(jax.typeof(x)) == "float32[8@x,8]"
        assert len(jnp.zeros((8, 8)).sharding.device_set) == 8


@pytest.mark.parametrize("axes", LAYOUTS)
def test_held_by_each_is_what_the_shards_hold(axes):
    x = arrays.place(numbers(), EXPLICIT, *axes)
    found = arrays.held_by_each(x=x, y=x)
    assert found["x"] == found["y"]
    assert found["x"]["shape"] == (8, 8)
    assert len(found["x"]["devices"]) == 8
    for shard in x.addressable_shards:
        rows, columns = found["x"]["devices"][f"device {shard.device.id}"]
        np.testing.assert_array_equal(shard.data, numbers()[slice(*rows), slice(*columns)])


@pytest.fixture
def mesh():
    with jax.set_mesh(EXPLICIT):
        yield EXPLICIT


@pytest.mark.usefixtures("mesh")
def test_auto_axes_and_explicit_axes(capsys):
    x = jax.device_put(X, ROWS)
    np.testing.assert_allclose(arrays.gram(x), X @ X.T, rtol=1e-5, atol=1e-5)
    assert str(jax.typeof(arrays.gram(x))) == "float32[8@x,8]"
    with jax.set_mesh(AUTO):
        doubled = arrays.typed(jax.device_put(X, ROWS))
    assert capsys.readouterr().out == "float32[8@x,16]\n"
    np.testing.assert_array_equal(doubled, 2 * X)


@pytest.mark.usefixtures("mesh")
def test_unreduced_gradients_are_added_up_once():
    w = jax.device_put(W, jax.P())
    batches = jax.device_put(np.stack([X, X + 1, X - 1]), jax.P(None, "x"))
    expected = sum(jax.grad(arrays.loss)(W, batch) for batch in np.asarray(batches))
    for function, inside in ((arrays.sum_in_each, 1), (arrays.sum_once, 0)):
        np.testing.assert_allclose(function(w, batches), expected, rtol=1e-4)
        assert collectives(function, w, batches) == {"all-reduce": 1}
        assert collectives_in_loops(function, w, batches) == inside
    unreduced = jax.reshard(jnp.zeros_like(w), jax.P(unreduced={"x"}))
    with pytest.raises(Exception, match="should be reduced along the same axes"):
        2 * unreduced
    assert str(jax.typeof(unreduced + unreduced)) == "float32[16,8]{U:x}"


@pytest.mark.usefixtures("mesh")
def test_manual_along_one_axis():
    total = arrays.total_by_hand(jax.device_put(X, jax.P("x", "y")))
    assert str(jax.typeof(total)) == "float32[16@y]"
    np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-5, atol=1e-5)
