"""The network of the lesson in PyTorch: the same as in JAX, with the same losses."""

import jax
import numpy as np
import optax
import torch

from snippets.learn import model
from snippets.models import steps


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
