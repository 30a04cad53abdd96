"""Generation for requests: the tokens of the plain loop, from few programs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.models import requests
from snippets.programs.practice import counting
from snippets.project import gpt
from snippets.training.sharded_parameters import sharded_over

CONFIG = gpt.Config(length=48, width=32, heads=2, layers=2)
KEY = jax.random.key(0)
TEXT = gpt.encode("for request in requests: serve(it)")[0]
COUNT = 10


@functools.cache
def params():
    return gpt.init_gpt(jax.random.key(1), CONFIG)


@functools.cache
def plain(length):
    """Return the tokens behind so many of the text, by the model without a cache."""
    model = functools.partial(gpt.gpt, params(), heads=CONFIG.heads)
    return requests.grow(model, TEXT[:length], COUNT)


def test_arrays_that_grow_are_compiled_for_each_token_and_pytorch_writes_the_same():
    model = jax.jit(functools.partial(gpt.gpt, heads=CONFIG.heads))
    with counting() as counts:
        found = requests.grow(lambda tokens: model(params(), tokens), TEXT[:5], COUNT)
    assert counts.compilations.count("jit(gpt)") == COUNT
    expected = gpt.greedy_torch(gpt.TorchGpt(params(), CONFIG), TEXT[None, :5], 5 + COUNT)
    np.testing.assert_array_equal(found, expected[0, 5:])
    # Not the same one again and again.
    assert len(set(found.tolist())) > 2


def test_the_logits_of_a_piece_are_those_of_the_whole_text():
    whole = gpt.gpt(params(), TEXT[None, :20], CONFIG.heads)[0]
    # What the cache holds behind a position is of no account.
    cache = jax.tree.map(lambda x: x + 7, requests.first_cache(params(), CONFIG))
    for start, end in (0, 12), (12, 13), (13, 20):
        logits, cache = requests.extend(params(), cache, TEXT[start:end], start, heads=CONFIG.heads)
        np.testing.assert_allclose(logits, whole[start:end], atol=1e-4)


@pytest.mark.parametrize("length", [1, 7, 16])
def test_padding_changes_no_token(length):
    for size in length, 16, 32:
        found = requests.respond(params(), TEXT[:length], KEY, CONFIG, COUNT, size)
        np.testing.assert_array_equal(found, plain(length))


def test_prompts_are_padded_to_the_next_power_of_two():
    sizes = [requests.power_of_two(TEXT[:n]) for n in (1, 2, 3, 4, 5, 8, 9, 17)]
    assert sizes == [1, 2, 4, 4, 8, 8, 16, 32]
    assert requests.padded(TEXT[:3], 5).tolist() == [*TEXT[:3], 0, 0]


def test_there_is_a_program_for_each_size_and_one_to_decode():
    prompts = [TEXT[:n] for n in (1, 3, 4, 6, 7, 13)]
    for size, programs in (len, 6), (requests.power_of_two, 4), (lambda tokens: 16, 1):
        with counting() as counts:
            for prompt in prompts:
                requests.respond(params(), prompt, KEY, CONFIG, COUNT, size(prompt))
        assert counts.compilations.count("jit(prefill)") == programs
        assert counts.compilations.count("jit(decode)") == 1


def batch():
    prompts = [TEXT[:n] for n in (2, 9, 16)]
    rows = np.stack([requests.padded(prompt, 16) for prompt in prompts])
    return rows, np.array([len(prompt) for prompt in prompts], np.int32)


def test_rows_of_a_batch_are_answered_as_each_alone():
    rows, lengths = batch()
    keys = jax.random.split(KEY, len(rows))
    found = requests.respond_to_all(params(), rows, lengths, keys, CONFIG, COUNT)
    for row, length in zip(found, lengths, strict=True):
        np.testing.assert_array_equal(row, plain(int(length)))


@pytest.mark.parametrize("kind", list(jax.sharding.AxisType)[:2])
@pytest.mark.parametrize(("shape", "names"), [((4,), ("data",)), ((2, 4), ("data", "model"))])
def test_rows_on_several_devices_are_answered_as_on_one(shape, names, kind):
    rows = np.stack([TEXT[:8]] * 4 + [TEXT[8:16]] * 4)
    arguments = rows, np.arange(1, 9), jax.random.split(KEY, 8)

    def respond(params, *arguments):
        return requests.respond_to_all(params, *arguments, CONFIG, 5, top_k=4)

    expected = respond(params(), *arguments)
    devices = jax.devices("cpu")[: np.prod(shape)]
    mesh = jax.make_mesh(shape, names, (kind,) * len(shape), devices=devices)
    with jax.set_mesh(mesh):
        held = jax.device_put(params(), sharded_over(mesh, params()))
        arguments = jax.device_put(arguments, jax.P("data"))
        chosen = jax.sharding.auto_axes(respond, out_sharding=jax.P("data"))
        np.testing.assert_array_equal(chosen(held, *arguments), expected)


def test_drawn_tokens_depend_on_the_key_of_a_request_alone():
    rows, lengths = batch()
    keys = jax.random.split(KEY, len(rows))
    sampling = {"temperature": 0.8, "top_k": 5}
    found = requests.respond_to_all(params(), rows, lengths, keys, CONFIG, COUNT, **sampling)
    for row, tokens, length, key in zip(found, rows, lengths, keys, strict=True):
        alone = requests.respond(params(), tokens[:length], key, CONFIG, COUNT, 32, **sampling)
        np.testing.assert_array_equal(row, alone)
        assert not np.array_equal(row, plain(int(length)))
    other = requests.respond_to_all(params(), rows, lengths, keys[::-1], CONFIG, COUNT, **sampling)
    assert not np.array_equal(found, other)


def test_drawn_tokens_are_those_of_a_plain_loop_with_a_key_for_each_position():
    model = jax.jit(functools.partial(gpt.gpt, heads=CONFIG.heads))
    # The logits lie within 0.2: with a temperature of 1 its inverse would give the same tokens.
    temperature, top_k, text = 0.1, 16, TEXT[:7]
    for _ in range(COUNT):
        likeliest = jnp.argsort(-model(params(), text[None])[0, -1])[:top_k]
        logits = model(params(), text[None])[0, -1, likeliest]
        own = jax.random.fold_in(KEY, len(text))
        text = np.append(text, likeliest[jax.random.categorical(own, logits / temperature)])
    found = requests.respond(
        params(), TEXT[:7], KEY, CONFIG, COUNT, 16, temperature=temperature, top_k=top_k
    )
    np.testing.assert_array_equal(found, text[7:])


def test_padding_in_front_without_a_mask_changes_the_logits():
    bare = gpt.gpt(params(), TEXT[None, :8], CONFIG.heads)[0, -1]
    left = gpt.gpt(params(), np.pad(TEXT[:8], (4, 0))[None], CONFIG.heads)[0, -1]
    assert np.abs(left - bare).max() > 0.01


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, 6), (0.5, 3), (2.0, 1)])
def test_the_likeliest_few_are_drawn_as_often_as_in_pytorch(temperature, top_k):
    logits = np.random.default_rng(0).normal(size=6).astype(np.float32)
    many = 4000
    keys = jax.random.split(KEY, many)
    draw = jax.vmap(lambda key: requests.draw(key, logits, temperature, top_k))
    ours = np.bincount(draw(keys), minlength=6) / many
    generator = torch.Generator().manual_seed(0)
    drawn = [
        requests.draw_torch(generator, torch.tensor(logits), temperature, top_k).item()
        for _ in range(many)
    ]
    theirs = np.bincount(drawn, minlength=6) / many
    np.testing.assert_allclose(ours, theirs, atol=0.04)
    assert set(np.flatnonzero(ours)) == set(np.argsort(logits)[-top_k:])


@pytest.mark.parametrize("ahead", [1, 3])
def test_guesses_change_no_token_and_good_ones_save_runs(ahead):
    big = params(), CONFIG
    rounded = jax.tree.map(lambda x: x.astype(jnp.float8_e4m3fn).astype(x.dtype), params())
    other = gpt.init_gpt(jax.random.key(2), CONFIG._replace(layers=1))
    runs = {}
    drafts = {
        "itself": big,
        "rounded": (rounded, CONFIG),
        "other": (other, CONFIG._replace(layers=1)),
    }
    for name, small in drafts.items():
        found, runs[name] = requests.speculate(small, big, TEXT[:9], COUNT, ahead)
        np.testing.assert_array_equal(found, plain(9))
    # The first run gives one token, and each later one at most all guesses and one more.
    assert runs["itself"] == 1 + -(-(COUNT - 1) // (ahead + 1))
    assert runs["itself"] <= runs["rounded"] <= runs["other"] <= COUNT


@pytest.mark.parametrize("top_k", [0, -1, 129])
def test_to_draw_from_no_token_or_from_more_than_there_are_is_refused(top_k):
    config = gpt.Config(length=32, width=32, layers=2)
    params, key = gpt.init_gpt(jax.random.key(0), config), jax.random.key(1)
    words = f"top_k is {top_k}: draw from 1 to 128 tokens"
    with pytest.raises(ValueError, match=words):
        requests.respond(params, TEXT[:4], key, config, 20, 8, top_k=top_k)
    rows, lengths = np.zeros((2, 4), np.int32), np.array([4, 2])
    with pytest.raises(ValueError, match=words):
        keys = jax.random.split(key)
        requests.respond_to_all(params, rows, lengths, keys, config, 20, 1.0, top_k)


def test_what_has_no_position_is_refused():
    config = gpt.Config(length=32, width=32, layers=2)
    params, key = gpt.init_gpt(jax.random.key(0), config), jax.random.key(1)
    words = "do not fit into a model of 32 positions"
    with pytest.raises(ValueError, match=f"^44 tokens {words}"):
        requests.respond(params, TEXT[:4], key, config, 40, 16)
    with pytest.raises(ValueError, match=f"^48 tokens {words}"):
        requests.respond(params, TEXT[:4], key, config, 20, 48)
    with pytest.raises(ValueError, match=r"^9 tokens do not fit into 8$"):
        requests.respond(params, TEXT[:9], key, config, 20, 8)
    model = params, config
    for empty in (
        lambda: requests.respond(params, TEXT[:0], key, config, 20, 8),
        lambda: requests.speculate(model, model, TEXT[:0], 20),
    ):
        with pytest.raises(ValueError, match="an empty prompt: begin with"):
            empty()
    rows, keys = np.zeros((2, 16), np.int32), jax.random.split(key, 2)
    with pytest.raises(ValueError, match=f"^36 tokens {words}"):
        requests.respond_to_all(params, rows, np.full(2, 4), keys, config, 20)
    with pytest.raises(ValueError, match=f"^38 tokens {words}"):
        requests.speculate((params, config), (params, config), TEXT[:4], 30, 4)
