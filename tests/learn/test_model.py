"""The network of the lesson in PyTorch: the same as in JAX, with the same losses."""

import itertools

import jax
import numpy as np
import optax
import torch
from flax import nnx

from snippets.learn import model
from snippets.models import steps
from tests.book import pages


def test_the_module_is_the_function():
    params = steps.init_mlp(jax.random.key(0))
    x = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
    found = model.torch_mlp(params)(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(found, steps.mlp(params, x), rtol=1e-4, atol=1e-5)


def test_both_train_alike():
    training, _ = steps.digits()
    data = steps.batches(*training, epochs=1)
    params = steps.init_mlp(jax.random.key(0))
    losses_torch = model.train_torch(model.torch_mlp(params), data, 1e-3)
    optimizer = optax.adam(1e-3)
    loss = steps.cross_entropy(steps.stateless(steps.mlp))
    step = steps.make_step(steps.gradient_of(loss), optimizer)
    *_, losses = steps.train(step, params, {}, optimizer.init(params), data)
    assert losses[-1] < 0.6 * losses[0]
    np.testing.assert_allclose(losses, losses_torch, rtol=1e-3)


def test_the_step_of_flax_trains_as_that_of_the_book():
    training, _ = steps.digits()
    data = steps.batches(*training, epochs=1)
    own = steps.NnxMlp(rngs=nnx.Rngs(0))
    apply, params, stats = steps.split_nnx(steps.NnxMlp(rngs=nnx.Rngs(0)))
    optimizer = optax.adam(1e-3)
    of_flax = nnx.Optimizer(own, optimizer, wrt=nnx.Param)
    found = [float(model.nnx_step(own, of_flax, *batch)) for batch in data]
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), optimizer)
    *_, losses = steps.train(step, params, stats, optimizer.init(params), data)
    assert found[-1] < 0.6 * found[0]
    np.testing.assert_allclose(found, losses, rtol=1e-3)


def test_the_modules_of_the_lesson_can_be_called_after_their_training(capsys):
    """The step donates the arrays that a module holds."""
    names = {}
    cells = [cell.node.source for cell in pages.page("learn/model").cells]
    for source in itertools.takewhile(lambda source: "practice" not in source, cells):
        exec(source, names)
    said = capsys.readouterr().out
    assert "it holds deleted arrays" in said
    assert "after train, the same twice: False\nafter eval, the same twice: True" in said
    held = jax.tree.leaves(names["nnx"].state(names["model"]))
    assert not any(array.is_deleted() for array in held)
