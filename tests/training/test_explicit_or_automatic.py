"""Tests of snippets/training/explicit_or_automatic.py."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax._src.core import ShardingTypeError
from jax.sharding import AxisType

from snippets.models.steps import cross_entropy, gradient_of, split_nnx, stateless
from snippets.project.gpt import Config, gpt, init_gpt, layer, look_up
from snippets.training import explicit_or_automatic as page

CONFIG = Config(length=8, width=16, heads=4, layers=2)
BOTH = list(itertools.product(["Explicit", "Auto"], repeat=2))
PLAIN = stateless(lambda params, tokens: gpt(params, tokens, CONFIG.heads))
TOKENS = np.random.default_rng(0).integers(0, CONFIG.tokens, (8, 9), np.int32)
BATCH = TOKENS[:, :-1], TOKENS[:, 1:]


@pytest.fixture(scope="module")
def params():
    return jax.device_get(init_gpt(jax.random.key(0), CONFIG))


@pytest.fixture(scope="module")
def headed(params):
    return page.by_heads(params, CONFIG.heads)


@pytest.fixture(scope="module")
def alone(params):
    """Return ((loss, stats), gradients) of `gpt`, without a mesh."""
    return jax.jit(gradient_of(cross_entropy(PLAIN)))(params, {}, BATCH)


def placed():
    return jax.device_put(BATCH, jax.P("data"))


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [((2, 4), kinds) for kinds in BOTH] + [((4, 2), kinds) for kinds in BOTH[1:3]],
    ids=str,
)
def test_loss_gradients_and_traffic_do_not_depend_on_the_kind(shape, kinds, headed, alone):
    mesh = jax.make_mesh(shape, ("data", "model"), tuple(AxisType[kind] for kind in kinds))
    with jax.set_mesh(mesh):
        laid_out = jax.device_put(headed, page.tensor_parallel(headed, page.HEADS))
        gradient = jax.jit(gradient_of(cross_entropy(stateless(page.gpt_by_heads))))
        compiled = gradient.lower(laid_out, {}, placed()).compile()
        (loss, _), grads = compiled(laid_out, {}, placed())
    assert "all-gather" not in compiled.as_text()
    np.testing.assert_allclose(loss, alone[0][0], rtol=1e-5)
    expected = page.by_heads(alone[1], CONFIG.heads)
    for each, right in zip(jax.tree.leaves(grads), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(each, right, rtol=1e-4, atol=1e-6)


def test_gpt_by_heads_is_gpt_without_a_mesh(params, headed):
    right = jax.jit(gpt, static_argnames="heads")(params, BATCH[0], heads=CONFIG.heads)
    same = jax.jit(page.gpt_by_heads, static_argnames="rows_of")
    for rows_of in page.rows_of, lambda x: None:
        np.testing.assert_allclose(same(headed, BATCH[0], rows_of), right, rtol=1e-5, atol=1e-6)


def constrained(kernels):
    """Return `gpt` whose packed queries, keys and values are told to be sharded."""
    import snippets.project.gpt as module

    def split_heads(qkv, heads):
        qkv = qkv.reshape(*qkv.shape[:-1], 3, heads, -1)
        qkv = jax.lax.with_sharding_constraint(qkv, jax.P("data", None, None, "model"))
        return jnp.unstack(qkv, axis=-3)

    def apply(params, tokens):
        original, module.split_heads = module.split_heads, split_heads
        try:
            return gpt(params, tokens, CONFIG.heads, remat=False)
        finally:
            module.split_heads = original

    return stateless(apply)


def test_the_compiler_gathers_packed_heads_and_a_constraint_does_not_help(params, alone):
    with jax.set_mesh(page.mesh_of("Auto", "Auto")):
        laid_out = jax.device_put(params, page.tensor_parallel(params, page.COLUMNS))
        loss, found = page.loss_and_traffic(PLAIN, laid_out, placed(), {})
        _, same = page.loss_and_traffic(constrained(params), laid_out, placed(), {})
    np.testing.assert_allclose(loss, alone[0][0], rtol=1e-5)
    rows, width = len(TOKENS) // 2, CONFIG.width
    # Once forward and once backward in each layer.
    each = 2 * CONFIG.layers * rows * CONFIG.length * 3 * width
    assert found["all-gather"] == same["all-gather"] == each


def test_explicit_axes_refuse_packed_heads_and_unnamed_sums(params, headed):
    with jax.set_mesh(page.mesh_of("Explicit", "Explicit")):
        laid_out = jax.device_put(params, page.tensor_parallel(params, page.COLUMNS))
        with pytest.raises(ShardingTypeError, match="This reshape is not supported"):
            page.loss_and_traffic(PLAIN, laid_out, placed())
        laid_out = jax.device_put(headed, page.tensor_parallel(headed, page.HEADS))
        with pytest.raises(ShardingTypeError, match="Contracting dimensions are sharded"):
            page.gpt_by_heads(laid_out, placed()[0], lambda x: None)


def test_loops_count_each_iteration():
    with jax.set_mesh(page.mesh_of("Explicit", "Explicit")):
        x = jax.device_put(np.ones((8, 16), np.float32), jax.P("data"))

        def gathered(x):
            return jax.reshard(jnp.sort(jax.reshard(x, jax.P()), axis=0), jax.P("data"))

        def looped(x):
            return jax.lax.fori_loop(0, 5, lambda n, x: gathered(x), x)

        def endless(x):
            return jax.lax.while_loop(lambda x: x.sum() < 1e9, gathered, x)

        once, five, unknown = (
            jax.jit(f).lower(x).compile().as_text() for f in (gathered, looped, endless)
        )
    assert page.traffic(once) == {"all-gather": 128}
    assert page.traffic(five) == {"all-gather": 5 * 128}
    with pytest.raises(ValueError, match="how often does this loop run"):
        page.traffic(unknown)


def as_gpt(params):
    """Return parameters of `NnxGpt` as those of `gpt_by_heads`."""
    params = nnx.to_pure_dict(params)
    layers = jax.tree.map(lambda *x: np.stack(x), *params["layers"].values())
    return {
        "embedding": params["embedding"]["embedding"],
        "positions": params["positions"]["embedding"],
        "norm": params["norm"],
        "layers": layers,
    }


@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
def test_the_nnx_model_is_the_other_one(kind):
    rules = nnx.logical_axis_rules(page.RULES.items())
    with jax.set_mesh(page.mesh_of(kind, kind)), rules:
        apply, params, stats = split_nnx(page.NnxGpt(CONFIG, rngs=nnx.Rngs(0)))
        kernel = params["layers"][0]["qkv"]["kernel"][...]
        assert kernel.sharding.spec == jax.P(None, None, "model", None)
        loss, found = page.loss_and_traffic(apply, params, placed(), stats)
        pure = as_gpt(jax.device_get(params))
    assert set(found) == {"all-reduce"}
    same = stateless(functools.partial(page.gpt_by_heads, rows_of=lambda x: None))
    (right, _), _ = gradient_of(cross_entropy(same))(pure, {}, BATCH)
    np.testing.assert_allclose(loss, right, rtol=1e-5)


@pytest.mark.parametrize("kinds", [("Explicit", "Auto"), ("Auto", "Explicit")], ids="-".join)
def test_flax_refuses_a_mesh_of_both_kinds(kinds):
    rules = nnx.logical_axis_rules(page.RULES.items())
    with (
        jax.set_mesh(page.mesh_of(*kinds)),
        rules,
        pytest.raises(ValueError, match="Mesh must have all axes as Explicit or all axes as Auto"),
    ):
        page.NnxGpt(CONFIG, rngs=nnx.Rngs(0))


def test_layouts_named():
    assert page.layouts_named(gpt, look_up) == 1
    assert page.layouts_named(gpt, layer) == 0

    def three(x):
        x = jax.lax.with_sharding_constraint(jax.reshard(x, jax.P()), jax.P())
        return jnp.matmul(x, x, out_sharding=None)

    assert page.layouts_named(three) == 3
    assert page.layouts_named(three, page.lay_out) == 5


SPECS = [
    jax.P("data", "model"),
    jax.P("model", "data"),
    jax.P(("data", "model")),
    jax.P(None, "model"),
    jax.P("data"),
    jax.P(),
]


@pytest.mark.parametrize("kinds", BOTH, ids="-".join)
def test_lay_out(kinds):
    numbers = np.arange(128.0, dtype=np.float32).reshape(8, 16)
    mesh = page.mesh_of(*kinds)
    inside = jax.jit(lambda x, spec: page.lay_out(2 * x, spec), static_argnums=1)
    with jax.set_mesh(mesh):
        for before, spec in itertools.product([jax.P(), jax.P("data")], SPECS):
            x, both = jax.device_put(numbers, before), any(isinstance(e, tuple) for e in spec)
            if both and len(set(kinds)) == 2:
                with pytest.raises(ValueError, match="of two kinds: give it axes of one kind"):
                    page.lay_out(x, spec)
                continue
            expected = jax.NamedSharding(mesh, spec)
            for y, factor in (page.lay_out(x, spec), 1), (inside(x, spec), 2):
                assert y.sharding.is_equivalent_to(expected, 2), (before, spec)
                np.testing.assert_array_equal(y, factor * numbers)


@pytest.mark.parametrize("kinds", BOTH, ids="-".join)
def test_lay_out_refuses_names_of_no_such_axis(kinds):
    unknown = jax.P("modle"), jax.P("data", "modle"), jax.P(jax.P.UNCONSTRAINED, "model")
    with jax.set_mesh(page.mesh_of(*kinds)):
        for spec in unknown:
            with pytest.raises(ValueError, match="name explicit or automatic axes of the mesh"):
                page.lay_out(np.ones((8, 16), np.float32), spec)

        def inner(x):
            return page.lay_out(x, jax.P("data"))

        mapped = jax.shard_map(inner, in_specs=jax.P("data"), out_specs=jax.P("data"))
        with pytest.raises(ValueError, match="name explicit or automatic axes of the mesh"):
            jax.jit(mapped)(jax.device_put(np.ones((8, 16), np.float32), jax.P("data")))


def test_lay_out_without_a_mesh():
    x = np.ones((8, 16), np.float32)
    np.testing.assert_array_equal(page.lay_out(x, jax.P("data")), x)


def test_reshard_refuses_an_automatic_axis(raises_declared):
    with jax.set_mesh(page.mesh_of("Explicit", "Auto")):
        raises_declared(page.reshard_mixed, jax.device_put(np.ones((8, 16)), jax.P("data")))


def test_a_constraint_refuses_an_explicit_axis():
    with jax.set_mesh(page.mesh_of("Explicit", "Auto")):
        x = jax.device_put(np.ones((8, 16)), jax.P("data"))
        with pytest.raises(ValueError, match="can only refer to Auto axes of the mesh"):
            jax.lax.with_sharding_constraint(x, jax.P("data"))
