"""The status page says of every executed page on what, when and how it came about."""

import re

from bs4 import BeautifulSoup


def table(project, out="build/html", number=0):
    """Return {page: {column: text}} of a table of the status page."""
    page = BeautifulSoup(project.html("status", out), "html.parser")
    head, *rows = page.select("table.page-status")[number].find_all("tr")
    columns = [cell.get_text(strip=True) for cell in head.find_all("th")]
    found = {}
    for row in rows:
        cells = row.find_all("td")
        link = cells[0].find("a")
        texts = [cell.get_text(strip=True) for cell in cells]
        found[texts[0]] = dict(zip(columns, texts, strict=True)) | {"link": link["href"]}
    return found


def text(project):
    return BeautifulSoup(project.html("status"), "html.parser").get_text(" ", strip=True)


def test_every_page_has_its_row_in_each_build(project, noting):
    project.page("status", "```{page-status}\n```")
    one = project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    project.page(
        "b/bench",
        project.cell(
            "note('x', 0.5)\nnote('y', 0.5)",
            snippet="a.notes.note",
        ),
        benchmark=True,
    )
    project.page("c/prose", "Nothing is executed.")

    assert project.build().green
    rows = table(project)
    assert sorted(rows) == ["a/one", "a/two", "b/bench"]
    assert {row["this build"] for row in rows.values()} == {"executed"}
    for name, row in rows.items():
        assert row["link"] == f"{name}.html"
        assert re.fullmatch(r"\d\.\d s", row["took"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", row["executed (UTC)"])
    project.edit(one, "```{code-cell} python\n1\n", "```{code-cell} python\n1 / 0\n")
    assert project.build().status == 1
    rows = table(project)
    assert {name: row["this build"] for name, row in rows.items()} == {
        "a/one": "failed",
        "a/two": "cached",
        "b/bench": "cached",
    }

    project.edit(one, "1 / 0", "1")
    assert project.build().green
    assert {row["this build"] for row in table(project).values()} == {"cached"}

    project.path("a/two").unlink()
    assert project.build().green
    assert sorted(table(project)) == ["a/one", "b/bench"]


def test_a_page_that_cannot_be_read_is_failed_on_the_status_page(project):
    project.page("status", "```{page-status}\n```")
    project.page("a/one", project.cell("1", snippet="no.such"))
    assert project.build().status == 1
    assert table(project)["a/one"]["this build"] == "failed"


def test_each_page_says_on_what_its_outputs_came_about(project):
    project.page("a/one", project.cell("1"))
    project.page("a/prose", "Nothing is executed.")
    assert project.build().green
    (line,) = BeautifulSoup(project.html("a/one"), "html.parser").select("p.provenance")
    assert re.match(r"Executed \d{4}-\d\d-\d\d \d\d:\d\d UTC on cpu \(.+\d threads\)", line.text)
    assert "python 3." in line.text
    assert "provenance" not in project.html("a/prose")


def test_below_a_page_are_the_versions_of_what_it_imports(project):
    project.page("a/one", project.cell("def f():\n    import numpy"))
    project.page("a/none", project.cell("1"))
    assert project.record().returncode == 0
    for options in ((), ("-D", "book_recorded=1")):
        assert project.build(*options).green
        versions = {
            name: BeautifulSoup(project.html(name), "html.parser").select_one("p.provenance").text
            for name in ("a/one", "a/none")
        }
        assert re.search(r"with numpy [\d.]+, python 3[\d.]+$", versions["a/one"])
        assert re.search(r"with python 3[\d.]+$", versions["a/none"])


def test_what_was_measured_in_a_trial_says_so_and_is_not_kept(noting, project, stamping):
    """Neither the next build nor the recorder takes it for a measurement."""
    count = "note('f', 1.0 + len(list(stamps.glob('run-*'))))\nstamp(f'run-{os.getpid()}')"
    measured = project.cell(count, snippet="notes.note")
    project.page("a/bench", stamping, measured, benchmark=True)
    project.page("a/one", project.cell("1"))
    said = "Preview: this page was measured with few samples"
    for option, preview in (("1", True), ("0", False)):
        assert project.build("-D", f"book_preview={option}").green
        assert project.records()[0]["processes"][0]["latency"][0] == (1.0 if preview else 2.0)
        assert (said in project.html("a/bench")) == preview
        assert said not in project.html("a/one")
    project.configure("book_preview = True")
    assert project.record("--processes", "1").returncode == 0
    # The recorder measures by itself, and what was tried counts for nothing.
    assert len(list(project.stamps.glob("run-*"))) == 2 + 1


def test_a_page_says_on_what_its_recordings_were_made(project):
    project.page("a/one", project.cell("1"))
    assert project.record().returncode == 0
    project.recorded_elsewhere("a/one", ('"processor": "', '"driver": "580.1", "processor": "'))
    assert project.build().green
    page = BeautifulSoup(project.html("a/one"), "html.parser")
    lines = [line.get_text() for line in page.select("p.provenance")]
    assert len(lines) == 2
    assert lines[0].startswith("Executed 20") and " on cpu (" in lines[0]
    assert lines[1].startswith("Recorded 20") and " on gpu-h200 (" in lines[1]
    assert "driver 580.1" in lines[1]


def lines(project, docname, out="build/html"):
    """Return what stands below a page, each line up to its first bracket and without its date."""
    found = BeautifulSoup(project.html(docname, out), "html.parser").select("p.provenance")
    return [
        re.sub(r" [\d-]{10}( [\d:]{5} UTC)?", "", line.text.partition(" (")[0]) for line in found
    ]


def test_recordings_have_their_table_and_their_lines_below_the_page(project):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    project.page("status", "```{page-status}\n```")
    one = project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    project.page("b/cpu", project.cell("3"), device="cpu")
    assert project.record().returncode == 0
    project.recorded_elsewhere("a/one", ('"executed": "202', '"executed": "201'))
    assert project.build().green
    assert lines(project, "a/one") == ["Executed on cpu", "Recorded on gpu-h200"]
    assert lines(project, "a/two") == ["Executed on cpu"]
    states = table(project)
    assert re.fullmatch(r"current 202\d-\d\d-\d\d", states["a/one"]["CPU"])
    assert re.fullmatch(r"current 201\d-\d\d-\d\d", states["a/one"]["NVIDIA H200"])
    assert [states[name]["NVIDIA H200"] for name in ("a/two", "b/cpu")] == ["not yet", "–"]

    for device, home in (("cpu", "CPU"), ("gpu-h200", "NVIDIA H200")):
        out = f"build/{device}"
        build = project.build("-D", "book_recorded=1", out=out, BOOK_DEVICE=device)
        assert build.green, build.output
        rows = table(project, out)
        assert rows["a/one"]["this build"] == "recorded"
        assert rows["a/one"]["executed (UTC)"].startswith("202" if home == "CPU" else "201")
        assert lines(project, "a/one", out) == [f"Recorded on {d}" for d in order(device)]

    project.edit(one, "```{code-cell} python\n1\n", "```{code-cell} python\n4\n")
    assert project.build().green
    assert "(earlier code: 1 cell new)." in project.html("a/one")
    assert table(project)["a/one"]["NVIDIA H200"].startswith("earlier code 201")


def order(device):
    """Return both devices, this one first."""
    return sorted(("cpu", "gpu-h200"), key=lambda other: other != device)


def test_a_page_that_failed_does_not_say_on_what_it_was_executed(project):
    project.page("status", "```{page-status}\n```")
    project.page("a/one", project.cell("1 / 0"))
    assert project.build().status == 1
    assert lines(project, "a/one") == []
    assert table(project)["a/one"]["this build"] == "failed"


def test_what_is_recorded_on_no_page_is_said_in_one_sentence(project):
    devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200", "tpu-v5e": "TPU v5e"}
    project.configure(f"book_devices = {devices}")
    project.page("status", "```{recorded-devices}\n```")
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    assert project.record().returncode == 0
    project.recorded_elsewhere("a/one")
    assert project.build().green
    page = project.html("status")
    said = "Recorded so far: CPU (2 pages), NVIDIA H200 (1 page). Not recorded yet: TPU v5e."
    assert said in page
    assert BeautifulSoup(page, "html.parser").body.get_text().count("TPU v5e") == 1


def test_the_first_recording_of_a_device_is_seen_on_every_page(project):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    assert project.record().returncode == 0
    assert project.build().green
    assert "NVIDIA H200" not in project.html("a/two")
    project.recorded_elsewhere("a/one")
    assert project.build().green
    assert "Not recorded on NVIDIA H200 yet: what you see is from CPU." in project.html("a/two")


def test_processes_are_counted_for_each_device(project, noting):
    project.configure('book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}')
    project.page("status", "```{page-status}\n```")
    measured = project.cell("note('x', 0.5)\nnote('y', 0.5)", snippet="a.notes.note")
    project.page("a/one", measured, benchmark=True)
    project.page("a/two", project.cell("2"))
    assert project.record("--processes", "1").returncode == 0
    project.recorded_elsewhere("a/one")
    assert project.record("--processes", "2").returncode == 0
    assert project.build("-D", "book_recorded=1").green
    recorded = table(project)
    assert recorded["a/one"]["CPU"].endswith(", 2 processes")
    assert recorded["a/one"]["NVIDIA H200"].endswith(", 1 process")
    assert "process" not in recorded["a/two"]["CPU"]


def test_the_foot_of_a_page_names_the_processor_as_its_numbers_do(project, noting):
    project.page("b/one", project.cell("note('x', 0.5)", "a.notes.note"))
    assert project.build().green
    (foot,) = re.findall(r'<p class="provenance">(.*?)</p>', project.html("b/one"))
    assert "on cpu (A processor, " in foot
