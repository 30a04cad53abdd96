import json
import pathlib
import re
import runpy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from packaging.version import Version

from snippets.start import ten_minutes

ROOT = pathlib.Path(__file__).parents[2]
INSTALLING = (ROOT / "docs/pitfalls/installing.md").read_text("utf8")
NAMES = {"w1", "b1", "w2", "b2"}


@pytest.fixture(scope="module")
def problem():
    return ten_minutes.first_weights(8), ten_minutes.noisy_curve(32)


def exact_loss(params, batch):
    x, y = batch
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    return np.mean((hidden @ params["w2"] + params["b2"] - y) ** 2)


def in_float64(problem):
    return jax.tree.map(lambda array: np.asarray(array, np.float64), problem)


def finite_differences(params, batch, h=1e-6):
    """Return finite differences of the loss for each element of the weights."""
    found = {}
    for name, w in params.items():
        found[name] = np.empty_like(w)
        for i in np.ndindex(w.shape):
            change = np.zeros_like(w)
            change[i] = h
            above = exact_loss(params | {name: w + change}, batch)
            below = exact_loss(params | {name: w - change}, batch)
            found[name][i] = (above - below) / (2 * h)
    return found


def test_the_page_names_the_oldest_jax_that_all_pages_run_on():
    known = runpy.run_path(str(ROOT / "conf.py"))["book_versions"]
    oldest, *_, newest = sorted(known["supported"], key=Version)
    of_oldest, of_newest = (
        json.loads((ROOT / known["recordings"] / f"jax-{version}.json").read_text("utf8"))
        for version in (oldest, newest)
    )
    python = of_oldest["versions"]["python"].rpartition(".")[0]
    assert f"With Python {python} pip silently installs JAX {oldest}, the oldest" in INSTALLING
    newer = of_newest["versions"]["python"].rpartition(".")[0]
    assert f"JAX {newest.rpartition('.0.')[0]} needs Python {newer}." in INSTALLING
    types = {
        (page, text["code"]): text.get("type")
        for page, texts in of_newest["pages"].items()
        for text in texts
    }
    for page, texts in of_oldest["pages"].items():
        for text in texts:
            same = types.get((page, text["code"]), text.get("type"))
            assert text.get("type") == same, (page, text)


def test_what_an_older_jax_prints_is_in_the_list_of_errors():
    (quoted,) = re.findall(r"fails with `(TypeError: [^`]*)`", INSTALLING)
    errors = (ROOT / "docs/pitfalls/index.md").read_text("utf8")
    assert f":::{{error-entry}} {quoted}\n" in errors


def test_writing_raises_in_jax_and_only_there(raises_declared):
    raises_declared(ten_minutes.write_first, jnp.zeros(3))
    np.testing.assert_array_equal(ten_minutes.write_first(np.zeros(3)), [1, 0, 0])
    np.testing.assert_array_equal(ten_minutes.write_first(torch.zeros(3)), [1, 0, 0])


def test_the_curve_is_a_sine_with_some_noise():
    x, y = ten_minutes.noisy_curve(4000)
    assert x.shape == y.shape == (4000, 1)
    assert x.dtype == y.dtype == np.float32
    assert np.abs(x).max() <= 2
    noise = y - np.sin(2 * x)
    assert abs(noise.mean()) < 0.01
    assert noise.std() == pytest.approx(0.1, rel=0.1)


def test_the_weights_have_the_shapes_of_one_hidden_layer():
    shapes = {name: w.shape for name, w in ten_minutes.first_weights(8).items()}
    assert shapes == {"w1": (1, 8), "b1": (8,), "w2": (8, 1), "b2": (1,)}
    assert {w.dtype for w in ten_minutes.first_weights(8).values()} == {np.dtype(np.float32)}


def test_the_losses_are_the_formula(problem):
    exact = exact_loss(*in_float64(problem))
    assert ten_minutes.loss(*problem) == pytest.approx(exact, rel=1e-5)
    in_torch = ten_minutes.loss_torch(*ten_minutes.in_torch(*problem))
    assert float(in_torch.detach()) == pytest.approx(exact, rel=1e-5)
    in_tensorflow = ten_minutes.loss_tensorflow(*ten_minutes.in_tensorflow(*problem))
    assert float(in_tensorflow) == pytest.approx(exact, rel=1e-5)


def test_the_gradients_are_finite_differences_of_the_loss_in_float64(problem):
    exact = in_float64(problem)
    expected = finite_differences(*exact)
    with jax.enable_x64(True):
        value, grads = jax.value_and_grad(ten_minutes.loss)(*exact)
        assert value.dtype == np.float64
        check_grads(lambda params: ten_minutes.loss(params, exact[1]), (exact[0],), order=2)
    for name in NAMES:
        np.testing.assert_allclose(grads[name], expected[name], rtol=1e-6, atol=1e-8)


def test_one_step_is_the_same_in_all_frameworks_and_by_hand(problem):
    weights, batch = problem
    exact = finite_differences(*in_float64(problem))
    new, value = ten_minutes.train_step(weights, batch, 0.1)
    in_torch, in_tensorflow = ten_minutes.in_torch(*problem), ten_minutes.in_tensorflow(*problem)
    values = [
        ten_minutes.train_step_torch(*in_torch, 0.1),
        ten_minutes.train_step_tensorflow(*in_tensorflow, 0.1),
    ]
    np.testing.assert_allclose(list(map(float, values)), float(value), rtol=1e-5)
    for name in NAMES:
        by_hand = weights[name] - 0.1 * exact[name]
        np.testing.assert_allclose(new[name], by_hand, rtol=1e-4, atol=1e-5)
        found = in_torch[0][name].detach().cpu()
        np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(in_tensorflow[0][name], by_hand, rtol=1e-4, atol=1e-5)


def test_the_step_of_jax_gives_the_weights_away_and_the_others_change_them(problem):
    weights, batch = problem
    params = jax.tree.map(jnp.array, weights)
    ten_minutes.train_step(params, batch, 0.1)
    in_torch, in_tensorflow = ten_minutes.in_torch(*problem), ten_minutes.in_tensorflow(*problem)
    ten_minutes.train_step_torch(*in_torch, 0.1)
    ten_minutes.train_step_tensorflow(*in_tensorflow, 0.1)
    assert all(array.is_deleted() for array in params.values())
    assert not np.allclose(in_torch[0]["w2"].detach().cpu(), weights["w2"])
    assert not np.allclose(in_tensorflow[0]["w2"], weights["w2"])
    assert all(p.grad is None for p in in_torch[0].values())


@settings(max_examples=10, deadline=None)
@given(
    # Each shape is compiled anew.
    shape=st.sampled_from([(2, 10), (7, 1), (20, 3)]),
    rate=st.floats(0.001, 0.05),
    steps=st.integers(1, 4),
)
def test_the_losses_are_equal_on_the_way(shape, rate, steps):
    count, hidden = shape
    given = ten_minutes.first_weights(hidden), ten_minutes.noisy_curve(count), steps, rate
    _, losses = ten_minutes.train(*given)
    assert len(losses) == steps
    others = ten_minutes.train_torch(*given), ten_minutes.train_tensorflow(*given)
    for other in others:
        np.testing.assert_allclose(other, losses, rtol=1e-4)


def test_the_losses_of_the_page_are_equal_and_small_at_the_end():
    given = ten_minutes.first_weights(32), ten_minutes.noisy_curve(256)
    losses = ten_minutes.train_torch(*given, 200, 0.1)
    assert losses[-1] < 0.03 < 0.4 < losses[0]
    params = given[0]
    for expected in losses:
        params, value = ten_minutes.train_step(params, *given[1:], 0.1)
        assert float(value) == pytest.approx(expected, rel=1e-4)


def test_copies_are_stacked_in_front(problem):
    copied = ten_minutes.copies(problem[0], 3)
    for name in NAMES:
        assert copied[name].shape == (3, *problem[0][name].shape)
        np.testing.assert_array_equal(copied[name][2], problem[0][name])


def test_each_rate_trains_as_it_would_alone(problem):
    rates = jnp.array([0.01, 0.05, 0.1])
    runs = ten_minutes.copies(problem[0], 3)
    for _ in range(5):
        runs, together = ten_minutes.step_rates(runs, problem[1], rates)
    alone = [ten_minutes.train(*problem, 5, rate) for rate in rates]
    assert together.shape == (3,)
    np.testing.assert_allclose(together, [losses[-1] for _, losses in alone], rtol=1e-4)
    for name in NAMES:
        of_each = [params[name] for params, _ in alone]
        np.testing.assert_allclose(runs[name], of_each, rtol=1e-4, atol=1e-6)


def test_the_picture_of_the_fit_has_all_points_and_the_heights_of_the_curve_in_words():
    batch = ten_minutes.noisy_curve(7)
    xs = np.linspace(-2, 2, 17)[:, None]
    drawn = ten_minutes.draw_fit(batch, xs, np.sin(2 * xs)).data
    assert drawn.count("<circle ") == 7
    assert len(re.search(r'<polyline points="([^"]*)"', drawn)[1].split()) == 17
    assert 'aria-label="7 points, and a curve: 0.8 at -2.0, -0.1 at -1.5, -0.9 at -1.0' in drawn
    # Up is more: at 1 the sine is high, and its place near the top.
    assert "340,57 " in drawn
