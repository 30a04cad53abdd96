"""Lesson 16, a small language model: what answers are checked for."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def check_windows(windows):
    """Raise AssertionError unless each target is the token behind."""
    for count in (9, 10, 12):
        text = jnp.arange(count)
        tokens, targets = windows(text, 4)
        assert tokens.shape == targets.shape, (
            f"tokens {tokens.shape}, but targets {targets.shape}"
        )
        assert np.array_equal(tokens[0], [0, 1, 2, 3]), (
            f"the first window is {tokens[0]}, not [0 1 2 3]"
        )
        assert targets[0, -1] == 4, (
            f"the last target of the first window is {targets[0, -1]}, and "
            "the token behind it is 4, the first of the next window"
        )
        assert np.array_equal(tokens + 1, targets), (
            f"of {count} tokens, a target is not the token behind"
        )
        assert len(tokens) == 2, (
            f"{count} tokens hold 2 windows of 4 with their targets, not "
            f"{len(tokens)}: the last needs a token behind it"
        )


def check_masked_loss(masked_loss):
    """Raise AssertionError unless padding does not count."""
    logits = jnp.log(jnp.array([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]] * 2))
    targets = jnp.array([[0, 1, -1], [0, -1, -1]])
    losses = -np.log([0.5, 0.75, 0.5])
    right = losses.mean()
    found = float(masked_loss(logits, targets))
    assert not np.isclose(found, losses.sum() / 6), (
        "the sum is right, and it is divided by all six places; three of "
        "them are no padding"
    )
    rows = np.mean([losses[:2].mean(), losses[2]])
    assert not np.isclose(found, rows), (
        "this is the mean of the means of rows, in which a short row counts "
        "as much as a long one"
    )
    last = np.log([0.1, 0.75, 0.1])
    everywhere = (losses.sum() - last.sum()) / 6
    assert not np.isclose(found, everywhere), (
        "padding counts: -1 is read as the last token"
    )
    assert np.isclose(found, right, rtol=1e-4), (
        f"the loss is {found:.4f}, not {right:.4f}"
    )
    grad = jax.grad(masked_loss)(logits, targets)
    assert not np.any(grad[1, 1:]), "padding has a gradient"


def check_sample(sample):
    """Raise AssertionError unless the likeliest tokens alone are drawn."""
    row = jnp.log(jnp.array([0.1, 0.4, 0.2, 0.3]))
    logits = jnp.tile(row, (4000, 1))
    draw = jax.jit(functools.partial(sample, top=2))
    key = jax.random.key(0)
    found = draw(key, logits, 1.0)
    assert found.shape == (4000,), (
        f"it has the shape {found.shape}, where a token for each row is wanted"
    )
    drawn = set(np.unique(found).tolist())
    assert drawn != {0, 1}, (
        "it returns places among the likeliest, 0 and 1; the tokens at these "
        "places are wanted"
    )
    assert len(drawn) > 1, "it always returns the same token; draw one"
    assert drawn == {1, 3}, (
        f"with `top` 2 it draws {sorted(drawn)}; the two likeliest are 1 and 3"
    )
    share = float((found == 1).mean())
    assert abs(share - 4 / 7) < 0.04, (
        f"token 1 comes in {share:.0%} of the draws, and should in 57 %, 0.4 "
        "of 0.4 + 0.3"
    )
    other = draw(jax.random.key(1), logits, 1.0)
    assert not np.array_equal(found, other), "two keys draw the same tokens"
    cold = float((draw(key, logits, 0.5) == 1).mean())
    assert abs(cold - 16 / 25) < 0.04, (
        f"at a temperature of 0.5 token 1 comes in {cold:.0%} of the draws, "
        "and should in 64 %: logits are divided by it"
    )
