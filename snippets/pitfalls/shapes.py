"""Shapes that do not match, and calls from other libraries or older JAX."""

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
    """Return `x` (batch, n) @ `weights` (m, n); raises TypeError if n ≠ m."""
    return x @ weights


def layer_as_in_torch(x, weights):
    """Return `x` (batch, n) @ `weights`.T, `weights` (m, n) as in PyTorch."""
    return x @ weights.T


def weigh_rows(x, weights):
    """Return `x` (n, m) times `weights` (n,); raises ValueError if n ≠ m."""
    return x * weights


def weigh_rows_by_column(x, weights):
    """Return each row of `x` (n, m) times its element of `weights` (n,)."""
    return x * weights[:, None]


def side_by_side(a, b):
    """Return `a` (n, p) above `b` (m, q); raises TypeError unless p is q."""
    return jnp.concatenate([a, b])


def stacked(rows):
    """Stack arrays of one shape; raises ValueError if shapes differ."""
    return jnp.stack(rows)


def stacked_with_zeros(rows):
    """Stack vectors of different lengths, padded with zeros at the end."""
    longest = max(map(len, rows))
    return jnp.stack([jnp.pad(row, (0, longest - len(row))) for row in rows])


def folded(x, width):
    """Reshape `x` (n,) to one row of `width` too many; raises TypeError."""
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
    """Map over leaves by a name that is gone; raises AttributeError."""
    return jax.tree_map(function, tree)


def cross_in_plane(a, b):
    """Return the third component () of the cross product of a and b (2,)."""
    return a[0] * b[1] - a[1] * b[0]
