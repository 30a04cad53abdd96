import time

import jax
import jax.numpy as jnp
import numpy as np

draw = np.random.default_rng(0)
rows = draw.normal(size=(1000, 500)).astype(np.float32)
rows, targets = jnp.asarray(rows), jnp.asarray(rows.sum(axis=1))


def loss(weights, rows, targets):
    return jnp.mean((rows @ weights - targets) ** 2)


@jax.jit
def step(weights, rows, targets):
    value, gradient = jax.value_and_grad(loss)(weights, rows, targets)
    return weights - 0.1 * gradient, value


weights, losses = jnp.zeros(500), []
jax.block_until_ready(step(weights, rows, targets))
start = time.perf_counter()
for _ in range(15):
    weights, value = step(weights, rows, targets)
    losses.append(value)
losses = [float(value) for value in losses]
spent = time.perf_counter() - start
print(f"{losses[-1]:.3g} after {spent:.3g} s")
