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
    """Return (arguments, result, temporary) of the compiled program, in MiB."""
    memory = jax.jit(function).lower(*args).compile().memory_analysis()
    return tuple(
        round(size / 2**20, 1)
        for size in (
            memory.argument_size_in_bytes,
            memory.output_size_in_bytes,
            memory.temp_size_in_bytes,
        )
    )


def waves(x, xp=jnp):
    """Return four elementwise terms of x added up, by the module `xp`."""
    return xp.cos(2 * x**2) + xp.sqrt(xp.abs(x)) + 2 * xp.sin(x**4) - 0.1 * x**2


def bellman(v, wealth, income, transition):
    """Return the value of each choice, float32[w, y, w], before the maximum.

    `v` is float32[w, y], `wealth` [w], `income` [y] and `transition` [y, y].
    """
    w, y = wealth.size, income.size
    left = 1.03 * wealth[:, None, None] + income[None, :, None] - wealth
    products = v.reshape(1, 1, w, y) * transition.reshape(1, y, 1, y)
    expected = jnp.sum(products, axis=3)
    return jnp.where(left > 0, left ** (-1.5) / -1.5 + 0.96 * expected, -jnp.inf)


def discounted(g, first, second, third):
    """Return the operator A applied to g, float32[n, n, n], never A itself.

    A is the product of three float32[n, n], one for each axis of g.
    """
    n = g.shape[0]
    rows = first.reshape(n, 1, 1, n, 1, 1) * second.reshape(1, n, 1, 1, n, 1)
    a = 0.9 * rows * third.reshape(1, 1, n, 1, 1, n)
    return jnp.sum(a * g, axis=(3, 4, 5))


def firms(key, steps, number, all_at_once):
    """Return the sizes of so many firms after so many steps, float32[number].

    The shocks are drawn all at once before the loop, or in each step.
    """
    keys = jax.random.split(key, steps)

    def shocks(key):
        return jnp.exp(0.1 * jax.random.normal(key, (2, number)))

    drawn = jax.vmap(shocks)(keys) if all_at_once else None

    def step(i, sizes):
        growth, entry = drawn[i] if all_at_once else shocks(keys[i])
        return jnp.where(sizes < 1.0, entry, growth * sizes)

    return jax.lax.fori_loop(0, steps, step, jnp.ones(number))


def path(key, steps):
    """Return a random walk of so many steps, float32[steps], written by `.at`."""

    def step(t, x):
        move = jax.random.normal(jax.random.fold_in(key, t))
        return x.at[t].set(x[t - 1] + move)

    return jax.lax.fori_loop(1, steps, step, jnp.zeros(steps))
