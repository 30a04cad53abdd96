import itertools

import equinox as eqx
import jax
import numpy as np
import pytest
from flax import nnx

from snippets.models import module_calls


def test_every_call_changes_all_arrays_alike():
    calls = module_calls.calls(4)
    for name in ("jit", "nnx_split_once", "filter_jit", "equinox_arrays"):
        leaves = jax.tree.leaves(eqx.filter(calls[name](), eqx.is_array))
        assert sorted(float(leaf[0]) for leaf in leaves) == pytest.approx([0, 0, 0.999, 0.999])
    model = module_calls.NnxStack(2, rngs=nnx.Rngs(0))
    steps = itertools.count(1)
    for step in (
        nnx.jit(module_calls.shrink_nnx),
        nnx.jit(module_calls.shrink_nnx, graph=False),
    ):
        step(model)
        expected = 0.999 ** next(steps)
        np.testing.assert_allclose(model.layers[1].scale[...], expected, rtol=1e-6)
    cached = nnx.cached_partial(nnx.jit(module_calls.shrink_nnx), model)
    cached()
    np.testing.assert_allclose(model.layers[0].scale[...], 0.999**3, rtol=1e-6)
    equinox = module_calls.EquinoxStack(2)
    assert len(jax.tree.leaves(eqx.filter(equinox, eqx.is_array))) == 4
    assert {"nnx_jit", "nnx_jit_tree", "nnx_cached"} < calls.keys()
