"""mpi4jax under mpirun, and the same computation with shard_map."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snippets.processes import mpi
from snippets.processes.mpi import first_program, smooth_program
from snippets.programs.launcher import Finished, launch_mpi


def smooth_numpy(x, steps=3):
    for _ in range(steps):
        x = (np.roll(x, 1) + x + np.roll(x, -1)) / 3
    return x


def both_programs():
    first_program()
    smooth_program()


def test_messages_arrive_and_mpi_shard_map_and_numpy_agree(mpi4jax):
    finished = launch_mpi(both_programs, count=3, devices=1, uses=[first_program, smooth_program])
    refused = "RuntimeError: Explicit token management is not supported for mpi4jax>=0.8.0"
    for process, sent in zip(finished, ["sent\n", "got [1. 2. 3.]\n", ""], strict=True):
        expected = f"sum [3. 3. 3.]\nderivative 12.0\n{sent}{refused}\n"
        assert process.text.startswith(expected)
    by_mpi = mpi.gathered([Finished(n, s, text.splitlines()[-1]) for n, s, text in finished])
    by_shards = mpi.smooth_sharded(jax.devices()[:3])
    assert by_mpi.dtype == by_shards.dtype == np.float32
    np.testing.assert_allclose(by_shards, smooth_numpy(np.arange(12.0) ** 2), rtol=1e-6)
    np.testing.assert_allclose(by_mpi, by_shards, rtol=1e-6)


def test_both_receiving_first_hangs_in_the_receive(mpi4jax):
    until = "<module>.*<module>"
    finished = launch_mpi(mpi.deadlock_program, 2, 1, status=None, until=until)
    for rank, process in enumerate(finished):
        text = mpi.waiting_where(process.text, mpi.deadlock_program).splitlines()
        assert text[0] == f"process {rank} waits for {1 - rank}"
        assert "in swap: received = mpi4jax.recv(x, source=other)" in text
        assert not any(line.startswith("received") for line in text)


def test_both_cures_swap(mpi4jax):
    finished = launch_mpi(mpi.swap_program, count=2, devices=1)
    for rank, process in enumerate(finished):
        other = f"[{1 - rank} {1 - rank} {1 - rank}]"
        assert process.text == f"in turn {other}\nat once {other}"


@pytest.mark.parametrize("count", [1, 2, 8])
def test_smoothing_on_any_number_of_devices_equals_numpy(count):
    result = mpi.smooth_sharded(jax.devices()[:count])
    np.testing.assert_allclose(result, smooth_numpy(np.arange(4.0 * count) ** 2), rtol=1e-6)
    assert result.sharding.shard_shape(result.shape) == (4,)


@given(st.lists(st.lists(st.floats(-9, 9, width=32), min_size=1), min_size=1, max_size=4))
def test_printed_numbers_become_one_array_without_loss(parts):
    parts = [np.array(part, np.float32) for part in parts]
    printed = [" ".join(str(value) for value in part) for part in parts]
    finished = [Finished(n, 0, text) for n, text in enumerate(printed)]
    np.testing.assert_array_equal(mpi.gathered(finished), np.concatenate(parts))


def sample_program():
    first = 1
    return first


def test_a_traceback_is_reduced_to_lines_of_the_program():
    text = (
        "said\nThread 0x00007f (most recent call first):\n"
        '  File "/lib/jax/core.py", line 9 in bind\n'
        '  File "/tmp/x/process_mpi.py", line 2 in sample_program\n'
        '  File "/tmp/x/process_mpi.py", line 7 in <module>'
    )
    assert mpi.waiting_where(text, sample_program) == "said\nin sample_program: first = 1"
