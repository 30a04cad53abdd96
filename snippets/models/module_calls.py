"""Calls that change many small arrays, of jax.jit, Flax NNX and Equinox."""

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import nnx


class NnxStack(nnx.Module):
    """Layers in NNX with two small arrays each."""

    def __init__(self, layers, *, rngs):
        self.layers = nnx.List(
            [nnx.LayerNorm(4, rngs=rngs) for _ in range(layers)]
        )


class EquinoxStack(eqx.Module):
    """Layers in Equinox with two small arrays each."""

    layers: list

    def __init__(self, layers):
        self.layers = [eqx.nn.LayerNorm(4) for _ in range(layers)]


def shrink(params):
    """Return a pytree with every array a little smaller."""
    return jax.tree.map(lambda w: 0.999 * w, params)


def shrink_nnx(model):
    """Make every parameter of an NNX module a little smaller.

    Returns one of them, to wait for.
    """
    params = shrink(nnx.state(model, nnx.Param))
    nnx.update(model, params)
    return jax.tree.leaves(params)[-1]


@jax.jit
def shrink_split(graphdef, params):
    """Return the parameters after `shrink_nnx`, of a split module."""
    model = nnx.merge(graphdef, params)
    shrink_nnx(model)
    return nnx.state(model, nnx.Param)


def shrink_equinox(model):
    """Return an Equinox module with every array a little smaller."""
    arrays, rest = eqx.partition(model, eqx.is_array)
    return eqx.combine(shrink(arrays), rest)


def calls(leaves):
    """Return {name: a call that changes as many arrays as `leaves` says}."""
    model = NnxStack(leaves // 2, rngs=nnx.Rngs(0))
    graphdef, params = nnx.split(model)
    cached = nnx.cached_partial(nnx.jit(shrink_nnx), model)
    plain = [
        {"scale": jnp.ones(4), "bias": jnp.zeros(4)}
        for _ in range(leaves // 2)
    ]
    equinox = EquinoxStack(leaves // 2)
    arrays = eqx.filter(equinox, eqx.is_array)
    jitted, filtered = jax.jit(shrink), eqx.filter_jit(shrink_equinox)
    of_graph, of_tree = nnx.jit(shrink_nnx), nnx.jit(shrink_nnx, graph=False)
    return {
        "jit": lambda: jitted(plain),
        "nnx_jit": lambda: of_graph(model),
        "nnx_jit_tree": lambda: of_tree(model),
        "nnx_cached": cached,
        "nnx_split_once": lambda: shrink_split(graphdef, params),
        "filter_jit": lambda: filtered(equinox),
        "equinox_arrays": lambda: jitted(arrays),
    }
