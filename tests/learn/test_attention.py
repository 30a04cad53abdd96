"""What the lesson on attention says is what it computes, and its comparisons can fail."""

import contextlib
import io
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from snippets.learn import attention
from snippets.models import layers, modules
from tests.book import pages

KEY = jax.random.key(0)


def normal(*shape):
    return jax.random.normal(KEY, shape)


def cells():
    """Return the cells of the lesson, without those of its exercises."""
    found = [cell.node.source for cell in pages.page("learn/attention").cells]
    return found[: next(n for n, source in enumerate(found) if "causal_mask" in source)]


def printed(source, names):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(source, names)
    return said.getvalue()


@pytest.fixture(scope="module")
def lesson():
    """Run the lesson once; return its cells, what each printed, and the names before each."""
    sources, names, said, before = cells(), {}, [], []
    for source in sources:
        before.append(dict(names))
        said.append(printed(source, names))
    return sources, said, before


def differences(said):
    """Return the numbers of the lines that say by how much something differs at most."""
    return [float(number) for number in re.findall(r"differs by at most (\S+)", said)]


def test_all_comparisons_of_the_lesson_agree(lesson):
    found = [number for said in lesson[1] for number in differences(said)]
    assert len(found) == 7
    assert max(found) < 1e-5


# By the words of the comparison that must notice: what somebody writes instead, and of what.
HEAD = "scaled_dot_product_attention(\n    *map(in_torch"
HEADS, GROUPED = "many_heads(query, key, value, causal)", "enable_gqa=True)\n"
NORM, BLOCK = "rms_norm(params, x), expected", "torch_block(in_torch(x))"
WRONG = {
    "no scale": (HEAD, " / math.sqrt(query.shape[-1])", ""),
    "a scale of the length": (HEAD, "math.sqrt(query.shape[-1])", "math.sqrt(query.shape[0])"),
    "no root": (HEAD, "math.sqrt(query.shape[-1])", "query.shape[-1]"),
    "a softmax over the queries": (HEAD, "-jnp.inf), axis=-1", "-jnp.inf), axis=0"),
    "keys for values": (HEAD, "(query, key, mask) @ value", "(query, value, mask) @ key"),
    "keys for queries": (HEAD, "query @ key.T", "key @ query.T"),
    "a transposed mask": (HEADS, "jnp.tril(jnp.ones((5", "jnp.triu(jnp.ones((5"),
    "no mask": (HEADS, "return head(query, key, value, mask)", "return head(query, key, value)"),
    "a mask of PyTorch's module": (HEADS, "key, value, causal)", "key, value, ~causal)"),
    "tiled heads": (GROUPED, "jnp.repeat(x, 2, axis=2)", "jnp.tile(x, (1, 1, 2, 1))"),
    "no epsilon": (NORM, "square + epsilon", "square"),
    "epsilon outside of the root": (NORM, "rsqrt(square + epsilon)", "rsqrt(square) + epsilon"),
    "the mean subtracted": (
        NORM,
        "    square =",
        "    x = x - x.mean(-1, keepdims=True)\n    square =",
    ),
    "no square": (NORM, "jnp.mean(x**2", "jnp.mean(abs(x)"),
    "no learned scale": (NORM, ' * params["scale"]', ""),
    "the wrong sign": (
        BLOCK,
        "cos, sin = jnp.cos(angles), jnp.sin",
        "cos, sin = jnp.cos(angles), -jnp.sin",
    ),
    "keys that aren't rotated": (BLOCK, "rotary(key, positions)", "key"),
    "rotated values": (
        BLOCK,
        "rotary(key, positions), value",
        "rotary(key, positions), rotary(value, positions)",
    ),
    "pairs of neighbours": (BLOCK, 'kernel_as_halves(layer["kernel"], 8)', 'layer["kernel"]'),
    "a block that isn't causal": (
        BLOCK,
        "*inputs, is_causal=True)\n        return",
        "*inputs)\n        return",
    ),
    "no residual": (BLOCK, "x = x + self.attention", "x = self.attention"),
    "the norm added": (BLOCK, "x + self.mlp(", "self.norm2(x) + self.mlp("),
    "SiLU of the other layer": (
        BLOCK,
        "nnx.silu(self.gate(x)) * self.up(x)",
        "nnx.silu(self.up(x)) * self.gate(x)",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_comparison_notices(mistake, lesson):
    sources, _, before = lesson
    comparison, right, wrong = WRONG[mistake]
    (last,) = [n for n, source in enumerate(sources) if comparison in source]
    first = next(n for n, source in enumerate(sources) if right in source)
    names = dict(before[first])
    changed = [sources[first].replace(right, wrong), *sources[first + 1 : last + 1]]
    said = "".join(printed(source, names) for source in changed)
    # NaN is noticed as well.
    assert not all(number < 1e-3 for number in differences(said))


def test_scores_depend_on_distances_alone(lesson):
    sources, said, before = lesson
    (number,) = [n for n, source in enumerate(sources) if "(105, 103)" in source]
    one, same, other = re.findall(r"score (\S+)", said[number])
    assert one == same != other
    # Angles that don't grow evenly fail it.
    names = dict(before[number - 1])
    uneven = sources[number - 1].replace(
        "positions[..., None, None]", "positions[..., None, None] ** 2"
    )
    assert uneven != sources[number - 1]
    exec(uneven, names)
    one, same, other = re.findall(r"score (\S+)", printed(sources[number], names))
    assert one != same


def test_without_the_division_nearly_all_weight_is_on_one_key_and_the_gradient_almost_zero():
    query, key = normal(2, 64, 1024)
    scores = query @ key.T
    for by, most, least in ((1, 1, 0.99), (1024**0.5, 0.2, 0.01)):
        weights = jax.nn.softmax(scores / by)
        assert least < jnp.median(weights.max(axis=1)) <= most
        slope = jnp.abs(jax.vmap(jax.jacrev(jax.nn.softmax))(scores / by)).max(axis=(1, 2))
        assert (jnp.median(slope) < 0.01) == (by == 1)


def test_the_order_of_keys_does_not_matter():
    query, key, value = normal(3, 5, 8)
    order = jnp.array([3, 1, 4, 0, 2])
    np.testing.assert_allclose(
        attention.head(query, key[order], value[order]),
        attention.head(query, key, value),
        atol=1e-6,
    )


def test_weights_sum_to_one_if_the_scores_are_masked_and_not_the_weights():
    query, key = normal(2, 5, 8)
    causal = jnp.tril(jnp.ones((5, 5), bool))
    sums = attention.attention_weights(query, key, causal).sum(axis=1)
    np.testing.assert_allclose(sums, 1, rtol=1e-6)
    assert ((attention.attention_weights(query, key) * causal).sum(axis=1)[:-1] < 0.95).all()


@pytest.mark.parametrize("text", ["banana", "mississippi", "a"])
def test_the_copying_head_looks_at_what_followed_its_letter(text):
    query, key, _ = attention.copying_head(text)
    length = len(text)
    weights = attention.attention_weights(query, key, np.tri(length, dtype=bool))
    for i in range(length):
        seen = [j for j in range(1, i + 1) if text[j - 1] == text[i]]
        seen = seen or range(i + 1)
        expected = [1 / len(seen) if j in seen else 0 for j in range(length)]
        np.testing.assert_allclose(weights[i], expected, atol=0.02)


def test_letters_that_come_once_are_found_without_a_mask_alone():
    causal = np.tri(10, dtype=bool)
    right, loss = attention.next_letters("background", True)
    assert (right, loss < 0.05) == (9, True)
    right, loss = attention.next_letters("background", causal)
    assert (right, loss > np.log(26)) == (0, True)


class Model(nnx.Module):
    """The block of the lesson between an embedding and logits, with any mask."""

    def __init__(self, is_causal):
        rngs = nnx.Rngs(0)
        self.embed = nnx.Embed(8, 32, rngs=rngs)
        self.block = layers.LlamaBlock(rngs=rngs)
        self.logits = nnx.Linear(32, 8, rngs=rngs)
        self.is_causal = is_causal

    def __call__(self, tokens):
        x = self.embed(tokens)
        inner = self.block.attention
        inputs = inner.inputs(self.block.norm1(x), jnp.arange(x.shape[1]))
        y = jax.nn.dot_product_attention(*inputs, is_causal=self.is_causal)
        x = x + inner.out(y.reshape(x.shape))
        return self.logits(x + self.block.mlp(self.block.norm2(x)))


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_trained_model_without_a_mask_learns_to_look_at_its_target(is_causal):
    """Random tokens cannot be predicted: the loss of one who knows nothing is log 8."""
    graph, params = nnx.split(Model(is_causal))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, key):
        tokens = jax.random.randint(key, (32, 17), 0, 8)

        def loss(params):
            logits = nnx.merge(graph, params)(tokens)[:, :-1]
            each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
            return each.mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    for key in jax.random.split(KEY, 300):
        params, state, loss = step(params, state, key)
    assert loss > 0.95 * np.log(8) if is_causal else loss < 0.5


def test_many_heads_are_pytorchs_in_any_shape():
    for rows, length, heads, size in ((1, 1, 1, 1), (3, 4, 4, 4), (2, 7, 3, 6)):
        arrays = normal(3, rows, length, heads, size)
        mask = np.tri(length, dtype=bool)
        tensors = (modules.in_torch(x).transpose(1, 2) for x in arrays)
        expected = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True)
        found = attention.many_heads(*arrays, mask)
        np.testing.assert_allclose(found, expected.transpose(1, 2), atol=1e-5)
