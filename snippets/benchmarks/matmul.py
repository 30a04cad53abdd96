"""One matrix product in four frameworks, on equal terms."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.timing.timer import (
    device_kind,
    float32_precision,
    in_unit,
    measure,
    thread_count,
    usable_cores,
    waiter,
)


class Contestant(NamedTuple):
    """A framework: how it takes arrays in, multiplies, gives back, changes dtype."""

    name: str
    on_device: Callable
    product: Callable
    on_host: Callable
    cast: Callable


NUMPY = Contestant("numpy", np.asarray, np.matmul, np.asarray, np.ndarray.astype)
JAX = Contestant("jax", jnp.asarray, jnp.matmul, np.asarray, jnp.astype)


def jax_terms():
    """Ask JAX for full float32 products."""
    jax.config.update("jax_default_matmul_precision", "highest")


def torch_tensor(array):
    """Return a NumPy array as a tensor on the accelerator, or the CPU without one."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.tensor(array, device=found or "cpu")


def torch_cast(tensor, dtype):
    """Return a tensor as one of the dtype that is named."""
    return tensor.to(getattr(torch, dtype))


TORCH = Contestant("torch", torch_tensor, torch.matmul, torch.Tensor.cpu, torch_cast)


def torch_terms():
    """Let PyTorch use all usable cores, and ask for full float32 products."""
    torch.set_num_threads(usable_cores())
    torch.set_float32_matmul_precision("highest")


def tensorflow_on_host(tensor):
    """Return a TensorFlow tensor as a NumPy array."""
    return tensor.numpy()


TENSORFLOW = Contestant(
    "tensorflow", tf.constant, tf.matmul, tensorflow_on_host, tf.cast
)


def tensorflow_terms():
    """Let TensorFlow use all usable cores, and ask for full float32 products."""
    tf.config.threading.set_intra_op_parallelism_threads(usable_cores())
    tf.config.experimental.enable_tensor_float_32_execution(False)


def terms(contestants):
    """Return what each framework is set to."""
    return {
        each.name: {
            "threads": thread_count(each.name),
            "float32 products": float32_precision(each.name),
        }
        for each in contestants
    }


def operands(size):
    """Return two float32 NumPy arrays of shape (size, size), standard normal."""
    draw = np.random.default_rng(0)
    return [draw.standard_normal((size, size), dtype=np.float32) for _ in range(2)]


def operations(size):
    """Count the multiplications and additions in a product of shape (size, size)."""
    return 2 * size**3


def cores_used(contestant, size, calls=3):
    """Return processor time over elapsed time: the cores that a product keeps busy."""
    a, b = map(contestant.on_device, operands(size))
    product, wait = contestant.product, waiter(contestant.name)
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


def relative_error(product, exact):
    """Return the Frobenius norm of `product - exact` divided by that of `exact`."""
    difference = np.asarray(product, np.float64) - exact
    return float(np.linalg.norm(difference) / np.linalg.norm(exact))


def float64_product(pair):
    """Return the product of two float32 NumPy arrays, computed in float64."""
    return np.matmul(*pair, dtype=np.float64)


def race_with_error(name, contestants, size):
    """Measure the product of shape (size, size), and its error against float64."""
    pair = operands(size)
    exact = float64_product(pair)
    found = []
    for each in contestants:
        a, b = map(each.on_device, pair)
        error = relative_error(each.on_host(each.product(a, b)), exact)
        work = operations(size)
        found.append(measure(name, each.product, a, b, work=work, error=error))
    return found


def time_and_error(measurements):
    """Return the median time and the relative error of each framework."""
    return {
        m.framework: f"{in_unit(m.median)}, error {m.error:.1e}" for m in measurements
    }


def race(name, contestants, size, **settings):
    """Measure the product of shape (size, size) in every framework."""
    pair = operands(size)
    work = operations(size)
    return [
        measure(name, each.product, *map(each.on_device, pair), work=work, **settings)
        for each in contestants
    ]


def sizes():
    """Return the sizes to measure: from 64, up to what the device does quickly."""
    largest = 2048 if jax.default_backend() == "cpu" else 8192
    return [2**power for power in range(6, largest.bit_length())]


def probe_numbers(size):
    """Return `size` float32 numbers and how many binary digits each needs, 1 to 23.

    Digits behind the point are counted: 1.1, 1.01, 1.011, 1.0101, ... in binary.
    """
    digits = 1 + np.arange(size) % 23
    numbers = (2**digits * 4 // 3 | 1) / 2.0**digits
    return numbers.astype(np.float32), digits


def digits_kept(contestant, size, dtype="float32"):
    """Return how many binary digits of its inputs a product of `dtype` keeps.

    The probe numbers stand on the diagonal of one matrix, of shape (size, size),
    and are multiplied by 1. Those with too many digits come back changed.
    """
    numbers, digits = probe_numbers(size)
    pair = np.diag(numbers), np.eye(size, dtype=np.float32)
    a, b = [contestant.cast(contestant.on_device(x), dtype) for x in pair]
    product = contestant.cast(contestant.product(a, b), "float32")
    same = np.diag(np.asarray(contestant.on_host(product))) == numbers
    return int(digits[same].max(initial=0))


FORMATS = {23: "float32", 10: "TF32", 7: "bfloat16"}


def measure_precision(name, contestant, pair, exact, dtype="float32"):
    """Measure a product in `dtype`, with its error and the precision it really has."""
    a, b = [contestant.cast(contestant.on_device(x), dtype) for x in pair]
    product = contestant.cast(contestant.product(a, b), "float32")
    kept = digits_kept(contestant, len(exact), dtype)
    return measure(
        f"matmul/precision/{name}",
        contestant.product,
        a,
        b,
        work=operations(len(exact)),
        error=relative_error(contestant.on_host(product), exact),
        precision=FORMATS.get(kept, f"{kept} digits"),
    )


def jax_precisions(pair, exact):
    """Measure JAX in full float32, by its default, and in bfloat16."""
    found = []
    for name, setting, dtype in (
        ("full", "highest", "float32"),
        ("shortened", "default", "float32"),
        ("bfloat16", "default", "bfloat16"),
    ):
        with jax.default_matmul_precision(setting):
            found.append(measure_precision(name, JAX, pair, exact, dtype))
    return found


def torch_precisions(pair, exact):
    """Measure PyTorch in full float32, with TF32 allowed, and in bfloat16."""
    found = []
    for name, setting, dtype in (
        ("full", "highest", "float32"),
        ("shortened", "high", "float32"),
        ("bfloat16", "high", "bfloat16"),
    ):
        torch.set_float32_matmul_precision(setting)
        found.append(measure_precision(name, TORCH, pair, exact, dtype))
    torch.set_float32_matmul_precision("highest")
    return found


def tensorflow_precisions(pair, exact):
    """Measure TensorFlow in full float32, with TF32 allowed, and in bfloat16."""
    found = []
    for name, allowed, dtype in (
        ("full", False, "float32"),
        ("shortened", True, "float32"),
        ("bfloat16", True, "bfloat16"),
    ):
        tf.config.experimental.enable_tensor_float_32_execution(allowed)
        found.append(measure_precision(name, TENSORFLOW, pair, exact, dtype))
    tf.config.experimental.enable_tensor_float_32_execution(False)
    return found


PUBLISHED_PEAKS = {
    "NVIDIA H200": {"float32": 67e12, "TF32": 989e12 / 2, "bfloat16": 1979e12 / 2},
    "TPU v5e": {"bfloat16": 197e12},
    "TPU v6e": {"bfloat16": 918e12},
}


def share_of_peak(measurement):
    """Return a rate as a share of what the maker of the device publishes.

    The peaks are operations per second. For the TF32 and bfloat16 products of
    the H200 (SXM) NVIDIA gives the rate with sparsity; without, it is half.
    """
    device = measurement.device_kind.replace(" lite", "e")
    peak = PUBLISHED_PEAKS.get(device, {}).get(measurement.precision)
    return f"{measurement.rate / peak:.0%}" if peak else "no published peak"


def shares_of_peak(measurements):
    """Return `share_of_peak` of each measurement, by framework and precision."""
    return {
        f"{m.framework}, {m.name.rpartition('/')[2]} ({m.precision})": share_of_peak(m)
        for m in measurements
    }


def multiply_add(x, chains, steps):
    """Do 2 * chains * steps operations on each number of `x`, of any shape."""
    values = [x + chain for chain in range(chains)]
    for _ in range(steps):
        values = [value * x + x for value in values]
    return sum(values)


def options_for(backend):
    """Return the compiler's options: on a CPU, to use its widest vectors."""
    return {"xla_cpu_prefer_vector_width": 512} if backend == "cpu" else None


def measure_multiply_add(chains, size, steps=100):
    """Measure `multiply_add` on `size` numbers; return the measurement."""
    compiled = jax.jit(
        lambda x: multiply_add(x, chains, steps),
        compiler_options=options_for(jax.default_backend()),
    )
    work = 2 * chains * steps * size
    x = jnp.full(size, 0.5)
    return measure(f"matmul/ceiling/{chains}", compiled, x, work=work)


def ceilings(measurements):
    """Return the highest rate on each kind of device, in operations per second."""
    found = {}
    for m in measurements:
        found[m.device_kind] = max(m.rate, found.get(m.device_kind, 0))
    return found


def share_of_ceiling(measurements, ceiling):
    """Return each rate as a fraction of the ceiling of its device."""
    return {m.framework: f"{m.rate / ceiling[m.device_kind]:.0%}" for m in measurements}


def product_on_host(contestant, a, b):
    """Multiply arrays of shape (n, n) and bring the result to the host."""
    return contestant.on_host(contestant.product(a, b))


def race_to_host(name, contestants, size):
    """Measure the product of shape (size, size) and its way to the host."""
    pair = operands(size)
    return [
        measure(
            name,
            product_on_host,
            each,
            *map(each.on_device, pair),
            framework=each.name,
            work=operations(size),
        )
        for each in contestants
    ]


def shares_memory(contestant):
    """Say whether an array and its host version lie in the same memory."""
    array = contestant.on_device(np.ones((2, 2), np.float32))
    if device_kind(contestant.name, array) != "cpu":
        return False
    try:
        host = np.asarray(contestant.on_host(array))
        return np.shares_memory(np.from_dlpack(array), host)
    except (BufferError, RuntimeError):
        return False


POST_MILLISECONDS = {
    "CPU, JAX": 332,
    "GPU, JAX, copied to the host": 12.5,
    "TPU, JAX, copied to the host": 8.45,
    "TPU, JAX, left on the device": 2.12,
}


def post_ratio(slower, faster):
    """Divide two times that the post reports (sineeli.github.io, 2025-12-20)."""
    return round(POST_MILLISECONDS[slower] / POST_MILLISECONDS[faster], 1)
