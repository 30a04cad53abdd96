"""Charts fit every screen, follow the colours of the page, and say their numbers."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from drawing import lines, svg
from executed.frameworks import Colour
from executed.options import Options
from measured import charts
from measured.charts import short
from measured.schema import Measurement
from tests.engine.records import measured, one_process

SERIES = {"jax": [(64, 1.5), (256, 4.0)], "torch": [(256, 5.0), (64, 2.0)]}
INKS = {"jax": Colour("#111111", "#eeeeee"), "torch": Colour("#222222", "#dddddd")}
OPTIONS = Options(
    frameworks={
        "jax": {"colour": {"light": "#111111", "dark": "#eeeeee"}},
        "torch": {"label": "PyTorch", "colour": {"light": "#222222", "dark": "#dddddd"}},
    }
)


def line_chart(series, *words):
    """Draw lines through points, {label: [(x, y), …]}."""
    series = {
        label: [lines.Point(x, y, label) for x, y in points] for label, points in series.items()
    }
    return lines.line_chart(series, *words)


def elements(drawn, tag, class_=None):
    """Return the elements of a chart with a tag, and a class if one is given."""
    return [
        each
        for each in ET.fromstring(drawn).iter()
        if each.tag == f"{{http://www.w3.org/2000/svg}}{tag}"
        and (class_ is None or class_ in each.get("class", "").split())
    ]


def texts(drawn, class_=None):
    """Return what a reader sees written in a chart."""
    return ["".join(text.itertext()).strip() for text in elements(drawn, "text", class_)]


def titles(drawn):
    """Return what is said where somebody points at a chart, or at parts of it."""
    return [each.text for each in elements(drawn, "title")]


def measurement(name, *seconds, framework="jax", device="cpu", **given):
    """Return a measurement with a process for each number of seconds."""
    facts = {"shape": [[64, 64]], "device": device}
    facts["processes"] = [one_process(each) for each in seconds or (0.5,)]
    return Measurement.from_plain(measured(name, [1.0], framework) | facts | given)


def of_sizes(framework="jax", **given):
    return [
        measurement(
            f"mm/{n}", n / 1000, framework=framework, shape=((n, 1),), work=n * n * 1e9, **given
        )
        for n in (64, 128)
    ]


def chart(measurements, x="size", y="latency", ceilings=(), elsewhere=(), **form):
    form = charts.Form(x, y, **form)
    return charts.chart(measurements, form, OPTIONS, "Sizes & <times>", ceilings, elsewhere)


def rows_of(drawn):
    """Return label and value of each row of a chart."""
    return list(zip(texts(drawn, "label"), texts(drawn, "value"), strict=True))


@pytest.fixture(params=["lines", "bars"])
def drawn(request):
    if request.param == "lines":
        return chart([*of_sizes(), *of_sizes("torch")])
    return chart([measurement("a <b>"), measurement("a <b>", framework="torch")], "name")


def test_a_chart_takes_the_width_it_is_given_and_keeps_the_size_of_its_letters(drawn):
    root = ET.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "viewBox" not in root.attrib and "width" not in root.attrib
    across = ("x", "x1", "x2", "cx", "width")
    places = [each.attrib[name] for each in root.iter() for name in across if name in each.attrib]
    assert places
    assert all(place.endswith("%") for place in places)


def test_a_chart_has_a_name_for_those_who_do_not_see_it(drawn):
    root = ET.fromstring(drawn)
    assert root.attrib["role"] == "group"
    assert root[0].tag.endswith("title")
    assert root[0].text == "Sizes & <times>"


def test_every_number_can_be_pointed_at_and_tabbed_to(drawn):
    points = elements(drawn, "g", "point")
    assert len(points) == len(titles(drawn)) - 1 >= 2
    for point in points:
        assert point.attrib["tabindex"] == "0"
        assert point.attrib["role"] == "img"
        said = [text.text for text in point if text.get("class") == "said"]
        assert said == [point[0].text]


def test_no_colour_stands_in_a_chart_but_for_light_and_for_dark_pages(drawn):
    assert not re.search(r'(?:fill|stroke|color)="', drawn)
    for style in re.findall(r'style="([^"]*)"', drawn):
        for part in style.split(";"):
            assert re.fullmatch(
                r"--(light|dark):#\w{6}|(--left|--right|height):\d+px|--(n|rows):\d+", part
            )


def test_nothing_is_loaded_and_nothing_needs_an_id(drawn):
    assert not re.findall(r'\b(?:href|src|id)="|url\(', drawn)


def test_a_framework_has_its_colour_wherever_it_comes():
    one, two = of_sizes(), of_sizes("torch")
    for given in ([*one, *two], [*two, *one], two):
        for kind in ("size", "name"):
            svgs = chart(given, kind)
            assert INKS["torch"].style in svgs
            assert (INKS["jax"].style in svgs) is (one[0] in given)


def test_what_has_no_colour_of_its_own_gets_one_of_the_palette():
    styles = re.findall(r'class="series" style="([^"]*)"', line_chart(SERIES, "x", "y", "t"))
    assert styles == [ink.style for ink in svg.INKS[:2]]


def test_lines_bear_their_names_and_there_is_no_legend():
    drawn = line_chart(SERIES, "size", "milliseconds", "x")
    assert texts(drawn, "name") == ["jax", "torch"]


def test_names_of_lines_that_end_close_by_do_not_cover_each_other():
    close = {name: [(1, 1.0), (2, 10 + n / 100)] for n, name in enumerate("abcdef")}
    drawn = line_chart(close, "x", "y", "t")
    tops = sorted(float(text.get("y")) for text in elements(drawn, "text", "name"))
    assert all(b - a >= svg.LINE for a, b in itertools.pairwise(tops))


def test_labels_move_no_further_than_they_must():
    assert svg.apart({"b": (2, 15), "a": (0, 15), "c": (60, 15)}, 100) == {"a": 0, "b": 15, "c": 60}
    assert svg.apart({"a": (90, 15), "b": (92, 15)}, 100) == {"a": 70, "b": 85}


def test_the_range_of_the_processes_is_drawn():
    of_three = 3.0, 2.0, 4.0
    (bar,) = elements(chart([measurement("a", *of_three)], "name"), "g", "point")
    low, high = (bar.findall(".//{*}line")[0].get(end) for end in ("x1", "x2"))
    # The bar of 3 s lies between 2 s and 4 s, which is all of the width.
    assert (low, high) == ("50%", "100%")
    drawn = chart([measurement("a", *of_three, work=12e9)], y="rate")
    (line,) = elements(drawn, "line", "spread")
    assert float(line.get("y1")) > float(line.get("y2"))
    # In between are 3, 4 and 6 GFLOP/s.
    assert texts(drawn, "y-tick")[0] == "2"


@pytest.mark.parametrize("y", ["latency", "first_call"])
def test_what_was_measured_in_one_process_has_no_range(y):
    drawn = chart([measurement("a", 0.5)], "name", y)
    assert not elements(drawn, "line", "spread")
    assert titles(drawn)[1].endswith(" (one process)")


def test_a_number_that_is_pointed_at_says_its_range():
    drawn = chart([measurement("a", 3.0, 2.0, 4.0)], "name")
    assert titles(drawn)[1] == "jax: 3.0 s (2.0–4.0)"
    # Beside the bar is the number alone.
    assert rows_of(drawn) == [("a", "3 s")]


def test_throughput_is_drawn_of_what_has_it():
    both = [measurement("a", processes=[one_process(0.5, throughput=[0.25])]), measurement("b")]
    assert charts.drawable(both, "name", "throughput") == both[:1]
    drawn = chart(both[:1], "name", "throughput")
    assert rows_of(drawn) == [("a", "250 ms")]
    assert texts(drawn, "heading") == ["time of one call of many"]


def test_the_ceiling_is_a_line_at_the_highest_rate():
    ceilings = [measurement("c", 1.0, work=work) for work in (7e12, 5e12)]
    drawn = chart(of_sizes(), y="rate", ceilings=ceilings)
    (group,) = elements(drawn, "g", "ceiling")
    assert "".join(group.itertext()) == "ceiling 7000 GFLOP/s"
    assert texts(drawn, "y-tick")[0] == "5,000"
    drawn = chart(of_sizes(), y="rate", ceilings=[measurement("c", 1.0, work=3e15)])
    assert texts(drawn, "y-tick")[-1] == "5,000,000"


def test_dots_on_a_logarithmic_scale_are_between_its_numbers():
    given = [measurement(f"t/{n}", n / 4, n, 4 * n) for n in (0.01, 0.1, 1.0, 0.03)]
    drawn = chart(given, "name", scale="logarithmic")
    assert texts(drawn, "x-tick") == ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    dots = [float(dot.get("cx").rstrip("%")) for dot in elements(drawn, "circle", "bar")]
    assert dots == pytest.approx([25, 50, 75, 36.93])
    assert not elements(drawn, "rect", "bar")


def test_an_axis_of_less_than_two_decades_ends_close_to_its_numbers():
    given = [measurement("a", 0.7e-3), measurement("b", 3e-3)]
    drawn = chart(given, "name", scale="logarithmic")
    assert texts(drawn, "x-tick") == ["500 µs", "1 ms", "2 ms", "5 ms"]


def test_where_a_bar_could_not_be_seen_there_are_dots():
    near, far = ([measurement("a", 1.0), measurement("b", n)] for n in (25.0, 35.0))
    assert elements(chart(near, "name"), "rect", "bar")
    assert elements(chart(far, "name"), "circle", "bar")


def test_rows_are_grouped_named_and_sorted():
    times = {"m/mlp/copy_new": 3, "m/cnn/jit": 1, "m/mlp/jit": 2, "m/cnn/x": 0.5}
    given = [measurement(name, seconds) for name, seconds in times.items()]
    drawn = chart(given, "name", words={"mlp": "MLP", "x": "crossed"})
    assert texts(drawn, "group") == ["MLP", "cnn"]
    assert texts(drawn, "label") == ["jit", "copy new", "crossed", "jit"]
    # The best rate is the highest.
    given = [measurement(name, 1.0, work=1e9 * n) for name, n in times.items()]
    drawn = chart(given, "name", "rate")
    assert texts(drawn, "label") == ["copy new", "jit", "jit", "x"]
    versions = [measurement(f"v/{n}", 1 / (n + 1)) for n in range(3)]
    assert texts(chart(versions, "name"), "label") == ["0", "1", "2"]
    # A number at the front is no reason to stand before others.
    mixed = [measurement("v/loop", 2.0), measurement("v/8 lanes", 3.0), measurement("v/9", 1.0)]
    assert texts(chart(mixed, "name"), "label") == ["9", "loop", "8 lanes"]


def test_each_row_has_a_place_of_its_own():
    given = [measurement(name) for name in ("a/x", "a/y", "b/x")]
    root = ET.fromstring(chart(given, "name"))
    places = [re.search(r"--n:(\d+)", each.get("style", "")) for each in root.iter()]
    assert [int(place[1]) for place in places if place] == [0, 1, 2, 3, 4]
    assert "--rows:5" in root.get("style")


def test_another_device_has_hollow_marks_on_the_same_axis_and_its_ratio_behind_the_number():
    here, there = measurement("a", 0.5), measurement("a", 0.05, device="gpu")
    alone = measurement("b", 1.0, device="gpu")
    drawn = chart([here], "name", elsewhere=[there, alone])
    assert rows_of(drawn) == [("a", "500 ms ○ 0.1×")]
    (hollow,) = elements(drawn, "circle", "other")
    # Of all of the width, which the second of another row takes.
    assert hollow.get("cx") == "5%"
    drawn = chart(of_sizes(), elsewhere=of_sizes(device="gpu"))
    marks = elements(drawn, "circle", "other")
    assert [mark.get("cy") for mark in marks] == [
        mark.get("cy") for mark in elements(drawn, "circle", "bar")
    ]
    assert titles(drawn)[1] == "gpu, jax, 64: 64.0 ms (one process)"
    assert texts(drawn, "name") == ["jax"]


def test_the_name_of_a_line_that_ends_early_hides_no_point():
    points = {"goes on": [(1, 460), (4, 290), (16, 225), (256, 225)], "ends early": [(8, 205)]}
    for beside in ((), [(4, 230), (16, 190)]):
        drawn = line_chart(points | ({"lies below": beside} if beside else {}), "x", "y", "t")
        (name,) = [text for text in elements(drawn, "text", "inside") if "early" in text[0].text]
        at = float(name[0].get("x").rstrip("%")) / 100
        for width in lines.WIDTHS:
            long = 10 * svg.BOLD
            left = at * width + (-10 - long if "left" in name.get("class") else 10)
            top = float(name.get("y")) - 11
            for circle in elements(drawn, "circle", "bar"):
                across = float(circle.get("cx").rstrip("%")) / 100 * width
                down = float(circle.get("cy"))
                hidden = left < across < left + long and top < down < top + svg.LINE
                assert not hidden, (width, circle.get("cx"))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.006, 110.0), ["0.001", "0.01", "0.1", "1", "10", "100", "1,000"]),
        ((1.0, 1000.0), ["1", "10", "100", "1,000"]),
        ((3.0, 95.0), ["2", "5", "10", "20", "50", "100"]),
        ((22.0, 22.0), ["20", "50"]),
        ((20.0, 20.0), ["20", "50"]),
    ],
)
def test_a_logarithmic_axis_has_plain_decimals(values, ticks):
    points = list(zip((64, 1048576), values, strict=True))
    drawn = line_chart({"jax": points}, "size", "milliseconds", "x")
    assert texts(drawn, "y-tick") == ticks
    assert texts(drawn, "x-tick") == ["64", "1,048,576"]


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1, 1e3, 1e9, 1e15])
@pytest.mark.parametrize("factor", [1, 1.05, 3, 120, 1e9])
def test_all_that_is_drawn_lies_between_the_ends_of_the_axes(scale, factor):
    series = {"a": [(1, scale), (2, scale * factor)], "b": [(2, scale)]}
    drawn = line_chart(series, "x", "y", "t")
    assert 2 <= len(texts(drawn, "y-tick")) <= 11
    assert not re.search(r"\de[-+]?\d", " ".join(texts(drawn)))
    for circle in elements(drawn, "circle"):
        assert lines.TOP <= float(circle.get("cy")) <= lines.BOTTOM
        assert 0 <= float(circle.get("cx").rstrip("%")) <= 100


def test_every_second_of_many_sizes_gives_way_on_a_phone():
    many = {"a": [(2**n, 1.0) for n in range(8)]}
    drawn = line_chart(many, "x", "y", "t")
    assert texts(drawn, "seldom") == ["2", "8", "32", "128"]
    long = line_chart({"a": [(10**n, 1.0) for n in range(3, 9)]}, "x", "y", "t")
    assert texts(long, "seldom") == ["10,000", "1,000,000", "100,000,000"]
    assert not texts(line_chart(SERIES, "x", "y", "t"), "seldom")


def test_the_same_numbers_give_the_same_file():
    assert chart(of_sizes()) == chart(of_sizes())


@pytest.mark.parametrize(
    ("x", "y", "fields", "drawn"),
    [
        ("name", "latency", {}, True),
        ("name", "rate", {}, False),
        ("name", "rate", {"work": 0.0}, False),
        ("name", "rate", {"work": 1e9}, True),
        ("size", "latency", {}, True),
        ("size", "latency", {"shape": ()}, False),
        ("size", "latency", {"shape": ((),)}, False),
        ("size", "latency", {"shape": ((0, 4),)}, False),
        ("name", "latency", {"shape": ()}, True),
    ],
)
def test_what_lacks_a_number_for_an_axis_cannot_be_drawn(x, y, fields, drawn):
    assert len(charts.drawable([measurement("a", 0.5, **fields)], x, y)) == drawn


def test_bars_are_named_after_measurements_and_frameworks_and_say_their_value():
    drawn = chart([measurement("a", 0.5), measurement("b", 0.25)], "name")
    assert "time of a call that is waited for" in texts(drawn, "heading")
    assert rows_of(drawn) == [("b", "250 ms"), ("a", "500 ms")]
    both = [measurement("a", 0.5), measurement("a", 0.25, framework="torch")]
    seen = chart(both, "name", "first_call")
    assert "time of the first call" in texts(seen, "heading")
    assert rows_of(seen) == [("a · PyTorch", "750 ms"), ("a · jax", "1.5 s")]


def test_a_framework_bears_its_name_in_bars_and_lines():
    both = [*of_sizes(), *of_sizes("torch")]
    assert texts(chart(both), "name") == ["jax", "PyTorch"]
    assert "PyTorch, 64: 64.0 ms (one process)" in titles(chart(both))
    assert "PyTorch: 64.0 ms (one process)" in titles(chart(both, "name"))


def test_lines_of_one_framework_can_be_those_of_alternatives():
    names = [f"a/{size}/{key}" for key in ("cpu", "with_copies") for size in (64, 128)]
    both = [measurement(each, shape=((int(each.split("/")[1]),),)) for each in names]
    drawn = chart(both, series="alternative")
    assert texts(drawn, "name") == ["cpu", "with copies"]
    assert titles(drawn)[1].startswith("cpu, 64: ")


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ("a/b a/c a/c", "b c"),
        ("a/b/c a/b/d/e", "c d/e"),
        ("a a/b", "a a/b"),
        ("ab/c ad/c", "ab/c ad/c"),
        ("a/b", "a/b"),
    ],
)
def test_what_all_names_begin_with_is_left_out(names, shown):
    assert list(short(names.split()).values()) == shown.split()


def test_lines_run_over_sizes():
    drawn = chart(of_sizes(), y="rate")
    assert texts(drawn, "x-tick") == ["64", "128"]
    assert texts(drawn, "heading") == ["GFLOP/s"]
    assert titles(drawn)[1:] == [
        "jax, 64: 64000 GFLOP/s",
        "jax, 128: 128000 GFLOP/s",
    ]


def test_names_are_shown_as_they_are():
    drawn = line_chart({"a$\\frac$ <b>": [(1, 1.0)]}, "x", "y", "t")
    assert texts(drawn, "name") == ["a$\\frac$ <b>"]
