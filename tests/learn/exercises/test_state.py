"""Wrong answers to the exercises on pure functions and state, and what is said of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import state as checks
from snippets.learn.exercises import state as exercises
from snippets.learn.solutions import state as solutions
from snippets.programs.practice import problem_of

HIGHEST = [0.0]
NOTED = []


@jax.jit
def best_read_from_a_list(best, score):
    return jnp.maximum(HIGHEST[0], score)


@jax.jit
def best_kept_as_well(best, score):
    NOTED[:] = [jnp.maximum(best, score)]
    return jnp.maximum(best, score)


@jax.jit
def best_by_python(best, score):
    return max(best, score)


@jax.jit
def best_by_an_if(best, score):
    return score if score > best else best


def best_without_jit(best, score):
    return jnp.maximum(best, score)


@jax.jit
def best_dropped(best, score):
    jnp.maximum(best, score)


@jax.jit
def best_of_sizes(best, score):
    return jnp.maximum(jnp.abs(best), jnp.abs(score))


@jax.jit
def best_above_zero(best, score):
    return jnp.maximum(jnp.maximum(best, score), 0.0)


@jax.jit
def best_and_score(best, score):
    return jnp.maximum(best, score), score


@jax.jit
def best_by_where(best, score):
    return jnp.where(score > best, score, best)


@jax.jit
def best_by_stacking(best, score):
    return jnp.stack([best, score]).max(axis=0)


@jax.jit
def best_by_difference(best, score):
    return best + jax.nn.relu(score - best)


@jax.jit
def best_by_cond(best, score):
    return jax.lax.cond(score > best, lambda: score, lambda: best)


@jax.jit
def best_by_a_name(best, score):
    best = jnp.maximum(score, best)
    return best


def counted_by_running():
    log = []

    @jax.jit
    def total(x):
        log.append(x.shape)
        return x.sum()

    for length in (3, 4, 3, 4, 3):
        total(jnp.ones(length))
    return len(log)


def of_a_flat_dictionary(means, params, decay):
    return {name: decay * means[name] + (1 - decay) * params[name] for name in means}


def the_other_way_round(means, params, decay):
    return solutions.average(params, means, decay)


def in_place(means, params, decay):
    found = solutions.average(means, params, decay)
    means.update(found)
    return means


def as_leaves(means, params, decay):
    return jax.tree.leaves(solutions.average(means, params, decay))


def the_sum(means, params, decay):
    return jax.tree.map(lambda mean, p: decay * mean + p, means, params)


def leaf_by_leaf(function):
    def average(means, params, decay):
        return jax.tree.map(lambda mean, p: function(mean, p, decay), means, params)

    return average


@leaf_by_leaf
def of_numbers_alone(mean, p, decay):
    return mean if mean.ndim else decay * mean + (1 - decay) * p


@leaf_by_leaf
def of_the_mean_over_a_leaf(mean, p, decay):
    return jnp.full_like(mean, jnp.mean(decay * mean + (1 - decay) * p))


@leaf_by_leaf
def by_a_fixed_decay(mean, p, decay):
    return 0.75 * mean + 0.25 * p


@leaf_by_leaf
def halfway(mean, p, decay):
    return (mean + p) / 2


@leaf_by_leaf
def not_of_matrices(mean, p, decay):
    return mean if mean.ndim > 1 else decay * mean + (1 - decay) * p


def of_lists_and_dictionaries(means, params, decay):
    if isinstance(means, dict):
        return {k: of_lists_and_dictionaries(means[k], params[k], decay) for k in means}
    if isinstance(means, list):
        pairs = zip(means, params, strict=True)
        return [of_lists_and_dictionaries(mean, p, decay) for mean, p in pairs]
    return decay * means + (1 - decay) * params


def of_tuples_as_well(means, params, decay):
    if isinstance(means, dict):
        return {k: of_tuples_as_well(means[k], params[k], decay) for k in means}
    if isinstance(means, (list, tuple)):
        pairs = zip(means, params, strict=True)
        return type(means)([of_tuples_as_well(mean, p, decay) for mean, p in pairs])
    return decay * means + (1 - decay) * params


def in_the_parameters(means, params, decay):
    if not isinstance(params, dict):
        return solutions.average(means, params, decay)
    params.update(solutions.average(means, params, decay))
    return params


def in_a_nested_list(means, params, decay):
    found = solutions.average(means, params, decay)
    means["layers"][0] = found["layers"][0]
    return found


def average_dropped(means, params, decay):
    solutions.average(means, params, decay)


average_donated = jax.jit(solutions.average, donate_argnames="means")


@leaf_by_leaf
def towards_the_parameter(mean, p, decay):
    return mean + (1 - decay) * (p - mean)


def average_of_leaves(means, params, decay):
    leaves, structure = jax.tree.flatten(means)
    pairs = zip(leaves, jax.tree.leaves(params), strict=True)
    return structure.unflatten([decay * mean + (1 - decay) * p for mean, p in pairs])


def in_three_maps(means, params, decay):
    old = jax.tree.map(lambda mean: decay * mean, means)
    new = jax.tree.map(lambda p: (1 - decay) * p, params)
    return jax.tree.map(jnp.add, old, new)


def trained(params, batches, rate, momentum, nesterov=False, late=False):
    velocities = jax.tree.map(jnp.zeros_like, params)
    for x, y in batches:
        grads = {"w": 2 * x.T @ (x @ params["w"] - y) / len(y)}
        old = velocities
        velocities = {"w": momentum * old["w"] + grads["w"]}
        ahead = {"w": momentum * velocities["w"] + grads["w"]}
        used = ahead if nesterov else old if late else velocities
        params = {"w": params["w"] - rate * used["w"]}
    return params


def without_momentum(params, batches, rate, momentum):
    return trained(params, batches, rate, 0.0)


def with_the_old_velocity(params, batches, rate, momentum):
    return trained(params, batches, rate, momentum, late=True)


def with_nesterov(params, batches, rate, momentum):
    return trained(params, batches, rate, momentum, nesterov=True)


def both(params, batches, rate, momentum):
    return trained(params, batches, rate, momentum), params


def error(params, batch):
    x, y = batch
    return jnp.mean((x @ params["w"] - y) ** 2)


def stepped(params, velocities, batch, rate, momentum):
    grads = jax.grad(error)(params, batch)
    velocities = jax.tree.map(lambda v, grad: momentum * v + grad, velocities, grads)
    return jax.tree.map(lambda p, v: p - rate * v, params, velocities), velocities


jitted_step = jax.jit(stepped)
donating_step = jax.jit(stepped, donate_argnames=("params", "velocities"))


def trained_by(step, params, batches, rate, momentum):
    velocities = jax.tree.map(jnp.zeros_like, params)
    for batch in batches:
        params, velocities = step(params, velocities, batch, rate, momentum)
    return params


@jax.jit
def in_one_program(params, batches, rate, momentum):
    return trained_by(stepped, params, batches, rate, momentum)


def with_donated_parameters(params, batches, rate, momentum):
    return trained_by(donating_step, params, batches, rate, momentum)


def with_a_step_for_each_batch(params, batches, rate, momentum):
    velocities = jax.tree.map(jnp.zeros_like, params)
    for batch in batches:
        step = jax.jit(lambda *given: stepped(*given, rate, momentum))
        params, velocities = step(params, velocities, batch)
    return params


def with_parameters_as_velocities(params, batches, rate, momentum):
    velocities = params
    for batch in batches:
        params, velocities = jitted_step(params, velocities, batch, rate, momentum)
    return params


def from_zero(params, batches, rate, momentum):
    params = jax.tree.map(jnp.zeros_like, params)
    return trained_by(jitted_step, params, batches, rate, momentum)


def by_a_fixed_momentum(params, batches, rate, momentum):
    return trained_by(jitted_step, params, batches, rate, 0.9)


def by_a_fixed_rate(params, batches, rate, momentum):
    return trained_by(jitted_step, params, batches, 0.1, momentum)


GLOBAL = {}


@jax.jit
def step_that_reads_globals(params, velocities, batch):
    return stepped(params, velocities, batch, **GLOBAL)


def with_frozen_globals(params, batches, rate, momentum):
    GLOBAL.update(rate=rate, momentum=momentum)
    velocities = jax.tree.map(jnp.zeros_like, params)
    for batch in batches:
        params, velocities = step_that_reads_globals(params, velocities, batch)
    return params


LASTING = {"w": jnp.zeros(2)}


def with_velocities_that_stay(params, batches, rate, momentum):
    for batch in batches:
        params, new = jitted_step(params, LASTING, batch, rate, momentum)
        LASTING.update(new)
    return params


def with_a_gradient_compiled_alone(params, batches, rate, momentum):
    gradient = jax.jit(jax.grad(error))
    velocities = jax.tree.map(jnp.zeros_like, params)
    for batch in batches:
        grads = gradient(params, batch)
        velocities = jax.tree.map(lambda v, grad: momentum * v + grad, velocities, grads)
        params = jax.tree.map(lambda p, v: p - rate * v, params, velocities)
    return params


def in_the_callers_dictionary(params, batches, rate, momentum):
    params.update(solutions.train(params, batches, rate, momentum))
    return params


def trained_and_dropped(params, batches, rate, momentum):
    solutions.train(params, batches, rate, momentum)


def averaged_velocity(params, batches, rate, momentum):
    return trained_by(jitted_step, params, batches, rate * (1 - momentum), momentum)


def by_the_last_batch(params, batches, rate, momentum):
    return solutions.train(params, batches[-1:], rate, momentum)


def by_scan(params, batches, rate, momentum):
    def body(state, batch):
        return jitted_step(*state, batch, rate, momentum), None

    batches = jax.tree.map(lambda *each: jnp.stack(each), *batches)
    state = params, jax.tree.map(jnp.zeros_like, params)
    return jax.lax.scan(body, state, batches)[0][0]


def from_a_product(params, batches, rate, momentum):
    step = jax.jit(functools.partial(stepped, rate=rate, momentum=momentum))
    velocities = jax.tree.map(lambda p: 0 * p, params)
    for batch in batches:
        params, velocities = step(params, velocities, batch)
    return params


def by_partial(params, batches, rate, momentum):
    step = jax.jit(functools.partial(stepped, rate=rate, momentum=momentum))
    velocities = {"w": 0.0}
    for batch in batches:
        params, velocities = step(params, velocities, batch)
    return params


def compiled_ahead(params, batches, rate, momentum):
    velocities = jax.tree.map(jnp.zeros_like, params)
    lowered = jitted_step.lower(params, velocities, batches[0], rate, momentum)
    return trained_by(lowered.compile(), params, batches, rate, momentum)


def with_copies_donated(params, batches, rate, momentum):
    params = jax.tree.map(jnp.array, params)
    return trained_by(donating_step, params, batches, rate, momentum)


class Trainer:
    def __init__(self, params, rate, momentum):
        self.state = params, jax.tree.map(jnp.zeros_like, params)
        self.update = jax.jit(lambda state, batch: stepped(*state, batch, rate, momentum))

    def step(self, batch):
        self.state = self.update(self.state, batch)


def by_a_class(params, batches, rate, momentum):
    trainer = Trainer(params, rate, momentum)
    for batch in batches:
        trainer.step(batch)
    return trainer.state[0]


def with_printed_losses(params, batches, rate, momentum):
    @jax.jit
    def update(params, velocities, batch):
        return *stepped(params, velocities, batch, rate, momentum), error(params, batch)

    velocities = jax.tree.map(jnp.zeros_like, params)
    losses = []
    for batch in batches:
        params, velocities, value = update(params, velocities, batch)
        losses.append(float(value))
    return params


B = checks.check_best_after
E, A, T = checks.check_entries, checks.check_average, checks.check_train
WRONG = [
    (B, exercises.best_after, "the argument `best`"),
    (B, best_read_from_a_list, "it returns the score, which is lower; JAX reads a list"),
    (B, jax.jit(lambda best, score: score), "it returns the score, which is lower"),
    (B, jax.jit(lambda best, score: best), "a higher score is the new best"),
    (B, jax.jit(jnp.minimum), "a higher score is the new best"),
    (B, best_kept_as_well, "it keeps the new best outside"),
    (B, best_by_python, "it raises TracerBoolConversionError"),
    (B, best_by_an_if, "it raises TracerBoolConversionError"),
    (B, best_without_jit, "keep `jax.jit`"),
    (B, best_dropped, "it returns nothing"),
    (B, best_of_sizes, "with a best of -5.0 and a score of -2.5 it returns 5.0, not -2.5"),
    (B, best_above_zero, "with a best of -5.0 and a score of -2.5 it returns 0.0, not -2.5"),
    (B, jax.jit(jnp.add), "with a best of 3.0 and a score of 7.5 it returns 10.5, not 7.5"),
    (B, best_and_score, "where one number is wanted"),
    (E, exercises.entries, "write `entries`"),
    (E, lambda: 5, "5 would be one for each call"),
    (E, lambda: 1, "1 would be a single trace"),
    (E, lambda: 3, "it is not 3"),
    (E, lambda: 4, "it is not 4"),
    (E, lambda: "2", "it returns the text '2'"),
    (E, lambda: 0, "0 would be no trace"),
    (E, lambda: None, "it returns nothing"),
    (E, lambda: [(3,), (4,)], "return one number"),
    (E, lambda: jnp.array([3, 2]), "it returns [3 2]; return one number"),
    (A, exercises.average, "write `average`"),
    (A, of_a_flat_dictionary, "it raises TypeError"),
    (A, of_lists_and_dictionaries, "it raises TypeError"),
    (A, the_other_way_round, "the decay belongs to the average before"),
    (A, in_place, "it changes `means`"),
    (A, of_tuples_as_well, "does not have the structure of `means`"),
    (A, in_the_parameters, "it changes `means` or `params`"),
    (A, in_a_nested_list, "it changes `means`"),
    (A, as_leaves, "does not have the structure of `means`"),
    (A, the_sum, "and should be 0.75 * 1 + 0.25 * 5"),
    (A, halfway, "become 3.0 with a decay of 0.75"),
    (A, of_numbers_alone, "and should become [1. 2. 3.5]"),
    (A, of_the_mean_over_a_leaf, "and should become [1. 2. 3.5]"),
    (A, not_of_matrices, "treat all arrays alike"),
    (A, by_a_fixed_decay, "with a decay of 0.5"),
    (A, average_dropped, "it returns nothing"),
    (A, average_donated, "don't donate them"),
    (T, exercises.train, "the velocities that a step computes are gone"),
    (T, without_momentum, "those of SGD without momentum"),
    (T, with_the_old_velocity, "the velocity is updated first"),
    (T, both, "is not a dictionary of w"),
    (T, with_nesterov, "after three steps the parameters are"),
    (T, averaged_velocity, "after three steps the parameters are"),
    (T, by_the_last_batch, "after three steps the parameters are"),
    (T, trained, "keep `jax.jit`"),
    (T, with_a_gradient_compiled_alone, "keep `jax.jit` around all of it"),
    (T, with_a_step_for_each_batch, "define the jitted step once"),
    (T, in_one_program, "has 6 matmuls for three batches and 10 for five"),
    (T, with_donated_parameters, "the parameters that it was given are gone"),
    (T, in_the_callers_dictionary, "it changes the dictionary"),
    (T, trained_and_dropped, "it returns nothing"),
    (T, with_parameters_as_velocities, "after three steps the parameters are"),
    (T, from_zero, "after three steps the parameters are"),
    (T, by_a_fixed_momentum, "with another rate and momentum"),
    (T, with_frozen_globals, "with another rate and momentum"),
    (T, by_a_fixed_rate, "with another rate and momentum"),
    (T, with_velocities_that_stay, "the velocity begins at zero"),
]
RIGHT = [
    (B, best_by_where),
    (B, best_by_stacking),
    (B, best_by_difference),
    (B, best_by_cond),
    (B, best_by_a_name),
    (E, counted_by_running),
    (E, lambda: len({3, 4})),
    (E, lambda: np.int32(2)),
    (E, lambda: jnp.array(2)),
    (A, towards_the_parameter),
    (A, average_of_leaves),
    (A, in_three_maps),
    (A, jax.jit(solutions.average)),
    (T, by_scan),
    (T, from_a_product),
    (T, by_partial),
    (T, compiled_ahead),
    (T, with_copies_donated),
    (T, by_a_class),
    (T, with_printed_losses),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
