"""What tracing sees and notes, and which two calls share a trace."""

import ast
import html
import inspect
import itertools
import re
import sys
import textwrap
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from snippets.tracing.retracing import compilations

EXPECTED_ERRORS = {
    "ask_for_value": (
        jax.errors.ConcretizationTypeError,
        "Abstract tracer value",
    ),
}


@jax.jit
def shifted_product(x, y):
    """Return (x + 1) @ (y + 1); print what Python sees. x: (n, m), y: (m,)."""
    print("x is", x)
    print("y is", y)
    result = jnp.dot(x + 1, y + 1)
    print("the result is", result)
    return result


@jax.jit
def ask_for_value(x):
    """Raise ConcretizationTypeError: a tracer has no value to convert."""
    return float(x)


def loss(w, x, y):
    """Return the mean squared error of tanh(x @ w), a float32 scalar.

    w: (inputs, 1), x: (n, inputs), y: (n, 1).
    """
    hidden = jnp.tanh(x @ w)
    error = hidden - y
    return jnp.mean(error**2)


def statements(function):
    """Return {line: statement} of a function, lines as in its file.

    A statement is (its number, its text); a loop or branch is its first line.
    Raises TypeError for what was not made by `def`.
    """
    if (
        not inspect.isfunction(function)
        or hasattr(function, "__wrapped__")
        or function.__name__ == "<lambda>"
    ):
        name = getattr(function, "__name__", function)
        raise TypeError(
            f"`Trace` shows the lines of a function made by `def`, and {name} "
            "is a lambda, or the result of `jit`, `grad` or another function. "
            "Pass the function itself, or write one that calls this: "
            "def f(*args): return g(*args)"
        )
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    found = {}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    for number, node in enumerate(nodes):
        whole = node.lineno == node.end_lineno or hasattr(node, "body")
        line = lines[node.lineno - 1].strip()
        text = line if whole else ast.unparse(node)
        for each in range(node.lineno, node.end_lineno + 1):
            found[first + each - 1] = number, text
    return found


def equations(function, *args):
    """Return (statement, equation) for each equation that tracing adds.

    The statement, as in `statements`, is where Python was in `function`. The
    names are those of JAX's printer; of an operation's parameters only a name
    is kept.
    """
    within = statements(function)
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    short = []
    for each in jaxpr.eqns:
        kept = {k: v for k, v in each.params.items() if k == "name"}
        short.append(each.replace(params=kept))
    printed = jaxpr.replace(eqns=short).pretty_print(
        use_color=False, custom_pp_eqn_rules=False
    )
    body = printed.partition(" let")[2].rpartition(" in (")[0]
    texts = re.sub(r"\n {5,}", " ", body).strip().splitlines()
    places = [within[line_of(each, function, within)] for each in jaxpr.eqns]
    return list(zip(places, map(str.strip, texts), strict=True))


def line_of(equation, function, lines):
    """Return at which of the lines of `function` JAX noted an equation."""
    return next(
        frame.line_num
        for frame in equation.source_info.traceback.frames
        if frame.file_name == function.__code__.co_filename
        and frame.line_num in lines
    )


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
        found = equations(function, *args)
        jitted = jax.jit(lambda *args: function(*args))
        self.lines = [
            lines_run(function, lambda: jitted(*args)) for _ in range(2)
        ]
        groups = itertools.groupby(found, lambda each: each[0])
        self.steps = [
            (line, [text for _, text in group]) for (_, line), group in groups
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
