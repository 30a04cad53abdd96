"""Profiles of the real model, read in Python: scopes, gaps, dtypes."""

import collections
import contextlib
import itertools
import json
import os
import pathlib
import re
import tempfile
import time
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from snippets.models.real_model import (
    attention,
    layer_norm,
    linear,
    pool,
    torch_embed,
)

INSTRUCTION = re.compile(
    r"(?P<name>[\w.-]+) = (?P<dtype>\w+)\[.* (?P<kind>[\w-]+)\(.*"
    r'op_name="[^"/]*/(?P<scope>[^"]*)"'
)


class Event(NamedTuple):
    """One event of a profile: times in seconds, and its metadata."""

    name: str
    start: float
    end: float
    stats: dict


def scoped_layer(p, x, mask, config):
    """Return tokens (..., length, width) after one layer, with named parts."""
    with jax.named_scope("attention"):
        x = x + attention(p, x, mask, config.heads)
        x = layer_norm(p["mix_norm"], x, config.epsilon)
    with jax.named_scope("mlp"):
        wide = jax.nn.gelu(
            linear(p["widen"], x), approximate=config.approximate
        )
        x = x + linear(p["narrow"], wide)
        return layer_norm(p["narrow_norm"], x, config.epsilon)


@jax.jit(static_argnames="config")
def scoped_embed(params, ids, mask, config):
    """Return a vector (..., width) for each row of ids (..., length)."""
    p = params["embeddings"]
    with jax.named_scope("embeddings"):
        x = p["tokens"][ids] + p["positions"][: ids.shape[-1]] + p["types"][0]
        x = layer_norm(p["norm"], x, config.epsilon)
    for p in params["layers"]:
        x = scoped_layer(p, x, mask, config)
    with jax.named_scope("pool"):
        return pool(x, mask)


def read_events(folder):
    """Return all events of the one profile in a folder.

    From Python 3.12 on, looking into an event warns of how its class was made.
    """
    [path] = pathlib.Path(folder).rglob("*.xplane.pb")
    planes = jax.profiler.ProfileData.from_file(str(path)).planes
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return [
            Event(
                event.name,
                event.start_ns / 1e9,
                event.end_ns / 1e9,
                dict(event.stats),
            )
            for plane in planes
            for line in plane.lines
            for event in line.events
        ]


@contextlib.contextmanager
def profiled():
    """Profile what runs inside; yield a list that then has the events."""
    events = []
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            yield events
        events += read_events(folder)


def operations(events):
    """Return the events that are operations of a compiled program."""
    return [event for event in events if "hlo_op" in event.stats]


def instructions(compiled):
    """Return {instruction: (scope, dtype)} of a compiled program."""
    found = map(INSTRUCTION.search, compiled.as_text().splitlines())
    return {m["name"]: (m["scope"], m["dtype"]) for m in found if m}


def matmuls(lowered):
    """Return {scope: dtype} of the matmuls that a program asks for."""
    text = lowered.as_text("hlo", debug_info=True)
    found = map(INSTRUCTION.search, text.splitlines())
    return {m["scope"]: m["dtype"] for m in found if m and m["kind"] == "dot"}


def seconds_by(events, label):
    """Add up seconds of operations by `label(event)`, longest first."""
    sums = collections.Counter()
    for event in operations(events):
        sums[label(event)] += event.end - event.start
    return sums.most_common()


def print_shares(sums, rows=8):
    """Print the first rows of (name, seconds) with their share of all."""
    total = sum(seconds for _, seconds in sums)
    for name, seconds in sums[:rows]:
        print(f"{seconds / total:5.0%}  {name}")


def run_loop(step, load, use, count=3):
    """Load a batch, run the step, use the result, each of them named."""
    named = jax.profiler.TraceAnnotation
    for number in range(count):
        with jax.profiler.StepTraceAnnotation("loop", step_num=number):
            with named("load"):
                batch = load(number)
            with named("step"):
                vectors = step(*batch)
            with named("use"):
                use(vectors)
    with named("wait"):
        jax.block_until_ready(vectors)


def slow_load(number, batch):
    """Return the batch, after the time that a slow disk would take."""
    time.sleep(0.05)
    return batch


def merged(spans):
    """Merge spans (start, end) that touch or overlap."""
    whole = []
    for start, end in sorted(spans):
        if whole and start <= whole[-1][1]:
            whole[-1][1] = max(end, whole[-1][1])
        else:
            whole.append([start, end])
    return whole


def lanes(events, names=("load", "step", "use", "wait"), gap=5e-3):
    """Return what to draw: named events of Python, and when operations ran.

    Pauses of the device shorter than `gap` seconds are not drawn.
    """
    python = [(e.name, e.start, e.end) for e in events if e.name in names]
    spans = [(e.start, e.end + gap) for e in operations(events)]
    first = min(
        start for start in (*(e[1] for e in python), *(e[0] for e in spans))
    )
    device = [("operations", start, end - gap) for start, end in merged(spans)]
    drawn = [("Python", *each) for each in python] + [
        ("device", *d) for d in device
    ]
    return [
        (lane, name, start - first, end - first)
        for lane, name, start, end in drawn
    ]


def idle_share(events):
    """Return which share of the loop's time no operation ran."""
    drawn = lanes(events, gap=0.0)
    whole = max(end for *_, end in drawn) - min(
        start for _, _, start, _ in drawn
    )
    busy = sum(
        end - start for lane, _, start, end in drawn if lane == "device"
    )
    return 1 - busy / whole


def conversions(events):
    """Count the times that an array of JAX became one of NumPy."""
    return sum(event.name == "np.asarray(jax.Array)" for event in events)


def note_number(history, vectors):
    """Append the mean of an array as a number of Python."""
    history.append(float(vectors.mean()))


def note_array(history, vectors):
    """Append the mean of an array as an array, which may not be there yet."""
    history.append(vectors.mean())


@jax.jit
def square(x):
    """Return the matmul of `x`, (n, n), with itself."""
    return x @ x


def multiply(x, each, calls=6):
    """Square `x`, (n, n), again and again.

    Wait for each result before the next call, or for the last alone.
    """
    named = jax.profiler.TraceAnnotation
    for number in range(calls):
        with named("call"):
            x = square(x)
        if each or number == calls - 1:
            with named("wait"):
                x.block_until_ready()


def shortest_round(n, each, rounds=50):
    """Profile `multiply` with matrices (n, n); return the shortest's lanes."""
    x = jnp.full((n, n), 1 / n)
    multiply(x, each)
    with profiled() as events:
        for _ in range(rounds):
            with jax.profiler.TraceAnnotation("round"):
                multiply(x, each)
    spans = [(e.start, e.end) for e in events if e.name == "round"]
    start, end = min(spans, key=lambda span: span[1] - span[0])
    kept = [event for event in events if start <= event.start < end]
    return lanes(kept, ("call", "wait"), gap=0.0)


def in_words(seconds):
    """Write a time in microseconds or milliseconds."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms"


class TwoLanes:
    """What Python and the device do in `multiply`, for several sizes."""

    head = (
        "n",
        "Python waits",
        "in all",
        "last call returns",
        "device computes",
    )

    def __init__(self, sizes):
        """Profile matrices (n, n) of these sizes, waiting in both ways."""
        ways = {"after each call": True, "at the end": False}
        self.found = [
            (n, words, shortest_round(n, each))
            for n, (words, each) in itertools.product(sizes, ways.items())
        ]

    def rows(self):
        """Return what is said of each timeline, as texts beneath `head`."""
        for n, words, events in self.found:
            whole = max(end for *_, end in events)
            called = max(end for _, what, _, end in events if what == "call")
            busy = sum(e - s for lane, _, s, e in events if lane == "device")
            texts = in_words(whole), in_words(called), f"{busy / whole:.0%}"
            yield n, words, *texts

    def __repr__(self):
        """Return a line for each timeline."""
        return "\n".join(
            ", ".join(map("{} {}".format, self.head, row))
            for row in self.rows()
        )

    def _repr_html_(self):
        lines = []
        for (*_, events), row in zip(self.found, self.rows(), strict=True):
            plain = {}
            for _, what, *ends in events:
                ends = [round(seconds * 1e6) for seconds in ends]
                plain.setdefault(what, []).append(ends)
            data = json.dumps(plain, separators=(",", ":"))
            cells = "".join(f"<td>{text}</td>" for text in row)
            lines.append(f"<tr data-plain='{data}'>{cells}</tr>")
        head = "".join(f"<th>{text}</th>" for text in self.head)
        return (
            "<details open><summary>The timelines in numbers</summary>"
            f"<table><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table></details>"
        )


def half_way(params):
    """Return the parameters in bfloat16, but for one that was forgotten."""
    short = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
    positions = params["embeddings"]["positions"]
    return short | {
        "embeddings": short["embeddings"] | {"positions": positions}
    }


def silence_kineto():
    """Silence the log of the library behind PyTorch's profiler."""
    os.environ["KINETO_LOG_LEVEL"] = "99"


def torch_profile(model, ids, mask):
    """Profile one call of PyTorch's model; return [(operation, seconds)]."""
    tensors = [
        torch.tensor(np.asarray(x), device=model.device) for x in (ids, mask)
    ]
    with torch.inference_mode():
        torch_embed(model, *tensors)
        with torch.profiler.profile(acc_events=True) as profile:
            torch_embed(model, *tensors)
    rows = [
        (e.key, e.self_cpu_time_total / 1e6) for e in profile.key_averages()
    ]
    return sorted(rows, key=lambda row: -row[1])
