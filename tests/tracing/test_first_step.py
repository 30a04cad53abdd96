import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.tracing import first_step

few = settings(max_examples=10, deadline=None)


@pytest.fixture
def measured(monkeypatch):
    """Replace the timer by one that calls the function twice and keeps the names."""
    names = []

    def measure(name, function, *args, framework=None):
        function(*args)
        result = function(*args)
        names.append(name)
        return result

    monkeypatch.setattr(first_step, "measure", measure)
    return names


@pytest.fixture(scope="module")
def data():
    return first_step.example(depth=3, width=4, batch=5)


def numpy_network(weights, x):
    for layer in np.asarray(weights, np.float64):
        x = np.tanh(x @ layer)
    return x


def test_example_has_the_sizes_asked_for(data):
    assert [array.shape for array in data] == [(3, 4, 4), (5, 4), (5, 4)]
    assert all(array.dtype == jnp.float32 for array in data)
    again = first_step.example(depth=3, width=4, batch=5)
    assert all((a == b).all() for a, b in zip(data, again, strict=True))


def test_network_is_that_of_numpy(data):
    weights, x, _ = data
    expected = numpy_network(weights, np.asarray(x, np.float64))
    np.testing.assert_allclose(first_step.network(weights, x), expected, atol=1e-5)
    np.testing.assert_allclose(first_step.scanned_network(weights, x), expected, atol=1e-5)


def test_loss_is_the_mean_squared_error(data):
    weights, x, y = data
    expected = np.mean((numpy_network(weights, np.asarray(x, np.float64)) - y) ** 2)
    np.testing.assert_allclose(first_step.loss(weights, x, y), expected, rtol=1e-5)


def test_the_step_goes_down_the_numerical_gradient(data):
    weights, x, y = (np.asarray(array, np.float64) for array in data)
    with jax.enable_x64(True):
        moved = np.asarray(first_step.train_step(jnp.array(weights), x, y))
        entry = (1, 2, 3)
        change = np.zeros_like(weights)
        change[entry] = 1e-6
        above = first_step.loss(weights + change, x, y)
        slope = float(above - first_step.loss(weights - change, x, y))
    np.testing.assert_allclose(moved[entry], weights[entry] - 0.1 * slope / 2e-6, rtol=1e-5)


def test_steps_lower_the_loss(data):
    weights, x, y = data
    before = first_step.loss(weights, x, y)
    for _ in range(20):
        weights = first_step.train_step(weights, x, y)
    assert first_step.loss(weights, x, y) < before


@pytest.mark.parametrize("stage", ["trace_anew", "lower_anew", "compile_anew", "run_anew"])
def test_anew_means_traced_again(stage, data):
    traces = 0

    def step(*args):
        nonlocal traces
        traces += 1
        return first_step.train_step(*args)

    for _ in range(3):
        getattr(first_step, stage)(step, *data)
    assert traces == 3


def test_run_anew_returns_the_result(data):
    np.testing.assert_allclose(
        first_step.run_anew(first_step.train_step, *data), first_step.train_step(*data), atol=1e-6
    )


def test_a_python_loop_grows_the_program_and_a_scan_does_not():
    loop = [first_step.count_equations(first_step.network, n) for n in (2, 4, 8)]
    scan = [first_step.count_equations(first_step.scanned_network, n) for n in (2, 4, 8)]
    assert loop[2] - loop[1] == 2 * (loop[1] - loop[0]) > 0
    assert len(set(scan)) == 1


def test_compiled_ahead_gives_the_same_step_and_refuses_other_shapes(data):
    compiled = first_step.compile_ahead(first_step.train_step, 3, 4, 5)
    np.testing.assert_allclose(compiled(*data), first_step.train_step(*data), atol=1e-6)
    weights, x, y = data
    with pytest.raises(TypeError):
        compiled(weights, x[:2], y[:2])


def test_programs_are_kept_in_the_folder_and_found_there(tmp_path, data):
    before = jax.config.jax_compilation_cache_dir
    hits = []

    def listen(event, **kwargs):
        if event.endswith("/cache_hits"):
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    with first_step.programs_kept_in(tmp_path):
        first_step.compile_anew(first_step.train_step, *data)
        files = list(tmp_path.glob("*-cache"))
        assert len(files) == 1 and not hits
        first_step.compile_anew(first_step.train_step, *data)
        assert list(tmp_path.glob("*-cache")) == files and len(hits) == 1
    assert jax.config.jax_compilation_cache_dir == before
    first_step.compile_anew(first_step.loss, *data)
    assert list(tmp_path.glob("*-cache")) == files


def test_a_folder_within_another_has_its_own_programs(tmp_path, data):
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    with first_step.programs_kept_in(outer):
        first_step.compile_anew(first_step.train_step, *data)
        with first_step.programs_kept_in(inner):
            first_step.compile_anew(first_step.train_step, *data)
        first_step.compile_anew(first_step.loss, *data)
    assert len(list(inner.glob("*-cache"))) == 1
    assert len(list(outer.glob("*-cache"))) == 2


def test_settings_come_back_after_an_error(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    with pytest.raises(ZeroDivisionError), first_step.programs_kept_in(tmp_path):
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
        raise ZeroDivisionError
    assert jax.config.jax_compilation_cache_dir == before


def test_every_measurement_has_a_name_of_its_own(measured, data):
    weights, x, y = data
    first_step.measure_steps(first_step.train_step, weights, x, y)
    first_step.measure_stages(first_step.train_step, weights, x, y)
    first_step.measure_loops(depth=2, width=4, batch=3)
    first_step.measure_ahead(first_step.train_step, weights, x, y)
    assert first_step.measure_kept(first_step.train_step, weights, x, y) == 1
    assert measured == [
        f"first_step/{name}"
        for name in ("step traced lowered compiled run loop scan ahead kept".split())
    ]


@few
@given(st.integers(1, 20), st.integers(1, 8))
def test_batches_hold_every_row_once(rows, size):
    x = np.arange(rows * 2.0).reshape(rows, 2)
    parts = first_step.batches(x, -x, size)
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), x)
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), -x)
    assert all(len(part) == size for part, _ in parts[:-1])


@few
@given(st.sampled_from([1, 4, 11]), st.sampled_from([1, 4, 8]))
def test_the_masked_loss_of_padded_batches_is_the_loss(rows, size):
    weights, x, y = first_step.example(depth=2, width=3, batch=rows)
    plain = first_step.batches(x, y, size)
    padded = first_step.padded_batches(x, y, size)
    assert {part.shape for part, *_ in padded} == {(size, 3)}
    for one, other in zip(plain, padded, strict=True):
        np.testing.assert_allclose(
            first_step.masked_loss(weights, *other), first_step.loss(weights, *one), rtol=1e-5
        )


def test_a_smaller_last_batch_is_traced_again_and_a_padded_one_is_not():
    weights, x, y = first_step.example(depth=2, width=3, batch=10)
    plain, padded = first_step.batches(x, y, 4), first_step.padded_batches(x, y, 4)
    assert len(plain) == len(padded) == 3
    assert first_step.traces_of_an_epoch(first_step.loss, weights, plain) == 2
    assert first_step.traces_of_an_epoch(first_step.masked_loss, weights, padded) == 1


def test_stage_times_takes_each_stage_once_and_ends_with_a_result(data, monkeypatch):
    seconds = iter((0, 1, 3, 6, 10))
    monkeypatch.setattr(first_step.time, "perf_counter", lambda: next(seconds))
    traced = []

    def step(*args):
        traced.append(args)
        return first_step.train_step(*args)

    times = first_step.stage_times(step, *data)
    assert times == [("trace", 1), ("lower", 2), ("compile", 3), ("run", 4)]
    assert len(traced) == 1
