"""Importing torchax changes PyTorch, so all runs in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """
import contextlib, copy, json
with contextlib.suppress(ImportError):
    import triton
import jax, jax.numpy as jnp, numpy as np, torch
from snippets.models import convolutions, modules, steps
from snippets.models import torchax as page


def far(a, b):
    return float(abs(np.asarray(a) - np.asarray(b)).max())


def error(function, *args):
    try:
        function(*args)
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"


def difference(module, x):
    return far(module(torch.tensor(x)).detach(), function(states, (jnp.asarray(x),)))


torch.manual_seed(0)
module, batches = modules.TorchBlock(dropout=0.0), modules.sequences()
found = {"torch": modules.train_torch(copy.deepcopy(module), batches).tolist()}
cnn, (rows, _) = convolutions.TorchCnn(), convolutions.image_batches(epochs=1)
trained = copy.deepcopy(cnn)
found["cnn of torch"] = convolutions.train_torch(trained, rows).tolist()
found["import"] = error(lambda: __import__("torchax"))
torchax = page.import_torchax()
env = torchax.default_env()

found["looked up as before"] = error(getattr, torch.ops.aten.prod, "dim_Dimname")
found["compile"] = error(torch.compile(torch.sin, backend="eager"), torch.ones(3))
param = torch.nn.Parameter(torch.ones(3))
param.grad = torch.ones(3)
found["adam"] = error(torch.optim.Adam([param]).step)
found["version"] = torch.__version__

states, function = torchax.extract_jax(module)
x = batches[0][0]
found["forward"] = difference(module, x)
found["numpy"] = error(function, states, (x,))
found["numpy, jit"] = far(module(torch.tensor(x)).detach(), jax.jit(function)(states, (x,)))
apply, params, stats = page.split_torch(module, env)
loss = steps.mean_squared(apply)
_, grads = steps.gradient_of(loss)(params, stats, batches[0])
torch.nn.functional.mse_loss(module(torch.tensor(x)), torch.tensor(batches[0][1])).backward()
found["gradients"] = {n: far(grads[n], p.grad) for n, p in module.named_parameters()}
opt_state = modules.OPTIMIZER.init(params)
step = steps.make_step(steps.gradient_of(loss), modules.OPTIMIZER)
before = [p.detach().numpy().copy() for p in module.parameters()]
found["jax"] = steps.train(step, params, stats, opt_state, batches)[-1].tolist()
after = [p.detach().numpy() for p in module.parameters()]
found["module is as before"] = all(map(np.array_equal, before, after))

apply, params, stats = page.split_torch(cnn, env)
step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), convolutions.OPTIMIZER)
start = jax.tree.map(jnp.copy, (params, stats))
opt_state = convolutions.OPTIMIZER.init(params)
data = [(np.moveaxis(images, -1, 1), labels) for images, labels in rows]
params, new, _, losses = steps.train(step, *start, opt_state, data)
found["cnn of jax"] = losses.tolist()
buffers = dict(trained.named_buffers())
found["updated"] = {n: far(new[n], buffers[n]) < 1e-3 for n in new}
found["kept"] = {n: far(new[n], stats[n]) == 0 for n in new}
evaluated, _ = apply(params, new, data[0][0], train=False)
with torch.no_grad():
    trained.eval()
    found["predicts"] = far(evaluated, trained(torch.tensor(data[0][0])))

three = jnp.array([1.0, -2.0, 3.0])
ways = {
    "in place": page.in_place,
    "its argument": lambda x: x.mul_(2),
    "branch": lambda x: x if x.sum() > 0 else -x,
    "index": lambda x: x[x > 0],
    "item": lambda x: x * x.sum().item(),
    "tensor": lambda x: x * torch.arange(3.0),
    "on device": lambda x: x * torch.arange(3.0, device=x.device),
    "wrong": lambda x: x + (1 if isinstance(x, torchax.tensor.Tensor) else 0),
}
found["ways"] = {}
for name, way in ways.items():
    view = torchax.interop.jax_view(way)
    found["ways"][name] = [page.outcome(way, f, three) for f in (view, jax.jit(view))]
found["argument"] = three.tolist()
found["tensor"] = error(torchax.interop.jax_view(ways["tensor"]), three)

dropout, ones = torchax.interop.jax_view(torch.nn.functional.dropout), jnp.ones(200)
found["eager"] = far(dropout(ones), dropout(ones))
drop, drop_by = jax.jit(dropout), jax.jit(page.keyed(dropout, env))
found["same mask"] = far(drop(ones), drop(ones))
found["leak"] = error(dropout, ones)
env.manual_seed(0)
key, other = jax.random.split(jax.random.key(0))
found["same key"] = far(drop_by(key, ones), drop_by(key, ones))
found["other key"] = far(drop_by(key, ones), drop_by(other, ones))
found["no leak"] = error(dropout, ones)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_the_release_is_imported_with_stand_ins_alone(found):
    assert found["import"].startswith("AttributeError: The underlying op of 'aten.prod' has no")
    # They are gone afterwards.
    assert found["looked up as before"].startswith("AttributeError")


def test_pytorch_takes_what_was_imported_for_an_accelerator(found):
    message = "RuntimeError: PyTorch is not linked with support for jax devices"
    assert found["compile"].startswith(f"InternalTorchDynamoError: {message}")
    later = tuple(map(int, found["version"].split(".")[:2])) >= (2, 15)
    assert found["adam"] == (message if later else None)


def test_outputs_and_gradients_are_those_of_pytorch(found):
    assert found["forward"] < 1e-5
    assert "must be Tensor, not numpy.ndarray" in found["numpy"]
    assert found["numpy, jit"] < 1e-5
    assert len(found["gradients"]) == 12 and max(found["gradients"].values()) < 1e-5


def test_losses_are_those_of_pytorch_and_the_module_is_left_alone(found):
    assert found["jax"] == pytest.approx(found["torch"], rel=1e-4)
    assert found["jax"][-1] < 0.9 * found["jax"][0]
    assert found["module is as before"]


def test_running_statistics_stay_as_they_were_and_predictions_are_wrong(found):
    assert found["cnn of jax"] == pytest.approx(found["cnn of torch"], rel=1e-4)
    for name, kept in found["kept"].items():
        assert kept == ("running" in name) and found["updated"][name] != kept, name
    assert found["predicts"] > 0.1


def test_what_a_module_may_do(found):
    both = ["equal", "equal"]
    assert found["ways"] == {
        "in place": both,
        "its argument": both,
        "branch": ["equal", "ConcretizationTypeError"],
        "index": ["equal", "NonConcreteBooleanIndexError"],
        "item": ["equal", "ConcretizationTypeError"],
        "tensor": ["AssertionError", "AssertionError"],
        "on device": both,
        "wrong": ["differs", "differs"],
    }
    assert found["argument"] == [1.0, -2.0, 3.0]
    assert found["tensor"].startswith("AssertionError: Expect a Tensor or a View but got")


def test_a_compiled_function_draws_once_unless_it_is_given_a_key(found):
    assert found["eager"] > 0 and found["same mask"] == 0
    assert found["leak"].startswith("UnexpectedTracerError")
    assert found["same key"] == 0 and found["other key"] > 0
    assert found["no leak"] is None
