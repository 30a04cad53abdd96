"""Which framework is fastest at some work: from records to the words of a table."""

import types

import pytest
from selectolax.lexbor import LexborHTMLParser

from drawing import strips
from drawing.svg import INKS
from executed.options import Options
from measured.fastest import Work, against, answer, best, factors, otherwise, size_of
from measured.schema import Measurement
from tests.engine.records import measured

LABELS = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy"}
OPTIONS = Options(frameworks={name: {"label": label} for name, label in LABELS.items()})
STEADY = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)


def one(name, framework, seconds, processes=STEADY, comparison="work", **fields):
    """Return a measurement: in each process five rounds, as long as it says."""
    plain = measured(name, [seconds], framework, **fields)
    known = plain["processes"][0]
    plain["processes"] = [known | {"latency": [seconds * each] * 5} for each in processes]
    place = {"page": "a/page", "device": "cpu", "comparison": comparison}
    return Measurement.from_plain(plain | place)


def said(*measurements):
    return answer(best(measurements), OPTIONS.framework_label)


def test_a_line_names_a_work_and_what_does_it():
    entries = "float64/product float64/other -float64/product/float32"
    work = Work.from_line(f"float64: 1024×1024: {entries}")
    assert work.words == "float64: 1024×1024"
    counted = ("float64/product/float64", "float64/product", "float64/other", "float64/other/jit")
    assert all(map(work.counts, counted))
    others = ("float64/product/float32", "float64/products", "float64", "float64/product/a/b")
    assert not any(map(work.counts, others))


@pytest.mark.parametrize("line", ["64×64", "64×64:", "64×64: -selu", ": selu"])
def test_a_line_without_words_or_names_is_none(line):
    with pytest.raises(ValueError, match="is not of the form WORDS: NAMES"):
        Work.from_line(line)


def test_of_each_framework_the_fastest_counts_whatever_page_it_is_on():
    slow, fast = one("work/eager", "jax", 4.0), one("work/jit", "jax", 2.0)
    elsewhere = one("other/compile", "torch", 1.0, comparison="other")
    found = best([slow, fast, one("work/eager", "torch", 3.0), elsewhere])
    assert found == [elsewhere, fast]


def test_the_fastest_is_told_from_the_next_and_from_no_other():
    three = one("work", "numpy", 1.0), one("work/jit", "jax", 4.0), one("work/eager", "torch", 9.0)
    found = said(*three)
    assert found.text == "NumPy, 4.00× faster than JAX"
    assert found.leading == ("numpy",)


def test_what_is_equal_or_cannot_be_told_names_both():
    found = said(one("work", "numpy", 1.0), one("work/jit", "jax", 1.0))
    assert found.text.startswith("NumPy and JAX: about equal (within ")
    assert found.leading == ("numpy", "jax")
    wide = (0.5, 0.6, 0.8, 1.0, 1.1, 1.2, 1.4, 1.5, 1.8, 2.0)
    found = said(one("work", "numpy", 1.0, wide), one("work/jit", "jax", 1.2))
    assert found.text.startswith("NumPy or JAX: cannot tell (")
    assert found.leading == ("numpy", "jax")


def test_of_one_process_there_are_times_and_no_verdict():
    found = said(one("work", "numpy", 2.0, (1.0,)), one("work/jit", "jax", 1.0, (1.0,)))
    assert found.text == "JAX 1 s, NumPy 2 s"
    assert found.leading == ()


def test_a_framework_alone_has_a_time_and_no_verdict():
    assert said(one("work/jit", "jax", 1.0)) == answer(
        [one("work/jit", "jax", 1.0)], OPTIONS.framework_label
    )
    assert said(one("work/jit", "jax", 1.0)).leading == ()


def test_what_took_no_turns_has_the_widest_range_that_both_allow():
    # The two swing together, so in turns they are told apart.
    swing = (0.7, 0.8, 0.9, 1.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
    fast, slow = one("work/jit", "jax", 1.0, swing), one("work/eager", "torch", 1.2, swing)
    assert against(slow, fast).differs
    apart = one("other/eager", "torch", 1.2, swing, comparison="other")
    ratio = against(apart, fast)
    assert (ratio.low, ratio.high) == pytest.approx((1.2 * 0.8 / 1.4, 1.2 * 1.4 / 0.8))
    assert not ratio.differs
    assert said(apart, fast).text.startswith("JAX or PyTorch: cannot tell")


def test_a_machine_that_lacks_one_of_the_two_fastest_says_nothing_of_a_row():
    here = [one("work", "numpy", 1.0), one("work", "jax", 2.0), one("work", "torch", 9.0)]

    def book(*there):
        known = {(each.name, each.framework): {"Mine": each} for each in there}
        elsewhere = {"Mine": types.SimpleNamespace(by_name=known)}
        return types.SimpleNamespace(once=lambda _: elsewhere, home="cpu", options=OPTIONS)

    others = one("work", "jax", 1.0), one("work", "torch", 9.0)
    assert otherwise(book(*others), here) == {}
    found = otherwise(book(*others, one("work", "numpy", 3.0)), here)
    assert found["Mine"].text == "JAX, 3.00× faster than NumPy"
    assert otherwise(book(*here), here) == {}
    second = one("work", "numpy", 1.0), one("work", "jax", 8.0), one("work", "torch", 2.0)
    assert otherwise(book(*second), here)["Mine"].text == "NumPy, 2.00× faster than PyTorch"


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ([[100, 100], []], "small"),
        ([[4], [100, 101]], "medium"),
        ([[1000, 1000]], "medium"),
        ([[2**20]], "large"),
        ([], ""),
        ([[]], "small"),
    ],
)
def test_the_largest_array_says_the_size(shape, words):
    assert size_of([one("work/jit", "jax", 1.0, shape=shape)]) == words


PAGE = """note('work/jit', 0.25, 'jax', shape=[[8]])
note('work/eager', 0.5, 'jax')
note('work/eager', 0.125, 'torch')"""


def test_a_table_has_a_row_for_each_work_with_a_link_and_a_note_of_all(project, noting):
    project.page("a/page", project.cell(PAGE, snippet="a.notes.note"))
    table = "```{measurement-fastest}\nsome work: work\n\nthe same: work/eager\n```"
    project.page("b/table", table)
    project.built()
    soup = project.soup("b/table")
    rows = [[cell.find("p") for cell in row.select("td")] for row in soup.select("tbody tr")]
    assert [words.a["href"] for words, _ in rows] == ["../a/page.html"] * 2
    assert [of_cpu.find(class_="measured").text for _, of_cpu in rows] == [
        "PyTorch 125 ms, JAX 250 ms",
        "PyTorch 125 ms, JAX 500 ms",
    ]
    note = rows[0][1].find(class_="note").text
    assert "(work/eager)" in note and "(work/jit)" in note
    assert "One process" in soup.select_one(".table-note").text


def test_a_name_that_nothing_bears_is_a_warning_with_the_nearest(project, noting):
    table = "```{{measurement-fastest}}\nsome work: {}\n```"
    wrong = map(table.format, ("wrok", "work -work/non"))
    project.page("a/page", project.cell(PAGE, snippet="a.notes.note"), *wrong)
    first, second = project.build().warnings
    assert "no measurement is called 'wrok'; the nearest are work" in first
    assert "no measurement is called 'work/non'; the nearest are work" in second


BAR = '```{raw} html\n<div class="fastest-filter finder" role="group" hidden></div>\n```'
TABLES = """---
orphan: true
scripts: fastest.js
---

# Fastest

{bar}

## Small work

```{{measurement-fastest}}
a: work/a
b: work/b
```

## Large work

```{{measurement-fastest}}
c: work/c
```
"""
RACE = """
def race(name, size, **seconds):
    made = [
        measured(f"{name}/way", [1.0], framework, shape=[[size]], processes=[
            measured("", [each] * 5)["processes"][0] for _ in range(10)
        ])
        for framework, each in seconds.items()
    ]
    leave({"version": 3, "method": 2, "name": name, "alternatives": made})


race("work/a", 10, jax=1.0, torch=3.0)
race("work/b", 10**7, jax=2.0, torch=1.0)
race("work/c", 10**7, jax=1.0, torch=1.0)
"""


@pytest.fixture(scope="module")
def tables(lasting, served, browser):
    """Open a page with tables and a bar to choose among their rows."""
    lasting.page("a/page", lasting.cell(RACE, snippet="a.notes.leave a.notes.measured"))
    lasting.page("b/tables").write_text(TABLES.format(bar=BAR), "utf8")
    lasting.built()
    with served(lasting.root / "build" / "html") as address:
        page = browser.new_page()
        page.goto(f"{address}/b/tables.html")
        page.get_by_label("Kind of work").wait_for()
        yield page
        page.close()


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, "abc"),
        ({"Kind of work": "Large work"}, "c"),
        ({"Size": "small"}, "a"),
        ({"Size": "large"}, "bc"),
        ({"Fastest": "jax"}, "ac"),
        ({"Fastest": "torch", "Kind of work": "Small work"}, "b"),
        ({"Fastest": "torch", "Size": "small"}, ""),
        ({"Column": "CPU"}, "abc"),
    ],
)
def test_rows_are_chosen_by_kind_size_device_and_who_is_fastest(tables, chosen, words):
    for label in ("Kind of work", "Size", "Column", "Fastest"):
        tables.get_by_label(label).select_option(chosen.get(label, ""))
    shown = tables.locator("table.fastest tbody td:first-child:visible").all_inner_texts()
    assert "".join(shown) == words
    assert tables.get_by_role("status").inner_text() == f"{len(words)} of 3 rows"
    titles = tables.locator("h2:visible").all_inner_texts()
    assert len(titles) == ("a" in words or "b" in words) + ("c" in words)


def test_the_best_of_all_is_at_one_and_the_others_are_as_far_as_they_are_slower():
    found = factors(best([one("work", "numpy", 2.0), one("work/jit", "jax", 5.0)]))
    assert [at for at, _, _ in found] == [1.0, 2.5]
    wide = (0.5, 0.6, 0.8, 1.0, 1.0, 1.0, 1.2, 1.4, 1.5, 2.0)
    ((at, low, high),) = factors(best([one("work", "numpy", 2.0, wide)]))
    assert low < at == 1.0 < high


def test_a_strip_has_a_dot_for_each_framework_where_the_axis_says():
    ticks = [1.0, 10.0, 100.0]
    drawn = LexborHTMLParser(strips.strip([(10.0, (1.0, 1000.0), INKS[0])], ticks))
    (dot,), (spread,) = drawn.css("circle"), drawn.css(".spread")
    assert dot.attributes["cx"] == "50%"
    assert (spread.attributes["x1"], spread.attributes["x2"]) == ("0%", "100%")
    numbers = LexborHTMLParser(strips.axis(ticks)).css("text")
    assert [(each.text(), each.attributes["x"]) for each in numbers] == [
        ("1×", "0%"),
        ("10×", "50%"),
        ("100×", "100%"),
    ]
    many = LexborHTMLParser(strips.axis([1.0, 2.0, 5.0, 10.0, 20.0])).css("text")
    assert [each.text() for each in many] == ["1×", "5×", "20×"]
