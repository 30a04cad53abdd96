import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.devices import operations
from snippets.devices.operations import COLUMNS, LAYOUTS, ROWS, X

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

    class One:
        new_axis = operations.Shapes.new_axis

    table = operations.Table(Two, One)
    text, shown = repr(table), table._repr_html_()
    assert 'P("x", None): ShardingTypeError: slicing on sharded dims' in text
    assert "    reshard(x, COLUMNS)[0]\n    float32[16@x], sends 1 all-to-all" in text
    assert '  P(None, "x"): float32[16@x], sends nothing; backward nothing' in text
    assert shown.count("<em>refused</em>") == 2
    assert re.findall('tbody id="(.*?)"', shown) == ["two-row", "two-transpose", "one-new-axis"]
    heads = re.findall("<small>(.*?)</small>", shown)
    assert shown.count('<td data-layout="P(&quot;x&quot;, None)">') == 3
    assert heads == ["float32[8@x,16]", "float32[8,16@x]", "float32[8@x,16@y]"]


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


DECOMPOSITIONS = {
    "svd": jnp.linalg.svd,
    "eigh": jnp.linalg.eigh,
    "lu_factor": jax.scipy.linalg.lu_factor,
    "det": jnp.linalg.det,
    "solve": lambda a: jnp.linalg.solve(a, a),
    "cholesky": jnp.linalg.cholesky,
    "qr": jnp.linalg.qr,
    "inv": jnp.linalg.inv,
}


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_which_decompositions_take_a_batch_that_is_sharded(name):
    decompose = DECOMPOSITIONS[name]
    factors = X.reshape(8, 4, 4)
    batch = factors @ factors.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
    sharded, expected = jax.device_put(batch, ROWS), jax.tree.leaves(decompose(batch))
    ways = {
        "as it is": decompose,
        "vmap": jax.vmap(decompose),
        "auto_axes": jax.sharding.auto_axes(decompose, out_sharding=ROWS),
    }
    works = set()
    for way, function in ways.items():
        try:
            results = function(sharded)
        except (operations.ShardingTypeError, ValueError):
            continue
        works.add(way)
        for result, right in zip(jax.tree.leaves(results), expected, strict=True):
            assert jax.typeof(result).sharding.spec[0] == "x"
            np.testing.assert_allclose(result, right, rtol=1e-3, atol=1e-3)
    refused = {"cholesky": {"as it is"}, "qr": {"as it is", "vmap"}, "inv": {"as it is", "vmap"}}
    assert works == ways.keys() - refused.get(name, set())


@pytest.mark.parametrize("shape", [(16, 8), (4, 32), (2, 64), (32, 4)])
def test_a_reshape_that_splits_and_merges_is_refused(shape):
    with pytest.raises(operations.ShardingTypeError, match="reshape is not supported"):
        jax.device_put(X, ROWS).reshape(shape)
