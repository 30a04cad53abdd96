"""Wrong answers to the exercises on a model and its optimizer, and what is said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from snippets.learn.checks import model as checks
from snippets.learn.exercises import model as exercises
from snippets.learn.solutions import model as solutions
from snippets.programs.practice import problem_of


def ported(state, x, epsilon=1e-5, approximate=False, transposed=True, norm=True):
    y = jax.nn.standardize(x, epsilon=epsilon) if norm else x
    y = y * state["0.weight"] + state["0.bias"]
    y = y @ (state["1.weight"].T if transposed else state["1.weight"]) + state["1.bias"]
    y = jax.nn.gelu(y, approximate=approximate)
    return y @ state["3.weight"].T + state["3.bias"]


def not_transposed(state, x):
    return ported(state, x, transposed=False)


def approximated(state, x):
    return ported(state, x, approximate=True)


def with_another_epsilon(state, x):
    return ported(state, x, epsilon=1e-6)


def without_norm(state, x):
    return ported(state, x, norm=False)


def nothing_decayed(rate, decay):
    return optax.adam(rate)


def coupled(rate, decay):
    def mask(params):
        return jax.tree.map(lambda leaf: leaf.ndim > 1, params)

    return optax.chain(optax.add_decayed_weights(decay, mask), optax.sgd(1.0))


def vectors_frozen(rate, decay):
    def mask(params):
        return jax.tree.map(lambda leaf: leaf.ndim > 1, params)

    other = optax.masked(optax.set_to_zero(), lambda p: jax.tree.map(lambda m: not m, mask(p)))
    return optax.chain(optax.adamw(rate, weight_decay=decay, mask=mask), other)


def all_trained(optimizer):
    return optimizer


def none_trained(optimizer):
    return optax.set_to_zero()


def last_updates_alone(optimizer):
    def update(grads, state, params):
        return optimizer.update(grads["last"], state, params["last"])

    return optax.GradientTransformation(lambda params: optimizer.init(params["last"]), update)


def by_another_optimizer(optimizer):
    return solutions.last_layer_alone(optax.sgd(0.1))


WRONG = [
    (checks.check_head, not_transposed, "it raises TypeError"),
    (checks.check_head, approximated, "`jax.nn.gelu` approximates by default"),
    (checks.check_head, with_another_epsilon, "the epsilon of PyTorch's layer norm"),
    (checks.check_head, without_norm, "from PyTorch"),
    (checks.check_with_decay, nothing_decayed, "the kernel is not decayed"),
    (checks.check_with_decay, coupled, "is decayed by -0.5"),
    (checks.check_with_decay, exercises.with_decay, "the scale of the norm is decayed as well"),
    (checks.check_with_decay, vectors_frozen, "does not move as Adam moves it"),
    (checks.check_last_layer_alone, all_trained, "the first layer moves"),
    (checks.check_last_layer_alone, none_trained, "the last layer does not move"),
    (checks.check_last_layer_alone, last_updates_alone, "another structure"),
    (checks.check_last_layer_alone, by_another_optimizer, "as the optimizer would"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


def test_the_head_is_that_of_pytorch():
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    module = torch.nn.Sequential(torch.nn.LayerNorm(8), *layers)
    state = {name: value.numpy() for name, value in module.state_dict().items()}
    x = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    expected = module(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(solutions.head(state, jnp.array(x)), expected, atol=1e-5)
