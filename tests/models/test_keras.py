"""Keras chooses its backend when it is imported, so all runs in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """
import json
import jax, keras, numpy as np, torch
from snippets.models import keras as page
from snippets.models import modules

torch.manual_seed(0)
module, batches = modules.TorchBlock(dropout=0.0), modules.sequences()
params, _ = modules.from_torch(module)
x, target = batches[0]


def made(dropout=0.0, seed=None):
    block = page.KerasBlock(dropout=dropout, seed=seed)
    block(x)
    return page.into_keras(block, params)


def far(a, b):
    return float(abs(np.asarray(a) - np.asarray(b)).max())


found = {"backend": keras.backend.backend()}
new = page.KerasBlock()
found["weights before a call"] = len(new.weights)
try:
    page.into_keras(new, params)
except ValueError as error:
    found["too few"] = str(error)
block, dropping = made(), made(0.1)
y = block(x)
found["is jax"] = isinstance(y, jax.Array)
expected = module(torch.tensor(x)).detach().numpy()
found["forward"] = far(y, expected), far(dropping(x), expected)
found["drawn"] = far(dropping(x, training=True), dropping(x, training=True))
found["same seed"] = far(made(0.1, 1)(x, training=True), made(0.1, 1)(x, training=True))
grads = page.gradient(block, batches[0])
torch.nn.functional.mse_loss(module(torch.tensor(x)), torch.tensor(target)).backward()
theirs = [p.grad.numpy() for p in module.parameters()]
found["gradients"] = [
    far(ours, of_torch.T if of_torch.ndim == 2 else of_torch)
    for ours, of_torch in zip(grads, theirs, strict=True)
]
found["keras"] = page.train_keras(block, batches).tolist()
found["torch"] = modules.train_torch(module, batches).tolist()
found["defaults"] = page.keras_defaults()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    variables = os.environ | {"KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_arrays_are_those_of_jax(found):
    assert found["backend"] == "jax"
    assert found["is jax"]


def test_there_are_no_weights_before_the_first_call(found):
    assert found["weights before a call"] == 0
    assert "longer" in found["too few"]


def test_the_block_gives_what_torch_gives(found):
    assert max(found["forward"]) < 5e-6


def test_dropout_draws_again_and_follows_a_seed(found):
    assert found["drawn"] > 0.1
    assert found["same seed"] == 0


def test_gradients_of_jax_are_those_of_torch(found):
    assert len(found["gradients"]) == 12
    assert max(found["gradients"]) < 1e-4


def test_losses_are_those_of_torch(found):
    assert found["keras"][-1] < 0.9 * found["keras"][0]
    np.testing.assert_allclose(found["keras"], found["torch"], rtol=1e-4)


def test_defaults_differ(found):
    for setting, values in found["defaults"].items():
        assert values["PyTorch"] != values["Keras"], setting
