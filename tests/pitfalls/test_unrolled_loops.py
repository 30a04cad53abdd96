import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from snippets.pitfalls import unrolled_loops

XS = jnp.linspace(-1, 1, 9)


def levels(xs):
    level, found = 0.0, []
    for x in np.asarray(xs, np.float64):
        level = 0.9 * level + 0.1 * np.tanh(x)
        found.append(level)
    return found


@pytest.mark.parametrize(
    "function",
    [
        unrolled_loops.levels_by_loop,
        unrolled_loops.levels_by_scan,
        unrolled_loops.unrolled(unrolled_loops.levels_by_scan, 2),
    ],
)
def test_every_loop_gives_the_same_levels(function):
    np.testing.assert_allclose(jax.jit(function)(XS), levels(XS), rtol=1e-5, atol=1e-7)


def grown(function):
    return [unrolled_loops.equations(function, jnp.ones(n)) for n in unrolled_loops.LENGTHS]


def test_pythons_loop_grows_with_its_length_and_scan_does_not():
    loop, scan = grown(unrolled_loops.levels_by_loop), grown(unrolled_loops.levels_by_scan)
    per_step, around = (6, 1) if jax.__version_info__ < (0, 11) else (4, 2)
    assert loop == [per_step * n + around for n in unrolled_loops.LENGTHS]
    assert len(set(scan)) == 1


WRAPPERS = {"plain": lambda step: step, "jitted": jax.jit}


def blocks(n):
    return [jnp.full((4, 8, 8), 0.1 * i) for i in range(n)], jnp.linspace(0, 1, 32).reshape(4, 8)


def test_a_jitted_block_is_lowered_once_and_compiled_each_time():
    lowered, compiled = {}, {}
    for name, wrap in WRAPPERS.items():
        gradients = [unrolled_loops.gradient_of_blocks(wrap).lower(*blocks(n)) for n in (4, 8)]
        lowered[name] = [len(each.as_text().splitlines()) for each in gradients]
        compiled[name] = gradients[1].compile().as_text()
    (plain_4, plain_8), (jitted_4, jitted_8) = lowered["plain"], lowered["jitted"]
    # What another block adds: its own operations, or a call in each direction.
    assert jitted_8 - jitted_4 < (plain_8 - plain_4) / 10
    assert {" call(" in text for text in compiled.values()} == {False}
    plain, jitted = (len(compiled[name].splitlines()) for name in WRAPPERS)
    assert jitted == pytest.approx(plain, rel=0.02)


def test_jitting_the_block_does_not_change_the_gradient():
    plain, jitted = (
        unrolled_loops.gradient_of_blocks(wrap)(*blocks(3)) for wrap in WRAPPERS.values()
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), plain, jitted)
    loss = functools.partial(unrolled_loops.blocks_loss, unrolled_loops.block)
    check_grads(loss, blocks(2), order=1, modes=["rev"], rtol=0.05, atol=0.05)


@pytest.mark.skipif(not hasattr(jax, "Inline"), reason="JAX 0.11 has it first")
def test_late_inlining_keeps_calls_to_a_block():
    wrap = functools.partial(jax.jit, inline=jax.Inline.XLA_LATE)
    text = unrolled_loops.gradient_of_blocks(wrap).lower(*blocks(3)).compile().as_text()
    assert text.count(" call(") >= 3


def test_loops_in_loops_multiply():
    counts = [
        unrolled_loops.equations(lambda n=n: unrolled_loops.grid_sum(n, n)) for n in (5, 10, 20)
    ]
    assert counts == [2 * n * n for n in (5, 10, 20)]
    assert unrolled_loops.equations(lambda: unrolled_loops.grid_sum_at_once(20, 20)) < 20


def test_the_grid_has_one_sum():
    expected = np.cos(np.outer(np.arange(4), np.arange(6))).sum()
    assert unrolled_loops.grid_sum(4, 6) == pytest.approx(expected, rel=1e-5)
    assert unrolled_loops.grid_sum_at_once(4, 6) == pytest.approx(expected, rel=1e-5)


def test_unrolling_gives_the_compiler_more_and_the_jaxpr_stays():
    ways = [unrolled_loops.unrolled(unrolled_loops.levels_by_scan, n) for n in (1, 2, 4)]
    lines = [unrolled_loops.lines_to_compile(way, jnp.ones(8)) for way in ways]
    assert lines == sorted(set(lines))
    assert len({unrolled_loops.equations(way, jnp.ones(8)) for way in ways}) == 1


def test_states_are_those_of_a_loop():
    xs, w = jnp.linspace(0, 1, 24).reshape(4, 2, 3), jnp.linspace(-1, 1, 9).reshape(3, 3)
    h = np.zeros((2, 3))
    for x in np.asarray(xs):
        h = np.tanh(h @ np.asarray(w) + x)
    for unroll in (1, 3):
        found = unrolled_loops.states_by_scan(xs, w, unroll)
        np.testing.assert_allclose(found, h, rtol=1e-5)
