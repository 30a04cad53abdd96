"""Wrong answers to the exercises on gradients, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import gradients as checks
from snippets.programs.practice import problem_of


def penalised(params, x, y, strength, of="w", power=2):
    def loss(params):
        error = x @ params["w"] + params["b"] - y
        penalty = sum(jnp.sum(jnp.abs(params[name]) ** power) for name in of)
        return jnp.mean(error**2) + strength * penalty

    return jax.grad(loss)(params)


def without_penalty(params, x, y, strength):
    return penalised(params, x, y, 0.0)


def with_the_bias(params, x, y, strength):
    return penalised(params, x, y, strength, of="wb")


def with_absolute_values(params, x, y, strength):
    return penalised(params, x, y, strength, power=1)


def for_w_alone(params, x, y, strength):
    return penalised(params, x, y, strength)["w"]


def td(params, state, reward, next_state, discount, constant=()):
    def loss(params):
        sides = {"value": state @ params, "target": reward + discount * (next_state @ params)}
        sides |= {name: jax.lax.stop_gradient(sides[name]) for name in constant}
        return (sides["value"] - sides["target"]) ** 2

    return jax.grad(loss)(params)


def td_through_both(*given):
    return td(*given, constant=())


def td_through_nothing(*given):
    return td(*given, constant=("value", "target"))


def td_through_the_target(*given):
    return td(*given, constant=["value"])


def td_without_the_factor(*given):
    return td(*given, constant=["target"]) / 2


def of_the_diagonal(f, x, v):
    return jnp.diag(jax.hessian(f)(x)) * v


def both_of_jvp(f, x, v):
    return jax.jvp(jax.grad(f), (x,), (v,))


def as_a_number(f, x, v):
    return v @ jax.hessian(f)(x) @ v


def with_the_hessian(f, x, v):
    return jax.hessian(f)(x) @ v


def of_the_gradient(f, x, v):
    return jax.grad(f)(x) * v


WRONG = [
    (checks.check_penalised_gradient, without_penalty, "without the penalty"),
    (checks.check_penalised_gradient, with_the_bias, "the bias is penalised as well"),
    (checks.check_penalised_gradient, with_absolute_values, "the gradient for w is"),
    (
        checks.check_penalised_gradient,
        for_w_alone,
        "a dictionary with a gradient for w and one for b",
    ),
    (checks.check_td_gradient, td_through_both, "also goes through the target"),
    (checks.check_td_gradient, td_through_nothing, "the gradient is zero"),
    (checks.check_td_gradient, td_through_the_target, "through the target alone"),
    (checks.check_td_gradient, td_without_the_factor, "it returns [-1."),
    (checks.check_curvature, of_the_diagonal, "only the diagonal"),
    (checks.check_curvature, both_of_jvp, "it returns 2 values"),
    (checks.check_curvature, as_a_number, "it has the shape ()"),
    (checks.check_curvature, with_the_hessian, "right, but with 2000 inputs"),
    (checks.check_curvature, of_the_gradient, "it returns ["),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
