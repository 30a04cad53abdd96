"""The real model: the same as PyTorch's in every layer, in training, and after saving."""

import functools
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


TINY = real_model.Config(heads=4, layers=2, width=32, inner=64, tokens=64, positions=16, types=2)


def tiny_params():
    leaves, tree = jax.tree.flatten(real_model.shapes(TINY))
    keys = jax.random.split(jax.random.key(0), len(leaves))
    return jax.tree.unflatten(
        tree, [jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    )


@pytest.fixture(scope="module", autouse=True)
def full_precision():
    with jax.default_matmul_precision("highest"):
        yield


@pytest.fixture(scope="module")
def params():
    return real_model.load_params(FOLDER / "model.safetensors", CONFIG)


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
    assert set(tensors) - set(named) == real_model.UNUSED
    np.testing.assert_array_equal(tensors["embeddings.position_ids"], np.arange(512)[None])
    groups = real_model.grouped(tensors)
    assert groups["encoder.layer.*.intermediate.dense.weight"] == ((1536, 384), 6)
    assert sum(count for _, count in groups.values()) == len(tensors)


def test_config_is_that_of_the_file_and_the_default():
    assert CONFIG == real_model.Config()
    assert CONFIG[:6] == (12, 1e-12, False, 6, 384, 1536)


def test_a_tensor_that_the_table_forgets_raises():
    tensors = {name: None for name in jax.tree.leaves(real_model.names())}
    real_model.check_names(tensors, real_model.names())
    more = tensors | {"encoder.layer.6.output.dense.weight": None}
    with pytest.raises(
        ValueError, match=r"not in the table: \['encoder.layer.6.output.dense.weight"
    ):
        real_model.check_names(more, real_model.names())
    tensors.pop("embeddings.LayerNorm.bias")
    with pytest.raises(ValueError, match=r"not in the file: \['embeddings.LayerNorm.bias'\]"):
        real_model.check_names(tensors, real_model.names())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda p: p["layers"][1]["widen"].update(weight=jnp.zeros((64, 32))), "widen.*64, 32"),
        (lambda p: p["embeddings"].update(types=jnp.zeros((2, 32), jnp.bfloat16)), "bfloat16"),
        (lambda p: p["layers"][0]["mix_norm"].update(bias=jnp.zeros(33)), "mix_norm.*33"),
    ],
)
def test_an_array_of_another_shape_or_dtype_raises(changed, message):
    params = tiny_params()
    real_model.check_shapes(params, real_model.shapes(TINY))
    changed(params)
    with pytest.raises(ValueError, match=message):
        real_model.check_shapes(params, real_model.shapes(TINY))


def test_a_file_of_another_size_is_refused(tmp_path):
    path = tmp_path / "tiny.safetensors"
    real_model.save_params(tiny_params(), path)
    again = real_model.load_params(path, TINY)
    assert real_model.bits_equal(again, tiny_params())
    with pytest.raises(ValueError, match=r"tokens.*\(64, 32\), not float32 \(65, 32\)"):
        real_model.load_params(path, TINY._replace(tokens=65))
    with pytest.raises(ValueError, match="in the file, not in the table"):
        real_model.load_params(path, TINY._replace(layers=1))


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


def test_vectors_agree_and_have_norm_one(params, model, batch):
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


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_the_step_is_data_parallel_on_a_mesh(kind):
    rng = np.random.default_rng(0)
    batch = [
        (rng.integers(0, 64, (8, n), np.int32), np.arange(n) < rng.integers(2, n, (8, 1)))
        for n in (5, 9)
    ]
    loss = functools.partial(real_model.pair_loss, config=TINY)
    optimizer = optax.sgd(1e-2)

    def steps(loss, params, batch):
        train_step, losses = real_model.make_step(optimizer, loss), []
        opt_state = optimizer.init(params)
        for _ in range(3):
            params, opt_state, value = train_step(params, opt_state, batch)
            losses.append(float(value))
        return params, losses

    expected, losses = steps(loss, tiny_params(), batch)
    axis_type = getattr(jax.sharding.AxisType, kind)
    mesh = jax.make_mesh((8,), ("data",), axis_types=(axis_type,))
    with jax.set_mesh(mesh):
        sharded = jax.device_put(batch, jax.NamedSharding(mesh, jax.P("data")))
        params = jax.device_put(tiny_params(), jax.NamedSharding(mesh, jax.P()))
        if kind == "Explicit":
            with pytest.raises(Exception, match="out_sharding"):
                jax.jit(loss)(params, sharded)
            loss = jax.sharding.auto_axes(loss, out_sharding=jax.P())
        params, found = steps(loss, params, sharded)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    assert params["embeddings"]["tokens"].sharding.is_fully_replicated
    assert all(
        np.allclose(one, other, atol=1e-4)
        for one, other in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True)
    )


def test_tuning_gives_the_losses_of_pytorch_and_comes_back(params, tokenizer, tmp_path):
    sides = zip(*real_model.PAIRS, strict=True)
    batch = [real_model.tokenize(tokenizer, side) for side in sides]
    before = real_model.embed(params, *batch[1], CONFIG)
    tuned, losses = real_model.tune(params, batch, CONFIG, steps=3)
    np.testing.assert_array_equal(real_model.embed(params, *batch[1], CONFIG), before)
    model = real_model.torch_model(FOLDER)
    theirs = real_model.tune_torch(model, batch, steps=3)
    np.testing.assert_allclose(losses, theirs, rtol=1e-3)
    assert losses[-1] < losses[0] / 2

    path = tmp_path / "tuned.safetensors"
    real_model.save_params(tuned, path)
    assert real_model.bits_equal(real_model.load_params(path, CONFIG), tuned)
    assert not real_model.bits_equal(params, tuned)
    state = {name: torch.from_numpy(x) for name, x in load_file(path).items()}
    fresh = real_model.torch_model(FOLDER)
    keys = fresh.load_state_dict(state, strict=False)
    assert not keys.unexpected_keys
    assert sorted(keys.missing_keys) == ["pooler.dense.bias", "pooler.dense.weight"]
    ours = real_model.embed(tuned, *batch[1], CONFIG)
    vectors = real_model.torch_embed(fresh, *batch[1]).detach().numpy()
    np.testing.assert_allclose(ours, vectors, atol=ROUNDING)
    assert abs(ours - before).max() > 0.01


def test_tuning_decays_as_pytorch_does(params, tokenizer):
    sides = zip(*real_model.PAIRS, strict=True)
    batch = [real_model.tokenize(tokenizer, side) for side in sides]
    # No sentence has these tokens, so decay alone moves their rows of the table.
    unused = np.setdiff1d(
        np.arange(CONFIG.tokens), np.concatenate([ids.ravel() for ids, _ in batch])
    )
    rate = 0.01
    tuned, _ = real_model.tune(params, batch, CONFIG, steps=2, rate=rate)
    model = real_model.torch_model(FOLDER)
    real_model.tune_torch(model, batch, steps=2, rate=rate)
    theirs = model.get_input_embeddings().weight.detach().numpy()[unused]
    ours = np.asarray(tuned["embeddings"]["tokens"])[unused]
    before = np.asarray(params["embeddings"]["tokens"])[unused]
    np.testing.assert_allclose(ours, theirs, rtol=4 * np.finfo(np.float32).eps)
    np.testing.assert_allclose(ours, before * (1 - rate * 0.01) ** 2, rtol=1e-6)


def test_the_table_is_printed_in_columns(capsys):
    real_model.print_table({"a": [1e-6], "b": [2.0]}, ["layer 1"])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a", "b"],
        ["layer", "1", "1e-06", "2e+00"],
    ]
