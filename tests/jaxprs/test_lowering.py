import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from snippets.jaxprs import lowering
from snippets.jaxprs.reading import selu, shifted_product

X = np.linspace(-1, 1, 8, dtype=np.float32)
few = settings(max_examples=10, deadline=None)


def compiled(function, *args):
    return jax.jit(function).lower(*args).compile()


def test_stablehlo_of_selu_has_its_operations():
    counts = lowering.count_operations(lowering.stablehlo(selu, X))
    assert counts["exponential"] == counts["compare"] == counts["select"] == 1
    assert counts["multiply"] == 2 and counts["subtract"] == 1
    assert list(counts) == sorted(counts)


def test_count_operations_counts():
    text = "%0 = stablehlo.add %a, %b\n%1 = stablehlo.add %0, %b\n%2 = stablehlo.sine %1"
    assert lowering.count_operations(text) == {"add": 2, "sine": 1}


def test_optimized_selu_is_one_fusion_and_names_no_place():
    hlo = lowering.optimized_hlo(selu, X)
    assert hlo.startswith("HloModule jit_selu\n")
    assert "ENTRY" in hlo and "exponential" in hlo
    assert lowering.count_fusions(hlo) == 1
    for word in ("/", "metadata", "backend_config", "FileNames", ".py"):
        assert word not in hlo


def test_nothing_but_tables_and_attributes_is_left_out():
    full = compiled(shifted_product, np.ones((3, 4)), np.ones(4)).as_text()
    shown = lowering.optimized_hlo(shifted_product, np.ones((3, 4)), np.ones(4))
    assert full.count(" = ") == shown.count(" = ") + full.split("\n\n")[0].count(" = ")
    assert "dot(" in shown


def test_the_result_of_compiled_selu_is_unchanged():
    expected = 1.05 * np.where(X > 0, X, 1.67 * (np.exp(X) - 1))
    np.testing.assert_allclose(compiled(selu, X)(X), expected, rtol=1e-4, atol=1e-6)


@few
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_flops_of_a_matmul_are_the_closed_form(n, m, k):
    a, b = np.ones((n, m), np.float32), np.ones((m, k), np.float32)
    closed_form = lowering.matmul_flops(n, m, k)
    assert lowering.costs(jax.jit(jnp.matmul).lower(a, b))["flops"] == closed_form
    # A single long sum is made of partial sums, whose additions to zeros count too.
    assume(n * k > 1 or m <= 32)
    assert lowering.costs(compiled(jnp.matmul, a, b))["flops"] == pytest.approx(
        closed_form, abs=n * k
    )


def test_flops_of_the_post_s_matmul_without_running_it():
    square = jax.ShapeDtypeStruct((3000, 3000), jnp.float32)
    flops = lowering.costs(jax.jit(jnp.matmul).lower(square, square))["flops"]
    assert lowering.matmul_flops(3000, 3000, 3000) == 54e9
    assert flops == pytest.approx(54e9, rel=1e-6)


@few
@given(st.integers(2, 60), st.integers(2, 60))
def test_flops_of_the_shifted_matmul(n, m):
    lowered = jax.jit(shifted_product).lower(np.ones((n, m)), np.ones(m))
    additions = n * m + m
    assert lowering.costs(lowered)["flops"] == additions + lowering.matmul_flops(n, m, 1)


def test_a_stage_without_counts_has_costs_of_none():
    class OnAnAccelerator:
        def cost_analysis(self):
            return None

    assert set(lowering.costs(OnAnAccelerator()).values()) == {None}
    assert set(lowering.costs(OnAnAccelerator())) == set(lowering.costs(jax.jit(selu).lower(X)))


@few
@given(st.integers(2, 3000))
def test_costs_of_selu_are_five_and_one_for_each_entry(n):
    x = np.ones(n, np.float32)
    before = lowering.costs(jax.jit(selu).lower(x))
    after = lowering.costs(compiled(selu, x))
    for counted in (before, after):
        assert counted["flops"] == 5 * n
        assert counted["transcendentals"] == n
    assert after["bytes accessed"] == 2 * 4 * n
    assert before["bytes accessed"] > 5 * after["bytes accessed"]


@few
@given(st.integers(8, 64), st.integers(8, 64))
def test_memory_of_the_gram_trace_holds_the_square_matrix(n, m):
    needed = lowering.memory(compiled(lowering.gram_trace, np.ones((n, m), np.float32)))
    assert needed["arguments"] == 4 * n * m
    assert needed["result"] == 4
    assert needed["in between"] >= 4 * m * m


def test_gram_trace_is_that_of_numpy():
    x = np.random.default_rng(0).normal(size=(4, 5))
    expected = np.trace(np.exp(x.T @ x))
    np.testing.assert_allclose(lowering.gram_trace(x), expected, rtol=1e-4)


def test_each_platform_gets_its_own_cholesky():
    matrix = np.eye(3, dtype=np.float32)
    texts = {
        platform: lowering.stablehlo_for(platform, jnp.linalg.cholesky, matrix)
        for platform in ("cpu", "cuda", "tpu")
    }
    assert any("lapack" in name for name in lowering.custom_calls(texts["cpu"]))
    assert any("cusolver" in name for name in lowering.custom_calls(texts["cuda"]))
    assert lowering.custom_calls(texts["tpu"]) == []
    assert "cholesky" in lowering.count_operations(texts["tpu"])
    assert "cholesky" not in lowering.count_operations(texts["cpu"])


def test_selu_is_the_same_stablehlo_for_all_platforms():
    texts = [lowering.stablehlo_for(p, selu, X) for p in ("cpu", "cuda", "tpu")]
    assert len({str(lowering.count_operations(text)) for text in texts}) == 1
    assert not any(lowering.custom_calls(text) for text in texts)
