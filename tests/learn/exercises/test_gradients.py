"""Wrong answers to the exercises on gradients, and what is said of them."""

import functools

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import gradients as checks
from snippets.learn.exercises import gradients as exercises
from snippets.learn.solutions import gradients as solutions
from snippets.programs.practice import problem_of


def for_y_and_x(f, x, y):
    return jax.grad(f, argnums=(0, 1))(x, y)


def for_y_in_a_tuple(f, x, y):
    return jax.grad(f, argnums=(1,))(x, y)


def for_y_with_the_value(f, x, y):
    return jax.value_and_grad(f, argnums=1)(x, y)


def for_both_arguments_added(f, x, y):
    return sum(jax.grad(f, argnums=(0, 1))(x, y))


def with_arguments_exchanged(f, x, y):
    return jax.grad(f)(y, x)


def the_function_itself(f, x, y):
    return jax.grad(f, argnums=1)


def downhill(f, x, y):
    return -jax.grad(f, argnums=1)(x, y)


def of_twice_the_first(f, x, y):
    return jax.grad(lambda y: f(y, y))(y)


def element_by_element(f, x, y):
    return jax.vmap(jax.grad(f, argnums=1))(x, y)


def as_a_list(f, x, y):
    return jax.grad(f, argnums=1)(x, y).tolist()


def computed_and_dropped(f, x, y):
    jax.grad(f, argnums=1)(x, y)


def by_a_function_of_y(f, x, y):
    return jax.grad(lambda y: f(x, y))(y)


def by_a_partial(f, x, y):
    return jax.grad(functools.partial(f, x))(y)


def the_second_of_both(f, x, y):
    return jax.grad(f, argnums=(0, 1))(x, y)[1]


def by_a_vjp(f, x, y):
    return jax.vjp(f, x, y)[1](jnp.ones(()))[1]


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


def scaled_by(params, x, y, strength, of_error=1.0, of_penalty=1.0):
    without = penalised(params, x, y, 0.0)
    penalty = penalised(params, x, y, strength)["w"] - without["w"]
    return {
        "w": of_error * without["w"] + of_penalty * penalty,
        "b": of_error * without["b"],
    }


def with_the_sum_of_errors(params, x, y, strength):
    return scaled_by(params, x, y, strength, of_error=len(y))


def with_half_the_error(params, x, y, strength):
    return scaled_by(params, x, y, strength, of_error=0.5)


def with_half_the_penalty(params, x, y, strength):
    return scaled_by(params, x, y, strength, of_penalty=0.5)


def with_the_mean_penalty(params, x, y, strength):
    return scaled_by(params, x, y, strength, of_penalty=1 / len(params["w"]))


def with_a_fixed_strength(params, x, y, strength):
    return penalised(params, x, y, 0.25)


def with_the_loss(params, x, y, strength):
    grads = penalised(params, x, y, strength)
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2), grads


def over_three_rows(params, x, y, strength):
    return scaled_by(params, x, y, strength, of_error=len(y) / 3)


def of_two_inputs(params, x, y, strength):
    def loss(p):
        error = x[:, 0] * p["w"][0] + x[:, 1] * p["w"][1] + p["b"] - y
        return jnp.mean(error**2) + strength * jnp.sum(p["w"] ** 2)

    return jax.grad(loss)(params)


def without_the_bias(params, x, y, strength):
    grads = penalised(params | {"b": 0.0}, x, y, strength)
    return grads


def in_a_pair(params, x, y, strength):
    return tuple(penalised(params, x, y, strength).values())


def penalised_and_dropped(params, x, y, strength):
    penalised(params, x, y, strength)


def with_the_error_summed_in_b(params, x, y, strength):
    grads = penalised(params, x, y, strength)
    return grads | {"b": 2 * (x @ params["w"] + params["b"] - y)}


def penalised_by_hand(params, x, y, strength):
    error = x @ params["w"] + params["b"] - y
    w = 2 * x.T @ error / len(y) + 2 * strength * params["w"]
    return {"w": w, "b": 2 * jnp.mean(error)}


def penalised_after(params, x, y, strength):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(params)
    return {"w": grads["w"] + 2 * strength * params["w"], "b": grads["b"]}


def penalised_by_arguments(params, x, y, strength):
    def loss(w, b):
        return jnp.square(jnp.dot(x, w) + b - y).mean() + strength * jnp.vdot(w, w)

    w, b = jax.grad(loss, (0, 1))(params["w"], params["b"])
    return {"b": b, "w": w}


def penalised_with_its_value(params, x, y, strength):
    def loss(params):
        frozen = jax.lax.stop_gradient(params["b"])
        leaves = jax.tree.leaves(params | {"b": params["b"] - frozen})
        penalty = sum(jnp.sum(leaf**2) for leaf in leaves)
        return jnp.mean((x @ params["w"] + params["b"] - y) ** 2) + strength * penalty

    return jax.value_and_grad(loss)(params)[1]


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


def td_with_a_constant_state(params, state, reward, next_state, discount):
    next_state = jax.lax.stop_gradient(next_state)
    return td(params, state, reward, next_state, discount)


def td_downhill(*given):
    return -td(*given, constant=["target"])


def td_without_discount(params, state, reward, next_state, discount):
    return td(params, state, reward, next_state, 1.0, constant=["target"])


def td_with_a_fixed_discount(params, state, reward, next_state, discount):
    return td(params, state, reward, next_state, 0.5, constant=["target"])


def td_without_reward(params, state, reward, next_state, discount):
    return td(params, state, 0.0, next_state, discount, constant=["target"])


def td_with_its_value(*given):
    return jnp.ones(()), td(*given, constant=["target"])


def td_as_a_number(*given):
    return td(*given, constant=["target"]).sum()


def td_of_the_error(params, state, reward, next_state, discount):
    target = reward + discount * (next_state @ params)
    return jax.grad(lambda params: state @ params - target)(params)


def td_dropped(*given):
    td(*given, constant=["target"])


def td_with_the_target_outside(params, state, reward, next_state, discount):
    target = reward + discount * (next_state @ params)
    return jax.grad(lambda params: (state @ params - target) ** 2)(params)


def td_with_old_parameters(params, state, reward, next_state, discount):
    def loss(params, old):
        return (reward + discount * jnp.dot(next_state, old) - jnp.dot(state, params)) ** 2

    return jax.grad(loss)(params, params)


def td_with_constant_parameters(params, state, reward, next_state, discount):
    def loss(params):
        old = jax.lax.stop_gradient(params)
        return jnp.square(state @ params - reward - discount * (next_state @ old))

    return jax.grad(loss)(params)


def td_by_hand(params, state, reward, next_state, discount):
    error = state @ params - (reward + discount * (next_state @ params))
    return 2 * error * state


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


def the_gradient_alone(f, x, v):
    return jax.jvp(jax.grad(f), (x,), (v,))[0]


def of_the_function(f, x, v):
    return jax.jvp(f, (x,), (v,))[1]


def by_differences(f, x, v):
    return (jax.grad(f)(x + 1e-3 * v) - jax.grad(f)(x)) / 1e-3


def by_central_differences(f, x, v):
    grad, step = jax.grad(f), 0.01
    return (grad(x + step * v) - grad(x - step * v)) / (2 * step)


def with_exchanged_arguments(f, x, v):
    return jax.jvp(jax.grad(f), (v,), (x,))[1]


def with_a_jacobian(f, x, v):
    return jax.jacfwd(jax.grad(f))(x) @ v


unchanged_and_compiled = jax.jit(exercises.curvature, static_argnums=0)


def row_by_row(f, x, v):
    def row(i):
        return jax.jvp(jax.grad(f), (x,), (jnp.zeros_like(x).at[i].set(1),))[1] @ v

    return jax.lax.map(row, jnp.arange(len(x)))


def row_by_row_in_python(f, x, v):
    change = jax.linearize(jax.grad(f), x)[1]
    return jnp.stack([change(jnp.zeros_like(x).at[i].set(1)) @ v for i in range(len(x))])


def changed_and_dropped(f, x, v):
    jax.jvp(jax.grad(f), (x,), (v,))


def by_linearize(f, x, v):
    return jax.linearize(jax.grad(f), x)[1](v)


def by_a_gradient_of_a_product(f, x, v):
    return jax.grad(lambda x: jnp.vdot(jax.grad(f)(x), v))(x)


def by_a_backward_pass(f, x, v):
    return jax.vjp(jax.grad(f), x)[1](v)[0]


def by_a_gradient_along(f, x, v):
    return jax.grad(lambda x: jax.jvp(f, (x,), (v,))[1])(x)


Y, P = checks.check_gradient_for_y, checks.check_penalised_gradient


def td_by_a_number(params, state, reward, next_state, discount):
    target = float(reward + discount * (next_state @ params))
    return jax.grad(lambda params: (state @ params - target) ** 2)(params)


def td_by_an_item(params, state, reward, next_state, discount):
    target = reward + discount * (next_state @ params).item()
    return jax.grad(lambda params: (state @ params - target) ** 2)(params)


T, C = checks.check_td_gradient, checks.check_curvature


def by_the_square_of_a_norm(params, x, y, strength):
    def loss(params):
        error = x @ params["w"] + params["b"] - y
        return jnp.mean(error**2) + strength * jnp.linalg.norm(params["w"]) ** 2

    return jax.grad(loss)(params)


WRONG = [
    (checks.check_penalised_gradient, by_the_square_of_a_norm, "the norm has no derivative there"),
    (Y, exercises.gradient_for_y, "with respect to `x`, the first argument"),
    (Y, for_y_and_x, "one array of its shape"),
    (Y, for_y_in_a_tuple, "one array of its shape"),
    (Y, for_y_with_the_value, "one array of its shape"),
    (Y, for_both_arguments_added, "it returns [68.25"),
    (Y, with_arguments_exchanged, "it returns ["),
    (Y, the_function_itself, "call it"),
    (Y, downhill, "it returns [-48."),
    (Y, of_twice_the_first, "it returns ["),
    (Y, element_by_element, "it returns [ 8."),
    (Y, as_a_list, "one array of its shape"),
    (Y, computed_and_dropped, "it returns nothing"),
    (P, exercises.penalised_gradient, "write `penalised_gradient`"),
    (P, without_penalty, "without the penalty"),
    (P, with_the_bias, "the bias is penalised as well"),
    (P, with_absolute_values, "the gradient for w is"),
    (P, for_w_alone, "a gradient for w and one for b"),
    (P, with_the_sum_of_errors, "the gradient for w is"),
    (P, with_half_the_error, "the gradient for w is"),
    (P, with_half_the_penalty, "is the penalty's"),
    (P, with_the_mean_penalty, "is the penalty's"),
    (P, with_a_fixed_strength, "is the penalty's"),
    (P, with_the_loss, "not a dictionary with a gradient for w"),
    (P, in_a_pair, "not a dictionary with a gradient for w"),
    (P, over_three_rows, "the gradient for w is"),
    (P, of_two_inputs, "the gradient for w is"),
    (P, without_the_bias, "the gradient for w is"),
    (P, penalised_and_dropped, "it returns nothing"),
    (P, with_the_error_summed_in_b, "each in the shape of its parameter"),
    (T, exercises.td_gradient, "also goes through the target"),
    (T, td_through_both, "also goes through the target"),
    (T, td_with_a_constant_state, "also goes through the target"),
    (T, td_through_nothing, "the gradient is zero"),
    (T, td_through_the_target, "through the target alone"),
    (T, td_without_the_factor, "it returns [-2.5"),
    (T, td_downhill, "it returns [5."),
    (T, td_without_discount, "it returns [-6."),
    (T, td_with_a_fixed_discount, "it returns [-4."),
    (T, td_without_reward, "it returns ["),
    (T, td_with_its_value, "where an array of shape (2,) is wanted"),
    (T, td_by_a_number, "right, but not under `jax.jit`"),
    (T, td_by_an_item, "right, but not under `jax.jit`"),
    (T, td_as_a_number, "where an array of shape (2,) is wanted"),
    (T, td_of_the_error, "it returns [1. 0.]"),
    (T, td_dropped, "it returns None"),
    (C, of_the_diagonal, "only the diagonal"),
    (C, both_of_jvp, "it returns 2 values"),
    (C, as_a_number, "where an array with one number for each of 3"),
    (C, of_the_function, "where an array with one number for each of 3"),
    (C, with_the_hessian, "right, but with 400 inputs"),
    (C, with_a_jacobian, "right, but with 400 inputs"),
    (C, unchanged_and_compiled, "right, but with 400 inputs"),
    (C, row_by_row, "one row after the other"),
    (C, row_by_row_in_python, "right, but with 400 inputs"),
    (C, of_the_gradient, "it returns ["),
    (C, the_gradient_alone, "this is the gradient, not how it changes"),
    (C, by_differences, "as a difference of two gradients"),
    (C, by_central_differences, "as a difference of two gradients"),
    (C, with_exchanged_arguments, "it returns ["),
    (C, changed_and_dropped, "it returns nothing"),
]
RIGHT = [
    (Y, by_a_function_of_y),
    (Y, by_a_partial),
    (Y, the_second_of_both),
    (Y, by_a_vjp),
    (Y, jax.jit(solutions.gradient_for_y, static_argnums=0)),
    (P, penalised_by_hand),
    (P, penalised_after),
    (P, penalised_by_arguments),
    (P, penalised_with_its_value),
    (P, jax.jit(solutions.penalised_gradient)),
    (T, td_with_the_target_outside),
    (T, td_with_old_parameters),
    (T, td_with_constant_parameters),
    (T, td_by_hand),
    (T, jax.jit(solutions.td_gradient)),
    (C, by_linearize),
    (C, by_a_gradient_of_a_product),
    (C, by_a_backward_pass),
    (C, by_a_gradient_along),
    (C, jax.jit(solutions.curvature, static_argnums=0)),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
