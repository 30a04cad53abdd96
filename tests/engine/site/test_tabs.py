"""What is shown of a cell, and said of a page, for each device."""

import types

import nbformat
import pytest
from _ext.records.recordings import RecordedCell, Recording, State, cell_keys
from _ext.site import tabs as devices
from _ext.source.pages import Page

CONFIG = types.SimpleNamespace(book_devices={"cpu": "CPU", "gpu": "A <GPU>"})


def text(words):
    return [nbformat.v4.new_output("stream", text=words)]


@pytest.fixture
def page():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=text("a"))])
    return Page("a/one", notebook, {}, False)


def recorded(page, outputs, skipped=None, word="current"):
    cell = RecordedCell(outputs, skipped)
    return State(word, (), Recording({}, dict.fromkeys(cell_keys(page), cell), {}))


def shown(page, home="cpu", **states):
    """Return [(device, texts, note)] of the page's only cell."""
    (panels,) = devices.panels(page, home, states, str.upper)
    return [
        (p.device, None if p.outputs is None else "".join(o.text for o in p.outputs), p.note)
        for p in panels
    ]


def test_the_device_of_the_build_comes_first_then_those_of_the_options():
    assert devices.order(CONFIG, "gpu", ["cpu", "tpu"]) == ["gpu", "cpu", "tpu"]


def test_what_another_device_could_execute_is_shown_beside_the_note(page):
    page.code_cells[0].metadata["skipped"] = "torch"
    note = "Not recorded: torch is not installed."
    assert shown(page, gpu=recorded(page, text("b"))) == [("cpu", None, note), ("gpu", "b", None)]
    assert shown(page, gpu=recorded(page, [], "torch")) == [("cpu", None, note)]


def test_what_another_device_lacks_takes_nothing_from_what_there_is(page):
    assert shown(page, gpu=State("missing")) == [("cpu", "a", None)]
    assert shown(page, gpu=recorded(page, [], "torch")) == [("cpu", "a", None)]
    assert shown(page, None, tpu=State("missing"), gpu=recorded(page, text("b"))) == [
        (
            "tpu",
            None,
            "Not recorded on TPU yet; ‘nox -s record -- a/one’ on such a machine records it.",
        ),
        ("gpu", "b", None),
    ]


def test_a_cell_that_prints_on_one_device_alone_differs(page):
    assert shown(page, gpu=recorded(page, [])) == [("cpu", "a", None), ("gpu", "", None)]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State("unreadable", ("it is empty",)), "The recording on GPU is unreadable: it is empty."),
        (
            State("stale", (), Recording({}, {}, {})),
            "This code was changed after it was recorded on GPU; "
            "‘nox -s record -- a/one’ on such a machine records it again.",
        ),
    ],
)
def test_a_recording_without_the_cell_says_why(page, state, words):
    (found, *_) = shown(page, None, gpu=state)
    assert found == ("gpu", None, words)


def test_drawings_that_are_the_same_once_cleaned_agree(page):
    drawing = {"output_type": "display_data", "metadata": {}, "data": {}}
    live = nbformat.from_dict(drawing | {"data": {"text/html": "<p id='x'>a<br></p>"}})
    kept = nbformat.from_dict(drawing | {"data": {"text/html": "<p>a<br></p>"}})
    page.code_cells[0]["outputs"] = [live]
    (panels,) = devices.panels(page, "cpu", {"gpu": recorded(page, [kept])}, str.upper)
    assert [panel.device for panel in panels] == ["cpu"]


def test_the_download_holds_the_outputs_of_the_first_device():
    panels = [devices.Panel("cpu", text("a")), devices.Panel("gpu", text("b"))]
    assert devices.first_outputs(devices.marked(panels, str.upper)) == text("a")
    assert devices.first_outputs(text("a") + text("b")) == text("a") + text("b")


def test_a_reader_who_chose_another_device_is_told():
    def notice(device, only=False, **states):
        state = types.SimpleNamespace(home="cpu", only=only, states=states)
        return devices.notice(CONFIG, "a/one", device, state)

    assert notice("cpu", cpu=State("stale"), only=True) is None
    assert notice("gpu", gpu=State("current")) is None
    assert notice("gpu") == "Not recorded on A <GPU> yet: what you see is from CPU."
    assert notice("gpu", only=True) == "This page is executed on CPU only."
    assert notice("gpu", gpu=State("stale", ("x",))) == "The recording on A <GPU> is stale: x."


def test_names_of_devices_are_escaped_in_notices():
    state = types.SimpleNamespace(home="cpu", only=False, states={})
    env = types.SimpleNamespace(book_pages={"a/one": state})
    context = {"body": "<h1>One</h1>"}
    devices.tell(types.SimpleNamespace(config=CONFIG, env=env), "a/one", "", context, None)
    assert "Not recorded on A &lt;GPU&gt; yet" in context["body"]
    assert context["body"].count('class="device-notice"') == 1
