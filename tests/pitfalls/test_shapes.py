import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.pitfalls import shapes


def test_weights_from_torch_are_transposed(raises_declared):
    torch.manual_seed(0)
    linear = torch.nn.Linear(3, 2, bias=False)
    weights = linear.weight.detach().numpy()
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    raises_declared(shapes.layer, jnp.asarray(x), jnp.asarray(weights))
    ours = shapes.layer_as_in_torch(jnp.asarray(x), jnp.asarray(weights))
    np.testing.assert_allclose(ours, linear(torch.tensor(x)).detach(), rtol=1e-5)
    with pytest.raises(ValueError, match="label 'i'"):
        jnp.einsum("bi,oi->bo", x, jnp.ones((2, 4)))


def test_weights_of_rows_need_an_axis(raises_declared):
    x, weights = jnp.ones((4, 3)), jnp.arange(4.0)
    raises_declared(shapes.weigh_rows, x, weights)
    assert shapes.weigh_rows_by_column(x, weights).sum(1).tolist() == [0, 3, 6, 9]


def test_a_missing_axis_makes_a_table_of_differences():
    assert (jnp.ones((4, 1)) - jnp.ones(4)).shape == (4, 4)
    with (
        jax.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="jax_numpy_rank_promotion"),
    ):
        jnp.ones((4, 1)) - jnp.ones(4)


def test_only_one_axis_may_differ(raises_declared):
    a, b = jnp.ones((2, 3)), jnp.ones((2, 4))
    raises_declared(shapes.side_by_side, a, b)
    assert jnp.concatenate([a, b], axis=1).shape == (2, 7)
    rows = [jnp.ones(2), jnp.ones(3)]
    raises_declared(shapes.stacked, rows)
    assert shapes.stacked_with_zeros(rows).tolist() == [[1, 1, 0], [1, 1, 1]]


def test_a_new_shape_has_as_many_numbers(raises_declared):
    raises_declared(shapes.folded, jnp.arange(6.0), 3)
    assert jnp.arange(6.0).reshape(-1, 3).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_lists_are_refused(raises_declared):
    raises_declared(shapes.total_of_a_list, [1.0, 2.0, 3.0])
    assert jnp.sum(jnp.array([1.0, 2.0, 3.0])) == 6


def test_a_typed_key_is_one_element(raises_declared):
    key = jax.random.key(0)
    raises_declared(shapes.first_half_of_a_key, key)
    first, second = jax.random.split(key)
    assert first.shape == () and first != second


def test_methods_are_those_of_numpy(raises_declared):
    x = jnp.arange(3.0)
    raises_declared(shapes.moved_as_in_torch, x)
    assert jax.device_put(x, jax.devices()[0]).tolist() == [0, 1, 2]
    y, tensor = jnp.ones((2, 3)), torch.ones(2, 3)
    assert y[None].shape == tuple(tensor.unsqueeze(0).shape)
    assert y.transpose(1, 0).shape == tuple(tensor.permute(1, 0).shape)
    assert x.reshape(3, 1).shape == tuple(torch.ones(3).view(3, 1).shape)


def test_a_name_that_is_gone(raises_declared):
    tree = {"w": jnp.ones(3)}
    raises_declared(shapes.mapped_as_before, jnp.shape, tree)
    assert jax.tree.map(jnp.shape, tree) == {"w": (3,)}


@given(st.lists(st.integers(-9, 9), min_size=4, max_size=4))
@settings(deadline=None, max_examples=20)
def test_the_cross_product_in_the_plane_is_the_third_component(values):
    a, b = jnp.array(values[:2], float), jnp.array(values[2:], float)
    in_space = jnp.cross(jnp.append(a, 0), jnp.append(b, 0))
    assert shapes.cross_in_plane(a, b) == in_space[2]


def test_the_cross_product_of_vectors_in_the_plane_is_gone():
    a, b = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    assert shapes.cross_in_plane(a, b) == -2
    if jax.__version_info__ >= (0, 12):
        with pytest.raises(ValueError, match="Dimension must be 3 for cross product"):
            jnp.cross(a, b)
    else:
        assert jnp.cross(a, b) == -2
