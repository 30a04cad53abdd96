"""The small GPT: causal, the same as in PyTorch, and the same with a cache."""

import functools
import hashlib
import itertools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
import torch
from flax import nnx
from jax._src.core import ShardingTypeError

from snippets.models import checkpoints, modules, steps
from snippets.project import gpt
from snippets.training import data_parallel, sharded_parameters

PLAYS = pathlib.Path(__file__).parents[2] / "docs" / "project" / "tiny_shakespeare.txt"
DEVICES = jax.devices("cpu")
STEPS = 20
# Types of the axes of a mesh.
KINDS = "Explicit", "Auto"
CONFIG = gpt.Config(length=16, width=32, heads=2, layers=2)


@functools.cache
def drawn():
    return jax.device_get(gpt.init_gpt(jax.random.key(0), CONFIG))


def params():
    # Kept as arrays, they would belong to the mesh of the test that asks first.
    return jax.tree.map(jnp.asarray, drawn())


@functools.cache
def text():
    return gpt.source(PLAYS)


def batch(rows=4, number=0):
    return gpt.batches(text(), CONFIG.length, rows)[number]


def test_the_text_is_that_of_others_and_all_of_it_are_tokens():
    digest = hashlib.sha256(PLAYS.read_bytes()).hexdigest()
    assert digest == "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
    assert len(text()) == 1_115_394 and text().max() < CONFIG.tokens
    assert gpt.decode(gpt.encode("ROMEO:")[0]) == "ROMEO:"


def test_a_text_that_is_not_there_is_fetched_once(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").write_text("so déar", "utf8")
    monkeypatch.setattr(gpt, "ADDRESS", (tmp_path / "elsewhere").as_uri())
    for _ in range(2):
        assert gpt.source(tmp_path / "plays").tobytes() == b"so d?ar"
        (tmp_path / "elsewhere").unlink(missing_ok=True)


def test_a_text_without_a_window_is_refused():
    assert len(gpt.Windows(text()[:17], 16)) == 1
    with pytest.raises(ValueError, match="16 characters has no window of 16"):
        gpt.Windows(text()[:16], 16)


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


def made(*, clip=1.0, rate=3e-3, constant=False, everywhere=False, kind=optax.adamw, **options):
    """Return the optimizer of the page, or one that somebody has got wrong."""

    def decayed(params):
        return jax.tree.map_with_path(
            lambda path, _: everywhere or "'kernel'" in jax.tree_util.keystr(path), params
        )

    schedule = gpt.make_schedule(STEPS, rate)
    if constant:
        schedule = optax.warmup_constant_schedule(0.0, rate, STEPS // 10)
    options = {"b2": 0.95, "weight_decay": 0.1, "mask": decayed} | options
    return optax.chain(optax.clip_by_global_norm(clip), kind(schedule, **options))


WRONG_OPTIMIZERS = {
    "no clipping": {"clip": 1e9},
    "clipped further": {"clip": 0.01},
    "no decay": {"weight_decay": 0.0},
    "a hundredfold decay": {"weight_decay": 10.0},
    "decays all": {"everywhere": True},
    "PyTorch's b2": {"b2": 0.999},
    "another b1": {"b1": 0.5},
    "another epsilon": {"eps": 1e-6},
    "a rate a hundredth higher": {"rate": 3.03e-3},
    "no cosine": {"constant": True},
    "Nesterov": {"nesterov": True},
    "Lion": {"kind": optax.lion},
}


@functools.cache
def losses_in_float64(optimizer, remat=False):
    """Return the losses of a run in float64, as the page takes it; None is PyTorch."""
    data = [batch(number=number) for number in range(STEPS)]
    with jax.enable_x64(True):
        start = jax.tree.map(lambda x: jnp.array(x, "float64"), drawn())
        if optimizer is None:
            return gpt.train_torch(gpt.TorchGpt(start, CONFIG), data, STEPS)
        step = steps.make_step(steps.gradient_of(gpt.gpt_loss(CONFIG, remat)), optimizer)
        return steps.train(step, start, {}, optimizer.init(start), data)[-1]


@pytest.mark.parametrize("remat", [False, True])
def test_a_whole_run_has_the_losses_of_pytorch(remat):
    losses = losses_in_float64(gpt.make_optimizer(STEPS), remat)
    np.testing.assert_allclose(losses, losses_in_float64(None), rtol=1e-6)
    np.testing.assert_allclose(losses, losses_in_float64(made()), rtol=1e-7)


@pytest.mark.parametrize("wrong", WRONG_OPTIMIZERS)
def test_the_losses_tell_a_wrong_optimizer(wrong):
    losses = losses_in_float64(made(**WRONG_OPTIMIZERS[wrong]))
    assert np.abs(losses / losses_in_float64(None) - 1).max() > 2e-6


def unmasked(
    *qkv, is_causal=False, key_value_seq_lengths=None, attend=jax.nn.dot_product_attention
):
    return attend(*qkv)


WRONG_MODELS = {
    "no mask": lambda patch: patch.setattr(jax.nn, "dot_product_attention", unmasked),
    "no MLP": lambda patch: patch.setattr(gpt, "mlp", lambda params, x: 0),
    "queries for keys": lambda patch: patch.setattr(gpt, "split_heads", swapped),
    "no norm": lambda patch: patch.setattr(gpt, "layer_norm", lambda params, x: x),
    "no attention": lambda patch: patch.setattr(
        jax.nn, "dot_product_attention", lambda q, k, v, **kwargs: jnp.zeros_like(q)
    ),
}


def swapped(qkv, heads, split=gpt.split_heads):
    q, k, v = split(qkv, heads)
    return q, v, k


@pytest.mark.parametrize("wrong", WRONG_MODELS)
def test_the_losses_tell_a_wrong_model(wrong, monkeypatch):
    WRONG_MODELS[wrong](monkeypatch)
    losses = losses_in_float64(made())
    monkeypatch.undo()
    assert np.abs(losses / losses_in_float64(None) - 1).max() > 2e-6


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
    said = []
    held_back = gpt.batches(text()[-40_000:], CONFIG.length, 8)
    found, curve = gpt.train_gpt(
        params(), data, held_back, CONFIG, 20, count=3, report=lambda *row: said.append(row)
    )
    assert said == curve
    assert [number for number, _, _ in curve] == list(range(0, 21, 2))
    assert curve[-1][1] < curve[0][1] and curve[-1][2] < curve[0][2]
    assert not params()["embedding"].is_deleted()
    assert jax.tree.structure(found) == jax.tree.structure(params())


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return the folder of a run on eight devices that was killed in its save of step 20."""
    folder = tmp_path_factory.mktemp("run")
    arguments = str(folder / "run"), text(), CONFIG, STEPS, 20
    with pytest.MonkeyPatch.context() as patch:
        # The losses are compared with those of this process.
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        patch.delenv("XLA_FLAGS", raising=False)
        ((status, said),) = checkpoints.run_programs(
            folder, [(8, gpt.train_until_killed, arguments)]
        )
    assert status == -9, said
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


def strong():
    """Return parameters whose text depends on all layers and tokens, as the page has them."""
    return params() | {"layers": jax.tree.map(lambda x: 3 * x, params()["layers"])}


def written(prompt="def f", count=CONFIG.length):
    """Return what is written without a draw, traced anew."""
    write = functools.partial(gpt.generate.__wrapped__, config=CONFIG, count=count)
    return jax.jit(write)(strong(), gpt.encode(prompt), jax.random.key(0), 0.0)


def test_greedy_is_what_pytorch_writes():
    prompt = gpt.encode("def f")
    expected = gpt.greedy_torch(gpt.TorchGpt(strong(), CONFIG), prompt, CONFIG.length)
    np.testing.assert_array_equal(written(), expected)
    assert len(set(expected[0].tolist())) > 8


def unwritten(params, cache, *rest, of=gpt.next_logits):
    return of(params, cache, *rest)[0], cache


def at_zero(params, cache, token, position, heads, of=gpt.next_logits):
    still = params | {"positions": jnp.zeros_like(params["positions"])}
    return of(still, cache, token, position, heads)


def reversed_layers(params, *rest, of=gpt.next_logits):
    return of(params | {"layers": jax.tree.map(lambda x: x[::-1], params["layers"])}, *rest)


WRONG_STEPS = WRONG_MODELS | {
    name: functools.partial(
        lambda patch, wrong: patch.setattr(gpt, "next_logits", wrong), wrong=wrong
    )
    for name, wrong in {
        "a cache that nobody writes": unwritten,
        "all at position 0": at_zero,
        "layers in reverse": reversed_layers,
    }.items()
}


@pytest.mark.parametrize("wrong", WRONG_STEPS)
def test_the_tokens_tell_a_wrong_cache_and_a_wrong_model(wrong, monkeypatch):
    right = written()
    WRONG_STEPS[wrong](monkeypatch)
    assert (written() != right).any()


def test_a_long_text_goes_on_from_the_last_tokens():
    key, count = jax.random.key(3), 3 * CONFIG.length
    for temperature in (0.0, 0.8):
        found = gpt.generate_long(strong(), gpt.encode("def f"), key, temperature, CONFIG, count)
        assert found.shape == (1, count)
        short = gpt.generate(strong(), gpt.encode("def f"), key, temperature, CONFIG, CONFIG.length)
        np.testing.assert_array_equal(found[:, : CONFIG.length], short)
        for place in range(CONFIG.length, count):
            window = found[:, place - CONFIG.length : place]
            logits = gpt.gpt(strong(), window, CONFIG.heads)[:, -1]
            assert gpt.draw(key, place - 1, logits, temperature) == found[:, place]
    few = gpt.generate_long(strong(), gpt.encode("def f"), key, 0.8, CONFIG, 9)
    np.testing.assert_array_equal(few, short[:, :9])
    with pytest.raises(ValueError, match="do not fit"):
        gpt.generate_long(strong(), gpt.encode("d" * 17), key, 0.8, CONFIG, count)


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
    prompt = gpt.encode("ROMEO:")
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


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        *(((8,), (kind,)) for kind in KINDS),
        *(((4,), (kind,)) for kind in KINDS),
        *(((2, 4), kinds) for kinds in itertools.product(KINDS, KINDS)),
    ],
)
@pytest.mark.parametrize("rows", ["replicated", "sharded"])
def test_generation_on_several_devices_is_that_of_one(shape, kinds, rows):
    config = gpt.Config(length=16, width=32, layers=2)
    params = gpt.init_gpt(jax.random.key(0), config)
    prompt, key = np.repeat(gpt.encode("def f"), 8, axis=0), jax.random.key(1)
    expected = gpt.generate(params, prompt, key, 0.7, config, 16)
    names, types = ("data", "other")[: len(shape)], tuple(jax.sharding.AxisType[k] for k in kinds)
    devices = jax.devices("cpu")[: np.prod(shape)]
    mesh = jax.make_mesh(shape, names, types, devices=devices)
    with jax.set_mesh(mesh):
        held = jax.device_put(params, sharded_parameters.sharded_over(mesh, params))
        prompts = jax.device_put(prompt, jax.P("data") if rows == "sharded" else jax.P())
        found = gpt.generate_sharded(held, prompts, key, 0.7, config, 16)
    np.testing.assert_array_equal(found, expected)
    places = len({str(shard.index) for shard in found.addressable_shards})
    # On automatic axes the compiler chooses.
    assert places == shape[0] or kinds[0] == "Auto"


def test_more_tokens_than_positions_are_refused():
    config = gpt.Config(length=16, width=32, layers=2)
    params, key = gpt.init_gpt(jax.random.key(0), config), jax.random.key(1)
    for prompt, count in ((gpt.encode("def f"), 17), (gpt.encode("d" * 17), 16)):
        with pytest.raises(ValueError, match="17 tokens do not fit into a model of 16 positions"):
            gpt.generate(params, prompt, key, 0.7, config, count)
