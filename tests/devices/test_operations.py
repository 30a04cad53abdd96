import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.devices import operations
from snippets.devices.operations import COLUMNS, LAYOUTS, REPLICATED, ROWS, X
from snippets.devices.resharding import collectives

CPUS = jax.devices("cpu")
MESH = jax.make_mesh((4, 2), ("x", "y"), devices=CPUS)
OPERATIONS = {
    f"{group.__name__}.{name}": operation
    for group in operations.GROUPS
    for name, operation in operations.operations(group).items()
}


@pytest.fixture(autouse=True)
def mesh():
    with jax.set_mesh(MESH):
        yield MESH


def gradient(function, x):
    """Return the gradient of a sum of the result's elements with different weights."""

    def weighted(x):
        result = function(x)
        weights = np.linspace(1, 2, result.size, dtype=np.float32).reshape(result.shape)
        return jnp.sum(
            result.astype(jnp.float32) * jax.device_put(weights, jax.typeof(result).sharding)
        )

    return jax.jit(jax.grad(weighted))(x)


def test_at_least_forty_operations():
    assert len(OPERATIONS) >= 40


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_works_equals_the_unsharded_result_and_has_its_gradient(name):
    operation = OPERATIONS[name]
    expected = operation.call(jnp.asarray(X))
    refused = 0
    for spec in LAYOUTS.values():
        x = jax.device_put(X, spec)
        found = operations.outcome(operation, x)
        refused += found.error is not None
        function = operation.instead if found.error else operation.call
        result = jax.jit(function)(x)
        assert str(jax.typeof(result)) == found.result
        np.testing.assert_allclose(
            result.astype(jnp.float32), expected.astype(jnp.float32), rtol=1e-4, atol=1e-4
        )
        # JAX 0.10 differentiates this update wrongly: the first row of the second shard.
        known = name == "Updates.row" and jax.__version_info__ < (0, 11)
        if isinstance(found.backward, dict) and not known:
            np.testing.assert_allclose(
                gradient(function, x),
                gradient(operation.call, jnp.asarray(X)),
                rtol=1e-3,
                atol=1e-3,
            )
    assert (refused > 0) == (operation.instead is not None)


def test_counts_are_of_the_program_and_of_its_gradient():
    total = operations.Reductions.total
    found = operations.outcomes(total)
    assert [one.sent for one in found.values()] == [
        {"all-reduce": 1},
        {"all-reduce": 1},
        {"all-reduce": 2},
    ]
    assert all(one.backward == {} for one in found.values())
    argmax = operations.outcome(operations.Reductions.argmax, jax.device_put(X, ROWS))
    assert argmax.backward is None
    assert operations.sends(argmax) == "int32[8@x], sends nothing"


def test_an_operation_without_another_way_raises():
    operation = operations.Operation(lambda x: x[0])
    with pytest.raises(TypeError):
        operations.outcome(operation, jax.device_put(X, ROWS))


def test_a_table_says_what_was_refused_and_what_works():
    class Two:
        row = operations.Indexing.row
        transpose = operations.Shapes.transpose

    table = operations.Table(Two)
    text, shown = repr(table), table._repr_html_()
    assert 'P("x", None): ShardingTypeError: slicing on sharded dims' in text
    assert "    reshard(x, COLUMNS)[0]\n    float32[16@x], sends 1 all-to-all" in text
    assert '  P(None, "x"): float32[16@x], sends nothing; backward nothing' in text
    assert shown.count("<em>refused</em>") == 2
    assert shown.count("<tbody") == 2 and 'id="two-row"' in shown


@pytest.mark.parametrize("spec", [ROWS, COLUMNS], ids=str)
def test_the_gradient_of_a_fourier_transform_along_a_sharded_last_axis_fails(spec):
    x = jax.device_put(X, spec)
    transformed = jax.jit(jax.grad(lambda x: jnp.abs(jnp.fft.fft(x, axis=1)).sum()))
    if spec == ROWS:
        assert np.isfinite(transformed(x)).all()
    else:
        if jax.__version_info__ > (0, 12, 0, 1):
            pytest.skip("look whether XLA has mended it, and whether the page still says so")
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"RET_CHECK failure .*fft_thunk"):
            transformed(x).block_until_ready()


def test_auto_axes_and_explicit_axes(capsys):
    x = jax.device_put(X, ROWS)
    np.testing.assert_allclose(operations.gram(x), X @ X.T, rtol=1e-5, atol=1e-5)
    assert str(jax.typeof(operations.gram(x))) == "float32[8@x,8]"
    auto = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,), devices=CPUS)
    with jax.set_mesh(auto):
        doubled = operations.typed(jax.device_put(X, ROWS))
    assert capsys.readouterr().out == "float32[8@x,16]\n"
    np.testing.assert_array_equal(doubled, 2 * X)


def test_unreduced_gradients_are_added_up_once():
    w = jax.device_put(operations.W, REPLICATED)
    batches = jax.device_put(np.stack([X, X + 1, X - 1]), jax.P(None, "x"))
    expected = sum(jax.grad(operations.loss)(operations.W, batch) for batch in np.asarray(batches))
    for function, inside in ((operations.sum_in_each, 1), (operations.sum_once, 0)):
        np.testing.assert_allclose(function(w, batches), expected, rtol=1e-4)
        assert collectives(function, w, batches) == {"all-reduce": 1}
        assert operations.collectives_in_loops(function, w, batches) == inside
    unreduced = jax.reshard(jnp.zeros_like(w), jax.P(unreduced={"x"}))
    with pytest.raises(Exception, match="should be reduced along the same axes"):
        2 * unreduced
    assert str(jax.typeof(unreduced + unreduced)) == "float32[16,8]{U:x}"


def test_manual_along_one_axis():
    total = operations.total_by_hand(jax.device_put(X, jax.P("x", "y")))
    assert str(jax.typeof(total)) == "float32[16@y]"
    np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-5, atol=1e-5)
    assert COLUMNS == jax.P(None, "x")
