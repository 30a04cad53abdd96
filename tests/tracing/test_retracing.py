import collections
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AxisType

from snippets.tracing import retracing
from snippets.tracing.retracing import count_loop

X = np.ones(3)
SINGLE = np.ones(3, np.float32)
BATCHES = [SINGLE] * 10
DEVICES = jax.devices("cpu")[:4]
few = settings(max_examples=10, deadline=None)


def test_counted_keeps_result_and_counts():
    body = retracing.counted(retracing.scale)
    assert body(3, factor=2) == 6 and body(3) == 6.0
    assert body.traces == 2
    assert body.__name__ == "scale"


def test_calls_by_position_and_by_name_are_made():
    seen = []

    def remember(x, factor=2.0):
        seen.append((x.shape, factor.shape))
        return x

    x, factor = np.ones(3), np.ones((1, 2))
    assert retracing.count_traces(remember, [(x, factor), {"factor": factor, "x": x}]) == 2
    assert seen == [((3,), (1, 2))] * 2


def test_options_reach_jit():
    calls = [(1.0, 2), (1.0, 3), (1.0, 2)]
    assert retracing.count_traces(retracing.scale, calls) == 1
    assert retracing.count_traces(retracing.scale, calls, static_argnames="factor") == 2


@few
@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_one_trace_for_each_shape(lengths):
    calls = [(np.ones(n),) for n in lengths]
    assert retracing.count_traces(retracing.scale, calls) == len(set(lengths))


@few
@given(st.lists(st.sampled_from(["float64", "float32", "int64", "int32", "bool"]), min_size=1))
def test_one_trace_for_each_dtype_after_64_bits_became_32(dtypes):
    calls = [(X.astype(dtype),) for dtype in dtypes]
    kept = {dtype.replace("64", "32") for dtype in dtypes}
    assert retracing.count_traces(retracing.scale, calls) == len(kept)


@few
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6))
def test_one_trace_for_all_values_of_a_traced_number(values):
    assert retracing.count_traces(retracing.scale, [(X, v) for v in values]) == 1


@few
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6))
def test_one_trace_for_each_value_of_a_static_number(values):
    calls = [(X, v) for v in values]
    traces = retracing.count_traces(retracing.scale, calls, static_argnames="factor")
    assert traces == len(set(values))


def test_scalars_of_one_kind_share_a_trace():
    assert retracing.count_traces(retracing.scale, [(X, 2), (X, 3)]) == 1
    assert retracing.count_traces(retracing.scale, [(X, 2), (X, 2.0)]) == 2
    assert retracing.count_traces(retracing.scale, [(X, 2.0), (X, np.float32(2))]) == 2
    assert retracing.count_traces(retracing.scale, [(X, 2), (X, True)]) == 2


def test_weak_types_follow_the_array_and_others_do_not():
    half = np.ones(3, np.float16)
    assert jax.jit(retracing.scale)(half, 2.0).dtype == np.float16
    assert jax.jit(retracing.scale)(half, np.float32(2)).dtype == np.float32


def test_by_name_and_by_position_are_two_traces():
    by_name = {"x": X, "factor": 2.0}
    assert retracing.count_traces(retracing.scale, [(X, 2.0), by_name]) == 2
    assert retracing.count_traces(retracing.scale, [by_name, {"factor": 2.0, "x": X}]) == 1


@few
@given(st.integers(1, 4))
def test_new_function_objects_are_traced_each_time(times):
    assert retracing.fresh_lambda(times) == times
    assert retracing.fresh_partial(times) == times
    assert retracing.bound_method(times) == times


@few
@given(st.integers(1, 4))
def test_one_function_object_is_traced_once(times):
    assert retracing.same_function(times) == 1


def test_layer_scales():
    np.testing.assert_array_equal(retracing.Layer().apply(X), 2 * X)


def test_a_setting_counts_once_for_each_of_its_values():
    assert retracing.changed_setting(["highest"] * 3) == 1
    assert retracing.changed_setting(["bfloat16", "bfloat16"]) == 1
    assert retracing.changed_setting(["highest", "bfloat16", "highest"]) == 2


def test_each_device_is_a_compilation_and_a_layout_is_a_trace_too():
    calls = [(jax.device_put(np.ones(4), device),) for device in DEVICES]
    assert retracing.count_both(retracing.scale, calls) == (1, 4)
    assert retracing.count_both(retracing.scale, calls * 2) == (1, 4)
    mesh = jax.make_mesh((4,), ("i",), devices=DEVICES)
    split = jax.device_put(np.ones(4), jax.NamedSharding(mesh, jax.P("i")))
    assert retracing.count_both(retracing.scale, [*calls, (split,)]) == (2, 5)


def test_committed_and_uncommitted_arrays_share_a_trace_and_no_program():
    loose = jax.numpy.ones(4)
    held = jax.device_put(loose, loose.device)
    assert held.committed and not loose.committed
    assert retracing.count_both(retracing.scale, [(loose,), (held,)]) == (1, 2)
    assert retracing.count_both(retracing.scale, [(loose,), (np.ones(4),)]) == (1, 1)


def test_compilations_are_counted_only_meanwhile():
    with retracing.compilations() as compiled:
        jax.jit(lambda x: x + 1)(X)
        jax.eval_shape(lambda x: x + 2, X)
    assert len(compiled) == 1 and compiled[0] > 0
    jax.jit(lambda x: x + 3)(X)
    assert len(compiled) == 1


def test_the_structure_of_a_pytree_counts_and_the_order_of_its_keys_does_not():
    first = {"w": X, "b": X}
    trees = [{"b": X, "w": X}, {"w": X}, (X, X), [X, X]]
    counts = [retracing.count_traces(retracing.scale_all, [(first,), (t,)]) for t in trees]
    assert counts == [1, 2, 2, 2]
    np.testing.assert_array_equal(retracing.scale_all(first)["w"], 2 * X)


def test_the_table_of_four_calls():
    rows = retracing.four_calls(DEVICES)
    assert {what: (traces, compiled) for what, traces, compiled in rows} == {
        "nothing": (1, 1),
        "the values": (1, 1),
        "the shape": (4, 4),
        "the dtype": (4, 4),
        "kind of scalar": (4, 4),
        "value of a traced scalar": (1, 1),
        "value of a static scalar": (4, 4),
        "by position or by name": (2, 2),
        "the keys of a dictionary": (4, 4),
        "committed or not": (1, 2),
        "the device": (1, 4),
        "the layout on a mesh": (4, 4),
        "a setting, on and off": (2, 2),
        "jax.jit(f) written again": (1, 1),
        "a new lambda": (4, 4),
        "a new partial": (4, 4),
        "a bound method": (4, 4),
    }


def test_reasons_name_what_changed_and_no_place():
    jitted = jax.jit(retracing.batch_mean)
    jax.clear_caches()
    assert "never seen function:" in retracing.reasons(jitted, np.ones(8))
    shape = retracing.reasons(jitted, np.ones(5))
    assert "* at batch, now f32[5] and before f32[8]" in shape
    dtype = retracing.reasons(jitted, np.ones(5, int))
    assert any("now i32[5]" in line for line in dtype)
    assert retracing.reasons(jitted, np.ones(5)) == []
    assert "/" not in "".join(shape + dtype)


def test_strict_means_of_equal_batches():
    batches = [np.arange(4.0), np.arange(4.0) + 1]
    np.testing.assert_array_equal(retracing.strict_means(batches), [1.5, 2.5])


def test_strict_means_refuses_a_second_shape(raises_declared):
    jax.clear_caches()
    raises_declared(retracing.strict_means, [np.ones(8), np.ones(8), np.ones(5)])


def test_another_device_is_refused_where_tracing_is_forbidden():
    jitted = jax.jit(retracing.counted(retracing.scale))
    jitted(jax.device_put(X, DEVICES[0]))
    with jax.no_tracing(True):
        jitted(jax.device_put(2 * X, DEVICES[0]))
        with pytest.raises(RuntimeError, match="no_tracing"):
            jitted(jax.device_put(X, DEVICES[1]))


def test_tracing_is_allowed_again_after_the_refusal():
    jax.clear_caches()
    with pytest.raises(RuntimeError):
        retracing.strict_means([np.ones(8), np.ones(6)])
    assert jax.jit(retracing.batch_mean)(np.ones(7)) == 1


def test_lengths_and_numbers_in_each_framework():
    import tensorflow as tf
    import torch

    assert retracing.double(4) == 8
    lengths, numbers = (3, 4, 5), (2, 3, 4)
    counts = {}
    for count, ones in (
        (retracing.count_traces, np.ones),
        (retracing.torch_compiles, torch.ones),
        (retracing.tensorflow_traces, tf.ones),
    ):
        counts[count.__name__] = (
            count(retracing.double, [(ones(n),) for n in lengths]),
            count(retracing.scale, [(ones(3), n) for n in numbers]),
        )
    assert counts == {
        "count_traces": (3, 1),
        "torch_compiles": (2, 2),
        "tensorflow_traces": (3, 3),
    }
    calls = [(tf.ones(n),) for n in lengths]
    any_length = [tf.TensorSpec([None])]
    traces = retracing.tensorflow_traces(retracing.double, calls, input_signature=any_length)
    assert traces == 1


def test_equal_calls_are_compiled_once_by_all():
    import tensorflow as tf
    import torch

    assert retracing.tensorflow_traces(retracing.double, [(tf.ones(3),)] * 3) == 1
    assert retracing.torch_compiles(retracing.double, [(torch.ones(3),)] * 3) == 1


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


@pytest.mark.parametrize(
    ("kind", "expected"), [(retracing.Optimizer, 3), (retracing.FrozenOptimizer, 1)]
)
def test_static_objects_share_a_program_if_they_are_equal(kind, expected):
    calls = [(kind(0.1), SINGLE) for _ in range(3)]
    step = retracing.apply_optimizer
    assert retracing.count_traces(step, calls, static_argnames="optimizer") == expected
    np.testing.assert_allclose(step(kind(0.1), SINGLE), 0.9 * SINGLE, rtol=1e-6)


def test_frozen_optimizers_of_two_rates_are_two_programs():
    assert retracing.FrozenOptimizer(0.1) == retracing.FrozenOptimizer(0.1)
    assert retracing.FrozenOptimizer(0.1) != retracing.FrozenOptimizer(0.2)


@pytest.mark.parametrize(
    ("start", "expected"), [(0.0, 2), (0, 2), (np.float32(0), 1), (jnp.float32(0), 1)]
)
def test_a_python_number_at_the_start_costs_a_second_program(start, expected):
    assert counts(retracing.over_batches, retracing.track, start, BATCHES) == (expected, expected)
    mean = retracing.over_batches(retracing.track, start, BATCHES)
    assert mean == pytest.approx(1 - 0.9**10, rel=1e-5)
    assert mean.dtype == jnp.float32


def test_the_dtype_of_the_weights_drifts():
    half = jnp.ones(3, jnp.bfloat16)
    loop = retracing.over_batches
    assert counts(loop, retracing.descend_bfloat16, half, BATCHES) == (2, 2)
    assert loop(retracing.descend_bfloat16, half, BATCHES).dtype == jnp.float32
    assert counts(loop, retracing.descend_same_dtype, half, BATCHES) == (1, 1)
    kept = loop(retracing.descend_same_dtype, half, BATCHES[:3])
    assert kept.dtype == jnp.bfloat16
    np.testing.assert_allclose(kept.astype(jnp.float32), 0.7 * SINGLE, rtol=0.02)


def test_a_smaller_batch_is_a_second_program():
    sizes = [np.ones(n, np.float32) for n in (8, 8, 4)]
    assert counts(retracing.over_batches, retracing.track, np.float32(0), sizes) == (2, 2)
    again = sizes * 2
    assert counts(retracing.over_batches, retracing.track, np.float32(0), again) == (2, 2)


def test_none_and_zeros_differ_in_structure_but_not_in_result():
    empty, zeros = ({"weights": SINGLE, "momentum": start} for start in (None, 0 * SINGLE))
    loop, step = retracing.over_batches, retracing.with_momentum
    assert counts(loop, step, empty, BATCHES) == (2, 2)
    assert counts(loop, step, zeros, BATCHES) == (1, 1)
    one, other = (loop(step, start, BATCHES)["weights"] for start in (empty, zeros))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_the_order_of_keys_matters_in_an_ordered_dictionary_alone():
    orders = [{"x": SINGLE, "y": SINGLE}, {"y": SINGLE, "x": SINGLE}]
    ordered = [collections.OrderedDict(order) for order in orders]
    for trees, expected in ((orders, 1), (ordered, 2)):
        calls = [(tree,) for tree in trees]
        assert retracing.count_traces(retracing.scale_all, calls) == expected


@pytest.mark.parametrize(("kind", "expected"), [(retracing.CountingState, 4), (retracing.State, 1)])
def test_a_counter_is_traced_again_if_it_is_metadata(kind, expected):
    assert counts(retracing.repeat, retracing.decay, kind(SINGLE, 0), 4) == (expected, expected)
    state = retracing.repeat(retracing.decay, kind(SINGLE, 0), 4)
    assert state.step == 4
    np.testing.assert_allclose(state.weights, SINGLE * 0.9**4, rtol=1e-5)


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
    return [jax.NamedSharding(mesh, jax.P(*each)) for each in ((), ("i",))]


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
    assert counts(retracing.over_batches, lambda carry, x: carry, SINGLE, arrays) == (2, 2)


def test_cleared_caches_compile_again():
    def loop(function):
        step = jax.jit(function)
        for _ in range(3):
            step(SINGLE)
            jax.clear_caches()

    assert counts(loop, lambda x: x + 1) == (3, 3)


def test_one_function_can_forget_its_programs_alone():
    one, other = jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)
    one(SINGLE)
    other(SINGLE)
    one.clear_cache()
    assert (one._cache_size(), other._cache_size()) == (0, 1)


def test_after_two_settings_every_miss_is_explained_by_the_setting():
    step = jax.jit(lambda x: x + 1)
    step(SINGLE)
    with jax.default_matmul_precision("highest"):
        step(SINGLE)
    told = " ".join(retracing.reasons(step, np.ones(2, np.float32)))
    assert "Tracing context doesn't match" in told
    assert "f32[2]" not in told
