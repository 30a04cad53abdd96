"""Wrong answers to the exercises on several processes, and what is said of them."""

import math

import pytest

from snippets.learn.checks import processes as checks
from snippets.learn.exercises import processes as exercises
from snippets.programs.practice import problem_of


def with_the_rest(count, process, processes):
    own = count // processes
    return process * own, count if process == processes - 1 else (process + 1) * own


def rounded_up(count, process, processes):
    own = math.ceil(count / processes)
    return process * own, (process + 1) * own


def all_the_first(count, process, processes):
    return 0, count // processes


def backwards(count, process, processes):
    own = count // processes
    return (processes - 1 - process) * own, (processes - process) * own


def every_step(losses, process, mean_over_processes, write):
    for step, loss in enumerate(losses):
        mean = mean_over_processes(loss)
        if step % 10 == 0 and process == 0:
            write(f"step {step}: {mean}")


def all_write(losses, process, mean_over_processes, write):
    for step, loss in enumerate(losses):
        if step % 10 == 0:
            write(f"step {step}: {mean_over_processes(loss)}")


def without_a_mean(losses, process, mean_over_processes, write):
    for step, loss in enumerate(losses):
        if step % 10 == 0 and process == 0:
            write(f"step {step}: {loss}")


def one_step_later(losses, process, mean_over_processes, write):
    exercises.log_mean(losses, 0, mean_over_processes, lambda text: None)
    if process == 0:
        write("step 10")


def smallest_of_the_last(saved):
    return min((max(steps) for steps in saved if steps), default=None)


def of_the_first(saved):
    return max(saved[0], default=None)


def always_some(saved):
    return max(set.intersection(*map(set, saved)), default=0)


WRONG = [
    (checks.check_rows_of, with_the_rest, "[2, 2, 2, 4]"),
    (checks.check_rows_of, rounded_up, "and could load 2"),
    (checks.check_rows_of, all_the_first, "some rows twice"),
    (checks.check_rows_of, backwards, "not in the order of the processes"),
    (checks.check_log_mean, exercises.log_mean, "one waits for the other forever"),
    (checks.check_log_mean, every_step, "is taken 25 times"),
    (checks.check_log_mean, all_write, "process 1 writes as well"),
    (checks.check_log_mean, without_a_mean, "no mean over the processes"),
    (checks.check_log_mean, one_step_later, "process 0 writes ['step 10']"),
    (checks.check_step_to_restore, exercises.step_to_restore, "shards missing"),
    (checks.check_step_to_restore, smallest_of_the_last, "has lost step 200"),
    (checks.check_step_to_restore, of_the_first, "shards missing"),
    (checks.check_step_to_restore, always_some, "no step is complete"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
