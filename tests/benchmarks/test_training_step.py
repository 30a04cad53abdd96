import jax
import numpy as np
import pytest
import tensorflow as tf

from snippets.benchmarks import training_step as steps

BATCHES = {"mlp": 5, "cnn": 2, "block": 2}
IN_TORCH = {"mlp": steps.mlp_torch, "cnn": steps.cnn_torch, "block": steps.block_torch}
IN_TENSORFLOW = {
    "mlp": steps.mlp_tensorflow,
    "cnn": steps.cnn_tensorflow,
    "block": steps.block_tensorflow,
}


def in_numpy(params):
    """Return weights of PyTorch in the order of axes that the others use."""
    arrays = {key: p.detach().numpy() for key, p in params.items()}
    return {
        key: np.moveaxis(np.moveaxis(p, 1, -1), 0, -1) if p.ndim == 4 else p
        for key, p in arrays.items()
    }


@pytest.fixture(params=BATCHES)
def name(request):
    return request.param


@pytest.fixture
def numbers(name):
    return steps.draw(name, BATCHES[name])


@pytest.fixture
def exact(name, numbers):
    """Return the loss and the new weights that float64 gives."""
    params, x, y = steps.in_torch(numbers)
    params = {key: p.detach().double().requires_grad_() for key, p in params.items()}
    value = steps.train_step_torch(steps.loss_torch, IN_TORCH[name], params, x.double(), y.double())
    return value.item(), in_numpy(params)


def test_one_step_is_the_same_in_all_frameworks(name, numbers, exact):
    weights, *batch = jax.device_put(numbers)
    new, value = steps.train_step(weights, batch, steps.MODELS[name])
    assert steps.error_of(value, new, exact) < 2e-6
    params, *data = steps.in_torch(numbers)
    value = steps.train_step_torch(steps.loss_torch, IN_TORCH[name], params, *data)
    assert steps.error_of(value, in_numpy(params), exact) < 2e-6
    weights, x, y = numbers
    variables = {key: tf.Variable(array) for key, array in weights.items()}
    value = steps.train_step_tensorflow(IN_TENSORFLOW[name], variables, x, y)
    assert steps.error_of(value, variables, exact) < 2e-6


def test_a_step_follows_the_derivative(name, numbers, exact):
    params, *data = steps.in_torch(numbers)
    x, y = (array.double() for array in data)
    params = {key: p.detach().double() for key, p in params.items()}
    weight = next(iter(params.values())).view(-1)
    around = []
    for nudge in (1e-5, -2e-5):
        weight[0] += nudge
        around.append(steps.loss_torch(IN_TORCH[name], params, x, y).item())
    derivative = (around[0] - around[1]) / 2e-5
    key = next(iter(params))
    change = exact[1][key].flat[0] - float(numbers[0][key].flat[0])
    assert change == pytest.approx(-steps.RATE * derivative, rel=1e-4)


def test_the_models_compute_what_they_say():
    (weights, x, y) = steps.draw("mlp", 3)
    hidden = np.tanh(np.tanh(x @ weights["w1"]) @ weights["w2"])
    np.testing.assert_allclose(steps.mlp(weights, x), hidden @ weights["w3"], atol=1e-5)
    assert steps.loss(weights, (x, y), steps.mlp) == pytest.approx(
        np.mean((hidden @ weights["w3"] - y) ** 2), rel=1e-5
    )
    image = np.arange(50, dtype=np.float32).reshape(1, 5, 5, 2)
    kernel = np.zeros((3, 3, 2, 1), np.float32)
    kernel[1, 2, 1, 0] = 1
    np.testing.assert_array_equal(
        steps.convolve(image, kernel)[0, :, :, 0], image[0, 1:4:2, 2:5:2, 1]
    )
    line = np.float32([1, 2, 3, 6])
    assert steps.standardized(line).std() == pytest.approx(1, abs=1e-4)


def test_weights_keep_the_size_of_sums():
    weights, x, y = steps.draw("mlp", 7)
    assert (x.shape, y.shape) == ((7, 64), (7, 10))
    assert weights["w2"].std() == pytest.approx(1 / 16, rel=0.02)
    assert not weights["b1"].any()
    assert {array.dtype for array in (*weights.values(), x, y)} == {np.dtype("float32")}


def test_training_goes_on_from_the_last_step():
    numbers = steps.draw("mlp", 32)
    plain = steps.step_jax(steps.mlp, numbers)
    donating = steps.step_jax(steps.mlp, numbers, donate_argnames="params")
    in_torch = steps.step_torch(steps.mlp_torch, numbers)
    in_tensorflow = steps.step_tensorflow(steps.mlp_tensorflow, numbers)
    trained = [
        [float(plain()[1]) for _ in range(10)],
        [float(donating()[1]) for _ in range(10)],
        [float(in_torch()) for _ in range(10)],
        [float(in_tensorflow()) for _ in range(10)],
    ]
    assert trained[0] == sorted(trained[0], reverse=True)
    assert trained[0][-1] < trained[0][0]
    for losses in trained[1:]:
        assert losses == pytest.approx(trained[0], rel=1e-5)


def test_donated_weights_are_gone_and_those_given_are_not():
    numbers = jax.device_put(steps.draw("mlp", 4))
    step = steps.step_jax(steps.mlp, numbers, donate_argnames="params")
    new, _ = step()
    step()
    assert all(array.is_deleted() for array in new.values())
    assert not any(array.is_deleted() for array in jax.tree.leaves(numbers))


def test_torch_has_the_channels_first():
    images = np.zeros((2, 5, 5, 3), np.float32)
    assert steps.channels_first(images).shape == (2, 3, 5, 5)
    assert steps.channels_first(images[0, 0]).shape == (5, 3)
    params, x, _ = steps.in_torch(steps.draw("cnn", 2))
    assert params["k2"].shape == (32, 16, 3, 3)
    assert x.shape == (2, 3, 32, 32)
    assert all(p.requires_grad for p in params.values())


def test_the_error_is_the_largest_of_all():
    exact = 1.0, {"a": np.zeros(2), "b": np.ones(3)}
    assert steps.error_of(1.0, {"a": np.zeros(2), "b": np.float32([1, 1, 1.5])}, exact) == 0.5
    assert steps.error_of(3.0, {"a": np.zeros(2), "b": np.ones(3)}, exact) == 2


def test_donating_saves_the_second_copy_of_the_weights():
    plain = steps.compiled_step("mlp", 4)
    donating = steps.compiled_step("mlp", 4, donate_argnames="params")
    weights, x, y = steps.draw("mlp", 4)
    size = sum(array.nbytes for array in weights.values())
    outside, within = steps.bytes_needed(plain)
    assert outside == pytest.approx(2 * size + x.nbytes + y.nbytes, abs=200)
    assert within > 0
    assert outside - steps.bytes_needed(donating)[0] == pytest.approx(size, abs=200)


def test_what_is_kept_for_the_derivative():
    numbers = steps.draw("mlp", 64)
    hidden = 64 * 256 * 4
    difference = 64 * 10 * 4
    torch_keeps = steps.bytes_kept_torch(steps.mlp_torch, *steps.in_torch(numbers))
    assert torch_keeps == pytest.approx(2 * hidden + difference, rel=0.1)
    assert steps.bytes_kept(steps.mlp, *jax.device_put(numbers)) >= torch_keeps


def test_a_compiled_step_runs_fewer_operations_than_were_written():
    written, run = steps.steps_counted("mlp", 4, steps.compiled_step("mlp", 4))
    assert 0 < run < written


def test_operations_are_counted_in_the_program_that_runs():
    program = type("Program", (), {})()
    program.as_text = lambda: (
        "%inner (p: f32[2]) -> f32[2] {\n  %a = f32[2]{0} add(%p, %p)\n}\n"
        "ENTRY %main (x: f32[2]) -> (f32[2], f32[2]) {\n"
        "  %x = f32[2]{0} parameter(0)\n  %f = f32[2]{0} fusion(%x), kind=kLoop\n"
        "  %d = f32[2]{0} dot(%f, %x)\n"
        "  ROOT %t = (f32[2]{0}, f32[2]{0}) tuple(%f, %d)\n}\n"
    )
    assert steps.steps_counted("mlp", 4, program)[1] == 2


def test_matmuls_of_weights_have_two_axes():
    weights, x, _ = steps.draw("block", 2)
    products = [
        equation.invars
        for equation in jax.make_jaxpr(steps.block)(weights, x).eqns
        if equation.primitive.name == "dot_general"
    ]
    ours = [left for left, right in products if right.aval.shape in steps.SHAPES["block"].values()]
    assert [left.aval.ndim for left in ours] == [2, 2, 2, 2]
