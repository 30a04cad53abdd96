"""Lesson 15, attention and the transformer block: what answers must do."""

import jax
import jax.numpy as jnp
import numpy as np


def check_causal_mask(causal_mask):
    """Raise AssertionError unless a query sees its token and those before."""
    for length in (4, 1, 7):
        found = causal_mask(length)
        assert isinstance(found, np.ndarray | jax.Array), (
            f"it returns a {type(found).__name__}; return an array"
        )
        assert found.shape == (length, length), (
            f"for {length} tokens it has the shape {found.shape}, not "
            f"{(length, length)}"
        )
        assert found.dtype == bool, (
            f"its elements are {found.dtype}; attention takes a mask of "
            "booleans, True where a query may look"
        )
        right = np.tril(np.ones((length, length), bool))
        mistakes = {
            "queries see the keys after them, and not those before: rows are "
            "queries, columns are keys": right.T,
            "each query may look at all keys, and so at its target": right
            | right.T,
            "a token may look at itself, too; the first would have no key at "
            "all": right & ~right.T,
            "a query sees the next token, which is its target": np.tri(
                length, k=1, dtype=bool
            ),
            "True is where a query may look; yours says where it may not": (
                ~right
            ),
        }
        for words, wrong in mistakes.items():
            same = np.array_equal(found, wrong)
            assert np.array_equal(found, right) or not same, words
        assert np.array_equal(found, right), (
            f"for {length} tokens, row i must be True up to column i; yours "
            f"is\n{np.asarray(found).astype(int)}"
        )


def attention_of(query, key, value, mask, scale=None, own=None):
    """Return attention (rows, length, heads, size) under a mask.

    `mask` can be broadcast to (rows, heads, length, length). Weights are
    multiplied by `own` after the softmax.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = scale * np.einsum("rqhs,rkhs->rhqk", query, key)
    scores = np.where(mask, scores, -1e30)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    weights = weights if own is None else weights * own
    return np.einsum("rhqk,rkhs->rqhs", weights, value)


def check_attend_to_own(attend_to_own):
    """Raise AssertionError unless no query looks at padding."""
    generator = np.random.default_rng(0)
    for lengths, size in (([5, 2, 3], 4), ([1, 6], 3)):
        shape = len(lengths), max(lengths), 2, size
        arrays = generator.normal(size=(3, *shape)).astype(np.float32)
        is_own = np.arange(shape[1]) < np.array(lengths)[:, None]
        keys = is_own[:, None, None, :]
        causal = np.tri(shape[1], dtype=bool)
        found = jax.jit(attend_to_own)(*arrays, jnp.array(lengths))
        assert np.shape(found) == shape, (
            f"it has the shape {np.shape(found)}, where queries have {shape}"
        )
        found = np.asarray(found)[is_own]
        upto = np.arange(shape[1]) <= np.array(lengths)[:, None]
        mistakes = {
            "queries look at padding: the mask has the shape (rows, heads, "
            "queries, keys), and yours masks queries, or nothing": (True,),
            "queries look at one token of the padding; the positions of a "
            "row's own tokens are below its length": (upto[:, None, None],),
            "the weights don't sum to 1, because padding has its share of "
            "the softmax; mask before it": (True, None, keys),
            "queries don't look at the tokens after them; this isn't a "
            "causal model": (keys & causal,),
            "all rows are masked as the first; each has a length of its own": (
                keys[:1],
            ),
        }
        right = attention_of(*arrays, keys)[is_own]
        for words, settings in mistakes.items():
            wrong = attention_of(*arrays, *settings)[is_own]
            assert np.allclose(wrong, right, atol=1e-4) or not np.allclose(
                found, wrong, atol=1e-4
            ), words
        assert not np.isnan(found).any(), (
            "a row's own tokens get nan: some query has no key left"
        )
        assert np.allclose(found, right, atol=1e-4), (
            "it differs by up to "
            f"{np.abs(found - right).max():.1g} from attention that sees all "
            "own tokens and no other"
        )


def check_multihead(multihead):
    """Raise AssertionError unless the numbers are PyTorch's."""
    generator = np.random.default_rng(0)
    for rows, length, heads, size in ((2, 5, 3, 4), (3, 4, 2, 6)):
        width = heads * size
        shapes = {
            "in_proj_weight": (3 * width, width),
            "in_proj_bias": (3 * width,),
            "out_proj.weight": (width, width),
            "out_proj.bias": (width,),
        }
        state = {
            name: generator.normal(size=shape).astype(np.float32) / width**0.5
            for name, shape in shapes.items()
        }
        x = generator.normal(size=(rows, length, width)).astype(np.float32)
        forbidden = generator.random((length, length)) < 0.5
        np.fill_diagonal(forbidden, False)
        # Not symmetric, and each row has both.
        forbidden[0, 1], forbidden[1, 0] = True, False
        found = multihead(state, x, heads, forbidden)
        assert np.shape(found) == x.shape, (
            f"it has the shape {np.shape(found)}, where x has {x.shape}"
        )
        right = multihead_of(state, x, heads, ~forbidden)
        for words, settings in MISTAKES.items():
            settings = {"allowed": ~forbidden} | {
                name: value(forbidden, size) if callable(value) else value
                for name, value in settings.items()
            }
            wrong = multihead_of(state, x, heads, **settings)
            assert not np.allclose(found, wrong, atol=1e-3), words
        assert np.allclose(found, right, atol=1e-3), (
            "it differs by up to "
            f"{np.abs(np.asarray(found) - right).max():.1g} from PyTorch"
        )
