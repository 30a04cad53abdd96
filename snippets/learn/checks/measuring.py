"""Lesson 14, measuring: what answers are checked for."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np


class Device:
    """A clock, and a device: a call takes 1 s, its result is ready 10 s later.

    The first call takes 100 s more, because it compiles.
    """

    def __init__(self):
        self.now, self.calls, self.events = 0.0, 0, []
        self.busy = 0.0

    def clock(self):
        """Return the time in seconds."""
        return self.now

    def call(self, x):
        """Dispatch a call; return a result that can be waited for."""
        self.now += 1 if self.calls else 101
        self.calls += 1
        self.events.append(("call", self.calls))
        return Result(self, self.calls)


class Result:
    """A result of a device that counts who waits for it."""

    def __init__(self, device, number):
        self.device, self.number = device, number
        self.ready = device.busy = max(device.now, device.busy) + 10

    def block_until_ready(self):
        """Wait."""
        self.device.now = max(self.device.now, self.ready)
        self.device.events.append(("wait", self.number))
        return self

    def __float__(self):
        return float(self.block_until_ready().number)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(float(self), dtype)

    item = __float__


def check_seconds(seconds):
    """Raise AssertionError unless the second call is timed to its end."""
    device = Device()
    found = seconds(device.clock, device.call, None)
    assert found < 100, (
        f"it returns {found:g} s, of which 100 s are the compilation in the "
        "first call; call the function once before"
    )
    assert found > 1.5, (
        f"it returns {found:g} s, the time until the call returns; its result "
        "is ready 10 s later, and has to be waited for"
    )
    assert found == 11, (
        f"it returns {found:g} s, and a call takes 11 s: 1 s until it returns "
        "and 10 s until its result is ready. Is the result of the first call "
        "waited for before the clock starts?"
    )


def check_train(train):
    """Raise AssertionError unless few losses are waited for, and late."""
    device = Device()

    def step(state, batch):
        return state + batch, device.call(batch)

    state, losses = train(step, 0, [1] * 10, 4)
    waited = [number for kind, number in device.events if kind == "wait"]
    assert state == 10, f"ten steps of 1 from 0 end at 10, not at {state}"
    assert all(isinstance(loss, float) for loss in losses), (
        f"the losses are to be floats, not {type(losses[0]).__name__}"
    )
    assert losses == [1, 5, 9], (
        "with `every` 4, the losses of steps 0, 4 and 8 of ten are wanted; it "
        f"returns those of {[int(loss) - 1 for loss in losses]}"
    )
    assert len(waited) == 3, (
        f"{len(waited)} losses are waited for, where three are needed; "
        "`float` waits"
    )
    late = all(
        device.events.index(("wait", number))
        > device.events.index(("call", number + 1))
        for number in waited
    )
    assert late, (
        "a loss is read at once, and the device has nothing to do until the "
        "next step is dispatched; keep the arrays, and read them later"
    )


def check_flops_of_gradient(flops_of_gradient):
    """Raise AssertionError unless each matmul is counted as it is done."""
    sizes, rows = (8, 16, 4, 2), 32
    found = flops_of_gradient(sizes, rows)
    pairs = list(itertools.pairwise(sizes))
    forward = sum(2 * rows * math.prod(pair) for pair in pairs)
    assert found != forward, (
        "these are the operations of the forward pass alone"
    )
    assert 2 * found != 3 * forward - 2 * rows * 8 * 16, (
        "half of the right number: a product and a sum are two operations"
    )
    assert found != 3 * forward, (
        "three matmuls for each layer, but the first has only two: nobody "
        "needs the gradient for the inputs"
    )
    weights = [jax.ShapeDtypeStruct(pair, "float32") for pair in pairs]

    def loss(weights, x):
        for weight in weights:
            x = x @ weight
        return jnp.sum(x**2)

    x = jax.ShapeDtypeStruct((rows, sizes[0]), "float32")
    jaxpr = jax.make_jaxpr(jax.grad(loss))(weights, x)
    right = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (inner, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            out = equation.outvars[0].aval.shape
            right += 2 * math.prod(out) * math.prod(left[a] for a in inner)
    assert found == right, (
        f"the program has matmuls of {right} operations, and not of {found}"
    )
