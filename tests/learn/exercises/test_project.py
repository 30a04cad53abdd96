"""Answers to the exercises of the project, and what is said of the wrong ones."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from snippets.learn.checks import project as checks
from snippets.learn.exercises import project as exercises
from snippets.learn.solutions import project as solutions
from snippets.programs.practice import problem_of


def by_top_k(logits):
    return jax.lax.top_k(logits, 1)[1][:, 0]


def where_it_is_reached(logits):
    best = logits == logits.max(axis=1, keepdims=True)
    return (best * jnp.arange(logits.shape[1])).sum(axis=1)


def one_window_less(text, length):
    tokens, targets = solutions.windows(text, length)
    return tokens[:1], targets[:1]


def the_same(text, length):
    tokens, _ = solutions.windows(text, length)
    return tokens, tokens


def one_shorter(text, length):
    tokens, targets = solutions.windows(text, length)
    return tokens, targets[:, :-1]


def numbers_behind(text, length):
    tokens, _ = solutions.windows(text, length)
    return tokens, tokens + 1


def rolled(text, length):
    count = len(text) // length
    both = text, jnp.roll(text, -1)
    return tuple(x[: count * length].reshape(count, length) for x in both)


def padded(text, length):
    tokens, targets = solutions.windows(text, length)
    return tokens, targets.at[:, -1].set(0)


def of_four(text, length):
    return solutions.windows(text, 4)


def overlapping(text, length):
    starts = jnp.arange(len(text) - length)
    return by_starts(text, length, starts)


def transposed(text, length):
    tokens, targets = solutions.windows(text, length)
    return tokens.T.reshape(tokens.shape), targets.T.reshape(tokens.shape)


def the_token_before(text, length):
    tokens, targets = solutions.windows(text, length)
    return targets, tokens


def tokens_alone(text, length):
    return solutions.windows(text, length)[0]


def as_floats(text, length):
    return tuple(x.astype(float) for x in solutions.windows(text, length))


def always_dropped(text, length):
    count = len(text) // length - 1
    return by_starts(text, length, length * jnp.arange(count))


def by_starts(text, length, starts):
    places = starts[:, None] + jnp.arange(length)
    return text[places], text[places + 1]


def by_places(text, length):
    return by_starts(text, length, jnp.arange(0, len(text) - length, length))


def stacked(text, length):
    starts = range(0, len(text) - length, length)
    tokens = jnp.stack([text[n : n + length] for n in starts])
    return tokens, jnp.stack([text[n + 1 : n + 1 + length] for n in starts])


def cut_first(text, length):
    count = (len(text) - 1) // length
    pairs = (x[: count * length].reshape(-1, length) for x in (text[:-1], text[1:]))
    return tuple(pairs)


def in_numpy(text, length):
    return by_places(np.asarray(text), length)


def losses_of(logits, targets, axis=-1):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits, axis), targets[..., None], axis=-1)
    return jnp.where(targets >= 0, -chosen[..., 0], 0)


def divided_by_all(logits, targets):
    return losses_of(logits, targets).mean()


def mean_of_rows(logits, targets):
    return (losses_of(logits, targets).sum(axis=1) / (targets >= 0).sum(axis=1)).mean()


def the_sum(logits, targets):
    return losses_of(logits, targets).sum()


def of_each(logits, targets):
    return losses_of(logits, targets)


def selected(logits, targets):
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return losses[targets >= 0].mean()


def without_token_0(logits, targets):
    return losses_of(logits, targets).mean(where=targets > 0)


def of_the_sign(logits, targets):
    return -solutions.masked_loss(logits, targets)


def without_softmax(logits, targets):
    losses = -jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return losses.mean(where=targets >= 0)


def over_places(logits, targets):
    return losses_of(logits, targets, axis=1).mean(where=targets >= 0)


def of_probabilities(logits, targets):
    chosen = jnp.take_along_axis(jax.nn.softmax(logits), targets[..., None], axis=-1)
    return -chosen[..., 0].mean(where=targets >= 0)


def clipped(logits, targets):
    return losses_of(logits, jnp.maximum(targets, 0)).mean()


def up_to_the_shortest(logits, targets):
    return losses_of(logits[:, :1], targets[:, :1]).mean()


def without_gradient(logits, targets):
    return solutions.masked_loss(jax.lax.stop_gradient(logits), targets)


def logits_masked(logits, targets):
    kept = jnp.where(targets[..., None] >= 0, logits, 0)
    return losses_of(kept, jnp.maximum(targets, 0)).mean()


def by_sums(logits, targets):
    mask = targets != -1
    return jnp.sum(losses_of(logits, targets)) / mask.sum()


def by_one_hot(logits, targets):
    chosen = jax.nn.one_hot(targets, logits.shape[-1])
    return -(chosen * jax.nn.log_softmax(logits)).sum() / chosen.sum()


def by_optax(logits, targets):
    mask = targets >= 0
    loss = optax.losses.softmax_cross_entropy_with_integer_labels
    return loss(logits, jnp.where(mask, targets, 0)).mean(where=mask)


def by_average(logits, targets):
    return jnp.average(losses_of(logits, targets), weights=(targets > -1).astype(float))


def drawn_at_a_low_temperature(logits):
    return jax.random.categorical(jax.random.key(0), logits / 0.1)


def the_likeliest(key, logits, temperature, top):
    return logits.argmax(axis=1)


def of_all(key, logits, temperature, top):
    return jax.random.categorical(key, logits / temperature)


def above_the_last(key, logits, temperature, top):
    last = jax.lax.top_k(logits, top)[0][:, -1:]
    kept = jnp.where((logits > last) | (logits == logits.max(1, keepdims=True)), logits, -jnp.inf)
    return jax.random.categorical(key, kept / temperature)


def places(key, logits, temperature, top):
    return jax.random.categorical(key, jax.lax.top_k(logits, top)[0] / temperature)


def drawn(index):
    """Return an answer that reads the tokens at the drawn places by `index`."""

    def sample(key, logits, temperature, top):
        values, tokens = jax.lax.top_k(logits, top)
        return index(tokens, jax.random.categorical(key, values / temperature))

    return sample


def scaled(function):
    """Return an answer that draws with another temperature."""

    def sample(key, logits, temperature, top):
        return solutions.sample(key, logits, function(temperature), top)

    return sample


def equally_often(key, logits, temperature, top):
    _, tokens = jax.lax.top_k(logits, top)
    place = jax.random.randint(key, len(logits), 0, top)
    return tokens[jnp.arange(len(logits)), place]


def constant_key(key, logits, temperature, top):
    return solutions.sample(jax.random.key(0), logits, temperature, top)


def one_key_for_all(key, logits, temperature, top):
    one = functools.partial(solutions.sample, key, temperature=temperature, top=top)
    return jax.vmap(lambda row: one(row[None])[0])(logits)


def of_probabilities_drawn(key, logits, temperature, top):
    return solutions.sample(key, jax.nn.softmax(logits), temperature, top)


def least_likely(key, logits, temperature, top):
    return solutions.sample(key, -logits, temperature, top)


def always_two(key, logits, temperature, top):
    return solutions.sample(key, logits, temperature, 2)


def with_a_column(key, logits, temperature, top):
    return solutions.sample(key, logits, temperature, top)[:, None]


def with_the_key(key, logits, temperature, top):
    return solutions.sample(key, logits, temperature, top), key


def drawn_as_floats(key, logits, temperature, top):
    return solutions.sample(key, logits, temperature, top).astype(float)


def greedy_at_0(key, logits, temperature, top):
    if temperature == 0:
        return logits.argmax(axis=1)
    return solutions.sample(key, logits, temperature, top)


def in_a_list(key, logits, temperature, top):
    rows = [np.argsort(-np.asarray(row))[:top] for row in logits]
    return jnp.array([row[0] for row in rows])


def cut_off(key, logits, temperature, top):
    least = jax.lax.top_k(logits, top)[0][:, -1:]
    kept = jnp.where(logits < least, -jnp.inf, logits)
    return jax.random.categorical(key, kept / temperature)


def by_sorting(key, logits, temperature, top):
    order = jnp.argsort(-logits, axis=-1)[:, :top]
    values = jnp.take_along_axis(logits, order, axis=-1)
    place = jax.random.categorical(key, values / temperature, axis=-1)
    return order[jnp.arange(len(order)), place]


def row_by_row(key, logits, temperature, top):
    def one(key, row):
        values, tokens = jax.lax.top_k(row, top)
        return tokens[jax.random.categorical(key, values / temperature)]

    return jax.vmap(one)(jax.random.split(key, len(logits)), logits)


def by_noise(key, logits, temperature, top):
    values, tokens = jax.lax.top_k(logits / temperature, top)
    place = jnp.argmax(values + jax.random.gumbel(key, values.shape), axis=1)
    return jnp.sum(tokens * jax.nn.one_hot(place, top, dtype=int), axis=1)


WRONG = [
    (checks.check_likeliest, exercises.likeliest, "write `likeliest`"),
    (checks.check_likeliest, jnp.argmax, "a token for each row is wanted"),
    (checks.check_likeliest, lambda x: jnp.argmax(x, axis=0), "it returns the shape (4,)"),
    (checks.check_likeliest, lambda x: jnp.max(x, axis=1), "and not the integers"),
    (checks.check_likeliest, lambda x: jnp.argmin(x, axis=1), "the least likely tokens"),
    (checks.check_likeliest, lambda x: jax.lax.top_k(x, 1)[1], "it returns the shape (3, 1)"),
    (checks.check_likeliest, lambda x: jnp.argsort(x, axis=1)[:, 0], "the least likely tokens"),
    (checks.check_likeliest, lambda x: jnp.argmax(jnp.abs(x), axis=1), "it returns ["),
    (checks.check_likeliest, lambda x: jnp.argmax(x[:3], axis=1) * 0 + 2, "not [0 0 1]"),
    (checks.check_likeliest, lambda x: jnp.argmax(jnp.exp(x), axis=1), "of [[1000.125, 1000.0625"),
    (checks.check_likeliest, drawn_at_a_low_temperature, "of [[1000.125, 1000.0625"),
    (checks.check_likeliest, lambda x: [int(row.argmax()) for row in x], "Concretization"),
    (
        checks.check_likeliest,
        lambda x: jnp.argmax(jax.nn.softmax(x, axis=0), axis=1),
        "not [0 0 1]",
    ),
    (checks.check_windows, as_floats, "tokens are integers"),
    (checks.check_windows, exercises.windows, "the first of the next window"),
    (checks.check_windows, one_window_less, "they hold 2 windows with their targets, not 1"),
    (checks.check_windows, the_same, "which are not the tokens behind"),
    (checks.check_windows, one_shorter, "but targets (2, 3)"),
    (checks.check_windows, numbers_behind, "which are not the tokens behind"),
    (checks.check_windows, rolled, "The last needs a token behind it"),
    (checks.check_windows, padded, "the last target of the first window is 0"),
    (checks.check_windows, of_four, "and should be (count, 6)"),
    (checks.check_windows, overlapping, "and windows do not overlap"),
    (checks.check_windows, transposed, "the tokens are"),
    (checks.check_windows, the_token_before, "the tokens are"),
    (checks.check_windows, tokens_alone, "it should return two arrays"),
    (checks.check_windows, always_dropped, "they hold 2 windows"),
    (checks.check_masked_loss, exercises.masked_loss, "-1 is read as the last token"),
    (checks.check_masked_loss, divided_by_all, "divided by all places"),
    (checks.check_masked_loss, mean_of_rows, "the mean of the means of rows"),
    (checks.check_masked_loss, the_sum, "the sum of the losses"),
    (checks.check_masked_loss, of_each, "it returns an array (2, 3)"),
    (checks.check_masked_loss, selected, "it raises NonConcreteBooleanIndexError"),
    (checks.check_masked_loss, without_token_0, "token 0 is a token"),
    (checks.check_masked_loss, of_the_sign, "the sign is wrong"),
    (checks.check_masked_loss, without_softmax, "no logarithms of probabilities yet"),
    (checks.check_masked_loss, over_places, "over the tokens, the last axis"),
    (checks.check_masked_loss, of_probabilities, "and not their logarithms"),
    (checks.check_masked_loss, clipped, "padding counts: -1 is replaced"),
    (checks.check_masked_loss, up_to_the_shortest, "the loss is "),
    (checks.check_masked_loss, without_gradient, "has no gradient"),
    (checks.check_masked_loss, logits_masked, "the loss is "),
    (checks.check_sample, exercises.sample, "write `sample`"),
    (checks.check_sample, the_likeliest, "it always returns the likeliest token"),
    (checks.check_sample, above_the_last, "keep the second, whose logit is the smallest"),
    (checks.check_sample, of_all, "with `top` 2 the rows of two kinds draw [[0, 1, 2, 3]"),
    (checks.check_sample, places, "places among the likeliest"),
    (checks.check_sample, drawn(jnp.take), "rows with other logits draw the same tokens"),
    (checks.check_sample, drawn(lambda tokens, place: tokens[0, place]), "rows with other logits"),
    (
        checks.check_sample,
        drawn(lambda tokens, place: tokens[:, 0]),
        "always returns the likeliest",
    ),
    (checks.check_sample, drawn(lambda tokens, place: tokens[:, place]), "it has the shape"),
    (checks.check_sample, scaled(lambda t: 1.0), "logits are divided by the temperature"),
    (checks.check_sample, scaled(lambda t: 1 / t), "logits are divided by the temperature"),
    (checks.check_sample, equally_often, "and should in 57%: 0.4 of 0.4 + 0.3"),
    (checks.check_sample, constant_key, "two keys draw the same tokens"),
    (checks.check_sample, one_key_for_all, "always returns the same token"),
    (checks.check_sample, of_probabilities_drawn, "and should in 57%"),
    (checks.check_sample, least_likely, "with `top` 2 the rows of two kinds draw"),
    (checks.check_sample, always_two, "with `top` 3"),
    (checks.check_sample, with_a_column, "it has the shape (8000, 1)"),
    (checks.check_sample, with_the_key, "it returns a tuple, not an array"),
    (checks.check_sample, drawn_as_floats, "tokens are integers, not float32"),
    (checks.check_sample, greedy_at_0, "it raises TracerBoolConversionError"),
    (checks.check_sample, in_a_list, "it raises TracerArrayConversionError"),
]
RIGHT = [
    (checks.check_likeliest, by_top_k),
    (checks.check_likeliest, where_it_is_reached),
    (checks.check_likeliest, jax.vmap(jnp.argmax)),
    (checks.check_likeliest, lambda x: jnp.argsort(x, axis=-1)[:, -1]),
    (checks.check_likeliest, functools.partial(jnp.argmax, axis=-1)),
    (checks.check_windows, by_places),
    (checks.check_windows, stacked),
    (checks.check_windows, cut_first),
    (checks.check_windows, in_numpy),
    (checks.check_windows, jax.jit(solutions.windows, static_argnames="length")),
    (checks.check_masked_loss, by_sums),
    (checks.check_masked_loss, by_one_hot),
    (checks.check_masked_loss, by_optax),
    (checks.check_masked_loss, by_average),
    (checks.check_sample, cut_off),
    (checks.check_sample, by_sorting),
    (checks.check_sample, row_by_row),
    (checks.check_sample, by_noise),
    (checks.check_sample, drawn(lambda tokens, place: tokens[jnp.arange(len(place)), place])),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
