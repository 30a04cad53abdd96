"""A recording as a file: what belongs to which cell, what is refused, how it is replaced."""

import dataclasses
import json

import nbformat
import pytest

from executed.files import Unusable
from executed.source.pages import read_page
from executed.source.snippets import Library
from executed.store.output_format import CellOutputs, PageOutputs, RunMetadata
from executed.store.recordings import Recordings

FACTS = RunMetadata(
    page="a/one",
    device="gpu-x",
    device_kind="X",
    executed="2026-01-02T03:04:05+00:00",
    seconds=1.5,
    processor="A processor",
    threads=2,
    versions={"python": "3.11"},
)


@pytest.fixture
def recordings(project):
    return Recordings(project.root / "recorded")


@pytest.fixture
def read(project):
    """Return a function that reads a page of some cells."""

    def read(*cells):
        path = project.page("a/one", *map(project.cell, cells))
        return read_page("a/one", path, Library(project.root / "snippets"))

    return read


def outputs(page):
    texts = [f"output {number}" for number in range(len(page.cells))]
    made = [(nbformat.v4.new_output("stream", text=text),) for text in texts]
    cells = [CellOutputs(c.key, o, source=c.source) for c, o in zip(page.cells, made, strict=True)]
    return PageOutputs(FACTS, tuple(cells))


@pytest.fixture
def path(recordings, read):
    """Return the file of a recording."""
    return recordings.write(outputs(read("1", "2")), "record")


def change(path, edit):
    notebook = json.loads(path.read_text("utf8"))
    edit(notebook)
    path.write_text(json.dumps(notebook), "utf8")


def edit_fact(**facts):
    return lambda notebook: notebook["metadata"]["recording"].update(facts)


def edit_cell(**fields):
    return lambda notebook: notebook["cells"][1].update(fields)


def without_names(notebook):
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        del cell["id"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (edit_cell(id="other", outputs=[{"output_type": "new"}]), "it is no recording"),
        (edit_cell(outputs="none"), "it is no recording"),
        (without_names, "its cell 1 is no code that was executed"),
        (lambda notebook: notebook["metadata"].clear(), "it is no recording"),
        (lambda notebook: notebook["metadata"].update(recording=5), "it is no recording"),
        (edit_fact(executed=5), r"recording\['executed'\] is 5, and must be a text"),
        (edit_fact(form=1), "it has the form 1"),
        (lambda notebook: notebook["metadata"]["recording"].pop("form"), "it has the form 1"),
        (edit_fact(memory=80), r"its facts are wrong: recording\['memory'\] is 80"),
        (edit_fact(versions="3.11"), r"recording\['versions'\] is '3.11'"),
        (edit_fact(versions={"jax": 1}), r"\['versions'\]\['jax'\] is 1, and must be a text"),
        (edit_fact(threads=True), r"\['threads'\] is True"),
        (edit_fact(unknown="fact"), "its facts are wrong: recording has no key 'unknown'"),
        (edit_fact(page="a/two"), "it is a recording of the page a/two"),
        (edit_fact(device="cpu"), "it is a recording of the device cpu"),
    ],
)
def test_what_is_no_recording_says_why(recordings, path, edit, words):
    change(path, edit)
    with pytest.raises(Unusable, match=words) as refused:
        recordings.read("gpu-x", "a/one")
    assert len(str(refused.value)) < 500


def test_prose_is_not_accepted(recordings, path):
    prose = {"cell_type": "markdown", "id": "x", "metadata": {}, "source": ""}
    change(path, lambda notebook: notebook["cells"].append(prose))
    with pytest.raises(Unusable, match="its cell 3 is no code that was executed"):
        recordings.read("gpu-x", "a/one")


def test_what_is_no_text_or_no_file_is_unreadable(recordings, read, path):
    def state():
        return recordings.state("gpu-x", "a/one", read("1", "2"))[0].standing

    assert state() == "current"
    path.write_bytes(path.read_bytes() + b"\xff")
    assert state() == "unreadable"
    path.unlink()
    path.mkdir()
    assert state() == "unreadable"
    path.rmdir()
    assert state() == "missing"


def test_equal_cells_have_outputs_of_their_own(recordings, read):
    page = read("next(numbers)", "next(numbers)", "next(numbers)")
    recordings.write(outputs(page), "record")
    found = recordings.read("gpu-x", "a/one")
    texts = [found.cell(cell.key).outputs[0].text for cell in page.cells]
    assert texts == ["output 0", "output 1", "output 2"]


def test_what_is_written_is_read_again(recordings, read):
    page = read("1", "2")
    made = outputs(page)
    missing = dataclasses.replace(made.cells[1], outputs=(), missing="torch")
    facts = dataclasses.replace(FACTS, driver="580.1", memory="141 GiB", process="forked")
    made = dataclasses.replace(made, facts=facts, cells=(made.cells[0], missing))
    recordings.write(made, "record")
    assert recordings.read("gpu-x", "a/one") == made


def test_a_recording_is_replaced_at_once_or_not_at_all(recordings, read, path, monkeypatch):
    before = path.read_bytes()

    def broken(self, target):
        raise OSError("no space left")

    monkeypatch.setattr(type(path), "replace", broken)
    with pytest.raises(OSError, match="no space"):
        recordings.write(outputs(read("3")), "record")
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_folder_without_recordings_is_no_device(recordings, path):
    (recordings.root / "compiled").mkdir()
    (recordings.root / "compiled" / "x.json").write_text("{}")
    assert recordings.devices() == ["gpu-x"]
