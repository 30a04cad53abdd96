"""What the pages teach composes: models, steps, layouts, checkpoints and exports.

Each model of the book that is trained takes two steps of each kind in each layout, and its losses
and parameters are those of one device. Where work is to be shared out, the compiled program shows
that it was.

Of the layouts, and of the rarer combinations, any two choices meet in a test. In
`nox -s composition` any three do.
"""

import contextlib
import functools
import gc
import itertools
import pathlib
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
import torch
from flax import nnx
from jax.experimental.compilation_cache import compilation_cache
from jax.experimental.pallas import tpu as pltpu

from snippets.compiled import kernels
from snippets.models import adaptation, convolutions, layers, modules, real_model, steps
from snippets.project import gpt
from snippets.training import data_parallel, stages
from snippets.training import sharded_parameters as page
from tests.book import pairs

DEVICES = jax.devices("cpu")
ROWS, PARTS = 48, 3
RATE = 1e-3
# With a smaller epsilon Adam takes steps of one size for noise, too, where a parameter has no
# influence, such as a bias in front of batch norm.
EPSILON = 1e-3
KEY = jax.random.key(0)
SIZES = (64, 32, 10)
TINY = real_model.Config(heads=4, layers=2, width=32, inner=64, tokens=64, positions=16, types=2)
# Equinox averages over the axis that `vmap` maps; from 0.11 on JAX cannot lower that where the
# axis is sharded and explicit.
BROKEN = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 11)


# Of mapped memory, in a process.
PIECES = 20_000


@pytest.fixture(scope="module", autouse=True)
def compiled_for_itself():
    """Keep these programs out of the cache of compiled ones on JAX 0.11 and later.

    Late in a run of all tests XLA ended the process when it wrote one of them there, with batch
    norm of Equinox on eight devices, and once when it compiled one beside those of all earlier
    tests.
    """
    if jax.__version_info__ < (0, 11):
        yield
        return
    jax.clear_caches()
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()


@pytest.fixture(autouse=True)
def few_programs():
    """Forget what was compiled before the memory of programs is in more pieces than Linux allows.

    Each program of XLA for a CPU is hundreds of pieces on JAX 0.12. Where the kernel refuses one,
    at 65,530, XLA ends the process.
    """
    yield
    pieces = pathlib.Path("/proc/self/maps")
    if pieces.exists() and len(pieces.read_bytes().splitlines()) > PIECES:
        alone.cache_clear()
        step_of.cache_clear()
        jax.clear_caches()
        gc.collect()


class Case(NamedTuple):
    """A model ready to be trained."""

    apply: callable
    params: object
    stats: object
    batch: tuple
    loss: callable = steps.cross_entropy
    # What the page of the model does to its loss on explicit axes.
    on_explicit_axes: callable = lambda loss: loss


def images(shape):
    (x, labels), _ = steps.digits()
    return x[:ROWS].reshape(ROWS, *shape), labels[:ROWS]


def sequences():
    return modules.sequences(steps=1, rows=ROWS, length=4, width=16)[0]


def plain_mlp(module=None):
    params = steps.init_mlp(KEY, SIZES)
    if module:
        params = list(modules.from_torch(module)[0]["layers"].values())
    return Case(steps.stateless(steps.mlp), params, {}, images((64,)))


def plain_block(module=None):
    apply = steps.stateless(functools.partial(modules.block, heads=4))
    params = modules.from_torch(module)[0] if module else modules.first_block(KEY, 16)
    return Case(apply, params, {}, sequences(), steps.mean_squared)


def plain_cnn(module=None):
    params, stats = modules.from_torch(module or convolutions.TorchCnn(8))
    return Case(convolutions.cnn, params, stats, images((8, 8, 1)))


def in_nnx(model, module):
    if module:
        modules.into_nnx(model, *modules.from_torch(module))
    return steps.split_nnx(model)


def nnx_mlp(module=None):
    return Case(*in_nnx(steps.NnxMlp(SIZES, rngs=nnx.Rngs(0)), module), images((64,)))


def nnx_block(module=None):
    model = modules.NnxBlock(16, dropout=0.0, rngs=nnx.Rngs(0))
    return Case(*in_nnx(model, module), sequences(), steps.mean_squared)


def nnx_llama(module=None):
    model = layers.LlamaBlock(16, hidden=32, rngs=nnx.Rngs(0))
    if module:
        modules.LAYOUTS[torch.nn.RMSNorm] = "scale", (0,)
        params, stats = modules.from_torch(module)
        for name in "query", "key":
            layer = params["attention"][name]
            layer["kernel"] = layers.kernel_as_halves(layer["kernel"], 4)
        modules.into_nnx(model, params, stats)
    return Case(*steps.split_nnx(model), sequences(), steps.mean_squared)


def nnx_cnn(module=None):
    return Case(*in_nnx(convolutions.NnxCnn(8, rngs=nnx.Rngs(0)), module), images((8, 8, 1)))


def in_equinox(model, module):
    return modules.into_equinox(model, module) if module else model


def equinox_mlp(module=None):
    model = in_equinox(steps.EquinoxMlp(SIZES, key=KEY), module)
    return Case(*steps.split_equinox(model), images((64,)))


def equinox_block(module=None):
    model = in_equinox(modules.first_equinox(KEY, 16, dropout=0.0), module)
    return Case(*steps.split_equinox(model), sequences(), steps.mean_squared)


def equinox_cnn(module=None):
    model, state = eqx.nn.make_with_state(convolutions.EquinoxCnn)(8, key=KEY)
    split = steps.split_stateful_equinox(in_equinox(model, module), state)
    return Case(*split, images((1, 8, 8)))


def plain_encoder(module=None):
    # Weights of PyTorch come from a file; tests of its page compare the two.
    params = jax.tree.map(lambda x: 0.1 * jax.random.normal(KEY, x.shape), real_model.shapes(TINY))
    rng = np.random.default_rng(0)
    sides = [rng.integers(0, 64, (ROWS, n), np.int32) for n in (5, 9)]
    batch = tuple((ids, np.ones(ids.shape, bool)) for ids in sides)

    def pairs(apply):
        # It compares the rows of a batch, so it is a mean of its own.
        return lambda params, stats, batch: (real_model.pair_loss(params, batch, TINY), (1, stats))

    auto = functools.partial(jax.sharding.auto_axes, out_sharding=jax.P())
    embed = steps.stateless(lambda params, x: real_model.embed(params, *x[0], TINY))
    return Case(embed, params, {}, batch, pairs, auto)


MODELS = {
    f.__name__: f
    for f in (
        *(plain_mlp, nnx_mlp, equinox_mlp),
        *(plain_block, nnx_block, equinox_block),
        *(plain_cnn, nnx_cnn, equinox_cnn),
        *(plain_encoder, nnx_llama),
    )
}
TORCH = {
    "mlp": lambda: data_parallel.TorchMlp(SIZES),
    "block": lambda: modules.TorchBlock(16, dropout=0.0),
    "cnn": lambda: convolutions.TorchCnn(8),
    "llama": lambda: layers.TorchLlamaBlock(16, hidden=32),
}
GRADIENTS = {
    "at once": steps.gradient_of,
    "accumulated": lambda loss: steps.accumulated(loss, PARTS),
    "rematerialized": lambda loss: steps.gradient_of(steps.rematerialized(loss)),
}
ADAM = optax.adam(RATE, eps=EPSILON)
STEPS = {
    "adam": (ADAM, "at once"),
    "by hand": (steps.adam(RATE, epsilon=EPSILON), "at once"),
    "clipped": (optax.chain(optax.clip_by_global_norm(0.1), ADAM), "at once"),
    "accumulated": (ADAM, "accumulated"),
    "rematerialized": (ADAM, "rematerialized"),
    "bfloat16": (ADAM, "at once"),
}


class Way(NamedTuple):
    """A model that is shared out over an axis by itself, beside the same on one device."""

    alone: callable
    shared: callable
    params: dict
    # Which parameters are sharded, and whether the rows of a batch are.
    sharded: tuple
    rows: bool


def microbatches(apply):
    """Return a model whose rows go through a pipeline in pairs."""

    def model(params, x):
        return apply(params["layers"], x.reshape(-1, 2, *x.shape[1:])).reshape(x.shape)

    return model


def attended(attend):
    """Return a layer of attention in which each row of a batch is a position."""
    return lambda params, x: attend(*(x @ params[name] for name in ("query", "key", "value")))


def with_experts(params, x):
    """Return what experts with a seat for each row of a device make of a batch."""
    seats = len(x) // len(DEVICES)
    return stages.capacity_experts(params["layers"], params["gate"], x, seats)[0]


WAYS = {
    "stages": Way(
        microbatches(stages.in_a_row),
        microbatches(stages.pipeline),
        {"layers": jax.random.normal(KEY, (8, 16, 16)) / 4},
        *(("layers",), False),
    ),
    "time": Way(
        attended(stages.attention),
        attended(stages.ring_attention),
        dict(zip(("query", "key", "value"), jax.random.normal(KEY, (3, 16, 16)) / 4, strict=True)),
        *((), True),
    ),
    "experts": Way(
        lambda params, x: stages.every_expert(params["layers"], params["gate"], x),
        with_experts,
        {
            "layers": jax.random.normal(KEY, (8, 16, 16)) / 4,
            "gate": jax.random.normal(jax.random.key(1), (16, 8)),
        },
        *(("layers",), True),
    ),
}
LAYOUTS = list(itertools.product(("replicated", "sharded"), ("explicit", "automatic")))


def on_mesh(kind):
    mesh = data_parallel.axis_of_devices(DEVICES)
    return mesh if kind == "explicit" else page.automatic(mesh)


class Run(NamedTuple):
    """What two steps left, and the program that took them."""

    params: object
    stats: object
    opt_state: object
    losses: np.ndarray
    compiled: object


def shardings_of(layout, tree):
    """Return where the arrays of (parameters, statistics, optimizer state) lie in a layout."""
    mesh = on_mesh(layout[1])

    def replicated(tree):
        return jax.tree.map(lambda x: jax.NamedSharding(mesh, jax.P()), tree)

    place = functools.partial(page.sharded_over, mesh) if layout[0] == "sharded" else replicated
    return place(tree[0]), replicated(tree[1]), place(tree[2])


def around(layout):
    return jax.set_mesh(on_mesh(layout[1])) if layout else contextlib.nullcontext()


@functools.cache
def step_of(name, how, layout=None):
    """Return a step for a model in a layout, and where its arrays lie."""
    case, (optimizer, gradient) = model(name), STEPS[how]
    apply = steps.in_bfloat16(case.apply) if how == "bfloat16" else case.apply
    loss, shardings = case.loss(apply), None
    if layout:
        tree = case.params, case.stats, optimizer.init(case.params)
        shardings = (*shardings_of(layout, tree), None)
    if layout and layout[1] == "explicit":
        loss = case.on_explicit_axes(loss)
    if layout == ("sharded", "explicit"):
        loss = page.gathered(loss)
    return steps.make_step(GRADIENTS[gradient](loss), optimizer, shardings)


def take_two_steps(name, how, layout=None):
    """Train for two steps, on one device or in a layout."""
    case = model(name)
    params, stats = jax.tree.map(jnp.copy, (case.params, case.stats))
    state, batch = (params, stats, STEPS[how][0].init(params)), case.batch
    if layout:
        state = jax.device_put(state, shardings_of(layout, state))
        batch = jax.device_put(batch, jax.NamedSharding(on_mesh(layout[1]), jax.P("data")))
    step = step_of(name, how, layout)
    with around(layout):
        compiled = step.lower(*state, batch).compile()
        before = jax.tree.leaves(state)
        run = Run(*steps.train(compiled, *state, [batch, batch]), compiled)
    assert all(x.is_deleted() for x in before)
    return run


def offered(name, how):
    """Say whether a page offers a step for a model; what it says of the others is tested below."""
    return name != "plain_encoder" or how not in ("accumulated", "bfloat16")


PAIRS = [(name, how) for name in MODELS for how in STEPS if offered(name, how)]
IN_LAYOUTS = [(*pair, layout) for pair in PAIRS for layout in LAYOUTS]


@functools.cache
def model(name):
    return MODELS[name]()


@functools.cache
def alone(name, how):
    return take_two_steps(name, how)


def agree(one, other, tolerance):
    for a, b in zip(floats(one), floats(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=tolerance)


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]


@pytest.mark.parametrize(("name", "how"), PAIRS)
def test_each_model_takes_each_step_as_it_takes_the_plain_one(name, how):
    run, plain = alone(name, how), alone(name, "adam")
    assert np.isfinite(run.losses).all() and run.losses[1] != run.losses[0]
    if how == "accumulated" and name.endswith("cnn"):
        # Batch norm sees the microbatches one after the other.
        assert abs(run.losses[0] - plain.losses[0]) > 1e-5
        return
    tolerance = {"bfloat16": 3e-2}.get(how, 1e-4)
    np.testing.assert_allclose(run.losses[0], plain.losses[0], rtol=tolerance)
    if how not in ("clipped", "bfloat16"):
        agree(run.params, plain.params, 0.02 * RATE)


def label(value):
    return " ".join(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("name", "how", "layout"), pairs.covering(IN_LAYOUTS), ids=label)
def test_each_layout_gives_what_one_device_gives(name, how, layout):
    if name == "equinox_cnn" and layout[1] == "explicit" and BROKEN:
        with pytest.raises(ValueError, match=r"Length of sharding.spec \(2\) must be equal"):
            take_two_steps(name, how, layout)
        return
    run, one = take_two_steps(name, how, layout), alone(name, how)
    tolerance = 3e-2 if how == "bfloat16" else 2e-4
    np.testing.assert_allclose(run.losses, one.losses, rtol=tolerance)
    if how != "bfloat16":
        agree(run.params, one.params, 0.02 * RATE)
        agree(run.stats, one.stats, 1e-5)
    # The work is shared out: a device computes a share of it, and sums are exchanged.
    flops = [each.compiled.cost_analysis()["flops"] for each in (run, one)]
    assert flops[0] < 0.5 * flops[1], flops
    found = data_parallel.count_collectives(run.compiled.as_text())
    assert "all-reduce" in found or "reduce-scatter" in found
    for leaf in (*jax.tree.leaves(run.params), *floats(run.opt_state)):
        shape = leaf.addressable_shards[0].data.shape
        if layout[0] == "replicated":
            assert shape == leaf.shape
        elif any(length % len(DEVICES) == 0 for length in leaf.shape):
            assert np.prod(shape) == leaf.size // len(DEVICES)
    if layout == ("sharded", "explicit"):
        assert "all-gather" in found


def steps_of(way, how, apply):
    """Return a step of a kind for a way to share out, or for the same on one device."""
    optimizer, gradient = STEPS[how]
    apply = steps.stateless(apply)
    apply = steps.in_bfloat16(apply) if how == "bfloat16" else apply
    return steps.make_step(GRADIENTS[gradient](steps.mean_squared(apply)), optimizer)


# The steps that differ in more than an optimizer of one parameter at a time. Microbatches would
# divide positions, which attend to each other.
SHARED = [
    pair
    for pair in itertools.product(WAYS, ("clipped", "accumulated", "rematerialized", "bfloat16"))
    if pair != ("time", "accumulated")
]


@pytest.mark.parametrize(("name", "how"), SHARED)
def test_each_way_to_share_out_a_model_takes_each_step(name, how):
    way, (optimizer, _) = WAYS[name], STEPS[how]
    batch = tuple(jax.random.normal(jax.random.key(2), (2, ROWS, 16)))
    state = jax.tree.map(jnp.copy, way.params), {}, optimizer.init(way.params)
    *_, losses = one = steps.train(steps_of(way, how, way.alone), *state, [batch] * 2)
    mesh = jax.make_mesh((len(DEVICES),), (name,), devices=DEVICES)
    with jax.set_mesh(mesh):
        params = {
            key: jax.device_put(jnp.copy(x), jax.P(name) if key in way.sharded else jax.P())
            for key, x in way.params.items()
        }
        batch = jax.device_put(batch, jax.P(name) if way.rows else jax.P())
        step = steps_of(way, how, way.shared)
        state = params, {}, optimizer.init(params)
        compiled = step.lower(*state, batch).compile()
        run = steps.train(compiled, *state, [batch] * 2)
    tolerance = 3e-2 if how == "bfloat16" else 2e-4
    np.testing.assert_allclose(run[3], losses, rtol=tolerance)
    if how != "bfloat16":
        agree(run[0], one[0], 0.02 * RATE)
    for key in way.sharded:
        assert run[0][key].addressable_shards[0].data.size == way.params[key].size // len(DEVICES)
    # Each sends to the others what its way is about.
    found = data_parallel.count_collectives(compiled.as_text())
    assert ("all-to-all" if name == "experts" else "collective-permute") in found


@pytest.mark.parametrize("name", MODELS)
def test_each_model_trains_as_it_was_drawn(name):
    # No copy of it is made here: a step donates what the page has made.
    case = MODELS[name]()
    state = case.params, case.stats, ADAM.init(case.params)
    *_, losses = steps.train(step_of(name, "adam"), *state, [case.batch] * 2)
    assert losses[1] < losses[0]


def test_microbatches_compare_fewer_rows():
    # The loss of the encoder compares the rows of a batch with each other.
    case = model("plain_encoder")
    loss, state = case.loss(case.apply), (case.params, case.stats)
    whole, _ = loss(*state, case.batch)
    (parts, _), _ = steps.accumulated(loss, PARTS)(*state, case.batch)
    assert parts < 0.9 * whole


@pytest.mark.parametrize("name", [name for name in MODELS if name != "plain_encoder"])
def test_each_model_starts_from_pytorch(name):
    torch.manual_seed(0)
    module = TORCH[name.rpartition("_")[2]]()
    case = MODELS[name](module)
    x = torch.tensor(np.array(case.batch[0]))
    expected = module(x.permute(0, 3, 1, 2) if x.shape[-1] == 1 else x).detach()
    y, _ = case.apply(case.params, case.stats, case.batch[0])
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    step = steps.make_step(steps.gradient_of(case.loss(case.apply)), ADAM)
    state = case.params, case.stats, ADAM.init(case.params)
    *_, losses = steps.train(step, *state, [case.batch] * 2)
    assert losses[1] < losses[0]


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_goes_on_in_another_layout(name, tmp_path):
    before, after = ("sharded", "automatic"), ("replicated", "explicit")
    if name == "equinox_cnn" and BROKEN:
        after = ("replicated", "automatic")
    saved = take_two_steps(name, "adam", before)[:3]
    like = jax.tree.map(
        lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
        saved,
        shardings_of(after, saved),
    )
    with ocp.CheckpointManager(tmp_path) as manager:
        manager.save(2, args=ocp.args.StandardSave(saved))
        manager.wait_until_finished()
        restored = manager.restore(2, args=ocp.args.StandardRestore(like))
    assert jax.tree.structure(restored) == jax.tree.structure(saved)
    agree(restored, saved, 0)
    batch = model(name).batch
    on_eight = jax.device_put(batch, jax.NamedSharding(on_mesh(after[1]), jax.P("data")))
    with around(after):
        *_, losses = steps.train(step_of(name, "adam", after), *restored, [on_eight])
    state = jax.tree.map(jnp.copy, alone(name, "adam")[:3])
    *_, expected = steps.train(step_of(name, "adam"), *state, [batch])
    np.testing.assert_allclose(losses, expected, rtol=2e-4)


@pytest.mark.parametrize("name", MODELS)
def test_what_was_trained_can_be_exported(name):
    params, stats, *_ = take_two_steps(name, "adam", ("replicated", "automatic"))
    params, stats = jax.device_put((params, stats), DEVICES[0])

    @jax.jit
    def predict(x):
        return model(name).apply(params, stats, x, train=False)[0]

    x = model(name).batch if name == "plain_encoder" else model(name).batch[0]
    file = jax.export.export(predict)(x).serialize()
    again = jax.export.deserialize(file).call(x)
    np.testing.assert_allclose(again, predict(x), rtol=1e-5, atol=1e-6)


# What is rarer: each on fewer devices whose axis is automatic, and with a second axis.
CONFIG = gpt.Config(tokens=64, length=8, width=16, heads=2, layers=2)
EXPLICIT, AUTOMATIC = jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto
RARE_MESHES = {
    "four": ((4,), ("data",), AUTOMATIC),
    "two by four": ((2, 4), ("machines", "data"), EXPLICIT),
}
RARE_OPTIMIZERS = {
    "adam": ADAM,
    "muon": optax.contrib.muon(RATE, eps=EPSILON),
    # What it divides by is rounding where a parameter has no influence.
    "adafactor": optax.adafactor(RATE, min_dim_size_to_factor=8, eps=1e-6),
}


def masked_mlp():
    """Return an MLP whose batch has padding at its end alone, as the last one of an epoch has."""
    x, labels = images((64,))
    labels = np.where(np.arange(ROWS) < ROWS - 20, labels, -100).astype(np.int32)
    return Case(steps.stateless(steps.mlp), steps.init_mlp(KEY, SIZES), {}, (x, labels))


def lora_mlp():
    frozen = steps.init_mlp(KEY, SIZES)
    adapters = adaptation.init_lora(KEY, frozen, rank=8)
    return Case(adaptation.adapted, adapters, frozen, images((64,)))


def dropped_block():
    apply, params, stats = steps.split_nnx(modules.NnxBlock(16, dropout=0.3, rngs=nnx.Rngs(0)))
    return Case(apply, params, stats, sequences(), steps.mean_squared)


def plain_gpt():
    tokens = np.random.default_rng(0).integers(0, 64, (ROWS, CONFIG.length + 1), np.int32)
    apply = steps.stateless(lambda params, x: gpt.gpt(params, x, CONFIG.heads))
    return Case(apply, gpt.init_gpt(KEY, CONFIG), {}, (tokens[:, :-1], tokens[:, 1:]))


def plain_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def kernel_mlp():
    """Return an MLP whose rows are normed by a kernel on a mesh, and by its formula without one."""
    norm = functools.partial(kernels.rms_norm, rows=4, interpret=pltpu.InterpretParams())
    kernel = kernels.with_gradient_of(plain_norm, norm)
    of_shards = jax.shard_map(kernel, in_specs=(jax.P("data"), jax.P()), out_specs=jax.P("data"))

    def apply(params, x):
        mesh = jax.sharding.get_abstract_mesh()
        by_hand = kernel if mesh.manual_axes else of_shards
        return steps.mlp(params["mlp"], (plain_norm if mesh.empty else by_hand)(x, params["scale"]))

    params = {"scale": jnp.linspace(0.5, 2, 64), "mlp": steps.init_mlp(KEY, SIZES)}
    return Case(steps.stateless(apply), params, {}, images((64,)))


RARE_MODELS = {f.__name__: f for f in (masked_mlp, lora_mlp, dropped_block, plain_gpt, kernel_mlp)}
RARE = [
    each
    for each in itertools.product(
        RARE_MODELS, ("adam", "by hand", "muon", "adafactor"), RARE_MESHES
    )
    # By hand each device would draw the numbers of dropout for its own rows.
    if each[:2] not in [("dropped_block", "by hand"), ("lora_mlp", "by hand")]
    # JAX 0.10 can wait for ever where kernels are simulated on all of the virtual devices.
    and each[::2] != ("kernel_mlp", "two by four")
]


def rare_run(name, how, mesh=None):
    """Take two steps in microbatches, or with collectives by hand; return state and losses."""
    case, by_hand = RARE_MODELS[name](), how == "by hand"
    apply = page.frozen_gathered(case.apply) if mesh and name == "lora_mlp" else case.apply
    optimizer = RARE_OPTIMIZERS.get(how, ADAM)
    state = jax.device_get((case.params, optimizer.init(case.params)))
    stats, loss, batch, out = jax.device_get(case.stats), case.loss(apply), case.batch, None
    if mesh:
        shardings = page.sharded_over(mesh, state)
        state = jax.device_put(state, shardings)
        stats = jax.device_put(stats, page.sharded_over(mesh, stats))
        batch = jax.device_put(batch, jax.NamedSharding(mesh, jax.P(mesh.axis_names)))
        if mesh.axis_types[0] == AUTOMATIC:
            out = shardings[0], None, shardings[1], None
        optimizer = page.on_replicas(optimizer) if how in ("muon", "adafactor") else optimizer
    gradient = steps.accumulated(page.gathered(loss) if mesh else loss, PARTS)
    if by_hand and mesh:
        specs = jax.tree.map(lambda sharding: sharding.spec, shardings[0])
        gradient = page.gradient_by_hand(loss, specs, axes=mesh.axis_names)
    step = steps.make_step(gradient, optimizer, out)
    return steps.train(step, state[0], stats, state[1], [batch] * 2)


@functools.cache
def rare_alone(name, how):
    return rare_run(name, how)


@pytest.mark.parametrize(("name", "how", "shape"), pairs.covering(RARE))
def test_rarer_combinations_give_what_one_device_gives(name, how, shape):
    sizes, names, kind = RARE_MESHES[shape]
    devices = DEVICES[: np.prod(sizes)]
    mesh = jax.make_mesh(sizes, names, (kind,) * len(sizes), devices=devices)
    with jax.set_mesh(mesh):
        if (name, how) == ("plain_gpt", "by hand") and BROKEN:
            with pytest.raises(ValueError, match="requires varying manual axes to match"):
                rare_run(name, how, mesh)
            return
        run = rare_run(name, how, mesh)
    one = rare_alone(name, how)
    np.testing.assert_allclose(run[3], one[3], rtol=2e-4)
    agree(run[0], one[0], 0.05 * RATE)
    sharded = page.sharded_over(mesh, run[0])
    for leaf, sharding in zip(jax.tree.leaves(run[0]), jax.tree.leaves(sharded), strict=True):
        assert leaf.sharding.is_equivalent_to(sharding, leaf.ndim)


@pytest.mark.parametrize("cases", [IN_LAYOUTS, RARE], ids=["layouts", "rare"])
def test_any_two_choices_meet_in_a_test(cases):
    chosen = pairs.covering(cases)
    assert {*chosen} <= {*cases} and len(chosen) == len({*chosen})
    for first, second in itertools.combinations(range(3), 2):
        every, met = ({(case[first], case[second]) for case in some} for some in (cases, chosen))
        assert met == every
