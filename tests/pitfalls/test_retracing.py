import collections
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from snippets.pitfalls import retracing
from snippets.pitfalls.retracing import count_loop
from snippets.tracing.retracing import reasons

X = np.ones(3, np.float32)
BATCHES = [X] * 10
RATES = [0.1, 0.05, 0.025]


def counts(*args, **options):
    """Return (traces, compilations) of a loop."""
    return tuple(int(number) for number in re.findall(r"\d+", count_loop(*args, **options)))


def test_the_counter_counts_what_the_function_is_called_for():
    seen = []

    def loop(function):
        step = jax.jit(function)
        for length in (1, 2, 1):
            seen.append(step(np.ones(length)).shape)

    assert counts(loop, lambda x: x + 1) == (2, 2)
    assert seen == [(1,), (2,), (1,)] * 2


def test_other_programs_of_the_loop_are_not_counted():
    def loop(function):
        jax.jit(function)(jnp.arange(7.0) * 3)

    jax.clear_caches()
    assert counts(loop, lambda x: x + 1) == (1, 1)


def test_a_new_step_is_traced_in_each_epoch():
    assert counts(retracing.new_step_each_epoch, retracing.descend, RATES) == (3, 3)
    assert counts(retracing.one_step_for_all_epochs, retracing.descend, RATES) == (1, 1)


def test_one_step_gives_the_same_weights():
    several = retracing.new_step_each_epoch(retracing.descend, RATES)
    one = retracing.one_step_for_all_epochs(retracing.descend, RATES)
    expected = np.prod([(1 - rate) ** 2 for rate in RATES])
    np.testing.assert_allclose(several, X * expected, rtol=1e-5)
    np.testing.assert_allclose(one, several, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "expected"), [(retracing.Optimizer, 3), (retracing.FrozenOptimizer, 1)]
)
def test_static_objects_share_a_program_if_they_are_equal(kind, expected):
    loop = retracing.new_optimizer_each_epoch
    assert counts(loop, retracing.apply_optimizer, kind, 3) == (expected, expected)
    weights = loop(retracing.apply_optimizer, kind, 3)
    np.testing.assert_allclose(weights, X * 0.9**3, rtol=1e-5)


def test_frozen_optimizers_of_two_rates_are_two_programs():
    assert retracing.FrozenOptimizer(0.1) == retracing.FrozenOptimizer(0.1)
    assert retracing.FrozenOptimizer(0.1) != retracing.FrozenOptimizer(0.2)


def test_a_rate_is_traced_for_each_value_only_if_it_is_static():
    assert counts(retracing.decaying_rate, retracing.descend, 4, static="rate") == (4, 4)
    assert counts(retracing.decaying_rate, retracing.descend, 4) == (1, 1)
    static = retracing.decaying_rate(retracing.descend, 4, static="rate")
    np.testing.assert_allclose(retracing.decaying_rate(retracing.descend, 4), static, rtol=1e-6)


@pytest.mark.parametrize(
    ("start", "expected"), [(0.0, 2), (0, 2), (np.float32(0), 1), (jnp.float32(0), 1)]
)
def test_a_python_number_at_the_start_costs_a_second_program(start, expected):
    assert counts(retracing.over_batches, retracing.track, start, BATCHES) == (expected, expected)
    mean = retracing.over_batches(retracing.track, start, BATCHES)
    assert mean == pytest.approx(1 - 0.9**10, rel=1e-5)
    assert mean.dtype == jnp.float32


def test_each_kind_of_number_has_a_program():
    mixed, same = [1, 0.5, np.float32(0.25)], np.float32([1, 0.5, 0.25])
    assert counts(retracing.search_line, retracing.descend, mixed) == (3, 3)
    assert counts(retracing.search_line, retracing.descend, same) == (1, 1)
    one, other = (retracing.search_line(retracing.descend, each) for each in (mixed, same))
    np.testing.assert_allclose(one, other)


def test_the_dtype_of_the_weights_drifts():
    half = jnp.ones(3, jnp.bfloat16)
    loop = retracing.over_batches
    assert counts(loop, retracing.descend_bfloat16, half, BATCHES) == (2, 2)
    assert loop(retracing.descend_bfloat16, half, BATCHES).dtype == jnp.float32
    assert counts(loop, retracing.descend_same_dtype, half, BATCHES) == (1, 1)
    kept = loop(retracing.descend_same_dtype, half, BATCHES[:3])
    assert kept.dtype == jnp.bfloat16
    np.testing.assert_allclose(kept.astype(jnp.float32), 0.7 * X, rtol=0.02)


def test_a_smaller_batch_is_a_second_program():
    sizes = [np.ones(n, np.float32) for n in (8, 8, 4)]
    assert counts(retracing.over_batches, retracing.track, np.float32(0), sizes) == (2, 2)
    again = sizes * 2
    assert counts(retracing.over_batches, retracing.track, np.float32(0), again) == (2, 2)


def test_none_and_zeros_differ_in_structure_but_not_in_result():
    empty, zeros = ({"weights": X, "momentum": start} for start in (None, 0 * X))
    loop, step = retracing.over_batches, retracing.with_momentum
    assert counts(loop, step, empty, BATCHES) == (2, 2)
    assert counts(loop, step, zeros, BATCHES) == (1, 1)
    one, other = (loop(step, start, BATCHES)["weights"] for start in (empty, zeros))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_the_order_of_keys_matters_in_an_ordered_dictionary_alone():
    orders = [{"x": X, "y": X}, {"y": X, "x": X}, {"x": X, "y": X}]
    assert counts(retracing.over_batches, retracing.add_up, X, orders) == (1, 1)
    ordered = [collections.OrderedDict(order) for order in orders]
    assert counts(retracing.over_batches, retracing.add_up, X, ordered) == (2, 2)
    assert retracing.over_batches(retracing.add_up, X, orders).tolist() == [7, 7, 7]


@pytest.mark.parametrize(("kind", "expected"), [(retracing.CountingState, 4), (retracing.State, 1)])
def test_a_counter_is_traced_again_if_it_is_metadata(kind, expected):
    assert counts(retracing.repeat, retracing.decay, kind(X, 0), 4) == (expected, expected)
    state = retracing.repeat(retracing.decay, kind(X, 0), 4)
    assert state.step == 4
    np.testing.assert_allclose(state.weights, X * 0.9**4, rtol=1e-5)


def test_committed_and_other_arrays_compile_for_each_combination():
    loose = jnp.ones(3)
    held = jax.device_put(loose, loose.device)
    start = jnp.float32(0)
    mixed = [loose, held, loose, held]
    assert counts(retracing.over_batches, retracing.track, start, mixed) == (1, 4)
    start = jax.device_put(start, held.device)
    assert counts(retracing.over_batches, retracing.track, start, [held] * 4) == (1, 1)


def layouts(axes):
    """Return (whole, split), two layouts on four devices with axes of a type."""
    devices = jax.devices("cpu")[:4]
    mesh = jax.make_mesh((4,), ("i",), devices=devices, axis_types=(axes,))
    return [NamedSharding(mesh, PartitionSpec(*each)) for each in ((), ("i",))]


def test_the_layout_of_the_result_is_another():
    whole, split = layouts(AxisType.Auto)
    weights, gradient = (jax.device_put(np.ones(4), each) for each in (whole, split))
    loop = retracing.in_layout
    assert counts(loop, retracing.descend, weights, gradient, 3) == (1, 2)
    assert loop(retracing.descend, weights, gradient, 1).sharding.spec == split.spec
    assert counts(loop, retracing.descend, weights, gradient, 3, result=whole) == (1, 1)
    fixed = loop(retracing.descend, weights, gradient, 3, result=whole)
    np.testing.assert_allclose(fixed, 0.7 * np.ones(4), rtol=1e-6)


def test_with_explicit_axes_a_layout_is_traced():
    arrays = [jax.device_put(np.ones(4), each) for each in layouts(AxisType.Explicit)]
    assert counts(retracing.over_batches, lambda carry, x: carry, X, arrays) == (2, 2)


def test_cleared_caches_compile_again():
    assert counts(retracing.clear_each_epoch, retracing.descend, 3) == (3, 3)
    weights = retracing.clear_each_epoch(retracing.descend, 3)
    np.testing.assert_allclose(weights, X * 0.9**3, rtol=1e-5)


def test_one_function_can_forget_its_programs_alone():
    one, other = jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)
    one(X)
    other(X)
    one.clear_cache()
    assert (one._cache_size(), other._cache_size()) == (0, 1)


def test_a_setting_keeps_its_program():
    def loop(function):
        step = jax.jit(function)
        for precision in ("highest", "default", "highest", "default"):
            with jax.default_matmul_precision(precision):
                step(X)

    assert counts(loop, lambda x: x + 1) == (2, 2)


def test_after_two_settings_every_miss_is_explained_by_the_setting():
    step = jax.jit(lambda x: x + 1)
    step(X)
    with jax.default_matmul_precision("highest"):
        step(X)
    told = " ".join(reasons(step, np.ones(2, np.float32)))
    assert "Tracing context doesn't match" in told
    assert "f32[2]" not in told
