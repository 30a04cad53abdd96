import itertools

import jax
import jax.numpy as jnp
import numpy as np
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


def test_a_draw_changes_the_state_of_torch():
    assert random_keys.torch_state_changes(42) is True


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


@settings(max_examples=10, deadline=None)
@given(seeds, st.lists(st.integers(0, 2**31 - 1), min_size=2, max_size=4, unique=True))
def test_fold_in_depends_on_the_number_alone(seed, numbers):
    draws = dict(zip(numbers, values(random_keys.fold_in_and_draw(seed, numbers)), strict=True))
    assert len(set(draws.values())) == len(numbers)
    reverse = values(random_keys.fold_in_and_draw(seed, numbers[::-1]))
    assert reverse == [draws[number] for number in numbers[::-1]]


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


def test_order_of_draws_matters_with_hidden_state_only():
    orders = list(itertools.permutations(random_keys.LAYERS))
    assert random_keys.torch_weights(42, orders[0]) != random_keys.torch_weights(42, orders[1])
    assert random_keys.jax_weights(42, orders[0]) == random_keys.jax_weights(42, orders[1])


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
    first, _ = jax.random.key_data(jax.random.split(weights))
    assert tree["key(42)"]["weights"]["encoder"] == str(first)
