import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.tracing import first_step


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
    np.testing.assert_allclose(first_step.checkpointed_network(weights, x), expected, atol=1e-5)


def test_what_is_compiled_by_depth_is_the_same_gradient(data):
    weights, x, _ = data
    found = [
        first_step.gradient_of(forward)(weights, x)
        for forward in (
            first_step.network,
            first_step.scanned_network,
            first_step.checkpointed_network,
        )
    ]
    assert found[0].shape == weights.shape
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)
    np.testing.assert_allclose(found[2], found[0], atol=1e-5)
    # One more step in the first layer raises the sum by what the gradient says.
    step = 1e-3 * jnp.zeros_like(weights).at[0, 0, 0].set(1.0)
    rise = (first_step.network(weights + step, x) - first_step.network(weights - step, x)).sum()
    np.testing.assert_allclose(rise / 2e-3, found[0][0, 0, 0], rtol=1e-2)


def test_a_checkpointed_layer_is_computed_again_for_the_gradient(data):
    weights, x, _ = data
    jaxpr = {
        forward: str(jax.make_jaxpr(first_step.gradient_of(forward))(weights, x))
        for forward in (first_step.scanned_network, first_step.checkpointed_network)
    }
    tanhs = {forward: text.count(" tanh") for forward, text in jaxpr.items()}
    assert tanhs[first_step.checkpointed_network] == tanhs[first_step.scanned_network] + 1


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


@pytest.mark.parametrize("stage", ["trace_anew", "lower_anew", "compile_anew"])
def test_a_new_function_is_traced_again(stage, data):
    traces = 0

    def step(*args):
        nonlocal traces
        traces += 1
        return first_step.train_step(*args)

    for _ in range(3):
        getattr(first_step, stage)(step, *data)
    assert traces == 3


def test_a_python_loop_grows_the_program_and_a_scan_does_not():
    loop = [first_step.count_equations(first_step.network, n) for n in (2, 4, 8)]
    scan = [first_step.count_equations(first_step.scanned_network, n) for n in (2, 4, 8)]
    assert loop[2] - loop[1] == 2 * (loop[1] - loop[0]) > 0
    assert len(set(scan)) == 1


def test_compiled_ahead_gives_the_same_step_and_refuses_other_shapes(data):
    compiled = first_step.compile_ahead(first_step.train_step, 3, 4, 5)
    np.testing.assert_allclose(compiled(*data), first_step.train_step(*data), atol=1e-6)
    weights, x, y = data
    with pytest.raises(TypeError, match="Argument types differ from the types"):
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


def test_only_what_took_long_enough_to_compile_is_kept(tmp_path, data):
    with first_step.programs_kept_in(tmp_path, shortest=1000.0):
        first_step.compile_anew(first_step.loss, *data)
    assert not list(tmp_path.iterdir())


def test_compile_kept_writes_one_program_and_finds_it(tmp_path, data):
    for _ in range(2):
        first_step.compile_kept(tmp_path, first_step.train_step, *data)
        assert len(list(tmp_path.glob("*-cache"))) == 1


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
