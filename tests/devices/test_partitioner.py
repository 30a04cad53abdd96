"""Tests of snippets/devices/partitioner.py."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType

from snippets.devices import partitioner as page
from snippets.devices import resharding

ROWS, BOTH, COLUMNS = jax.P("x"), jax.P("x", "y"), jax.P(None, "y")
MESH = jax.make_mesh((4, 2), ("x", "y"))
AUTO = jax.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)


@pytest.fixture(autouse=True)
def warnings_are_shown(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")


def moved(x, *specs):
    """Return x in one layout after another, on axes of either kind."""
    explicit = jax.sharding.get_abstract_mesh().explicit_axes
    for spec in specs:
        x = jax.reshard(x, spec) if explicit else jax.lax.with_sharding_constraint(x, spec)
    return x


def layer(x):
    """Return an array whose layout changes in a named scope."""
    with jax.named_scope("my_layer"):
        return moved(jnp.sin(x) * 2, COLUMNS)


def heads(x):
    """Return packed features (n, 24) as (n, 3, 8), the last of them sharded."""
    return moved(x.reshape(16, 3, 8), jax.P(None, None, "x"))


def print_lines():
    """Print the lines of some programs as JSON; for a process of its own."""
    lines = {}
    for mesh in MESH, AUTO:
        kind = mesh.axis_types[0].name
        with jax.set_mesh(mesh):
            x = jax.device_put(jnp.zeros((16, 32)), ROWS)
            for case in "direct", "again":
                lines[f"{case} {kind}"] = page.partitioned(lambda x: moved(x, COLUMNS), x)[1]
            lines[f"steps {kind}"] = page.partitioned(lambda x: moved(x, BOTH, COLUMNS), x)[1]
    with jax.set_mesh(MESH):
        lines["named"] = page.partitioned(layer, x := jax.device_put(jnp.zeros((16, 32)), ROWS))[1]
        lines["cost"] = [page.cost(x, COLUMNS)["lines"], page.cost(x, BOTH, COLUMNS)["lines"]]
    with jax.set_mesh(AUTO):
        x = jax.device_put(jnp.zeros((16, 24)), jax.P(None, "x"))
        compiled, lines["transform"] = page.partitioned(page.transform, x)
        assert "all-gather" in compiled.as_text()
        lines["by rows"] = page.partitioned(page.transform_by_rows, x)[1]
        compiled, lines["packed"] = page.partitioned(heads, x)
        lines["gathers"] = "all-gather" in compiled.as_text()
        jax.config.update("jax_use_shardy_partitioner", False)
        lines["old"] = page.partitioned(jnp.sin, x)[1]
    print(json.dumps(lines))


def in_process(program, level):
    """Run a program with a level of the log; return its output and its stderr."""
    environment = os.environ | {
        "TF_CPP_MIN_LOG_LEVEL": level,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return run.stdout, run.stderr


@pytest.fixture(scope="module")
def lines():
    program = "from tests.devices import test_partitioner as t\nt.print_lines()"
    return json.loads(in_process(program, "0")[0].splitlines()[-1])


@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
def test_two_axes_at_once_print_the_line_and_steps_print_none(kind, lines):
    for which in "direct", "again":
        (line,) = lines[f"{which} {kind}"]
        assert line.startswith("[SPMD] Involuntary full rematerialization. The compiler cannot go")
    assert lines[f"steps {kind}"] == []


def test_cost_counts_the_lines(lines):
    assert lines["cost"] == [1, 0]


def test_the_line_names_the_scope(lines):
    (line,) = lines["named"]
    assert 'op_name="jit(layer)/my_layer/' in line


def test_a_transform_along_a_sharded_axis_falls_back(lines):
    if jax.__version_info__ < (0, 12):
        assert lines["transform"] == []
    else:
        (line,) = lines["transform"]
        assert line.startswith("[SPMD] Falling back to replicated execution for tiled FFT")
    assert lines["by rows"] == []


def test_packed_heads_are_gathered_without_a_line(lines):
    assert lines["gathers"] and lines["packed"] == []


def test_the_old_partitioner_says_so(lines):
    assert [line for line in lines["old"] if line.startswith("GSPMD sharding propagation is going")]


@pytest.mark.parametrize("level", ["1", "2"])
def test_the_level_of_the_log_hides_the_line(level):
    program = """
import jax, jax.numpy as jnp
from tests.devices import test_partitioner as t
jax.set_mesh(t.MESH)
jax.jit(t.layer)(jax.device_put(jnp.zeros((16, 32)), t.ROWS))
"""
    assert ("Involuntary" in in_process(program, level)[1]) == (level == "1")


@pytest.mark.parametrize("shape", [(16, 32), (64, 8)], ids=str)
def test_cost_of_one_axis_at_a_time(shape):
    with jax.set_mesh(MESH):
        x = jax.device_put(jnp.zeros(shape), ROWS)
        direct, steps = page.cost(x, COLUMNS), page.cost(x, BOTH, COLUMNS)
    part = resharding.bytes_to_receive(x, jax.device_put(x, jax.NamedSharding(MESH, COLUMNS))) // 8
    assert direct["lacking"] == steps["lacking"] == steps["received"] == part
    assert direct["received"] == x.nbytes * 3 // 4
    assert steps["temporaries"] < direct["temporaries"]


WAYS = [
    [jax.P(None, ("x", "y"))],
    [jax.P(None, "y", "x"), jax.P(None, ("x", "y"))],
    [jax.P(None, "y", "x"), jax.P(None, ("y", "x"))],
]


@pytest.mark.parametrize("sizes", [(4, 2), (2, 4), (8, 1), (1, 8)], ids=str)
def test_steps_send_what_is_lacking_on_each_mesh(sizes):
    mesh = jax.make_mesh(sizes, ("x", "y"))
    with jax.set_mesh(mesh):
        x = jax.device_put(jnp.zeros((64, 32)), ROWS)
        steps = page.cost(x, BOTH, COLUMNS)
    assert steps["received"] == steps["lacking"] == (1 - 1 / sizes[0]) / sizes[1] * x.nbytes


def test_what_cannot_be_counted_or_seen_is_refused(monkeypatch):
    with jax.set_mesh(MESH):
        x = jax.device_put(jnp.zeros((16, 32), jnp.bfloat16), ROWS)
        with pytest.raises(TypeError, match="pass float32"):
            page.cost(x, COLUMNS)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    with pytest.raises(ValueError, match="TF_CPP_MIN_LOG_LEVEL hides warnings"):
        page.partitioned(jnp.sin, np.ones(3))


def test_each_way_ends_with_the_same_numbers():
    numbers = np.arange(4096, dtype=np.float32).reshape(16, 16, 16)
    with jax.set_mesh(MESH):
        x = jax.device_put(numbers, jax.P("y", None, "x"))
        received = []
        for way in WAYS:
            y = jax.jit(page.in_steps(*way))(x)
            assert jax.typeof(y).sharding.spec == jax.P(*way[-1], None)
            np.testing.assert_array_equal(y, numbers)
            received.append(page.cost(x, *way)["received"])
    assert received[0] > received[1] > received[2]


def test_the_transform_is_numpys():
    numbers = np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    with jax.set_mesh(AUTO):
        x = jax.device_put(numbers, jax.P(None, "x"))
        for transform in page.transform, page.transform_by_rows:
            result = jax.jit(transform)(x)
            np.testing.assert_allclose(result, np.fft.fft(numbers), rtol=1e-4, atol=1e-4)


def test_lines_of_others_are_left_out():
    lines = []
    with page.standard_error(lines):
        os.write(2, b"one\ntwo\n")
    assert lines == ["one", "two"]
    _, found = page.partitioned(jnp.sin, np.ones(3))
    assert found == []


def test_standard_error_is_restored_after_an_error():
    lines = []
    with pytest.raises(ZeroDivisionError), page.standard_error(lines):
        os.write(2, b"before\n")
        raise ZeroDivisionError
    with page.standard_error(again := []):
        os.write(2, b"after\n")
    assert (lines, again) == (["before"], ["after"])
