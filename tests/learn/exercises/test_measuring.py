"""Answers to the exercises on measuring, and what is said of the wrong ones."""

import itertools
import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import measuring as checks
from snippets.learn.exercises import measuring as exercises
from snippets.learn.solutions import measuring as solutions
from snippets.programs.practice import problem_of


def until_it_returns(clock, function, x):
    function(x).block_until_ready()
    return exercises.seconds(clock, function, x)


def behind_the_first(clock, function, x):
    function(x)
    start = clock()
    function(x).block_until_ready()
    return clock() - start


def with_the_compilation(clock, function, x):
    start = clock()
    function(x).block_until_ready()
    return clock() - start


def waited_for_too_late(clock, function, x):
    function(x).block_until_ready()
    start = clock()
    y = function(x)
    end = clock()
    y.block_until_ready()
    return end - start


def by_another_clock(clock, function, x):
    return solutions.seconds(time.perf_counter, function, x)


def compiled_within(clock, function, x):
    start = clock()
    compiled = function.lower(x).compile()
    compiled(x).block_until_ready()
    return clock() - start


def for_another_shape(clock, function, x):
    function(x[:1]).block_until_ready()
    return with_the_compilation(clock, function, x)


def mean_with_the_first(clock, function, x):
    start = clock()
    for _ in range(10):
        function(x).block_until_ready()
    return (clock() - start) / 10


def first_less_second(clock, function, x):
    first = with_the_compilation(clock, function, x)
    return first - with_the_compilation(clock, function, x)


def backwards(clock, function, x):
    return -solutions.seconds(clock, function, x)


def in_milliseconds(clock, function, x):
    return 1000 * solutions.seconds(clock, function, x)


def both_calls(clock, function, x):
    compiled = function.lower(x).compile()
    start = clock()
    compiled(x).block_until_ready()
    compiled(x).block_until_ready()
    return clock() - start


def queued(clock, function, x):
    function(x).block_until_ready()
    start = clock()
    for _ in range(10):
        y = function(x)
    y.block_until_ready()
    return (clock() - start) / 10


def waits_for_the_argument(clock, function, x):
    function(x).block_until_ready()
    start = clock()
    function(x)
    x.block_until_ready()
    return clock() - start


def printed(clock, function, x):
    print(solutions.seconds(clock, function, x))


def ahead_of_time(clock, function, x):
    compiled = function.lower(x).compile()
    start = clock()
    compiled(x).block_until_ready()
    return clock() - start


def of_any_pytree(clock, function, x):
    jax.block_until_ready(function(x))
    start = clock()
    jax.block_until_ready(function(x))
    end = clock()
    return end - start


def mean_of_ten(clock, function, x):
    np.asarray(function(x))
    times = []
    for _ in range(10):
        start = clock()
        np.asarray(function(x))
        times.append(clock() - start)
    return sum(times) / len(times)


def smallest(clock, function, x):
    times = [with_the_compilation(clock, function, x) for _ in range(3)]
    return min(times)


def every_loss_later(step, state, batches, every):
    losses = []
    for batch in batches:
        state, loss = step(state, batch)
        losses.append(loss)
    return state, [float(loss) for loss in losses][::every]


def read_at_once(step, state, batches, every):
    losses = []
    for number, batch in enumerate(batches):
        state, loss = step(state, batch)
        if number % every == 0:
            losses.append(float(loss))
    return state, losses


def read_as(convert, kept=lambda number, every: number % every == 0):
    def train(step, state, batches, every):
        losses = []
        for number, batch in enumerate(batches):
            state, loss = step(state, batch)
            if kept(number, every):
                losses.append(loss)
        return state, convert(losses)

    return train


def floats(losses):
    return [float(loss) for loss in losses]


def every_step(after):
    def train(step, state, batches, every):
        losses = []
        for number, batch in enumerate(batches):
            state, loss = step(state, batch)
            after(state, loss)
            if number % every == 0:
                losses.append(loss)
        return state, floats(losses)

    return train


def until_a_loss_is_zero(step, state, batches, every):
    losses = []
    for number, batch in enumerate(batches):
        state, loss = step(state, batch)
        if not loss:
            break
        if number % every == 0:
            losses.append(loss)
    return state, floats(losses)


def from_the_first_state(step, state, batches, every):
    losses = []
    for number, batch in enumerate(batches):
        new, loss = step(state, batch)
        if number % every == 0:
            losses.append(loss)
    return new, floats(losses)


def some_batches(step, state, batches, every):
    losses = []
    for batch in batches[::every]:
        state, loss = step(state, batch)
        losses.append(loss)
    return state, floats(losses)


def without_the_last(step, state, batches, every):
    return solutions.train(step, state, batches[:-1], every)


def losses_alone(step, state, batches, every):
    return solutions.train(step, state, batches, every)[1]


def first_state(step, state, batches, every):
    return state, solutions.train(step, state, batches, every)[1]


def one_step_later(step, state, batches, every):
    losses, kept = [], None
    for number, batch in enumerate(batches):
        state, loss = step(state, batch)
        if kept is not None:
            losses.append(float(kept))
        kept = loss if number % every == 0 else None
    if kept is not None:
        losses.append(float(kept))
    return state, losses


def by_slices(step, state, batches, every):
    losses = []
    for batch in batches:
        state, loss = step(state, batch)
        losses.append(loss)
    return state, list(map(float, losses[::every]))


def forward_pass(sizes, rows):
    return sum(2 * rows * a * b for a, b in itertools.pairwise(sizes))


def times(factor, less=lambda each: 0):
    def flops(sizes, rows):
        each = [2 * rows * a * b for a, b in itertools.pairwise(sizes)]
        return factor * sum(each) - less(each)

    return flops


def of_the_solution(function):
    return lambda sizes, rows: function(solutions.flops_of_gradient(sizes, rows), rows)


def of_one_shape(sizes, rows):
    return times(3)(sizes, rows) - 2 * 32 * 8 * 16


def six_for_each_parameter(sizes, rows):
    return 6 * rows * sum(a * b for a, b in itertools.pairwise(sizes))


def with_biases(sizes, rows):
    return solutions.flops_of_gradient(sizes, rows) + rows * sum(sizes[1:])


def all_pairs(sizes, rows):
    return 3 * sum(2 * rows * a * b for a, b in itertools.combinations(sizes, 2))


def of_counted_layers(sizes, rows):
    first, *others = (2 * rows * a * b for a, b in itertools.pairwise(sizes))
    return 2 * first + 3 * sum(others)


def in_a_loop(sizes, rows):
    count = 0
    for n in range(len(sizes) - 1):
        forward = 2 * rows * sizes[n] * sizes[n + 1]
        count += forward + forward + (forward if n > 0 else 0)
    return count


def in_numpy(sizes, rows):
    sizes = np.array(sizes)
    products = sizes[:-1] * sizes[1:]
    return rows * (6 * products.sum() - 2 * products[0])


def as_a_float(sizes, rows):
    return 2.0 * rows * (3 * math.fsum(map(math.prod, itertools.pairwise(sizes)))) - (
        2.0 * rows * sizes[0] * sizes[1]
    )


def copied_in_the_background(step, state, batches, every):
    losses = []
    for number, batch in enumerate(batches):
        state, loss = step(state, batch)
        if number % every == 0:
            loss.copy_to_host_async()
            losses.append(loss)
    return state, [float(loss) for loss in losses]


WRONG = [
    (checks.check_seconds, exercises.seconds, "100 s are the compilation"),
    (checks.check_seconds, with_the_compilation, "100 s are the compilation"),
    (checks.check_seconds, compiled_within, "100 s are the compilation"),
    (checks.check_seconds, for_another_shape, "with the same argument"),
    (checks.check_seconds, until_it_returns, "the time until the call returns"),
    (checks.check_seconds, waited_for_too_late, "the time until the call returns"),
    (checks.check_seconds, waits_for_the_argument, "the time until the call returns"),
    (checks.check_seconds, behind_the_first, "Is the result of the first call waited for"),
    (checks.check_seconds, both_calls, "it returns 22 s"),
    (checks.check_seconds, by_another_clock, "it never calls `clock`"),
    (checks.check_seconds, mean_with_the_first, "it returns 21 s"),
    (checks.check_seconds, first_less_second, "100 s are the compilation"),
    (checks.check_seconds, backwards, "it returns -11 s"),
    (checks.check_seconds, in_milliseconds, "it returns 11000 s"),
    (checks.check_seconds, queued, "Is the result of each call waited for before the next"),
    (checks.check_seconds, printed, "it returns None"),
    (checks.check_train, exercises.train, "10 are waited for, where 3 are needed"),
    (checks.check_train, every_loss_later, "10 are waited for"),
    (checks.check_train, read_at_once, "a loss is read at once"),
    (
        checks.check_train,
        read_as(floats, lambda number, every: number % every == every - 1),
        "it returns those of [3, 7]",
    ),
    (
        checks.check_train,
        read_as(floats, lambda number, every: number and number % every == 0),
        "it returns those of [4, 8]",
    ),
    (checks.check_train, read_as(floats, lambda number, every: number % 4 == 0), "`every` 3"),
    (checks.check_train, read_as(list), "the losses are to be floats; `float` makes one"),
    (checks.check_train, read_as(jnp.stack), "a list of losses is wanted"),
    (
        checks.check_train,
        every_step(lambda state, loss: jax.block_until_ready(state)),
        "10 are waited for",
    ),
    (checks.check_train, every_step(lambda state, loss: f"{loss:.3f}"), "10 are waited for"),
    (checks.check_train, until_a_loss_is_zero, "and so do `block_until_ready`, `print` and `if`"),
    (checks.check_train, from_the_first_state, "a step gets another state"),
    (checks.check_train, some_batches, "step 1 gets another batch"),
    (checks.check_train, without_the_last, "not each is used once"),
    (checks.check_train, losses_alone, "it should return the state and the losses"),
    (checks.check_train, first_state, "the state is not that after the last step"),
    (checks.check_flops_of_gradient, exercises.flops_of_gradient, "write `flops_of_gradient`"),
    (checks.check_flops_of_gradient, forward_pass, "of the forward pass alone"),
    (checks.check_flops_of_gradient, times(3), "the first has only two"),
    (checks.check_flops_of_gradient, times(2), "two matmuls for each layer; all but the first"),
    (checks.check_flops_of_gradient, times(3, max), "a matmul of the largest layer"),
    (checks.check_flops_of_gradient, times(3, lambda each: each[-1]), "of the last layer"),
    (checks.check_flops_of_gradient, times(2, lambda each: each[0]), "the backward pass alone"),
    (checks.check_flops_of_gradient, of_one_shape, "for sizes [3, 5, 7, 40, 60]"),
    (checks.check_flops_of_gradient, six_for_each_parameter, "the first has only two"),
    (
        checks.check_flops_of_gradient,
        of_the_solution(lambda n, rows: n // 2),
        "a product and a sum",
    ),
    (checks.check_flops_of_gradient, of_the_solution(lambda n, rows: n // rows), "for one row"),
    (checks.check_flops_of_gradient, of_the_solution(lambda n, rows: n + 1), "of the program"),
    (checks.check_flops_of_gradient, with_biases, "of the program"),
    (checks.check_flops_of_gradient, all_pairs, "of the program"),
]
RIGHT = [
    (checks.check_train, copied_in_the_background),
    (checks.check_seconds, ahead_of_time),
    (checks.check_seconds, of_any_pytree),
    (checks.check_seconds, mean_of_ten),
    (checks.check_seconds, smallest),
    (checks.check_train, read_as(lambda losses: [loss.item() for loss in losses])),
    (checks.check_train, read_as(lambda losses: jnp.stack(losses).tolist())),
    (checks.check_train, read_as(lambda losses: np.array(losses).tolist())),
    (checks.check_train, read_as(lambda losses: floats(jax.device_get(losses)))),
    (checks.check_train, one_step_later),
    (checks.check_train, by_slices),
    (checks.check_flops_of_gradient, of_counted_layers),
    (checks.check_flops_of_gradient, in_a_loop),
    (checks.check_flops_of_gradient, in_numpy),
    (checks.check_flops_of_gradient, as_a_float),
    (checks.check_flops_of_gradient, checks.matmuls_of_gradient),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
