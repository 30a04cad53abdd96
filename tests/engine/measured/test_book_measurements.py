"""What pages measure is published, and shown on any page, always as it is now."""

import re
import shutil

TIMER = "snippets/programs/timer.py"


def test_records_are_published_with_their_pages(project, noting):
    project.page("b/two", project.cell("note('x/b', 0.5)", snippet="a.notes.note"))
    project.page(
        "b/one",
        project.cell("note('x/a', 0.25)\nnote('x/a', 0.75, 'jax')", snippet="a.notes.note"),
        project.cell("1"),
    )
    project.built()
    published = project.records()
    assert [
        (r["page"], r["name"], r["framework"], *r["processes"][0]["latency"][:1]) for r in published
    ] == [
        ("b/one", "x/a", "python", 0.25),
        ("b/one", "x/a", "jax", 0.75),
        ("b/two", "x/b", "python", 0.5),
    ]
    assert published[0]["processes"][0]["latency"] == [0.25] * 5
    assert published[0]["processes"][0]["first_call"] == 0.75

    project.path("b/one").unlink()
    project.built()
    assert [r["page"] for r in project.records()] == ["b/two"]


def test_the_timer_of_the_book_makes_records_that_the_engine_can_show(project, request):
    timer = project.root / TIMER
    timer.parent.mkdir(parents=True)
    shutil.copy(request.config.rootpath / TIMER, timer)
    project.page(
        "b/one",
        project.cell(
            "import numpy as np\nmeasure('sum/np', np.sum, np.ones((3, 4), 'float32'), work=12.0)",
            snippet="programs.timer.measure",
        ),
        "It took {measured}`sum/np@numpy`, first {measured}`sum/np@numpy.first_call`, "
        "at {measured}`sum/np@numpy.rate`.",
        "```{measurements} sum/*\n"
        ":columns: name framework device_kind shape dtype precision latency first_call rate\n```",
        "```{measurement-chart} sum/*\n:x: size\n:y: rate\nA caption.\n```",
        benchmark=True,
    )
    project.built()
    (record,) = project.records()
    assert record["page"] == "b/one"
    assert record["shape"] == [[3, 4]]
    page = project.soup("b/one")
    assert len(page.select(".measured")) == 3
    assert "–" not in [found.text for found in page.select(".measured")]
    assert project.rows(page.select_one("table.measurements"))[1][:5] == [
        "sum, np",
        "NumPy",
        "cpu",
        "3×4",
        "float32",
    ]
    assert project.html("b/one").count("sum/np [numpy]") == 1


def test_pages_follow_the_records_of_other_pages(project, noting):
    measuring = project.page(
        "b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"), benchmark=True
    )
    project.page("c/uses", "It took {measured}`x@python`.", notebook=False)
    project.page("c/table", "```{measurements} x\n```", notebook=False)
    project.page("c/chart", "```{measurement-chart} x\n```", notebook=False)
    project.page("c/other", "Nothing measured.")
    line = project.line("c/uses", "It took")
    project.built()
    assert "500 ms" in project.html("c/uses")

    project.edit(measuring, "0.5", "0.25")
    again = project.built()
    assert again.executed == ["b/one"]
    for docname in ("c/uses", "c/table", "c/chart"):
        assert "250 ms" in project.html(docname)
        assert "500 ms" not in project.html(docname)
    assert not re.search(r"writing output.* c/other", again.output)
    assert not re.search(r"reading sources.* c/uses", again.output)

    project.edit(measuring, "note('x'", "note('renamed'")
    red = project.build()
    assert red.status == 1
    assert f"docs/c/uses.md:{line}: WARNING: no measurement is called 'x@python'" in red.output
    red = project.build()
    assert red.status == 1
    assert red.executed == []
    assert f"docs/c/uses.md:{line}: WARNING: no measurement is called 'x@python'" in red.output
    project.edit(measuring, "note('renamed'", "note('x'")
    project.built()

    measuring.unlink()
    red = project.build()
    assert red.status == 1
    assert f"docs/c/uses.md:{line}: WARNING: no measurement is called 'x@python'" in red.output


def test_a_measurement_made_twice_or_that_the_schema_does_not_allow_is_red(project, noting):
    project.page("b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"))
    twice = project.page(
        "b/two", "Prose.", project.cell("note('x', 0.25)\nnote('x', 0.5, 'jax')", "a.notes.note")
    )
    none = project.page(
        "b/three",
        "Prose.",
        project.cell("note('u', 0.5)", snippet="a.notes.note"),
        project.cell("note('y', 0.5, work=True)\nnote('z', 0.5, version=2)"),
    )
    line = project.line("b/three", "note('y'") - 1
    ratio = "{measured}`x@python.first_call / x@python`"
    project.page("c/uses", ratio, "```{measurements} x\n```", notebook=False)
    said = "the cell displays a measurement that is none: the record"
    for build in (project.build(), project.build()):
        assert build.status == 1
        (made_twice,) = [each for each in build.warnings if "docs/b/two.md" in each]
        assert "WARNING: the measurement x@python is made on b/one too" in made_twice
        for problem in ("work must be number or null", "version must be one of [3]"):
            assert f"docs/b/three.md:{line}: WARNING: {said}.{problem}" in build.output
        assert not any("c/uses" in each for each in build.warnings)
        assert "b/three" not in {record["page"] for record in project.records()}
    project.edit(twice, "note('x', 0.25)", "note('w', 0.25)")
    project.edit(none, "work=True", "work=1")
    project.edit(none, "version=2", "version=3")
    project.built()
    assert sorted(record["name"] for record in project.records()) == [*"uwxxyz"]


def test_reading_and_writing_in_parallel_changes_nothing(project, noting):
    for number in range(6):
        following = (number + 1) % 6
        project.page(
            f"b/p{number}",
            project.cell(f"note('x/{number}', {number + 1})", snippet="a.notes.note"),
            f"Here {{measured}}`x/{number}@python`, there {{measured}}`x/{following}@python`.",
        )
    project.built("-j", "3")
    for number in range(6):
        shown = [found.text for found in project.soup(f"b/p{number}").select(".measured")]
        assert shown == [f"{each + 1}.00 s (one process)" for each in (number, (number + 1) % 6)]


def test_without_a_schema_no_output_is_a_measurement(project, noting):
    project.configure('book_measurements = ""')
    project.page("b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"))
    project.built()
    assert project.records() == []
    assert "x was measured" in project.html("b/one")


def test_a_schema_that_is_not_there_ends_the_build_with_its_name(project):
    project.configure('book_measurements = "nothing.json"')
    build = project.build()
    assert build.status == 2
    assert "Configuration error!" in build.output
    assert "book_measurements of conf.py: " in build.output
    assert "nothing.json" in build.output


def test_pages_follow_the_schema(project, noting):
    project.page("b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"))
    project.built()
    path = project.root / "measurement.schema.json"
    project.edit(path, '"maximum": 1000000000.0}', '"maximum": 1}')
    build = project.build()
    assert build.status == 1
    assert "the record.processes[0].first_call cannot be validated" in build.output


def test_numbers_of_a_forged_recording_are_refused_or_short(project, noting):
    project.page("b/one", project.cell("note('x', 0.5)\nnote('y', 0.5)", "a.notes.note"))
    ratio = "{measured}`x@python.first_call / y@python.first_call`"
    project.page("c/uses", ratio, notebook=False)
    project.recorded("b/one")
    path = project.recording("b/one")
    text = path.read_text("utf8")
    path.write_text(text.replace('"first_call": 1.5', '"first_call": 1e-300', 1), "utf8")
    project.build("-D", "book_recorded=1")
    listed = project.run("list_recordings").stdout
    assert "unreadable: its cell" in listed
    assert "first_call cannot be validated" in listed
    path.write_text(text.replace('"first_call": 1.5', '"first_call": 1e9', 1), "utf8")
    project.built("-D", "book_recorded=1")
    shown = project.soup("c/uses").select_one(".measured").text
    assert shown == "670000000× (one process)"


def test_a_process_that_was_disturbed_is_not_published(project, noting):
    """It goes from all that its page measured, whose processes are the same."""
    each = "[{'disturbed': %s, 'latency': [1.0 + n] * 5} for n in range(3)]"
    code = "\n".join(
        f"note('{name}', 1.0, processes=[one_process(1.0, **p) for p in {each % of}])"
        for name, of in (("x", "n == 1"), ("y", "False"))
    )
    project.page("b/one", project.cell(code, "a.notes.note a.notes.one_process"))
    project.page("c/uses", "{measured}`x@python` {measured}`y@python`", notebook=False)
    project.built()
    shown = [each.text for each in project.soup("c/uses").select(".measured")]
    assert shown == ["2.0 s (1.0–3.0)"] * 2
