import gc
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from jax.experimental import io_callback

from snippets.pitfalls import side_effects

NUMBERS = jnp.arange(1.0, 5.0)


def lines(capsys):
    jax.effects_barrier()
    return capsys.readouterr().out.splitlines()


def test_print_in_a_loop_shows_tracers_once(capsys):
    assert side_effects.total_with_print(NUMBERS) == 10
    (line,) = lines(capsys)
    assert line.count("JitTracer") == 2


def test_debug_print_shows_numbers_in_each_iteration(capsys):
    assert side_effects.total_with_debug_print(NUMBERS) == 10
    expected = zip((1.0, 2.0, 3.0, 4.0), (0.0, 1.0, 3.0, 6.0), strict=True)
    assert lines(capsys) == [f"adding {x} to {total}" for x, total in expected]


def test_ordered_prints_run_on_one_device_only():
    mesh = jax.make_mesh((8,), ("rows",))
    rows = jax.device_put(jnp.arange(8.0), jax.NamedSharding(mesh, jax.P("rows")))

    @jax.jit
    def shown(x):
        jax.debug.print("{}", x.sum(), ordered=True)
        return x

    with pytest.raises(ValueError, match="not supported for more than 1 device"):
        shown(rows)


def test_a_branch_that_was_not_taken_prints_under_vmap(capsys):
    def root(x):
        jax.debug.print("root of {}", x)
        return jnp.sqrt(x)

    xs = jnp.array([4.0, -1.0])
    choose = jax.vmap(lambda x: jax.lax.cond(x >= 0, root, jnp.zeros_like, x))
    assert choose(xs).tolist() == [2, 0]
    assert sorted(lines(capsys)) == ["root of -1.0", "root of 4.0"]


def test_a_list_gets_one_tracer_and_the_result_all_sums():
    (seen,) = side_effects.collect_by_append(NUMBERS)
    assert isinstance(seen, jax.core.Tracer)
    assert side_effects.collect_by_scan(NUMBERS).tolist() == [1, 3, 6, 10]


@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_a_counter_outside_counts_one_pass(rounds):
    assert side_effects.count_in_closure(rounds) == 1
    assert side_effects.count_in_carry(rounds) == rounds


def test_a_numpy_array_that_is_overwritten_is_not_read_again():
    table = np.array([1.0, 2.0])
    shift = side_effects.shift_by_table(table)
    assert shift(jnp.zeros(2)).tolist() == [1, 2]
    table[:] = 50
    assert shift(jnp.zeros(2)).tolist() == [1, 2]
    assert shift(jnp.zeros((1, 2))).tolist() == [[1, 2]]
    assert jnp.array(table).tolist() == [1, 2]
    assert jnp.sin(table).tolist() == jnp.sin(jnp.array([1.0, 2.0])).tolist()
    assert jnp.array(table.copy()).tolist() == [50, 50]


def test_another_view_of_the_table_is_read_and_so_is_the_table_in_the_end():
    table = np.array([1.0, 2.0])
    shift = side_effects.shift_by_table(table)
    shift(jnp.zeros(2))
    table[:] = 50
    assert jnp.array(table[:]).tolist() == [50, 50]
    del shift
    gc.collect()
    assert jnp.array(table).tolist() == [50, 50]


def test_another_table_is_another_constant():
    for number in (1.0, 2.0):
        shift = side_effects.shift_by_table(np.array([number, number]))
        assert shift(jnp.zeros(2)).tolist() == [number, number]


def test_next_is_called_once():
    batches = iter([10.0, 20.0, 30.0])
    assert side_effects.steps_that_call_next(batches, 3) == [10, 10, 10]
    assert list(batches) == [20, 30]


def test_a_generator_is_empty_at_the_second_trace():
    weights = (weight for weight in (1.0, 2.0, 3.0))
    weighted = jax.jit(lambda x: sum(weight * x for weight in weights))
    assert [weighted(1.0), weighted(2.0), weighted(jnp.ones(2))] == [6, 12, 0]


def test_a_debug_callback_sees_each_value():
    losses = [0.5, 0.25, 0.125]
    assert side_effects.log_losses(losses) == losses


def test_an_error_in_a_debug_callback_appears_where_the_result_is_used():
    def refuse(value):
        raise RuntimeError("refused")

    @jax.jit
    def step(x):
        jax.debug.callback(refuse, x)
        return x + 1

    with pytest.raises(jax.errors.JaxRuntimeError, match="refused"):
        step(1.0).block_until_ready()


def test_callbacks_run_for_each_row_and_twice_under_checkpoint():
    seen = []

    def squared(x):
        jax.debug.callback(lambda value: seen.append(float(value)), x)
        return x * x

    jax.vmap(squared)(jnp.arange(3.0))
    jax.effects_barrier()
    assert sorted(seen) == [0, 1, 2]
    for function, times in ((squared, 1), (jax.checkpoint(squared), 2)):
        seen.clear()
        jax.grad(function)(3.0)
        jax.effects_barrier()
        assert seen == [3] * times


def test_host_functions_compute_what_numpy_does():
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(jax.jit(side_effects.host_sine)(x), np.sin(x))
    rows = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(side_effects.sines_of_rows_at_once(rows), np.sin(rows))
    each = jax.vmap(lambda row: side_effects.host_sine(row, vmap_method="sequential"))
    np.testing.assert_array_equal(each(rows), np.sin(rows))


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (lambda sine, x: sine(x), 1),
        (side_effects.five_sines, 1),
        (lambda sine, x: jax.lax.fori_loop(0, 5, lambda i, y: sine(y), x), 5),
        (side_effects.unused_sine, 0),
    ],
)
def test_the_compiler_decides_how_often_a_pure_callback_runs(function, calls):
    assert side_effects.count_host_calls(function, jnp.ones(2)) == calls


def test_a_pure_callback_must_return_what_was_declared():
    wrong = jax.ShapeDtypeStruct((3,), jnp.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Incorrect output shape"):
        jax.block_until_ready(jax.pure_callback(np.sin, wrong, jnp.ones(2)))


def test_vmap_and_grad_refuse_callbacks(raises_declared):
    raises_declared(side_effects.sines_of_rows, jnp.ones((2, 3)))
    raises_declared(side_effects.gradient_of_host_sine, 0.0)
    raises_declared(side_effects.log_rows_ordered, jnp.arange(3.0))


def test_io_callbacks_run_once_for_each_row_and_have_no_gradient():
    seen = []

    def logged(x):
        io_callback(lambda value: seen.append(float(value)), None, x)
        return x

    jax.vmap(logged)(jnp.arange(3.0))
    jax.effects_barrier()
    assert sorted(seen) == [0, 1, 2]
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        jax.grad(logged)(1.0)


def test_a_derivative_of_ones_own():
    gradient = jax.jit(jax.grad(side_effects.sine_with_derivative))
    assert gradient(0.0) == 1
    assert gradient(1.0) == pytest.approx(np.cos(1.0))


def test_an_ordered_callback_runs_in_each_iteration():
    total, seen = side_effects.log_in_order(jnp.arange(4.0))
    jax.effects_barrier()
    assert total == 6
    assert seen == [0, 1, 2, 3]


@pytest.fixture
def nothing_traced():
    """Start a test as a new process would: no function traced yet."""
    jax.clear_caches()


@pytest.mark.usefixtures("nothing_traced")
def test_a_global_is_frozen_until_a_new_shape_comes(monkeypatch):
    np.testing.assert_array_equal(side_effects.scaled(np.ones(2)), [2, 2])
    monkeypatch.setitem(side_effects.SETTINGS, "factor", 10.0)
    np.testing.assert_array_equal(side_effects.scaled(np.ones(2)), [2, 2])
    np.testing.assert_array_equal(side_effects.scaled(np.ones(3)), [10, 10, 10])


def test_torch_follows_a_global_and_tensorflow_does_not(monkeypatch):
    assert side_effects.scaled_torch(torch.ones(2)).tolist() == [2, 2]
    assert side_effects.scaled_tensorflow(tf.ones(2)).numpy().tolist() == [2, 2]
    monkeypatch.setitem(side_effects.SETTINGS, "factor", 10.0)
    assert side_effects.scaled_torch(torch.ones(2)).tolist() == [10, 10]
    assert side_effects.scaled_tensorflow(tf.ones(2)).numpy().tolist() == [2, 2]


def test_a_tracer_is_nothing_for_numpy(raises_declared):
    raises_declared(side_effects.hand_to_numpy, 2.0)


@pytest.mark.usefixtures("nothing_traced")
def test_a_numpy_random_number_is_frozen():
    drawn = {float(side_effects.frozen_noise(0.0)) for _ in range(5)}
    assert len(drawn) == 1


def test_tensorflow_prints_once_and_shows_values_with_its_own_print(capfd):
    @tf.function
    def doubled(x):
        print("x is", x)
        tf.print("the result is", 2 * x, output_stream=sys.stdout)
        return 2 * x

    for _ in range(2):
        doubled(tf.ones(2))
    first, *others = capfd.readouterr().out.splitlines()
    assert first.startswith("x is Tensor(")
    assert others == ["the result is [2 2]"] * 2


def test_torch_compile_keeps_python_prints(capfd):
    @torch.compile(backend="eager")
    def doubled(x):
        result = 2 * x
        print("the result is", result)
        return result

    for _ in range(2):
        doubled(torch.ones(2))
    lines = capfd.readouterr().out.splitlines()
    assert lines == ["the result is tensor([2., 2.])"] * 2
