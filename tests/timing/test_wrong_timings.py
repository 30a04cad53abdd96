import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.timing import wrong_timings
from snippets.timing.timer import no_wait


@pytest.fixture
def measured(monkeypatch):
    """Run what would be measured once, and keep it by name and framework."""
    seen = {}

    def fake(name, function, *args, **settings):
        result = function(*args)
        seen.setdefault(name, []).append((function, args, settings, result))

    monkeypatch.setattr(wrong_timings, "measure", fake)
    return seen


@settings(deadline=None)
@given(st.floats(-15, 15, width=32))
def test_smooth_is_the_logistic_function(x):
    assert float(wrong_timings.smooth(jnp.float32(x))) == pytest.approx(
        1 / (1 + np.exp(-np.float64(x))), rel=1e-5
    )


def test_random_square_has_the_dtype_asked_for():
    for dtype in (np.float32, np.float64):
        x = wrong_timings.random_square(200, dtype)
        assert x.dtype == dtype
        assert x.shape == (200, 200)
        assert abs(x.std() - 1) < 0.02


def test_only_the_wrong_one_does_not_wait(measured):
    wrong_timings.unblocked(jnp.ones((3, 3)))
    (_, _, wrong, _), (_, _, right, _) = (
        measured[f"gallery/{name}"][0] for name in ("unblocked", "blocked")
    )
    assert wrong == {"wait": no_wait, "calls": 1}
    assert right == {}


def test_the_first_call_is_in_one_loop_only(measured, monkeypatch):
    compiled = []
    jit = jax.jit

    def counting(function):
        compiled.append(function)
        return jit(function)

    monkeypatch.setattr(wrong_timings.jax, "jit", counting)
    wrong_timings.with_first_call(jnp.ones(3))
    (wrong, _, settings, _) = measured["gallery/first_call_included"][0]
    (right, _, _, _) = measured["gallery/first_call_apart"][0]
    assert settings["framework"] == "jax"
    before = len(compiled)
    right()
    assert len(compiled) == before
    wrong()
    assert len(compiled) == before + 1


def test_numpy_computes_in_double_and_jax_in_single(measured):
    assert wrong_timings.result_dtypes(3) == {"NumPy": np.float64, "JAX": np.float32}
    with jax.default_device(jax.devices()[3]):
        wrong_timings.two_precisions(3)
    assert [x.dtype for x in measured["gallery/float64"][0][1]] == [np.float64] * 2
    in_numpy, in_jax = measured["gallery/float32"]
    assert isinstance(in_numpy[3], np.ndarray)
    assert isinstance(in_jax[3], jax.Array)
    assert {x.device for x in in_jax[1]} == {jax.devices("cpu")[0]}
    assert {x.dtype for x in in_jax[1]} == {np.dtype("float32")}
    np.testing.assert_allclose(in_numpy[3], in_jax[3], rtol=1e-5)


def test_the_wrong_one_converts_in_every_call(measured):
    wrong_timings.with_conversion(4)
    (_, (on_host,), _, wrong) = measured["gallery/converted_each_call"][0]
    (_, (on_device,), _, right) = measured["gallery/converted_before"][0]
    assert isinstance(on_host, np.ndarray)
    assert isinstance(on_device, jax.Array)
    np.testing.assert_array_equal(wrong, right)


def test_all_ways_to_compile_give_the_same_values(measured):
    x = jnp.linspace(-2, 2, 7)
    wrong_timings.jit_once(x)
    wrong_timings.jit_in_the_loop(x)
    assert len(measured) == 4
    for ((_, _, _, result),) in measured.values():
        np.testing.assert_allclose(result, wrong_timings.smooth(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("jax.jit(f)", 1), ("jax.jit(lambda y: f(y))", 5), ("jax.jit(partial(f))", 5)],
)
def test_which_wrappers_trace_again(written, expected):
    assert wrong_timings.traces(wrong_timings.WRAPPERS[written]) == expected
