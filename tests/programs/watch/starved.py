import time

import jax
import jax.numpy as jnp
import numpy as np


def read(step):
    time.sleep(0.02)  # a slow disk
    return np.random.default_rng(step).normal(size=(64, 64))


@jax.jit
def update(weights, x):
    return weights - 0.01 * x.T @ (x @ weights - 1)


weights = jnp.zeros((64, 64))
weights = jax.block_until_ready(update(weights, np.float32(read(0))))
waiting = computing = 0.0
for step in range(1, 21):
    start = time.perf_counter()
    batch = np.float32(read(step))
    ready = time.perf_counter()
    waiting += ready - start
    weights = jax.block_until_ready(update(weights, batch))
    computing += time.perf_counter() - ready
