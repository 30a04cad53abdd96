"""What the book teaches for use is varied: it equals one device, or it is refused in words.

BOOK_EXAMPLES says how many examples each test tries; `nox -s variations` tries many.
"""

import functools
import os
import pathlib
import tempfile
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType

from snippets.compiled import kernels
from snippets.devices.resharding import replicate
from snippets.models import adaptation, checkpoints, convolutions, modules, optimizers, steps
from snippets.project import gpt
from snippets.training import sharded_parameters, stages

REFUSALS = (
    "not evenly divisible",
    "should be divisible by",
    "evenly divide the",
    "at least one microbatch",
    "do not divide into",
    "need one of each for a position",
    "the gate chooses among",
    "the balance of no rows",
    "do not fit into a model of",
    "do not fill an axis of",
    "illegally sharded result",
    # What comes from the rows of a device differs from device to device.
    "which require replication which can't be statically inferred",
)
KINDS = st.sampled_from([AxisType.Explicit, AxisType.Auto])
DTYPES = st.sampled_from([jnp.float32, jnp.bfloat16])
varied = settings(
    max_examples=int(os.environ.get("BOOK_EXAMPLES", "8")),
    deadline=None,
    derandomize="BOOK_EXAMPLES" not in os.environ,
    database=None,
)
# Of what takes a second or more for each example.
seldom = settings(varied, max_examples=int(os.environ.get("BOOK_EXAMPLES", "2")))


class Place(NamedTuple):
    """A mesh that is set for one example."""

    shape: tuple
    kind: AxisType
    compiled: bool

    def around(self, axis):
        """Set it; where it has two axes, the other is "data"."""
        names = (axis,) if len(self.shape) == 1 else ("data", axis)
        devices = jax.devices("cpu")[: np.prod(self.shape)]
        kinds = (self.kind,) * len(names)
        return jax.set_mesh(jax.make_mesh(self.shape, names, kinds, devices=devices))

    @property
    def batch_axis(self):
        """Return the name of the axis for data, if there is one."""
        return "data" if len(self.shape) == 2 else None

    def call(self, function, *arguments):
        """Call it, inside of jit or outside; None where it is refused in words."""
        try:
            return (jax.jit(function) if self.compiled else function)(*arguments)
        except (ValueError, TypeError) as error:
            assert any(words in str(error) for words in REFUSALS), error
            return None


SHAPES = st.sampled_from([(1,), (2,), (4,), (8,), (2, 4)])
# Some that all meshes divide, and some that few do.
SIZES = st.sampled_from([8, 16, 24]) | st.integers(1, 17)
PLACES = st.builds(Place, SHAPES, KINDS, st.booleans())


def put(array, spec):
    """Lay an array out; None where its length does not divide."""
    try:
        return jax.device_put(array, spec)
    except ValueError as error:
        assert any(words in str(error) for words in REFUSALS), error
        return None


def drawn(seed, shape, dtype=jnp.float32):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float32).astype(dtype)


def alike(found, expected, dtype, roundings=64):
    """Compare to some roundings of a dtype; what was found has that of one device."""
    assert found.dtype == expected.dtype
    found, expected = (np.asarray(each, np.float64) for each in (found, expected))
    tolerance = roundings * float(jnp.finfo(dtype).eps)
    scale = max(1, abs(expected).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@varied
@given(PLACES, DTYPES, SIZES, st.integers(0, 5), st.sampled_from([1, 2, 3]))
@example(Place((8,), AxisType.Explicit, True), jnp.float32, 16, 3, 1)
@example(Place((2, 4), AxisType.Auto, False), jnp.bfloat16, 8, 5, 2)
def test_a_pipeline(place, dtype, layers, microbatches, rows):
    weights = drawn(0, (layers, 4, 4), dtype) / 2
    x = drawn(1, (microbatches, rows, 4), dtype)
    with place.around("stages"):
        held = put(weights, jax.P("stages")), put(x, jax.P(None, place.batch_axis))
        if any(each is None for each in held):
            return
        found = place.call(lambda w, x: stages.pipeline(w, x, place.batch_axis), *held)
    fits = layers % place.shape[-1] == 0 and microbatches
    assert (found is not None) == bool(fits)
    if fits:
        alike(found, stages.in_a_row(weights, x), dtype)


@varied
@given(PLACES, DTYPES, SIZES, SIZES, st.booleans(), st.booleans())
@example(Place((8,), AxisType.Explicit, True), jnp.bfloat16, 16, 16, True, True)
@example(Place((4,), AxisType.Auto, False), jnp.float32, 8, 24, False, True)
def test_attention_in_a_ring(place, dtype, queries, keys, same, causal):
    keys = queries if same else keys
    lead = (2,) if place.batch_axis else ()
    query = drawn(0, (*lead, queries, 4), dtype)
    key, value = drawn(1, (2, *lead, keys, 4), dtype)
    spec = jax.P(place.batch_axis, "time") if lead else jax.P("time")
    with place.around("time"):
        held = [put(each, spec) for each in (query, key, value)]
        if any(each is None for each in held):
            return
        ring = functools.partial(stages.ring_attention, causal=causal, batch_axis=place.batch_axis)
        found = place.call(ring, *held)
    fits = not causal or queries == keys
    assert (found is not None) == fits
    if fits:
        alike(found, stages.attention(query, key, value, causal), dtype)


@varied
@given(PLACES, DTYPES, SIZES, SIZES, st.integers(1, 3), st.booleans())
@example(Place((4,), AxisType.Explicit, True), jnp.float32, 16, 24, 2, True)
@example(Place((2, 4), AxisType.Auto, True), jnp.bfloat16, 8, 16, 3, False)
def test_experts(place, dtype, experts, rows, top_k, ragged):
    top_k = min(top_k, experts)
    weights, gate = drawn(0, (experts, 4, 4), dtype), drawn(1, (4, experts), dtype)
    x, axis = drawn(2, (rows, 4), dtype), place.batch_axis
    with place.around("experts"):
        names = ("data", "experts") if axis else ("experts",)
        held = put(weights, jax.P("experts")), put(gate, jax.P()), put(x, jax.P(names))
        if any(each is None for each in held):
            return
        if ragged:
            found = place.call(
                lambda *held: stages.ragged_experts(*held, top_k, axis, stages.send_padded), *held
            )
        else:
            found, lost = place.call(
                lambda *held: stages.capacity_experts(*held, rows * top_k, top_k, axis), *held
            )
            assert lost == 0
    alike(found, stages.every_expert(weights, gate, x, top_k), dtype)


@varied
@given(PLACES, DTYPES, st.integers(0, 17), st.integers(1, 9), st.integers(1, 3))
@example(Place((8,), AxisType.Explicit, False), jnp.bfloat16, 16, 5, 2)
@example(Place((1,), AxisType.Auto, True), jnp.float32, 0, 3, 1)
def test_the_balance_of_experts(place, dtype, rows, experts, top_k):
    gate, x = drawn(0, (4, experts), dtype), drawn(1, (rows, 4), dtype)
    top_k, axis = min(top_k, experts), place.batch_axis
    with place.around("experts"):
        held = put(gate, jax.P()), put(x, jax.P(("data", "experts") if axis else "experts"))
        if any(each is None for each in held):
            return
        found = place.call(lambda *held: stages.balance_loss(*held, top_k), *held)
    assert (found is None) == (rows == 0)
    if rows:
        odds = np.asarray(jax.nn.softmax(x @ gate), np.float64)
        picks = np.argsort(-odds, axis=1, kind="stable")[:, :top_k]
        share = np.bincount(picks.ravel(), minlength=experts) / picks.size
        expected = jnp.float32(experts * share @ odds.mean(axis=0))
        alike(found, expected, dtype)


TREES = st.lists(st.lists(st.integers(0, 17), max_size=3), min_size=1, max_size=3)


@varied
@given(SHAPES, KINDS, DTYPES, TREES, st.booleans())
@example((2, 4), AxisType.Explicit, jnp.bfloat16, [[3, 8], []], True)
@example((8,), AxisType.Auto, jnp.float32, [[16], [5, 24]], False)
def test_a_layout(shape, kind, dtype, sizes, compiled):
    """Arrays are made in their shards, as many bytes as they have, and replicated again."""

    def make(key):
        keys = jax.random.split(key, len(sizes))
        return [jax.random.normal(*each, dtype) for each in zip(keys, sizes, strict=True)]

    expected = make(jax.random.key(0))
    mesh = mesh_of(shape, kind, ("machines", "data"))
    with jax.set_mesh(mesh):
        layout = sharded_parameters.sharded_over(mesh, expected)
        made = sharded_parameters.in_shards(make, layout)(jax.random.key(0))
        whole = (jax.jit(replicate) if compiled else replicate)(made)
    held = sharded_parameters.bytes_on_each_device(made)
    shards = [
        each.nbytes // (1 if layout.is_fully_replicated else mesh.shape["data"])
        for each, layout in zip(expected, layout, strict=True)
    ]
    assert held == dict.fromkeys((device.id for device in mesh.devices.flat), sum(shards))
    for one, many, sharding, other in zip(made, expected, layout, whole, strict=True):
        assert one.sharding.is_equivalent_to(sharding, one.ndim)
        assert other.is_fully_replicated
        alike(one, many, dtype)
        np.testing.assert_array_equal(np.asarray(other), np.asarray(one))


def models():
    """Return (apply, params, stats) and the shape of an example, by names."""
    return {
        "plain": (steps.stateless(steps.mlp), steps.init_mlp(jax.random.key(0), (8, 16, 4)), {}),
        "nnx": steps.split_nnx(steps.NnxMlp((8, 16, 4), rngs=nnx.Rngs(0))),
        "batch norm": steps.split_nnx(convolutions.NnxCnn(4, rngs=nnx.Rngs(0))),
    }


LAYOUTS = st.sampled_from(["replicated", "gathered", "automatic", "by hand"])


@varied
@given(
    *(SHAPES, st.sampled_from(["plain", "nnx", "batch norm"]), LAYOUTS, st.integers(1, 3)),
    *(st.sampled_from([1, 7, 8, 16, 24, 48]), st.integers(0, 24), st.booleans()),
)
@example((1,), "plain", "replicated", 4, 16, 6, False)
@example((2, 4), "nnx", "by hand", 1, 24, 5, False)
@example((8,), "plain", "automatic", 3, 24, 5, True)
@example((4,), "batch norm", "gathered", 2, 16, 3, False)
@example((8,), "batch norm", "by hand", 1, 8, 0, False)
def test_a_step_with_padded_labels(shape, name, layout, parts, rows, padding, low):
    apply, params, stats = models()[name]
    examples = (8, 8, 1) if name == "batch norm" else (8,)
    x = np.asarray(drawn(1, (rows, *examples)))
    labels = np.where(np.arange(rows) < rows - padding, np.arange(rows) % 4, -100).astype(np.int32)
    apply = steps.in_bfloat16(apply) if low else apply
    loss, optimizer = steps.cross_entropy(apply), optax.sgd(0.1)
    state = jax.device_get((params, stats, optimizer.init(params)))
    normed = name == "batch norm"
    # Each microbatch is normalized by itself, so its reference is split alike.
    alone = steps.accumulated(loss, parts) if normed and parts > 1 else steps.gradient_of(loss)
    if rows % parts:
        with pytest.raises(ValueError, match="do not divide into"):
            steps.accumulated(loss, parts)(*state[:2], (x, labels))
        return
    expected = jax.jit(alone)(*state[:2], (x, labels))
    kind = AxisType["Auto" if layout == "automatic" else "Explicit"]
    devices = jax.devices("cpu")[: np.prod(shape)]
    names = ("machines", "data")[-len(shape) :]
    mesh = jax.make_mesh(shape, names, (kind,) * len(shape), devices=devices)
    with jax.set_mesh(mesh):
        batch = [put(each, jax.P(names)) for each in (x, labels)]
        if batch[0] is None:
            return
        layouts = sharded_parameters.sharded_over(mesh, state)
        held = jax.device_put(state, jax.P() if layout == "replicated" else layouts)
        wrapped = loss if layout in ("replicated", "by hand") else sharded_parameters.gathered(loss)
        gradient = steps.accumulated(wrapped, parts)
        if layout == "by hand":
            specs = jax.tree.map(lambda each: each.spec, layouts[0])
            gradient = sharded_parameters.gradient_by_hand(loss, specs, names)
            expected = jax.jit(steps.gradient_of(loss))(*state[:2], (x, labels))
        if parts > 1 and layout != "by hand" and (rows // parts) % np.prod(shape):
            return
        place = Place(shape, kind, compiled=True)
        found = place.call(gradient, held[0], jax.device_put(held[1], jax.P()), tuple(batch))
    if found is None:
        assert normed and layout == "by hand"
        return
    ((value, _), grads), ((mean, _), wanted) = found, expected
    precision = jnp.bfloat16 if low else jnp.float32
    alike(value, mean, precision, 8)
    for ours, theirs in zip(jax.tree.leaves(grads), jax.tree.leaves(wanted), strict=True):
        alike(ours, theirs, precision, 8)


@varied
@given(SHAPES, KINDS, st.integers(1, 9), st.integers(1, 20), st.sampled_from([0.0, 0.7]))
@example((8,), AxisType.Explicit, 4, 17, 0.0)
@example((4,), AxisType.Auto, 4, 12, 0.7)
def test_generation(shape, kind, length, count, temperature):
    config = gpt.Config(length=16, width=16, layers=2)
    params, key = gpt.init_gpt(jax.random.key(0), config), jax.random.key(1)
    prompt = np.asarray(jax.random.randint(key, (8, length), 0, 128))
    place = Place(shape, kind, compiled=False)

    def of(generate):
        return lambda params: generate(params, prompt, key, temperature, config, count)

    expected = place.call(of(gpt.generate), params)
    with place.around("data") if len(shape) == 1 else Place((8,), kind, False).around("data"):
        mesh = jax.sharding.get_mesh()
        held = jax.device_put(params, sharded_parameters.sharded_over(mesh, params))
        found = place.call(of(gpt.generate_sharded), held)
    assert (found is None) == (expected is None) == (count > 16)
    if found is not None:
        np.testing.assert_array_equal(found, expected)


next_token = jax.jit(
    lambda params, text, key, position, temperature: gpt.draw(
        key, position, gpt.gpt(params, text, 4)[:, -1], temperature
    )
)


@seldom
@given(st.integers(1, 12), st.integers(1, 14), st.sampled_from([0.0, 0.7]), st.integers(1, 3))
@example(8, 11, 0.7, 2)
@example(3, 12, 0.0, 1)
@example(9, 12, 0.0, 1)
def test_generation_past_the_last_position(length, count, temperature, rows):
    config = gpt.Config(length=8, width=16, layers=2)
    params, key = gpt.init_gpt(jax.random.key(0), config), jax.random.key(1)
    prompt = text = np.asarray(jax.random.randint(key, (rows, length), 0, 128))
    place = Place((1,), AxisType.Auto, compiled=False)
    found = place.call(
        lambda text: gpt.generate_long(params, text, key, temperature, config, count), prompt
    )
    assert (found is not None) == (length <= 8)
    for position in range(length - 1, count - 1):
        token = next_token(params, text[:, -8:], key, position, temperature)
        text = np.concatenate([text, token[:, None]], axis=1)
    if found is not None:
        np.testing.assert_array_equal(found, text[:, :count])


@varied
@given(st.booleans(), st.booleans(), st.sampled_from([0.0, 0.1]), st.integers(1, 3))
def test_a_block_in_bfloat16(compiled, train, rate, rows):
    block = modules.NnxBlock(16, dropout=rate, rngs=nnx.Rngs(0))
    apply, params, stats = steps.split_nnx(block)
    low = functools.partial(steps.in_bfloat16(apply), train=train)
    x = drawn(1, (rows, 4, 16))
    y, new = (jax.jit(low) if compiled else low)(params, stats, x)
    expected, _ = apply(params, stats, x, train=train)
    assert y.dtype == jnp.float32
    np.testing.assert_allclose(y, expected, atol=0.2)
    same = jax.tree.map(lambda one, other: one.dtype == other.dtype, new, stats)
    assert all(jax.tree.leaves(same))


def mesh_of(shape, kind, names):
    """Return a mesh of so many devices; where it has one axis, it is the last of two."""
    devices = jax.devices("cpu")[: np.prod(shape)]
    names = names[-len(shape) :]
    return jax.make_mesh(shape, names, (kind,) * len(shape), devices=devices)


@functools.cache
def first_state(dtype):
    state = checkpoints.first_state(jax.random.key(0))
    return state | {"params": jax.tree.map(lambda x: x.astype(dtype), state["params"])}


@seldom
@given(SHAPES, KINDS, SHAPES, KINDS, DTYPES, DTYPES, st.booleans())
@example((8,), AxisType.Explicit, (2, 4), AxisType.Auto, jnp.bfloat16, jnp.float32, True)
@example((2, 4), AxisType.Auto, (1,), AxisType.Explicit, jnp.float32, jnp.float32, False)
def test_a_checkpoint(shape, kind, other, other_kind, dtype, wanted, killed):
    """The second of two saves comes back, in the layout and with the dtypes that were asked for."""
    first, batches = first_state(dtype), checkpoints.example_batches()
    mesh = mesh_of(shape, kind, ("machines", "data"))
    target = mesh_of(other, other_kind, ("data", "model"))
    like = checkpoints.with_layout(first_state(wanted), target)
    with tempfile.TemporaryDirectory() as folder:
        if killed:
            pathlib.Path(folder, "2.orbax-checkpoint-tmp").mkdir()
        with ocp.CheckpointManager(folder) as manager:
            for step in (1, 2):
                next(batches)
                state = first | {"step": jnp.int32(step)}
                copies = jax.tree.map(jnp.copy, state)
                held = jax.device_put(copies, sharded_parameters.sharded_over(mesh, state))
                # A step may donate it at once.
                checkpoints.save(manager, held, batches)
                jax.tree.map(lambda x: x.delete(), held)
        resumed = checkpoints.example_batches()
        with ocp.CheckpointManager(folder) as manager:
            found = checkpoints.restore(manager, like, resumed)
    expected = first | {"step": jnp.int32(2)}
    expected = jax.tree.map(steps.like, expected, like)
    assert checkpoints.same_bits(found, expected)
    assert resumed.get_state() == batches.get_state()
    for one, asked in zip(jax.tree.leaves(found), jax.tree.leaves(like), strict=True):
        assert (one.sharding, one.dtype) == (asked.sharding, asked.dtype)


@seldom
@given(SHAPES, KINDS, st.integers(1, 20), st.integers(1, 3), DTYPES, st.booleans())
@example((2, 4), AxisType.Explicit, 20, 2, jnp.float32, False)
@example((4,), AxisType.Auto, 3, 1, jnp.bfloat16, True)
def test_adapters(shape, kind, rank, parts, dtype, merging):
    frozen = jax.tree.map(lambda x: x.astype(dtype), steps.init_mlp(jax.random.key(0), (8, 16, 4)))
    adapters = adaptation.init_lora(jax.random.key(1), frozen, rank)
    adapters = [one | {"up": drawn(2, one["up"].shape) / rank} for one in adapters]
    x = np.asarray(drawn(3, (24 * parts, 8)))
    batch = x, np.arange(24 * parts, dtype=np.int32) % 4 - 1
    apply = adaptation.adapted_by_merging if merging else adaptation.adapted
    alone = steps.accumulated(steps.cross_entropy(adaptation.adapted), parts)
    (mean, _), wanted = jax.jit(alone)(adapters, frozen, batch)
    mesh = mesh_of(shape, kind, ("machines", "data"))
    with jax.set_mesh(mesh):
        state = jax.device_get((adapters, frozen))
        state = jax.device_put(state, sharded_parameters.sharded_over(mesh, state))
        rows = jax.device_put(batch, jax.P(mesh.axis_names))
        loss = steps.cross_entropy(sharded_parameters.frozen_gathered(apply))
        gradient = steps.accumulated(sharded_parameters.gathered(loss), parts)
        (value, kept), grads = jax.jit(gradient)(*state, rows)
    alike(value, mean, dtype)
    assert checkpoints.same_bits(kept, frozen)
    for ours, theirs in zip(jax.tree.leaves(grads), jax.tree.leaves(wanted), strict=True):
        alike(ours, theirs, dtype)
    merged = adaptation.merged(frozen, adapters)
    assert jax.tree.map(jnp.dtype, merged) == jax.tree.map(jnp.dtype, frozen)
    alike(steps.mlp(merged, x), adaptation.adapted_mlp(frozen, adapters, x), dtype)


@seldom
@given(
    *(st.sampled_from([(), (1,), (3,), (2, 3)]), st.integers(1, 40), st.integers(1, 9)),
    *(st.sampled_from([jnp.float32, jnp.bfloat16, jnp.float16]), st.booleans()),
)
@example((2, 3), 40, 9, jnp.bfloat16, True)
@example((3,), 40, 9, jnp.bfloat16, False)
def test_int8(lead, inputs, outputs, dtype, whole):
    kernel = drawn(0, (inputs, outputs), dtype).at[:, 0].set(0)
    x = drawn(1, (*lead, inputs), dtype)
    (layer,) = adaptation.quantize_layers([{"kernel": kernel, "bias": jnp.zeros(outputs, dtype)}])
    matmul = adaptation.all_in_int8 if whole else adaptation.weights_in_int8
    found = matmul(x, layer)
    assert found.dtype == dtype and np.abs(np.int32(layer["kernel"])).max() <= 127
    x, kernel, found, scale = (np.float64(each) for each in (x, kernel, found, layer["scale"][0]))
    assert (np.abs(layer["kernel"] * scale - kernel) <= 0.501 * scale).all()
    # Each number is off by half a step of its column, or of its row, at most.
    error = np.abs(x).sum(-1, keepdims=True) * scale / 2
    if whole:
        step = np.abs(x).max(-1, keepdims=True) / 127
        error += step / 2 * (np.abs(kernel).sum(0) + inputs * scale / 2)
    rounding = 8 * float(jnp.finfo(dtype).eps) * (1 + np.abs(x) @ np.abs(kernel))
    assert (np.abs(found - x @ kernel) <= error + rounding).all()


@functools.cache
def optimizer_of(name, masked):
    mask = optimizers.kernels if masked else None
    if name == "muon":
        return optax.contrib.muon(1e-2, weight_decay=0.1, weight_decay_mask=mask)
    sizes = {"min_dim_size_to_factor": 4, "eps": 1e-6}
    return optax.adafactor(1e-2, **sizes, weight_decay_rate=0.1, weight_decay_mask=mask)


def moved(optimizer, params, opt_state):
    """Take two steps along fixed gradients."""
    grads = jax.tree.map(lambda x: jnp.cos(3 * x + 1).astype(x.dtype), params)
    step = jax.jit(optimizer.update)
    for _ in range(2):
        updates, opt_state = step(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
    return params, opt_state


@seldom
@given(
    *(SHAPES, KINDS, st.sampled_from(["muon", "adafactor"]), st.booleans(), st.booleans()),
    *(st.sampled_from(["plain", "on_replicas", "compiler_chooses"]), DTYPES),
)
@example((2, 4), AxisType.Explicit, "muon", True, True, "on_replicas", jnp.float32)
@example((8,), AxisType.Explicit, "adafactor", False, True, "compiler_chooses", jnp.bfloat16)
def test_an_optimizer_that_mixes_axes(shape, kind, name, masked, sharded, wrap, dtype):
    params = jax.tree.map(lambda x: x.astype(dtype), steps.init_mlp(jax.random.key(0), (8, 16, 4)))
    optimizer = optimizer_of(name, masked)
    state = params, optimizer.init(params)
    expected = moved(optimizer, *state)
    wrapped = getattr(sharded_parameters, wrap, lambda plain: plain)(optimizer)
    mesh = mesh_of(shape, kind, ("machines", "data"))
    place = Place(shape, kind, compiled=False)
    with jax.set_mesh(mesh):
        layout = sharded_parameters.sharded_over(mesh, state) if sharded else jax.P()
        held = jax.device_put(jax.device_get(state), layout)
        found = place.call(functools.partial(moved, wrapped), *held)
    explicit = kind == AxisType.Explicit
    assert (found is None) == (wrap == "plain" and sharded and explicit)
    if found is None:
        return
    pairs = zip(*map(jax.tree.leaves, (found, expected, held)), strict=True)
    for ours, theirs, before in pairs:
        alike(ours, theirs, dtype)
        assert not explicit or ours.sharding.is_equivalent_to(before.sharding, ours.ndim)


def exact_attention(query, key, value, causal, ids):
    """Return attention of NumPy's arrays, each head of keys for a group of queries."""
    group = len(query) // len(key)
    scores = query @ np.repeat(key, group, 0).swapaxes(1, 2) / np.sqrt(query.shape[-1])
    seen = np.tri(*scores.shape[1:], dtype=bool) if causal else True
    seen = seen & (ids[:, None] == ids) if ids is not None else seen
    exps = np.exp(np.where(seen, scores, -np.inf))
    return exps / exps.sum(-1, keepdims=True) @ np.repeat(value, group, 0)


def kernel_of(name, rows, tile, mode, causal, packed):
    """Return a kernel, its arrays, over which axis they are sharded, and its formula."""
    x, square = drawn(0, (rows, 8)), drawn(1, (8, 8))
    ids = np.arange(rows) // 3 if packed else None
    heads = drawn(2, (4, rows, 8)), *drawn(3, (2, 4 if packed else 2, rows, 8))

    def rms_norm(x, scale):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale

    def attention(*heads):
        return kernels.attention(*heads, tile, mode, causal, ids if ids is None else jnp.array(ids))

    shards = jax.P("shards")
    return {
        "softmax": (lambda x: kernels.softmax(x, tile, mode), (x,), (shards,), jax.nn.softmax),
        "rms_norm": (
            lambda x, scale: kernels.rms_norm(x, scale, tile, mode),
            *((x, square[0]), (shards, jax.P()), rms_norm),
        ),
        "matmul": (
            lambda a, b: kernels.matmul(a, b, tile, mode),
            *((x, square), (shards, jax.P()), np.matmul),
        ),
        "attention": (
            attention,
            *(heads, (shards,) * 3, lambda *heads: exact_attention(*heads, causal, ids)),
        ),
    }[name]


@seldom
@given(
    st.sampled_from(["softmax", "rms_norm", "matmul", "attention"]),
    *(st.sampled_from([1, 4, 8, 16]) | st.integers(0, 17), st.sampled_from([1, 2, 3, 4, 8])),
    *(DTYPES, st.sampled_from(["plain", "compiled", "vmap", 1, 2, 4])),
    *(KINDS, st.booleans(), st.booleans(), st.booleans()),
)
@example("softmax", 0, 4, jnp.float32, "plain", AxisType.Explicit, False, False, False)
@example("attention", 8, 4, jnp.float32, "compiled", AxisType.Auto, True, True, True)
@example("rms_norm", 16, 2, jnp.bfloat16, 4, AxisType.Explicit, True, False, False)
@example("matmul", 8, 4, jnp.float32, "vmap", AxisType.Explicit, True, False, False)
def test_a_kernel(name, rows, tile, dtype, how, kind, simulated, causal, packed):
    # JAX 0.10 can wait for ever where kernels are simulated on all of the virtual devices.
    mode = pltpu.InterpretParams() if simulated or isinstance(how, int) else True
    call, arrays, specs, formula = kernel_of(name, rows, tile, mode, causal, packed)
    arrays = [array.astype(dtype) for array in arrays]
    exact = [np.asarray(array, np.float64) for array in arrays]
    expected = jnp.asarray(formula(*exact)).astype(dtype)
    place = Place((how,), kind, True) if isinstance(how, int) else Place((1,), kind, how != "plain")
    if how == "vmap":
        arrays = [jnp.stack([array, 2 * array]) for array in arrays]
        first = place.call(jax.vmap(call), *arrays)
        found = None if first is None else first[0]
    elif isinstance(how, int):
        with place.around("shards"):
            held = [put(array, spec) for array, spec in zip(arrays, specs, strict=True)]
            if any(each is None for each in held):
                return
            shared = jax.shard_map(call, in_specs=specs, out_specs=specs[0])
            found = place.call(shared, *held)
    else:
        found = place.call(call, *arrays)
    own = rows // how if isinstance(how, int) and name != "attention" else rows
    axes = (own, 8) if name == "matmul" else (own,)
    assert (found is not None) == all(size and size % tile == 0 for size in axes)
    if found is not None:
        alike(found, expected, dtype, 8)
