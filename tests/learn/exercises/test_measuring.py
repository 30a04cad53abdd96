"""Wrong answers to the exercises on measuring, and what is said of them."""

import itertools

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


def read_at_once(step, state, batches, every):
    losses = []
    for number, batch in enumerate(batches):
        state, loss = step(state, batch)
        if number % every == 0:
            losses.append(float(loss))
    return state, losses


def of_the_wrong_steps(step, state, batches, every):
    losses = []
    for number, batch in enumerate(batches):
        state, loss = step(state, batch)
        if number % every == every - 1:
            losses.append(loss)
    return state, [float(loss) for loss in losses]


def read_as(convert):
    def train(step, state, batches, every):
        losses = []
        for number, batch in enumerate(batches):
            state, loss = step(state, batch)
            if number % every == 0:
                losses.append(loss)
        return state, [convert(loss) for loss in losses]

    return train


def forward_pass(sizes, rows):
    return sum(2 * rows * a * b for a, b in itertools.pairwise(sizes))


def three_times(sizes, rows):
    return 3 * forward_pass(sizes, rows)


def half(sizes, rows):
    return solutions.flops_of_gradient(sizes, rows) // 2


def one_too_many(sizes, rows):
    return solutions.flops_of_gradient(sizes, rows) + 1


WRONG = [
    (checks.check_seconds, exercises.seconds, "100 s are the compilation"),
    (checks.check_seconds, with_the_compilation, "100 s are the compilation"),
    (checks.check_seconds, until_it_returns, "the time until the call returns"),
    (checks.check_seconds, behind_the_first, "Is the result of the first call waited for"),
    (checks.check_train, exercises.train, "10 losses are waited for"),
    (checks.check_train, read_at_once, "a loss is read at once"),
    (checks.check_train, of_the_wrong_steps, "it returns those of [3, 7]"),
    (checks.check_train, read_as(lambda loss: loss), "the losses are to be floats"),
    (checks.check_flops_of_gradient, forward_pass, "of the forward pass alone"),
    (checks.check_flops_of_gradient, three_times, "the first has only two"),
    (checks.check_flops_of_gradient, half, "a product and a sum are two"),
    (checks.check_flops_of_gradient, one_too_many, "the program has matmuls of"),
]


@pytest.mark.parametrize(
    "convert", [float, lambda loss: loss.item(), lambda loss: float(np.asarray(loss))]
)
def test_losses_may_be_read_in_any_way(convert):
    assert problem_of(checks.check_train, read_as(convert)) is None


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
