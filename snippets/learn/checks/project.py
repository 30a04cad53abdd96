"""Lesson 18, a small language model: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import kind_of


def check_likeliest(likeliest):
    """Raise AssertionError unless it is the best token of each row."""
    logits = jnp.array([[5, -2, 3, 1], [9, 0, 0, 4], [-5, -3, -4, -3.5]])
    close = 1000 + jnp.array([[2, 1, 3, 0], [0, 1, 2, 3], [3, 0, 1, 2]]) / 16
    for rows in (logits, logits[:2] - 10, logits[1:, ::-1], close):
        right = np.argmax(rows, axis=1)
        for found in (likeliest(rows), jax.jit(likeliest)(rows)):
            found = jnp.asarray(found)
            assert found.shape == right.shape, (
                f"of logits {rows.shape} it returns the shape {found.shape}; "
                f"a token for each row is wanted, {right.shape}"
            )
            assert jnp.issubdtype(found.dtype, jnp.integer), (
                f"it returns {found}, and not the integers that are tokens"
            )
            assert not np.array_equal(found, np.argmin(rows, axis=1)), (
                "these are the least likely tokens"
            )
            assert np.array_equal(found, right), (
                f"of {rows.tolist()} it returns {found}, not {right}"
            )


def check_windows(windows):
    """Raise AssertionError unless each target is the token behind."""
    shuffled = np.random.default_rng(0).permutation(40) + 1
    for count, length in ((9, 4), (10, 4), (12, 4), (31, 6), (32, 8)):
        text = jnp.array(shuffled[:count])
        found = windows(text, length)
        assert isinstance(found, tuple | list) and len(found) == 2, (
            "it should return two arrays, the tokens and the targets"
        )
        tokens, targets = found
        of = f"{count} tokens {text[:length]}... in windows of {length}: "
        assert tokens.shape == targets.shape, (
            f"{of}tokens {tokens.shape}, but targets {targets.shape}"
        )
        assert tokens.ndim == 2 and tokens.shape[1] == length, (
            f"{of}tokens {tokens.shape}, and should be (count, {length})"
        )
        assert all(
            jnp.issubdtype(x.dtype, jnp.integer) for x in (tokens, targets)
        ), f"{of}tokens are integers, not {tokens.dtype} and {targets.dtype}"
        right = shuffled[: (count - 1) // length * length]
        right = right.reshape(-1, length)
        behind = shuffled[1 : right.size + 1].reshape(-1, length)
        assert len(tokens) == len(right), (
            f"{of}they hold {len(right)} windows with their targets, not "
            f"{len(tokens)}. The last needs a token behind it, and windows do "
            "not overlap"
        )
        assert np.array_equal(tokens, right), (
            f"{of}the tokens are\n{tokens}, not\n{right}"
        )
        assert np.array_equal(targets[:, :-1], behind[:, :-1]), (
            f"{of}a window {tokens[0]} has the targets {targets[0]}, which "
            "are not the tokens behind"
        )
        assert np.array_equal(targets, behind), (
            f"{of}the last target of the first window is {targets[0, -1]}, "
            f"and the token behind it is {behind[0, -1]}, the first of the "
            "next window"
        )


def check_masked_loss(masked_loss):
    """Raise AssertionError unless padding does not count."""
    draw = np.random.default_rng(0)
    for targets in ([[0, 1, -1], [1, -1, -1]], [[-1, 3, 0, 2], [2, 0, 1, 1]]):
        targets = jnp.array(targets)
        shape = (*targets.shape, 4)
        logits = jnp.array(2 + 3 * draw.normal(size=shape), jnp.float32)
        found = jax.jit(masked_loss)(logits, targets)
        assert jnp.shape(found) == (), (
            f"it returns an array {found.shape}, and not one loss"
        )
        require_loss(found, logits, targets)
        grad = jax.grad(masked_loss)(logits, targets)
        assert not np.any(grad[targets < 0]), "padding has a gradient"
        assert np.all(grad[targets >= 0]), (
            "a logit of a token that counts has no gradient"
        )


def require_loss(found, logits, targets):
    """Raise AssertionError, with the likely reason, unless a loss is right."""

    def mean(losses, mask):
        return jnp.sum(jnp.where(mask, losses, 0)) / jnp.sum(mask)

    def of(values, targets=targets):
        return -jnp.take_along_axis(values, targets[..., None], 2)[..., 0]

    losses, mask = of(jax.nn.log_softmax(logits)), targets >= 0
    right, share = mean(losses, mask), mask.mean()
    rows = jnp.sum(losses * mask, axis=1) / mask.sum(axis=1)
    others = {
        "the sum is right, and it is divided by all places; some of them are "
        "padding": right * share,
        "this is the sum of the losses, and not their mean": right
        * mask.sum(),
        "this is the mean of the means of rows, in which a short row counts "
        "as much as a long one": rows.mean(),
        "padding counts: -1 is read as the last token": losses.mean(),
        "padding counts: -1 is replaced by 0, whose loss is kept": of(
            jax.nn.log_softmax(logits), jnp.maximum(targets, 0)
        ).mean(),
        "the sign is wrong": -right,
        "token 0 is a token, and no padding": mean(losses, targets > 0),
        "logits are no logarithms of probabilities yet": mean(
            of(logits), mask
        ),
        "probabilities have to add up to 1 over the tokens, the last axis": (
            mean(of(jax.nn.log_softmax(logits, axis=1)), mask)
        ),
        "these are probabilities, and not their logarithms": mean(
            of(jax.nn.softmax(logits)), mask
        ),
    }
    for words, wrong in others.items():
        close = np.isclose(found, wrong, rtol=1e-4)
        assert not close or np.isclose(wrong, right, rtol=1e-4), words
    assert np.isclose(found, right, rtol=1e-4), (
        f"the loss is {found:.4f}, not {right:.4f}"
    )


def check_sample(sample):
    """Raise AssertionError unless the likeliest tokens alone are drawn."""
    rows = jnp.log(jnp.array([[0.1, 0.4, 0.2, 0.3], [0.15, 0.05, 0.6, 0.2]]))
    logits = jnp.tile(rows + jnp.array([[3.0], [-2.0]]), (4000, 1))
    draw = jax.jit(sample, static_argnames="top")

    def drawn(top, temperature, seed=0):
        key = jax.random.key(seed)
        found = draw(key, logits, jnp.float32(temperature), top=top)
        assert isinstance(found, jax.Array), (
            f"it returns {kind_of(found)}, not an array"
        )
        assert found.shape == (8000,), (
            f"it has the shape {found.shape}; a token for each row is wanted"
        )
        assert jnp.issubdtype(found.dtype, jnp.integer), (
            f"tokens are integers, not {found.dtype}"
        )
        return np.asarray(found).reshape(4000, 2)

    found = drawn(2, 1.0)
    tokens = [sorted(set(column.tolist())) for column in found.T]
    assert tokens != [[0, 1], [0, 1]], (
        "it returns places among the likeliest, 0 and 1; the tokens at these "
        "places are wanted"
    )
    assert tokens != [[1], [2]], (
        "with `top` 2 it always returns the likeliest token; draw one of the "
        "two likeliest, and keep the second, whose logit is the smallest that "
        "counts"
    )
    assert all(len(each) > 1 for each in tokens), (
        "it always returns the same token for the same logits; draw one, and "
        "another for each row"
    )
    assert len(tokens[0]) > 2 or tokens[0] != tokens[1], (
        f"rows with other logits draw the same tokens, {tokens[0]}"
    )
    assert tokens == [[1, 3], [2, 3]], (
        f"with `top` 2 the rows of two kinds draw {tokens}; the two likeliest "
        "are [1, 3] in the one and [2, 3] in the other"
    )
    require_shares(found, 2, 1.0, "0.4 of 0.4 + 0.3, for example")
    assert not np.array_equal(found, drawn(2, 1.0, seed=1)), (
        "two keys draw the same tokens"
    )
    divided = "logits are divided by the temperature"
    for top, temperature in ((2, 0.5), (3, 2.0), (1, 1.0)):
        require_shares(drawn(top, temperature), top, temperature, divided)


def require_shares(found, top, temperature, why):
    """Raise AssertionError unless the best tokens come as often as due."""
    weights = np.array([[0.1, 0.4, 0.2, 0.3], [0.15, 0.05, 0.6, 0.2]])
    for column, weight in zip(found.T, weights, strict=True):
        best = np.argsort(-weight)[:top]
        powers = weight[best] ** (1 / temperature)
        for token, right in zip(best, powers / powers.sum(), strict=True):
            share = np.mean(column == token)
            assert abs(share - right) < 0.04, (
                f"with `top` {top} and a temperature of {temperature}, a "
                f"token comes in {share:.0%} of the draws, and should in "
                f"{right:.0%}: {why}"
            )
