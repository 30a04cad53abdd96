"""From a jaxpr to StableHLO and to the program that XLA makes of it."""

import collections
import re

import jax
import jax.numpy as jnp


def stablehlo(function, *args):
    """Return the StableHLO text of `function` for arguments like `args`."""
    return jax.jit(function).lower(*args).as_text()


def count_operations(text):
    """Count the StableHLO operations of a text, {name: count} by name."""
    names = re.findall(r"stablehlo\.(\w+)", text)
    return dict(sorted(collections.Counter(names).items()))


def optimized_hlo(function, *args):
    """Return the optimized HLO text of `function`, for the current device.

    It leaves out the tables of source files, each instruction's metadata and
    backend configuration, and the attributes of the first line.
    """
    text = jax.jit(function).lower(*args).compile().as_text()
    blocks = [block.strip() for block in text.split("\n\n")]
    kept = [block for block in blocks if re.match("HloModule|%|ENTRY", block)]
    short = re.sub(
        r", (metadata=\{[^}]*\}|backend_config=.*)", "", "\n\n".join(kept)
    )
    return re.sub(r"(HloModule \w+).*", r"\1", short)


def count_fusions(hlo):
    """Return how many fused computations the program of an HLO text runs."""
    return len(re.findall(r" fusion\(", hlo))


def costs(stage):
    """Return the compiler's counts for a lowered or compiled function.

    flops: floating-point operations except transcendental ones (exp, tanh);
    bytes accessed: bytes read and written by all operations. They are None
    where the platform has no count for this stage.
    """
    counted = stage.cost_analysis()
    return {
        key: None if counted is None else counted.get(key, 0.0)
        for key in ("flops", "transcendentals", "bytes accessed")
    }


def matmul_flops(n, m, k):
    """Return the flops of an (n, m) by (m, k) matmul: nmk multiply-adds."""
    return 2 * n * m * k


def memory(compiled):
    """Return the bytes that a compiled function needs, by purpose."""
    analysis = compiled.memory_analysis()
    return {
        "arguments": analysis.argument_size_in_bytes,
        "result": analysis.output_size_in_bytes,
        "in between": analysis.temp_size_in_bytes,
    }


def gram_trace(x):
    """Return the trace of exp(x.T @ x), exp taken elementwise. x: (n, m)."""
    return jnp.trace(jnp.exp(x.T @ x))


def stablehlo_for(platform, function, *args):
    """Return the StableHLO text of `function` for another platform.

    platform: 'cpu', 'cuda', 'rocm' or 'tpu'.
    """
    return (
        jax.jit(function)
        .trace(*args)
        .lower(lowering_platforms=(platform,))
        .as_text()
    )


def custom_calls(text):
    """Return the names of the external routines that StableHLO calls."""
    return sorted(set(re.findall(r"custom_call @(\w+)", text)))
