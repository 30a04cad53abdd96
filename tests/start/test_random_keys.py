import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.start import random_keys

seeds = st.integers(0, 2**31 - 1)


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


def test_torch_keeps_a_quarter():
    torch.manual_seed(0)
    kept = random_keys.dropout_twice_torch(torch.ones(20_000))
    assert random_keys.share_kept(kept) == pytest.approx(0.25, abs=0.03)


def test_the_shorter_draw_is_the_beginning_of_the_longer():
    key = jax.random.key(0)
    assert (jax.random.normal(key, (3,)) == jax.random.normal(key, (5,))[:3]).all()


def test_masks_differ_where_their_keys_do():
    key = jax.random.key(0)
    same = np.asarray(random_keys.masks_one_key(key, range(4)))
    assert same.shape == (4, 12) and (same == same[0]).all()
    different = np.asarray(random_keys.masks_by_step(key, range(4)))
    assert len({row.tobytes() for row in different}) == 4
    np.testing.assert_array_equal(random_keys.masks_by_step(key, [3]), different[3:])


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(1, 6))
def test_the_keys_of_a_split_are_those_folded_with_their_number(seed, n):
    by_split, by_fold = random_keys.children(jax.random.key(seed), n)
    assert len(by_split) == len(by_fold) == n
    assert all(one == other for one, other in zip(by_split, by_fold, strict=True))
    assert len({str(jax.random.key_data(key)) for key in by_fold}) == n


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


def test_another_order_trades_weights_unless_they_follow_names():
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


def test_own_generator_is_independent_of_the_global_one():
    alone = values(random_keys.torch_own_generator(42))
    torch.manual_seed(1)
    torch.randn(3)
    assert values(random_keys.torch_own_generator(42)) == alone
    assert alone[0] != alone[1]
    assert alone == values(random_keys.torch_two_draws(42))


def test_stateless_draws_of_tensorflow_repeat():
    first, second = values(random_keys.tensorflow_stateless(42))
    assert first == second
    assert values(random_keys.tensorflow_stateless(43)) != [first, second]


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
