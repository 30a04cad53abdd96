"""One training program for a laptop, Open MPI, Slurm and Kubernetes."""

import dataclasses

import jax
import numpy as np

from snippets.processes.distributed import train_step

EXPECTED_ERRORS = {
    "make_mesh_of_machines": (
        ValueError,
        "does not support multi-slice topologies",
    ),
}


def join_by_launcher():
    """Join the other processes if a launcher started this one."""
    import os

    import jax

    if "JOB_COMPLETION_INDEX" in os.environ:
        jax.distributed.initialize(
            os.environ["COORDINATOR"],
            num_processes=int(os.environ["PROCESSES"]),
            process_id=int(os.environ["JOB_COMPLETION_INDEX"]),
            cluster_detection_method="deactivate",
        )
    elif "OMPI_COMM_WORLD_RANK" in os.environ:
        jax.distributed.initialize(cluster_detection_method="mpi4py")
    elif "SLURM_STEP_NODELIST" in os.environ:
        jax.distributed.initialize()


def own_rows(by_rows):
    """Return x (64, 2) and 3 x0 - x1 (64,); each process makes its rows."""
    import jax
    import numpy as np

    count, number = jax.process_count(), jax.process_index()
    own = slice(number * 64 // count, (number + 1) * 64 // count)
    x = np.random.default_rng(0).normal(size=(64, 2))[own]
    print("rows", len(x), "of", 64)
    return [
        jax.make_array_from_process_local_data(by_rows, np.float32(rows))
        for rows in (x, 3 * x[:, 0] - x[:, 1])
    ]


def everywhere_program():
    """Fit a line by gradient descent, alone or under a launcher."""
    import jax
    import numpy as np

    join_by_launcher()
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
    batch = own_rows(jax.NamedSharding(mesh, jax.P("data")))
    replicated = jax.NamedSharding(mesh, jax.P())
    params = jax.device_put(np.zeros(2, np.float32), replicated)
    step = jax.jit(train_step)
    for _ in range(5):
        params, loss = step(params, batch)
        if jax.process_index() == 0:
            print(f"loss {loss:.4f}")


def by_machine(devices):
    """Return devices as an array (machines, devices of each).

    A machine is a *slice*, whose devices have fast links: the GPUs of a node,
    or TPUs that were rented together. Where devices do not say, as on a CPU,
    it is a process. ValueError where machines have different numbers.
    """
    own = {}
    for device in devices:
        number = getattr(device, "slice_index", device.process_index)
        own.setdefault(number, []).append(device)
    sizes = {number: len(some) for number, some in own.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"the machines have different numbers of devices, {sizes}: take "
            "as many of each"
        )
    return np.array(list(own.values()))


def mesh_of_machines(devices):
    """Return a mesh: an axis for machines, and "data" within each."""
    explicit = (jax.sharding.AxisType.Explicit,) * 2
    axes = ("machines", "data")
    return jax.sharding.Mesh(by_machine(devices), axes, explicit)


@dataclasses.dataclass(frozen=True)
class StandIn:
    """What a mesh asks of a device."""

    id: int
    process_index: int
    slice_index: int
    platform: str = "gpu"
    device_kind: str = "NVIDIA H100"


def two_machines(devices):
    """Return stand-ins for two machines that have some devices each."""
    of_both = range(2 * devices)
    return [StandIn(n, n // devices, n // devices) for n in of_both]


def make_mesh_of_machines():
    """Ask `jax.make_mesh` for two machines; raises ValueError."""
    return jax.make_mesh((8,), ("data",), devices=two_machines(4))


def alone(port, count, number):
    """Return no variables: no launcher, one process."""
    return {}
