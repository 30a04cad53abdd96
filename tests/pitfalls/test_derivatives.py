import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

from snippets.pitfalls import derivatives

W = jnp.array([[1.0, 0.0], [0.0, 1.0]])
X, LABELS = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([0, 1])


def descended(loss, w, steps=300):
    gradient = jax.jit(jax.grad(loss))
    for _ in range(steps):
        w = w - gradient(w, X, LABELS)
    return w


def test_accuracy_has_a_gradient_of_zero_and_cross_entropy_trains():
    assert derivatives.accuracy(W, X, LABELS) == 0.5
    assert not jax.grad(derivatives.accuracy)(W, X, LABELS).any()
    assert (descended(derivatives.accuracy, W) == W).all()
    trained = descended(derivatives.cross_entropy, W)
    assert derivatives.accuracy(trained, X, LABELS) == 1


def test_steps_are_flat():
    gradients = jax.jacfwd(derivatives.stepped)(1.2)
    assert {name: float(gradient) for name, gradient in gradients.items()} == dict.fromkeys(
        derivatives.stepped(jnp.float32(1.2)), 0
    )


@given(st.floats(-9, 9, width=16))
@settings(deadline=None)
def test_straight_through(x):
    assert derivatives.rounded_through(x) == pytest.approx(np.round(x))
    assert jax.grad(derivatives.rounded_through)(x) == 1


def test_the_first_argument_is_differentiated(raises_declared):
    x, w = jnp.ones((3, 2)), jnp.ones(2)
    assert jax.grad(derivatives.squared_error)(x, w).shape == x.shape
    raises_declared(derivatives.gradient_by_name, x, w)
    expected = jax.grad(derivatives.squared_error, argnums=1)(x, w)
    assert expected.tolist() == [4, 4]
    assert derivatives.gradient_for_w(x, w).tolist() == [4, 4]


def test_a_second_result_comes_along(raises_declared):
    w, x = jnp.ones(2), jnp.ones((3, 2))
    raises_declared(derivatives.loss_and_predictions, w, x)
    gradient, predictions = derivatives.gradient_and_predictions(w, x)
    assert gradient.tolist() == [4, 4]
    assert predictions.tolist() == [2, 2, 2]


def test_a_count_has_no_gradient(raises_declared):
    xs = jnp.array([-1.0, 2.0])
    raises_declared(derivatives.gradient_of_count, xs)
    assert not jax.grad(lambda xs: jnp.sum(xs > 0).astype(float))(xs).any()
    assert (derivatives.gradient_of_soft_count(xs) > 0).all()


def test_texts_are_no_parameters(raises_declared):
    both = {"w": 0.5, "activation": "tanh"}
    raises_declared(derivatives.gradients_of_settings, both, 1.0)
    assert derivatives.activated(both, 1.0) == pytest.approx(np.tanh(0.5))


def test_the_backward_rule_has_an_entry_for_each_argument():
    scaled = derivatives.scaled
    scaled.defvjp(derivatives.scale_forward, derivatives.scale_backward_short)
    with pytest.raises(TypeError, match="Custom VJP bwd rule must produce an output with the same"):
        jax.grad(scaled)(3.0, 2.0)
    scaled.defvjp(derivatives.scale_forward, lambda kept, g: (kept[1] * g, None))
    assert jax.grad(scaled, argnums=(0, 1))(3.0, 2.0) == (2, 0)
    scaled.defvjp(derivatives.scale_forward, derivatives.scale_backward)
    assert jax.grad(scaled, argnums=(0, 1))(3.0, 2.0) == (2, 3)
    check_grads(scaled, (jnp.array([3.0]), jnp.array([2.0])), order=2, modes=["rev"])


def test_a_rule_has_no_gradient_for_what_it_closes_over(raises_declared):
    raises_declared(derivatives.gradient_of_scale, 3.0, 2.0)
    assert jax.grad(derivatives.scale_closed)(3.0, 2.0) == 2


def test_functions_are_named_as_not_differentiable(raises_declared):
    raises_declared(derivatives.gradient_of_through, 1.2)
    through = derivatives.through
    through.defvjp(derivatives.through_forward, derivatives.through_backward)
    assert through(jnp.round, 1.2) == 1
    assert jax.grad(through, argnums=1)(jnp.round, 1.2) == 1
    with pytest.raises(jax.errors.UnexpectedTracerError, match="nondiff_argnums"):
        jax.jit(lambda x: through(x, x))(1.2)


def test_a_backward_rule_without_the_incoming_gradient():
    cube = derivatives.cube
    cube.defvjp(derivatives.cube_forward, derivatives.cube_backward_alone)
    assert jax.grad(cube)(2.0) == jax.grad(lambda x: 10 * cube(x))(2.0) == 12
    with pytest.raises(AssertionError):
        check_grads(cube, (jnp.array([2.0]),), order=1, modes=["rev"])
    cube.defvjp(derivatives.cube_forward, derivatives.cube_backward)
    assert jax.grad(lambda x: 10 * cube(x))(2.0) == 120
    check_grads(cube, (jnp.array([2.0]),), order=2, modes=["rev"])


def test_a_rule_without_a_direction():
    cube = derivatives.cube_by_jvp
    cube.defjvp(derivatives.cube_derivative)
    assert jax.jacfwd(cube)(2.0) == 12
    assert jax.grad(cube)(2.0) == 0
    with pytest.raises(AssertionError):
        check_grads(cube, (jnp.array([2.0]),), order=1)
    cube.defjvp(derivatives.cube_jvp)
    assert jax.grad(lambda x: 10 * cube(x))(2.0) == 120
    check_grads(cube, (jnp.array([2.0]),), order=2)


def test_a_rule_is_linear_in_the_direction(raises_declared):
    raises_declared(derivatives.gradient_of_bent, 2.0)


def test_custom_vjp_has_no_forward_mode(raises_declared):
    derivatives.cube.defvjp(derivatives.cube_forward, derivatives.cube_backward)
    derivatives.cube_by_jvp.defjvp(derivatives.cube_jvp)
    raises_declared(derivatives.forward_derivative, 2.0)
    assert jax.jacrev(derivatives.cube)(2.0) == 12
    assert jax.jacfwd(derivatives.cube_by_jvp)(2.0) == 12
    assert jax.hessian(derivatives.cube)(2.0) == 12


@pytest.mark.parametrize("shape", [(), (5,)])
def test_a_hijax_rule_serves_both_modes(shape):
    x, scale = 3 * jnp.ones(shape), 2 * jnp.ones(shape)
    both_modes = derivatives.Scaled(jax.typeof(x), jax.typeof(scale))
    check_grads(both_modes, (x, scale), order=2)
    derivatives.scaled.defvjp(derivatives.scale_forward, derivatives.scale_backward)
    for argnums in 0, 1, (0, 1):
        ours, expected = (
            jax.jit(jax.grad(lambda *args, f=f: f(*args).sum(), argnums=argnums))(x, scale)
            for f in (both_modes, derivatives.scaled)
        )
        jax.tree.map(np.testing.assert_array_equal, ours, expected)
    along = jax.jvp(both_modes, (x, scale), (scale, x))
    plain = jax.jvp(lambda x, scale: x * scale, (x, scale), (scale, x))
    jax.tree.map(np.testing.assert_array_equal, along, plain)


def test_a_hijax_rule_keeps_nothing_for_a_constant():
    x, scale = jnp.ones(1000), jnp.ones(1000)
    derivatives.scaled.defvjp(derivatives.scale_forward, derivatives.scale_backward)
    kept, compiled = {}, {}
    for f in derivatives.scaled, derivatives.Scaled(jax.typeof(x), jax.typeof(scale)):

        def for_x(x, f=f):
            return f(jnp.sin(x), scale)

        _, backward = jax.vjp(for_x, x)
        kept[type(f).__name__] = len(jax.tree.leaves(backward))
        gradient = jax.jit(jax.grad(lambda x: for_x(x).sum())).lower(x).compile()
        compiled[type(f).__name__] = gradient.memory_analysis().temp_size_in_bytes
    # One of them is the cosine that the sine keeps.
    assert kept == {"custom_vjp": 3, "Scaled": 2}
    # Compiled as one program, nothing of it is left.
    assert compiled["custom_vjp"] == compiled["Scaled"]


def test_a_custom_vjp_that_asks_for_symbolic_zeros_keeps_as_little():
    def forward(x, scale):
        kept = x.value if scale.perturbed else None, scale.value if x.perturbed else None
        return x.value * scale.value, kept

    scaled = jax.custom_vjp(lambda x, scale: x * scale)
    scaled.defvjp(forward, lambda kept, g: (kept[1] * g, None), symbolic_zeros=True)
    _, backward = jax.vjp(lambda x: scaled(x, jnp.array(2.0)), jnp.array(3.0))
    assert len(jax.tree.leaves(backward)) == 1
    assert backward(1.0) == (2,)


@pytest.mark.parametrize("transform", [jax.vmap, jax.jacfwd, jax.hessian])
def test_without_a_method_for_it_a_hijax_class_has_no_vmap(transform):
    x = jnp.array(3.0)
    both_modes = derivatives.Scaled(jax.typeof(x), jax.typeof(x))
    assert jax.jacrev(both_modes)(x, x) == 3
    x = x[None] if transform is jax.vmap else x
    with pytest.raises(NotImplementedError, match="must implement `batch`"):
        transform(both_modes)(x, x)


def test_linearize_needs_two_more_rules_which_jax_0_12_derives():
    x, scale = jnp.array(3.0), jnp.array(2.0)
    avals = jax.typeof(x), jax.typeof(scale)
    with pytest.raises(NotImplementedError, match="must implement `lin` and `linearized`"):
        jax.linearize(derivatives.Scaled(*avals), x, scale)
    derive = getattr(derivatives.hijax, "linearize_from_jvp", None)
    assert (derive is not None) == (jax.__version_info__ >= (0, 12))
    if derive:
        linear = type("Linear", (derivatives.Scaled,), {})
        linear.lin, linear.linearized = derive
        value, change = jax.linearize(linear(*avals), x, scale)
        assert (value, change(1.0, 0.0)) == (6, 2)


@pytest.mark.parametrize("training", [True, False])
def test_flags_of_a_checkpoint_are_static(raises_declared, training):
    raises_declared(derivatives.gradient_of_layer, 1.0, 0.5, training)
    expected = jax.grad(derivatives.layer)(1.0, 0.5, training)
    assert derivatives.gradient_of_layer_static(1.0, 0.5, training) == pytest.approx(expected)
    with pytest.raises(ValueError, match="can only take integer values"):
        jax.checkpoint(derivatives.layer, static_argnums=2)(1.0, 0.5, training=training)
