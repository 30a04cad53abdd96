"""Exported programs in JAX, in TensorFlow without JAX, and in C++ by PJRT."""

import importlib.util
import pathlib
import shutil
import subprocess

import jax
import numpy as np
import pytest

from snippets.models import deploying, steps

X = np.arange(6, dtype=np.float32).reshape(2, 3)
SOURCE = deploying.HELPERS + deploying.COMPILE + deploying.BUFFERS + deploying.MAIN
PLUGIN = importlib.util.find_spec("lammps_jax_pjrt_cpu")


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_program_read_from_a_file_returns_the_same(rows):
    x = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
    for f in deploying.score, deploying.cholesky_diagonal:
        np.testing.assert_allclose(deploying.through_file(f, x).call(x), f(x), rtol=1e-6)
    expected = jax.grad(lambda x: deploying.score(x).sum())(x)
    program = deploying.through_file(deploying.score, x, vjp_order=1)
    found = jax.grad(lambda x: program.call(x).sum())(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (deploying.called_back, "NotImplementedError: serialization of host_callbacks"),
        (deploying.named, "ValueError: Cannot serialize PyTreeDef"),
        (lambda x: (jax.debug.print("{}", x), x)[1], "NotImplementedError: serialization of host"),
        (deploying.score, "works"),
    ],
)
def test_what_export_refuses(f, said):
    assert deploying.outcome(deploying.through_file, f, X).startswith(said)


def test_an_exported_program_takes_its_leaves_in_the_order_that_the_page_shows():
    params, x = steps.init_mlp(jax.random.key(0)), np.ones((8, 64), np.float32)
    exported = jax.export.export(jax.jit(steps.mlp))(params, x)
    taken = [(each.shape, str(each.dtype)) for each in exported.in_avals]
    order = deploying.input_order(params, x)
    assert [(shape, dtype) for _, shape, dtype in order] == taken
    assert [path for path, _, _ in order][:2] == ["args[0][0]['bias']", "args[0][0]['kernel']"]


def test_weights_inside_a_file_make_it_larger_by_their_bytes():
    params, x = steps.init_mlp(jax.random.key(0)), np.ones((8, 64), np.float32)
    inside = deploying.file_size(lambda x: steps.mlp(params, x), x)
    outside = deploying.file_size(steps.mlp, params, x)
    held = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    assert held <= inside - outside + 5000 and outside < held / 10
    few, zeros = steps.init_mlp(jax.random.key(0), (64, 2)), np.ones((8, 64), np.float32)
    assert deploying.file_size(steps.mlp, few, zeros) < outside


def test_a_gradient_must_be_exported():
    program = deploying.through_file(deploying.score, X)
    assert deploying.outcome(jax.grad(lambda x: program.call(x).sum()), X) == (
        "ValueError: No VJP is available"
    )


def test_tensorflow_runs_a_saved_model_without_jax(tmp_path):
    found = deploying.in_tensorflow(deploying.score, (2, 3), X, tmp_path)
    np.testing.assert_allclose(found, deploying.score(X), atol=1e-6)


@pytest.mark.parametrize(
    ("f", "shape"), [(deploying.score, (None, 3)), (deploying.cholesky_diagonal, (2, 3))]
)
def test_tensorflow_runs_or_refuses_custom_calls_but_is_never_wrong(f, shape, tmp_path):
    found = deploying.in_tensorflow(f, shape, X, tmp_path)
    if isinstance(found, str):
        assert "custom_call" in found or found == "NotFoundError"
    else:
        np.testing.assert_allclose(found, f(X), rtol=1e-5)


def test_open_sizes_need_not_be_equal(tmp_path):
    seen = []

    def keep(x):
        seen.append(x.shape)
        return x

    deploying.save_model(keep, (None, None), tmp_path)
    assert all(rows is not columns and str(rows) != str(columns) for rows, columns in seen)


def test_a_saved_model_has_no_callbacks(tmp_path):
    with pytest.raises(NotImplementedError, match="host_callbacks"):
        deploying.save_model(deploying.called_back, (2, 3), tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    if not shutil.which("c++"):
        pytest.skip("needs a C++ compiler")
    return deploying.build(SOURCE, tmp_path_factory.mktemp("pjrt"))


def called(run, plugin, f, x, path):
    deploying.write_program(f, x, path)
    return subprocess.run([run, plugin, path], capture_output=True, text=True, check=False)


def test_the_cpp_program_says_that_the_plugin_is_missing(run, tmp_path):
    ended = called(run, "missing.so", deploying.score, X, tmp_path / "score.bin")
    assert ended.returncode == 1
    assert "missing.so: cannot open" in ended.stderr


def test_the_cpp_program_says_that_a_library_is_no_plugin(run, tmp_path):
    ended = called(run, "libm.so.6", deploying.score, X, tmp_path / "score.bin")
    assert ended.returncode == 1
    assert ended.stderr == "libm.so.6 is no plugin of PJRT\n"


@pytest.mark.skipif(not PLUGIN, reason="needs pip install --no-deps lammps-jax-pjrt-cpu")
def test_the_cpp_program_runs_stablehlo(run, tmp_path):
    plugin = pathlib.Path(PLUGIN.origin).parent / "pjrt_c_api_cpu_plugin.so"
    path = tmp_path / "program.bin"
    ended = called(run, plugin, deploying.score, X, path)
    found = np.array(ended.stdout.split(), np.float32)
    np.testing.assert_allclose(found, deploying.score(X), atol=1e-5)
    opened = jax.export.symbolic_shape("b, 3")
    opened = jax.ShapeDtypeStruct(opened, np.float32)
    for f, x, said in (
        (deploying.score, opened, "Failed after pipeline-start"),
        (deploying.cholesky_diagonal, X, "No FFI handler registered for lapack_spotrf_ffi"),
    ):
        ended = called(run, plugin, f, x, path)
        assert ended.returncode == 1
        assert said in ended.stderr
