import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn import tracing

ARGUMENTS = np.ones((4, 1)), np.ones((8, 4)), np.ones((8, 1))
X = np.arange(12.0).reshape(3, 4)
Y = np.arange(4.0)
PRODUCT = (X + 1) @ (Y + 1)


@pytest.fixture(scope="module")
def pairs():
    return tracing.Pairs(tracing.shifted_calls())


@pytest.fixture
def nothing_traced():
    """Start a test as a new process would: no function traced yet."""
    jax.clear_caches()


@pytest.mark.usefixtures("nothing_traced")
def test_prints_tracers_once_and_is_silent_the_second_time(capfd):
    first = tracing.shifted_product(X, Y)
    assert capfd.readouterr().out.splitlines() == [
        "x is JitTracer(float32[3,4])",
        "y is JitTracer(float32[4])",
        "the result is JitTracer(float32[3])",
    ]
    second = tracing.shifted_product(X, Y)
    assert capfd.readouterr().out == ""
    np.testing.assert_array_equal(first, PRODUCT)
    np.testing.assert_array_equal(second, PRODUCT)


@pytest.mark.usefixtures("nothing_traced")
def test_new_values_of_the_same_shape_are_not_traced(capfd):
    tracing.shifted_product(X, Y)
    capfd.readouterr()
    np.testing.assert_array_equal(tracing.shifted_product(2 * X, Y), (2 * X + 1) @ (Y + 1))
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("nothing_traced")
def test_float64_becomes_float32_unless_x64_is_on(capfd):
    assert X.dtype == np.float64
    assert tracing.shifted_product(X, Y).dtype == jnp.float32
    with jax.enable_x64(True):
        assert tracing.shifted_product(X, Y).dtype == jnp.float64
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "x is JitTracer(float32[3,4])"
    assert lines[3] == "x is JitTracer(float64[3,4])"


def test_a_tracer_has_no_value(raises_declared):
    raises_declared(tracing.ask_for_value, 2.0)


def test_the_equations_are_those_of_the_jaxpr_in_its_names():
    printed = str(jax.make_jaxpr(tracing.loss)(*ARGUMENTS))
    found = tracing.equations(tracing.loss, *ARGUMENTS)
    kinds = [e.primitive.name for e in jax.make_jaxpr(tracing.loss)(*ARGUMENTS).jaxpr.eqns]
    assert [text.split()[2] for _, text in found] == kinds
    for _, text in found:
        assert f"{text.split(' = ')[0]} = {text.split()[2]}" in printed


def test_each_equation_is_of_the_line_that_calls_for_it():
    asked = {"dot_general": "x @ w", "tanh": "jnp.tanh", "sub": "hidden - y", "div": "jnp.mean"}
    found = {
        text.split()[2]: line for (_, line), text in tracing.equations(tracing.loss, *ARGUMENTS)
    }
    for kind, code in asked.items():
        assert code in found[kind]


def test_python_runs_each_line_in_the_first_call_and_none_in_the_second():
    trace = tracing.Trace(tracing.loss, *ARGUMENTS)
    assert trace.lines == [len(trace.steps), 0]
    assert repr(trace).endswith(trace.calls())


def doubled(x):
    return 2 * x


def thirty_layers(x):
    for _ in range(30):
        x = jnp.tanh(x)
    return x


def with_a_helper(x):
    y = doubled(x)
    return doubled(y) + doubled(y) - doubled(x)


def over_several_lines(x):
    return jnp.where(
        x > 0,
        jnp.tanh(x),
        doubled(x),
    )


def in_turns(x):
    for _ in range(2):
        x = jnp.sin(x)
        x = jnp.cos(x)
    return x


def gradient(w, x, y):
    return jax.grad(tracing.loss)(w, x, y)


def test_more_variables_than_letters_have_the_names_of_the_printed_jaxpr():
    ((line, added),) = tracing.Trace(thirty_layers, 1.0).steps
    assert line == "x = jnp.tanh(x)"
    printed = str(jax.make_jaxpr(thirty_layers)(1.0))
    assert len(added) == 30 and all(text in printed for text in added)


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (with_a_helper, ["y = doubled(x)", "return doubled(y) + doubled(y) - doubled(x)"]),
        (over_several_lines, ["return jnp.where(x > 0, jnp.tanh(x), doubled(x))"]),
        (in_turns, ["x = jnp.sin(x)", "x = jnp.cos(x)"] * 2),
    ],
)
def test_a_line_is_shown_once_for_each_time_that_python_runs_it(function, lines):
    assert [line for line, _ in tracing.Trace(function, 1.0).steps] == lines


def test_a_gradient_is_shown_in_a_function_that_calls_it():
    ((line, added),) = tracing.Trace(gradient, *ARGUMENTS).steps
    assert line == "return jax.grad(tracing.loss)(w, x, y)"
    assert "dot_general" in added[0] and "transpose" in added[-1]


@pytest.mark.parametrize(
    "function", [jax.jit(tracing.loss), jax.grad(tracing.loss), lambda *args: args[0], np.dot]
)
def test_what_has_no_lines_of_its_own_is_refused_in_words(function):
    with pytest.raises(TypeError, match=r"lines of a function made by `def`.*def f\(\*args\)"):
        tracing.Trace(function, *ARGUMENTS)


def test_a_program_is_compiled_again_exactly_where_the_keys_differ(pairs):
    assert len(pairs.found) == len(tracing.shifted_calls()) ** 2
    assert [(one, two) for one, two, again, why in pairs.found if again != bool(why)] == []


@pytest.mark.parametrize(
    ("one", "two", "again"),
    [
        ("f(x)", "f(2 * x)", False),
        ("f(x)", "f(x[:2])", True),
        ("f(x)", "f(x.astype(float))", False),
        ("f(x, 1)", "f(x, 2)", False),
        ("f(x, 1)", "f(x, 2.0)", True),
        ("f(x)", "f(x, 1)", True),
        ("f(x, 2)", "f(x, by=2)", True),
        ("f(x)", 'f(x, sign="+")', True),
        ("jax.jit(lambda x: x + 1)(x)", "jax.jit(lambda x: x + 1)(x)", True),
    ],
)
def test_what_the_lesson_says_of_pairs(pairs, one, two, again):
    assert [a for first, second, a, _ in pairs.found if (first, second) == (one, two)] == [again]
