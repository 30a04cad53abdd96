"""One training program for a laptop, for Open MPI, for Slurm and for Kubernetes."""


def everywhere_program():
    """Fit y = 3 x0 - x1 by gradient descent, alone or under a launcher."""
    import os

    import jax
    import jax.numpy as jnp
    import numpy as np

    if "JOB_COMPLETION_INDEX" in os.environ:
        jax.distributed.initialize(
            os.environ["COORDINATOR"],
            num_processes=int(os.environ["PROCESSES"]),
            process_id=int(os.environ["JOB_COMPLETION_INDEX"]),
        )
    elif "OMPI_COMM_WORLD_RANK" in os.environ:
        jax.distributed.initialize(cluster_detection_method="mpi4py")
    elif "SLURM_STEP_NODELIST" in os.environ:
        jax.distributed.initialize()

    count, number = jax.process_count(), jax.process_index()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    whole = jax.NamedSharding(mesh, jax.P())

    own = slice(number * 64 // count, (number + 1) * 64 // count)
    rows = np.random.default_rng(0).normal(size=(64, 2))[own]
    x, y = (
        jax.make_array_from_process_local_data(by_rows, np.float32(part))
        for part in (rows, 3 * rows[:, 0] - rows[:, 1])
    )
    weights = jax.device_put(np.zeros(2, np.float32), whole)

    def squared_error(weights, x, y):
        return jnp.mean((x @ weights - y) ** 2)

    @jax.jit
    def step(weights, x, y):
        error, slope = jax.value_and_grad(squared_error)(weights, x, y)
        return weights - 0.2 * slope, error

    for _ in range(5):
        weights, error = step(weights, x, y)
        if number == 0:
            print(f"error {error:.4f}")
    print("rows", len(rows), "of", y.size)


def alone(port, count, number):
    """Return no variables: no launcher, one process."""
    return {}
