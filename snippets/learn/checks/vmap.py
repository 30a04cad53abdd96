"""Lesson 7, vmap: what answers are checked for."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import equations_of


def operations_of(function, *args):
    """Return how many operations run, those inside calls and loops as well."""
    count = 0
    for equation in equations_of(jax.make_jaxpr(function)(*args).jaxpr):
        name, inside = equation.primitive.name, equation.params
        assert name != "while", (
            "a loop that ends by a condition goes from one row, or element, "
            "to the next; `jax.vmap` and a mask compute all at once"
        )
        count += 1
        if name == "scan":
            body = sum(1 for _ in equations_of(inside["jaxpr"].jaxpr))
            count += body * (inside["length"] - 1)
    return count


def assert_at_once(rows, function, args_of):
    """Raise AssertionError unless thirty rows need the operations of three."""
    few, many = (operations_of(function, *args_of(n)) for n in (3, 30))
    assert many == few, (
        f"three {rows} need {few} operations, thirty {many}, one after the "
        "other: a loop in Python stays a loop under `jit`, and `jax.lax.map` "
        "and `scan` are loops as well; `jax.vmap` needs as many for all as "
        "for one"
    )


def check_values(values):
    """Raise AssertionError unless few operations give all values."""
    coefficients, xs = jnp.array([1.0, 0.0, 2.0]), jnp.array([0.0, 3.0])
    found = values(coefficients, xs)
    assert np.shape(found) == (2,), (
        f"two numbers have two values, not the shape {np.shape(found)}"
    )
    assert not np.allclose(found, [2, 11]), (
        "it reads the coefficients from the last to the first, and the first "
        "is the constant"
    )
    assert np.allclose(found, [1, 19]), (
        f"1 + 2x² is 1 and 19 at 0 and 3, and it returns {found}"
    )
    for n in (1, 2, 4):
        found = values(jnp.full(n, 0.5), jnp.array([1.0, 0.0, -2.0]))
        right = np.array([n / 2, 0.5, (1 - (-2) ** n) / 6])
        assert np.shape(found) == (3,) and np.allclose(found, right), (
            f"for {n} coefficients 0.5 it returns {found} at 1, 0 and -2, not "
            f"{right}"
        )
    assert_at_once("numbers", values, lambda n: (jnp.ones(3), jnp.ones(n)))


def check_distances(distances):
    """Raise AssertionError unless few operations give all distances."""
    xs = jnp.array([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0], [0.0, 1.0, 0.0]])
    ys = jnp.array([[6.0, 8.0, 2.0], [0.0, 0.0, 0.0]])
    right = np.array([[104, 0], [29, 25], [89, 1]]) ** 0.5
    assert np.shape(distances(xs, xs)) != (3,), (
        "it gives each of `xs` the distance to one of `ys`, that of the same "
        "row; each is to meet all, so two functions are mapped"
    )
    found = distances(xs, ys)
    assert np.shape(found) != (2, 3), (
        "it has a row for each of `ys`; the rows are to be those of `xs`"
    )
    assert np.shape(found) == (3, 2), (
        f"three points and two have six distances, (3, 2), not "
        f"{np.shape(found)}"
    )
    mistakes = {
        "squared distances": right**2,
        "sums of absolute differences": [[16, 0], [9, 7], [15, 1]],
        "the largest differences of a coordinate": [[8, 0], [4, 4], [7, 1]],
        "roots of means; a distance is the root of a sum": right / 3**0.5,
    }
    for mistake, values in mistakes.items():
        assert not np.allclose(found, values), f"it returns {mistake}"
    assert np.allclose(found, right, atol=1e-3), (
        f"it returns {found}, not {right}"
    )
    found = distances(jnp.zeros((1, 4)), jnp.full((2, 4), 0.5))
    assert np.shape(found) == (1, 2) and np.allclose(found, 1), (
        "from a point of four zeros to two of four halves it returns "
        f"{found}, not [[1, 1]]"
    )
    assert_at_once(
        "points", distances, lambda n: (jnp.ones((n, 4)), jnp.ones((n, 4)))
    )
    many = jnp.sin(jnp.arange(200.0)).reshape(50, 4)
    assert not np.isnan(distances(many, many)).any(), (
        "the distance of a point to itself is nan: a difference of rounded "
        "squares can be below zero; square the differences"
    )
    near = distances(jnp.array([[1000.0, 0]]), jnp.array([[1000.125, 0]]))
    assert np.allclose(near, 0.125), (
        f"of [1000, 0] and [1000.125, 0] it returns {near[0, 0]}, not 0.125; "
        "squares of 1000 round the difference away, so subtract before you "
        "square"
    )


def check_prefix_means(prefix_means):
    """Raise AssertionError unless padding does not count."""
    sequences = jnp.array([[1.0, 3, 9, 8], [6, 0, 1, 1], [5, 1, 1, 1]])
    found = prefix_means(sequences, jnp.array([2, 4, 1]))
    assert np.shape(found) == (3,), (
        f"three sequences have three means, not the shape {np.shape(found)}"
    )
    mistakes = {
        "the sum is divided by the padded length, not by its own": [
            1,
            2,
            1.25,
        ],
        "the padding counts as well, 9 and 8 in the first": [5.25, 2, 2],
        "one element too many counts; the first is number 0": [13 / 3, 2, 3],
        "one element too many is added; the first is number 0": [6.5, 2, 6],
        "the 0 of the second is its own, and has to count": [2, 8 / 3, 5],
        "each 0 is taken for padding; `lengths` says": [5.25, 8 / 3, 2],
        "it returns the sums; divide by the length": [4, 8, 5],
        "all sequences are cut off at the first one's length": [2, 3, 3],
    }
    for mistake, values in mistakes.items():
        assert not np.allclose(found, values), mistake
    assert np.allclose(found, [2, 2, 5]), f"it returns {found}, not [2, 2, 5]"
    found = prefix_means(jnp.arange(12.0).reshape(2, 6), jnp.array([6, 3]))
    assert np.shape(found) == (2,) and np.allclose(found, [2.5, 7]), (
        f"for two sequences of six elements it returns {found}, not [2.5, 7]"
    )
    assert_at_once(
        "sequences",
        prefix_means,
        lambda n: (jnp.ones((n, 4)), jnp.ones(n, int)),
    )


def check_gradient_norms(gradient_norms):
    """Raise AssertionError unless each example has a norm of its own."""

    def loss(params, example):
        x, y = example
        return (x @ params["w"] + params["b"] - y) ** 2

    def linear(params, example):
        return jnp.sum(params[0] * example["image"]) + params[1]

    params = {"w": jnp.array([1.0, -1.0]), "b": jnp.array(0.5)}
    x, y = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([0.0, 1.0])
    error = 2 * (x @ [1.0, -1.0] + 0.5 - y)
    gradients = error[:, None] * np.concatenate([x, np.ones((2, 1))], axis=1)
    right = np.linalg.norm(gradients, axis=1)
    of_w, of_b = np.linalg.norm(gradients[:, :2], axis=1), np.abs(error)
    found = gradient_norms(loss, params, (jnp.array(x), jnp.array(y)))
    assert np.shape(found) == (2,), (
        f"it has the shape {np.shape(found)}, where one norm for each of two "
        "examples is wanted"
    )
    mistakes = {
        "these are the squares of the norms": right**2,
        "only the gradient for w is counted; a norm takes all leaves": of_w,
        "only the gradient for b is counted; a norm takes all leaves": of_b,
        "it adds up the norms of the leaves; add up the squares": of_w + of_b,
        "the gradients are those of the mean of the losses, half as large as "
        "the examples' own": right / 2,
    }
    for mistake, values in mistakes.items():
        assert not np.allclose(found, values), mistake
    assert np.allclose(found, right), (
        f"the norms are {right}, and it returns {found}"
    )
    images = jnp.array([2 * np.eye(2), np.zeros((2, 2)), np.ones((2, 2))])
    images = images.reshape(3, 2, 2, 1)
    params = [jnp.ones((2, 2, 1)), jnp.array(1.0)]
    found = gradient_norms(linear, params, {"image": images})
    assert np.shape(found) == (3,) and np.allclose(found, [3, 1, 5**0.5]), (
        "for a list of an array (2, 2, 1) and a number it returns "
        f"{found}, not {np.array([3, 1, 5**0.5])}"
    )
    assert_at_once(
        "examples",
        functools.partial(gradient_norms, linear),
        lambda n: (params, {"image": jnp.ones((n, 2, 2, 1))}),
    )
