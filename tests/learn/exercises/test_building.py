"""Answers to the exercises of the five steps, wrong ones and right ones written otherwise."""

import functools
import urllib.error
import urllib.request

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from snippets.learn.checks import building as checks
from snippets.learn.exercises import building as exercises
from snippets.learn.solutions import building as solutions
from snippets.programs.practice import problem_of
from tests.book import pages

NAMES = ("query", "key", "value")


@pytest.fixture(autouse=True)
def beside_the_text(monkeypatch):
    monkeypatch.chdir(pages.paths()["project/steps"].parent)


def bigram_of(change):
    return lambda params, tokens: change(params["table"], tokens)


def head_of(change):
    """Return a head of which `change` makes the result, from scores and the rest."""

    def head(params, x):
        query, key, value = (x @ params[name] for name in NAMES)
        scores = query @ key.swapaxes(1, 2) / query.shape[-1] ** 0.5
        return change(scores, jnp.tri(x.shape[1], dtype=bool), value)

    return head


def scaled(factor):
    """Return the right head but for a factor of its scores."""

    def head(params, x):
        return solutions.one_head(params | {"query": params["query"] * factor(params)}, x)

    return head


def masked(scores, seen):
    return jnp.where(seen, scores, -jnp.inf)


def exchanged(params, x):
    return solutions.one_head(params | {"query": params["key"], "key": params["query"]}, x)


def with_einsum(params, x):
    query, key, value = (jnp.einsum("rlw,ws->rls", x, params[name]) for name in NAMES)
    scores = jnp.einsum("rqs,rks->rqk", query / query.shape[-1] ** 0.5, key)
    behind = jnp.triu(jnp.full(scores.shape[1:], -1e30), k=1)
    return jnp.einsum("rqk,rks->rqs", jax.nn.softmax(scores + behind), value)


def by_jax(params, x):
    qkv = ((x @ params[name])[:, :, None] for name in NAMES)
    return jax.nn.dot_product_attention(*qkv, is_causal=True)[:, :, 0]


def token_by_token(params, x):
    query, key, value = (x @ params[name] for name in NAMES)
    found = []
    for place in range(x.shape[1]):
        scores = jnp.einsum("rs,rks->rk", query[:, place], key[:, : place + 1])
        weights = jax.nn.softmax(scores / jnp.sqrt(query.shape[-1]))
        found.append(jnp.einsum("rk,rks->rs", weights, value[:, : place + 1]))
    return jnp.stack(found, axis=1)


def softmax_by_hand(scores, seen, value):
    weights = jnp.exp(scores - scores.max(axis=-1, keepdims=True)) * seen
    return weights / weights.sum(axis=-1, keepdims=True) @ value


def joined(params, x, axis=2, head=solutions.one_head):
    y = jax.vmap(head, in_axes=(0, None), out_axes=axis)(params["heads"], x)
    return y.reshape(*x.shape[:2], -1)


def mlp(params, x, kind=jax.nn.gelu):
    return kind(x @ params["up"]) @ params["down"]


def heads_of(change):
    return lambda params, x: change(params, joined(params, x), x)


def of_equal_heads(params, x):
    heads = jax.tree.map(lambda leaf: leaf[jnp.zeros(len(leaf), int)], params["heads"])
    return solutions.heads_and_mlp(params | {"heads": heads}, x)


def blind_heads(params, x):
    blind = head_of(lambda scores, seen, value: jax.nn.softmax(scores) @ value)
    return mlp(params, joined(params, x, head=blind))


def in_a_loop(params, x):
    count = len(params["heads"]["key"])
    own = [jax.tree.map(lambda leaf, n=n: leaf[n], params["heads"]) for n in range(count)]
    return mlp(params, jnp.concatenate([solutions.one_head(one, x) for one in own], axis=-1))


def at_once(params, x):
    query, key, value = (jnp.einsum("rlw,hws->rlhs", x, params["heads"][n]) for n in NAMES)
    y = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    return mlp(params, y.reshape(*x.shape[:2], -1))


def exact_gelu(x):
    return jax.nn.gelu(x, approximate=False)


def summed_in_parts(params, x):
    y = jax.vmap(solutions.one_head, in_axes=(0, None))(params["heads"], x)
    up = params["up"].reshape(len(y), -1, params["up"].shape[-1])
    return jax.nn.gelu(jnp.einsum("hrls,hsu->rlu", y, up)) @ params["down"]


def norm(scale, x, axis=-1):
    return scale * jax.nn.standardize(x, axis=axis, epsilon=1e-5)


def block_of(change):
    """Return a block that `change` makes of its parts: the heads, the MLP, both norms and x."""

    def block(params, x):
        def attend(y):
            return joined(params, y) @ params["out"]

        norms = (functools.partial(norm, params[name]) for name in ("norm1", "norm2"))
        return change(attend, functools.partial(mlp, params), *norms, x)

    return block


def usual(attend, mlp, norm1, norm2, x):
    x = x + attend(norm1(x))
    return x + mlp(norm2(x))


def first_residual_missing(attend, mlp, norm1, norm2, x):
    x = attend(norm1(x))
    return x + mlp(norm2(x))


def second_residual_missing(attend, mlp, norm1, norm2, x):
    return mlp(norm2(x + attend(norm1(x))))


def no_residuals(attend, mlp, norm1, norm2, x):
    return mlp(norm2(attend(norm1(x))))


def no_second_norm(attend, mlp, norm1, norm2, x):
    x = x + attend(norm1(x))
    return x + mlp(x)


def in_parallel(attend, mlp, norm1, norm2, x):
    return x + attend(norm1(x)) + mlp(norm2(x))


def norms_behind(attend, mlp, norm1, norm2, x):
    x = norm1(x + attend(x))
    return norm2(x + mlp(x))


def renamed(one, two):
    """Return the right block with other norms, by their names; 1 for none."""

    def block(params, x):
        norms = {"norm1": params.get(one, 1.0), "norm2": params.get(two, 1.0)}
        return solutions.block(params | norms, x)

    return block


def along_tokens(params, x):
    x = x + joined(params, norm(params["norm1"], x, axis=1)) @ params["out"]
    return x + mlp(params, norm(params["norm2"], x))


def norm_by_hand(params, x):
    def normalized(scale, x):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return scale * (x - mean) / jnp.sqrt(var + 1e-5)

    x = x + joined(params, normalized(params["norm1"], x)) @ params["out"]
    return x + mlp(params, normalized(params["norm2"], x))


def out_in_parts(params, x):
    y = jax.vmap(solutions.one_head, in_axes=(0, None))(params["heads"], norm(params["norm1"], x))
    x = x + jnp.einsum("hrls,hsw->rlw", y, params["out"].reshape(len(y), y.shape[-1], -1))
    return x + mlp(params, norm(params["norm2"], x))


def row_by_row(params, x):
    return jax.vmap(lambda row: solutions.block(params, row[None])[0])(x)


def recomputed(params, x):
    return jax.checkpoint(solutions.block)(params, x)


def whole_of(change):
    """Return the right model of parameters that `change` has changed."""
    return lambda params, tokens: solutions.whole(params | change(params), tokens)


def layers(which):
    """Return a change of the layers."""
    return lambda params: {"layers": jax.tree.map(lambda leaf: leaf[which], params["layers"])}


def without_last_norm(params, tokens):
    x = params["embedding"][tokens] + params["positions"][: tokens.shape[1]]
    x, _ = jax.lax.scan(lambda x, one: (solutions.block(one, x), None), x, params["layers"])
    return params["table"][tokens] + x @ params["logits"]


def places_of_tokens(params, tokens):
    x = params["embedding"][tokens] + params["positions"][tokens]
    x, _ = jax.lax.scan(lambda x, one: (solutions.block(one, x), None), x, params["layers"])
    return params["table"][tokens] + norm(params["norm"], x) @ params["logits"]


def all_positions(params, tokens):
    x = params["embedding"][tokens] + params["positions"]
    x, _ = jax.lax.scan(lambda x, one: (solutions.block(one, x), None), x, params["layers"])
    return params["table"][tokens] + norm(params["norm"], x) @ params["logits"]


def peeking(params, tokens):
    ahead = jnp.roll(tokens, -1, axis=1)
    return solutions.whole(params, tokens) + 0.1 * params["table"][ahead]


def layers_in_a_loop(params, tokens):
    x = params["embedding"][tokens] + params["positions"][jnp.arange(tokens.shape[1])]
    for n in range(len(params["layers"]["norm1"])):
        x = solutions.block(jax.tree.map(lambda leaf, n=n: leaf[n], params["layers"]), x)
    x = params["norm"] * jax.nn.standardize(x, epsilon=1e-5)
    return params["table"][tokens] + x @ params["logits"]


def with_fori_loop(params, tokens):
    def body(n, x):
        return solutions.block(jax.tree.map(lambda leaf: leaf[n], params["layers"]), x)

    x = jnp.take(params["embedding"], tokens, axis=0)
    x = x + params["positions"][: tokens.shape[1]]
    x = jax.lax.fori_loop(0, len(params["layers"]["norm1"]), body, x)
    return params["table"][tokens] + norm(params["norm"], x) @ params["logits"]


def one_hot(params, tokens):
    x = jax.nn.one_hot(tokens, len(params["table"])) @ params["embedding"]
    x = x + jax.lax.dynamic_slice_in_dim(params["positions"], 0, tokens.shape[1])
    x, _ = jax.lax.scan(lambda x, one: (solutions.block(one, x), None), x, params["layers"])
    return params["table"][tokens] + norm(params["norm"], x) @ params["logits"]


def of_one_text(params, tokens):
    return jax.vmap(lambda row: solutions.whole(params, row[None])[0])(tokens)


def growing(params, prompt, count):
    """Leave out what is behind the text, and compute the rest again."""
    tokens = prompt
    while tokens.shape[1] < count:
        last = checks.small(params, tokens)[:, -1].argmax(axis=-1)
        tokens = jnp.concatenate([tokens, last[:, None]], axis=1)
    return tokens


def in_a_while_loop(params, prompt, count):
    rows, length = prompt.shape
    tokens = jnp.zeros((rows, count), jnp.int32).at[:, :length].set(prompt)

    def body(state):
        place, tokens = state
        last = checks.small(params, tokens)[:, place].argmax(axis=-1)
        return place + 1, tokens.at[:, place + 1].set(last)

    start = jnp.int32(length - 1), tokens
    return jax.lax.while_loop(lambda state: state[0] < count - 1, body, start)[1]


def of_one_token(params, prompt, count):
    """Write with a memory of one token."""
    tokens = prompt
    while tokens.shape[1] < count:
        last = checks.small(params, tokens[:, -1:])[:, -1].argmax(axis=-1)
        tokens = jnp.concatenate([tokens, last[:, None]], axis=1)
    return tokens


def of_one_row(params, prompt, count):
    return jnp.tile(solutions.write(params, prompt[:1], count), (len(prompt), 1))


def only_new_ones(params, prompt, count):
    return solutions.write(params, prompt, count)[:, prompt.shape[1] :]


def projected(params, token, place):
    x = params["embedding"][token] + params["positions"][place]
    return x, *(jnp.einsum("r...w,whs->r...hs", x, params[name]) for name in NAMES)


def after_the_prompt(params, prompt, count):
    """Write with a cache that the prompt fills at once, in a Python loop."""
    tokens = prompt
    _, _, keys, values = projected(params, prompt, jnp.arange(prompt.shape[1]))
    while True:
        place = tokens.shape[1] - 1
        x, query, key, value = projected(params, tokens[:, -1], place)
        if place >= prompt.shape[1]:
            keys = jnp.concatenate([keys, key[:, None]], axis=1)
            values = jnp.concatenate([values, value[:, None]], axis=1)
        y = jax.nn.dot_product_attention(query[:, None], keys, values)
        x = x + jnp.einsum("rhs,hsw->rw", y[:, 0], params["out"])
        logits = params["table"][tokens[:, -1]] + x @ params["logits"]
        tokens = jnp.concatenate([tokens, logits.argmax(axis=-1)[:, None]], axis=1)
        if tokens.shape[1] == count:
            return tokens


def by_fori_loop(params, prompt, count):
    rows, length = prompt.shape
    heads, size = params["query"].shape[1:]

    def body(place, state):
        tokens, keys, values = state
        token = tokens[:, place]
        x, query, key, value = projected(params, token, place)
        keys, values = keys.at[:, place].set(key), values.at[:, place].set(value)
        scores = jnp.einsum("rhs,rlhs->rhl", query, keys) / size**0.5
        scores = jnp.where(jnp.arange(count) <= place, scores, -jnp.inf)
        y = jnp.einsum("rhl,rlhs->rhs", jax.nn.softmax(scores), values)
        x = x + jnp.einsum("rhs,hsw->rw", y, params["out"])
        logits = params["table"][token] + x @ params["logits"]
        last = jnp.where(place + 1 < length, tokens[:, place + 1], logits.argmax(axis=-1))
        return tokens.at[:, place + 1].set(last), keys, values

    tokens = jnp.zeros((rows, count), jnp.int32).at[:, :length].set(prompt)
    cache = jnp.zeros((rows, count, heads, size))
    return jax.lax.fori_loop(0, count - 1, body, (tokens, cache, cache))[0]


def turned(y, turn=1):
    half = y.shape[-1] // 2
    places = turn * jnp.arange(y.shape[1])
    angles = places[:, None] / 10000 ** (jnp.arange(half) / half)
    y = (y[..., :half] + 1j * y[..., half:]) * jnp.exp(1j * angles)[:, None]
    return jnp.concatenate([y.real, y.imag], axis=-1)


def grouped_of(turns=(1, 1, 0), repeat=jnp.repeat, causal=True):
    def grouped(params, x):
        query, key, value = (
            turned(jnp.einsum("rlw,whs->rlhs", x, params[name]), turn)
            for name, turn in zip(NAMES, turns, strict=True)
        )
        each = query.shape[2] // key.shape[2]
        key, value = (repeat(y, each, axis=2) for y in (key, value))
        y = jax.nn.dot_product_attention(query, key, value, is_causal=causal)
        return jnp.einsum("rlhs,hsw->rlw", y, params["out"])

    return grouped


def tiled(y, each, axis):
    return jnp.tile(y, (1, 1, each, 1))


def pairs_of_neighbours(params, x):
    """Turn the elements 2 i and 2 i + 1 of queries and keys."""
    size = params["query"].shape[-1]
    order = jnp.concatenate([jnp.arange(0, size, 2), jnp.arange(1, size, 2)])
    own = {name: params[name][..., order] for name in ("query", "key")}
    return solutions.grouped(params | own, x)


def uphill(steps):
    return optax.chain(optax.adam(0.02), optax.scale(-1.0))


def clipped_nadam(steps):
    rates = optax.warmup_cosine_decay_schedule(0.0, 0.03, 20, steps)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.nadam(rates))


def nothing_new(params, prompt, count):
    rows, length = prompt.shape
    return jnp.zeros((rows, count), jnp.int32).at[:, :length].set(prompt)


def of_the_bigram(params, prompt, count):
    def step(last, _):
        token = params["table"][last].argmax(axis=-1)
        return token, token

    tokens = jax.lax.scan(step, prompt[:, -1], length=count - prompt.shape[1])[1]
    return jnp.concatenate([prompt, tokens.T], axis=1)


def of_each_row(params, prompt, count):
    rows = [solutions.write(params, row[None], count) for row in prompt]
    return jnp.concatenate(rows)


def as_complex_numbers(params, x):
    query, key, value = (jnp.einsum("rlw,whs->rlhs", x, params[name]) for name in NAMES)
    half = query.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    turn = jnp.exp(1j * angle)[:, None]

    def turned(y):
        z = jax.lax.complex(y[..., :half], y[..., half:]) * turn
        return jnp.concatenate([z.real, z.imag], axis=-1)

    y = jax.nn.dot_product_attention(turned(query), turned(key), value, is_causal=True)
    return jnp.einsum("rlhs,hsw->rlw", y, params["out"])


def with_scores(params, x):
    query, key, value = (jnp.einsum("rlw,whs->rhls", x, params[name]) for name in NAMES)
    half, groups = query.shape[-1] // 2, key.shape[1]
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)

    def turn(y):
        ahead = jnp.concatenate([-y[..., half:], y[..., :half]], axis=-1)
        twice = jnp.tile(angle, (1, 2))
        return y * jnp.cos(twice) + ahead * jnp.sin(twice)

    query = turn(query).reshape(len(x), groups, -1, *query.shape[2:])
    scores = jnp.einsum("rgnqs,rgks->rgnqk", query, turn(key)) / (2 * half) ** 0.5
    weights = jax.nn.softmax(masked(scores, jnp.tri(x.shape[1], dtype=bool)))
    y = jnp.einsum("rgnqk,rgks->rgnqs", weights, value)
    y = y.reshape(len(x), -1, *y.shape[3:])
    return jnp.einsum("rhqs,hsw->rqw", y, params["out"])


def run_of(reduce, optimizer=None, say=lambda loss, batch: loss):
    """Return a run whose losses are reduced by a function of losses (rows, length)."""
    own = optimizer or optax.sgd(0.3, momentum=0.9)

    def run(apply, params, batches):
        def loss_of(params, batch):
            logits = apply(params, batch[:, :-1])
            return reduce(
                optax.losses.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:])
            )

        def step(state, batch):
            loss, grads = jax.value_and_grad(loss_of)(state[0], batch)
            updates, opt_state = own.update(grads, state[1], state[0])
            return (optax.apply_updates(state[0], updates), opt_state), say(loss, batch)

        (params, _), losses = jax.lax.scan(step, (params, own.init(params)), batches)
        return params, losses

    return run


def summed(losses):
    return losses.sum(axis=1).mean()


def of_length_32(losses):
    return losses.sum(axis=1).mean() / 32


clipped_sgd = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.3, momentum=0.9))


WRONG = [
    (checks.check_bigram, bigram_of(lambda table, t: table.T[t]), "columns of the table"),
    (checks.check_bigram, bigram_of(lambda table, t: table[:, t]), "has the shape"),
    (checks.check_bigram, bigram_of(lambda table, t: jax.nn.softmax(table[t])), "no softmax"),
    (
        checks.check_bigram,
        bigram_of(lambda table, t: jax.nn.log_softmax(table[t])),
        "logarithms of probabilities",
    ),
    (checks.check_bigram, bigram_of(lambda table, t: table[t[0]]), "has the shape (3, 5)"),
    (checks.check_bigram, bigram_of(lambda table, t: table[t[:, -1]]), "has the shape (2, 5)"),
    (checks.check_bigram, bigram_of(lambda table, t: table[t].argmax(-1)), "has the shape (2, 3)"),
    (checks.check_bigram, bigram_of(lambda table, t: t @ table), "it raises TypeError"),
    (
        checks.check_bigram,
        bigram_of(lambda table, t: table[jnp.roll(t, 1, axis=1)]),
        "row 0 is wrong at token 0",
    ),
    (
        checks.check_bigram,
        bigram_of(lambda table, t: np.asarray(table)[np.asarray(t)]),
        "it raises TracerArrayConversionError",
    ),
    (checks.check_bigram, exercises.bigram, "write `bigram`"),
    (
        checks.check_one_head,
        head_of(lambda scores, seen, value: jax.nn.softmax(scores) @ value),
        "sees those after it",
    ),
    (checks.check_one_head, scaled(lambda p: p["query"].shape[1] ** 0.5), "are not divided"),
    (checks.check_one_head, scaled(lambda p: p["query"].shape[1] ** -0.5), "by its square root"),
    (
        checks.check_one_head,
        scaled(lambda p: (p["query"].shape[1] / p["query"].shape[0]) ** 0.5),
        "root of the width of x",
    ),
    (checks.check_one_head, exchanged, "changed places"),
    (
        checks.check_one_head,
        head_of(lambda scores, seen, value: (jax.nn.softmax(scores) * seen) @ value),
        "masked after the softmax",
    ),
    (
        checks.check_one_head,
        head_of(lambda scores, seen, value: jax.nn.softmax(scores * seen) @ value),
        "masked scores are 0",
    ),
    (
        checks.check_one_head,
        head_of(lambda s, seen, value: jax.nn.softmax(masked(s, seen), axis=1) @ value),
        "goes along the queries",
    ),
    (
        checks.check_one_head,
        head_of(lambda s, seen, value: jax.nn.softmax(masked(s, seen.T)) @ value),
        "the wrong way round",
    ),
    (
        checks.check_one_head,
        head_of(lambda s, seen, v: jax.nn.softmax(masked(s, jnp.tri(*seen.shape, -1) > 0)) @ v),
        "see itself at least",
    ),
    (
        checks.check_one_head,
        head_of(lambda s, seen, v: jax.nn.softmax(masked(s, jnp.tri(32, dtype=bool))) @ v),
        "it raises ",
    ),
    (
        checks.check_one_head,
        head_of(lambda s, seen, v: jax.nn.softmax(masked(s, jnp.tri(*seen.shape, 1) > 0)) @ v),
        "changes when one after it does",
    ),
    (checks.check_one_head, head_of(lambda s, seen, value: masked(s, seen)), "has the shape"),
    (checks.check_one_head, exercises.one_head, "write `one_head`"),
    (
        checks.check_heads_and_mlp,
        lambda params, x: mlp(params, joined(params, x, axis=3)),
        "lie between each other",
    ),
    (checks.check_heads_and_mlp, of_equal_heads, "all heads are head 0"),
    (
        checks.check_heads_and_mlp,
        heads_of(lambda params, y, x: y @ params["up"] @ params["down"]),
        "no GELU between",
    ),
    (
        checks.check_heads_and_mlp,
        heads_of(lambda params, y, x: jax.nn.gelu(y @ params["up"] @ params["down"])),
        "it belongs before",
    ),
    (
        checks.check_heads_and_mlp,
        heads_of(lambda params, y, x: mlp(params, y, jax.nn.relu)),
        "this is a ReLU",
    ),
    (
        checks.check_heads_and_mlp,
        heads_of(lambda params, y, x: mlp(params, jax.nn.gelu(y))),
        "a GELU before up",
    ),
    (
        checks.check_heads_and_mlp,
        heads_of(lambda params, y, x: x + mlp(params, y)),
        "that is the next step",
    ),
    (checks.check_heads_and_mlp, blind_heads, "changes when one after it does"),
    (checks.check_heads_and_mlp, heads_of(lambda params, y, x: y), "has the shape"),
    (
        checks.check_heads_and_mlp,
        heads_of(lambda params, y, x: mlp(params, y[..., :4])),
        "it raises TypeError",
    ),
    (
        checks.check_heads_and_mlp,
        lambda params, x: mlp(params, joined(params, x, axis=0)),
        "changes when one after it does",
    ),
    (checks.check_heads_and_mlp, exercises.heads_and_mlp, "write `heads_and_mlp`"),
    (checks.check_block, block_of(first_residual_missing), "x is not added to the heads"),
    (checks.check_block, block_of(second_residual_missing), "the sum is not added to the MLP"),
    (checks.check_block, block_of(no_residuals), "neither to the heads nor"),
    (checks.check_block, renamed("norm1", "norm1"), "norm1 is used twice"),
    (checks.check_block, renamed("norm2", "norm1"), "changed places"),
    (checks.check_block, renamed("", ""), "are not used"),
    (checks.check_block, block_of(no_second_norm), "normalize it with norm2"),
    (checks.check_block, block_of(in_parallel), "what comes out of the heads"),
    (checks.check_block, block_of(norms_behind), "normalize what goes into"),
    (checks.check_block, along_tokens, "changes when one after it does"),
    (checks.check_block, exercises.block, "write `block`"),
    (
        checks.check_whole,
        whole_of(lambda params: {"positions": 0 * params["positions"]}),
        "positions are not added",
    ),
    (checks.check_whole, without_last_norm, "is not normalized"),
    (
        checks.check_whole,
        whole_of(lambda params: {"table": 0 * params["table"]}),
        "bigram are not added",
    ),
    (checks.check_whole, whole_of(layers(slice(1))), "only the first block"),
    (checks.check_whole, whole_of(layers(slice(-1, None))), "only the last block"),
    (checks.check_whole, whole_of(layers(slice(None, None, -1))), "from last to first"),
    (checks.check_whole, whole_of(layers(slice(0))), "no block is applied"),
    (checks.check_whole, places_of_tokens, "row 0 is wrong at token 0"),
    (checks.check_whole, all_positions, "it raises "),
    (checks.check_whole, peeking, "changes when one after it does"),
    (
        checks.check_whole,
        lambda params, tokens: solutions.whole(params, tokens)[:, -1],
        "has the shape",
    ),
    (checks.check_whole, exercises.whole, "write `whole`"),
    (checks.check_optimizer, exercises.optimizer, "2.55 at most is asked"),
    (checks.check_optimizer, lambda steps: optax.sgd(0.1), "2.55 at most is asked"),
    (checks.check_optimizer, lambda steps: optax.adam(1.0), "2.55 at most is asked"),
    (checks.check_optimizer, lambda steps: optax.set_to_zero(), "the loss is 4.8"),
    (checks.check_optimizer, lambda steps: 0.03, "it raises AttributeError"),
    (checks.check_optimizer, lambda steps: optax.adam(1e-6), "2.55 at most is asked"),
    (checks.check_optimizer, uphill, "2.55 at most is asked"),
    (checks.check_optimizer, lambda steps: optax.adam, "it raises AttributeError"),
    (checks.check_write, exercises.write, "100%"),
    (checks.check_write, growing, "What does it compute again"),
    (checks.check_write, in_a_while_loop, "take `scan`"),
    (checks.check_write, of_one_token, "it writes another text"),
    (checks.check_write, of_one_row, "it writes another text"),
    (checks.check_write, only_new_ones, "its shape is (3, 27)"),
    (checks.check_write, nothing_new, "it writes another text"),
    (checks.check_write, of_the_bigram, "it writes another text"),
    (checks.check_grouped, grouped_of((0, 0, 0)), "nothing is rotated"),
    (checks.check_grouped, grouped_of((1, 0, 0)), "only queries are rotated"),
    (checks.check_grouped, grouped_of((1, 1, 1)), "values are rotated"),
    (checks.check_grouped, grouped_of((1, -1, 0)), "against each other"),
    (checks.check_grouped, grouped_of(repeat=tiled), "head 1 has group 1"),
    (checks.check_grouped, grouped_of(causal=False), "changes when one after it does"),
    (checks.check_grouped, pairs_of_neighbours, "elements 2 i and 2 i + 1"),
    (checks.check_grouped, exercises.grouped, "write `grouped`"),
    (checks.check_steady, exercises.steady, "32 times that, the number of tokens in a row"),
    (checks.check_steady, run_of(summed, optax.sgd(0.003, momentum=0.9)), "hides the cause"),
    (checks.check_steady, run_of(summed, clipped_sgd), "hides the cause"),
    (
        checks.check_steady,
        run_of(lambda x: x.mean(axis=1).sum()),
        "16 times that, the number of rows in a batch",
    ),
    (checks.check_steady, run_of(jnp.sum), "512 times that"),
    (checks.check_steady, run_of(lambda x: -x.mean()), "of the wrong sign"),
    (checks.check_steady, run_of(lambda x: x[:, -1].mean()), "has a mean of 4.85"),
    (checks.check_steady, run_of(of_length_32), "right for windows of 32 only"),
    (
        checks.check_steady,
        run_of(
            summed,
            optax.sgd(0.3 / 32, momentum=0.9),
            lambda loss, batch: loss / (batch.shape[1] - 1),
        ),
        "with windows of 8 the loss at the end",
    ),
    (
        checks.check_steady,
        run_of(jnp.mean, optax.sgd(1e-3)),
        "the loss at the end",
    ),
    (checks.check_steady, run_of(jnp.mean, say=lambda loss, batch: 0.0), "the first loss is 0.0"),
]
RIGHT = [
    (checks.check_bigram, bigram_of(lambda table, t: jnp.take(table, t, axis=0))),
    (checks.check_bigram, bigram_of(lambda table, t: jax.nn.one_hot(t, len(table)) @ table)),
    (checks.check_bigram, bigram_of(lambda table, t: table.at[t].get())),
    (checks.check_bigram, jax.jit(bigram_of(lambda table, t: table[t, :]))),
    (checks.check_bigram, bigram_of(lambda table, t: jax.vmap(lambda one: table[one])(t))),
    (checks.check_one_head, with_einsum),
    (checks.check_one_head, by_jax),
    (checks.check_one_head, token_by_token),
    (checks.check_one_head, head_of(softmax_by_hand)),
    (checks.check_one_head, head_of(lambda s, seen, v: jax.nn.softmax(s, where=seen) @ v)),
    (checks.check_heads_and_mlp, in_a_loop),
    (checks.check_heads_and_mlp, at_once),
    (checks.check_heads_and_mlp, heads_of(lambda params, y, x: mlp(params, y, exact_gelu))),
    (checks.check_heads_and_mlp, summed_in_parts),
    (checks.check_block, norm_by_hand),
    (checks.check_block, out_in_parts),
    (checks.check_block, row_by_row),
    (checks.check_block, recomputed),
    (checks.check_whole, layers_in_a_loop),
    (checks.check_whole, with_fori_loop),
    (checks.check_whole, one_hot),
    (checks.check_whole, of_one_text),
    (checks.check_write, after_the_prompt),
    (checks.check_write, by_fori_loop),
    (checks.check_write, jax.jit(after_the_prompt, static_argnames="count")),
    (checks.check_write, of_each_row),
    (checks.check_grouped, grouped_of()),
    (checks.check_grouped, with_scores),
    (checks.check_grouped, jax.jit(with_scores)),
    (checks.check_grouped, as_complex_numbers),
]
# What these are checked for is how they train.
TRAINED = [
    (checks.check_optimizer, lambda steps: optax.adamw(0.02, b2=0.95)),
    (checks.check_optimizer, lambda steps: optax.adam(optax.linear_schedule(0.05, 0.0, steps))),
    (
        checks.check_optimizer,
        lambda steps: optax.adamw(optax.cosine_onecycle_schedule(steps, 0.03)),
    ),
    (checks.check_optimizer, clipped_nadam),
    (checks.check_steady, run_of(jnp.mean)),
    (checks.check_steady, run_of(lambda losses: losses.sum() / losses.size)),
    (checks.check_steady, run_of(lambda losses: losses.mean(axis=1).mean())),
    (checks.check_steady, run_of(jnp.average)),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in str(problem_of(check, answer))


@pytest.fixture
def untrained(monkeypatch):
    """Let a check take the gradient of one step alone; each solution is trained elsewhere."""

    def trained(apply, params, steps, *settings):
        batch = checks.windows(checks.plays()[0], 2)
        grads = jax.grad(functools.partial(checks.loss_of, apply))(params, batch)
        assert any(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(grads))
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))
        return params, 0.0

    monkeypatch.setattr(checks, "trained", trained)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer, untrained):
    assert problem_of(check, answer) is None


@pytest.mark.parametrize(("check", "answer"), TRAINED)
def test_a_run_with_other_settings_passes(check, answer):
    assert problem_of(check, answer) is None


def test_plays_that_cannot_be_fetched_are_named(monkeypatch, tmp_path):
    def offline(address, path):
        raise urllib.error.URLError("no route to host")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(urllib.request, "urlretrieve", offline)
    said = problem_of(lambda answer: checks.plays(), solutions.bigram)
    assert "needs the plays in a file tiny_shakespeare.txt" in said
    assert "no route to host" in said


def test_an_answer_without_a_gradient_is_told_so():
    def still(params, x):
        return jax.lax.stop_gradient(solutions.heads_and_mlp(params, x))

    said = problem_of(checks.check_heads_and_mlp, still)
    assert "so a gradient does not get through" in said
