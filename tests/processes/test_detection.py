"""What JAX finds out from the variables of a launcher."""

import jax

from snippets.processes.detection import (
    all_devices_program,
    batch_variables,
    by_hand_program,
    open_mpi_program,
    slurm_program,
    slurm_variables,
    with_address,
)
from snippets.programs.launcher import launch, launch_mpi

JAX = tuple(map(int, jax.__version__.split(".")[:3]))
LACKING = "ValueError: coordinator_address should be defined.\n"


def search_program():
    """Let JAX find the others after sbatch, without one variable of srun each, and with all."""
    import os

    import jax

    given = dict(os.environ)

    def search(variables):
        os.environ.clear()
        os.environ.update(variables)
        slurm_program()

    srun = set(slurm_variables(0, 2, 0))
    search({n: v for n, v in given.items() if n not in srun} | batch_variables(0, 2, 0))
    for name in sorted(srun - {"JAX_COORDINATOR_PORT"}):
        search({n: v for n, v in given.items() if n != name})
    search(given)
    print([d.process_index for d in jax.devices()])


def test_jax_is_told_by_mpirun_or_mpi4py(mpi):
    finished = launch_mpi(open_mpi_program, count=2)
    for number, process in enumerate(finished):
        text = process.text.splitlines()
        assert text[:3] == [f"RANK {number}", "SIZE 2", f"LOCAL_RANK {number}"]
        if JAX < (0, 11, 2):
            assert text[3].startswith("ValueError: ") and text[4] == "found by mpi4py"
        else:
            assert text[3] == "found by itself"
        assert text[-2:] == [f"process {number} of 2", "4 devices in all"]


def by_two_launchers(port, count, number):
    """Return what mpirun would tell process 0, and srun process 1."""
    variables = with_address(port, count, number)
    if number == 0:
        variables |= {"OMPI_COMM_WORLD_" + name: "0" for name in ("RANK", "LOCAL_RANK")}
        variables |= {"OMPI_COMM_WORLD_SIZE": str(count), "SLURM_PROCID": "7"}
    return variables


def test_the_numbers_of_a_launcher_can_be_passed_by_hand():
    finished = launch(by_hand_program, count=2, variables=by_two_launchers)
    assert [p.text.splitlines() for p in finished] == [
        [f"number from {name}", f"process {number} of 2", "4 devices in all"]
        for number, name in enumerate(["OMPI_COMM_WORLD_RANK", "SLURM_PROCID"])
    ]


def test_the_variables_of_srun_are_enough_and_each_of_the_five_is_needed():
    uses = [slurm_variables, batch_variables, slurm_program]
    finished = launch(search_program, count=2, uses=uses, variables=slurm_variables)
    for number, process in enumerate(finished):
        assert process.text.startswith(6 * LACKING)
        text = process.text.removeprefix(6 * LACKING)
        assert f"visible devices: {number}\n" in text
        assert "Connecting to JAX distributed service on localhost:" in text
        assert text.endswith(f"process {number} of 2\n[0, 0, 1, 1]\n")
        assert ("Starting JAX distributed service" in text) == (number == 0)


def test_devices_can_be_named():
    [process] = launch(all_devices_program, count=1, variables=slurm_variables)
    assert "visible devices: 0,1,2,3\n" in process.text
