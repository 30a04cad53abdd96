"""What JAX finds out from the variables of a launcher."""

import pytest

from snippets.processes import detection
from snippets.processes.launcher import launch, launch_mpi


def order_program():
    import os

    import jax

    jax.distributed.initialize()
    print(jax.process_index(), [d.process_index for d in jax.devices()])
    print(os.environ["SLURM_STEP_NODELIST"])


def test_jax_is_told_by_mpirun_or_mpi4py(mpi):
    finished = launch_mpi(detection.open_mpi_program, count=2)
    for number, process in enumerate(finished):
        text = process.text.splitlines()
        assert text[:3] == [f"RANK {number}", "SIZE 2", f"LOCAL_RANK {number}"]
        assert text[3].startswith("ValueError: ") or text[3] == "found by itself"
        assert text[3] == "found by itself" or text[4] == "found by mpi4py"
        assert text[-2:] == [f"process {number} of 2", "4 devices in all"]


def test_the_numbers_of_open_mpi_can_be_passed_by_hand(mpi):
    finished = launch_mpi(detection.by_hand_program, count=2)
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
