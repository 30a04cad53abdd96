"""A training run in two processes: DDP, FSDP, and JAX with two layouts."""

import sys

import numpy as np

from snippets.programs.launcher import (
    clean_environment,
    guarded,
    require_statuses,
    reserved_port,
    run_together,
    scratch_folder,
    write_program,
)


def some_data():
    """Return rows (1024, 64), float32, and labels (1024,), int64.

    The label of a row says which of ten directions it follows most.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    rows, directions = rng.normal(size=(1024, 64)), rng.normal(size=(64, 10))
    return rows.astype(np.float32), (rows @ directions).argmax(axis=1)


def first_layers():
    """Return layers: dicts of float32 kernel (in, out) and bias (out,)."""
    import numpy as np

    rng = np.random.default_rng(1)
    layers = []
    for inputs, outputs in ((64, 256), (256, 10)):
        kernel = rng.normal(size=(inputs, outputs)) / inputs**0.5
        bias = np.zeros(outputs, np.float32)
        layers.append({"kernel": kernel.astype(np.float32), "bias": bias})
    return layers


def network():
    """Return the layers as a torch module, with tanh between them."""
    import torch

    modules = []
    for layer in first_layers():
        linear = torch.nn.Linear(*layer["kernel"].shape)
        weight, bias = map(torch.tensor, (layer["kernel"].T, layer["bias"]))
        linear.load_state_dict({"weight": weight, "bias": bias})
        modules += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*modules[:-1])


def train(model, loader):
    """Take a step for each batch; return the losses before them, (steps,)."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def ddp(model):
    """Return the model in a wrapper that averages gradients over processes."""
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model)


def fsdp(model):
    """Shard the parameters of each layer over the processes, in place."""
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        fully_shard(layer)
    return fully_shard(model)


def held(model):
    """Return the number of parameters that this process holds."""
    from torch.distributed.tensor import DTensor

    own = [
        p.to_local() if isinstance(p, DTensor) else p
        for p in model.parameters()
    ]
    return sum(p.numel() for p in own)


def torch_program():
    """Train with DDP, then with FSDP, each process on its share of rows."""
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    dist.init_process_group("gloo")
    data = TensorDataset(*map(torch.tensor, some_data()))
    sampler = DistributedSampler(data, shuffle=False)
    for wrap in (ddp, fsdp):
        model = wrap(network())
        losses = train(model, DataLoader(data, batch_size=64, sampler=sampler))
        dist.all_reduce(losses)
        if dist.get_rank() == 0:
            means = losses / dist.get_world_size()
            print(wrap.__name__, held(model), *means.tolist())
    dist.destroy_process_group()


def jax_step(optimizer):
    """Return a step, on explicit axes, that keeps the parameters' layout."""
    import jax
    import jax.numpy as jnp
    import optax

    def loss(params, batch):
        x, labels = batch
        for number, layer in enumerate(params):
            layer = jax.reshard(layer, jax.P())
            x = jnp.tanh(x) if number else x
            x = x @ layer["kernel"] + layer["bias"]
        return optax.softmax_cross_entropy_with_integer_labels(
            x, labels
        ).mean()

    @jax.jit(donate_argnames=("params", "opt_state"))
    def train_step(params, opt_state, batch):
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return train_step


def join():
    """Join the processes that torchrun has started."""
    import os

    import jax

    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["WORLD_SIZE"]),
        process_id=int(os.environ["RANK"]),
    )


def own_batches(number, count):
    """Yield this process's rows and labels of each batch of 128."""
    rows, labels = some_data()
    for start in range(0, len(rows), 128):
        own = slice(start + number, start + 128, count)
        yield rows[own], labels[own].astype("int32")


def jax_program():
    """Train with replicated parameters, then with sharded ones."""
    import jax
    import optax

    join()
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
    jax.set_mesh(mesh)
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    optimizer = optax.adam(1e-3)
    train_step = jax_step(optimizer)
    specs = {"replicated": jax.P(), "sharded": jax.P("data")}
    for name, spec in specs.items():
        params = jax.device_put(first_layers(), spec)
        opt_state = jax.jit(optimizer.init)(params)
        losses = []
        for own in own_batches(jax.process_index(), jax.process_count()):
            batch = jax.make_array_from_process_local_data(by_rows, own)
            params, opt_state, loss = train_step(params, opt_state, batch)
            losses.append(loss)
        if jax.process_index() == 0:
            print(name, held_by_jax(params), *map(float, losses))


def held_by_jax(params):
    """Return the number of parameters that this process holds."""
    import jax

    shards = [x.addressable_shards for x in jax.tree.leaves(params)]
    return sum(shard.data.size for own in shards for shard in own)


def torchrun(program, uses, count=2, limit=600):
    """Run `program()`, and what it `uses`, in `count` processes of torchrun.

    Returns {name: (parameters held, losses (steps,))} from the lines that the
    processes print. Raises RuntimeError, with all outputs, if one fails.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", count, "--no-python"]
    with reserved_port() as port, scratch_folder() as folder:
        path = write_program(
            folder / "process_torchrun.py", program, uses=uses
        )
        environment = clean_environment(folder, devices=1) | {
            "JAX_COORDINATOR_ADDRESS": f"localhost:{port}",
            "OMP_NUM_THREADS": "1",
        }
        command += guarded([sys.executable, path])
        finished = run_together([command], [environment], folder, limit, 0)
    require_statuses(finished)
    lines = [line.split() for line in finished[0].text.splitlines()]
    return {
        name: (int(own), np.array(losses, np.float32))
        for name, own, *losses in lines
    }


def show(runs, alone):
    """Print the losses of one process, and those of {name: (held, losses)}."""
    print(f"{'alone':11}{'':6}", *(f"{loss:.4f}" for loss in alone))
    for name, (own, losses) in runs.items():
        print(f"{name:11}{own:6}", *(f"{loss:.4f}" for loss in losses))
