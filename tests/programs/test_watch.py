"""`jax-measured watch`: a program with each mistake, the same without, and how programs may end."""

import json
import logging
import os
import pathlib
import pty
import re
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.pitfalls.make_logs import CASES as CASES_OF_LOGS
from tests.pitfalls.test_log_reader import wanted

ROOT = pathlib.Path(__file__).parents[2]

# The programs of the page and of lesson 15, and what is said of them.
SHOWN = pathlib.Path(__file__).with_name("watch")
HEAD = """\
import time

import jax
import jax.numpy as jnp
import numpy as np

x = jnp.ones(3)
plus = jax.jit(lambda x: x + 1)
plus(x)
jax.eval_shape(plus, jnp.ones(7))
# A function that is traced as the body of another, of the same name.
nested = jax.jit(jax.shard_map(lambda x: x, mesh=jax.make_mesh((1,), "i"), in_specs=jax.P(),
                               out_specs=jax.P()))
nested(x)
# JAX sets its hooks anew while it evaluates this.
jax.vmap(jax.jit(lambda x: x))(x)
"""
# For each mistake: what is found, a part of what is said, and the program with it and without.
# `#!` marks the line.
CASES = {
    "compiling_in_a_timing": (
        "compiled",
        "includes compiling `times`",
        """
        @jax.jit
        def times(x):
            return 3 * x
        {}start = time.perf_counter()
        times(x).block_until_ready()
        spent = time.perf_counter() - start  #!
        """,
        "",
        "times(x)\n",
    ),
    "converting_in_a_timing": (
        "sent",
        "160 kB",
        """
        host = np.ones((200, 200), np.float32)
        given, more = {}(host), jax.jit(lambda x: x + 2)
        more(given).block_until_ready()
        start = time.monotonic_ns()
        more(given).block_until_ready()
        spent = time.monotonic_ns() - start  #!
        """,
        "np.asarray",
        "jnp.asarray",
    ),
    "float64_beside_float32": (
        "float64",
        "`many` is float64",
        """
        many = np.random.rand(100, 100).astype(np.{})
        same = jnp.asarray(many, np.float32)
        jnp.dot(same, same)
        start = time.time()
        many @ many
        spent = time.time() - start  #!
        start = time.time()
        jnp.dot(same, same).block_until_ready()
        spent = time.time() - start
        """,
        "float64",
        "float32",
    ),
    "waiting_in_a_loop": (
        "wait",
        "float() of an array waits for the device in a loop (20 times)",
        """
        values = []
        for _ in range(20):
            values.append({}(plus(x)[0]))  #!
        [float(each) for each in values]
        """,
        "float",
        "jnp.asarray",
    ),
    "operations_outside_of_jit": (
        "operations",
        "1200 operations outside of jit",
        """
        def body(y):
            return jnp.sin(y) * 2 + y  #!
        body = {}(body)
        y = x
        for _ in range(400):
            y = body(y)
        """,
        "(lambda same: same)",
        "jax.jit",
    ),
    "an_array_passed_again": (
        "sent",
        "float32[400,400], goes to the device again and again",
        """
        again = {}(np.ones((400, 400), np.float32))
        less = jax.jit(lambda x: x - 2)
        for _ in range(10):
            less(again)  #!
        """,
        "np.asarray",
        "jnp.asarray",
    ),
    "a_large_constant": (
        "constant",
        "`added` holds arrays as constants (1.44MB)",
        """
        table = np.ones((600, 600), np.float32)
        def added(x, y):
            return x[0] + {}
        jax.jit(added)(x, jnp.asarray(table))  #!
        """,
        "table",
        "y",
    ),
    "a_donated_array": (
        "donated",
        "`start_of` cannot use donated arrays: float32[3]",
        """
        def start_of(x):
            return x[:{}] * 2
        jax.jit(start_of, donate_argnums=0)(jnp.ones(3))  #!
        """,
        "2",
        "3",
    ),
    "a_shape": (
        "again",
        "1 × a shape: at x, now float32[5] and before float32[4]",
        """
        def total(x):
            return x.sum()
        summed = jax.jit(total)
        for n in (4, {}):
            summed(jnp.ones(n))  #!
        """,
        "5",
        "4",
    ),
    "a_new_function": (
        "again",
        "2 × the function object",
        """
        for _ in range(3):
            {}(x)  #!
        """,
        "jax.jit(lambda x: x - 1)",
        "plus",
    ),
    "a_new_function_of_a_library": (
        "again",
        "2 × the function object",
        """
        of_a_library = "make = lambda: jax.jit(lambda x: x - 3)"
        exec(compile(of_a_library, "/site-packages/library.py", "exec"))
        kept = make()
        for _ in range(3):
            {}(x)  #!
        """,
        "make()",
        "kept",
    ),
    "a_weak_type": (
        "again",
        "1 × a weak type: at mean",
        """
        def track(mean, x):
            return 0.9 * mean + 0.1 * x.mean()
        step, mean = jax.jit(track), {}
        for _ in range(3):
            mean = step(mean, x)  #!
        """,
        "0.0",
        "jnp.float32(0)",
    ),
    "committed_or_not": (
        "again",
        "1 × committed or not",
        """
        def half(x):
            return x / 2
        halved = jax.jit(half)
        halved(x)
        halved({})  #!
        """,
        "jax.device_put(x, jax.devices()[0])",
        "x",
    ),
    "an_unrolled_loop": (
        "unrolled",
        "unrolled in `walk`: JAX traced its body 40 times, and 80 of the 81 equations",
        """
        def sway(x):
            return jnp.sin(x) * 2
        @jax.jit
        def walk(x):
            for _ in range({}):  #!
                x = sway(x)
            return x.sum()
        walk(x)
        """,
        "40",
        "20",
    ),
    # The last, as nothing can be waited for after it.
    "not_waiting": (
        "unfinished",
        "the clock is read before float32[3] is finished",
        """
        kind = type(x)
        kind.is_ready = lambda array: {}
        kind.block_until_ready = None
        start = time.perf_counter()
        plus(x)
        spent = time.perf_counter() - start  #!
        """,
        "False",
        "True",
    ),
}


def written(right):
    """Return the program of all cases, and {case: the line of its mistake}."""
    text, lines = HEAD, {}
    for name, (_, _, source, wrong, good) in CASES.items():
        text += textwrap.dedent(source).format(good if right else wrong)
        (lines[name],) = [
            number for number, line in enumerate(text.splitlines(), 1) if line.endswith("#!")
        ]
        text = text.replace("  #!", "")
    return text, lines


# Where the machine is busy, a wait for little work may last as long as one for much.
PATIENT = """
from jax_measured import reporting, watching
reporting.LONG, reporting.SHARE, watching.SLOW = float("inf"), 0, 0
"""


@pytest.fixture(scope="module")
def watch(installed, tmp_path_factory):
    """Return a function that watches a program, in a folder of its own, with a module `held`."""
    patient = tmp_path_factory.mktemp("patient")
    (patient / "sitecustomize.py").write_text(PATIENT, "utf8")

    def run(source, *words, name="train.py", options=("--json",), held=""):
        folder = tmp_path_factory.mktemp("watched")
        (folder / "held.py").write_text(held, "utf8")
        (folder / name).write_text(source, "utf8")
        own = {"PYTHONPATH": f"{patient}{os.pathsep}{installed}", "JAX_PLATFORMS": "cpu"}
        program = ["-m", name.removesuffix(".py")] if "-m" in words else [name]
        words = [word for word in words if word != "-m"]
        return subprocess.run(
            [installed / "bin" / "jax-measured", "watch", *options, *program, *words],
            cwd=folder,
            env=os.environ | own,
            capture_output=True,
            encoding="utf8",
        )

    return run


def report(ended):
    assert ended.stdout, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def wrong(watch):
    return report(watch(written(right=False)[0]))


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_named_at_its_line(wrong, case):
    kind, said, *_ = CASES[case]
    line = written(right=False)[1][case]
    (found,) = [each for each in wrong["findings"] if each["line"] == line]
    assert found["kind"] == kind and found["file"] == "train.py"
    assert said in found["text"] or said in found["text"].replace("f32", "float32")


def test_a_function_that_a_library_makes_in_each_call_belongs_under_jit(wrong):
    said = [each["text"] for each in wrong["findings"] if "function object" in each["text"]]
    fixes = sorted(text.partition("To do: ")[2] for text in said)
    assert [fix[:8] for fix in fixes] == ["make the", "put the "]


def test_nothing_else_is_named(wrong):
    found = {each["line"] for each in wrong["findings"]}
    assert found == {*written(right=False)[1].values()}
    assert wrong["unseen"] == [] and wrong["memory"]["bytes"] > 0


def test_without_its_mistakes_a_program_has_no_finding(watch):
    found = report(watch(written(right=True)[0]))
    assert found["findings"] == [] and found["unseen"] == []
    assert len(found["timings"]) == 5


def masked(text):
    """Return the findings and timings of a report with # for numbers that differ, in any order."""
    text = re.sub(r"\n {4}(?!\w+/)", " ", text)
    # How much was held between two looks depends on when they were.
    text = re.sub(r"arrays took .*", "", text)
    # Lines, counts and sizes stay.
    text = re.sub(r"[\d.e+-]+ (s|ms|µs)\b", "# s", text)
    return sorted(re.split(r"\n(?! {4})", text.strip()))


# A module that keeps arrays unfinished, those of the second timing, until the program ends.
HELD = """
import threading, jax, numpy
ended, kind = threading.Event(), type(jax.device_put(numpy.ones(1)))
ready, wait = kind.is_ready, kind.block_until_ready
kind.is_ready = lambda array: ready(array) and (array.ndim < 2 or ended.is_set())
kind.block_until_ready = lambda array: wait(array) if array.ndim < 2 or ended.wait() else None
"""


@pytest.mark.parametrize("name", ["slow", "fast", "lesson", "lesson_fast", "starved"])
def test_pages_show_what_is_said_of_their_programs(watch, name):
    text = (SHOWN / f"{name}.py").read_text("utf8")
    if name == "slow":
        lines = text.splitlines()
        assert lines[18].startswith("start") and lines[-1].startswith("print")
        lines[18], lines[-1] = f"import held; {lines[18]}", f"{lines[-1]}; held.ended.set()"
        text = "\n".join(lines)
    said = watch(text, name=f"{name}.py", options=[], held=HELD).stderr
    assert masked(said) == masked((SHOWN / f"{name}.txt").read_text("utf8")), said


def test_a_first_call_that_is_timed_apart_is_no_mistake(watch):
    text = HEAD + textwrap.dedent("""
        times = jax.jit(lambda x: 3 * x)
        start = time.perf_counter()
        times(x).block_until_ready()
        first = time.perf_counter() - start
        start = time.perf_counter()
        times(x).block_until_ready()
        later = time.perf_counter() - start
        """)
    assert report(watch(text))["findings"] == []


LOGS = ["0.10.2", "0.12.0.1"]


def compilations(package, log):
    """Return what a watcher has taken from a log."""
    watcher = package.watching.Watcher()
    for said in re.split(r"\n(?=\S)", log):
        record = logging.LogRecord("jax", logging.WARNING, "", 0, said, None, None)
        lowered = re.match(
            r"Compiling (.+) with global shapes and types (.*)\. Argument mapping: (.*)\.$", said
        )
        if lowered:
            record.msg = "Compiling %s with global shapes and types %s. Argument mapping: %s."
            record.args = lowered.groups()
        if not watcher.explained(record):
            watcher.lowered(record)
        if done := re.match(r"Finished XLA compilation of (.+) in ([\d.e-]+) sec", said):
            event = package.watching.COMPILED
            watcher.lasted(event, float(done[2]), fun_name=done[1])
    return watcher


@pytest.mark.parametrize("version", LOGS)
def test_causes_are_those_that_the_page_names(package, monkeypatch, version):
    monkeypatch.setattr(package.reporting, "OFTEN", 10**6)
    logs = json.loads((ROOT / "tests" / "pitfalls" / "logs" / f"jax-{version}.json").read_text())
    right = []
    # Those as JAX writes them: a watcher has messages, and no lines of a launcher.
    named = [
        name
        for name, case in CASES_OF_LOGS.items()
        if case["expected"] and case["explains"] and not case["layout"]
    ]
    for name in named:
        if not (log := logs[name]) or "Finished XLA" not in log:
            continue
        found = package.reporting.compiled_again(compilations(package, log))
        said = {re.match("`(.+?)`", each.text)[1].rpartition(".")[2]: each.text for each in found}
        wanted_of = wanted(name, version)
        right.append(
            all(
                f"{times} × {cause}:" in said.get(function, "")
                for function, causes in wanted_of.items()
                for cause, times in causes.items()
            )
        )
        if not right[-1]:
            print(name, wanted_of, said)
    # In one a mesh comes where there was none, which the table calls another mesh.
    assert len(right) >= 20 and sum(right) >= len(right) - 1


def test_weights_that_are_converted_one_by_one_are_no_operations(watch):
    convert = "params = [{} for _ in range(200)]\n"
    assert report(watch(HEAD + convert.format("jnp.asarray(np.ones(3))")))["findings"] == []
    (found,) = report(watch(HEAD + convert.format("jnp.asarray(x) + 1")))["findings"]
    assert found["text"].startswith("200 operations outside of jit")


def test_values_that_are_read_together_are_one_wait(watch):
    text = HEAD + textwrap.dedent("""
        for epoch in range(4):
            losses = [plus(x)[0] for _ in range(30)]
            np.mean(jax.device_get(losses))
            [float(each) for each in losses]
        """)
    assert report(watch(text))["findings"] == []


def test_the_gradient_of_a_function_is_another_function(watch):
    text = HEAD + textwrap.dedent("""
        square = jax.jit(lambda x: (x * x).sum())
        square(x)
        jax.jit(jax.grad(square))(x)
        """)
    assert report(watch(text))["findings"] == []
    (found,) = report(watch(f"{text}for _ in range(3):\n    jax.jit(jax.grad(square))(x)\n"))[
        "findings"
    ]
    assert found["text"].startswith("`<lambda>` was compiled 3 times: 2 × the function object")


def each_on_its_own(x):
    return [jnp.tanh(x[n:]) for n in range(40)]


def in_two_loops(x):
    for _ in range(20):
        for _ in range(2):
            x = jnp.tanh(x)
    return x


def twice(x):
    for _ in range(2):
        x = jnp.tanh(x)
    return x


def in_a_loop_of_another(x):
    for _ in range(40):
        x = twice(x * 2)
    return x


def along_its_rows(x):
    return sum(jnp.cos(row) for row in x)


def by_another_function(x):
    def inside(x):
        return along_its_rows(x) if x.ndim > 1 else x

    return jax.vmap(jax.grad(lambda x: inside(x).sum()))(jnp.stack([x, x]))


def by_recursion(x, n=40):
    return by_recursion(jnp.sin(x), n - 1) if n else x


def in_a_tree(x):
    return jax.tree.map(lambda x: x * 2, [x] * 40)


def in_a_small_part(x):
    for _ in range(40):
        x = x + 1
    return jax.lax.scan(lambda x, _: (many(x), None), x, length=40)


def many(x):
    a, b, c = x * 2, x * 3, x * 4
    a, b, c = jnp.sin(a + b) * c, jnp.sin(b + c) * a, jnp.sin(c + a) * b
    a, b, c = jnp.sin(a + b) * c, jnp.sin(b + c) * a, jnp.sin(c + a) * b
    a, b, c = jnp.sin(a + b) * c, jnp.sin(b + c) * a, jnp.sin(c + a) * b
    return jnp.sin(a + b) * c + jnp.sin(b + c) * a + jnp.sin(c + a) * b


@pytest.mark.parametrize(
    ("function", "line", "times"),
    [
        (in_two_loops, 2, 40),
        (in_a_loop_of_another, 1, 40),
        (along_its_rows, 1, 40),
        (by_another_function, None, 40),
        (each_on_its_own, None, 0),
        (by_recursion, None, 0),
        (in_a_tree, None, 0),
        (in_a_small_part, None, 0),
    ],
)
def test_a_loop_is_named_where_most_of_a_program_comes_from_many_equal_iterations(
    package, function, line, times
):
    found = package.watching.unrolled(jax.make_jaxpr(function)(jnp.ones((40, 3))))
    assert (found.times if found else 0) == times
    if line:
        assert found.place == (__file__, function.__code__.co_firstlineno + line)


def test_a_loop_is_worth_a_word_from_a_part_of_the_program_s_time_on(package, monkeypatch):
    watcher, loop = package.watching.Watcher(), package.watching.Loop(("a.py", 7), 40, 80, 81)
    each = package.watching.Compilation("walk", ("a.py", 9), seconds=2.0, compiled=True, loop=loop)
    watcher.compilations = [each, each]
    (found,) = package.reporting.unrolled(watcher, 79.0)
    assert (found.line, found.seconds) == (7, 4.0)
    assert package.reporting.unrolled(watcher, 81.0) == []


def test_each_timing_in_a_loop_is_one(watch):
    text = textwrap.dedent("""
        import time
        for _ in range(300):
            start = time.perf_counter()
            spent = time.perf_counter() - start
        start = time.time()
        for _ in range(300):
            spent = time.time() - start
        """)
    assert [each["times"] for each in report(watch(text))["timings"]] == [300, 1]


def test_what_timeit_times_belongs_to_its_line(watch):
    text = HEAD + textwrap.dedent("""
        import timeit
        times = jax.jit(lambda x: 3 * x)
        timeit.timeit(lambda: times(x).block_until_ready(), number=2)
        """)
    (found,) = report(watch(text))["findings"]
    assert (found["kind"], found["line"]) == ("compiled", len(text.splitlines()))


def test_a_reading_of_a_clock_is_a_number_like_others(watch):
    text = textwrap.dedent("""
        import copy, json, pickle, time
        for read in (time.time, time.perf_counter_ns):
            now = read()
            assert type(now + 1) is type(now - 1) is type(pickle.loads(pickle.dumps(now)))
            assert json.loads(json.dumps(now)) == copy.copy(now) == now
            assert isinstance(now, (int, float)) and f"{now}" == repr(now)
        """)
    assert watch(text).returncode == 0


def test_a_reading_in_other_units_is_a_reading(watch):
    text = textwrap.dedent("""
        import time
        import numpy as np
        start = time.time() * 1000
        spent = time.time() * 1000 - start
        start = time.perf_counter_ns() // 1000
        spent = time.perf_counter_ns() // 1000 - start
        assert type(spent) is int
        start = round(time.monotonic(), 3)
        spent = round(time.monotonic(), 3) - start
        assert (time.time() - np.zeros(2)).shape == (2,)
        assert type(time.time_ns() - 0.5) is float and type(5 * time.time_ns() - 5) is int
        """)
    assert len(report(watch(text))["timings"]) == 3


def test_a_clock_that_is_not_watched_is_named_where_it_times(watch):
    text = textwrap.dedent("""
        import datetime
        start = datetime.datetime.now()
        print(f"it is {datetime.datetime.now()}")
        spent = (datetime.datetime.now() - start).total_seconds()
        """)
    (said,) = report(watch(text))["unseen"]
    assert said.startswith("train.py:5 reads `now()`, a clock that is not watched")
    assert report(watch(text.replace("- start).total_seconds()", ",)")))["unseen"] == []


def test_a_stream_of_pytorch_that_is_not_finished_is_named(watch):
    text = textwrap.dedent("""
        import sys, time, types
        event = types.SimpleNamespace(record=int, synchronize=int, elapsed_time=lambda other: 2.0)
        stream = types.SimpleNamespace()
        cuda = types.SimpleNamespace(is_initialized=lambda: True, current_stream=lambda: stream)
        sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
        stream.query = lambda: done
        done = True
        start = time.time()
        event.record()
        assert event.elapsed_time(event) == 2.0
        done = False
        {}
        spent = time.time() - start
        """)
    assert report(watch(text.format("done = True  # torch.cuda.synchronize()")))["findings"] == []
    (found,) = report(watch(text.format("")))["findings"]
    assert found["line"] == 14 and "before the stream of PyTorch is finished" in found["text"]


@pytest.mark.parametrize("own", [{}, {"NO_COLOR": "1"}])
def test_on_a_terminal_a_line_comes_first_and_the_report_has_colours(installed, tmp_path, own):
    (tmp_path / "train.py").write_text("print('green')", "utf8")
    ours, theirs = pty.openpty()
    known = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    ended = subprocess.run(
        [installed / "bin" / "jax-measured", "watch", "train.py"],
        cwd=tmp_path,
        env=known | own | {"PYTHONPATH": str(installed)},
        stdout=subprocess.PIPE,
        stderr=theirs,
        encoding="utf8",
    )
    os.close(theirs)
    said = os.read(ours, 10_000).decode().splitlines()
    os.close(ours)
    assert ended.stdout == "green\n"
    assert said[0] == "watching train.py: the report comes at its end, or after Ctrl-C"
    bold = ("", "") if own else ("\x1b[1m", "\x1b[0m")
    assert said[2].startswith(f"{bold[0]}jax-measured watch: nothing found in train.py")
    assert said[2].endswith(bold[1])


# Where a shell has started the tests in the background, the signal is ignored.
STOPS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("print('done')", 0, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("import sys; sys.exit('a reason')", 1, "a reason\n"),
        (STOPS, 130, "\nstopped\n"),
        ("import os; print(1, flush=True); os._exit(5)", 5, ""),
    ],
)
def test_the_exit_status_is_the_program_s(watch, text, status, said):
    ended = watch(text)
    assert ended.returncode == status
    assert ended.stderr == said
    if status != 5:
        assert report(ended)["status"] == status


@pytest.mark.parametrize("text", ["def f():\n    return 1 / 0\n\nf()\n", "x = (\n"])
def test_an_exception_is_shown_as_python_shows_it(watch, tmp_path, text):
    ended = watch(text)
    assert ended.returncode == 1 and report(ended)["status"] == 1
    (tmp_path / "train.py").write_text(text, "utf8")
    plain = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, encoding="utf8"
    )
    name = re.compile('"[^"]*train.py"')
    assert name.sub("train.py", ended.stderr) == name.sub("train.py", plain.stderr)


# What a program does, how what the book says of it begins, and where; nothing of the last ones.
BRANCHES = "pitfalls/control_flow.html#"
LOOPS = BRANCHES + "which-loop-fits-and-which-can-you-differentiate"
ASKED = "pitfalls/index.html#error-finder=TypeError%3A%20add%20got%20incompatible"
ERRORS = [
    ("x.cuda()", "AttributeError: … object has no attribute 'cuda': JAX", "pitfalls/shapes.html#"),
    ("x[0] = 1", "TypeError: JAX arrays are immutable: `x[0] = 1`", "start/arrays.html#"),
    (
        "jax.jit(lambda x: 1 if x > 0 else 2)(1.0)",
        "TracerBool",
        BRANCHES + "a-tracer-has-no-truth-value",
    ),
    ("jax.jit(len, static_argnums=0)([])", "ValueError: Non-hashable", "pitfalls/static_arg"),
    ("jax.grad(lambda x: x)(3)", "TypeError: grad requires real", "start/gradients.html#"),
    ("jax.jit(lambda x: range(x))(3)", "TracerIntegerConv", LOOPS),
    ("x + jnp.ones(4)", "TypeError: no entry of the book begins so", ASKED),
    ("{}['a']", None, None),
    ("hash([])", None, None),
    ("np.array([[1], [1, 2]])", None, None),
    ("jax.jit(lambda x: [][4])(1.0)", None, None),
    ("class Mine: pass\nMine().cuda", None, None),
]


@pytest.mark.parametrize(("text", "begins", "page"), ERRORS)
def test_of_an_error_the_entry_is_named_that_its_message_begins_as(
    package, tmp_path, text, begins, page
):
    code = compile(f"{HEAD}\n{text}", str(tmp_path / "train.py"), "exec")
    with pytest.raises(Exception) as raised:
        exec(code, {})
    found = package.raising.answer(raised.value)
    if begins is None:
        assert found is None
    else:
        (path, line), said, where = found
        last = len(f"{HEAD}\n{text}".splitlines())
        assert (path, line) == (str(tmp_path / "train.py"), last)
        assert said.startswith(begins) and where.startswith(page)


def test_what_the_book_says_of_an_error_stands_first_in_the_report(watch):
    page = (ROOT / "docs" / "timing" / "watch.md").read_text("utf8")
    shown = re.search(r"```text\n(train\.py:12 .*?)```", page, re.DOTALL)[1]
    text = "import jax\n" + "\n" * 10 + "jax.lax.cond(jax.numpy.ones(3), int, int)\n"
    ended = watch(text, options=[])
    trace, _, said = ended.stderr.partition("\njax-measured watch: 1 finding")
    assert ended.returncode == 1 and "TypeError: Pred must be a scalar" in trace
    assert said.partition("\n")[2].startswith(shown)


def test_words_and_page_of_an_entry_are_those_of_the_way_round(package):
    known = json.loads((pathlib.Path(package.raising.__file__).parent / "errors.json").read_text())
    words = {title: (said, page) for _, _, title, said, page in known["entries"]}
    said, page = words["NonConcreteBooleanIndexError: Array boolean indices must be concrete"]
    assert said.endswith("while JAX traces. Keep the shape, or choose another fix.")
    assert page == "pitfalls/dynamic_shapes.html#fix-1-keep-the-shape-change-the-values"
    assert not any("](" in said for said, _ in words.values())
    assert {"jax", "flax", "optax"} <= {*known["packages"]}


@pytest.mark.parametrize("way", ["", "-m"])
def test_a_program_has_its_own_arguments_and_folder(watch, way):
    text = "import os, sys\nprint(sys.argv[1:], sys.path[0] == os.getcwd(), __name__)"
    ended = watch(text, *filter(None, [way]), "--json", "-x", "--", "3")
    assert ended.stdout.splitlines()[0] == "['--json', '-x', '--', '3'] True __main__"


def test_without_jax_there_is_a_report_and_jax_is_not_imported(watch):
    text = textwrap.dedent("""
        import sys, time
        start = time.time()
        print("\\x1b[32mgreen\\x1b[0m", time.time() - start >= 0)
        assert "jax" not in sys.modules
        """)
    ended = watch(text, options=[])
    assert ended.returncode == 0 and "\x1b[32mgreen" in ended.stdout
    assert "\x1b" not in ended.stderr
    said = ended.stderr.splitlines()
    assert said[1].startswith("jax-measured watch: nothing found in train.py, which took ")
    assert re.fullmatch(r"timing train.py:3-4: .*, nothing that misleads", said[2])


def test_processes_and_threads_of_a_program_work_and_there_is_one_report(watch):
    text = textwrap.dedent("""
        import multiprocessing, os, sys, threading, time

        def child():
            print("child", flush=True)

        if __name__ == "__main__":
            for way in ("spawn", "fork"):
                process = multiprocessing.get_context(way).Process(target=child)
                process.start()
                process.join()
                assert process.exitcode == 0
            if os.fork() == 0:
                sys.exit(3)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
            hold = threading.Event()
            late = threading.Thread(target=lambda: (hold.wait(0.1), print("thread")))
            late.start()
        """)
    ended = watch(text)
    *said, last = ended.stdout.splitlines()
    assert said == ["child", "child", "thread"]
    assert json.loads(last)["status"] == 0


def test_a_page_has_the_findings_and_links_to_the_book(watch, tmp_path):
    text = HEAD + "for n in range(3):\n    jax.jit(lambda x: x * '<'.count('<'))(x)\n"
    page = tmp_path / "report.html"
    watch(text, options=["--html", page, "--book", "https://example.org/"])
    said = page.read_text("utf8")
    assert "1 finding in train.py" in said and "<code>&lt;lambda&gt;</code>" in said
    address = "https://example.org/tracing/retracing.html#jax-traces-each-new-function-object"
    assert f'href="{address}"' in said
    tree = LexborHTMLParser(said)
    assert [node.text() for node in tree.css("li > b")] == ["train.py:18"]
    assert len(tree.css("h1")) == 1 and not tree.css("table")


def test_a_program_that_is_not_there_is_one_line(command):
    ended = command("watch", "nothing.py")
    assert ended.returncode == 2
    assert ended.stderr == "there is no file 'nothing.py': jax-measured watch train.py\n"


# The names of JAX that are no part of its documented interface; a version that lacks one is named.
def test_this_version_of_jax_has_all_that_is_hooked(package):
    for path in package.watching.HOOKS:
        assert package.watching.named(path) is not None, path


def test_where_a_hook_is_missing_the_report_says_what_it_could_not_see(installed, tmp_path):
    text = HEAD + "for n in range(3):\n    float(jax.jit(lambda x: x[0])(x))\n"
    (tmp_path / "train.py").write_text(text, "utf8")
    program = """
from jax_measured import command, watching
watching.HOOKS = {
    key.replace("ArrayImpl", "Gone").replace("_post_hook_state", "gone"): value
    for key, value in watching.HOOKS.items()
}
raise SystemExit(command.main(["watch", "--json", "train.py"]))
"""
    own = {"PYTHONPATH": str(installed), "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | own,
        capture_output=True,
        encoding="utf8",
    )
    found = report(ended)
    assert [each["kind"] for each in found["findings"]] == ["again"]
    calls, waits = found["unseen"]
    assert calls.startswith("calls, operations outside of jit") and waits.startswith("waits: JAX ")
