"""Wrong answers to the exercise on requests, and what is said of them."""

import numpy as np
import pytest

from snippets.models.checks import requests as checks
from snippets.models.exercises import requests as exercises
from snippets.models.solutions import requests as solutions
from snippets.programs.practice import problem_of


def likeliest(target, tokens, guesses):
    return target(np.append(tokens, guesses))[len(tokens) - 1 :]


def guesses_alone(target, tokens, guesses):
    return solutions.accept(target, tokens, guesses)[:-1]


def stops_behind_all(target, tokens, guesses):
    return solutions.accept(target, tokens, guesses)[: len(guesses)]


def all_guesses(target, tokens, guesses):
    return np.append(guesses, likeliest(target, tokens, guesses)[-1])


def all_that_the_target_says(target, tokens, guesses):
    return likeliest(target, tokens, guesses)


def each_that_is_equal(target, tokens, guesses):
    written = likeliest(target, tokens, guesses)
    return np.append(guesses[guesses == written[:-1]], written[-1])


def nothing_is_checked(target, tokens, guesses):
    return guesses


def one_place_off(target, tokens, guesses):
    written = target(np.append(tokens, guesses))[len(tokens) :]
    return written[: (guesses == written).cumprod().sum() + 1]


WRONG = [
    (checks.check_accept, exercises.accept, "it runs the target 3 times for 3 guesses"),
    (checks.check_accept, nothing_is_checked, "it runs the target 0 times"),
    (checks.check_accept, guesses_alone, "take 20 runs of the target, and with it 15"),
    (checks.check_accept, stops_behind_all, "the same run says that 0 comes next"),
    (checks.check_accept, all_guesses, "the target writes 6 in place of 4"),
    (checks.check_accept, each_that_is_equal, "the target writes 6 in place of 1"),
    (checks.check_accept, all_that_the_target_says, "goes on behind 6, where the guess was wrong"),
    (checks.check_accept, one_place_off, "the target writes 3 in place of 6"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
