"""Answers to the exercises on debugging: what is said of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from snippets.learn.checks import debugging as checks
from snippets.learn.exercises import debugging as exercises
from snippets.learn.solutions import debugging as solutions
from snippets.programs.practice import problem_of

pytestmark = pytest.mark.usefixtures("few_objects")


def printing(show, of=lambda weights: weights / weights.sum()):
    """Return a jitted function that calls `show` with the weights, and returns `of` them."""

    @jax.jit
    def shares(weights):
        show(weights)
        return of(weights)

    return shares


def show_the_sum(weights):
    jax.debug.print("sum: {}", weights.sum())


def show_without_jit(weights):
    print("sum:", weights.sum())
    return weights / weights.sum()


@printing
def by_an_f_string(weights):
    jax.debug.print(f"sum: {weights.sum()}")


@printing
def by_a_comma(weights):
    jax.debug.print("sum:", weights.sum())


@printing
def by_a_float(weights):
    print("sum:", float(weights.sum()))


@printing
def of_the_weights(weights):
    jax.debug.print("weights: {}", weights)


@printing
def of_the_mean(weights):
    jax.debug.print("mean: {}", weights.mean())


@printing
def of_the_first_call(weights):
    jax.debug.print("sum: {}", 8.0)


@printing
def without_jit_inside(weights):
    with jax.disable_jit():
        print("sum:", weights.sum())


@printing
def by_a_callback(weights):
    jax.debug.callback(lambda total: print(f"sum: {total:.3f}"), weights.sum())


@printing
def by_name_in_order(weights):
    jax.debug.print("{x} add up to {total}", x=weights, total=weights.sum(), ordered=True)


@printing
def as_two_lines(weights):
    jax.debug.print("the weights: {}", weights)
    jax.debug.print("{:.2e}", jnp.sum(weights))


def entropy(logits, labels, epsilon=0.0):
    powers = jnp.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True) + epsilon
    return -jnp.mean(jnp.log(probabilities[jnp.arange(len(labels)), labels]))


def with_an_epsilon(logits, labels):
    return entropy(logits, labels, epsilon=1e-7)


def clipped(logits, labels):
    return exercises.cross_entropy(jnp.clip(logits, -1.5, 1.5), labels)


def summed(logits, labels):
    return len(labels) * solutions.cross_entropy(logits, labels)


def without_a_minus(logits, labels):
    return -solutions.cross_entropy(logits, labels)


def over_the_rows(logits, labels):
    logs = jax.nn.log_softmax(logits, axis=0)
    return -jnp.mean(logs[jnp.arange(len(labels)), labels])


def over_all_logits(logits, labels):
    is_label = jax.nn.one_hot(labels, logits.shape[1])
    return -jnp.mean(is_label * jax.nn.log_softmax(logits))


def for_each_row(logits, labels):
    return -jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels]


def log_of_softmax(logits, labels):
    return -jnp.mean(jnp.log(jax.nn.softmax(logits))[jnp.arange(len(labels)), labels])


def shifted_by_the_largest_of_all(logits, labels):
    logs = jnp.log(jnp.exp(logits - logits.max()).sum(axis=1))
    own = (logits - logits.max())[jnp.arange(len(labels)), labels]
    return jnp.mean(logs - own)


def not_a_number_becomes_zero(logits, labels):
    return jnp.nan_to_num(exercises.cross_entropy(logits, labels))


def cut_at_eighty(logits, labels):
    return exercises.cross_entropy(jnp.clip(logits, -80, 80), labels)


def log_sum_unshifted(logits, labels):
    logs = jnp.log(jnp.exp(jnp.minimum(logits, 80)).sum(axis=1))
    return jnp.mean(logs - logits[jnp.arange(len(labels)), labels])


def of_all_labels(logits, labels):
    return -jnp.mean(jax.nn.log_softmax(logits)[:, labels])


def median(logits, labels):
    return -jnp.median(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])


def without_the_sum(logits, labels):
    return -jnp.mean(logits[jnp.arange(len(labels)), labels])


def with_numpy(logits, labels):
    logits = np.asarray(logits)
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = np.log(np.exp(shifted).sum(axis=1))
    return jnp.asarray(np.mean(logs - shifted[np.arange(len(labels)), labels]))


def by_optax(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def by_logsumexp(logits, labels):
    own = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - own)


def by_one_hot(logits, labels):
    is_label = jax.nn.one_hot(labels, logits.shape[-1])
    return -(is_label * jax.nn.log_softmax(logits)).sum() / len(labels)


def shifted_by_hand(logits, labels):
    def loss(row, label):
        shifted = row - jax.lax.stop_gradient(row.max())
        return jnp.log(jnp.exp(shifted).sum()) - shifted[label]

    return jax.vmap(loss)(logits, labels).mean()


def fresh_list(kernels, x):
    largest = []
    for kernel in kernels:
        x = jnp.tanh(x @ kernel)
        largest.append(x.max())
    return x, jnp.stack(largest)


def unstacked(kernels, x):
    x, largest = solutions.forward(kernels, x)
    return x, list(largest)


def of_the_last_layer(kernels, x):
    x, largest = solutions.forward(kernels, x)
    return x, largest[-1]


def of_the_inputs(kernels, x):
    return x, solutions.forward(kernels, x)[1]


@jax.jit
def emptied_first(kernels, x):
    exercises.LARGEST.clear()
    for kernel in kernels:
        x = jnp.tanh(x @ kernel)
        exercises.LARGEST.append(jnp.abs(x).max())
    return x, jnp.stack(exercises.LARGEST)


@jax.jit
def with_a_default(kernels, x, largest=[]):  # noqa: B006
    for kernel in kernels:
        x = jnp.tanh(x @ kernel)
        largest.append(jnp.abs(x).max())
    return x, jnp.stack(largest)


def without_jit(kernels, x):
    return solutions.forward.__wrapped__(kernels, x)


REMEMBERED = []


def remembered_without_jit(kernels, x):
    x, largest = solutions.forward(kernels, x)
    REMEMBERED.extend(largest)
    return x, jnp.stack(REMEMBERED)


@jax.jit
def the_last_three(kernels, x):
    for kernel in kernels:
        x = jnp.tanh(x @ kernel)
        exercises.LARGEST.append(jnp.abs(x).max())
    return x, jnp.stack(exercises.LARGEST[-len(kernels) :])


def from_the_last(kernels, x):
    x, largest = solutions.forward(kernels, x)
    return x, largest[::-1]


@jax.jit
def of_the_first_row(kernels, x):
    y, _ = solutions.forward(kernels, x)
    return y, solutions.forward(kernels, x[:1])[1]


@jax.jit
def before_the_layers(kernels, x):
    largest = []
    for kernel in kernels:
        largest.append(jnp.abs(x).max())
        x = jnp.tanh(x @ kernel)
    return x, jnp.stack(largest)


@jax.jit
def before_the_tanh(kernels, x):
    largest = []
    for kernel in kernels:
        y = x @ kernel
        largest.append(jnp.abs(y).max())
        x = jnp.tanh(y)
    return x, jnp.stack(largest)


def numbers_alone(kernels, x):
    return solutions.forward(kernels, x)[1]


def with_one_more(kernels, x):
    x, largest = solutions.forward(kernels, x)
    return x, jnp.append(largest, 0)


def remembered_for_good(kernels, x, known={}):  # noqa: B006
    y, largest = solutions.forward(kernels, x)
    return y, known.setdefault("largest", largest)


@jax.jit
def in_an_array(kernels, x):
    largest = jnp.zeros(len(kernels))
    for i, kernel in enumerate(kernels):
        x = jnp.tanh(x @ kernel)
        largest = largest.at[i].set(jnp.max(jnp.abs(x)))
    return x, largest


@jax.jit
def in_a_scan(kernels, x):
    def layer(x, kernel):
        x = jnp.tanh(x @ kernel)
        return x, jnp.abs(x).max()

    return jax.lax.scan(layer, x, jnp.stack(kernels))


def around_a_jitted(kernels, x):
    @jax.jit
    def layers(kernels, x):
        outs = []
        for kernel in kernels:
            outs.append(jnp.tanh((outs[-1] if outs else x) @ kernel))
        return outs[-1], jnp.array([jnp.linalg.norm(out.ravel(), jnp.inf) for out in outs])

    return layers(kernels, x)


class Layers:
    def __call__(self, kernels, x):
        return self.forward(kernels, x)

    @functools.partial(jax.jit, static_argnums=0)
    def forward(self, kernels, x):
        if not kernels:
            return x, jnp.zeros(0)
        x = jnp.tanh(x @ kernels[0])
        last, rest = self.forward(kernels[1:], x)
        return last, jnp.append(jnp.abs(x).max(), rest)


def mean_from(batches, mean, count):
    state = {"mean": mean, "count": count}
    for x in batches:
        state = solutions.update(state, x)
    return state["mean"]


def mean_from_weak_arrays(batches):
    return mean_from(batches, jnp.array(0.0), jnp.array(0))


def mean_alone_an_array(batches):
    return mean_from(batches, jnp.zeros(()), 0)


def count_alone_an_array(batches):
    return mean_from(batches, 0.0, jnp.zeros((), jnp.int32))


def from_the_first_batch(batches):
    return mean_from(batches[1:], batches[0].mean(), batches[0].size)


def from_asarray(batches):
    return mean_from(batches, jnp.asarray(0.0), jnp.asarray(0))


def without_the_first(batches):
    return mean_from(batches[1:], jnp.zeros(()), jnp.zeros((), jnp.int32))


def counted_from_one(batches):
    return mean_from(batches, jnp.zeros(()), jnp.ones((), jnp.int32))


def of_one_axis(batches):
    return mean_from(batches, jnp.zeros(1), jnp.zeros((), jnp.int32))


def without_jit_of_update(batches):
    state = {"mean": 0.0, "count": 0}
    for x in batches:
        state = solutions.update.__wrapped__(state, x)
    return state["mean"]


def of_all_at_once(batches):
    state = {"mean": jnp.zeros(()), "count": jnp.zeros((), jnp.int32)}
    return solutions.update(state, jnp.concatenate(batches))["mean"]


def without_jit_at_all(batches):
    with jax.disable_jit():
        return exercises.mean_of(batches)


def in_numpy(batches):
    return np.mean([np.asarray(x) for x in batches])


def mean_by_scan(batches):
    state = {"mean": jnp.zeros(()), "count": jnp.zeros((), jnp.int32)}

    def step(state, x):
        return solutions.update(state, x), None

    return jax.lax.scan(step, state, jnp.stack(batches))[0]["mean"]


def mean_from_numpy(batches):
    return mean_from(batches, np.float32(0), np.int32(0))


def from_the_first_as_arrays(batches):
    first = batches[0]
    return mean_from(batches[1:], first.mean(), jnp.array(first.size, jnp.int32))


def mean_by_reduce(batches):
    state = {"mean": jnp.float32(0), "count": jnp.int32(0)}
    return float(functools.reduce(solutions.update, batches, state)["mean"])


def mean_by_name(batches):
    def update(state, x, count):
        new = count + x.size
        return state + (x.sum() - x.size * state) / new

    jitted, mean = jax.jit(update, static_argnames="count"), jnp.zeros(())
    for number, x in enumerate(batches):
        mean = jitted(mean, x, count=number * x.size)
    return mean


def in_one_go(batches):
    return jnp.mean(jnp.stack(batches))


def half_of_it(batches):
    return solutions.mean_of(batches[:2])


S = checks.check_shares
WRONG = [
    (S, exercises.shares, "it prints a tracer"),
    (S, by_an_f_string, "and the sum as another argument"),
    (S, without_jit_inside, "it prints a tracer"),
    (S, show_without_jit, "keep `jax.jit`"),
    (S, by_a_comma, "it raises ValueError"),
    (S, by_a_float, "it raises ConcretizationTypeError"),
    (S, printing(lambda weights: None), "for [0.5, 5.0, 2.5] it prints nothing"),
    (S, of_the_weights, "without the sum, 8.0"),
    (S, of_the_mean, "without the sum, 8.0"),
    (S, of_the_first_call, "without the sum, 5.0"),
    (S, printing(show_the_sum, lambda weights: None), "it returns nothing"),
    (S, printing(show_the_sum, jnp.sum), "it returns 8.0, not each over the sum"),
    (S, printing(show_the_sum, jax.nn.softmax), "not each over the sum, 8.0"),
    (S, printing(show_the_sum, lambda weights: weights), "not each over the sum, 8.0"),
    (checks.check_cross_entropy, exercises.cross_entropy, "for a logit of 1000 it returns nan"),
    (checks.check_cross_entropy, entropy, "it returns infinity"),
    (checks.check_cross_entropy, with_an_epsilon, "not cut off"),
    (checks.check_cross_entropy, clipped, "it returns"),
    (checks.check_cross_entropy, summed, "the sum over the rows"),
    (checks.check_cross_entropy, without_a_minus, "minus the logarithm"),
    (checks.check_cross_entropy, over_the_rows, "the softmax over the rows"),
    (checks.check_cross_entropy, over_all_logits, "not of rows"),
    (checks.check_cross_entropy, for_each_row, "a loss is one number"),
    (checks.check_cross_entropy, log_of_softmax, "it returns infinity"),
    (checks.check_cross_entropy, shifted_by_the_largest_of_all, "its own largest"),
    (checks.check_cross_entropy, not_a_number_becomes_zero, "its own largest"),
    (checks.check_cross_entropy, cut_at_eighty, "not cut off"),
    (checks.check_cross_entropy, log_sum_unshifted, "not 0.1566"),
    (checks.check_cross_entropy, of_all_labels, "it returns "),
    (checks.check_cross_entropy, median, "it returns "),
    (checks.check_cross_entropy, without_the_sum, "it leaves out the sum"),
    (checks.check_cross_entropy, with_numpy, "it raises TracerArrayConversionError"),
    (checks.check_forward, emptied_first, "something outside of the function"),
    (checks.check_forward, with_a_default, "something outside of the function"),
    (checks.check_forward, without_jit, "keep `@jax.jit`"),
    (checks.check_forward, remembered_without_jit, "a second call returns (6,)"),
    (checks.check_forward, the_last_three, "something outside of the function"),
    (checks.check_forward, from_the_last, "the last layer come first"),
    (checks.check_forward, of_the_first_row, "the largest numbers are"),
    (checks.check_forward, before_the_layers, "the largest numbers are"),
    (checks.check_forward, before_the_tanh, "the largest numbers are"),
    (checks.check_forward, numbers_alone, "it is to return two things"),
    (checks.check_forward, with_one_more, "not the shape (4,)"),
    (checks.check_forward, remembered_for_good, "the numbers of another"),
    (checks.check_forward, exercises.forward, "something outside of the function keeps tracers"),
    (checks.check_forward, fresh_list, "the largest numbers are"),
    (checks.check_forward, jax.jit(unstacked), "are a list, not an array"),
    (checks.check_forward, of_the_last_layer, "three layers have three"),
    (checks.check_forward, of_the_inputs, "what the layers make of x"),
    (checks.check_mean_of, exercises.mean_of, "has a weak type"),
    (checks.check_mean_of, mean_by_name, "what changes in each iteration must not be static"),
    (checks.check_mean_of, in_one_go, "no jitted `update` is called"),
    (checks.check_mean_of, half_of_it, "is 3, and it returns"),
    (checks.check_mean_of, mean_from_weak_arrays, "has a weak type"),
    (checks.check_mean_of, count_alone_an_array, "has a weak type"),
    (checks.check_mean_of, from_asarray, "has a weak type"),
    (checks.check_mean_of, without_the_first, "is 3, and it returns"),
    (checks.check_mean_of, counted_from_one, "is 3, and it returns"),
    (checks.check_mean_of, of_one_axis, "it returns the shape (1,)"),
    (checks.check_mean_of, without_jit_of_update, "no jitted `update` is called"),
    (checks.check_mean_of, of_all_at_once, "give it one at a time"),
    (checks.check_mean_of, without_jit_at_all, "no jitted `update` is called"),
    (checks.check_mean_of, in_numpy, "no jitted `update` is called"),
]

RIGHT = [
    (S, by_a_callback),
    (S, by_name_in_order),
    (S, as_two_lines),
    (S, printing(show_the_sum)),
    (checks.check_cross_entropy, by_optax),
    (checks.check_cross_entropy, by_logsumexp),
    (checks.check_cross_entropy, by_one_hot),
    (checks.check_cross_entropy, jax.jit(shifted_by_hand)),
    (checks.check_forward, in_an_array),
    (checks.check_forward, in_a_scan),
    (checks.check_forward, around_a_jitted),
    (checks.check_forward, Layers()),
    (checks.check_mean_of, mean_by_scan),
    (checks.check_mean_of, mean_from_numpy),
    (checks.check_mean_of, from_the_first_as_arrays),
    (checks.check_mean_of, mean_by_reduce),
    (checks.check_mean_of, from_the_first_batch),
    (checks.check_mean_of, mean_alone_an_array),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
