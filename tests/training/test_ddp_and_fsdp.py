import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from snippets.training import ddp_and_fsdp as page

MESH = jax.make_mesh((8,), ("data",), devices=jax.devices("cpu"))
TABLE = pathlib.Path(__file__).parents[2] / "docs" / "training" / "ddp_and_fsdp.md"
NEEDED = [page.some_data, page.first_layers]


@pytest.fixture(scope="module")
def data():
    return TensorDataset(*map(torch.tensor, page.some_data()))


@pytest.fixture(scope="module")
def alone(data):
    return page.train(page.network(), DataLoader(data, batch_size=128)).numpy()


@pytest.fixture(scope="module")
def in_torch():
    helpers = [page.network, page.train, page.ddp, page.fsdp, page.held]
    return page.torchrun(page.torch_program, uses=NEEDED + helpers)


@pytest.fixture(scope="module")
def in_jax():
    helpers = [page.own_batches, page.join, page.jax_step, page.held_by_jax]
    return page.torchrun(page.jax_program, uses=NEEDED + helpers)


def test_labels_are_the_directions_that_rows_follow_most():
    rows, labels = page.some_data()
    assert rows.dtype == np.float32 and rows.shape == (1024, 64)
    assert set(labels) == set(range(10))
    again, _ = page.some_data()
    np.testing.assert_array_equal(rows, again)


def test_the_torch_network_has_the_first_layers():
    rows, _ = page.some_data()
    x = rows
    for number, layer in enumerate(page.first_layers()):
        x = np.tanh(x) if number else x
        x = x @ layer["kernel"] + layer["bias"]
    found = page.network()(torch.tensor(rows)).detach()
    np.testing.assert_allclose(found, x, rtol=1e-3, atol=1e-5)


def test_the_loss_falls(alone):
    assert alone.shape == (8,)
    assert alone[-1] < 0.9 * alone[0]


def test_ddp_and_fsdp_have_the_losses_of_one_process(in_torch, alone):
    assert list(in_torch) == ["ddp", "fsdp"]
    for _, losses in in_torch.values():
        np.testing.assert_allclose(losses, alone, rtol=1e-5)


def test_jax_has_the_losses_of_one_process_replicated_and_sharded(in_jax, alone):
    assert list(in_jax) == ["replicated", "sharded"]
    for _, losses in in_jax.values():
        np.testing.assert_allclose(losses, alone, rtol=1e-5)


def test_a_process_holds_all_parameters_or_half_of_them(in_torch, in_jax):
    whole = sum(x.size for x in jax.tree.leaves(page.first_layers()))
    held = {name: own for name, (own, _) in (in_torch | in_jax).items()}
    assert held == {"ddp": whole, "fsdp": whole // 2, "replicated": whole, "sharded": whole // 2}


def test_the_shares_of_two_processes_are_those_of_the_sampler(data):
    for number in range(2):
        sampler = DistributedSampler(data, num_replicas=2, rank=number, shuffle=False)
        loader = DataLoader(data, batch_size=64, sampler=sampler)
        for batch, own in zip(loader, page.own_batches(number, 2), strict=True):
            for expected, found in zip(batch, own, strict=True):
                np.testing.assert_array_equal(expected, found)


def test_the_sampler_repeats_rows_that_are_missing():
    seen = [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    assert seen == [[0, 2, 4], [1, 3, 0]]
    seen = [DistributedSampler(range(5), 2, rank, shuffle=False, drop_last=True) for rank in (0, 1)]
    assert [list(each) for each in seen] == [[0, 2], [1, 3]]


def test_the_sampler_has_the_same_order_until_it_is_told_the_epoch():
    sampler = DistributedSampler(range(100), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first


@pytest.mark.parametrize("spec", [jax.P(), jax.P(None, "data"), jax.P("data")], ids=str)
def test_the_step_takes_any_layout_and_keeps_it(spec):
    optimizer = optax.adam(1e-3)
    layers = [{"kernel": np.ones((16, 16), np.float32)}]
    layers[0]["bias"] = np.zeros(16, np.float32)
    bias = spec if spec == jax.P("data") else jax.P()
    rows = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    with jax.set_mesh(MESH):
        params = jax.device_put(layers, [{"kernel": spec, "bias": bias}])
        batch = jax.device_put((rows, np.arange(8)), jax.P("data"))
        before = jax.tree.map(jax.typeof, params)
        old = params
        opt_state = jax.jit(optimizer.init)(params)
        params, opt_state, loss = page.jax_step(optimizer)(params, opt_state, batch)
    assert jax.tree.map(jax.typeof, params) == before
    assert jax.tree.map(jax.typeof, opt_state[0].mu) == before
    assert all(x.is_deleted() for x in jax.tree.leaves(old))
    np.testing.assert_allclose(loss, np.log(16), rtol=1e-5)


def test_gathering_in_bfloat16_as_the_table_says():
    (row,) = re.findall(r"^\| compute in bfloat16 .*$", TABLE.read_text("utf8"), re.MULTILINE)
    to_bfloat16, of_x = re.findall(r"`([^`]*bfloat16[^`]*)`", row.rpartition(" | ")[2])
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(1.0))

    def loss(layer, x):
        layer = eval(to_bfloat16, {"jax": jax, "jnp": jnp, "layer": layer})
        layer = jax.reshard(layer, jax.P())
        y = eval(of_x, {"jnp": jnp, "x": x}) @ layer["kernel"] + layer["bias"]
        assert y.dtype == jnp.bfloat16
        return y.astype(jnp.float32).sum()

    with jax.set_mesh(MESH):
        layer = {"kernel": jnp.ones((16, 8)), "bias": jnp.zeros(8)}
        layer = jax.device_put(layer, jax.P("data"))
        x = jax.device_put(jnp.ones((8, 16)), jax.P("data"))
        grads = jax.jit(jax.grad(loss))(layer, x)
        updates, _ = jax.jit(optimizer.update)(grads, optimizer.init(layer), layer)
    for name, grad in grads.items():
        assert grad.dtype == jnp.float32
        assert grad.sharding.is_equivalent_to(layer[name].sharding, grad.ndim)
    norm = np.sqrt(sum(np.sum(np.square(update)) for update in updates.values()))
    np.testing.assert_allclose(norm, 1, rtol=1e-5)


def at_the_port_of_torchrun():
    """Let JAX use the port at which torchrun listens."""
    import os

    import jax

    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))


def test_jax_cannot_use_the_port_of_torchrun():
    with pytest.raises(RuntimeError, match="Failed to add port to server"):
        page.torchrun(at_the_port_of_torchrun, uses=[])


def test_what_a_process_prints_is_read(capsys):
    alone = np.array([2.0, 1.0])
    page.show({"ddp": (3, alone)}, alone)
    assert capsys.readouterr().out.splitlines() == [
        "alone             2.0000 1.0000",
        "ddp             3 2.0000 1.0000",
    ]
