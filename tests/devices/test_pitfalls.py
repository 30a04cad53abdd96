import pathlib
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.devices import pitfalls

CPUS = jax.devices("cpu")
MESH = jax.make_mesh((8,), ("i",), devices=CPUS)
ROWS = jax.NamedSharding(MESH, jax.P("i"))
WHOLE = jax.NamedSharding(MESH, jax.P())


# For each platform a process that has imported JAX and started none of its backends.
STARTED = """
import os, sys, traceback
import jax
for platforms in sys.argv[1:]:
    if not os.fork():
        jax.config.update("jax_platforms", platforms)
        try:
            print(jax.default_backend(), jax.device_count())
        except Exception:
            print(traceback.format_exc().splitlines()[-1])
        sys.exit()
    os.wait()
"""


def started(*platforms):
    """Return what JAX says of its devices where it is to start each of some platforms."""
    command = [sys.executable, "-c", STARTED, *platforms]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.stdout.splitlines()


@pytest.mark.skipif(
    any(pathlib.Path("/dev").glob("nvidia*")) or pathlib.Path("/dev/kfd").exists(),
    reason="this machine has a GPU",
)
def test_platforms_that_are_not_there():
    missing = "RuntimeError: Unable to initialize backend 'rocm'"
    of_rocm, of_gpu, of_cuda, of_both = started("rocm,cpu", "gpu", "cuda", "cuda,cpu")
    assert of_rocm.startswith(missing)
    assert of_gpu.startswith(missing)
    assert of_cuda == "AssertionError"
    assert of_both == "cpu 8"


def test_a_platform_that_has_not_started():
    with pytest.raises(RuntimeError, match="Unknown backend"):
        jax.devices("no such platform")
    if "gpu" not in {device.platform for device in jax.devices()}:
        with pytest.raises(RuntimeError, match="no platforms that are instances of gpu"):
            jax.devices("gpu")


def test_a_late_change_of_platforms_does_nothing():
    before, devices = jax.config.jax_platforms, jax.devices()
    try:
        jax.config.update("jax_platforms", "rocm")
        assert jax.devices() == devices
    finally:
        jax.config.update("jax_platforms", before)


def test_a_device_is_an_object():
    with pytest.raises(ValueError, match="only accepts"):
        jax.device_put(1.0, "cpu:3")
    with pytest.raises(IndexError):
        jax.devices()[jax.device_count()]
    assert jax.device_put(1.0, CPUS[3]).devices() == {CPUS[3]}


def test_meshes():
    with pytest.raises(ValueError, match="must be >= the product of mesh_shape"):
        jax.make_mesh((4, 4), ("x", "y"))
    assert jax.make_mesh((2, 2), ("x", "y")).size == 4
    for columns in (1, 2, 4, 8):
        mesh = pitfalls.mesh_of_all(columns)
        assert dict(mesh.shape) == {"x": 8 // columns, "y": columns}
    with pytest.raises(ValueError, match="is not found in mesh"):
        jax.NamedSharding(mesh, jax.P("model"))


def test_jit_cannot_split_uneven_rows():
    with pytest.raises(ValueError, match="implies that array axis 0 is partitioned") as error:
        pitfalls.doubled_rows(np.ones((10, 2)), MESH)
    assert error.typename == "IndivisibleError"
    assert pitfalls.doubled_rows(np.ones((16, 2)), MESH).sharding == ROWS


def test_in_shardings_do_not_move_what_is_committed(raises_declared):
    for layout in (CPUS[0], WHOLE):
        committed = jax.device_put(np.ones(8), layout)
        raises_declared(pitfalls.total_of_sharded, committed, MESH)
    assert pitfalls.total_of_sharded(jax.device_put(committed, ROWS), MESH) == 8
    assert pitfalls.total_of_sharded(jnp.ones(8), MESH) == 8


def test_uneven_rows_raise(raises_declared):
    raises_declared(pitfalls.shard_rows, np.ones((10, 4)), MESH)
    assert pitfalls.shard_rows(np.ones((16, 4)), MESH).sharding == ROWS


@given(st.integers(1, 30), st.integers(1, 3))
@settings(deadline=None, max_examples=15)
def test_padding_keeps_the_mean(rows, columns):
    x = np.random.default_rng(rows).normal(size=(rows, columns)).astype("f")
    padded, real = pitfalls.pad_rows(x, 8)
    assert len(padded) % 8 == 0
    assert len(padded) - len(x) < 8
    assert real.sum() == rows
    split = pitfalls.shard_rows(padded, MESH), pitfalls.shard_rows(real, MESH)
    mean = pitfalls.mean_of_real(*split)
    np.testing.assert_allclose(mean, x.mean(axis=0), rtol=1e-4, atol=1e-6)


def test_without_the_mask_the_mean_is_wrong():
    padded, _ = pitfalls.pad_rows(np.ones((10, 1)), 8)
    assert padded.mean() == 10 / 16


@pytest.mark.parametrize(
    ("one", "other"), [(CPUS[0], CPUS[1]), (ROWS, CPUS[0])], ids=["two", "mesh and device"]
)
def test_committed_elsewhere_raises(raises_declared, one, other):
    x, y = jax.device_put(np.ones(8), one), jax.device_put(np.arange(8.0), other)
    raises_declared(pitfalls.add, x, y)
    result = pitfalls.add_where_x_is(x, y)
    assert result.tolist() == [1 + n for n in range(8)]
    assert result.sharding.is_equivalent_to(x.sharding, 1)


def test_uncommitted_goes_along():
    x = jax.device_put(np.ones(8), ROWS)
    y = jnp.arange(8.0)
    assert x.committed
    assert not y.committed
    assert pitfalls.add(x, y).sharding == ROWS


def test_layout():
    weights = jax.device_put(np.ones((16, 4), np.float32), ROWS)
    assert pitfalls.layout(weights) == {
        "shape": (16, 4),
        "on each device": (2, 4),
        "replicas": 1,
        "devices": 8,
    }
    assert pitfalls.layout(jax.device_put(weights, WHOLE))["replicas"] == 8


def test_velocities():
    weights = jax.device_put(np.ones((16, 4), np.float32), ROWS)
    by_shape, like = pitfalls.velocity_by_shape(weights), pitfalls.velocity_like(weights)
    assert by_shape.shape == like.shape == weights.shape
    assert not by_shape.any() and not like.any()
    assert len(by_shape.sharding.device_set) == 1
    assert like.sharding == ROWS


def test_under_jit_zeros_like_keeps_a_layout_only_if_an_explicit_mesh_is_set():
    jitted = jax.jit(pitfalls.velocity_like)
    weights = jax.device_put(np.ones((16, 4), np.float32), ROWS)
    with jax.set_mesh(MESH):
        assert jitted(weights).sharding.is_equivalent_to(ROWS, 2)
    try:
        assert len(jitted(weights).sharding.device_set) == 1
    except ValueError as error:
        assert "enter your `jit` into a mesh context" in str(error)
    auto = jax.make_mesh((8,), ("i",), (jax.sharding.AxisType.Auto,), devices=CPUS)
    weights = jax.device_put(weights, jax.NamedSharding(auto, jax.P("i")))
    with jax.set_mesh(auto):
        assert jitted(weights).sharding.is_fully_replicated
    wanted = weights.sharding
    assert jax.jit(pitfalls.velocity_like, out_shardings=wanted)(weights).sharding == wanted


def test_weights_made_inside_of_jit_need_a_layout():
    key = jax.random.key(0)
    forgotten = jax.jit(pitfalls.first_weights)(key)
    asked_for = jax.jit(pitfalls.first_weights, out_shardings=ROWS)(key)
    np.testing.assert_array_equal(forgotten, asked_for)
    assert len(forgotten.sharding.device_set) == 1
    assert asked_for.sharding == ROWS
    with jax.set_mesh(MESH):
        assert jax.jit(pitfalls.first_weights)(key).sharding.is_fully_replicated


def test_refuse_unsharded(raises_declared):
    x = np.ones((16, 4), np.float32)
    split, copied = jax.device_put(x, ROWS), jax.device_put(x, WHOLE)
    assert pitfalls.refuse_unsharded({"w": split}, 1) == {"w": split}
    assert pitfalls.refuse_unsharded({"w": copied}, x.nbytes) == {"w": copied}
    error = raises_declared(pitfalls.refuse_unsharded, {"a": split, "b": copied}, 255)
    assert "['b']" in str(error)
    raises_declared(pitfalls.refuse_unsharded, [jnp.ones(8)], 1)


# The limit that ends the process is another.
WAITING = """
import os
os.environ["XLA_FLAGS"] = (
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds=2 "
    "--xla_cpu_collective_call_terminate_timeout_seconds={limit}"
)
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
from snippets.devices import pitfalls
print(pitfalls.sum_of_steps(100, wait={wait}))
"""


def steps_of_a_process(wait, limit):
    return subprocess.run(
        [sys.executable, "-c", WAITING.format(wait=wait, limit=limit)],
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_steps_that_are_waited_for_end_and_others_from_jax_0_12_on():
    with jax.set_mesh(jax.make_mesh((8,), ("data",), devices=CPUS)):
        expected = f"{pitfalls.sum_of_steps(100, wait=True)}\n"
    waited = steps_of_a_process(True, limit=300)
    assert waited.stdout == expected, waited.stderr
    in_a_line = steps_of_a_process(False, limit=5)
    if jax.__version_info__ < (0, 12) and in_a_line.returncode:
        # Whether the threads run out depends on the cores: a machine with many ends the loop.
        assert in_a_line.returncode == -signal.SIGABRT
        assert "Expected 8 threads to join the rendezvous" in in_a_line.stderr
    else:
        assert in_a_line.stdout == expected, in_a_line.stderr
