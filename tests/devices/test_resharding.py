import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.devices import resharding

CPUS = jax.devices("cpu")
MESH = jax.make_mesh((8,), ("i",), devices=CPUS)
AUTO = jax.make_mesh((8,), ("i",), devices=CPUS, axis_types=(jax.sharding.AxisType.Auto,))
ROWS, COLUMNS, WHOLE = jax.P("i"), jax.P(None, "i"), jax.P()


@pytest.fixture
def mesh():
    with jax.set_mesh(MESH):
        yield MESH


def matrix(rows=16, columns=24):
    return np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_sort(rows, columns, seed):
    x = np.random.default_rng(seed).normal(size=(8 * rows, 8 * columns)).astype("f")
    with jax.set_mesh(MESH):
        result = resharding.sort_columns(jax.device_put(x, ROWS))
    np.testing.assert_array_equal(result, np.sort(x, axis=0))
    assert str(jax.typeof(result)) == f"float32[{8 * rows}@i,{8 * columns}]"


def test_sort_along_a_split_axis_raises(mesh, raises_declared):
    raises_declared(resharding.sort_sharded_columns, jax.device_put(matrix(), ROWS))


def test_reshard_and_constrain_are_for_different_axes(raises_declared):
    x = jax.device_put(matrix(), jax.NamedSharding(MESH, ROWS))
    with jax.set_mesh(MESH):
        raises_declared(resharding.constrain, x, jax.NamedSharding(MESH, COLUMNS))
        same = resharding.constrain(x, jax.NamedSharding(MESH, ROWS))
        assert same.sharding.is_equivalent_to(x.sharding, 2)
    moved = resharding.reshard(x, jax.NamedSharding(MESH, COLUMNS))
    assert str(jax.typeof(moved)) == "float32[16,24@i]"
    np.testing.assert_array_equal(moved, matrix())

    x = jax.device_put(matrix(), jax.NamedSharding(AUTO, ROWS))
    raises_declared(resharding.reshard, x, jax.NamedSharding(AUTO, COLUMNS))
    for function, factor in ((resharding.constrain, 1), (resharding.doubled, 2)):
        moved = function(x, jax.NamedSharding(AUTO, COLUMNS))
        assert moved.sharding.spec == COLUMNS
        np.testing.assert_array_equal(moved, factor * matrix())


def test_reshard_alone_works_by_name_below_a_mesh(mesh):
    x = jax.device_put(matrix(), ROWS)
    assert str(jax.typeof(jax.reshard(x, COLUMNS))) == "float32[16,24@i]"


@pytest.mark.parametrize(
    ("before", "after", "found", "share"),
    [
        (ROWS, ROWS, {}, 0),
        (ROWS, COLUMNS, {"all-to-all": 1}, 7 / 8),
        (COLUMNS, ROWS, {"all-to-all": 1}, 7 / 8),
        (ROWS, WHOLE, {"all-gather": 1}, 7),
        (WHOLE, ROWS, {}, 0),
        (WHOLE, COLUMNS, {}, 0),
    ],
    ids=str,
)
def test_cost_of_a_change(mesh, before, after, found, share):
    x = jax.device_put(matrix(), before)
    assert resharding.cost_of_change(x, after) == (found, share * x.nbytes)


def test_bytes_to_receive_agrees_with_a_count_by_mask(mesh):
    for before in (ROWS, COLUMNS, WHOLE):
        for after in (ROWS, COLUMNS, WHOLE):
            x = jax.device_put(matrix(), before)
            y = jax.reshard(x, after)
            missing = 0
            for old, new in zip(x.addressable_shards, y.addressable_shards, strict=True):
                assert old.device == new.device
                has, wants = np.zeros((2, *x.shape), bool)
                has[old.index] = wants[new.index] = True
                missing += (wants & ~has).sum()
            assert resharding.bytes_to_receive(x, y) == 4 * missing


@given(*[st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)] * 2)
def test_overlap(one, other):
    expected = len(set(range(*one)) & set(range(*other)))
    assert resharding.overlap([one], [other]) == expected
    assert resharding.overlap([one, (0, 3)], [other, (1, 9)]) == 2 * expected


def test_collectives_of_sums(mesh):
    x = jax.device_put(matrix(), ROWS)
    assert resharding.collectives(lambda x: x.sum(axis=1), x) == {}
    assert resharding.collectives(lambda x: x.sum(axis=0), x) == {"all-reduce": 1}
    assert resharding.collectives(resharding.sort_columns, x) == {"all-to-all": 2}


EXPLICIT, AUTOMATIC = jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto


@pytest.mark.parametrize("wrap", [jax.jit, lambda function: function], ids=["jit", "outside"])
@pytest.mark.parametrize("second", [EXPLICIT, AUTOMATIC])
@pytest.mark.parametrize("first", [EXPLICIT, AUTOMATIC])
@pytest.mark.parametrize("spec", [jax.P("i", "j"), jax.P(None, "j"), jax.P("i"), jax.P()])
def test_replicas_on_axes_of_each_kind_and_of_both(first, second, spec, wrap):
    mesh = jax.make_mesh((4, 2), ("i", "j"), (first, second), devices=CPUS)
    with jax.set_mesh(mesh):
        tree = {"x": jax.device_put(matrix(), jax.NamedSharding(mesh, spec))}
        found = wrap(resharding.replicate)(tree)["x"]
    assert found.sharding.is_fully_replicated
    np.testing.assert_array_equal(found, matrix())


def test_without_a_mesh_nothing_is_replicated():
    np.testing.assert_array_equal(jax.jit(resharding.replicate)(matrix()), matrix())


@pytest.mark.parametrize(
    ("change", "factor", "type_", "found"),
    [
        (resharding.to_columns, 1, "float32[16,24@i]", {"all-to-all": 1}),
        (resharding.to_replicated, 1, "float32[16,24]", {"all-gather": 1}),
        (resharding.double, 2, "float32[16@i,24]", {}),
    ],
)
def test_what_is_measured_moves_what_it_should(mesh, change, factor, type_, found):
    x = jax.device_put(matrix(), ROWS)
    np.testing.assert_array_equal(change(x), factor * matrix())
    assert str(jax.typeof(change(x))) == type_
    assert resharding.collectives(change, x) == found


@pytest.mark.skipif(not hasattr(jax.sharding, "no_collectives"), reason="JAX 0.12 has it")
def test_collectives_can_be_forbidden(mesh):
    x = jax.device_put(matrix(), ROWS)
    with jax.sharding.no_collectives({"i"}):
        assert jax.jit(lambda x: x.sum(axis=1))(x).shape == (len(x),)
        with pytest.raises(Exception, match="forbidden by `no_collectives`") as error:
            jax.jit(lambda x: x.sum(axis=0))(x)
    assert error.typename == "ForbiddenCollectiveError"
