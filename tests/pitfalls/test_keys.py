import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from snippets.pitfalls import keys

SHAPES = [(2,), (2,), (3,)]


@pytest.fixture
def key():
    return jax.random.key(0)


def test_a_key_made_inside_draws_the_same_at_each_call():
    data = jnp.arange(100)
    assert jnp.array_equal(keys.pick(data, 5), keys.pick(data, 5))


def test_layers_from_one_key_start_alike(key):
    first, second, longer = keys.layers_alike(key, SHAPES)
    assert jnp.array_equal(first, second)
    assert jnp.array_equal(first, longer[:2])


def test_layers_from_a_split_do_not(key):
    weights = keys.layers_independent(key, SHAPES)
    assert [w.shape for w in weights] == SHAPES
    assert len({w[0].item() for w in weights}) == 3


def masks(draw):
    return len({str(draw()) for _ in range(4)})


def test_jit_freezes_the_key_of_an_iterator(key):
    assert masks(keys.make_mask(iter(jax.random.split(key, 10)), 8)) == 4
    assert masks(jax.jit(keys.make_mask(iter(list(jax.random.split(key, 10))), 8))) == 1
    generator = (jax.random.fold_in(key, n) for n in itertools.count())
    assert masks(jax.jit(keys.make_mask(generator, 8))) == 1


def test_the_number_of_the_step_gives_each_step_a_mask_without_tracing_again(key):
    keys.mask_of_step.clear_cache()
    assert len({str(keys.mask_of_step(key, step, n=8)) for step in range(4)}) == 4
    assert keys.mask_of_step._cache_size() == 1
    assert jnp.array_equal(keys.mask_of_step(key, 2, n=8), keys.mask_of_step(key, 2, n=8))


def different_rows(rows):
    return len({str(row) for row in rows})


def test_one_key_under_vmap_draws_the_same_for_each_row(key):
    assert different_rows(keys.noisy_rows_alike(key, jnp.zeros((3, 2)))) == 1


@pytest.mark.parametrize("fixed", [keys.noisy_rows, keys.noisy_rows_by_number])
def test_rows_with_keys_of_their_own_differ(key, fixed):
    rows = jnp.arange(6.0).reshape(3, 2)
    assert different_rows(fixed(key, rows) - rows) == 3
    assert jnp.array_equal(fixed(key, rows), keys.noisy_rows(key, rows))


def test_the_number_of_the_device_gives_each_device_numbers(key):
    mesh = jax.make_mesh((8,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))

    def noise(fold, rows):
        number = jax.lax.axis_index("rows") if fold else 0
        return keys.add_noise_to_row(jax.random.fold_in(key, number), rows)

    for fold, different in ((False, 1), (True, 8)):
        mapped = jax.shard_map(
            lambda rows, fold=fold: noise(fold, rows),
            mesh=mesh,
            in_specs=PartitionSpec("rows"),
            out_specs=PartitionSpec("rows"),
        )
        assert different_rows(mapped(jnp.zeros((8, 2)))) == different


@pytest.mark.parametrize(
    ("loop", "different"), [(keys.looped, 1), (keys.scanned, 1), (keys.scanned_keys, 5)]
)
def test_loops_that_keep_their_key_repeat_one_number(key, loop, different):
    draws = loop(key, 5)
    assert draws.shape == (5,)
    assert len(set(draws.tolist())) == different


def test_the_check_refuses_a_scan_that_keeps_its_key(raises_declared):
    raises_declared(keys.scanned_checked, jax.random.key(1), 3)


def test_mask_and_noise_of_one_key_are_one_draw(key):
    mask, noise = keys.mask_and_noise(key, 10_000)
    assert jnp.array_equal(mask, noise < 0)
    assert abs(noise.mean()) < 0.05
    assert -0.85 < noise[mask].mean() < -0.75


@pytest.mark.parametrize("other", ["normal", "exponential", "gumbel"])
def test_distributions_of_one_key_are_in_the_order_of_the_uniform_numbers(key, other):
    order = jnp.argsort(getattr(jax.random, other)(key, (1000,)))
    assert jnp.array_equal(order, jnp.argsort(jax.random.uniform(key, (1000,))))


@pytest.mark.parametrize("n", [8, 100])
def test_a_shuffle_by_the_parent_repeats_the_child(key, n):
    order, scores = keys.order_and_scores(key, n)
    assert sorted(order.tolist()) == list(range(n))
    assert jnp.array_equal(order, jnp.argsort(scores))


def test_integers_of_the_parent_are_those_of_the_child(key):
    child = jax.random.bits(jax.random.split(key)[1], (9,))
    assert jnp.array_equal(jax.random.randint(key, (9,), 0, 256), child % 256)


def test_keys_of_a_longer_split_begin_with_those_of_a_shorter(key):
    pairs = keys.split_twice(key)
    assert pairs[:2] == pairs[2:4]
    assert len(set(pairs)) == 3
    with jax.threefry_partitionable(False):
        assert len(set(keys.split_twice(key))) == 5


def test_seeds_are_cut_to_32_bits_and_folded_floats_to_integers(key):
    assert jax.random.key(1) == jax.random.key(2**32 + 1)
    assert jax.random.key(-1) == jax.random.key(2**32 - 1)
    assert jax.random.fold_in(key, 0.1) == jax.random.fold_in(key, 0.9)
    with jax.enable_x64(True):
        assert jax.random.key(1) != jax.random.key(2**32 + 1)


def test_long_seeds_have_keys_of_their_own():
    seeds = [0, 1, 2**32, 2**32 + 1, 2**33, 2**63, 2**64 - 1]
    made = {tuple(jax.random.key_data(keys.key_of(seed)).tolist()) for seed in seeds}
    assert len(made) == len(seeds)
    assert keys.key_of(-1) == keys.key_of(2**64 - 1)


def test_many_keys_are_no_key(raises_declared, key):
    raises_declared(keys.draw_from_many, key)
    many = jax.random.split(key, 3)
    assert jax.vmap(jax.random.normal)(many).shape == (3,)


def test_a_seed_is_no_key(raises_declared):
    raises_declared(keys.draw_from_seed, 0)


@pytest.mark.parametrize(
    ("mistake", "arguments", "found"),
    [
        (keys.layers_alike, (SHAPES,), True),
        (keys.noisy_rows_alike, (np.zeros((3, 2)),), False),
        (keys.looped, (3,), True),
        (keys.scanned, (3,), True),
        (keys.mask_and_noise, (3,), True),
        (keys.order_and_scores, (3,), True),
        (keys.split_twice, (), True),
        (keys.layers_independent, (SHAPES,), False),
        (keys.noisy_rows, (np.zeros((3, 2)),), False),
        (keys.scanned_keys, (3,), False),
    ],
)
def test_what_the_check_says(mistake, arguments, found):
    assert keys.says_reuse(mistake, jax.random.key(0), *arguments) is found
