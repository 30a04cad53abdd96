"""Make docs/_static/habits.js: what to write in JAX for a name of PyTorch that it lacks.

`python -m tests.pitfalls.make_habits` takes them from the rows of the translation table, which its
tests run. The field for errors loads the file where a message names one of them.
"""

import ast
import json
import pathlib

from snippets.start import translation
from snippets.start.rows import code

OUT = pathlib.Path(__file__).parents[2] / "docs" / "_static" / "habits.js"
# What no row calls, with the row that says what to do.
OTHERS = {
    **{
        name: [f"x.astype({dtype})", "torch-to-dtype"]
        for name, dtype in {
            "double": "jnp.float64",
            "float": "jnp.float32",
            "half": "jnp.float16",
            "int": "jnp.int32",
            "long": "jnp.int32",
            "type": "jnp.float32",
        }.items()
    },
    "at": ["jnp.asarray(x).at[0].set(1.0)", "torch-set"],
    "clone": ["jnp.copy(x)", "torch-alias"],
    "cpu": ["jax.device_get(x)", "torch-to"],
    "cuda": ["jax.device_put(x, jax.devices()[0])", "torch-to"],
    "device_count": ["len(jax.devices())", "torch-cuda-available"],
    "grad": ["jax.grad(f)(x)", "torch-backward"],
    "manual_seed": ["key = jax.random.key(0)", "torch-manual-seed"],
    "no_grad": ["f(x)", "torch-detach"],
    "relu": ["jax.nn.relu(x)", "torch-relu-gradient"],
    "requires_grad": ["jax.grad(f)(x)", "torch-backward"],
    "sigmoid": ["jax.nn.sigmoid(x)", "torch-bce-with-logits"],
    "silu": ["jax.nn.silu(x)", "torch-gelu"],
    "view": ["x.reshape(3, -1)", "torch-reshape"],
}


def all_rows():
    """Return the rows of all groups of the translation table."""
    groups = (group for group in vars(translation).values() if isinstance(group, type))
    return [row for group in groups for row in translation.rows(group)]


def calls(text):
    """Return {name: how deep} of the methods and functions of modules that a code calls."""
    found = {}
    for depth, node in enumerate(ast.walk(ast.parse(text))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.setdefault(node.func.attr, depth)
    return found


def keywords(text):
    """Return {value: parameter} of the first call with parameters."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return {ast.unparse(k.value): k.arg for node in nodes[:1] for k in node.keywords}


def one_line(text):
    """Return a code that is one expression in one line."""
    body = ast.parse(text).body
    return ast.unparse(body[0]) if len(body) == 1 and isinstance(body[0], ast.Expr) else text


def habits():
    """Return {name: [code in JAX, row]} and {parameter: parameter of JAX}."""
    names, parameters = {}, {"in_dims": "in_axes", "out_dims": "out_axes"}
    for row in all_rows():
        torch, jax = code(row.torch), one_line(code(row.jax))
        for value, name in keywords(torch).items():
            theirs = keywords(jax).get(value, name)
            if theirs != name:
                parameters.setdefault(name, theirs)
        if "\n" in jax:
            continue
        for name, depth in calls(torch).items():
            # The row that is called so is best, then the one in which it is the outermost call.
            rank = (row.name != f"torch-{name.strip('_').replace('_', '-')}", depth)
            if name not in names or rank < names[name][0]:
                names[name] = rank, [jax, row.name]
    return {name: told for name, (_, told) in sorted(names.items())} | OTHERS, parameters


def text():
    """Return the file."""
    names, parameters = habits()
    rows = ",\n".join(f"{json.dumps(name)}:{json.dumps(told)}" for name, told in names.items())
    return (
        "// Made by tests/pitfalls/make_habits.py.\n"
        f"window.book.habits = {{names:{{{rows}}},\nparameters:{json.dumps(parameters)}}};\n"
    )


if __name__ == "__main__":
    OUT.write_text(text(), "utf8")
