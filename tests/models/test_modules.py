import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from snippets.models import modules, steps

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def batches():
    return modules.sequences()


def new_block(dropout=0.0):
    torch.manual_seed(0)
    return modules.TorchBlock(dropout=dropout)


def params_of(module):
    return modules.from_torch(module)[0]


def nnx_block(module, dropout=0.0):
    model = modules.NnxBlock(dropout=dropout, rngs=nnx.Rngs(0))
    return modules.into_nnx(model, *modules.from_torch(module))


def equinox_block(module, dropout=0.0):
    return modules.into_equinox(modules.first_equinox(KEY, dropout=dropout), module)


def test_first_parameters_have_the_shapes_of_pytorch():
    ours = jax.tree.map(jnp.shape, modules.first_block(KEY))
    theirs = jax.tree.map(jnp.shape, params_of(new_block()))
    assert ours == theirs


def test_first_weights_have_variance_one_over_inputs():
    layer = modules.first_linear(KEY, 400, 100)
    np.testing.assert_allclose(layer["kernel"].var() * 400, 1, rtol=0.05)
    assert not layer["bias"].any()


def test_weights_are_copied():
    module = new_block()
    params, equinox = params_of(module), equinox_block(module)
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
        modules.block(params_of(module), x),
        nnx_block(module)(x),
        jax.vmap(equinox_block(module))(x, keys),
    ):
        assert modules.largest_difference(y, expected) < 5e-6


def test_blocks_give_the_same_losses(batches):
    module = new_block()
    losses = [
        modules.train(params_of(module), batches, KEY, 0.0),
        modules.train_nnx(nnx_block(module), batches),
        modules.train_equinox(equinox_block(module), batches, KEY),
    ]
    expected = modules.train_torch(module, batches)
    assert expected.shape == (50,) and expected[-1] < 0.9 * expected[0]
    for of_steps in losses:
        np.testing.assert_allclose(of_steps, expected, rtol=1e-4)


def test_first_parameters_train_with_dropout(batches):
    losses = modules.train(modules.first_block(KEY), batches, KEY)
    assert losses[-1] < losses[0]


def test_what_a_plain_step_donates_stays_alive_in_a_module(batches):
    params = params_of(new_block())
    model = modules.into_nnx(modules.NnxBlock(dropout=0.0, rngs=nnx.Rngs(0)), params, {})
    modules.train(params, batches[:1], KEY)
    assert params["up"]["kernel"].is_deleted()
    assert np.isfinite(modules.train_nnx(model, batches[:1])).all()


def test_a_parameter_of_two_layers_is_trained_as_one(batches):
    model = modules.NnxBlock(dropout=0.0, rngs=nnx.Rngs(0))
    model.norm2 = model.norm1
    modules.train_nnx(model, batches[:2])
    assert model.norm2.scale is model.norm1.scale
    assert (model.norm1.bias[...] != 0).any()


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
    params = params_of(module)
    plain = jax.vmap(modules.block, in_axes=(None, 0, 0))(params, x, keys)
    equinox = jax.vmap(equinox_block(module, dropout=0.1))(x, keys)
    assert modules.largest_difference(plain, equinox) < 5e-6
    assert modules.largest_difference(plain, modules.block(params, x)) > 0.1


def test_drop_keeps_the_mean_and_the_share():
    x = modules.drop(KEY, jnp.ones(10_000), 0.25)
    np.testing.assert_allclose((x == 0).mean(), 0.25, atol=0.02)
    np.testing.assert_allclose(x.mean(), 1, atol=0.03)
    np.testing.assert_allclose(x.max(), 4 / 3, rtol=1e-6)


def test_who_draws_again(batches):
    x = batches[0][0]
    module, model = new_block(0.1), modules.NnxBlock(rngs=nnx.Rngs(0))
    for f, draws in (
        (lambda: module(modules.in_torch(x)), True),
        (lambda: model(x), True),
        (lambda: modules.block(modules.first_block(KEY), x, KEY), False),
    ):
        assert modules.same_twice(f) != draws
    module.eval(), model.eval()
    assert modules.same_twice(lambda: module(modules.in_torch(x)))
    assert modules.same_twice(lambda: model(x))
    training = modules.first_equinox(KEY)
    predicting = eqx.nn.inference_mode(training)
    assert predicting.drop.inference and not training.drop.inference
    assert modules.same_twice(lambda: jax.vmap(predicting)(x))


def test_defaults_differ():
    found = modules.defaults()
    assert found["epsilon of layer norm"]["PyTorch"] == 1e-5
    assert found["epsilon of layer norm"]["NNX"] == 1e-6
    assert found["gelu is approximate"] == {"PyTorch": False, "JAX": True}
    decay = found["weight decay of AdamW"]
    assert decay["Optax"] < decay["PyTorch"]


def every_layer():
    """Return a torch module with each kind of layer of the table, in a nested module."""
    torch.manual_seed(1)
    inner = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    return torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(5, 3),
            "linear": torch.nn.Linear(3, 4),
            "line": torch.nn.Conv1d(3, 4, 3),
            "norm": torch.nn.LayerNorm(4),
            "rows": torch.nn.BatchNorm1d(4),
            "inner": inner,
        }
    )


class EveryLayer(nnx.Module):
    """The same layers in NNX."""

    def __init__(self, rngs):
        self.embed = nnx.Embed(5, 3, rngs=rngs)
        self.linear = nnx.Linear(3, 4, rngs=rngs)
        self.line = nnx.Conv(3, 4, 3, padding="VALID", rngs=rngs)
        self.norm = nnx.LayerNorm(4, epsilon=1e-5, rngs=rngs)
        self.rows = nnx.BatchNorm(4, rngs=rngs)
        conv = nnx.Conv(3, 4, (3, 3), padding="VALID", rngs=rngs)
        self.inner = nnx.List([conv, nnx.BatchNorm(4, rngs=rngs)])


def in_torch_channels_first(x):
    return torch.tensor(np.moveaxis(x, -1, 1).copy())


def channels_last(y):
    return torch.moveaxis(y, 1, -1)


def test_each_kind_of_layer_gives_what_it_gives_in_torch():
    theirs = every_layer()
    with torch.no_grad():
        for number, norm in enumerate((theirs["norm"], theirs["rows"], theirs["inner"][1])):
            norm.weight.add_(number + 1)
            norm.bias.add_(number + 2)
        theirs["rows"].running_mean.add_(3)
        theirs["inner"][1].running_var.add_(4)
    ours = modules.into_nnx(EveryLayer(nnx.Rngs(0)), *modules.from_torch(theirs))
    ours.eval(), theirs.eval()
    rng = np.random.default_rng(0)
    ids = np.arange(5)
    x, line = rng.normal(size=(6, 3)), rng.normal(size=(2, 7, 3))
    image, wide = rng.normal(size=(2, 7, 7, 3)), rng.normal(size=(6, 4))
    x, line, image, wide = (np.float32(a) for a in (x, line, image, wide))
    for y, expected in (
        (ours.embed(ids), theirs["embed"](torch.tensor(ids))),
        (ours.linear(x), theirs["linear"](torch.tensor(x))),
        (ours.line(line), channels_last(theirs["line"](in_torch_channels_first(line)))),
        (ours.norm(wide), theirs["norm"](torch.tensor(wide))),
        (ours.rows(wide), theirs["rows"](torch.tensor(wide))),
        (
            ours.inner[1](ours.inner[0](image)),
            channels_last(theirs["inner"](in_torch_channels_first(image))),
        ),
    ):
        assert modules.largest_difference(y, expected) < 1e-5


def test_a_transposed_kernel_of_a_convolution_fits_and_is_wrong():
    module = torch.nn.Conv2d(4, 4, 3)
    params, stats = modules.from_torch(module)
    reversed_axes = params | {"kernel": jnp.array(module.weight.detach().numpy().T)}
    image = np.random.default_rng(0).normal(size=(1, 5, 5, 4)).astype(np.float32)
    right, wrong = (
        modules.into_nnx(nnx.Conv(4, 4, (3, 3), rngs=nnx.Rngs(0)), each, stats)(image)
        for each in (params, reversed_axes)
    )
    assert modules.largest_difference(right, wrong) > 0.1


def test_a_layer_alone_has_names_without_a_path():
    params, stats = modules.from_torch(torch.nn.Linear(2, 3))
    assert jax.tree.map(jnp.shape, params) == {"kernel": (2, 3), "bias": (3,)}
    assert stats == {}


def test_names_and_shapes_that_do_not_fit(raises_declared):
    raises_declared(modules.unknown_layer)
    params, stats = modules.from_torch(new_block())
    raises_declared(modules.names_that_do_not_fit, params)
    model = modules.NnxBlock(rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match=r"up.bias: \(64,\) in the model, None given"):
        modules.into_nnx(model, params | {"up": {"kernel": params["up"]["kernel"]}}, stats)
    with pytest.raises(ValueError, match=r"mean: None in the model, \(64,\) given"):
        modules.into_nnx(model, params, {"mean": jnp.zeros(64)})
    with pytest.raises(ValueError, match=r"up.weight: \(64, 32\) in the model, \(48, 32\) given"):
        modules.into_equinox(modules.first_equinox(KEY), torch_block_of_width_48())
    np.testing.assert_array_equal(model.norm1.scale[...], 1)


def torch_block_of_width_48():
    module = new_block()
    module.up = torch.nn.Linear(32, 48)
    return module


def test_update_takes_names_and_shapes_that_do_not_fit():
    layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    kernel = np.array(layer.kernel[...])
    nnx.update(layer, {"weight": jnp.zeros((3, 2)), "bias": jnp.zeros(7)})
    assert layer.weight.shape == (3, 2) and layer.bias.shape == (7,)
    np.testing.assert_array_equal(layer.kernel[...], kernel)


def test_statistics_are_lost_under_jax_jit_and_kept_under_nnx_jit(batches):
    model, x = nnx.BatchNorm(32, rngs=nnx.Rngs(0)), batches[0][0]
    forgetting = modules.predict_and_forget(model, x)
    assert not model.mean[...].any()
    keeping = modules.predict_and_keep(model, x)
    assert model.mean[...].any()
    assert modules.largest_difference(forgetting, keeping) < 1e-6


def test_dropout_repeats_itself_under_jax_jit_only():
    layer, x = nnx.Dropout(0.5, rngs=nnx.Rngs(0)), jnp.ones((4, 32))
    assert modules.same_twice(lambda: modules.predict_and_forget(layer, x))
    assert not modules.same_twice(lambda: modules.predict_and_keep(layer, x))
    apply, params, stats = steps.split_nnx(layer)
    one, stats = jax.jit(apply)(params, stats, x)
    two, _ = jax.jit(apply)(params, stats, x)
    assert modules.largest_difference(one, two)


TRANSFORMED = {
    "jit": lambda f, model: jax.jit(f)(model),
    "grad": lambda f, model: jax.grad(f)(model),
    "checkpoint": lambda f, model: jax.checkpoint(f)(model),
    "eval_shape": lambda f, model: jax.eval_shape(f, model),
    "scan": lambda f, model: jax.lax.scan(lambda m, _: (m, f(m)), model, length=2),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_which_modules_of_equinox_transformations_take(name):
    def of_ones(model):
        return model(jnp.ones(8)).sum()

    TRANSFORMED[name](of_ones, eqx.nn.Linear(8, 1, key=KEY))
    with pytest.raises(TypeError):
        TRANSFORMED[name](of_ones, eqx.nn.MLP(8, 1, width_size=4, depth=1, key=KEY))


def test_errors(raises_declared, batches):
    x = jnp.ones((4, 8))
    mlp = eqx.nn.MLP(8, 1, width_size=4, depth=1, key=KEY)
    raises_declared(modules.donate_twice, modules.first_block(KEY), batches[0], KEY)
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


def test_fixes_of_the_errors():
    x = jnp.ones(8)
    mlp = eqx.nn.MLP(8, 1, width_size=4, depth=1, key=KEY)
    np.testing.assert_allclose(eqx.filter_jit(mlp)(x), mlp(x), rtol=1e-5)
    modules.OPTIMIZER.init(eqx.filter(mlp, eqx.is_inexact_array))
    assert not modules.replace_weight().weight.any()
    layer = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    nnx.grad(lambda layer: layer(x).sum())(layer)


def test_a_parameter_that_two_layers_share_is_refused():
    tied = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    with pytest.raises(ValueError, match=r"1\.weight and 0\.weight are one parameter"):
        modules.from_torch(tied)
