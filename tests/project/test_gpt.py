"""The small GPT: causal, the same as in PyTorch, and the same with a cache."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.models import steps
from snippets.project import gpt

CONFIG = gpt.Config(length=16, width=32, heads=2, layers=2)


@functools.cache
def params():
    return gpt.init_gpt(jax.random.key(0), CONFIG)


@functools.cache
def text():
    return gpt.source()


def batch(rows=4, number=0):
    return gpt.batches(text(), CONFIG.length, rows)[number]


def test_the_text_is_python_and_all_of_it_are_tokens():
    assert len(text()) > 2_000_000 and text().max() < CONFIG.tokens
    assert b"\ndef " in text().tobytes()
    assert gpt.decode(gpt.encode("def f(x):")[0]) == "def f(x):"


def test_a_target_is_the_token_behind_and_epochs_have_their_order():
    tokens, targets = batch()
    assert tokens.dtype == np.int32 and (tokens[:, 1:] == targets[:, :-1]).all()
    data = gpt.batches(text()[:1000], CONFIG.length, 4)
    whole = len(gpt.Windows(text()[:1000], CONFIG.length)) // 4
    first, second = (np.stack([data[n + e * whole][0] for n in range(whole)]) for e in (0, 1))
    assert not (first == second).all()
    again = gpt.batches(text()[:1000], CONFIG.length, 4)
    assert (again[1][0] == data[1][0]).all()


def test_no_token_sees_those_behind_it():
    tokens, _ = batch()
    for position in (5, CONFIG.length - 1):
        changed = tokens.copy()
        changed[:, position] = (changed[:, position] + 1) % CONFIG.tokens
        one, other = (gpt.gpt(params(), x, CONFIG.heads) for x in (tokens, changed))
        np.testing.assert_array_equal(one[:, :position], other[:, :position])
        assert (one[:, position] != other[:, position]).any()


def test_the_module_of_pytorch_is_the_function():
    tokens, _ = batch()
    expected = gpt.TorchGpt(params(), CONFIG)(torch.tensor(tokens).long()).detach().numpy()
    np.testing.assert_allclose(gpt.gpt(params(), tokens, CONFIG.heads), expected, atol=1e-5)


def test_both_train_alike():
    data = [batch(number=number) for number in range(5)]
    losses_torch = gpt.train_torch(gpt.TorchGpt(params(), CONFIG), data, steps=10)
    loss = steps.cross_entropy(steps.stateless(lambda p, x: gpt.gpt(p, x, CONFIG.heads)))
    optimizer = gpt.make_optimizer(10)
    step = steps.make_step(steps.gradient_of(loss), optimizer)
    start = jax.tree.map(jnp.copy, params())
    *_, losses = steps.train(step, start, {}, optimizer.init(start), data)
    assert losses[-1] < losses[0] - 0.1
    np.testing.assert_allclose(losses, losses_torch, rtol=1e-3)


def test_kernels_alone_are_decayed():
    optimizer = gpt.make_optimizer(10)
    zeros = jax.tree.map(jnp.zeros_like, params())
    state = optimizer.init(params())
    for _ in range(2):
        updates, state = optimizer.update(zeros, state, params())
    moved = {path[-1].key for path, x in jax.tree.leaves_with_path(updates) if np.abs(x).max() > 0}
    assert moved == {"kernel"}


def test_a_run_returns_a_curve_that_falls():
    data = gpt.batches(text(), CONFIG.length, 8)
    found, curve = gpt.train_gpt(params(), data, text()[-40_000:], CONFIG, steps=20)
    assert [number for number, _, _ in curve][:2] == [0, 2] and curve[-1][0] == 19
    assert curve[-1][1] < curve[0][1] and curve[-1][2] < curve[0][2]
    assert not params()["embedding"].is_deleted()
    assert jax.tree.structure(found) == jax.tree.structure(params())


def test_a_cache_changes_no_logit():
    tokens, _ = batch()
    at_once = gpt.gpt(params(), tokens, CONFIG.heads)
    cache = gpt.empty_cache(params(), CONFIG, len(tokens))
    for position in range(CONFIG.length):
        logits, cache = gpt.next_logits(
            params(), cache, tokens[:, position], position, CONFIG.heads
        )
        np.testing.assert_allclose(logits, at_once[:, position], atol=1e-4)


def test_greedy_is_what_pytorch_writes():
    prompt = gpt.encode("def f")
    found = gpt.generate(params(), prompt, jax.random.key(0), 0.0, CONFIG, CONFIG.length)
    expected = gpt.greedy_torch(gpt.TorchGpt(params(), CONFIG), prompt, CONFIG.length)
    np.testing.assert_array_equal(found, expected)
    assert gpt.decode(found[0]).startswith("def f")


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_a_key_draws_one_text_and_rows_differ(temperature):
    prompt = np.concatenate([gpt.encode("def ")] * 2)
    draw = functools.partial(gpt.generate, params(), prompt)
    one, again, other = (
        draw(jax.random.key(seed), temperature, CONFIG, CONFIG.length) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any() and (one[0] != one[1]).any()
