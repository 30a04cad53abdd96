"""Answers to the exercises on precision and memory: what is said of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from snippets.learn.checks import memory as checks
from snippets.learn.exercises import memory as exercises
from snippets.learn.solutions import memory as solutions
from snippets.programs.practice import problem_of


def left_in_bfloat16(x, kernel):
    return jnp.bfloat16(x) @ jnp.bfloat16(kernel)


def x_converted(x, kernel):
    return jnp.bfloat16(x) @ kernel


def rounded_after(x, kernel):
    return jnp.float32(jnp.bfloat16(x @ kernel))


def rounded_first(x, kernel):
    return jnp.float32(jnp.bfloat16(x)) @ jnp.float32(jnp.bfloat16(kernel))


def in_float16(x, kernel):
    return jnp.float32(jnp.float16(x) @ jnp.float16(kernel))


def of_products(x, kernel):
    products = jnp.bfloat16(x)[:, :, None] * jnp.bfloat16(kernel)
    return jnp.float32(products.sum(axis=1))


def named_by_a_text(x, kernel):
    return x.astype("bf16") @ kernel.astype("bf16")


def kernel_first(x, kernel):
    return jnp.float32(jnp.bfloat16(kernel) @ jnp.bfloat16(x))


def of_one_row(x, kernel):
    return jnp.float32(jnp.bfloat16(x[0]) @ jnp.bfloat16(kernel))[None]


def by_astype(x, kernel):
    return (x.astype(jnp.bfloat16) @ kernel.astype("bfloat16")).astype(x.dtype)


def by_dot_general(x, kernel):
    low, right = x.astype("bfloat16"), kernel.astype("bfloat16")
    return jax.lax.dot(low, right, preferred_element_type=jnp.float32)


def summed_in_float32(x, kernel):
    return jnp.matmul(jnp.bfloat16(x), jnp.bfloat16(kernel), preferred_element_type="float32")


def by_einsum(x, kernel):
    low = jax.tree.map(jnp.bfloat16, (x, kernel))
    return jnp.einsum("rn,nm->rm", *low, preferred_element_type=jnp.float32)


def row_after_row(x, kernel):
    dot = functools.partial(jnp.dot, preferred_element_type=jnp.float32)
    low = jnp.bfloat16(kernel)
    return jax.vmap(lambda row: dot(jnp.bfloat16(row), low))(x)


def by_root_mean_square(epsilon=1e-6, axis=-1, inside=True, mean=jnp.mean):
    def rms_norm(scale, x):
        y = x.astype(jnp.float32)
        square = mean(y * y, axis=axis, keepdims=True)
        root = jnp.sqrt(square + epsilon) if inside else jnp.sqrt(square) + epsilon
        return (scale * y / root).astype(x.dtype)

    return rms_norm


def left_in_float32(scale, x):
    y = x.astype(jnp.float32)
    return scale * y * jax.lax.rsqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)


def always_bfloat16(scale, x):
    return left_in_float32(scale, x).astype(jnp.bfloat16)


def squared_in_its_dtype(scale, x):
    square = jnp.mean((x * x).astype(jnp.float32), axis=-1, keepdims=True)
    return (scale * x.astype(jnp.float32) * jax.lax.rsqrt(square + 1e-6)).astype(x.dtype)


def mean_in_float32(scale, x):
    square = jnp.mean(x * x, axis=-1, keepdims=True, dtype=jnp.float32)
    return (scale * x * jax.lax.rsqrt(square + 1e-6)).astype(x.dtype)


def rounded_before_the_scale(scale, x):
    y = left_in_float32(jnp.ones_like(scale), x).astype(x.dtype)
    return (scale * y).astype(x.dtype)


def with_a_rounded_scale(scale, x):
    return left_in_float32(scale.astype(x.dtype).astype(jnp.float32), x).astype(x.dtype)


def without_a_scale(scale, x):
    return left_in_float32(jnp.ones_like(scale), x).astype(x.dtype)


def as_a_layer_norm(scale, x):
    y = x.astype(jnp.float32)
    return left_in_float32(scale, y - y.mean(axis=-1, keepdims=True)).astype(x.dtype)


def squared_twice(scale, x):
    y = x.astype(jnp.float32)
    return (scale * y / (jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype)


def without_keeping_dims(scale, x):
    y = x.astype(jnp.float32)
    return (scale * y / jnp.sqrt(jnp.mean(y * y, axis=-1) + 1e-6)).astype(x.dtype)


def cut_off(scale, x):
    small = jnp.clip(x, -200, 200)
    return left_in_float32(scale, small).astype(x.dtype)


def for_rows_of_64(scale, x):
    y = x.astype(jnp.float32)
    square = jnp.sum(y * y, axis=-1, keepdims=True) / 64
    return (scale * y * jax.lax.rsqrt(square + 1e-6)).astype(x.dtype)


def root_not_differentiated(scale, x):
    y = x.astype(jnp.float32)
    root = jnp.sqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)
    return (scale * y / jax.lax.stop_gradient(root)).astype(x.dtype)


def in_numpy(scale, x):
    y = np.asarray(x, np.float32)
    root = np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + 1e-6)
    return jnp.asarray(np.asarray(scale) * y / root, x.dtype)


def norm_and_root(scale, x):
    return solutions.rms_norm(scale, x), jnp.sqrt(jnp.mean(x * x, axis=-1))


def norm_by_vmap(scale, x):
    def of_row(row):
        y = row.astype("float32")
        return (y * scale / jnp.sqrt(jnp.vdot(y, y) / len(y) + 1e-6)).astype(row.dtype)

    return jax.vmap(of_row)(x)


def by_variance(scale, x):
    y = jnp.float32(x)
    square = jnp.var(y, axis=1) + jnp.square(y.mean(axis=1))
    return jnp.asarray(y / jnp.sqrt(square + 1e-6)[:, None] * scale, x.dtype)


def by_linalg(scale, x):
    y = x.astype(scale.dtype)
    root = jnp.linalg.norm(y, axis=-1, keepdims=True) / y.shape[-1] ** 0.5
    return (y * scale / jnp.hypot(root, 1e-3)).astype(x.dtype)


def promoted(scale, x):
    square = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True)
    return (x * (scale * jax.lax.rsqrt(square + 1e-6))).astype(x.dtype)


def step(params, batch, rate, forward="bfloat16", error="float32"):
    def loss(params):
        x, y = batch
        low = jax.tree.map(lambda leaf: leaf.astype(forward), params)
        predicted = x.astype(forward) @ low["kernel"] + low["bias"]
        return jnp.mean((predicted.astype(error) - y.astype(error)) ** 2)

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def in_float32(params, batch, rate):
    return step(params, batch, rate, forward="float32")


def squared_in_bfloat16(params, batch, rate):
    return step(params, batch, rate, error="bfloat16")


def multiplied_in_bfloat16(params, batch, rate):
    def loss(params):
        x, y, low = jax.tree.map(lambda leaf: leaf.astype("bfloat16"), (*batch, params))
        e = x @ low["kernel"] + low["bias"] - y
        return jnp.mean((e * e).astype("float32"))

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def wrong_way(params, batch, rate):
    return step(params, batch, -rate)


def rounded_before(params, batch, rate):
    def loss(params):
        x, y = jax.tree.map(lambda leaf: leaf.astype("bfloat16").astype("float32"), batch)
        return jnp.mean((x @ params["kernel"] + params["bias"] - y) ** 2)

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def kernel_alone(params, batch, rate):
    return params | {"kernel": solutions.mixed_step(params, batch, rate)["kernel"]}


def difference_in_bfloat16(params, batch, rate):
    def loss(params):
        x, y, low = jax.tree.map(jnp.bfloat16, (*batch, params))
        error = x @ low["kernel"] + low["bias"] - y
        return jnp.mean(jnp.float32(error) ** 2)

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def almost_squared_in_bfloat16(params, batch, rate):
    def loss(params):
        x, y, low = jax.tree.map(jnp.bfloat16, (*batch, params))
        error = x @ low["kernel"] + low["bias"] + -y
        return jnp.mean(jnp.float32(error * (error + 0)))

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def step_in_bfloat16(params, batch, rate):
    low = jax.tree.map(jnp.bfloat16, params)
    new = jax.tree.map(
        lambda p, new, old: p + jnp.bfloat16(new - old),
        low,
        solutions.mixed_step(params, batch, rate),
        params,
    )
    return jax.tree.map(jnp.float32, new)


def from_rounded_parameters(params, batch, rate):
    rounded = jax.tree.map(lambda leaf: jnp.float32(jnp.bfloat16(leaf)), params)
    return solutions.mixed_step(rounded, batch, rate)


def with_rounded_labels(params, batch, rate):
    x, y = batch
    return solutions.mixed_step(params, (x, jnp.float32(jnp.bfloat16(y))), rate)


def with_x_transposed(params, batch, rate):
    return solutions.mixed_step(params, (batch[0].T, batch[1]), rate)


def of_the_sum(params, batch, rate):
    return solutions.mixed_step(params, batch, 8 * rate)


def of_the_mean_over_rows(params, batch, rate):
    return solutions.mixed_step(params, batch, 2 * rate)


def at_one_rate(params, batch, rate):
    return solutions.mixed_step(params, batch, 1e-3)


def mixed_float16(params, batch, rate):
    return step(params, batch, rate, forward="float16")


def x_in_float32(params, batch, rate):
    def loss(params):
        x, y = batch
        low = jax.tree.map(jnp.bfloat16, params)
        return jnp.mean((x @ low["kernel"] + low["bias"] - y) ** 2)

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def gradients_alone(params, batch, rate):
    new = solutions.mixed_step(params, batch, rate)
    return jax.tree.map(lambda p, n: (p - n) / rate, params, new)


donated = functools.partial(jax.jit, donate_argnums=0)(step)


def bias_in_float32(params, batch, rate):
    def loss(params):
        x, y = batch
        product = jnp.bfloat16(x) @ jnp.bfloat16(params["kernel"])
        return jnp.mean(jnp.square(product.astype("float32") + params["bias"] - y))

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def promoted_by_the_labels(params, batch, rate):
    def loss(kernel, bias):
        x, y = batch
        predicted = x.astype("bfloat16") @ kernel.astype("bfloat16") + bias.astype("bfloat16")
        return ((y - predicted) ** 2).mean()

    grads = jax.grad(loss, argnums=(0, 1))(params["kernel"], params["bias"])
    return {
        "kernel": params["kernel"] - rate * grads[0],
        "bias": params["bias"] - rate * grads[1],
    }


def by_optax(params, batch, rate):
    def loss(params):
        low, x = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, batch[0]))
        predicted = jnp.dot(x, low["kernel"], preferred_element_type=jnp.float32)
        return 2 * optax.l2_loss(predicted + params["bias"], batch[1]).mean()

    optimizer = optax.sgd(rate)
    updates, _ = optimizer.update(jax.grad(loss)(params), optimizer.init(params))
    return optax.apply_updates(params, updates)


def row_by_row(params, batch, rate):
    def error(params, x, y):
        low = jax.tree.map(jnp.bfloat16, params)
        return jnp.float32(jnp.bfloat16(x) @ low["kernel"] + low["bias"]) - y

    def loss(params):
        errors = jax.vmap(error, in_axes=(None, 0, 0))(params, *batch)
        return jnp.sum(errors * errors) / errors.size

    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))


def another_loss(kernels, x):
    return 2 * solutions.deep_loss(kernels, x)


def around_the_whole(kernels, x):
    return jax.checkpoint(exercises.deep_loss)(kernels, x)


def everything_kept(kernels, x):
    policy = jax.checkpoint_policies.everything_saveable

    def step(x, kernels):
        return solutions.thick_layer(kernels, x), None

    kept = jax.checkpoint(step, policy=policy)
    return jnp.mean(jax.lax.scan(kept, x, kernels)[0] ** 2)


def three_layers(kernels, x):
    return solutions.deep_loss(jax.tree.map(lambda kernel: kernel[:3], kernels), x)


def in_reverse(kernels, x):
    return solutions.deep_loss(jax.tree.map(jnp.flip, kernels), x)


def layers_backwards(kernels, x):
    return solutions.deep_loss(jax.tree.map(lambda kernel: kernel[::-1], kernels), x)


def one_more(kernels, x):
    return 1 + solutions.deep_loss(kernels, x)


def deep(layer):
    def loss(kernels, x):
        def step(x, kernels):
            return layer(kernels, x), None

        return jnp.mean(jax.lax.scan(step, x, kernels)[0] ** 2)

    return loss


dots_kept = deep(
    jax.checkpoint(solutions.thick_layer, policy=jax.checkpoint_policies.dots_saveable)
)


@deep
def activation_recomputed(kernels, x):
    up, down = kernels
    inner = jax.checkpoint(lambda y: jnp.tanh(jax.nn.gelu(y) ** 2))
    return x + inner(x @ up) @ down


@deep
def without_the_rest(kernels, x):
    up, down = kernels
    return jax.checkpoint(lambda x: jnp.tanh(jax.nn.gelu(x @ up) ** 2) @ down)(x)


@deep
def not_differentiated(kernels, x):
    return jax.lax.stop_gradient(jax.checkpoint(solutions.thick_layer)(kernels, x))


@deep
def low_precision(kernels, x):
    low = jax.tree.map(jnp.bfloat16, kernels)
    return x + jax.checkpoint(solutions.thick_layer)(low, jnp.bfloat16(x)).astype("float32") - x


def result_recomputed(kernels, x):
    x, _ = jax.lax.scan(lambda x, k: (solutions.thick_layer(k, x), None), x, kernels)
    return jax.checkpoint(lambda x: jnp.mean(x**2))(x)


@deep
@functools.partial(jax.remat, policy=jax.checkpoint_policies.nothing_saveable)
def by_remat(kernels, x):
    return solutions.thick_layer(kernels, x)


@deep
def around_the_inside(kernels, x):
    up, down = kernels
    return x + jax.checkpoint(lambda x: jnp.tanh(jax.nn.gelu(x @ up) ** 2) @ down)(x)


def in_a_fori_loop(kernels, x):
    @jax.checkpoint
    def layer(i, x):
        return solutions.thick_layer(jax.tree.map(lambda kernel: kernel[i], kernels), x)

    return jnp.mean(jax.lax.fori_loop(0, len(kernels[0]), layer, x) ** 2)


def in_groups_of_one(kernels, x):
    layer = jax.checkpoint(solutions.thick_layer, prevent_cse=False)
    x = jax.lax.scan(lambda x, pair: (layer(pair, x), ()), x, tuple(kernels))[0]
    return jnp.square(x).mean()


@jax.jit
def with_gradients_in_bfloat16(params, batch, rate):
    def loss(low):
        x, y = batch
        found = jnp.bfloat16(x) @ low["kernel"] + low["bias"]
        return jnp.mean((jnp.float32(found) - y) ** 2)

    grads = jax.grad(loss)(jax.tree.map(jnp.bfloat16, params))
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


WRONG = [
    (checks.check_low_matmul, exercises.low_matmul, "convert both x and the kernel"),
    (checks.check_low_matmul, left_in_bfloat16, "convert the product back"),
    (checks.check_low_matmul, x_converted, "convert both x and the kernel"),
    (checks.check_low_matmul, rounded_after, "convert both x and the kernel"),
    (checks.check_low_matmul, rounded_first, "right before it"),
    (checks.check_low_matmul, in_float16, "whose largest number is 65504"),
    (checks.check_low_matmul, of_products, "its program has no matmul"),
    (checks.check_low_matmul, named_by_a_text, "it raises TypeError"),
    (checks.check_low_matmul, kernel_first, "it raises TypeError: dot_general"),
    (checks.check_low_matmul, of_one_row, "is to come out"),
    (checks.check_low_matmul, by_astype, "the sum was rounded to bfloat16"),
    (checks.check_rms_norm, exercises.rms_norm, "convert before you square"),
    (checks.check_rms_norm, for_rows_of_64, "for rows of another length"),
    (checks.check_rms_norm, root_not_differentiated, "another derivative"),
    (checks.check_rms_norm, in_numpy, "it raises TracerArrayConversionError"),
    (checks.check_rms_norm, norm_and_root, "it returns a tuple"),
    (checks.check_rms_norm, left_in_float32, "it returns float32; convert the result"),
    (checks.check_rms_norm, always_bfloat16, "for numbers in float32 it returns others"),
    (checks.check_rms_norm, squared_in_its_dtype, "convert before you square"),
    (checks.check_rms_norm, mean_in_float32, "convert before you square"),
    (checks.check_rms_norm, rounded_before_the_scale, "rounded once"),
    (checks.check_rms_norm, with_a_rounded_scale, "rounded once"),
    (checks.check_rms_norm, without_a_scale, "it does not scale"),
    (checks.check_rms_norm, as_a_layer_norm, "it subtracts the mean"),
    (checks.check_rms_norm, squared_twice, "returns others than before"),
    (checks.check_rms_norm, without_keeping_dims, "it raises ValueError"),
    (checks.check_rms_norm, cut_off, "for numbers about 1000 in float32"),
    (checks.check_rms_norm, by_root_mean_square(axis=0), "over the rows"),
    (checks.check_rms_norm, by_root_mean_square(axis=None), "one mean of all rows"),
    (checks.check_rms_norm, by_root_mean_square(epsilon=0), "it returns nan"),
    (checks.check_rms_norm, by_root_mean_square(inside=False), "under the root"),
    (checks.check_rms_norm, by_root_mean_square(mean=jnp.sum), "root of the sum"),
    (checks.check_rms_norm, by_root_mean_square(epsilon=1e-5), "under the root"),
    (checks.check_mixed_step, exercises.mixed_step, "are lost in bfloat16"),
    (checks.check_mixed_step, in_float32, "nothing is computed in bfloat16"),
    (checks.check_mixed_step, rounded_before, "the matmul multiplies numbers that are not"),
    (checks.check_mixed_step, squared_in_bfloat16, "the error is a difference in bfloat16"),
    (checks.check_mixed_step, multiplied_in_bfloat16, "the error is a difference in bfloat16"),
    (checks.check_mixed_step, wrong_way, "the step changes the kernel"),
    (checks.check_mixed_step, kernel_alone, "the bias does not move"),
    (checks.check_mixed_step, difference_in_bfloat16, "in which 1.001 is 1"),
    (checks.check_mixed_step, almost_squared_in_bfloat16, "squared in bfloat16"),
    (checks.check_mixed_step, step_in_bfloat16, "the step is lost where it is subtracted"),
    (checks.check_mixed_step, from_rounded_parameters, "is rounded to 1 before the step"),
    (checks.check_mixed_step, with_rounded_labels, "at a rate of 1.0 the step changes"),
    (checks.check_mixed_step, with_x_transposed, "it raises TypeError"),
    (checks.check_mixed_step, of_the_sum, "at a rate of 0.001 the step changes"),
    (checks.check_mixed_step, of_the_mean_over_rows, "at a rate of 0.001 the step changes"),
    (checks.check_mixed_step, at_one_rate, "at a rate of 1.0 the step changes"),
    (checks.check_mixed_step, mixed_float16, "the matmul is in float16"),
    (checks.check_mixed_step, x_in_float32, "convert both x and the kernel"),
    (checks.check_mixed_step, gradients_alone, "the step changes the kernel"),
    (checks.check_deep_loss, another_loss, "it returns"),
    (checks.check_deep_loss, three_layers, "for 5 layers"),
    (checks.check_deep_loss, in_reverse, "for 3 layers it returns"),
    (checks.check_deep_loss, layers_backwards, "for 3 layers it returns"),
    (checks.check_deep_loss, one_more, "for 3 layers it returns"),
    (checks.check_deep_loss, dots_kept, "MiB beside its arguments"),
    (checks.check_deep_loss, activation_recomputed, "MiB beside its arguments"),
    (checks.check_deep_loss, without_the_rest, "for 3 layers it returns"),
    (checks.check_deep_loss, not_differentiated, "another gradient than before"),
    (checks.check_deep_loss, low_precision, "for 3 layers it"),
    (checks.check_deep_loss, result_recomputed, "MiB beside its arguments"),
    (checks.check_deep_loss, exercises.deep_loss, "MiB beside its arguments"),
    (checks.check_deep_loss, around_the_whole, "the inputs of all layers are 2 MiB"),
    (checks.check_deep_loss, everything_kept, "the gradient needs"),
]

RIGHT = [
    (checks.check_low_matmul, by_dot_general),
    (checks.check_low_matmul, summed_in_float32),
    (checks.check_low_matmul, jax.jit(by_einsum)),
    (checks.check_low_matmul, row_after_row),
    (checks.check_rms_norm, by_root_mean_square()),
    (checks.check_rms_norm, jax.jit(norm_by_vmap)),
    (checks.check_rms_norm, by_variance),
    (checks.check_rms_norm, by_linalg),
    (checks.check_rms_norm, promoted),
    (checks.check_mixed_step, bias_in_float32),
    (checks.check_mixed_step, with_gradients_in_bfloat16),
    (checks.check_mixed_step, jax.jit(promoted_by_the_labels)),
    (checks.check_mixed_step, by_optax),
    (checks.check_mixed_step, donated),
    (checks.check_mixed_step, row_by_row),
    (checks.check_deep_loss, by_remat),
    (checks.check_deep_loss, around_the_inside),
    (checks.check_deep_loss, in_a_fori_loop),
    (checks.check_deep_loss, in_groups_of_one),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
