"""Answers to the exercises on attention: what is said of wrong ones, and right ones that pass."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.learn.checks import attention as checks
from snippets.learn.exercises import attention as exercises
from snippets.learn.solutions import attention as solutions
from snippets.programs.practice import problem_of


def strict(length):
    return jnp.tril(jnp.ones((length, length), bool), k=-1)


def with_the_next(length):
    return jnp.tril(jnp.ones((length, length), bool), k=1)


def all_keys(length):
    return jnp.ones((length, length), bool)


def of_floats(length):
    return jnp.tril(jnp.ones((length, length)))


def of_four_tokens(length):
    return jnp.tril(jnp.ones((4, 4), bool))


def to_be_added(length):
    return jnp.where(solutions.causal_mask(length), 0, -jnp.inf)


def with_an_axis_of_heads(length):
    return solutions.causal_mask(length)[None]


def of_pytorchs_module(length):
    return ~solutions.causal_mask(length)


def flipped(length):
    return solutions.causal_mask(length)[::-1]


def lists(length):
    return [[key <= query for key in range(length)] for query in range(length)]


def diagonal(length):
    return jnp.eye(length, dtype=bool)


def by_comparing(length):
    positions = jnp.arange(length)
    return positions[:, None] >= positions


def by_numpy(length):
    return np.tri(length, dtype=bool)


def transposed_triangle(length):
    return jnp.triu(jnp.ones((length, length), bool)).T


def row_by_row(length):
    return jax.vmap(lambda query: jnp.arange(length) <= query)(jnp.arange(length))


def running(length):
    return jnp.cumsum(jnp.eye(length), axis=0) > 0


def masked(query, key, value, mask):
    return jax.nn.dot_product_attention(query, key, value, mask=mask)


def own_mask(query, lengths):
    return (jnp.arange(query.shape[1]) < lengths[:, None])[:, None, None, :]


def weights_of(query, key, mask=True):
    scores = jnp.einsum("rqhs,rkhs->rhqk", query, key) / query.shape[-1] ** 0.5
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))


def summed(weights, value):
    return jnp.einsum("rhqk,rkhs->rqhs", weights, value)


def no_mask(query, key, value, lengths):
    return jax.nn.dot_product_attention(query, key, value)


def one_too_many(query, key, value, lengths):
    return masked(query, key, value, own_mask(query, lengths + 1))


def one_too_few(query, key, value, lengths):
    return masked(query, key, value, own_mask(query, jnp.maximum(lengths - 1, 1)))


def one_too_few_by_hand(query, key, value, lengths):
    return summed(weights_of(query, key, own_mask(query, lengths - 1)), value)


def after_the_softmax(query, key, value, lengths):
    return summed(weights_of(query, key) * own_mask(query, lengths), value)


def zeroed(query, key, value, lengths):
    own = own_mask(query, lengths)[:, 0, 0, :, None, None]
    return jax.nn.dot_product_attention(query, jnp.where(own, key, 0), jnp.where(own, value, 0))


def multiplied(query, key, value, lengths):
    scores = jnp.einsum("rqhs,rkhs->rhqk", query, key) / query.shape[-1] ** 0.5
    return summed(jax.nn.softmax(scores * own_mask(query, lengths)), value)


def zeroed_values(query, key, value, lengths):
    own = own_mask(query, lengths)[:, 0, 0, :, None, None]
    return jax.nn.dot_product_attention(query, key, jnp.where(own, value, 0))


def as_the_first_row(query, key, value, lengths):
    return masked(query, key, value, own_mask(query, lengths[:1]))


def also_causal(query, key, value, lengths):
    mask = own_mask(query, lengths)
    return jax.nn.dot_product_attention(query, key, value, mask=mask, is_causal=True)


def inverted(query, key, value, lengths):
    return masked(query, key, value, ~own_mask(query, lengths))


def sliced(query, key, value, lengths):
    rows = zip(query, key, value, lengths, strict=True)
    return jnp.stack([no_mask(q, k[:n], v[:n], n) for q, k, v, n in rows])


def one_head_for_all(query, key, value, lengths):
    return masked(query, key, value, own_mask(query, lengths))[:, :, 0]


def both_masked_by_hand(query, key, value, lengths):
    own = own_mask(query, lengths)
    mask = own & own.swapaxes(2, 3)
    return masked(query, key, value, mask)


def by_lengths(query, key, value, lengths):
    return jax.nn.dot_product_attention(query, key, value, key_value_seq_lengths=lengths)


def by_hand(query, key, value, lengths):
    return summed(weights_of(query, key, own_mask(query, lengths)), value)


def by_a_bias(query, key, value, lengths):
    bias = jnp.where(own_mask(query, lengths), 0, -1e9)
    return jax.nn.dot_product_attention(query, key, value, bias=bias)


def row_after_row(query, key, value, lengths):
    def of_row(q, k, v, n):
        mask = (jnp.arange(len(k)) < n)[None, None]
        return jax.nn.dot_product_attention(q, k, v, mask=mask)

    return jax.vmap(of_row)(query, key, value, lengths)


def divided_again(query, key, value, lengths):
    weights = weights_of(query, key) * own_mask(query, lengths)
    return summed(weights / weights.sum(axis=-1, keepdims=True), value)


def ported(state, x, heads, forbidden, **changes):
    rows, length, _ = x.shape
    state = state | changes.get("given", lambda state: {})(state)
    qkv = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    split = changes.get("split", lambda y: y.reshape(rows, length, heads, -1))
    query, key, value = (split(y) for y in jnp.split(qkv, 3, axis=-1))
    if changes.get("swapped"):
        key, value = value, key
    scores = jnp.einsum("rqhs,rkhs->rhqk", query, key)
    scores = scores * changes.get("scale", query.shape[-1] ** -0.5)
    scores = jnp.where(changes.get("mask", lambda f: ~f)(forbidden), scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=changes.get("axis", -1))
    return (
        summed(weights, value).reshape(x.shape) @ state["out_proj.weight"].T
        + (state["out_proj.bias"])
    )


def changed(**changes):
    """Return `ported` with changes, which `functools.partial` leaves without a name."""

    def multihead(state, x, heads, forbidden):
        return ported(state, x, heads, forbidden, **changes)

    return multihead


def by_width(state, x, heads, forbidden):
    return ported(state, x, heads, forbidden, scale=x.shape[-1] ** -0.5)


def mixed_heads(state, x, heads, forbidden):
    rows, length, _ = x.shape

    def split(y):
        return y.reshape(rows, length, -1, heads).swapaxes(-1, -2)

    return ported(state, x, heads, forbidden, split=split)


def split_after_heads(state, x, heads, forbidden):
    qkv = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    parts = jnp.split(qkv.reshape(*x.shape[:-1], heads, -1), 3, axis=-1)
    y = jax.nn.dot_product_attention(*parts, mask=~forbidden[None, None])
    return y.reshape(x.shape) @ state["out_proj.weight"].T + state["out_proj.bias"]


def untransposed(state, x, heads, forbidden):
    return x @ state["in_proj_weight"]


def heads_first(state, x, heads, forbidden):
    qkv = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    query, key, value = (
        y.reshape(*x.shape[:-1], heads, -1).swapaxes(1, 2) for y in jnp.split(qkv, 3, axis=-1)
    )
    y = jax.nn.dot_product_attention(query, key, value).swapaxes(1, 2)
    return y.reshape(x.shape) @ state["out_proj.weight"].T + state["out_proj.bias"]


def not_swapped_back(state, x, heads, forbidden):
    qkv = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    query, key, value = (y.reshape(*x.shape[:-1], heads, -1) for y in jnp.split(qkv, 3, axis=-1))
    weights = weights_of(query, key, ~forbidden)
    y = jnp.einsum("rhqk,rkhs->rhqs", weights, value)
    return y.reshape(x.shape) @ state["out_proj.weight"].T + state["out_proj.bias"]


def in_one_head(state, x, heads, forbidden):
    return ported(state, x, 1, forbidden)


def in_three_heads(state, x, heads, forbidden):
    return ported(state, x, 3, forbidden)


def kept_as_heads(state, x, heads, forbidden):
    return ported(state, x, heads, forbidden).reshape(*x.shape[:-1], heads, -1)


def of_causal_mask(state, x, heads, forbidden):
    return ported(state, x, heads, ~solutions.causal_mask(x.shape[1]))


def with_the_weights(state, x, heads, forbidden):
    return solutions.multihead(state, x, heads, forbidden), None


def by_unstacking(state, x, heads, forbidden):
    qkv = jnp.einsum("rli,oi->rlo", x, state["in_proj_weight"]) + state["in_proj_bias"]
    parts = jnp.unstack(qkv.reshape(*x.shape[:-1], 3, heads, -1), axis=-3)
    y = jax.nn.dot_product_attention(*parts, mask=jnp.logical_not(forbidden)[None, None])
    return y.reshape(x.shape) @ state["out_proj.weight"].T + state["out_proj.bias"]


def by_vmap(state, x, heads, forbidden):
    def head(query, key, value):
        scores = query @ key.T / jnp.sqrt(query.shape[-1])
        return jax.nn.softmax(scores + jnp.where(forbidden, -jnp.inf, 0)) @ value

    def of_row(x):
        qkv = x @ state["in_proj_weight"].T + state["in_proj_bias"]
        parts = qkv.reshape(len(x), 3, heads, -1).swapaxes(0, 1)
        y = jax.vmap(head, in_axes=1, out_axes=1)(*parts)
        return y.reshape(len(x), -1) @ state["out_proj.weight"].T + state["out_proj.bias"]

    return jax.vmap(of_row)(x)


def changed_from(x, i):
    return x.at[i:].set(jax.random.normal(jax.random.key(i), x[i:].shape))


def by_the_last_token(model, x):
    changed = model(changed_from(x, len(x) - 1))
    return bool(jnp.allclose(changed[:-1], model(x)[:-1]))


def by_the_second_token(model, x):
    return bool(jnp.allclose(model(changed_from(x, 1))[0], model(x)[0]))


def of_all_results(model, x):
    return bool(jnp.allclose(model(changed_from(x, 1)), model(x)))


def of_shapes(model, x):
    return model(x).shape[0] == x.shape[0]


def by_adding_one(model, x):
    y = model(x)
    return all(jnp.allclose(model(x.at[i:].add(1))[:i], y[:i], atol=1e-5) for i in range(1, len(x)))


def by_adding_one_exactly(model, x):
    y = model(x)
    return all(jnp.array_equal(model(x.at[i:].add(1))[:i], y[:i]) for i in range(1, len(x)))


def by_noise(model, x):
    y, noise = model(x), jax.random.normal(jax.random.key(0), x.shape)
    return all(jnp.array_equal(model(x.at[i:].set(noise[i:]))[:i], y[:i]) for i in range(1, len(x)))


def depends(model, x):
    return jnp.abs(jax.jacrev(model)(x)).sum(axis=(1, 3))


def of_the_past(model, x):
    return not jnp.tril(depends(model, x), k=-1).any()


def of_themselves(model, x):
    return not jnp.triu(depends(model, x)).any()


def without_absolute_values(model, x):
    return bool(jnp.allclose(jnp.triu(jax.jacrev(model)(x).sum(axis=(1, 3)), k=1), 0, atol=1e-5))


def by_sums_of_derivatives(model, x):
    return not jnp.triu(jax.jacrev(model)(x).sum(axis=(1, 3)), k=1).any()


def for_each_token(model, x):
    return ~jnp.triu(depends(model, x), k=1).any(axis=1)


def inverted_answer(model, x):
    return not solutions.is_causal(model, x)


def with_gradient_of_a_sum(model, x):
    grads = jax.grad(lambda x: model(x)[0].sum())(x)
    return not grads[1:].any()


def asserting(model, x):
    assert solutions.is_causal(model, x)


def neighbours(model, x):
    d = depends(model, x)
    return not jnp.diagonal(d, offset=1).any()


def by_first_elements(model, x):
    y = model(x)
    return all(jnp.allclose(model(x.at[i:, 0].add(1))[:i], y[:i]) for i in range(1, len(x)))


def token_by_token(model, x):
    y = model(x)
    return all(
        np.allclose(model(changed_from(x, i))[:i], y[:i], atol=1e-6) for i in range(1, len(x))
    )


def by_prefixes(model, x):
    y = model(x)
    return all(bool(jnp.allclose(model(x[:i]), y[:i], atol=1e-5)) for i in range(1, len(x)))


def as_an_array(model, x):
    return jnp.all(jnp.triu(depends(model, x), k=1) == 0)


def by_jacfwd(model, x):
    jacobian = jax.jacfwd(model)(x)
    rows = jnp.arange(len(x))
    later = (rows[:, None] < rows)[:, None, :, None]
    return not bool(jnp.any(jnp.where(later, jacobian, 0) != 0))


def zeroed_in_turn(model, x):
    y = model(x)
    return not any((model(x.at[i].set(0))[:i] != y[:i]).any() for i in range(1, len(x)))


def by_compiled_calls(model, x):
    call = jax.jit(jax.vmap(model))
    many = jnp.stack([changed_from(x, i) for i in range(1, len(x))])
    kept = jnp.arange(len(x)) < jnp.arange(1, len(x))[:, None]
    return bool(jnp.all(jnp.where(kept[..., None], jnp.abs(call(many) - model(x)), 0) < 1e-5))


MASK, OWN, PORT, CAUSAL = (
    checks.check_causal_mask,
    checks.check_attend_to_own,
    checks.check_multihead,
    checks.check_is_causal,
)
WRONG = [
    (MASK, exercises.causal_mask, "rows are queries, columns are keys"),
    (MASK, strict, "a token may look at itself"),
    (MASK, with_the_next, "a query sees the token after it"),
    (MASK, all_keys, "every query may look at every key"),
    (MASK, of_floats, "its elements are float32"),
    (MASK, of_four_tokens, "for 1 tokens it has the shape (4, 4)"),
    (MASK, to_be_added, "a mask has booleans"),
    (MASK, with_an_axis_of_heads, "it has the shape (1, 4, 4)"),
    (MASK, of_pytorchs_module, "it is True where a query may not look"),
    (MASK, flipped, "row 0 must be True in column 0 only"),
    (MASK, lists, "it returns a list"),
    (MASK, diagonal, "each row in one column more"),
    (OWN, exercises.attend_to_own, "and the last has to be masked"),
    (OWN, no_mask, "queries look at padding; the"),
    (OWN, one_too_many, "the first token of the padding"),
    (OWN, one_too_few, "the last of their row's own tokens"),
    (OWN, one_too_few_by_hand, "the last of their row's own tokens"),
    (OWN, after_the_softmax, "padding takes part in the softmax"),
    (OWN, zeroed_values, "padding takes part in the softmax"),
    (OWN, zeroed, "zeros instead of padding"),
    (OWN, multiplied, "whose exponential is 1"),
    (OWN, as_the_first_row, "each has a length of its own"),
    (OWN, also_causal, "the own tokens after them"),
    (OWN, inverted, "queries look at padding, and at nothing else"),
    (OWN, sliced, "it raises IndexError"),
    (OWN, one_head_for_all, "it has the shape (3, 6, 4)"),
    (PORT, exercises.multihead, "it has no body"),
    (PORT, untransposed, "it raises ValueError: matmul"),
    (PORT, changed(mask=lambda f: f), "PyTorch's mask is True where"),
    (PORT, changed(mask=lambda f: True), "the mask has no effect"),
    (PORT, changed(mask=lambda f: ~f.T), "the mask is transposed"),
    (PORT, changed(scale=1), "aren't divided by the root of the size"),
    (PORT, by_width, "the root of the width"),
    (PORT, changed(swapped=True), "it differs by up to"),
    (PORT, changed(axis=-2), "a softmax over the queries"),
    (PORT, mixed_heads, "the heads are mixed"),
    (PORT, split_after_heads, "queries, keys and values are mixed"),
    (PORT, changed(given=lambda s: {"out_proj.weight": s["out_proj.weight"].T}), "transpose it"),
    (PORT, changed(given=lambda s: {"out_proj.bias": 0}), "the bias of the last layer"),
    (PORT, changed(given=lambda s: {"in_proj_bias": 0}), "the bias of queries"),
    (PORT, heads_first, "it differs by up to"),
    (PORT, not_swapped_back, "it differs by up to"),
    (PORT, in_one_head, "it differs by up to"),
    (PORT, in_three_heads, "it differs by up to"),
    (PORT, kept_as_heads, "it has the shape (2, 5, 3, 4)"),
    (PORT, with_the_weights, "it returns a tuple"),
    (PORT, of_causal_mask, "it differs by up to"),
    (CAUSAL, exercises.is_causal, "in which a token sees the next one"),
    (CAUSAL, by_the_last_token, "in which the third of five tokens"),
    (CAUSAL, by_the_second_token, "in which the third of five tokens"),
    (CAUSAL, of_all_results, "it returns False for a model whose mask is causal"),
    (CAUSAL, of_shapes, "it returns True for a model without a mask"),
    (CAUSAL, by_adding_one_exactly, "the norm removes what is added"),
    (CAUSAL, by_adding_one, "the norm removes what is added"),
    (CAUSAL, of_the_past, "it returns False for a model whose mask is causal"),
    (CAUSAL, of_themselves, "it returns False for a model whose mask is causal"),
    (CAUSAL, without_absolute_values, "the sum of a token's results is always 0"),
    (CAUSAL, by_sums_of_derivatives, "whose derivatives add up to 0"),
    (CAUSAL, for_each_token, "where True or False is wanted"),
    (CAUSAL, inverted_answer, "it returns False for a model whose mask is causal"),
    (CAUSAL, with_gradient_of_a_sum, "it returns True for a model"),
    (CAUSAL, asserting, "it returns None"),
    (CAUSAL, by_first_elements, "sees the last element of the next"),
    (CAUSAL, neighbours, "it returns True for a model"),
]
RIGHT = [
    *(
        (MASK, answer)
        for answer in (by_comparing, by_numpy, transposed_triangle, row_by_row, running)
    ),
    *((OWN, answer) for answer in (by_lengths, by_hand, by_a_bias, row_after_row, divided_again)),
    (OWN, both_masked_by_hand),
    (OWN, jax.jit(solutions.attend_to_own)),
    *((PORT, answer) for answer in (ported, by_unstacking, by_vmap)),
    (PORT, functools.partial(solutions.multihead)),
    (PORT, jax.jit(solutions.multihead, static_argnums=2)),
    *(
        (CAUSAL, answer)
        for answer in (token_by_token, by_noise, by_prefixes, as_an_array, by_jacfwd)
    ),
    *((CAUSAL, answer) for answer in (zeroed_in_turn, by_compiled_calls)),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in (problem_of(check, answer) or "nothing")


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_port_is_pytorchs_module(seed):
    torch.manual_seed(seed)
    module = torch.nn.MultiheadAttention(12, 3, batch_first=True)
    torch.nn.init.normal_(module.in_proj_bias)
    torch.nn.init.normal_(module.out_proj.bias)
    x = torch.randn(2, 5, 12)
    forbidden = torch.rand(5, 5) < 0.5
    forbidden.fill_diagonal_(False)
    expected = module(x, x, x, attn_mask=forbidden)[0].detach().numpy()
    state = {name: value.numpy() for name, value in module.state_dict().items()}
    for multihead in solutions.multihead, functools.partial(checks.multihead_of):
        mask = forbidden.numpy()
        found = multihead(state, x.numpy(), 3, mask if multihead is solutions.multihead else ~mask)
        np.testing.assert_allclose(found, expected, atol=1e-5)
