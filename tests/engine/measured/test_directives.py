"""Tables and charts show the measurements that match a pattern, always as they are now."""

import shutil

import pytest

from tests.engine.conftest import RECORDS


@pytest.fixture(scope="module")
def site(empty_project, tmp_path_factory):
    """Build pages with tables and charts."""
    made = empty_project(tmp_path_factory.mktemp("site"))
    made.snippet("a.notes", RECORDS)
    made.page(
        "b/tables",
        made.cell(
            "note('x/a', 0.5, shape=[[3, 4], []])\n"
            "note('x/b', 0.125, 'jax', process={'throughput': [0.1] * 5})\n"
            "note('y', 1.0)",
            snippet="a.notes.note",
        ),
        "```{measurements} x/*\n:columns: name framework shape latency throughput processes\n```",
        "```{measurements} x/a y\n:columns: name throughput latency\n```",
        "```{measurements} y\n```",
    )
    made.page(
        "b/charts",
        made.cell(
            "for size in (64, 128):\n"
            "    note(f'mm/{size}', size / 1000, shape=[[size, size]], work=size * 1e8)\n"
            "note('most', 1.0, work=9e11)\n"
            "note('none', 1.0)",
            snippet="a.notes.note",
        ),
        "```{measurement-chart} mm/*\n:x: size\n:y: rate\n:ceiling: most mm/* none\n\n"
        "A *caption*.\n```",
        "```{measurement-chart} mm/*\n```",
    )
    cells = [made.cell(f"note('tag/{tag}', 0.5)", "a.notes.note", tag) for tag in ("raw", "kept")]
    made.page("b/raw", *cells, "```{measurements} tag/*\n```")
    made.built()
    return made


def test_a_table_holds_what_matches_and_the_columns_asked_for(site):
    first, second, third = site.soup("b/tables").select("table.measurements")
    assert site.rows(first) == [
        ["measurement", "framework", "shape", "latency", "throughput", "processes"],
        ["a", "python", "3×4, scalar", "500 ms", "", "1"],
        ["b", "JAX", "", "125 ms", "100 ms", "1"],
    ]
    # Neither has a throughput.
    assert site.rows(second) == [["measurement", "latency"], ["x, a", "500 ms"], ["y", "1 s"]]
    assert site.rows(third) == [
        ["measurement", "framework", "latency", "first call"],
        ["y", "python", "1 s", "3 s"],
    ]
    assert [note.text for note in site.soup("b/tables").select(".table-note")] == [
        "One process: latency, throughput.",
        "One process: latency.",
        "One process: latency, first call.",
    ]


def test_a_chart_has_its_caption_and_its_table_beneath(site):
    lines, bars = site.soup("b/charts").select(".chart-figure")
    for figure in (lines, bars):
        svg = figure.find("svg")
        assert svg.find("title") is not None
        assert len(svg.select(".point[tabindex='0'] > title")) == 2
        table = figure.select_one("details table.measurements")
        assert [row[0] for row in site.rows(table)] == ["measurement", "64", "128"]
        assert table.find_previous("svg") is svg
    assert str(lines.select_one(".chart-caption em")) == "<em>caption</em>"
    # A reader of screens hears no marks.
    assert lines.select_one("svg title").get_text().startswith("A caption.")
    assert "GFLOP/s" in lines.find("svg").get_text()
    assert lines.select_one(".ceiling").get_text() == "ceiling 900 GFLOP/s"
    assert not bars.select(".ceiling")
    assert "time of a call that is waited for" in bars.find("svg").get_text()


def test_measurements_that_a_cell_calls_raw_are_folded(site):
    folds = [each.get_text(" ", strip=True) for each in site.soup("b/raw").select("details")]
    (fold,) = (each for each in folds if "tag/" in each)
    assert "Show the raw measurements" in fold and "tag/raw" in fold


def test_what_was_measured_on_another_device_alone_bears_its_name(project, noting):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    there = project.stamp("an accelerator")
    there.touch()
    code = f"import os\n\nif os.path.exists({str(there)!r}):\n    note('x/a', 0.5)"
    project.page(
        "b/one",
        project.cell(code, snippet="a.notes.note"),
        "```{measurements} x/*\n:columns: name latency\n```",
    )
    project.recorded()
    project.recorded_elsewhere("b/one")
    shutil.rmtree(project.root / "_cache")
    there.unlink()
    project.built()
    (table,) = project.soup("b/one").select("table.measurements")
    (label,) = table.find_parent(class_="device-tabs").select(".sd-tab-label")
    assert label.get_text(strip=True) == "NVIDIA H200"
    assert project.rows(table)[1:] == [["x, a", "500 ms"]]


def test_of_what_is_not_recorded_the_place_and_the_caption_remain(project, noting):
    project.page(
        "b/one",
        project.cell("note('x/a', 0.5)\nnote(f'{1}/b', 0.5)", snippet="a.notes.note"),
        "```{measurements} x/*\n```",
        "```{measurement-chart} x/*\nA *caption*.\n```",
    )
    build = project.built("-D", "book_recorded=1")
    table, chart = project.soup("b/one").select(".not-recorded")
    assert table.text == chart.text == "not recorded"
    assert str(chart.find_next("em")) == "<em>caption</em>"
    assert "not recorded" in project.notebook("b/one").cells[-1].source

    project.edit(project.path("b/one"), "{measurement-chart} x/*", "{measurement-chart} xx/*")
    build = project.build()
    line = project.line("b/one", "{measurement-chart}")
    (warning,) = build.warnings
    assert f"docs/b/one.md:{line}: WARNING: no measurement matches xx/*" in warning
    assert "the nearest are x/a" in warning


def test_a_chart_leads_to_the_settings_under_which_all_was_measured(project, noting):
    chart = "```{measurement-chart} x\n```"
    project.page("b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"), chart)
    project.built()
    assert not project.soup("b/one").select(".measurement-rules")
    project.page("b/two", "```{measurement-settings}\n```", notebook=False)
    project.page("b/one", project.cell("note('x', 0.25)", snippet="a.notes.note"), chart)
    project.built()
    (link,) = project.soup("b/one").select(".measurement-rules a")
    assert (link["href"], link.get_text()) == ("two.html", "Page b/two")
