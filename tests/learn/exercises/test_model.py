"""Answers to the exercises on a model and its optimizer: what is said of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from snippets.learn.checks import model as checks
from snippets.learn.exercises import model as exercises
from snippets.learn.solutions import model as solutions
from snippets.programs.practice import problem_of


def not_clipped(rate, limit):
    return optax.adam(rate)


def each_element_clipped(rate, limit):
    return optax.chain(optax.clip(limit), optax.adam(rate))


def each_array_clipped(rate, limit):
    adam = optax.adam(rate)

    def update(grads, state, params=None):
        clipped = [
            leaf * jnp.minimum(1, limit / (1e-9 + jnp.linalg.norm(leaf)))
            for leaf in jax.tree.leaves(grads)
        ]
        return adam.update(jax.tree.unflatten(jax.tree.structure(grads), clipped), state, params)

    return optax.GradientTransformation(adam.init, update)


def always_scaled(rate, limit):
    return optax.chain(optax.normalize_by_update_norm(limit), optax.adam(rate))


def to_five(rate, limit):
    return optax.chain(optax.clip_by_global_norm(5.0), optax.adam(rate))


def clipped_twice(rate, limit):
    clip = optax.clip_by_global_norm(limit)
    return optax.chain(clip, optax.adam(rate), clip)


def to_one(rate, limit):
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))


def with_adamw(rate, limit):
    return optax.chain(optax.clip_by_global_norm(limit), optax.adamw(rate))


def uphill(rate, limit):
    clip = optax.clip_by_global_norm(limit)
    return optax.chain(clip, optax.scale_by_adam(), optax.scale(rate))


def without_adam(rate, limit):
    return optax.chain(optax.clip_by_global_norm(limit), optax.sgd(rate))


def without_a_rate(rate, limit):
    return optax.chain(optax.clip_by_global_norm(limit), optax.scale_by_adam())


def at_a_rate_of_a_tenth(rate, limit):
    return optax.chain(optax.clip_by_global_norm(limit), optax.adam(0.1))


def arguments_exchanged(rate, limit):
    return optax.chain(optax.clip_by_global_norm(rate), optax.adam(limit))


def a_pair_of_optimizers(rate, limit):
    return optax.clip_by_global_norm(limit), optax.adam(rate)


def clipped_in_parts(rate, limit):
    clip = optax.clip_by_global_norm(limit)
    return optax.chain(clip, optax.scale_by_adam(), optax.scale_by_learning_rate(rate))


def clipped_by_hand(rate, limit):
    adam = optax.adam(rate)

    def update(grads, state, params=None):
        norm = optax.tree.norm(grads)
        scale = jnp.minimum(1, limit / norm)
        return adam.update(jax.tree.map(lambda g: scale * g, grads), state, params)

    return optax.GradientTransformation(adam.init, update)


def clipped_by_name(rate, limit):
    return optax.named_chain(("clip", optax.clip_by_global_norm(limit)), ("adam", optax.adam(rate)))


def adamw_without_decay(rate, limit):
    adam = optax.adamw(learning_rate=lambda step: rate, weight_decay=0.0)
    return optax.chain(optax.identity(), optax.clip_by_global_norm(limit), adam)


def exact_gelu(y):
    return jax.nn.gelu(y, approximate=False)


def ported(
    state,
    x,
    epsilon=1e-5,
    act=exact_gelu,
    transpose=jnp.transpose,
):
    y = jax.nn.standardize(x, epsilon=epsilon)
    y = y * state["0.weight"] + state["0.bias"]
    y = act(y @ transpose(state["1.weight"]) + state["1.bias"])
    return y @ transpose(state["3.weight"]) + state["3.bias"]


def not_transposed(state, x):
    return ported(state, x, transpose=lambda weight: weight)


def approximated(state, x):
    return ported(state, x, act=jax.nn.gelu)


def with_another_epsilon(state, x):
    return ported(state, x, epsilon=1e-6)


def without_norm(state, x):
    y = x * state["0.weight"] + state["0.bias"]
    y = jax.nn.gelu(y @ state["1.weight"].T + state["1.bias"], approximate=False)
    return y @ state["3.weight"].T + state["3.bias"]


def norm_over_the_rows(state, x):
    y = jax.nn.standardize(x, axis=0, epsilon=1e-5) * state["0.weight"] + state["0.bias"]
    y = jax.nn.gelu(y @ state["1.weight"].T + state["1.bias"], approximate=False)
    return y @ state["3.weight"].T + state["3.bias"]


def reshaped(state, x):
    return ported(state, x, transpose=lambda weight: weight.reshape(weight.shape[::-1]))


def with_relu(state, x):
    return ported(state, x, act=jax.nn.relu)


def with_silu(state, x):
    return ported(state, x, act=jax.nn.silu)


def without_a_bias(state, x, name="1.bias"):
    return ported(state | {name: 0 * state[name]}, x)


def without_the_last_bias(state, x):
    return without_a_bias(state, x, name="3.bias")


def without_the_bias_of_the_norm(state, x):
    return without_a_bias(state, x, name="0.bias")


def without_the_scale(state, x):
    return ported(state | {"0.weight": jnp.ones(8)}, x)


def module_of(state):
    layers = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    module = torch.nn.Sequential(torch.nn.LayerNorm(8), *layers)
    module.load_state_dict({name: torch.tensor(np.array(a)) for name, a in state.items()})
    return module


def by_pytorch(state, x):
    return jnp.asarray(module_of(state)(torch.tensor(np.array(x))).detach().numpy())


def with_an_unbiased_variance(state, x):
    centred = x - x.mean(axis=1, keepdims=True)
    y = centred / jnp.sqrt(x.var(axis=1, ddof=1, keepdims=True) + 1e-5)
    y = jax.nn.gelu(
        (y * state["0.weight"] + state["0.bias"]) @ state["1.weight"].T + state["1.bias"], False
    )
    return y @ state["3.weight"].T + state["3.bias"]


def gelu_left_out(state, x):
    return ported(state, x, act=lambda y: y)


def by_moments(state, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    y = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
    y = y * state["0.weight"] + state["0.bias"]
    y = jnp.einsum("rn,mn->rm", y, state["1.weight"]) + state["1.bias"]
    y = y * jax.scipy.stats.norm.cdf(y)
    return jnp.dot(y, jnp.swapaxes(state["3.weight"], 0, 1)) + state["3.bias"]


def row_by_row(state, x):
    def linear(name, y):
        return state[f"{name}.weight"] @ y + state[f"{name}.bias"]

    def one(row):
        y = (row - row.mean()) / jnp.sqrt(row.var() + 1e-5)
        y = linear(1, y * state["0.weight"] + state["0.bias"])
        return linear(3, y * 0.5 * (1 + jax.scipy.special.erf(y / jnp.sqrt(2))))

    return jax.vmap(one)(x)


def by_nnx(state, x):
    rngs = nnx.Rngs(0)
    norm = nnx.LayerNorm(8, epsilon=1e-5, rngs=rngs)
    first, last = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
    norm.scale[...], norm.bias[...] = state["0.weight"], state["0.bias"]
    first.kernel[...], first.bias[...] = state["1.weight"].T, state["1.bias"]
    last.kernel[...], last.bias[...] = state["3.weight"].T, state["3.bias"]
    return last(jax.nn.gelu(first(norm(x)), approximate=False))


def nothing_decayed(rate, decay):
    return optax.adam(rate)


def coupled(rate, decay):
    def mask(params):
        return jax.tree.map(lambda leaf: leaf.ndim > 1, params)

    return optax.chain(optax.add_decayed_weights(decay, mask), optax.sgd(1.0))


def vectors_frozen(rate, decay):
    def mask(params):
        return jax.tree.map(lambda leaf: leaf.ndim > 1, params)

    other = optax.masked(optax.set_to_zero(), lambda p: jax.tree.map(lambda m: not m, mask(p)))
    return optax.chain(optax.adamw(rate, weight_decay=decay, mask=mask), other)


def is_matrix(params, axes=(2, 3, 4)):
    return jax.tree.map(lambda leaf: leaf.ndim in axes, params)


def two_axes(rate, decay):
    return optax.adamw(rate, weight_decay=decay, mask=lambda p: is_matrix(p, (2,)))


def numbers_too(rate, decay):
    return optax.adamw(rate, weight_decay=decay, mask=lambda p: is_matrix(p, (0, 2, 3, 4)))


def two_or_four_axes(rate, decay):
    return optax.adamw(rate, weight_decay=decay, mask=lambda p: is_matrix(p, (2, 4)))


def by_lion(rate, decay):
    return optax.lion(rate, weight_decay=decay, mask=is_matrix)


def of_many_elements(rate, decay):
    mask = functools.partial(jax.tree.map, lambda leaf: leaf.size > 3)
    return optax.adamw(rate, weight_decay=decay, mask=mask)


def turned_round(rate, decay):
    return optax.adamw(rate, weight_decay=decay, mask=lambda p: is_matrix(p, (0, 1)))


def by_name(rate, decay, ends=("bias']", "scale']")):
    def mask(params):
        return jax.tree.map_with_path(
            lambda path, _: not jax.tree_util.keystr(path).endswith(ends), params
        )

    return optax.adamw(rate, weight_decay=decay, mask=mask)


def kernels_alone(rate, decay):
    def mask(params):
        return jax.tree.map_with_path(
            lambda path, _: jax.tree_util.keystr(path).endswith("kernel']"), params
        )

    return optax.adamw(rate, weight_decay=decay, mask=mask)


def by_default(rate, decay):
    return optax.adamw(rate, mask=is_matrix)


def added_to_gradients(rate, decay):
    return optax.chain(optax.add_decayed_weights(decay, is_matrix), optax.adam(rate))


def always_half(rate, decay):
    return optax.adamw(0.1, weight_decay=0.5, mask=is_matrix)


def not_trained(rate, decay):
    return optax.chain(optax.add_decayed_weights(decay, is_matrix), optax.scale(-rate))


def more_than_one_element(rate, decay):
    mask = functools.partial(jax.tree.map, lambda leaf: leaf.size > 1)
    return optax.adamw(rate, weight_decay=decay, mask=mask)


def longer_than_one(rate, decay):
    mask = functools.partial(jax.tree.map, lambda leaf: leaf.ndim > 1 and len(leaf) > 1)
    return optax.adamw(rate, weight_decay=decay, mask=mask)


def decayed_after(rate, decay):
    def mask(params):
        return jax.tree.map(lambda leaf: len(leaf.shape) >= 2, params)

    return optax.chain(
        optax.scale_by_adam(), optax.add_decayed_weights(decay, mask), optax.scale(-rate)
    )


def decayed_in_parts(rate, decay):
    def labels(params):
        return jax.tree.map(lambda leaf: "decayed" if leaf.ndim > 1 else "rest", params)

    rules = {"decayed": optax.adamw(rate, weight_decay=decay), "rest": optax.adam(rate)}
    return optax.partition(rules, labels)


def decayed_by_a_partial(rate, decay):
    mask = functools.partial(jax.tree.map, lambda leaf: jnp.ndim(leaf) not in (0, 1))
    return optax.adamw(learning_rate=rate, mask=mask, weight_decay=decay)


def decayed_by_hand(rate, decay):
    adam = optax.adam(rate)

    def update(grads, state, params):
        updates, state = adam.update(grads, state, params)
        return jax.tree.map(
            lambda u, p: u - rate * decay * p if p.ndim > 1 else u, updates, params
        ), state

    return optax.GradientTransformation(adam.init, update)


def all_trained(optimizer):
    return optimizer


def none_trained(optimizer):
    return optax.set_to_zero()


def last_updates_alone(optimizer):
    def update(grads, state, params):
        return optimizer.update(grads["last"], state, params["last"])

    return optax.GradientTransformation(lambda params: optimizer.init(params["last"]), update)


def by_another_optimizer(optimizer):
    return solutions.last_layer_alone(optax.sgd(0.1))


def is_last(params):
    return {name: name == "last" for name in params}


def is_not_last(params):
    return {name: name != "last" for name in params}


def masked_alone(optimizer):
    return optax.masked(optimizer, is_last)


def zeros_after(optimizer):
    return optax.chain(optimizer, optax.masked(optax.set_to_zero(), is_not_last))


def times_zero(optimizer):
    def kept(tree):
        return {
            name: jax.tree.map(lambda leaf, factor=int(name == "last"): factor * leaf, tree[name])
            for name in tree
        }

    def update(grads, state, params):
        updates, state = optimizer.update(kept(grads), state, params)
        return kept(updates), state

    return optax.GradientTransformation(optimizer.init, update)


def scaled_by_zero(optimizer):
    def labels(params):
        return {name: name if name == "last" else "frozen" for name in params}

    return optax.partition({"last": optimizer, "frozen": optax.scale(0.0)}, labels)


def by_a_key_somewhere(optimizer):
    def labels(params):
        return jax.tree.map_with_path(
            lambda path, _: "last" if "last" in jax.tree_util.keystr(path) else "frozen", params
        )

    return optax.partition({"last": optimizer, "frozen": optax.set_to_zero()}, labels)


def first_and_last(optimizer):
    labels = {"first": "frozen", "last": "last"}
    return optax.partition({"last": optimizer, "frozen": optax.set_to_zero()}, labels)


def labels_exchanged(optimizer):
    labels = {"first": "last", "last": "frozen"}
    return optax.partition({"last": optimizer, "frozen": optax.set_to_zero()}, labels)


def state_forgotten(optimizer):
    def update(grads, state, params):
        updates, _ = optimizer.update(grads["last"], state, params["last"])
        zeros = jax.tree.map(jnp.zeros_like, grads)
        return zeros | {"last": updates}, state

    return optax.GradientTransformation(lambda params: optimizer.init(params["last"]), update)


def state_outside(optimizer):
    kept = {}

    def init(params):
        kept["state"] = optimizer.init(params["last"])
        return ()

    def update(grads, state, params):
        updates, kept["state"] = optimizer.update(grads["last"], kept["state"], params["last"])
        return jax.tree.map(jnp.zeros_like, grads) | {"last": updates}, state

    return optax.GradientTransformation(init, update)


def zero_parameters(optimizer):
    def last_of(tree):
        return jax.tree.map(jnp.zeros_like, tree) | {"last": tree["last"]}

    def update(grads, state, params):
        return optimizer.update(last_of(grads), state, last_of(params))

    return optax.GradientTransformation(optimizer.init, update)


def decay_taken_away(optimizer):
    return optax.chain(optax.masked(optax.set_to_zero(), is_not_last), optimizer)


def without_parameters(optimizer):
    def update(grads, state, params):
        updates, state = optimizer.update(grads["last"], state)
        return jax.tree.map(jnp.zeros_like, grads) | {"last": updates}, state

    return optax.GradientTransformation(lambda params: optimizer.init(params["last"]), update)


def masked_twice(optimizer):
    zero = optax.masked(optax.set_to_zero(), is_not_last)
    return optax.chain(optax.masked(optimizer, is_last), zero)


def by_hand(optimizer):
    def update(grads, state, params):
        updates, state = optimizer.update(grads["last"], state, params["last"])
        return jax.tree.map(jnp.zeros_like, grads) | {"last": updates}, state

    return optax.GradientTransformation(lambda params: optimizer.init(params["last"]), update)


def zeros_before_and_after(optimizer):
    zero = optax.masked(optax.set_to_zero(), is_not_last)
    return optax.chain(zero, optimizer, zero)


def by_partition(optimizer):
    def label(params):
        return {name: name == "last" for name in params}

    return optax.partition({True: optimizer, False: optax.set_to_zero()}, label)


def by_multi_transform(optimizer):
    def labels(params):
        return jax.tree.map_with_path(lambda path, _: path[0].key == "last", params)

    return optax.multi_transform({True: optimizer, False: optax.set_to_zero()}, labels)


def with_weights_of_numpy(state, x):
    w1, w3 = np.asarray(state["1.weight"]).T, np.ascontiguousarray(state["3.weight"].T)
    y = jax.nn.standardize(x, epsilon=1e-5) * state["0.weight"] + state["0.bias"]
    y = jax.nn.gelu(y @ w1 + state["1.bias"], approximate=False)
    return y @ w3 + state["3.bias"]


WRONG = [
    (checks.check_clipped, exercises.clipped, "calls the first one first"),
    (checks.check_clipped, not_clipped, "clip them before"),
    (checks.check_clipped, each_element_clipped, "each element or array is clipped by itself"),
    (checks.check_clipped, each_array_clipped, "or array is clipped by itself"),
    (checks.check_clipped, always_scaled, "also one that is shorter"),
    (checks.check_clipped, to_five, "at a rate of 0.3 and a limit of 0.02"),
    (checks.check_clipped, clipped_twice, "at a rate of 0.3 and a limit of 0.02"),
    (checks.check_clipped, to_one, "a norm of 1, not of `limit`"),
    (checks.check_clipped, with_adamw, "`optax.adamw` decays it"),
    (checks.check_clipped, uphill, "it goes uphill"),
    (checks.check_clipped, without_adam, "goes through no Adam"),
    (checks.check_clipped, without_a_rate, "the update is ["),
    (checks.check_clipped, at_a_rate_of_a_tenth, "at a rate of 0.3 and a limit of 0.02"),
    (checks.check_clipped, arguments_exchanged, "the update is ["),
    (checks.check_clipped, a_pair_of_optimizers, "it returns a tuple, not an optimizer"),
    (checks.check_head, not_transposed, "it raises TypeError"),
    (checks.check_head, approximated, "`jax.nn.gelu` approximates by default"),
    (checks.check_head, with_another_epsilon, "an epsilon of 1e-5"),
    (checks.check_head, without_norm, "from PyTorch"),
    (checks.check_head, norm_over_the_rows, "over the 8 numbers of one row"),
    (checks.check_head, reshaped, "it reshapes the weights to transpose them"),
    (checks.check_head, with_relu, "it has a ReLU"),
    (checks.check_head, with_silu, "it has a SiLU"),
    (checks.check_head, without_a_bias, "the bias of the first linear layer"),
    (checks.check_head, without_the_last_bias, "the bias of the last linear layer"),
    (checks.check_head, without_the_bias_of_the_norm, "the bias of the norm"),
    (checks.check_head, without_the_scale, "the scale of the norm is missing"),
    (checks.check_head, by_pytorch, "it raises TracerArrayConversionError"),
    (checks.check_head, with_an_unbiased_variance, "the variance divides by 7"),
    (checks.check_head, gelu_left_out, "the GELU is missing"),
    (checks.check_head, exercises.head, "write `head`; it has no body"),
    (checks.check_with_decay, nothing_decayed, "the kernel is not decayed"),
    (checks.check_with_decay, coupled, "is decayed by -0.5"),
    (checks.check_with_decay, exercises.with_decay, "is decayed as well"),
    (checks.check_with_decay, two_axes, "of shape (3, 2, 4) is not decayed"),
    (checks.check_with_decay, numbers_too, "['temperature'] of shape () is decayed"),
    (checks.check_with_decay, two_or_four_axes, "of shape (3, 2, 4) is not decayed"),
    (checks.check_with_decay, by_lion, "does not move as Adam moves it"),
    (checks.check_with_decay, of_many_elements, "of shape (40,) is decayed as well"),
    (checks.check_with_decay, turned_round, "the kernel is not decayed"),
    (checks.check_with_decay, by_name, "['norm']['shift'] of shape (3,) is decayed"),
    (checks.check_with_decay, kernels_alone, "whatever its name"),
    (checks.check_with_decay, by_default, "decayed by -1e-05"),
    (checks.check_with_decay, added_to_gradients, "decayed by -0.1"),
    (checks.check_with_decay, always_half, "0.2 * 0.3"),
    (checks.check_with_decay, not_trained, "does not move as Adam moves it"),
    (checks.check_with_decay, more_than_one_element, "is decayed as well"),
    (checks.check_with_decay, longer_than_one, "of shape (1, 4) is not decayed"),
    (checks.check_with_decay, vectors_frozen, "does not move as Adam moves it"),
    (checks.check_last_layer_alone, all_trained, "the first layer moves"),
    (checks.check_last_layer_alone, none_trained, "the last layer does not move"),
    (checks.check_last_layer_alone, last_updates_alone, "another structure"),
    (checks.check_last_layer_alone, by_another_optimizer, "as the optimizer moves it"),
    (checks.check_last_layer_alone, exercises.last_layer_alone, "the first layer moves"),
    (checks.check_last_layer_alone, zero_parameters, "its updates must be zero"),
    (checks.check_last_layer_alone, decay_taken_away, "the first layer moves"),
    (checks.check_last_layer_alone, masked_alone, "are its gradients: `optax.masked`"),
    (checks.check_last_layer_alone, zeros_after, "would count those of frozen layers"),
    (checks.check_last_layer_alone, zeros_before_and_after, "would count those of frozen layers"),
    (checks.check_last_layer_alone, times_zero, "gradients and parameters alone"),
    (checks.check_last_layer_alone, scaled_by_zero, "zero times infinity"),
    (checks.check_last_layer_alone, by_a_key_somewhere, '"middle" moves as well'),
    (checks.check_last_layer_alone, first_and_last, "it raises"),
    (checks.check_last_layer_alone, labels_exchanged, "the last layer does not move"),
    (checks.check_last_layer_alone, state_forgotten, "return the state of its optimizer"),
    (checks.check_last_layer_alone, state_outside, "return the state of its optimizer"),
    (checks.check_last_layer_alone, without_parameters, "it raises ValueError"),
]

RIGHT = [
    (checks.check_head, with_weights_of_numpy),
    (checks.check_clipped, clipped_in_parts),
    (checks.check_clipped, clipped_by_hand),
    (checks.check_clipped, clipped_by_name),
    (checks.check_clipped, adamw_without_decay),
    (checks.check_head, by_moments),
    (checks.check_head, row_by_row),
    (checks.check_head, by_nnx),
    (checks.check_head, jax.jit(ported)),
    (checks.check_with_decay, decayed_after),
    (checks.check_with_decay, decayed_in_parts),
    (checks.check_with_decay, decayed_by_a_partial),
    (checks.check_with_decay, decayed_by_hand),
    (checks.check_last_layer_alone, masked_twice),
    (checks.check_last_layer_alone, by_hand),
    (checks.check_last_layer_alone, by_partition),
    (checks.check_last_layer_alone, by_multi_transform),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None


def test_the_head_is_that_of_pytorch():
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    module = torch.nn.Sequential(torch.nn.LayerNorm(8), *layers)
    state = {name: value.numpy() for name, value in module.state_dict().items()}
    x = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    expected = module(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(solutions.head(state, jnp.array(x)), expected, atol=1e-5)
