import time

import jax
import jax.numpy as jnp
import numpy as np

numbers = np.random.default_rng(0)
x = numbers.normal(size=(2000, 2000)).astype(np.float32)
table = numbers.normal(size=(500, 500)).astype(np.float32)
images = numbers.normal(size=(1000, 500)).astype(np.float32)
on_device = jnp.asarray(x)
product = jax.jit(jnp.dot)
product(on_device, on_device).block_until_ready()

start = time.perf_counter()
x @ x
print("NumPy:", time.perf_counter() - start)

start = time.perf_counter()
product(on_device, on_device).block_until_ready()
print("JAX:", time.perf_counter() - start)

softmax = jax.jit(jax.nn.softmax)
softmax(jnp.ones(500)).block_until_ready()
start = time.perf_counter()
weights = softmax(jnp.ones(500)).block_until_ready()
print("softmax:", time.perf_counter() - start)


def loss(weights, images, table):
    return jnp.mean(jnp.tanh(images @ table @ weights) ** 2)


@jax.jit
def update(weights, images, table):
    weights = weights - 0.1 * jax.grad(loss)(weights, images, table)
    return weights, jnp.sqrt(jnp.mean(weights**2)) * 100


images, table = jnp.asarray(images), jnp.asarray(table)
norms = []
for _ in range(40):
    weights, norm = update(weights, images, table)
    norms.append(norm)
norms = [float(norm) for norm in norms]
print("norm:", norms[-1])
