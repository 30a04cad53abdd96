"""Numbers in sentences come from measurements; a name that there is not is red at its line."""

import re

import pytest

from executed.nodes import JOINER


def test_numbers_ratios_verdicts_and_quotes_stand_in_sentences(project, noting):
    project.page(
        "b/one",
        project.cell("note('slow', 0.5)\nnote('fast', 0.125)", snippet="a.notes.note"),
        benchmark=True,
    )
    project.page(
        "b/uses",
        "It took {measured}`slow@python`, and the fastest {fastest}`*@python`,",
        "{measured}`slow@python.first_call / fast@python.first_call` as long.",
        "{verdict}`slow@python.first_call / fast@python.first_call in 3.. ? holds : wrong`,",
        "{verdict}`out of date`.",
        "They say {quoted}`post: 332 ms`.",
    )
    project.page(
        "b/quotes",
        "It says {quoted}`post: a` and *then* {quoted}`post: b`.",
        "It says {quoted}`post: c`.",
        "| {quoted}`post: d` | e |\n|---|---|\n| {quoted}`post: f` | {quoted}`post: g` |",
        notebook=False,
    )
    project.built()
    page = project.soup("b/uses")
    assert [found.text for found in page.select(".measured")] == [
        "500 ms (one process)",
        "125 ms (one process)",
        "4.0× (one process)",
    ]
    assert page.select_one("[data-yours='measured fast@python']")
    first = page.select_one(".measured")
    assert first["tabindex"] == "0"
    assert page.find(id=first["aria-describedby"]).text == (
        "slow: python 1.2.3 on A processor, 2026-01-02. 1 process of 5 rounds, 1.0 cores busy."
    )
    notes = [found["aria-describedby"] for found in page.select(".noted [tabindex]")]
    assert len(set(notes)) == len(notes) == 4
    assert all(page.find(id=note)["role"] == "tooltip" for note in notes)
    assert [(found.text, found["class"]) for found in page.select(".verdict")] == [
        ("cannot tell", ["verdict", "verdict-cannot-tell"]),
        ("out of date", ["verdict", "verdict-out-of-date"]),
    ]
    (quote,) = page.select("a.quoted")
    assert (quote.text, quote["href"]) == ("“332 ms”", "https://post.example")
    assert quote["title"] == "quoted from A post, Somebody"
    # It is linked once in a paragraph, and once in a row.
    quotes = [(each.text, each.name) for each in project.soup("b/quotes").select(".quoted")]
    names = ("a", "span", "a", "a", "a", "span")
    assert quotes == [(f"“{text}”", name) for text, name in zip("abcdfg", names, strict=True)]


# One of each role and directive; what else is refused, `test_references` has.
PROBLEMS = {
    "measured": (
        "{measured}`x@pythn`",
        "no measurement is called 'x@pythn': there is no framework 'pythn'; the nearest are python",
    ),
    "compared": (
        "{compared}`x@python / xx@python`",
        "no measurement is called 'xx@python'; the nearest are x@python",
    ),
    "moments": ("{compared}`x@python / other@python`", "divides what was measured at different mo"),
    "never measured": ("{measured}`never@python`", "no measurement is called 'never@python'"),
    "fastest": (
        "{fastest}`y*@python / x*@python`",
        "no measurement matches 'y*@python'; the nearest are x@python",
    ),
    "verdict": (
        "{verdict}`x@python in 0.. ? holds : fails`",
        "'fails' is no verdict; there are: holds",
    ),
    "quoted": (
        "{quoted}`posts: 3 ms`",
        "quoted must name a source of book_sources (post), then ': ' and the text; "
        "the nearest are post",
    ),
    "table": ("```{measurements} x no/other\n```", "no measurement matches no/other"),
    "chart": (
        "```{measurement-chart} x xx\n```",
        "no measurement matches xx; the nearest are x",
    ),
    "size": ("```{measurement-chart} x\n:x: size\n```", "no measurement of x has x and y"),
    "rate": ("```{measurement-chart} x\n:y: rate\n```", "no measurement of x has x and y"),
    "intensity": (
        "```{measurement-chart} x\n:x: intensity\n:ceiling: x\n```",
        "a chart over intensities needs bandwidth and arrays",
    ),
    "arrays": (
        "```{measurement-chart} x\n:x: intensity\n:ceiling: x\n:bandwidth: x\n:arrays: xx=2\n```",
        "no measurement matches xx; the nearest are x",
    ),
    "operations": (
        "```{measurement-chart} x\n:x: intensity\n:ceiling: x\n:bandwidth: x\n:arrays: x=2\n"
        ":operations: xxx=2\n```",
        "no measurement matches xxx; the nearest are x",
    ),
    "colour": ("```{measurement-chart} x\n:columns: colour\n```", "there is no column 'colour'"),
    "column": ("```{measurements} x\n:columns: colour\n```", "there is no column 'colour'"),
}


def test_what_names_no_record_is_red_at_its_line_until_it_is_mended(project, noting):
    notes = "note('x', 0.5)\nnote('other', 0.5)\nif False:\n    note('never', 0.5)"
    project.page("b/one", project.cell(notes, snippet="a.notes.note"))
    texts = [f"Before {name}:\n\n{text}" for name, (text, _) in PROBLEMS.items()]
    project.page("c/cells", "Prose.", project.cell("1"), "## Wrong", *texts)
    project.page("c/prose", "Prose.", *texts, notebook=False)
    for build in (project.build(), project.build()):
        assert build.status == 1
        for docname in ("c/cells", "c/prose"):
            for name, (text, message) in PROBLEMS.items():
                # An option has a line of its own.
                line = project.line(docname, f"Before {name}:") + 2 + (":columns:" in text)
                place = rf"docs/{docname}\.md:{line}: (?:WARNING|ERROR): "
                assert re.search(place + ".*" + re.escape(message), build.output), (place, message)
    project.page("c/cells", "Mended.")
    project.page("c/prose", "Mended.")
    project.built()


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("{measured}`x@python.mean`", "there is no field 'mean'"),
        ("{measured}`x`", "'x' is not of the form name@framework"),
        ("{compared}`x@python / y@python / z@python`", "has more than one ' / '"),
        ("{paid}`x@python`", "'x@python' is not of the form REFERENCE / REFERENCE"),
        ("{verdict}`x@python in 3.. ? fine : wrong`", "'fine' is no verdict"),
        ("{verdict}`x@python in 3 ? holds : wrong`", "'3' is no range"),
    ],
)
def test_a_role_that_cannot_be_read_is_red_at_its_line_though_nothing_was_measured(
    project, role, words
):
    project.page("c/prose", "Prose.", f"It takes {role}.", notebook=False)
    for build in (project.build(), project.build()):
        assert build.status == 1
        (warning,) = build.warnings
        assert f"c/prose.md:{project.line('c/prose', 'It takes')}: WARNING: " in warning
        assert words in warning


def test_a_page_that_failed_draws_no_further_warnings_and_hides_none_for_good(project, noting):
    cells = [project.cell("note('y', 0.5)", snippet="a.notes.note"), project.cell("1 / 0")]
    failing = project.page("a/one", *cells)
    page = project.page("b/one", project.cell("note('x', 0.5)", snippet="a.notes.not"))
    texts = (
        "{measured}`x@python` {measured}`y@python` {measured}`z@python`",
        "```{measurements} x\n```",
        "```{error-entry} ValueError: z\nWhat it means.\n```",
    )
    project.page("c/uses", *texts, notebook=False)
    build = project.build()
    assert build.status == 1
    raised, lacking = sorted(build.warnings)
    assert "docs/a/one.md" in raised and "ZeroDivisionError" in raised
    assert "docs/b/one.md" in lacking and "there is no snippet" in lacking
    shown = [found.text for found in project.soup("c/uses").select(".not-recorded")]
    missing = [f"not recorded: {name} with python" for name in "xyz"]
    assert shown == [*missing, "not recorded"]
    project.edit(failing, "1 / 0", "1 / 1")
    project.edit(page, "a.notes.not\n", "a.notes.note\n")
    first, second = sorted(project.build().warnings)
    assert "no cell of the book declares the error 'ValueError: z'" in first
    assert "no measurement is called 'z@python'" in second


def warnings(build, docname):
    return re.findall(rf"docs/{docname}\.md:\d+: WARNING: (.*?)(?: \[book\.|$)", build.output, re.M)


def test_as_long_as_a_page_was_executed_nowhere_unknown_names_may_be_its_own(project, noting):
    project.page("b/one", project.cell("note('y', 0.5)", "a.notes.note"))
    names = "{measured}`y@python` {measured}`z@python` {verdict}`y@python in 1.. ? holds : wrong`"
    tables = "```{measurements} y\n```", "```{measurement-chart} y\n```"
    uses = project.page("c/uses", names, *tables, notebook=False)
    build = project.built("-D", "book_recorded=1")
    assert [found.text for found in project.soup("c/uses").select(".not-recorded")] == [
        "not recorded: y with python",
        "not recorded: z with python",
        "not recorded: y with python",
        "not recorded",
        "not recorded",
    ]
    project.recorded()
    for build in (project.build("-D", "book_recorded=1"), project.build("-D", "book_recorded=1")):
        assert build.status == 1
        (told,) = warnings(build, "c/uses")
        assert told == "no measurement is called 'z@python'; the nearest are y@python"
    project.edit(uses, "{measured}`z@python`", "")
    project.built("-D", "book_recorded=1")


def test_a_name_that_only_other_code_measured_elsewhere_is_not_recorded(project, noting):
    page = project.page("b/one", project.cell("note('old', 0.5)", "a.notes.note"))
    project.page("c/uses", "It took {measured}`old@python`.", notebook=False)
    project.recorded()
    project.recorded_elsewhere("b/one")
    project.built()
    project.edit(page, "'old'", "'new'")
    project.built()
    assert "It took not recorded on gpu-h200 with this code." in project.soup("c/uses").text
    project.page("c/uses", "{measured}`new@python`, {measured}`new@python on gpu-h200`")
    project.built()
    assert project.soup("c/uses").select_one(".not-recorded").text == "not recorded on gpu-h200"
    here, there = "{measured}`new@python`", "{measured}`new@python on gpu-h200`"

    def cells(*rows):
        lines = ["| | here | there |", "|-|-|-|", *(f"| {' | '.join(row)} |" for row in rows)]
        project.page("c/uses", "\n".join(lines), notebook=False)
        project.built()
        page = project.soup("c/uses")
        notes = [note.get_text() for note in page.select(".table-note")]
        notes = [note for note in notes if "not recorded" in note]
        found = [
            [cell.get_text(strip=True) for cell in row("td")] for row in page.select("tbody tr")
        ]
        return [[text.partition(" ms")[0] for text in row] for row in found], notes

    assert cells(("x", here, there), ("y", "", "yes")) == (
        [["x", "500", "–"], ["y", "", "yes"]],
        ["–: not recorded on gpu-h200."],
    )
    # What an author typed is no gap.
    typed = [["x", "–", "–"], ["y", "–", "1"]]
    assert cells(*typed) == (typed, [])
    left_out = "Left out, not recorded on gpu-h200"
    assert cells(("x", here, there), ("y", here, "")) == (
        [["x", "500"], ["y", "500"]],
        [f"{left_out}: there."],
    )
    both = [f"{left_out}: y; there."]
    assert cells(("x", here, there), ("y", "", there)) == ([["x", "500"]], both)
    assert cells(("x", there, there), ("y", "", there)) == ([], [f"{left_out}: x; y."])


def test_a_ratio_of_one_comparison_is_shown_with_its_range(project, noting):
    project.page(
        "b/one", project.cell("contest('x', 1.9, 2.0, 2.1, apart=True)", "a.notes.contest")
    )
    project.page(
        "b/two", project.cell("contest('y', 0.9, 1.02, 1.4, apart=True)", "a.notes.contest")
    )
    project.page(
        "b/three", project.cell("contest('z', 0.97, 1.0, 1.03, apart=True)", "a.notes.contest")
    )
    ratios = [f"`{name}/slow@python / {name}/fast@python`" for name in "xyz"]
    project.page(
        "x/uses",
        *(f"{{measured}}{ratio}" for ratio in ratios),
        *(f"{{compared}}{ratio}" for ratio in ratios),
        "{compared}`x/fast@python / x/slow@python`",
        "{verdict}`x/slow@python / x/fast@python in 2.. ? holds : wrong`",
        "{verdict}`x/slow@python / x/fast@python in 1.5.. ? holds : wrong`",
    )
    project.built()
    built = (project.root / "build/html/x/uses.html").read_text("utf8")
    assert f"2.0× slower (1.9–{JOINER}2.1)" in built
    page = project.soup("x/uses")
    unsure = "cannot tell (0.90–1.4×)", "about equal (within 4 %)"
    assert [each.text for each in page.select(".noted > .measured")] == [
        "2.0× (1.9–2.1)",
        *unsure,
        "2.0× slower (1.9–2.1)",
        *unsure,
        "2.0× faster (1.9–2.1)",
    ]
    # Words may be broken into lines, a number and its unit may not.
    assert [each.text for each in page.select(".in-words")] == [*unsure] * 2
    assert [each.text for each in page.select(".noted > .verdict")] == ["cannot tell", "holds"]
    # Each process is a dot behind its number, by logarithms.
    dots = page.select_one(".noted .note > svg.dots path")["d"]
    assert dots == "M0 3h0M51 3h0M100 3h0"


def test_the_device_of_a_number_is_said_where_there_are_several_or_the_role_names_it(
    project, noting
):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    project.page("b/one", project.cell("note('x', 0.5)", "a.notes.note"))
    # The words of a verdict name no device.
    verdict = "{verdict}`x@python in ..1 ? holds : not here`"
    numbers = f"{{measured}}`x@python` and {{measured}}`x@python on cpu`, {verdict}"
    project.page("c/uses", numbers, notebook=False)
    project.recorded()
    project.built()
    devices = [each.text.strip() for each in project.soup("c/uses").select(".on-device")]
    assert devices == ["CPU"]
    project.recorded_elsewhere("b/one")
    project.built()
    marks = project.soup("c/uses").select(".on-device")
    assert [each.text.strip() for each in marks] == ["CPU", "CPU", "CPU"]
    # They show to who reads about another device.
    assert all("at-home" in each["class"] for each in marks)


def test_what_all_numbers_of_a_column_or_row_share_is_said_once(project, noting):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    measuring = project.cell("note('x', 0.5)\nnote('y', 0.25)", snippet="a.notes.note")
    project.page("b/one", project.cell("'before'"), measuring)
    here, there = "{measured}`x@python`", "{measured}`y@python on gpu-h200`"
    project.page(
        "c/uses",
        f"| time of | CPU | H200 |\n|---|---|---|\n| x | {here} | {there} |\n"
        f"| y | {here} | {there} |\n\n"
        f"| time | x | y |\n|---|---|---|\n| H200 | {there} | {there} |\n"
        f"| it | {there}, {here} | {there}, {there} |\n",
        notebook=False,
    )
    project.recorded()
    project.recorded_elsewhere("b/one")
    project.page("b/one", project.cell("'changed'"), measuring)
    project.built()
    for hidden in (page := project.soup("c/uses")).select(".note"):
        hidden.decompose()
    by_column, by_row = (
        [[" ".join(cell.text.split()) for cell in row.select("th, td")] for row in table("tr")]
        for table in page("table")
    )
    assert by_column == [
        ["time of", "CPU", "H200"],
        ["x", "500 ms", "250 ms†"],
        ["y", "500 ms", "250 ms†"],
    ]
    alone = "250 ms (one process)† NVIDIA H200"
    assert by_row[1:] == [
        ["H200", "250 ms†", "250 ms†"],
        ["it", f"{alone}, 500 ms (one process) CPU", f"{alone}, {alone}"],
    ]
    since = "† NVIDIA H200, 2026-01-02: other code of its page has changed since."
    notes = [note.text for note in page.select(".table-note")]
    assert notes == ["One process: CPU, H200.", since, "One process: H200.", since]


def test_a_number_in_a_heading_is_red_at_its_line(project, noting):
    project.configure('myst_enable_extensions = ["colon_fence"]')
    project.page(
        "b/one",
        project.cell("note('x', 0.5)", snippet="a.notes.note"),
        "## It took {measured}`x@python`",
        ":::{admonition} In {measured}`x@python`\nA title that is no heading.\n:::",
        "## It {verdict}`x@python.first_call / x@python in 1.. ? holds : fails`",
        "## It was {compared}`x@python.first_call / x@python`",
    )
    build = project.build()
    assert build.status == 1
    assert [warning.partition("docs/")[2].partition("; ")[0] for warning in build.warnings] == [
        f"b/one.md:{project.line('b/one', role)}: WARNING: '{text}' stands in a heading"
        for role, text in (
            ("{measured}", "x@python"),
            ("{verdict}", "x@python.first_call / x@python in 1.. ? holds : fails"),
            ("{compared}", "x@python.first_call / x@python"),
        )
    ]
    page = project.soup("b/one")
    assert "It took x@python" in page.text
    assert page.select_one(".admonition-title .measured").text == ("500 ms (one process)")
