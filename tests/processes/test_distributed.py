"""Real processes: what they compute together, and how the launcher treats them."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snippets.processes import distributed

ROOT = pathlib.Path(__file__).parents[2]


def lines(finished):
    return [process.text.splitlines() for process in finished]


def quick_program(address, count, number):
    print(number, "of", count, address.split(":")[0])
    print("written to standard output as well", file=__import__("sys").__stdout__)


def waiting_program(address, count, number):
    import time

    time.sleep(300)


def failing_program(address, count, number):
    import time

    if number == 1:
        raise SystemExit(3)
    time.sleep(300)


def address_program(address, count, number):
    import jax

    jax.distributed.initialize(address, count, number)
    print(address, "of", jax.process_count())


def folder_program(address, count, number):
    import os

    print(os.getcwd())
    print(sorted(os.environ))


def test_each_process_knows_its_number_and_all_devices():
    finished = distributed.launch(distributed.hello_program, count=3, devices=2)
    assert [process.status for process in finished] == [0, 0, 0]
    assert lines(finished) == [
        [f"process {number} of 3", "2 own devices", "6 devices in all"] for number in range(3)
    ]


def test_to_join_after_computing_is_too_late():
    jnp.ones(2) + 1
    with pytest.raises(RuntimeError, match="must be called before any JAX"):
        jax.distributed.initialize("localhost:1", num_processes=1, process_id=0)


def test_an_array_of_all_processes():
    finished = distributed.launch(distributed.array_program, uses=[distributed.shared_array])
    for number, text in enumerate(lines(finished)):
        own = np.arange(4.0) + 4 * number
        assert text[0] == f"own {own}"
        assert text[1] == "whole (16,)"
        assert text[2] == f"shard {4 * number} {own[:2]}"
        assert text[3] == f"shard {4 * number + 2} {own[2:]}"
        assert text[4].startswith(
            "RuntimeError: Fetching value for `jax.Array` that spans non-addr"
        )


def test_sums_of_an_array_of_all_processes():
    finished = distributed.launch(distributed.sums_program, uses=[distributed.shared_array])
    for text in lines(finished):
        assert text[1:] == [
            f"sum {np.arange(16.0).sum()}",
            f"psum {np.arange(16.0).reshape(8, 2).sum(0)}",
            f"gathered {np.arange(16.0)}",
        ]


def test_training_gives_the_errors_of_numpy_in_every_process():
    finished = distributed.launch(distributed.train_program, uses=[distributed.gradient_step])
    expected = distributed.train_numpy(count=4)
    np.testing.assert_allclose(distributed.errors(finished), [expected] * 4, atol=1e-4)
    assert (np.diff(expected) < 0).all()
    for text in lines(finished):
        assert text[0] == "rows 16 of 64"
        assert text[6] == lines(finished)[0][6]
        weights = [float(weight) for weight in text[6].split()[1:]]
        np.testing.assert_allclose(weights, [3, -1], atol=0.3)


def test_one_process_with_all_rows_learns_the_same():
    step = distributed.gradient_step
    [process] = distributed.launch(distributed.train_program, count=1, devices=8, uses=[step])
    np.testing.assert_allclose(
        distributed.errors([process])[0], distributed.train_numpy(count=1), atol=1e-4
    )


def test_torch_learns_the_weights_of_jax_and_sees_own_errors():
    by_torch = distributed.launch(distributed.torch_program, count=2)
    step = distributed.gradient_step
    by_jax = distributed.launch(distributed.train_program, count=2, uses=[step])
    weights = {text[-1] for text in lines(by_torch)} | {text[-1] for text in lines(by_jax)}
    assert len(weights) == 1
    own = np.array(distributed.errors(by_torch))
    assert (own[0] != own[1]).all()
    np.testing.assert_allclose(own.mean(axis=0), distributed.errors(by_jax)[0], atol=1.5e-4)


@given(st.lists(st.lists(st.integers(0, 99_999), min_size=3, max_size=3), min_size=1, max_size=4))
def test_errors_are_read_from_the_lines_that_tell_them(values):
    texts = ["rows 3\n" + "".join(f"error {v / 1e4:.4f}\n" for v in own) for own in values]
    finished = [distributed.Finished(n, 0, text) for n, text in enumerate(texts)]
    np.testing.assert_allclose(distributed.errors(finished), np.array(values) / 1e4, atol=1e-9)


def test_what_is_printed_is_collected_and_standard_output_is_not():
    finished = distributed.launch(quick_program, count=2)
    assert [process.text for process in finished] == ["0 of 2 localhost\n", "1 of 2 localhost\n"]


def test_the_environment_is_small(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://somewhere")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.delenv("HOME")
    [process] = distributed.launch(folder_program, count=1)
    folder, names = process.text.splitlines()
    assert not pathlib.Path(folder).exists()
    assert "PROXY" not in names and "SLURM" not in names
    assert "'HOME'" in names and "'PATH'" in names


def test_after_the_limit_nothing_runs():
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="process 1: stopped at the time limit"):
        distributed.launch(waiting_program, count=2, limit=1)
    assert time.monotonic() - started < 60
    assert not psutil.Process().children()


def test_the_failure_of_one_stops_the_others():
    with pytest.raises(RuntimeError) as raised:
        distributed.launch(failing_program, count=2, limit=300)
    assert "process 0: stopped at the time limit" in str(raised.value)
    assert "process 1: exit status 3" in str(raised.value)
    assert not psutil.Process().children()


def test_an_expected_failure_is_returned_and_others_may_go_on():
    finished = distributed.launch(failing_program, count=2, limit=4, statuses=[None, 3])
    assert [process.status for process in finished] == [None, 3]


def test_a_success_that_was_to_be_a_failure_is_an_error():
    with pytest.raises(RuntimeError, match="process 0: exit status 0"):
        distributed.launch(quick_program, count=1, statuses=[7])


def test_no_other_program_gets_a_reserved_port():
    with distributed.reserved_port() as port, socket.socket() as other:
        with pytest.raises(OSError, match="Address already in use"):
            other.bind(("", port))
    with socket.socket() as other:
        other.bind(("", port))


def test_reserved_ports_differ():
    with contextlib.ExitStack() as held:
        ports = [held.enter_context(distributed.reserved_port()) for _ in range(200)]
    assert len(set(ports)) == 200
    assert min(ports) > 1023


def test_a_reserved_port_is_not_given_away_by_the_system():
    with distributed.reserved_port() as port, contextlib.ExitStack() as held:
        for _ in range(500):
            other = held.enter_context(socket.socket())
            other.bind(("", 0))
            assert other.getsockname()[1] != port


def test_the_coordinator_opens_the_reserved_port_while_it_is_held(monkeypatch):
    held = []

    @contextlib.contextmanager
    def watched():
        with reserved_port() as port:
            held.append(port)
            yield port

    reserved_port = distributed.reserved_port
    monkeypatch.setattr(distributed, "reserved_port", watched)
    [process] = distributed.launch(address_program, count=1)
    assert process.text == f"localhost:{held[0]} of 1\n"


def test_a_port_that_another_program_listens_on_is_an_error(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = contextlib.nullcontext(taken.getsockname()[1])
        monkeypatch.setattr(distributed, "reserved_port", lambda: port)
        with pytest.raises(RuntimeError, match="Failed to add port to server"):
            distributed.launch(distributed.hello_program, count=1)


def test_a_process_whose_parent_has_gone_does_not_begin():
    command = distributed.guarded([sys.executable, "-c", "print('ran')"])
    alive = os.environ | {"GUARD_PARENT": str(os.getpid())}
    gone = os.environ | {"GUARD_PARENT": "1"}
    assert subprocess.run(command, env=alive, capture_output=True).stdout == b"ran\n"
    late = subprocess.run(command, env=gone, capture_output=True)
    assert late.returncode == 1 and late.stdout == b""


def test_the_file_keeps_the_lines_of_the_program(tmp_path):
    path = distributed.write_program(tmp_path / "program.py", quick_program, "a:1", 2, 0)
    source = path.read_text().splitlines()
    assert source[0] == "def quick_program(address, count, number):"
    assert source[-1] == "quick_program('a:1', 2, 0)"

    path = distributed.write_program(path, quick_program, uses=[waiting_program, lines])
    source = path.read_text()
    starts = [source.index(f"def {each.__name__}(") for each in (waiting_program, lines)]
    assert starts == sorted(starts) and max(starts) < source.index("def quick_program(")

    def nested():
        return 1

    assert textwrap.dedent(
        distributed.write_program(tmp_path / "nested.py", nested).read_text()
    ).startswith("def nested():\n    return 1\n")


@given(st.integers(1024, 65535))
def test_readable_text_holds_no_port_and_no_folder(port):
    text = f'  File "/tmp/x{port}/process_3.py", line 2\nto localhost:{port} and [::]:{port}\n'
    assert distributed.readable(text) == (
        'File "process_3.py", line 2\nto localhost:PORT and [::]:PORT'
    )


def test_how_it_ended():
    assert distributed.how_it_ended(0) == "exit status 0"
    assert distributed.how_it_ended(-9) == "SIGKILL"
    assert distributed.how_it_ended(None) == "stopped at the time limit"


def test_there_is_a_column_for_each_process_and_text_is_escaped():
    finished = [
        distributed.Finished(0, 0, "a < b\n"),
        distributed.Finished(1, -signal.SIGABRT, "second\n"),
    ]
    shown = distributed.side_by_side(finished).data
    assert shown.count("<strong>") == shown.count("<pre") == shown.count("</pre>") == 2
    assert "process 0</strong><br>exit status 0" in shown
    assert "process 1</strong><br>SIGABRT" in shown
    assert "a &lt; b</pre>" in shown
    assert "SECOND" in distributed.side_by_side(finished, str.upper).data
