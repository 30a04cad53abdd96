"""The reader's own measurements stand beside the book's: the command computes, the page places.

The same records go to both: to the build, and to what the command computes for its file.
"""

import copy
import itertools
import json
import re
import zlib
from base64 import urlsafe_b64decode

import pytest

from drawing.numbers import seconds_text
from snippets.your_machine import roofline
from tests.engine.measured.readers_book import compared, complete, file_of
from tests.programs import damaged

PASTE = """async (text) => {
  const field = document.querySelector("textarea");
  const said = document.querySelector(".machine-said");
  said.textContent = "";
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  while (!said.textContent) await new Promise((resolve) => setTimeout(resolve, 5));
  return said.textContent;
}"""


@pytest.fixture(scope="module")
def address(book, served):
    """Serve the book."""
    with served(book.root / "build" / "html") as address:
        yield address


@pytest.fixture(scope="module")
def context(address, browser):
    """Open a browser in which nothing may go wrong or leave the site."""
    context = browser.new_context()
    context.problems = []
    context.on("weberror", lambda error: context.problems.append(str(error.error)))
    # The miniature book has no icon.
    context.on(
        "console",
        lambda said: "404" in said.text or context.problems.append(said.text),
    )
    allowed = (address, "file:", "blob:", "data:")
    context.on(
        "request",
        lambda asked: asked.url.startswith(allowed) or context.problems.append(asked.url),
    )
    yield context
    context.close()


@pytest.fixture(scope="module")
def window(context):
    """Open a window for all tests: each new one would be a process of its own."""
    return context.new_page()


@pytest.fixture
def page(context, window, address):
    """Return a window of a browser that has kept nothing, on the page with the field."""
    window.goto(f"{address}/b/index.html")
    window.evaluate("localStorage.clear()")
    window.locator(".machine-file").wait_for(state="visible")
    yield window
    problems, context.problems = context.problems, []
    assert problems == []


def given(page, address, file, name):
    """Open a page for who has measured this."""
    page.goto(f"{address}/b/index.html")
    page.locator(".machine-file").wait_for(state="visible")
    assert page.evaluate(PASTE, json.dumps(file)).startswith("Kept in this browser: ")
    page.goto(f"{address}/{name}.html")
    page.locator("details.device-notice").wait_for(state="attached")


def test_a_number_stands_beside_one_of_the_same_kind_of_device(page, address, book):
    (other, _) = (each for each in book.records() if each["name"] == "other")
    for kind, expected in (("cpu", [True, False]), ("Another GPU", [False, True])):
        file = file_of(book, [other | {"device_kind": kind}])
        given(page, address, file, "a/other")
        sentence = page.locator("p", has_text="It takes").inner_text()
        assert ["yours" in part for part in sentence.split(", on a GPU ")] == expected
        tabs = page.locator("[data-of]").all()
        beside = [each.locator("xpath=following-sibling::span").count() for each in tabs]
        assert beside == [int(expected[0])] * 2 + [int(expected[1])] * 2


# Where each mark of a reader is, and the book's own, in pixels.
MARKS = """() => [...document.querySelectorAll(".mine")].map((mine) => {
  const middle = (each, end) => {
    const { left, right, top, bottom } = each.getBoundingClientRect();
    return [end ? right : (left + right) / 2, (top + bottom) / 2];
  };
  const its = mine.closest(".point").querySelector(".bar");
  return [...middle(mine), ...middle(its, its.matches(".rows rect"))];
})"""


@pytest.mark.parametrize("name", ["a/charts", "b/roofline"])
def test_marks_lie_on_the_book_s_for_the_same_records(page, address, whole, name):
    given(page, address, whole, name)
    marks = page.evaluate(MARKS)
    assert len(marks) == page.locator("svg.chart .point:has(.bar)").count() > 3
    for x, y, own_x, own_y in marks:
        assert [x, y] == pytest.approx([own_x, own_y], abs=2)
    notes = page.locator(".chart-figure .table-note", has_text="◇ Your machine")
    assert notes.count() == page.locator("svg.chart").count()
    assert page.locator("b", has_text="machine").count() == 0
    values = page.locator("svg.rows .value").all_text_contents()
    assert all(each.split(" ◇ ")[0].split(" ○")[0] == each.split(" ◇ ")[1] for each in values)


@pytest.mark.parametrize(
    ("where", "name", "kind", "marks", "cells"),
    [
        ("a/both", "both/1", "cpu", [1, 0], [1, 0]),
        ("a/both", "both/1", "Another GPU", [0, 1], [0, 1]),
        # The book has no accelerator there: a mark is better than none, and a cell says too much.
        ("a/charts", "x/0", "cpu", [1, 1], [1, 1]),
        ("a/charts", "x/0", "Another GPU", [1, 1], [0, 0]),
    ],
)
def test_marks_and_cells_are_beside_the_same_kind_of_device(
    page, address, book, where, name, kind, marks, cells
):
    record = next(each for each in book.records() if each["name"] == name)
    given(page, address, file_of(book, [record | {"device_kind": kind}]), where)
    of = f"[data-of='{name}@{record['framework']}']"
    drawn = [each.locator(".mine").count() for each in page.locator(f"svg {of}").all()]
    assert drawn == marks
    shown = page.locator(f"td {of}[data-field=latency]").all()
    beside = [each.locator("xpath=following-sibling::span").count() for each in shown]
    assert beside[: len(cells)] == cells


def test_a_row_of_the_fastest_is_not_another_one_for_an_accelerator(page, address, book):
    file = compared(book, "race/")
    for record in file["records"]:
        for part in record["alternatives"]:
            slow = 1000 if part["framework"] == "jax" else 1
            part["device_kind"] = "A GPU"
            for process in part["processes"]:
                process["latency"] = [slow * each for each in process["latency"]]
                process["first_call"] *= slow
    given(page, address, complete(book, file), "a/races")
    assert page.locator("table.fastest th").last.inner_text() == "Your machine"
    assert page.locator("table.fastest .otherwise").count() == 0


def test_a_mark_beyond_the_axis_is_at_its_end_and_its_text_says_how_much(page, address, book):
    record = next(each for each in book.records() if each["name"] == "x/0")
    slow = [{**each, "latency": [3600], "first_call": None} for each in record["processes"]]
    given(page, address, file_of(book, [record | {"processes": slow}]), "a/charts")
    found = page.locator(".point:has(.mine)").all()
    assert len(found) == 2
    notes = page.locator(".table-note", has_text="A dashed ◇ lies beyond the axis.")
    assert notes.count() == 2
    for each in found:
        assert each.locator(".mine.beyond").get_attribute("x") == "100%"
        assert "yours 3600 s" in each.locator("title").text_content()


def test_what_has_other_arrays_has_no_mark(page, address, book):
    record = next(each for each in book.records() if each["name"] == "size/64")
    note = next(each for each in book.records() if each["name"] == "other")
    given(page, address, file_of(book, [record | {"shape": [[65, 65], []]}, note]), "a/other")
    page.goto(f"{address}/a/charts.html")
    page.wait_for_function("Boolean(window.machine.record)")
    assert page.locator(".mine, .yours").count() == 0


def test_a_number_in_a_sentence_has_the_readers_behind_it(page, address, turns):
    given(page, address, turns, "a/few")
    sentence = page.locator("p", has_text="A sentence with")
    number, own = (sentence.locator(part).inner_text() for part in (".measured", ".yours"))
    assert own == f"yours {number}"
    assert re.fullmatch(rf".*{re.escape(number)}.* {re.escape(own)} in it\.", sentence.inner_text())
    notice = page.locator("details.device-notice").inner_text()
    assert notice.startswith("Your machine\nA <b>machine</b>, python 1.2.3, 2026-01-03. ")
    _, alone, two = page.locator("tbody tr").first.locator("td").all()
    number, own = (alone.locator(part).bounding_box() for part in (".measured", ".yours"))
    assert own["y"] >= number["y"] + number["height"] / 2
    slow, fast = (f"{each} yours {each}" for each in two.locator(".measured").all_inner_texts())
    assert " ".join(two.inner_text().split()) == f"{slow} and {fast}."


def test_the_notice_is_open_the_first_time_and_folded_then(page, address, turns):
    words = page.locator("details.device-notice", has_text="Charts have a mark")
    heights = []
    for _ in range(3):
        given(page, address, turns, "a/few")
        heights.append(words.bounding_box()["height"])
    assert heights[1] == heights[2] < heights[0]


def test_a_row_whose_fastest_is_another_than_the_book_s_says_so(page, address, book):
    file = compared(book, "race/")
    for record in file["records"]:
        for part in record["alternatives"]:
            for process in part["processes"] if part["framework"] == "jax" else ():
                process["latency"] = [1000 * each for each in process["latency"]]
                process["first_call"] *= 1000
    given(page, address, complete(book, file), "a/races")
    assert page.locator("table.fastest th").last.inner_text() == "Your machine"
    for row in page.locator("table.fastest tbody tr").all():
        its, own = (
            {*(each.get_attribute("data-leading") or "").split()}
            for each in row.locator("[data-leading]").all()
        )
        said = row.locator("td:nth-child(3) .otherwise").all_inner_texts()
        assert said == ["not as on this book’s machine"] * bool(own and its and own != its)
    assert page.locator("table.fastest .otherwise").count() > 2


FOCUSED = "document.activeElement.querySelector('title')?.textContent"


def test_a_drawing_is_one_stop_for_tab_and_arrow_keys_go_through_it(page, address):
    page.goto(f"{address}/a/charts.html")
    drawing = page.locator("svg.rows").first
    titles = drawing.locator(".point > title").all_text_contents()
    assert drawing.locator(".point[tabindex='0']").count() == 1
    drawing.locator(".point").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(FOCUSED) == titles[1]
    page.keyboard.press("Tab")
    assert not drawing.evaluate("svg => svg.contains(document.activeElement)")
    # It is where it was.
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED) == titles[1]
    # Each number of a table can still be reached, and the table left.
    page.goto(f"{address}/a/few.html")
    numbers = page.locator("table .noted > [tabindex]")
    assert numbers.count() == 3
    numbers.first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert numbers.last.evaluate("each => each === document.activeElement")


def test_what_is_removed_leaves_pages_as_they_were_also_open_ones(page, address, turns):
    article = "document.querySelector('article').innerHTML"
    page.goto(f"{address}/a/few.html", wait_until="networkidle")
    before = page.evaluate(article)
    given(page, address, turns, "a/few")
    with page.context.expect_page() as opened:
        page.evaluate("window.open('../b/index.html')")
    opened.value.get_by_role("button", name="Remove it").click()
    opened.value.get_by_text("Removed from this browser.").wait_for()
    page.wait_for_function("!document.querySelector('.yours')")
    page.wait_for_load_state("networkidle")
    assert page.evaluate(article) == before
    opened.value.close()


def test_a_link_holds_the_file_and_asks_before_it_is_kept(page, address, whole):
    said = page.evaluate(PASTE, json.dumps(whole))
    count = len(whole["records"])
    assert said.endswith(f"2026-01-03. {count} of its {count} measurements are in this book.")
    fragment = page.locator(".machine-link").get_attribute("href")
    packed = fragment.removeprefix("#jm1.")
    text = zlib.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), wbits=-15)
    assert json.loads(text) == whole
    page.evaluate("localStorage.clear()")
    page.goto(f"{address}/a/other.html")
    page.goto(f"{address}/b/index.html{fragment}")
    keep = page.get_by_role("button", name="Keep it")
    keep.wait_for()
    assert page.locator(".machine-said").inner_text().startswith("This link holds measurements: ")
    assert page.evaluate("localStorage.getItem('book-your-machine')") is None
    keep.click()
    page.wait_for_function("localStorage.getItem('book-your-machine')")
    page.goto(f"{address}/a/charts.html")
    page.locator(".mine").first.wait_for()


def test_a_file_is_chosen_or_dropped(page, whole, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(whole), "utf8")
    page.get_by_label("Or choose the file").set_input_files(path)
    page.wait_for_function("localStorage.getItem('book-your-machine')")
    page.evaluate("localStorage.clear()")
    page.evaluate(
        """(text) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([text], "mine.json"));
          const given = { bubbles: true, cancelable: true, dataTransfer };
          document.querySelector(".machine-file").dispatchEvent(new DragEvent("drop", given));
        }""",
        path.read_text("utf8"),
    )
    page.wait_for_function("localStorage.getItem('book-your-machine')")


def test_where_nothing_is_kept_the_links_hold_the_file(context, address, whole):
    page = context.new_page()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no') }})"
    )
    page.goto(f"{address}/b/index.html")
    page.locator(".machine-file").wait_for(state="visible")
    said = page.evaluate(PASTE, json.dumps(whole))
    assert said.startswith("This browser keeps nothing from page to page")
    page.locator(".machine-pages a").first.click()
    page.locator(".mine, .yours").first.wait_for(state="attached")
    page.close()
    # Scripts of Sphinx and of the theme complain.
    problems, context.problems = context.problems, []
    assert set(problems) <= {"no"}


def test_it_works_from_files(page, book, whole):
    home = (book.root / "build" / "html").as_uri()
    given(page, home, whole, "a/charts")
    assert page.locator(".mine").count() > 10
    page.evaluate("localStorage.clear()")


def test_what_cannot_be_right_is_refused_in_words_and_nothing_is_lost(page, address, whole):
    page.evaluate(PASTE, json.dumps(whole))
    before = page.evaluate("localStorage.getItem('book-your-machine')")
    line = page.locator(".machine-link").get_attribute("href").removeprefix("#")
    cases = {kind: (text, words) for kind, (text, _, words) in damaged.TEXTS.items()}
    cases["a line cut off"] = line[:-40], "damaged or cut off"
    cases["a newer book"] = json.dumps(whole | {"book": "99.0"}), "a newer book"
    cases["a newer form"] = json.dumps(whole | {"version": 2}), "a newer book"
    cases["what no page shows"] = json.dumps({**whole, "shown": "all"}), "is damaged"
    del (old := dict(whole))["shown"]
    cases["an older file"] = json.dumps(old), "an older command wrote it"
    for kind, edit in SHOWN.items():
        file = copy.deepcopy(whole)
        edit(file["shown"])
        cases[kind] = json.dumps(file), "is damaged"
    said = {kind: page.evaluate(PASTE, text) for kind, (text, _) in cases.items()}
    wrong = {kind: said[kind] for kind, (_, words) in cases.items() if words not in said[kind]}
    assert wrong == {}
    assert all(each.endswith("What was kept before is still there.") for each in said.values())
    assert page.evaluate("localStorage.getItem('book-your-machine')") == before
    # What was kept by another version of the page, and cannot be read, is not shown.
    page.evaluate("text => localStorage.setItem('book-your-machine', text)", json.dumps(old))
    page.goto(f"{address}/a/charts.html")
    page.wait_for_function("window.machine.record === null")
    assert page.locator(".mine, .yours").count() == 0


# What anybody could have changed in a file.
SHOWN = {
    "a number that is none": lambda of: of["numbers"]["x/0@numpy"].update(latency=[-1, "", ""]),
    "a number in words": lambda of: of["numbers"]["x/0@numpy"].update(latency=["1", "", ""]),
    "words for a number": lambda of: of["numbers"]["x/0@numpy"].update(latency="abc"),
    "nothing for a number": lambda of: of["numbers"].update({"x/0@numpy": None}),
    "a text that is none": lambda of: of["answers"].update(key=[1, "cpu"]),
    "a text without an end": lambda of: of.update(about="a" * 3000),
    "no numbers": lambda of: of.pop("numbers"),
    "roofs in words": lambda of: of.update(roofs={"bandwidth": "much", "rates": {}, "texts": []}),
}


def in_full(seconds):
    """Write seconds as the form does: never with a power of ten."""
    return seconds_text(seconds) if seconds < 1e7 else f"{float(f'{seconds:.3g}'):.0f} s"


def test_a_least_time_is_that_of_the_snippet(page, address, whole):
    own = 4.8e12, dict.fromkeys(roofline.BYTES, 6.7e13)
    file = copy.deepcopy(whole)
    file["shown"]["roofs"] |= {"bandwidth": own[0], "rates": own[1]}
    given(page, address, file, "b/roofline")
    page.locator(".possible-time li").last.wait_for()
    (data,) = page.locator(".roofline-data").all_text_contents()
    roofs = json.loads(data)["devices"] | {"Your machine": own}
    assert len(roofs) == 2
    size, sizes = page.get_by_label("How many elements"), (1, 7, 1000, 4096, 10**9)
    for operation, n, dtype in itertools.product(roofline.OPERATIONS, sizes, roofline.BYTES):
        page.get_by_label("Operation").select_option(operation)
        page.get_by_label("dtype").select_option(dtype)
        size.fill(f"{n:,}")
        expected = []
        for label, (bandwidth, rates) in roofs.items():
            if dtype not in rates:
                expected.append(f"{label}: no matmul of {dtype} was measured.")
                continue
            times = roofline.least_time(operation, n, dtype, bandwidth, rates[dtype])
            least, *each = map(in_full, (max(times), *times))
            because = "memory" if times[0] >= times[1] else "arithmetic"
            expected.append(
                f"{label}: at least {least} because of {because} "
                f"({each[0]} to move the bytes, {each[1]} to compute)"
            )
        assert page.locator(".possible-time li").all_inner_texts() == expected
    size.fill("a few")
    assert page.get_by_role("status").inner_text().startswith("Write a whole number from 1")


def test_nothing_is_loaded_for_who_has_measured_nothing(page, address):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/a/charts.html", wait_until="networkidle")
    assert not [url for url in asked if "/machine/" in url]
