"""Says whether an answer to an exercise is right, and if not, what is not right yet."""

import ast
import contextlib
import inspect
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import typing

import jax

TRACED = "/jax/core/compile/jaxpr_trace_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
KINDS = {
    "ArrayImpl": "JAX array",
    "DynamicJaxprTracer": "traced array",
    "ndarray": "NumPy array",
}
# Debian's Python, and Colab with it, has the second.
INSTALLED = re.compile(r"[\\/](site|dist)-packages[\\/]")
# A process that joins another, runs a program with an answer, and writes what came out. It ends when
# the process that started it does, which closes its standard input.
JOINED = """
import json, os, sys, threading, traceback
import jax
threading.Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()
number, path = int(sys.argv[1]), sys.argv[3]
jax.distributed.initialize(f"localhost:{sys.argv[2]}", 2, number)
try:
    record = {"found": PROGRAM(ANSWER)}
except Exception as error:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line for frame in frames if frame.filename == __file__]
    said = str(error).split("\\n")[0].removesuffix(".")
    record = {"error": [type(error).__name__, said, lines[-1]]}
with open(path + ".part", "w") as file:
    json.dump(record, file)
os.replace(path + ".part", path)
threading.Event().wait()
"""
# Seconds, for what waits forever.
LIMIT = 100


def judge(check, answer):
    """Print that an answer passes its check, or what is not right yet.

    `check` is called with the answer, and raises AssertionError with words for its author.
    """
    problem = problem_of(check, answer)
    print(
        "Right."
        if problem is None
        else textwrap.fill(f"Not yet: {problem}", 79)
    )


def problem_of(check, answer):
    """Return what is not right about an answer, in words; None where everything is."""
    try:
        check(answer)
    except AssertionError as wrong:
        # Libraries assert as well, and not for readers. The checks may lie among them.
        place = traceback.extract_tb(wrong.__traceback__)[-1].filename
        own = os.path.dirname(__file__)
        if not place.startswith(own) and INSTALLED.search(place):
            return f"{_first_line(wrong)}{_place(wrong, answer)}"
        return str(wrong)
    except NotImplementedError as error:
        # An answer may call that of an exercise before.
        last = traceback.extract_tb(error.__traceback__)[-1]
        others = last.filename == __file__ or INSTALLED.search(last.filename)
        return (
            f"write `{_name(answer) if others else last.name}`; it has no body"
        )
    # It is somebody's program, and may raise anything.
    except Exception as error:
        return f"{_first_line(error)}{_place(error, answer)}"
    return None


def _name(answer):
    return getattr(answer, "__name__", type(answer).__name__)


def _first_line(error):
    said = opening(error)
    # Its address is another one in each process.
    said = re.sub(
        r"<(?:function|PjitFunction of)? ?<?(\w+)[^>]* at 0x[0-9a-f]+>+",
        r"`\1`",
        said,
    )
    return (
        f"it raises {type(error).__name__}: {said}"
        if said
        else f"it raises {type(error).__name__}"
    )


def _place(error, answer):
    """Return in which line of the answer an error was raised; empty where in none."""
    code = getattr(inspect.unwrap(answer), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if code and frame.filename == code.co_filename and frame.line
    ]
    return f", at `{own[-1].line.strip()}`" if own else ""


def opening(error):
    """Return the first line of a message, and what follows a colon at the end of that line."""
    first, *others = str(error).strip().split("\n")
    for line in others:
        if not (first.endswith(":") or line.lstrip().startswith("*")):
            break
        first = f"{first} {line.strip().removeprefix('* ')}"
    return first.removesuffix(".")


def kind_of(value):
    """Return what a value is, in words: a list, a JAX array."""
    name = type(value).__name__
    name = KINDS.get(name, name)
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def form_of(tree):
    """Return the structure of a pytree as a text with * for each leaf."""
    return re.sub(r"^PyTreeDef\((.*)\)$", r"\1", str(jax.tree.structure(tree)))


class Counts(typing.NamedTuple):
    """The functions that were traced, by their names, and the programs that were compiled."""

    traces: list[str]
    compilations: list[str]


@contextlib.contextmanager
def counting():
    """Yield the Counts of what JAX traces and XLA compiles within a block.

    What was compiled before is forgotten, so a check that is repeated counts the same.
    """
    jax.clear_caches()
    counts = Counts([], [])
    lists = {TRACED: counts.traces, COMPILED: counts.compilations}

    def listen(event, seconds, fun_name="", **details):
        if event in lists:
            lists[event].append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield counts
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def mesh_of_eight():
    """Return an explicit mesh of eight CPU devices, with an axis "data"."""
    devices = jax.devices("cpu")[:8]
    assert len(devices) == 8, (
        f"there are {len(devices)} devices; start with "
        '`jax.config.update("jax_num_cpu_devices", 8)`, before anything else'
    )
    return jax.make_mesh((8,), ("data",), devices=devices)


def equations_of(jaxpr):
    """Yield the equations of a jaxpr and of those in it: of calls, loops and branches."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple) else [value]:
                if hasattr(inner := getattr(inner, "jaxpr", inner), "eqns"):
                    yield from equations_of(inner)


def in_two_processes(program, answer):
    """Return [what program(answer) returns] in two processes that have joined, as JSON has it.

    Each has two CPU devices, and gets the sources of both functions with what they use of their
    modules. Raises AssertionError, in words, where the answer raises or waits.
    """
    seen = {"PROGRAM", "ANSWER"}
    parts = [*_sources(program, seen), *_sources(answer, seen)]
    end = JOINED.replace("PROGRAM", program.__name__).replace(
        "ANSWER", answer.__name__
    )
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": "2",
        "XLA_FLAGS": "",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as started,
    ):
        file = pathlib.Path(folder, "program.py")
        file.write_text("\n".join([*parts, end]), "utf8")
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        paths = [pathlib.Path(folder, str(number)) for number in range(2)]
        processes = []
        for number, path in enumerate(paths):
            log = started.enter_context(path.with_suffix(".log").open("w"))
            process = subprocess.Popen(
                [sys.executable, file, str(number), str(port), path],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
            processes.append(process)
            started.callback(process.wait)
            started.callback(process.kill)
            started.callback(process.stdin.close)
        return _awaited(paths, processes)


def _awaited(paths, processes):
    last = time.monotonic() + LIMIT
    while True:
        ended = [process.poll() is not None for process in processes]
        written = [path.exists() for path in paths]
        records = [
            json.loads(path.read_text("utf8")) if ready else {}
            for path, ready in zip(paths, written, strict=True)
        ]
        for number, record in enumerate(records):
            if error := record.get("error"):
                kind, said, line = error
                if kind == "NotImplementedError":
                    raise NotImplementedError
                raise AssertionError(
                    f"in process {number} of two it raises {kind}: {said}, at `{line}`"
                )
        if all(written):
            return [record["found"] for record in records]
        for number, path in enumerate(paths):
            if ended[number] and not written[number]:
                said = (
                    path.with_suffix(".log")
                    .read_text("utf8", "replace")
                    .splitlines()
                )
                raise AssertionError(
                    f"process {number} of two ends: {(said or [''])[-1]}"
                )
        assert time.monotonic() < last, (
            f"two processes with this have not come to an end in {LIMIT} s; "
            "one waits for the other, for example"
        )
        time.sleep(0.05)


def _sources(function, seen):
    """Return the source of a function, after the lines of what it uses of its module."""
    own = inspect.unwrap(function)
    assert inspect.isfunction(own) and own.__name__ != "<lambda>", (
        "write it with `def`: two processes get its source"
    )
    text = textwrap.dedent(inspect.getsource(own))
    used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    lines = []
    for name in sorted(used & own.__globals__.keys() - seen):
        seen.add(name)
        value = own.__globals__[name]
        if inspect.ismodule(value):
            lines.append(f"import {value.__name__} as {name}")
        elif inspect.isfunction(inspect.unwrap(value)) and (
            value.__module__ == own.__module__
        ):
            lines += _sources(value, seen)
        elif hasattr(value, "__qualname__"):
            lines.append(
                f"from {value.__module__} import {value.__qualname__} as {name}"
            )
        else:
            lines.append(f"{name} = {value!r}")
    return [*lines, text]
