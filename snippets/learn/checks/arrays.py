"""Lesson 2, arrays and random keys: what answers are checked for."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import equations_of, kind_of


def check_zero_last(zero_last):
    """Raise AssertionError unless the last element alone becomes 0."""
    halves = [1.5 - jnp.arange(n) % 3 for n in (3, 1, 6)]
    for x in [*halves, jnp.array([7, 5])]:
        n = len(x)
        found = zero_last(x)
        assert found is not None, "it returns nothing; return the new array"
        assert isinstance(found, jax.Array), (
            f"it returns {kind_of(found)}, not a JAX array"
        )
        assert not x.is_deleted(), (
            "the array that it was given is gone, and its caller may need "
            "it; don't donate it"
        )
        assert found.shape == (n,), (
            f"the result has the shape {found.shape}, not {(n,)}, the shape "
            "of `x`"
        )
        assert not np.array_equal(found, x), (
            f"{x} has not changed; `.at[...].set` returns a new array, which "
            "has to be kept, and drops a write out of bounds"
        )
        assert found[-1] == 0, (
            f"from {x} it makes {found}, whose last element is not 0; index "
            "-1 is the last element of every array"
        )
        assert np.array_equal(found[:-1], x[:-1]), (
            f"from {x} it makes {found}; only the last element is to change"
        )
        assert found.dtype == x.dtype, (
            f"from an array of {x.dtype} it makes one of {found.dtype}"
        )


def check_mask_diagonal(mask_diagonal):
    """Raise AssertionError unless the diagonal alone is masked."""
    for n in (3, 9):
        scores = (0.1 - jnp.arange(n * n) % 4).reshape(n, n)
        masked = mask_diagonal(scores)
        assert masked is not None, "it returns nothing; return the new matrix"
        assert isinstance(masked, jax.Array), (
            f"it returns {kind_of(masked)}, not a JAX array"
        )
        assert not scores.is_deleted(), (
            "the matrix that it was given is gone, and its caller may need "
            "it; don't donate it"
        )
        assert masked.shape == (n, n), (
            f"the result has the shape {masked.shape}, not {(n, n)}"
        )
        assert not np.array_equal(masked, scores), (
            "the matrix has not changed; `.at[...].set` returns a new array, "
            "which has to be kept"
        )
        diagonal = np.diag(masked)
        assert np.all(diagonal == -np.inf), (
            f"the diagonal is {diagonal}, where -inf is wanted"
        )
        others = np.asarray(masked)[~np.eye(n, dtype=bool)]
        assert not np.isnan(others).any(), (
            "there is nan beside the diagonal, because 0 times inf is nan; "
            "write -inf into the diagonal, without a product"
        )
        assert np.array_equal(others, scores[~np.eye(n, dtype=bool)]), (
            "numbers beside the diagonal have changed; an index for the row "
            "and one for the column choose single elements"
        )


def check_histogram(histogram):
    """Raise AssertionError unless numbers within bounds are all counted."""
    ids = jnp.array([0, 2, 2, 7, -1])
    counts = histogram(ids, 4)
    assert isinstance(counts, jax.Array) and counts.shape == (4,), (
        f"it returns {counts!r}, where a JAX array is wanted, with one count "
        "for each of 4 numbers"
    )
    assert counts.dtype == jnp.int32, (
        f"the counts are {counts.dtype}, not int32"
    )
    assert counts[2] != 1, (
        "2 occurs twice and is counted once; `.set` writes each element once, "
        "`.add` as often as its index occurs"
    )
    assert counts[0] != 2, (
        "-1 is counted as 0, the nearest number; it is to be left out"
    )
    assert counts.tolist() != [1, 0, 2, 2], (
        "both 7 and -1 are counted as 3, and neither occurs"
    )
    if counts.tolist() == [1, 0, 2, 1]:
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
    others = jnp.array([0, 11, 0, 12, 13, -1, -2, -12, -13])
    found = histogram(others, 12)
    assert found.tolist() == [2, *[0] * 10, 1], (
        f"of {others}, with 12 numbers, it counts {found}, where two 0 and "
        "one 11 count"
    )
    try:
        trace = jax.make_jaxpr(histogram, static_argnums=1)
        few = list(equations_of(trace(ids, 4)))
        many = list(equations_of(trace(others, 12)))
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        raise AssertionError(
            "right, but it fails under `jax.jit`: it needs the values of "
            "`ids`, or an array whose length depends on them"
        ) from None
    assert len(few) == len(many), (
        f"right, but it is a loop: {len(few)} operations for 5 tokens and 4 "
        f"numbers, {len(many)} for 9 and 12; one write can count all"
    )
    loops = [each for each in many if each.primitive.name in ("scan", "while")]
    assert all(each.params.get("length", math.inf) < 9 for each in loops), (
        "right, but it is a loop, one token after the other; one write can "
        "count all"
    )
    found = histogram(jnp.array([-1, 5]), 2**21)
    assert found.sum() == 1, (
        "right, but with 2097152 numbers -1 is counted as one of them; an "
        "index that is out of bounds for all sizes depends on `size`"
    )


def flips_and_noise(augmented, images):
    """Return which of `images` were mirrored, (n,), and what was added."""
    mirrored = images[:, :, ::-1]
    far, near = [
        np.abs(augmented - each).sum(axis=(1, 2))
        for each in (images, mirrored)
    ]
    flipped = near < far
    noise = augmented - np.where(flipped[:, None, None], mirrored, images)
    return flipped, noise


def check_augment(augment):
    """Raise AssertionError unless flips and noise are independent."""
    n = 1024
    images = np.random.default_rng(0).normal(size=(n, 3, 4), scale=10)
    images = images.astype(np.float32)
    given = jnp.array(images)
    used_twice = (
        "a key is used twice, so the flips follow from the noise; split the "
        "key, and use each half once"
    )
    try:
        with jax.debug_key_reuse(True):
            augmented, again, other = [
                augment(jax.random.key(seed), given) for seed in (0, 0, 1)
            ]
            few = augment(jax.random.key(0), given[:5, :2, :3])
    except jax.errors.KeyReuseError:
        raise AssertionError(used_twice) from None
    for found, shape in ((augmented, images.shape), (few, (5, 2, 3))):
        assert jnp.shape(found) == shape, (
            f"images of shape {shape} become {jnp.shape(found)}"
        )
    assert np.array_equal(augmented, again), (
        "one key gives other images at the second call; draw everything from "
        "the key"
    )
    assert not np.array_equal(augmented, other), (
        "two keys give the same images; draw from the key that is passed"
    )
    flipped, noise = flips_and_noise(augmented, images)
    other_flipped, other_noise = flips_and_noise(other, images)
    strange = np.abs(noise).mean(axis=(1, 2)) > 3
    assert not strange.any(), (
        f"{strange.sum()} of {n} images are neither as they were nor mirrored "
        "left to right; draw once for each image, and reverse its last axis"
    )
    assert abs(flipped.sum() - n / 2) < 82, (
        f"{flipped.sum()} of {n} images are flipped; draw for each of them, "
        "with probability 1/2"
    )
    assert not np.array_equal(flipped, other_flipped), (
        "two keys flip the same images; draw the flips from the key that is "
        "passed"
    )
    spread = [noise.std(axis=axis).mean() for axis in range(3)]
    assert spread[0] >= noise.std() / 3, (
        "all images have the same noise; draw an array of their whole shape"
    )
    assert min(spread) >= noise.std() / 3, (
        "all rows or columns of an image have the same noise; draw an array "
        "of the images' whole shape"
    )
    assert abs(noise.mean()) < 0.01 and 0.09 < noise.std() < 0.11, (
        f"the noise has a mean of {noise.mean():.2f} and a standard deviation "
        f"of {noise.std():.2f}, not 0 and 0.1"
    )
    assert np.abs(noise).max() > 0.3, (
        "the noise is not normal: some of so many numbers should lie beyond "
        f"0.3, and the largest is {np.abs(noise).max():.2f}"
    )
    assert not np.allclose(noise, other_noise, atol=1e-3), (
        "two keys give the same noise; draw it from the key that is passed"
    )
    drawn = [flipped, noise.reshape(-1)[:n], *noise.reshape(n, -1).T]
    assert np.abs(np.corrcoef(drawn)[0, 1:]).max() < 0.25, used_twice
