"""What the lesson counts: gradients that vanish, and residuals over a step."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.learn import memory
from snippets.models import memory as network
from snippets.models import steps


def test_gradients_vanish_in_float16_alone():
    params = steps.init_mlp(jax.random.key(0))
    batch, _ = steps.digits()
    dtypes = (jnp.float32, jnp.bfloat16, jnp.float16)
    grads = [memory.gradients_in(dtype, params, batch, 1e-4) for dtype in dtypes]
    assert {leaf.dtype.name for leaf in jax.tree.leaves(grads)} == {"float32"}
    exact, low, half = map(memory.share_of_zeros, grads)
    assert exact < 0.02 and low < 0.02 and half > 0.9
    loss = steps.gradient_of(steps.cross_entropy(steps.stateless(steps.mlp)))
    expected = jax.tree.map(lambda leaf: 1e-4 * leaf, loss(params, {}, batch)[1])
    jax.tree.map(
        lambda own, other: np.testing.assert_allclose(own, other, 1e-3, 1e-9), grads[0], expected
    )


def test_the_share_of_zeros_is_one_of_all_elements():
    tree = {"kernel": jnp.array([[0.0, 1], [2, 0]]), "bias": jnp.array([0.0, -0.0])}
    assert memory.share_of_zeros(tree) == 4 / 6


def test_recomputed_layers_hold_their_inputs_and_one_layer():
    weights = network.first_params(jax.random.key(0), layers=3, width=8)
    rows = network.some_batch(jax.random.key(1), rows=4, width=8)
    moments = memory.over_a_step(weights, rows)
    assert list(moments) == [f"forward {n}" for n in (1, 2, 3)] + [
        f"backward {n}" for n in (3, 2, 1)
    ]
    kept = [moment["all kept"] for moment in moments.values()]
    assert kept == kept[::-1] and kept[0] < kept[1] < kept[2]
    again = [moment["recomputed"] for moment in moments.values()]
    # One more array (4, 8) of float32 for each layer.
    assert np.diff(again[:3]).tolist() == [128, 128]
    assert again[3:] == [again[1] + kept[0], again[0] + kept[0], kept[0]]
