"""Charts follow the colours of the page and can be read without them."""

import re
import xml.etree.ElementTree as ET

import pytest
from _ext.measurements import charts

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


def test_two_charts_can_share_a_page():
    charted = [charts.line_chart(SERIES, "size", "ms", "x"), charts.bar_chart(BARS, "ms", "x")]
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in charted]
    shared = ids[0] & ids[1]
    # Only definitions that are the same in both, such as markers, may bear the same name.
    for name in shared:
        assert all(f"#{name}" in svg for svg in charted), name
        first, second = (
            re.search(rf'<[^>]*id="{re.escape(name)}"[^>]*>', svg)[0] for svg in charted
        )
        assert first == second
    for svg, known in zip(charted, ids, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= known
        assert set(re.findall(r'href="#([^"]+)"', svg)) <= known


def test_dollar_signs_in_names_are_no_formulas():
    svg = charts.bar_chart([("a$\\frac$", "$b$", 1.0)], "time", "title")
    assert "a$\\frac$" in svg
