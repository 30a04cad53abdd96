"""Lesson 2, arrays and random keys: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np


def check_mask_diagonal(mask_diagonal):
    """Raise AssertionError unless the diagonal alone is masked."""
    scores = jnp.arange(9.0).reshape(3, 3)
    masked = mask_diagonal(scores)
    assert isinstance(masked, jax.Array), (
        f"it returns a {type(masked).__name__}, not a JAX array"
    )
    diagonal = np.diag(masked)
    assert not np.array_equal(masked, scores), (
        "the matrix has not changed; `.at[...].set` returns a new array, "
        "which has to be kept"
    )
    assert np.all(diagonal == -np.inf), (
        f"the diagonal is {diagonal}, where -inf is wanted"
    )
    off_diagonal = ~np.eye(3, dtype=bool)
    assert np.all(np.asarray(masked == scores)[off_diagonal]), (
        "numbers beside the diagonal have changed; an index for the row and "
        "one for the column choose single elements"
    )


def check_histogram(histogram):
    """Raise AssertionError unless numbers within bounds are all counted."""
    ids = jnp.array([0, 2, 2, 7, -1])
    counts = histogram(ids, 4)
    assert counts is not None and counts.shape == (4,), (
        f"it returns {counts}, where one count for each of 4 numbers is wanted"
    )
    assert counts.dtype == jnp.int32, f"the counts are {counts.dtype}"
    assert counts[2] != 1, (
        "2 occurs twice and is counted once; `.set` writes each element once, "
        "`.add` as often as its index occurs"
    )
    assert counts[3] == 0 or counts[3] == 1, (
        "both 7 and -1 are counted as 3, and neither occurs"
    )
    if counts[3]:
        only_large = histogram(jnp.array([7]), 4)
        assert not only_large[3], (
            "7 is counted as 3, the nearest index; by default, a write out of "
            "bounds is dropped"
        )
        raise AssertionError(
            "-1 is counted as the last number; negative indices count from "
            "the end, as in NumPy, and are not out of bounds"
        )
    assert counts.tolist() == [1, 0, 2, 0], (
        f"of 0, 2, 2, 7 and -1 it counts {counts}, not [1 0 2 0]"
    )
    others = histogram(jnp.array([-2, -1, 11, 0]), 12)
    assert others.sum() == 2, (
        f"of -2, -1, 11 and 0, with 12 numbers, it counts {others.sum()}, "
        "where 11 and 0 count"
    )


def check_augment(augment):
    """Raise AssertionError unless flips and noise are independent."""
    key = jax.random.key(0)
    images = jnp.broadcast_to(jnp.arange(8.0), (64, 4, 8))
    try:
        with jax.debug_key_reuse(True):
            augmented = augment(key, images)
    except jax.errors.KeyReuseError:
        raise AssertionError(
            "a key is used twice, so the flips follow from the noise; split "
            "the key, and use each half once"
        ) from None
    assert augmented.shape == images.shape, (
        f"images of shape {images.shape} become {augmented.shape}"
    )
    other = augment(jax.random.key(1), images)
    assert not jnp.array_equal(augmented, other), (
        "two keys give the same images; draw from the key that is passed"
    )
    flipped = augmented[:, 0, 0] > augmented[:, 0, -1]
    assert 16 < flipped.sum() < 48, (
        f"{flipped.sum()} of 64 images are flipped; draw for each of them, "
        "with probability 1/2"
    )
    noise = augmented - jnp.where(
        flipped[:, None, None], images[:, :, ::-1], images
    )
    assert 0.09 < noise.std() < 0.11, (
        f"the noise has a standard deviation of {noise.std():.2f}, not 0.1"
    )
    assert noise.std(axis=0).min() > 0.05, (
        "all images have the same noise; draw an array of their whole shape"
    )
    flipped = other[:, 0, 0] > other[:, 0, -1]
    others = other - jnp.where(
        flipped[:, None, None], images[:, :, ::-1], images
    )
    assert not jnp.allclose(noise, others, atol=1e-3), (
        "two keys give the same noise; draw it from the key that is passed"
    )
