"""The reader's own measurements are a further device, computed and drawn as the book's own are.

The same records go to both: to the build, which is Python, and as a file to the page, in a browser.
"""

import copy
import itertools
import json
import pathlib
import random
import re
import zlib
from base64 import urlsafe_b64decode

import pytest

from executed.nodes import JOINER
from snippets.your_machine import roofline
from tests.engine.records import one_process
from tests.programs import damaged

CHAPTER = pathlib.Path(__file__).parents[3] / "docs" / "your_machine"
COLUMNS = (
    "name framework device_kind shape dtype precision latency throughput first_call rate error "
    "processes"
)
PASTE = """async (text) => {
  const field = document.querySelector("textarea");
  const said = document.querySelector(".machine-said");
  said.textContent = "";
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  while (!said.textContent) await new Promise((resolve) => setTimeout(resolve, 5));
  return said.textContent;
}"""
# A drawing or a table as texts and numbers, whatever the order of attributes.
FLAT = """(element) => {
  const flat = (node) => node.nodeType === Node.TEXT_NODE ? [node.textContent.trim()] :
    [node.tagName, ...[...node.attributes].filter(({ name }) => name !== "xmlns")
      .map(({ name, value }) => `${name}=${value}`).sort(), ...[...node.childNodes].flatMap(flat)];
  return flat(element).filter(Boolean);
}"""


# A drawing without the names of points, and without what it holds beside its own.
ALONE = """(svg) => {
  const beside = ".point-name, .point:has(> .other), g.other, circle.other";
  for (const each of svg.querySelectorAll(beside)) each.remove();
  for (const each of svg.querySelectorAll(".point")) each.tabIndex = 0;
  for (const each of svg.querySelectorAll(".value")) {
    each.textContent = each.textContent.split(" ○ ")[0];
  }
  svg.style.removeProperty("--right");
}"""


def of_page(name, what):
    """Return the parts of a page of the book that are such a directive."""
    text = (CHAPTER / f"{name}.md").read_text("utf8")
    return re.findall(rf"^```{{{what}}}.*?^```$", text, re.MULTILINE | re.DOTALL)


def processes(chance, scale, many):
    """Return what some processes measured, with numbers that a rounding must get right."""
    digits = chance.choice([2, 3, 4])

    def time():
        return float(f"{scale * chance.uniform(1, 1.4):.{digits}g}")

    return [
        one_process(
            *(time() for _ in range(chance.choice([1, 4, 5]))),
            first_call=chance.choice([None, 50 * scale, time()]),
            **({"throughput": [time() / 2]} if many else {}),
        )
        for _ in range(chance.choice([1, 2, 3, 5, 8, 10, 17]))
    ]


def notes():
    """Return cells that leave many records: of all scales, and over sizes."""
    chance = random.Random(5)
    lines = []

    def note(name, framework, scale, **fields):
        fields["processes"] = processes(chance, scale, chance.random() < 0.5)
        lines.append(f"note({name!r}, 0.5, {framework!r}, **{fields!r})")

    for number in range(14):
        framework = chance.choice(["jax", "torch", "numpy", "python"])
        error = chance.choice([None, 1.2e-7, 0.3])
        note(f"x/{number}", framework, 10 ** chance.uniform(-7, 2), error=error)
    for framework, size in itertools.product(("jax", "torch"), (64, 100, 512, 3000)):
        shape, work = [[size, size], []], 2 * size**3
        note(f"size/{size}", framework, size**3 * 1e-9, shape=shape, work=work)
    # What lies exactly between two numbers.
    for number, exact in enumerate((0.125, 1.125e-3, 2.5, 0.0009995, 0.00234375)):
        lines.append(f"note('tie/{number}', {exact})")
    for name, arrays in (("copy", 2), ("scale", 2), ("add", 3), ("triad", 3)):
        note(f"ceilings/{name}", "jax", arrays / 70, shape=[[2**25]])
    for dtype in ("full", "bfloat16"):
        width = {"full": "float32"}.get(dtype, dtype)
        note(f"ceilings/product/{dtype}", "jax", 0.1, shape=[[2048, 2048]], work=1e10, dtype=width)
    for name in ("softmax", "layer_norm_new", "eager_chain"):
        note(f"ceilings/pass/{name}", "torch", 0.03, shape=[[16384, 1024]])
    note("matmul/size/64", "jax", 1e-5, shape=[[64, 64]], work=2 * 64**3)
    for name in ("ceiling/8", "ceiling/16", "device", "precision/bfloat16"):
        note(f"matmul/{name}", "jax", 0.1, shape=[[2048, 2048]], work=9e9)
    for name, precision in (("one", "default"), ("two", "highest"), ("three", "default")):
        settings = {"threads": "2"} | ({"allocator": "A <b>"} if name == "two" else {})
        note(f"set/{name}", "torch", 1, precision=precision, settings=settings)
    return "\n".join(lines)


def duels():
    """Return cells that leave comparisons, and what a page asks of them, each in every role."""
    chance = random.Random(9)
    cells, asked = [], []
    kinds = itertools.product(WIDTHS, FACTORS, ([1], [2, 3, 8, 10]))
    for number, (wide, factor, counts) in enumerate(kinds):
        name = f"duel/{number}"
        count, rounds = chance.choice(counts), chance.choice([1, 4, 5])

        def side(scale, some, count=count, rounds=rounds, wide=wide):
            return [
                {
                    "first_call": some and scale * 10 ** chance.uniform(0, 4),
                    "latency": [scale * chance.uniform(1 - wide, 1 + wide) for _ in range(rounds)],
                }
                for _ in range(count)
            ]

        sides = {"slow": side(1e-4 * factor, True), "fast": side(1e-4, number % 9 != 3 or None)}
        cells.append(f"duel({name!r}, {sides!r})")
        both = [f"{name}/fast@python", f"{name}/slow@python"]
        for one, other in (both, both[::-1]):
            asked += [f"{{{role}}}`{one} / {other}`" for role in ("measured", "compared", "paid")]
            asked.append(f"{{verdict}}`{one} / {other} in 0.5.. ? holds : wrong`")
            asked.append(f"{{verdict}}`{one} / {other} in 1.2..300 ? holds : out of date`")
            asked.append(f"{{measured}}`{one}.first_call / {other}.first_call`")
            asked.append(f"{{measured}}`{one}.first_call / {one}`")
            asked.append(f"{{measured}}`{one}.rate / {other}.rate`")
            asked += [f"{{measured}}`{one}{field}`" for field in ("", ".first_call", ".error")]
    return "\n".join([DUEL, *cells]), asked


def races():
    """Return cells that leave comparisons of frameworks, and a table of which is fastest."""
    chance = random.Random(4)
    cells, lines = [], []
    for number, (wide, factor) in enumerate(itertools.product(WIDTHS, FACTORS)):
        name, count = f"race/{number}", chance.choice([1, 2, 3, 8, 10])
        scales = {"jax": 1e-4, "torch": 1e-4 * factor, "numpy": 1e-4 * chance.uniform(0.9, 9)}
        sides = {
            framework: [
                [scale * chance.uniform(1 - wide, 1 + wide) for _ in range(5)] for _ in range(count)
            ]
            for framework, scale in scales.items()
        }
        cells.append(f"race({name!r}, {sides!r})")
        lines.append(f"{number}: {name}")
        # The best of each may not have taken turns.
        lines.append(f"{number} and before: {name} race/{max(0, number - 1)}")
    return "\n".join([RACE, *cells]), "\n".join(["```{measurement-fastest}", *lines, "```"])


# Equal ones, ones that cannot be told, and ones that can; some near the edge.
WIDTHS, FACTORS = (0.001, 0.05, 0.06, 0.5), (1, 1.015, 1.025, 1.05, 1.6, 9, 700)
DUEL = """
def duel(name, sides):
    made = [
        measured(f"{name}/{side}", [1.0], work=3e6, error=1.25e-7, processes=[
            one_process(*process["latency"], first_call=process["first_call"])
            for process in processes
        ])
        for side, processes in sides.items()
    ]
    leave({"version": 3, "method": 2, "name": name, "alternatives": made})
"""


RACE = """
def race(name, sides):
    made = [
        measured(f"{name}/way", [1.0], framework, processes=[
            one_process(*latency) for latency in processes
        ])
        for framework, processes in sides.items()
    ]
    leave({"version": 3, "method": 2, "name": name, "alternatives": made})
"""


@pytest.fixture(scope="module")
def book(lasting):
    """Build charts and tables of many records, and the book's pages with a field."""
    lasting.page(
        "a/charts",
        lasting.cell(notes(), snippet="a.notes.note"),
        "```{measurement-chart} x/*\n:x: name\n\nBars.\n```",
        "```{measurement-chart} x/* tie/*\n:x: name\n:scale: logarithmic\n\nDots.\n```",
        "```{measurement-chart} size/*\n:x: size\n:y: rate\n:ceiling: size/*\n\nLines.\n```",
        "```{measurement-chart} size/*\n:x: size\n:series: alternative\n\nOne each.\n```",
        f"```{{measurements}} x/* tie/* size/*\n:columns: {COLUMNS}\n```",
    )
    lasting.page(
        "a/other",
        lasting.cell("note('other', 0.5)", snippet="a.notes.note"),
        "```{measurements} other\n```",
        "It takes {measured}`other@python`, on a GPU {measured}`other@python on gpu-h200`.",
    )
    lasting.page(
        "a/both",
        lasting.cell(
            "note('both/1', 0.5, 'jax')\nnote('both/2', 0.4, 'jax')", snippet="a.notes.note"
        ),
        "```{measurement-chart} both/*\n:x: name\n\nBars.\n```",
    )
    cells, asked = duels()
    lasting.page(
        "a/numbers",
        lasting.cell(cells, snippet="a.notes.leave a.notes.measured a.notes.one_process"),
        *asked,
    )
    # A window with all of them costs more than all else that most tests do with one.
    lasting.page(
        "a/few",
        "A sentence with {compared}`duel/0/slow@python / duel/0/fast@python` in it.",
        "| what | alone | two |\n|---|---|---|\n| slow | {measured}`duel/0/slow@python` | "
        "{measured}`duel/0/slow@python` and {measured}`duel/0/fast@python`. |",
        *(each for each in asked if "duel/0/" in each),
    )
    cells, table = races()
    lasting.page(
        "a/races",
        lasting.cell(cells, snippet="a.notes.leave a.notes.measured a.notes.one_process"),
        table,
    )
    lasting.page("a/switches", "```{measurement-settings}\n```")
    lasting.page("b/index", "```{measurement-names}\n```", *of_page("index", "raw"))
    roofline = of_page("roofline", "measurement-chart")
    lasting.page("a/roofline", *roofline)
    lasting.page("b/roofline", *roofline, *of_page("roofline", "raw"))
    lasting.recorded()
    elsewhere = ('"device_kind": "cpu"', '"device_kind": "A GPU"')
    lasting.recorded_elsewhere("a/other", elsewhere)
    lasting.recorded_elsewhere("a/both", elsewhere)
    lasting.built("-D", "book_recorded=1")
    return lasting


@pytest.fixture(scope="module")
def address(book, served):
    """Serve the book."""
    with served(book.root / "build" / "html") as address:
        yield address


def file_of(records):
    """Return the file that the command would write of published records."""
    own = ("page", "device", "comparison")
    plain = [{key: of for key, of in each.items() if key not in own} for each in records]
    return {
        "format": "jax-measured",
        "version": 1,
        "book": "1.0.0",
        "machine": "A <b>machine</b>",
        "date": "2026-01-03T03:04:05+00:00",
        "records": plain,
    }


@pytest.fixture(scope="module")
def whole(book):
    """Return a file of all measurements of the book but one, and but comparisons."""
    return file_of([each for each in book.records() if each["page"] in ("a/charts", "a/switches")])


@pytest.fixture(scope="module")
def turns(book):
    """Return a file of all comparisons of the book but those of frameworks."""
    return compared(book, "duel/")


def compared(book, begins):
    """Return a file of the comparisons of the book whose names begin so."""
    records = [each for each in book.records() if each.get("comparison", "").startswith(begins)]
    file = file_of(records)
    duels = itertools.groupby(file["records"], lambda each: each["name"].rpartition("/")[0])
    file["records"] = [
        {"version": 3, "method": 2, "name": name, "alternatives": list(sides)}
        for name, sides in duels
    ]
    return file


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


def own(page, address, name="a/charts"):
    """Open a page on which the reader's machine was chosen."""
    page.goto(f"{address}/{name}.html")
    page.locator('[data-sync-id="your-machine"]').first.wait_for(state="attached")


def numbers_apart(words):
    """Return texts with their numbers replaced, and the numbers."""
    number = re.compile(r"\d+(?:\.\d+)?")
    return [number.sub("#", word) for word in words], [
        float(found) for word in words for found in number.findall(word)
    ]


def are_alike(drawing, other):
    """Compare two drawings: their elements and texts, and nearly all digits of their numbers.

    Beside the points of a reader's roofline stand no names: each says its own when pointed at. What
    a reader measured has the book's beside it, in hollow marks and as a ratio.
    """
    for each in (drawing, other):
        each.evaluate(ALONE)
    (texts, numbers), (own_texts, own_numbers) = (
        numbers_apart(each.evaluate(FLAT)) for each in (drawing, other)
    )
    assert own_texts == texts
    assert own_numbers == pytest.approx(numbers, abs=0.011)


def cells(table):
    """Return the texts of a table."""
    return [row.locator("th, td").all_text_contents() for row in table.locator("tr").all()]


def test_charts_and_tables_are_those_of_the_book_for_the_same_records(page, address, whole):
    page.evaluate(PASTE, json.dumps(whole))
    own(page, address)
    places = page.locator(".device-tabs").all()
    assert len(places) == 5
    for place in places:
        of_book, of_reader = place.locator("> .sd-tab-content").all()
        drawn = [each.locator("svg") for each in (of_book, of_reader)]
        if drawn[0].count():
            marks = [each.locator(".bar").count() for each in drawn]
            assert drawn[1].locator("circle.other").count() == marks[0] == marks[1]
            ratios = [each.split(" ○ ") for each in drawn[1].locator(".value").all_text_contents()]
            # Of the same numbers.
            assert {ratio for _, ratio in ratios} <= {"1×"}
            are_alike(*drawn)
        assert cells(of_reader.locator("table")) == cells(of_book.locator("table"))


def test_the_switches_are_those_of_the_book_for_the_same_records(page, address, book):
    records = [each for each in book.records() if each["device"] == "cpu"]
    page.evaluate(PASTE, json.dumps(file_of(records)))
    own(page, address, "a/switches")
    *_, of_reader = page.locator(".device-tabs > .sd-tab-content").all()
    of_book = page.locator(".device-tabs > .sd-tab-content").first
    assert cells(of_reader.locator("table")) == cells(of_book.locator("table"))
    (products,) = [row for row in cells(of_book.locator("table")) if "default (" in row[-1]]
    assert products[0] == "PyTorch"


# Every number with its note and the reader's own, of paragraphs that hold one number each.
NUMBERS = """() => [...document.querySelectorAll("article section > p > .noted")].map((noted) => [
  noted.firstChild.classList.contains("verdict"), noted.firstChild.textContent,
  noted.lastChild.textContent, noted.parentElement.querySelector(".yours")?.textContent])"""


def beside(page, address, file, name="a/few"):
    """Open a page for who has measured this; return the reader's own numbers on it."""
    page.goto(f"{address}/b/index.html")
    page.locator(".machine-file").wait_for(state="visible")
    page.evaluate(PASTE, json.dumps(file))
    page.goto(f"{address}/{name}.html")
    page.locator(".device-notice[data-device]:visible").wait_for()
    return page.locator(".yours")


def test_numbers_are_those_of_the_book_for_the_same_records(page, address, turns):
    beside(page, address, turns, "a/numbers")
    numbers = page.evaluate(NUMBERS)
    assert len(numbers) > 700
    for is_verdict, shown, note, own in numbers:
        expected = shown
        if is_verdict:
            number = note.partition(". ")[0]
            expected = number if number.startswith(shown) else f"{shown}: {number}"
        assert own == f"yours {expected}".replace(JOINER, "")
    words = " ".join(own for *_, own in numbers)
    kinds = ("about equal", "cannot tell", "× slower", "× faster", "never", "1 call ", "calls (")
    assert not [kind for kind in kinds if kind not in words]


def test_the_fastest_are_those_of_the_book_for_the_same_records(page, address, book):
    page.evaluate(PASTE, json.dumps(compared(book, "race/")))
    page.goto(f"{address}/a/races.html")
    page.locator("table.fastest th", has_text="Your machine").wait_for()
    (head, *rows) = cells(page.locator("table.fastest"))
    # Below the words stand which colour is whose, and the numbers of the axis.
    assert [re.match("work|CPU|Your machine", each)[0] for each in head] == [
        "work",
        "CPU",
        "Your machine",
    ]
    shown = page.locator("table.fastest td:nth-child(2) .measured").all_inner_texts()
    assert [own for *_, own in rows] == shown
    kinds = (" faster ", " than NumPy", "about equal", "cannot tell", ", NumPy ")
    assert not [kind for kind in kinds if kind not in " ".join(shown)]


def test_a_row_whose_fastest_is_another_than_the_book_s_says_so(page, address, book):
    file = compared(book, "race/")
    for record in file["records"]:
        for part in record["alternatives"]:
            for process in part["processes"] if part["framework"] == "jax" else ():
                process["latency"] = [1000 * each for each in process["latency"]]
                process["first_call"] *= 1000
    page.evaluate(PASTE, json.dumps(file))
    page.goto(f"{address}/a/races.html")
    page.locator("table.fastest th", has_text="Your machine").wait_for()
    for row in page.locator("table.fastest tbody tr").all():
        own, its = (
            {*(each or "").split()}
            for each in (
                row.locator("td:nth-child(3) [data-leading]").get_attribute("data-leading"),
                row.locator("td:nth-child(2) [data-leading]").get_attribute("data-leading"),
            )
        )
        said = row.locator("td:nth-child(3) .otherwise").all_inner_texts()
        assert said == ["not as on this book’s machine"] * bool(own and its and own != its)
    assert page.locator("table.fastest .otherwise").count() > 2


def test_a_number_that_a_file_does_not_have_is_none(page, address, turns):
    beside(page, address, turns)
    measured = "[...machine.record.measurements.values()]"
    assert page.evaluate(f"{measured}.every((each) => machine.valueOf(each, 'least') === null)")


def test_a_number_in_a_sentence_has_the_readers_behind_it(page, address, turns):
    beside(page, address, turns)
    sentence = page.locator("p", has_text="A sentence with")
    number, own = (sentence.locator(part).inner_text() for part in (".measured", ".yours"))
    assert own == f"yours {number}"
    assert re.fullmatch(rf".*{re.escape(number)}.* {re.escape(own)} in it\.", sentence.inner_text())
    assert sentence.locator(".yours").is_visible()
    notice = page.locator(".device-notice[data-device]:visible").inner_text()
    assert notice.startswith("Your machine\nA <b>machine</b>, python 1.2.3, 2026-01-03. ")


def test_the_notice_is_open_the_first_time_and_folded_then(page, address, turns):
    words = page.locator(".device-notice[data-device]", has_text="Charts and tables show it")
    heights = []
    for _ in range(3):
        beside(page, address, turns)
        words.wait_for(state="visible")
        heights.append(words.bounding_box()["height"])
    assert heights[1] == heights[2] < heights[0]
    words.locator("summary").click()
    assert words.bounding_box()["height"] == heights[0]


def test_switches_and_other_programs_are_said_beside_numbers(page, address, turns, book):
    file = copy.deepcopy(turns)
    slow, fast = file["records"][0]["alternatives"]
    slow["settings"] |= {"JAX_DISABLE_JIT": "1", "GOMP_SPINCOUNT": "30000"}
    fast["settings"] |= {"JAX_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
    fast["processes"][0]["disturbed"] = True
    beside(page, address, file)
    sentence = page.locator("p", has_text="A sentence with")
    number, own = (sentence.locator(part).inner_text() for part in (".measured", ".yours"))
    switches = "with JAX_DISABLE_JIT=1 and OMP_NUM_THREADS=1"
    assert own == f"yours {number}, {switches}, disturbed"
    notice = page.locator(".device-notice[data-device]:visible").inner_text()
    count = sum(len(each["alternatives"]) for each in file["records"])
    assert f"{switches}, other programs ran beside 1 of {count} measurements" in notice
    races = compared(book, "race/")
    races["records"][0]["alternatives"][0]["settings"] = {"JAX_ENABLE_X64": "1"}
    page.evaluate("localStorage.clear()")
    page.goto(f"{address}/b/index.html")
    page.evaluate(PASTE, json.dumps(races))
    page.goto(f"{address}/a/races.html")
    page.locator("table.fastest th", has_text="Your machine").wait_for()
    (_, first, *others) = cells(page.locator("table.fastest"))
    assert first[-1].endswith(", with JAX_ENABLE_X64=1") and "X64" not in others[-1][-1]


def test_a_number_in_a_table_has_the_readers_below_it(page, address, turns):
    beside(page, address, turns)
    _, alone, two = page.locator("tbody tr").first.locator("td").all()
    number, own = (alone.locator(part).bounding_box() for part in (".measured", ".yours"))
    assert own["y"] >= number["y"] + number["height"] / 2
    slow, fast = (f"{each} yours {each}" for each in two.locator(".measured").all_inner_texts())
    assert " ".join(two.inner_text().split()) == f"{slow} and {fast}."


@pytest.mark.parametrize("apart", [False, True])
def test_a_ratio_has_none_beside_it_where_the_file_lacks_one_side(page, address, turns, apart):
    slow, fast = turns["records"][0]["alternatives"]
    both = [{**turns["records"][0], "alternatives": [fast]}]
    both += [{**turns["records"][0], "name": "duel", "alternatives": [slow]}] if apart else []
    beside(page, address, turns | {"records": both})
    asked = [
        json.loads(each.get_attribute("data-measured") or each.get_attribute("data-compared"))
        for each in page.locator("p:has(.yours) [tabindex]").all()
    ]
    slow, fast = (f"duel/0/{each}@python" for each in ("slow", "fast"))
    assert {"parts": [[fast, "latency"]]} in asked
    assert {"parts": [[fast, "first_call"], [fast, "latency"]]} in asked
    assert {"parts": [[fast, "latency"], [slow, "latency"]]} not in asked


def test_a_number_of_another_kind_of_device_has_none_beside_it(page, address, book):
    (other, _) = (each for each in book.records() if each["name"] == "other")
    for kind, expected in (("cpu", [True, False]), ("Another GPU", [False, True])):
        beside(page, address, file_of([other | {"device_kind": kind}]), "a/other")
        sentence = page.locator("p", has_text="It takes").inner_text()
        assert ["yours" in part for part in sentence.split(", on a GPU ")] == expected


@pytest.mark.parametrize(
    ("where", "name", "kind", "said"),
    [
        ("a/both", "both/1", "cpu", "○ CPU of this book"),
        ("a/both", "both/1", "Another GPU", "○ NVIDIA H200 of this book"),
        ("a/charts", "x/0", "Another GPU", "This book has no number of the same kind of device."),
    ],
)
def test_hollow_marks_are_those_of_the_same_kind_of_device(
    page, address, book, where, name, kind, said
):
    record = next(each for each in book.records() if each["name"] == name)
    page.evaluate(PASTE, json.dumps(file_of([record | {"device_kind": kind}])))
    own(page, address, where)
    panel = page.locator(".chart-figure", has=page.locator(".device-note")).first
    assert panel.locator(".table-note").first.inner_text().startswith(said)
    assert panel.locator("circle.other").count() == said.startswith("○")
    assert ("○" in panel.locator(".value").text_content()) == said.startswith("○")


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
    assert beside(page, address, turns).count()
    with page.context.expect_page() as opened:
        page.evaluate("window.open('../b/index.html')")
    opened.value.get_by_role("button", name="Remove it").click()
    page.wait_for_function("!document.querySelector('.yours')")
    page.wait_for_load_state("networkidle")
    assert page.evaluate(article) == before
    opened.value.close()


def test_the_device_is_chosen_named_and_dated_and_no_text_becomes_an_element(page, address, whole):
    said = page.evaluate(PASTE, json.dumps(whole))
    assert said.startswith("Kept in this browser: A <b>machine</b>, ")
    count = len(whole["records"])
    assert said.endswith(f"2026-01-03. {count} of its {count} measurements are in this book.")
    own(page, address)
    assert page.get_by_label("Device").input_value() == "your-machine"
    note = page.locator(".device-note:visible").first.inner_text()
    assert note.startswith("Your machine: A <b>machine</b>, ") and note.endswith("2026-01-03")
    assert "jax 1.2.3" in note
    assert page.locator("b", has_text="machine").count() == 0
    page.goto(f"{address}/a/other.html")
    assert (
        page.locator(".device-notice[data-device]:visible").inner_text()
        == "Nothing of this is in your file."
    )


def test_what_is_removed_is_gone(page, address, whole):
    page.evaluate(PASTE, json.dumps(whole))
    page.get_by_role("button", name="Remove it").press("Enter")
    assert page.locator(".machine-said").inner_text() == "Removed from this browser."
    assert page.evaluate("document.activeElement.id") == "machine-text"
    page.goto(f"{address}/a/switches.html")
    assert page.locator('[data-sync-id="your-machine"]').count() == 0


def test_a_link_holds_the_file_and_asks_before_it_is_kept(page, address, whole):
    page.evaluate(PASTE, json.dumps(whole))
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
    own(page, address, "a/switches")


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
    page.locator('[data-sync-id="your-machine"]').first.wait_for(state="attached")
    page.close()
    # Scripts of Sphinx and of the theme complain.
    problems, context.problems = context.problems, []
    assert set(problems) <= {"no"}


def test_it_works_from_files(page, book, whole, turns):
    home = (book.root / "build" / "html").as_uri()
    page.goto(f"{home}/b/index.html")
    page.locator(".machine-file").wait_for(state="visible")
    assert page.evaluate(PASTE, json.dumps(whole)).startswith("Kept in this browser: ")
    own(page, home)
    page.goto(f"{home}/b/index.html")
    page.evaluate(PASTE, json.dumps(turns))
    page.goto(f"{home}/a/numbers.html")
    page.locator(".yours").first.wait_for()
    page.evaluate("localStorage.clear()")


def test_what_cannot_be_right_is_refused_in_words_and_nothing_is_lost(page, address, whole):
    page.evaluate(PASTE, json.dumps(whole))
    before = page.evaluate("localStorage.getItem('book-your-machine')")
    line = page.locator(".machine-link").get_attribute("href").removeprefix("#")
    cases = {kind: (text, words) for kind, (text, _, words) in damaged.TEXTS.items()}
    for kind, (_, _, words) in damaged.EDITS.items():
        cases[kind] = json.dumps(damaged.edited(kind)), words
    cases["a line cut off"] = line[:-40], "damaged or cut off"
    said = {kind: page.evaluate(PASTE, text) for kind, (text, _) in cases.items()}
    wrong = {kind: said[kind] for kind, (_, words) in cases.items() if words not in said[kind]}
    assert wrong == {}
    assert all(each.endswith("What was kept before is still there.") for each in said.values())
    assert page.evaluate("localStorage.getItem('book-your-machine')") == before
    page.evaluate("localStorage.clear()")
    assert page.evaluate(PASTE, "{}").endswith("Nothing is drawn.")


@pytest.mark.parametrize("kind", damaged.FINE)
def test_what_the_command_shows_is_kept(page, kind):
    assert page.evaluate(PASTE, damaged.FINE[kind]).startswith("Kept in this browser: ")


@pytest.mark.parametrize(
    "whole_of_it",
    [
        lambda file: file["records"][:1],
        lambda file: file["records"][3:9],
        lambda file: [each | {"name": f"new/{n}"} for n, each in enumerate(file["records"][:4])],
        lambda file: [
            {"version": 3, "method": 2, "name": "x", "alternatives": [each]}
            for each in file["records"][:3]
        ],
    ],
)
def test_what_may_be_right_is_shown(page, whole, whole_of_it):
    file = whole | {"records": whole_of_it(copy.deepcopy(whole))}
    assert page.evaluate(PASTE, json.dumps(file)).startswith("Kept in this browser: ")


def test_what_is_kept_and_cannot_be_read_any_more_is_not_drawn(page, address, whole):
    page.evaluate(PASTE, json.dumps(whole))
    old = copy.deepcopy(whole)
    old["records"][0]["method"] = 1
    page.evaluate("text => localStorage.setItem('book-your-machine', text)", json.dumps(old))
    page.goto(f"{address}/a/charts.html")
    page.wait_for_function("window.machine.record === null")
    assert page.locator('[data-sync-id="your-machine"]').count() == 0
    page.goto(f"{address}/b/index.html")
    said = page.locator(".machine-said", has_text="method 1 of the timer")
    said.wait_for()


@pytest.mark.parametrize("name", ["a/roofline", "b/roofline"])
def test_the_roofline_of_the_reader_is_that_of_the_book_for_the_same_records(
    page, address, whole, name
):
    page.evaluate(PASTE, json.dumps(whole))
    own(page, address, name)
    of_book, of_reader = page.locator(".device-tabs > .sd-tab-content").all()
    assert of_reader.locator(".other").count() == of_reader.locator(".bar").count() > 3
    are_alike(of_book.locator("svg"), of_reader.locator("svg"))
    tables = [each.locator("table").all() for each in (of_book, of_reader)]
    assert of_reader.locator(".table-note").inner_text() == "○ CPU of this book."
    assert [cells(each) for each in tables[1]] == [cells(each) for each in tables[0]]
    answers = page.locator(".possible-time li").all_inner_texts()
    assert len({answer.partition(": ")[2] for answer in answers}) == (name == "b/roofline")


def test_a_least_time_is_that_of_the_snippet(page, address):
    page.goto(f"{address}/b/roofline.html")
    page.wait_for_function("Boolean(window.machine.leastTime)")
    sizes, roofs = (1, 7, 1000, 4096, 10**9), ((2e10, 1e11), (4.8e12, 6.7e13))
    asked = [
        (operation, n, dtype, *of)
        for operation, n, dtype, of in itertools.product(
            roofline.OPERATIONS, sizes, roofline.BYTES, roofs
        )
    ]
    answers = page.evaluate("asked => asked.map((each) => machine.leastTime(...each))", asked)
    expected = [number for each in asked for number in roofline.least_time(*each)]
    assert [number for each in answers for number in each] == pytest.approx(expected, rel=1e-12)
    page.get_by_label("How many elements").fill("a few")
    assert page.get_by_role("status").inner_text().startswith("Write a whole number from 1")
    page.get_by_label("How many elements").fill("1,000")
    assert page.locator(".possible-time li").count() == 1


def test_nothing_is_loaded_for_who_has_measured_nothing(page, address):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/a/charts.html", wait_until="networkidle")
    assert not [url for url in asked if "/machine/" in url]
