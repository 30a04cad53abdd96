"""Charts follow the colours of the page and can be read without them."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib
import pytest
from _ext.measurements import charts
from _ext.measurements.schema import Measurement

SERIES = {"jax": [(64, 1.5), (256, 4.0)], "torch": [(256, 5.0), (64, 2.0)]}
BARS = [
    ("eager · jax", "jax", 4.0),
    ("jit <fast> · jax", "jax", 1.0),
    ("eager · torch", "torch", 3.0),
]


@pytest.fixture(params=["lines", "bars"])
def chart(request):
    if request.param == "lines":
        return charts.line_chart(SERIES, "size", "milliseconds", "Sizes & times")
    return charts.bar_chart(BARS, "milliseconds", "Sizes & times")


def test_a_chart_is_svg_that_scales_with_the_page(chart):
    root = ET.fromstring(chart)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "viewBox" in root.attrib
    assert "width" not in root.attrib
    assert "height" not in root.attrib


def test_a_chart_has_a_name_for_those_who_do_not_see_it(chart):
    root = ET.fromstring(chart)
    assert root.attrib["role"] == "img"
    assert root[0].tag.endswith("title")
    assert root[0].text == "Sizes & times"


def test_ink_and_grid_take_the_colour_of_the_text(chart):
    assert charts.INK not in chart
    assert charts.GRID not in chart
    colours = set(re.findall(r"(?:fill|stroke): ?([^;\"]+)", chart))
    assert colours <= {"none", "currentColor", *(colour.lower() for colour in charts.SERIES)}
    for text in re.findall(r"<text[^>]*>", chart):
        assert "fill: currentColor" in text


def test_texts_are_texts_and_not_drawings(chart):
    texts = "".join(ET.fromstring(chart).itertext())
    assert "milliseconds" in texts
    assert "jax" in texts
    assert "torch" in texts


def test_nothing_is_loaded(chart):
    assert not re.findall(r"(?:href|src)=\"(?!#)", chart)
    assert "url(http" not in chart


def test_names_of_bars_are_all_there():
    texts = "".join(ET.fromstring(charts.bar_chart(BARS, "milliseconds", "x")).itertext())
    for label, _, _ in BARS:
        assert label in texts


def test_the_same_numbers_give_the_same_file(chart):
    again = (
        charts.line_chart(SERIES, "size", "milliseconds", "Sizes & times"),
        charts.bar_chart(BARS, "milliseconds", "Sizes & times"),
    )
    assert chart in again


def ids(svg):
    return re.findall(r'\bid="([^"]+)"', svg)


def test_charts_that_share_a_page_share_no_id():
    charted = [
        charts.line_chart(SERIES, "size", "ms", "x"),
        charts.line_chart(SERIES, "size", "ms", "y"),
        charts.line_chart(SERIES, "size", "ms", "x", key="1"),
        charts.line_chart(SERIES, "size", "ms", "x", key="2"),
        charts.bar_chart(BARS, "ms", "x"),
        charts.bar_chart(BARS, "ms", "x", key="1"),
        charts.bar_chart(BARS[:2], "ms", "x"),
    ]
    found = [name for svg in charted for name in ids(svg)]
    assert len(found) == len(set(found)) > len(charted)


def test_what_a_chart_points_at_is_in_it(chart):
    assert set(re.findall(r"url\(#([^)]+)\)", chart)) <= set(ids(chart))
    assert set(re.findall(r'href="#([^"]+)"', chart)) <= set(ids(chart))


def texts(svg):
    """Return what a reader sees written in a chart."""
    root = ET.fromstring(svg)
    return ["".join(text.itertext()).strip() for text in root.iter() if text.tag.endswith("}text")]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.006, 110.0), ["0.01", "0.1", "1", "10", "100"]),
        ((1.0, 1000.0), ["1", "10", "100", "1000"]),
        ((3.0, 95.0), ["5", "10", "20", "50", "100"]),
        ((22.0, 61.0), ["25", "30", "35", "40", "45", "50", "55", "60"]),
        ((22.0, 22.0), ["20", "50"]),
        ((1e-5, 4e6), ["1e-05", "0.001", "0.1", "10", "1000", "100000"]),
    ],
)
def test_a_logarithmic_axis_has_plain_numbers(values, ticks):
    points = list(zip((64, 1048576), values, strict=True))
    seen = texts(charts.line_chart({"jax": points}, "size", "milliseconds", "x"))
    assert seen[:2] == ["64", "1048576"]
    assert set(ticks) <= set(seen)
    assert not [text for text in seen if re.search(r"[$\\{}^]|math", text)]


@pytest.mark.parametrize("from_zero", [False, True])
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1, 1e3, 1e9, 1e15])
def test_no_chart_shows_a_formula(scale, from_zero):
    lines = {name: [(x, y * scale) for x, y in points] for name, points in SERIES.items()}
    bars = [(label, series, value * scale) for label, series, value in BARS]
    svgs = charts.line_chart(lines, "x", "y", "x", from_zero), charts.bar_chart(bars, "y", "x")
    for svg in svgs:
        assert "$" not in svg
        assert "mathdefault" not in svg


def test_a_line_chart_has_numbers_on_its_value_axis_wherever_the_values_are():
    for low in (1, 2.2, 9.5):
        for factor in (1, 1.05, 1.5, 3, 12, 120):
            points = [(1, low), (2, low * factor)]
            seen = texts(charts.line_chart({"jax": points}, "size", "ms", "x"))
            above = seen[seen.index("size") + 1 : seen.index("ms")]
            assert 2 <= len([float(number) for number in above]) <= 12, (low, factor, seen)


def test_the_settings_of_matplotlib_stay_as_they_are(chart):
    before = dict(matplotlib.rcParams)
    charts.line_chart(SERIES, "size", "milliseconds", "x")
    charts.bar_chart(BARS, "milliseconds", "x")
    assert dict(matplotlib.rcParams) == before


def test_the_settings_of_a_machine_change_no_chart():
    def drawn():
        return charts.line_chart(SERIES, "s", "m", "x"), charts.bar_chart(BARS, "m", "x")

    before = drawn()
    with matplotlib.rc_context({"lines.linewidth": 9, "axes.facecolor": "red", "font.size": 30}):
        assert drawn() == before


def test_the_first_chart_of_a_process_leaves_the_settings_alone():
    code = (
        "import matplotlib\n"
        "params = matplotlib.rcParams\n"
        # Asking for the backend would import pyplot.
        "settings = lambda: {k: params[k] for k in params if k != 'backend'}\n"
        "before = settings()\n"
        "from _ext.measurements import charts\n"
        "charts.bar_chart([('a', 'b', 1.0)], 'x', 'y')\n"
        "import sys\n"
        "assert settings() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    path = str(charts.__file__).partition("/_ext/")[0]
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, text=True)
    assert done.returncode == 0


def measurement(name, median, framework="jax", device="cpu", shape=((64, 64),), rate=None):
    empty = dict.fromkeys(Measurement.__dataclass_fields__)
    given = {"name": name, "median": median, "first_call": 2 * median, "rate": rate}
    more = {"framework": framework, "device": device, "shape": shape, "samples": (), "threads": 1}
    return Measurement.from_plain(empty | given | more)


@pytest.mark.parametrize(
    ("x", "y", "fields", "drawn"),
    [
        ("name", "median", {}, True),
        ("name", "rate", {}, False),
        ("name", "rate", {"rate": 0.0}, False),
        ("name", "rate", {"rate": 1e9}, True),
        ("size", "median", {}, True),
        ("size", "median", {"shape": ()}, False),
        ("size", "median", {"shape": ((),)}, False),
        ("size", "median", {"shape": ((0, 4),)}, False),
        ("name", "median", {"shape": ()}, True),
    ],
)
def test_what_lacks_a_number_for_an_axis_cannot_be_drawn(x, y, fields, drawn):
    assert charts.can_be_drawn(measurement("a", 0.5, **fields), x, y) is drawn


def test_bars_are_named_after_measurements_and_series_after_devices():
    two = [measurement("a", 0.5), measurement("a", 0.25, device="tpu")]
    seen = texts(charts.chart(two, "name", "median", "framework", str.upper, "x"))
    assert "milliseconds (median)" in seen
    assert seen.count("a") == 2
    assert "jax on CPU" in seen and "jax on TPU" in seen
    both = [measurement("a", 0.5), measurement("a", 0.25, "torch")]
    seen = texts(charts.chart(both, "name", "first_call", "framework", str.upper, "x"))
    assert "milliseconds (first call)" in seen
    assert "a · jax" in seen and "a · torch" in seen and "jax" in seen


def test_lines_run_over_sizes():
    sizes = [measurement(f"a/{n}", n / 1000, shape=((n, 1),), rate=n * 1e9) for n in (64, 128)]
    seen = texts(charts.chart(sizes, "size", "rate", "framework", str.upper, "x"))
    assert seen[:2] == ["64", "128"]
    assert "GFLOP/s" in seen


def test_dollar_signs_in_names_are_no_formulas():
    svg = charts.bar_chart([("a$\\frac$", "$b$", 1.0)], "time", "title")
    assert "a$\\frac$" in svg
