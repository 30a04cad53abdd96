import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend

from snippets.benchmarks import attention_bfloat16 as attention

SHAPE = 2, 96, 3, 16
# Rounding to bfloat16 is wrong by at most one in 256, here of numbers up to about 4.
CLOSE = 0.05


@pytest.fixture(scope="module")
def arrays():
    """Return arrays that are as exact in bfloat16."""
    return [np.float32(jnp.bfloat16(array)) for array in attention.draw(*SHAPE)]


@pytest.fixture(scope="module")
def exact(arrays):
    """Return the result and its gradients in float64, by PyTorch's formula."""
    return in_numpy(attention.in_torch(arrays, 96, torch.float64)[1]["math@torch"]())


def in_numpy(found):
    result, gradients = found
    return [attention.heads_last(each) for each in (result, *gradients)]


def formula(query, key, value):
    scores = np.einsum("bqhw,bkhw->bhqk", query, key) / np.sqrt(query.shape[-1])
    shares = np.exp(scores) * np.tri(query.shape[1])
    return np.einsum("bhqk,bkhw->bqhw", shares / shares.sum(-1, keepdims=True), value)


def test_the_exact_result_is_the_formula(arrays, exact):
    q, k, v, cotangents = (np.float64(array) for array in arrays)
    np.testing.assert_allclose(exact[0], formula(q, k, v), atol=1e-12)
    step = 1e-6 * np.eye(1, q.size, 70).reshape(q.shape)
    change = ((formula(q + step, k, v) - formula(q - step, k, v)) * cotangents).sum() / 2e-6
    assert exact[1].flat[70] == pytest.approx(change, rel=1e-5)


def test_all_ways_are_close_to_it(arrays, exact):
    once, both = attention.in_jax(arrays, 96)
    once_torch, both_torch = attention.in_torch(arrays, 96)
    assert once.keys() == both.keys() == {"library@jax"}
    assert once_torch.keys() == both_torch.keys() == {"sdpa@torch", "math@torch"}
    found = {key: [attend()] for key, attend in once.items()}
    found |= {f"{key}'": [r, *g] for key, (r, g) in ((k, f()) for k, f in both.items())}
    for key, attend in once_torch.items():
        found[key] = [attention.heads_last(attend())]
        found[f"{key}'"] = in_numpy(both_torch[key]())
    assert len(found) == 6
    for key, results in found.items():
        for result, wanted in zip(results, exact, strict=False):
            difference = abs(np.float64(result) - wanted).max()
            assert 0 < difference < CLOSE, key


def test_everything_is_bfloat16(arrays):
    results = [each() for race in attention.in_jax(arrays, 96) for each in race.values()]
    assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype("bfloat16")}
    once, both = attention.in_torch(arrays, 96)
    found = [once["sdpa@torch"](), *both["sdpa@torch"]()[1]]
    assert {each.dtype for each in found} == {torch.bfloat16}


def test_pytorch_takes_the_backend_that_is_named(arrays):
    _, both = attention.in_torch(arrays, 96)
    names = {key: both[key]()[0].grad_fn.name() for key in both}
    assert "FlashAttention" in names["sdpa@torch"]
    assert "FlashAttention" not in names["math@torch"]


def test_on_a_gpu_there_are_more_ways_and_no_scores_for_long_ones(monkeypatch):
    device = type("Device", (), {"platform": "gpu"})
    monkeypatch.setattr(jax, "devices", lambda: [device])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert attention.shapes_here() == attention.ON_GPU
    assert attention.implementations(4096) == {"library@jax": "cudnn", "xla@jax": "xla"}
    assert attention.implementations(16384) == {"library@jax": "cudnn"}
    assert attention.backends(4096)["math@torch"] is SDPBackend.MATH
    assert attention.backends(16384).keys() == {"sdpa@torch", "flash@torch", "cudnn@torch"}


def test_sizes_have_the_same_number_of_tokens():
    for shapes in (attention.ON_CPU, attention.ON_GPU):
        assert len({length * batch for length, (batch, _, _) in shapes.items()}) == 1
    assert attention.shapes_here() == attention.ON_CPU


def test_operations_are_counted_for_half_of_the_scores():
    once, both = attention.operations(1, 8, 1, 4)
    assert once == 2 * (2 * 8 * 8 * 4) / 2
    assert both == once + 5 * (2 * 8 * 8 * 4) / 2


def test_the_plan_grows_with_the_square_of_the_length():
    taken = [attention.planned(attention.draw(1, n, 2, 16), None) for n in (256, 512)]
    assert 3 < taken[1] / taken[0] < 5
