import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.benchmarks import accelerator, transfers

FUNCTIONS = {
    "smooth": (transfers.smooth, lambda x: 1 / (1 + np.exp(-x)), (50,), 1),
    "product": (accelerator.product, np.matmul, (20, 20), 2),
}


@pytest.fixture
def second_device(monkeypatch):
    """Let the last of the virtual CPU devices count as an accelerator."""
    devices = jax.devices()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(
        jax, "devices", lambda name=None: devices if name else [devices[-1], *devices]
    )
    return devices[-1]


def test_without_an_accelerator_there_is_the_cpu_alone():
    assert accelerator.processors() == {"cpu": jax.devices("cpu")[0]}
    assert list(accelerator.contenders(transfers.smooth, accelerator.draw(3))) == ["cpu"]


def test_each_contender_computes_where_it_says(second_device):
    found = accelerator.contenders(transfers.smooth, accelerator.draw(10))
    assert found["cpu"]().device == jax.devices("cpu")[0] != second_device
    assert found["accelerator"]().device == second_device
    assert isinstance(found["with_copies"](), np.ndarray)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_compute_the_same(second_device, name):
    function, in_numpy, shape, count = FUNCTIONS[name]
    arrays = accelerator.draw(*shape, count=count)
    exact = in_numpy(*(array.astype(np.float64) for array in arrays))
    contenders = accelerator.contenders(function, arrays)
    assert len(contenders) == 3
    for function in contenders.values():
        np.testing.assert_allclose(function(), exact, rtol=1e-5)


def test_an_orbit_is_a_thousand_steps_of_the_logistic_map():
    jaxpr = str(jax.make_jaxpr(accelerator.orbit)(jnp.ones(2)))
    assert "length=1000" in jaxpr
    assert "3.7" in jaxpr
    assert accelerator.orbit(jnp.float32([0, 1])).tolist() == [0, 0]
    # The map is chaotic: of other numbers only the range is certain.
    (x,) = accelerator.draw(100)
    assert 0 < accelerator.orbit(x).min() <= accelerator.orbit(x).max() <= 3.7 / 4 + 1e-6


def test_numbers_lie_between_0_and_1():
    a, b = accelerator.draw(4, 5, count=2)
    assert a.shape == b.shape == (4, 5)
    assert a.dtype == np.float32
    assert not np.array_equal(a, b)
    assert 0 <= min(a.min(), b.min()) <= max(a.max(), b.max()) < 1
