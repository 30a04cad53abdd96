"""A recording as a file: what belongs to which cell, what is refused, how it is replaced."""

import json
import pathlib

import nbformat
import pytest
from _ext.records import recordings
from _ext.source.pages import read_page
from _ext.source.snippets import Library

FACTS = {
    "device": "gpu-x",
    "device_kind": "X",
    "executed": "2026-01-02T03:04:05+00:00",
    "processor": "A processor",
    "seconds": 1.5,
    "threads": 2,
    "versions": {"python": "3.11"},
}


@pytest.fixture
def book(project):
    """Return a project whose pages are recorded without being executed."""
    project.folder = project.root / "recorded"

    def page(*cells):
        path = project.page("a/one", *map(project.cell, cells))
        found = read_page("a/one", path, Library(project.root / "snippets"))
        for number, cell in enumerate(found.code_cells):
            cell["outputs"] = [nbformat.v4.new_output("stream", text=f"output {number}")]
        return found

    project.read = page
    return project


@pytest.fixture
def path(book):
    """Return the file of a recording."""
    return recordings.write(book.folder, book.read("1", "2"), FACTS)


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


def stream(text):
    return [{"output_type": "stream", "name": "stdout", "text": text}]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (edit_cell(source="import os"), "its cell 2 is not an output without code"),
        (edit_cell(id="other", outputs=[{"output_type": "new"}]), "it is no recording"),
        (edit_cell(outputs="none"), "it is no recording"),
        (edit_cell(outputs=stream("\ud800")), "it is no recording"),
        (without_names, "its cell 1 is not an output without code"),
        (lambda notebook: notebook["metadata"].clear(), "it is no recording"),
        (edit_fact(modules=1), "it is no recording"),
        (edit_fact(memory=80), "its fact 'memory' is missing or of the wrong type"),
        (edit_fact(versions="3.11"), "its fact 'versions'"),
        (edit_fact(page="a/two"), "it is a recording of the page a/two"),
        (edit_fact(device="cpu"), "it is a recording of the device cpu"),
    ],
)
def test_what_is_no_recording_says_why(book, path, edit, words):
    change(path, edit)
    with pytest.raises(recordings.RecordingError, match=words):
        recordings.read(book.folder, "gpu-x", "a/one")


def test_prose_is_not_accepted(book, path):
    prose = {"cell_type": "markdown", "id": "x", "metadata": {}, "source": ""}
    change(path, lambda notebook: notebook["cells"].append(prose))
    with pytest.raises(recordings.RecordingError, match="its cell 3 is not an output"):
        recordings.read(book.folder, "gpu-x", "a/one")


def test_what_is_no_text_or_no_file_or_never_ends_is_unreadable(book, path):
    def state():
        return recordings.state(book.folder, "gpu-x", "a/one", book.read("1", "2"))

    assert state().word == "current"
    path.write_bytes(path.read_bytes() + b"\xff")
    assert state().word == "unreadable"
    path.unlink()
    path.mkdir()
    assert state().word == "unreadable"
    path.rmdir()
    path.symlink_to("/dev/zero")
    assert state().word == "unreadable"
    path.unlink()
    path.symlink_to("nowhere")
    assert state().word == "missing"


def test_equal_cells_have_outputs_of_their_own(book):
    page = book.read("next(numbers)", "next(numbers)", "next(numbers)")
    recordings.write(book.folder, page, FACTS)
    found = recordings.read(book.folder, "gpu-x", "a/one")
    texts = [found.cell(key).outputs[0].text for key in recordings.cell_keys(page)]
    assert texts == ["output 0", "output 1", "output 2"]


def test_the_error_that_a_cell_declares_is_part_of_its_code(book, path):
    page = book.read("1", "2")
    page.code_cells[1].metadata["expected_error"] = {"type": "ValueError"}
    assert recordings.state(book.folder, "gpu-x", "a/one", page).word == "stale"


def test_a_recording_is_replaced_at_once_or_not_at_all(book, path, monkeypatch):
    before = path.read_bytes()

    def broken(self, target):
        raise OSError("no space left")

    monkeypatch.setattr(pathlib.Path, "replace", broken)
    with pytest.raises(OSError, match="no space"):
        recordings.write(book.folder, book.read("3"), FACTS)
    assert path.read_bytes() == before


def test_a_recording_that_could_not_be_read_again_is_not_written(book, path):
    before = path.read_bytes()
    page = book.read(*map(str, range(15)))
    for cell in page.code_cells:
        cell.outputs[0]["text"] = "x" * 300_000
    with pytest.raises(recordings.RecordingError, match="larger than"):
        recordings.write(book.folder, page, FACTS)
    assert path.read_bytes() == before


def test_a_folder_without_recordings_is_no_device(book, path):
    (book.folder / "compiled").mkdir()
    (book.folder / "compiled" / "x.json").write_text("{}")
    assert recordings.devices(book.folder) == ["gpu-x"]
