"""The small GPT: causal, the same as in PyTorch, and the same with a cache."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
import torch
from flax import nnx
from jax._src.core import ShardingTypeError

from snippets.models import checkpoints, modules, steps
from snippets.project import gpt
from snippets.training import data_parallel, sharded_parameters

DEVICES = jax.devices("cpu")
STEPS = 20
CONFIG = gpt.Config(length=16, width=32, heads=2, layers=2)


@functools.cache
def drawn():
    return jax.device_get(gpt.init_gpt(jax.random.key(0), CONFIG))


def params():
    # Kept as arrays, they would belong to the mesh of the test that asks first.
    return jax.tree.map(jnp.asarray, drawn())


@functools.cache
def text():
    return gpt.source()


def batch(rows=4, number=0):
    return gpt.batches(text(), CONFIG.length, rows)[number]


def test_the_text_is_python_and_all_of_it_are_tokens():
    assert len(text()) > 2_000_000 and text().max() < CONFIG.tokens
    assert b"\ndef " in text().tobytes()
    assert gpt.decode(gpt.encode("def f(x):")[0]) == "def f(x):"


def test_a_target_is_the_token_behind_and_epochs_have_their_order():
    tokens, targets = batch()
    assert tokens.dtype == np.int32 and (tokens[:, 1:] == targets[:, :-1]).all()
    data = gpt.batches(text()[:1000], CONFIG.length, 4)
    whole = len(gpt.Windows(text()[:1000], CONFIG.length)) // 4
    first, second = (np.stack([data[n + e * whole][0] for n in range(whole)]) for e in (0, 1))
    assert not (first == second).all()
    again = gpt.batches(text()[:1000], CONFIG.length, 4)
    assert (again[1][0] == data[1][0]).all()


def test_no_token_sees_those_behind_it():
    tokens, _ = batch()
    for position in (5, CONFIG.length - 1):
        changed = tokens.copy()
        changed[:, position] = (changed[:, position] + 1) % CONFIG.tokens
        one, other = (gpt.gpt(params(), x, CONFIG.heads) for x in (tokens, changed))
        np.testing.assert_array_equal(one[:, :position], other[:, :position])
        assert (one[:, position] != other[:, position]).any()


def test_the_module_of_pytorch_is_the_function():
    tokens, _ = batch()
    expected = gpt.TorchGpt(params(), CONFIG)(torch.tensor(tokens).long()).detach().numpy()
    np.testing.assert_allclose(gpt.gpt(params(), tokens, CONFIG.heads), expected, atol=1e-5)


def test_the_module_of_nnx_is_the_function_and_trains_alike():
    model = modules.into_nnx(gpt.NnxGpt(CONFIG, rngs=nnx.Rngs(1)), params(), {})
    data = [batch(number=number) for number in range(3)]
    np.testing.assert_allclose(
        model(data[0][0]), gpt.gpt(params(), data[0][0], CONFIG.heads), atol=1e-5
    )
    apply, *rest = steps.split_nnx(model)
    optimizer = gpt.make_optimizer(10)
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), optimizer)
    *_, losses_nnx = steps.train(step, *rest, optimizer.init(rest[0]), data)
    start = jax.tree.map(jnp.copy, params())
    plain = gpt.make_gpt_step(CONFIG, 10)
    *_, losses = steps.train(plain, start, {}, optimizer.init(start), data)
    np.testing.assert_allclose(losses, losses_nnx, rtol=1e-5)


def test_a_new_module_of_nnx_has_the_variance_of_a_new_tree():
    new = nnx.to_pure_dict(nnx.state(gpt.NnxGpt(CONFIG, rngs=nnx.Rngs(1)), nnx.Param))
    modules.require_same_shapes(new, params())
    np.testing.assert_allclose(new["embedding"].std(), params()["embedding"].std(), rtol=0.1)
    up = new["layers"]["up"]["kernel"]
    assert (up[0] != up[1]).any()


def test_both_train_alike():
    data = [batch(number=number) for number in range(5)]
    losses_torch = gpt.train_torch(gpt.TorchGpt(params(), CONFIG), data, steps=10)
    loss = steps.cross_entropy(steps.stateless(lambda p, x: gpt.gpt(p, x, CONFIG.heads)))
    optimizer = gpt.make_optimizer(10)
    step = steps.make_step(steps.gradient_of(loss), optimizer)
    start = jax.tree.map(jnp.copy, params())
    *_, losses = steps.train(step, start, {}, optimizer.init(start), data)
    assert losses[-1] < losses[0] - 0.1
    np.testing.assert_allclose(losses, losses_torch, rtol=1e-3)


def test_kernels_alone_are_decayed():
    optimizer = gpt.make_optimizer(10)
    zeros = jax.tree.map(jnp.zeros_like, params())
    state = optimizer.init(params())
    for _ in range(2):
        updates, state = optimizer.update(zeros, state, params())
    moved = {path[-1].key for path, x in jax.tree.leaves_with_path(updates) if np.abs(x).max() > 0}
    assert moved == {"kernel"}


def test_a_run_returns_a_curve_that_falls():
    data = gpt.batches(text(), CONFIG.length, 8)
    found, curve = gpt.train_gpt(params(), data, text()[-40_000:], CONFIG, steps=20)
    assert [number for number, _, _ in curve][:2] == [0, 2] and curve[-1][0] == 19
    assert curve[-1][1] < curve[0][1] and curve[-1][2] < curve[0][2]
    assert not params()["embedding"].is_deleted()
    assert jax.tree.structure(found) == jax.tree.structure(params())


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return the folder of a run on eight devices that was killed in its save of step 20."""
    folder = tmp_path_factory.mktemp("run")
    arguments = str(folder / "run"), CONFIG, STEPS, 20
    with pytest.MonkeyPatch.context() as patch:
        # The losses are compared with those of this process.
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        patch.delenv("XLA_FLAGS", raising=False)
        ((status, text),) = checkpoints.run_programs(
            folder, [(8, gpt.train_until_killed, arguments)]
        )
    assert status == -9, text
    return folder / "run"


@functools.cache
def run_alone():
    """Return the losses of a run on one device."""
    state = jax.device_get(gpt.first_state(jax.random.key(0), CONFIG, STEPS))
    data = gpt.batches(text(), CONFIG.length, 16)
    with jax.set_mesh(data_parallel.axis_of_devices(DEVICES[:1])):
        return gpt.continue_run(gpt.make_gpt_step(CONFIG, STEPS), state, data, until=STEPS)[1]


@pytest.mark.parametrize("sharded", [False, True])
def test_eight_devices_have_the_losses_of_one_and_share_the_work(sharded):
    mesh = data_parallel.axis_of_devices(DEVICES)
    data = gpt.batches(text(), CONFIG.length, 16)
    with jax.set_mesh(mesh):
        state = gpt.start_on(mesh, jax.random.key(0), CONFIG, STEPS)
        change = sharded_parameters.gathered
        if not sharded:
            state, change = jax.device_put(jax.device_get(state), jax.P()), lambda loss: loss
        step = gpt.make_gpt_step(CONFIG, STEPS, change)
        rows = jax.device_put(data[0], jax.P("data"))
        found = data_parallel.collectives(step, state["params"], {}, state["opt_state"], rows)
        assert "all-reduce" in found and ("all-gather" in found) == sharded
        held = sharded_parameters.bytes_on_each_device(state)
        whole = sum(x.nbytes for x in jax.tree.leaves(state))
        assert len(set(held.values())) == 1 and (
            held[0] < whole / 7 if sharded else held[0] == whole
        )
        state, losses = gpt.continue_run(step, state, data, until=STEPS)
    assert int(state["step"]) == STEPS
    assert "data" in str(jax.typeof(state["params"]["layers"]["up"]["kernel"])) or not sharded
    np.testing.assert_allclose(losses, run_alone(), rtol=1e-4)


@pytest.mark.parametrize("count", [8, 4, 1])
def test_a_killed_run_goes_on_with_the_same_losses(killed, count):
    mesh = data_parallel.axis_of_devices(DEVICES[:count])
    data = gpt.batches(text(), CONFIG.length, 16)
    with ocp.CheckpointManager(killed) as manager, jax.set_mesh(mesh):
        assert manager.latest_step() == 10
        like = gpt.state_on(mesh, CONFIG, STEPS)
        state = manager.restore(10, args=ocp.args.StandardRestore(like))
        step = gpt.make_gpt_step(CONFIG, STEPS, sharded_parameters.gathered)
        _, losses = gpt.continue_run(step, state, data, until=STEPS)
    np.testing.assert_allclose(losses, run_alone()[10:], rtol=1e-4)


def test_an_index_that_says_nothing_of_its_result_is_refused():
    mesh = data_parallel.axis_of_devices(DEVICES)
    with jax.set_mesh(mesh):
        tokens = jax.device_put(batch(rows=8)[0], jax.P("data"))
        table = jax.device_put(params()["embedding"], jax.P())
        with pytest.raises(ShardingTypeError, match="out_sharding"):
            table[tokens]
        assert jax.typeof(gpt.look_up(table, tokens)).sharding.spec == jax.P("data", None, None)


def test_a_cache_changes_no_logit():
    tokens, _ = batch()
    at_once = gpt.gpt(params(), tokens, CONFIG.heads)
    cache = gpt.empty_cache(params(), CONFIG, len(tokens))
    for position in range(CONFIG.length):
        logits, cache = gpt.next_logits(
            params(), cache, tokens[:, position], position, CONFIG.heads
        )
        np.testing.assert_allclose(logits, at_once[:, position], atol=1e-4)


def test_greedy_is_what_pytorch_writes():
    prompt = gpt.encode("def f")
    found = gpt.generate(params(), prompt, jax.random.key(0), 0.0, CONFIG, CONFIG.length)
    expected = gpt.greedy_torch(gpt.TorchGpt(params(), CONFIG), prompt, CONFIG.length)
    np.testing.assert_array_equal(found, expected)
    assert gpt.decode(found[0]).startswith("def f")


PROMPTS = "d", "def ", "def f(x):"


def padded(written):
    rows = np.zeros((len(written), 12), np.int32)
    for row, one in zip(rows, written, strict=True):
        row[: len(one)] = gpt.encode(one)
    return rows, np.array([len(one) for one in written], np.int32)


def test_rows_of_different_lengths_are_written_as_each_by_itself():
    key = jax.random.key(0)
    prompts, lengths = padded(PROMPTS)
    found = gpt.generate(params(), prompts, key, 0.0, CONFIG, 12, lengths)
    for row, written in zip(found, PROMPTS, strict=True):
        alone = gpt.generate(params(), gpt.encode(written), key, 0.0, CONFIG, 12)
        np.testing.assert_array_equal(row, alone[0])


def test_one_exported_program_takes_prompts_of_all_lengths_and_is_served(tmp_path):
    exported = gpt.export_writer(params(), CONFIG, 12)
    for written in PROMPTS:
        found = exported.call(modules.dotted(params()), *padded([written]))
        prompt = gpt.encode(written)
        greedy = gpt.generate(params(), prompt, jax.random.key(0), 0.0, CONFIG, 12)
        np.testing.assert_array_equal(found, greedy)
    _, client = gpt.serve(tmp_path, params(), exported)
    prompt = gpt.encode("def ")
    greedy = gpt.generate(params(), prompt, jax.random.key(0), 0.0, CONFIG, 12)
    assert client.text.strip() == repr(gpt.decode(greedy[0]))


def test_a_token_is_multiplied_by_matrices_and_embedding_alone():
    width = CONFIG.width
    expected = CONFIG.tokens * width + CONFIG.layers * (3 + 1 + 4 + 4) * width**2
    assert gpt.matrix_elements(params()) == expected


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_a_key_draws_one_text_and_rows_differ(temperature):
    prompt = np.concatenate([gpt.encode("def ")] * 2)
    draw = functools.partial(gpt.generate, params(), prompt)
    one, again, other = (
        draw(jax.random.key(seed), temperature, CONFIG, CONFIG.length) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any() and (one[0] != one[1]).any()


@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
@pytest.mark.parametrize("shape", [(8,), (4,), (2, 4)])
@pytest.mark.parametrize("rows", ["replicated", "sharded"])
def test_generation_on_several_devices_is_that_of_one(kind, shape, rows):
    config = gpt.Config(length=16, width=32, layers=2)
    params = gpt.init_gpt(jax.random.key(0), config)
    prompt, key = np.repeat(gpt.encode("def f"), 8, axis=0), jax.random.key(1)
    expected = gpt.generate(params, prompt, key, 0.7, config, 16)
    names, types = ("data", "other")[: len(shape)], (jax.sharding.AxisType[kind],) * len(shape)
    devices = jax.devices("cpu")[: np.prod(shape)]
    mesh = jax.make_mesh(shape, names, types, devices=devices)
    with jax.set_mesh(mesh):
        held = jax.device_put(params, sharded_parameters.sharded_over(mesh, params))
        prompts = jax.device_put(prompt, jax.P("data") if rows == "sharded" else jax.P())
        found = gpt.generate_sharded(held, prompts, key, 0.7, config, 16)
    np.testing.assert_array_equal(found, expected)
    places = len({str(shard.index) for shard in found.addressable_shards})
    # On automatic axes the compiler chooses.
    assert places == shape[0] or kind == "Auto"


def test_more_tokens_than_positions_are_refused():
    config = gpt.Config(length=16, width=32, layers=2)
    params, key = gpt.init_gpt(jax.random.key(0), config), jax.random.key(1)
    for prompt, count in ((gpt.encode("def f"), 17), (gpt.encode("d" * 17), 16)):
        with pytest.raises(ValueError, match="17 tokens do not fit into a model of 16 positions"):
            gpt.generate(params, prompt, key, 0.7, config, count)
