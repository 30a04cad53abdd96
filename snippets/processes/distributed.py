"""Several processes that compute together."""


def hello_program(address, count, number):
    """Join the other processes and say who is there."""
    import jax

    jax.distributed.initialize(address, num_processes=count, process_id=number)
    print("process", jax.process_index(), "of", jax.process_count())
    print(jax.local_device_count(), "own devices")
    print(jax.device_count(), "devices in all")


def shared_array(address, count, number):
    """Join; return 4 * count float32 values, four of them made here."""
    import jax
    import numpy as np

    jax.distributed.initialize(address, count, number)
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
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


def train_step(params, batch):
    """Return params (2,) after a step of gradient descent, and their loss.

    A batch is x (rows, 2) and y (rows,); the loss is the mean squared error.
    """
    import jax
    import jax.numpy as jnp

    def mean_squared_error(params):
        x, y = batch
        return jnp.mean((x @ params - y) ** 2)

    loss, gradient = jax.value_and_grad(mean_squared_error)(params)
    return params - 0.2 * gradient, loss


def train_program(address, count, number):
    """Fit y = 3 x0 - x1 by gradient descent; each process has own rows."""
    import jax
    import numpy as np

    jax.distributed.initialize(address, count, number)
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    replicated = jax.NamedSharding(mesh, jax.P())
    own = np.random.default_rng(number).normal(size=(64 // count, 2))
    batch = [
        jax.make_array_from_process_local_data(by_rows, np.float32(rows))
        for rows in (own, 3 * own[:, 0] - own[:, 1])
    ]
    params = jax.device_put(np.zeros(2, np.float32), replicated)
    step = jax.jit(train_step)
    print("rows", len(own), "of", len(batch[0]))
    for _ in range(5):
        params, loss = step(params, batch)
        print(f"loss {loss:.4f}")
    print("weights", *(f"{weight:.3f}" for weight in np.asarray(params)))


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
        loss = torch.mean((model(x) - y) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    print("weights", *(f"{weight:.3f}" for weight in line.weight[0].tolist()))
    torch.distributed.destroy_process_group()


def losses(finished):
    """Return a list of the losses that each process printed."""
    lines = [each.text.splitlines() for each in finished]
    return [
        [float(line.split()[1]) for line in own if line.startswith("loss")]
        for own in lines
    ]


def train_numpy(count):
    """Return the five losses of `train_program`, computed with NumPy."""
    import numpy as np

    sources = [np.random.default_rng(number) for number in range(count)]
    x = np.concatenate([s.normal(size=(64 // count, 2)) for s in sources])
    y = 3 * x[:, 0] - x[:, 1]
    params, found = np.zeros(2), []
    for _ in range(5):
        difference = x @ params - y
        found.append(np.mean(difference**2))
        params -= 0.2 * 2 * x.T @ difference / len(x)
    return np.array(found)
