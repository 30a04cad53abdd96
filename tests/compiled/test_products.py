"""Matmuls and convolutions, and what the records of their programs show."""

import pathlib

import numpy as np
import pytest

from compiled.options import compile_targets
from executed.options import Options
from snippets.compiled import products

ROOT = pathlib.Path(__file__).parents[2]


def test_matmul():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 7)), rng.normal(size=(7, 3))
    np.testing.assert_allclose(products.matrix_product(a, b), a @ b, rtol=1e-5)


def test_convolution_is_a_sum_over_shifted_images():
    rng = np.random.default_rng(0)
    images, kernel = rng.normal(size=(2, 6, 5, 3)), rng.normal(size=(3, 3, 3, 4))
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = sum(
        padded[:, i : i + 6, j : j + 5] @ kernel[i, j] for i in range(3) for j in range(3)
    )
    result = products.convolution(np.float32(images), np.float32(kernel))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def product(recorded):
    return recorded("products.matrix_product")


@pytest.fixture(scope="module")
def convolution(recorded):
    return recorded("products.convolution")


def test_a_matmul_is_one_kernel_everywhere(product):
    for target, facts in product.targets.items():
        (kernel,) = facts.kernels
        assert kernel.operations == ("dot_general",)
        inside = "\n".join(facts.hlo)
        assert ("convolution(" in inside) == target.startswith("tpu")
        if target.startswith("gpu"):
            assert kernel.name.startswith("gemm_fusion")
    assert "ynn_fusion" in "\n".join(product.targets["cpu"].hlo)


def test_the_operations_of_a_matmul_are_counted_alike(product):
    counts = [facts.cost.flops for facts in product.targets.values() if facts.cost]
    assert len(set(counts)) == 1
    assert counts[0] == pytest.approx(2 * 3000**3, rel=1e-6)


def test_tpus_pad_the_last_axis_to_tiles(product):
    memory = {target: f.memory.arguments for target, f in product.targets.items()}
    assert memory["cpu"] == memory["gpu-h200"] == memory["gpu-a100"] == 2 * 4 * 3000 * 3000
    assert memory["tpu-v5e"] == memory["tpu-v6e"] == 2 * 4 * 3000 * 3072


def test_half_of_each_tile_of_the_images_stays_empty(convolution):
    memory = {target: f.memory.arguments for target, f in convolution.targets.items()}
    images, kernel = 4 * 32 * 56 * 56 * 64, 4 * 3 * 3 * 64 * 128
    assert memory["cpu"] == images + kernel
    assert memory["tpu-v5e"] == 2 * images + kernel


def test_an_a100_transposes_around_the_convolution(convolution):
    kernels = {t: f.kernels for t, f in convolution.targets.items()}
    for target in ("gpu-h200", "gpu-a100"):
        whats = [kernel.what for kernel in kernels[target]]
        assert "custom-call __cudnn$convForward" in whats
    assert len(kernels["gpu-h200"]) == 2
    assert len(kernels["gpu-a100"]) == 4
    text = {t: "\n".join(f.hlo) for t, f in convolution.targets.items()}
    assert "dim_labels=bf01_oi01->bf01" in text["gpu-a100"]
    assert "dim_labels=bf01_oi01->bf01" not in text["gpu-h200"]
    memory = {t: f.memory.temporaries for t, f in convolution.targets.items()}
    assert memory["gpu-a100"] > 100 * memory["gpu-h200"]


LEAST = {"gpu-h200": 109e-6, "gpu-a100": 346e-6, "tpu-v5e": 274e-6, "tpu-v6e": 67.5e-6}


def test_the_operations_of_a_matmul_decide_how_long_it_takes_at_least(product):
    targets = compile_targets(Options.from_file(ROOT / "conf.py"))
    for target, least in LEAST.items():
        found = product.number(target, "least", targets[target].peaks)
        assert found == pytest.approx(least, rel=0.01)
    assert product.number("cpu", "least", targets["cpu"].peaks) is None
