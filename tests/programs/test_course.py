"""The functions of the course as modules that a reader imports, made from the snippets."""

import ast
import builtins
import functools
import importlib
import json
import os
import pathlib
import runpy
import subprocess
import sys

import jax
import numpy as np
import optax
import pytest
from flax import nnx

from snippets.models import steps

ROOT = pathlib.Path(__file__).parents[2]
MAKER = runpy.run_path(str(ROOT / "docs" / "_package" / "course.py"))
TEXTS = MAKER["course"](ROOT)

PROGRAM = """
import json, sys

import jax, optax
from flax import nnx
import numpy as np

from jax_measured.course import (
    accumulated, axis_of_devices, cross_entropy, gathered, in_bfloat16, make_step, sharded_over,
    split_nnx, train,
)

jax.config.update("jax_num_cpu_devices", 8)
model = nnx.Sequential(nnx.Linear(8, 16, rngs=nnx.Rngs(0)), nnx.Linear(16, 3, rngs=nnx.Rngs(1)))
apply, params, stats = split_nnx(model)
x, labels = np.ones((16, 8), np.float32), np.arange(16, dtype=np.int32) % 3
mesh, optimizer = axis_of_devices(jax.devices()), optax.sgd(0.1)
with jax.set_mesh(mesh):
    state = params, stats, optimizer.init(params)
    state = jax.device_put(state, sharded_over(mesh, state))
    step = make_step(accumulated(gathered(cross_entropy(apply)), 2), optimizer)
    *_, losses = train(step, *state, [jax.device_put((x, labels), jax.P("data"))] * 3)
print(json.dumps([losses.tolist(), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_a_program_trains_on_eight_devices_as_the_book_does(installed, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    own = {"PYTHONPATH": str(installed), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=os.environ | own, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    losses, modules = json.loads(done.stdout)
    model = nnx.Sequential(nnx.Linear(8, 16, rngs=nnx.Rngs(0)), nnx.Linear(16, 3, rngs=nnx.Rngs(1)))
    apply, params, stats = steps.split_nnx(model)
    batch = np.ones((16, 8), np.float32), np.arange(16, dtype=np.int32) % 3
    optimizer = optax.sgd(0.1)
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), optimizer)
    expected = steps.train(step, params, stats, optimizer.init(params), [batch] * 3)[-1]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    # What the program does not use need not be installed.
    assert not {"torch", "equinox", "sklearn", "snippets"} & set(modules)


@pytest.mark.parametrize("name", sorted(set(TEXTS) - {"__init__.py"}))
def test_a_module_has_all_that_it_names_and_a_page(name):
    tree = ast.parse(TEXTS[name])
    page = ast.get_docstring(tree).split()[5].removesuffix(".html")
    assert (ROOT / "docs" / f"{page}.md").is_file()
    known = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= {each.asname or each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert named <= known


def test_each_offered_function_is_of_the_snippets_and_says_what_it_does(installed):
    texts = [path.read_text("utf8") for path in (ROOT / "snippets").glob("*/*.py")]
    found = [(name, ast.dump(node)) for text in texts for name, node in definitions(text)]
    for name, module in ast.literal_eval(offered("MODULES")).items():
        (node,) = [node for each, node in definitions(TEXTS[f"{module}.py"]) if each == name]
        assert ast.get_docstring(node)
        assert found.count((name, ast.dump(node))) == 1, name


def definitions(text):
    """Return (name, node) of each function and class that a text defines."""
    kinds = ast.FunctionDef | ast.ClassDef
    return [(each.name, each) for each in ast.parse(text).body if isinstance(each, kinds)]


def offered(name):
    """Return the source of a constant of the module that offers all."""
    (node,) = [
        each
        for each in ast.parse(TEXTS["__init__.py"]).body
        if isinstance(each, ast.Assign) and each.targets[0].id == name
    ]
    return ast.unparse(node.value)


def test_two_definitions_of_one_name_are_not_mixed():
    source_of = functools.partial(MAKER["Source"], ROOT)
    module = MAKER["Module"](source_of, {})
    module.take("models.steps", "mean_squared")
    with pytest.raises(ValueError, match="two definitions of mean_squared"):
        module.take("models.modules", "mean_squared")


def test_what_is_not_offered_is_said(package):
    course = importlib.import_module("jax_measured.course")
    assert "make_step" in dir(course)
    with pytest.raises(AttributeError, match="has no attribute 'make_steps'"):
        course.make_steps  # noqa: B018
    assert course.make_step.__module__ == "jax_measured.course.steps"
    assert isinstance(course.stateless(lambda params, x: x)({}, {}, jax.numpy.ones(2)), tuple)


# Not varied there, and why.
UNVARIED = {
    "mean_of": "each loss and step that is varied calls it",
    "to_bfloat16": "in_bfloat16 calls it",
    "by_machine": "tests/processes/test_cluster.py has machines of several sizes",
    "mesh_of_machines": "tests/processes/test_cluster.py has machines of several sizes",
    "collectives": "it reads a compiled program; tests/training counts those of each layout",
    "encode": "of text alone",
    "decode": "of text alone",
}


def test_each_offered_function_is_varied_or_there_is_a_reason():
    paths = [ROOT / "tests" / "book" / f"test_{name}.py" for name in ("variations", "composition")]
    varied = set().union(*(names_in(path) for path in paths))
    offered = {function for _, *lines in MAKER["MODULES"].values() for function in functions(lines)}
    assert offered - varied == UNVARIED.keys()


def functions(lines):
    return " ".join(line.partition(": ")[2] for line in lines).split()


def names_in(path):
    nodes = [*ast.walk(ast.parse(path.read_text("utf8")))]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
