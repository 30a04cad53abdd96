"""Wrong answers to the exercises on arrays and random keys, and what is said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import arrays as checks
from snippets.learn.exercises import arrays as exercises
from snippets.learn.solutions import arrays as solutions
from snippets.programs.practice import problem_of


def last_dropped(x):
    x.at[-1].set(0)
    return x


def last_unreturned(x):
    x = x.at[-1].set(0)


def last_in_numpy(x):
    found = np.array(x)
    found[-1] = 0
    return found


def last_out_of_bounds(x):
    return x.at[len(x)].set(0)


def last_with_zero_added(x):
    return x.at[-1].add(0)


def first_zeroed(x):
    return x.at[0].set(0)


def third_zeroed(x):
    return x.at[2].set(0)


def last_left_out(x):
    return x[:-1]


def all_but_the_first_zeroed(x):
    return x.at[1:].set(0) if len(x) > 1 else x.at[0].set(0)


def equal_elements_zeroed(x):
    return jnp.where(x == x[-1], 0, x)


def one_in_the_last(x):
    return x.at[-1].set(1)


def last_alone(x):
    return x.at[-1].set(0)[-1]


def zero_appended(x):
    return jnp.append(x, 0)


last_donated = jax.jit(solutions.zero_last, donate_argnums=0)


def zeroed_by_its_length(x):
    x = x.at[len(x) - 1].set(0.0)
    return x


def zeroed_by_where(x):
    return jnp.where(jnp.arange(len(x)) == len(x) - 1, 0, x)


def zeroed_by_joining(x):
    return jnp.concatenate([x[:-1], jnp.zeros(1, x.dtype)])


def zeroed_by_joining_a_float(x):
    return jnp.concatenate([x[:-1], jnp.zeros(1)])


def zeroed_in_a_copy(x):
    copied = np.array(x)
    copied[-1] = 0
    return jnp.array(copied)


def mask_rows(scores):
    return scores.at[jnp.arange(len(scores))].set(-jnp.inf)


def mask_in_numpy(scores):
    masked = np.array(scores)
    np.fill_diagonal(masked, -np.inf)
    return masked


def mask_with_a_large_number(scores):
    return scores - 1e9 * jnp.eye(len(scores))


def mask_three(scores):
    return scores.at[jnp.array([0, 1, 2]), jnp.array([0, 1, 2])].set(-jnp.inf)


def mask_the_other_diagonal(scores):
    i = jnp.arange(len(scores))
    return scores.at[i, i[::-1]].set(-jnp.inf)


def mask_by_a_product(scores):
    return scores - jnp.inf * jnp.eye(len(scores))


def mask_above(scores):
    return jnp.where(jnp.triu(jnp.ones(scores.shape, bool)), -jnp.inf, scores)


def mask_with_inf(scores):
    i = jnp.arange(len(scores))
    return scores.at[i, i].set(jnp.inf)


def mask_equal_numbers(scores):
    return jnp.where(scores == jnp.diag(scores), -jnp.inf, scores)


def mask_four(scores):
    return scores.at[jnp.arange(4), jnp.arange(4)].set(-jnp.inf)


def mask_and_drop(scores):
    i = jnp.arange(len(scores))
    scores = scores.at[i, i].set(-jnp.inf)


def mask_the_diagonal_alone(scores):
    return jnp.full(len(scores), -jnp.inf)


def mask_in_place(scores):
    for i in range(len(scores)):
        scores[i, i] = -jnp.inf
    return scores


mask_donated = jax.jit(solutions.mask_diagonal, donate_argnums=0)


def masked_in_a_loop(scores):
    for i in range(len(scores)):
        scores = scores.at[i, i].set(-jnp.inf)
    return scores


def masked_by_where(scores):
    return jnp.where(jnp.eye(len(scores), dtype=bool), -jnp.inf, scores)


def masked_by_fill(scores):
    return jnp.fill_diagonal(scores, -jnp.inf, inplace=False)


def masked_flat(scores):
    n = len(scores)
    return scores.ravel().at[:: n + 1].add(-jnp.inf).reshape(n, n)


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


def counted_clipped_below(ids, size):
    return jnp.zeros(size, jnp.int32).at[jnp.maximum(ids, 0)].add(1)


def counted_where_chosen(ids, size):
    chosen = ids[(ids >= 0) & (ids < size)]
    return jnp.zeros(size, jnp.int32).at[chosen].add(1)


def counted_in_numpy(ids, size):
    chosen = np.asarray(ids)
    return jnp.array(np.bincount(chosen[(chosen >= 0) & (chosen < size)], minlength=size))


def numpy_counts(ids, size):
    return np.asarray(solutions.histogram(ids, size))


def counted_token_by_token(ids, size):
    counts = jnp.zeros(size, jnp.int32)
    for token in jnp.where(ids < 0, size, ids):
        counts = counts.at[token].add(1)
    return counts


def counted_number_by_number(ids, size):
    return jnp.stack([jnp.sum(ids == number, dtype=jnp.int32) for number in range(size)])


def counted_by_fori(ids, size):
    inside = jnp.where(ids < 0, size, ids)
    counts = jnp.zeros(size, jnp.int32)
    return jax.lax.fori_loop(0, len(ids), lambda i, c: c.at[inside[i]].add(1), counts)


def counted_four(ids, size):
    return solutions.histogram(ids, 4)


def counted_and_dropped(ids, size):
    counts = jnp.zeros(size, jnp.int32)
    counts.at[jnp.where(ids < 0, size, ids)].add(1)
    return counts


def counted_by_histogram(ids, size):
    return jnp.histogram(ids, size, (0, size))[0].astype(jnp.int32)


def counted_beyond_a_million(ids, size):
    return jnp.zeros(size, jnp.int32).at[jnp.where(ids < 0, 10**6, ids)].add(1)


def without_zero(ids, size):
    return jnp.zeros(size, jnp.int32).at[jnp.where(ids > 0, ids, size)].add(1)


def counted_by_comparison(ids, size):
    return jnp.sum(ids[:, None] == jnp.arange(size), axis=0)


def counted_one_hot(ids, size):
    return jax.nn.one_hot(ids, size, dtype=jnp.int32).sum(axis=0)


def counted_with_a_spare(ids, size):
    inside = (ids >= 0) & (ids < size)
    return jnp.bincount(jnp.where(inside, ids, size), length=size + 1)[:size]


def counted_by_weight(ids, size):
    weights = (ids >= 0).astype(jnp.int32)
    return jnp.zeros(size, jnp.int32).at[ids].add(weights)


def counted_sorted(ids, size):
    return jnp.diff(jnp.searchsorted(jnp.sort(ids), jnp.arange(size + 1)))


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


def constant_flips(key, images):
    flip = jax.random.bernoulli(jax.random.key(7), 0.5, (len(images), 1, 1))
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * jax.random.normal(key, images.shape)


def augmented_as(turn, shape=(1, 1), probability=0.5):
    def augment(key, images):
        flip_key, noise_key = jax.random.split(key)
        of_each = shape(images) if callable(shape) else (len(images), *shape)
        flip = jax.random.bernoulli(flip_key, probability, of_each)
        noise = 0.1 * jax.random.normal(noise_key, images.shape)
        return jnp.where(flip, turn(images), images) + noise

    return augment


def mirrored(images):
    return images[:, :, ::-1]


def with_noise_of(draw):
    def augment(key, images):
        flip_key, noise_key = jax.random.split(key)
        flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
        return jnp.where(flip, mirrored(images), images) + draw(noise_key, images.shape)

    return augment


def numpy_noise(key, images):
    return augmented(key, images, scale=0) + 0.1 * np.random.normal(size=images.shape)


def one_fold_twice(key, images):
    flip_key, noise_key = jax.random.fold_in(key, 1), jax.random.fold_in(key, 1)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    noise = 0.1 * jax.random.normal(noise_key, images.shape)
    return jnp.where(flip, mirrored(images), images) + noise


def one_half_twice(key, images):
    flip_key, _ = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    noise = 0.1 * jax.random.normal(flip_key, images.shape)
    return jnp.where(flip, mirrored(images), images) + noise


def first_image_alone(key, images):
    return solutions.augment(key, images)[0]


def augmented_by_folding(key, images):
    flip = jax.random.bernoulli(jax.random.fold_in(key, 0), 0.5, (len(images), 1, 1))
    noise = 0.1 * jax.random.normal(jax.random.fold_in(key, 1), images.shape)
    return jnp.where(flip, jnp.flip(images, axis=2), images) + noise


def augmented_by_image(key, images):
    def one(key, image):
        flip_key, noise_key = jax.random.split(key)
        image = jnp.where(jax.random.bernoulli(flip_key), jnp.fliplr(image), image)
        return image + 0.1 * jax.random.normal(noise_key, image.shape)

    return jax.vmap(one)(jax.random.split(key, len(images)), images)


def noise_first(key, images):
    keys = jax.random.split(key)
    noisy = images + 0.1 * jax.random.normal(keys[0], images.shape)
    flip = jax.random.uniform(keys[1], len(images)) < 0.5
    return jnp.where(flip[:, None, None], mirrored(noisy), noisy)


def in_a_chain(key, images):
    key, draw = jax.random.split(key)
    flip = jax.random.randint(draw, (len(images),), 0, 2)
    key, draw = jax.random.split(key)
    noise = jax.random.normal(draw, images.shape) * 0.1
    sign = 1 - 2 * flip
    columns = jnp.arange(images.shape[2])
    index = jnp.where(sign[:, None] > 0, columns, columns[::-1])
    return jnp.take_along_axis(images, index[:, None], axis=2) + noise


Z = checks.check_zero_last
M, H, A = checks.check_mask_diagonal, checks.check_histogram, checks.check_augment
WRONG = [
    (Z, exercises.zero_last, "it raises TypeError: JAX arrays are immutable"),
    (Z, last_dropped, "which has to be kept"),
    (Z, last_out_of_bounds, "drops a write out of bounds"),
    (Z, last_with_zero_added, "has not changed"),
    (Z, last_unreturned, "it returns nothing"),
    (Z, last_in_numpy, "it returns a NumPy array, not a JAX array"),
    (Z, first_zeroed, "whose last element is not 0"),
    (Z, third_zeroed, "has not changed"),
    (Z, one_in_the_last, "whose last element is not 0"),
    (Z, jnp.zeros_like, "only the last element is to change"),
    (Z, all_but_the_first_zeroed, "only the last element is to change"),
    (Z, equal_elements_zeroed, "only the last element is to change"),
    (Z, last_left_out, "the shape (2,), not (3,)"),
    (Z, last_alone, "the shape (), not (3,)"),
    (Z, zero_appended, "(4,), not (3,), the shape of `x`"),
    (Z, last_donated, "don't donate it"),
    (Z, zeroed_by_joining_a_float, "from an array of int32 it makes one of float32"),
    (M, exercises.mask_diagonal, "the matrix has not changed"),
    (M, mask_rows, "numbers beside the diagonal have changed"),
    (M, mask_in_numpy, "it returns a NumPy array, not a JAX array"),
    (M, mask_with_a_large_number, "where -inf is wanted"),
    (M, mask_three, "the diagonal is [-inf -inf -inf"),
    (M, mask_the_other_diagonal, "the diagonal is [ 0.1 -inf  0.1]"),
    (M, mask_by_a_product, "0 times inf is nan"),
    (M, mask_above, "numbers beside the diagonal have changed"),
    (M, mask_with_inf, "the diagonal is [inf inf inf]"),
    (M, mask_equal_numbers, "numbers beside the diagonal have changed"),
    (M, mask_four, "the diagonal is [-inf -inf -inf -inf"),
    (M, mask_and_drop, "it returns nothing"),
    (M, mask_the_diagonal_alone, "the result has the shape (3,)"),
    (M, mask_in_place, "it raises TypeError: JAX arrays are immutable"),
    (M, mask_donated, "don't donate it"),
    (H, counted_once, "2 occurs twice and is counted once"),
    (H, counted_padding, "-1 is counted as the last number"),
    (H, counted_clipped, "both 7 and -1 are counted as 3"),
    (H, counted_clipped_without_padding, "7 is counted as 3"),
    (H, minus_one_alone, "where two 0 and one 11 count"),
    (H, counted_as_floats, "the counts are float32"),
    (H, counted_by_bincount, "-1 is counted as 0"),
    (H, counted_clipped_below, "-1 is counted as 0"),
    (H, counted_where_chosen, "it fails under `jax.jit`"),
    (H, counted_in_numpy, "it fails under `jax.jit`"),
    (H, numpy_counts, "where a JAX array is wanted"),
    (H, counted_token_by_token, "it is a loop: "),
    (H, counted_number_by_number, "it is a loop: "),
    (H, counted_by_fori, "one token after the other"),
    (H, counted_four, "with 12 numbers, it counts [2 0 0 0]"),
    (H, counted_and_dropped, "it counts [0 0 0 0]"),
    (H, counted_by_histogram, "where two 0 and one 11 count"),
    (H, counted_beyond_a_million, "depends on `size`"),
    (H, without_zero, "it counts [0 0 2 0]"),
    (A, exercises.augment, "a key is used twice"),
    (A, with_a_key_of_its_own, "two keys give the same images"),
    (A, constant_noise, "two keys give the same noise"),
    (A, constant_flips, "two keys flip the same images"),
    (A, all_flipped_together, "draw for each of them"),
    (A, the_same_noise_for_all, "all images have the same noise"),
    (A, lambda key, images: augmented(key, images, scale=0), "of 0.00, not 0 and 0.1"),
    (A, too_much_noise, "of 1.00, not 0 and 0.1"),
    (A, augmented_as(jnp.flip), "neither as they were nor mirrored"),
    (A, augmented_as(lambda images: images[:, ::-1]), "reverse its last axis"),
    (A, augmented_as(lambda images: images[:, ::-1, ::-1]), "reverse its last axis"),
    (A, augmented_as(mirrored, shape=jnp.shape), "draw once for each image"),
    (A, augmented_as(mirrored, probability=0.25), "with probability 1/2"),
    (A, augmented_as(mirrored, shape=lambda _: (1024, 1, 1)), "it raises ValueError"),
    (A, with_noise_of(lambda key, shape: 0.1 * jax.random.uniform(key, shape)), "a mean of 0.05"),
    (A, with_noise_of(lambda key, shape: 0.2 * jax.random.uniform(key, shape) - 0.1), "of 0.06"),
    (
        A,
        with_noise_of(lambda key, shape: 0.1 * jax.random.normal(key, (*shape[:2], 1))),
        "all rows or columns",
    ),
    (A, numpy_noise, "other images at the second call"),
    (A, one_fold_twice, "a key is used twice"),
    (A, one_half_twice, "a key is used twice"),
    (A, first_image_alone, "become (3, 4)"),
]
RIGHT = [
    (Z, zeroed_by_its_length),
    (Z, zeroed_by_where),
    (Z, zeroed_by_joining),
    (Z, zeroed_in_a_copy),
    (Z, jax.jit(solutions.zero_last)),
    (M, masked_in_a_loop),
    (M, masked_by_where),
    (M, masked_by_fill),
    (M, masked_flat),
    (M, jax.jit(solutions.mask_diagonal)),
    (H, counted_by_comparison),
    (H, counted_one_hot),
    (H, counted_with_a_spare),
    (H, counted_by_weight),
    (H, counted_sorted),
    (H, jax.jit(solutions.histogram, static_argnames="size")),
    (A, augmented_by_folding),
    (A, augmented_by_image),
    (A, noise_first),
    (A, in_a_chain),
    (A, jax.jit(solutions.augment)),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
