"""The step that is compiled for GPUs, and what the page says of its record."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.training import overlap

RECORD = pathlib.Path("docs/_recorded/compiled/training.overlap.fsdp_step.scale.json")


def test_the_step_is_that_of_one_device():
    rng = np.random.default_rng(0)
    params = {
        "up": rng.normal(size=(3, 8, 16)).astype(np.float32),
        "down": rng.normal(size=(3, 16, 8)).astype(np.float32),
    }
    batch = tuple(rng.normal(size=(2, 16, 8)).astype(np.float32))

    def loss(params):
        x, target = batch
        for up, down in zip(params["up"], params["down"], strict=True):
            x = x + jnp.tanh(x @ up) @ down
        return jnp.mean((x - target) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    auto = (jax.sharding.AxisType.Auto,)
    with jax.set_mesh(jax.make_mesh((8,), ("data",), auto)):
        sharded = jax.device_put(params, jax.P(None, "data"))
        moved, found = jax.jit(overlap.fsdp_step)(sharded, jax.device_put(batch, jax.P("data")))
    np.testing.assert_allclose(found, value, rtol=1e-5)
    for name, x in params.items():
        np.testing.assert_allclose(moved[name], x - overlap.RATE * grads[name], rtol=1e-5)


@pytest.fixture(scope="module")
def counts():
    runs = json.loads(RECORD.read_text("utf8"))["runs"]
    names = "all-gather", "reduce-scatter"
    return {
        run["case"]: {
            each["kind"]: (each["looped"], each["beside"])
            for each in run["collectives"]
            if each["kind"] in names
        }
        for run in runs
    }


def test_one_half_overlaps_by_default_and_nothing_without_the_scheduler(counts):
    half = {"all-gather": (2, 1), "reduce-scatter": (2, 1)}
    scheduler = "xla_gpu_enable_latency_hiding_scheduler"
    assert counts["no option"] == counts[f"{scheduler}=true"] == half
    assert not any(beside for _, beside in counts[f"{scheduler}=false"].values())


def test_two_layers_in_a_round_overlap_as_much(counts):
    buffered = counts["xla_gpu_enable_while_loop_double_buffering=true"]
    assert buffered == {"all-gather": (4, 2), "reduce-scatter": (4, 2)}
    assert counts["optimization_level=O1"]["all-gather"] == (4, 2)


def test_the_optimization_level_takes_memory_and_leaves_less_in_the_loops():
    runs = {run["case"]: run for run in json.loads(RECORD.read_text("utf8"))["runs"]}
    plain, level = runs["no option"], runs["optimization_level=O1"]
    assert level["memory"]["temporaries"] > plain["memory"]["temporaries"]
    for kind in level["collectives"]:
        assert kind["looped"] < kind["count"]
