import json
import math
import os
import platform
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.pitfalls import numbers


@pytest.fixture(autouse=True)
def silent():
    """Every wrong number on the page comes without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_mask_behind_a_nan_spoils_the_derivative_alone():
    x, y = jnp.arange(1.0, 4.0), jnp.array([2.0, jnp.nan, 5.0])
    mask = ~jnp.isnan(y)
    late, late_gradient = jax.value_and_grad(numbers.error_masked_last)(1.0, x, y, mask)
    value, gradient = jax.value_and_grad(numbers.error_masked_first)(1.0, x, y, mask)
    assert late == value and jnp.isnan(late_gradient)
    np.testing.assert_allclose(gradient, np.mean([2 * (1 - 2) * 1, 2 * (3 - 5) * 3]))


def test_a_label_out_of_bounds_can_be_told_from_labels_by_fill():
    labels = jnp.array([7, 8, 9])
    assert [int(labels.at[i].get(mode="fill", fill_value=-1)) for i in (3, -4, 1)] == [-1, -1, 8]


def test_a_window_beyond_the_end_is_moved():
    prices = jnp.arange(8.0)
    assert numbers.last_days(prices, 2).tolist() == [2, 3, 4, 5]
    assert numbers.last_days(prices, 6).tolist() == [4, 5, 6, 7]
    overwritten = jax.lax.dynamic_update_slice(prices, -jnp.ones(4), (6,))
    assert overwritten.tolist() == [0, 1, 2, 3, -1, -1, -1, -1]


@pytest.mark.parametrize("day", range(-5, 10))
def test_a_filled_window_has_each_price_in_its_place(day):
    expected = [float(d) if 0 <= d < 8 else math.nan for d in range(day, day + 4)]
    np.testing.assert_array_equal(numbers.last_days_filled(jnp.arange(8.0), day), expected)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_empty_is_filled_on_a_cpu_and_in_old_versions(platform):
    old = jax.__version_info__ < (0, 11)
    assert numbers.empty_is_filled(platform) == (old or platform == "cpu")
    empty = jnp.empty((2, 3), jnp.int8)
    assert (empty.shape, empty.dtype) == ((2, 3), jnp.int8)
    if jax.default_backend() == "cpu":
        assert not empty.any()


def test_squares_wrap_around_in_32_bits():
    n = 70_000
    right = (n - 1) ** 2
    assert numbers.largest_square(n) == (right + 2**31) % 2**32 - 2**31
    assert numbers.largest_square(n).dtype == jnp.int32
    assert (jnp.arange(n) ** 2).min() < 0
    assert float((jnp.arange(n, dtype=jnp.float32) ** 2)[-1]) == np.float32(right)
    with jax.enable_x64(True):
        assert int(numbers.largest_square(n)) == right
    assert (np.arange(n, dtype=np.int64) ** 2)[-1] == right


def test_sums_and_factorials_wrap_around_too():
    assert jnp.full(3, 2**30).sum() == 3 * 2**30 - 2**32
    assert jnp.prod(jnp.arange(1, 13)) == math.factorial(12)
    assert int(jnp.prod(jnp.arange(1, 14))) != math.factorial(13)


bytes_ = st.lists(st.integers(0, 255), min_size=2, max_size=2)


@given(bytes_, bytes_)
@settings(deadline=None, max_examples=50)
def test_differences_of_bytes_wrap_unless_widened(before, after):
    one, other = jnp.array(before, jnp.uint8), jnp.array(after, jnp.uint8)
    exact = np.array(after) - np.array(before)
    assert numbers.difference(one, other).tolist() == (exact % 256).tolist()
    assert numbers.difference_widened(one, other).tolist() == np.abs(exact).tolist()


def test_300_wraps_or_saturates_and_only_one_form_refuses():
    results = {way: int(x[0]) for way, x in numbers.three_hundred().items()}
    assert results == {"full": 44, "add": 44, "int to uint8": 44, "float to uint8": 255}
    with pytest.raises(OverflowError, match="300 out of bounds for int8"):
        jnp.array(300, jnp.int8)


def test_a_float_saturates_at_both_ends_and_nan_becomes_0():
    x = jnp.array([300.0, -300.0, jnp.nan, jnp.inf])
    assert x.astype(jnp.int8).tolist() == [127, -128, 0, 127]
    assert x.astype(jnp.uint8).tolist() == [255, 0, 0, 255]


def test_a_large_python_integer_is_refused(raises_declared):
    raises_declared(numbers.days_to_milliseconds, 2**31)


def test_multiplications_overflow_and_large_numpy_integers_are_truncated():
    wrapped = (20_000 * 86_400_000 + 2**31) % 2**32 - 2**31
    assert numbers.days_to_milliseconds(20_000) == wrapped
    assert numbers.days_to_milliseconds(np.int64(2**32 + 1)) == numbers.days_to_milliseconds(1)
    assert numbers.days_to_milliseconds(1) == 86_400_000


def test_divisions_by_zero_and_of_negative_numbers():
    found = numbers.divisions(jnp.array([-7, 7]), jnp.array([2, 0]))
    assert {form: x.tolist() for form, x in found.items()} == {
        "x // y": [-4, -2],
        "lax.div": [-3, -1],
        "x % y": [1, 0],
        "lax.rem": [-1, 7],
        "x / y": [-3.5, math.inf],
    }
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert np.array([7]) // 0 == 0


@given(st.integers(-99, 99), st.integers(-5, 5))
@settings(deadline=None, max_examples=50)
def test_divide_or_zero(x, y):
    assert numbers.divide_or_zero(jnp.array([x]), jnp.array([y])).tolist() == [x // y if y else 0]


def test_times_in_float32_move_in_steps_of_128_seconds():
    start = 1_763_761_439.0
    assert jnp.spacing(jnp.float32(start)) == 128
    assert numbers.seconds_between(start, start + 30) == 0
    assert numbers.seconds_since(start, [start + 30, start + 0.5]).tolist() == [30, 0.5]


def test_a_bfloat16_counter_stops_and_its_sum_does_not():
    groups = jnp.zeros(1000, int)
    assert numbers.tally(groups, jnp.bfloat16) == 256
    assert jnp.ones(1000, jnp.bfloat16).sum() == 1000
    assert jax.ops.segment_sum(jnp.ones(1000, jnp.bfloat16), groups, 1)[0] == 256
    assert numbers.tally(groups, jnp.int32) == 1000
    assert jnp.float32(2**24) + 1 == 2**24
    assert jnp.bfloat16(1) - 0.001 == 1


def test_squares_of_halves_overflow():
    x = jnp.array([300, 1], jnp.float16)
    for dtype, norm in ((jnp.float16, math.inf), (jnp.float32, 300), (jnp.bfloat16, 300)):
        assert float(jnp.linalg.norm(x.astype(dtype))) == pytest.approx(norm, rel=0.01)
    assert jnp.mean(x**2) == math.inf
    assert jnp.finfo(jnp.float16).max == 65504


def test_plus_of_booleans_does_not_count():
    ballots = jnp.array([[1, 1, 0], [1, 0, 0], [1, 0, 0]], bool)
    assert numbers.votes(*ballots).tolist() == [True, True, False]
    assert numbers.votes_counted(*ballots).tolist() == [3, 1, 0]


def test_strict_promotion_refuses_arrays_and_misses_small_integers(raises_declared):
    raises_declared(numbers.averages_strictly, jnp.ones(2), jnp.array([1, 2]))
    cast = jnp.array([1, 2]).astype(jnp.float32)
    assert numbers.averages_strictly(jnp.ones(2), cast).tolist() == [1, 0.5]
    with jax.numpy_dtype_promotion("strict"):
        assert (jnp.zeros(1, jnp.int8) + 300).tolist() == [44]
        assert (jnp.ones(1) * 2.5).tolist() == [2.5]


def test_unequal_numbers_compare_equal_in_jax_and_not_in_numpy():
    assert all(bool(equal[0]) for equal in numbers.comparisons().values())
    assert not (np.array([16_777_217], np.int32) == 16_777_216.0).any()
    assert not (np.array([44], np.uint8) == 300).any()
    assert not (np.array([0.1], np.float32) == np.array([0.1])).any()


def test_a_float_mask_keeps_the_nan():
    x, mask = jnp.array([1.0, jnp.nan, 3.0]), jnp.array([True, False, True])
    assert jnp.isnan(numbers.mean_by_product(x, mask.astype(jnp.float32)))
    assert numbers.mean_by_product(x, mask) == 2
    assert np.isnan(numbers.mean_by_product(np.array(x), np.array(mask)))
    assert numbers.mean_where(x, mask) == 2


def test_the_largest_is_nan_unless_asked_otherwise():
    scores = jnp.array([1.0, jnp.nan, 3.0])
    assert scores.argmax() == jax.lax.top_k(scores, 1)[1][0] == 1
    assert jnp.isnan(jnp.sort(scores)[-1])
    assert jnp.nanargmax(scores) == 2
    assert jnp.nanargmax(jnp.full(2, jnp.nan)) == -1
    with pytest.raises(ValueError, match="All-NaN"):
        np.nanargmax(np.full(2, np.nan))


def test_distances_have_a_gradient_only_if_zeros_are_kept_from_the_root():
    points = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    assert numbers.sum_of_distances(points) == numbers.sum_of_distances_safe(points) == 10
    assert jnp.isnan(jax.grad(numbers.sum_of_distances)(points)).all()
    gradients = jax.grad(numbers.sum_of_distances_safe)(points)
    np.testing.assert_allclose(gradients, [[-1.2, -1.6], [1.2, 1.6]], rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "x"), [(jnp.linalg.norm, jnp.zeros(2)), (jnp.std, jnp.ones(2))]
)
def test_norm_and_deviation_have_the_same_hole(function, x):
    assert function(x) == 0
    assert jnp.isnan(jax.grad(function)(x)).all()


def test_jit_may_simplify_and_a_barrier_keeps_it_from_doing_so():
    one = jnp.float32(1)
    assert numbers.round_trip(one) == 0
    assert numbers.round_trip_kept(one) == 0
    assert numbers.log_of_exp(200.0) == math.inf
    # The compiler of JAX 0.10 simplifies both, that of 0.11 the first, that of 0.12 neither.
    simplified = jax.jit(numbers.round_trip)(one), jax.jit(numbers.log_of_exp)(200.0)
    assert simplified == (
        0 if jax.__version_info__ >= (0, 12) else 1,
        math.inf if jax.__version_info__ >= (0, 11) else 200,
    )


def test_jit_rounds_a_multiplication_and_an_addition_once():
    x = jnp.linspace(0, 1, 1000)
    # As outside of the tests.
    options = {"xla_backend_optimization_level": 3}
    compiled = jax.jit(numbers.line, compiler_options=options)(x, 0.3, 0.1)
    plain = numbers.line(x, 0.3, 0.1)
    assert not jnp.array_equal(plain, compiled)
    np.testing.assert_allclose(plain, compiled, rtol=1e-6)


def test_debug_nans_finds_the_gradient():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jax.grad(numbers.sum_of_distances)(jnp.zeros((2, 2)))


MISSED = """
import json, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_debug_nans", True)
missed = []
for dtype in "float64", "float32", "bfloat16", "float16":
    for shape, axis in ((4095,), None), ((4096,), None), ((63, 65), 1), ((64, 64), 1):
        for reduce in jnp.max, jnp.min, jnp.ptp:
            with jax.debug_nans(False):
                x = jnp.full(shape, jnp.nan, dtype)
            try:
                reduce(x, axis)
                missed.append([dtype, reduce.__name__, *shape])
            except FloatingPointError:
                pass
with jax.debug_nans(False):
    x = jnp.full(4096, jnp.nan, jnp.float32)
    window = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, x.shape, (1,), "VALID")
    others = [
        jnp.linalg.norm(x, jnp.inf), window[0], x.sum(), jax.nn.logsumexp(x), jax.nn.softmax(x)[0],
    ]
    print(json.dumps([missed, [bool(jnp.isnan(x)) for x in others]]))
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="YNNPACK's kernels for x86")
def test_the_maximum_of_4096_floats_misses_a_nan():
    switches = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS")
    own = {name: value for name, value in os.environ.items() if name not in switches}
    command = [sys.executable, "-c", MISSED]
    said = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    missed, others = json.loads(said.stdout.splitlines()[-1])
    expected = [
        [dtype, name, *shape]
        for dtype in ("float64", "float32")
        for shape in ((4096,), (64, 64))
        for name in ("max", "min", "ptp")
    ]
    expected += [
        [dtype, "min", *shape] for dtype in ("bfloat16", "float16") for shape in ((4096,), (64, 64))
    ]
    # If this fails, XLA has fixed it: take the section out of the page.
    assert missed == expected
    assert others == [False, False, True, True, True]


@pytest.mark.parametrize("size", [1, 5, 4096])
def test_the_largest_or_nan(size):
    x = jnp.arange(float(size))
    assert numbers.largest_or_nan(x) == size - 1
    for broken in x.at[-1].set(jnp.nan), x.at[0].set(jnp.nan), jnp.full(size, jnp.nan):
        assert jnp.isnan(numbers.largest_or_nan(broken))
        assert jnp.isnan(jax.jit(numbers.largest_or_nan)(broken))
