"""Arguments that `jit` refuses or freezes, and what to pass instead."""

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "activate_by_dynamic_name": (TypeError, "Error interpreting argument to"),
    "with_label": (TypeError, "which is not a valid JAX type"),
    "call_jitted_method": (TypeError, "static_argnums"),
    "updated_by_map": (ValueError, "pytree structure error"),
}


@jax.jit
def activate_by_dynamic_name(x, kind="relu"):
    """Apply relu or tanh to `x`; raises TypeError where `kind` is passed."""
    return jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)


@jax.jit(static_argnames="kind")
def activate(x, kind="relu"):
    """Apply relu or tanh to `x`, for `kind` "relu" or "tanh"."""
    return jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)


@jax.jit
def with_label(x):
    """Return a string and the sum of `x`; raises TypeError."""
    return "sum", jnp.sum(x)


@jax.jit(static_argnames="axes")
def summed(x, axes):
    """Return the sum of `x` over a tuple of axes."""
    return jnp.sum(x, axis=axes)


@jax.jit(static_argnames="factors")
def scaled(x, factors):
    """Return `x` times each of a tuple of numbers."""
    return x * math.prod(factors)


class Scaler:
    """Scales arrays by a factor that can change."""

    def __init__(self, factor):
        self.factor = factor

    @jax.jit(static_argnums=0)
    def apply(self, x):
        """Return `x` times the factor at the time of tracing."""
        return self.factor * x


class TracedScaler(Scaler):
    """A scaler whose method is jitted as if it were a function of arrays."""

    @jax.jit
    def apply(self, x):
        """Return `x` times the factor."""
        return self.factor * x


def call_jitted_method():
    """Pass an ordinary object through jit, as `self`; raises TypeError."""
    return TracedScaler(2.0).apply(1.0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Scale:
    """Scales arrays by a factor, a pytree that may pass through `jit`."""

    factor: jax.Array

    @jax.jit
    def apply(self, x):
        """Return `x` times the factor."""
        return self.factor * x


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StaticTable:
    """A table (n,) in a field that is wrongly static."""

    values: jax.Array = field(metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """A table (n,), and the name of its unit."""

    values: jax.Array
    unit: str = field(metadata={"static": True})


@jax.jit
def look_up(table, i):
    """Return entry `i` of a table."""
    return table.values[i]


def power(base, x, n):
    """Return base · xⁿ."""
    return base * x**n


def product(table, x):
    """Return the table times x, elementwise."""
    return table * x


@jax.jit
def rescaled(x, scale=None):
    """Return x times `scale`, or x."""
    return x if scale is None else x * scale


def as_matrix(columns):
    """Return the values of a dictionary, stacked in its order."""
    return jnp.stack(list(columns.values()))


def updated_by_map(params, updates):
    """Add two pytrees; raises ValueError where their structures differ."""
    return jax.tree.map(jnp.add, params, updates)
