import time

import jax
import jax.numpy as jnp
import numpy as np

draw = np.random.default_rng(0)
rows = draw.normal(size=(1000, 500)).astype(np.float32)
targets = rows.sum(axis=1)


def loss(weights):
    return jnp.mean((rows @ weights - targets) ** 2)


def step(weights):
    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * gradient, value


weights, losses = jnp.zeros(500), []
start = time.perf_counter()
for _ in range(15):
    weights, value = jax.jit(lambda w: step(w))(weights)
    losses.append(float(value))
spent = time.perf_counter() - start
print(f"{losses[-1]:.3g} after {spent:.3g} s")
