import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.start import key_reuse

seeds = st.integers(0, 2**31 - 1)


@given(seeds, st.floats(0.1, 0.9))
@settings(max_examples=20, deadline=None)
def test_dropout_keeps_or_drops_and_scales(seed, rate):
    x = jnp.arange(1.0, 51.0)
    y = np.asarray(key_reuse.dropout(jax.random.key(seed), x, rate))
    kept = y != 0
    np.testing.assert_allclose(y[kept], np.asarray(x)[kept] / (1 - rate), rtol=1e-5)


def test_dropout_keeps_the_mean():
    y = key_reuse.dropout(jax.random.key(0), jnp.ones(20_000), 0.3)
    assert y.mean() == pytest.approx(1, abs=0.02)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_one_key_drops_the_same_elements_twice(seed):
    key, x = jax.random.key(seed), jnp.ones(1000)
    once = key_reuse.dropout(key, x) != 0
    assert ((key_reuse.dropout_twice_one_key(key, x) != 0) == once).all()


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_two_keys_keep_a_quarter(seed):
    x = jnp.ones(20_000)
    assert key_reuse.share_kept(key_reuse.dropout_twice(jax.random.key(seed), x)) == pytest.approx(
        0.25, abs=0.03
    )


def test_torch_keeps_a_quarter():
    torch.manual_seed(0)
    assert key_reuse.share_kept(key_reuse.dropout_twice_torch(torch.ones(20_000))) == pytest.approx(
        0.25, abs=0.03
    )


def test_signal_and_noise_correlation():
    key = jax.random.key(0)
    together = jnp.corrcoef(*key_reuse.signal_and_noise_one_key(key, 10_000))[0, 1]
    apart = jnp.corrcoef(*key_reuse.signal_and_noise(key, 10_000))[0, 1]
    assert together == pytest.approx(1, abs=1e-4)
    assert apart == pytest.approx(0, abs=0.05)


def test_masks():
    key = jax.random.key(0)
    same = np.asarray(key_reuse.masks_one_key(key, 4))
    assert (same == same[0]).all()
    different = np.asarray(key_reuse.masks_by_step(key, 4))
    assert len({row.tobytes() for row in different}) == 4
    assert (different == np.asarray(key_reuse.masks_by_step(key, 4))).all()


def test_another_shape_does_not_help():
    key = jax.random.key(0)
    assert (jax.random.normal(key, (3,)) == jax.random.normal(key, (5,))[:3]).all()


def test_the_check_of_keys_finds_reuse(raises_declared):
    raises_declared(key_reuse.checked_dropout_twice, jax.random.key(0), jnp.ones(4))


def test_the_check_of_keys_accepts_the_right_version():
    with jax.debug_key_reuse(True):
        key_reuse.dropout_twice(jax.random.key(0), jnp.ones(4))
