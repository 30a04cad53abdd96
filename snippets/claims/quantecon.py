"""What QuantEcon's lectures say about the speed and memory of JAX, run."""

import jax
import jax.numpy as jnp


def ripple(x, y, xp=jnp):
    """Return cos(x² + y²) / (1 + x² + y²), elementwise, by the module `xp`."""
    return xp.cos(x**2 + y**2) / (1 + x**2 + y**2)


ripple_jit = jax.jit(ripple)


def highest_of_mesh(x, y):
    """Return the largest ripple on grids x and y of one shape."""
    return jnp.max(ripple_jit(x, y))


def highest_by_vmap(grid):
    """Return the largest ripple on all pairs of a flat grid, by vmap."""
    return jnp.max(jax.vmap(lambda y: ripple_jit(grid, y))(grid))


def mebibytes(function, *args):
    """Return (arguments, result, temporary) of a compiled program, in MiB."""
    memory = jax.jit(function).lower(*args).compile().memory_analysis()
    return tuple(
        round(size / 2**20, 1)
        for size in (
            memory.argument_size_in_bytes,
            memory.output_size_in_bytes,
            memory.temp_size_in_bytes,
        )
    )
