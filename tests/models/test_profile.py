"""Profiles: what ran has a name and a scope, and the planted faults are found."""

import functools
import itertools
import json
import pathlib
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.models import profile, real_model, real_model_fast

DOCS = pathlib.Path(__file__).parents[2] / "docs"
FOLDER = real_model.model_folder()
CONFIG = real_model.read_config(FOLDER)


def event(name, start, end, **stats):
    return profile.Event(name, start, end, stats)


@pytest.fixture(scope="module")
def params():
    return real_model.load_params(FOLDER / "model.safetensors", CONFIG)


@pytest.fixture(scope="module")
def batch():
    return real_model_fast.random_batch(4, 16)


@pytest.fixture(scope="module")
def lowered(params, batch):
    return profile.scoped_embed.lower(params, *batch, CONFIG)


@pytest.fixture(scope="module")
def compiled(lowered):
    return lowered.compile()


def test_named_parts_compute_the_same(params, batch, compiled):
    with jax.default_matmul_precision("highest"):
        expected = real_model.embed(params, *batch, CONFIG)
    np.testing.assert_allclose(compiled(params, *batch), expected, atol=2e-5)


def test_operations_of_a_profile_lead_to_their_scopes(params, batch, compiled):
    compiled(params, *batch).block_until_ready()
    with profile.profiled() as events:
        compiled(params, *batch).block_until_ready()
    found, known = profile.operations(events), profile.instructions(compiled)
    assert len(found) > 50
    named = [each for each in found if each.name in known]
    assert len(named) > 0.8 * len(found)
    parts = {known[each.name][0].split("/")[0] for each in named}
    assert {"embeddings", "attention", "mlp", "pool"} <= parts
    sums = profile.seconds_by(events, lambda e: known.get(e.name, ("", ""))[0].split("/")[0])
    total = sum(each.end - each.start for each in found)
    assert sum(seconds for _, seconds in sums) == pytest.approx(total)
    assert [seconds for _, seconds in sums] == sorted((s for _, s in sums), reverse=True)


def test_instructions_are_read_from_the_text():
    class Compiled:
        def as_text(self):
            return (
                "  %fusion.2 = f32[8,2]{1,0} fusion(%a), kind=kLoop, calls=%c,"
                ' metadata={op_name="jit(f)/mlp/dot_general" stack_frame_id=1}\n'
                "  %b = bf16[] constant(0)"
            )

    assert profile.instructions(Compiled()) == {"fusion.2": ("mlp/dot_general", "f32")}


def test_shares_are_printed(capsys):
    profile.print_shares([("a", 3.0), ("b", 1.0), ("c", 0.0)], rows=2)
    assert capsys.readouterr().out.split() == ["75%", "a", "25%", "b"]


def test_lanes_and_idle_share():
    events = [
        event("load", 10.0, 11.0),
        event("step", 11.0, 14.0),
        event("other", 9.0, 20.0),
        event("fusion", 11.0, 12.0, hlo_op="fusion"),
        event("fusion.1", 12.0005, 14.0, hlo_op="fusion.1"),
    ]
    drawn = profile.lanes(events)
    assert drawn[:2] == [("Python", "load", 0.0, 1.0), ("Python", "step", 1.0, 4.0)]
    [(lane, name, start, end)] = drawn[2:]
    assert (lane, name) == ("device", "operations")
    assert (start, end) == pytest.approx((1.0, 4.0))
    assert profile.idle_share(events) == pytest.approx(1.0005 / 4)


def test_spans_are_merged():
    assert profile.merged([(3, 4), (0, 2), (1, 3), (6, 7)]) == [[0, 4], [6, 7]]


def test_the_loop_names_what_python_does(params, batch, compiled):
    calls = []
    with profile.profiled() as events:
        profile.run_loop(
            functools.partial(compiled, params), lambda n: batch, calls.append, count=3
        )
    names = [each.name for each in events]
    assert [names.count(name) for name in ("load", "step", "use", "wait")] == [3, 3, 3, 1]
    steps = [each.stats.get("step_num") for each in events if each.name == "loop"]
    assert steps == [0, 1, 2]
    assert len(calls) == 3


def test_a_slow_load_returns_its_batch(monkeypatch):
    slept = []
    monkeypatch.setattr(profile.time, "sleep", slept.append)
    assert profile.slow_load(0, "batch") == "batch" and slept == [0.05]


@pytest.mark.parametrize(
    ("note", "converted", "kind"),
    [(profile.note_number, 2, float), (profile.note_array, 0, jax.Array)],
)
def test_conversions_are_counted(note, converted, kind):
    history, vectors = [], jnp.arange(4.0)
    note([], vectors)
    with profile.profiled() as events:
        for _ in range(2):
            note(history, vectors)
    assert profile.conversions(events) == converted
    assert all(isinstance(each, kind) and each == 1.5 for each in history)


def test_a_forgotten_parameter_makes_matmuls_float32(params, batch):
    asked = []
    for short in (real_model_fast.in_bfloat16(params), profile.half_way(params)):
        lowered = profile.scoped_embed.lower(short, *batch, CONFIG)
        asked.append(profile.matmuls(lowered))
    whole, half = asked
    assert whole["mlp/dot_general"] == whole["attention/dot_general"] == "bf16"
    assert set(half.values()) == {"f32"}
    assert whole.keys() == half.keys()


def test_pytorch_names_its_operations_without_a_warning(batch, monkeypatch, recwarn):
    monkeypatch.setenv("KINETO_LOG_LEVEL", "0")
    profile.silence_kineto()
    model = real_model.torch_model(FOLDER)
    recwarn.clear()
    rows = profile.torch_profile(model, *batch)
    names = [name for name, _ in rows]
    assert not recwarn.list
    assert {"aten::addmm", "aten::gelu"} <= set(names)
    assert [seconds for _, seconds in rows] == sorted((s for _, s in rows), reverse=True)


@pytest.mark.parametrize(
    ("each", "order"), [(True, ["call", "wait"] * 3), (False, ["call"] * 3 + ["wait"])]
)
def test_results_are_waited_for_one_by_one_or_at_the_end(monkeypatch, each, order):
    done = []

    class Product:
        def block_until_ready(self):
            done.append("wait")

    monkeypatch.setattr(profile, "square", lambda x: done.append("call") or Product())
    profile.multiply("x", each, calls=3)
    assert done == order


@pytest.mark.parametrize("each", [True, False])
def test_the_lanes_have_what_jax_ran_in_a_possible_order(each):
    events = profile.shortest_round(48, each, rounds=3)
    calls, waits, operations = (
        [(start, end) for _, what, start, end in events if what == name]
        for name in ("call", "wait", "operations")
    )
    assert [len(calls), len(waits), len(operations)] == [6, 6 if each else 1, 6]
    assert calls[0][0] == 0
    for call, operation in zip(calls, operations, strict=True):
        assert call[0] <= operation[0]
    for wait, operation in zip(waits, operations if each else operations[-1:], strict=True):
        assert operation[1] <= wait[1]
    for (_, ready), (begun, _) in itertools.pairwise(operations):
        assert ready <= begun


# Waiting after each of two calls, and at the end, as the page's table says it for a script.
EVENTS = {
    "after each call": {
        "call": [[0, 10], [50, 60]],
        "wait": [[10, 50], [60, 100]],
        "operations": [[12, 40], [62, 87]],
    },
    "at the end": {
        "call": [[0, 10], [10, 20]],
        "wait": [[20, 80]],
        "operations": [[12, 40], [41, 77]],
    },
}


def two_lanes():
    lanes = profile.TwoLanes(())
    lanes.found = [
        (
            n,
            way,
            [
                ("device" if what == "operations" else "Python", what, a * n / 1e7, b * n / 1e7)
                for what, spans in kinds.items()
                for a, b in spans
            ],
        )
        for n in (10, 1000)
        for way, kinds in EVENTS.items()
    ]
    return lanes


def test_each_size_is_profiled_in_both_ways(monkeypatch):
    monkeypatch.setattr(profile, "shortest_round", lambda n, each: each)
    assert profile.TwoLanes((8, 9)).found == [
        (n, way, way == "after each call") for n in (8, 9) for way in EVENTS
    ]


def test_timelines_are_said_in_words():
    assert repr(two_lanes()).splitlines()[::3] == [
        "n 10, Python waits after each call, in all 100 µs, last call returns 60 µs, "
        "device computes 53%",
        "n 1000, Python waits at the end, in all 8.0 ms, last call returns 2.0 ms, "
        "device computes 80%",
    ]


def test_without_scripts_the_table_is_open_and_has_the_same_words():
    root = ElementTree.fromstring(two_lanes()._repr_html_().replace(" open", ' open=""'))
    assert "open" in root.attrib
    found = [[cell.text for cell in line.iter("td")] for line in root.iter("tr")]
    assert found[1:] == [[str(n), *texts] for n, *texts in two_lanes().rows()]
    assert json.loads(root.find(".//tbody/tr").get("data-plain")) == EVENTS["after each call"]


def test_the_page_has_what_the_script_looks_for():
    script = (DOCS / "_static" / "lanes.js").read_text("utf8")
    page = (DOCS / "models" / "profile.md").read_text("utf8")
    assert ".tag_two-lanes " in script
    assert page.count("\n:tags: [two-lanes]\n") == 1
    assert "\nscripts: lanes.js\n" in page


@pytest.fixture
def opened(browser):
    names = "_ext/executed/static/elements.js", "_static/lanes.js"
    script = "".join((DOCS / name).read_text("utf8") for name in names)
    style = (DOCS / "_static" / "book.css").read_text("utf8")
    page = browser.new_page(reduced_motion="reduce")
    page.set_content(
        f"<style>{style}</style><div class='tag_two-lanes'><div class='text_html'>"
        f"{two_lanes()._repr_html_()}</div></div><script>{script}</script>"
    )
    yield page
    page.close()


# Where the blocks of each kind are, as parts of the axis: the start and the width, in percent.
DRAWN = """() => Object.fromEntries(["call", "wait", "operations"].map(kind => [
  kind,
  [...document.querySelectorAll(`.bar.${kind}`)]
    .map(({ style }) => [parseFloat(style.x), parseFloat(style.width)])
    .filter(([, width]) => width),
]))"""


def places(way, last=100):
    """Return where the blocks belong on an axis that is the same for both ways."""
    return {
        kind: [[100 * a / last, 100 * (b - a) / last] for a, b in spans]
        for kind, spans in EVENTS[way].items()
    }


def test_the_keyboard_chooses_when_python_waits_and_the_size(opened):
    output = opened.locator("output")
    size = opened.get_by_role("slider")
    opened.locator("input[type=radio]").first.focus()
    assert opened.locator("details").get_attribute("open") is None
    assert size.get_attribute("aria-valuetext") == "1000 × 1000"
    assert opened.evaluate(DRAWN) == places("after each call")
    opened.keyboard.press("ArrowDown")
    assert opened.evaluate(DRAWN) == places("at the end")
    assert output.inner_text().startswith("8.0 ms in all. The last call returns after 2.0 ms")
    assert opened.locator(".x-tick").all_text_contents()[:3] == ["0", "2 ms", "4 ms"]
    opened.keyboard.press("Tab")
    opened.keyboard.press("ArrowLeft")
    assert size.get_attribute("aria-valuetext") == "10 × 10"
    assert output.inner_text().startswith("80 µs in all. The last call returns after 20 µs")
    assert opened.locator(".x-tick").all_text_contents()[:2] == ["0", "20 µs"]
    assert opened.locator("tr.now td").all_text_contents()[:2] == ["10", "at the end"]


def test_blocks_move_unless_motion_is_not_wanted(opened):
    took = "() => getComputedStyle(document.querySelector('.bar')).transitionDuration"
    assert opened.evaluate(took) == "0s"
    opened.emulate_media(reduced_motion="no-preference")
    assert "0.4s" in opened.evaluate(took)
