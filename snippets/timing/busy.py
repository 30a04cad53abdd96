"""What a neighbour on a core costs, and having one core alone."""

import contextlib
import dataclasses
import functools
import gc
import inspect
import itertools
import json
import math
import os
import signal
import subprocess
import sys

import numpy as np

from snippets.programs.timer import (
    Comparison,
    Measurement,
    display,
    disturbed_since,
    taken_by_children,
    taken_by_others,
    turns,
)

COUNTING = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
SETTINGS = {
    "spinning_less": {
        "GOMP_SPINCOUNT": "30000",
        "OPENBLAS_THREAD_TIMEOUT": "20",
    },
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "one_thread": {"OMP_NUM_THREADS": "1"},
}
LONG_SAMPLE = 0.04


def draw():
    """Return a 512 x 512 matrix and a million elements, float32 in NumPy."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((512, 512), dtype=np.float32)
    return a, rng.uniform(-1, 1, 2**20).astype(np.float32)


def chain(x):
    """Apply 32 elementwise operations to any framework's array."""
    for _ in range(16):
        x = x * 0.75 + 0.5
    return x


def works_jax():
    """Return what JAX computes, compiled: {work: call}."""
    import jax
    import jax.numpy as jnp

    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    def step(w, x):
        return w - 0.1 * jax.grad(loss)(w, x)

    a, numbers = map(jnp.asarray, draw())
    return {
        "matmul": functools.partial(jax.jit(jnp.dot), a, a),
        "chain": functools.partial(jax.jit(chain), numbers),
        "step": functools.partial(jax.jit(step), 0.05 * a, a),
    }


def works_torch(compiled=lambda function: function):
    """Return what PyTorch computes: {work: call}."""
    import torch

    @compiled
    def loss(w, x):
        return torch.mean(torch.tanh(x @ w) ** 2)

    def step(w, x):
        (gradient,) = torch.autograd.grad(loss(w, x), w)
        with torch.no_grad():
            return w - 0.1 * gradient

    a, numbers = map(torch.from_numpy, draw())
    weights = (0.05 * a).requires_grad_()
    matmul = compiled(lambda a, b: a @ b)
    return {
        "matmul": functools.partial(matmul, a, a),
        "chain": functools.partial(compiled(chain), numbers),
        "step": functools.partial(step, weights, a),
    }


def works_torch_compiled():
    """Return what `torch.compile` makes of the same: {work: call}."""
    import torch

    return works_torch(torch.compile)


def works_tensorflow():
    """Return what TensorFlow computes, as graphs: {work: call}."""
    import tensorflow as tf

    @tf.function
    def step(w, x):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_mean(tf.tanh(x @ w) ** 2)
        return w - 0.1 * tape.gradient(loss, w)

    a, numbers = map(tf.constant, draw())
    return {
        "matmul": functools.partial(tf.function(tf.matmul), a, a),
        "chain": functools.partial(tf.function(chain), numbers),
        "step": functools.partial(step, 0.05 * a, a),
    }


def works_numpy():
    """Return what NumPy computes, with the gradient by hand: {work: call}."""

    def step(w, x):
        t = np.tanh(x @ w)
        return w - 0.1 * (x.T @ (2 / t.size * t * (1 - t**2)))

    a, numbers = draw()
    return {
        "matmul": functools.partial(np.dot, a, a),
        "chain": functools.partial(chain, numbers),
        "step": functools.partial(step, np.float32(0.05) * a, a),
    }


def answer(works):
    """Time the calls that lines of standard input ask for.

    A line is the name of one of the `works` and a number of calls. Printed
    are what is known of it, where the number is 0, or their seconds and
    those of processors.
    """
    from timer import Timed, rest

    gc.disable()
    timed = {}
    for line in sys.stdin:
        name, calls = json.loads(line)
        if name not in timed:
            timed[name] = Timed(works[name])
        if calls:
            rest()
            timed[name].run(1)
            reply = timed[name].run(calls)
        else:
            known = timed[name].measurement(name, False, [1.0])
            reply = dataclasses.asdict(known)
        print(json.dumps(reply), flush=True)


def program(works, using=()):
    """Return the source of a process that answers for one of the above."""
    needed = [draw, chain, *using, works, answer]
    imports = "import dataclasses, functools, gc, json, sys"
    call = f"answer({works.__name__}())"
    sources = map(inspect.getsource, needed)
    return "\n".join([imports, "import numpy as np", *sources, call])


class Child:
    """A process of its own, for threads are set up as libraries load."""

    def __init__(self, works, using=(), setting=None, cores=None):
        """Let it answer for `works`, which may call functions `using`.

        Of the variables that steer threads it has those of the setting. It
        has so many cores, or all; AttributeError where the system does not
        pin processes.
        """
        self.works, self.using = works, using
        variables = SETTINGS.get(setting, {})
        steering = set().union(*SETTINGS.values())
        kept = {k: v for k, v in os.environ.items() if k not in steering}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program(works, using)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=kept | variables,
            text=True,
        )
        if cores:
            usable = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(self.process.pid, usable[:cores])

    def with_cores(self, cores):
        """Return another process for the same works, which has these cores."""
        return Child(self.works, self.using, cores=cores)

    def ask(self, name, calls):
        """Return its answer; RuntimeError where it ended without one."""
        line, asked = "", json.dumps([name, calls])
        with contextlib.suppress(BrokenPipeError):
            print(asked, file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a child process ended without an answer")
        return json.loads(line)

    def close(self):
        """End the process."""
        self.process.communicate()


class Neighbour:
    """A process that counts on one core, whenever it is not stopped."""

    def __init__(self):
        """Start it, on the last core where the system pins processes."""
        self.process = subprocess.Popen([sys.executable, "-c", COUNTING])
        self.pinned = hasattr(os, "sched_setaffinity")
        if self.pinned:
            last = max(os.sched_getaffinity(0))
            os.sched_setaffinity(self.process.pid, {last})
        self.process.send_signal(signal.SIGSTOP)

    @contextlib.contextmanager
    def at_work(self):
        """Let it count meanwhile."""
        self.process.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGSTOP)

    def close(self):
        """End it."""
        self.process.kill()
        self.process.wait()


class InCompany:
    """A call in a child process, timed in some company: calm or busy."""

    def __init__(self, child, work, company=contextlib.nullcontext):
        """Make a few calls, to know how many fill a sample."""
        self.child, self.work, self.company = child, work, company
        self.calls, self.elapsed, self.used = 3, 0.0, 0.0
        few = self.seconds()
        self.calls = max(1, math.ceil(LONG_SAMPLE / few))
        self.elapsed = self.used = 0.0

    def seconds(self):
        """Return the time of one call, the mean of one sample."""
        with self.company():
            elapsed, used = self.child.ask(self.work, self.calls)
        self.elapsed, self.used = self.elapsed + elapsed, self.used + used
        return elapsed / self.calls

    def measurement(self, name, latency, disturbed):
        """Return the `Measurement`, with settings as the child has them."""
        known = self.child.ask(self.work, 0) | {
            "name": name,
            "calls": self.calls,
            "latency": latency,
            "cores": round(self.used / self.elapsed, 1),
            "disturbed": disturbed,
        }
        return Measurement(**known)


def compare_children(name, timed, names):
    """Let calls in child processes take turns, and show the `Comparison`.

    `timed` and `names` map keys such as 'eager@torch' to an `InCompany` and
    to the name of its measurement. What these processes compute is not the
    work of others.
    """
    before, own = taken_by_others(), taken_by_children()
    samples = turns([each.seconds for each in timed.values()])
    disturbed = disturbed_since(before, taken_by_children() - own)
    measured = {
        key: each.measurement(names[key], latency, disturbed)
        for (key, each), latency in zip(timed.items(), samples, strict=True)
    }
    comparison = Comparison(name, measured)
    display(comparison)
    return comparison


def compare_busy(work, children, neighbour):
    """Time a work in child processes, calm and busy.

    `children` maps keys such as 'eager@torch' to processes. In each round
    each takes a sample by itself and one while the neighbour counts, in
    random order.
    """
    companies = {"calm": contextlib.nullcontext, "busy": neighbour.at_work}
    pairs = itertools.product(children.items(), companies.items())
    timed, names = {}, {}
    for (key, child), (company, with_it) in pairs:
        label, _, framework = key.partition("@")
        name = f"{label}/{company}@{framework}"
        timed[name] = InCompany(child, work, with_it)
        names[name] = f"busy/{work}/{label}/{company}"
    return compare_children(f"busy/{work}", timed, names)


def compare_cores(work, by_cores):
    """Time a work in child processes that have different numbers of cores.

    `by_cores` maps words such as 'one' to `children` of `compare_busy`.
    """
    timed, names = {}, {}
    for cores, children in by_cores.items():
        for key, child in children.items():
            label, _, framework = key.partition("@")
            name = f"{label}/{cores}@{framework}"
            timed[name] = InCompany(child, work)
            names[name] = f"cores/{cores}/{work}/{label}"
    return compare_children(f"cores/{work}", timed, names)
