"""Answers to the exercises on several processes, and what is said of the wrong ones."""

import functools
import math
import statistics

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import multihost_utils

from snippets.learn.checks import processes as checks
from snippets.learn.exercises import processes as exercises
from snippets.programs.practice import problem_of


def own_array(mesh, own):
    return jnp.array(own)


def by_columns(mesh, own):
    spec = jax.P(None, "data") if own.ndim > 1 else jax.P("data")
    return jax.make_array_from_process_local_data(jax.NamedSharding(mesh, spec), own)


def without_a_body(mesh, own):
    raise NotImplementedError


def replicated(mesh, own):
    return jax.make_array_from_process_local_data(jax.NamedSharding(mesh, jax.P()), own)


def gathered(mesh, own):
    return multihost_utils.process_allgather(own, tiled=True)


def on_own_devices(mesh, own):
    own_mesh = jax.make_mesh((2,), ("data",), devices=jax.local_devices())
    return jax.device_put(own, jax.NamedSharding(own_mesh, jax.P("data")))


def of_process_0(mesh, own):
    if jax.process_index() == 0:
        sharding = jax.NamedSharding(mesh, jax.P("data"))
        return jax.make_array_from_process_local_data(sharding, own)


def of_the_own_index(mesh, own):
    shape, sharding = (2 * len(own), *own.shape[1:]), jax.NamedSharding(mesh, jax.P("data"))
    twice = np.concatenate([own, own[::-1]])
    return jax.make_array_from_callback(shape, sharding, lambda index: twice[index])


def of_the_own_shape(mesh, own):
    sharding = jax.NamedSharding(mesh, jax.P("data"))
    return jax.make_array_from_process_local_data(sharding, own, own.shape)


def rows_of_all(mesh, own):
    return multihost_utils.host_local_array_to_global_array(own, mesh, jax.P("data"))


def by_callback(mesh, own):
    shape, first = (2 * len(own), *own.shape[1:]), jax.process_index() * len(own)

    def rows(index):
        start, stop, _ = index[0].indices(shape[0])
        return own[start - first : stop - first]

    return jax.make_array_from_callback(shape, jax.NamedSharding(mesh, jax.P("data")), rows)


def shard_by_shard(mesh, own):
    shape, devices = (2 * len(own), *own.shape[1:]), jax.local_devices()
    parts = zip(np.split(own, len(devices)), devices, strict=True)
    shards = [jax.device_put(part, device) for part, device in parts]
    sharding = jax.NamedSharding(mesh, jax.P("data"))
    return jax.make_array_from_single_device_arrays(shape, sharding, shards)


def with_the_shape(mesh, own):
    spec = jax.P("data", *[None] * (own.ndim - 1))
    shape = (jax.process_count() * len(own), *own.shape[1:])
    sharding = jax.NamedSharding(mesh, spec)
    return jax.make_array_from_process_local_data(sharding, own, shape)


def all_of_them(count, process, processes):
    return process * count, (process + 1) * count


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


def to_the_last(count, process, processes):
    own = count // processes
    return process * own, (process + 1) * own - 1


def how_many(count, process, processes):
    return process * (count // processes), count // processes


def as_floats(count, process, processes):
    size = (count - count % processes) / processes
    return process * size, (process + 1) * size


def the_mean_first(losses, process, mean_over_processes, write):
    for step in range(0, len(losses), 10):
        mean = mean_over_processes(losses[step])
        if process == 0:
            write(f"a mean of {mean} in step {step}")


def in_halves(count, process, processes):
    return process * count / processes, (process + 1) * count / processes


def of_four(count, process, processes):
    return process * (count // 4), (process + 1) * (count // 4)


def counted_from_one(count, process, processes):
    own = count // processes
    return (process - 1) * own, process * own


def all_rows(count, process, processes):
    own = count // processes
    return list(range(process * own, (process + 1) * own))


def the_rest_first(count, process, processes):
    own, rest = divmod(count, processes)
    return rest + process * own, rest + (process + 1) * own


def as_even_as_possible(count, process, processes):
    return count * process // processes, count * (process + 1) // processes


def from_the_start(count, process, processes):
    own = count // processes
    start = process * own
    return start, start + own


def by_remainder(count, process, processes):
    whole = count - count % processes
    return whole * process // processes, whole * (process + 1) // processes


def by_range(count, process, processes):
    own = count // processes
    return list(range(0, (processes + 1) * own, own) if own else [0] * 9)[process : process + 2]


def by_divmod(count, process, processes):
    own, _ = divmod(count, processes)
    return np.array([process, process + 1]) * own


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


def others_return(losses, process, mean_over_processes, write):
    if process != 0:
        return
    for step in range(0, len(losses), 10):
        write(f"step {step}: {mean_over_processes(losses[step])}")


def process_0_once_more(losses, process, mean_over_processes, write):
    for step in range(0, len(losses), 10):
        mean_over_processes(losses[step])
        if process == 0:
            write(f"step {step}: {mean_over_processes(losses[step])}")


def from_step_10(losses, process, mean_over_processes, write):
    for step in range(10, len(losses), 10):
        mean = mean_over_processes(losses[step])
        if process == 0:
            write(f"step {step}: {mean}")


def of_nothing_elsewhere(losses, process, mean_over_processes, write):
    for step in range(0, len(losses), 10):
        mean = mean_over_processes(losses[step] if process == 0 else 0.0)
        if process == 0:
            write(f"step {step}: {mean}")


def of_the_own_loss(losses, process, mean_over_processes, write):
    for step in range(0, len(losses), 10):
        mean_over_processes(losses[step])
        if process == 0:
            write(f"step {step}: {losses[step]}")


def prints(losses, process, mean_over_processes, write):
    for step in range(0, len(losses), 10):
        mean = mean_over_processes(losses[step])
        if process == 0:
            print(f"step {step}: {mean}")


def three_times(losses, process, mean_over_processes, write):
    for step in (0, 10, 20):
        mean = mean_over_processes(losses[step])
        if process == 0:
            write(f"step {step}: {mean}")


def of_every_tenth(losses, process, mean_over_processes, write):
    for number, loss in enumerate(losses[::10]):
        mean = mean_over_processes(loss)
        if process == 0:
            write(f"step {10 * number}, mean {mean:.3f}")


def means_first(losses, process, mean_over_processes, write):
    steps = range(0, len(losses), 10)
    means = [mean_over_processes(losses[step]) for step in steps]
    if process == 0:
        for step, mean in zip(steps, means, strict=True):
            write(f"{step} {mean}")


def with_the_count(losses, process, mean_over_processes, write):
    for step in range(0, len(losses), 10):
        mean = mean_over_processes(losses[step])
        if process == 0:
            write(f"step {step} of {len(losses)}: {mean}")


def with_a_writer(losses, process, mean_over_processes, write):
    write = write if process == 0 else nothing
    for step, loss in enumerate(losses):
        if step % EVERY == 0:
            write(f"step {step}: {mean_over_processes(loss)}")


def nothing(text):
    pass


EVERY = 10


def by_continue(losses, process, mean_over_processes, write):
    for step, loss in enumerate(losses):
        if step % 10:
            continue
        mean = mean_over_processes(loss)
        if process:
            continue
        write(f"step {step}: {mean}")


def smallest_of_the_last(saved):
    return min((max(steps) for steps in saved if steps), default=None)


def of_the_first(saved):
    return max(saved[0], default=None)


def complete(saved):
    return set.intersection(*map(set, saved))


def of_the_complete(choose):
    return lambda saved: choose(complete(saved))


def of_two(saved):
    return max(set(saved[0]) & set(saved[-1]), default=None)


def of_most(saved):
    return statistics.mode(sorted((step for steps in saved for step in steps), reverse=True))


def by_emptying(saved):
    found = None
    while all(saved):
        last = [max(steps) for steps in saved]
        if len(set(last)) == 1:
            return last[0]
        saved[last.index(max(last))].remove(max(last))
    return found


def in_a_loop(saved):
    found = None
    for step in saved[0]:
        if all(step in steps for steps in saved) and (found is None or step > found):
            found = step
    return found


def from_the_last(saved):
    for step in sorted({step for steps in saved for step in steps}, reverse=True):
        if all(step in steps for steps in saved):
            return step
    return None


def folded(saved):
    steps = functools.reduce(lambda a, b: a & b, (set(each) for each in saved))
    return max(steps) if steps else None


def counted(saved):
    every = [step for steps in saved for step in set(steps)]
    return max((step for step in every if every.count(step) == len(saved)), default=None)


def by_sets_of_numpy(saved):
    common = functools.reduce(np.intersect1d, saved, np.unique(saved[0]))
    return common.max() if common.size else None


WRONG = [
    (checks.check_global_rows, exercises.global_rows, "at `return jax.device_put"),
    (checks.check_global_rows, without_a_body, "write `without_a_body`"),
    (checks.check_global_rows, own_array, "lies on 1 of the 4 devices"),
    (checks.check_global_rows, by_columns, "their array is (4, "),
    (checks.check_global_rows, replicated, "and should be (8, 2)"),
    (checks.check_global_rows, gathered, "it returns no array of JAX but ndarray"),
    (checks.check_global_rows, on_own_devices, "lies on 2 of the 4 devices"),
    (checks.check_global_rows, of_process_0, "in process 1 of two it returns no array"),
    (checks.check_global_rows, of_the_own_index, "process 1 has loaded"),
    (checks.check_global_rows, of_the_own_shape, "of two it raises "),
    (checks.check_global_rows, jax.jit(lambda mesh, own: own), "write it with `def`"),
    (checks.check_rows_of, exercises.rows_of, "write `rows_of`"),
    (checks.check_rows_of, with_the_rest, "[2, 2, 2, 4]"),
    (checks.check_rows_of, rounded_up, "each loads 3, and there are only 2 for each"),
    (checks.check_rows_of, all_of_them, "each loads 8, and there are only 2 for each"),
    (checks.check_rows_of, all_the_first, "some rows twice"),
    (checks.check_rows_of, backwards, "in the order of the processes"),
    (checks.check_rows_of, to_the_last, "`stop` is the row after the last"),
    (checks.check_rows_of, how_many, "all need equally many"),
    (checks.check_rows_of, in_halves, "a slice takes integers"),
    (checks.check_rows_of, as_floats, "a slice takes integers"),
    (checks.check_rows_of, of_four, "and could load 5"),
    (checks.check_rows_of, counted_from_one, "they begin with row 0"),
    (checks.check_rows_of, all_rows, "of 8 rows, 4 processes load [[0, 1]"),
    (checks.check_rows_of, the_rest_first, "they begin with row 0"),
    (checks.check_rows_of, as_even_as_possible, "all need equally many"),
    (checks.check_log_mean, exercises.log_mean, "one waits for the other forever"),
    (checks.check_log_mean, others_return, "process 1 has returned after 0 calls"),
    (checks.check_log_mean, process_0_once_more, "one waits for the other forever"),
    (checks.check_log_mean, every_step, "is taken 25 times"),
    (checks.check_log_mean, all_write, "process 1 writes as well"),
    (checks.check_log_mean, without_a_mean, "no mean over the processes"),
    (checks.check_log_mean, from_step_10, "is taken 2 times"),
    (checks.check_log_mean, of_nothing_elsewhere, "process 1 passes [0.0, 0.0, 0.0]"),
    (checks.check_log_mean, of_the_own_loss, "process 0 writes ['step 0: 0.0'"),
    (checks.check_log_mean, prints, "process 0 writes []"),
    (checks.check_log_mean, three_times, "it raises IndexError: list index out of range"),
    (checks.check_step_to_restore, exercises.step_to_restore, "shards missing"),
    (checks.check_step_to_restore, smallest_of_the_last, "has lost step 200"),
    (checks.check_step_to_restore, of_the_first, "shards missing"),
    (
        checks.check_step_to_restore,
        of_the_complete(lambda steps: max(steps, default=0)),
        "no step is complete",
    ),
    (checks.check_step_to_restore, of_the_complete(max), "it raises ValueError: max()"),
    (checks.check_step_to_restore, of_the_complete(min), "all have saved step 300"),
    (
        checks.check_step_to_restore,
        of_the_complete(lambda steps: max(steps, default=0) or None),
        "all have saved step 0",
    ),
    (checks.check_step_to_restore, of_the_complete(sorted), "it returns [100, 200, 300]"),
    (checks.check_step_to_restore, of_two, "two of three have saved step 300"),
    (checks.check_step_to_restore, of_most, "no step is complete"),
    (checks.check_step_to_restore, by_emptying, "it changes the list it is given"),
]
RIGHT = [
    (checks.check_step_to_restore, by_sets_of_numpy),
    (checks.check_global_rows, rows_of_all),
    (checks.check_global_rows, by_callback),
    (checks.check_global_rows, shard_by_shard),
    (checks.check_global_rows, with_the_shape),
    (checks.check_rows_of, from_the_start),
    (checks.check_rows_of, by_remainder),
    (checks.check_rows_of, by_range),
    (checks.check_rows_of, by_divmod),
    (checks.check_log_mean, of_every_tenth),
    (checks.check_log_mean, means_first),
    (checks.check_log_mean, with_the_count),
    (checks.check_log_mean, the_mean_first),
    (checks.check_log_mean, with_a_writer),
    (checks.check_log_mean, by_continue),
    (checks.check_step_to_restore, in_a_loop),
    (checks.check_step_to_restore, from_the_last),
    (checks.check_step_to_restore, folded),
    (checks.check_step_to_restore, counted),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
