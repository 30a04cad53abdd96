import jax
import jax.numpy as jnp

from snippets.appendix import post_code


def test_an_array_with_values_is_no_tracer_and_a_traced_one_is():
    assert not post_code.is_tracer(jnp.ones(3))
    seen = []
    jax.jit(lambda x: seen.append(post_code.is_tracer(x)) or x)(1.0)
    assert seen == [True]


def test_only_arguments_and_results_of_jax_are_tracers():
    assert post_code.tracers_inside(jnp.ones((2, 3)), jnp.ones(3)) == {
        "x": True,
        "outside": False,
        "jnp.array(x.shape)": True,
        "x.shape[0]": False,
        "np.prod(x.shape)": False,
    }


def test_busy_cores_is_a_quotient():
    assert post_code.busy_cores(6.0, 3.0) == 2.0
    assert post_code.busy_cores(post_code.POST_PROCESSOR_SECONDS, post_code.POST_WALL_SECONDS) == 4
