"""Lesson 13, several processes: what answers are checked for."""


def check_rows_of(rows_of):
    """Raise AssertionError unless all rows but the rest are loaded once."""
    for count, processes in ((8, 4), (10, 4), (3, 4)):
        found = [rows_of(count, n, processes) for n in range(processes)]
        sizes = [stop - start for start, stop in found]
        assert len(set(sizes)) == 1, (
            f"of {count} rows, {processes} processes load {sizes}; all need "
            "equally many, or their arrays do not make one"
        )
        assert sizes[0] == count // processes, (
            f"of {count} rows, each of {processes} processes loads "
            f"{sizes[0]}, and could load {count // processes}"
        )
        rows = [row for start, stop in found for row in range(start, stop)]
        assert len(set(rows)) == len(rows), (
            f"of {count} rows, {processes} processes load {found}: some rows "
            "twice"
        )
        assert rows == list(range(len(rows))), (
            f"of {count} rows, {processes} processes load {found}, which are "
            "not in the order of the processes"
        )


def check_log_mean(log_mean):
    """Raise AssertionError unless all processes call the same collectives."""
    calls, texts = {0: [], 1: []}, {0: [], 1: []}
    for process in (0, 1):

        def mean(loss, process=process):
            calls[process].append(loss)
            return loss / 2

        losses = [float(step + 100 * process) for step in range(25)]
        log_mean(losses, process, mean, texts[process].append)
    assert len(calls[0]) == len(calls[1]), (
        f"process 0 calls the collective {len(calls[0])} times, and process 1 "
        f"{len(calls[1])} times: one waits for the other forever"
    )
    assert calls[0], "no mean over the processes is taken"
    assert len(calls[0]) == 3, (
        f"the mean of 25 steps is taken {len(calls[0])} times; every tenth "
        "step needs it, 0, 10 and 20"
    )
    assert calls[1] == [100.0, 110.0, 120.0], (
        f"process 1 passes {calls[1]} to the collective, which are not its "
        "losses of steps 0, 10 and 20"
    )
    assert not texts[1], "process 1 writes as well"
    assert texts[0] == ["step 0: 0.0", "step 10: 5.0", "step 20: 10.0"], (
        f"process 0 writes {texts[0]}"
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
    assert found == 200, f"all have saved step 200, and it returns {found}"
    found = step_to_restore([[100, 300], [100, 200]])
    assert found == 100, (
        f"one process has lost step 200, the other never wrote 300: all have "
        f"saved step 100 alone, and it returns {found}"
    )
    found = step_to_restore([[100, 200], [200, 300], [200]])
    assert found == 200, f"all three have saved step 200, it returns {found}"
    found = step_to_restore([[0], [0]])
    assert found == 0, f"all have saved step 0, and it returns {found}"
    found = step_to_restore([[100], []])
    assert found is None, f"no step is complete, and it returns {found}"
