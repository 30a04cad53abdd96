"""What is shown of a cell, and said of a page, for each device."""

import types

import nbformat
import pytest
from docutils import nodes
from docutils.utils import new_document

from executed import status
from executed.book import BuiltPage, Inputs, Outcome
from executed.options import Options
from executed.panels import panels
from executed.source.pages import Cell, Page
from executed.store.device_outputs import DeviceResult
from executed.store.output_format import CellOutputs, PageOutputs, RunMetadata
from executed.store.states import CellStanding, Standing, State

OPTIONS = Options(devices={"cpu": "CPU", "gpu": "A <GPU>"}, record_command="record")
NODE = nbformat.v4.new_code_cell("1")
PAGE = Page("a/one", nbformat.v4.new_notebook(), (Cell("key", "1", 1, None, NODE),), {})


KIND = types.SimpleNamespace(
    media_type="application/record+json", problem=lambda record: "it is none"
)


def text(words):
    return [nbformat.v4.new_output("stream", text=words)]


def gave(device, outputs, missing="", keys=("key",), **facts):
    cells = (CellOutputs(key, tuple(outputs), missing, **facts) for key in keys)
    run = RunMetadata("a/one", device, device, "2026-01-02", 1.0, "P", 2, {})
    return PageOutputs(run, tuple(cells))


def live(outputs, missing="", keys=("key",)):
    return DeviceResult(
        "cpu", gave("cpu", outputs, missing, keys), State(Standing.MISSING), None, True
    )


def recorded(outputs, missing="", device="gpu", state=None, keys=("key",), **facts):
    made = gave(device, outputs, missing, keys, **facts)
    return DeviceResult(device, made, state or State(Standing.CURRENT), made, False)


def lacking(device, state=None):
    return DeviceResult(device, None, state or State(Standing.MISSING), None, False)


def said(panel):
    """Return the note of a panel as a text."""
    return f"{panel.note.text}{panel.note.command}{panel.note.rest}" if panel.note else ""


def shown(*editions):
    """Return [(device, texts, note)] of the page's only cell."""
    (cell,) = panels(PAGE, editions, OPTIONS)
    return [
        (p.device, None if p.outputs is None else "".join(o.text for o in p.outputs), said(p))
        for p in cell
    ]


def test_what_another_device_could_execute_is_shown_beside_the_note():
    note = "Not executed: torch is not installed."
    mine = live([], "torch")
    assert shown(mine, recorded(text("b"))) == [("cpu", None, note), ("gpu", "b", "")]
    assert shown(mine, recorded([], "torch")) == [("cpu", None, note)]


def test_what_another_device_lacks_takes_nothing_from_what_there_is():
    assert shown(live(text("a")), lacking("gpu")) == [("cpu", "a", "")]
    assert shown(live(text("a")), recorded([], "torch")) == [("cpu", "a", "")]
    assert shown(live([], "torch"), lacking("gpu")) == [
        ("cpu", None, "Not executed: torch is not installed.")
    ]
    assert shown(lacking("tpu"), recorded(text("b"))) == [
        ("tpu", None, "Not recorded on tpu yet; record a/one on such a machine records it."),
        ("gpu", "b", ""),
    ]


def test_a_cell_that_prints_on_one_device_alone_differs():
    assert shown(live(text("a")), recorded([])) == [("cpu", "a", ""), ("gpu", "", "")]


def test_a_cell_that_a_failed_page_did_not_reach_printed_nothing():
    assert shown(live([], keys=())) == [("cpu", "", "")]


@pytest.mark.parametrize(
    ("edition", "words"),
    [
        (
            lacking("gpu", State(Standing.UNREADABLE, ("it is empty",))),
            "The recording on A <GPU> is unreadable: it is empty.",
        ),
        (
            recorded([], state=State(Standing.EARLIER), keys=()),
            "Not recorded on A <GPU> with this code.",
        ),
    ],
)
def test_a_recording_without_the_cell_says_why(edition, words):
    (found, *_) = shown(edition)
    assert found == ("gpu", None, words)


def test_a_reader_who_chose_another_device_is_told():
    def notice(device, only=False, **states):
        page = BuiltPage(Inputs(device="cpu"), Outcome(only=only, states=states))
        return status.notice(OPTIONS, device, page)

    assert notice("cpu", cpu=State(Standing.EARLIER), only=True) == ""
    assert notice("gpu", gpu=State(Standing.CURRENT)) == ""
    assert notice("gpu") == "Not recorded on A <GPU> yet: what you see is from CPU."
    assert notice("gpu", only=True) == "This page is executed on CPU only."
    assert notice("gpu", gpu=State(Standing.UNREADABLE, ("x",))) == (
        "The recording on A <GPU> is unreadable: x."
    )


def test_a_measured_cell_has_tabs_for_recordings_alone():
    measured = nbformat.v4.new_output(
        "display_data", {"text/plain": "1 s", "application/record+json": {}}
    )

    def devices(*editions):
        (cell,) = panels(PAGE, editions, OPTIONS, [KIND])
        return [panel.device for panel in cell]

    assert devices(live([measured]), lacking("gpu"), lacking("tpu")) == ["cpu"]
    assert devices(live([measured]), recorded([measured]), lacking("tpu")) == ["cpu", "gpu"]
    nothing = recorded([], state=State(Standing.EARLIER), keys=())
    assert devices(live([measured]), nothing) == ["cpu", "gpu"]


def other_code(outputs, measures=True):
    """Return what a device gave of another code of the cell."""
    return recorded(outputs, standing=CellStanding.CHANGED, source="2", kind_stands=measures)


def test_a_measurement_stays_as_long_as_what_is_measured_is_the_same():
    data = {"text/plain": "1 s", "application/record+json": {}}
    measured = [nbformat.v4.new_output("display_data", data)]

    def of(*arguments):
        (cell,) = panels(PAGE, [live(measured), other_code(*arguments)], OPTIONS, [KIND])
        return cell[1]

    kept = of([*measured, *text("b")])
    assert [each.text for each in kept.outputs] == ["1 s\n"]
    assert said(kept) == "Measured 2026-01-02; other code of its page has changed since."
    assert (kept.code, kept.earlier_outputs) == ("2", text("b"))
    assert of(measured).code == ""
    gone = of(measured, False)
    assert (gone.outputs, said(gone)) == (None, "Not recorded on A <GPU> with this code.")
    assert [each.text for each in gone.earlier_outputs] == ["1 s\n"]


def test_names_of_devices_are_escaped_in_notices():
    document = new_document("page")
    document += nodes.section("", nodes.title("", "One"))
    page = BuiltPage(Inputs(device="cpu"), Outcome())
    book = types.SimpleNamespace(options=OPTIONS, shown=["cpu", "gpu"], pages={"a/one": page})
    transform = status.SayHowPageStands(document)
    env = types.SimpleNamespace(book=book, docname="a/one")
    document.settings.env = env
    transform.run()
    (notice,) = document.findall(nodes.raw)
    assert "Not recorded on A &lt;GPU&gt; yet" in notice.astext()


def test_there_is_no_choice_where_one_device_is_shown():
    def context(*shown):
        book = types.SimpleNamespace(options=OPTIONS, shown=shown)
        found = {}
        app = types.SimpleNamespace(env=types.SimpleNamespace(book=book))
        status.add_switch(app, "a/one", "", found, None)
        return found

    assert context("cpu") == {"book_devices": []}
    assert context("cpu", "gpu")["book_devices"] == [("cpu", "CPU"), ("gpu", "A <GPU>")]
