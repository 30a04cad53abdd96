"""What tracing notes line by line, and which two calls share a trace."""

import html
import inspect
import itertools
import string
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from snippets.tracing.retracing import compilations


def loss(w, x, y):
    """Return the mean squared error of tanh(x @ w), a float32 scalar.

    w: (inputs, 1), x: (n, inputs), y: (n, 1).
    """
    hidden = jnp.tanh(x @ w)
    error = hidden - y
    return jnp.mean(error**2)


def equations(function, *args):
    """Return (line, equation) for each equation that tracing adds.

    The line, a number in the function's file, is where `function` was when
    the equation was added. Variables are named as in a printed jaxpr.
    """
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    letters = iter(string.ascii_lowercase)
    names = dict(zip(jaxpr.invars, letters, strict=False))
    found = []
    for equation in jaxpr.eqns:
        names |= dict(zip(equation.outvars, letters, strict=False))
        results = " ".join(
            f"{names[v]}:{v.aval.str_short(short_dtypes=True)}"
            for v in equation.outvars
        )
        operands = [
            str(v.val) if hasattr(v, "val") else names[v]
            for v in equation.invars
        ]
        line = next(
            frame.line_num
            for frame in equation.source_info.traceback.frames
            if frame.file_name == function.__code__.co_filename
        )
        words = [results, "=", equation.primitive.name, *operands]
        found.append((line, " ".join(words)))
    return found


def lines_run(function, call):
    """Return how many lines of `function` Python runs during `call()`."""
    count = 0

    def line(frame, event, argument):
        nonlocal count
        count += event == "line"
        return line

    def watch(frame, event, argument):
        return line if frame.f_code is function.__code__ else None

    former = sys.gettrace()
    sys.settrace(watch)
    try:
        call()
    finally:
        sys.settrace(former)
    return count


class Trace:
    """A function's lines, the equations of each, and two compiled calls."""

    def __init__(self, function, *args):
        """Call `function` twice under jit, and list what tracing notes."""
        jitted = jax.jit(lambda *args: function(*args))
        self.lines = [
            lines_run(function, lambda: jitted(*args)) for _ in range(2)
        ]
        lines, first = inspect.getsourcelines(function)
        found = equations(function, *args)
        self.steps = [
            (lines[number - first].strip(), [text for _, text in group])
            for number, group in itertools.groupby(found, lambda each: each[0])
        ]

    def __repr__(self):
        """Return the lines, the equations below each, and the counts."""
        steps = ["\n    ".join([line, *added]) for line, added in self.steps]
        return "\n".join([*steps, self.calls()])

    def calls(self):
        """Say how many lines of the function Python ran in two calls."""
        return "lines that Python ran: {}, then {}".format(*self.lines)

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td><code>{html.escape(line)}</code></td>"
            f"<td><code>{'<br>'.join(map(html.escape, added))}</code>"
            "</td></tr>"
            for line, added in self.steps
        )
        head = "<tr><th>Python runs</th><th>and JAX notes</th></tr>"
        return (
            f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
            f"<p>{self.calls()}</p>"
        )


def shifted(x, by=1, *, sign="+"):
    """Return x + by, or x - by where sign is "-"."""
    return x + by if sign == "+" else x - by


def wrapped():
    """Return `shifted` under jit, a new function each time."""
    return jax.jit(
        lambda *args, **kwargs: shifted(*args, **kwargs),
        static_argnames="sign",
    )


class Call(NamedTuple):
    """A call of a jitted function; `new`: it is wrapped for this call."""

    code: str
    args: tuple
    kwargs: dict
    new: bool = False


def shifted_calls():
    """Return calls of f, which is `shifted` under jit with `sign` static."""
    x = np.ones(3, np.float32)
    return [
        Call("f(x)", (x,), {}),
        Call("f(2 * x)", (2 * x,), {}),
        Call("f(x[:2])", (x[:2],), {}),
        Call("f(x.astype(int))", (x.astype(int),), {}),
        Call("f(x.astype(float))", (x.astype(float),), {}),
        Call("f(x, 1)", (x, 1), {}),
        Call("f(x, 2)", (x, 2), {}),
        Call("f(x, 2.0)", (x, 2.0), {}),
        Call("f(x, by=2)", (x,), {"by": 2}),
        Call('f(x, sign="+")', (x,), {"sign": "+"}),
        Call('f(x, sign="-")', (x,), {"sign": "-"}),
        Call("jax.jit(lambda x: x + 1)(x)", (x,), {}, new=True),
    ]


def key(call):
    """Return what JAX looks a program up by, as {part: text}."""
    positional = list(inspect.signature(shifted).parameters)[: len(call.args)]
    values = dict(zip(positional, call.args, strict=True)) | call.kwargs
    given = ", ".join([*positional, *(f"{name}=" for name in call.kwargs)])
    types = {
        name: repr(value) if name == "sign" else str(jax.typeof(value))
        for name, value in values.items()
    }
    return types | {"arguments given": given}


def differences(first, second):
    """Return in which parts of their keys two calls differ, in words."""
    if second.new:
        return ["the function: a new one"]
    if first.new:
        return ["the function"]
    one, other = key(first), key(second)
    common = [name for name in one if name in other]
    return [
        f"{name}: {one[name]}, then {other[name]}"
        for name in common
        if one[name] != other[name]
    ]


def again(first, second):
    """Return whether the second of two calls compiles a program."""
    f = wrapped()
    (wrapped() if first.new else f)(*first.args, **first.kwargs)
    g = wrapped() if second.new else f
    with compilations() as seconds:
        g(*second.args, **second.kwargs)
    return len(seconds) > 0


class Pairs:
    """For each pair of calls: is a program compiled again, and why."""

    def __init__(self, some):
        """Make each pair of these calls, on a function of its own."""
        self.found = [
            (one.code, two.code, again(one, two), differences(one, two))
            for one, two in itertools.product(some, repeat=2)
        ]

    def __repr__(self):
        """Return a line for each pair."""
        return "\n".join(
            f"{one}, then {two}: {self.verdict(again, why)}"
            for one, two, again, why in self.found
        )

    @staticmethod
    def verdict(again, why):
        """Say what the second call does, and the part that differs."""
        if not again:
            return "the same program"
        return f"compiles again; {'; '.join(why)}"

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td><code>{html.escape(one)}</code></td>"
            f"<td><code>{html.escape(two)}</code></td>"
            f"<td>{html.escape(self.verdict(again, why))}</td></tr>"
            for one, two, again, why in self.found
        )
        head = "<tr><th>first</th><th>then</th><th>the second</th></tr>"
        return (
            f"<details><summary>All {len(self.found)} pairs</summary>"
            f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
            "</details>"
        )
