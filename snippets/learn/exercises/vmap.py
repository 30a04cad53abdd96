"""Lesson 7, vmap: four exercises."""

import jax
import jax.numpy as jnp


def values(coefficients, xs):
    """Return the value of a polynomial at each of `xs` (m,).

    `coefficients` (n,) begin with the constant. `value` is right for one x.
    """

    def value(coefficients, x):
        return jnp.sum(coefficients * x ** jnp.arange(len(coefficients)))

    return value(coefficients, xs)


def distances(xs, ys):
    """Return the distance of each of `xs` (m, n) to each of `ys` (k, n).

    Of equal points the distance is 0, and its gradient is nan.
    """

    def distance(x, y):
        return jnp.sqrt(jnp.sum((x - y) ** 2))

    return jnp.array([[distance(x, y) for y in ys] for x in xs])


def prefix_means(sequences, lengths):
    """Return the mean of the first `length` elements of each sequence.

    `sequences` (rows, n) are padded to one length, and `lengths` (rows,), at
    least 1, say how many elements of each are its own.
    """

    def prefix_mean(sequence, length):
        return jnp.mean(sequence[:length])

    return jax.vmap(prefix_mean)(sequences, lengths)


def gradient_norms(loss, params, batch):
    """Return the norm of the gradient that each example has alone, (rows,).

    `loss` takes parameters, a pytree, and one example; `batch` is a pytree of
    arrays whose first axis counts the examples. The norm is the square root
    of the sum of the squares of all elements of a gradient.
    """
    raise NotImplementedError
