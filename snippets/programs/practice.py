"""Says whether an answer to an exercise is right, and if not, what is not right yet."""

import contextlib
import inspect
import os
import re
import textwrap
import traceback
import typing

import jax

TRACED = "/jax/core/compile/jaxpr_trace_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
# Debian's Python, and Colab with it, has the second.
INSTALLED = re.compile(r"[\\/](site|dist)-packages[\\/]")


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
        own = not INSTALLED.search(last.filename)
        return f"write `{last.name if own else _name(answer)}`; it has no body"
    # It is somebody's program, and may raise anything.
    except Exception as error:
        return f"{_first_line(error)}{_place(error, answer)}"
    return None


def _name(answer):
    return getattr(answer, "__name__", type(answer).__name__)


def _first_line(error):
    said = str(error).strip().split("\n")[0].removesuffix(".")
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
