import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.benchmarks import float64

SIZES = {"product": 20, "gauss": 300, "solve": 20}
CONTENDERS = {
    "JAX": float64.contenders_jax,
    "PyTorch": float64.contenders_torch,
    "TensorFlow": float64.contenders_tensorflow,
}


@pytest.fixture(params=SIZES)
def case(request):
    return request.param, SIZES[request.param]


@pytest.mark.parametrize("framework", CONTENDERS)
def test_float64_is_exact_to_its_digits_and_float32_to_its_own(framework, case):
    with jax.enable_x64(True):
        found = float64.errors(CONTENDERS[framework](*case), *case)
    limits = {"float64": (0, 1e-13), "float32": (1e-9, 1e-4)}
    for key, error in found.items():
        low, high = limits[key[:7]]
        assert low <= error < high


def test_results_have_the_dtype_that_was_asked_for(case):
    with jax.enable_x64(True):
        for contenders in CONTENDERS.values():
            for key, function in contenders(*case).items():
                assert np.asarray(function()).dtype.name == key[:7]


def test_inputs_can_be_written_in_float32(case):
    for array in (*float64.inputs(*case), *float64.system(30)):
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array.astype(np.float32), array)


def test_the_solution_of_the_system_is_exact():
    matrix, right, solution = float64.system(40)
    np.testing.assert_array_equal(matrix @ solution, right)
    assert np.linalg.matrix_rank(matrix) == 40


def test_a_wrong_digit_is_seen(case):
    with jax.enable_x64(True):
        right = np.asarray(float64.contenders_jax(*case)["float64"]())
    assert float64.error_of(*case, right * (1 + 1e-7)) == pytest.approx(1e-7, rel=1e-3)


def test_a_product_is_compared_on_its_first_rows():
    a, b = float64.inputs("product", 20)
    product = a @ b
    product[float64.ROWS :] = 0
    assert float64.error_of("product", 20, product) < 1e-14


def test_without_the_switch_the_error_is_that_of_float32_and_nothing_warns():
    matrix, right, _ = float64.system(100)
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jnp.linalg.solve(matrix, right)
    assert found.dtype == jnp.float32
    assert float64.error_of("solve", 100, found) > 1e-9


def test_outside_of_the_block_a_sum_is_float32_and_a_product_float64():
    with jax.enable_x64(True):
        x = jnp.ones(3, jnp.float64)
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (x + 1).dtype == jnp.float32
        assert jnp.matmul(x, x).dtype == jnp.float64


def test_the_same_operations_touch_twice_the_bytes():
    with jax.enable_x64(True):
        for operation in ("product", "gauss"):
            flops, touched = float64.costs(operation, 128, "float32")
            assert float64.costs(operation, 128, "float64") == (flops, 2 * touched)


def test_corrections_bring_the_digits_of_float64():
    matrix, right, solution = float64.system(100)
    with jax.enable_x64(True):
        found = float64.refined_solve(matrix, right)
        assert found.dtype == jnp.float64
    assert np.linalg.norm(found - solution) < 1e-12 * np.linalg.norm(solution)
