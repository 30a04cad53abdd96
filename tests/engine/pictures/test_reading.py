"""Data that fit are drawn whole; data that do not are refused in words that help."""

import re

import pytest
from selectolax.lexbor import LexborHTMLParser

from pictures.kinds import KINDS
from pictures.reading import NoPicture, last_moment, picture

TWO = {"shape": (4, 6), "devices": {0: ((0, 2), (0, 6)), 1: ((2, 4), (0, 6))}}
FITTING = {
    "timeline": [("Python", "call", 0.0, 0.001), ("device", "<work>", 0.001, 0.02)],
    "stages": [("trace", 0.001), ("run", 0.003)],
    "tree": {"params": {"w": "float32[2]", "b": []}, "steps": [1, None]},
    "placement": {"x": TWO, "scalar": {"shape": (), "devices": {"cpu": ()}}},
    "grid": {
        "rows": ["b", "<a>"],
        "columns": ["a", "a", "n"],
        "shares": [[0, 1, 0], [0.125, 0.5, 1]],
    },
    "memory": {"before": {"arrays": 0}, "after": {"arrays": 2**20, "process": 3 * 2**20}},
}


def drawn(kind, data):
    return LexborHTMLParser(picture(kind, repr(data)))


def said(kind, data):
    """Return what is said where somebody points at the parts of a picture."""
    return [node.text() for node in drawn(kind, data).css(".point > title")]


def refused(kind, data):
    with pytest.raises(NoPicture) as problem:
        picture(kind, data if isinstance(data, str) or data is None else repr(data))
    return str(problem.value)


def test_every_kind_is_tried_here():
    assert set(FITTING) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_has_no_colour_of_one_theme_and_no_width_in_pixels_but_for_tiles(kind):
    html = picture(kind, repr(FITTING[kind]))
    assert not re.search(r'(?:fill|stroke|color)="|viewBox|<script|\bid=', html)
    assert "&lt;work&gt;" in html or kind != "timeline"
    for style in re.findall(r'style="([^"]*)"', html):
        for part in style.split(";"):
            assert re.fullmatch(
                r"--(light|dark):#\w{6}|--(left|right):\d+px|--(n|rows):\d+|--share:\d+%", part
            )


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("tree", "placement", "grid")]
)
def test_every_bar_can_be_tabbed_to(kind):
    points = drawn(kind, FITTING[kind]).css(".point")
    assert len(points) >= 2
    assert all(point.attributes["tabindex"] == "0" for point in points)


def test_events_stand_beneath_their_lane_from_start_to_end():
    page = drawn("timeline", FITTING["timeline"])
    assert [node.text() for node in page.css(".label")] == ["Python", "device"]
    assert said("timeline", FITTING["timeline"]) == [
        "Python, call: from 0 ns to 1 ms",
        "device, <work>: from 1 ms to 20 ms",
    ]
    assert [(bar.attributes["x"], bar.attributes["width"]) for bar in page.css(".bar")] == [
        ("0%", "5%"),
        ("5%", "95%"),
    ]


def test_a_lane_is_one_row_with_its_events_end_to_end_over_an_axis_of_times():
    events = [
        ("Python", "load", 0, 0.05),
        ("Python", "step", 0.05, 0.051),
        ("device", "x", 0, 0.15),
    ]
    page = drawn("timeline", events)
    lanes = [len(lane.css(".bar")) for lane in page.css("g.row")]
    assert lanes == [2, 1]
    # What does not fit is said where somebody points at it.
    assert [node.text() for node in page.css(".inside")] == ["load", "x"]
    assert [node.text() for node in page.css(".x-tick")] == ["0", "50 ms", "100 ms", "150 ms"]


def test_a_timeline_has_the_scale_of_those_beside_it():
    last = max(map(last_moment, ["[('a', 'b', 0, 4)]", "[('a', 'b', 0, 1)]"]))
    assert picture("timeline", "[('a', 'b', 0, 1)]", last).count('width="25%"') == 1
    alone = picture("timeline", "[('a', 'b', 0, 1)]", last_moment("no data"))
    assert alone.count('width="100%"') == 1


def test_stages_follow_one_another():
    page = drawn("stages", FITTING["stages"])
    assert [(bar.attributes["x"], bar.attributes["width"]) for bar in page.css(".bar")] == [
        ("0%", "25%"),
        ("25%", "75%"),
    ]
    assert said("stages", FITTING["stages"])[1] == "run: 3 ms, 75% of the whole"
    assert page.css_first(".heading").text() == "4 ms in all"


def test_what_took_hardly_any_time_can_be_seen_and_what_took_none_is_nothing():
    page = drawn("stages", [("none", 0), ("hardly", 1e-6), ("long", 1)])
    none, hardly, long = [bar.attributes["width"] for bar in page.css(".bar")]
    assert (none, hardly, long) == ("0%", "0.3%", "100%")


def test_stages_that_took_no_time_at_all_are_drawn():
    assert said("stages", [("a", 0)]) == ["a: 0 ns, 0% of the whole"]


def test_a_tree_is_lists_in_lists():
    page = drawn("tree", FITTING["tree"])
    assert [node.text() for node in page.css("li > span")] == [
        *("params", "w", "b", "steps", "[0]", "[1]")
    ]
    assert [node.text() for node in page.css("li li > code")] == ["float32[2]", "1"]


def test_each_device_shows_its_part_and_equal_parts_have_one_colour():
    page = drawn("placement", {"x": TWO | {"devices": TWO["devices"] | {2: ((0, 2), (0, 6))}}})
    assert [node.text() for node in page.css("li span")] == ["0", "1", "2"]
    assert [node.text() for node in page.css("li code")] == ["[0:2, :]", "[2:4, :]", "[0:2, :]"]
    first, second, third = [node.attributes["style"] for node in page.css("svg")]
    assert first == third != second
    bar = page.css("svg")[1].css_first(".bar").attributes
    assert [bar[side] for side in ("x", "y", "width", "height")] == ["0%", "50%", "100%", "50%"]


def test_the_axes_that_are_split_are_those_that_are_drawn():
    deep = {"shape": (2, 3, 8), "devices": {0: ((0, 2), (0, 3), (4, 8))}}
    bar = drawn("placement", {"x": deep}).css_first(".bar").attributes
    assert [bar[side] for side in ("x", "y", "width", "height")] == ["50%", "0%", "50%", "100%"]


def test_a_grid_is_a_table_whose_cells_say_their_shares():
    page = drawn("grid", FITTING["grid"])
    assert [node.text() for node in page.css("th[scope=col]")] == ["a", "a", "n"]
    assert [node.text() for node in page.css("th[scope=row]")] == ["b", "<a>"]
    cells = [(node.text(), node.attributes["style"]) for node in page.css("tbody td")]
    assert cells[:3] == [("0", "--share:0%"), ("1", "--share:100%"), ("0", "--share:0%")]
    assert cells[3:5] == [("0.12", "--share:12%"), ("0.5", "--share:50%")]


def test_a_grid_may_say_something_else_than_its_shares():
    texts = [["", "<0>", "1"], ["2", "3", ""]]
    page = drawn("grid", FITTING["grid"] | {"texts": texts})
    cells = page.css("tbody td")
    assert [node.text() for node in cells] == ["", "<0>", "1", "2", "3", ""]
    assert [node.attributes["style"] for node in cells[:2]] == ["--share:0%", "--share:100%"]


def test_moments_are_compared_part_by_part():
    page = drawn("memory", FITTING["memory"])
    assert [node.text() for node in page.css(".group")] == ["arrays", "process"]
    assert said("memory", FITTING["memory"]) == [
        "arrays, before: 0 bytes",
        "arrays, after: 1 MiB",
        "process, after: 3 MiB",
    ]


WRONG = {
    "timeline": [
        [],
        [("Python", "call", 0.0)],
        [("Python", "call", 0.0, 1.0, 2.0)],
        [("Python", "call", "0", 1.0)],
        [("Python", "call", -1.0, 1.0)],
        [("Python", "", 0.0, 1.0)],
        [("Python", "call", 2.0, 1.0)],
    ],
    "stages": [{}, [("trace",)], [("trace", None)], 3],
    "tree": ["'a text'", 3, "{1: {2: set()}}"],
    "placement": [
        {},
        {"x": {"shape": (4,)}},
        {"x": TWO | {"more": 1}},
        {"x": TWO | {"devices": {}}},
        {"x": {"shape": (4,), "devices": {0: ((0, 2), (0, 2))}}},
        {"x": {"shape": (4,), "devices": {0: ((0, 5),)}}},
        {"x": {"shape": (4,), "devices": {0: ((3, 2),)}}},
    ],
    "grid": [
        {},
        {"rows": [], "columns": [], "shares": []},
        FITTING["grid"] | {"shares": [[0, 1, 0]]},
        FITTING["grid"] | {"shares": [[0, 1], [0, 1]]},
        FITTING["grid"] | {"shares": [[0, 1, 2], [0, 0, 0]]},
        FITTING["grid"] | {"texts": [["", "", ""], ["", ""]]},
        FITTING["grid"] | {"texts": [[0, 1, 2], [0, 0, 0]]},
    ],
    "memory": [{}, {"before": 3}, {"before": {"arrays": -1}}, {"before": {"arrays": 1.5}}],
}


@pytest.mark.parametrize(
    ("kind", "data"), [(k, data) for k, many in WRONG.items() for data in many]
)
def test_what_does_not_fit_is_refused_with_what_is_expected(kind, data):
    assert KINDS[kind].expected in refused(kind, data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Array([1], dtype=int32)",
        "nan",
        "[('a', inf)]",
        "f(1)",
        "x",
        "[" * 5000,
        "-" * 99_999 + "1",
        "1+" * 50_000 + "1j",
        "b'1'",
    ],
)
def test_what_is_no_plain_data_is_refused(text):
    message = refused("stages", text)
    assert KINDS["stages"].expected in message and "plain" in message


def test_the_message_names_the_place():
    assert "[1][1] is 'x', and must be a number" in refused("stages", [("a", 1), ("b", "x")])
    assert "'call' ends before it starts" in refused("timeline", [("P", "call", 2, 1)])


def test_a_cell_that_gave_nothing_is_told_from_wrong_data():
    assert "gave nothing" in refused("stages", None)


def test_an_unknown_kind_is_refused_with_those_that_there_are():
    message = refused("timelines", [])
    assert "timeline" in message and "placement" in message
