"""What pages measure is published, and shown on any page, always as it is now."""

import re
import shutil

import pytest
from bs4 import BeautifulSoup

TIMER = "snippets/timing/timer.py"


def soup(project, docname, out="build/html"):
    return BeautifulSoup(project.html(docname, out), "html.parser")


def rows(table):
    return [
        [cell.get_text(strip=True) for cell in row.find_all(["th", "td"])]
        for row in table.find_all("tr")
    ]


def test_records_are_published_with_their_pages(project, noting):
    project.page("b/two", project.cell("note('x/b', 0.5)", snippet="a.notes.note"))
    project.page(
        "b/one",
        project.cell("note('x/a', 0.25)\nnote('x/a', 0.75, 'jax')", snippet="a.notes.note"),
        project.cell("1"),
    )
    assert project.build().green
    published = project.records()
    assert [(r["page"], r["name"], r["framework"], r["median"]) for r in published] == [
        ("b/one", "x/a", "python", 0.25),
        ("b/one", "x/a", "jax", 0.75),
        ("b/two", "x/b", "python", 0.5),
    ]
    assert published[0]["samples"] == [0.25] * 5
    assert published[0]["first_call"] == 0.75

    project.path("b/one").unlink()
    assert project.build().green
    assert [r["page"] for r in project.records()] == ["b/two"]


def test_the_timer_of_the_book_makes_records_that_the_engine_can_show(project, request):
    timer = project.root / TIMER
    timer.parent.mkdir(parents=True)
    shutil.copy(request.config.rootpath / TIMER, timer)
    project.page(
        "b/one",
        project.cell(
            "import numpy as np\n"
            "measure('sum/np', np.sum, np.ones((3, 4), 'float32'), work=12.0, budget=0.01)",
            snippet="timing.timer.measure",
        ),
        "It took {measured}`sum/np@numpy`, first {measured}`sum/np@numpy.first_call`, "
        "at {measured}`sum/np@numpy.rate` on {measured}`sum/np@numpy.threads` threads "
        "in {measured}`sum/np@numpy.samples` samples ± {measured}`sum/np@numpy.spread`.",
        "```{measurements} sum/*\n"
        ":columns: name framework device_kind shape dtype precision threads median spread "
        "first_call rate stable\n```",
        "```{measurement-chart} sum/*\n:x: size\n:y: rate\nA caption.\n```",
        benchmark=True,
    )
    build = project.build()
    assert build.green, build.output
    (record,) = project.records()
    assert record["page"] == "b/one"
    assert record["shape"] == [[3, 4]]
    page = soup(project, "b/one")
    assert len(page.select("abbr.measured")) == 6
    assert "–" not in [found.text for found in page.select("abbr.measured")]
    assert rows(page.select_one("table.measurements"))[1][:5] == [
        "sum/np",
        "numpy",
        "cpu",
        "3×4",
        "float32",
    ]
    assert project.html("b/one").count("sum/np [numpy]") == 1


def test_numbers_ratios_verdicts_and_quotes_stand_in_sentences(project, noting):
    project.page(
        "b/one",
        project.cell("note('slow', 0.5)\nnote('fast', 0.125)", snippet="a.notes.note"),
        benchmark=True,
    )
    project.page(
        "b/uses",
        "It took {measured}`slow@python`, {measured}`slow@python / fast@python` as long.",
        "{verdict}`slow@python / fast@python in 3.. ? holds : wrong`, {verdict}`out of date`.",
        "They say {quoted}`post: 332 ms`.",
    )
    assert project.build().green
    page = soup(project, "b/uses")
    assert [found.text for found in page.select(".measured")] == ["500 ms", "4×"]
    assert page.select_one(".measured")["title"] == (
        "slow: python 1.2.3 on cpu (A processor, 2 threads), 2026-01-02"
    )
    assert [(found.text, found["class"]) for found in page.select(".verdict")] == [
        ("holds", ["verdict", "verdict-holds"]),
        ("out of date", ["verdict", "verdict-out-of-date"]),
    ]
    (quote,) = page.select("a.quoted")
    assert (quote.text, quote["href"]) == ("“332 ms”", "https://post.example")
    assert quote["title"] == "quoted from A post, Somebody"


def test_a_table_holds_what_matches_and_the_columns_asked_for(project, noting):
    project.page(
        "b/one",
        project.cell(
            "note('x/a', 0.5, shape=[[3, 4], []])\n"
            "note('x/b', 0.125, 'jax', stable=False, spread=0.2)\n"
            "note('y', 1.0)",
            snippet="a.notes.note",
        ),
        "```{measurements} x/*\n:columns: name framework shape median spread stable\n```",
        "```{measurements} x/a y\n```",
    )
    assert project.build().green
    first, second = soup(project, "b/one").select("table.measurements")
    assert rows(first) == [
        ["measurement", "framework", "shape", "median", "spread", "stable"],
        ["x/a", "python", "3×4, scalar", "500 ms", "1%", "yes"],
        ["x/b", "jax", "–", "125 ms (unstable)", "20%", "no"],
    ]
    assert rows(second) == [
        ["measurement", "framework", "median", "spread", "first call"],
        ["x/a", "python", "500 ms", "1%", "1.5 s"],
        ["y", "python", "1 s", "1%", "3 s"],
    ]


def test_a_chart_has_its_caption_and_its_table_beneath(project, noting):
    project.page(
        "b/one",
        project.cell(
            "for size in (64, 128):\n"
            "    note(f'mm/{size}', size / 1000, shape=[[size, size]], rate=size * 1e9)",
            snippet="a.notes.note",
        ),
        "```{measurement-chart} mm/*\n:x: size\n:y: rate\nA *caption*.\n```",
        "```{measurement-chart} mm/*\n```",
    )
    assert project.build().green
    lines, bars = soup(project, "b/one").select(".measurement-figure")
    for figure in (lines, bars):
        svg = figure.find("svg")
        assert "currentColor" in str(svg)
        assert svg.find("title") is not None
        table = figure.select_one("details table.measurements")
        assert [row[0] for row in rows(table)] == ["measurement", "mm/64", "mm/128"]
        assert table.find_previous("svg") is svg
    assert str(lines.select_one(".measurement-caption em")) == "<em>caption</em>"
    assert "GFLOP/s" in lines.find("svg").get_text()
    assert "milliseconds (median)" in bars.find("svg").get_text()


PROBLEMS = {
    "role": ("{measured}`no/such@jax`", "no measurement is called 'no/such@jax'"),
    "form": ("{measured}`x`", "'x' is not of the form name@framework"),
    "verdict": ("{verdict}`splendid`", "'splendid' is no verdict; there are: holds"),
    "quote": ("{quoted}`book: 3 ms`", "quoted must name a source of book_sources (post)"),
    "table": ("```{measurements} no/*\n```", "no measurement matches no/*"),
    "chart": ("```{measurement-chart} no/*\n```", "no measurement matches no/*"),
    "size": ("```{measurement-chart} x\n:x: size\n```", "no measurement of x has x and y"),
    "rate": ("```{measurement-chart} x\n:y: rate\n```", "no measurement of x has x and y"),
    "colour": ("```{measurement-chart} x\n:columns: colour\n```", "there is no column 'colour'"),
    "column": ("```{measurements} x\n:columns: colour\n```", "there is no column 'colour'"),
}


def test_what_names_no_record_is_red_at_its_line_until_it_is_mended(project, noting):
    project.page("b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"))
    texts = [f"Before {name}:\n\n{text}" for name, (text, _) in PROBLEMS.items()]
    project.page("c/cells", "Prose.", project.cell("1"), "## Wrong", *texts)
    project.page("c/prose", "Prose.", *texts, notebook=False)
    for build in (project.build(), project.build()):
        assert build.status == 1
        for docname in ("c/cells", "c/prose"):
            for name, (_, message) in PROBLEMS.items():
                line = project.line(docname, f"Before {name}:") + 2
                place = rf"docs/{docname}\.md:{line}: (?:WARNING|ERROR): "
                assert re.search(place + ".*" + re.escape(message), build.output), (place, message)
    project.page("c/cells", "Mended.")
    project.page("c/prose", "Mended.")
    assert project.build().green


def test_pages_follow_the_records_of_other_pages(project, noting):
    measuring = project.page(
        "b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"), benchmark=True
    )
    project.page("c/uses", "It took {measured}`x@python`.", notebook=False)
    project.page("c/table", "```{measurements} x\n```", notebook=False)
    project.page("c/chart", "```{measurement-chart} x\n```", notebook=False)
    project.page("c/other", "Nothing measured.")
    line = project.line("c/uses", "It took")
    assert project.build().green
    assert "500 ms" in project.html("c/uses")

    project.edit(measuring, "0.5", "0.25")
    again = project.build()
    assert again.green
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
    assert project.build().green

    measuring.unlink()
    red = project.build()
    assert red.status == 1
    assert f"docs/c/uses.md:{line}: WARNING: no measurement is called 'x@python'" in red.output


def test_the_same_measurement_twice_is_red(project, noting):
    project.page("b/one", project.cell("note('x', 0.5)", snippet="a.notes.note"))
    project.page(
        "b/two", "Prose.", project.cell("note('x', 0.25)\nnote('x', 0.5, 'jax')", "a.notes.note")
    )
    for build in (project.build(), project.build()):
        assert build.status == 1
        assert (
            "docs/b/two.md: WARNING: the measurement x@python is made on b/one already"
            in build.output
        )
    project.edit(project.path("b/two"), "note('x', 0.25)", "note('y', 0.25)")
    assert project.build().green


@pytest.mark.parametrize("workers", ["1", "2"])
def test_reading_and_writing_in_parallel_changes_nothing(project, noting, workers):
    for number in range(6):
        following = (number + 1) % 6
        project.page(
            f"b/p{number}",
            project.cell(f"note('x/{number}', {number + 1})", snippet="a.notes.note"),
            f"Here {{measured}}`x/{number}@python`, there {{measured}}`x/{following}@python`.",
        )
    assert project.build("-j", workers).green
    for number in range(6):
        shown = [found.text for found in soup(project, f"b/p{number}").select(".measured")]
        assert shown == [f"{number + 1} s", f"{(number + 1) % 6 + 1} s"]
