"""Compiled programs: what is shown of a record, and each way in which one makes a build red."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from _ext.programs import functions as programs
from _ext.programs import hlo
from _ext.programs.compiling import abstract, chosen, keep, layered, leaks
from _ext.source.snippets import Library
from bs4 import BeautifulSoup

SNIPPET = '''
import math

FACTOR = 2.0
SHAPE = "float32[4,8]"
COMPILED = {"double": [SHAPE], "both": [{"left": SHAPE}, "float32[]"]}
SCALED = {"double": {"it grows": ["float32[2*chips@data,8]"]}}


def double(x):
    """Return twice `x`."""
    return FACTOR * x


def both(weights, y):
    return weights["left"] + y


def undeclared(x):
    return x
'''
HLO = """HloModule jit_double, entry_computation_layout={(f32[4,8]{1,0})->f32[4,8]{1,0}}

%fused_computation (param_0: f32[4,8]) -> f32[4,8] {
  %param_0 = f32[4,8]{1,0} parameter(0)
  %constant = f32[] constant(2)
  %mul.1 = f32[4,8]{1,0} broadcast(%constant), dimensions={}, metadata={op_name="jit(double)/mul"}
  ROOT %mul.0 = f32[4,8]{1,0} multiply(%param_0, %mul.1), metadata={op_name="jit(double)/mul"}
}

ENTRY %main (x: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0), metadata={op_name="x"}
  ROOT %my_fusion = f32[4,8]{1,0} fusion(%x), kind=kLoop, calls=%fused_computation
}"""
COST = {"flops": 32, "transcendentals": 0, "bytes": 256}
MEMORY = {"arguments": 128, "results": 128, "temporaries": 0}


def find(project, name, kind="COMPILED"):
    return programs.find(Library(project.root / "snippets"), name, kind, "a")


def head(program):
    return {
        "form": programs.FORM,
        "function": program.name,
        "source": program.key,
        "arguments": program.arguments,
        "command": programs.COMMAND,
        "date": "2026-01-02T03:04:05+00:00",
        "versions": {"jax": "1.2.3"},
    }


def record_of(program):
    """Return a record such as the recorder makes, of a function that multiplies by 2."""
    return head(program) | {
        "jaxpr": ["{ lambda ; a:f32[4,8]. let", "    b:f32[4,8] = mul 2.0 a", "  in (b,) }"],
        "operations": {"mul": 1},
        "picture": {
            "nodes": [
                {"label": "x", "detail": "float32[4,8]", "kind": "argument", "x": 0.0, "y": 0},
                {"label": "mul 2", "detail": "float32[4,8]", "kind": "operation", "x": 0, "y": 1},
            ],
            "edges": [{"from": 0, "to": 1, "through": [[1.0, 0.5]]}],
        },
        "stablehlo": [{"targets": list(programs.TARGETS), "text": ["module @jit_double {", "}"]}],
        "unoptimized": COST,
        "targets": {
            target: {
                "device": f"device of {target}",
                "hlo": HLO.splitlines(),
                "cost": None
                if target.startswith("gpu")
                else COST | {"estimate": 1.5e-6 if target == "tpu-v5e" else None},
                "memory": MEMORY,
            }
            for target in programs.TARGETS
        },
    }


def scale_record_of(program):
    return head(program) | {
        "parameters": 100,
        "runs": [
            {
                "case": "it grows",
                "target": target,
                "device": "a device",
                "chips": chips,
                "batch": 2 * chips,
                "collectives": [{"kind": "all-reduce", "count": 1, "bytes": 404}]
                if chips > 1
                else [],
                "cost": COST | {"estimate": None},
                "memory": MEMORY,
            }
            for target, counts in programs.CHIPS.items()
            for chips in counts
        ],
    }


def write(project, program, record):
    path = project.root / programs.RECORDS / program.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(record if isinstance(record, str) else programs.written(record), "utf8")
    return path


DIRECTIVE = "```{compiled} code.double\n```"


@pytest.fixture
def book(project):
    """A project with a function, its record, and a page that shows it."""
    project.configure('extensions.append("sphinx_design")', 'exclude_patterns = ["_recorded"]')
    project.module = project.snippet("a.code", SNIPPET)
    project.page("a/page", DIRECTIVE, notebook=False)
    project.program = find(project, "code.double")
    project.record = write(project, project.program, record_of(project.program))
    return project


# The view


def test_the_view_shows_the_source_and_every_stage(book):
    assert book.build().green
    page = BeautifulSoup(book.html("a/page"), "html.parser")
    source = page.select_one(".compile-source").get_text()
    assert "def double(x):" in source
    assert "FACTOR = 2.0" in page.select_one(".compile-source details").get_text()
    assert "x: float32[4,8]" in source
    stages = page.select(".stage-tabs > label")
    assert [label.get_text().strip() for label in stages] == [
        *("jaxpr", "picture", "StableHLO", "optimized HLO", "cost")
    ]
    assert {label["data-sync-group"] for label in stages} == {"stage"}
    text = page.select_one(".compile-stages").get_text()
    assert "b:f32[4,8] = mul 2.0 a" in text
    assert "module @jit_double {" in text
    assert "Compiled 2026-01-02 with jax 1.2.3. Nothing was run." in text


def test_devices_are_tabs_of_the_group_of_the_whole_book(book):
    assert book.build().green
    page = BeautifulSoup(book.html("a/page"), "html.parser")
    labels = page.select('label[data-sync-group="device"]')
    assert [label["data-sync-id"] for label in labels] == list(programs.TARGETS)
    assert [label.get_text().strip() for label in labels] == list(programs.TARGETS.values())
    # Radio buttons: they are reached and switched by the keyboard, without a script.
    for label in labels:
        assert page.find(id=label["for"])["type"] == "radio"


def test_fused_operations_are_listed_and_their_lines_marked(book):
    assert book.build().green
    page = BeautifulSoup(book.html("a/page"), "html.parser")
    marked = page.select(".device-tabs .hll")
    assert len(marked) == len(programs.TARGETS)
    assert all("fusion(%x)" in line.get_text() for line in marked)
    listed = [item.get_text().strip() for item in page.select(".compile-kernels li")]
    assert listed == ["my_fusion: mul"] * len(programs.TARGETS)
    assert "1 operation of the jaxpr became 1 fused kernel." in page.get_text()


def test_costs_are_a_table_and_an_estimate_is_called_one(book):
    assert book.build().green
    table = BeautifulSoup(book.html("a/page"), "html.parser").select_one("table.compile-cost")
    rows = {
        cells[0].get_text().strip(): [cell.get_text().strip() for cell in cells[1:]]
        for row in table.select("tbody tr")
        if (cells := row.select("td"))
    }
    assert rows["floating-point operations"] == ["32 FLOP", "32 FLOP", "–", "–", *["32 FLOP"] * 2]
    assert rows["FLOP per byte"][0] == "0.125"
    assert rows["estimate of the compiler"] == ["–", "–", "–", "–", "1.5 µs", "–"]
    assert rows["memory: arguments"][1] == "128 B"


def test_the_jaxpr_is_drawn_in_the_ink_of_the_page(book):
    assert book.build().green
    drawing = BeautifulSoup(book.html("a/page"), "html.parser").select_one("svg.jaxpr-picture")
    assert drawing["role"] == "img"
    assert "jaxpr of double" in drawing.title.get_text()
    assert [text.get_text() for text in drawing.select("text.label")] == ["x", "mul 2"]
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', str(drawing)))
    assert colours <= {"none", "currentColor"}


def test_stablehlo_that_differs_is_shown_for_each_group(book):
    record = record_of(book.program)
    first, *others = programs.TARGETS
    record["stablehlo"] = [
        {"targets": [first], "text": ["module @of_the_cpu {}"]},
        {"targets": others, "text": ["module @of_the_others {}"]},
    ]
    write(book, book.program, record)
    assert book.build().green
    page = BeautifulSoup(book.html("a/page"), "html.parser")
    labels = [label.get_text().strip() for label in page.select(".lowered-tabs > label")]
    assert labels == ["CPU", "NVIDIA H200, NVIDIA A100, TPU v5e, TPU v6e"]


def test_what_is_in_a_loop_gets_no_estimate(book):
    record = record_of(book.program)
    loop = (
        "  %loop = f32[4,8]{1,0} while(%x), condition=%fused_computation, body=%fused_computation"
    )
    record["targets"]["tpu-v5e"]["hlo"].insert(-2, loop)
    write(book, book.program, record)
    assert book.build().green
    text = BeautifulSoup(book.html("a/page"), "html.parser").get_text()
    assert "1.5 µs" not in text
    assert "counts what is in a loop once" in text


def test_a_sentence_can_hold_a_number_and_a_ratio(book):
    text = "{compiled}`code.double@tpu-v5e.estimate` and "
    text += "{compiled}`code.double@cpu.bytes / code.double@before.flops`"
    book.page("a/page", text, notebook=False)
    assert book.build().green
    first, second = BeautifulSoup(book.html("a/page"), "html.parser").select("abbr.measured")
    assert first.get_text() == "1.5 µs"
    assert "the compiler's estimate, not a measurement" in first["title"]
    assert second.get_text() == "8×"


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("code.double", "is not of the form function@device.field"),
        ("code.double@gpu-none.bytes", "is not of the form function@device.field"),
        ("code.double@cpu.estimate", "the compiler gives no estimate of a.code.double for cpu"),
        ("code.dubble@cpu.bytes", "there is no snippet 'code.dubble'; the nearest names are"),
    ],
)
def test_a_number_that_is_not_there_is_red(book, role, message):
    book.page("a/page", "Text {compiled}`" + role + "`.", notebook=False)
    build = book.build()
    assert build.status != 0
    (warning,) = build.warnings
    assert message in warning
    assert f"page.md:{book.line('a/page', 'Text')}: " in warning


def test_the_cost_by_itself_for_some_devices(book):
    directive = "```{compiled-cost} code.double\n:devices: cpu tpu-v6e\n```"
    book.page("a/page", directive, notebook=False)
    assert book.build().green
    header = BeautifulSoup(book.html("a/page"), "html.parser").select("table.compile-cost th")
    assert [cell.get_text().strip() for cell in header[2:]] == ["CPU", "TPU v6e"]
    book.page("a/page", directive.replace("tpu-v6e", "tpu-v9"), notebook=False)
    build = book.build()
    assert build.status != 0
    assert "there is no device 'tpu-v9'; there are cpu, gpu-h200" in build.output


def test_many_devices_as_a_table_and_charts(book):
    program = find(book, "code.double", "SCALED")
    write(book, program, scale_record_of(program))
    shown = [
        f"```{{compiled-scale}} code.double\n:show: {what}\nA caption.\n```"
        for what in (*("source", "table", "flops", "bytes"),)
    ]
    book.page("a/page", *shown, notebook=False)
    assert book.build().green
    page = BeautifulSoup(book.html("a/page"), "html.parser")
    rows = [
        [cell.get_text().strip() for cell in row.select("td")]
        for row in page.select("table.compile-scale tbody tr")
    ]
    assert rows[0][:6] == ["TPU v5e", "1", "2", "2", "none", "–"]
    assert rows[1][:7] == ["TPU v5e", "4", "8", "2", "1 all-reduce", "404 B", "606 B"]
    assert len(rows) == 6
    assert len(page.select("svg.measurement-chart")) == 2


# Records that make a build red


def edited(**changes):
    return lambda record: record | changes


def without_a_device(record):
    return (
        record
        | {"targets": {k: v for k, v in record["targets"].items() if k != "tpu-v6e"}}
        | {"stablehlo": [{"targets": list(programs.TARGETS)[:-1], "text": ["module"]}]}
    )


def wrong_cost(value):
    def change(record):
        record["targets"]["cpu"]["cost"]["flops"] = value
        return record

    return change


def wrong_place(value):
    def change(record):
        record["picture"]["nodes"][0]["x"] = value
        return record

    return change


UNREADABLE = {
    "no JSON": (lambda record: "{", "it is no JSON"),
    "empty": (lambda record: "", "it is no JSON"),
    "no object": (lambda record: "[]", "record is expected to be an object"),
    "deep": (lambda record: "[" * 100_000, "it is no JSON"),
    "merge conflict": (
        lambda record: "<<<<<<< HEAD\n" + programs.written(record),
        "line 1 is a mark of a merge conflict",
    ),
    "too large": (lambda record: " " * (programs.MOST_BYTES + 1), "bytes, more than"),
    "too many lines": (edited(jaxpr=["a"] * 1001), "record.jaxpr is expected to be at most 1000"),
    "a long line": (edited(jaxpr=["a" * 2001]), "line 1 of record.jaxpr is expected to be at most"),
    "another form": (edited(form=2), "record.form is expected to be 1"),
    "a missing part": (
        lambda record: {k: v for k, v in record.items() if k != "jaxpr"},
        "record is expected to have jaxpr",
    ),
    "an unknown part": (edited(html="<b>"), "record is expected to have no html"),
    "text for a number": (wrong_cost("32"), "record.targets.cpu.cost.flops is expected to be"),
    "true for a number": (wrong_cost(True), "record.targets.cpu.cost.flops is expected to be"),
    "a negative number": (wrong_cost(-1), "record.targets.cpu.cost.flops is expected to be"),
    "markup for a place": (wrong_place('0"/><script>'), "picture.nodes[0].x is expected to be a"),
    "a number for a text": (edited(jaxpr=[1]), "line 1 of record.jaxpr is expected to be a text"),
    "control characters": (edited(jaxpr=["\x1b[2J"]), "is expected to be printable"),
    "an unknown device": (
        lambda record: record | {"targets": {"<b>": record["targets"]["cpu"]}},
        "record.targets is expected to name known devices",
    ),
    "another function": (edited(function="a.code.other"), "it is of a.code.other"),
    "no date": (edited(date="yesterday"), "record.date is expected to be a date"),
    "an edge to nowhere": (
        lambda record: (
            record
            | {"picture": record["picture"] | {"edges": [{"from": 0, "to": 7, "through": []}]}}
        ),
        "an edge of the picture leads nowhere",
    ),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_damaged_record_is_unreadable(book, kind):
    change, message = UNREADABLE[kind]
    write(book, book.program, change(record_of(book.program)))
    record, state = programs.state(book.root / programs.RECORDS, book.program)
    assert record is None
    assert state.word == "unreadable"
    assert message in state.why


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_what_is_no_number_is_unreadable(book, number):
    text = programs.written(record_of(book.program)).replace('"flops": 32', f'"flops": {number}')
    write(book, book.program, text)
    assert programs.state(book.root / programs.RECORDS, book.program)[1].word == "unreadable"


def test_a_record_that_is_no_utf8_is_unreadable(book):
    book.record.write_bytes(b"\xff\xfe")
    assert "UTF-8" in programs.state(book.root / programs.RECORDS, book.program)[1].why


STATES = {
    "missing": (lambda book: book.record.unlink(), "missing"),
    "damaged": (lambda book: book.record.write_text("{"), "unreadable: it is no JSON"),
    "source": (
        lambda book: book.edit(book.module, "FACTOR * x", "x * FACTOR"),
        "stale: the source changed",
    ),
    "a constant it uses": (
        lambda book: book.edit(book.module, "FACTOR = 2.0", "FACTOR = 3.0"),
        "stale: the source changed",
    ),
    "arguments": (
        lambda book: book.edit(book.module, "float32[4,8]", "float32[8,8]"),
        "stale: the arguments changed",
    ),
    "a device": (
        lambda book: write(book, book.program, without_a_device(record_of(book.program))),
        "missing: not compiled for TPU v6e",
    ),
}


@pytest.mark.parametrize("kind", STATES)
def test_the_strict_build_is_red_and_says_what_to_do(book, kind):
    change, state = STATES[kind]
    assert book.build().green
    change(book)
    build = book.build()
    assert build.status != 0
    (warning,) = build.warnings
    assert f"page.md:{book.line('a/page', 'compiled}')}: " in warning
    assert f"the compiled program of 'a.code.double' is {state}" in warning
    assert "run 'nox -s compile -- a.code.double'" in warning
    assert "commit docs/_recorded/compiled/a.code.double.json" in warning
    text = BeautifulSoup(book.html("a/page"), "html.parser").select_one(".compile-state").get_text()
    assert f"The record of this program is {state}" in text
    # It stays red, although no page was edited, until it is mended.
    assert book.build().status != 0


def test_a_mended_record_turns_the_build_green_again(book):
    text = book.record.read_text("utf8")
    book.record.unlink()
    assert book.build().status != 0
    book.record.write_text(text, "utf8")
    assert book.build().green
    assert ".compile-state" not in book.html("a/page")


def test_another_function_of_the_module_may_change(book):
    book.edit(book.module, "def undeclared(x):\n    return x", "def undeclared(x):\n    return -x")
    assert book.build().green


def test_a_damaged_record_breaks_no_other(book):
    other = find(book, "code.both")
    write(book, other, record_of(other))
    book.page("a/other", "```{compiled} code.both\n```", notebook=False)
    book.record.write_text("{", "utf8")
    build = book.build()
    assert build.status != 0
    assert len(build.warnings) == 1
    other = BeautifulSoup(book.html("a/other"), "html.parser")
    assert "my_fusion" in other.get_text()
    assert [code.get_text() for code in other.select(".compile-source > p code")] == [
        *("left: float32[4,8]", "y: float32[]")
    ]


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        ("```{compiled} code.dubble\n```", "there is no snippet 'code.dubble'; the nearest names"),
        ("```{compiled} code.undeclared\n```", "has no arguments for 'undeclared'"),
        ("```{compiled-scale} code.both\n```", "SCALED of"),
    ],
)
def test_a_function_that_cannot_be_compiled_is_red(book, directive, message):
    book.page("a/page", directive, notebook=False)
    build = book.build()
    assert build.status != 0
    (warning,) = build.warnings
    assert message in warning
    assert f"page.md:{book.line('a/page', '{compiled')}: " in warning


@pytest.mark.parametrize(
    "declaration",
    ["COMPILED = [1]", "COMPILED = {}", 'COMPILED = {"double": [len("a")]}', "NOTHING = 1"],
)
def test_a_declaration_that_is_no_plain_data_is_refused(project, declaration):
    project.snippet("a.code", f"{declaration}\n\n\ndef double(x):\n    return 2 * x\n")
    with pytest.raises(programs.ProgramError, match=r"COMPILED"):
        find(project, "code.double")


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_markup_in_a_record_is_text(book):
    record = record_of(book.program)
    record["versions"] = {HOSTILE: HOSTILE}
    record["jaxpr"] = [HOSTILE, "</pre>" + HOSTILE]
    record["operations"] = {HOSTILE: 1}
    record["stablehlo"][0]["text"] = ["</code></pre>" + HOSTILE]
    for node in record["picture"]["nodes"]:
        node |= {"label": "</text>" + HOSTILE, "detail": HOSTILE, "kind": HOSTILE}
    for facts in record["targets"].values():
        facts["device"] = HOSTILE
        facts["hlo"] = [HOSTILE, *HLO.replace("jit(double)/mul", "a/" + HOSTILE).splitlines()]
    write(book, book.program, record)
    assert book.build().green
    page = BeautifulSoup(book.html("a/page"), "html.parser")
    assert not [script for script in page.select("script") if "alert" in script.get_text()]
    assert not page.select('img[src="x"]')
    assert not [tag for tag in page.find_all(True) if "onerror" in tag.attrs]
    assert page.get_text().count("<script>alert(1)</script>") >= 5


def test_markup_in_a_record_of_many_devices_is_text(book):
    program = find(book, "code.double", "SCALED")
    record = scale_record_of(program)
    for run in record["runs"]:
        run |= {"case": HOSTILE, "device": HOSTILE}
        run["collectives"] = [{"kind": HOSTILE, "count": 1, "bytes": 1}]
    write(book, program, record)
    shown = [
        f"```{{compiled-scale}} code.double\n:show: {what}\n```" for what in ("table", "flops")
    ]
    book.page("a/page", *shown, notebook=False)
    assert book.build().green
    page = BeautifulSoup(book.html("a/page"), "html.parser")
    assert not page.select('img[src="x"]')
    assert not [script for script in page.select("script") if "alert" in script.get_text()]


# What pages name


def test_examples_in_code_are_not_taken_for_directives():
    text = """
    ````markdown
    ```{compiled} not.this
    ```
    ````

    ::::{note}
    ```{compiled} a.one
    ```
    ::::

    ```{compiled-scale} a.two
    :show: table
    ```
    A number: {compiled}`a.three@cpu.bytes / a.four@cpu.bytes`.
    """
    found = [(wanted.kind, wanted.written) for wanted in programs.wanted_by("page", text)]
    assert found == [
        *(("COMPILED", "a.one"), ("SCALED", "a.two")),
        *(("COMPILED", "a.three"), ("COMPILED", "a.four")),
    ]


def listing(book):
    """Run the list in the project, where importing a framework or Sphinx would fail."""
    blocked = "('jax', 'jaxlib', 'torch', 'tensorflow', 'numpy', 'sphinx', 'igraph', 'libtpu')"
    code = f"import sys, runpy; sys.modules.update(dict.fromkeys({blocked}))\n"
    code += "sys.path.insert(0, sys.argv.pop())\n"
    code += "runpy.run_module('_ext.programs.functions', None, '__main__')"
    return subprocess.run(
        [sys.executable, "-c", code, str(book.engine)],
        cwd=book.root,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_list_needs_no_framework_and_says_what_is_current(book):
    done = listing(book)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "a.code.double: current",
        *(f"  {target:<10} current" for target in programs.TARGETS),
    ]


def test_the_list_names_what_is_stale_missing_unreadable_or_left_over(book):
    book.page(
        *("a/other", "```{compiled} code.both\n```", "```{compiled-scale} code.double\n```"),
        notebook=False,
    )
    write(book, book.program, without_a_device(record_of(book.program)))
    (book.record.parent / "a.code.both.json").write_text("{", "utf8")
    (book.record.parent / "a.code.gone.json").write_text("{}", "utf8")
    done = listing(book)
    assert done.returncode == 1
    assert "a.code.double: missing: not compiled for TPU v6e" in done.stdout
    assert "  cpu        current" in done.stdout
    assert "  tpu-v6e    missing" in done.stdout
    assert "a.code.both: unreadable: it is no JSON" in done.stdout
    assert "a.code.double at scale: missing" in done.stdout
    assert "a.code.gone.json: no page asks for it; remove it" in done.stdout
    book.edit(book.module, "FACTOR = 2.0", "FACTOR = 3.0")
    assert "a.code.double: stale: the source changed" in listing(book).stdout


# The recorder


def test_recording_the_same_again_keeps_the_file_and_its_date(book):
    before = book.record.read_bytes(), book.record.stat().st_mtime_ns
    later = record_of(book.program) | {"date": "2027-01-01T00:00:00+00:00"}
    assert not keep(book.record, later)
    assert (book.record.read_bytes(), book.record.stat().st_mtime_ns) == before
    later["versions"] = {"jax": "2.0"}
    assert keep(book.record, later)
    assert "2027-01-01" in book.record.read_text("utf8")


def test_a_record_above_the_bounds_is_not_written(book):
    before = book.record.read_bytes()
    too_long = record_of(book.program) | {"jaxpr": ["a"] * (programs.MOST_LINES + 1)}
    with pytest.raises(programs.RecordError, match="at most 1000 lines"):
        keep(book.record, too_long)
    assert book.record.read_bytes() == before
    assert os.listdir(book.record.parent) == [book.record.name]


def test_a_record_that_tells_of_the_machine_is_not_written(book):
    telling = record_of(book.program) | {"jaxpr": [f"in {os.getcwd()}/a.py"]}
    assert leaks(f"{os.getcwd()}/a.py") == [os.getcwd()]
    with pytest.raises(programs.RecordError, match="would hold"):
        keep(book.record, telling)


def test_the_same_record_gives_the_same_text(book):
    record = record_of(book.program)
    text = programs.written(record)
    assert programs.written(json.loads(text)) == text
    assert max(map(len, text.splitlines())) < 200


def test_a_name_that_no_page_asks_for_is_refused_with_the_nearest(book):
    with pytest.raises(SystemExit, match=r"function 'dubble'.*a\.code\.double"):
        chosen({"f": book.program}, ["a.code.dubble".removeprefix("a.code.")])
    assert chosen({"f": book.program}, ["code.double"]) == [book.program]
    assert chosen({"f": book.program}, []) == [book.program]


def test_abstract_arguments():
    pytest.importorskip("jax")
    axes = []
    result = abstract(
        [{"a": "float32[2,3]"}, ["int32[4*chips@data,5]", "float32[]"]],
        chips=16,
        placed=lambda names: axes.append(names),
    )
    (first, (second, third)) = result
    assert (first["a"].shape, str(first["a"].dtype)) == ((2, 3), "float32")
    assert (second.shape, str(second.dtype), third.shape) == ((64, 5), "int32", ())
    assert axes == [(None, None), ("data", None), ()]
    for wrong in ("float32", "float32[2", 3):
        with pytest.raises(programs.ProgramError):
            abstract(wrong)


def test_a_drawing_has_layers_and_nothing_lies_upon_another():
    pytest.importorskip("igraph")
    nodes = [{"label": str(n), "detail": "", "kind": "operation"} for n in range(6)]
    drawn = layered(nodes, [(0, 1), (1, 2), (0, 2), (3, 2), (4, 2), (2, 5)])
    places = [(node["x"], node["y"]) for node in drawn["nodes"]]
    assert len(set(places)) == len(places)
    for edge in drawn["edges"]:
        levels = [places[edge["from"]][1], *(y for _, y in edge["through"]), places[edge["to"]][1]]
        assert levels == list(range(levels[0], levels[-1] + 1))
    assert layered(nodes, []) == layered(nodes, [])


# HLO


RAW = """HloModule jit_f, is_scheduled=true, \
entry_computation_layout={(f32[8]{0:T(256)})->f32[8]{0}}, \
allow_spmd_sharding_propagation_to_output={true}, frontend_attributes={fingerprint="40d2", a={b=c}}

FileNames
1 "/home/somebody/a.py"

FileLocations
1 {file_name_id=1 line=37}


%region (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0)
}

ENTRY %main (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0), sharding={replicated}, metadata={op_name="x"}
  %call = f32[8]{0} custom-call(%x.1), custom_call_target="__routine", \
metadata={op_name="jit(f)/transpose(jvp())/dot_general" source_file="/home/somebody/a.py" \
source_line=3}, backend_config={"a":"}\\"{","b":[{"c":1}]}
  ROOT %copy = f32[8]{0} copy(%call), metadata={stack_frame_id=4}, backend_config="opaque"
}
"""


def test_hlo_is_cleaned_of_the_machine_and_of_settings():
    assert hlo.cleaned(RAW) == [
        "HloModule jit_f, entry_computation_layout={(f32[8]{0:T(256)})->f32[8]{0}}",
        "",
        "%region (p: f32[]) -> f32[] {",
        "  ROOT %p = f32[] parameter(0)",
        "}",
        "",
        "ENTRY %main (x.1: f32[8]) -> f32[8] {",
        '  %x.1 = f32[8]{0} parameter(0), metadata={op_name="x"}',
        '  %call = f32[8]{0} custom-call(%x.1), custom_call_target="__routine", '
        'metadata={op_name="jit(f)/transpose(jvp())/dot_general"}',
        "  ROOT %copy = f32[8]{0} copy(%call)",
        "}",
    ]


def test_kernels_are_the_steps_that_compute():
    program = hlo.Program(hlo.cleaned(RAW))
    (kernel,) = program.kernels()
    assert kernel.name == "call"
    assert kernel.what == "custom-call __routine"
    assert kernel.operations == ("dot_general",)
    assert not kernel.fused
    assert [copy.name for copy in program.copies()] == ["copy"]
    assert not program.loops


COLLECTIVES = """
ENTRY %main (x: f32[8]) -> f32[8] {
  %a = (f32[8]{0}, bf16[4,2]{1,0:T(8,128)}, f32[]) all-reduce(%x, %y, %z), to_apply=%region
  %b = f32[8]{0} all-reduce-start(%x), to_apply=%region
  %c = f32[8]{0} all-reduce-done(%b)
  %d = (f32[2]{0}, f32[8]{0}) all-gather-start(%x), dimensions={0}
  %e = f32[8]{0} all-gather-done(%d)
  %f = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%x)
  %g = pred[3]{0} all-to-all(%x)
}
"""


def test_collectives_are_counted_once_with_the_bytes_of_their_results():
    found = hlo.Program(COLLECTIVES.splitlines()).collectives()
    assert found == [
        *(("all-reduce", 32 + 16 + 4), ("all-reduce", 32), ("all-gather", 32)),
        *(("collective-permute", 32), ("all-to-all", 3)),
    ]


# The committed records


COMMITTED = sorted((pathlib.Path(__file__).parents[2] / programs.RECORDS).glob("*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_record_tells_of_no_machine(path):
    text = path.read_text("utf8")
    assert not re.search(
        r"/(?:home|root|tmp|Users|usr|work)/|\.py\b|source_file|0x[0-9a-f]{9}", text
    )
    assert leaks(text) == []
    assert programs.written(programs.read(path)) == text
