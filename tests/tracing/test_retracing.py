import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.tracing import retracing

X = np.ones(3)
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
    assert retracing.hoisted_lambda(times) == 1
    assert retracing.hoisted_partial(times) == 1
    assert retracing.hoisted_method(times) == 1


def test_layer_scales():
    np.testing.assert_array_equal(retracing.Layer().apply(X), 2 * X)


def test_a_setting_counts_once_for_each_of_its_values():
    assert retracing.changed_setting(["highest"] * 3) == 1
    assert retracing.changed_setting(["bfloat16", "bfloat16"]) == 1
    assert retracing.changed_setting(["highest", "bfloat16", "highest"]) == 2


def test_the_table_of_four_calls():
    assert retracing.four_calls() == {
        "nothing": 1,
        "the values in the array": 1,
        "the shape": 4,
        "the dtype": 4,
        "the kind of scalar": 4,
        "the value of a traced scalar": 1,
        "the value of a static scalar": 4,
        "twice by position, twice by name": 2,
        "a setting, on and off": 2,
        "jax.jit(f) written again": 1,
        "a new lambda": 4,
        "a new partial": 4,
        "a bound method": 4,
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


def test_tracing_is_allowed_again_after_the_refusal():
    jax.clear_caches()
    with pytest.raises(RuntimeError):
        retracing.strict_means([np.ones(8), np.ones(6)])
    assert jax.jit(retracing.batch_mean)(np.ones(7)) == 1


@settings(deadline=None)
@given(st.integers(1, 10_000))
def test_padded_length_is_the_next_power_of_two(length):
    padded = retracing.padded_length(length)
    assert length <= padded < 2 * length
    assert padded.bit_count() == 1


@few
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=20))
def test_padded_mean_is_the_mean(values):
    padded = retracing.pad(np.array(values, np.float32))
    assert len(padded) == retracing.padded_length(len(values))
    np.testing.assert_array_equal(padded[: len(values)], np.array(values, np.float32))
    mean = retracing.padded_mean(padded, len(values))
    np.testing.assert_allclose(mean, np.mean(values), rtol=1e-5, atol=1e-4)


def test_padded_mean_does_not_look_at_the_padding():
    assert retracing.padded_mean(np.array([1.0, 3.0, np.nan, np.inf]), 2) == 2


def test_padding_leaves_a_few_shapes():
    arrays = [np.ones(n) for n in range(1, 17)]
    plain = [(array,) for array in arrays]
    padded = [(retracing.pad(array), len(array)) for array in arrays]
    assert retracing.count_traces(retracing.batch_mean, plain) == 16
    assert retracing.count_traces(retracing.padded_mean, padded) == 5


def test_four_shapes_and_four_numbers_in_each_framework():
    import tensorflow as tf
    import torch

    assert retracing.double(4) == 8
    in_jax = retracing.four_of_each(retracing.count_traces, np.ones)
    in_torch = retracing.four_of_each(retracing.torch_compiles, torch.ones)
    in_tensorflow = retracing.four_of_each(retracing.tensorflow_traces, tf.ones)
    assert in_jax == {"the shape": 4, "a Python number": 1}
    assert in_torch == {"the shape": 2, "a Python number": 2}
    assert in_tensorflow == {"the shape": 4, "a Python number": 4}


def test_equal_calls_are_compiled_once_by_all():
    import tensorflow as tf
    import torch

    assert retracing.tensorflow_traces(retracing.double, [(tf.ones(3),)] * 3) == 1
    assert retracing.torch_compiles(retracing.double, [(torch.ones(3),)] * 3) == 1
