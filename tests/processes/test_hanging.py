"""Real processes, of which one does not come to a collective."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from snippets.processes import hanging
from snippets.programs.launcher import launch

SUMMED = [hanging.summed]
SAME = [hanging.check_same_program]
HUNG = [None, None]
# What each program uses, and how its processes end.
PROGRAMS = {
    hanging.watched_program: (SUMMED, HUNG),
    hanging.full_pipe_program: (SUMMED, HUNG),
    hanging.skip_program: (SUMMED, HUNG),
    hanging.other_program: (SAME, HUNG),
    hanging.checked_program: (SUMMED, [1, 1]),
    hanging.other_program_checked: ([*SAME, hanging.other_program], [1, 1]),
    hanging.slow_program: ([], [0, 0]),
    hanging.limited_program: (SUMMED, [None, 0]),
}


@pytest.fixture(scope="module")
def wrote():
    """Return {program: what each process wrote}; most of them wait most of the time."""

    def ended(program):
        uses, statuses = PROGRAMS[program]
        until = hanging.DUMPED_TWICE if statuses == HUNG else "0 2"
        finished = launch(program, 2, 1, uses=uses, statuses=statuses, until=until)
        return [process.text for process in finished]

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(PROGRAMS, pool.map(ended, PROGRAMS), strict=True))


def read(texts, how=hanging.blocked_in):
    return [how(text).splitlines() for text in texts]


def test_a_watchdog_tells_where_each_process_is(wrote):
    waiting, stuck = read(wrote[hanging.watched_program])
    assert waiting[:2] == stuck[:2] == ["0 2.0", "blocked in"]
    assert waiting[-2:] == ["process_0.py: watched_program", "process_0.py: <module>"]
    assert "process_0.py: summed" in waiting
    assert stuck[2] == "process_1.py: watched_program"


def test_a_pipe_that_nobody_reads(wrote):
    waiting, writing = read(wrote[hanging.full_pipe_program])
    assert "process_0.py: summed" in waiting
    assert writing[:2] == ["blocked in", "process_1.py: report"]


def test_a_collective_that_is_left_out_makes_sums_wrong_and_then_hangs(wrote):
    first, second = read(wrote[hanging.skip_program])
    assert first[:4] == ["0 2.0", "1 110.0", "2 1100.0", "blocked in"]
    assert second[:4] == ["0 2.0", "2 110.0", "3 1100.0", "blocked in"]
    assert "process_0.py: summed" in first
    assert "process_1.py: summed" not in second


def test_a_name_is_compared_before_anything_is_added_up(wrote):
    for step, lines in zip(
        (1, 2), read(wrote[hanging.checked_program], hanging.raised_in), strict=True
    ):
        assert lines[0] == "0 2.0"
        assert lines[1].startswith(
            f"AssertionError: sync_global_devices name mismatch ('step {step}')"
        )


def test_another_program_is_a_wrong_number_or_a_process_that_waits(wrote):
    columns, everything = read(wrote[hanging.other_program])
    assert "24.0" not in columns + everything
    assert "blocked in" in columns + everything


def test_programs_are_compared_before_they_run(wrote):
    for lines in read(wrote[hanging.other_program_checked], hanging.raised_in):
        (error,) = lines
        assert error.startswith("AssertionError: processes have different programs")


def test_the_slowest_is_named_by_all(wrote):
    assert read(wrote[hanging.slow_program]) == [["the slowest is process 1"]] * 2


def test_a_time_limit_on_cpus(wrote):
    stuck, limited = read(wrote[hanging.limited_program])
    assert stuck[0] == limited[0] == "0 2.0"
    # Whichever of the two it waits in.
    ended = r"caught Timed out waiting 30000ms for (recv|send) operation to complete"
    assert re.fullmatch(ended, limited[1])
