"""Lesson 3, jit and tracing: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import counting


def check_centred(centred):
    """Raise AssertionError unless the mean is subtracted under jit."""
    assert hasattr(centred, "lower"), (
        "`centred` itself is not jitted any more; keep `jax.jit`"
    )
    for values in ([0.0, 1.0, 2.0, 8.0], [5.0, 0.0, 1.0]):
        x = np.array(values, np.float32)
        found = centred(x)
        assert found is not None, "it returns nothing; return the result"
        assert isinstance(found, jax.Array) and found.shape == x.shape, (
            f"from {x} it makes {found}, where one array of the same shape is "
            "wanted"
        )
        assert not np.array_equal(found, x), (
            f"from {x}, whose mean is {x.mean()}, nothing is subtracted"
        )
        assert np.allclose(found, x - x.mean()), (
            f"{x} minus its mean, {x.mean()}, is {x - x.mean()}, not {found}"
        )


def check_limited(limited):
    """Raise AssertionError unless one program serves all limits."""
    assert hasattr(limited, "lower"), (
        "`limited` itself is not jitted any more; keep `jax.jit`"
    )
    x = jnp.array([[-1.0, 0.5, 3.0], [-4.0, 0.0, 0.75]])
    for kind, whole in (("relu", np.maximum(x, 0)), ("tanh", np.tanh(x))):
        for limit in (9.0, 0.7):
            found = limited(x, kind=kind, limit=limit)
            assert isinstance(found, jax.Array) and found.shape == x.shape, (
                f"from {x} it makes {found}, where one array of the same "
                "shape is wanted"
            )
            symmetric = np.clip(whole, -limit, limit)
            right = np.minimum(whole, limit)
            assert np.allclose(found, right) or not np.allclose(
                found, symmetric
            ), (
                f"with `kind` {kind!r} elements below {-limit} are replaced "
                f"as well; only those above {limit} are to be"
            )
            assert np.allclose(found, right, atol=1e-6), (
                f"with `kind` {kind!r}, of {x}, up to {limit}, it makes "
                f"{found}, not {right}"
            )
    with counting() as counts:
        for limit in (0.5, 1.0, 4.0):
            limited(x, kind="relu", limit=limit)
    compiled = len(counts.compilations)
    assert compiled == 1, (
        f"three limits need {compiled} compilations; what is a number in the "
        "computation need not be static"
    )


def check_descend(descend):
    """Raise AssertionError unless one program serves all steps and rates."""

    values = np.linspace(-1.0, 2.0, 7)
    once = "jit(stage)", "jit(convert_element_type)", "jit(copy)"

    def compiled(*calls):
        x = jnp.array(values)
        with counting() as counts:
            for rate, steps in calls:
                descend(x, rate, steps)
        return [n for n in counts.compilations if n not in once]

    for rate, steps in ((0.5, 4), (0.25, 5)):
        x, right = jnp.array(values), values
        for _ in range(steps):
            right = right - rate * np.tanh(right)
        found = descend(x, rate, steps)
        assert found is not None, "it returns nothing; return the last `x`"
        assert not x.is_deleted(), (
            "the array that it was given is gone, and its caller may need "
            "it; don't donate it"
        )
        assert np.shape(found) == x.shape and np.allclose(
            found, right, atol=1e-5
        ), (
            f"after {steps} steps with a rate of {rate} it returns {found}, "
            f"not {right}"
        )
    one, four = compiled((0.5, 1)), compiled((0.5, 4))
    assert four, "right, but nothing is compiled; keep `jax.jit`"
    assert len(one) == len(four), (
        f"four steps need {len(four)} compilations and one step {len(one)}; "
        "the lambda of each iteration is another function to JAX"
    )
    assert len(set(four)) == 1, (
        f"a step consists of {len(set(four))} programs; compile it as one"
    )
    rates = compiled((0.25, 4), (0.125, 4))
    assert len(rates) == len(four), (
        f"two calls with different rates need {len(rates)} compilations; "
        "define the jitted function once, outside, and pass the rate"
    )
    counts = compiled((0.5, 4), (0.5, 5))
    assert len(counts) == len(four), (
        f"four steps and five need {len(counts)} compilations; compile the "
        "step, and not the loop around it"
    )


def check_evaluate(evaluate):
    """Raise AssertionError unless all batches run one program."""
    draw = np.random.default_rng(0).normal
    x, y = draw(size=(12, 3)).astype("f"), draw(size=12).astype("f")
    params = {"w": jnp.array([1.0, -2.0, 0.5]), "b": jnp.array(2.0)}
    errors = (x @ np.asarray(params["w"]) + 2.0 - y) ** 2

    def programs(*calls):
        with counting() as counts:
            for rows, size in calls:
                evaluate(params, x[:rows], y[:rows], size)
        return [
            name
            for name in counts.compilations
            if "summed" in name or name == "jit(matmul)"
        ]

    for rows, size in ((10, 4), (12, 4), (3, 5), (7, 2)):
        found = evaluate(params, x[:rows], y[:rows], size)
        assert found is not None, "it returns nothing; return the mean"
        assert np.shape(found) == (), f"it returns {found}, not one number"
        full = rows // size * size
        without_last = errors[:full].sum() / np.array([rows, max(full, 1)])
        right = errors[:rows].mean()
        assert full == rows or not np.isclose(found, without_last).any(), (
            f"the last {rows - full} of {rows} rows are left out, since they "
            f"fill no batch of {size}"
        )
        assert np.isclose(found, right, rtol=1e-4), (
            f"the mean over {rows} rows, in batches of {size}, is "
            f"{right:.4f}, not {found:.4f}; rows that only fill up a batch "
            "must not count"
        )
    ten = programs((10, 4))
    assert any("summed" in name for name in ten), (
        "right, but no `summed_error` is compiled by itself; keep its name "
        "and `jax.jit`, and call it for each batch"
    )
    assert len(ten) == 1, (
        f"right, but `summed_error` is compiled {len(ten)} times; give all "
        "batches one shape"
    )
    again = programs((10, 4), (10, 4))
    assert len(again) == 1, (
        "right, but each call of `evaluate` compiles again; define the jitted "
        "function once, outside"
    )
    more = programs((10, 4), (6, 4))
    assert len(more) == 1, (
        f"right, but for ten rows and for six `summed_error` is compiled "
        f"{len(more)} times; a batch has `size` rows, however many there are"
    )
    sizes = programs((10, 4), (10, 5))
    assert len(sizes) == 2, (
        "right, but batches of 4 and of 5 rows run the same program; pass "
        "`size` rows at a time"
    )
