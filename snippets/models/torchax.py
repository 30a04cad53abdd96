"""A module of PyTorch that JAX traces and compiles, by way of torchax."""

import contextlib
import sys
from unittest import mock

import jax.numpy as jnp
import numpy as np
import torch


def with_stand_ins(look_up):
    """Return a lookup of operators that gives a stand-in where one is gone.

    The stand-in does nothing.
    """

    def overload(self, name):
        with contextlib.suppress(AttributeError):
            return look_up(self, name)
        return mock.Mock()

    return overload


def import_torchax():
    """Import torchax 0.0.13 beside a PyTorch from 2.13 on; return it.

    What an import that failed has left behind is imported again.
    """
    for name in [n for n in sys.modules if n.split(".")[0] == "torchax"]:
        del sys.modules[name]
    packet, aten = torch._ops.OpOverloadPacket, torch.ops.aten
    replaced = {(packet, "__getattr__"): with_stand_ins(packet.__getattr__)}
    for name in "cholesky", "qr":
        if not hasattr(aten, name):
            replaced[aten, name] = mock.Mock()
    with contextlib.ExitStack() as stack:
        for place, new in replaced.items():
            stack.enter_context(mock.patch.object(*place, new, create=True))
        import torchax

        torchax.default_env()
    return torchax


def split_torch(module, env):
    """Return (apply, params, stats) of a module; `stats` are its buffers.

    `env` is torchax's environment, in which PyTorch computes with JAX.
    """
    params = env.t2j_copy(dict(module.named_parameters()))
    stats = env.t2j_copy(dict(module.named_buffers()))

    def apply(params, stats, x, train=True):
        module.train(train)
        state, x = env.j2t_iso((params | stats, jnp.asarray(x)))
        with env:
            y = torch.func.functional_call(module, state, x)
        return env.t2j_iso((y, {name: state[name] for name in stats}))

    return apply, params, stats


def in_place(x):
    """Return a changed copy of x."""
    y = x.clone()
    y[0] = 5.0
    y[1:].add_(10)
    return y


def outcome(function, compiled, x):
    """Return whether `compiled` gives what PyTorch gives, or its error."""
    expected = function(torch.tensor(np.array(x)))
    try:
        found = compiled(x)
    except Exception as error:
        return type(error).__name__
    return "equal" if np.allclose(found, expected) else "differs"


def keyed(function, env):
    """Return a function of (key, *args) that draws random numbers by the key.

    `function` is one of arrays that torchax has made.
    """

    def call(key, *args):
        with env.override_property(prng=key):
            return function(*args)

    return call
