"""Lesson 15, several processes: four exercises."""

import jax


def global_rows(mesh, own):
    """Return one array of the rows of all processes, sharded by rows.

    `own`, in NumPy, has those of this process. The mesh has all devices of
    all processes along its axis "data".
    """
    return jax.device_put(own, jax.NamedSharding(mesh, jax.P("data")))


def rows_of(count, process, processes):
    """Return the rows (start, stop) of `count` that a process loads.

    Processes have equally many rows, one after the other in the order of
    their numbers. Rows that are left over are loaded by nobody.
    """
    raise NotImplementedError


def log_mean(losses, process, mean_over_processes, write):
    """Let process 0 write the mean loss of all processes, every 10 steps.

    `losses` are those of a process, one for each step. The function
    `mean_over_processes` is a collective: it returns once all processes have
    called it. `write` takes a text, with the step and the mean.
    """
    for step, loss in enumerate(losses):
        if step % 10 == 0 and process == 0:
            write(f"step {step}: {mean_over_processes(loss)}")


def step_to_restore(saved):
    """Return the last step of which all processes have saved their shards.

    `saved` has a list of steps for each process, in any order, because one
    may have been killed before it had written; None if there is no such step.
    """
    return max(map(max, saved))
