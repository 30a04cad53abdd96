import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.claims import jax_docs

X = np.linspace(0, 1, 7, dtype=np.float32)


def test_programs_counts_what_a_call_compiles():
    def twice(x):
        return 2 * x

    jitted = jax.jit(twice)
    assert [jax_docs.programs(jitted, X) for _ in range(2)] == [1, 0]


def test_without_jit_every_shape_brings_programs_and_with_jit_arrays_bring_instructions():
    def all_integers(arrays):
        return [jax_docs.to_integers(x) for x in arrays]

    arrays = [np.ones(n, np.float32) for n in (31, 37)]
    assert jax_docs.programs(all_integers, arrays[:1]) > 1
    assert jax_docs.programs(all_integers, arrays) > 1
    assert jax_docs.programs(all_integers, arrays) == 0
    assert jax_docs.programs(jax.jit(all_integers), arrays) == 1
    assert jax_docs.instructions(all_integers, arrays) > jax_docs.instructions(
        all_integers, arrays[:1]
    )


def test_to_integers_uses_the_whole_range():
    assert jax_docs.to_integers(jnp.array([-2.0, 0.0, 1.0])).tolist() == [-127, 0, 64]


def test_a_program_exported_for_every_length_is_traced_once():
    seen = []

    def lengths(x):
        seen.append(x.shape)
        return jax_docs.lengths(x)

    general = jax_docs.for_any_length(lengths)
    results = [general(np.full((n, 3), 2, np.float32)) for n in (2, 5)]
    assert len(seen) == 1
    for n, result in zip((2, 5), results, strict=True):
        np.testing.assert_allclose(result, np.full(n, np.sqrt(12)), rtol=1e-6)


def test_a_donated_array_cannot_be_read(raises_declared):
    raises_declared(jax_docs.read_donated, jnp.ones(3))


def test_a_ref_is_increased_where_it_is():
    ref = jax.new_ref(jnp.zeros(3))
    address = ref.unsafe_buffer_pointer()
    assert jax_docs.increase(ref) == 1
    assert ref[...].tolist() == [1, 1, 1] and ref.unsafe_buffer_pointer() == address


def test_two_layers():
    weights = np.full((2, 3), 0.5), np.eye(2)
    result = jax_docs.two_layers(weights, np.ones(3))
    np.testing.assert_allclose(result, [np.tanh(np.tanh(1.5))] * 2, rtol=1e-6)


def test_the_shape_of_a_jacobian_decides_which_way_is_cheaper():
    count = jax_docs.jacobian_operations
    assert count(jax.jacfwd, 2, 40) < count(jax.jacrev, 2, 40)
    assert count(jax.jacfwd, 40, 2) > count(jax.jacrev, 40, 2)


def test_an_unknown_flag_ends_the_process():
    assert not jax_docs.starts_with_flags("--xla_gpu_make_it_fast=true")
    assert jax_docs.starts_with_flags("--xla_force_host_platform_device_count=1")


def test_a_precision_is_computed_or_refused():
    x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    assert jax_docs.squared(x, "highest").tolist() == [[7, 10], [15, 22]]
    assert jax_docs.largest_error(x, "highest") == "0e+00"
    errors = [jax_docs.largest_error(x, name) for name in jax_docs.PRECISIONS]
    assert all(each == "refused" or float(each) < 0.01 for each in errors)


def test_a_cpu_does_not_round_the_inputs_of_a_matmul():
    x = jax.random.normal(jax.random.key(0), (64, 64))
    expected = jax_docs.squared(x, "highest")
    for name in ("default", "BF16_BF16_F32", "BF16_BF16_F32_X6"):
        np.testing.assert_array_equal(jax_docs.squared(x, name), expected)
    assert jax_docs.largest_error(x, "TF32_TF32_F32") == "refused"


@pytest.mark.parametrize("count", [1, 2, 8, 32])
def test_sines_with_checkpoints_are_the_same_function(count):
    plain, nested = jax_docs.sines(count), jax_docs.checkpointed_sines(count)
    np.testing.assert_allclose(nested(X), plain(X), rtol=1e-6)
    expected = jax_docs.gradient_of(plain)(X)
    np.testing.assert_allclose(jax_docs.gradient_of(nested)(X), expected, rtol=1e-5)


@pytest.mark.parametrize("doublings", [3, 5])
def test_nested_checkpoints_keep_few_arrays_and_compute_more(doublings):
    count, x = 2**doublings, jnp.ones(10)
    assert jax_docs.arrays_kept(jax_docs.sines(count), x) == count
    assert jax_docs.arrays_kept(jax_docs.checkpointed_sines(count), x) == doublings + 1
    assert jax_docs.sines_asked_for(jax_docs.sines(count), x) == 2 * count - 1
    assert jax_docs.sines_asked_for(jax_docs.checkpointed_sines(count), x) > 2 * count
    assert jax_docs.temporaries(jax_docs.gradient_of(jax_docs.sines(count)), x) == 0


def test_two_ways_to_add_the_gradient_of_one_element():
    backward = jax.vjp(jax_docs.element, jnp.zeros(4), 2)[1]
    total, ref = jnp.arange(4.0), jax.new_ref(jnp.arange(4.0))
    assert jax_docs.add_array(total, backward).tolist() == [0, 1, 3, 3]
    assert jax_docs.add_in_place(ref, backward) == 0
    assert ref[...].tolist() == [0, 1, 3, 3]


@pytest.mark.parametrize("function", [jax_docs.squares, jax_docs.squares_from_ref])
def test_squares_and_their_gradient(function):
    x, order = jnp.array([1.0, 2.0, 3.0]), jnp.array([2, 0, 2])
    assert function(x, order) == 19
    assert jax.grad(function)(x, order).tolist() == [2, 0, 12]


def test_a_folder_keeps_what_fits_into_its_limit(tmp_path):
    pytest.importorskip("filelock")
    count, size = jax_docs.fill(tmp_path / "free", -1, count=4)
    assert count == 4
    left, smaller = jax_docs.fill(tmp_path / "limited", size * 6 // 10, count=4)
    assert 0 < left < 4 and smaller <= size * 6 // 10
