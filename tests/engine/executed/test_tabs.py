"""What is shown of a cell, and said of a page, for each device."""

import types

import nbformat
import pytest

from executed import tabs
from executed.options import Options
from executed.source.pages import Cell, Page
from executed.store.device_outputs import DeviceResult
from executed.store.matching import CHANGED
from executed.store.output_format import CellOutputs, PageOutputs, RunMetadata
from executed.store.states import State

OPTIONS = Options(devices={"cpu": "CPU", "gpu": "A <GPU>"}, record_command="record")
NODE = nbformat.v4.new_code_cell("1")
PAGE = Page("a/one", nbformat.v4.new_notebook(), (Cell("key", "1", 1, None, NODE),), {})


def text(words):
    return [nbformat.v4.new_output("stream", text=words)]


def gave(device, outputs, missing="", keys=("key",), **facts):
    cells = (CellOutputs(key, tuple(outputs), missing, **facts) for key in keys)
    run = RunMetadata("a/one", device, device, "2026-01-02", 1.0, "P", 2, {})
    return PageOutputs(run, tuple(cells))


def live(outputs, missing="", keys=("key",)):
    return DeviceResult("cpu", gave("cpu", outputs, missing, keys), State("missing"), None, True)


def recorded(outputs, missing="", device="gpu", state=None, keys=("key",), **facts):
    made = gave(device, outputs, missing, keys, **facts)
    return DeviceResult(device, made, state or State("current"), made, False)


def lacking(device, state=None):
    return DeviceResult(device, None, state or State("missing"), None, False)


def shown(*editions):
    """Return [(device, texts, note)] of the page's only cell."""
    (panels,) = tabs.panels(PAGE, editions, OPTIONS)
    return [
        (p.device, None if p.outputs is None else "".join(o.text for o in p.outputs), p.note)
        for p in panels
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
        ("tpu", None, "Not recorded on tpu yet; ‘record a/one’ on such a machine records it."),
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
            lacking("gpu", State("unreadable", ("it is empty",))),
            "The recording on A <GPU> is unreadable: it is empty.",
        ),
        (
            recorded([], state=State("earlier code"), keys=()),
            "Not recorded on A <GPU> with this code.",
        ),
    ],
)
def test_a_recording_without_the_cell_says_why(edition, words):
    (found, *_) = shown(edition)
    assert found == ("gpu", None, words)


def test_the_download_holds_the_outputs_of_the_first_device():
    panels = [tabs.Panel("cpu", text("a")), tabs.Panel("gpu", text("b"))]
    assert tabs.first_outputs(tabs.marked(panels, OPTIONS)) == text("a")
    assert tabs.first_outputs(text("a") + text("b")) == text("a") + text("b")


def test_a_reader_who_chose_another_device_is_told():
    def notice(device, only=False, **states):
        state = types.SimpleNamespace(home="cpu", only=only, states=states)
        return tabs.notice(OPTIONS, device, state)

    assert notice("cpu", cpu=State("earlier code"), only=True) == ""
    assert notice("gpu", gpu=State("current")) == ""
    assert notice("gpu") == "Not recorded on A <GPU> yet: what you see is from CPU."
    assert notice("gpu", only=True) == "This page is executed on CPU only."
    assert notice("gpu", gpu=State("stale", ("x",))) == "The recording on A <GPU> is stale: x."


def test_a_measured_cell_has_tabs_for_recordings_alone():
    schema = types.SimpleNamespace(
        media_type="application/record+json", problem=lambda record: "it is none"
    )
    measured = nbformat.v4.new_output(
        "display_data", {"text/plain": "1 s", "application/record+json": {}}
    )

    def devices(*editions):
        (panels,) = tabs.panels(PAGE, editions, OPTIONS, schema)
        return [panel.device for panel in panels]

    assert devices(live([measured]), lacking("gpu"), lacking("tpu")) == ["cpu"]
    assert devices(live([measured]), recorded([measured]), lacking("tpu")) == ["cpu", "gpu"]
    nothing = recorded([], state=State("earlier code"), keys=())
    assert devices(live([measured]), nothing) == ["cpu", "gpu"]


def other_code(outputs, measures=True):
    """Return what a device gave of another code of the cell."""
    return recorded(outputs, standing=CHANGED, source="2", measures=measures)


def test_what_other_code_printed_stands_beneath_and_says_so():
    (panels,) = tabs.panels(PAGE, [live(text("a")), other_code(text("b"))], OPTIONS)
    home, other = panels
    assert (home.outputs, home.note) == (text("a"), "")
    assert (other.outputs, other.note) == (None, "Not recorded on A <GPU> with this code.")
    assert (other.code, other.former, other.earlier) == ("2", text("b"), "2026-01-02")
    shown = tabs.marked(panels, OPTIONS)
    assert tabs.first_outputs(shown) == text("a")
    # What is the same again is not shown twice.
    (panels,) = tabs.panels(PAGE, [live(text("a")), other_code(text("a"))], OPTIONS)
    assert [(panel.device, panel.code) for panel in panels] == [("cpu", ""), ("gpu", "")]
    (panels,) = tabs.panels(PAGE, [live([]), other_code([])], OPTIONS)
    assert [panel.device for panel in panels] == ["cpu"]


def test_what_other_code_printed_here_is_folded_and_none_of_it_downloaded():
    here = other_code(text("b"))
    (panels,) = tabs.panels(PAGE, [here], OPTIONS)
    (home,) = panels
    assert (home.outputs, home.former) == (None, text("b"))
    assert tabs.first_outputs(tabs.marked(panels, OPTIONS)) == []


def test_a_measurement_stays_as_long_as_what_is_measured_is_the_same():
    schema = types.SimpleNamespace(
        media_type="application/record+json", problem=lambda record: "it is none"
    )
    data = {"text/plain": "1 s", "application/record+json": {}}
    measured = [nbformat.v4.new_output("display_data", data)]

    def of(*arguments):
        (panels,) = tabs.panels(PAGE, [live(measured), other_code(*arguments)], OPTIONS, schema)
        return panels[1]

    kept = of([*measured, *text("b")])
    assert [each.text for each in kept.outputs] == ["1 s\n"]
    assert kept.note == "Measured 2026-01-02; other code of its page has changed since."
    assert (kept.code, kept.former) == ("2", text("b"))
    assert of(measured).code == ""
    gone = of(measured, False)
    assert (gone.outputs, gone.note) == (None, "Not recorded on A <GPU> with this code.")
    assert [each.text for each in gone.former] == ["1 s\n"]


def context_of(shown, body="<h1>One</h1>"):
    state = types.SimpleNamespace(home="cpu", only=False, states={})
    env = types.SimpleNamespace(book_pages={"a/one": state})
    book = types.SimpleNamespace(options=OPTIONS, shown=shown)
    context = {"body": body}
    tabs.add_notices(types.SimpleNamespace(book=book, env=env), "a/one", "", context, None)
    return context


def test_there_is_no_choice_where_one_device_is_shown():
    assert context_of(["cpu"]) == {"body": "<h1>One</h1>", "book_devices": []}
    assert context_of(["cpu", "gpu"])["book_devices"] == [("cpu", "CPU"), ("gpu", "A <GPU>")]


def test_names_of_devices_are_escaped_in_notices():
    body = context_of(["cpu", "gpu"])["body"]
    assert "Not recorded on A &lt;GPU&gt; yet" in body
    assert body.count('class="device-notice"') == 1
