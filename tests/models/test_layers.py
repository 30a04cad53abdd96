import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from snippets.models import layers, modules, steps

KEY = jax.random.key(0)
LOW = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def tensor(x, dtype="float32"):
    return torch.tensor(np.array(x, np.float32)).to(getattr(torch, dtype))


def compare(y, expected, limit=2e-6):
    expected = expected.detach().float() if isinstance(expected, torch.Tensor) else expected
    np.testing.assert_allclose(np.array(y, np.float32), expected, rtol=limit, atol=limit)


def pair_of_blocks(monkeypatch, width=32, heads=4, key_heads=2):
    monkeypatch.setitem(modules.LAYOUTS, torch.nn.RMSNorm, ("scale", (0,)))
    torch.manual_seed(0)
    theirs = layers.TorchLlamaBlock(width, heads, key_heads)
    with torch.no_grad():
        theirs.norm1.weight.uniform_(0.5, 2)
    params, stats = modules.from_torch(theirs)
    for name in "query", "key":
        layer = params["attention"][name]
        layer["kernel"] = layers.kernel_as_halves(layer["kernel"], width // heads)
    ours = layers.LlamaBlock(width, heads, key_heads, rngs=nnx.Rngs(0))
    return modules.into_nnx(ours, params, stats), theirs


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-2])
def test_rms_norm_is_that_of_pytorch(dtype, epsilon):
    x, scale = (jnp.asarray(a, dtype) for a in (normal(3, 5, 7) / 10, normal(7, seed=1)))
    expected = torch.nn.functional.rms_norm(tensor(x, dtype), (7,), tensor(scale, dtype), epsilon)
    y = layers.rms_norm({"scale": scale}, x, epsilon)
    assert y.dtype == dtype
    # One rounding, at the end: what is computed in bfloat16 is another number.
    compare(y, expected, 1e-6)


def test_rms_norm_of_large_numbers_does_not_overflow():
    y = layers.rms_norm({"scale": jnp.ones(4)}, jnp.full((1, 4), 6e4, jnp.float16))
    assert (y == 1).all() and y.dtype == jnp.float16


def test_rms_norm_of_integers_is_no_integer():
    y = layers.rms_norm({"scale": jnp.ones(3)}, jnp.arange(3))
    compare(y, torch.nn.functional.rms_norm(torch.arange(3.0), (3,), eps=1e-6))
    assert y.dtype == jnp.float32


def test_the_norm_trains_its_scale():
    apply, params, stats = steps.split_nnx(layers.RmsNorm(8))
    loss = steps.mean_squared(apply)
    _, grads = steps.gradient_of(loss)(params, stats, (normal(4, 8), 2 * normal(4, 8)))
    assert list(grads) == ["scale"] and grads["scale"][...].all() and not stats


def test_the_token_is_trained_and_the_mean_is_not():
    x = normal(2, 3, 8)
    ours = layers.ClassToken(jnp.linspace(0, 1, 8), rngs=nnx.Rngs(0))
    theirs = layers.TorchClassToken(torch.linspace(0, 1, 8))
    assert [name for name, _ in theirs.named_parameters()] == ["token"]
    ours.token[...] = modules.as_array(theirs.token)
    compare(ours(x), theirs(tensor(x)))
    _, params, stats = steps.split_nnx(ours)
    assert (list(params), list(stats)) == (["token"], ["mean"])


def test_each_token_is_drawn_from_a_key_of_its_own():
    rngs = nnx.Rngs(0)
    one, two = (layers.ClassToken(jnp.zeros(8), rngs=rngs) for _ in range(2))
    assert (one.token[...] != two.token[...]).all()


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("size", [2, 6, 16])
@pytest.mark.parametrize("start", [0, 1000])
def test_rotary_is_the_complex_one_in_the_other_order(dtype, size, start):
    x = jnp.asarray(normal(2, 5, 3, size), dtype)
    positions, base = np.arange(start, start + 5), 500_000.0
    expected = layers.torch_rotary(tensor(x, dtype), torch.tensor(positions), base)
    y = layers.rotary(layers.as_halves(x), positions, base)
    assert y.dtype == dtype
    limit = LOW[dtype] if dtype != "float32" else 1e-6 * (1 + start)
    compare(y, layers.as_halves(expected.float().numpy()), limit)


def test_the_two_orders_differ_beyond_one_pair():
    x, positions = normal(1, 3, 1, 4), jnp.arange(3)
    expected = layers.torch_rotary(tensor(x), torch.arange(3)).numpy()
    assert abs(layers.rotary(x, positions) - expected).max() > 0.1
    assert (layers.as_halves(jnp.arange(6)) == jnp.array([0, 2, 4, 1, 3, 5])).all()


@pytest.mark.parametrize("moved", [1, 100])
def test_scores_depend_on_the_distance(moved):
    queries, keys = normal(2, 1, 6, 2, 8)

    def scores(positions):
        pair = layers.rotary(queries, positions), layers.rotary(keys, positions)
        return jnp.einsum("rqhs,rkhs->rhqk", *pair)

    positions = jnp.arange(6)
    compare(scores(positions), scores(positions + moved), 1e-5)
    assert abs(scores(positions) - scores(2 * positions)).max() > 0.1


def test_rotary_keeps_position_zero_and_norms():
    x = normal(2, 4, 3, 8)
    y = layers.rotary(x, jnp.arange(4))
    compare(y[:, 0], x[:, 0])
    compare(jnp.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1))


def test_rows_may_have_positions_of_their_own():
    x, positions = normal(2, 4, 3, 8), jnp.array([[0, 1, 2, 3], [5, 6, 7, 8]])
    y = layers.rotary(x, positions)
    compare(y, jnp.stack([layers.rotary(x[i], positions[i]) for i in range(2)]))
    compare(jax.vmap(layers.rotary)(x, positions), y)
    compare(jax.jit(layers.rotary)(x, positions), y)


def test_rotary_of_integers_is_no_integer():
    y = layers.rotary(jnp.ones((1, 2, 1, 4), jnp.int32), jnp.arange(2))
    compare(y, layers.rotary(jnp.ones((1, 2, 1, 4)), jnp.arange(2)))


def test_an_odd_size_is_refused(raises_declared):
    raises_declared(layers.odd_size)


def test_positions_that_are_no_one_for_each_token_are_refused(raises_declared):
    raises_declared(layers.position_of_a_token)
    for positions in jnp.int32(0), jnp.arange(4), jnp.zeros((3, 1), int):
        with pytest.raises(ValueError, match="a position for each of 3 tokens"):
            layers.rotary(jnp.ones((1, 3, 2, 4)), positions)


def test_query_heads_are_a_multiple_of_key_heads(raises_declared):
    raises_declared(layers.heads_that_do_not_divide)


@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (4, 2), (4, 1), (3, 1)])
def test_the_block_is_that_of_pytorch(monkeypatch, heads, key_heads):
    ours, theirs = pair_of_blocks(monkeypatch, 8 * heads, heads, key_heads)
    x = normal(2, 7, 8 * heads)
    expected = theirs(tensor(x))
    compare(ours(x), expected, 5e-6)
    compare(nnx.jit(layers.LlamaBlock.__call__)(ours, x), expected, 5e-6)


def test_a_block_of_a_single_position(monkeypatch):
    ours, theirs = pair_of_blocks(monkeypatch)
    x = normal(1, 1, 32)
    compare(ours(x), theirs(tensor(x)), 5e-6)


def test_without_the_conversion_the_block_is_another(monkeypatch):
    ours, theirs = pair_of_blocks(monkeypatch)
    x = normal(2, 7, 32)
    kernel = modules.from_torch(theirs)[0]["attention"]["query"]["kernel"]
    ours.attention.query.kernel[...] = kernel
    assert abs(ours(x) - theirs(tensor(x)).detach().numpy()).max() > 1e-3


def test_a_bias_is_converted_as_the_columns_of_a_kernel():
    kernel = normal(3, 12)
    converted = layers.kernel_as_halves(kernel, 6)
    for row, expected in zip(kernel, converted, strict=True):
        compare(layers.kernel_as_halves(row, 6), expected, 0)
    assert (layers.kernel_as_halves(np.arange(8), 4) == [0, 2, 1, 3, 4, 6, 5, 7]).all()


def test_blocks_give_the_same_losses(monkeypatch):
    ours, theirs = pair_of_blocks(monkeypatch)
    batches = modules.sequences(steps=20)
    apply, params, stats = steps.split_nnx(ours)
    step = steps.make_step(steps.gradient_of(steps.mean_squared(apply)), modules.OPTIMIZER)
    state = params, stats, modules.OPTIMIZER.init(params)
    params, stats, _, losses = steps.train(step, *state, batches)
    expected = modules.train_torch(theirs, batches)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] < 0.9 * losses[0]
    # What was trained goes back into the module, whose own arrays are donated.
    nnx.update(ours, params, stats)
    compare(ours(batches[0][0]), theirs(tensor(batches[0][0])), 1e-4)


def test_no_position_sees_a_later_one(monkeypatch):
    ours, _ = pair_of_blocks(monkeypatch)
    x = jnp.array(normal(2, 6, 32))
    same = ours(x.at[:, 3].add(1)) == ours(x)
    assert same[:, :3].all() and not same[:, 3:].any(axis=-1).all()


def test_in_bfloat16_the_block_stays_there(monkeypatch):
    ours, theirs = pair_of_blocks(monkeypatch)
    apply, params, stats = steps.split_nnx(ours)
    x = normal(2, 7, 32)
    y, _ = jax.jit(apply)(*steps.to_bfloat16((params, stats, jnp.array(x))))
    assert y.dtype == jnp.bfloat16
    compare(y, theirs(tensor(x)), 5e-2)


def test_rows_are_mapped_alike(monkeypatch):
    ours, _ = pair_of_blocks(monkeypatch)
    x = normal(3, 2, 5, 32)
    apply, params, stats = steps.split_nnx(ours)
    y = jax.vmap(lambda x: apply(params, stats, x)[0])(x)
    compare(y, jnp.stack([ours(rows) for rows in x]), 5e-6)


def test_token_by_token_is_the_whole_sequence(monkeypatch):
    ours, theirs = pair_of_blocks(monkeypatch)
    x = normal(2, 9, 32)
    compare(nnx.jit(layers.token_by_token)(ours, x), theirs(tensor(x)), 5e-6)
    compare(layers.token_by_token(ours, x[:, :1]), ours(x[:, :1]), 5e-6)


def test_a_longer_cache_changes_nothing(monkeypatch):
    ours, _ = pair_of_blocks(monkeypatch)
    x = normal(2, 5, 32)
    cache, expected = layers.empty_cache(ours, x, 12), ours(x)
    for position in range(5):
        token = x[:, position : position + 1]
        y, cache = layers.next_token(ours, token, position, cache)
        compare(y[:, 0], expected[:, position], 5e-6)


def test_fewer_key_heads_make_a_smaller_cache():
    sizes = []
    for key_heads in 4, 2, 1:
        block = layers.LlamaBlock(key_heads=key_heads, rngs=nnx.Rngs(0))
        x = jnp.zeros((3, 2, 32))
        cache = layers.empty_cache(block, x, 10)
        assert all(y.shape == (3, 10, key_heads, 8) for y in cache)
        sizes.append(sum(y.nbytes for y in cache))
    assert sizes[0] == 2 * sizes[1] == 4 * sizes[2]


@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
def test_each_layer_takes_sharded_rows(kind, monkeypatch):
    ours, _ = pair_of_blocks(monkeypatch)
    x, heads = normal(8, 5, 32), normal(8, 5, 4, 8)
    token = layers.ClassToken(jnp.ones(32), rngs=nnx.Rngs(0))
    calls = {
        "norm": (lambda x: layers.RmsNorm(32)(x), x),
        "token": (lambda x: token(x), x),
        "rotary": (lambda x: layers.rotary(x, jnp.arange(5)), heads),
        "mlp": (lambda x: ours.mlp(x), x),
        "block": (lambda x: ours(x), x),
        "tokens": (functools.partial(layers.token_by_token, ours), x),
    }
    expected = {name: f(x) for name, (f, x) in calls.items()}
    types = (getattr(jax.sharding.AxisType, kind),)
    mesh = jax.make_mesh((8,), ("data",), axis_types=types)
    rows = jax.NamedSharding(mesh, jax.P("data"))
    with jax.set_mesh(mesh):
        for name, (f, x) in calls.items():
            y = jax.jit(f)(jax.device_put(x, rows))
            assert y.sharding.spec[0] == "data", name
            compare(y, expected[name], 5e-6)
