import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snippets.devices import one_code


@given(arrays(np.float32, (5, 2), elements=st.integers(-99, 99), unique=True))
@settings(deadline=None)
def test_standardise_equals_numpy(x):
    expected = (x - x.mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(one_code.standardise(jnp.array(x)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", jax.devices())
def test_the_result_is_where_the_argument_is(device):
    x = jax.device_put(jnp.arange(3.0), device)
    for function in (one_code.standardise, jax.jit(one_code.standardise)):
        assert function(x[:, None]).devices() == {device}
    result = one_code.add_positions(x)
    assert result.devices() == {device}
    assert result.tolist() == [0, 2, 4]


def test_torch_needs_the_device_to_be_named(raises_declared):
    elsewhere = torch.ones(3, device="meta")
    raises_declared(one_code.add_positions_cpu_torch, elsewhere)
    assert one_code.add_positions_torch(elsewhere).device.type == "meta"
    assert one_code.add_positions_torch(torch.ones(3)).tolist() == [1, 2, 3]
    assert one_code.add_positions_cpu_torch(torch.ones(3)).tolist() == [1, 2, 3]


def test_every_platform_gets_the_same_stablehlo():
    x = jnp.ones((3, 2))
    texts = {
        one_code.lowered_text(one_code.standardise, x, p) for p in ("cpu", "cuda", "rocm", "tpu")
    }
    assert len(texts) == 1


def test_export_for_all_runs_here():
    x = jnp.arange(6.0).reshape(3, 2)
    exported = one_code.export_for_all(one_code.standardise, x)
    assert exported.platforms == ("cpu", "cuda", "tpu")
    np.testing.assert_allclose(exported.call(x), one_code.standardise(x), rtol=1e-6)


def test_what_was_exported_for_another_platform_does_not_run(raises_declared):
    raises_declared(one_code.run_elsewhere, one_code.standardise, jnp.ones((3, 2)))


@pytest.mark.parametrize("length", [1, 2, 7])
def test_an_open_length_takes_every_length(length):
    exported = one_code.export_open(one_code.add_positions)
    assert exported.call(jnp.zeros(length)).tolist() == list(range(length))


def test_halves_need_an_even_length(raises_declared):
    raises_declared(one_code.export_halves)
    exported = one_code.export_open(one_code.halves, "2*n")
    assert exported.call(jnp.arange(6.0)).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="2\\*n"):
        exported.call(jnp.arange(5.0))


def test_a_length_that_is_always_enough_decides_a_comparison():
    def last(x):
        return x if x.shape[0] < 8 else x[-8:]

    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="comparison"):
        one_code.export_open(last)
    exported = one_code.export_open(last, "n + 8")
    assert exported.call(jnp.arange(9.0)).tolist() == list(range(1, 9))


def test_a_python_branch_is_fixed_while_tracing():
    x = jnp.zeros(2)
    expected = 1.0 if jax.default_backend() == "cpu" else 2.0
    assert one_code.add_by_backend(x).tolist() == [expected, expected]
    for platform in ("cpu", "cuda", "tpu"):
        assert one_code.constants(one_code.lowered_text(one_code.add_by_backend, x, platform)) == [
            expected
        ]


def test_platform_dependent_is_fixed_while_lowering():
    x = jnp.zeros(2)
    assert (one_code.add_by_platform(x) == one_code.add_by_backend(x)).all()
    for platform, constant in (("cpu", 1.0), ("cuda", 2.0), ("tpu", 2.0)):
        text = one_code.lowered_text(one_code.add_by_platform, x, platform)
        assert one_code.constants(text) == [constant]
    exported = one_code.export_for_all(one_code.add_by_platform, x)
    assert one_code.constants(exported.mlir_module().replace(" loc(#loc)", "")) == [1.0, 2.0]
    assert (exported.call(x) == one_code.add_by_backend(x)).all()


def test_a_tracer_is_on_no_device(raises_declared):
    raises_declared(one_code.ask_device_inside_jit, jnp.arange(3.0))


def test_64_bit_types_are_off_unless_asked_for(raises_declared):
    wide = np.array([1 + 1e-12])
    assert jnp.asarray(wide).dtype == jnp.float32
    assert jnp.asarray(wide)[0] == 1
    assert one_code.double_precision(jnp.asarray, wide).dtype == np.float64
    assert int(one_code.double_precision(jnp.array, 2**31)) == 2**31
    raises_declared(one_code.too_large_integer)
