"""The step for many chips, and what its record shows."""

import jax
import numpy as np
import pytest

from compiled.programs import Collective


@pytest.fixture(scope="module")
def scale():
    # The step borrows its loss from a module that imports PyTorch.
    pytest.importorskip("torch")
    from snippets.compiled import scale

    return scale


def test_a_step_goes_down_the_gradient(scale):
    rng = np.random.default_rng(0)
    params = [
        {"weights": np.float32(rng.normal(size=(4, 8))), "biases": np.zeros(8, np.float32)},
        {"weights": np.float32(rng.normal(size=(8, 3))), "biases": np.zeros(3, np.float32)},
    ]
    batch = np.float32(rng.normal(size=(16, 4))), rng.integers(0, 3, 16)
    moved, before = scale.train_step(params, batch)
    grads = jax.grad(scale.loss)(params, batch)
    for new, old, grad in zip(*map(jax.tree.leaves, (moved, params, grads)), strict=True):
        np.testing.assert_allclose(new, old - scale.RATE * grad, rtol=1e-5, atol=1e-7)
    assert scale.train_step(moved, batch)[1] < before


@pytest.fixture(scope="module")
def record(recorded):
    return recorded("scale.train_step.scale")


def runs(record, case, target="tpu-v5e"):
    return [run for run in record.runs if run.case == case and run.target == target]


@pytest.mark.parametrize("case", ["the batch stays", "the batch grows"])
def test_each_number_of_chips_is_there(record, case):
    assert [run.chips for run in runs(record, case)] == [1, 4, 16, 64, 256]
    assert [run.chips for run in runs(record, case, "gpu-h200")] == [8]


@pytest.mark.parametrize("case", ["the batch stays", "the batch grows"])
def test_one_all_reduce_of_all_gradients_and_the_loss(record, case):
    alone, *many = runs(record, case)
    assert alone.collectives == []
    combined = 4 * (record.parameters + 1)
    for run in many:
        assert run.collectives == [Collective("all-reduce", 1, combined)]
    (h200s,) = runs(record, case, "gpu-h200")
    assert h200s.collectives == [Collective("all-reduce", 2, combined)]


def test_strong_scaling(record):
    found = runs(record, "the batch stays")
    assert {run.batch for run in found} == {8192}
    flops = [run.cost.flops for run in found]
    for (more, run), less in zip(zip(flops, found, strict=True), flops[1:], strict=False):
        assert less == pytest.approx(more / 4, rel=0.05), run.chips
    memory = [run.memory.total for run in found]
    assert memory == sorted(memory, reverse=True)
    assert memory[-1] == pytest.approx(memory[-2], rel=0.01)
    sent = [run.sent for run in found]
    assert sent == sorted(sent)
    assert sent[-1] == pytest.approx(2 * 4 * record.parameters, rel=0.01)


def test_weak_scaling(record):
    alone, *many = runs(record, "the batch grows")
    assert {run.batch // run.chips for run in (alone, *many)} == {512}
    assert len({run.cost.flops for run in many}) == 1
    assert len({run.memory.total for run in many}) == 1
    gradients = 4 * record.parameters
    assert alone.memory.temporaries < gradients <= many[0].memory.temporaries
