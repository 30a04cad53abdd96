"""Lesson 9, data, precision and memory: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import equations_of


def check_batches_of(batches_of):
    """Raise AssertionError unless the order can be repeated and resumed."""

    def orders(**options):
        return [list(map(int, rows)) for rows in batches_of(10, 4, **options)]

    first = orders(seed=0, epoch=0)
    assert {len(rows) for rows in first} == {4}, (
        f"the batches have sizes {[len(rows) for rows in first]}; a smaller "
        "one at the end would be compiled anew, and is to be left out"
    )
    assert len(first) == 2, (
        f"10 examples make 2 batches of 4, not {len(first)}"
    )
    seen = {row for rows in first for row in rows}
    assert len(seen) == 8, "an example occurs twice in an epoch"
    assert orders(seed=0, epoch=0) == first, (
        "asked again for the same epoch it returns another order, so no run "
        "can be repeated"
    )
    assert orders(seed=0, epoch=1) != first, (
        "all epochs have the same order; it has to follow from the seed and "
        "the number of the epoch"
    )
    assert orders(seed=1, epoch=0) != first, "all seeds have the same order"
    assert orders(seed=1, epoch=0) != orders(seed=0, epoch=1), (
        "epoch 1 of one seed is epoch 0 of the next, so runs with different "
        "seeds see the same orders"
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
    resumed = orders(seed=0, epoch=0, start=1)
    assert resumed == first[1:], (
        f"from batch 1 on it returns {resumed}, and the whole epoch is {first}"
    )


def is_square(equation):
    """Return whether an equation multiplies a bfloat16 array by itself."""
    first, *others = equation.invars
    name = equation.primitive.name
    same = name == "mul" and first is others[0]
    return first.aval.dtype == jnp.bfloat16 and (
        same or name in ("integer_pow", "square")
    )


def check_mixed_step(mixed_step):
    """Raise AssertionError unless bfloat16 is used for the matmul alone."""
    params = {"kernel": jnp.ones((2, 1)), "bias": jnp.zeros(1)}
    batch = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([[0.5], [2.0]])
    found = mixed_step(params, batch, 1e-3)
    dtypes = {str(leaf.dtype) for leaf in jax.tree.leaves(found)}
    assert dtypes == {"float32"}, (
        f"it returns parameters in {' and '.join(dtypes)}; steps as small as "
        "these are lost in bfloat16, whose neighbours of 1 are 0.996 and 1.008"
    )
    jaxpr = jax.make_jaxpr(mixed_step)(params, batch, 1e-3)
    equations = [e for e in equations_of(jaxpr.jaxpr) if e.invars]
    matmul = next(e for e in equations if e.primitive.name == "dot_general")
    assert "bf16" in str(jaxpr), (
        "nothing is computed in bfloat16; convert the parameters and x inside "
        "the loss"
    )
    assert {x.aval.dtype.name for x in matmul.invars} == {"bfloat16"}, (
        "the matmul multiplies numbers that are not in bfloat16; convert both "
        "x and the kernel"
    )
    right = np.array([[0.9995], [1.001]])
    assert np.allclose(found["kernel"], right, atol=2e-5), (
        f"the kernel is {found['kernel'].ravel()} after the step, not "
        f"{right.ravel()}"
    )
    assert not any(map(is_square, equations)), (
        "the error is squared in bfloat16; convert the predictions back to "
        "float32 before it"
    )


def check_deep_loss(deep_loss):
    """Raise AssertionError unless the backward pass recomputes layers."""

    def reference(kernels, x):
        for up, down in zip(*kernels, strict=True):
            x = x + jnp.tanh(jax.nn.gelu(x @ up) ** 2) @ down
        return jnp.mean(x**2)

    keys = jax.random.split(jax.random.key(0), 3)
    small = (
        jax.random.normal(keys[0], (3, 4, 8)),
        jax.random.normal(keys[1], (3, 8, 4)),
    )
    x = jax.random.normal(keys[2], (5, 4))
    right = jax.grad(reference)(small, x)
    found = jax.grad(deep_loss)(small, x)
    close = jax.tree.map(
        lambda a, b: np.allclose(a, b, 1e-3, 1e-4), found, right
    )
    assert all(jax.tree.leaves(close)), "it has another gradient than before"
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
