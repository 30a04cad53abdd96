import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.benchmarks import race
from snippets.timing import dispatch


def test_the_matmul_is_larger_where_devices_are_faster(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    on_a_cpu = dispatch.size_worth_waiting_for()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert dispatch.size_worth_waiting_for() > on_a_cpu


def test_random_square_is_finished_and_normal():
    x = dispatch.random_square(300)
    assert x.is_ready()
    assert x.shape == (300, 300)
    assert x.dtype == jnp.float32
    assert abs(float(x.mean())) < 0.02
    assert abs(float(x.std()) - 1) < 0.02


class Product:
    """Stands for a result that exists only once it was waited for."""

    def __init__(self):
        self.done = False

    def is_ready(self):
        return self.done

    def block_until_ready(self):
        self.done = True
        return self


def test_ready_after_tells_actions_that_wait_from_those_that_do_not(monkeypatch):
    monkeypatch.setattr(dispatch.jnp, "dot", lambda x, y: Product())
    assert dispatch.ready_after(lambda product: product.block_until_ready(), None)
    assert not dispatch.ready_after(lambda product: product, None)


@pytest.mark.parametrize("action", list(dispatch.WAITING)[3:])
def test_whatever_needs_the_numbers_waits(action):
    # Since JAX 0.11 the text of a large array takes no more than the numbers at its edges.
    waits = action != "repr(product)" or jax.__version_info__ < (0, 11)
    assert dispatch.ready_after(dispatch.WAITING[action], dispatch.random_square(600)) == waits


def test_every_action_gives_what_its_name_says():
    product = jnp.array([[2.0, 3.0], [4.0, 5.0]])
    got = {name: action(product) for name, action in dispatch.WAITING.items()}
    assert got["product.shape"] == (2, 2)
    np.testing.assert_array_equal(got["product + 1"], [[3, 4], [5, 6]])
    assert got["product[0, 0]"] == 2
    assert got["float(product[0, 0])"] == 2.0
    assert got["bool(product[0, 0] > 0)"] is True
    assert isinstance(got["np.asarray(product)"], np.ndarray)
    assert got["repr(product)"].startswith("Array([[2.")


def test_futures_are_passed_on_in_order(monkeypatch):
    made = []

    def multiply(x, y):
        made.append((Product(), x, y))
        return made[-1][0]

    def wait_for_all_before(self):
        for product, _, _ in made:
            product.done = True

    monkeypatch.setattr(Product, "block_until_ready", wait_for_all_before)
    monkeypatch.setattr(dispatch.jnp, "dot", multiply)
    assert dispatch.pass_on("x") == {
        "after the calls": [False] * 3,
        "after waiting for the last": [True] * 3,
    }
    assert [arguments for _, *arguments in made] == [
        ["x", "x"],
        [made[0][0]] * 2,
        [made[1][0]] * 2,
    ]


def test_when_the_last_matmul_is_ready_so_are_the_others():
    result = dispatch.pass_on(dispatch.random_square(300))
    assert result["after waiting for the last"] == [True, True, True]


def test_one_key_draws_one_matrix_and_two_keys_two():
    x, y = dispatch.draw_with_one_key(20)
    np.testing.assert_array_equal(x, y)
    x, y = dispatch.draw_with_two_keys(20)
    assert x.shape == y.shape == (20, 20)
    assert not (x == y).any()
    assert x.is_ready() and y.is_ready()


def test_a_matmul_of_1000_is_not_computed_in_the_call():
    x, y = dispatch.draw_with_two_keys(1000)
    jnp.dot(x, y).block_until_ready()
    if jax.default_backend() == "cpu":
        assert not all(jnp.dot(x, y).is_ready() for _ in range(10))


def test_powers_and_blocking_on_a_whole_tree():
    x = dispatch.random_square(5)
    tree = jax.block_until_ready(dispatch.powers(x))
    assert dispatch.all_ready(tree)
    exact = np.asarray(x, np.float64)
    np.testing.assert_allclose(tree["square"], exact @ exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(tree["higher"][0], exact @ exact @ exact, rtol=1e-4, atol=1e-3)


def test_block_until_ready_lets_other_leaves_pass():
    mixed = {"a": jnp.ones(2), "b": [np.ones(2), 3]}
    assert jax.block_until_ready(mixed)["b"][1] == 3


def test_all_ready_needs_every_leaf():
    done, waiting = Product().block_until_ready(), Product()
    assert dispatch.all_ready({"a": [done]})
    assert not dispatch.all_ready({"a": [done, waiting]})


def test_the_same_numbers_in_every_framework(monkeypatch):
    x = dispatch.random_square(6)
    np.testing.assert_array_equal(dispatch.in_torch(x).cpu().numpy(), x)
    np.testing.assert_array_equal(dispatch.in_tensorflow(x).numpy(), x)
    assert dispatch.accelerator().type in ("cpu", "cuda", "mps", "xpu")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: None)
    assert dispatch.accelerator() == torch.device("cpu")


def test_small_work_runs_on_the_calling_thread():
    np.testing.assert_array_equal(dispatch.increment(jnp.arange(3.0)), [1, 2, 3])
    if jax.default_backend() == "cpu":
        assert dispatch.ready_at_return(100, calls=20) == 20


def test_a_timeline_has_every_call_the_wait_and_every_matmul_in_order():
    events = dispatch.timeline(dispatch.random_square(64), 3)
    assert [(who, what) for who, what, _, _ in events] == [
        *(("Python", f"call {n}") for n in (1, 2, 3)),
        ("Python", "waits"),
        *(("device", f"product {n}") for n in (1, 2, 3)),
    ]
    assert all(0 <= start <= end for _, _, start, end in events)
    calls, (wait,), products = events[:3], events[3:4], events[4:]
    for lane in (calls, products):
        for before, after in itertools.pairwise(lane):
            assert before[3] <= after[2]
    assert calls[-1][3] <= wait[2]
    assert wait[3] == products[-1][3]
    assert [product[2] for product in products] == [
        max(call[2], ready)
        for call, ready in zip(calls, [0, *(p[3] for p in products[:-1])], strict=True)
    ]


class Queue:
    """Stands for a device whose queue has `places`; its first product takes for ever."""

    def __init__(self, places):
        self.places, self.products = places, []

    def dot(self, x, y):
        if len(self.products) >= self.places:
            for product in self.products:
                product.done = True
        self.products.append(Product())
        return self.products[-1]


@pytest.mark.parametrize(("places", "ahead"), [(1, 1), (5, 5), (200, 100)])
def test_calls_are_counted_until_one_waits_for_a_place(monkeypatch, places, ahead):
    monkeypatch.setattr(dispatch.jnp, "dot", lambda x, y: queue.dot(x, y))
    queue = Queue(places)
    assert dispatch._calls_before_ready(None, 100) == ahead
    assert len(queue.products) == min(places, 100) + 1


def test_the_queue_of_a_cpu_has_an_end():
    assert 1 < dispatch.calls_ahead(dispatch.random_square(1000), most=100) < 100


X = dispatch.numbers(5)
FIXED_POINT = 0.7390851332151607


@pytest.mark.parametrize(
    ("function", "convert"),
    [
        (jax.jit(jnp.cos), jnp.asarray),
        (jnp.cos, jnp.asarray),
        (dispatch.cosine_torch, torch.tensor),
        (tf.function(tf.cos), tf.constant),
        (np.cos, np.asarray),
    ],
)
def test_every_cosine_is_exact(function, convert):
    bound = race.bound({"one": (function, convert)}, dispatch.numbers(300))
    exact = np.cos(dispatch.numbers(300).astype(np.float64))
    assert race.largest_difference(bound["one"](), exact) < 1e-6


def test_numbers_are_float32_from_0_to_1():
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, [0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("count", [1, 4, 16])
def test_arguments_are_added_up_however_they_are_passed(count):
    expected = 1 + count * X
    tree = dispatch.nested(X, count)
    assert len(jax.tree.leaves(tree)) == count
    for found in (
        jax.jit(dispatch.add_up)(*[X] * count),
        jax.jit(dispatch.add_up_leaves)(tree),
        jax.jit(dispatch.add_up_rows)(jnp.stack([X] * count)),
        dispatch.add_up(*[torch.tensor(X)] * count),
        tf.function(dispatch.add_up)(*[tf.constant(X)] * count),
    ):
        np.testing.assert_allclose(np.asarray(found), expected)


def test_a_scaler_traces_once_for_each_object():
    half = dispatch.Scaler(0.5)
    np.testing.assert_array_equal(half.scale(X), X / 2)
    np.testing.assert_array_equal(dispatch.Scaler(3.0).scale(X), 3 * X)
    np.testing.assert_array_equal(dispatch.scale(X, 0.5), X / 2)
    half.factor = 7.0
    np.testing.assert_array_equal(half.scale(X), X / 2)


def test_a_hundred_steps_are_the_same_in_one_call_and_in_a_row():
    for found in (
        dispatch.in_one_call(jnp.asarray(X)),
        dispatch.in_a_row(jnp.cos, jnp.asarray(X)),
        dispatch.in_a_row(torch.cos, torch.tensor(X)),
        dispatch.in_a_row(tf.cos, tf.constant(X)),
    ):
        assert race.largest_difference(found, np.full(5, FIXED_POINT)) < 1e-6
    counted = []
    dispatch.in_a_row(lambda x: counted.append(x) or x, X)
    assert len(counted) == 100


def test_the_cosine_is_taken_a_hundred_times_in_one_call():
    assert "length=100" in str(jax.make_jaxpr(dispatch.in_one_call)(X))


def test_rows_are_taken_one_by_one():
    rows = np.arange(6.0).reshape(3, 2)
    found = dispatch.one_by_one(lambda row: row.sum(), rows)
    assert found == [1.0, 5.0, 9.0]
