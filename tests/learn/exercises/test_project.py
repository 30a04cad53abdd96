"""Wrong answers to the exercises of the project, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import project as checks
from snippets.learn.exercises import project as exercises
from snippets.learn.solutions import project as solutions
from snippets.programs.practice import problem_of


def one_window_less(text, length):
    tokens, targets = solutions.windows(text, length)
    return tokens[:1], targets[:1]


def the_same(text, length):
    tokens, _ = solutions.windows(text, length)
    return tokens, tokens


def one_shorter(text, length):
    tokens, targets = solutions.windows(text, length)
    return tokens, targets[:, :-1]


def losses_of(logits, targets):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return jnp.where(targets >= 0, -chosen[..., 0], 0)


def divided_by_all(logits, targets):
    return losses_of(logits, targets).mean()


def mean_of_rows(logits, targets):
    return (losses_of(logits, targets).sum(axis=1) / (targets >= 0).sum(axis=1)).mean()


def the_sum(logits, targets):
    return losses_of(logits, targets).sum()


def the_likeliest(key, logits, temperature, top):
    return logits.argmax(axis=1)


def of_all(key, logits, temperature, top):
    return jax.random.categorical(key, logits / temperature)


def places(key, logits, temperature, top):
    return jax.random.categorical(key, jax.lax.top_k(logits, top)[0] / temperature)


def without_temperature(key, logits, temperature, top):
    return solutions.sample(key, logits, 1.0, top)


def multiplied(key, logits, temperature, top):
    return solutions.sample(key, logits, 1 / temperature, top)


def equally_often(key, logits, temperature, top):
    return solutions.sample(key, jnp.where(logits < -1.3, -9.0, 0.0), temperature, top)


WRONG = [
    (checks.check_windows, exercises.windows, "the first of the next window"),
    (checks.check_windows, one_window_less, "hold 2 windows of 4"),
    (checks.check_windows, the_same, "the last target of the first window is 3"),
    (checks.check_windows, one_shorter, "but targets (2, 3)"),
    (checks.check_masked_loss, exercises.masked_loss, "-1 is read as the last token"),
    (checks.check_masked_loss, divided_by_all, "divided by all six places"),
    (checks.check_masked_loss, mean_of_rows, "the mean of the means of rows"),
    (checks.check_masked_loss, the_sum, "the loss is"),
    (checks.check_sample, the_likeliest, "always returns the same token"),
    (checks.check_sample, of_all, "with `top` 2 it draws [0, 1, 2, 3]"),
    (checks.check_sample, places, "places among the likeliest"),
    (checks.check_sample, without_temperature, "logits are divided by it"),
    (checks.check_sample, multiplied, "at a temperature of 0.5"),
    (checks.check_sample, equally_often, "and should in 57 %"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
