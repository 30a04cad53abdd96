import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.start import random_keys

seeds = st.integers(0, 2**31 - 1)
IMPLEMENTATIONS = ("threefry2x32", "philox4x32", "rbg")


def values(draws):
    return [np.asarray(draw).item() for draw in draws]


def test_global_seed_hides_state_and_repeats():
    for two_draws in (random_keys.torch_two_draws, random_keys.tensorflow_two_draws):
        first, second = values(two_draws(42))
        assert first != second
        assert values(two_draws(42)) == [first, second]
        assert values(two_draws(43)) != [first, second]


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_the_same_key_gives_the_same_number(seed):
    first, second = random_keys.draw_twice(seed)
    assert first.shape == () and first.dtype == jnp.float32
    assert first == second


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_split_gives_two_numbers_and_repeats(seed):
    first, second = random_keys.split_and_draw(seed)
    assert first != second
    assert values(random_keys.split_and_draw(seed)) == values([first, second])


@given(seeds, st.floats(0.1, 0.9))
@settings(max_examples=20, deadline=None)
def test_dropout_keeps_or_drops_and_scales(seed, rate):
    x = jnp.arange(1.0, 51.0)
    y = np.asarray(random_keys.dropout(jax.random.key(seed), x, rate))
    kept = y != 0
    np.testing.assert_allclose(y[kept], np.asarray(x)[kept] / (1 - rate), rtol=1e-5)


def test_dropout_keeps_the_mean():
    y = random_keys.dropout(jax.random.key(0), jnp.ones(20_000), 0.3)
    assert y.mean() == pytest.approx(1, abs=0.02)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_one_key_drops_the_same_elements_twice(seed):
    key, x = jax.random.key(seed), jnp.ones(1000)
    once = random_keys.dropout(key, x) != 0
    assert ((random_keys.dropout_twice_one_key(key, x) != 0) == once).all()


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_two_keys_keep_a_quarter(seed):
    kept = random_keys.dropout_twice(jax.random.key(seed), jnp.ones(20_000))
    assert random_keys.share_kept(kept) == pytest.approx(0.25, abs=0.03)


def test_the_shorter_draw_is_the_beginning_of_the_longer():
    key = jax.random.key(0)
    assert (jax.random.normal(key, (3,)) == jax.random.normal(key, (5,))[:3]).all()


def test_masks_differ_where_their_keys_do():
    key = jax.random.key(0)
    different = np.asarray(random_keys.masks_by_step(key, range(4)))
    assert different.shape == (4, 12)
    assert len({row.tobytes() for row in different}) == 4
    np.testing.assert_array_equal(random_keys.masks_by_step(key, [3]), different[3:])


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(1, 6))
def test_the_keys_of_a_split_are_those_folded_with_their_number(seed, n):
    by_split, by_fold = random_keys.children(jax.random.key(seed), n)
    assert len(by_split) == len(by_fold) == n
    assert all(one == other for one, other in zip(by_split, by_fold, strict=True))
    assert len({str(jax.random.key_data(key)) for key in by_fold}) == n


def test_a_split_folds_in_the_position_with_the_default_generator_and_not_with_all():
    for implementation, same in (("threefry2x32", True), ("unsafe_rbg", False)):
        by_split, by_fold = random_keys.children(jax.random.key(3, impl=implementation), 4)
        equal = [bool(one == other) for one, other in zip(by_split, by_fold, strict=True)]
        assert equal == [same] * 4, implementation
    assert jax.random.key_impl(jax.random.key(3)) == "threefry2x32"


# In a process of its own: to fork one in which JAX has threads can end in a deadlock.
WORKERS = """
import numpy, torch

class Draws(torch.utils.data.Dataset):
    generator = numpy.random.default_rng(0)

    def __len__(self):
        return 4

    def __getitem__(self, _):
        return self.generator.random(), torch.rand(()).item()

options = {"batch_size": None, "num_workers": 2, "multiprocessing_context": "fork"}
own, of_torch = zip(*torch.utils.data.DataLoader(Draws(), **options))
print(len(set(own)), len(set(of_torch)))
"""


def test_torch_repeats_numbers_where_two_generators_begin_with_one_state():
    masks = []
    for _ in range(2):
        torch.manual_seed(0)
        masks.append(torch.nn.functional.dropout(torch.ones(100)))
    assert torch.equal(*masks)
    assert not torch.equal(masks[1], torch.nn.functional.dropout(torch.ones(100)))
    done = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "4"], done.stderr


def test_many_keys_at_once_equal_a_loop():
    many = jax.random.split(jax.random.key(42), 4)
    together = random_keys.draw_for_each(many, (2,))
    assert together.shape == (4, 2)
    one_by_one = np.stack([jax.random.normal(key, (2,)) for key in many])
    np.testing.assert_array_equal(together, one_by_one)


def test_folding_many_numbers_at_once_equals_a_loop():
    key = jax.random.key(42)
    together = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(3))
    one_by_one = jnp.stack([jax.random.fold_in(key, number) for number in range(3)])
    assert (together == one_by_one).all()


def test_one_key_for_a_whole_array_gives_other_numbers():
    key = jax.random.key(42)
    whole = jax.random.normal(key, (4,))
    each = random_keys.draw_for_each(jax.random.split(key, 4), ())
    assert len({*values(whole), *values(each)}) == 8


LAYERS = ["encoder", "decoder"]


def test_another_order_swaps_weights_unless_they_follow_names():
    key = jax.random.key(0)
    for draw, start in ((random_keys.weights_torch, 42), (random_keys.weights_in_turn, key)):
        one, other = draw(start, LAYERS), draw(start, LAYERS[::-1])
        assert (one["encoder"], one["decoder"]) == (other["decoder"], other["encoder"])
        assert one != other
    one, other = (random_keys.weights_by_name(key, order) for order in (LAYERS, LAYERS[::-1]))
    assert one == other and one["encoder"] != one["decoder"]


def test_a_layer_in_front_shifts_weights_unless_they_follow_names():
    key = jax.random.key(0)
    for draw in (random_keys.weights_in_turn, random_keys.weights_by_position):
        before, after = draw(key, LAYERS), draw(key, ["embedding", *LAYERS])
        assert after["embedding"] == before["encoder"] != after["encoder"]
    before = random_keys.weights_by_name(key, LAYERS)
    assert before.items() <= random_keys.weights_by_name(key, ["embedding", *LAYERS]).items()


def test_noisy_step_is_the_formula():
    key = jax.random.key(7)
    weight = jnp.array([1.0, 5.0])
    noise = np.asarray(jax.random.normal(key, (2,)))
    expected = np.asarray(weight) - 0.1 * (2 * (np.asarray(weight) - 3) + noise)
    np.testing.assert_allclose(random_keys.noisy_step(weight, key), expected, rtol=1e-6)


def test_training_resumes_exactly():
    key, start = jax.random.key(0), jnp.zeros(2)
    whole = random_keys.train(key, start, range(6))
    half = random_keys.train(key, start, range(3))
    assert (whole != half).all()
    np.testing.assert_array_equal(random_keys.train(key, half, range(3, 6)), whole)


def test_training_draws_new_noise_at_each_step():
    key, start = jax.random.key(0), jnp.zeros(2)
    first = random_keys.train(key, start, [0])
    assert (random_keys.train(key, start, [1]) != first).all()


def test_no_key_of_the_tree_comes_up_twice():
    tree = random_keys.tree_of_keys(42, ["encoder", "decoder"], 3)
    assert {name: list(keys) for name, keys in tree["key(42)"].items()} == {
        "weights": ["decoder", "encoder"],
        "noise": ["step 0", "step 1", "step 2"],
    }
    leaves = jax.tree.leaves(tree)
    assert len(set(leaves)) == len(leaves) == 5
    weights, noise = jax.random.split(jax.random.key(42))
    folded = jax.random.key_data(jax.random.fold_in(noise, 1))
    assert tree["key(42)"]["noise"]["step 1"] == str(folded)
    encoder = jax.random.key_data(random_keys.key_for(weights, "encoder"))
    assert tree["key(42)"]["weights"]["encoder"] == str(encoder)


def test_torch_and_tensorflow_can_do_without_the_global_state():
    draws = []
    for _ in range(2):
        torch.randn(3)
        generator = torch.Generator().manual_seed(42)
        draws.append([torch.randn(1, generator=generator).item() for _ in range(2)])
    assert draws[0] == draws[1]
    assert draws[0][0] != draws[0][1]
    assert len({tf.random.stateless_normal([], seed=[42, 0]).numpy() for _ in range(2)}) == 1


def test_kinds_differ_in_dtype_and_shape():
    typed, legacy = random_keys.both_kinds(42)
    assert (str(typed.dtype), typed.shape) == ("key<fry>", ())
    assert (legacy.dtype, legacy.shape) == (jnp.uint32, (2,))


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_both_kinds_hold_the_same_numbers_and_draw_the_same(seed):
    typed, legacy = random_keys.both_kinds(seed)
    np.testing.assert_array_equal(random_keys.unwrap(typed), legacy)
    assert jax.random.normal(typed) == jax.random.normal(legacy)


def test_many_keys_have_the_shape_of_their_number():
    typed, legacy = random_keys.both_kinds(42)
    assert jax.random.split(typed, 3).shape == (3,)
    assert jax.random.split(legacy, 3).shape == (3, 2)


def test_arithmetic_on_a_typed_key_raises(raises_declared):
    raises_declared(random_keys.add_to_typed, 42)


def test_arithmetic_on_a_legacy_key_is_silent():
    key, number = random_keys.add_to_legacy(42)
    np.testing.assert_array_equal(key, [1, 43])
    assert number == jax.random.normal(key)
    assert number != jax.random.normal(jax.random.PRNGKey(42))


def test_legacy_keys_can_be_refused(raises_declared):
    raises_declared(random_keys.refuse_legacy, 42)
    assert jax.random.normal(jax.random.PRNGKey(42)).shape == ()


def test_typed_key_does_not_become_a_numpy_array(raises_declared):
    raises_declared(random_keys.typed_to_numpy, 42)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_unwrapped_and_wrapped_again_is_the_same_key(implementation):
    key = jax.random.key(42, impl=implementation)
    data = random_keys.unwrap(key)
    assert isinstance(data, np.ndarray) and data.dtype == np.uint32
    again = random_keys.rewrap(data, implementation)
    assert again.dtype == key.dtype and again == key
    assert jax.random.normal(again) == jax.random.normal(key)


def test_numbers_of_one_kind_do_not_fit_another():
    with pytest.raises(TypeError):
        random_keys.rewrap(np.zeros(4, np.uint32), "threefry2x32")


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_reuse_is_silent_by_default(seed):
    first, second = random_keys.reuse(jax.random.key(seed))
    assert first == second


def test_reuse_is_found_by_the_check(raises_declared):
    raises_declared(random_keys.reuse_checked, 42)


def test_a_draw_from_a_key_that_was_split_is_found():
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        key = jax.random.key(42)
        jax.random.split(key)
        jax.random.normal(key)


def test_reuse_is_found_inside_a_jitted_function():
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(random_keys.reuse)(jax.random.key(42))


@pytest.mark.parametrize("name", ["reuse_legacy", "seed_twice", "fold_twice", "split_and_fold"])
def test_the_check_misses_draws_that_are_equal(name):
    mistake = getattr(random_keys, name)
    first, second = mistake(42)
    assert first == second
    assert random_keys.is_found(mistake, 42) is False


def test_the_check_finds_a_typed_key_used_twice():
    assert random_keys.is_found(lambda seed: random_keys.reuse(jax.random.key(seed)), 42) is True


def test_two_keys_pass_the_check():
    with jax.debug_key_reuse(True):
        first, second = jax.random.split(jax.random.key(42))
        assert jax.random.normal(first) != jax.random.normal(second)


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_mapping_over_keys_is_exact_except_for_rbg(seed):
    assert random_keys.mapped_equals_looped("threefry2x32", seed) is True
    assert random_keys.mapped_equals_looped("philox4x32", seed) is True
    assert random_keys.mapped_equals_looped("rbg", seed) is False


def test_threefry_is_the_default():
    assert jax.random.key(42).dtype == jax.random.key(42, impl="threefry2x32").dtype
