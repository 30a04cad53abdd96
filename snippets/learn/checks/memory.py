"""Lesson 9, data, precision and memory: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import equations_of


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


def check_batches_of(batches_of):
    """Raise AssertionError unless the order can be repeated and resumed."""

    def orders(count=10, size=4, **options):
        rows = batches_of(count, size, **options)
        return [tuple(map(int, batch)) for batch in rows]

    first = orders(seed=0, epoch=0)
    assert {len(rows) for rows in first} == {4}, (
        f"the batches have sizes {[len(rows) for rows in first]}; a smaller "
        "one at the end would be compiled anew, and is to be left out"
    )
    assert len(first) == 2, (
        f"10 examples make 2 batches of 4, not {len(first)}"
    )
    assert len(orders(8, seed=0, epoch=0)) == 2, (
        "8 examples make 2 batches of 4, of which none is to be left out"
    )
    seen = {row for rows in first for row in rows}
    assert len(seen) == 8, "an example occurs twice in an epoch"
    assert seen <= set(range(10)), f"{sorted(seen)} are not all below 10"
    assert orders(seed=0, epoch=0) == first, (
        "asked again for the same epoch it returns another order, so no run "
        "can be repeated"
    )
    assert any(orders(seed=0, epoch=n) != first for n in range(1, 9)), (
        "all epochs have the same order; it has to follow from the seed and "
        "the number of the epoch"
    )
    assert any(orders(seed=n, epoch=0) != first for n in range(1, 9)), (
        "all seeds have the same order"
    )
    ever = {
        row
        for n in range(30)
        for rows in orders(seed=0, epoch=n)
        for row in rows
    }
    assert len(ever) == 10, (
        f"in 30 epochs only {len(ever)} of 10 examples occur; each is to "
        "leave out others"
    )
    numbers = [*range(1, 41), 50, 64, 97, 99, 100, 101, 128, 256, 500, 512]
    numbers += [997, 999, 1000, 1001, 1009, 1024, 10_000]
    epochs = {n: orders(40, 8, seed=0, epoch=n)[0] for n in [0, *numbers]}
    owners = {rows: n for n, rows in epochs.items()}
    for n, rows in epochs.items():
        assert owners[rows] == n, (
            f"epochs {n} and {owners[rows]} begin with the same batch"
        )
    for seed in numbers[:40]:
        epoch = owners.get(orders(40, 8, seed=seed, epoch=0)[0])
        assert epoch is None, (
            f"epoch {epoch} of seed 0 is epoch 0 of seed {seed}, so runs with "
            "different seeds see the same orders"
        )
    whole = orders(24, seed=3, epoch=2)
    for start in (1, 4, 6):
        resumed = orders(24, seed=3, epoch=2, start=start)
        assert resumed == whole[start:], (
            f"from batch {start} on it returns {len(resumed)} batches, first "
            f"{resumed[:1]}; the whole epoch has {whole[start : start + 1]} "
            f"there, and {len(whole)} in all"
        )


def check_mixed_step(mixed_step):
    """Raise AssertionError unless bfloat16 is used for the layer alone."""
    params = {"kernel": jnp.full((2, 2), 1.001), "bias": jnp.zeros(2)}
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
        if e.invars and e.invars[0].aval.dtype == jnp.bfloat16
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
