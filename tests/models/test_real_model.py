"""The real model: the same as PyTorch's in every layer, in training, and after saving."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from safetensors.numpy import load_file

from snippets.models import real_model

FOLDER = real_model.model_folder()
CONFIG = real_model.read_config(FOLDER)
# Rounding grows to about 3e-6 over six layers of states of size 1.
ROUNDING = 2e-5


@pytest.fixture(scope="module", autouse=True)
def full_precision():
    with jax.default_matmul_precision("highest"):
        yield


@pytest.fixture(scope="module")
def params():
    return real_model.load_params(FOLDER / "model.safetensors")


@pytest.fixture(scope="module")
def model():
    return real_model.torch_model(FOLDER)


@pytest.fixture(scope="module")
def tokenizer():
    return real_model.read_tokenizer(FOLDER)


@pytest.fixture(scope="module")
def batch(tokenizer):
    return real_model.tokenize(tokenizer, real_model.LIBRARY)


@pytest.fixture(scope="module")
def reference(model, batch):
    return real_model.torch_states(model, *batch)


def differences(params, config, batch, reference):
    states = real_model.hidden_states(params, *batch, config)
    return real_model.largest_differences(states, reference, batch[1])


def test_the_table_names_all_of_the_file_but_three():
    tensors = load_file(FOLDER / "model.safetensors")
    named = jax.tree.leaves(real_model.names())
    assert len(named) == len(set(named)) == 101
    left = set(tensors) - set(named)
    assert left == {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}
    np.testing.assert_array_equal(tensors["embeddings.position_ids"], np.arange(512)[None])
    groups = real_model.grouped(tensors)
    assert groups["encoder.layer.*.intermediate.dense.weight"] == ((1536, 384), 6)
    assert sum(count for _, count in groups.values()) == len(tensors)


def test_config_is_that_of_the_file_and_the_default():
    assert CONFIG == real_model.Config() == (12, 1e-12, False)


def test_every_layer_agrees_with_pytorch(params, batch, reference):
    found = differences(params, CONFIG, batch, reference)
    assert len(found) == 7 and max(found) < ROUNDING


def test_one_sentence_needs_no_batch(params, batch):
    ids, mask = batch
    together = real_model.embed(params, ids, mask, CONFIG)
    alone = real_model.embed(params, ids[0], mask[0], CONFIG)
    np.testing.assert_allclose(alone, together[0], atol=ROUNDING)
    mapped = jax.vmap(real_model.embed, in_axes=(None, 0, 0, None))
    np.testing.assert_allclose(mapped(params, ids, mask, CONFIG), together, atol=ROUNDING)


def test_padding_changes_nothing(params, tokenizer):
    short = real_model.tokenize(tokenizer, real_model.QUESTIONS[:1])
    longer = [np.pad(x, ((0, 0), (0, 7))) for x in short]
    vectors = [real_model.embed(params, *each, CONFIG) for each in (short, longer)]
    np.testing.assert_allclose(*vectors, atol=ROUNDING)


def test_vectors_agree_and_have_length_one(params, model, batch):
    ours = real_model.embed(params, *batch, CONFIG)
    theirs = real_model.torch_embed(model, *batch).detach().numpy()
    np.testing.assert_allclose(ours, theirs, atol=ROUNDING)
    np.testing.assert_allclose(jnp.linalg.norm(ours, axis=1), 1, rtol=1e-5)


def test_answers_are_found_by_meaning(params, tokenizer, batch):
    vectors = real_model.embed(params, *batch, CONFIG)
    questions = real_model.tokenize(tokenizer, real_model.QUESTIONS)
    asked = real_model.embed(params, *questions, CONFIG)
    assert (asked @ vectors.T).argmax(axis=1).tolist() == [0, 1, 6]


def test_a_transposed_weight_shows_from_its_layer_on(params, batch, reference):
    wrong = real_model.transposed(params, 3, "query")
    found = differences(wrong, CONFIG, batch, reference)
    assert max(found[:3]) < ROUNDING and min(found[3:]) > 0.1
    alone = real_model.layers_alone(wrong, reference, batch[1], CONFIG)
    found = real_model.largest_differences(alone, reference[1:], batch[1])
    assert found.pop(2) > 0.1 and max(found) < ROUNDING


def test_transposing_leaves_the_parameters_alone(params, batch, reference):
    real_model.transposed(params, 3, "query")
    assert max(differences(params, CONFIG, batch, reference)) < ROUNDING


def test_a_wrong_epsilon_shows_in_the_embeddings(params, batch, reference):
    found = differences(params, CONFIG._replace(epsilon=1e-5), batch, reference)
    assert found[0] > 1e-3


def test_a_wrong_gelu_shows_in_layer_1(params, batch, reference):
    found = differences(params, CONFIG._replace(approximate=True), batch, reference)
    assert found[0] < ROUNDING and min(found[1:]) > 2e-4


@pytest.mark.parametrize(
    ("mistake", "parts"),
    [
        (lambda p, c: (p, c), set()),
        (lambda p, c: (real_model.transposed(p, 3, "query"), c), {"query"}),
        (lambda p, c: (p, c._replace(epsilon=1e-5)), {"mix_norm", "narrow_norm"}),
        (lambda p, c: (p, c._replace(approximate=True)), set()),
    ],
)
def test_a_wrong_part_is_found(params, model, mistake, parts):
    wrong, config = mistake(params, CONFIG)
    found = real_model.part_differences(wrong, model, 3, config)
    assert {part for part, difference in found.items() if difference > ROUNDING} == parts


def test_the_defaults_of_jax_are_the_mistakes(params):
    x = jnp.array([[0.01, -0.01, 0.02]])
    default = jax.nn.standardize(x)
    np.testing.assert_array_equal(default, jax.nn.standardize(x, epsilon=1e-5))
    np.testing.assert_array_equal(jax.nn.gelu(x), jax.nn.gelu(x, approximate=True))
    exact = torch.nn.functional.gelu(torch.from_numpy(np.array(x)))
    np.testing.assert_allclose(jax.nn.gelu(x, approximate=False), exact, rtol=1e-5)


@pytest.mark.parametrize("change", [{"epsilon": 1e-5}, {"approximate": True}])
def test_a_small_mistake_leaves_the_answers_as_they_are(params, tokenizer, batch, change):
    config = CONFIG._replace(**change)
    questions = real_model.tokenize(tokenizer, real_model.QUESTIONS)
    asked, vectors = (
        real_model.pool(real_model.hidden_states(params, *each, config)[-1], each[1])
        for each in (questions, batch)
    )
    assert (asked @ vectors.T).argmax(axis=1).tolist() == [0, 1, 6]


def test_the_defaults_of_weight_decay_differ():
    defaults = [
        inspect.signature(adamw).parameters["weight_decay"].default
        for adamw in (torch.optim.AdamW, optax.adamw)
    ]
    assert defaults == [0.01, 0.0001]


def test_tuning_gives_the_losses_of_pytorch_and_comes_back(params, tokenizer, tmp_path):
    sides = [text for side in zip(*real_model.PAIRS, strict=True) for text in side]
    batch = real_model.tokenize(tokenizer, sides)
    before = real_model.embed(params, *batch, CONFIG)
    tuned, losses = real_model.tune(params, *batch, CONFIG, steps=3)
    np.testing.assert_array_equal(real_model.embed(params, *batch, CONFIG), before)
    model = real_model.torch_model(FOLDER)
    theirs = real_model.tune_torch(model, *batch, steps=3)
    np.testing.assert_allclose(losses, theirs, rtol=1e-3)
    assert losses[-1] < losses[0] / 2

    path = tmp_path / "tuned.safetensors"
    real_model.save_params(tuned, path)
    assert real_model.bits_equal(real_model.load_params(path), tuned)
    assert not real_model.bits_equal(params, tuned)
    state = {name: torch.from_numpy(x) for name, x in load_file(path).items()}
    fresh = real_model.torch_model(FOLDER)
    keys = fresh.load_state_dict(state, strict=False)
    assert not keys.unexpected_keys
    assert sorted(keys.missing_keys) == ["pooler.dense.bias", "pooler.dense.weight"]
    ours = real_model.embed(tuned, *batch, CONFIG)
    vectors = real_model.torch_embed(fresh, *batch).detach().numpy()
    np.testing.assert_allclose(ours, vectors, atol=ROUNDING)
    assert abs(ours - before).max() > 0.01


def test_the_table_is_printed_in_columns(capsys):
    real_model.print_table({"a": [1e-6], "b": [2.0]}, ["layer 1"])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a", "b"],
        ["layer", "1", "1e-06", "2e+00"],
    ]
