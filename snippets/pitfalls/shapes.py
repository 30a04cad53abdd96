"""Shapes that do not fit, and calls that come from another library or an older JAX."""

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "layer": (TypeError, "contracting dimensions to have the same shape"),
    "weigh_rows": (ValueError, "Incompatible shapes for broadcasting"),
    "side_by_side": (
        TypeError,
        "Cannot concatenate arrays with shapes that differ",
    ),
    "stacked": (ValueError, "All input arrays must have the same shape"),
    "folded": (TypeError, "cannot reshape array of shape"),
    "total_of_a_list": (TypeError, "sum requires ndarray or scalar arguments"),
    "first_half_of_a_key": (
        IndexError,
        "Too many indices: array is 0-dimensional",
    ),
    "moved_as_in_torch": (AttributeError, "object has no attribute 'cuda'"),
    "mapped_as_before": (AttributeError, "has no attribute 'tree_map'"),
}


def layer(x, weights):
    """Return `x` (batch, n) times `weights` (m, n); raises TypeError unless n is m."""
    return x @ weights


def layer_as_in_torch(x, weights):
    """Return `x` (batch, n) times the transpose of `weights` (m, n), as PyTorch."""
    return x @ weights.T


def weigh_rows(x, weights):
    """Return `x` (n, m) times `weights` (n,); raises ValueError unless n is m."""
    return x * weights


def weigh_rows_by_column(x, weights):
    """Return each row of `x` (n, m) times its number of `weights` (n,)."""
    return x * weights[:, None]


def side_by_side(a, b):
    """Return `a` (n, p) above `b` (m, q); raises TypeError unless p is q."""
    return jnp.concatenate([a, b])


def stacked(rows):
    """Return arrays of one shape as the rows of one; raises ValueError for several."""
    return jnp.stack(rows)


def stacked_with_zeros(rows):
    """Return arrays (n,) of several lengths as the rows of one, with zeros behind."""
    longest = max(map(len, rows))
    return jnp.stack([jnp.pad(row, (0, longest - len(row))) for row in rows])


def folded(x, width):
    """Return `x` (n,) in rows of `width`, with one row too many; raises TypeError."""
    return x.reshape(x.size // width + 1, width)


def total_of_a_list(numbers):
    """Sum a list of numbers as NumPy would; raises TypeError."""
    return jnp.sum(numbers)


def first_half_of_a_key(key):
    """Index a typed key (), which has no axis; raises IndexError."""
    return key[0]


def moved_as_in_torch(x):
    """Move `x` to a GPU as PyTorch does; raises AttributeError."""
    return x.cuda()


def mapped_as_before(function, tree):
    """Apply a function to each leaf by a name that is gone; raises AttributeError."""
    return jax.tree_map(function, tree)
