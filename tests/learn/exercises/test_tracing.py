"""Wrong answers to the exercises on jit and tracing, and what is said of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import tracing as checks
from snippets.learn.exercises import tracing as exercises
from snippets.learn.solutions import tracing as solutions
from snippets.programs.practice import problem_of


def centred_uncompiled(x):
    return x - jnp.mean(x)


@jax.jit
def minus_the_sum(x):
    return x - jnp.sum(x)


@jax.jit
def the_mean(x):
    return jnp.mean(x)


@jax.jit
def minus_a_rounded_mean(x):
    return x - jnp.mean(x).astype(int)


@jax.jit
def minus_a_fixed_mean(x):
    return x - 2.75


@jax.jit
def divided_by_four(x):
    return x - jnp.sum(x) / 4


@jax.jit
def with_an_item(x):
    return x - x.mean().item()


@jax.jit
def mean_minus_x(x):
    return jnp.mean(x) - x


@jax.jit
def centred_and_dropped(x):
    x - jnp.mean(x)


@jax.jit
def computed_and_returned_as_it_was(x):
    x - jnp.mean(x)
    return x


@jax.jit
def by_the_method(x):
    return x - x.mean()


@jax.jit
def by_the_sum(x):
    return x - x.sum() / len(x)


@jax.jit
def of_a_float_array(x):
    return x - jnp.mean(x).astype(float)


def not_compiled(x, kind, limit):
    return solutions.limited.__wrapped__(x, kind, limit)


all_static = jax.jit(not_compiled, static_argnames=("kind", "limit"))


@jax.jit(static_argnames="kind")
def only_relu(x, kind, limit):
    return jnp.minimum(jax.nn.relu(x), limit)


@jax.jit(static_argnames="kind")
def without_limit(x, kind, limit):
    return jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)


@jax.jit(static_argnames="kind")
def limited_below_as_well(x, kind, limit):
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    return jnp.clip(y, -limit, limit)


@jax.jit(static_argnames="kind")
def limited_relu_alone(x, kind, limit):
    return jnp.minimum(jax.nn.relu(x), limit) if kind == "relu" else jnp.tanh(x)


@jax.jit(static_argnames="kind")
def limited_before(x, kind, limit):
    x = jnp.minimum(x, limit)
    return jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)


@jax.jit(static_argnames="kind")
def limited_by_all(x, kind, limit):
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    return jnp.where(y.max() > limit, limit, y)


@jax.jit(static_argnames="kind")
def limited_from_below(x, kind, limit):
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    return jnp.maximum(y, limit)


@jax.jit(static_argnames="kind")
def limited_at_two(x, kind, limit):
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    return jnp.minimum(y, 2.0)


@jax.jit(static_argnames="kind")
def still_with_an_if(x, kind, limit):
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    if y.max() > limit:
        y = jnp.minimum(y, limit)
    return y


@jax.jit
def minimum_alone(x, kind, limit):
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    return jnp.minimum(y, limit)


@functools.partial(jax.jit, static_argnums=1)
def limited_by_where(x, kind, limit):
    y = {"relu": jax.nn.relu, "tanh": jnp.tanh}[kind](x)
    return jnp.where(y > limit, limit, y)


@functools.partial(jax.jit, static_argnames=["kind"])
def limited_by_cond(x, kind, limit):
    y = jnp.maximum(x, 0) if kind == "relu" else jnp.tanh(x)
    return jax.lax.cond(y.max() > limit, lambda: jnp.minimum(y, limit), lambda: y)


@jax.jit(static_argnames="kind")
def limited_by_clip(x, kind, limit):
    return jnp.clip(x * (x > 0) if kind == "relu" else jnp.tanh(x), None, limit)


def one_program_for_each_call(x, rate, steps):
    step = jax.jit(lambda x: x - rate * jnp.tanh(x))
    for _ in range(steps):
        x = step(x)
    return x


@jax.jit(static_argnames="rate")
def static_step(x, rate):
    return x - rate * jnp.tanh(x)


def one_program_for_each_rate(x, rate, steps):
    for _ in range(steps):
        x = static_step(x, rate)
    return x


def one_operation_at_a_time(x, rate, steps):
    for _ in range(steps):
        x = x - rate * jnp.tanh(x)
    return x


@jax.jit(static_argnames="steps")
def one_program_for_each_count(x, rate, steps):
    for _ in range(steps):
        x = x - rate * jnp.tanh(x)
    return x


def one_step_too_few(x, rate, steps):
    return solutions.descend(x, rate, steps - 1)


def one_partial_for_each_step(x, rate, steps):
    for _ in range(steps):
        x = jax.jit(functools.partial(lambda rate, x: x - rate * jnp.tanh(x), rate))(x)
    return x


def by_a_fixed_rate(x, rate, steps):
    return solutions.descend(x, 0.5, steps)


def four_steps(x, rate, steps):
    return solutions.descend(x, rate, 4)


@jax.jit(donate_argnames="x")
def donating_step(x, rate):
    return x - rate * jnp.tanh(x)


def with_a_donated_x(x, rate, steps):
    for _ in range(steps):
        x = donating_step(x, rate)
    return x


def in_numpy(x, rate, steps):
    x = np.asarray(x)
    for _ in range(steps):
        x = x - rate * np.tanh(x)
    return jnp.array(x)


@jax.jit
def negative_change(x, rate):
    return -rate * jnp.tanh(x)


def with_a_half_compiled_step(x, rate, steps):
    for _ in range(steps):
        x = x + negative_change(x, rate)
    return x


def descended_and_dropped(x, rate, steps):
    solutions.descend(x, rate, steps)


jitted_tanh = jax.jit(lambda x: jnp.tanh(x))


def with_tanh_compiled_alone(x, rate, steps):
    for _ in range(steps):
        x = x - rate * jitted_tanh(x)
    return x


def uphill(x, rate, steps):
    return solutions.descend(x, -rate, steps)


def all_steps(x, rate, steps):
    return jnp.stack([solutions.descend(x, rate, count) for count in range(steps)])


def first_element(x, rate, steps):
    return solutions.descend(x, rate, steps)[:1]


def one_step(x, rate, steps):
    return solutions.step(x, rate)


@jax.jit
def descended_by_fori(x, rate, steps):
    return jax.lax.fori_loop(0, steps, lambda _, x: x - rate * jnp.tanh(x), x)


jitted_lambda = jax.jit(lambda x, rate: x - rate * jnp.tanh(x))


def by_a_lambda_above(x, rate, steps):
    for _ in range(steps):
        x = jitted_lambda(x, rate)
    return x


def by_a_partial_of_the_step(x, rate, steps):
    step = functools.partial(solutions.step, rate=rate)
    return functools.reduce(lambda x, _: step(x), range(steps), x)


def with_an_array_as_rate(x, rate, steps):
    return solutions.descend(x, jnp.float32(rate), steps)


def compiled_ahead(x, rate, steps):
    step = solutions.step.lower(x, rate).compile()
    for _ in range(steps):
        x = step(x, rate)
    return x


def with_a_copy_donated(x, rate, steps):
    return with_a_donated_x(jnp.array(x), rate, steps)


def full_batches_alone(params, x, y, size):
    rows = len(x) // size * size
    return exercises.evaluate(params, x[:rows], y[:rows], size)


def padding_counted(params, x, y, size):
    missing = -len(x) % size
    filled = np.pad(y, (0, missing), constant_values=9)
    total = exercises.evaluate(params, np.pad(x, ((0, missing), (0, 0))), filled, size)
    return total * len(filled) / len(x)


def as_it_is(params, x, y, size):
    return exercises.evaluate(params, x, y, size)


def uncompiled_error(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def without_jit(params, x, y, size):
    return uncompiled_error(params, x, y)


def uncompiled_sum(params, x, y):
    return jnp.sum((x @ params["w"] + params["b"] - y) ** 2)


@jax.jit
def summed_error(params, x, y):
    return uncompiled_sum(params, x, y)


@jax.jit
def masked_summed_error(params, x, y, mask):
    return jnp.sum(jnp.where(mask, x @ params["w"] + params["b"] - y, 0) ** 2)


def padded(x, y, size):
    missing = -len(x) % size
    filled = np.pad(x, ((0, missing), (0, 0))), np.pad(y, (0, missing))
    return *filled, np.arange(len(x) + missing) < len(x)


def zeros_counted(params, x, y, size):
    rows = len(x)
    x, y, _ = padded(x, y, size)
    pairs = [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]
    return sum(summed_error(params, *pair) for pair in pairs) / rows


def one_batch(params, x, y, size):
    return summed_error(params, x, y) / len(x)


def one_padded_batch(params, x, y, size):
    return masked_summed_error(params, *padded(x, y, size)) / len(x)


def one_row_at_a_time(params, x, y, size):
    rows = [summed_error(params, x[i : i + 1], y[i : i + 1]) for i in range(len(x))]
    return sum(rows) / len(x)


def batches_of_four(params, x, y, size):
    return solutions.evaluate(params, x, y, 4)


def last_rows_again(params, x, y, size):
    starts = [min(start, len(x) - size) for start in range(0, len(x), size)]
    total = sum(summed_error(params, x[i : i + size], y[i : i + size]) for i in starts)
    return total / (len(starts) * size)


def mean_of_means(params, x, y, size):
    means = [
        summed_error(params, x[i : i + size], y[i : i + size]) / len(x[i : i + size])
        for i in range(0, len(x), size)
    ]
    return sum(means) / len(means)


def divided_by_padded_rows(params, x, y, size):
    filled = len(x) + -len(x) % size
    return solutions.evaluate(params, x, y, size) * len(x) / filled


def one_sum_for_each_batch(params, x, y, size):
    return np.array([solutions.evaluate(params, x, y, size)])


def evaluated_and_dropped(params, x, y, size):
    solutions.evaluate(params, x, y, size)


def with_a_new_function(params, x, y, size):
    total, rows = 0.0, len(x)
    x, y, mask = padded(x, y, size)
    for i in range(0, len(x), size):
        part = slice(i, i + size)
        summed = jax.jit(lambda *given: masked_summed_error.__wrapped__(*given))
        summed.__wrapped__.__name__ = "summed_error"
        total += summed(params, x[part], y[part], mask[part])
    return total / rows


all_of_it_compiled = jax.jit(exercises.evaluate, static_argnames="size")


def with_floats(params, x, y, size):
    total, rows = 0.0, len(x)
    x, y, mask = padded(x, y, size)
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        total += float(masked_summed_error(params, x[part], y[part], mask[part]))
    return total / rows


def with_each_batch_padded(params, x, y, size):
    total = 0.0
    for start in range(0, len(x), size):
        given = padded(x[start : start + size], y[start : start + size], size)
        total += masked_summed_error(params, *given)
    return total / len(x)


def last_rows_uncompiled(params, x, y, size):
    full = len(x) // size * size
    total = 0.0
    for start in range(0, full, size):
        total += summed_error(params, x[start : start + size], y[start : start + size])
    return (total + uncompiled_sum(params, x[full:], y[full:])) / len(x)


def by_scan(params, x, y, size):
    x_y_mask = [each.reshape(-1, size, *each.shape[1:]) for each in padded(x, y, size)]
    sums = jax.lax.map(lambda given: masked_summed_error(params, *given), x_y_mask)
    return sums.sum() / len(x)


@jax.jit
def weighted_summed_error(params, x, y, weights):
    return weights @ (x @ params["w"] + params["b"] - y) ** 2


def with_weights(params, x, y, size):
    rows = np.arange(-(-len(x) // size) * size)
    chosen, weights = np.minimum(rows, len(x) - 1), (rows < len(x)).astype("f")
    total = 0.0
    for batch, weight in zip(chosen.reshape(-1, size), weights.reshape(-1, size), strict=True):
        total += weighted_summed_error(params, x[batch], y[batch], weight)
    return total / len(x)


@jax.jit
def counted_summed_error(params, x, y, count):
    errors = (x @ params["w"] + params["b"] - y) ** 2
    return jnp.sum(jnp.where(jnp.arange(len(x)) < count, errors, 0))


def with_a_count(params, x, y, size):
    filled_x, filled_y, _ = padded(x, y, size)
    total = 0.0
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        total += counted_summed_error(params, filled_x[part], filled_y[part], len(x) - start)
    return total / len(x)


def with_a_function_for_each_call(params, x, y, size):
    @jax.jit
    def summed_error(params, x, y, mask):
        return masked_summed_error.__wrapped__(params, x, y, mask)

    total, rows = 0.0, len(x)
    x, y, mask = padded(x, y, size)
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        total += summed_error(params, x[part], y[part], mask[part])
    return total / rows


N, L = checks.check_centred, checks.check_limited
D, E = checks.check_descend, checks.check_evaluate
WRONG = [
    (N, exercises.centred, "it raises ConcretizationTypeError"),
    (N, with_an_item, "it raises ConcretizationTypeError"),
    (N, centred_uncompiled, "`centred` itself is not jitted any more"),
    (N, jax.jit(exercises.centred.__wrapped__, static_argnums=0), "it raises ValueError"),
    (N, minus_the_sum, "is [-2.75 -1.75 -0.75  5.25], not"),
    (N, the_mean, "it makes 2.75, where one array of the same shape"),
    (N, minus_a_rounded_mean, "not [-2. -1.  0.  6.]"),
    (N, minus_a_fixed_mean, "[5. 0. 1.] minus its mean, 2.0"),
    (N, divided_by_four, "[5. 0. 1.] minus its mean, 2.0"),
    (N, mean_minus_x, "not [ 2.75  1.75  0.75 -5.25]"),
    (N, centred_and_dropped, "it returns nothing"),
    (N, computed_and_returned_as_it_was, "nothing is subtracted"),
    (L, exercises.limited, "it raises TypeError"),
    (L, minimum_alone, "it raises TypeError"),
    (L, still_with_an_if, "it raises TracerBoolConversionError"),
    (L, not_compiled, "`limited` itself is not jitted any more"),
    (L, all_static, "three limits need 3 compilations"),
    (L, only_relu, "with `kind` 'tanh'"),
    (L, without_limit, "with `kind` 'relu'"),
    (L, limited_below_as_well, "elements below -0.7 are replaced as well"),
    (L, limited_relu_alone, "with `kind` 'tanh'"),
    (L, limited_before, "with `kind` 'tanh'"),
    (L, limited_by_all, "with `kind` 'relu'"),
    (L, limited_from_below, "with `kind` 'relu'"),
    (L, limited_at_two, "with `kind` 'relu'"),
    (D, exercises.descend, "four steps need 4 compilations"),
    (D, one_program_for_each_call, "two calls with different rates need 2"),
    (D, one_program_for_each_rate, "define the jitted function once"),
    (D, one_operation_at_a_time, "a step consists of 3 programs"),
    (D, with_tanh_compiled_alone, "a step consists of 3 programs"),
    (D, with_a_half_compiled_step, "a step consists of 2 programs"),
    (D, one_program_for_each_count, "four steps and five need 2"),
    (D, one_step_too_few, "after 4 steps with a rate of 0.5 it returns"),
    (D, one_step, "after 4 steps with a rate of 0.5 it returns"),
    (D, all_steps, "after 4 steps with a rate of 0.5 it returns"),
    (D, first_element, "after 4 steps with a rate of 0.5 it returns"),
    (D, uphill, "after 4 steps with a rate of 0.5 it returns"),
    (D, by_a_fixed_rate, "after 5 steps with a rate of 0.25 it returns"),
    (D, four_steps, "after 5 steps with a rate of 0.25 it returns"),
    (D, one_partial_for_each_step, "four steps need 4 compilations"),
    (D, with_a_donated_x, "don't donate it"),
    (D, in_numpy, "nothing is compiled"),
    (D, descended_and_dropped, "it returns nothing"),
    (E, full_batches_alone, "the last 2 of 10 rows are left out"),
    (E, padding_counted, "rows that only fill up a batch"),
    (E, zeros_counted, "rows that only fill up a batch"),
    (E, as_it_is, "`summed_error` is compiled 2 times; give all batches one shape"),
    (E, without_jit, "no `summed_error` is compiled"),
    (E, all_of_it_compiled, "no `summed_error` is compiled by itself"),
    (E, by_scan, "no `summed_error` is compiled by itself"),
    (E, last_rows_uncompiled, "compiled 2 times; give all batches one shape"),
    (E, one_batch, "for ten rows and for six `summed_error` is compiled 2 times"),
    (E, one_padded_batch, "for ten rows and for six `summed_error` is compiled 2 times"),
    (E, one_row_at_a_time, "batches of 4 and of 5 rows run the same program"),
    (E, batches_of_four, "batches of 4 and of 5 rows run the same program"),
    (E, last_rows_again, "rows that only fill up a batch"),
    (E, mean_of_means, "the mean over 10 rows, in batches of 4, is"),
    (E, divided_by_padded_rows, "the mean over 10 rows, in batches of 4, is"),
    (E, one_sum_for_each_batch, "not one number"),
    (E, evaluated_and_dropped, "it returns nothing"),
    (E, with_a_function_for_each_call, "each call of `evaluate` compiles again"),
    (E, with_a_new_function, "`summed_error` is compiled 3 times"),
]
RIGHT = [
    (N, by_the_method),
    (N, by_the_sum),
    (N, of_a_float_array),
    (N, functools.partial(jax.jit)(centred_uncompiled)),
    (L, limited_by_where),
    (L, limited_by_cond),
    (L, limited_by_clip),
    (L, jax.jit(solutions.limited.__wrapped__, static_argnums=(1,))),
    (D, descended_by_fori),
    (D, by_a_lambda_above),
    (D, by_a_partial_of_the_step),
    (D, with_an_array_as_rate),
    (D, with_a_copy_donated),
    (D, compiled_ahead),
    (E, with_floats),
    (E, with_each_batch_padded),
    (E, with_weights),
    (E, with_a_count),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
