"""The command where something is wrong: frameworks, disks, terminals, and who stops it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.programs import damaged

ROOT = pathlib.Path(__file__).parents[2]
ONE = "import numpy as np\nfrom timer import measure\nmeasure('one', np.sin, np.ones(3))\n"
TWO = """
import numpy as np
import torch
from timer import compare
compare('two', {'a@numpy': np.sin, 'b@torch': torch.sin}, np.ones(3))
"""


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("y = {k: f(i) for k, f in table for i in g}", {"g", "table"}),
        ("def h():\n    return [a + b for a in c]", {"b", "c"}),
        ("f = [[i for i in r if i] for r in x if (w := r)]", {"w", "x"}),
        ("f = 1\ny = {f: z for f in t}", {"t", "z"}),
    ],
)
def test_names_of_a_comprehension_are_not_those_of_the_code_around_it(package, code, names):
    # From Python 3.12 on, its tables of symbols say that they are.
    assert package.cells.used(code) - {"y"} == names
    assert package.cells.bound(code) <= {"y", "h", "f", "w"}


@pytest.fixture
def fake(package, monkeypatch, tmp_path):
    """Put a package in place of a framework; return what is then known of it."""

    def faked(name, code):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code, "utf8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(package.probing, "ANSWERED", {})
        return package.probing.answers([name])[name]

    return faked


BROKEN = {
    "ImportError": "raise ImportError('libtorch_cpu.so: cannot open shared object file')",
    "OSError": "raise OSError(126, 'The specified module could not be found')",
    "AssertionError: assert 1 > 2": "assert 1 > 2",
    "status -11": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_framework_that_cannot_be_imported_is_absent_and_said_so(package, fake, run, words):
    assert words in fake("torch", BROKEN[words])[0]
    records, told = run(two=TWO)
    assert [each["name"] for each in records[0]["alternatives"]] == ["two/a"]
    assert told == ["two: without torch"]
    (notice,) = [each for each in package.command.notices() if each.startswith("torch")]
    assert notice.startswith("torch is left out: ") and words in notice


def test_a_platform_that_is_not_here_is_named_with_the_reason(package, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "rocm")
    monkeypatch.setattr(package.probing, "ANSWERED", {})
    reason, _ = package.probing.answers(["jax"])["jax"]
    kind, _, words = reason.removesuffix("(JAX_PLATFORMS is rocm)").partition(": ")
    assert words.strip() and words != reason and kind.endswith("Error")


FAKE_JAX = """
import types, numpy
numpy = types.SimpleNamespace(**vars(numpy))
client = types.SimpleNamespace(platform={platform!r}, platform_version={version!r})
devices = lambda: [types.SimpleNamespace(client=client, device_kind={kind!r})]
{more}
"""


def fake_jax(platform, version, kind, more=""):
    return FAKE_JAX.format(platform=platform, version=version, kind=kind, more=more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            "numpy.ones = lambda n: numpy.full(n, 512.0)",
            "ones(4) + 1 gives 513 where NumPy gives",
        ),
        ("numpy.sqrt = lambda x: x * 0", "sqrt(512) gives 0 where NumPy gives 22.6"),
        ("numpy.cumsum = lambda x: x * float('nan')", "cumsum gives nan where NumPy gives"),
        ("numpy.matmul = lambda a, b: a.T @ b", "matmul gives"),
    ],
)
def test_a_machine_that_computes_wrong_is_not_measured(package, fake, run, more, words):
    reason, _ = fake("jax", fake_jax("gpu", "cuda 13000", "NVIDIA RTX A6000", more))
    assert reason.startswith("it computes wrong here: ") and words in reason
    records, told = run(two=TWO.replace("torch", "jax").replace("jax.sin", "jax.numpy.sin"))
    assert [each["name"] for each in records[0]["alternatives"]] == ["two/a"]
    assert told == ["two: without jax"]


def test_ten_results_are_asked_for_and_right_on_this_machine(package, monkeypatch):
    import jax

    assert len([*package.probing.results(jax)]) == 10
    assert package.probing.wrong(package.probing.results(jax)) is None


@pytest.mark.parametrize(
    ("platform", "version", "kind", "words"),
    [
        ("METAL", "", "Metal", "by Metal, on an Apple GPU"),
        ("mps", "", "Apple M4", "by Metal, on an Apple GPU"),
        ("gpu", "PJRT C API\nrocm 70000", "AMD Instinct MI300X", "by ROCm, on an AMD GPU"),
        ("oneapi", "", "Intel(R) Arc(TM) B580", "by oneAPI, on an Intel GPU"),
        ("tt", "0.1", "Wormhole", "by the plug-in tt"),
        ("gpu", "PJRT C API\ncuda 13000", "NVIDIA H200", None),
        ("cpu", "<unknown>", "cpu", None),
    ],
)
def test_a_plug_in_is_recognised_and_what_to_expect_is_said(fake, platform, version, kind, words):
    reason, notice = fake("jax", fake_jax(platform, version, kind))
    assert reason is None
    assert (notice is None) is (words is None)
    assert words is None or (f"JAX computes on {kind} {words}" in notice and "GPU" in notice)


def test_where_no_framework_works_what_needs_one_is_not_offered(package, monkeypatch):
    monkeypatch.setattr(package.command, "absent", lambda cells: {"jax", "tensorflow", "torch"})
    offered = package.command.offered()
    for name in ("attention", "compiling", "convolution"):
        with pytest.raises(package.command.Left, match="it needs jax or tensorflow or torch"):
            package.command.prepared(offered[name])


OLD = """
import sys
import hatchling.build, hatchling.metadata.core
sys.version_info, sys.modules["tomllib"] = (3, 10, 13), None
print(hatchling.build.build_wheel(sys.argv[1]))
"""


def test_a_python_that_is_too_old_learns_it_from_the_package(tmp_path):
    # pip builds it to read what it needs, and then says that it is for others.
    built = subprocess.run(
        [sys.executable, "-c", OLD, tmp_path], cwd=ROOT, capture_output=True, encoding="utf8"
    )
    assert built.stdout.strip().endswith(".whl"), built.stderr


# As in a terminal, even where these tests were told to ignore what stops them.
STOPPED = """
import signal, sys
from jax_measured import command
signal.signal(signal.SIGINT, signal.default_int_handler)
cell = "import os, signal, time\\nos.kill(os.getppid(), signal.{signal})\\ntime.sleep(600)\\n"
cell = cell + "from timer import measure\\nmeasure('slow', int)"
open({path!r}, "w").close()
sys.exit(command.measured(command.Run({path!r}, [
    {{"name": "slow", "cells": [cell], "frameworks": ["python"]}}], 1)))
"""


def test_who_stops_it_has_not_to_wait(installed, tmp_path):
    code = STOPPED.format(signal="SIGINT", path=str(tmp_path / "mine.json"))
    known = os.environ | {"PYTHONPATH": str(installed)}
    words = [sys.executable, "-c", code]
    ended = subprocess.run(words, env=known, capture_output=True, timeout=600, encoding="utf8")
    assert ended.returncode == 130 and "stopped" in ended.stderr


# The interrupt comes when the time limit has started and nobody is there to cancel it yet.
STARTING = """
import threading
begin = threading.Timer.start
def start(self):
    begin(self)
    raise KeyboardInterrupt
threading.Timer.start = start
"""


def test_who_stops_it_while_a_limit_starts_has_not_to_wait(installed, tmp_path):
    code = STARTING + STOPPED.format(signal="SIGINT", path=str(tmp_path / "mine.json"))
    known = os.environ | {"PYTHONPATH": str(installed)}
    words = [sys.executable, "-c", code]
    # Less than the limit of a measurement.
    ended = subprocess.run(words, env=known, capture_output=True, timeout=500, encoding="utf8")
    assert ended.returncode == 130 and "stopped" in ended.stderr


LISTED = """
import signal, sys
from jax_measured.command import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(["list"]))
"""
ASKED = """
import os, signal, time
open({path!r}, "w").write(str(os.getpid()))
os.kill(os.getppid(), signal.SIGINT)
time.sleep(600)
"""


def test_who_stops_it_while_frameworks_are_tried_reads_one_line(installed, tmp_path):
    (tmp_path / "torch").mkdir()
    code = ASKED.format(path=str(tmp_path / "asked"))
    (tmp_path / "torch" / "__init__.py").write_text(code, "utf8")
    known = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(installed)])}
    words = [sys.executable, "-c", LISTED]
    ended = subprocess.run(words, env=known, capture_output=True, timeout=600, encoding="utf8")
    assert ended.returncode == 130
    lines = ended.stderr.splitlines()
    assert lines == [
        "looking which frameworks work here",
        "stopped before anything was measured",
    ]
    assert not psutil.pid_exists(int((tmp_path / "asked").read_text()))


def test_a_process_that_measures_ends_with_the_one_that_asked_it(installed, tmp_path):
    place, path = tmp_path / "process", str(tmp_path / "mine.json")
    told = f"open({str(place)!r}, 'w').write(str(os.getpid()))\\nos.kill(os.getppid()"
    code = STOPPED.format(signal="SIGKILL", path=path).replace("os.kill(os.getppid()", told)
    known = os.environ | {"PYTHONPATH": str(installed)}
    ended = subprocess.run([sys.executable, "-c", code], env=known, timeout=600)
    assert ended.returncode == -signal.SIGKILL
    number = int(place.read_text())
    for _ in range(6000):
        if not pathlib.Path(f"/proc/{number}").exists():
            return
        time.sleep(0.1)
    os.kill(number, signal.SIGKILL)
    pytest.fail("it goes on")


@pytest.fixture
def quiet(package, monkeypatch):
    """Let a run find what the book found, with nothing measured."""

    def quietened(found):
        def answers(sources, left_out):
            yield {"records": json.loads(json.dumps(found["records"]))}

        monkeypatch.setattr(package.command, "answers", answers)
        monkeypatch.setattr(package.command, "notices", lambda: [])
        monkeypatch.setattr(package.command, "absent", lambda cells: set())
        monkeypatch.setattr(package.surroundings, "LOOK", 0)

    return quietened


def test_a_full_disk_costs_the_file_and_not_what_was_measured(
    package, found, quiet, monkeypatch, capsys, tmp_path
):
    def full(path, found):
        pathlib.Path(f"{path}.part").write_text("cut of")
        raise OSError(28, "No space left on device")

    quiet(found)
    write = package.results.write
    monkeypatch.setattr(package.results, "write", full)
    path = tmp_path / "mine.json"
    assert package.command.main(["run", "retracing", "--out", str(path)]) == 1
    said = capsys.readouterr()
    assert f"not kept in {path}: No space left on device" in said.err
    assert "gallery" in said.out and said.out.splitlines()[-1].startswith("jm1.")
    assert [*tmp_path.iterdir()] == []
    # Room is made while it measures.
    calls = iter([full, full, full, write])
    monkeypatch.setattr(package.results, "write", lambda *all: next(calls)(*all))
    assert package.command.main(["run", "retracing", "--out", str(path)]) == 0
    assert package.results.read(str(path))["records"]


def test_a_file_is_of_one_run(package, found, quiet, capsys, tmp_path):
    path = tmp_path / "mine.json"
    package.results.reserve(str(path))
    assert package.command.main(["run", "retracing", "--out", str(path)]) == 2
    assert f"another run writes it, or was killed and left {path}.part" in capsys.readouterr().err
    package.results.release(str(path))
    quiet(found)
    assert package.command.main(["run", "retracing", "--out", str(path)]) == 0
    assert [*tmp_path.iterdir()] == [path]


def test_where_a_file_cannot_be_it_is_said_why(package, capsys, tmp_path):
    path = tmp_path / "nowhere" / "mine.json"
    assert package.command.main(["run", "retracing", "--out", str(path)]) == 2
    assert f"{path}: it cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["2", "few", "-3"])
def test_too_few_processes_are_refused_in_words(package, capsys, number):
    with pytest.raises(SystemExit, match="2"):
        package.command.main(["run", f"--processes={number}"])
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"'{number}' is no number of processes from 3 on" in said


@pytest.fixture
def showing(installed, tmp_path):
    """Start the command with a file to show."""
    (tmp_path / "mine.json").write_text(json.dumps(damaged.whole()), "utf8")

    def show(stdout, **variables):
        known = os.environ | {"PYTHONPATH": str(installed)} | variables
        words = [sys.executable, "-m", "jax_measured", "show", "mine.json"]
        return subprocess.Popen(
            words, cwd=tmp_path, env=known, stdout=stdout, stderr=subprocess.PIPE, encoding="ascii"
        )

    return show


def test_a_terminal_of_few_letters_gets_plain_ones(showing):
    process = showing(subprocess.PIPE, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    out, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert "1 ms" in out and "yours: a machine" in out and "?" not in out


def test_who_reads_no_further_gets_no_traceback(showing):
    process = showing(subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait() == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_an_output_that_is_full_is_said(showing):
    with open("/dev/full", "w") as full:
        process = showing(full)
        said = process.stderr.read()
    assert process.wait() == 1
    assert said.strip() == "the output cannot be written: No space left on device"


def test_switches_are_in_the_file_and_in_the_table(package, run, monkeypatch):
    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    monkeypatch.setenv("JAX_DEBUG_NANS", "0")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/home/somebody/cache")
    ((record,), _) = run(one=ONE)
    settings = record["settings"]
    assert settings["JAX_DISABLE_JIT"] == "1" and "JAX_DEBUG_NANS" not in settings
    assert settings["JAX_COMPILATION_CACHE_DIR"] == "set"
    lines = package.table.table(package.results.content([record]), package.results.book())
    (row,) = [line for line in lines if line.startswith("  numpy")]
    assert " †" in row
    (note,) = [line for line in lines if line.startswith("†")]
    assert "JAX_DISABLE_JIT=1" in note and "GOMP_SPINCOUNT" not in note


@pytest.mark.parametrize("disturbed", [False, True])
def test_what_was_disturbed_is_marked_in_the_table(package, disturbed):
    file = damaged.whole()
    file["records"][0]["alternatives"][0]["processes"][2]["disturbed"] = disturbed
    one, two = package.table.table(file, package.results.book())[1:3]
    assert ("‡" in one) is disturbed and "‡" not in two


@pytest.mark.parametrize("count", [3, 4, 5, 10])
def test_the_order_is_judged_from_five_processes_on(package, found, count):
    for number, each in enumerate(found["records"][0]["alternatives"]):
        each["processes"] = each["processes"][:count]
        for process in each["processes"] if number == 0 else []:
            process["latency"] = [process["latency"][0] * 1000]
    said = "\n".join(package.table.table(found, package.results.book()))
    assert ("other order" in said) is (count >= 5)
