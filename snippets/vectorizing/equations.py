"""Differential and implicit equations, and gradients of their solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
from jax import lax
from jax.scipy.sparse.linalg import gmres

EXPECTED_ERRORS = {
    "rate_of_change": (
        ValueError,
        "Reverse-mode differentiation does not work",
    ),
    "gradient_by_gmres": (
        NotImplementedError,
        "open an issue at https://github.com",
    ),
}


def pendulum(y, friction):
    """Return the derivative of (angle, speed) of a pendulum."""
    angle, speed = y
    return jnp.array([speed, -jnp.sin(angle) - friction * speed])


def runge_kutta(f, y, h, *args):
    """Return y after a step h of the classic method of fourth order."""
    k1 = f(y, *args)
    k2 = f(y + h / 2 * k1, *args)
    k3 = f(y + h / 2 * k2, *args)
    k4 = f(y + h * k3, *args)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@jax.jit(static_argnames="steps")
def swing(friction, y, time, steps):
    """Return (angle, speed) at a time, after so many equal steps."""

    def step(y, _):
        return runge_kutta(pendulum, y, time / steps, friction), None

    return lax.scan(step, y, length=steps)[0]


def swing_scipy(friction, y, time):
    """Return the same by SciPy, with a tolerance of 1e-10."""

    def f(_, y):
        return [y[1], -np.sin(y[0]) - friction * y[1]]

    solved = scipy.integrate.solve_ivp(
        f, (0, time), y, method="DOP853", rtol=1e-10, atol=1e-10
    )
    return solved.y[:, -1]


def adjoint(friction, end, time, steps, g):
    """Return the gradients of friction, start and time from that of the end.

    Solves the equation backwards in time, with that of the gradient
    (Pontryagin et al. 1962).
    """

    def backwards(state, friction):
        f, pull = jax.vjp(pendulum, state[:2], friction)
        g_y, g_friction = pull(state[2:4])
        return jnp.concatenate([-f, g_y, g_friction[None]])

    def step(state, _):
        return runge_kutta(backwards, state, time / steps, friction), None

    state = jnp.concatenate([end, g, jnp.zeros(1)])
    state, _ = lax.scan(step, state, length=steps)
    return state[4], state[2:4], pendulum(end, friction) @ g


def swing_adjoint(friction, y, time, steps):
    """Return what `swing` does; its gradient keeps only the end."""

    @jax.custom_vjp
    def solve(friction, y, time):
        return swing(friction, y, time, steps)

    def forward(friction, y, time):
        end = solve(friction, y, time)
        return end, (friction, end, time)

    def backward(residuals, g):
        return adjoint(*residuals, steps, g)

    solve.defvjp(forward, backward)
    return solve(friction, y, time)


def newton(mean, eccentricity):
    """Return the solution E of E - eccentricity * sin(E) = mean."""

    def far(state):
        last, now, count = state
        return (jnp.abs(now - last) > 1e-6) & (count < 50)

    def step(state):
        _, now, count = state
        error = now - eccentricity * jnp.sin(now) - mean
        derivative = 1 - eccentricity * jnp.cos(now)
        return now, now - error / derivative, count + 1

    start = jnp.asarray(mean, float)
    return lax.while_loop(far, step, (start + 1, start, 0))[1]


def rate_of_change(mean, eccentricity):
    """Differentiate `newton`; raises ValueError, for it is a while_loop."""
    return jax.grad(newton)(mean, eccentricity)


def kepler(mean, eccentricity):
    """Return what `newton` does, with the derivative of the solution."""

    def equation(E):
        return E - eccentricity * jnp.sin(E) - mean

    return lax.custom_root(
        equation,
        jnp.asarray(mean, float),
        lambda _, start: newton(mean, eccentricity),
        lambda tangent, y: y / tangent(1.0),
    )


def settle(y, w, b):
    """Return the next state of a network whose output is its input."""
    return jnp.tanh(w @ y + b)


def iterated(w, b, steps=100):
    """Return the state (n,) after so many steps from zero, by a `scan`."""

    def step(y, _):
        return settle(y, w, b), None

    return lax.scan(step, jnp.zeros_like(b), length=steps)[0]


def equilibrium(w, b, linear_solve):
    """Return the state (n,) that stays, with the derivative of it.

    Its gradient calls `linear_solve(g, v)` for the u with g(u) = v, where g
    is linear. The iteration ends after 500 steps at most.
    """

    def error(y):
        return settle(y, w, b) - y

    def solve(error, start):
        def far(state):
            y, count = state
            return (jnp.abs(error(y)).max() > 1e-6) & (count < 500)

        def step(state):
            y, count = state
            return y + error(y), count + 1

        return lax.while_loop(far, step, (start, 0))[0]

    return lax.custom_root(error, jnp.zeros_like(b), solve, linear_solve)


def by_matrix(g, v):
    """Return the u with g(u) = v, from the whole matrix of g."""
    return jnp.linalg.solve(jax.jacobian(g)(v), v)


def by_products(g, v):
    """Return the u with g(u) = v, by GMRES, from values of g alone."""

    def solve(g, v):
        return gmres(g, v)[0]

    return lax.custom_linear_solve(g, v, solve, transpose_solve=solve)


def gradient_by_gmres(w, b):
    """Leave the transpose of GMRES to JAX; raises NotImplementedError."""
    return jax.grad(equilibrium_loss)(w, b, lambda g, v: gmres(g, v)[0])


def equilibrium_loss(w, b, linear_solve):
    """Return the sum of the squares of the equilibrium."""
    return jnp.sum(equilibrium(w, b, linear_solve) ** 2)
