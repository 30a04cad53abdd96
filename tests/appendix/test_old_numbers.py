import jax
import numpy as np
import pytest

from snippets.appendix import old_numbers

POST_JAX = (-0.18471177, 1.3694694)
POST_TENSORFLOW = (-0.39872527, 0.8794899)


def test_old_setting_gives_the_numbers_of_the_post():
    draws = old_numbers.two_draws(False)
    np.testing.assert_array_equal(np.array(draws), np.array(POST_JAX, np.float32))


def test_setting_of_today_gives_others_and_is_the_default():
    first, second = old_numbers.two_draws(True)
    assert first == np.float32(-0.028304616)
    assert {first.item(), second.item()}.isdisjoint(np.float32(POST_JAX).tolist())
    assert jax.config.jax_threefry_partitionable
    assert first == jax.random.normal(jax.random.key(42))


def test_setting_is_restored():
    old_numbers.two_draws(False)
    assert jax.config.jax_threefry_partitionable


def test_only_today_a_short_draw_begins_a_long_one():
    short, long = old_numbers.short_and_long(True)
    np.testing.assert_array_equal(short, long[:2])
    short, long = old_numbers.short_and_long(False)
    assert (short != long[:2]).all()
    assert old_numbers.long_begins_with_short(True)
    assert not old_numbers.long_begins_with_short(False)


def test_children_of_a_split_differ_between_the_settings():
    today, before = old_numbers.children(True), old_numbers.children(False)
    assert today.shape == before.shape == (2, 2)
    assert (today != before).all()


def test_key_itself_is_the_same_under_both_settings():
    with jax.threefry_partitionable(False):
        before = jax.random.key_data(jax.random.key(42))
    np.testing.assert_array_equal(before, jax.random.key_data(jax.random.key(42)))


@pytest.mark.parametrize("partitionable", [True, False])
def test_both_settings_draw_from_the_same_distribution(partitionable):
    assert old_numbers.mean_and_deviation(partitionable, 100_000) == (0.0, 1.0)


def test_torch_gives_the_numbers_of_the_post():
    first, second = (draw.item() for draw in old_numbers.torch_draws())
    assert (round(first, 4), round(second, 4)) == (0.3367, 0.1288)


def test_tensorflow_does_not():
    draws = old_numbers.tensorflow_draws(300)
    assert len(draws) == 300 and len(set(draws)) > 290
    for number in POST_TENSORFLOW:
        assert not old_numbers.contains(draws, number)


def test_contains():
    assert old_numbers.contains([0.5, -0.25], -0.2500001)
    assert not old_numbers.contains([0.5, -0.25], 0.25)
    assert not old_numbers.contains([], 0.25)
