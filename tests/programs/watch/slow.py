import time

import jax
import jax.numpy as jnp
import numpy as np

numbers = np.random.default_rng(0)
x = numbers.normal(size=(2000, 2000))
table = numbers.normal(size=(500, 500)).astype(np.float32)
images = numbers.normal(size=(1000, 500)).astype(np.float32)
on_device = jnp.asarray(x)
product = jax.jit(jnp.dot)
product(on_device, on_device).block_until_ready()

start = time.perf_counter()
x @ x
print("NumPy:", time.perf_counter() - start)

start = time.perf_counter()
product(on_device, on_device)
print("JAX:", time.perf_counter() - start)

start = time.perf_counter()
weights = jax.jit(jax.nn.softmax)(jnp.ones(500)).block_until_ready()
print("softmax:", time.perf_counter() - start)


def loss(weights, images):
    return jnp.mean(jnp.tanh(images @ table @ weights) ** 2)


norms = []
for _ in range(40):
    update = jax.jit(lambda w, x: w - 0.1 * jax.grad(loss)(w, x))
    weights = update(weights, images)
    norm = jnp.sqrt(jnp.sum(weights**2)) / jnp.sqrt(500.0) * 100
    norms.append(float(norm))
print("norm:", norms[-1])
