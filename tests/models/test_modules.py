import inspect
import itertools
import json
import os
import pickle
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from snippets.models import modules

KEY = jax.random.key(0)
# The code that is Keras's alone; the module would import all of the libraries.
KERAS_WITH_JAX = f"""
import json, pickle, sys
import jax, keras, numpy as np
STEPS, WARMUP, RATE, DECAY = {modules.STEPS, modules.WARMUP, modules.RATE, modules.DECAY}
{inspect.getsource(modules.KerasBlock)}
{inspect.getsource(modules.into_keras)}
{inspect.getsource(modules.train_keras)}
params, batches = pickle.load(sys.stdin.buffer)
model = KerasBlock(dropout=0.0)
assert isinstance(model(batches[0][0]), jax.Array)
print(json.dumps(train_keras(into_keras(model, params), batches).tolist()))
"""


@pytest.fixture(scope="module")
def batches():
    return modules.sequences()


@pytest.fixture(scope="module")
def rows():
    return modules.table()


def new_block(dropout=0.0):
    torch.manual_seed(0)
    return modules.TorchBlock(dropout=dropout)


def new_network():
    torch.manual_seed(1)
    return modules.TorchNetwork()


def nnx_block(module, dropout=0.0):
    model = modules.NnxBlock(dropout=dropout, rngs=nnx.Rngs(0))
    return modules.into_nnx(model, modules.from_torch(module))


def equinox_block(module, dropout=0.0):
    return modules.into_equinox(modules.first_equinox(KEY, dropout=dropout), module)


def keras_block(module, dropout=0.0, seed=None):
    model = modules.KerasBlock(dropout=dropout, seed=seed)
    model(np.zeros((8, 16, 32), np.float32))
    return modules.into_keras(model, modules.from_torch(module))


def keras_network(module):
    return modules.into_keras(modules.keras_network(), modules.from_torch(module))


def equinox_network(module):
    model, state = eqx.nn.make_with_state(modules.EquinoxNetwork)(key=KEY)
    return modules.into_equinox(model, module), state


def test_first_parameters_have_the_shapes_of_pytorch():
    ours = jax.tree.map(jnp.shape, modules.first_block(KEY))
    theirs = jax.tree.map(jnp.shape, modules.from_torch(new_block()))
    assert ours == theirs


def test_first_weights_have_variance_one_over_inputs():
    layer = modules.first_linear(KEY, 400, 100)
    np.testing.assert_allclose(layer["kernel"].var() * 400, 1, rtol=0.05)
    assert not layer["bias"].any()


def test_weights_are_copied():
    module = new_block()
    params, equinox = modules.from_torch(module), equinox_block(module)
    before = np.array(params["up"]["kernel"])
    with torch.no_grad():
        for tensor in module.parameters():
            tensor.zero_()
    np.testing.assert_array_equal(params["up"]["kernel"], before)
    np.testing.assert_array_equal(equinox.up.weight, before.T)


def test_blocks_give_the_same(batches):
    module, x = new_block(), batches[0][0]
    expected = module(modules.in_torch(x))
    keys = jax.random.split(KEY, len(x))
    for y in (
        modules.block(modules.from_torch(module), x),
        nnx_block(module)(x),
        jax.vmap(equinox_block(module))(x, keys),
        keras_block(module)(x),
        keras_block(module, dropout=0.1)(x),
    ):
        assert modules.largest_difference(y, expected) < 5e-6


def test_blocks_give_the_same_losses(batches):
    module = new_block()
    losses = {
        "plain": modules.train(modules.from_torch(module), batches, KEY, 0.0),
        "nnx": modules.train_nnx(nnx_block(module), batches),
        "equinox": modules.train_equinox(equinox_block(module), batches, KEY),
        "keras": modules.train_keras(keras_block(module), batches),
    }
    expected = modules.train_torch(module, batches)
    assert expected.shape == (50,) and expected[-1] < 0.9 * expected[0]
    for of_steps in losses.values():
        np.testing.assert_allclose(of_steps, expected, rtol=1e-4)


def test_training_clips_and_warms_up(batches):
    module = new_block()
    x, target = map(torch.from_numpy, batches[0])
    torch.nn.functional.mse_loss(module(x), target).backward()
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    assert norm > 1
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1.0, modules.WARMUP, modules.STEPS)
    ours = [modules.warmup_cosine(n) for n in range(modules.STEPS)]
    np.testing.assert_allclose(ours, [schedule(n) for n in range(modules.STEPS)], atol=1e-6)


def test_the_same_keys_give_the_same_masks(batches):
    module, x = new_block(), batches[0][0]
    keys = jax.random.split(KEY, len(x))
    params = modules.from_torch(module)
    plain = jax.vmap(modules.block, in_axes=(None, 0, 0))(params, x, keys)
    equinox = jax.vmap(equinox_block(module, dropout=0.1))(x, keys)
    assert modules.largest_difference(plain, equinox) < 5e-6
    assert modules.largest_difference(plain, modules.block(params, x)) > 0.1


def test_drop_keeps_the_mean_and_the_share():
    x = modules.drop(KEY, jnp.ones(10_000), 0.25)
    np.testing.assert_allclose((x == 0).mean(), 0.25, atol=0.02)
    np.testing.assert_allclose(x.mean(), 1, atol=0.03)
    np.testing.assert_allclose(x.max(), 4 / 3, rtol=1e-6)


def test_who_draws_anew(batches):
    x = batches[0][0]
    module, model = new_block(0.1), modules.NnxBlock(rngs=nnx.Rngs(0))
    for f, draws in (
        (lambda: module(modules.in_torch(x)), True),
        (lambda: model(x), True),
        (lambda: modules.block(modules.first_block(KEY), x, KEY), False),
    ):
        assert modules.same_twice(f) != draws
    of_keras = modules.KerasBlock()
    assert not modules.same_twice(lambda: of_keras(x, training=True))
    assert modules.same_twice(lambda: of_keras(x))
    module.eval(), model.eval()
    assert modules.same_twice(lambda: module(modules.in_torch(x)))
    assert modules.same_twice(lambda: model(x))
    training = modules.first_equinox(KEY)
    predicting = eqx.nn.inference_mode(training)
    assert predicting.drop.inference and not training.drop.inference
    assert modules.same_twice(lambda: jax.vmap(predicting)(x))


def test_networks_give_the_same_and_so_do_losses(rows):
    module = new_network()
    stats = jnp.zeros(16), jnp.ones(16)
    model = modules.into_nnx(modules.NnxNetwork(rngs=nnx.Rngs(0)), modules.from_torch(module))
    stats, plain = modules.train_network(modules.from_torch(module), stats, rows)
    trained, state, equinox = modules.train_equinox_network(*equinox_network(module), rows)
    of_keras = keras_network(module)
    losses = plain, modules.train_nnx(model, rows), equinox, modules.train_keras(of_keras, rows)
    expected = modules.train_torch(module, rows)
    assert expected[-1] < expected[0] / 2
    for of_steps in losses:
        np.testing.assert_allclose(of_steps, expected, rtol=1e-3)
    var = module.norm.running_var.numpy()
    np.testing.assert_allclose(stats[1], var, rtol=2e-3)
    biased = 0.9**50 + (var - 0.9**50) * 31 / 32
    np.testing.assert_allclose(model.norm.var[...], biased, rtol=2e-3)
    np.testing.assert_allclose(of_keras.layers[1].moving_variance, biased, rtol=2e-3)
    _, hidden = state.get(trained.norm.batch_state_index)
    np.testing.assert_allclose(hidden, biased, rtol=2e-3)


def test_plain_network_predicts_as_pytorch(rows):
    module = new_network()
    params, stats = modules.from_torch(module), (jnp.zeros(16), jnp.ones(16))
    for x, _ in rows[:3]:
        module(modules.in_torch(x))
        _, stats = modules.network(params, stats, x, train=True)
    module.eval()
    y, same = modules.network(params, stats, rows[3][0], train=False)
    assert same is stats
    assert modules.largest_difference(y, module(modules.in_torch(rows[3][0]))) < 1e-5


def test_keras_changes_its_statistics_only_while_training(rows):
    module, x = new_network(), rows[0][0]
    model = keras_network(module)
    module.eval()
    assert modules.largest_difference(model(x), module(modules.in_torch(x))) < 5e-6
    assert not np.any(model.layers[1].moving_mean)
    module.train()
    y = model(x, training=True)
    assert modules.largest_difference(y, module(modules.in_torch(x))) < 5e-6
    mean = module.norm.running_mean.numpy()
    np.testing.assert_allclose(model.layers[1].moving_mean, mean, rtol=1e-4, atol=1e-6)


def test_keras_has_no_weights_before_its_first_call(batches):
    model = modules.KerasBlock()
    with pytest.raises(ValueError, match="longer"):
        modules.into_keras(model, modules.from_torch(new_block()))
    model(batches[0][0])
    assert len(model.trainable_variables) == 12


def test_the_same_keras_code_computes_with_jax(batches):
    module = new_block()
    command = [sys.executable, "-c", KERAS_WITH_JAX]
    given = pickle.dumps((modules.from_torch(module), batches))
    variables = os.environ | {"KERAS_BACKEND": "jax"}
    result = subprocess.run(command, env=variables, input=given, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    losses = json.loads(result.stdout)
    np.testing.assert_allclose(losses, modules.train_torch(module, batches), rtol=1e-4)


def test_the_same_seed_gives_keras_the_same_masks(batches):
    module, x = new_block(), batches[0][0]
    y, same, other = (keras_block(module, 0.1, seed)(x, training=True) for seed in (1, 1, 2))
    assert modules.largest_difference(y, same) == 0
    assert modules.largest_difference(y, other) > 0.1


def test_defaults_differ():
    found = modules.defaults()
    assert found["epsilon of layer norm"]["PyTorch"] == 1e-5
    assert found["epsilon of layer norm"]["NNX"] == 1e-6
    assert found["batch norm keeps of the old"] == {
        "PyTorch": 0.9,
        "NNX": 0.99,
        "Equinox": 0.99,
        "Keras": 0.99,
    }
    assert found["gelu is approximate"] == {"PyTorch": False, "JAX": True, "Keras": False}
    of_adam = found["epsilon of AdamW"]
    assert of_adam["PyTorch"] == of_adam["Optax"] < of_adam["Keras"]
    assert found["weight decay of AdamW"]["Optax"] < found["weight decay of AdamW"]["PyTorch"]


def test_statistics_are_lost_under_jax_jit_and_kept_under_nnx_jit(rows):
    model, x = modules.NnxNetwork(rngs=nnx.Rngs(0)), rows[0][0]
    forgetting = modules.predict_and_forget(model, x)
    assert not model.norm.mean[...].any()
    keeping = modules.predict_and_keep(model, x)
    assert model.norm.mean[...].any()
    assert modules.largest_difference(forgetting, keeping) < 1e-6


def test_every_way_to_call_changes_all_arrays_alike():
    ways = modules.ways_to_call(4)
    equinox = modules.EquinoxStack(2)
    for name in ("jit", "nnx_split_once", "filter_jit", "equinox_arrays"):
        leaves = jax.tree.leaves(eqx.filter(ways[name](), eqx.is_array))
        assert sorted(float(leaf[0]) for leaf in leaves) == pytest.approx([0, 0, 0.999, 0.999])
    model = modules.NnxStack(2, rngs=nnx.Rngs(0))
    steps = itertools.count(1)
    for step in (
        nnx.jit(modules.shrink_nnx),
        nnx.jit(modules.shrink_nnx, graph=False),
    ):
        step(model)
        expected = 0.999 ** next(steps)
        np.testing.assert_allclose(model.layers[1].scale[...], expected, rtol=1e-6)
    cached = nnx.cached_partial(nnx.jit(modules.shrink_nnx), model)
    cached()
    np.testing.assert_allclose(model.layers[0].scale[...], 0.999**3, rtol=1e-6)
    assert len(jax.tree.leaves(eqx.filter(equinox, eqx.is_array))) == 4
    assert {"nnx_jit", "nnx_jit_tree", "nnx_cached"} < ways.keys()


def test_errors(raises_declared):
    x = jnp.ones((4, 8))
    mlp = eqx.nn.MLP(8, 1, width_size=4, depth=1, key=KEY)
    raises_declared(modules.norm_in_jit, x)
    raises_declared(modules.grad_of_generator, x)
    raises_declared(modules.list_of_layers)
    raises_declared(modules.nnx_dropout, x)
    raises_declared(modules.assign_weight)
    raises_declared(modules.jit_of_mlp, mlp, x[0])
    raises_declared(modules.optimizer_of_mlp, mlp)
    raises_declared(modules.equinox_dropout, x)
    raises_declared(modules.norm_of_one, x[0])
    raises_declared(modules.dropout_twice, jax.random.key(7), x)


def test_ways_out_of_the_errors(rows):
    x = jnp.ones(8)
    mlp = eqx.nn.MLP(8, 1, width_size=4, depth=1, key=KEY)
    np.testing.assert_allclose(eqx.filter_jit(mlp)(x), mlp(x), rtol=1e-5)
    modules.OPTIMIZER.init(eqx.filter(mlp, eqx.is_inexact_array))
    assert not modules.replace_weight().weight.any()
    layer = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    nnx.grad(lambda layer: layer(x).sum())(layer)
    norm = nnx.BatchNorm(8, rngs=nnx.Rngs(0))
    norm.eval()
    assert modules.largest_difference(norm(rows[0][0]), rows[0][0]) < 1e-3
