"""One training program for a laptop, Open MPI, Slurm and Kubernetes."""

from snippets.processes.distributed import train_step


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
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    batch = own_rows(jax.NamedSharding(mesh, jax.P("data")))
    replicated = jax.NamedSharding(mesh, jax.P())
    params = jax.device_put(np.zeros(2, np.float32), replicated)
    step = jax.jit(train_step)
    for _ in range(5):
        params, loss = step(params, batch)
        if jax.process_index() == 0:
            print(f"loss {loss:.4f}")


def alone(port, count, number):
    """Return no variables: no launcher, one process."""
    return {}
