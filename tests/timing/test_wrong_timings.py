import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.timing import wrong_timings


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


def test_ten_calls_are_ten_and_each_is_waited_for():
    made = []

    class Result:
        def block_until_ready(self):
            made.append("waited")
            return self

    def function(x):
        made.append(x)
        return Result()

    wrong_timings.ten_calls(function, 3)
    assert made == [3, "waited"] * 10


def test_numpy_computes_in_double_and_jax_in_single():
    assert wrong_timings.result_dtypes(3) == {"NumPy": np.float64, "JAX": np.float32}


@pytest.mark.parametrize(
    ("written", "expected"),
    [("jax.jit(f)", 1), ("jax.jit(lambda y: f(y))", 5), ("jax.jit(partial(f))", 5)],
)
def test_which_wrappers_trace_again(written, expected):
    assert wrong_timings.traces(wrong_timings.WRAPPERS[written]) == expected
