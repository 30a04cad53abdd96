import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.pitfalls import leaks

pytestmark = pytest.mark.usefixtures("few_objects")

X = jnp.array([1.0, 2.0, 6.0])


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(leaks, "KEPT", [])
    jax.clear_caches()
    for cached in (leaks.positions, leaks.numpy_positions, leaks.evaluated_positions):
        cached.cache_clear()


def test_a_kept_attribute_is_a_tracer_and_fails_when_used(raises_declared):
    layer = leaks.Centring()
    assert jax.jit(layer.centre)(X).tolist() == [-2, -1, 3]
    assert isinstance(layer.mean, jax.core.Tracer)
    assert layer.mean.shape == ()
    assert "JitTracer" in str(layer.mean)
    error = raises_declared(leaks.use_kept_attribute, X)
    assert "was centre" in str(error)
    assert "(Centring.centre)" in str(error)


def test_without_jit_an_attribute_keeps_a_value():
    layer = leaks.Centring()
    layer.centre(X)
    assert layer.mean == 3


def test_a_leaked_number_has_other_errors(raises_declared):
    raises_declared(leaks.float_of_kept_attribute, X)
    layer = leaks.Centring()
    jax.jit(layer.centre)(X)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        bool(layer.mean)
    with pytest.raises(jax.errors.TracerArrayConversionError):
        np.asarray(layer.mean)


def test_the_mean_as_a_result():
    centred, mean = leaks.centred_and_mean(X)
    assert (centred + mean).tolist() == X.tolist()


def test_a_loop_that_keeps_its_last_element(raises_declared):
    error = raises_declared(leaks.drop_last_by_nonlocal, X)
    assert "was step" in str(error)
    raises_declared(leaks.drop_last_by_nonlocal, jnp.ones(5))
    assert leaks.drop_last_by_carry(X) == 3
    assert jax.jit(leaks.drop_last_by_carry)(X) == 3


def test_a_cache_holds_a_tracer_if_it_was_filled_while_tracing(raises_declared):
    raises_declared(leaks.use_cached_positions, jnp.zeros(3))
    with pytest.raises(jax.errors.UnexpectedTracerError):
        leaks.add_positions(jnp.zeros((3, 3)))
    jax.clear_caches()
    leaks.positions.cache_clear()
    assert leaks.positions(3).tolist() == [0, 2, 4]
    assert leaks.use_cached_positions(jnp.zeros(3)).tolist() == [1, 3, 5]


@pytest.mark.parametrize("cached", [leaks.numpy_positions, leaks.evaluated_positions])
def test_caches_without_tracers(cached):
    assert jax.jit(lambda x: x + cached(3))(jnp.zeros(3)).tolist() == [0, 2, 4]
    assert (cached(3) + 1).tolist() == [1, 3, 5]
    assert cached.cache_info().misses == 1


def test_the_check_finds_a_tracer_that_nobody_uses(raises_declared):
    error = raises_declared(leaks.keep_while_checked, 1.0)
    assert "tracing the function keep" in str(error)
    assert f"<list {id(leaks.KEPT)}>[0]" in str(error)


def test_what_the_check_finds_and_misses():
    assert leaks.leaks(jax.jit(leaks.keep), 1.0)
    assert leaks.leaks(jax.vmap(leaks.keep), jnp.ones(2))
    assert leaks.leaks(jax.grad(leaks.keep), 1.0) == (jax.__version_info__ >= (0, 11))
    assert isinstance(leaks.KEPT[-1], jax.core.Tracer)
    traced = jax.jit(lambda x: leaks.keep(x + 1))
    traced(1.0)
    assert not leaks.leaks(traced, 1.0)


def test_the_check_lets_ordinary_functions_pass():
    assert not leaks.leaks(jax.jit(jnp.sin), 1.0)
    assert not leaks.leaks(leaks.drop_last_by_carry, X)


def test_the_check_complains_of_an_error_that_was_kept():
    history = []

    def double(x):
        try:
            history.append(float(x))
        except jax.errors.ConcretizationTypeError as error:
            history.append(error)
        return 2 * x

    assert leaks.leaks(jax.jit(double), 1.0)
    assert [type(entry) for entry in history] == [jax.errors.ConcretizationTypeError]
    assert double(1.0) == 2


def test_a_generator_carries_a_tracer_into_the_next_trace():
    def running_sum():
        total = 0.0
        while True:
            total = total + (yield total)

    sums = running_sum()
    next(sums)

    @jax.jit
    def add(x):
        return sums.send(x)

    add(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        add(jnp.ones(2))
