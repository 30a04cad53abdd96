"""Several processes that compute together."""


def hello_program(address, count, number):
    """Join the other processes and say who is there."""
    import jax

    jax.distributed.initialize(address, num_processes=count, process_id=number)
    print("process", jax.process_index(), "of", jax.process_count())
    print(jax.local_device_count(), "own devices")
    print(jax.device_count(), "devices in all")


def shared_array(address, count, number):
    """Join; return 4 * count float32 values, four of which this process made."""
    import jax
    import numpy as np

    jax.distributed.initialize(address, count, number)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    own = np.arange(4, dtype=np.float32) + 4 * number
    print("own", own)
    return jax.make_array_from_process_local_data(by_rows, own)


def array_program(address, count, number):
    """Show what this process holds of an array of all processes."""
    import numpy as np

    x = shared_array(address, count, number)
    print("whole", x.shape)
    for shard in x.addressable_shards:
        print("shard", shard.index[0].start, shard.data)
    try:
        np.asarray(x)
    except RuntimeError as error:
        print("RuntimeError:", str(error).partition(". ")[0])


def sums_program(address, count, number):
    """Add up an array of all processes in two ways, and gather it."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import multihost_utils

    x = shared_array(address, count, number)

    @jax.shard_map(
        mesh=x.sharding.mesh, in_specs=jax.P("data"), out_specs=jax.P()
    )
    def add_shards(shard):
        return jax.lax.psum(shard, "data")

    print("sum", jnp.sum(x))
    print("psum", add_shards(x))
    print("gathered", multihost_utils.process_allgather(x, tiled=True))


def gradient_step(weights, x, y):
    """Return the weights (2,) a step nearer to y = x @ weights, and the error before.

    x is (rows, 2) and y (rows,); the error is the mean of the squares.
    """
    import jax
    import jax.numpy as jnp

    def squared_error(weights):
        return jnp.mean((x @ weights - y) ** 2)

    error, slope = jax.value_and_grad(squared_error)(weights)
    return weights - 0.2 * slope, error


def train_program(address, count, number):
    """Fit y = 3 x0 - x1 by gradient descent; each process has own rows."""
    import jax
    import numpy as np

    jax.distributed.initialize(address, count, number)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    whole = jax.NamedSharding(mesh, jax.P())
    own = np.random.default_rng(number).normal(size=(64 // count, 2))
    x, y = (
        jax.make_array_from_process_local_data(by_rows, np.float32(part))
        for part in (own, 3 * own[:, 0] - own[:, 1])
    )
    weights = jax.device_put(np.zeros(2, np.float32), whole)
    step = jax.jit(gradient_step)
    print("rows", len(own), "of", len(x))
    for _ in range(5):
        weights, error = step(weights, x, y)
        print(f"error {error:.4f}")
    print("weights", *(f"{weight:.3f}" for weight in np.asarray(weights)))


def torch_program(address, count, number):
    """Fit the line of `train_program` with torch.distributed."""
    import numpy as np
    import torch

    meeting = torch.distributed.FileStore("meeting", count)
    torch.distributed.init_process_group(
        "gloo", store=meeting, world_size=count, rank=number
    )
    own = np.random.default_rng(number).normal(size=(64 // count, 2))
    x = torch.tensor(own, dtype=torch.float32)
    y = 3 * x[:, :1] - x[:, 1:]
    line = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(line.weight)
    model = torch.nn.parallel.DistributedDataParallel(line)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(5):
        error = torch.mean((model(x) - y) ** 2)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        print(f"error {error.item():.4f}")
    print("weights", *(f"{weight:.3f}" for weight in line.weight[0].tolist()))
    torch.distributed.destroy_process_group()


def errors(finished):
    """Return a list of the errors that each process printed."""
    lines = [each.text.splitlines() for each in finished]
    return [
        [float(line.split()[1]) for line in own if line.startswith("error")]
        for own in lines
    ]


def train_numpy(count):
    """Return the five errors of `train_program`, computed with NumPy."""
    import numpy as np

    sources = [np.random.default_rng(number) for number in range(count)]
    x = np.concatenate([s.normal(size=(64 // count, 2)) for s in sources])
    y = 3 * x[:, 0] - x[:, 1]
    weights, found = np.zeros(2), []
    for _ in range(5):
        difference = x @ weights - y
        found.append(np.mean(difference**2))
        weights -= 0.2 * 2 * x.T @ difference / len(x)
    return np.array(found)
