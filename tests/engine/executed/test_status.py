"""The status page says of every executed page on what, when and how it came about."""

import re


def table(project, out="build/html"):
    """Return {page: {column: text}} of the table of the status page."""
    head, *rows = project.soup("status", out).select("table.page-status tr")
    columns = [cell.get_text(strip=True) for cell in head.find_all("th")]
    found = {}
    for row in rows:
        cells = row.find_all("td")
        link = cells[0].find("a")
        texts = [cell.get_text(strip=True) for cell in cells]
        found[texts[0]] = dict(zip(columns, texts, strict=True)) | {"link": link["href"]}
    return found


def test_every_page_has_its_row_in_each_build(project, noting):
    project.page("status", "```{page-status}\n```")
    one = project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    measured = project.cell("note('x', 0.5)\nnote('y', 0.5)", snippet="a.notes.note")
    project.page("b/bench", measured, benchmark=True)
    project.page("c/prose", "Nothing is executed.")
    project.built()
    rows = table(project)
    assert sorted(rows) == ["a/one", "a/two", "b/bench"]
    assert {row["this build"] for row in rows.values()} == {"executed"}
    for name, row in rows.items():
        assert row["link"] == f"{name}.html"
        assert re.fullmatch(r"\d\.\d s", row["took"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", row["executed (UTC)"])
    project.edit(one, "```{code-cell} python\n1\n", "```{code-cell} python\n1 / 0\n")
    unread = project.page("a/unread", project.cell("1", snippet="no.such"))
    assert project.build().status == 1
    states = {name: row["this build"] for name, row in table(project).items()}
    failed = dict.fromkeys(("a/one", "a/unread"), "failed")
    assert states == failed | {"a/two": "cached", "b/bench": "cached"}
    # On what they were executed they do not say.
    assert [lines(project, name) for name in failed] == [[], []]
    unread.unlink()
    project.edit(one, "1 / 0", "1")
    project.built()
    assert {row["this build"] for row in table(project).values()} == {"cached"}

    project.path("a/two").unlink()
    project.built()
    assert sorted(table(project)) == ["a/one", "b/bench"]


LOOK = "A first look: no recording is of the code that this page measures"


def test_what_was_measured_in_a_first_look_says_so_and_is_not_kept(noting, project, stamping):
    """Neither the next build nor the recorder takes it for a measurement."""
    count = "note('f', 1.0 + len(list(stamps.glob('run-*'))))\nstamp(f'run-{os.getpid()}')"
    measured = project.cell(count, snippet="notes.note")
    shown = "It takes {measured}`f@python`."
    project.page("a/bench", stamping, measured, shown, benchmark=True)
    project.page("a/one", project.cell("1"))
    for option, preview in (("1", True), ("0", False)):
        project.built("-D", f"book_preview={option}")
        assert project.records()[0]["processes"][0]["latency"][0] == (1.0 if preview else 2.0)
        assert (LOOK in project.html("a/bench")) == preview
        marks = [mark.text for mark in project.soup("a/bench").select("sup.earlier")]
        assert marks == (["†"] if preview else [])
        assert LOOK not in project.html("a/one")
    project.configure("book_preview = True")
    project.recorded("--processes", "1")
    # The recorder measures by itself, and what was tried counts for nothing.
    assert len(list(project.stamps.glob("run-*"))) == 2 + 1


def shown_time(project):
    return project.soup("a/bench").select_one(".measured").text


def test_a_preview_executes_and_shows_what_was_recorded_of_the_same_code(noting, project, stamping):
    measured = "note('f', 1.0 + len(list(stamps.glob('run-*'))))\nstamp(f'run-{os.getpid()}')"
    cells = [project.cell("print('other')"), project.cell(measured, snippet="notes.note")]
    said = "It takes {measured}`f@python`, or {compared}`f@python.first_call / f@python`."
    page = project.page("a/bench", stamping, *cells, said, benchmark=True)
    project.recorded("--processes", "2", "--minutes", "0")
    before = len(list(project.stamps.glob("run-*")))
    project.built("-D", "book_preview=1")
    assert len(list(project.stamps.glob("run-*"))) == before + 1
    assert shown_time(project) == "1.5 s (1.0–2.0)"
    assert LOOK not in project.html("a/bench")
    # On what it was executed, and on what measured.
    executed, recorded = [line.text for line in project.soup("a/bench").select("p.provenance")]
    assert "Executed" in executed and "A processor" not in executed
    assert "are shown as recorded" in recorded and "A processor" in recorded
    # Other code of the page has changed since.
    project.edit(page, "'other'", "'changed'")
    project.built("-D", "book_preview=1")
    assert "changed" in project.outputs("a/bench")
    assert shown_time(project) == "1.5 s (1.0–2.0)"
    assert [mark.text for mark in project.soup("a/bench").select("sup.earlier")] != []
    assert "other code of its page has changed since" in project.html("a/bench")
    # What is measured has.
    project.edit(page, "note('f', 1.0", "note('f', 11.0")
    project.built("-D", "book_preview=1")
    assert shown_time(project) == f"{11 + before + 2}.0 s (one process)"
    assert LOOK in project.html("a/bench")
    assert project.records()[0]["earlier"] == "look"
    # What is to be measured shows what it measured.
    project.edit(page, "note('f', 11.0", "note('f', 1.0")
    project.built("-D", "book_preview=0")
    assert shown_time(project) == f"{1 + before + 3}.00 s (one process)"


def texts(project):
    return [path.read_text("utf8") for path in project.cached()]


def test_a_page_hears_whether_its_outputs_are_lent(noting, project):
    """What it then computes in haste is not taken for what it gives without a recording."""
    lent = "note('f', 1.0 if os.environ.get('BOOK_LENT') else 2.0)"
    said = "print('haste' if os.environ.get('BOOK_LENT') else 'rest')"
    cells = [project.cell("import os"), project.cell(f"{lent}\n{said}", "a.notes.note")]
    project.page("a/bench", *cells, benchmark=True)
    project.recorded("--processes", "1")
    project.built("-D", "book_preview=1")
    printed = {"haste", "rest"}
    kept = [{word for word in printed if f'"{word}\\n' in each} for each in texts(project)]
    assert {*map(frozenset, kept)} == {frozenset(["haste"]), frozenset(["rest"])}
    assert "rest" in project.outputs("a/bench")[0]
    project.recording("a/bench").unlink()
    project.built("-D", "book_preview=1")
    assert "rest" in project.outputs("a/bench")[0]
    assert project.records()[0]["processes"][0]["latency"][0] == 2.0


def test_a_page_that_fails_shows_nothing_that_was_recorded(noting, project):
    page = project.page("a/bench", project.cell("note('f', 1.0)", "a.notes.note"), benchmark=True)
    project.page("a/one", project.cell("1"))
    project.recorded("--processes", "1")
    project.edit(page, "```{code-cell} python\n", "```{code-cell} python\n1 / 0\n")
    assert project.build("-D", "book_preview=1").status == 1
    assert "1 s" not in project.outputs("a/bench")


def test_a_page_says_on_what_its_outputs_and_its_recordings_came_about(project, noting):
    project.page("a/one", project.cell("def f():\n    import numpy"))
    project.page("a/none", project.cell("note('x', 0.5)", "a.notes.note"))
    project.page("a/prose", "Nothing is executed.")
    project.recorded()
    project.recorded_elsewhere("a/one", ('"processor": "', '"driver": "580.1", "processor": "'))
    for options in ((), ("-D", "book_recorded=1")):
        project.built(*options)
        (foot,) = project.soup("a/none").select("p.provenance")
        # The processor is named as its numbers do.
        assert re.search(r" on cpu \(A processor, .*with python 3[\d.]+$", foot.text)
        here, there = [line.text for line in project.soup("a/one").select("p.provenance")]
        when = r"(Executed [\d-]{10} [\d:]{5} UTC|Recorded [\d-]{10})"
        by = r"on cpu \(.+\d threads\).*with numpy [\d.]+, python 3[\d.]+"
        assert re.fullmatch(f"{when} {by}", here)
        assert there.startswith("Recorded 20") and " on gpu-h200 (" in there
        assert "driver 580.1" in there
        assert "provenance" not in project.html("a/prose")


def lines(project, docname, out="build/html"):
    """Return what stands below a page, each line up to its first bracket and without its date."""
    found = project.soup(docname, out).select("p.provenance")
    return [
        re.sub(r" [\d-]{10}( [\d:]{5} UTC)?", "", line.text.partition(" (")[0]) for line in found
    ]


def test_recordings_have_their_table_and_their_lines_below_the_page(project):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    project.page("status", "```{page-status}\n```")
    one = project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    project.page("b/cpu", project.cell("3"), device="cpu")
    project.recorded()
    project.recorded_elsewhere("a/one", ('"executed": "202', '"executed": "201'))
    project.built()
    assert lines(project, "a/one") == ["Executed on cpu", "Recorded on gpu-h200"]
    assert lines(project, "a/two") == ["Executed on cpu"]
    states = table(project)
    assert re.fullmatch(r"current 202\d-\d\d-\d\d", states["a/one"]["CPU"])
    assert re.fullmatch(r"current 201\d-\d\d-\d\d", states["a/one"]["NVIDIA H200"])
    assert [states[name]["NVIDIA H200"] for name in ("a/two", "b/cpu")] == ["not yet", ""]

    for device, home in (("cpu", "CPU"), ("gpu-h200", "NVIDIA H200")):
        out = f"build/{device}"
        project.built("-D", "book_recorded=1", out=out, BOOK_DEVICE=device)
        rows = table(project, out)
        assert rows["a/one"]["this build"] == "recorded"
        assert rows["a/one"]["executed (UTC)"].startswith("202" if home == "CPU" else "201")
        assert lines(project, "a/one", out) == [f"Recorded on {d}" for d in order(device)]

    project.edit(one, "```{code-cell} python\n1\n", "```{code-cell} python\n4\n")
    project.built()
    assert ", before code of this page changed." in project.html("a/one")
    assert table(project)["a/one"]["NVIDIA H200"].startswith("earlier code 201")


def order(device):
    """Return both devices, this one first."""
    return sorted(("cpu", "gpu-h200"), key=lambda other: other != device)


def test_the_first_recording_of_a_device_is_seen_on_every_page_and_in_one_sentence(project):
    devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200", "tpu-v5e": "TPU v5e"}
    project.configure(f"book_devices = {devices}")
    project.page("status", "```{recorded-devices}\n```")
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    project.recorded()
    project.built()
    assert "NVIDIA H200" not in project.html("a/two")
    project.recorded_elsewhere("a/one")
    project.built()
    assert "Not recorded on NVIDIA H200 yet: what you see is from CPU." in project.html("a/two")
    said = "Recorded so far: CPU (2 pages), NVIDIA H200 (1 page). Not recorded yet: TPU v5e."
    assert said in project.html("status")
    assert project.soup("status").body.get_text().count("TPU v5e") == 1


def test_processes_are_counted_for_each_device(project, noting):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    project.page("status", "```{page-status}\n```")
    measured = project.cell("note('x', 0.5)\nnote('y', 0.5)", snippet="a.notes.note")
    project.page("a/one", measured, benchmark=True)
    project.page("a/two", project.cell("2"))
    project.recorded("--processes", "1")
    project.recorded_elsewhere("a/one")
    project.recorded("--processes", "2")
    project.built("-D", "book_recorded=1")
    recorded = table(project)
    assert recorded["a/one"]["CPU"].endswith(", 2 processes")
    assert recorded["a/one"]["NVIDIA H200"].endswith(", 1 process")
    assert "process" not in recorded["a/two"]["CPU"]
