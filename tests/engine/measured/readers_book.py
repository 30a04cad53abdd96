"""A small book of many records, and the files of readers who measured the same."""

import itertools
import pathlib
import random
import re
import runpy

import bs4

from measured import reader
from tests.engine.records import one_process

DOCS = pathlib.Path(__file__).parents[3] / "docs"
CHAPTER, HOOK = DOCS / "your_machine", runpy.run_path(str(DOCS / "_package" / "hook.py"))
COLUMNS = "name framework shape latency throughput first_call rate error processes"


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


def built(lasting):
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


def asked_of(book):
    """Return what the package would know of the small book."""
    numbers = {}
    for each in book.records():
        found = {key: each[key] for key in ("device_kind", "processor", "shape", "versions")}
        found |= {"date": "2026-01-02", "throughput": []}
        found["latency"] = [process["latency"][0] for process in each["processes"]]
        numbers.setdefault(each["device"], {})[f"{each['name']}@{each['framework']}"] = found
    labels = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy", "python": "plain Python"}
    return reader.Book(**HOOK["asked"](book.root), numbers=numbers, labels=labels)


def file_of(book, records):
    """Return the file that the command would write of published records."""
    own = ("page", "device", "comparison")
    plain = [{key: of for key, of in each.items() if key not in own} for each in records]
    return complete(
        book,
        {
            "format": "jax-measured",
            "version": 1,
            "book": "1.0.0",
            "machine": "A <b>machine</b>",
            "date": "2026-01-03T03:04:05+00:00",
            "records": plain,
        },
    )


def complete(book, file):
    """Return a file with what pages show of it."""
    return file | {"shown": reader.shown(file, asked_of(book))}


def compared(book, begins):
    """Return a file of the comparisons of the book whose names begin so."""
    records = [each for each in book.records() if each.get("comparison", "").startswith(begins)]
    file = file_of(book, records)
    duels = itertools.groupby(file["records"], lambda each: each["name"].rpartition("/")[0])
    file["records"] = [
        {"version": 3, "method": 2, "name": name, "alternatives": list(sides)}
        for name, sides in duels
    ]
    return complete(book, file)


def html(book, name):
    """Return a page of the small book."""
    path = book.root / "build" / "html" / f"{name}.html"
    return bs4.BeautifulSoup(path.read_text("utf8"), "html.parser")
