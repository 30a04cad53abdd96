import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.benchmarks import race, sorting

X, INDEX = sorting.draw(700)
FRAMEWORKS = {
    "jax": (sorting.IN_JAX, lambda x, index: (jnp.asarray(x), jnp.asarray(index))),
    "torch": (sorting.IN_TORCH, sorting.with_long_index(torch.tensor)),
    "tensorflow": (sorting.IN_TENSORFLOW, lambda x, index: (tf.constant(x), tf.constant(index))),
    "numpy": (sorting.IN_NUMPY, lambda x, index: (x, index)),
}
FLOATS = st.floats(width=32, allow_nan=False)


def exactly():
    x = X.astype(np.float64)
    return {
        "gather": x[INDEX],
        "scatter": np.bincount(INDEX, x, 700),
        "cumsum": np.cumsum(x),
        "sort": np.sort(x),
    }


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_operation_is_exact(framework):
    found = sorting.contenders([(*FRAMEWORKS[framework], framework)], 700)
    for (name, exact), operation in zip(exactly().items(), found, strict=True):
        assert operation == name
        result = found[name][framework]()
        assert "float32" in str(result.dtype)
        assert race.relative_error(result, exact) < 1e-6, name


def test_all_teams_take_part():
    teams = [(*FRAMEWORKS[framework], framework) for framework in ("jax", "torch")]
    found = sorting.contenders(teams, 10)
    assert {name: list(race) for name, race in found.items()} == {
        name: ["jax", "torch"] for name in exactly()
    }


def test_indices_repeat_and_are_in_range():
    assert X.dtype == np.float32
    assert INDEX.dtype == np.int32
    assert INDEX.min() >= 0
    assert INDEX.max() < 700
    assert len(set(INDEX.tolist())) < 600


def test_torch_gets_indices_of_64_bits():
    assert sorting.with_long_index(torch.tensor)(X, INDEX)[1].dtype == torch.int64


def test_the_relative_error_by_hand():
    assert race.relative_error(np.float32([3, 5]), np.array([3.0, 4.0])) == 0.2


@settings(deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=6))
def test_floats_are_sorted_by_way_of_integers(values):
    x = np.array(values, np.float32)
    found = sorting.sort_as_integers(jnp.asarray(x))
    np.testing.assert_array_equal(found, np.sort(x))


def test_other_ways_to_sort():
    np.testing.assert_array_equal(sorting.sort_in_numpy(jnp.asarray(X)), np.sort(X))
    assert isinstance(sorting.sort_in_numpy(jnp.asarray(X)), jax.Array)
    np.testing.assert_array_equal(sorting.largest(X), np.sort(X)[::-1][:100])


@pytest.mark.parametrize(
    "way", [sorting.scan_sum, functools.partial(sorting.scan_sum, unroll=8), sorting.tree_sum]
)
def test_other_ways_to_add_up(way):
    assert race.relative_error(jax.jit(way)(X), exactly()["cumsum"]) < 1e-6


def test_two_ways_to_count():
    groups = INDEX % sorting.GROUPS
    exact = np.bincount(groups, minlength=sorting.GROUPS)
    np.testing.assert_array_equal(sorting.count_by_comparing(groups), exact)
    np.testing.assert_array_equal(sorting.count_by_bincount(groups), exact)


def test_comparing_floats_takes_more_steps_than_comparing_integers():
    floats = sorting.comparison_steps(sorting.compiled_text(jnp.sort, X))
    integers = sorting.comparison_steps(sorting.compiled_text(jnp.sort, INDEX))
    assert integers == 1
    assert floats > 5
    assert sorting.comparison_steps(sorting.compiled_text(jnp.cos, X)) == 0


def test_of_a_comparison_only_what_computes_is_counted():
    text = """
%other (p.1: f32[]) -> f32[] {
  ROOT %p.1 = f32[] parameter(0)
}

%less.2 (a: f32[], b: f32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  %zero = f32[] constant(0)
  %sum = f32[] add(%a, %zero)
  ROOT %lt = pred[] compare(%sum, %b), direction=LT
}

ENTRY %main (x: f32[9]) -> f32[9] {
  %x = f32[9]{0} parameter(0)
  ROOT %sort = f32[9]{0} sort(%x), dimensions={0}, to_apply=%less.2, metadata={}
}
"""
    assert sorting.comparison_steps(text) == 2


def test_instructions_are_counted():
    # What pages run; XLA's older emitters, where tests use them, would take the scatter apart.
    older = "fusion_emitters" in os.environ["XLA_FLAGS"]
    emitters = {"xla_cpu_use_fusion_emitters": True} if older else {}
    lowered = jax.jit(sorting.IN_JAX["scatter"]).lower(X, INDEX)
    text = lowered.compile(compiler_options=emitters).as_text()
    assert sorting.count(text, "scatter") == 1
    assert sorting.count(text, "sort") == 0
    text = sorting.compiled_text(jnp.sort, X)
    assert sorting.count(text, "sort") == 1
    assert sorting.count(text, "scatter") == 0


def test_additions_are_counted_for_each_element():
    assert sorting.additions(lambda x: x + 1, jnp.asarray(X)) == 1.0
    assert sorting.additions(jnp.cumsum, jnp.asarray(X)) > 2


def test_each_call_brings_its_numbers_to_the_host(monkeypatch):
    copies = []
    copied = jnp.copy
    monkeypatch.setattr(jnp, "copy", lambda x: copies.append(copied(x)) or copies[-1])
    x = jnp.asarray(X)
    sorting.sort_in_numpy(x)
    sorting.sort_in_numpy(x)
    assert len(copies) == 2 and copies[0] is not copies[1]
