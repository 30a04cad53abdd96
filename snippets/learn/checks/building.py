"""Lesson 18, a small language model: what answers are checked for."""

import functools
import math
import pathlib
import urllib.request

import jax
import jax.numpy as jnp
import numpy as np
import optax

ADDRESS = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
    "tinyshakespeare/input.txt"
)
TOKENS = 128
LENGTH = 32
WIDTH = 32
ROWS = 16
LOSSES = {
    "bigram": 2.6,
    "one_head": 2.48,
    "heads_and_mlp": 2.42,
    "block": 2.33,
    "whole": 2.26,
}


def plays(path="tiny_shakespeare.txt"):
    """Return tiny Shakespeare, and its last tenth by itself, as tokens.

    Where there is no such file, it is fetched from ADDRESS.
    """
    if not (path := pathlib.Path(path)).exists():
        try:
            urllib.request.urlretrieve(ADDRESS, path)
        except OSError as error:
            raise AssertionError(
                f"the check needs the plays in a file {path.name} here, and "
                f"can't fetch them from {ADDRESS}: {error}"
            ) from None
    text = path.read_text("utf8").encode("ascii", "replace")
    text = np.frombuffer(text, np.uint8).astype(np.int32)
    return np.split(text, [9 * len(text) // 10])


def windows(text, count, length=LENGTH):
    """Return windows (count, length + 1) of a text, which begin anywhere."""
    starts = np.random.default_rng(0).integers(0, len(text) - length, count)
    return text[starts[:, None] + np.arange(length + 1)]


def loss_of(apply, params, batch):
    """Return the mean of -log p(next token) over windows (rows, length)."""
    logits = apply(params, batch[:, :-1])
    return optax.losses.softmax_cross_entropy_with_integer_labels(
        logits, batch[:, 1:]
    ).mean()


def adam(steps, rate=0.02):
    """Return Adam, whose rate rises to `rate` and falls again."""
    rates = optax.warmup_cosine_decay_schedule(0.0, rate, steps // 10, steps)
    return optax.adam(rates, b2=0.95)


def trained(apply, params, steps, optimizer=None):
    """Return parameters after so many steps, and the loss on text kept back.

    `apply` gives logits of (params, tokens).
    """
    text, kept_back = plays()
    optimizer = optimizer or adam(steps)
    gradient = jax.grad(functools.partial(loss_of, apply))

    def step(state, batch):
        params, opt_state = state
        grads = gradient(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), None

    @jax.jit
    def run(params, batches, kept_back):
        state = params, optimizer.init(params)
        (params, _), _ = jax.lax.scan(step, state, batches)
        return params, loss_of(apply, params, kept_back)

    batches = windows(text, steps * ROWS).reshape(steps, ROWS, -1)
    params, loss = run(params, batches, windows(kept_back, 256))
    return params, float(loss)


def drawn(key, scale=1.0, /, **shapes):
    """Return arrays of these shapes, which keep the scale of what they get."""
    keys = jax.random.split(key, len(shapes))
    return {
        name: scale * jax.random.normal(one, shape) / math.sqrt(shape[-2])
        for one, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def first_ends(key, width=WIDTH, length=LENGTH):
    """Return what is before and after the layers of a model."""
    keys = jax.random.split(key, 3)
    embedding = jax.random.normal(keys[0], (TOKENS, width))
    positions = jax.random.normal(keys[1], (length, width))
    return {
        "table": jnp.zeros((TOKENS, TOKENS)),
        "embedding": 0.3 * embedding,
        "positions": 0.1 * positions,
        **drawn(keys[2], 0.3, logits=(width, TOKENS)),
    }


def first_block(key, width=WIDTH, heads=4):
    """Return the parameters of a block."""
    one, two, three = jax.random.split(key, 3)
    head = (heads, width, width // heads)
    norms = 1 + 0.1 * jax.random.normal(three, (2, width))
    return {
        "norm1": norms[0],
        "heads": drawn(one, query=head, key=head, value=head),
        "norm2": norms[1],
        **drawn(
            two,
            out=(width, width),
            up=(width, 4 * width),
            down=(4 * width, width),
        ),
    }


def small(params, tokens, causal=True):
    """Return logits (rows, length, tokens) of one layer of attention."""
    x = params["embedding"][tokens] + params["positions"][: tokens.shape[1]]
    query, key, value = (
        jnp.einsum("rlw,whs->rlhs", x, params[name])
        for name in ("query", "key", "value")
    )
    y = jax.nn.dot_product_attention(query, key, value, is_causal=causal)
    x = x + jnp.einsum("rlhs,hsw->rlw", y, params["out"])
    return params["table"][tokens] + x @ params["logits"]


def first_small(key, heads=4, groups=4, size=8):
    """Return the parameters of `small`; of its heads, groups share a key."""
    ends, one, two = jax.random.split(key, 3)
    layer = drawn(
        one,
        query=(heads, WIDTH, size),
        key=(groups, WIDTH, size),
        value=(groups, WIDTH, size),
    )
    layer = {name: x.swapaxes(0, 1) for name, x in layer.items()}
    out = drawn(two, 0.5, out=(heads * size, WIDTH))["out"]
    return first_ends(ends) | layer | {"out": out.reshape(heads, size, WIDTH)}


def close(found, expected):
    """Say whether arrays agree, as far as kinds of GELU and rounding allow."""
    return np.allclose(found, expected, rtol=1e-3, atol=3e-3)


def assert_like(function, x, expected, mistakes, other=None):
    """Raise AssertionError unless function(x) is as expected, and causal.

    `mistakes` are {words: array}. What follows a token must not change its
    result; `other`, like x, has other tokens.
    """
    found = np.asarray(jax.jit(function)(x))
    assert found.shape == expected.shape, (
        f"its result has the shape {found.shape}, not {expected.shape}"
    )
    assert not np.isnan(found).any(), (
        "there is nan in it; does each token see itself at least? The softmax "
        "of nothing but -inf is nan"
    )
    right = close(found, expected)
    for words, wrong in mistakes.items():
        assert right or not close(found, wrong), words
    if other is not None:
        assert_causal(function, x, other)
    row, place = np.argwhere(~np.isclose(found, expected, 1e-3, 3e-3) | right)[
        0, :2
    ]
    assert right, (
        f"row {row} is wrong at token {place}: "
        f"{np.ravel(found[row, place])[:3].round(3)}, ..., and "
        f"{np.ravel(expected[row, place])[:3].round(3)}, ... is right"
    )


def assert_causal(function, x, other):
    """Raise AssertionError if what follows a token changes its result."""
    before = np.asarray(function(x))
    after = np.asarray(function(x.at[:, -2:].set(other[:, -2:])))
    changed = ~np.isclose(before, after, 1e-4, 1e-4)[:, :-2]
    assert not changed.any(), (
        f"token {np.argwhere(changed)[0][1]} changes when one after it does. "
        "A token may see itself and those before it: is there a mask, and do "
        "norms and softmax go along the last axis?"
    )


def assert_learns(name, apply, params, steps, optimizer=None):
    """Print the loss after training; AssertionError where it is too high."""
    _, loss = trained(apply, params, steps, optimizer)
    assert loss <= LOSSES[name], (
        f"its values are right, and after {steps} steps its loss is "
        f"{loss:.2f}; {LOSSES[name]} is easily reached, so a gradient does "
        "not get through"
    )
    print(f"{name}: after {steps} steps a loss of {loss:.2f}")


def attention(query, key, value, scale=None, mask=True):
    """Return attention (length, size), in NumPy, one token after the other."""
    scale = scale or 1 / math.sqrt(query.shape[-1])
    rows = []
    for place in range(len(query)):
        seen = slice(place + 1 if mask else None)
        scores = key[seen] @ query[place] * scale
        weights = np.exp(scores - scores.max())
        rows.append(weights @ value[seen] / weights.sum())
    return np.stack(rows)


def each(function, x):
    """Return the results of a function for each row, as one array."""
    return np.stack([function(row) for row in np.asarray(x, np.float64)])


def as_numpy(params):
    """Return float64 arrays of NumPy."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)


def head_of(params, **how):
    """Return the function of a head, x (length, width), in NumPy."""
    query, key, value = (params[name] for name in ("query", "key", "value"))
    return lambda x: attention(x @ query, x @ key, x @ value, **how)


def heads_of(params, axis=-1):
    """Return the function of several heads, next to each other, in NumPy."""
    heads = zip(*(params[n] for n in ("query", "key", "value")), strict=True)
    own = [dict(zip(("query", "key", "value"), h, strict=True)) for h in heads]
    return lambda x: np.stack([head_of(h)(x) for h in own], axis - 1).reshape(
        len(x), -1
    )


def gelu(x):
    """Return the GELU of an array, in NumPy."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def normal(x, scale):
    """Return x (length, width) normalized along its last axis, in NumPy."""
    x = x - x.mean(axis=-1, keepdims=True)
    return scale * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def mlp(params, x):
    """Return the MLP of x (length, width), in NumPy."""
    return gelu(x @ params["up"]) @ params["down"]


def block_of(params, first=True, second=True, norms=("norm1", "norm2")):
    """Return the function of a block, in NumPy, or of one with a mistake."""
    one, two = (params.get(name, 1.0) for name in norms)

    def apply(x):
        y = heads_of(params["heads"])(normal(x, one)) @ params["out"]
        x = x + y if first else y
        y = mlp(params, normal(x, two))
        return x + y if second else y

    return apply


def check_bigram(bigram):
    """Raise AssertionError unless logits are rows of the table."""
    table = jax.random.normal(jax.random.key(0), (5, 5))
    tokens = jnp.array([[1, 4, 0], [2, 2, 3]])
    assert_like(
        functools.partial(bigram, {"table": table}),
        tokens,
        np.asarray(table)[tokens],
        {
            "these are columns of the table; the row of a token has its "
            "logits": np.asarray(table).T[tokens],
            "these are probabilities; logits are wanted, so no softmax": (
                jax.nn.softmax(table[tokens])
            ),
            "these are logarithms of probabilities; logits are wanted, the "
            "table as it is": jax.nn.log_softmax(table[tokens]),
        },
    )
    params = {"table": jnp.zeros((TOKENS, TOKENS))}
    assert_learns("bigram", bigram, params, 300, adam(300, 0.1))


def check_one_head(one_head):
    """Raise AssertionError unless it is a head of causal attention."""
    keys = jax.random.split(jax.random.key(0), 5)
    params = drawn(keys[0], 2.0, query=(6, 4), key=(6, 4), value=(6, 4))
    x, other = (jax.random.normal(key, (2, 5, 6)) for key in keys[1:3])
    own = as_numpy(params)
    turned = own | {"query": own["key"], "key": own["query"]}
    apply = functools.partial(one_head, params)
    assert_like(
        apply,
        x,
        each(head_of(own), x),
        {
            "a token sees those after it; mask their scores": (
                each(head_of(own, mask=False), x)
            ),
            "scores are not divided": each(head_of(own, scale=1.0), x),
            "scores are divided by the size, not by its square root": (
                each(head_of(own, scale=1 / 4), x)
            ),
            "scores are divided by the root of the width of x, not of the "
            "size of a query": each(head_of(own, scale=6**-0.5), x),
            "queries and keys have changed places": each(head_of(turned), x),
            "the mask is the wrong way round: a token sees itself and those "
            "after it": each(lambda x: head_of(own)(x[::-1])[::-1], x),
        }
        | mistakes_of_masks(own, x),
        other,
    )
    square = WIDTH, WIDTH
    params = first_ends(keys[3]) | {
        "head": drawn(keys[4], query=square, key=square, value=square)
    }
    learns = functools.partial(beside, lambda p, x: one_head(p["head"], x))
    assert_learns("one_head", learns, params, 300)


def mistakes_of_masks(params, x):
    """Return {words: what a head gives whose mask is used too late}."""
    x = np.asarray(x, np.float64)
    query, key, value = (
        x @ params[name] for name in ("query", "key", "value")
    )
    scores = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
    seen, axes = np.tri(x.shape[1]), {"rows": -1, "columns": -2}
    weights = {
        name: np.exp(scores) / np.exp(scores).sum(axis, keepdims=True)
        for name, axis in axes.items()
    }
    below = np.exp(np.where(seen > 0, scores, -np.inf))
    zeros = np.exp(np.where(seen > 0, scores, 0))
    return {
        "weights are masked after the softmax, so they do not add up to one; "
        "mask the scores": seen * weights["rows"] @ value,
        "masked scores are 0, whose exponential is 1; take -inf": (
            zeros / zeros.sum(-1, keepdims=True) @ value
        ),
        "the softmax goes along the queries; each query needs weights that "
        "add up to one, along the last axis": (
            below / below.sum(-2, keepdims=True) @ value
        ),
    }


def beside(layer, params, tokens):
    """Return the bigram's logits, and what a layer adds to them."""
    x = params["embedding"][tokens] + params["positions"][: tokens.shape[1]]
    return params["table"][tokens] + layer(params, x) @ params["logits"]


def check_heads_and_mlp(heads_and_mlp):
    """Raise AssertionError unless it is several heads and an MLP."""
    keys = jax.random.split(jax.random.key(0), 5)
    shape = (3, 6, 4)
    params = {
        "heads": drawn(keys[0], 2.0, query=shape, key=shape, value=shape),
        **drawn(keys[1], 2.0, up=(12, 10), down=(10, 6)),
    }
    x, other = (jax.random.normal(key, (2, 5, 6)) for key in keys[2:4])
    own = as_numpy(params)
    heads, up, down = own["heads"], own["up"], own["down"]
    alone = jax.tree.map(lambda leaf: leaf[[0, 0, 0]], heads)
    apply = functools.partial(heads_and_mlp, params)
    joined = heads_of(heads)
    assert_like(
        apply,
        x,
        each(lambda x: mlp(own, joined(x)), x),
        {
            "the results of heads lie between each other; those of head 0 "
            "come first, then those of head 1": (
                each(lambda x: mlp(own, heads_of(heads, 0)(x)), x)
            ),
            "all heads are head 0": (
                each(lambda x: mlp(own, heads_of(alone)(x)), x)
            ),
            "there is no GELU between up and down": (
                each(lambda x: joined(x) @ up @ down, x)
            ),
            "the GELU comes after down; it belongs before": (
                each(lambda x: gelu(joined(x) @ up @ down), x)
            ),
            "this is a ReLU; take jax.nn.gelu": (
                each(lambda x: np.maximum(joined(x) @ up, 0) @ down, x)
            ),
            "there is a GELU before up as well": (
                each(lambda x: mlp(own, gelu(joined(x))), x)
            ),
            "x is added; that is the next step": (
                each(lambda x: x + mlp(own, joined(x)), x)
            ),
        },
        other,
    )
    params = first_ends(keys[4]) | first_block(keys[0])
    learns = functools.partial(beside, heads_and_mlp)
    assert_learns("heads_and_mlp", learns, params, 300)


def check_block(block):
    """Raise AssertionError unless it is a block with norms and residuals."""
    keys = jax.random.split(jax.random.key(0), 5)
    params = first_block(keys[0], 8, 2)
    params |= {
        "norm1": jnp.linspace(0.5, 1.5, 8),
        "norm2": params["norm2"] * 2,
    }
    scale = jnp.array([1, 1e-3])[:, None, None]
    x, other = (
        scale * (2 + 3 * jax.random.normal(key, (2, 5, 8)))
        for key in keys[2:4]
    )
    own, apply = as_numpy(params), functools.partial(block, params)
    heads = heads_of(own["heads"])
    behind = x + each(lambda x: heads(x) @ own["out"], x)
    behind = each(lambda x: normal(x, own["norm1"]), behind)
    behind = behind + each(lambda x: mlp(own, x), behind)
    middle = x + each(
        lambda x: heads(normal(x, own["norm1"])) @ own["out"],
        x,
    )
    assert_like(
        apply,
        x,
        each(block_of(own), x),
        {
            "x is not added to the heads": each(block_of(own, first=False), x),
            "the sum is not added to the MLP": (
                each(block_of(own, second=False), x)
            ),
            "nothing is added, neither to the heads nor to the MLP": (
                each(block_of(own, first=False, second=False), x)
            ),
            "norm1 is used twice": (
                each(block_of(own, norms=("norm1", "norm1")), x)
            ),
            "norm1 and norm2 have changed places": (
                each(block_of(own, norms=("norm2", "norm1")), x)
            ),
            "the scales norm1 and norm2 are not used": (
                each(block_of(own, norms=("", "")), x)
            ),
            "the MLP gets the sum as it is; normalize it with norm2": (
                middle + each(lambda x: mlp(own, x), middle)
            ),
            "normalize what goes into the heads and the MLP, not the sums": (
                each(lambda x: normal(x, own["norm2"]), behind)
            ),
            "the MLP gets x; it should get what comes out of the heads": (
                middle + each(lambda x: mlp(own, normal(x, own["norm2"])), x)
            ),
        },
        other,
    )
    params = first_ends(keys[4]) | first_block(keys[0])
    assert_learns("block", functools.partial(beside, block), params, 300)


def whole_of(params, tokens, leave_out=(), order=slice(None)):
    """Return logits (rows, length, tokens) in NumPy, parts left out or not."""
    length = tokens.shape[1]
    x = params["embedding"][tokens]
    if "positions" not in leave_out:
        x = x + params["positions"][:length]
    count = len(params["layers"]["norm1"])
    for n in range(count)[order]:
        one = jax.tree.map(lambda leaf, n=n: leaf[n], params["layers"])
        x = each(block_of(one), x)
    if "norm" not in leave_out:
        x = normal(x, params["norm"])
    table = 0 if "table" in leave_out else params["table"][tokens]
    return x @ params["logits"] + table


def first_whole(key, layers=2, width=WIDTH, heads=4, length=LENGTH):
    """Return the parameters of the whole model, those of blocks stacked."""
    ends, *keys = jax.random.split(key, layers + 1)
    blocks = [first_block(one, width, heads) for one in keys]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *blocks)
    own = first_ends(ends, width, length)
    return own | {"layers": stacked, "norm": jnp.ones(width)}


def check_whole(whole):
    """Raise AssertionError unless it is the whole model."""
    keys = jax.random.split(jax.random.key(0), 5)
    params = first_whole(keys[0], layers=3, width=8, heads=2, length=9)
    table = jax.random.normal(keys[1], (TOKENS, TOKENS))
    scales = {"positions": 10 * params["positions"], "table": table}
    params |= scales | {"norm": jnp.linspace(0.5, 1.5, 8)}
    tokens = jax.random.randint(keys[2], (2, 6), 0, TOKENS)
    other = (tokens + 1 + jax.random.randint(keys[3], (2, 6), 0, 99)) % TOKENS
    own, apply = as_numpy(params), functools.partial(whole, params)
    wrong = functools.partial(whole_of, own, np.asarray(tokens))
    assert_like(
        apply,
        tokens,
        wrong(),
        {
            "positions are not added": wrong(["positions"]),
            "what comes out of the blocks is not normalized": wrong(["norm"]),
            "the logits of the bigram are not added": wrong(["table"]),
            "only the first block is applied": wrong(order=slice(1)),
            "only the last block is applied": wrong(order=slice(-1, None)),
            "no block is applied": wrong(order=slice(0)),
            "the blocks are applied from last to first": (
                wrong(order=slice(None, None, -1))
            ),
        },
        other,
    )
    assert_learns("whole", whole, first_whole(keys[4]), 600)


def check_optimizer(optimizer):
    """Raise AssertionError unless 150 steps bring a model to a low loss."""
    params = first_small(jax.random.key(0))
    _, loss = trained(small, params, 150, optimizer(150))
    assert loss <= 2.55, (
        f"after 150 steps the loss is {loss:.2f}, and 2.55 at most is asked. "
        "Which rate does it begin with, and which does it end with?"
    )
    print(f"optimizer: after 150 steps a loss of {loss:.2f}")


def multiplications(jaxpr):
    """Return how many multiplications of numbers a jaxpr does."""
    total = 0
    for equation in jaxpr.eqns:
        out = equation.outvars[0].aval if equation.outvars else None
        kind, params = equation.primitive.name, equation.params
        assert kind != "while", (
            "how often a `while_loop` runs cannot be counted; take `scan`"
        )
        inner = [
            multiplications(getattr(one, "jaxpr", one))
            for value in params.values()
            for one in (value if isinstance(value, tuple) else [value])
            if hasattr(getattr(one, "jaxpr", one), "eqns")
        ]
        times = params["length"] if kind == "scan" else 1
        total += times * (max if kind == "cond" else sum)(inner or [0])
        if kind == "mul":
            total += out.size
        if kind == "dot_general":
            (axes, _), _ = params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += out.size * math.prod(shape[axis] for axis in axes)
    return total


def one_by_one(params, prompt, count):
    """Return prompt (rows, length), and the likeliest tokens after it."""
    rows, length = prompt.shape
    tokens = jnp.zeros((rows, count), jnp.int32).at[:, :length].set(prompt)

    def step(tokens, place):
        last = small(params, tokens)[:, place].argmax(axis=-1)
        return tokens.at[:, place + 1].set(last), None

    return jax.lax.scan(step, tokens, jnp.arange(length - 1, count - 1))[0]


def check_write(write):
    """Raise AssertionError unless it writes the same with half the work."""
    params = first_small(jax.random.key(0))
    params |= {name: 4 * params[name] for name in ("value", "positions")}
    counts = []
    for seed, length, count in ((1, 5, 32), (2, 1, 32), (3, 9, 24)):
        key = jax.random.key(seed)
        prompt = jax.random.randint(key, (3, length), 0, TOKENS)
        expected = one_by_one(params, prompt, count)
        found = jax.jit(write, static_argnums=2)(params, prompt, count)
        assert found.shape == expected.shape, (
            f"its shape is {found.shape}, and {expected.shape} is right"
        )
        wrong = np.argwhere(found != expected)
        assert not len(wrong), (
            f"of a prompt of {length} tokens it writes another text, from "
            f"token {wrong[:, 1].min()} on"
        )
        counts = [
            multiplications(
                jax.make_jaxpr(one, static_argnums=2)(
                    params, prompt, count
                ).jaxpr
            )
            for one in (write, one_by_one)
        ]
        share = counts[0] / counts[1]
        assert share <= 0.5, (
            f"it multiplies {counts[0]:,} numbers for {count} tokens, which "
            f"is {share:.0%} of what the given one does; 50 % at most is "
            "asked. What does it compute again at each step?"
        )
    print("write: {:,} multiplications instead of {:,}".format(*counts))


def rotated(y, sign=1):
    """Return queries or keys (length, size) rotated by place, in NumPy."""
    half = y.shape[-1] // 2
    places = sign * np.arange(len(y))[:, None]
    angles = places / 10000 ** (np.arange(half) / half)
    y = (y[:, :half] + 1j * y[:, half:]) * np.exp(1j * angles)
    return np.concatenate([y.real, y.imag], axis=1)


def grouped_of(
    params, x, signs=(1, 1, 0), shared=lambda h, n, k: h // (n // k)
):
    """Return grouped attention of x (length, width), in NumPy."""
    heads, groups = (params[name].shape[1] for name in ("query", "key"))
    total = 0
    for head in range(heads):
        group = shared(head, heads, groups)
        query, key, value = (
            rotated(x @ params[name][:, which], sign)
            for name, which, sign in zip(
                ("query", "key", "value"),
                (head, group, group),
                signs,
                strict=True,
            )
        )
        total = total + attention(query, key, value) @ params["out"][head]
    return total


def check_grouped(grouped):
    """Raise AssertionError unless it is right, and as good at equal size."""
    keys = jax.random.split(jax.random.key(0), 4)
    names = ("query", "key", "value", "out")
    params = first_small(keys[0], heads=6, groups=2, size=8)
    params = {name: 2 * params[name] for name in names}
    x, other = (jax.random.normal(key, (2, 7, WIDTH)) for key in keys[1:3])
    apply = functools.partial(grouped, params)

    own = as_numpy(params)
    order = np.r_[:8:2, 1:8:2]
    pairs = {name: own[name][..., order] for name in ("query", "key")}

    def wrong(other=None, **how):
        params = own | (other or {})
        return each(functools.partial(grouped_of, params, **how), x)

    assert_like(
        apply,
        x,
        wrong(),
        {
            "nothing is rotated": wrong(signs=(0, 0, 0)),
            "only queries are rotated": wrong(signs=(1, 0, 0)),
            "only keys are rotated": wrong(signs=(0, 1, 0)),
            "values are rotated as well": wrong(signs=(1, 1, 1)),
            "queries and keys are rotated against each other": (
                wrong(signs=(1, -1, 0))
            ),
            "head 1 has group 1; the first three of six heads share group 0": (
                wrong(shared=lambda head, heads, groups: head % groups)
            ),
            "elements 2 i and 2 i + 1 are a pair; i and i + size / 2 should "
            "be": wrong(other=pairs),
            "all heads share group 0": wrong(shared=lambda *_: 0),
        },
        other,
    )
    compare_at_equal_size(grouped, keys[3])


def compare_at_equal_size(grouped, key):
    """Print both losses; AssertionError where sizes or losses are wrong."""

    def apply(params, tokens):
        x = params["embedding"][tokens]
        x = x + grouped(params, x)
        return params["table"][tokens] + x @ params["logits"]

    plain = first_small(key, size=10)
    own = first_small(key, groups=2, size=16)
    del own["positions"]
    sizes = {sum(x.size for x in jax.tree.leaves(p)) for p in (plain, own)}
    assert len(sizes) == 1, f"the models have {sizes} parameters"
    losses = [trained(small, plain, 300)[1], trained(apply, own, 300)[1]]
    assert losses[1] <= 2.3, f"after 300 steps its loss is {losses[1]:.2f}"
    print(f"grouped: {sizes.pop():,} parameters each")
    print("a table of positions {:.2f}, grouped {:.2f}".format(*losses))


def check_steady(steady):
    """Raise AssertionError unless the cause is gone, for all lengths."""
    text, kept_back = plays()
    for length in (32, 8):
        batches = windows(text, 150 * ROWS, length).reshape(150, ROWS, -1)
        params = first_small(jax.random.key(0))
        first = float(loss_of(small, params, batches[0]))
        run = jax.jit(functools.partial(steady, small))
        params, losses = run(params, batches)
        assert np.shape(losses) == (150,), (
            f"there are 150 steps, and losses {np.shape(losses)}"
        )
        assert np.isclose(losses[0], first, rtol=1e-3), (
            f"with windows of {length} the first loss is {losses[0]:.1f}; who "
            f"guesses among 128 tokens has a mean of {math.log(128):.2f}"
            + about_first(losses, first, length)
        )
        last = float(loss_of(small, params, windows(kept_back, 256, length)))
        assert last <= 2.8, (
            f"with windows of {length} the loss at the end is {last:.2f}; 2.8 "
            "at most is asked. Keep the optimizer: what else depends on the "
            "length?"
        )
        print(f"steady: windows of {length}, a loss of {last:.2f}")


def about_first(losses, first, length):
    """Return what to say of a first loss that is not the mean `first`."""
    known = {
        length: f"{length} times that, the number of tokens in a row",
        ROWS: f"{ROWS} times that, the number of rows in a batch",
        ROWS * length: f"{ROWS * length} times that, all tokens of a batch",
        length / 32: "right for windows of 32 only; divide by no fixed number",
        -1: "of the wrong sign",
    }
    share = float(losses[0]) / first
    said = [f". It is {known[k]}" for k in known if np.isclose(share, k, 1e-2)]
    if said and share > 1 and losses[-1] < losses[0]:
        said.append(
            ". The run comes down, so the rate or the gradients are smaller "
            "now; that hides the cause"
        )
    return "".join(said)
