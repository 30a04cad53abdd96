"""A training step and inference, as they come and tuned."""

import collections
import functools
import logging
import re
from unittest import mock

import jax
import numpy as np
import torch

from snippets.benchmarks.race import on_host, torch_tensor
from snippets.benchmarks.training_step import (
    FREE,
    MODELS,
    RATE,
    channels_first,
    error_of,
)
from snippets.models.profile import silence_kineto


def mlp_module():
    """Return the MLP as a PyTorch module, (batch, 64) to (batch, 10)."""
    return torch.nn.Sequential(
        torch.nn.Linear(64, 256),
        torch.nn.Tanh(),
        torch.nn.Linear(256, 256),
        torch.nn.Tanh(),
        torch.nn.Linear(256, 10),
    )


def cnn_module():
    """Return the CNN as a PyTorch module.

    It maps (batch, 3, 32, 32) to (batch, 10).
    """
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=2, bias=False),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2, bias=False),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 10),
    )


PROGRAM = "## Call CompiledFxGraph"
MODULES = {"mlp": mlp_module, "cnn": cnn_module}


def load(module, weights):
    """Write NumPy's weights, with axes (..., in, out), into a module."""
    with torch.no_grad():
        for parameter, array in zip(
            module.parameters(), weights.values(), strict=True
        ):
            if array.ndim > 1:
                array = np.moveaxis(array, (-1, -2), (0, 1))
            parameter.copy_(torch.from_numpy(array))


def weights_of(module, names):
    """Return a module's weights in NumPy, by name, as `load` takes them."""
    arrays = [
        parameter.detach().cpu().numpy() for parameter in module.parameters()
    ]
    return {
        name: np.moveaxis(array, (0, 1), (-1, -2)) if array.ndim > 1 else array
        for name, array in zip(names, arrays, strict=True)
    }


def sgd_step(module, optimizer, x, y):
    """Do one step of gradient descent in place; return the loss before it."""
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(module(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def module_and_data(name, numbers, channels_last=False):
    """Return a module with NumPy's weights, inputs and targets."""
    weights, x, y = numbers
    module, x, y = (
        MODULES[name](),
        torch_tensor(channels_first(x)),
        torch_tensor(y),
    )
    load(module, weights)
    module = module.to(x.device)
    if channels_last:
        module = module.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    return module, x, y


def trainer(
    name, numbers, step=sgd_step, wrap=None, channels_last=False, **options
):
    """Return a call that keeps training: a step, bound to all it needs.

    `wrap` is applied to the module; `options` are those of
    `torch.optim.SGD`.
    """
    module, x, y = module_and_data(name, numbers, channels_last)
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE, **options)
    return functools.partial(
        step, wrap(module) if wrap else module, optimizer, x, y
    )


def exact_step(name, numbers):
    """Return loss and new weights after a step of PyTorch in float64."""
    module, optimizer, x, y = trainer(name, numbers).args
    module.double()
    loss = sgd_step(module, optimizer, x.double(), y.double())
    return loss.item(), weights_of(module, numbers[0])


def error_of_step(call, numbers, exact):
    """Restart a `trainer`; return the largest error of loss and weights."""
    module = call.args[0]
    load(module, numbers[0])
    loss = call().item()
    return error_of(loss, weights_of(module, numbers[0]), exact)


@torch.inference_mode()
def predict(module, x):
    """Return the result of a module, without what a derivative would need."""
    return module(x)


def searching_step(module, optimizer, x, y):
    """Do what `sgd_step` does, with the fastest algorithms of cuDNN."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        return sgd_step(module, optimizer, x, y)
    finally:
        torch.backends.cudnn.benchmark = before


def compiled_sgd_step(mode=None):
    """Return `sgd_step` under torch.compile, for shapes that never change."""
    torch._logging.set_logs(dynamo=logging.ERROR)
    return torch.compile(sgd_step, mode=mode, dynamic=False)


class Noted:
    """A call that keeps in `programs` what torch.compile generates first."""

    def __init__(self, call):
        """Take a function without arguments."""
        self.call, self.programs = call, None

    def __call__(self):
        """Call it."""
        if self.programs is not None:
            return self.call()
        from torch._inductor.graph import GraphLowering

        self.programs = []
        noting = mock.patch.object(
            GraphLowering, "save_output_code", self.programs.append
        )
        with noting:
            return self.call()


def noted(calls):
    """Return calls of PyTorch by key as contenders, each `Noted`."""
    return {f"{key}@torch": Noted(call) for key, call in calls.items()}


def inductor_kernels(programs):
    """Count what programs of torch.compile call, from their texts.

    Generated kernels count as such, a library's functions by their names.
    """
    called = re.compile(
        r"\b(?:extern_kernels|torch\.ops\.(?!inductor)\w+)\.(\w+)(?:\.\w+)?\("
        r"|(?<![\w.])(?:cpp_\w+|triton_\w+\.run)\("
    )
    lines = (line for text in programs for line in text.splitlines())
    code = "\n".join(
        line for line in lines if not line.lstrip().startswith("#")
    )
    return collections.Counter(
        found[1] or "generated" for found in called.finditer(code)
    )


LIBRARY = r'(?:"kind":"__|custom_call_target=")([\w$]+)'


def xla_kernels(text):
    """Count what a program of XLA runs, by kind, from its text.

    That is what costs time in its entry and, on a GPU, in command buffers.
    What a library computes goes by the name that XLA has for it.
    """
    counts, inside = collections.Counter(), False
    for line in text.splitlines():
        if line[:1].strip():
            inside = line.startswith(("ENTRY", "%command_buffer"))
        elif inside and "to_apply=%command_buffer" not in line:
            found = re.search(r"= (?:\(.*?\)|\S+) ([\w-]+)\(", line)
            if found and found[1] not in FREE:
                library = re.search(LIBRARY, line)
                counts[library[1] if library else found[1]] += 1
    return counts


def graph_operations(graph):
    """Count what a `tf.function` without arguments has traced, by kind.

    Constants, variables and what only passes values on are left out.
    """
    free = {
        "Const",
        "Placeholder",
        "ReadVariableOp",
        "Identity",
        "NoOp",
        "Shape",
    }
    kinds = [
        each.type
        for each in graph.get_concrete_function().graph.get_operations()
    ]
    return collections.Counter(kind for kind in kinds if kind not in free)


def xla_of_tensorflow_function(function):
    """Return the text of the program that a `tf.function` with XLA runs."""
    return function.experimental_get_compiler_ir()(stage="optimized_hlo")


def told(counts, most=4):
    """Write how many there are, and the most frequent kinds."""
    kinds = ", ".join(
        f"{count} {kind}" for kind, count in counts.most_common(most)
    )
    more = "" if len(counts) <= most else ", …"
    return f"{counts.total()} ({kinds}{more})" if counts else "0"


VIEWS = set(
    "alias as_strided broadcast_tensors detach empty empty_like "
    "empty_strided expand flatten reshape resolve_conj squeeze t transpose "
    "unsqueeze view".split()
)


def events_of(call):
    """Return the events of one call that PyTorch's profiler records."""
    silence_kineto()
    with torch.profiler.profile(acc_events=True) as profile:
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return profile.events()


def is_part(event):
    """Say whether an event belongs to an operator or a compiled program."""
    parent = event.cpu_parent
    return parent is not None and (
        parent.name.startswith(("aten::", PROGRAM)) or is_part(parent)
    )


def programs_run(events):
    """Return the names of torch.compile's programs in a profile."""
    return {event.name for event in events if event.name.startswith(PROGRAM)}


def operators_run(events):
    """Count the operators of eager PyTorch in a profile, but for views."""
    names = (
        event.name.removeprefix("aten::")
        for event in events
        if event.name.startswith("aten::") and not is_part(event)
    )
    return collections.Counter(name for name in names if name not in VIEWS)


def on_the_gpu(events):
    """Count a profile's kernels on an NVIDIA GPU, and replayed graphs."""
    counts = collections.Counter()
    for event in events:
        if event.name.startswith("cudaGraphLaunch"):
            counts["graph"] += 1
        elif event.device_type.name == "CUDA" and not event.name.startswith(
            "Mem"
        ):
            counts["kernel"] += 1
    return counts


def what_ran(call):
    """Say what a `Noted` call of PyTorch runs, and what it compiled."""
    events = events_of(call)
    found = {
        "operators": operators_run(events),
        "in programs": inductor_kernels(call.programs),
        "on the GPU": on_the_gpu(events),
    }
    parts = (
        [f"programs {len(programs_run(events))}"]
        if programs_run(events)
        else []
    )
    parts += [
        f"{name} {told(counts)}" for name, counts in found.items() if counts
    ]
    return "; ".join(parts)


def predictors_jax(name, numbers):
    """Return what to compare in JAX: weights passed, or constant."""
    weights, x, _ = jax.device_put(numbers)
    model = MODELS[name]
    frozen = jax.jit(functools.partial(model, weights))
    return {
        "jit@jax": functools.partial(jax.jit(model), weights, x),
        "frozen@jax": functools.partial(frozen, x),
    }


def freezing():
    """Return a context in which torch.compile makes weights constants."""
    from torch._inductor import config

    return config.patch(freezing=True)


def predictors_torch(name, numbers, channels_last=False):
    """Return calls of a network in PyTorch, by key.

    They are eager with and without derivatives, and compiled.
    """
    module, x, _ = module_and_data(name, numbers, channels_last)
    return {
        "eager": functools.partial(module, x),
        "inference_mode": functools.partial(predict, module, x),
    }


def frozen_torch(name, numbers, channels_last=False, mode=None):
    """Return a call of a compiled network whose weights are constants.

    They are so if its first call is made within `freezing()`.
    """
    module, x, _ = module_and_data(name, numbers, channels_last)
    compiled = torch.compile(module.eval(), mode=mode, dynamic=False)
    return functools.partial(predict, compiled, x)


def exact_result(name, numbers):
    """Return a network's result in float64, a NumPy array (batch, 10)."""
    module, x, _ = module_and_data(name, numbers)
    return on_host(module.double()(x.double()).detach())


def result_of(call):
    """Return a network's result in JAX or PyTorch, in NumPy (batch, 10)."""
    result = call()
    return on_host(
        result.detach() if isinstance(result, torch.Tensor) else result
    )
