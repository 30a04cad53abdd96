"""What the page on deploying says of ONNX and IREE, where their packages are installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


def mlp(x):
    return jnp.tanh(x @ jnp.ones((3, 4))) @ jnp.ones((4, 2))


def by_scan(x):
    return jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(3), x)[1]


def by_while(x):
    return jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x)


def by_cond(x):
    return jax.lax.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1)


def attention(x):
    x = x.reshape(1, 4, 1, 3)
    return jax.nn.dot_product_attention(x, x, x, is_causal=True)


def cholesky(x):
    return jnp.linalg.cholesky(x @ x.T + jnp.eye(4))


def spectrum(x):
    return jnp.abs(jnp.fft.rfft(x))


def called_back(x):
    return jax.pure_callback(np.sin, x, x, vmap_method="sequential")


gradient = jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))


def through_onnx(f, shape=X.shape):
    to_onnx = pytest.importorskip("jax2onnx").to_onnx
    runtime = pytest.importorskip("onnxruntime")
    model = to_onnx(f, [shape]).SerializeToString()
    session = runtime.InferenceSession(model)
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]


@pytest.mark.parametrize("f", [mlp, by_scan, by_while, by_cond, attention, gradient])
def test_onnx_runtime_returns_the_same(f):
    np.testing.assert_allclose(through_onnx(f)(X), f(X), rtol=1e-4, atol=1e-5)


def test_onnx_has_open_sizes():
    run = through_onnx(mlp, ("B", 3))
    for rows in 1, 4:
        np.testing.assert_allclose(run(X[:rows]), mlp(X[:rows]), rtol=1e-4, atol=1e-5)


def test_onnx_runs_cholesky_up_to_jax_0_11():
    pytest.importorskip("jax2onnx")
    if jax.__version_info__ < (0, 12):
        np.testing.assert_allclose(through_onnx(cholesky)(X), cholesky(X), rtol=1e-4, atol=1e-5)
    else:
        with pytest.raises(AttributeError, match="ClosedJaxpr"):
            through_onnx(cholesky)


def test_onnx_has_no_callbacks():
    pytest.importorskip("jax2onnx")
    with pytest.raises(NotImplementedError, match="pure_callback"):
        through_onnx(called_back)


def test_a_spectrum_in_onnx_has_another_shape():
    pytest.importorskip("jax2onnx")
    if jax.__version_info__ < (0, 12):
        assert through_onnx(spectrum)(X).shape != spectrum(X).shape


def through_iree(f, x=X):
    compiler = pytest.importorskip("iree.compiler")
    runtime = pytest.importorskip("iree.runtime")
    exported = export.export(jax.jit(f), platforms=("cpu",))(x)
    program = compiler.compile_str(
        exported.mlir_module_serialized,
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    return runtime.load_vm_flatbuffer(program, driver="local-task").main


@pytest.mark.parametrize("f", [mlp, by_scan, gradient])
def test_iree_returns_the_same(f):
    np.testing.assert_allclose(np.asarray(through_iree(f)(X)), f(X), rtol=1e-4, atol=1e-5)


OPEN = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)


def test_iree_has_open_sizes_in_an_mlp():
    run = through_iree(mlp, OPEN)
    for rows in 1, 4:
        np.testing.assert_allclose(np.asarray(run(X[:rows])), mlp(X[:rows]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("f", "x"), [(cholesky, X), (spectrum, X), (jax.nn.softmax, OPEN)])
def test_iree_refuses(f, x):
    compiler = pytest.importorskip("iree.compiler")
    with pytest.raises(compiler.CompilerToolError):
        through_iree(f, x)
