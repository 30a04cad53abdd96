"""Matmuls in four frameworks on equal terms, and what float64 costs."""

import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.benchmarks.race import on_host, relative_error, torch_tensor
from snippets.programs.timer import (
    compare,
    device_kind,
    float32_precision,
    measure,
    usable_cores,
    waiter,
)


class Contestant(NamedTuple):
    """How a framework takes in arrays, multiplies, returns and casts them.

    `lower_precision(allowed)` is a context in which float32 matmuls may round
    their inputs, or may not.
    """

    name: str
    on_device: Callable
    product: Callable
    on_host: Callable
    cast: Callable
    lower_precision: Callable = contextlib.nullcontext


NUMPY = Contestant(
    "numpy", np.asarray, np.matmul, np.asarray, np.ndarray.astype
)


def jax_lower_precision(allowed):
    """Return a context in which float32 matmuls may lose precision, or not."""
    return jax.default_matmul_precision("default" if allowed else "highest")


JAX = Contestant(
    "jax", jnp.asarray, jnp.matmul, np.asarray, jnp.astype, jax_lower_precision
)


def jax_terms():
    """Ask JAX for full float32 in matmuls."""
    jax.config.update("jax_default_matmul_precision", "highest")


def torch_cast(tensor, dtype):
    """Return a tensor as one of the dtype that is named."""
    return tensor.to(getattr(torch, dtype))


@contextlib.contextmanager
def torch_lower_precision(allowed):
    """Let PyTorch round the inputs of float32 matmuls, or forbid it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


TORCH = Contestant(
    "torch",
    torch_tensor,
    torch.matmul,
    torch.Tensor.cpu,
    torch_cast,
    torch_lower_precision,
)


def torch_terms():
    """Let PyTorch use all usable cores, in full float32."""
    torch.set_num_threads(usable_cores())
    torch.set_float32_matmul_precision("highest")


def tensorflow_on_host(tensor):
    """Return a TensorFlow tensor as a NumPy array."""
    return tensor.numpy()


@contextlib.contextmanager
def tensorflow_lower_precision(allowed):
    """Let TensorFlow round the inputs of float32 matmuls, or forbid it."""
    config = tf.config.experimental
    before = config.tensor_float_32_execution_enabled()
    config.enable_tensor_float_32_execution(allowed)
    try:
        yield
    finally:
        config.enable_tensor_float_32_execution(before)


TENSORFLOW = Contestant(
    "tensorflow",
    tf.constant,
    tf.matmul,
    tensorflow_on_host,
    tf.cast,
    tensorflow_lower_precision,
)


def tensorflow_terms():
    """Let TensorFlow use all usable cores, in full float32."""
    tf.config.threading.set_intra_op_parallelism_threads(usable_cores())
    tf.config.experimental.enable_tensor_float_32_execution(False)


def threads_of(framework):
    """Return how many threads of the processor an operation may use."""
    if framework == "torch":
        return torch.get_num_threads()
    chosen = tf.config.threading.get_intra_op_parallelism_threads()
    return (framework == "tensorflow" and chosen) or usable_cores()


def terms(contestants):
    """Return what each framework is set to, as lines of text."""
    return [
        f"{each.name}: {threads_of(each.name)} threads, "
        f"float32 products: {float32_precision(each.name)}"
        for each in contestants
    ]


def operands(size):
    """Return two float32 NumPy arrays of shape (size, size), normal."""
    draw = np.random.default_rng(0)
    return [
        draw.standard_normal((size, size), dtype=np.float32) for _ in range(2)
    ]


def operations(size):
    """Count the multiplications and additions of a (size, size) matmul."""
    return 2 * size**3


def sizes():
    """Return the sizes to measure, up to what the device does quickly."""
    largest = 1024 if jax.default_backend() == "cpu" else 8192
    return [2**power for power in range(6, largest.bit_length())]


def products(contestants, size):
    """Return what to compare: a (size, size) matmul in each framework."""
    pair = operands(size)
    return {
        each.name: partial(each.product, *map(each.on_device, pair))
        for each in contestants
    }


def cores_used(contestant, size, calls=3):
    """Return processor time over elapsed time: the cores kept busy."""
    a, b = map(contestant.on_device, operands(size))
    product, wait = contestant.product, waiter(contestant.name)
    wait(product(a, b))
    elapsed, busy = time.perf_counter(), time.process_time()
    for _ in range(calls):
        wait(product(a, b))
    busy = time.process_time() - busy
    return round(busy / (time.perf_counter() - elapsed), 1)


def in_a_row(product, a, b):
    """Multiply `a` by `b` a hundred times, (n, n), in a hundred calls."""
    for _ in range(100):
        a = product(a, b)
    return a


@jax.jit
def in_one_call(a, b):
    """Multiply `a` by `b` a hundred times, (n, n), in one call."""
    return jax.lax.fori_loop(0, 100, lambda _, a: a @ b, a)


def loops(contestants, size):
    """Return what to compare: a hundred (size, size) matmuls in a row.

    `b` is scaled to keep the values in range.
    """
    a, b = operands(size)
    pair = a, b / np.float32(size**0.5)
    found = {"one_call@jax": partial(in_one_call, *map(JAX.on_device, pair))}
    for each in contestants:
        arrays = map(each.on_device, pair)
        found[f"in_a_row@{each.name}"] = partial(
            in_a_row, each.product, *arrays
        )
    return found


def float64_product(pair):
    """Return the matmul of two float32 NumPy arrays, in float64."""
    return np.matmul(*pair, dtype=np.float64)


def product_on_host(contestant, a, b):
    """Multiply arrays of shape (n, n) and bring the result to the host."""
    return contestant.on_host(contestant.product(a, b))


def errors_of(products, contestants, exact):
    """Return the relative error of each matmul, by framework."""
    return {
        each.name: relative_error(each.on_host(products[each.name]()), exact)
        for each in contestants
    }


def left_and_copied(contestants, size):
    """Return what to compare: results left, or brought to the host.

    The matmuls are of shape (size, size).
    """
    pair = operands(size)
    found = {}
    for each in contestants:
        arrays = [each.on_device(x) for x in pair]
        found[f"left@{each.name}"] = partial(each.product, *arrays)
        found[f"copied@{each.name}"] = partial(product_on_host, each, *arrays)
    return found


def shares_memory(contestant):
    """Say whether an array and its host version are in the same memory."""
    array = contestant.on_device(np.ones((2, 2), np.float32))
    if device_kind(contestant.name, array) != "cpu":
        return False
    try:
        host = np.asarray(contestant.on_host(array))
        return np.shares_memory(np.from_dlpack(array), host)
    except (BufferError, RuntimeError):
        return False


def numpy_library():
    """Name the library that NumPy multiplies with, as NumPy was built."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"


def jax_library(dtype):
    """Say how XLA multiplies two arrays of (512, 512) on a CPU.

    Returns the dtype that is multiplied, and the kind of fusion, if there
    is one.
    """
    cpu = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    x = jax.ShapeDtypeStruct((512, 512), dtype, sharding=cpu)
    with jax.default_matmul_precision(
        "highest" if dtype == "float32" else "default"
    ):
        program = jax.jit(jnp.matmul).lower(x, x).compile().as_text()
    multiplied = re.search(
        r"= (\w+)\[512,512\]\S* (?:dot|custom-call)\(", program
    )
    kind = re.search(r'"kind":"(__\w+)"', program)
    return multiplied.group(1), kind.group(1) if kind else "no library"


def printed(switch, function, *args):
    """Return what a library prints while `function(*args)` runs.

    `switch` is the context in which it does.
    """
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            with switch:
                function(*args)
        finally:
            os.dup2(before, 1)
            os.close(before)
        file.seek(0)
        return file.read().decode()


def torch_library(dtype):
    """Say which library PyTorch multiplies with on a CPU, by its log."""
    x = torch.ones(512, 512, dtype=getattr(torch, dtype))
    mkl, onednn = torch.backends.mkl, torch.backends.mkldnn
    log = printed(onednn.verbose(onednn.VERBOSE_ON), torch.matmul, x, x)
    if found := re.search(r"exec,cpu,matmul,([^,]+),", log):
        return f"oneDNN, {found.group(1)}"
    log = printed(mkl.verbose(mkl.VERBOSE_ON), torch.matmul, x, x)
    found = re.search(
        r"64 architecture (.+?) processors.*MKL_VERBOSE (\w+)", log, re.S
    )
    return (
        f"MKL, {found.group(2)} for {found.group(1)}" if found else "neither"
    )


def probe_numbers(size):
    """Return `size` float32 numbers and how many mantissa bits each needs.

    They need 1 to 23: 1.1, 1.01, 1.011, 1.0101, ... in binary.
    """
    bits = 1 + np.arange(size) % 23
    numbers = (2**bits * 4 // 3 | 1) / 2.0**bits
    return numbers.astype(np.float32), bits


def mantissa_bits_kept(contestant, size, dtype="float32"):
    """Return how many mantissa bits of its inputs a matmul of `dtype` keeps.

    The probe numbers are on the diagonal of a matrix of shape (size, size),
    and are multiplied by 1. Those with too many bits come back changed.
    """
    numbers, bits = probe_numbers(size)
    pair = np.diag(numbers), np.eye(size, dtype=np.float32)
    a, b = [contestant.cast(contestant.on_device(x), dtype) for x in pair]
    product = contestant.cast(contestant.product(a, b), "float32")
    same = np.diag(np.asarray(contestant.on_host(product))) == numbers
    return int(bits[same].max(initial=0))


FORMATS = {23: "float32", 10: "TF32", 7: "bfloat16"}
WAYS = {
    "full": (False, "float32"),
    "shortened": (True, "float32"),
    "bfloat16": (True, "bfloat16"),
}


def product_allowed(contestant, allowed, a, b):
    """Multiply arrays of shape (n, n), whose values may be rounded, or not."""
    with contestant.lower_precision(allowed):
        return contestant.product(a, b)


def compare_precisions(contestants, size):
    """Compare (size, size) matmuls by `WAYS`; record what each kept."""
    pair = operands(size)
    exact = float64_product(pair)
    race, errors, kept = {}, {}, {}
    for each in contestants:
        for label, (allowed, dtype) in WAYS.items():
            key, product = (
                f"{label}@{each.name}",
                partial(product_allowed, each, allowed),
            )
            arrays = [each.cast(each.on_device(x), dtype) for x in pair]
            race[key] = partial(product, *arrays)
            result = each.cast(race[key](), "float32")
            errors[key] = relative_error(each.on_host(result), exact)
            bits = mantissa_bits_kept(
                each._replace(product=product), size, dtype
            )
            kept[key] = FORMATS.get(bits, f"{bits} mantissa bits")
    return compare(
        "matmul/precision",
        race,
        work=operations(size),
        error=errors,
        precision=kept,
    )


PUBLISHED_PEAKS = {
    "NVIDIA H200": {
        "float32": 67e12,
        "TF32": 989e12 / 2,
        "bfloat16": 1979e12 / 2,
    },
    "TPU v5e": {"bfloat16": 197e12},
    "TPU v6e": {"bfloat16": 918e12},
}


def share_of_peak(measurement):
    """Return the rate as a share of the published peak (FLOP/s), or None."""
    device = measurement.device_kind.replace(" lite", "e")
    peak = PUBLISHED_PEAKS.get(device, {}).get(measurement.precision)
    rate = measurement.work / measurement.median
    return f"{rate / peak:.0%}" if peak else None


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


POST_MILLISECONDS = {
    "CPU, JAX": 332,
    "GPU, JAX, copied to the host": 12.5,
    "TPU, JAX, copied to the host": 8.45,
    "TPU, JAX, left on the device": 2.12,
}


def post_ratio(slower, faster):
    """Divide two times of the post (sineeli.github.io, 2025-12-20)."""
    return round(POST_MILLISECONDS[slower] / POST_MILLISECONDS[faster], 1)


def gauss(x):
    """Return exp(-x²) of `x`, any shape."""
    return jnp.exp(-x * x)


def gauss_torch(x):
    """Return exp(-x²) of `x`, a PyTorch tensor of any shape."""
    return torch.exp(-x * x)


def gauss_tensorflow(x):
    """Return exp(-x²) of `x`, a TensorFlow tensor of any shape."""
    return tf.exp(-x * x)


def system(size):
    """Return a matrix, a right side and its exact solution.

    They are (size, size) and (size, 1), and hold small integers, which
    float32 can represent exactly.
    """
    rng = np.random.default_rng(0)
    matrix = rng.integers(-4, 5, (size, size)) + 8 * np.eye(size)
    solution = rng.integers(-9, 10, (size, 1)).astype(np.float64)
    return matrix, matrix @ solution, solution


def inputs(operation, size):
    """Return float64 NumPy arrays that float32 can represent exactly.

    A matmul takes two of (size, size), a system also a right side of
    (size, 1), and an elementwise operation one of (size,).
    """
    if operation == "solve":
        return system(size)[:2]
    shapes = {"product": [(size, size)] * 2, "gauss": [(size,)]}[operation]
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(s, np.float32).astype(np.float64) for s in shapes
    ]


ROWS = 8


def error_of(operation, size, result):
    """Return the relative error of a result, in the Frobenius norm.

    A matmul is compared on its first rows. Except for a system, whose
    solution is known, the exact result comes from NumPy's longdouble.
    """
    result = on_host(result).astype(np.longdouble)
    given = [array.astype(np.longdouble) for array in inputs(operation, size)]
    if operation == "solve":
        exact = system(size)[2]
    elif operation == "product":
        exact, result = given[0][:ROWS] @ given[1], result[:ROWS]
    else:
        exact = np.exp(-(given[0] ** 2))
    return float(
        np.linalg.norm(np.float64(result - exact)) / np.linalg.norm(exact)
    )


def both(function, convert, operation, size):
    """Return a function of arrays in float64, and the same one in float32.

    `convert` is how a framework takes a NumPy array in.
    """
    given = inputs(operation, size)
    return {
        dtype: partial(function, *(convert(x.astype(dtype)) for x in given))
        for dtype in ("float64", "float32")
    }


def errors_in(contenders, operation, size):
    """Return the error of each function's result."""
    return {
        key: error_of(operation, size, function())
        for key, function in contenders.items()
    }


IN_JAX = {
    "product": jax.jit(jnp.matmul),
    "gauss": jax.jit(gauss),
    "solve": jax.jit(jnp.linalg.solve),
}
IN_TORCH = {
    "product": torch.matmul,
    "gauss": gauss_torch,
    "solve": torch.linalg.solve,
}
IN_TENSORFLOW = {
    "product": tf.matmul,
    "gauss": gauss_tensorflow,
    "solve": tf.linalg.solve,
}


def contenders_jax(operation, size):
    """Return JAX's contenders, compiled."""
    return both(IN_JAX[operation], jnp.asarray, operation, size)


def contenders_torch(operation, size):
    """Return PyTorch's contenders, eager."""
    found = both(IN_TORCH[operation], torch_tensor, operation, size)
    return {f"{key}@torch": function for key, function in found.items()}


def contenders_tensorflow(operation, size):
    """Return TensorFlow's contenders: eager, `gauss` also in a graph.

    A single operation is the same kernel in a graph.
    """
    function = IN_TENSORFLOW[operation]
    found = both(function, tf.constant, operation, size)
    if operation == "gauss":
        in_graph = both(tf.function(function), tf.constant, operation, size)
        found |= {f"{key}_graph": each for key, each in in_graph.items()}
    return {f"{key}@tensorflow": each for key, each in found.items()}
