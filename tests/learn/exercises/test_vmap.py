"""Wrong answers to the exercises on vmap, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import vmap as checks
from snippets.learn.exercises import vmap as exercises
from snippets.learn.solutions import vmap as solutions
from snippets.programs.practice import problem_of


def distance(x, y):
    return jnp.linalg.norm(x - y)


def pairs_alone(xs, ys):
    return jax.vmap(distance)(xs[:2], ys)


def transposed(xs, ys):
    return solutions.distances(xs, ys).T


def squared(xs, ys):
    return jnp.sum((xs[:, None] - ys) ** 2, axis=-1)


def with_padding(sequences, lengths):
    return jnp.mean(sequences, axis=1)


def divided_by_all(sequences, lengths):
    is_own = jnp.arange(sequences.shape[1]) < lengths[:, None]
    return jnp.mean(jnp.where(is_own, sequences, 0), axis=1)


def prefixes_in_a_loop(sequences, lengths):
    pairs = zip(sequences, lengths, strict=True)
    is_own = jnp.arange(sequences.shape[1])
    return jnp.stack([row.mean(where=is_own < length) for row, length in pairs])


def norms_in_a_loop(loss, params, batch):
    rows = [jax.tree.map(lambda x, n=n: x[n : n + 1], batch) for n in range(len(batch[0]))]
    return jnp.concatenate([solutions.gradient_norms(loss, params, row) for row in rows])


def mean_of_means(sequences, lengths):
    return jnp.mean(solutions.prefix_means(sequences, lengths))


def of_the_mean(loss, params, batch):
    def total(params):
        return jnp.mean(jax.vmap(loss, in_axes=(None, 0))(params, batch))

    leaves = jax.tree.leaves(jax.grad(total)(params))
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))


def the_squares(loss, params, batch):
    return solutions.gradient_norms(loss, params, batch) ** 2


def of_the_weights(loss, params, batch):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0))(params, batch)
    return jnp.linalg.norm(grads["w"], axis=1)


def with_mapped_parameters(loss, params, batch):
    return jax.vmap(jax.grad(loss))(params, batch)


WRONG = [
    (checks.check_distances, pairs_alone, "(3, 2), not (2,)"),
    (checks.check_distances, transposed, "the rows are to be those of `xs`"),
    (checks.check_distances, squared, "squared distances"),
    (checks.check_distances, exercises.distances, "three points need"),
    (checks.check_prefix_means, with_padding, "the padding counts as well"),
    (checks.check_prefix_means, divided_by_all, "divided by the padded length"),
    (checks.check_prefix_means, prefixes_in_a_loop, "three sequences need"),
    (checks.check_prefix_means, mean_of_means, "two sequences have two means"),
    (checks.check_gradient_norms, norms_in_a_loop, "three examples need"),
    (checks.check_gradient_norms, of_the_mean, "it has the shape ()"),
    (checks.check_gradient_norms, the_squares, "these are the squares"),
    (checks.check_gradient_norms, of_the_weights, "a norm takes all leaves"),
    (checks.check_gradient_norms, with_mapped_parameters, "it raises ValueError: vmap"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
