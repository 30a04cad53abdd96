"""Wrong answers to the exercises on arrays and random keys, and what is said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import arrays as checks
from snippets.programs.practice import problem_of


def mask_rows(scores):
    return scores.at[jnp.arange(len(scores))].set(-jnp.inf)


def mask_in_numpy(scores):
    masked = np.array(scores)
    np.fill_diagonal(masked, -np.inf)
    return masked


def mask_with_a_large_number(scores):
    return scores - 1e9 * jnp.eye(len(scores))


def counted_once(ids, size):
    counts = jnp.zeros(size, jnp.int32)
    inside = jnp.where(ids < 0, size, ids)
    return counts.at[inside].set(counts[inside] + 1)


def counted_padding(ids, size):
    return jnp.zeros(size, jnp.int32).at[ids].add(1)


def counted_clipped(ids, size):
    return jnp.zeros(size, jnp.int32).at[jnp.clip(ids, -1, size - 1)].add(1)


def counted_clipped_without_padding(ids, size):
    inside = jnp.where(ids < 0, size + 1, jnp.clip(ids, 0, size - 1))
    return jnp.zeros(size, jnp.int32).at[inside].add(1)


def minus_one_alone(ids, size):
    return jnp.zeros(size, jnp.int32).at[jnp.where(ids == -1, size, ids)].add(1)


def counted_as_floats(ids, size):
    return jnp.zeros(size).at[jnp.where(ids < 0, size, ids)].add(1)


def counted_by_bincount(ids, size):
    return jnp.bincount(ids, length=size)


def augmented(key, images, noise_shape=None, flips=None, seed=None, scale=0.1):
    flip_key, noise_key = jax.random.split(key if seed is None else jax.random.key(seed))
    flip = jax.random.bernoulli(flip_key, 0.5, (flips or len(images), 1, 1))
    noise = scale * jax.random.normal(noise_key, noise_shape or images.shape)
    return jnp.where(flip, images[:, :, ::-1], images) + noise


def with_a_key_of_its_own(key, images):
    return augmented(key, images, seed=1)


def constant_noise(key, images):
    flip = jax.random.bernoulli(key, 0.5, (len(images), 1, 1))
    noise = 0.1 * jax.random.normal(jax.random.key(7), images.shape)
    return jnp.where(flip, images[:, :, ::-1], images) + noise


def all_flipped_together(key, images):
    return augmented(key, images, flips=1)


def the_same_noise_for_all(key, images):
    return augmented(key, images, noise_shape=images.shape[1:])


def too_much_noise(key, images):
    return augmented(key, images, scale=1.0)


WRONG = [
    (checks.check_mask_diagonal, mask_rows, "numbers beside the diagonal have changed"),
    (checks.check_mask_diagonal, mask_in_numpy, "it returns a ndarray"),
    (checks.check_mask_diagonal, mask_with_a_large_number, "where -inf is wanted"),
    (checks.check_histogram, counted_once, "2 occurs twice and is counted once"),
    (checks.check_histogram, counted_padding, "-1 is counted as the last number"),
    (checks.check_histogram, counted_clipped, "both 7 and -1 are counted as 3"),
    (checks.check_histogram, counted_clipped_without_padding, "7 is counted as 3"),
    (checks.check_histogram, minus_one_alone, "of -2, -1, 11 and 0"),
    (checks.check_histogram, counted_as_floats, "the counts are float32"),
    (checks.check_histogram, counted_by_bincount, "it counts [2 0 2 0]"),
    (checks.check_augment, with_a_key_of_its_own, "two keys give the same images"),
    (checks.check_augment, constant_noise, "two keys give the same noise"),
    (checks.check_augment, all_flipped_together, "draw for each of them"),
    (checks.check_augment, the_same_noise_for_all, "all images have the same noise"),
    (checks.check_augment, too_much_noise, "a standard deviation of 1.04, not 0.1"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
