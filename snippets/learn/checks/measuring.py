"""Lesson 16, measuring: what answers are checked for."""

import itertools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import kind_of


class Device:
    """A clock, a device, and a function that it computes.

    A call returns after `dispatch` seconds, and its result is ready after
    `run` more, which wait for those of the calls before. Compiling takes
    `compilation`, once for each shape.
    """

    def __init__(self, dispatch=1, run=10, compilation=100):
        self.dispatch, self.run, self.compilation = dispatch, run, compilation
        self.now = self.busy = 0.0
        self.calls, self.reads, self.compiled = 0, 0, set()
        self.events = []

    def clock(self):
        """Return the time in seconds."""
        self.reads += 1
        return self.now

    def lower(self, x):
        """Return what has a method `compile`, as a jitted function does."""

        def compiled():
            if np.shape(x) not in self.compiled:
                self.now += self.compilation
            self.compiled.add(np.shape(x))
            return self

        return types.SimpleNamespace(compile=compiled)

    def __call__(self, x):
        """Dispatch a call; return a result that can be waited for."""
        self.lower(x).compile()
        self.now += self.dispatch
        self.events.append(("call", self.calls))
        self.busy = max(self.now, self.busy) + self.run
        self.calls += 1
        return Loss(self, self.calls - 1, self.busy)


class Loss:
    """An array of a device that counts who waits for it."""

    shape, ndim, size, dtype = (), 0, 1, np.dtype("float32")

    def __init__(self, device, number, ready):
        self.device, self.number, self.ready = device, number, ready

    def block_until_ready(self):
        """Wait."""
        self.device.now = max(self.device.now, self.ready)
        self.device.events.append(("wait", self.number))
        return self

    def copy_to_host_async(self):
        """Begin to copy, without waiting."""

    def is_ready(self):
        """Say whether nobody would have to wait."""
        return self.device.now >= self.ready

    def __float__(self):
        return float(self.block_until_ready().number + 1)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(float(self), dtype or self.dtype)

    def __jax_array__(self):
        return jnp.float32(float(self))

    def __repr__(self):
        return repr(self.__array__())

    def __format__(self, form):
        return format(float(self), form)

    def __bool__(self):
        return bool(float(self))

    item = tolist = __float__


def check_seconds(seconds):
    """Raise AssertionError unless a compiled call is timed to its end."""
    for dispatch, run, compilation in ((1, 10, 100), (2, 30, 500)):
        device = Device(dispatch, run, compilation)
        found = seconds(device.clock, device, jnp.ones(3))
        assert device.reads, (
            "it never calls `clock`, the clock that it is given"
        )
        assert device.calls, "it never calls the function"
        assert isinstance(found, int | float), (
            f"it returns {found!r}, and not a number of seconds"
        )
        right = dispatch + run
        assert found != dispatch, (
            f"it returns {found:g} s, the time until the call returns; its "
            f"result is ready {run} s later, and has to be waited for"
        )
        assert not compilation <= found <= compilation + 3 * right, (
            f"it returns {found:g} s, of which {compilation} s are the "
            "compilation in the first call; call the function once before, "
            "with the same argument"
        )
        assert not 1.5 * run < found <= 2 * right, (
            f"it returns {found:g} s, and a call takes {right} s. Is the "
            "result of the first call waited for before the clock starts?"
        )
        assert not run <= found < right, (
            f"it returns {found:g} s, and a call takes {right} s. Is the "
            "result of each call waited for before the next? While one is "
            "computed, Python dispatches others"
        )
        assert math.isclose(found, right), (
            f"it returns {found:g} s, and a compiled call takes {right} s: "
            f"{dispatch} s until it returns and {run} s until its result is "
            "ready"
        )


def check_train(train):
    """Raise AssertionError unless few losses are waited for, and late."""
    for count, every in ((10, 4), (10, 3), (5, 1)):
        device = Device()

        def step(state, batch, device=device):
            loss = device(None)
            value, last = state
            assert loss.number == (0 if last is None else last.number + 1), (
                "a step gets another state than that which the step before "
                "it returned"
            )
            assert batch == 2.0**loss.number, (
                f"step {loss.number} gets another batch than its own"
            )
            return (value + batch, loss), loss

        batches = [2.0**n for n in range(count)]
        returned = train(step, (0.0, None), batches, every)
        require_losses(device, returned, count, every)


def require_losses(device, returned, count, every):
    """Raise AssertionError unless the losses of a run are right, and late."""
    assert isinstance(returned, tuple) and len(returned) == 2, (
        "it should return the state and the losses"
    )
    (value, _), losses = returned
    steps = list(range(0, count, every))
    assert value == 2.0**count - 1, (
        f"of {count} batches not each is used once, or the state is not that "
        "after the last step"
    )
    assert isinstance(losses, list), (
        f"a list of losses is wanted, and not {kind_of(losses)}"
    )
    assert all(isinstance(loss, float) for loss in losses), (
        "the losses are to be floats; `float` makes one of an array"
    )
    assert losses == [step + 1 for step in steps], (
        f"with `every` {every}, the losses of steps {steps} of {count} are "
        f"wanted; it returns those of {[int(loss) - 1 for loss in losses]}"
    )
    waits = {}
    for place, (kind, number) in enumerate(device.events):
        if kind == "wait":
            waits.setdefault(number, place)
    assert set(waits) == set(steps), (
        f"of {count} steps, {len(waits)} are waited for, where {len(steps)} "
        "are needed; `float` waits, and so do `block_until_ready`, `print` "
        "and `if`"
    )
    calls = [event for event in device.events if event[0] == "call"]
    late = all(
        ("call", number + 1) in device.events[:place]
        for number, place in waits.items()
        if number + 1 < len(calls)
    )
    assert late, (
        "a loss is read at once, and the device has nothing to do until the "
        "next step is dispatched; keep the arrays, and read them later"
    )


def matmuls_of_gradient(sizes, rows):
    """Return the operations of the matmuls that JAX traces."""
    pairs = itertools.pairwise(sizes)
    weights = [jax.ShapeDtypeStruct(pair, "float32") for pair in pairs]

    def loss(weights, x):
        for weight in weights:
            x = x @ weight
        return jnp.sum(x**2)

    x = jax.ShapeDtypeStruct((rows, sizes[0]), "float32")
    jaxpr = jax.make_jaxpr(jax.grad(loss))(weights, x)
    count = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (inner, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            out = equation.outvars[0].aval.shape
            count += 2 * math.prod(out) * math.prod(left[a] for a in inner)
    return count


def check_flops_of_gradient(flops_of_gradient):
    """Raise AssertionError unless each matmul is counted as it is done."""
    cases = ([8, 16, 4, 2], 32), ([3, 5, 7, 40, 60], 6), ([9, 4], 10)
    for sizes, rows in cases:
        found = flops_of_gradient(sizes, rows)
        assert isinstance(found, int | float | np.number), (
            f"it returns {found!r}, and not a number"
        )
        each = [
            2 * rows * math.prod(pair) for pair in itertools.pairwise(sizes)
        ]
        forward, right = sum(each), matmuls_of_gradient(sizes, rows)
        what = f"for sizes {sizes} and {rows} rows, {found} operations"
        others = {
            "are those of the forward pass alone": forward,
            "are those for one row alone": right / rows,
            "are half of the right number: a product and a sum are two "
            "operations": right / 2,
            "are three matmuls for each layer, but the first has only two: "
            "nobody needs the gradient for the inputs": 3 * forward,
            "are two matmuls for each layer; all but the first have three, "
            "one forward and two backward": 2 * forward,
            "are those of the backward pass alone": right - forward,
            "leave out a matmul of the largest layer, and not of the first": 3
            * forward
            - max(each),
            "leave out a matmul of the last layer, and not of the first": 3
            * forward
            - each[-1],
        }
        for words, wrong in others.items():
            assert found != wrong or wrong == right, f"{what} {words}"
        assert found == right, f"{what} are not the {right} of the program"
