"""Compiled programs on pages: what is shown of a record, and what makes a build red."""

import re

import pytest

from tests.engine.compiled.samples import (
    CONF,
    LABELS,
    SNIPPET,
    Sample,
    record_of,
    scale_record_of,
)

VIEW = "```{{compiled}} {}.double\n```"


def role(text):
    return "Text {compiled}`" + text + "`."


def directive(name, function, *options):
    return "\n".join([f"```{{{name}}} {function}", *options, "```"])


def started(project, *lines):
    """Give a project targets; return the sample that lies in it."""
    project.configure(CONF, *lines)
    return Sample(project.root)


def recorded(book, module, kind="COMPILED", change=None):
    """Give a book a module of its own with a recorded function `double`."""
    book.snippet(f"a.{module}")
    program = book.find(f"{module}.double", kind)
    record = (record_of if kind == "COMPILED" else scale_record_of)(program)
    return book.write(program, change(record) if change else record)


def of_two_kinds(record):
    first, *others = LABELS
    record["stablehlo"] = [
        {"targets": [first], "text": ["module @of_the_cpu {}"]},
        {"targets": others, "text": ["module @of_the_others {}"]},
    ]
    return record


def with_a_loop(record):
    record["targets"]["tpu-v5e"]["loops"] = True
    return record


def refused_by(*targets):
    def change(record):
        for target in targets:
            del record["targets"][target]
        record["refused"] = {target: "ValueError: blocks of 100" for target in targets}
        if not record["targets"]:
            record["stablehlo"] = []
        return record

    return change


@pytest.fixture(scope="module")
def site(empty_project, tmp_path_factory):
    """A site with a page for each way to show a record, built once."""
    project = empty_project(tmp_path_factory.mktemp("site"))
    book = started(project)
    recorded(book, "code")
    book.write(book.find("code.both"))
    recorded(book, "lowered", change=of_two_kinds)
    recorded(book, "loop", change=with_a_loop)
    recorded(book, "code", "SCALED")
    recorded(book, "refused", change=refused_by("cpu", "gpu-h200"))
    recorded(book, "nowhere", change=refused_by(*LABELS))
    for module in ("code", "lowered", "loop", "refused", "nowhere"):
        project.page(f"a/{module}", VIEW.format(module), notebook=False)
    both = project.page("a/both", directive("compiled", "code.both"), notebook=False)
    project.edit(both, "orphan: true", "orphan: true\nscripts: layouts.js")
    numbers = [role("code.double@tpu-v5e.least"), role("code.double@cpu.temporaries")]
    project.page("a/numbers", *numbers, notebook=False)
    case = ":case: it grows", "A caption."
    shown = [
        directive("compiled-scale", "code.double", f":show: {what}", *case)
        for what in ("source", "table", "flops", "bytes", "overlap")
    ]
    project.page("a/scale", *shown, notebook=False)
    project.built()
    return project


def test_the_view_shows_the_source_and_every_stage(site):
    shown = site.soup("a/code")
    source = shown.select_one(".compile-source").get_text()
    assert "def double(x):" in source
    assert "FACTOR = 2.0" in shown.select_one(".compile-source details").get_text()
    assert shown.select_one(".compile-source summary").get_text().strip() == "what it needs"
    assert "x: float32[4,8]" in source
    stages = shown.select(".stage-tabs > label")
    assert [label.get_text().strip() for label in stages] == [
        *("jaxpr", "picture", "StableHLO", "optimized HLO", "cost")
    ]
    assert {label["data-sync-group"] for label in stages} == {"stage"}
    text = shown.select_one(".compile-stages").get_text()
    assert "b:f32[4,8] = mul 2.0 a" in text
    assert "module @jit_double {" in text
    assert "Compiled 2026-01-02 with jax 1.2.3. Nothing was run." in text
    assert not shown.select(".compile-state")


def test_declared_pytrees_are_named_by_their_arrays(site):
    named = site.soup("a/both").select(".compile-source > p code")
    assert [code.get_text() for code in named] == ["left: float32[4,8]", "y: float32[]"]


def test_a_page_loads_its_own_scripts_beside_that_of_its_view(site):
    scripts = [script["src"].partition("?")[0] for script in site.soup("a/both").select("[src]")]
    assert {"../_static/layouts.js", "../_static/origins.js"} <= {*scripts}


def test_devices_are_tabs_of_the_group_of_the_whole_book(site):
    shown = site.soup("a/code")
    labels = shown.select('label[data-sync-group="device"]')
    assert [label["data-sync-id"] for label in labels] == list(LABELS)
    assert [label.get_text().strip() for label in labels] == list(LABELS.values())
    # Radio buttons: they are reached and switched by the keyboard, without a script.
    for label in labels:
        assert shown.find(id=label["for"])["type"] == "radio"


def test_fused_operations_are_listed_and_their_lines_marked(site):
    shown = site.soup("a/code")
    marked = shown.select(".device-tabs .hll")
    assert len(marked) == len(LABELS)
    assert all("fusion(%x)" in line.get_text() for line in marked)
    listed = [item.get_text().strip() for item in shown.select(".compile-kernels li")]
    assert listed == ["my_fusion: mul"] * len(LABELS)
    assert "1 operation of the jaxpr became 1 fused kernel." in shown.get_text()


def test_costs_are_a_table_with_the_least_times_by_published_peaks(site):
    table = site.soup("a/code").select_one("table.compile-cost")
    rows = {
        cells[0].get_text().strip(): [cell.get_text().strip() for cell in cells[1:]]
        for row in table.select("tbody tr")
        if (cells := row.select("td"))
    }
    assert rows["floating-point operations"] == ["32 FLOP", "32 FLOP", "", "", *["32 FLOP"] * 2]
    assert rows["FLOP per byte"][0] == "0.125"
    assert rows["main memory traffic"] == ["256 B"] * 6
    # An H200 is held up by its operations, counted before optimizing, and a v5e by the bytes.
    assert rows["least possible time"] == ["", "", "4 µs", "", "2 µs", ""]
    sources = site.soup("a/code").select(".compile-stages a[href^='https://vendor.example']")
    assert [(link.get_text(), link["href"].rpartition("/")[2]) for link in sources] == [
        *(("NVIDIA H200", "TF32"), ("TPU v5e", "bfloat16"))
    ]
    assert "8 MFLOP/s in TF32" in sources[0].find_parent("p").get_text()
    assert rows["memory: arguments"][1] == "128 B"
    assert rows["memory: temporaries"][1] == "0 B"


def test_the_jaxpr_is_drawn_in_the_ink_of_the_page(site):
    drawing = site.soup("a/code").select_one("svg.jaxpr-picture")
    assert drawing["role"] == "img"
    assert "jaxpr of double" in drawing.title.get_text()
    assert [text.get_text() for text in drawing.select("text.label")] == ["x", "mul 2"]
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', str(drawing)))
    assert colours <= {"none", "currentColor"}


def test_stablehlo_that_differs_is_shown_for_each_group(site):
    labels = [
        label.get_text().strip() for label in site.soup("a/lowered").select(".lowered-tabs > label")
    ]
    assert labels == ["CPU", "NVIDIA H200, NVIDIA A100, TPU v5e, TPU v6e"]


def test_what_is_in_a_loop_has_no_least_time(site):
    text = site.soup("a/loop").get_text()
    assert "4 µs" in text and "2 µs" not in text
    assert "counts what is in a loop once" in text


def test_what_a_compiler_refuses_has_a_tab_with_its_words(site):
    some, none = (site.soup(f"a/{name}") for name in ("refused", "nowhere"))
    labels = [label.get_text().strip() for label in some.select(".stage-tabs > label")]
    assert labels == ["jaxpr", "picture", "StableHLO", "optimized HLO", "cost", "refused"]
    said = some.select(".stage-tabs > .stage-tab")[-1]
    assert said.p.text == f"For {LABELS['cpu']}, {LABELS['gpu-h200']}:"
    assert said.pre.text.strip() == "ValueError: blocks of 100"
    # Where nobody compiles it, that comes first, and there is no cost.
    labels = [label.get_text().strip() for label in none.select(".stage-tabs > label")]
    assert labels == ["refused", "jaxpr", "picture"]


def test_a_sentence_can_hold_a_number(site):
    shown = site.soup("a/numbers")
    first, none = shown.select(".noted > .compiled")
    assert first.get_text() == "2 µs"
    note = shown.find(id=first["aria-describedby"]).get_text()
    assert "TPU v5e: least possible time; compiled with" in note
    assert none.get_text() == "0 B"


def test_many_devices_as_a_table_and_charts(site):
    shown = site.soup("a/scale")
    rows = [
        [cell.get_text().strip() for cell in row.select("td")]
        for row in shown.select("table.compile-scale tbody tr")
    ]
    of_tpu = [row for row in rows if row[0] == "TPU v5e"]
    assert of_tpu[0][:6] == ["TPU v5e", "1", "2", "2", "none", ""]
    assert of_tpu[1][:7] == ["TPU v5e", "4", "8", "2", "1 all-reduce", "404 B", "606 B"]
    assert len(rows) == 12
    assert rows[-1][3:6] == ["1 all-reduce", "none", "2 all-reduce"]
    assert len(shown.select("svg.chart")) == 2
    assert shown.select_one(".chart-caption").get_text().strip() == "A caption."
    assert "def double(x):" in shown.select_one(".compile-source").get_text()


# Names that lead nowhere


UNKNOWN = {
    "form": (role("code.double"), "is not of the form function@device.field"),
    "device": (
        role("code.double@gpu-h20.bytes"),
        "there is no device 'gpu-h20'; the nearest are gpu-h200",
    ),
    "another-device": (
        role("code.double@x.bytes"),
        "there is no device 'x'; there are cpu, gpu-h200, gpu-a100, tpu-v5e, tpu-v6e, before",
    ),
    "field": (role("code.double@cpu.byte"), "there is no field 'byte'; the nearest are bytes"),
    "least": (role("code.double@cpu.least"), "there is no least of a.code.double for cpu"),
    "before": (
        role("code.double@before.kernels"),
        "there is no kernels of a.code.double for before",
    ),
    "name": (role("code.dubble@cpu.bytes"), "there is no snippet 'code.dubble'; the nearest"),
    "function": (directive("compiled", "code.dubble"), "there is no snippet 'code.dubble'; the ne"),
    "option": (
        directive("compiled-scale", "code.double", ":shows: table"),
        "Unknown option key: 'shows' (allowed: ['case', 'show'])",
    ),
    "case": (
        directive("compiled-scale", "code.double", ":case: it grow"),
        "there is no case 'it grow'; the nearest are it grows",
    ),
    "caption": (
        directive("compiled-scale", "code.double", ":show: flops", "", "A {nothing}`caption`."),
        'Unknown interpreted text role "nothing"',
    ),
    "show": (
        directive("compiled-scale", "code.double", ":show: tabel"),
        "there is no way 'tabel'; the nearest are table",
    ),
}


def test_each_name_that_leads_nowhere_is_red(project):
    book = started(project)
    recorded(book, "code")
    recorded(book, "code", "SCALED")
    for name, (text, _) in UNKNOWN.items():
        project.page(f"a/{name}", text, notebook=False)
    build = project.build()
    assert build.status != 0
    for name, (text, message) in UNKNOWN.items():
        (warning,) = [line for line in build.warnings if f"a/{name}.md:" in line]
        assert message in warning
        place = {"option": ":shows", "caption": "A {nothing}"}.get(name, text.splitlines()[0])
        assert f"a/{name}.md:{project.line(f'a/{name}', place)}: " in warning


# Records that are not current


def edited(before, after):
    return lambda record, module: module.write_text(SNIPPET.replace(before, after), "utf8")


# Of each kind one; the others `test_program_files` has.
STATES = {
    "missing": (lambda record, module: record.unlink(), "missing"),
    "damaged": (lambda record, module: record.write_text("{"), "unreadable: it is no JSON"),
    "source": (edited("FACTOR * x", "x * FACTOR"), "earlier code: the source changed"),
    "other": (edited("    return x\n", "    return -x\n"), None),
}


def test_a_page_says_what_is_not_current_and_the_build_stays_green(project):
    book = started(project, 'book_compile_command = "compile it"')
    records = {name: recorded(book, name) for name in STATES}
    modules = {name: book.root / "snippets" / "a" / f"{name}.py" for name in STATES}
    for name in STATES:
        project.page(f"a/{name}", VIEW.format(name), notebook=False)
    project.built()
    kept = {path: path.read_text("utf8") for path in (*records.values(), *modules.values())}
    for name, (change, _) in STATES.items():
        change(records[name], modules[name])
    project.built()
    for name, (_, state) in STATES.items():
        said = [each.get_text() for each in project.soup(f"a/{name}").select(".compile-state")]
        if state is None:
            assert said == [] and "my_fusion" in project.html(f"a/{name}")
        else:
            assert f"This program: {state}" in said[0]
            assert f"compiled anew by compile it -- a.{name}.double" in said[0]
    project.built()
    for path, text in kept.items():
        path.write_text(text, "utf8")
    project.built()
    assert not project.soup("a/missing").select(".compile-state")


# Books that compile nothing, or wrongly


def test_a_book_without_targets_says_so_where_a_page_names_a_function(project):
    project.configure()
    Sample(project.root).snippet()
    project.page("a/page", directive("compiled", "code.double"), notebook=False)
    build = project.build()
    assert build.status != 0
    (warning,) = build.warnings
    assert "book_targets of conf.py names no device to compile for" in warning
