import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal
import tensorflow
import torch

from snippets.benchmarks import convolution, race

CPU_ONLY = pytest.mark.skipif(jax.default_backend() != "cpu", reason="of a CPU's libraries")


@pytest.fixture
def operands():
    return convolution.images_and_kernel(6)


def test_operands_are_float32_and_scaled(operands):
    images, kernel = operands
    assert images.shape == (8, 6, 6, 32)
    assert kernel.shape == (3, 3, 32, 32)
    assert images.dtype == kernel.dtype == np.float32
    assert convolution.exact_convolution(*operands).std() == pytest.approx(1, abs=0.3)


def test_the_exact_convolution_is_scipys(operands):
    images, kernel = operands
    exact = convolution.exact_convolution(images, kernel)
    for out in (0, 5):
        expected = sum(
            scipy.signal.correlate2d(
                images[2, :, :, c].astype(float), kernel[:, :, c, out].astype(float), mode="same"
            )
            for c in range(32)
        )
        np.testing.assert_allclose(exact[2, :, :, out], expected, atol=1e-12)


def test_every_contender_is_the_exact_convolution(operands):
    exact = convolution.exact_convolution(*operands)
    contenders = (
        convolution.in_jax(6) | convolution.in_torch(6, torch.tensor) | convolution.in_tensorflow(6)
    )
    assert len(contenders) == 8
    for key, function in contenders.items():
        result = convolution.in_order(function())
        assert race.largest_difference(result, exact) < 1e-5, key


def test_the_order_of_axes_that_look_alike_is_not_guessed():
    with pytest.raises(ValueError, match="must be the channels"):
        convolution.in_order(np.ones((8, 32, 32, 32)))


def test_channels_last_changes_the_memory_and_not_the_values(operands):
    tensors = convolution.torch_operands(*operands, torch.tensor)
    for before, after in zip(tensors, convolution.channels_last(tensors), strict=True):
        assert torch.equal(before, after)
        assert before.is_contiguous()
        assert after.stride()[1] == 1


def test_operations_are_counted_as_the_compiler_counts_them_without_the_border():
    images, kernel = convolution.images_and_kernel(64)
    cost = jax.jit(convolution.convolve).lower(images, kernel).compile().cost_analysis()
    assert 0.9 < cost["flops"] / convolution.operations(64) <= 1


def test_the_shape_in_the_records_is_that_of_a_plane():
    assert convolution.plane(5).shape == (5, 5)


@CPU_ONLY
def test_the_other_layout_costs_two_copies(operands):
    images, kernel = operands
    assert convolution.program(convolution.convolve, images, kernel) == ["__ynn_fusion"]
    turned = convolution.channels_first(images)
    first, product, last = convolution.program(convolution.convolve_channels_first, turned, kernel)
    assert product == "__ynn_fusion"
    assert "transpose" in first
    assert "transpose" in last


@CPU_ONLY
def test_the_xla_of_tensorflow_calls_the_library_of_jax_from_2_22_on(operands):
    version = tuple(map(int, tensorflow.__version__.split(".")[:2]))
    expected = "__ynn_fusion" if version >= (2, 22) else "convolution"
    assert convolution.xla_of_tensorflow(*operands) == [expected]


def test_a_program_without_a_library_is_listed_by_its_operations():
    assert convolution.program(lambda x: jnp.sort(x), np.ones(8, np.float32)) == ["sort"]


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:blk,undef,src\n"
            "onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx2,forward\n",
            ["reorder jit:blk", "convolution jit:avx2"],
        ),
        ("", []),
    ],
)
def test_what_onednn_logs_is_read(monkeypatch, log, said):
    monkeypatch.setattr(convolution, "printed", lambda *args: log)
    assert convolution.torch_log(None, None) == said


def test_tensorflow_names_the_kernel_of_a_convolution():
    assert [op for op in convolution.tensorflow_kernels(8) if op.endswith("Conv2D")]
