"""What comes from another machine can neither run nor load anything on the page."""

import base64
import io
import json
import math
import pathlib
import re
import struct
import xml.etree.ElementTree
import zlib

import nbformat
import pytest
from _ext.measurements.schema import Schema
from _ext.records.markup import cleaned
from _ext.records.outputs import unshowable
from _ext.records.sanitising import CHECKS, MARKUP, Refused, accepted, recordable
from selectolax.lexbor import LexborHTMLParser

ROOT = pathlib.Path(__file__).parents[3]
SCHEMA = Schema.load(ROOT / "snippets" / "timing" / "measurement.schema.json")


def png(width=1, height=1):
    """Return a PNG image, all black."""
    header = struct.pack(">II", width, height) + b"\x08\0\0\0\0"
    pixels = zlib.compress(bytes((width + 1) * height))
    parts = b"IHDR" + header, b"IDAT" + pixels, b"IEND"
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in parts
    )


# Each part draws the one before it ten times.
LAUGHS = '<g id="n0"><rect width="1" height="1"/></g>' + "".join(
    f'<g id="n{n}">{f"""<use href="#n{n - 1}"/>""" * 10}</g>' for n in range(1, 10)
)
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
@pytest.mark.parametrize("kind", MARKUP)
def test_nothing_that_runs_or_loads_passes(kind, html):
    passed = cleaned(html, MARKUP[kind]).lower()
    for word in ("script", "alert(1)", "evil.example", "<img", "<iframe", "position", "onerror="):
        assert word not in passed.replace("&lt;img", "").replace("onerror=alert(1)&gt;", "")


@pytest.mark.parametrize(
    ("kind", "markup"),
    [
        ("svg", SVG.format('<rect x="1" y="1" fill="currentColor" opacity="0.5"></rect>')),
        ("svg", SVG.format('<text font-size="3" text-anchor="middle">a &lt; b</text>')),
        ("svg", SVG.format('<path d="M0 0L4 4" stroke="#2f6fb3"></path>')),
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


@pytest.mark.parametrize("lines", ["\n\n x", "\n\n\n\n x\n", "\n x", "<b>\n x</b>", "\n\n"])
@pytest.mark.parametrize("start", ["<pre>", '<pre title="a > b" style="color:red">'])
def test_lines_of_preformatted_text_are_all_kept(start, lines):
    markup = f"{start}{lines}</pre>"
    once = cleaned(markup, MARKUP["text/html"])
    assert cleaned(once, MARKUP["text/html"]) == once
    before, after = (LexborHTMLParser(text).css_first("pre").text() for text in (markup, once))
    assert before == after


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
        display(png=base64.b64encode(png() * 9).decode() + "A"),
        display(png=base64.b64encode(png(20_000, 1)).decode()),
        display(html="<div>" * 5_000),
        display(html="<p>" + "<b title='{}'>" * 99 + "</p>" + "<p>x</p>" * 999),
        display(html="<style>*{" + "a{" * 50_000 + "</style>"),
        display(svg=SVG.format(LAUGHS)),
        display(svg=SVG.format('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>')),
        nbformat.from_dict({"output_type": "stream", "name": "stdout", "text": None}),
        nbformat.from_dict({"output_type": "error", "ename": 5, "evalue": "", "traceback": []}),
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
    output = display(png=base64.b64encode(png()).decode())
    output.metadata = nbformat.from_dict({"image/png": "x", "scrapbook": {"name": "x"}})
    assert accepted(output).metadata == {}


def test_a_png_passes():
    image = base64.b64encode(png()).decode()
    assert accepted(display(png=image)).data["image/png"] == image
    assert unshowable([display(png=image)]) == ""


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


def test_names_of_the_machine_leave_tracebacks_and_tables_too(machine):
    machine("somebody", "node7.lab.example")
    traceback = ["ran on node7.lab.example", "in /home/somebody/x.py, <f at 0x7f0123456789>"]
    error = nbformat.v4.new_output(
        "error", ename="OSError", evalue="node7.lab.example", traceback=traceback
    )
    found = recordable([error, display(html="<p>node7.lab.example</p>")])
    assert found[0].traceback == ["ran on host", "in ~/x.py, <f at 0x…>"]
    assert found[0].evalue == "host"
    assert found[1].data["text/html"] == "<p>host</p>"


@pytest.fixture
def machine(monkeypatch):
    """Return a function that gives the machine another user and host."""

    def give(user, host):
        monkeypatch.setattr("socket.gethostname", lambda: host)
        monkeypatch.setattr("getpass.getuser", lambda: user)
        monkeypatch.setenv("HOME", f"/home/{user}")

    return give


@pytest.mark.parametrize(
    "name", ["jax", "gpu", "cpu", "user", "python", "x", "float32", "gpu-h200"]
)
def test_a_name_that_is_a_word_changes_no_text_and_no_record(machine, name):
    machine(name, name)
    text = f"{name} is faster: jit@{name}, {name}/core.py, {name}=1, [{name}], {name}.numpy"
    record = RECORD | {
        "name": f"{name}/jit",
        "framework": name.replace("-", "_"),
        "device_kind": name,
    }
    printed = nbformat.v4.new_output("stream", text=text)
    output = measurement(record)
    output.data["text/plain"] = f"/home/{name}/x took 0.5"
    assert recordable([printed, output], SCHEMA) == [printed, output]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/jax/x.py", "~/x.py"),
        ("file:///home/jax", "file:///home/user"),
        ("/scratch/jax/run, /Users/jax/x", "/scratch/user/run, /Users/user/x"),
        (r"C:\Users\jax\x", r"C:\Users\user\x"),
        ("jax@gpu:~$", "user@host:~$"),
        ("jax@gpu.lab.example", "user@host"),
        ("USER=jax, {'LOGNAME': 'jax'}", "USER=user, {'LOGNAME': 'user'}"),
        ("HOSTNAME=gpu, hostname: gpu", "HOSTNAME=host, hostname: host"),
        ("http://gpu:8888/x, gpu.local", "http://host:8888/x, host.local"),
        ("on gpu.lab.example", "on host"),
        ("/home/jaxon/x, /opt/jax/gpu", "/home/jaxon/x, /opt/jax/gpu"),
    ],
)
def test_names_are_taken_out_where_users_and_machines_are_named(machine, text, left):
    machine("jax", "gpu.lab.example")
    assert recordable([nbformat.v4.new_output("stream", text=text)])[0].text == left


def test_a_name_that_is_no_word_is_taken_out_anywhere(machine):
    machine("root", "f3a9b2c4d5e6")
    assert recordable([nbformat.v4.new_output("stream", text="on f3a9b2c4d5e6!")])[0].text == (
        "on host!"
    )


FORGED = [
    '<div class="position-fixed fixed-top w-100 vh-100 bg-white">x</div>',
    '<div class="modal d-block show">x</div>',
    '<ul class="dropdown-menu show"><li>x</li></ul>',
    '<span class="verdict verdict-holds">x</span>',
    '<div class="admonition"><p class="provenance device-notice on-device">x</p></div>',
    '<p style="margin-top: -200px">x</p>',
    '<p style="margin: 0 0 0 -50em">x</p>',
    '<p style="margin: calc(0px - 99px)">x</p>',
    '<p style="position: absolute">x</p>',
    '<p style="position: fixed; z-index: 9">x</p>',
    '<p style="transform: scale(50)">x</p>',
    '<p style="translate: -100px">x</p>',
    '<p style="float: left">x</p>',
    '<p style="inset: 0">x</p>',
    '<p style="width: 100vw">x</p>',
    '<p style="min-width: 9999px">x</p>',
    '<p style="font-size: 900px">x</p>',
    '<p style="font-size: 0%">x</p>',
    '<p style="font: 0/0 a">x</p>',
    '<p style="line-height: 0">x</p>',
    '<p style="height: 0">x</p>',
    '<p style="padding: 9999px">x</p>',
    '<p style="color: red !important">x</p>',
    '<table width="99999"><tr><td>x</td></tr></table>',
    '<svg transform="translate(-500)"><rect></rect></svg>',
    '<svg style="overflow: visible"><rect></rect></svg>',
    '<svg width="99999"><rect></rect></svg>',
    '<svg><use href="other.svg#x"></use></svg>',
    '<svg><image href="data:image/svg+xml,x"></image></svg>',
    "<style>p { color: red }</style><p>x</p>",
    "<svg><style>* { display: none }</style></svg>",
    "<script>x</script>",
    "<p hidden>x</p>",
    '<p hidden="">x</p>',
    "<table><tr><td nowrap>x</td></tr></table>",
    "<p contenteditable>x</p>",
    '<p onclick="x">x</p>',
    '<a href="#x">x</a>',
]


@pytest.mark.parametrize("html", FORGED)
def test_what_could_deceive_or_leave_its_place_is_cleaned_and_not_recorded(html):
    with pytest.raises(Refused, match=r"text/html that would lose the (class|style|attr|elem)"):
        recordable([display(html=html)])
    shown = accepted(display(html=html)).data["text/html"]
    assert "class" not in shown
    assert "style" not in shown.replace("<svg style", "")
    assert (
        re.search("99999|href|transform|overflow|onclick|script>|hidden|nowrap|contented", shown)
        is None
    )


@pytest.mark.parametrize(
    "html",
    [
        '<table border="1" class="dataframe"><thead><tr><th>a</th></tr></thead></table>',
        '<div style="display: grid; gap: 1em; grid-template-columns: repeat(auto-fit, minmax(9em,'
        ' 1fr))"><pre style="margin: 0; background: none; overflow-wrap: anywhere">x</pre></div>',
        '<pre style="white-space:pre;overflow-x:auto;line-height:normal;font-family:Menlo,'
        "'DejaVu Sans Mono',consolas\"><span style=\"color: #800000; text-decoration-color: red;"
        ' background-color: var(--pst-color-surface)">x</span></pre>',
        '<table style="width:100%"><tr><td style="text-align:right">a<br>b<td>c</table>',
        "<details><summary>a</summary>b</details>",
        "<p>1 &lt; 2 &amp; &quot;3&quot;&nbsp;&#8212; a <B>b</b>",
        '<p id="x" data-value="1" lang="en">x</p><!-- a comment -->',
        "<div>\n<style scoped>\n    .dataframe tbody tr th { vertical-align: top; }\n"
        '</style>\n<table border="1" class="dataframe"></table></div>',
        SVG.format('<g><rect width="1" height="1"/></g><path d="M0 0"/>'),
    ],
)
def test_what_libraries_and_pages_display_is_recorded(html):
    output = display(html=html)
    [once] = recordable([output])
    assert recordable([once]) == [once]
    assert accepted(once) == once


def test_ids_are_kept_apart_and_still_found():
    markup = SVG.format(
        '<defs><marker id="tip"><path d="M0 0"></path></marker>'
        '<clipPath id="cut"></clipPath></defs>'
        '<title id="name">x</title><g aria-labelledby="name" clip-path="url(#cut)">'
        '<path marker-end="url(#tip)" style="fill: url(\'#cut\')" d="M0 0"></path>'
        '<use href="#tip"></use><use xlink:href="#tip"></use></g>'
    )
    [first], [second] = (
        recordable([display(html=text)]) for text in (markup, markup.replace("M0 0", "M1 1"))
    )
    assert recordable([first]) == [first]
    text = first.data["text/html"]
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert len(ids) == 3
    assert not ids & {"tip", "cut", "name"}
    asked = re.findall(r'#([\w-]+)["\')]', text) + re.findall(r'labelledby="([^"]+)"', text)
    assert len(asked) == 6
    assert set(asked) == ids
    assert not ids & set(re.findall(r' id="([^"]+)"', second.data["text/html"]))


@pytest.mark.parametrize("kind", ["html", "svg"])
@pytest.mark.parametrize("fonts", ["path", "none"])
def test_a_drawing_of_matplotlib_survives_whole(kind, fonts):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": fonts}):
        figure, axes = pyplot.subplots(1, 2)
        axes[0].plot([1, 3, 2], "--o", label="a < b")
        axes[0].legend()
        axes[1].imshow([[0, 1], [1, 0]])
        file = io.StringIO()
        figure.savefig(file, format="svg")
        pyplot.close(figure)
    [output] = recordable([display(**{kind: file.getvalue()})])
    [drawing] = output.data.values()
    assert recordable([output]) == [output]
    before, after = map(xml.etree.ElementTree.fromstring, (file.getvalue(), drawing))

    def parts(root):
        left_out = ("metadata", "style", "RDF", "Work", "type", "date", "format", "creator")
        left_out += ("Agent", "title")
        return [
            (name, sorted(element.keys()))
            for element in root.iter()
            if (name := element.tag.rpartition("}")[2]) not in left_out
        ]

    found, wanted = parts(after), parts(before)
    found[0] = wanted[0]
    assert found == wanted
    assert "stroke-linejoin:round" in drawing
    ids = {element.get("id") for element in after.iter()}
    asked = re.findall(r"url\(#([^)]+)\)", drawing) + re.findall(r'href="#([^"]+)"', drawing)
    assert asked
    assert set(asked) <= ids


EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'


@pytest.mark.parametrize(
    ("drawing", "problem"),
    [
        (EMPTY + "a & b", "no XML"),
        ("a" + EMPTY, "no XML"),
        (EMPTY + EMPTY, "no XML"),
        ("", "no XML"),
        ("nothing drawn", "no XML"),
        ("<svg><rect></rect></svg>", "xmlns"),
        ('<g xmlns="http://www.w3.org/2000/svg"></g>', "no XML|would lose the element <g>"),
    ],
)
def test_a_drawing_that_no_browser_shows_is_neither_recorded_nor_accepted(drawing, problem):
    for use in (recordable, lambda outputs: accepted(outputs[0])):
        with pytest.raises(Refused, match=problem):
            use([display(svg=drawing)])
    shown = unshowable([display(svg=drawing)])
    assert shown.startswith("displays image/svg+xml that holds a drawing that")


@pytest.mark.parametrize(
    "image",
    [
        png()[:33],
        png()[:-1],
        png()[:-12],
        png() + b"x",
        png() + png(),
        png()[:-20] + b"xxxx" + png()[-16:],
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n" + png()[-12:],
        b"x" + png(),
    ],
)
def test_a_png_that_is_not_whole_is_refused(image):
    output = display(png=base64.b64encode(image).decode())
    with pytest.raises(Refused, match="a PNG image that is none, or a damaged one"):
        accepted(output)
    assert unshowable([output]) == "displays image/png that is no PNG image, or a damaged one"


OPEN = """
    <!-- | <textarea> | <script> | <style>p | <title> | <iframe> | <noscript> | <template>
    | <select> | <plaintext> | <b>1 | <a href=x>1 | <div> | <div | <table><tr><td>1
    | </div> | </div><div> | <p title="1 | <![CDATA[ | <xmp>
"""


@pytest.mark.parametrize("html", map(str.strip, OPEN.split("|")))
def test_what_would_change_the_page_around_it_cannot_be_shown(html):
    problem = "displays text/html that opens what it does not close, or closes what is not its own"
    assert unshowable([display(html=html)]).startswith(problem)


@pytest.mark.parametrize(
    "html",
    [
        *("<p>1", "<ul><li>1<li>2</ul>", "<!-- 1 -->", "1 < 2", "</p>", "<br>"),
        "<noscript><b>1</b></noscript>",
        "<table><tr><td>1</table><style>p { color: red }</style><script>1 < 2</script>",
        '<svg xmlns="http://www.w3.org/2000/svg"><g><path d="M0 0"/></g></svg>',
        "<html><head><title>1</title></head><body onload=x>1</body></html>",
    ],
)
def test_what_ends_where_its_output_ends_is_shown(html):
    assert unshowable([display(html=html)]) == ""


@pytest.mark.parametrize(
    "bad", ["\0", "\x07", "\x1b[2J", "\x1b]8;;x\x07", "\x9b", "\u202e", "\ud800"]
)
@pytest.mark.parametrize(
    "output",
    [
        nbformat.v4.new_output("stream", text="a\nb@"),
        nbformat.v4.new_output("error", ename="a", evalue="a\nb@"),
        nbformat.v4.new_output("error", ename="a", evalue="", traceback=["a\nb@"]),
        nbformat.v4.new_output("display_data", {"text/plain": "a\nb@"}),
        nbformat.v4.new_output("display_data", {"text/html": "a\nb@"}),
    ],
)
def test_control_characters_are_refused_with_their_place(output, bad):
    filled = json.loads(json.dumps(output).replace("@", json.dumps(bad)[1:-1]))
    with pytest.raises(Refused, match=r"control character U\+\w+ in line 2"):
        accepted(nbformat.from_dict(filled))


def test_colours_and_tabs_are_accepted():
    output = nbformat.v4.new_output("stream", text="a\tb\r\n\x1b[1;31mred\x1b[0m\n")
    assert accepted(output) == output


def test_every_accepted_kind_is_checked():
    assert all(map(callable, CHECKS.values()))
