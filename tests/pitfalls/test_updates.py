import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.pitfalls import updates

BINS = np.array([0, 2, 2, 2])


def test_assignment_is_refused():
    x = jnp.arange(4)
    with pytest.raises(TypeError, match="JAX arrays are immutable"):
        x[0] = 1
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        np.asarray(x)[0] = 1
    copy = np.array(x)
    copy[0] = 1
    assert x.tolist() == [0, 1, 2, 3]


def test_an_update_that_nobody_takes_does_nothing():
    x = jnp.array([1, 2, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert updates.clear_first_unused(x).tolist() == [1, 2, 3]
    assert updates.clear_first(x).tolist() == [0, 2, 3]
    assert x.tolist() == [1, 2, 3]


def test_sort_works_in_place_for_numpy_only():
    assert updates.sort_unused(np.array([3, 1, 2])).tolist() == [1, 2, 3]
    x = jnp.array([3, 1, 2])
    assert updates.sort_unused(x).tolist() == [3, 1, 2]
    assert x.sort().tolist() == jnp.sort(x).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("zeros", "after"), [(np.zeros, [-1, -1]), (torch.zeros, [-1, -1]), (jnp.zeros, [0, 0])]
)
def test_a_loop_with_minus_changes_arrays_of_numpy_and_torch(zeros, after):
    params = [zeros(2)]
    updates.descend_in_loop(params, [zeros(2) + 1])
    assert params[0].tolist() == after


def test_a_tree_of_new_arrays():
    (param,) = updates.descend([jnp.zeros(2)], [jnp.ones(2)])
    assert param.tolist() == [-1, -1]


def test_a_dict_is_changed_for_the_caller_only_without_jit():
    params, grads = {"w": jnp.zeros(2)}, {"w": jnp.ones(2)}
    jax.jit(updates.descend_in_dict)(params, grads)
    assert params["w"].tolist() == [0, 0]
    updates.descend_in_dict(params, grads)
    assert params["w"].tolist() == [-1, -1]


def test_setting_counts_repeated_indices_once():
    counts = np.zeros(3, np.int32)
    counts[BINS] += 1
    assert updates.count_by_set(BINS, 3).tolist() == counts.tolist() == [1, 0, 1]
    assert jnp.zeros(3).at[BINS].add(1).tolist() == [1, 0, 3]
    assert jax.jit(jnp.bincount, static_argnames="length")(BINS, length=3).tolist() == [1, 0, 3]


def test_a_jitted_function_reads_an_aligned_buffer_until_its_result_is_ready():
    aligned, elsewhere = updates.aligned_zeros(1000), updates.aligned_zeros(1001)[1:]
    assert aligned.ctypes.data % 64 == 0 != elsewhere.ctypes.data % 64
    assert updates.sum_and_refill(aligned, aligned) == 1000
    assert updates.sum_and_refill(elsewhere, elsewhere) == 0
    buffer = updates.aligned_zeros(1000)
    assert updates.sum_and_refill(buffer, buffer.copy()) == 0
    assert buffer.sum() == 1000


def test_waiting_for_the_result_makes_a_buffer_free():
    buffer = updates.aligned_zeros(1000)
    total = jax.block_until_ready(updates.late_sum(buffer, jnp.zeros((700, 700))))
    buffer[:] = 1
    assert total == 0


def test_device_put_shares_the_memory_of_numpy():
    buffer = updates.aligned_zeros(1000)
    assert (buffer.ctypes.data % 64, buffer.shape) == (0, (1000,))
    put = jax.device_put(buffer).block_until_ready()
    told = jax.device_put(buffer, may_alias=False).block_until_ready()
    copied = jnp.array(buffer).block_until_ready()
    own = jax.device_put(buffer.copy()).block_until_ready()
    buffer[0] = 5
    assert [float(array[0]) for array in (put, told, copied, own)] == [5, 5, 0, 0]


def test_a_donated_array_is_gone_under_all_its_names():
    weights = jnp.zeros(1000)
    best, kept = weights, weights.copy()
    jax.jit(lambda w: w + 1, donate_argnums=0)(weights)
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        best[0]
    assert kept[0] == 0


def test_one_array_cannot_be_donated_twice(raises_declared):
    raises_declared(updates.donate_twice, jnp.ones(3))
    state = updates.first_moments(jnp.ones(3))
    assert state["mean"] is state["square"]


def test_a_donated_array_cannot_be_another_argument():
    x = jnp.ones(1000)
    with pytest.raises(jax.errors.JaxRuntimeError, match="previously donated in the same call"):
        jax.jit(lambda a, b: (a + 1) * b, donate_argnums=0)(x, x)


def test_separate_arrays_are_donated():
    state = updates.separate_moments(jnp.ones(3))
    new = updates.update_moments(state, jnp.full(3, 2.0))
    np.testing.assert_allclose(new["mean"], 0.2 * np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(new["square"], 0.4 * np.ones(3), rtol=1e-6)
    assert all(array.is_deleted() for array in state.values())


def test_a_donation_without_use_warns_and_leaves_the_array():
    total, deleted, warning = updates.sum_donated(jnp.ones(1000))
    assert total == 1000
    assert not deleted
    assert warning.startswith("Some donated buffers were not usable: float32[1000]")


def test_a_view_of_numpy_keeps_a_donated_array():
    x = jnp.ones(1000)
    view = np.asarray(x)
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert not x.is_deleted()
    assert (view[0], result[0]) == (1, 2)


def test_a_ref_from_outside_changes():
    rows = jnp.arange(6.0).reshape(3, 2)
    assert updates.add_rows_in_scan(rows).tolist() == rows.sum(axis=0).tolist()
    total = jax.new_ref(jnp.zeros(()))

    @jax.jit
    def add(x):
        total[...] += x

    for x in (1.0, 2.0):
        add(x)
    assert total[...] == 3


def test_a_ref_inside_of_a_function():
    x = jnp.zeros(3)
    assert updates.filled(x).tolist() == [1, 1, 0]
    assert x.tolist() == [0, 0, 0]
    assert jax.vmap(updates.filled)(jnp.zeros((2, 3))).tolist() == [[1, 1, 0]] * 2


def test_mistakes_with_refs(raises_declared):
    raises_declared(updates.write_whole_number, jnp.zeros(3))
    raises_declared(updates.call_with_ref_twice, jnp.ones(3))
    raises_declared(updates.add_rows_to_ref, jnp.ones((3, 2)))


def test_two_refs_may_be_passed():
    source, target = jax.new_ref(jnp.ones(3)), jax.new_ref(jnp.ones(3))
    updates.move(source, target)
    assert source[...].tolist() == [0, 0, 0]
    assert target[...].tolist() == [2, 2, 2]


def test_a_ref_can_be_written_after_it_was_frozen_outside_of_jit():
    ref = jax.new_ref(jnp.zeros(2))
    frozen = jax.freeze(ref)
    assert frozen.tolist() == [0, 0]
    ref[0] = 1.0
    # In JAX 0.12 the frozen array follows.
    assert ref[...].tolist() == [1, 0]


def test_a_frozen_ref_cannot_be_read_while_tracing():
    @jax.jit
    def read_on(x):
        ref = jax.new_ref(x)
        return jax.freeze(ref) + ref[...]

    with pytest.raises(ValueError, match="must be called on `Ref` types"):
        read_on(jnp.zeros(3))


def test_refs_count_like_numpy_unless_told_otherwise():
    once, every = updates.count_in_ref(BINS, 3)
    assert once.tolist() == [1, 0, 1]
    assert every.tolist() == [1, 0, 3]
