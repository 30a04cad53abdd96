"""The same functions in several versions of JAX; and names that are gone."""

import contextlib
import dataclasses
import functools
import gc
import html
import inspect
import json
import os
import subprocess
import sys
import time
import traceback
import warnings

import jax
import jax.numpy as jnp
from IPython.display import display

from snippets.programs.timer import (
    LONGEST_REST,
    Comparison,
    Timed,
    disturbed_since,
    rest,
    take_samples,
    taken_by_others,
    text_of,
    threads_running,
    time_calls,
)

IMPORTS = """
import contextlib, functools, gc, inspect, json, os, sys, threading, time
import traceback, warnings
import jax
import jax.numpy as jnp
"""
NAMES = [
    (
        "from jax.experimental.sharded_jit import sharded_jit",
        "0.4.9 or before",
        "jax.jit(f, in_shardings=…)",
        "jax.jit(abs, in_shardings=None)",
    ),
    (
        "from jax.interpreters.xla import DeviceArray",
        "0.4.11",
        "jax.Array",
        "jax.Array",
    ),
    (
        "jax.experimental.PartitionSpec",
        "0.4.11",
        "jax.sharding.PartitionSpec",
        "jax.sharding.PartitionSpec",
    ),
    ("jax.numpy.DeviceArray", "0.4.14", "jax.Array", "jax.Array"),
    (
        "jax.linear_util.wrap_init",
        "0.4.24",
        "jax.extend.linear_util.wrap_init",
        "from jax.extend.linear_util import wrap_init",
    ),
    ("jax.random.KeyArray", "0.4.24", "jax.Array", "jax.Array"),
    (
        "from jax.config import config",
        "0.4.29",
        "jax.config",
        "jax.config.update",
    ),
    (
        "from jax.experimental.maps import xmap",
        "0.4.31",
        "jax.shard_map",
        "jax.shard_map",
    ),
    (
        "jax.xla_computation",
        "0.4.34",
        "jax.jit(f).lower(…).compiler_ir('hlo')",
        "jax.jit(abs).lower(1.0).compiler_ir('hlo')",
    ),
    ("jax.tree_map", "0.6.0", "jax.tree.map", "jax.tree.map"),
    (
        "jax.core.Primitive",
        "0.6.0",
        "jax.extend.core.Primitive",
        "from jax.extend.core import Primitive",
    ),
    (
        "from jax.extend.ffi import ffi_call",
        "0.7.0",
        "jax.ffi.ffi_call",
        "jax.ffi.ffi_call",
    ),
    (
        "jax.lib.xla_bridge.get_backend",
        "0.8.0",
        "jax.extend.backend.get_backend",
        "from jax.extend.backend import get_backend",
    ),
    (
        "from jax.experimental.host_callback import call",
        "0.8.0",
        "jax.pure_callback",
        "jax.pure_callback",
    ),
    (
        "jax.device_put_replicated",
        "0.10.0",
        "jax.device_put",
        "jax.device_put",
    ),
    (
        "jax.sharding.PmapSharding",
        "0.10.0",
        "jax.sharding.NamedSharding",
        "jax.sharding.NamedSharding",
    ),
]


def small_call():
    """Return a compiled addition of 4 float32 elements: almost no work."""
    return functools.partial(jax.jit(lambda x: x + 1), jnp.ones(4))


def without_jit():
    """Return three operations on 4 elements, each dispatched by itself."""
    return functools.partial(lambda x: (x + 1) * x - x, jnp.ones(4))


def small_pmap():
    """Return `pmap` of an addition, on one device, for float32[1,4]."""
    return functools.partial(jax.pmap(lambda x: x + 1), jnp.ones((1, 4)))


def perceptron(width=256, batch=128, inputs=784, outputs=10):
    """Return an uncompiled training step, parameters, inputs and targets.

    All are float32. The step returns the loss, a scalar, and new parameters.
    """
    keys = jax.random.split(jax.random.key(0), 4)
    first = 0.05 * jax.random.normal(keys[0], (inputs, width))
    second = 0.05 * jax.random.normal(keys[1], (width, outputs))
    x = jax.random.normal(keys[2], (batch, inputs))
    y = jax.random.normal(keys[3], (batch, outputs))

    def loss(parameters, x, y):
        first, second = parameters
        return jnp.mean((jnp.tanh(x @ first) @ second - y) ** 2)

    def step(parameters, x, y):
        value, slopes = jax.value_and_grad(loss)(parameters, x, y)
        return value, [
            p - 0.1 * s for p, s in zip(parameters, slopes, strict=True)
        ]

    return step, [first, second], x, y


def training_step():
    """Return a compiled training step of an MLP with one hidden layer."""
    step, *arguments = perceptron()
    return functools.partial(jax.jit(step), *arguments)


def first_call():
    """Return a function that traces, lowers, compiles and runs a step."""
    step, *arguments = perceptron(width=32, batch=8, inputs=16)

    def anew():
        return jax.jit(lambda *given: step(*given))(*arguments)

    return anew


def product():
    """Return a matmul of two float32 matrices of shape (512, 512)."""
    a = jax.random.normal(jax.random.key(0), (512, 512))
    return functools.partial(jax.jit(jnp.dot), a, a)


def chain():
    """Return 16 elementwise operations on a million float32 numbers."""

    def compute(x):
        for _ in range(8):
            x = jnp.tanh(1.5 * x)
        return x

    return functools.partial(jax.jit(compute), jnp.linspace(-1, 1, 1_000_000))


def loop():
    """Return 1000 iterations of `scan`: a 16 x 16 matrix times a vector."""
    weights = 0.1 * jax.random.normal(jax.random.key(0), (16, 16))

    def states(start):
        def step(state, _):
            return jnp.tanh(weights @ state), None

        return jax.lax.scan(step, start, None, length=1000)[0]

    return functools.partial(jax.jit(states), jnp.ones(16))


def sorting():
    """Return the sorting of 20 000 float32 numbers."""
    x = jax.random.normal(jax.random.key(0), (20_000,))
    return functools.partial(jax.jit(jnp.sort), x)


def convolution():
    """Return a 3 x 3 convolution of 16 float32 images, 32 x 32 x 16."""
    keys = jax.random.split(jax.random.key(0))
    images = jax.random.normal(keys[0], (16, 32, 32, 16))
    filters = jax.random.normal(keys[1], (3, 3, 16, 16))
    convolve = functools.partial(
        jax.lax.conv_general_dilated,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return functools.partial(jax.jit(convolve), images, filters)


def small_systems():
    """Return the solution of 1000 linear systems of size 4, by `vmap`."""
    keys = jax.random.split(jax.random.key(0))
    a = jax.random.normal(keys[0], (1000, 4, 4)) + 4 * jnp.eye(4)
    b = jax.random.normal(keys[1], (1000, 4))
    return functools.partial(jax.jit(jax.vmap(jnp.linalg.solve)), a, b)


def roughness(x):
    """Return the sum of squared differences of neighbours along all axes."""
    return sum(jnp.sum(jnp.square(jnp.diff(x, axis=i))) for i in range(x.ndim))


def neighbours(of=roughness):
    """Return `roughness` of float32 numbers of shape (128, 128, 128)."""
    x = jax.random.normal(jax.random.key(0), (128, 128, 128))
    return functools.partial(jax.jit(of), x)


def neighbours_gradient():
    """Return the gradient of `roughness`, of the same numbers."""
    return neighbours(jax.grad(roughness))


def prepare(source, name):
    """Time from now on what `name()` returns, after a first call.

    Returns the seconds of that call, and shapes and dtypes of its arrays.
    """
    global timed
    exec(source, globals())
    timed = globals()[name]()
    start = time.perf_counter()
    jax.block_until_ready(timed())
    first = time.perf_counter() - start
    given = jax.tree_util.tree_leaves(getattr(timed, "args", ()))
    gc.collect()
    gc.disable()
    return (
        first,
        [list(x.shape) for x in given],
        str(given[0].dtype) if given else "",
    )


def seconds(calls):
    """Return the seconds of `calls` calls, and the processor time so far."""
    rest()
    wait = jax.block_until_ready
    taken = time_calls(timed, (), wait, lambda result: None, calls)
    return *taken, time.process_time()


def outcome(statement):
    """Execute a statement, and return its error as text, or nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(statement, {"jax": jax})
    except Exception as error:
        place = f" ({getattr(error, 'path', None)})"
        return f"{type(error).__name__}: {error}".removesuffix(place)
    return ""


def versions():
    """Return the versions of Python, JAX and jaxlib of this process."""
    import jaxlib.version

    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "python": python,
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
    }


def answer():
    """Call what the lines of standard input ask for, and print the results."""
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            name, arguments = json.loads(line)
            try:
                reply = {"returned": globals()[name](*arguments)}
            except Exception:
                reply = {"failed": traceback.format_exc()}
            print(json.dumps(reply), file=sys.__stdout__, flush=True)


def program():
    """Return the source of a process that answers; it needs only JAX."""
    functions = [text_of, threads_running, rest, time_calls]
    functions += [prepare, seconds, outcome, versions]
    sources = [inspect.getsource(each) for each in (*functions, answer)]
    limit = f"LONGEST_REST = {LONGEST_REST}"
    return "\n".join([IMPORTS, limit, *sources, "answer()"])


class Elsewhere:
    """A process of another Python and JAX that answers questions."""

    def __init__(self, python, **variables):
        """Start it; `variables` are added to its environment."""
        self.process = subprocess.Popen(
            [python, "-c", program()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | variables,
            text=True,
        )
        self.variables, self.computed = variables, 0.0
        self.versions = None

    def ask(self, name, *arguments):
        """Return what a function returns there, or raise RuntimeError."""
        try:
            self.process.stdin.write(json.dumps([name, arguments]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(
                f"{self.process.args[0]} ended without an answer"
            )
        reply = json.loads(line)
        if "failed" in reply:
            raise RuntimeError(f"{name} failed elsewhere: {reply['failed']}")
        return reply["returned"]

    def own(self, settings):
        """Return its versions, and the settings of its own environment."""
        known = (settings | self.variables).items()
        settings = {name: value for name, value in known if value}
        return {"versions": self.versions, "settings": settings}

    def again(self, **variables):
        """Start another process of the same Python."""
        other = Elsewhere(self.process.args[0], **variables)
        other.versions = self.versions
        return other

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def in_order(version):
    """Return what versions such as '0.4.31' are sorted by."""
    return [int(part) for part in version.split(".") if part.isdigit()]


def all_versions():
    """Start a process for each Python in JAX_PYTHONS, and one of this one.

    Returns {version of JAX: process}, the oldest first.
    """
    pythons = os.environ.get("JAX_PYTHONS", "").split(os.pathsep)
    started = [
        Elsewhere(python)
        for python in [*filter(None, pythons), sys.executable]
    ]
    found = {}
    for each in started:
        each.versions = each.ask("versions")
        if found.setdefault(each.versions["jax"], each) is not each:
            each.close()
    return {version: found[version] for version in sorted(found, key=in_order)}


def with_flags(processes, flags):
    """Start processes with XLA flags: {version or version/label: flags}.

    Versions that are not among `processes` are left out.
    """
    return {
        key: processes[key.split("/")[0]].again(XLA_FLAGS=value)
        for key, value in flags.items()
        if key.split("/")[0] in processes
    }


class TimedElsewhere(Timed):
    """A function in another process, to be timed like one of this process."""

    def __init__(self, process, source, name):
        """Let `name()` of the source make the function, and call it twice."""
        self.process = process
        self.first_call, self.shape, self.dtype = process.ask(
            "prepare", source, name
        )
        self.framework, self.kind, self.calls = "jax", "cpu", None
        self.run(1)

    def run(self, calls):
        """Return the seconds of `calls` calls there, and of processors."""
        *taken, self.process.computed = self.process.ask("seconds", calls)
        return taken

    def measurement(self, *args, **options):
        """Return the `Measurement`, with the process's versions and flags."""
        found = super().measurement(*args, **options)
        return dataclasses.replace(found, **self.process.own(found.settings))


def computed_by(processes):
    """Return the core seconds of processes, up to their last answers."""
    return sum(each.computed for each in processes.values())


def across(name, function, processes, *, using=()):
    """Time what `function()` returns in all processes, which take turns.

    `processes` are those of `all_versions`. `using` are functions that
    `function` calls. Without any process nothing is done.
    """
    source = "\n".join(map(inspect.getsource, (*using, function)))
    if not processes:
        return None
    timed = {
        key: TimedElsewhere(process, source, function.__name__)
        for key, process in processes.items()
    }
    before, computed = taken_by_others(), computed_by(processes)
    samples, dropped = take_samples(timed)
    disturbed = disturbed_since(before, own=computed_by(processes) - computed)
    found = {
        key: each.measurement(
            f"{name}/{key}", disturbed, *samples[key], dropped=dropped
        )
        for key, each in timed.items()
    }
    comparison = Comparison(name, found)
    display(comparison)
    return comparison


@dataclasses.dataclass
class Gone:
    """What code with an old name does, by version, and what to write today.

    `removed` is the version that JAX's changelog gives. `outcomes` maps
    versions, the oldest first, to an error, or to an empty text.
    """

    code: str
    removed: str
    instead: str
    outcomes: dict

    @property
    def last(self):
        """The last version in which the code works, or an empty text."""
        return next(
            (v for v in reversed(self.outcomes) if not self.outcomes[v]), ""
        )

    @property
    def first(self):
        """The first version in which it fails, or an empty text."""
        return next((v for v, error in self.outcomes.items() if error), "")

    def history(self):
        """Return a sentence on where the code works and where it fails."""
        works = (
            f"works in {self.last}" if self.last else "works in none of these"
        )
        fails = (
            f"fails in {self.first} with"
            if self.first
            else "fails in none of these"
        )
        return f"Removed in {self.removed}; {works}, {fails}"

    def texts(self):
        """Return the code, its replacement, the history, the first message."""
        said = self.outcomes.get(self.first, "")
        return [self.code, self.instead, self.history(), said]


class GoneTable:
    """What became of old names, with the message of the first version."""

    def __init__(self, processes, names):
        """Execute the code in all versions; `names` has rows like NAMES.

        Raises RuntimeError where the replacement fails in the newest version.
        """
        self.rows = []
        for code, removed, instead, check in names:
            found = {
                v: each.ask("outcome", code) for v, each in processes.items()
            }
            if failed := [*processes.values()][-1].ask("outcome", check):
                raise RuntimeError(f"instead of {code}: {failed}")
            self.rows.append(Gone(code, removed, instead, found))

    def __repr__(self):
        return "\n".join(" | ".join(row.texts()) for row in self.rows)

    def _repr_html_(self):
        head = '<th scope="col">in old code</th><th scope="col">today</th>'
        style = (
            'style="table-layout: fixed; width: 100%; overflow-wrap: anywhere"'
        )
        parts = []
        for row in self.rows:
            code, instead, history, said = map(html.escape, row.texts())
            names = (
                f"<td><code>{code}</code></td><td><code>{instead}</code></td>"
            )
            below = f'<td colspan="2">{history} <samp>{said}</samp></td>'
            parts.append(f"<tbody><tr>{names}</tr><tr>{below}</tr></tbody>")
        head = f"<thead><tr>{head}</tr></thead>"
        return f"<table {style}>{head}{''.join(parts)}</table>"
