"""Processes that find each other through what their launcher tells them."""


def open_mpi_program():
    """Show what mpirun tells a process, and let JAX find the others."""
    import os

    import jax

    for name in ("RANK", "SIZE", "LOCAL_RANK"):
        print(name, os.environ["OMPI_COMM_WORLD_" + name])
    try:
        jax.distributed.initialize()
        print("found by itself")
    except ValueError as error:
        print("ValueError:", error)
        jax.distributed.initialize(cluster_detection_method="mpi4py")
        print("found by mpi4py")
    print("process", jax.process_index(), "of", jax.process_count())
    print(jax.device_count(), "devices in all")


def slurm_variables(port, count, number):
    """Return what srun tells each process of a job on one machine."""
    return {
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": str(count),
        "SLURM_PROCID": str(number),
        "SLURM_LOCALID": str(number),
        "JAX_COORDINATOR_PORT": str(port),
    }


def slurm_program():
    """Let JAX find the other processes, and show what it logs."""
    import logging
    import sys

    import jax

    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    logging.getLogger("jax._src.distributed").setLevel(logging.INFO)
    try:
        jax.distributed.initialize()
        print("process", jax.process_index(), "of", jax.process_count())
    except ValueError as error:
        print("ValueError:", error)


def batch_variables(port, count, number):
    """Return what sbatch sets for a program that is started without srun."""
    return {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": "localhost",
        "SLURM_NTASKS": "4",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
    }


def with_address(port, count, number):
    """Return what srun tells each process, and the address to meet at."""
    address = {"JAX_COORDINATOR_ADDRESS": f"localhost:{port}"}
    return slurm_variables(port, count, number) | address


def by_hand_program():
    """Join the others by the launcher's variables; JAX detects nothing."""
    import os

    import jax

    if "OMPI_COMM_WORLD_RANK" in os.environ:
        count, number = "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"
        local = "OMPI_COMM_WORLD_LOCAL_RANK"
    else:
        count, number, local = "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"
    jax.distributed.initialize(
        os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ[count]),
        process_id=int(os.environ[number]),
        local_device_ids=int(os.environ[local]),
        cluster_detection_method="deactivate",
    )
    print("number from", number)
    print("process", jax.process_index(), "of", jax.process_count())
    print(jax.device_count(), "devices in all")


def all_devices_program():
    """As slurm_program, for a process that is to use four GPUs."""
    import logging
    import sys

    import jax

    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    logging.getLogger("jax._src.distributed").setLevel(logging.INFO)
    jax.distributed.initialize(local_device_ids=[0, 1, 2, 3])
