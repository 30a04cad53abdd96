"""The command for readers' machines, as it is installed: built once, then run and read."""

import contextlib
import copy
import io
import json
import os
import pathlib
import sys
import types

import pytest
from selectolax.lexbor import LexborHTMLParser

from executed.source.code import fingerprint
from measured.ranges import Range
from measured.schema import Measurement, Schema, single
from tests.book import pages
from tests.programs import damaged

ROOT = pathlib.Path(__file__).parents[2]
SCHEMA = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")
QUICK = "retracing"


def alternative(found, number=0):
    return found["records"][0]["alternatives"][number]


def slowed(found, number, factor):
    for process in alternative(found, number)["processes"]:
        process["latency"] = [process["latency"][0] * factor]


def column(package, found, number):
    """Return a column of the table, by the names of its rows."""
    rows = [line.split("  ") for line in package.table.table(found, package.results.book())]
    cells = [[text.strip() for text in row if text.strip()] for row in rows]
    return {row[0]: row[number] for row in cells if len(row) > 4}


def measured_by(cell):
    """Return what a recorded cell has measured, as pages call it."""
    records = [out.get("data", {}).get(SCHEMA.media_type) for out in cell["outputs"]]
    parts = [part for record in records if record for part in single(record)]
    return [f"{part['name']}@{part['framework']}" for part in parts]


def test_what_is_run_is_what_pages_show_today(package):
    recordings, old = ROOT / "docs" / "_recorded" / "cpu", set()
    for each in package.results.book()["measurements"]:
        page, name, _ = package.offered.OFFERED[each["name"]]
        recorded = json.loads((recordings / f"{page}.ipynb").read_text("utf8"))["cells"]
        (last,) = [number for number, cell in enumerate(recorded) if name in measured_by(cell)]
        cells = [cell.source for cell in pages.page(page).cells]
        if [fingerprint("".join(of["source"])) for of in recorded] != [*map(fingerprint, cells)]:
            old.add(page)
            continue
        today = package.cells.needed(cells, last)
        assert [*map(fingerprint, each["cells"])] == [*map(fingerprint, today)], each["name"]
    if old:
        pytest.skip(f"their recordings are of earlier code: {', '.join(sorted(old))}")


def test_a_run_is_kept_shown_and_passed_on(package, command, tmp_path):
    run = command("run", QUICK, "--out", "mine.json")
    assert run.returncode == 0, run.stderr
    kept = json.loads((tmp_path / "mine.json").read_text("utf8"))
    (record,) = kept["records"]
    assert SCHEMA.problem(record) is None
    names = [package.results.reference(each) for each in record["alternatives"]]
    numbers = package.results.book()["numbers"]["cpu"]
    assert names and set(names) <= numbers.keys()
    assert {len(each["processes"]) for each in record["alternatives"]} == {3}
    shown = command("show", "mine.json")
    assert shown.stdout.strip() and shown.stdout.strip() in run.stdout
    line = command("show", "--line", "mine.json").stdout.strip()
    # How long it is depends on the times.
    printed = len(line) <= package.command.SHORT
    assert (line in run.stdout) is printed
    assert ("jax-measured show --line mine.json" in run.stderr + run.stdout) is not printed
    assert command("show", line).stdout == shown.stdout


def test_what_is_absent_is_left_out_with_its_contenders(package):
    known = {each["name"]: each for each in package.results.book()["measurements"]}
    sources = known["transfers"]["cells"]
    for here, absent in (("jax", {"torch", "tensorflow"}), ("torch", {"jax", "tensorflow"})):
        left = package.cells.without(sources, absent)
        assert package.cells.modules_in(left).isdisjoint(absent)
        with contextlib.closing(package.command.answers([left], {})) as coming:
            records = next(coming)["records"]
        parts = [each for record in records for each in package.results.parts(record)]
        assert len(records) == 3 and {each["framework"] for each in parts} == {here}


def test_what_is_not_here_is_said(package, monkeypatch, capsys):
    monkeypatch.setattr(package.command, "absent", lambda cells: {"jax", "tensorflow"})
    assert package.command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if QUICK in line]
    assert lines[place + 1].strip() == "not here: it needs jax or tensorflow"


def test_sizes_that_depend_on_jax_s_device_do_not_keep_the_others_out(package, monkeypatch):
    monkeypatch.setattr(package.command, "absent", lambda cells: {"jax", "tensorflow"})
    known = package.command.offered()
    sources, _ = package.command.prepared(known["products"])
    sizes = next(cell for cell in sources if "def sizes" in cell)
    names = {}
    exec(sizes, names)
    assert names["sizes"]()[-1] == 1024
    assert all(map(package.command.is_possible, map(known.get, ("bandwidth", "arithmetic"))))


@pytest.mark.parametrize("absent", [{"torch", "tensorflow"}, {"jax", "tensorflow"}])
def test_the_default_is_ten_that_can_be_measured_here(package, monkeypatch, capsys, absent):
    monkeypatch.setattr(package.command, "absent", lambda cells: absent)
    assert len(package.command.default()) == 10
    package.command.main(["list"])
    lines = capsys.readouterr().out.splitlines()
    marked = [line.split()[1] for line in lines[:-1] if line.startswith("* ")]
    assert marked == [each["name"] for each in package.command.default()]


def test_what_would_compare_nothing_is_not_tried(package, monkeypatch):
    monkeypatch.setattr(package.command, "absent", lambda cells: {"jax", "tensorflow"})
    cells = ["import jax\nways = {'a': jax.f}\n", "from timer import compare\ncompare('n', ways)"]
    with pytest.raises(package.command.Left, match="it needs jax or tensorflow"):
        package.command.prepared({"cells": cells, "frameworks": ["jax", "python"]})
    for filling in ("ways['b'] = int", "ways = dict(b=int)"):
        filled = [cells[0], filling, cells[1]]
        assert package.command.prepared({"cells": filled, "frameworks": ["jax", "python"]})


CONTENDERS = """
import numpy as np
from timer import compare
def fails(x): raise ValueError('first line\\nlast words')
compare('waves', {'fails@numpy': fails, 'sin@numpy': np.sin}, np.ones(3))
"""
ONE = """
import numpy as np
from timer import measure
measure('one', np.sin, np.ones(3))
"""


def test_a_contender_that_raises_is_named_and_the_others_are_measured(run):
    (one, record), told = run(first=ONE, waves=CONTENDERS)
    assert one["name"] == "one" and len(one["processes"]) == 1
    assert [each["name"] for each in record["alternatives"]] == ["waves/sin"]
    assert told == ["waves/fails@numpy: not measured: ValueError: last words"]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("from timer import measure\nimport os\nmeasure('x', lambda: os._exit(3))", "status 3"),
        ("from timer import measure\n1 / 0\nmeasure('x', int)", "division by zero"),
        ("from timer import compare\ncompare('x', {})", "nothing was left"),
    ],
)
def test_what_fails_says_why_and_takes_nothing_else_along(run, cell, reason):
    records, told = run(first=ONE, fails=cell, last=ONE.replace("'one'", "'other'"))
    assert [each["name"] for each in records] == ["one", "other"]
    (told,) = told
    assert told.startswith("fails: not measured") and reason in told


WHICH = """
import os
from timer import measure
import numpy as np
measure('process/NAME', np.sin, np.ones(3), work=os.getpid())
"""
SETTING = "import sys\nsys.setting = 1\nassert not hasattr(sys, 'other')\n" + WHICH


def processes_of(records):
    return {each["name"].removeprefix("process/"): each["work"] for each in records}


def test_what_sets_nothing_shares_a_process_and_no_page_runs_under_settings_of_another(run):
    cells = {
        "other": "import sys\nsys.other = 1\n" + WHICH,
        "setting": SETTING,
        "same": SETTING,
        "plain": WHICH,
    }
    records, told = run(**{name: cell.replace("NAME", name) for name, cell in cells.items()})
    assert told == []
    process = processes_of(records)
    assert [*process] == [*cells]
    assert process["plain"] == process["other"] != process["setting"] == process["same"]


@pytest.mark.parametrize(
    ("cell", "sets"),
    [
        ("import jax\njax.config.update('jax_enable_x64', True)", True),
        ("import torch\ndef terms():\n    torch.set_num_threads(2)\nterms()", True),
        ("import torch\ntorch.backends.cudnn.rnn.fp32_precision = 'ieee'", True),
        ("import tensorflow as tf\ntf.config.experimental.enable_op_determinism()", True),
        ("import os\nos.environ['A'] = '1'", True),
        ("import jax\nfound = {}\nfound.update(jax.devices())\nfound.x = found['a'] = 1", False),
        (
            "import torch\nimport contextlib\n@contextlib.contextmanager\n"
            "def threads():\n    torch.set_num_threads(2)\n    yield",
            False,
        ),
    ],
)
def test_what_a_page_sets_for_its_process_is_seen(package, cell, sets):
    assert bool(package.cells.sets([cell])) == sets


def test_what_is_measured_by_default_takes_one_process(package, monkeypatch):
    monkeypatch.setattr(package.command, "absent", lambda cells: set())
    jobs = {each["name"]: each["cells"] for each in package.command.default()}
    assert len(jobs) == 10
    (names,) = package.command.processes_of(jobs)
    assert sorted(names) == sorted(jobs)


def test_what_was_measured_is_kept_when_it_is_stopped(
    package, found, monkeypatch, capsys, tmp_path
):
    def answers(sources, left_out):
        yield {"records": copy.deepcopy(found["records"])}
        raise KeyboardInterrupt

    monkeypatch.setattr(package.command, "answers", answers)
    monkeypatch.setattr(package.surroundings, "LOOK", 0)
    path = tmp_path / "mine.json"
    assert package.command.main(["run", QUICK, "transfers", "--out", str(path)]) == 130
    assert "gallery" in capsys.readouterr().out
    assert package.results.read(str(path))["records"] == found["records"]


def test_a_file_that_is_there_is_not_replaced(command, tmp_path):
    (tmp_path / "mine.json").write_text("dear")
    refused = command("run", QUICK, "--out", "mine.json")
    assert refused.returncode == 2 and "there already" in refused.stderr
    assert (tmp_path / "mine.json").read_text() == "dear"


def test_an_unknown_measurement_is_answered_with_near_names(command):
    refused = command("run", "retracin")
    assert refused.returncode == 2 and QUICK in refused.stderr


@pytest.mark.parametrize(
    ("factor", "words"), [(1, "about equal|cannot tell"), (3, "3.0× slower"), (0.2, "5.0× faster")]
)
def test_the_verdict_is_in_the_words_of_the_book(package, found, factor, words):
    slowed(found, 0, factor)
    called = package.results.reference(alternative(found)).removeprefix("gallery/")
    verdict = column(package, found, 4)[called]
    assert any(verdict.startswith(each) for each in words.split("|")), verdict


def test_numbers_are_those_of_the_site(package, found):
    shown = column(package, found, 1)
    for record in found["records"][0]["alternatives"]:
        range_ = Measurement.from_plain(record).range()
        value, low, high = package.table.summed([*map(package.table.median, record["processes"])])
        assert Range(value, low, high, range_.count) == range_
        text = shown[package.results.reference(record).removeprefix("gallery/")]
        assert text.startswith(package.timer.in_unit(range_.value))


def test_what_pages_show_is_in_the_file_at_its_end_and_in_each_line(
    package, found, capsys, tmp_path
):
    book = package.results.book()
    # Each page of the book asks, and the package knows what.
    assert len(book["roles"]) > 500 and len(book["works"]) > 60 and book["rooflines"]
    path = tmp_path / "mine.json"
    package.results.write(str(path), found)
    assert "shown" not in found
    assert package.command.main(["show", "--line", str(path)]) == 0
    line = capsys.readouterr().out.strip()
    shown = package.results.read(line)["shown"]
    assert {*shown["numbers"]} == {
        *map(package.results.reference, found["records"][0]["alternatives"])
    }
    asked = [key for key in shown["answers"] if "gallery/" in key]
    assert len(asked) == len(shown["answers"]) > 3
    # A file of today answers as one that was completed before.
    package.results.write(str(path), package.results.complete(found))
    assert package.results.read(str(path))["shown"] == shown


def texts_of(page, tag):
    return {node.text() for node in LexborHTMLParser(page).css(tag)}


def test_a_page_has_the_numbers_of_the_table_and_the_answers_to_the_book(
    package, found, capsys, tmp_path
):
    path, page = tmp_path / "mine.json", tmp_path / "mine.html"
    found["machine"] = "<b>A fast one</b>"
    package.results.write(str(path), found)
    assert package.command.main(["show", "--html", str(page), str(path)]) == 0
    assert not capsys.readouterr().out
    said = page.read_text("utf8")
    # What a file contains is text.
    assert not LexborHTMLParser(said).css("b") and "&lt;b&gt;A fast one" in said
    shown = package.results.complete(found)["shown"]
    cells = texts_of(said, "td")
    assert {text for text, _ in shown["answers"].values()} <= cells
    assert {text for text, _ in shown["fastest"].values()} <= cells
    for _, *rows in package.table.comparisons(found, package.results.book()):
        assert {text for _, *row in rows for text in row} <= cells


def test_a_page_shows_one_file_and_says_where_it_cannot_be_written(
    package, found, capsys, tmp_path
):
    path = str(tmp_path / "mine.json")
    package.results.write(path, found)
    assert package.command.main(["show", "--html", str(tmp_path / "a.html"), path, path]) == 2
    assert "a page shows one file" in capsys.readouterr().err
    assert package.command.main(["show", "--html", str(tmp_path / "none" / "a"), path]) == 2
    assert "cannot be written: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("asks", [True, False])
def test_torch_compile_has_compiled_before_it_is_timed(package, monkeypatch, asks):
    compiled = []
    torch = types.SimpleNamespace(sin="sin", ones=lambda n: n)
    torch.compile = lambda function: compiled.append(function) or (lambda x: x)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(package.timer, "display", None, raising=False)
    cell = "import torch\n" + ("step = torch.compile('step')" if asks else "step = 1")
    assert package.process.answer([cell]) == {"records": []}
    assert compiled == (["sin", "step"] if asks else [])


def test_another_order_of_the_contenders_is_said(package, found):
    assert "other order" not in "\n".join(package.table.table(found, package.results.book()))
    slowed(found, 0, 1000)
    first, second = (package.results.reference(alternative(found, n)) for n in (0, 1))
    lines = "\n".join(package.table.table(found, package.results.book()))
    assert f"other order: {first} against {second} is" in lines


def test_a_number_of_another_size_is_not_compared(package, found):
    alternative(found)["shape"] = [[7, 7]]
    called = package.results.reference(alternative(found)).removeprefix("gallery/")
    assert column(package, found, 2)[called] == "other size"
    assert column(package, found, 4)[called] == "–"


@pytest.mark.parametrize("kind", damaged.EDITS)
@pytest.mark.parametrize("as_line", [False, True], ids=["file", "line"])
def test_damaged_results_are_refused_in_words(package, capsys, tmp_path, kind, as_line):
    path, file = tmp_path / "mine.json", damaged.edited(kind)
    path.write_text(package.results.line(file) if as_line else json.dumps(file), "utf8")
    assert package.command.main(["show", str(path)]) == 2
    said = capsys.readouterr()
    assert damaged.EDITS[kind][1] in said.err and not said.out and len(said.err.splitlines()) == 1


@pytest.mark.parametrize("kind", damaged.TEXTS)
def test_what_is_no_file_at_all_is_refused_in_words(package, capsys, tmp_path, kind):
    text, words, _ = damaged.TEXTS[kind]
    (tmp_path / "mine.json").write_text(text, "utf8")
    assert package.command.main(["show", str(tmp_path / "mine.json")]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("kind", damaged.FINE)
def test_what_nobody_need_refuse_is_shown(package, capsys, tmp_path, kind):
    (tmp_path / "mine.json").write_text(damaged.FINE[kind], "utf8")
    assert package.command.main(["show", str(tmp_path / "mine.json")]) == 0
    assert "pair" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no JSON"),
        (b'{"format": "jax-measured", "ver', "no JSON"),
        (b"\xff\xfe\x00", "no text"),
        (b"[" * 100_000, "no JSON"),
        (b"9" * 10_000, "no JSON"),
        (b"jm1.", "cut short"),
    ],
)
def test_what_is_no_file_of_results_is_refused(package, capsys, tmp_path, content, words):
    (tmp_path / "mine.json").write_bytes(content)
    assert package.command.main(["show", str(tmp_path / "mine.json")]) == 2
    assert words in capsys.readouterr().err


def test_a_line_that_was_cut_short_anywhere_is_refused(package, found):
    line = package.results.line(found)
    for end in range(4, len(line) - 1, 7):
        with pytest.raises(package.results.Refused):
            package.results.read(line[:end])


def test_one_damaged_file_does_not_hide_the_others(package, found, capsys, tmp_path):
    package.results.write(tmp_path / "good.json", found)
    paths = [str(tmp_path / name) for name in ("absent.json", "good.json")]
    assert package.command.main(["show", *paths]) == 2
    said = capsys.readouterr()
    assert "absent.json: No such file" in said.err and "gallery" in said.out


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("JAX_DEBUG_NANS", "1", "JAX_DEBUG_NANS is set"),
        ("JAX_DISABLE_JIT", "true", "JAX_DISABLE_JIT is set"),
        ("JAX_LOG_COMPILES", "1", "JAX_LOG_COMPILES is set"),
        ("JAX_ENABLE_X64", "True", "other things are measured"),
        ("OMP_NUM_THREADS", "1", "OMP_NUM_THREADS is set to '1'"),
        ("JAX_DEBUG_NANS", "0", ""),
    ],
)
def test_switches_that_change_times_are_warned_of(package, monkeypatch, name, value, words):
    for each in [*package.surroundings.SWITCHES, *package.timer.VARIABLES]:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr(package.timer, "usable_cores", os.cpu_count)
    monkeypatch.setattr(package.timer, "text_of", lambda path: "")
    monkeypatch.setenv(name, value)
    said = [*package.surroundings.threads(), *package.surroundings.switches()]
    said = [each for each in said if name in each]
    assert bool(said) == bool(words) and all(words in each for each in said)


@pytest.mark.parametrize(
    ("path", "text", "warned", "words"),
    [
        ("/sys/fs/cgroup/cpu.max", "50000 100000", "threads", "may use 0.5 of"),
        ("/sys/class/power_supply/BAT0/status", "Discharging\n", "battery", "battery"),
    ],
)
def test_limits_of_the_machine_are_warned_of(package, monkeypatch, path, text, warned, words):
    monkeypatch.setattr(package.surroundings.glob, "glob", lambda pattern: [path])
    monkeypatch.setattr(package.timer, "text_of", lambda asked: text if asked == path else "")
    assert words in " ".join(getattr(package.surroundings, warned)())
    monkeypatch.setattr(package.timer, "text_of", lambda asked: "")
    assert words not in " ".join(getattr(package.surroundings, warned)())


PAGE = [
    "import numpy as np\nA = 2\nprint(A)",
    "def late():\n    return lost.x",
    "import lost\n\nways = {'lost': lost.f}\nsettings = [lost.f]",
    "ways['numpy'] = np.sin",
    "ways['late'] = late()",
    "unused = np.ones(3)",
    "for name in ways:\n    print(name)",
    "from timer import compare\nfound = compare('n', ways, A)\nlater = unused",
]


def test_a_slice_has_what_the_measurement_uses_and_no_more(package):
    chosen = package.cells.needed(PAGE, len(PAGE) - 1)
    last = "from timer import compare\nfound = compare('n', ways, A)"
    assert chosen == ["import numpy as np\nA = 2", *PAGE[1:5], last]


def test_what_needs_an_absent_module_is_left_out_line_by_line(package):
    left = package.cells.without(PAGE[:5], {"lost"})
    assert left == [*PAGE[:2], "ways = {}\nsettings = []", PAGE[3], ""]


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_measured_is_said_in_one_line_of_a_terminal_and_else_in_lines(
    package, tmp_path, monkeypatch, terminal
):
    said = io.StringIO()
    said.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", said)
    current = package.command.Run(tmp_path / "mine.json", [], 3)
    current.jobs, current.took = {"one": [], "two": []}, {"one": [2.0], "two": []}
    current.announce("two")
    current.took["two"].append(4.0)
    current.announce("one")
    package.command.say("kept")
    first = "2 of 6: two, process 1 of 3, about 10 s left"
    then = "3 of 6: one, process 2 of 3, about 12 s left"
    if terminal:
        assert said.getvalue() == f"\r\x1b[K{first}\r\x1b[K{then}\r\x1b[Kkept\n"
    else:
        assert said.getvalue() == f"{first}\n{then}\nkept\n"
