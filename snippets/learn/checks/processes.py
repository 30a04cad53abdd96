"""Lesson 15, several processes: what answers are checked for."""

import re
from collections import Counter

import jax
import numpy as np
from jax.experimental import multihost_utils

from snippets.programs.practice import in_two_processes


def rows_in_a_process(global_rows):
    """Return what this process has of two global arrays."""
    mesh = jax.make_mesh((4,), ("data",))
    found = []
    for shape in ((4, 2), (6,)):
        own = np.arange(shape[0] * 2.0, dtype=np.float32)[: np.prod(shape)]
        own = own.reshape(shape) + 100 * jax.process_index()
        x = global_rows(mesh, own)
        if isinstance(x, jax.Array):
            shards = sorted(x.addressable_shards, key=lambda s: s.device.id)
            shards = [np.asarray(shard.data).tolist() for shard in shards]
            devices = len(x.sharding.device_set)
            found.append([[*x.shape], devices, shards, own.tolist()])
        else:
            found.append(type(x).__name__)
    return found


def check_global_rows(global_rows):
    """Raise AssertionError unless two processes make one array."""
    for process, arrays in enumerate(
        in_two_processes(rows_in_a_process, global_rows)
    ):
        for found in arrays:
            assert not isinstance(found, str), (
                f"in process {process} of two it returns no array of JAX but "
                f"{found}"
            )
            shape, devices, shards, own = found
            total = [2 * len(own), *np.shape(own)[1:]]
            assert devices == 4, (
                f"the array of process {process} lies on {devices} of the 4 "
                "devices in the mesh"
            )
            assert shape == total, (
                f"each of two processes has rows {np.shape(own)}; their array "
                f"is {tuple(shape)}, and should be {tuple(total)}"
            )
            half = len(own) // 2
            assert shards == [own[:half], own[half:]], (
                f"process {process} has loaded {own}; its two devices hold "
                f"{shards}, and should hold half of it each"
            )


def check_rows_of(rows_of):
    """Raise AssertionError unless all rows but the rest are loaded once."""
    for count, processes in ((8, 4), (10, 4), (3, 4), (17, 3), (5, 1)):
        found = [rows_of(count, n, processes) for n in range(processes)]
        of = f"of {count} rows, {processes} processes load {found}: "
        assert all(np.shape(pair) == (2,) for pair in found), (
            f"{of}a pair (start, stop) is wanted for each"
        )
        assert all(hasattr(n, "__index__") for pair in found for n in pair), (
            f"{of}a slice takes integers; divide by `//`"
        )
        sizes = [stop - start for start, stop in found]
        assert len(set(sizes)) == 1, (
            f"{of}{sizes} rows; all need equally many, or their arrays do not "
            "make one"
        )
        assert sizes[0] <= count // processes, (
            f"{of}each loads {sizes[0]}, and there are only "
            f"{count // processes} for each"
        )
        assert sizes[0] == count // processes, (
            f"{of}each loads {sizes[0]}, and could load {count // processes}; "
            "`stop` is the row after the last"
        )
        rows = [n for pair in found for n in range(*map(int, pair))]
        assert len(set(rows)) == len(rows), f"{of}some rows twice"
        assert rows == list(range(len(rows))), (
            f"{of}they begin with row 0, in the order of the processes"
        )


def log_in_a_process(log_mean):
    """Return (calls of the collective, texts, who waits) for two runs."""
    process, found = jax.process_index(), []
    for steps in (25, 11):
        calls, texts = [], []

        def gathered(loss, ended):
            return multihost_utils.process_allgather(np.array([loss, ended]))

        def mean(loss, calls=calls):
            calls.append(float(loss))
            losses, ended = gathered(loss, 0.0).T
            if any(ended):
                raise InterruptedError
            return float(losses.mean())

        losses = [float(n + process * n**2) for n in range(steps)]
        try:
            log_mean(losses, process, mean, texts.append)
            alone = not gathered(0.0, 1.0)[:, 1].all()
        except InterruptedError:
            return [*found, [calls, texts, "waits"]]
        found.append([calls, texts, "left" if alone else ""])
        if alone:
            break
    return found


def check_log_mean(log_mean):
    """Raise AssertionError unless two processes call the same collectives."""
    runs = zip(*in_two_processes(log_in_a_process, log_mean), strict=True)
    for run, steps in zip(runs, (25, 11), strict=False):
        for process, (calls, _, what) in enumerate(run):
            assert what != "waits", (
                f"process {process} calls the collective for the "
                f"{len(calls)}. time, and process {1 - process} has returned "
                f"after {len(run[1 - process][0])} calls: one waits for the "
                "other forever"
            )
        for process, (calls, _, _) in enumerate(run):
            assert calls, "no mean over the processes is taken"
            right = [n + 1.0 * process * n**2 for n in range(0, steps, 10)]
            assert len(calls) == len(right), (
                f"the mean of {steps} steps is taken {len(calls)} times; "
                "every tenth step needs it, from 0"
            )
            assert calls == right, (
                f"process {process} passes {calls} to the collective; its "
                f"losses of steps 0, 10, ... are {right}"
            )
        texts = [texts for _, texts, _ in run]
        assert not texts[1], "process 1 writes as well"
        said = [re.findall(r"\d+(?:\.\d+)?", str(text)) for text in texts[0]]
        right = [[n, n + n**2 / 2] for n in range(0, steps, 10)]
        has_both = len(said) == len(right) and all(
            not Counter(wanted) - Counter(map(float, numbers))
            for numbers, wanted in zip(said, right, strict=True)
        )
        assert has_both, (
            f"of {steps} steps process 0 writes {texts[0]}; wanted are the "
            f"steps, each with its mean, {right}"
        )


def check_step_to_restore(step_to_restore):
    """Raise AssertionError unless it is a step that is complete."""
    found = step_to_restore([[100, 200, 300], [300, 100, 200]])
    assert found == 300, f"all have saved step 300, and it returns {found}"
    found = step_to_restore([[100, 200, 300], [100, 200]])
    assert found != 300, (
        "process 1 was killed before it had written step 300, so there are "
        "shards missing"
    )
    cases = {
        "all have saved step 200": ([[100, 200, 300], [100, 200]], 200),
        "one process has lost step 200, the other never wrote 300: all have "
        "saved step 100 alone": ([[100, 300], [100, 200]], 100),
        "all three have saved step 200": (
            [[100, 200], [200, 300], [200]],
            200,
        ),
        "two of three have saved step 300, and all step 50": (
            [[300, 50], [100, 50], [50, 300]],
            50,
        ),
        "there is one process, whose last step is 40": ([[40, 9, 20]], 40),
        "all have saved step 0": ([[0], [0]], 0),
        "no step is complete": ([[100], []], None),
        "no step is complete, as each process saved another": (
            [[100], [200]],
            None,
        ),
    }
    for words, (saved, right) in cases.items():
        before = [list(steps) for steps in saved]
        found = step_to_restore(saved)
        assert saved == before, f"it changes the list it is given, to {saved}"
        whole = hasattr(found, "__index__") and not isinstance(found, bool)
        assert found == right and (whole or right is None), (
            f"{words}, and of {saved} it returns {found!r}"
        )
