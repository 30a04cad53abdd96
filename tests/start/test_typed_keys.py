import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.start import typed_keys

seeds = st.integers(0, 2**31 - 1)
IMPLEMENTATIONS = ("threefry2x32", "philox4x32", "rbg")


def test_kinds_differ_in_dtype_and_shape():
    typed, legacy = typed_keys.both_kinds(42)
    assert typed_keys.kind_of(typed)[1:] == ((), True)
    assert str(typed.dtype) == "key<fry>"
    assert typed_keys.kind_of(legacy) == (jnp.uint32, (2,), False)


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_both_kinds_hold_the_same_numbers_and_draw_the_same(seed):
    typed, legacy = typed_keys.both_kinds(seed)
    np.testing.assert_array_equal(typed_keys.unwrap(typed), legacy)
    assert jax.random.normal(typed) == jax.random.normal(legacy)


def test_many_keys_have_the_shape_of_their_number():
    typed, legacy = typed_keys.both_kinds(42)
    assert jax.random.split(typed, 3).shape == (3,)
    assert jax.random.split(legacy, 3).shape == (3, 2)


def test_arithmetic_on_a_typed_key_raises(raises_declared):
    raises_declared(typed_keys.add_to_typed, 42)


def test_arithmetic_on_a_legacy_key_is_silent():
    key, number = typed_keys.add_to_legacy(42)
    np.testing.assert_array_equal(key, [1, 43])
    assert number == jax.random.normal(key)
    assert number != jax.random.normal(jax.random.PRNGKey(42))


def test_legacy_keys_can_be_refused(raises_declared):
    raises_declared(typed_keys.refuse_legacy, 42)
    assert jax.random.normal(jax.random.PRNGKey(42)).shape == ()


def test_typed_key_does_not_become_a_numpy_array(raises_declared):
    raises_declared(typed_keys.typed_to_numpy, 42)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_unwrapped_and_wrapped_again_is_the_same_key(implementation):
    key = jax.random.key(42, impl=implementation)
    data = typed_keys.unwrap(key)
    assert isinstance(data, np.ndarray) and data.dtype == np.uint32
    again = typed_keys.rewrap(data, implementation)
    assert again.dtype == key.dtype and again == key
    assert jax.random.normal(again) == jax.random.normal(key)


def test_numbers_of_one_kind_do_not_fit_another():
    with pytest.raises(TypeError):
        typed_keys.rewrap(np.zeros(4, np.uint32), "threefry2x32")


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_reuse_is_silent_by_default(seed):
    first, second = typed_keys.reuse(jax.random.key(seed))
    assert first == second


def test_reuse_is_found_by_the_check(raises_declared):
    raises_declared(typed_keys.reuse_checked, 42)
    raises_declared(typed_keys.reuse_parent_checked, 42)


def test_reuse_is_found_inside_a_jitted_function():
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(typed_keys.reuse)(jax.random.key(42))


@pytest.mark.parametrize("name", ["reuse_legacy", "seed_twice", "fold_twice", "split_and_fold"])
def test_the_check_misses_draws_that_are_equal(name):
    mistake = getattr(typed_keys, name)
    first, second = mistake(42)
    assert first == second
    assert typed_keys.is_found(mistake, 42) is False


def test_the_check_finds_a_typed_key_used_twice():
    assert typed_keys.is_found(lambda seed: typed_keys.reuse(jax.random.key(seed)), 42) is True


def test_two_keys_pass_the_check():
    first, second = typed_keys.split_checked(42)
    assert first != second


def test_implementations_differ():
    results = {name: typed_keys.draw_with(name, 42) for name in IMPLEMENTATIONS}
    sizes = {name: data.shape for name, (_, data, _) in results.items()}
    assert sizes == {"threefry2x32": (2,), "philox4x32": (2,), "rbg": (4,)}
    assert len({str(dtype) for dtype, _, _ in results.values()}) == 3
    assert len({number.item() for _, _, number in results.values()}) == 3


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_mapping_over_keys_is_exact_except_for_rbg(seed):
    assert typed_keys.mapped_equals_looped("threefry2x32", seed) is True
    assert typed_keys.mapped_equals_looped("philox4x32", seed) is True
    assert typed_keys.mapped_equals_looped("rbg", seed) is False


def test_threefry_is_the_default():
    assert jax.random.key(42).dtype == jax.random.key(42, impl="threefry2x32").dtype
