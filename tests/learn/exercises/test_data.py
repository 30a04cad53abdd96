"""Answers to the exercises on feeding a step: what is said of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import data as checks
from snippets.learn.exercises import data as exercises
from snippets.learn.solutions import data as solutions
from snippets.programs.practice import problem_of


def given_back(examples):
    return examples


def stacked_alone(examples):
    return np.stack(examples)


def first_leaf(examples):
    return {"pixels": np.stack([example["pixels"] for example in examples])}


def as_jax_arrays(examples):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *examples)


def joined(examples):
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *examples)


def on_the_last_axis(examples):
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis=-1), *examples)


def in_float32(examples):
    return jax.tree.map(lambda *leaves: np.stack(leaves).astype("float32"), *examples)


def without_a_star(examples):
    return jax.tree.map(lambda *leaves: np.stack(leaves), examples)


def two_examples(examples):
    return jax.tree.map(lambda a, b: np.stack([a, b]), *examples)


def the_first_repeated(examples):
    return jax.tree.map(lambda leaf: np.stack([leaf] * len(examples)), examples[0])


def backwards(examples):
    return solutions.collated(examples[::-1])


def tuples(examples):
    return jax.tree.map(lambda *leaves: leaves, *examples)


def squeezed(examples):
    return jax.tree.map(np.squeeze, solutions.collated(examples))


def of_three(examples):
    return solutions.collated(examples[:3])


def leaf_by_leaf(examples):
    about = [example["about"] for example in examples]
    return {
        "pixels": np.stack([example["pixels"] for example in examples]),
        "about": (np.array([a for a, _ in about]), np.array([b for _, b in about])),
    }


def by_transpose(examples):
    outer = jax.tree.structure([0] * len(examples))
    inner = jax.tree.structure(examples[0])
    lists = jax.tree.transpose(outer, inner, list(examples))
    return jax.tree.map(np.asarray, lists, is_leaf=lambda x: isinstance(x, list))


def by_leaves(examples):
    columns = zip(*map(jax.tree.leaves, examples), strict=True)
    return jax.tree.unflatten(jax.tree.structure(examples[0]), map(np.array, columns))


def into_empty_arrays(examples):
    def fill(*leaves):
        found = np.empty((len(leaves), *np.shape(leaves[0])), leaves[0].dtype)
        for i, leaf in enumerate(leaves):
            found[i] = leaf
        return found

    return jax.tree.map(fill, *examples)


def one_order(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed, 0, start)


def never_the_same(count, size, seed, epoch, start=0):
    order = np.random.default_rng().permutation(count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def sum_of_seed_and_epoch(count, size, seed, epoch, start=0):
    order = np.random.default_rng(seed + epoch).permutation(count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def the_first_eight(count, size, seed, epoch, start=0):
    whole = count // size
    order = np.random.default_rng((seed, epoch)).permutation(whole * size)
    return [order[i * size : (i + 1) * size] for i in range(start, whole)]


def from_an_example_on(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).permutation(count)[start:]
    return [order[i * size : (i + 1) * size] for i in range(len(order) // size)]


def drawn_with_repetition(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).integers(0, 4, count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def batches_by(order_of, count, size, seed, epoch, start=0):
    order = order_of(seed, epoch, count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def epoch_by_thousands(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed + 1000 * epoch, 0, start)


def epoch_in_high_bits(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed ^ (epoch << 8), 0, start)


def digits_joined(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, int(f"1{seed}{epoch}"), 0, start)


def by_hundreds(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(100 * seed + epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def by_primes(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(7 * seed + 13 * epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def by_ten_thousands(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(10_000 * seed + epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def rolled(*args, **options):
    def order_of(seed, epoch, count):
        return np.roll(np.random.default_rng(seed).permutation(count), epoch)

    return batches_by(order_of, *args, **options)


def without_a_seed(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def from_one_on(*args, **options):
    def order_of(seed, epoch, count):
        return 1 + np.random.default_rng((seed, epoch)).permutation(count)

    return batches_by(order_of, *args, **options)


def without_the_last(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).permutation(count)
    return [order[i : i + size] for i in range(0, count, size)][:-1][start:]


def start_forgotten(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed, epoch)


def start_in_examples(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).permutation(count)
    return [order[i : i + size] for i in range(start, count - size + 1, size)]


def one_batch_after_the_start(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed, epoch)[start : start + 2]


def shuffled_on_the_way(count, size, seed, epoch, start=0):
    generator = np.random.default_rng((seed, epoch))
    return [generator.permutation(count)[:size] for _ in range(start, count // size)]


def batches_shuffled(count, size, seed, epoch, start=0):
    batches = np.arange(count // size * size).reshape(-1, size)
    return np.random.default_rng((seed, epoch)).permutation(batches)[start:]


def by_a_seed_sequence(count, size, seed, epoch, start=0):
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    order = np.arange(count)
    generator.shuffle(order)
    return list(order[: count // size * size].reshape(-1, size)[start:])


def by_a_key(count, size, seed, epoch, start=0):
    key = jax.random.fold_in(jax.random.key(seed), epoch)
    order = np.asarray(jax.random.permutation(key, count))
    return [order[i : i + size] for i in range(start * size, count - size + 1, size)]


def epoch_after_epoch(count, size, seed, epoch, start=0):
    generator = np.random.default_rng(seed)
    for _ in range(epoch + 1):
        order = generator.permutation(count)
    whole = count // size
    return np.split(order[: whole * size], whole)[start:]


def one_at_a_time(count, size, seed, epoch, start=0):
    order = np.random.default_rng([epoch, seed]).permutation(count)
    for number in range(start, count // size):
        yield order[number * size : (number + 1) * size]


def every_nth_batch(order, size, process, processes):
    batches = [order[i : i + size] for i in range(0, len(order) - size + 1, size)]
    return batches[process::processes]


def whole_batches(order, size, process, processes):
    return [order[i : i + size] for i in range(0, len(order) - size + 1, size)]


def halves_without_the_rest(order, size, process, processes):
    own, rows = np.array_split(order, processes)[process], size // processes
    return [own[i : i + rows] for i in range(0, len(own) - rows + 1, rows)]


def whole_size_each(order, size, process, processes):
    own = order[process::processes]
    return [own[i : i + size] for i in range(0, len(own) - size + 1, size)]


def rest_kept(order, size, process, processes):
    own, rows = order[process::processes], size // processes
    return [own[i : i + rows] for i in range(0, len(own), rows)]


def rest_of_processes_kept(order, size, process, processes):
    own, rows = order[process::processes], size // processes
    return [own[i : i + rows] for i in range(0, len(own) - rows + 1, rows)]


def shuffled_again(order, size, process, processes):
    order = np.random.default_rng(process).permutation(order)
    return solutions.rows_of_process(order, size, process, processes)


def positions(order, size, process, processes):
    return solutions.rows_of_process(np.arange(len(order)), size, process, processes)


def same_for_all(order, size, process, processes):
    return solutions.rows_of_process(order, size, 0, processes)


def two_processes(order, size, process, processes):
    return solutions.rows_of_process(order, size, process, 2)


def one_step_less(order, size, process, processes):
    return solutions.rows_of_process(order, size, process, processes)[:-1]


def overlapping(order, size, process, processes):
    rows = size // processes
    return [order[i + process : i + process + rows] for i in range(0, len(order) - size + 1, size)]


def in_order_of_the_rows(order, size, process, processes):
    return solutions.rows_of_process(np.sort(order), size, process, processes)


def nothing(order, size, process, processes):
    return []


def as_floats(order, size, process, processes):
    return [rows / 1 for rows in solutions.rows_of_process(order, size, process, processes)]


def strided(order, size, process, processes):
    own, rows = order[process::processes], size // processes
    return [own[n * rows : (n + 1) * rows] for n in range(len(order) // size)]


def one_step_at_a_time(order, size, process, processes):
    rows = size // processes
    for first in range(0, len(order) - size + 1, size):
        yield order[first + process * rows : first + (process + 1) * rows].tolist()


def split_twice(order, size, process, processes):
    steps = len(order) // size
    whole = np.split(order[: steps * size], steps)
    return [np.split(step, processes)[process] for step in whole]


def each_nth_row(order, size, process, processes):
    steps = jnp.reshape(order[: len(order) // size * size], (-1, size))
    return [step[process::processes] for step in steps]


WRONG = [
    (checks.check_collated, exercises.collated, "a leaf is a list"),
    (checks.check_collated, given_back, "it returns a list"),
    (checks.check_collated, stacked_alone, "it returns a NumPy array, and a batch"),
    (checks.check_collated, first_leaf, "it returns {'pixels': *}, and each"),
    (checks.check_collated, as_jax_arrays, "a loader, which may run in a worker"),
    (checks.check_collated, joined, "it raises ValueError: zero-dimensional arrays"),
    (checks.check_collated, on_the_last_axis, "has the shape (4, 3); three examples of (4,)"),
    (checks.check_collated, in_float32, "is in float32, and was in int32"),
    (checks.check_collated, without_a_star, "it returns a list"),
    (checks.check_collated, two_examples, "it raises TypeError"),
    (checks.check_collated, the_first_repeated, "row 1 of the batch is not example 1"),
    (checks.check_collated, backwards, "row 0 of the batch is not example 0"),
    (checks.check_collated, tuples, "it returns {'about': ((*, *, *), (*, *, *)), 'pixels'"),
    (checks.check_collated, of_three, "of six examples it makes 3 rows"),
    (checks.check_collated, squeezed, "a batch of one example has one row"),
    (checks.check_batches_of, epoch_by_thousands, "epoch 1 of seed 0 is epoch 0 of seed 1000"),
    (checks.check_batches_of, epoch_in_high_bits, "epoch 1 of seed 0 is epoch 0 of seed 256"),
    (checks.check_batches_of, digits_joined, "epoch 11 of seed 1 is epoch 1 of seed 11"),
    (checks.check_batches_of, by_hundreds, "epoch 100 of seed 0 is epoch 0 of seed 1"),
    (checks.check_batches_of, by_primes, "epoch 7 of seed 0 is epoch 0 of seed 13"),
    (checks.check_batches_of, by_ten_thousands, "epoch 10000 of seed 0 is"),
    (checks.check_batches_of, rolled, "begin with the same batch"),
    (checks.check_batches_of, without_a_seed, "all seeds have the same order"),
    (checks.check_batches_of, from_one_on, "are not all below 10"),
    (checks.check_batches_of, without_the_last, "8 examples make 2 batches"),
    (checks.check_batches_of, start_forgotten, "from batch 1 on"),
    (checks.check_batches_of, start_in_examples, "from batch 1 on"),
    (checks.check_batches_of, one_batch_after_the_start, "from batch 1 on"),
    (checks.check_batches_of, shuffled_on_the_way, "an example occurs twice"),
    (checks.check_batches_of, batches_shuffled, "only 8 of 10 examples occur"),
    (checks.check_batches_of, one_order, "all epochs have the same order"),
    (checks.check_batches_of, never_the_same, "no run can be repeated"),
    (checks.check_batches_of, sum_of_seed_and_epoch, "epoch 1 of seed 0 is epoch 0 of seed 1"),
    (checks.check_batches_of, the_first_eight, "only 8 of 10 examples occur"),
    (checks.check_batches_of, from_an_example_on, "from batch 1 on"),
    (checks.check_batches_of, drawn_with_repetition, "an example occurs twice"),
    (checks.check_batches_of, exercises.batches_of, "the batches have sizes [4, 4, 2]"),
    (checks.check_rows_of_process, exercises.rows_of_process, "arrays of the shapes"),
    (checks.check_rows_of_process, every_nth_batch, "so one waits for others"),
    (checks.check_rows_of_process, whole_batches, "arrays of the shapes [(4,)], not (2,)"),
    (checks.check_rows_of_process, halves_without_the_rest, "and on one process"),
    (checks.check_rows_of_process, whole_size_each, "arrays of the shapes [(4,)], not (2,)"),
    (checks.check_rows_of_process, rest_kept, "arrays of the shapes [(1,), (2,)]"),
    (checks.check_rows_of_process, rest_of_processes_kept, "so one waits for others"),
    (checks.check_rows_of_process, shuffled_again, "two read the same example"),
    (checks.check_rows_of_process, positions, "step 0 has the examples [0, 1, 2, 3]"),
    (checks.check_rows_of_process, same_for_all, "two read the same example"),
    (checks.check_rows_of_process, two_processes, "it raises IndexError"),
    (checks.check_rows_of_process, one_step_less, "30 examples make 7"),
    (checks.check_rows_of_process, overlapping, "two read the same example"),
    (checks.check_rows_of_process, in_order_of_the_rows, "step 0 has the examples"),
    (checks.check_rows_of_process, as_floats, "indices are integers"),
    (checks.check_rows_of_process, nothing, "arrays of the shapes []"),
]

RIGHT = [
    (checks.check_collated, leaf_by_leaf),
    (checks.check_collated, by_transpose),
    (checks.check_collated, by_leaves),
    (checks.check_collated, into_empty_arrays),
    (checks.check_batches_of, by_a_seed_sequence),
    (checks.check_batches_of, by_a_key),
    (checks.check_batches_of, epoch_after_epoch),
    (checks.check_batches_of, one_at_a_time),
    (checks.check_rows_of_process, strided),
    (checks.check_rows_of_process, one_step_at_a_time),
    (checks.check_rows_of_process, split_twice),
    (checks.check_rows_of_process, each_nth_row),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
