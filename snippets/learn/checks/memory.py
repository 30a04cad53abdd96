"""Lesson 10, precision and memory: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import equations_of, kind_of


def assert_matmul_in_bfloat16(function, *args):
    """Raise AssertionError unless bfloat16 is what the first matmul gets."""
    equations = [*equations_of(jax.make_jaxpr(function)(*args).jaxpr)]
    matmuls = [e for e in equations if e.primitive.name == "dot_general"]
    assert matmuls, "its program has no matmul"
    dtypes = {x.aval.dtype.name for x in matmuls[0].invars}
    assert dtypes != {"float16"}, (
        "the matmul is in float16, whose largest number is 65504; bfloat16 is "
        "another dtype, with the range of float32"
    )
    assert dtypes == {"bfloat16"}, (
        "the matmul multiplies numbers that are not in bfloat16; convert both "
        "x and the kernel, right before it"
    )
    return equations


def check_low_matmul(low_matmul):
    """Raise AssertionError unless bfloat16 goes in and float32 comes out."""
    x, kernel = jnp.array([[1.0, 2.0, 0.5]]), jnp.ones((3, 2))
    found = low_matmul(x, kernel)
    assert np.shape(found) == (1, 2) and np.allclose(found, 3.5), (
        f"the product of {x} and ones (3, 2) is [[3.5 3.5]], not {found}"
    )
    assert found.dtype != jnp.bfloat16, (
        "what it returns is in bfloat16; convert the product back to float32"
    )
    assert found.dtype == jnp.float32, (
        f"what it returns is in {found.dtype}, not in float32"
    )
    assert_matmul_in_bfloat16(low_matmul, x, kernel)
    found = low_matmul(jnp.full((4, 2), 1e5), jnp.full((2, 1), 2.0))
    assert np.shape(found) == (4, 1) and np.allclose(found, 4e5, 0.02), (
        f"where 1e5 * 2 + 1e5 * 2 is to come out, it returns {found.ravel()}"
    )
    found = low_matmul(jnp.array([[1.0, 2**-8]]), jnp.ones((2, 1)))
    assert np.array_equal(found, [[1 + 2**-8]]), (
        f"right, but of 1 + 1/256 it makes {found[0, 0]}: the sum was rounded "
        "to bfloat16; `jnp.matmul` returns the float32 sums with "
        "`preferred_element_type`"
    )


def normed(scale, x, axis=-1, epsilon=1e-6):
    """Return what `rms_norm` returns, in float64."""
    y, scale = np.asarray(x, np.float64), np.asarray(scale, np.float64)
    square = np.mean(y * y, axis=axis, keepdims=True)
    return scale * y / np.sqrt(square + epsilon)


def check_rms_norm(rms_norm):
    """Raise AssertionError unless it computes in float32 and keeps dtypes."""
    keys = jax.random.split(jax.random.key(0))
    scale = 1 + 0.3 * jax.random.normal(keys[0], (64,))
    x = jax.random.normal(keys[1], (48, 64)) * jnp.arange(1.0, 49)[:, None]
    found = rms_norm(scale, x)
    assert isinstance(found, jax.Array), (
        f"it returns {kind_of(found)}, not an array of JAX"
    )
    assert np.shape(found) == (48, 64), (
        f"for x (48, 64) it returns the shape {np.shape(found)}"
    )
    y = np.asarray(x, np.float64)
    mistakes = {
        "it takes the mean over the rows; each row has its own": (
            normed(scale, x, axis=0)
        ),
        "it takes one mean of all rows; each row has its own": (
            normed(scale, x, axis=None)
        ),
        "it does not scale": normed(np.ones(64), x),
        "it subtracts the mean; the root of the mean square is all": (
            normed(scale, y - y.mean(axis=1, keepdims=True))
        ),
        "it divides by the root of the sum, not of the mean": (
            normed(scale, x) / 8
        ),
    }
    for mistake, value in mistakes.items():
        assert not np.allclose(found, value, 1e-3, 1e-4), mistake
    assert np.allclose(found, normed(scale, x), 1e-4, 1e-5), (
        "for numbers in float32 it returns others than before"
    )
    narrow = scale[:32], x[:, :32]
    assert np.allclose(rms_norm(*narrow), normed(*narrow), 1e-4, 1e-5), (
        "for rows of another length it returns others than before"
    )

    def change(norm):
        along = jnp.sign(x[::-1, :32])
        return jax.jvp(norm, narrow, (jnp.ones(32), along))[1]

    def plain(scale, x):
        square = jnp.mean(x * x, axis=1, keepdims=True)
        return scale * x / jnp.sqrt(square + 1e-6)

    assert np.allclose(change(rms_norm), change(plain), 1e-3, 1e-3), (
        "it has another derivative than before"
    )
    small = x / 5e4
    zeros = rms_norm(scale, jnp.zeros((2, 64)))
    assert not np.any(np.isnan(zeros)), "for a row of zeros it returns nan"
    assert np.allclose(rms_norm(scale, small), normed(scale, small), 1e-3), (
        "for numbers about 1e-5 it returns others than before; 1e-6 is added "
        "to the mean square, under the root"
    )
    for dtype in (jnp.float32, jnp.float16, jnp.bfloat16):
        low = x.astype(dtype)
        found, name = rms_norm(scale, low), dtype.__name__
        assert found.dtype == dtype, (
            f"for x in {name} it returns {found.dtype}; convert the result to "
            "the dtype of x"
        )
        large = (1000 * x / 48).astype(dtype)
        normal = rms_norm(scale, large)
        assert np.all(normal[-1] != 0), (
            f"for numbers about 1000 in {name} it returns zeros: their "
            "squares are infinite there; convert before you square"
        )
        assert np.allclose(normal, normed(scale, large), 0.02), (
            f"for numbers about 1000 in {name} it returns others than in "
            "float32"
        )
        right = normed(scale, low).astype(dtype)
        same = np.mean(np.asarray(found) == right)
        assert same > (0 if dtype == jnp.float32 else 0.985), (
            f"in {name} {1 - same:.0%} of the results differ in their last "
            "bits from those that are rounded once; convert x to float32 at "
            "the start, and the result once, at the end"
        )


def check_mixed_step(mixed_step):
    """Raise AssertionError unless bfloat16 is used for the layer alone."""
    kernel = jnp.full((2, 2), 1.001, jnp.float32)
    params = {"kernel": kernel, "bias": jnp.zeros(2, jnp.float32)}
    batch = jnp.eye(4, 2), jnp.array([[0.5, 1.001], [2, 1], [0, 0], [0, 0]])
    grad = np.array([[0.125, -0.00025], [-0.25, 0]])
    found = mixed_step(jax.tree.map(jnp.copy, params), batch, 1e-3)
    assert jax.tree.structure(found) == jax.tree.structure(params), (
        "it is to return a dictionary with a kernel and a bias"
    )
    dtypes = {str(leaf.dtype) for leaf in jax.tree.leaves(found)}
    assert dtypes == {"float32"}, (
        f"it returns parameters in {' and '.join(sorted(dtypes))}; steps as "
        "small as these are lost in bfloat16, whose neighbours of 1 are 0.996 "
        "and 1.008"
    )
    jaxpr = jax.make_jaxpr(mixed_step)(params, batch, 1e-3)
    assert "bf16" in str(jaxpr) or "f16" in str(jaxpr), (
        "nothing is computed in bfloat16; convert the parameters and x inside "
        "the loss"
    )
    equations = assert_matmul_in_bfloat16(mixed_step, params, batch, 1e-3)
    assert np.any(found["bias"]), "the bias does not move"
    assert not np.array_equal(found["kernel"], np.ones((2, 2))), (
        "a kernel of 1.001 becomes 1: the step is lost where it is subtracted "
        "from a kernel in bfloat16"
    )
    assert not np.allclose(found["kernel"], 1 - 1e-3 * grad, 0, 2e-5), (
        "a kernel of 1.001 is rounded to 1 before the step; parameters stay "
        "as they are outside the loss"
    )
    low = {
        e.primitive.name
        for e in equations
        if e.invars
        and e.invars[0].aval.dtype == jnp.bfloat16
        and all(operand.aval.shape for operand in e.invars)
    }
    assert "sub" not in low, (
        "the error is a difference in bfloat16, in which 1.001 is 1; convert "
        "the predictions back to float32 before it"
    )
    assert not low & {"integer_pow", "square", "mul", "div"}, (
        "the error is squared in bfloat16; convert the predictions back to "
        "float32 before it"
    )
    for rate in (1e-3, 1.0):
        found = mixed_step(jax.tree.map(jnp.copy, params), batch, rate)
        right = {
            "kernel": 1.001 - rate * grad,
            "bias": -rate * grad.sum(axis=0),
        }
        for name, values in right.items():
            tolerance = {"atol": 2e-5 if name == "kernel" else 1e-3 * rate}
            assert np.allclose(found[name], values, 0, **tolerance), (
                f"at a rate of {rate} the step changes the {name} to "
                f"{np.ravel(found[name])}, not {values.ravel()}"
            )


def check_deep_loss(deep_loss):
    """Raise AssertionError unless the backward pass recomputes layers."""

    def reference(kernels, x):
        for up, down in zip(*kernels, strict=True):
            x = x + jnp.tanh(jax.nn.gelu(x @ up) ** 2) @ down
        return jnp.mean(x**2)

    keys = jax.random.split(jax.random.key(0), 3)
    for layers in (3, 5):
        small = (
            jax.random.normal(keys[0], (layers, 4, 8)),
            jax.random.normal(keys[1], (layers, 8, 4)),
        )
        x = jax.random.normal(keys[2], (5, 4))
        value, gradients = jax.value_and_grad(reference, (0, 1))(small, x)
        found, own = jax.value_and_grad(deep_loss, (0, 1))(small, x)
        assert np.isclose(found, value, 1e-3), (
            f"for {layers} layers it returns {found}, and it was {value}"
        )
        close = jax.tree.map(
            lambda a, b: np.allclose(a, b, 1e-3, 1e-4), own, gradients
        )
        assert all(jax.tree.leaves(close)), (
            f"for {layers} layers it has another gradient than before"
        )
    up, down, rows = (
        jax.ShapeDtypeStruct(shape, "float32")
        for shape in ((16, 64, 256), (16, 256, 64), (512, 64))
    )
    lowered = jax.jit(jax.grad(deep_loss)).lower((up, down), rows)
    size = lowered.compile().memory_analysis().temp_size_in_bytes / 2**20
    assert size < 8, (
        f"the gradient needs {size:.0f} MiB beside its arguments and results; "
        "the inputs of all layers are 2 MiB, from which the backward pass can "
        "compute the rest of a layer again"
    )
