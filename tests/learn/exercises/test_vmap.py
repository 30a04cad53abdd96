"""Answers to the exercises on vmap: what is said of them."""

import functools

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.flatten_util import ravel_pytree

from snippets.learn.checks import vmap as checks
from snippets.learn.exercises import vmap as exercises
from snippets.learn.solutions import vmap as solutions
from snippets.programs.practice import problem_of


def value(coefficients, x):
    return jnp.sum(coefficients * x ** jnp.arange(len(coefficients)))


def all_mapped(coefficients, xs):
    return jax.vmap(value)(coefficients, xs)


def coefficients_mapped(coefficients, xs):
    return jax.vmap(value, in_axes=(0, None))(coefficients, xs)


def values_in_a_loop(coefficients, xs):
    return jnp.stack([value(coefficients, x) for x in xs])


def values_in_a_compiled_loop(coefficients, xs):
    return jax.lax.map(functools.partial(value, coefficients), xs)


def values_in_a_scan(coefficients, xs):
    return jax.lax.scan(lambda _, x: (None, value(coefficients, x)), None, xs)[1]


def two_alone(coefficients, xs):
    return solutions.values(coefficients, xs[:2])


def sum_of_values(coefficients, xs):
    return jnp.sum(solutions.values(coefficients, xs))


def last_first(coefficients, xs):
    return jnp.polyval(coefficients, xs)


def three_coefficients(coefficients, xs):
    return coefficients[0] + coefficients[1] * xs + coefficients[2] * xs**2


def of_positive_numbers(coefficients, xs):
    return solutions.values(coefficients, jnp.abs(xs))


def rounded(coefficients, xs):
    return jnp.round(solutions.values(coefficients, xs))


def of_a_product(coefficients, xs):
    return jnp.sum(coefficients * (xs[:, None] * jnp.arange(len(coefficients))), axis=1)


def mapped_to_a_matrix(coefficients, xs):
    each = jax.vmap(value, in_axes=(None, 0))
    return jax.vmap(each, in_axes=(0, None))(coefficients[:, None], xs)


def values_by_polyval(coefficients, xs):
    return jnp.polyval(coefficients[::-1], xs)


def values_by_a_matmul(coefficients, xs):
    return jnp.vander(xs, len(coefficients), increasing=True) @ coefficients


def by_horner(coefficients, xs):
    def step(value, coefficient):
        return value * xs + coefficient, None

    return jax.lax.scan(step, 0 * xs, coefficients, reverse=True)[0]


def values_by_partial(coefficients, xs):
    return jax.vmap(functools.partial(value, coefficients))(xs)


def values_vectorized(coefficients, xs):
    return jnp.vectorize(value, signature="(n),()->()")(coefficients, xs)


def distance(x, y):
    return jnp.linalg.norm(x - y)


def pairs_alone(xs, ys):
    return jax.vmap(distance)(xs, ys)


def first_pairs(xs, ys):
    n = min(len(xs), len(ys))
    return jnp.diag(jax.vmap(distance)(xs[:n], ys[:n]))


def transposed(xs, ys):
    return solutions.distances(xs, ys).T


def squared(xs, ys):
    return jnp.sum((xs[:, None] - ys) ** 2, axis=-1)


def absolute(xs, ys):
    return jnp.abs(xs[:, None] - ys).sum(axis=-1)


def largest_difference(xs, ys):
    return jnp.abs(xs[:, None] - ys).max(axis=-1)


def nearest_first(xs, ys):
    return jnp.sort(solutions.distances(xs, ys), axis=1)


def of_whole_numbers(xs, ys):
    return solutions.distances(xs.astype(int), ys.astype(int))


def root_of_a_mean(xs, ys):
    return jnp.sqrt(jnp.mean((xs[:, None] - ys) ** 2, axis=-1))


def of_three_coordinates(xs, ys):
    squares = [(xs[:, None, i] - ys[:, i]) ** 2 for i in range(3)]
    return jnp.sqrt(squares[0] + squares[1] + squares[2])


def over_the_other_axis(xs, ys):
    return jnp.sqrt(jnp.sum((xs[:, None] - ys) ** 2, axis=1))


def one_of_two_mapped(xs, ys):
    return jnp.stack([jax.vmap(distance, in_axes=(None, 0))(x, ys) for x in xs])


def loop_inside_of_a_map(xs, ys):
    return jax.vmap(lambda x: jnp.stack([distance(x, y) for y in ys]))(xs)


def distances_in_a_compiled_loop(xs, ys):
    return jax.lax.map(lambda x: jax.vmap(functools.partial(distance, x))(ys), xs)


def by_broadcasting(xs, ys):
    return jnp.linalg.norm(xs[:, None] - ys[None], axis=-1)


def by_coordinates(xs, ys):
    return jnp.sqrt(sum((x[:, None] - y) ** 2 for x, y in zip(xs.T, ys.T, strict=True)))


def mapped_from_outside(xs, ys):
    columns = jax.vmap(distance, in_axes=(0, None))
    return jax.vmap(columns, in_axes=(None, 0), out_axes=1)(xs, ys)


def by_closures(xs, ys):
    return jax.vmap(lambda x: jax.vmap(lambda y: distance(x, y))(ys))(xs)


def by_products_below_zero(xs, ys):
    return jnp.sqrt((xs**2).sum(1)[:, None] + (ys**2).sum(1) - 2 * xs @ ys.T)


def by_products(xs, ys):
    squares = (xs**2).sum(1)[:, None] + (ys**2).sum(1) - 2 * xs @ ys.T
    return jnp.sqrt(jnp.maximum(squares, 0))


def medians(sequences, lengths):
    is_own = jnp.arange(sequences.shape[1]) < lengths[:, None]
    return jnp.nanmedian(jnp.where(is_own, sequences, jnp.nan), axis=1)


def with_padding(sequences, lengths):
    return jnp.mean(sequences, axis=1)


def summed(sequences, lengths, last=0):
    is_own = jnp.arange(sequences.shape[1]) < lengths[:, None] + last
    return jnp.sum(sequences, axis=1, where=is_own)


def divided_by_all(sequences, lengths):
    return summed(sequences, lengths) / sequences.shape[1]


def one_too_many(sequences, lengths):
    is_own = jnp.arange(sequences.shape[1]) <= lengths[:, None]
    return jnp.mean(sequences, axis=1, where=is_own)


def one_too_many_added(sequences, lengths):
    return summed(sequences, lengths, last=1) / lengths


def zeros_left_out(sequences, lengths):
    return jnp.mean(sequences, axis=1, where=sequences != 0)


def own_zeros_left_out(sequences, lengths):
    is_own = jnp.arange(sequences.shape[1]) < lengths[:, None]
    return jnp.mean(sequences, axis=1, where=is_own & (sequences != 0))


def of_the_first_length(sequences, lengths):
    return jax.vmap(solutions.prefix_means)(sequences[:, None], lengths[0] + 0 * lengths[:, None])[
        :, 0
    ]


def of_four_elements(sequences, lengths):
    is_own = jnp.arange(4) < lengths[:, None]
    return jnp.mean(sequences, axis=1, where=is_own)


def along_the_rows(sequences, lengths):
    return jnp.mean(sequences, axis=0, where=jnp.arange(len(lengths))[:, None] < lengths)


def prefixes_in_a_loop(sequences, lengths):
    pairs = zip(sequences, lengths, strict=True)
    is_own = jnp.arange(sequences.shape[1])
    return jnp.stack([row.mean(where=is_own < length) for row, length in pairs])


def mean_of_means(sequences, lengths):
    return jnp.mean(solutions.prefix_means(sequences, lengths))


def prefixes_in_a_scan(sequences, lengths):
    def step(_, pair):
        row, length = pair
        return None, row.mean(where=jnp.arange(len(row)) < length)

    return jax.lax.scan(step, None, (sequences, lengths))[1]


def added_up_to_the_length(sequences, lengths):
    def prefix_mean(sequence, length):
        total = jax.lax.fori_loop(0, length, lambda i, sum: sum + sequence[i], 0.0)
        return total / length

    return jax.vmap(prefix_mean)(sequences, lengths)


def with_a_dynamic_slice(sequences, lengths):
    def prefix_mean(sequence, length):
        return jnp.mean(jax.lax.dynamic_slice(sequence, (0,), (length,)))

    return jax.vmap(prefix_mean)(sequences, lengths)


def sum_of_the_own(sequences, lengths):
    return summed(sequences, lengths) / lengths


def by_running_sums(sequences, lengths):
    sums = jnp.cumsum(sequences, axis=1)
    return jnp.take_along_axis(sums, lengths[:, None] - 1, axis=1)[:, 0] / lengths


def means_without_nan(sequences, lengths):
    is_own = jnp.arange(sequences.shape[1]) < lengths[:, None]
    return jnp.nanmean(jnp.where(is_own, sequences, jnp.nan), axis=1)


def by_a_matmul_of_each(sequences, lengths):
    def prefix_mean(sequence, length):
        return sequence @ (jnp.arange(sequence.size) < length).astype("float32") / length

    return jax.jit(jax.vmap(prefix_mean))(sequences, lengths)


def norms_in_a_loop(loss, params, batch):
    count = len(jax.tree.leaves(batch)[0])
    rows = [jax.tree.map(lambda x, n=n: x[n : n + 1], batch) for n in range(count)]
    return jnp.concatenate([solutions.gradient_norms(loss, params, row) for row in rows])


def norms_in_a_compiled_loop(loss, params, batch):
    def norm(example):
        return optax.tree.norm(jax.grad(loss)(params, example))

    return jax.lax.map(norm, batch)


def of_the_mean(loss, params, batch):
    def total(params):
        return jnp.mean(jax.vmap(loss, in_axes=(None, 0))(params, batch))

    leaves = jax.tree.leaves(jax.grad(total)(params))
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))


def each_grads(loss, params, batch):
    return jax.vmap(jax.grad(loss), in_axes=(None, 0))(params, batch)


def the_squares(loss, params, batch):
    return solutions.gradient_norms(loss, params, batch) ** 2


def of_the_weights(loss, params, batch):
    return jnp.linalg.norm(each_grads(loss, params, batch)["w"], axis=1)


def of_the_bias(loss, params, batch):
    return jnp.abs(each_grads(loss, params, batch)["b"])


def of_the_last_leaf(loss, params, batch):
    last = jax.tree.leaves(each_grads(loss, params, batch))[-1]
    return jnp.linalg.norm(last, axis=1)


def of_w_and_b(loss, params, batch):
    grads = each_grads(loss, params, batch)
    return jnp.sqrt(jnp.sum(grads["w"] ** 2, axis=1) + grads["b"] ** 2)


def by_the_norm_of_each(loss, params, batch):
    def norm(example):
        leaves = jax.tree.leaves(jax.grad(loss)(params, example))
        return jnp.sqrt(sum(jnp.linalg.norm(leaf) ** 2 for leaf in leaves))

    return jax.vmap(norm)(batch)


def norms_added(loss, params, batch):
    def norm(example):
        return sum(map(jnp.linalg.norm, jax.tree.leaves(jax.grad(loss)(params, example))))

    return jax.vmap(norm)(batch)


def over_one_axis(loss, params, batch):
    leaves = jax.tree.leaves(each_grads(loss, params, batch))
    return jnp.sqrt(sum((leaf.reshape(*leaf.shape, 1) ** 2).sum(axis=1) for leaf in leaves))


def over_all_axes(loss, params, batch):
    leaves = jax.tree.leaves(each_grads(loss, params, batch))
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))


def gradient_of_the_mean_of_each(loss, params, batch):
    return solutions.gradient_norms(loss, params, batch) / len(jax.tree.leaves(batch)[0])


def pairs_of_x_and_y(loss, params, batch):
    x, y = batch
    return jax.vmap(lambda x, y: optax.tree.norm(jax.grad(loss)(params, (x, y))))(x, y)


def with_mapped_parameters(loss, params, batch):
    return jax.vmap(jax.grad(loss))(params, batch)


def by_optax(loss, params, batch):
    return jax.vmap(optax.tree.norm)(each_grads(loss, params, batch))


def by_ravel(loss, params, batch):
    def norm(params, example):
        return jnp.linalg.norm(ravel_pytree(jax.grad(loss)(params, example))[0])

    return jax.jit(jax.vmap(norm, in_axes=(None, 0)))(params, batch)


def summed_by_tree(loss, params, batch):
    squares = jax.tree.map(
        lambda leaf: (leaf**2).reshape(len(leaf), -1).sum(axis=1),
        each_grads(loss, params, batch),
    )
    return jnp.sqrt(jax.tree.reduce(jnp.add, squares))


def by_a_jacobian(loss, params, batch):
    def losses(params):
        return jax.vmap(loss, in_axes=(None, 0))(params, batch)

    leaves = jax.tree.leaves(jax.jacrev(losses)(params))
    return jnp.sqrt(sum(jnp.sum(a**2, axis=tuple(range(1, a.ndim))) for a in leaves))


WRONG = [
    (checks.check_values, exercises.values, "it raises TypeError"),
    (checks.check_values, all_mapped, "it raises ValueError: vmap got inconsistent sizes"),
    (checks.check_values, coefficients_mapped, "it raises "),
    (checks.check_values, values_in_a_loop, "stays a loop under `jit`"),
    (checks.check_values, jax.jit(values_in_a_loop), "stays a loop under `jit`"),
    (checks.check_values, values_in_a_compiled_loop, "`jax.lax.map` and `scan` are loops"),
    (checks.check_values, values_in_a_scan, "`jax.lax.map` and `scan` are loops"),
    (checks.check_values, two_alone, "at 1, 0 and -2, not"),
    (checks.check_values, sum_of_values, "two numbers have two values"),
    (checks.check_values, last_first, "from the last to the first"),
    (checks.check_values, three_coefficients, "for 1 coefficients 0.5 it returns"),
    (checks.check_values, of_positive_numbers, "at 1, 0 and -2, not"),
    (checks.check_values, rounded, "at 1, 0 and -2, not"),
    (checks.check_values, of_a_product, "1 + 2x² is 1 and 19 at 0 and 3"),
    (checks.check_values, mapped_to_a_matrix, "not the shape (3, 2)"),
    (checks.check_distances, pairs_alone, "the distance to one of `ys`"),
    (checks.check_distances, first_pairs, "six distances, (3, 2), not (2, 2)"),
    (checks.check_distances, transposed, "the rows are to be those of `xs`"),
    (checks.check_distances, squared, "squared distances"),
    (checks.check_distances, absolute, "sums of absolute differences"),
    (checks.check_distances, largest_difference, "the largest differences"),
    (checks.check_distances, nearest_first, "it returns [["),
    (checks.check_distances, of_whole_numbers, "to two of four halves"),
    (checks.check_distances, root_of_a_mean, "the root of a sum"),
    (checks.check_distances, of_three_coordinates, "from a point of four zeros"),
    (checks.check_distances, over_the_other_axis, "not (3, 3)"),
    (checks.check_distances, by_products_below_zero, "of a point to itself is nan"),
    (checks.check_distances, by_products, "so subtract before you square"),
    (checks.check_distances, exercises.distances, "three points need"),
    (checks.check_distances, jax.jit(exercises.distances), "stays a loop under `jit`"),
    (checks.check_distances, one_of_two_mapped, "stays a loop under `jit`"),
    (checks.check_distances, jax.jit(loop_inside_of_a_map), "stays a loop under `jit`"),
    (checks.check_distances, distances_in_a_compiled_loop, "`jax.lax.map` and `scan` are loops"),
    (checks.check_prefix_means, medians, "it returns ["),
    (checks.check_prefix_means, with_padding, "the padding counts as well"),
    (checks.check_prefix_means, divided_by_all, "divided by the padded length"),
    (checks.check_prefix_means, summed, "it returns the sums"),
    (checks.check_prefix_means, one_too_many, "one element too many counts"),
    (checks.check_prefix_means, one_too_many_added, "one element too many is added"),
    (checks.check_prefix_means, zeros_left_out, "each 0 is taken for padding"),
    (checks.check_prefix_means, own_zeros_left_out, "is its own"),
    (checks.check_prefix_means, of_the_first_length, "the first one's length"),
    (checks.check_prefix_means, of_four_elements, "it raises"),
    (checks.check_prefix_means, along_the_rows, "it raises"),
    (checks.check_prefix_means, prefixes_in_a_loop, "three sequences need"),
    (checks.check_prefix_means, jax.jit(prefixes_in_a_loop), "stays a loop under `jit`"),
    (checks.check_prefix_means, prefixes_in_a_scan, "`jax.lax.map` and `scan` are loops"),
    (checks.check_prefix_means, added_up_to_the_length, "a loop that ends by a condition"),
    (checks.check_prefix_means, mean_of_means, "three sequences have three means"),
    (checks.check_prefix_means, exercises.prefix_means, "it raises IndexError"),
    (checks.check_prefix_means, with_a_dynamic_slice, "it raises TypeError: Shapes must be"),
    (checks.check_gradient_norms, norms_in_a_loop, "three examples need"),
    (
        checks.check_gradient_norms,
        jax.jit(norms_in_a_loop, static_argnums=0),
        "stays a loop under `jit`",
    ),
    (checks.check_gradient_norms, norms_in_a_compiled_loop, "`jax.lax.map` and `scan` are loops"),
    (checks.check_gradient_norms, of_the_mean, "it has the shape ()"),
    (checks.check_gradient_norms, over_all_axes, "it has the shape ()"),
    (checks.check_gradient_norms, the_squares, "these are the squares"),
    (checks.check_gradient_norms, of_the_weights, "only the gradient for w"),
    (checks.check_gradient_norms, of_the_bias, "only the gradient for b"),
    (checks.check_gradient_norms, of_the_last_leaf, "only the gradient for w"),
    (checks.check_gradient_norms, of_w_and_b, "it raises TypeError: list indices"),
    (checks.check_gradient_norms, norms_added, "it adds up the norms of the leaves"),
    (checks.check_gradient_norms, gradient_of_the_mean_of_each, "of the mean of the losses"),
    (checks.check_gradient_norms, pairs_of_x_and_y, "it raises ValueError"),
    (checks.check_gradient_norms, with_mapped_parameters, "it raises ValueError: vmap"),
]

RIGHT = [
    (checks.check_values, values_by_polyval),
    (checks.check_values, values_by_a_matmul),
    (checks.check_values, by_horner),
    (checks.check_values, values_by_partial),
    (checks.check_values, jax.jit(values_vectorized)),
    (checks.check_distances, by_broadcasting),
    (checks.check_distances, by_coordinates),
    (checks.check_distances, mapped_from_outside),
    (checks.check_distances, jax.jit(by_closures)),
    (checks.check_prefix_means, sum_of_the_own),
    (checks.check_prefix_means, by_running_sums),
    (checks.check_prefix_means, means_without_nan),
    (checks.check_prefix_means, by_a_matmul_of_each),
    (checks.check_gradient_norms, by_optax),
    (checks.check_gradient_norms, by_the_norm_of_each),
    (checks.check_gradient_norms, by_ravel),
    (checks.check_gradient_norms, summed_by_tree),
    (checks.check_gradient_norms, by_a_jacobian),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
