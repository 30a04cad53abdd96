"""Make the logs for tests/pitfalls/test_log_reader.py: each cause of a retrace, in one JAX.

`python tests/pitfalls/make_logs.py` adds to logs/jax-VERSION.json a log for each case below that
is not in it, with the Python that runs it. It needs jax and numpy only. Cases of "development" may
be looked at to make the reader better, those that are "held" are only counted.
"""

import dataclasses
import functools
import json
import logging
import os
import pathlib
import re
import sys
import tempfile

if __name__ == "__main__":
    os.environ |= {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

CASES = {}


def case(part, compiles=False, layout=None, explains=True, level=None, **expected):
    """Register a case: which functions are retraced, each with its causes and their numbers.

    layout: the format of each line of the log; what JAX prints by itself if it is None.
    level: what the log has at least, warnings if it is None.
    """

    def register(function):
        CASES[function.__name__] = {
            "run": function,
            "part": part,
            "compiles": compiles,
            "layout": layout,
            "explains": explains,
            "level": level,
            "expected": expected,
        }
        return function

    return register


def loss(weights, batch):
    """Return the mean square of the products."""
    return jnp.mean((batch @ weights) ** 2)


@case("development", train_step={"shape": 1})
def last_batch():
    @jax.jit
    def train_step(weights, batch):
        return weights - 0.1 * jax.grad(loss)(weights, batch)

    weights = jnp.ones(3)
    for rows in (8, 8, 5):
        weights = train_step(weights, np.ones((rows, 3), np.float32))


@case("development", compiles=True, total={"shape": 3})
def four_lengths():
    @jax.jit
    def total(tokens):
        return jnp.sum(tokens)

    for length in (4, 5, 6, 7, 5):
        total(np.ones(length, np.float32))


@case("development", update={"dtype": 1})
def half_precision():
    @jax.jit
    def update(weights, gradient):
        return weights - gradient

    weights = jnp.ones(3, jnp.float16)
    for _ in range(3):
        weights = update(weights, jnp.ones(3, jnp.float32))


@case("development", compiles=True, count={"dtype": 1})
def integer_start():
    @jax.jit
    def count(seen, batch):
        return seen + jnp.sum(batch)

    seen = 0
    for _ in range(3):
        seen = count(seen, np.ones(3, np.float32))


@case("development", average={"weak": 1})
def float_start():
    @jax.jit
    def average(mean, batch):
        return 0.9 * mean + 0.1 * jnp.mean(batch)

    mean = 0.0
    for _ in range(3):
        mean = average(mean, np.ones(3, np.float32))


@case("development", descend={"static": 2})
def static_rate():
    @functools.partial(jax.jit, static_argnames="rate")
    def descend(x, rate):
        return x - rate * x

    for rate in (0.1, 0.05, 0.025):
        descend(np.ones(3), rate=rate)


@case("development", compiles=True, power={"static": 1})
def static_position():
    @functools.partial(jax.jit, static_argnums=1)
    def power(x, n):
        return x**n

    for n in (2, 3, 2):
        power(np.ones(3), n)


class Settings:
    """Settings without an equality of their own."""

    def __init__(self, rate):
        self.rate = rate


@case("development", apply={"static": 2})
def static_object():
    @functools.partial(jax.jit, static_argnums=1)
    def apply(x, settings):
        return x * settings.rate

    for _ in range(3):
        apply(np.ones(3), Settings(0.1))


@case("development", norm={"structure": 1})
def one_more_key():
    @jax.jit
    def norm(tree):
        return sum(jnp.sum(leaf) for leaf in jax.tree_util.tree_leaves(tree))

    x = np.ones(3, np.float32)
    for tree in ({"w": x, "b": x}, {"b": x, "w": x}, {"w": x, "b": x, "scale": x}):
        norm(tree)


@case("development", compiles=True, pair={"structure": 1})
def list_and_tuple():
    @jax.jit
    def pair(pair):
        return pair[0] + pair[1]

    x = np.ones(3, np.float32)
    pair((x, x))
    pair([x, x])


@case("development", attend={"none": 1})
def none_at_first():
    @jax.jit
    def attend(x, mask):
        return x if mask is None else x * mask

    x = np.ones(3, np.float32)
    for mask in (None, x, x):
        attend(x, mask)


@case("development", scale={"names": 1})
def by_name():
    @jax.jit
    def scale(x, factor):
        return x * factor

    x = np.ones(3, np.float32)
    scale(x, 2.0)
    scale(x, factor=2.0)


@case("development", product={"setting": 1})
def another_precision():
    @jax.jit
    def product(a, b):
        return a @ b

    x = np.ones((3, 3), np.float32)
    product(x, x)
    with jax.default_matmul_precision("highest"):
        product(x, x)


@case("development", compiles=True, mean={"setting": 1})
def debugging():
    @jax.jit
    def mean(x):
        return jnp.mean(x)

    x = np.ones(3, np.float32)
    mean(x)
    jax.config.update("jax_numpy_rank_promotion", "warn")
    mean(x)


@case("development", compiles=True, **{"<lambda>": {"function": 3}})
def lambda_in_the_loop():
    for _ in range(4):
        jax.jit(lambda x: 2 * x)(np.ones(3))


@case("development", scaled={"function": 2})
def partial_in_the_loop():
    def scaled(x, factor):
        return x * factor

    for factor in (1.0, 2.0, 3.0):
        jax.jit(functools.partial(scaled, factor=factor))(np.ones(3))


class Layer:
    """A layer that scales."""

    def forward(self, x):
        """Return two times x."""
        return 2 * x


@case("development", forward={"function": 2})
def method_in_the_loop():
    layer = Layer()
    for _ in range(3):
        jax.jit(layer.forward)(np.ones(3))


@case("development", compiles=True, step={"function": 1})
def factory():
    def make_step(rate):
        @jax.jit
        def step(x):
            return x - rate * x

        return step

    first = make_step(0.1)
    first(np.ones(3))
    second = make_step(0.01)
    second(np.ones(3))


@case("development", compiles=True, square={"cleared": 2})
def caches_cleared():
    @jax.jit
    def square(x):
        return x * x

    for _ in range(3):
        square(np.ones(3))
        jax.clear_caches()


def arrays_on(device, number=4):
    """Return an array that is committed to a device."""
    return jax.device_put(np.ones(number, np.float32), device)


@case("development", compiles=True, double={"device": 2})
def from_device_to_device():
    @jax.jit
    def double(x):
        return x + x

    for device in jax.devices()[:3]:
        double(arrays_on(device))


@case("development", compiles=True, triple={"committed": 1})
def from_a_checkpoint():
    @jax.jit
    def triple(x):
        return x + x + x

    x = jnp.ones(4)
    triple(x)
    triple(jax.device_put(x, jax.devices()[0]))


def mesh_of(number, explicit=False):
    """Return a mesh with one axis."""
    if explicit:
        return jax.make_mesh((number,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))
    return Mesh(np.array(jax.devices()[:number]), ("data",))


@case("development", compiles=True, normalise={"layout": 1})
def automatic_layout():
    @jax.jit
    def normalise(x):
        return x / jnp.sum(x)

    x, mesh = np.ones(4, np.float32), mesh_of(4)
    for spec in (PartitionSpec(), PartitionSpec("data")):
        normalise(jax.device_put(x, NamedSharding(mesh, spec)))


@case("development", normalise={"layout": 1})
def explicit_layout():
    @jax.jit
    def normalise(x):
        return x * 2

    # Before 0.6 there are no explicit axes, and this log is empty.
    if hasattr(jax.sharding, "AxisType"):
        x, mesh = np.ones(4, np.float32), mesh_of(4, explicit=True)
        for spec in (PartitionSpec(), PartitionSpec("data")):
            normalise(jax.device_put(x, NamedSharding(mesh, spec)))


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass
class State:
    """Weights, and the number of the step as metadata."""

    weights: object
    step: int

    def tree_flatten(self):
        """Return the leaves and the rest."""
        return (self.weights,), self.step

    @classmethod
    def tree_unflatten(cls, step, leaves):
        """Return the state of leaves."""
        return cls(*leaves, step)


@case("development", advance={"metadata": 2})
def step_in_the_metadata():
    @jax.jit
    def advance(state):
        return State(0.9 * state.weights, state.step)

    state = State(np.ones(3, np.float32), 0)
    for step in range(3):
        state.step = step
        advance(state)


@case("development", compiles=True, fit={"shape": 1})
def persistent_cache():
    @jax.jit
    def fit(x):
        return x - 1

    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        fit(np.ones(3))
        fit(np.ones(4))


@case("development", compiles=True, once={})
def nothing_wrong():
    @jax.jit
    def once(x):
        return x - 1

    for number in range(3):
        once(np.full(3, number, np.float32))


@case("development", forward={"shape": 1}, mixed={"shape": 1, "dtype": 1})
def shape_and_dtype():
    @jax.jit
    def forward(x):
        return x - 1

    @jax.jit
    def mixed(x, y):
        return x.sum() + y.sum()

    for rows, dtype in ((3, np.float32), (4, np.int32)):
        forward(np.ones(rows, np.float32))
        mixed(np.ones(rows, np.float32), np.ones(2, dtype))


NAMED = "%(levelname)s:%(name)s:%(message)s"
DATED = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
ABSL = "W%(asctime)s %(process)d %(filename)s:%(lineno)d] %(message)s"
JAX_OWN = "%(levelname)s:%(asctime)s:%(name)s:%(lineno)d: %(message)s"


@case("development", compiles=True, layout=NAMED, fit_batch={"shape": 2})
def images():
    class Trainer:
        @functools.partial(jax.jit, static_argnums=0)
        def fit_batch(self, images, labels):
            return jnp.mean(images) - jnp.mean(labels)

    trainer = Trainer()
    for size in (16, 24, 32, 16):
        images = np.ones((size, 28, 28, 1), np.float32)
        trainer.fit_batch(images, np.ones(size, np.int32))


@case("development", gather={"shape": 1})
def rank():
    @jax.jit
    def gather(logits):
        return logits.max()

    gather(np.ones((2, 3), np.float32))
    gather(np.ones((2, 3, 1), np.float32))


@case("development", layout=DATED, embed={"dtype": 2})
def dtypes():
    @jax.jit
    def embed(table, ids):
        return table[ids.astype(np.int32)]

    for dtype in (np.int32, np.uint8, np.bool_):
        embed(np.ones((5, 2), np.float32), np.ones(4, dtype))


@case("development", compiles=True, ema={"weak": 1})
def weak():
    @jax.jit
    def ema(state, x):
        return {"mean": state["mean"] * 0.5 + x, "var": state["var"]}

    state = {"mean": 1.0, "var": np.float32(1)}
    for _ in range(4):
        state = ema(state, np.float32(2))


@case("development", layout=JAX_OWN, line_search={"weak": 1})
def line_search():
    @jax.jit
    def line_search(x, length):
        return x - length * x

    x = np.ones(3, np.float32)
    for length in (1.0, 0.5, jnp.float32(0.25), np.float32(0.1)):
        line_search(x, length)


@case("development", compiles=True, layout=ABSL, resize={"static": 2})
def static_shape():
    @functools.partial(jax.jit, static_argnames=("height", "width"))
    def resize(image, *, height, width):
        return jnp.broadcast_to(image, (height, width))

    for height in (3, 4, 5):
        resize(np.float32(1), height=height, width=2)


@case("development", compute={"static": 1})
def static_config():
    @functools.partial(jax.jit, static_argnums=(0, 1))
    def compute(config, mode, x):
        return x * config.rate

    config = Settings(1.0)
    compute(config, "train", np.ones(2))
    compute(config, "eval", np.ones(2))


@case("development", compiles=True, reduce_all={"structure": 2})
def history():
    @jax.jit
    def reduce_all(history):
        return sum(history)

    history = []
    for number in range(4):
        history.append(np.float32(number))
        if number:
            reduce_all(history)


@case("development", layout=NAMED, decode={"none": 1})
def none_in_a_cache():
    @jax.jit
    def decode(cache, token):
        keys = token if cache["layer"]["keys"] is None else cache["layer"]["keys"]
        return {"layer": {"keys": keys + token}}

    cache = {"layer": {"keys": None}}
    for _ in range(3):
        cache = decode(cache, np.ones((2, 4), np.float32))


@case("development", compiles=True, layout=DATED, evaluate={"names": 1})
def names():
    @jax.jit
    def evaluate(params, inputs, targets):
        return jnp.sum(params * inputs - targets)

    x = np.ones((4, 4), np.float32)
    evaluate(x, x, x)
    evaluate(x, inputs=x, targets=x)


@case("development", compiles=True, solve={"setting": 1})
def setting():
    def solve(a):
        return jnp.linalg.norm(a)

    solver = jax.jit(solve)
    x = np.ones((3, 3), np.float32)
    solver(x)
    with jax.numpy_dtype_promotion("strict"):
        solver(x)


@case("development", layout=JAX_OWN, **{"<lambda>": {"function": 2}})
def gradient_in_the_loop():
    for rate in (0.1, 0.2, 0.3):
        jax.jit(jax.grad(lambda w, rate=rate: rate * jnp.sum(w**2)))(np.ones(3, np.float32))


@case("development", compiles=True, layout=NAMED, update_fn={"function": 2})
def optimizers():
    class Optimizer:
        def __init__(self, rate):
            self.rate = rate

        def compiled(self):
            def update_fn(weights, gradients):
                return weights - self.rate * gradients

            return jax.jit(update_fn)

    for _ in range(3):
        step = Optimizer(0.1).compiled()
        step(np.ones((2, 2)), np.ones((2, 2)))


@case("development", compiles=True, layout=DATED, predict={"device": 1})
def device():
    class Model:
        @staticmethod
        @jax.jit
        def predict(tree):
            return tree["w"] + tree["b"]

    for device in jax.devices()[2:]:
        Model.predict({"w": arrays_on(device, 7), "b": arrays_on(device, 7)})


@case("development", compiles=True, restore={"committed": 1})
def committed():
    @jax.jit
    def restore(weights, step):
        return weights * step

    weights = jax.random.normal(jax.random.PRNGKey(0), (3, 5))
    restore(weights, 1)
    restore(jax.device_put(weights, weights.devices().pop()), 2)


@case("development", compiles=True, layout=ABSL, shard_step={"layout": 2})
def layouts():
    @jax.jit
    def shard_step(x):
        return x + 1

    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("rows", "columns"))
    x = np.ones((4, 4), np.float32)
    for spec in (("rows",), (None, "columns"), ("rows", "columns")):
        shard_step(jax.device_put(x, NamedSharding(mesh, PartitionSpec(*spec))))


@case("development", layout=NAMED, rollout={"metadata": 1})
def metadata():
    class Environment:
        pass

    jax.tree_util.register_pytree_node(
        Environment,
        lambda each: ((each.state,), (each.name, each.limit)),
        lambda rest, leaves: leaves[0],
    )

    @jax.jit
    def rollout(environment, action):
        return action

    for limit in (10, 20, 10):
        environment = Environment()
        environment.state, environment.name, environment.limit = np.ones(2), "grid", limit
        rollout(environment, np.float32(1))


@case("development", compiles=True, layout=JAX_OWN, integrate={"cleared": 1})
def cleared():
    @jax.jit
    def integrate(x, dt):
        return x + dt

    for _ in range(2):
        integrate(np.ones((2, 2), np.float32), 0.1)
    jax.clear_caches()
    integrate(np.ones((2, 2), np.float32), 0.1)


@case(
    "development",
    compiles=True,
    layout=NAMED,
    encode={"shape": 2, "setting": 1},
    train={"shape": 1, "static": 1, "setting": 1},
    step_fn={"weak": 1},
)
def several():
    @jax.jit
    def encode(x):
        return jnp.tanh(x)

    @functools.partial(jax.jit, static_argnames="deterministic")
    def train(x, deterministic=True):
        return encode(x).sum() * (1 if deterministic else 2)

    @jax.jit
    def step_fn(carry, x):
        return carry + x

    x = np.ones((8, 2), np.float32)
    train(x, deterministic=True)
    train(x[:5], deterministic=True)
    train(x, deterministic=False)
    encode(x[:3])
    with jax.default_matmul_precision("highest"):
        train(x, deterministic=True)
    carry = 0.0
    for _ in range(3):
        carry = step_fn(carry, np.float32(1))


@case("development", update={"number": 1, "shape": 1})
def momentum_from_zero():
    @jax.jit
    def update(state, batch):
        gradient = batch.T @ (batch @ state["w"])
        momentum = 0.9 * state["m"] + gradient
        return {"w": state["w"] - 0.1 * momentum, "m": momentum}

    state = {"w": jnp.ones((4, 1)), "m": 0.0}
    for rows in (8, 8, 5):
        state = update(state, jnp.ones((rows, 4)))


@case("development", put={"off": 1})
def first_on_no_mesh():
    @jax.jit
    def put(x):
        return 2 * x

    # Before 0.9 the type of an array had no mesh, and this log is empty.
    if jax.__version_info__ >= (0, 9):
        put(jnp.ones(8))
        put(jax.device_put(jnp.ones(8), NamedSharding(mesh_of(4), PartitionSpec("data"))))


@case("development", layout=ABSL, outer={"shape": 1}, inner={"shape": 1}, sampler={"structure": 1})
def nested():
    @jax.jit
    def inner(x):
        return jnp.cos(x)

    @jax.jit
    def outer(x):
        return inner(2 * x) + inner(x)

    @jax.jit
    def sampler(state, *extra):
        return state["x"]

    for rows in (3, 6):
        outer(np.ones((rows, 2), np.float32))
    sampler({"x": np.float32(1)})
    sampler({"x": np.float32(1), "y": np.float32(1)})


@case("held", layout=DATED, compiles=True, evaluate_split={"shape": 2})
def rest_of_three_splits():
    class Evaluator:
        def __init__(self):
            self.step = jax.jit(self.evaluate_split)

        def evaluate_split(self, examples):
            return {"loss": jnp.mean(examples["x"]), "n": examples["y"].sum()}

    evaluator = Evaluator()
    for size in (32, 32, 11, 7):
        evaluator.step({"x": np.ones((size, 4), np.float32), "y": np.ones(size, np.int32)})


@case("held", generate={"shape": 3})
def growing_prompt():
    @jax.jit
    def generate(tokens):
        return jnp.concatenate([tokens, tokens[-1:]])

    tokens = np.zeros(1, np.int32)
    for _ in range(4):
        tokens = generate(tokens)


@case("held", compiles=True, layout=JAX_OWN, sgd={"dtype": 1})
def promoted_by_a_schedule():
    @jax.jit
    def sgd(params, rate):
        return {name: value - rate * value for name, value in params.items()}

    params = {"kernel": jnp.ones((2, 2), jnp.bfloat16), "bias": jnp.ones(2, jnp.bfloat16)}
    for rate in np.float32([0.1, 0.2, 0.3]):
        params = sgd(params, rate)


@case("held", layout=NAMED, accumulate={"weak": 1})
def complex_start():
    @jax.jit
    def accumulate(total, x):
        return total[0] + x, total[1]

    total = (0j, 0)
    for _ in range(3):
        total = accumulate(total, np.complex64(1))
        total = (total[0], 0)


@case("held", compiles=True, layout=ABSL, crop={"static": 3})
def static_tuples():
    def crop(image, box, flip):
        return image[: box[0], : box[1]]

    cropped = jax.jit(crop, static_argnums=(1, 2))
    for box, flip in (((2, 3), True), ((3, 2), True), ((3, 2), False), ((3, 3), False)):
        cropped(np.ones((4, 4), np.float32), box, flip)


@case("held", classify={"static": 1})
def static_function():
    @functools.partial(jax.jit, static_argnames=("activation",))
    def classify(x, activation):
        return activation(x)

    for activation in (jnp.tanh, jnp.sin, jnp.tanh):
        classify(np.ones(3, np.float32), activation=activation)


@case("held", compiles=True, layout=NAMED, transition={"structure": 1})
def named_tuples():
    import collections

    Old = collections.namedtuple("Old", "x y")
    New = collections.namedtuple("New", "x y")

    @jax.jit
    def transition(state):
        return state.x + state.y

    one = np.float32(1)
    for kind in (Old, New, Old):
        transition(kind(one, one))


@case("held", layout=ABSL, merge={"structure": 1})
def metrics_filled_later():
    @jax.jit
    def merge(metrics, loss):
        return {**metrics, "loss": loss}

    metrics = {}
    for _ in range(3):
        metrics = merge(metrics, np.float32(1))


@case("held", compiles=True, layout=NAMED, averaged={"number": 1})
def running_mean_from_zero():
    @jax.jit
    def averaged(mean, x, count):
        return mean + (x - mean) / count

    mean = 0.0
    for count in range(1, 5):
        mean = averaged(mean, np.ones((2, 3), np.float32), np.float32(count))


@case("held", compiles=True, layout=DATED, forward={"off": 1})
def weights_go_onto_a_mesh_later():
    @jax.jit
    def forward(weights, x):
        return x @ weights

    if jax.__version_info__ >= (0, 9):
        weights, x = jnp.ones((8, 2)), np.ones((4, 8), np.float32)
        forward(weights, x)
        forward(jax.device_put(weights, NamedSharding(mesh_of(4), PartitionSpec("data"))), x)


@case("held", compiles=True, layout=DATED, optimise={"none": 1})
def momentum_later():
    @jax.jit
    def optimise(weights, momentum=None):
        momentum = weights if momentum is None else 0.9 * momentum + weights
        return weights - momentum, momentum

    weights, momentum = np.ones(2, np.float32), None
    for _ in range(3):
        weights, momentum = optimise(weights, momentum)


@case("held", layout=JAX_OWN, distance={"names": 1})
def all_by_name():
    @jax.jit
    def distance(a, b):
        return jnp.sum((a - b) ** 2)

    x = np.ones(3, np.float32)
    distance(x, x)
    distance(a=x, b=x)
    distance(b=x, a=x)


@case("held", compiles=True, layout=ABSL, check={})
def keys_of_another_kind():
    @jax.jit
    def check(x):
        return jax.random.normal(jax.random.PRNGKey(0), x.shape) + x

    x = np.ones(2, np.float32)
    check(x)
    with jax.default_prng_impl("rbg"):
        check(x)


@case("held", layout=DATED, contract={"setting": 2})
def precision_of_every_epoch():
    @jax.jit
    def contract(a, b):
        return jnp.einsum("ij,jk->ik", a, b)

    x = np.ones((2, 2), np.float32)
    for precision in ("float32", "bfloat16", "tensorfloat32", "float32"):
        jax.config.update("jax_default_matmul_precision", precision)
        contract(x, x)


@case("held", compiles=True, layout=NAMED, objective={"function": 3})
def minimised_in_a_function():
    def minimise(target, start):
        def objective(x):
            return jnp.sum((x - target) ** 2)

        gradient = jax.jit(jax.value_and_grad(objective))
        return start - 0.1 * gradient(start)[1]

    for target in range(4):
        minimise(target, np.ones(2, np.float32))


@case("held", inner_loop={"function": 1}, outer_loop={"function": 1})
def partials_in_two_places():
    def inner_loop(x, rate):
        return x * rate

    def outer_loop(x, rate):
        return x + rate

    for rate in (1.0, 2.0):
        jax.jit(functools.partial(inner_loop, rate=rate))(np.ones(2))
        jax.jit(functools.partial(outer_loop, rate=rate))(np.ones(2))


@case("held", compiles=True, layout=JAX_OWN, roll_out={"device": 3})
def pipeline():
    def roll_out(x):
        return jnp.roll(x, 1)

    compiled = jax.jit(roll_out)
    for number in (3, 1, 0, 2, 3):
        compiled(arrays_on(jax.devices()[number], (2, 2)))


@case("held", compiles=True, layout=DATED, load={"committed": 1})
def loaded_weights():
    @jax.jit
    def load(params, x):
        return x @ params["w"] + params["b"]

    params = {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}
    x = np.ones((4, 3), np.float32)
    load(params, x)
    load(jax.device_put(params, jax.devices()[0]), x)
    load(params, x)


@case("held", compiles=True, replicate={"layout": 1})
def from_one_to_all():
    @jax.jit
    def replicate(params, x):
        return params["w"] * x

    x = jnp.ones((4, 2))
    replicate({"w": x}, 2.0)
    spread = NamedSharding(mesh_of(2), PartitionSpec("data"))
    replicate({"w": jax.device_put(x, spread)}, 3.0)


@case("held", layout=DATED, propagate={"metadata": 1})
def graph_of_another_size():
    class Graph:
        def __init__(self, nodes, count):
            self.nodes, self.count = nodes, count

    jax.tree_util.register_pytree_node(
        Graph,
        lambda graph: ((graph.nodes,), graph.count),
        lambda count, leaves: Graph(*leaves, count),
    )

    @jax.jit
    def propagate(graph):
        return Graph(2 * graph.nodes, graph.count)

    for count in (3, 4, 3, 4):
        propagate(Graph(np.ones(5, np.float32), count))


@case("held", layout=NAMED, compiles=True, restart={"cleared": 2}, helper={"cleared": 1})
def cleared_between_trials():
    @jax.jit
    def helper(x):
        return jnp.exp(x)

    @jax.jit
    def restart(x):
        return jnp.sum(x)

    x = np.ones(3, np.float32)
    helper(x)
    for _ in range(2):
        restart(x)
        jax.clear_caches()
    restart(x)
    helper(x)


@case(
    "held",
    compiles=True,
    layout=ABSL,
    embed_tokens={"shape": 1},
    model={"shape": 1, "none": 1},
    schedule={"static": 1},
    **{"<lambda>": {"function": 1}},
)
def a_whole_program():
    @jax.jit
    def embed_tokens(table, ids):
        return table[ids]

    @jax.jit
    def model(table, ids, dropout):
        found = embed_tokens(table, ids)
        return found if dropout is None else found * dropout

    @functools.partial(jax.jit, static_argnames="kind")
    def schedule(step, kind):
        return step + 1

    table = np.ones((5, 2), np.float32)
    for rows in (4, 3):
        model(table, np.zeros(rows, np.int32), None)
    model(table, np.zeros(4, np.int32), np.float32(0.5))
    step = 0
    for _ in range(2):
        step = schedule(step, kind="cosine")
    schedule(step, kind="linear")
    for _ in range(2):
        jax.jit(lambda x: x + 1)(np.ones(2))


@case("held", compiles=True, layout=DATED)
def three_good_functions():
    def first(x):
        return x + 1

    def second(x):
        return x + 2

    for function in (first, second, jnp.tanh):
        compiled = jax.jit(function)
        for _ in range(3):
            compiled(np.ones(2, np.float32))


@case("development", compiles=True, _per_rank={"function": 2})
def operations_without_jit():
    def make(scale):
        def _per_rank(x):
            return scale * jnp.sin(x)

        return jax.jit(_per_rank)

    x = np.linspace(0, 1, 7, dtype=np.float32)
    for rank in range(3):
        make(rank + 1.0)(x)
    for length in (3, 4):
        total = jnp.cumsum(jnp.ones(length)) / jnp.arange(1, 1 + length)
        jnp.flip(total)


@case("development", compiles=True, body={"function": 2})
def body_of_a_scan():
    def smooth(xs):
        def body(carry, x):
            return 0.9 * carry + 0.1 * x, carry

        return jax.lax.scan(body, jnp.float32(0), xs)[1]

    # Before 0.10 JAX logs no reason for what `scan` traces, and this log is empty.
    for _ in range(3 if jax.__version_info__ >= (0, 10) else 0):
        smooth(np.ones(50, np.float32))


@case("held", compiles=True, layout=DATED, keep_going={"function": 1}, halve={"function": 1})
def bodies_of_a_while():
    def search(x):
        def keep_going(x):
            return jnp.sum(x) > 1

        def halve(x):
            return x / 2

        return jax.lax.while_loop(keep_going, halve, x)

    for _ in range(2 if jax.__version_info__ >= (0, 10) else 0):
        search(np.ones(6, np.float32))


def grid():
    """Return a mesh of two axes."""
    return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))


@case("development", compiles=True, place={"mesh": 1})
def two_meshes():
    @jax.jit
    def place(x):
        return x + 1

    for mesh in (mesh_of(4), grid(), mesh_of(4)):
        place(jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, PartitionSpec("data"))))


@case("held", layout=NAMED, compiles=True, predict={"mesh": 1})
def a_mesh_for_evaluation():
    @jax.jit
    def predict(params, x):
        return x @ params

    for mesh in (grid(), mesh_of(2)):
        params = jax.device_put(np.ones((4, 2), np.float32), NamedSharding(mesh, PartitionSpec()))
        predict(params, np.ones((3, 4), np.float32))


@case("development", compiles=True, explains=False, jac={"alike": 2}, clip={"other": 1})
def solver_that_captures():
    def outer(data):
        def jac():
            return jnp.sin(jnp.asarray(data))

        return jax.jit(jac)()

    @jax.jit
    def clip(x):
        return jnp.minimum(x, 1)

    for step in range(3):
        outer(np.full(5, step, np.float32))
        clip(np.ones(2 + step // 2, np.float32))


@case("held", compiles=True, explains=False, layout=DATED, rollout={"other": 2, "alike": 1})
def episodes():
    def make_rollout():
        def rollout(x):
            return x * 2

        return jax.jit(rollout)

    for length in (3, 4, 5):
        make_rollout()(np.ones(length, np.float32))
    make_rollout()(np.ones(4, np.float32))


@case("development", layout=NAMED, level="DEBUG", compiles=True, total={"shape": 1})
def everything_is_logged():
    @jax.jit
    def total(x):
        return jnp.sum(x)

    for length in (3, 4):
        total(np.ones(length, np.float32))


def scrubbed(log):
    """Return a log without the paths of this machine."""
    for folder in (str(pathlib.Path(__file__).parent), str(pathlib.Path(jax.__file__).parents[1])):
        log = log.replace(folder + os.sep, "")
    log = re.sub(re.escape(tempfile.gettempdir()) + r"/[\w-]+", "cache", log)
    return log.replace(pathlib.Path(__file__).name, "train.py")


def written(entry):
    """Return what a case logs. It runs in a process of its own, for JAX has not seen it then."""
    with tempfile.TemporaryFile() as log:
        if not (child := os.fork()):
            os.dup2(log.fileno(), sys.stderr.fileno())
            if entry["layout"]:
                logging.basicConfig(format=entry["layout"], level=entry["level"])
            jax.config.update("jax_explain_cache_misses", entry["explains"])
            jax.config.update("jax_log_compiles", entry["compiles"])
            entry["run"]()
            sys.stderr.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            log.seek(0)
            raise RuntimeError(log.read().decode())
        log.seek(0)
        return scrubbed(log.read().decode())


def main():
    """Write the logs of this JAX that are not there."""
    target = pathlib.Path(__file__).with_name("logs") / f"jax-{jax.__version__}.json"
    target.parent.mkdir(exist_ok=True)
    known = json.loads(target.read_text("utf8")) if target.exists() else {}
    logs = {n: known[n] if n in known else written(entry) for n, entry in CASES.items()}
    target.write_text(json.dumps(logs, indent=1) + "\n", "utf8")


if __name__ == "__main__":
    main()
