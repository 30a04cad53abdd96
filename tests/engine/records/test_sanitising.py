"""What comes from another machine can neither run nor load anything on the page."""

import base64
import math
import pathlib

import nbformat
import pytest
from _ext.measurements.schema import Schema
from _ext.records.sanitising import CHECKS, Refused, accepted, recordable

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4" width="4" role="img">{}</svg>'


def display(**data):
    kinds = {"html": "text/html", "svg": "image/svg+xml", "png": "image/png"}
    bundle = {kinds.get(name, name): value for name, value in data.items()}
    return nbformat.from_dict({"output_type": "display_data", "data": bundle, "metadata": {}})


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>",
        '<img src="x" onerror="alert(1)">',
        '<p onmouseover="alert(1)">x</p>',
        '<a href="javascript:alert(1)">x</a>',
        '<iframe src="https://evil.example"></iframe>',
        '<object data="https://evil.example"></object>',
        '<link rel="stylesheet" href="https://evil.example">',
        "<style>body { background: url(https://evil.example) }</style>",
        '<p style="background: url(https://evil.example)">x</p>',
        '<p style="position: fixed; top: 0">x</p>',
        '<form action="https://evil.example"><input></form>',
        '<meta http-equiv="refresh" content="0;url=https://evil.example">',
        "<svg><script>alert(1)</script></svg>",
        "<svg><foreignObject><iframe src='https://evil.example'></iframe></foreignObject></svg>",
        '<svg><use href="https://evil.example/x.svg#a"/></svg>',
        '<svg><image href="https://evil.example/x.png"/></svg>',
        '<svg><rect fill="url(https://evil.example/x.svg#a)"/></svg>',
        r'<svg><rect style="fill: u\72l(https://evil.example/x.svg#a)"/></svg>',
        r'<svg><rect fill="u\72l(https://evil.example/x.svg#a)"/></svg>',
        '<svg><rect onclick="alert(1)"/></svg>',
        '<svg><a href="javascript:alert(1)"><text>x</text></a></svg>',
        '<svg><set attributeName="onmouseover" to="alert(1)"/></svg>',
        "<math><mtext><style><img src=x onerror=alert(1)></style></mtext></math>",
        "<p>x</p><!-- [if IE]><script>alert(1)</script><![endif] -->",
        "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
    ],
)
@pytest.mark.parametrize("kind", ["html", "svg"])
def test_nothing_that_runs_or_loads_passes(kind, html):
    passed = "".join(accepted(display(**{kind: html})).data.values()).lower()
    for word in ("script", "alert(1)", "evil.example", "<img", "<iframe", "position", "onerror="):
        assert word not in passed.replace("&lt;img", "").replace("onerror=alert(1)&gt;", "")


@pytest.mark.parametrize(
    ("kind", "markup"),
    [
        ("svg", SVG.format('<rect x="1" y="1" fill="currentColor" opacity="0.5"></rect>')),
        ("svg", SVG.format('<text font-size="3" text-anchor="middle">a &lt; b</text>')),
        ("svg", SVG.format('<path d="M0 0L4 4" stroke="#2f6fb3" marker-end="url(#tip)"></path>')),
        ("html", '<table style="width:100%"><tbody><tr><th>a</th></tr></tbody></table>'),
        ("html", SVG.format("<title>a picture</title>")),
    ],
)
def test_tables_and_drawings_pass_as_they_are(kind, markup):
    assert list(accepted(display(**{kind: markup})).data.values()) == [markup]


def test_what_passed_once_passes_again_unchanged():
    odd = '<table><tr><td onclick="x">a<br>b</table><svg><circle r=2></svg>'
    once = accepted(display(html=odd)).data["text/html"]
    assert accepted(display(html=once)).data["text/html"] == once


ROOT = pathlib.Path(__file__).parents[3]
SCHEMA = Schema.load(ROOT / "snippets" / "timing" / "measurement.schema.json")
RECORD = {
    "version": 1,
    "name": "x",
    "framework": "jax",
    "device_kind": "cpu",
    "processor": "A processor",
    "threads": 2,
    "shape": [[2, 2]],
    "dtype": "float32",
    "precision": "highest",
    "samples": [0.5, 0.5],
    "calls_per_sample": 1,
    "first_call": 1.5,
    "work": None,
    "error": None,
    "median": 0.5,
    "spread": 0.01,
    "stable": True,
    "rate": None,
    "versions": {"jax": "0.10.2"},
    "date": "2026-01-02T03:04:05+00:00",
}
KIND = "application/vnd.jax-measured.record+json"


def measurement(record):
    return display(**{KIND: dict(record), "text/plain": "x took 0.5"})


def test_a_measurement_passes():
    assert accepted(measurement(RECORD), SCHEMA).data[KIND] == RECORD


def test_without_a_schema_no_record_is_a_measurement():
    with pytest.raises(Refused, match="which is not accepted"):
        accepted(measurement(RECORD))


def test_a_measurement_that_the_schema_does_not_allow_is_refused():
    with pytest.raises(Refused, match=r"a measurement that is none \(median: True is not"):
        accepted(measurement(RECORD | {"median": True}), SCHEMA)


def test_a_measurement_without_its_median_is_refused():
    with pytest.raises(Refused):
        accepted(measurement({k: v for k, v in RECORD.items() if k != "median"}), SCHEMA)


@pytest.mark.parametrize(
    "output",
    [
        display(**{"text/javascript": "alert(1)"}),
        display(**{"application/vnd.jupyter.widget-view+json": {}}),
        display(**{"text/plain": {"not": "text"}}),
        display(png=base64.b64encode(b"GIF89a").decode()),
        display(png="no base64"),
        display(**{"text/plain": "x" * 500_000}),
        display(**{KIND: dict(RECORD)}),
        measurement(RECORD | {"median": math.nan}),
        measurement(RECORD | {"error": math.inf}),
        nbformat.v4.new_output("stream", name="another", text="x"),
        nbformat.from_dict({"output_type": "update_display_data", "data": {}, "metadata": {}}),
    ],
)
def test_other_kinds_and_sizes_are_refused(output):
    with pytest.raises(Refused):
        accepted(output, SCHEMA)


def test_what_an_output_says_about_itself_is_dropped():
    output = display(png=base64.b64encode(b"\x89PNG\r\n\x1a\n").decode())
    output.metadata = nbformat.from_dict({"image/png": "x", "scrapbook": {"name": "x"}})
    assert accepted(output).metadata == {}


def test_a_png_passes():
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
    assert accepted(display(png=image)).data["image/png"] == image


def test_streams_are_joined_and_logs_of_libraries_left_out():
    stream = nbformat.v4.new_output
    found = recordable(
        [
            stream("stream", text="a\n"),
            stream("stream", text="b\n"),
            stream("stream", name="stderr", text="I0000 00:00:00.1 1 x.cc:1] noise\n"),
            stream("execute_result", data={"text/plain": "1"}, execution_count=7),
        ]
    )
    assert [output.output_type for output in found] == ["stream", "execute_result"]
    assert found[0].text == "a\nb\n"
    assert found[1].execution_count is None


def test_names_of_the_machine_leave_tracebacks_and_tables_too(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "node7.lab.example")
    monkeypatch.setenv("HOME", "/home/somebody")
    traceback = ["ran on node7", "in /home/somebody/x.py at 0x7f0123456789"]
    error = nbformat.v4.new_output(
        "error", ename="OSError", evalue="node7.lab.example", traceback=traceback
    )
    failed, table = recordable([error, display(html="<p>node7 at 0x7f0123456789</p>")])
    assert failed.traceback == ["ran on host", "in ~/x.py at 0x…"]
    assert failed.evalue == "host"
    assert table.data["text/html"] == "<p>host at 0x…</p>"


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("value", [7, None, ["<p>x</p>"], {"a": 1}])
def test_every_accepted_kind_is_checked(kind, value):
    with pytest.raises(Refused):
        accepted(display(**{"text/plain": "x", kind: value}))
