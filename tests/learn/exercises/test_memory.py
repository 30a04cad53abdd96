"""Answers to the exercises on data, precision and memory: what is said of them."""

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


def summed_in_float32(x, kernel):
    return jnp.matmul(jnp.bfloat16(x), jnp.bfloat16(kernel), preferred_element_type="float32")


def by_einsum(x, kernel):
    low = jax.tree.map(jnp.bfloat16, (x, kernel))
    return jnp.float32(jnp.einsum("rn,nm->rm", *low))


def row_after_row(x, kernel):
    low = jnp.bfloat16(kernel)
    return jax.vmap(lambda row: jnp.float32(jnp.bfloat16(row) @ low))(x)


def one_order(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed, 0, start)


def never_the_same(count, size, seed, epoch, start=0):
    order = np.random.default_rng().permutation(count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def sum_of_seed_and_epoch(count, size, seed, epoch, start=0):
    order = np.random.default_rng(seed + epoch).permutation(count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def the_first_eight(count, size, seed, epoch, start=0):
    whole = count // size
    order = np.random.default_rng((seed, epoch)).permutation(whole * size)
    return [order[i * size : (i + 1) * size] for i in range(start, whole)]


def from_an_example_on(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).permutation(count)[start:]
    return [order[i * size : (i + 1) * size] for i in range(len(order) // size)]


def drawn_with_repetition(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).integers(0, 4, count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def batches_by(order_of, count, size, seed, epoch, start=0):
    order = order_of(seed, epoch, count)
    return [order[i * size : (i + 1) * size] for i in range(start, count // size)]


def by_hundreds(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(100 * seed + epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def by_primes(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(7 * seed + 13 * epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def by_ten_thousands(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(10_000 * seed + epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def rolled(*args, **options):
    def order_of(seed, epoch, count):
        return np.roll(np.random.default_rng(seed).permutation(count), epoch)

    return batches_by(order_of, *args, **options)


def without_a_seed(*args, **options):
    def order_of(seed, epoch, count):
        return np.random.default_rng(epoch).permutation(count)

    return batches_by(order_of, *args, **options)


def from_one_on(*args, **options):
    def order_of(seed, epoch, count):
        return 1 + np.random.default_rng((seed, epoch)).permutation(count)

    return batches_by(order_of, *args, **options)


def without_the_last(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).permutation(count)
    return [order[i : i + size] for i in range(0, count, size)][:-1][start:]


def start_forgotten(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed, epoch)


def start_in_examples(count, size, seed, epoch, start=0):
    order = np.random.default_rng((seed, epoch)).permutation(count)
    return [order[i : i + size] for i in range(start, count - size + 1, size)]


def one_batch_after_the_start(count, size, seed, epoch, start=0):
    return solutions.batches_of(count, size, seed, epoch)[start : start + 2]


def shuffled_on_the_way(count, size, seed, epoch, start=0):
    generator = np.random.default_rng((seed, epoch))
    return [generator.permutation(count)[:size] for _ in range(start, count // size)]


def batches_shuffled(count, size, seed, epoch, start=0):
    batches = np.arange(count // size * size).reshape(-1, size)
    return np.random.default_rng((seed, epoch)).permutation(batches)[start:]


def by_a_seed_sequence(count, size, seed, epoch, start=0):
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    order = np.arange(count)
    generator.shuffle(order)
    return list(order[: count // size * size].reshape(-1, size)[start:])


def by_a_key(count, size, seed, epoch, start=0):
    key = jax.random.fold_in(jax.random.key(seed), epoch)
    order = np.asarray(jax.random.permutation(key, count))
    return [order[i : i + size] for i in range(start * size, count - size + 1, size)]


def epoch_after_epoch(count, size, seed, epoch, start=0):
    generator = np.random.default_rng(seed)
    for _ in range(epoch + 1):
        order = generator.permutation(count)
    whole = count // size
    return np.split(order[: whole * size], whole)[start:]


def one_at_a_time(count, size, seed, epoch, start=0):
    order = np.random.default_rng([epoch, seed]).permutation(count)
    for number in range(start, count // size):
        yield order[number * size : (number + 1) * size]


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
    (checks.check_batches_of, by_hundreds, "epoch 100 of seed 0 is epoch 0 of seed 1"),
    (checks.check_batches_of, by_primes, "epoch 7 of seed 0 is epoch 0 of seed 13"),
    (checks.check_batches_of, by_ten_thousands, "epoch 10000 of seed 0 is"),
    (checks.check_batches_of, rolled, "begin with the same batch"),
    (checks.check_batches_of, without_a_seed, "all seeds have the same order"),
    (checks.check_batches_of, from_one_on, "are not all below 10"),
    (checks.check_batches_of, without_the_last, "8 examples make 2 batches"),
    (checks.check_batches_of, start_forgotten, "from batch 1 on"),
    (checks.check_batches_of, start_in_examples, "from batch 1 on"),
    (checks.check_batches_of, one_batch_after_the_start, "from batch 1 on"),
    (checks.check_batches_of, shuffled_on_the_way, "an example occurs twice"),
    (checks.check_batches_of, batches_shuffled, "only 8 of 10 examples occur"),
    (checks.check_batches_of, one_order, "all epochs have the same order"),
    (checks.check_batches_of, never_the_same, "no run can be repeated"),
    (checks.check_batches_of, sum_of_seed_and_epoch, "epoch 1 of seed 0 is epoch 0 of seed 1"),
    (checks.check_batches_of, the_first_eight, "only 8 of 10 examples occur"),
    (checks.check_batches_of, from_an_example_on, "from batch 1 on"),
    (checks.check_batches_of, drawn_with_repetition, "an example occurs twice"),
    (checks.check_batches_of, exercises.batches_of, "the batches have sizes [4, 4, 2]"),
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
    (checks.check_low_matmul, by_astype),
    (checks.check_low_matmul, summed_in_float32),
    (checks.check_low_matmul, jax.jit(by_einsum)),
    (checks.check_low_matmul, row_after_row),
    (checks.check_batches_of, by_a_seed_sequence),
    (checks.check_batches_of, by_a_key),
    (checks.check_batches_of, epoch_after_epoch),
    (checks.check_batches_of, one_at_a_time),
    (checks.check_mixed_step, bias_in_float32),
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
