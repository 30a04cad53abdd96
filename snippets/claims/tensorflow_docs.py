"""What TensorFlow's documentation says of tf.function and XLA, counted."""

import pathlib
import re

import numpy as np
import tensorflow as tf

EXPECTED_ERRORS = {
    "second_unused": (
        tf.errors.InvalidArgumentError,
        "indices[0] = 1 is not in [0, 1)",
    ),
}


def traces_after(function, calls, **options):
    """Return how often tf.function has traced `function` after each of `calls`.

    A call is a tuple of arguments. `options` are those of tf.function.
    """
    traced = tf.function(function, **options)
    counts = []
    for call in calls:
        traced(*call)
        counts.append(traced.experimental_get_tracing_count())
    return counts


def first(*args):
    """Return the first argument."""
    return args[0]


def wrapped_again(times):
    """Return the traces when each call wraps one function in tf.function again."""
    traces = []

    def body(x):
        traces.append(x)
        return x

    for _ in range(times):
        tf.function(body)(tf.ones(3))
    return len(traces)


class Scaled(tf.Module):
    """A factor that is made in the first call, and a count of the body's runs."""

    def __init__(self):
        super().__init__()
        self.factor, self.runs = None, 0

    @tf.function
    def __call__(self, x):
        """Return x times the factor."""
        self.runs += 1
        if self.factor is None:
            self.factor = tf.Variable(1.0)
        return x * self.factor


class Biased:
    """An object whose attributes a traced function reads."""

    def __init__(self):
        self.bias = 0.0


def add_bias(model, x):
    """Return x plus the bias of an object."""
    return x + model.bias


def count_down():
    """Return the traces of a tf.function that calls itself from 5 down to 0."""

    @tf.function
    def down(n):
        return down(n - 1) if n > 0 else 0

    down(5)
    return down.experimental_get_tracing_count()


def branches_traced():
    """Return which branches of an if on a tensor are traced in one call."""
    traced = []

    @tf.function
    def absolute(x):
        if x > 0:
            traced.append("then")
            return x
        else:
            traced.append("else")
            return -x

    absolute(tf.constant(1.0))
    return traced


def graph_of(function, *args):
    """Return the graph of `function` for these arguments, as TensorFlow stores it."""
    concrete = tf.function(function).get_concrete_function(*args)
    return concrete.graph.as_graph_def()


def python_sum(n):
    """Return 0 + 1 + … + (n - 1), by a loop that runs while tracing."""
    total = tf.constant(0)
    for i in range(n):
        total += i
    return total


def tensor_sum(n):
    """Return 0 + 1 + … + (n - 1), by a loop in the graph."""
    total = tf.constant(0)
    for i in tf.range(n):
        total += i
    return total


def sum_of(rows):
    """Return the sum of all rows of a dataset."""
    total = tf.constant(0.0)
    for row in rows:
        total += tf.reduce_sum(row)
    return total


def sum_inside(data):
    """Return the sum of an array, from a dataset that is made here."""
    return sum_of(tf.data.Dataset.from_tensor_slices(data))


def second_unused(x):
    """Return x, after looking up an entry at index 1 that nothing uses."""
    tf.gather(x, [1])
    return x


def text_length(x):
    """Return how many characters each number has as text, which XLA cannot compute."""
    return tf.strings.length(tf.strings.as_string(x))


def why_refused(function, *args):
    """Return the error that XLA raises for `function`, and the operation it names."""
    try:
        tf.function(function, jit_compile=True)(*args)
    except tf.errors.InvalidArgumentError as error:
        return type(error).__name__, re.search(r"XLA_\w+: (\w+)", str(error))[1]


def draws(function, times=2, **options):
    """Return what `function` draws in each call, seeded anew before each."""
    traced = tf.function(function, **options)
    drawn = []
    for _ in range(times):
        tf.random.set_seed(1)
        drawn.append(traced().numpy())
    return drawn


def all_equal(arrays):
    """Say whether all arrays are equal."""
    return all(np.array_equal(arrays[0], each) for each in arrays)


def programs_in(folder):
    """Return how many programs XLA has written to a folder before it optimized them."""
    return len(list(pathlib.Path(folder).glob("*before_optimizations.txt")))


def power(x, n):
    """Return the n-th power of a square matrix, by n products."""
    result = tf.eye(x.shape[0], dtype=x.dtype)
    for _ in range(n):
        result = tf.matmul(x, result)
    return result
