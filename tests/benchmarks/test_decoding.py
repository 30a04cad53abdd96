import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

from snippets.benchmarks import decoding, transformer

SIZE = transformer.Size(layers=2, width=128, heads=4, vocabulary=512, length=16, batch=2)
FIRST = np.zeros(1, np.int32)
COUNT = 12


@pytest.fixture(scope="module")
def numbers():
    return transformer.draw(SIZE)


@pytest.fixture(scope="module")
def weights(numbers):
    return jax.device_put(numbers[0])


@pytest.fixture(scope="module")
def expected(weights):
    """Return tokens for which all earlier ones are computed again each time."""
    scores = jax.jit(transformer.logits, static_argnames=("heads", "dtype"))
    tokens = np.zeros((1, COUNT + 1), np.int32)
    for last in range(COUNT):
        found = scores(weights, tokens, SIZE.heads, jnp.float32)
        tokens[0, last + 1] = found[0, last].argmax()
    return tokens[0, 1:].tolist()


def cache_of(weights, capacity=SIZE.length):
    return decoding.empty_cache(weights, SIZE.heads, 1, capacity)


@pytest.fixture
def decoder(numbers):
    return decoding.decoder_torch(numbers, SIZE, torch.float32, SIZE.length)


def test_the_tokens_are_those_without_a_cache(weights, expected):
    assert len(set(expected)) > 4
    for write, number in ((decoding.write, range(COUNT)), (decoding.write_in_one, COUNT)):
        tokens, _ = write(weights, cache_of(weights), FIRST, SIZE.heads, number)
        assert tokens[0].tolist() == expected


def test_and_those_of_pytorch_eager_and_compiled_as_one_graph(decoder, expected):
    first = torch.tensor(FIRST, dtype=torch.int64)
    assert decoding.write_torch(decoder, first, COUNT)[0].tolist() == expected
    counter = CompileCounter()
    compiled = torch.compile(decoder, backend=counter, fullgraph=True)
    assert decoding.write_torch(compiled, first, COUNT)[0].tolist() == expected
    assert counter.frame_count == 1


def test_texts_are_the_same_each_time(weights, numbers, expected):
    texts = decoding.texts_jax(weights, SIZE.heads, SIZE.length, COUNT)
    args = numbers, SIZE, torch.float32, SIZE.length
    with torch.compiler.set_stance("force_eager"):
        first = torch.tensor(FIRST, dtype=torch.int64)
        texts |= decoding.texts_torch(decoding.decoders_torch(*args), COUNT, first)
        for key, text in texts.items():
            assert [text()[0].tolist() for _ in range(2)] == [expected] * 2, key
    assert {"steps@jax", "scan@jax", "eager@torch"} <= texts.keys()


def test_positions_lie_on_the_device_before_the_clock_starts(weights, monkeypatch):
    given = []

    def noted(weights, cache, token, position, heads):
        given.append(position)
        return token, cache

    monkeypatch.setattr(decoding, "next_token", noted)
    decoding.texts_jax(weights, SIZE.heads, SIZE.length, 2)["steps@jax"]()
    decoding.steps_of_jax(weights, SIZE.heads, SIZE.length, 2)()
    assert [int(each) for each in given] == [0, 1, 0]
    assert all(isinstance(each, jax.Array) for each in given)


def test_single_steps_write_the_same(weights, decoder, expected):
    steps = [
        decoding.steps_of_jax(weights, SIZE.heads, SIZE.length, SIZE.length),
        decoding.steps_of_torch(decoder, SIZE.length, torch.tensor(FIRST, dtype=torch.int64)),
    ]
    for step in steps:
        assert [int(step()[0]) for _ in range(COUNT)] == expected


def test_after_the_last_position_comes_the_first(weights, decoder):
    first = torch.tensor(FIRST, dtype=torch.int64)
    steps = (
        decoding.steps_of_jax(weights, SIZE.heads, SIZE.length, 3),
        decoding.steps_of_torch(decoder, 3, first),
    )
    found = [[int(step()[0]) for _ in range(7)] for step in steps]
    assert found[0] == found[1]


def test_the_cache_is_updated_in_place(weights):
    cache = cache_of(weights, 512)
    given = weights, cache, FIRST, 0
    plan = decoding.next_token.lower(*given, SIZE.heads).compile().memory_analysis()
    assert plan.alias_size_in_bytes == sum(array.nbytes for array in cache)
    _, new = decoding.next_token(*given, SIZE.heads)
    assert all(array.is_deleted() for array in cache)
    decoding.write_in_one(weights, new, FIRST, SIZE.heads, 2)
    assert all(array.is_deleted() for array in new)


def test_only_what_is_new_changes():
    stacked = jnp.zeros((2, 1, 3, 5, 4))
    new = jnp.ones((1, 3, 4))
    found = decoding.kept(stacked, new, 1, 2)
    assert found[1, :, :, 2].all() and found.sum() == new.sum()


def test_later_positions_are_not_seen():
    q, keys, values = np.random.default_rng(0).normal(size=(3, 1, 2, 6, 4)).astype("f4")
    q = q[:, :, 0]
    found = decoding.attend(q, keys, values, 3)
    scores = np.einsum("bhw,bhcw->bhc", q, keys[:, :, :4]) / 2
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(
        found, np.einsum("bhc,bhcw->bhw", shares, values[:, :, :4]), atol=1e-6
    )
    short = decoding.attend(*map(jnp.bfloat16, (q, keys, values)), 3)
    assert short.dtype == jnp.bfloat16


def test_a_new_position_needs_no_new_program_and_a_new_length_does(weights, numbers):
    decoding.next_token.clear_cache()
    step = decoding.steps_of_jax(weights, SIZE.heads, SIZE.length, SIZE.length)
    for _ in range(6):
        step()
    assert decoding.next_token._cache_size() == 1
    step = decoding.steps_that_grow(weights, SIZE.heads, 4)
    for _ in range(3):
        step()
    assert decoding.next_token._cache_size() == 4


def test_caches_that_grow_write_the_same(weights, numbers):
    first = torch.tensor(FIRST, dtype=torch.int64)
    decoder = decoding.decoder_torch(numbers, SIZE, torch.float32, 4)
    steps = (
        decoding.steps_that_grow(weights, SIZE.heads, 4),
        decoding.steps_that_grow_torch(decoder, first),
    )
    found = [[int(step()[0]) for _ in range(5)] for step in steps]
    assert found[0] == found[1]
    assert decoder.caches[1].values.shape == (1, 4, 9, 32)


def test_an_array_grows_by_a_position_at_its_end():
    found = decoding.one_longer(jnp.ones((2, 1, 2, 3, 4)))
    assert found.shape == (2, 1, 2, 4, 4)
    assert found[..., :3, :].all() and not found[..., 3, :].any()


def test_each_call_is_timed_after_one_that_is_not():
    calls = itertools.count()
    seconds = decoding.latencies(lambda: np.array(next(calls)), 5)
    assert (len(seconds), next(calls)) == (5, 6)
    assert all(each > 0 for each in seconds)


def test_the_median_and_what_is_rarely_passed():
    text = decoding.percentiles([0.001] * 60 + [0.002] * 39 + [1.0])
    assert text.startswith("half within 1.00 ms, 99 of 100 within 11.98 ms")
