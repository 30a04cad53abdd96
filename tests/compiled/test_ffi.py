"""A C function in compiled programs: equal, mapped, differentiated, sharded, and refused."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.compiled import ffi
from snippets.training.data_parallel import count_collectives
from snippets.vectorizing.simulations import recurrence

X = jax.random.normal(jax.random.key(0), (8, 50))
KEEP = 0.9
if shutil.which("c++") is None:
    pytest.skip("no C++ compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def library():
    library = ffi.shared_library(ffi.DECAY + ffi.HANDLER)
    capsule = jax.ffi.pycapsule(library.decay_handler)
    jax.ffi.register_ffi_target("decay", capsule, platform="cpu")
    return library


@pytest.fixture
def decay(library):
    decay = jax.custom_vjp(ffi.decay.fun, nondiff_argnums=(1,))
    decay.defvjp(ffi.decay_forward, ffi.decay_backward)
    return decay


def expected(x):
    return jax.vmap(lambda x: recurrence(jnp.full_like(x, KEEP), x))(x)


def close(found, exact):
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)


def test_eagerly_compiled_and_for_any_number_of_axes(decay):
    close(decay(X, KEEP), expected(X))
    close(jax.jit(decay, static_argnums=1)(X[0], KEEP), expected(X)[0])
    close(decay(X.reshape(2, 4, 50), KEEP), expected(X).reshape(2, 4, 50))
    assert decay(jnp.zeros((3, 0)), KEEP).shape == (3, 0)


@pytest.mark.parametrize(
    ("method", "calls"), [("sequential", 8), ("expand_dims", 1), ("broadcast_all", 1)]
)
def test_vmap_calls_it_for_each_row_or_once(library, method, calls):
    mapped = jax.vmap(lambda x: ffi.foreign_decay(x, KEEP, method))
    assert ffi.counted(library, mapped, X) == (calls, 8)
    close(mapped(X), expected(X))


def test_without_a_method_vmap_refuses(library):
    with pytest.raises(NotImplementedError, match="vmap is only supported for the ffi_call"):
        jax.vmap(lambda x: ffi.foreign_decay(x, KEEP, None))(X)


def test_the_gradient_is_that_of_the_scan(decay):
    found = jax.grad(lambda x: jnp.sin(decay(x, KEEP)).sum())
    exact = jax.grad(lambda x: jnp.sin(expected(x)).sum())(X)
    close(found(X), exact)
    close(jax.vmap(found)(X), exact)


@pytest.mark.parametrize("kind", [jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto])
def test_sharded_each_device_computes_all_rows_but_under_shard_map_its_own(library, decay, kind):
    mesh = jax.make_mesh((4,), ("data",), (kind,), devices=jax.devices("cpu")[:4])
    with jax.set_mesh(mesh):
        x = jax.device_put(X, jax.P("data"))
        alone = jax.jit(lambda x: decay(x, KEEP)).lower(x).compile()
        assert count_collectives(alone.as_text())["all-gather"]["elements"] == X.size
        assert ffi.counted(library, alone, x) == (4, 4 * 8)
        shards = jax.jit(ffi.by_shards(lambda x: decay(x, KEEP))).lower(x).compile()
        assert count_collectives(shards.as_text()) == {}
        assert ffi.counted(library, shards, x) == (4, 8)
        close(shards(x), expected(X))
        assert shards(x).addressable_shards[0].data.shape == (2, 50)


def test_a_callback_enters_python_each_time(library):
    seen = []

    def host(x):
        return ffi.decay_on_host(x, KEEP, seen)

    close(host(X[0]), expected(X)[0])
    close(jax.vmap(host)(X), expected(X))
    seen.clear()
    jax.block_until_ready(ffi.hundred_times(host, X[0]))
    assert len(seen) == 100

    def foreign(x):
        return ffi.foreign_decay(x, KEEP)

    assert ffi.counted(library, lambda x: ffi.hundred_times(foreign, x), X[0]) == (100, 100)


def test_what_is_exported_and_what_is_not(library):
    with pytest.raises(NotImplementedError, match="serialization of host_callbacks"):
        jax.export.export(jax.jit(lambda x: ffi.decay_on_host(x, KEEP, [])))(X).serialize()
    foreign = jax.jit(lambda x: ffi.foreign_decay(x, KEEP))
    with pytest.raises(ValueError, match="no compatibility guarantees"):
        jax.export.export(foreign)(X)
    allowed = [jax.export.DisabledSafetyCheck.custom_call("decay")]
    file = jax.export.export(foreign, disabled_checks=allowed)(X).serialize()
    close(jax.export.deserialize(file).call(X), expected(X))


def test_what_is_refused(library, raises_declared):
    raises_declared(ffi.derivative_of_foreign, X[0])
    raises_declared(ffi.unregistered, X[0])
    raises_declared(ffi.decay_of_counts, X[0])
    raises_declared(ffi.decay_at_last, X[0])


def test_a_python_float_has_another_type_than_the_attribute(library):
    call = jax.ffi.ffi_call("decay", jax.ShapeDtypeStruct((50,), jnp.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="expected F32 but got F64"):
        call(X[0], keep=0.9)


def test_a_name_stands_for_one_function(library):
    other = ffi.shared_library(ffi.DECAY + ffi.HANDLER)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Duplicate FFI handler registration"):
        capsule = jax.ffi.pycapsule(other.decay_handler)
        jax.ffi.register_ffi_target("decay", capsule, platform="cpu")
