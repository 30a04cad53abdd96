import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.devices import axes
from snippets.devices.operations import ROWS, W, X
from snippets.devices.resharding import collectives

CPUS = jax.devices("cpu")
MESH = jax.make_mesh((4, 2), ("x", "y"), devices=CPUS)


@pytest.fixture(autouse=True)
def mesh():
    with jax.set_mesh(MESH):
        yield MESH


def test_auto_axes_and_explicit_axes(capsys):
    x = jax.device_put(X, ROWS)
    np.testing.assert_allclose(axes.gram(x), X @ X.T, rtol=1e-5, atol=1e-5)
    assert str(jax.typeof(axes.gram(x))) == "float32[8@x,8]"
    auto = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,), devices=CPUS)
    with jax.set_mesh(auto):
        doubled = axes.typed(jax.device_put(X, ROWS))
    assert capsys.readouterr().out == "float32[8@x,16]\n"
    np.testing.assert_array_equal(doubled, 2 * X)


def test_unreduced_gradients_are_added_up_once():
    w = jax.device_put(W, jax.P())
    batches = jax.device_put(np.stack([X, X + 1, X - 1]), jax.P(None, "x"))
    expected = sum(jax.grad(axes.loss)(W, batch) for batch in np.asarray(batches))
    for function, inside in ((axes.sum_in_each, 1), (axes.sum_once, 0)):
        np.testing.assert_allclose(function(w, batches), expected, rtol=1e-4)
        assert collectives(function, w, batches) == {"all-reduce": 1}
        assert axes.collectives_in_loops(function, w, batches) == inside
    unreduced = jax.reshard(jnp.zeros_like(w), jax.P(unreduced={"x"}))
    with pytest.raises(Exception, match="should be reduced along the same axes"):
        2 * unreduced
    assert str(jax.typeof(unreduced + unreduced)) == "float32[16,8]{U:x}"


@pytest.mark.parametrize("kind", [jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto])
def test_features_on_an_automatic_axis(kind):
    kinds = kind, jax.sharding.AxisType.Auto
    mesh = jax.make_mesh((4, 2), ("data", "model"), kinds, devices=CPUS)
    up, down = np.sin(np.arange(512.0, dtype="f").reshape(2, 16, 16))
    with jax.set_mesh(mesh):
        x = jax.device_put(X, jax.NamedSharding(mesh, jax.P("data")))
        found = axes.two_matmuls(x, up, down)
        assert collectives(axes.two_matmuls, x, up, down) == {"all-reduce": 1}
        program = axes.two_matmuls.lower(x, up, down).compile()
    np.testing.assert_allclose(found, np.tanh(X @ up) @ down, rtol=1e-4, atol=1e-4)
    # A device has two rows, and half of the features in between.
    assert "f32[2,8]" in program.as_text()


def test_each_kind_of_axis_has_its_function():
    kinds = jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto
    with jax.set_mesh(jax.make_mesh((4, 2), ("data", "model"), kinds, devices=CPUS)):
        x = jax.device_put(X, jax.P("data"))
        with pytest.raises(ValueError, match="can only refer to Auto axes of the mesh"):
            jax.lax.with_sharding_constraint(x, jax.P("data"))
        with pytest.raises(ValueError, match="cannot contain axis names that are of type Auto"):
            jax.reshard(x, jax.P(None, "model"))


def test_manual_along_one_axis():
    total = axes.total_by_hand(jax.device_put(X, jax.P("x", "y")))
    assert str(jax.typeof(total)) == "float32[16@y]"
    np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-5, atol=1e-5)
