"""Lesson 17, attention and the transformer block: what answers must do."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import kind_of


def check_causal_mask(causal_mask):
    """Raise AssertionError unless a query sees its token and those before."""
    for length in (4, 1, 20):
        found = causal_mask(length)
        assert isinstance(found, np.ndarray | jax.Array), (
            f"it returns {kind_of(found)}; return an array"
        )
        assert found.shape == (length, length), (
            f"for {length} tokens it has the shape {found.shape}, not "
            f"{(length, length)}"
        )
        assert found.dtype == bool, (
            f"its elements are {found.dtype}; a mask has booleans, True "
            "where a query may look"
        )
        right = np.tri(length, dtype=bool)
        mistakes = {
            "queries see the tokens after them, and not those before: rows "
            "are queries, columns are keys": right.T,
            "every query may look at every key, and so at its target": (
                right | right.T
            ),
            "a token may look at itself; without it, the first has no key": (
                right & ~right.T
            ),
            "a query sees the token after it, which is its target": np.tri(
                length, k=1, dtype=bool
            ),
            "it is True where a query may not look": ~right,
        }
        for words, wrong in mistakes.items():
            made = np.array_equal(found, wrong)
            assert np.array_equal(found, right) or not made, words
        assert np.array_equal(found, right), (
            f"for {length} tokens row 0 must be True in column 0 only, and "
            "each row in one column more than the row above"
        )


def attention_of(query, key, value, mask, scale=None, after=True, axis=-1):
    """Return attention (rows, length, heads, size) of arrays like it.

    `mask` is True where a query may look, (rows, heads, queries, keys), or
    what is broadcast to that; `after` is one for weights after the softmax,
    which sums over an axis.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = scale * np.einsum("rqhs,rkhs->rhqk", query, key)
    scores = np.where(mask, scores, -1e30)
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    weights = after * weights / weights.sum(axis=axis, keepdims=True)
    return np.einsum("rhqk,rkhs->rqhs", weights, value)


def require_array(found, shape):
    """Raise AssertionError unless it is an array of this shape."""
    assert isinstance(found, np.ndarray | jax.Array), (
        f"it returns {kind_of(found)}; return an array"
    )
    assert found.shape == shape, (
        f"it has the shape {found.shape}, and should have {shape}"
    )


def expect(found, right, mistakes):
    """Raise AssertionError unless right was found; name what went wrong.

    `mistakes` has by their words what is found with each of them.
    """
    assert not np.isnan(found).any(), (
        "there is nan in it, as for a query that has no key left to look at"
    )
    for words, wrong in mistakes.items():
        made = np.allclose(found, wrong, atol=1e-3)
        assert np.allclose(wrong, right, atol=1e-3) or not made, words
    assert np.allclose(found, right, atol=1e-3), (
        f"it differs by up to {np.abs(found - right).max():.1g}"
    )


def check_attend_to_own(attend_to_own):
    """Raise AssertionError unless no query looks at padding."""
    generator = np.random.default_rng(0)
    for lengths, rest in (([3, 5, 2], (6, 2, 4)), ([1, 7], (8, 3, 3))):
        shape = len(lengths), *rest
        arrays = generator.normal(size=(3, *shape)).astype(np.float32)
        found = jax.jit(attend_to_own)(*arrays, jnp.array(lengths))
        require_array(found, shape)
        last = np.array(lengths)[:, None, None, None]
        position = np.arange(shape[1])
        own = position < last
        query, key, value = arrays
        kept = own[:, 0, 0, :, None, None]
        mistakes = {
            "queries look at padding; the axes of a mask are (rows, heads, "
            "queries, keys), and the last has to be masked": True,
            "queries look at the first token of the padding; a row's own "
            "tokens have positions below its length": position <= last,
            "queries don't look at the last of their row's own tokens": (
                position < np.maximum(last - 1, 1)
            ),
            "queries don't look at the own tokens after them": (
                own & np.tri(shape[1], dtype=bool)
            ),
            "all rows are masked as the first; each has a length of its own": (
                own[:1]
            ),
            "queries look at padding, and at nothing else": ~own,
        }
        results = {
            words: attention_of(*arrays, mask)
            for words, mask in mistakes.items()
        } | {
            "the weights of the own tokens don't sum to 1: padding takes part "
            "in the softmax; mask the scores": attention_of(
                *arrays, True, after=own
            ),
            "the score of padding is 0, whose exponential is 1; it should be "
            "-inf": attention_of(query, key * kept, value, True),
            "zeros instead of padding still take part in the softmax; mask "
            "the scores": attention_of(query, key * kept, value * kept, True),
        }
        compared = {w: y[own[:, 0, 0]] for w, y in results.items()}
        right = attention_of(*arrays, own)[own[:, 0, 0]]
        expect(np.asarray(found)[own[:, 0, 0]], right, compared)


def multihead_of(state, x, heads, mask, order="chs", **settings):
    """Return what the module of PyTorch does.

    `order` says how the width of the first matmul is split: chunks (of
    queries, keys and values), heads, and size of a head.
    """
    rows, length, width = x.shape
    sizes = {"c": 3, "h": heads, "s": width // heads}
    qkv = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    qkv = qkv.reshape(rows, length, *(sizes[axis] for axis in order))
    qkv = np.einsum(f"rl{order}->crlhs", qkv)
    y = attention_of(*qkv, mask, **settings).reshape(x.shape)
    return y @ state["out_proj.weight"].T + state["out_proj.bias"]


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
            name: generator.normal(size=shape).astype(np.float32) / 2
            for name, shape in shapes.items()
        }
        x = generator.normal(size=(rows, length, width)).astype(np.float32)
        forbidden = generator.random((length, length)) < 0.5
        position = np.arange(length)
        forbidden[position, position] = False
        forbidden[position, position - 1] = True
        forbidden[0, 1] = False
        found = multihead(state, x, heads, forbidden)
        require_array(found, x.shape)
        own, out = (state, x, heads), state["out_proj.weight"]
        changed = {
            "`out_proj.weight` has PyTorch's layout (outputs, inputs); "
            "transpose it": {"out_proj.weight": out.T},
            "the bias of the last layer is missing": {
                "out_proj.bias": np.zeros(width)
            },
            "the bias of queries, keys and values is missing": {
                "in_proj_bias": np.zeros(3 * width)
            },
            "the last layer, `out_proj`, is missing": {
                "out_proj.weight": np.eye(width),
                "out_proj.bias": np.zeros(width),
            },
        }
        mistakes = {
            words: multihead_of(state | other, x, heads, ~forbidden)
            for words, other in changed.items()
        } | {
            "PyTorch's mask is True where a query may not look, JAX's where "
            "it may": multihead_of(*own, forbidden),
            "the mask has no effect": multihead_of(*own, True),
            "the mask is transposed: its rows are queries": multihead_of(
                *own, ~forbidden.T
            ),
            "the scores aren't divided by the root of the size": multihead_of(
                *own, ~forbidden, scale=1
            ),
            "the scores are divided by the root of the width; take that of "
            "the size of a head": multihead_of(
                *own, ~forbidden, scale=width**-0.5
            ),
            "there is a softmax over the queries; the weights of each query, "
            "over the keys, sum to 1": multihead_of(*own, ~forbidden, axis=-2),
            "the heads are mixed: a head's elements lie next to each other, "
            "so the axis of heads comes before that of the size": (
                multihead_of(*own, ~forbidden, order="csh")
            ),
            "queries, keys and values are mixed: first come the queries of "
            "all heads, then all keys, then all values": multihead_of(
                *own, ~forbidden, order="hcs"
            ),
        }
        right = multihead_of(*own, ~forbidden)
        expect(np.asarray(found), right, mistakes)


def seeing(mask_of):
    """Return a model whose queries see what a mask of its length allows."""

    def model(x):
        positions = np.arange(len(x))
        mask = mask_of(positions[:, None], positions)
        scores = jnp.where(mask, x @ x.T, -jnp.inf)
        return jax.nn.softmax(scores) @ x

    return model


def check_is_causal(is_causal):
    """Raise AssertionError unless models that see the future are found."""
    every = seeing(lambda query, key: query == query)
    causal = {
        "whose mask is causal": seeing(lambda query, key: key <= query),
        "that sees one token and the one before": seeing(
            lambda query, key: (key <= query) & (key >= query - 1)
        ),
        "that treats each token by itself": jnp.tanh,
        "that adds up the tokens so far": lambda x: jnp.cumsum(x, axis=0),
        "that returns the token before": lambda x: (
            jnp.roll(x, 1, 0).at[0].set(0)
        ),
    }
    leaking = {
        "without a mask": every,
        "in which a token sees the next one": seeing(
            lambda query, key: key <= query + 1
        ),
        "whose mask is transposed": seeing(lambda query, key: key >= query),
        "in which the third of five tokens sees the fourth, and no other "
        "looks ahead": seeing(
            lambda query, key: (key <= query) | ((query == 2) & (key == 3))
        ),
        "in which the last token but one sees the last": lambda x: x.at[
            -2
        ].add(x[-1]),
        "in which the first token sees the last": lambda x: x.at[0].add(x[-1]),
        "in which a token sees the last element of the next": lambda x: x.at[
            :-1, 0
        ].add(x[1:, -1]),
        "that subtracts the mean of all tokens": lambda x: x - x.mean(axis=0),
        "with no mask and a layer norm at its end, so that the sum of a "
        "token's results is always 0": lambda x: jax.nn.standardize(every(x)),
        "with a layer norm and no mask; the norm removes what is added to all "
        "elements of a token": lambda x: every(jax.nn.standardize(x)),
        "in which the first token sees a later one, by two elements whose "
        "derivatives add up to 0": lambda x: x.at[0, :2].add(
            x[-1, 0] * jnp.array([1, -1])
        ),
    }
    for right, length, models in ((True, 3, causal), (False, 5, leaking)):
        x = jax.random.normal(jax.random.key(0), (length, 4))
        x = jnp.round(8 * x) / 8
        for words, model in models.items():
            found = is_causal(model, x)
            assert np.shape(found) == () and isinstance(
                np.asarray(found).item(), bool
            ), f"it returns {found}, where True or False is wanted"
            assert bool(found) == right, (
                f"it returns {bool(found)} for a model {words}"
            )
