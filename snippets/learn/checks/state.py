"""Lesson 6, pure functions and state: what answers are checked for."""

import collections

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import counting, equations_of


def check_best_after(best_after):
    """Raise AssertionError unless the best comes from the arguments alone."""
    assert hasattr(best_after, "lower"), (
        "`best_after` itself is not jitted any more; keep `jax.jit`"
    )
    outside = (
        "it keeps the new best outside the function, where JAX leaves a "
        "tracer; use only the argument `best`, and return the new best"
    )
    for best, score in ((3.0, 7.5), (7.5, 5.0), (-5.0, -2.5), (1.0, 2.0)):
        given = f"with a best of {best} and a score of {score}"
        try:
            found = best_after(best, score)
        except jax.errors.UnexpectedTracerError:
            raise AssertionError(outside) from None
        assert found is not None, "it returns nothing; return the new best"
        assert isinstance(found, jax.Array) and found.shape == (), (
            f"it returns {found}, where one number is wanted"
        )
        assert score > best or found != score, (
            f"{given} it returns the score, which is lower; JAX reads a list "
            "outside the function only while it traces, so use the argument "
            "`best`"
        )
        assert score < best or found != best, (
            f"{given} it returns {found}; a higher score is the new best"
        )
        assert np.isclose(found, max(best, score)), (
            f"{given} it returns {found}, not {max(best, score)}"
        )
    try:
        with jax.checking_leaks():
            best_after(jnp.ones(()), jnp.zeros(()))
    except Exception as error:
        leaks = isinstance(error, jax.errors.UnexpectedTracerError)
        assert not leaks and "Leaked" not in str(error), outside
        raise


def check_entries(entries):
    """Raise AssertionError unless the number is that of the traces."""
    log = []

    @jax.jit
    def total(x):
        log.append(x.shape)
        return x.sum()

    for length in (3, 4, 3, 4, 3):
        total(jnp.ones(length))
    answer = entries()
    assert answer is not None, "it returns nothing; return a number"
    assert not isinstance(answer, str), (
        f"it returns the text {answer!r}; return a number"
    )
    assert np.ndim(answer) == 0, f"it returns {answer}; return one number"
    assert answer != 5, (
        "5 would be one for each call; `append` runs while JAX traces, and "
        "later calls run the compiled program"
    )
    assert answer != 1, (
        "1 would be a single trace; an array of another length needs a "
        "program of its own"
    )
    assert answer != 0, (
        "0 would be no trace; the first call has to run the Python function"
    )
    assert answer == len(log), (
        f"it is not {answer}; which calls find a program that was compiled "
        "before them?"
    )


def check_average(average):
    """Raise AssertionError unless each leaf becomes the moving average."""
    layer = collections.namedtuple("Layer", "b")
    means = {
        "layers": [jnp.arange(3.0), layer(jnp.ones((2, 2)))],
        "scale": jnp.ones(()),
    }
    params = jax.tree.map(lambda mean: 4 + mean**2, means)
    given = means, params
    before = jax.tree.map(np.array, given)
    found = average(means, params, 0.75)
    assert found is not None, "it returns nothing; return the new average"
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(given)), (
        "the arrays that it was given are gone, and their caller may need "
        "them; don't donate them"
    )
    unchanged = jax.tree.map(np.array_equal, given, before)
    assert all(jax.tree.leaves(unchanged)), (
        "it changes `means` or `params`, which its caller may need; return "
        "new arrays"
    )
    assert jax.tree.structure(found) == jax.tree.structure(params), (
        "what it returns does not have the structure of `means`, a dictionary "
        "with a list in it, and a named tuple in that"
    )
    scale = np.asarray(found["scale"])
    assert not np.array_equal(scale, 4), (
        "an average of 1 and a parameter of 5 become 4 with a decay of 0.75; "
        "the decay belongs to the average before"
    )
    assert np.array_equal(scale, 2), (
        f"an average of 1 and a parameter of 5 become {scale} with a decay of "
        "0.75, and should be 0.75 * 1 + 0.25 * 5"
    )
    first = np.asarray(found["layers"][0])
    assert np.array_equal(first, [1.0, 2.0, 3.5]), (
        "averages of [0. 1. 2.] and parameters of [4. 5. 8.] become "
        f"{first} with a decay of 0.75, and should become [1. 2. 3.5]"
    )
    nested = np.asarray(found["layers"][1].b)
    assert np.array_equal(nested, np.full((2, 2), 2.0)), (
        f"an average of ones, in the shape (2, 2), becomes {nested}; treat "
        "all arrays alike"
    )
    other = average(jnp.zeros(2), jnp.array([4.2, 8.0]), 0.5)
    assert np.allclose(other, [2.1, 4.0]), (
        "an average of zeros and parameters of [4.2 8.] become "
        f"{other} with a decay of 0.5, and should become [2.1 4.]"
    )


def trained(w, batches, rate, momentum):
    """Return the parameter w (n,) after SGD with momentum, by NumPy."""
    v = np.zeros_like(w)
    for x, y in batches:
        v = momentum * v + 2 * x.T @ (x @ w - y) / len(y)
        w = w - rate * v
    return w


def largest(train, params, batches):
    """Return how many matmuls are in the largest jitted program.

    An answer that JAX can't trace, as one that prints losses, returns 0.
    """
    try:
        program = jax.make_jaxpr(lambda w: train(w, batches, 0.1, 0.9))(params)
    except TypeError:
        return 0
    jitted = (each for each in program.eqns if "jaxpr" in each.params)
    names = (
        [inner.primitive.name for inner in equations_of(each.params["jaxpr"])]
        for each in jitted
    )
    return max((each.count("dot_general") for each in names), default=0)


def check_train(train):
    """Raise AssertionError unless velocities last from step to step."""
    draw = np.random.default_rng(0).normal
    batches = [
        (draw(size=(3, 2)).astype("f"), draw(size=3).astype("f"))
        for _ in range(5)
    ]
    start = np.array([0.5, -1.0])
    params = {"w": jnp.array(start)}
    with counting() as three:
        found = train(params, batches[:3], 0.1, 0.9)
    assert found is not None, "it returns nothing; return the parameters"
    assert not params["w"].is_deleted(), (
        "the parameters that it was given are gone, and their caller may "
        "need them; donate nothing that comes from outside"
    )
    assert np.array_equal(params["w"], start), (
        "it changes the dictionary that it was given; return a new one"
    )
    assert jax.tree.structure(found) == jax.tree.structure(params), (
        "what it returns is not a dictionary of w, as the parameters are"
    )
    right = trained(start, batches[:3], 0.1, 0.9)
    assert not np.allclose(
        found["w"], trained(start, batches[:3], 0.1, 0.0)
    ), (
        "the parameters are those of SGD without momentum: the velocities "
        "that a step computes are gone after it, because `jit` passes the "
        "function a dictionary of its own; return them"
    )
    assert np.allclose(found["w"], right, atol=1e-5), (
        f"after three steps the parameters are {found['w']}, not {right}; the "
        "velocity is updated first, and the parameter with the new velocity"
    )
    with counting() as five:
        train(params, batches, 0.1, 0.9)
    found = train(params, batches, 0.05, 0.5)
    right = trained(start, batches, 0.05, 0.5)
    assert np.allclose(found["w"], right, atol=1e-5), (
        "a second run, with another rate and momentum, ends at "
        f"{found['w']}, not {right}; both are arguments, and the velocity "
        "begins at zero"
    )
    eager = {"jit(matmul)", "jit(add)", "jit(subtract)"}
    assert three.compilations and not eager & set(three.compilations), (
        "right, but operations of a step run one at a time; keep `jax.jit` "
        "around all of it"
    )
    assert len(three.compilations) == len(five.compilations), (
        f"right, but three batches need {len(three.compilations)} "
        f"compilations and five {len(five.compilations)}; define the jitted "
        "step once, before the loop"
    )
    short, long = (largest(train, params, batches[:n]) for n in (3, 5))
    assert short == long, (
        f"right, but its program has {short} matmuls for three "
        f"batches and {long} for five, because JAX traces the loop; jit the "
        "step, and let the loop call it"
    )
