"""What the book teaches for use is varied: it equals one device, or it is refused in words.

BOOK_EXAMPLES says how many examples each test tries; `nox -s variations` tries many.
"""

import functools
import os
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from snippets.models import convolutions, modules, steps
from snippets.project import gpt
from snippets.training import sharded_parameters, stages

REFUSALS = (
    "not evenly divisible",
    "should be divisible by",
    "evenly divide the",
    "at least one microbatch",
    "do not divide into",
    "causal attention needs one of each",
    "the gate chooses among",
    "do not fit into a model of",
    # What comes from the rows of a device differs from device to device.
    "which require replication which can't be statically inferred",
)
KINDS = st.sampled_from([jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto])
DTYPES = st.sampled_from([jnp.float32, jnp.bfloat16])
varied = settings(
    max_examples=int(os.environ.get("BOOK_EXAMPLES", "8")),
    deadline=None,
    derandomize="BOOK_EXAMPLES" not in os.environ,
    database=None,
)


class Place(NamedTuple):
    """A mesh that is set for one example."""

    shape: tuple
    kind: jax.sharding.AxisType
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
@example(Place((8,), jax.sharding.AxisType.Explicit, True), jnp.float32, 16, 3, 1)
@example(Place((2, 4), jax.sharding.AxisType.Auto, False), jnp.bfloat16, 8, 5, 2)
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
@example(Place((8,), jax.sharding.AxisType.Explicit, True), jnp.bfloat16, 16, 16, True, True)
@example(Place((4,), jax.sharding.AxisType.Auto, False), jnp.float32, 8, 24, False, True)
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
@example(Place((4,), jax.sharding.AxisType.Explicit, True), jnp.float32, 16, 24, 2, True)
@example(Place((2, 4), jax.sharding.AxisType.Auto, True), jnp.bfloat16, 8, 16, 3, False)
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
    kind = jax.sharding.AxisType["Auto" if layout == "automatic" else "Explicit"]
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
@example((8,), jax.sharding.AxisType.Explicit, 4, 17, 0.0)
@example((4,), jax.sharding.AxisType.Auto, 4, 12, 0.7)
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
