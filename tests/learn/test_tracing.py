import inspect

import jax
import numpy as np
import pytest

from snippets.learn import tracing

ARGUMENTS = np.ones((4, 1)), np.ones((8, 4)), np.ones((8, 1))


@pytest.fixture(scope="module")
def pairs():
    return tracing.Pairs(tracing.shifted_calls())


def test_the_equations_are_those_of_the_jaxpr_in_its_names():
    printed = str(jax.make_jaxpr(tracing.loss)(*ARGUMENTS))
    found = tracing.equations(tracing.loss, *ARGUMENTS)
    kinds = [e.primitive.name for e in jax.make_jaxpr(tracing.loss)(*ARGUMENTS).jaxpr.eqns]
    assert [text.split()[2] for _, text in found] == kinds
    for _, text in found:
        assert f"{text.split(' = ')[0]} = {text.split()[2]}" in printed


def test_each_equation_is_of_the_line_that_calls_for_it():
    lines, first = inspect.getsourcelines(tracing.loss)
    asked = {"dot_general": "x @ w", "tanh": "jnp.tanh", "sub": "hidden - y", "div": "jnp.mean"}
    found = {
        text.split()[2]: lines[n - first] for n, text in tracing.equations(tracing.loss, *ARGUMENTS)
    }
    for kind, code in asked.items():
        assert code in found[kind]


def test_python_runs_each_line_in_the_first_call_and_none_in_the_second():
    trace = tracing.Trace(tracing.loss, *ARGUMENTS)
    assert trace.lines == [len(trace.steps), 0]
    assert repr(trace).endswith(trace.calls())


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
