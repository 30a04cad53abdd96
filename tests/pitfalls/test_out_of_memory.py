import gc
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.pitfalls import out_of_memory


def test_the_message_has_the_request(raises_declared):
    error = raises_declared(out_of_memory.too_large)
    assert str(2**47) in str(error)


def test_arrays_are_counted_as_long_as_they_are_alive():
    before = out_of_memory.held()
    kept = [jnp.ones((1024, 1024)) + n for n in range(3)]
    assert out_of_memory.held() - before == pytest.approx(12)
    assert ((1024, 1024), "float32", 4.0) in out_of_memory.largest(3)
    del kept
    assert out_of_memory.held() == before


def test_temporaries_are_known_before_a_call():
    points, centres = jnp.ones((4096, 64)), jnp.ones((256, 64))
    whole = out_of_memory.needed(out_of_memory.nearest, points, centres)
    assert whole["temporaries"] >= 4096 * 256 * 64 * 4 / 2**20
    parts = [
        out_of_memory.needed(out_of_memory.nearest_in_batches, points, centres, size)["temporaries"]
        for size in (1024, 64)
    ]
    assert parts[1] < parts[0] < whole["temporaries"] / 2


def test_parts_give_the_same():
    one, other = jax.random.split(jax.random.key(0))
    points, centres = jax.random.normal(one, (100, 8)), jax.random.normal(other, (7, 8))
    whole = out_of_memory.nearest(points, centres)
    parts = out_of_memory.nearest_in_batches(points, centres, 16)
    np.testing.assert_array_equal(whole, parts)


def test_an_output_reuses_the_memory_of_a_donated_argument():
    x = jnp.ones((1024, 1024))
    plain = out_of_memory.needed(out_of_memory.moved_average, x, x)
    donated = out_of_memory.needed(out_of_memory.moved_average_in_place, x, x)
    assert (plain["aliased"], donated["aliased"]) == (0, 4)
    expected = out_of_memory.moved_average(jnp.zeros(3), jnp.ones(3))
    found = out_of_memory.moved_average_in_place(jnp.zeros(3), jnp.ones(3))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux lists them")
def test_programs_take_mappings_until_they_are_forgotten():
    out_of_memory.total(jnp.ones(7))
    before = out_of_memory.mappings()
    for size in range(100, 120):
        out_of_memory.total(jnp.ones(size))
    held = out_of_memory.mappings()
    assert held - before > 40
    jax.clear_caches()
    gc.collect()
    assert out_of_memory.mappings() < held - 40
