"""One matrix product in four frameworks, on equal terms."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.timing.timer import (
    float32_precision,
    in_unit,
    measure,
    thread_count,
    usable_cores,
    waiter,
)


def equal_terms():
    """Set all usable cores and full float32 products everywhere; say what is set."""
    cores = usable_cores()
    torch.set_num_threads(cores)
    tf.config.threading.set_intra_op_parallelism_threads(cores)
    torch.set_float32_matmul_precision("highest")
    tf.config.experimental.enable_tensor_float_32_execution(False)
    jax.config.update("jax_default_matmul_precision", "highest")
    return {
        framework: {
            "threads": thread_count(framework),
            "float32 products": float32_precision(framework),
        }
        for framework in PRODUCT
    }


def operands(size):
    """Return two float32 NumPy arrays of shape (size, size), standard normal."""
    draw = np.random.default_rng(0)
    return [draw.standard_normal((size, size), dtype=np.float32) for _ in range(2)]


def torch_tensor(array):
    """Return a NumPy array as a tensor on the accelerator, or the CPU without one."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.tensor(array, device=found or "cpu")


ON_DEVICE = {
    "numpy": np.asarray,
    "torch": torch_tensor,
    "tensorflow": tf.constant,
    "jax": jnp.asarray,
}
PRODUCT = {
    "numpy": np.matmul,
    "torch": torch.matmul,
    "tensorflow": tf.matmul,
    "jax": jnp.matmul,
}
ON_HOST = {
    "numpy": np.asarray,
    "torch": lambda tensor: tensor.cpu(),
    "tensorflow": lambda tensor: tensor.numpy(),
    "jax": np.asarray,
}


def on_device(framework, arrays):
    """Return NumPy arrays as arrays of `framework`, on its default device."""
    return [ON_DEVICE[framework](array) for array in arrays]


def operations(size):
    """Count the multiplications and additions in a product of shape (size, size)."""
    return 2 * size**3


def product_on_host(framework, a, b):
    """Multiply arrays of shape (n, n) and bring the result to the host."""
    return ON_HOST[framework](PRODUCT[framework](a, b))


def relative_error(product, exact):
    """Return the Frobenius norm of `product - exact` divided by that of `exact`."""
    difference = np.asarray(product, np.float64) - exact
    return float(np.linalg.norm(difference) / np.linalg.norm(exact))


def race(name, size, **settings):
    """Measure the product of shape (size, size) in every framework."""
    pair = operands(size)
    return [
        measure(
            name,
            PRODUCT[framework],
            *on_device(framework, pair),
            work=operations(size),
            **settings,
        )
        for framework in PRODUCT
    ]


def race_with_error(name, size):
    """Measure as `race` does; record the error against a float64 product as well."""
    pair = operands(size)
    exact = np.matmul(*pair, dtype=np.float64)
    found = []
    for framework in PRODUCT:
        a, b = on_device(framework, pair)
        error = relative_error(product_on_host(framework, a, b), exact)
        work = operations(size)
        found.append(measure(name, PRODUCT[framework], a, b, work=work, error=error))
    return found


def race_to_host(name, size):
    """Measure the product of shape (size, size) and its way to the host."""
    pair = operands(size)
    return [
        measure(
            name,
            product_on_host,
            framework,
            *on_device(framework, pair),
            framework=framework,
            work=operations(size),
        )
        for framework in PRODUCT
    ]


def time_and_error(measurements):
    """Return the median time and the relative error of each framework."""
    return {
        m.framework: f"{in_unit(m.median)}, error {m.error:.1e}" for m in measurements
    }


def cores_used(framework, size, calls=3):
    """Return processor time over elapsed time: the cores that a product keeps busy."""
    a, b = on_device(framework, operands(size))
    product, wait = PRODUCT[framework], waiter(framework)
    wait(product(a, b))
    elapsed, busy = time.perf_counter(), time.process_time()
    for _ in range(calls):
        wait(product(a, b))
    busy = time.process_time() - busy
    return round(busy / (time.perf_counter() - elapsed), 1)


def with_own_transpose(size):
    """Measure NumPy's product of one array with itself and with its own transpose."""
    a, _ = operands(size)
    work = operations(size)
    measure("matmul/numpy/with_itself", np.matmul, a, a, work=work)
    measure("matmul/numpy/with_own_transpose", np.matmul, a, a.T, work=work)


def shares_memory(framework):
    """Say whether an array and its host version lie in the same memory."""
    (array,) = on_device(framework, [np.ones((2, 2), np.float32)])
    try:
        return np.shares_memory(
            np.from_dlpack(array), np.asarray(ON_HOST[framework](array))
        )
    except (BufferError, RuntimeError):
        return False


@jax.jit(
    static_argnames=("chains", "steps"),
    compiler_options={"xla_cpu_prefer_vector_width": 512},
)
def multiply_add(x, chains, steps):
    """Do 2 * chains * steps operations on each number of `x`, of any shape."""
    values = [x + chain for chain in range(chains)]
    for _ in range(steps):
        values = [value * x + x for value in values]
    return sum(values)


def measure_multiply_add(chains, size=2**20, steps=100):
    """Measure `multiply_add` on `size` numbers; return the measurement."""
    x = jnp.full(size, 0.5)
    work = 2 * chains * steps * size
    return measure(
        f"matmul/ceiling/{chains}",
        lambda x: multiply_add(x, chains, steps),
        x,
        work=work,
    )


def share_of_ceiling(measurements, ceiling):
    """Return each rate as a fraction of `ceiling`, in operations per second."""
    return {m.framework: f"{m.rate / ceiling:.0%}" for m in measurements}


POST_MILLISECONDS = {
    "CPU, JAX": 332,
    "GPU, JAX, copied to the host": 12.5,
    "TPU, JAX, copied to the host": 8.45,
    "TPU, JAX, left on the device": 2.12,
}


def post_ratio(slower, faster):
    """Divide two times that the post reports (sineeli.github.io, 2025-12-20)."""
    return round(POST_MILLISECONDS[slower] / POST_MILLISECONDS[faster], 1)
