"""Wrong answers to the exercises of the first lesson, and what is said of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.learn.checks import ten_minutes as checks
from snippets.learn.exercises import ten_minutes as exercises
from snippets.learn.solutions import ten_minutes as solutions
from snippets.programs.practice import problem_of


def dropped(x, i):
    x.at[i].set(0)
    return x


def says_nothing(x, i):
    x = x.at[i].set(0)


def the_rest(x, i):
    return jnp.delete(x, i)


def as_a_list(x, i):
    return [0.0 if k == i else float(value) for k, value in enumerate(x)]


def by_numpy(x, i):
    x = np.array(x)
    x[i] = 0
    return x


def the_third(x, i):
    return x.at[2].set(0)


def of_four(x, i):
    return jnp.where(jnp.arange(4) == i, 0, x)


def from_there_on(x, i):
    return x.at[i:].set(0)


def the_element(x, i):
    return x.at[i].get()


def all_but_it(x, i):
    return jnp.where(jnp.arange(len(x)) == i, x, 0)


def as_integers(x, i):
    return x.astype(int).at[i].set(0)


def in_half_precision(x, i):
    return x.at[i].set(0).astype(jnp.float16)


def all_equal_elements(x, i):
    return jnp.where(x == x[i], 0, x)


def by_min(x, i):
    return x.at[i].min(0)


@functools.partial(jax.jit, donate_argnames="x")
def without_donated(x, i):
    return x.at[i].set(0)


def numpy_and_back(x, i):
    x = np.array(x)
    x[i] = 0
    return jnp.array(x)


def without_by_where(x, i):
    return jnp.where(jnp.arange(len(x)) == i, 0, x)


def without_by_product(x, i):
    return x * (jnp.arange(x.size) != i)


def joined(x, i):
    return jnp.concatenate([x[:i], jnp.zeros(1, x.dtype), x[i + 1 :]])


def with_a_zero_of_float32(x, i):
    return jnp.concatenate([x[:i], jnp.zeros(1), x[i + 1 :]])


def times_a_mask_of_float32(x, i):
    return x * jnp.ones(len(x)).at[i].set(0)


def without_decay(params, grads, rate, decay):
    return solutions.update(params, grads, rate, 0.0)


def in_the_dictionary(params, grads, rate, decay):
    new = solutions.update(params, grads, rate, decay)
    params.update(new)
    return params


def in_a_nested_dictionary(params, grads, rate, decay):
    new = dict(params)
    for name, value in solutions.update(params, grads, rate, decay).items():
        if isinstance(value, dict):
            new[name].update(value)
        else:
            new[name] = value
    return new


def decay_apart(params, grads, rate, decay):
    return jax.tree.map(lambda p, g: p - rate * g - decay * p, params, grads)


def of_a_flat_dictionary(params, grads, rate, decay):
    return {name: p - rate * (grads[name] + decay * p) for name, p in params.items()}


def of_dictionaries(params, grads, rate, decay):
    if isinstance(params, dict):
        return {name: of_dictionaries(p, grads[name], rate, decay) for name, p in params.items()}
    return params - rate * (grads + decay * params)


def uphill_update(params, grads, rate, decay):
    return solutions.update(params, grads, -rate, decay)


def the_change(params, grads, rate, decay):
    return jax.tree.map(lambda p, g: -rate * (g + decay * p), params, grads)


def as_leaves(params, grads, rate, decay):
    return jax.tree.leaves(solutions.update(params, grads, rate, decay))


def by_a_fixed_rate(params, grads, rate, decay):
    return solutions.update(params, grads, 0.5, decay)


def by_a_fixed_decay(params, grads, rate, decay):
    return solutions.update(params, grads, rate, 0.25)


def matrices_alone_decay(params, grads, rate, decay):
    return jax.tree.map(lambda p, g: p - rate * (g + (decay if p.ndim else 0) * p), params, grads)


def with_changed_gradients(params, grads, rate, decay):
    grads["w"] += decay * params["w"]
    grads["layer"]["b"] += decay * params["layer"]["b"]
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


donated_gradients = jax.jit(solutions.update, donate_argnames="grads")
donated_update = jax.jit(solutions.update, donate_argnames="params")


def computes_and_drops(params, grads, rate, decay):
    solutions.update(params, grads, rate, decay)


def factored(params, grads, rate, decay):
    return jax.tree.map(lambda p, g: (1 - rate * decay) * p - rate * g, params, grads)


def in_two_maps(params, grads, rate, decay):
    grads = jax.tree.map(lambda g, p: g + decay * p, grads, params)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


def by_leaves(params, grads, rate, decay):
    leaves, structure = jax.tree.flatten(params)
    pairs = zip(leaves, jax.tree.leaves(grads), strict=True)
    return jax.tree.unflatten(structure, [p - rate * (g + decay * p) for p, g in pairs])


def after(loss, params, batch, rate):
    grads = jax.grad(loss)(params, batch)
    return loss(jax.tree.map(lambda p, g: p - rate * g, params, grads), batch)


def uphill(loss, params, batch, rates):
    return solutions.losses_after(loss, params, batch, -rates)


def smallest(loss, params, batch, rates):
    return solutions.losses_after(loss, params, batch, rates).min()


def of_the_old(loss, params, batch, rates):
    return jnp.full(rates.shape, loss(params, batch))


def with_one_gradient(loss, params, batch, rates):
    grads = jax.grad(loss)(params, batch)
    new = [jax.tree.map(lambda p, g, r=r: p - r * g, params, grads) for r in rates]
    return jnp.stack([loss(each, batch) for each in new])


def one_after_the_other(loss, params, batch, rates):
    grads = jax.grad(loss)(params, batch)
    return jax.lax.map(
        lambda r: loss(jax.tree.map(lambda p, g: p - r * g, params, grads), batch), rates
    )


def as_floats(loss, params, batch, rates):
    return [float(value) for value in solutions.losses_after(loss, params, batch, rates)]


def for_w_alone(loss, params, batch, rates):
    grads = jax.grad(loss)(params, batch)
    return jax.vmap(lambda r: loss(params | {"w": params["w"] - r * grads["w"]}, batch))(rates)


def to_first_order(loss, params, batch, rates):
    value, grads = jax.value_and_grad(loss)(params, batch)
    return value - rates * sum(jnp.sum(g**2) for g in grads.values())


def with_the_losses_before(loss, params, batch, rates):
    return solutions.losses_after(loss, params, batch, rates), loss(params, batch)


def each_from_the_last(loss, params, batch, rates):
    losses = []
    for rate in rates:
        grads = jax.grad(loss)(params, batch)
        params = jax.tree.map(lambda p, g, r=rate: p - r * g, params, grads)
        losses.append(loss(params, batch))
    return jnp.stack(losses)


def with_a_copy_for_each_rate(loss, params, batch, rates):
    copies = jax.tree.map(lambda p: jnp.stack([p] * len(rates)), params)
    return jax.vmap(lambda p, rate: after(loss, p, batch, rate))(copies, rates)


unchanged_and_compiled = jax.jit(exercises.losses_after, static_argnums=0)


def with_the_gradient_inside(loss, params, batch, rates):
    return jax.vmap(lambda rate: after(loss, params, batch, rate))(rates)


def with_axes(loss, params, batch, rates):
    grads = jax.grad(loss)(params, batch)
    return jax.vmap(
        lambda p, g, b, r: loss(jax.tree.map(lambda p, g: p - r * g, p, g), b),
        in_axes=(None, None, None, 0),
    )(params, grads, batch, rates)


def of_stacked_parameters(loss, params, batch, rates):
    grads = jax.grad(loss)(params, batch)
    new = jax.tree.map(lambda p, g: p - jnp.multiply.outer(rates, g), params, grads)
    return jax.vmap(loss, in_axes=(0, None))(new, batch)


def compiled_gradient(loss, params, batch, rates):
    grads = jax.jit(jax.grad(loss))(params, batch)

    @jax.jit
    @jax.vmap
    def one(rate):
        new = {name: p - rate * grads[name] for name, p in params.items()}
        return loss(new, batch)

    return one(rates)


def into_lists(params, grads, rate, decay):
    found = solutions.update(params, grads, rate, decay)
    nested = isinstance(found, list)
    return [found[0], [*found[1]]] if nested else found


WRONG = [
    (checks.check_update, into_lists, "`jax.tree.map` keeps lists and tuples"),
    (checks.check_without, exercises.without, "it raises TypeError: JAX arrays are immutable"),
    (checks.check_without, dropped, "nothing has changed"),
    (checks.check_without, says_nothing, "it returns nothing"),
    (checks.check_without, the_rest, "not [ 1.5  2.5  0.  -4. ]"),
    (checks.check_without, as_a_list, "it returns a list"),
    (checks.check_without, by_numpy, "it returns a NumPy array, not a JAX array"),
    (
        checks.check_without,
        the_third,
        "from [-1.5  2.5  3.  -1.5  2.5], without element 0, it makes",
    ),
    (checks.check_without, of_four, "it raises ValueError: Incompatible shapes"),
    (checks.check_without, from_there_on, "it makes [1.5 2.5 0.  0. ]"),
    (checks.check_without, the_element, "it makes 1.5"),
    (checks.check_without, all_but_it, "it makes [0.  0.  1.5 0. ]"),
    (checks.check_without, as_integers, "it makes [ 1  2  0 -4]"),
    (checks.check_without, in_half_precision, "it makes one of float16"),
    (
        checks.check_without,
        with_a_zero_of_float32,
        "from an array of int32 it makes one of float32",
    ),
    (
        checks.check_without,
        times_a_mask_of_float32,
        "from an array of int32 it makes one of float32",
    ),
    (checks.check_without, all_equal_elements, "it makes [ 0.   2.5  0.  -4. ]"),
    (checks.check_without, by_min, "nothing has changed"),
    (checks.check_without, without_donated, "don't donate it"),
    (checks.check_update, exercises.update, "it raises TypeError: unsupported operand"),
    (checks.check_update, without_decay, "without the decay"),
    (checks.check_update, in_the_dictionary, "the dictionary that it was given"),
    (checks.check_update, in_a_nested_dictionary, "the dictionary that it was given"),
    (checks.check_update, decay_apart, "and should become"),
    (checks.check_update, of_a_flat_dictionary, "it raises TypeError: unsupported operand"),
    (checks.check_update, of_dictionaries, "it raises TypeError: "),
    (checks.check_update, uphill_update, "w becomes [ 1.625 -2.25 ]"),
    (checks.check_update, the_change, "w becomes [-0.625  0.25 ]"),
    (checks.check_update, as_leaves, "not nested as `params` is"),
    (checks.check_update, by_a_fixed_rate, "with another rate and another decay"),
    (checks.check_update, by_a_fixed_decay, "with another rate and another decay"),
    (checks.check_update, matrices_alone_decay, "and b 3.0, and should become"),
    (checks.check_update, with_changed_gradients, "the dictionary that it was given"),
    (checks.check_update, donated_gradients, "don't donate them"),
    (checks.check_update, donated_update, "don't donate them"),
    (checks.check_update, computes_and_drops, "it returns nothing"),
    (checks.check_losses_after, uphill, "the step goes uphill"),
    (checks.check_losses_after, smallest, "it returns Array(0., dtype=float32)"),
    (checks.check_losses_after, of_the_old, "not [5. 1.25 0. 45.]"),
    (checks.check_losses_after, exercises.losses_after, "the loss is called 8 times"),
    (checks.check_losses_after, with_one_gradient, "the loss is called 5 times"),
    (checks.check_losses_after, unchanged_and_compiled, "the loss is called 8 times"),
    (checks.check_losses_after, one_after_the_other, "one rate after the other"),
    (checks.check_losses_after, with_a_copy_for_each_rate, "computed for each rate"),
    (
        checks.check_losses_after,
        as_floats,
        "a JAX array of shape (4,); it returns [5.0, 1.25, 0.0, 45.0]",
    ),
    (checks.check_losses_after, for_w_alone, "not [5. 1.25 0. 45.]"),
    (checks.check_losses_after, to_first_order, "not [5. 1.25 0. 45.]"),
    (checks.check_losses_after, with_the_losses_before, "four rates have four losses"),
    (checks.check_losses_after, each_from_the_last, "the losses are"),
]
RIGHT = [
    (checks.check_without, numpy_and_back),
    (checks.check_without, without_by_where),
    (checks.check_without, without_by_product),
    (checks.check_without, joined),
    (checks.check_without, jax.jit(solutions.without)),
    (checks.check_update, factored),
    (checks.check_update, in_two_maps),
    (checks.check_update, by_leaves),
    (checks.check_update, jax.jit(solutions.update)),
    (checks.check_losses_after, with_the_gradient_inside),
    (checks.check_losses_after, with_axes),
    (checks.check_losses_after, of_stacked_parameters),
    (checks.check_losses_after, compiled_gradient),
    (checks.check_losses_after, jax.jit(solutions.losses_after, static_argnums=0)),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
