"""Numbers, ratios and verdicts in sentences come out of the records."""

import pytest
from _ext.measurements.labels import Labels
from _ext.measurements.references import (
    NO_DIFFERENCE,
    UNDECIDED,
    Measurements,
    NotRecorded,
    ReferenceProblem,
    rate_text,
    ratio_text,
    resolve,
    seconds_text,
    verdict,
)
from _ext.measurements.schema import Measurement, Ratio
from _ext.measurements.tables import cell_text


def record(name, median, framework="jax", **fields):
    plain = {
        "name": name,
        "framework": framework,
        "page": "a/page",
        "device": "cpu",
        "device_kind": "cpu",
        "processor": "A processor",
        "threads": 2,
        "shape": [],
        "dtype": "float32",
        "precision": "highest",
        "samples": [median] * 7,
        "calls_per_sample": 1,
        "median": median,
        "first_call": 1.5,
        "work": None,
        "error": None,
        "rate": None,
        "versions": {"jax": "0.10.2", "tensorflow-cpu": "2.21.0"},
        "date": "2026-01-02T03:04:05+00:00",
    }
    return Measurement.from_plain(plain | fields)


def known(made, **more):
    facts = {
        "home": "cpu",
        "devices": ("cpu", "gpu-h200", "tpu-v5e"),
        "frameworks": ("jax", "torch", "tensorflow", "python"),
    }
    return Measurements(made, **facts | more)


MADE = {
    (found.name, found.framework): {"cpu": found}
    for found in (
        record("selu/jit", 0.0025),
        record("selu/eager", 0.01, rate=3.21e9),
        record("selu/eager", 0.02, framework="tensorflow"),
    )
}
MADE["selu/jit", "jax"]["gpu-h200"] = record("selu/jit", 0.0001, device="gpu-h200")
for name, framework in (("selu/compile", "torch"), ("far/one", "jax")):
    there = record(name, 0.001, framework=framework, device="gpu-h200")
    MADE[name, framework] = {"gpu-h200": there}
MADE["gone", "jax"] = {"gpu-h200": record("gone", 0.1, device="gpu-h200", earlier="earlier code")}
LACKING = {
    ("selu/compile", "torch"): {"cpu", "tpu-v5e"},
    ("far/one", "jax"): {"cpu"},
}
KNOWN = known(MADE, lacking=LACKING)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5, "2.5 s"),
        (1234.0, "1230 s"),
        (0.3324, "332 ms"),
        (0.0025, "2.5 ms"),
        (1.234e-5, "12.3 µs"),
        (5e-8, "50 ns"),
        (0.9999, "1 s"),
        (0.0009999, "1 ms"),
    ],
)
def test_seconds_have_three_digits_and_a_unit(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (4.04, "4×"),
        (0.248, "0.25×"),
        (0.0000731, "0.000073×"),
        (17.4, "17×"),
        (123.4, "123×"),
        (1.019, "1.02×"),
        (1.003, "1.003×"),
        (0.996, "0.996×"),
        (1.00004, "1×"),
        (1, "1×"),
        (99.7, "100×"),
        (123456.7, "123000×"),
        (1.234e9, "1.23e+09×"),
        (1e300, "1e+300×"),
        (1e-21, "1e-21×"),
    ],
)
def test_ratios_have_two_digits(ratio, text):
    assert ratio_text(ratio) == text


def test_rates_are_in_gflops():
    assert rate_text(3.21e9) == "3.21 GFLOP/s"
    assert rate_text(1.5e13) == "15000 GFLOP/s"


@pytest.mark.parametrize("value", [10.0**power for power in range(-300, 300, 7)])
def test_no_number_is_long(value):
    for text in (ratio_text(value), seconds_text(value), rate_text(value)):
        assert len(text) <= 16


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("selu/jit@jax", "2.5 ms"),
        ("selu/jit@jax.median", "2.5 ms"),
        ("selu/jit@jax.first_call", "1.5 s"),
        ("selu/jit@jax.spread", "0%"),
        ("selu/jit@jax.threads", "2"),
        ("selu/jit@jax.samples", "7"),
        ("selu/eager@jax.rate", "3.21 GFLOP/s"),
        ("selu/jit@jax.first_call / selu/jit@jax", "600×"),
        ("selu/jit@jax on gpu-h200", "100 µs"),
        ("selu/jit@jax.threads on gpu-h200", "2"),
        ("selu/jit@jax.first_call / selu/jit@jax on gpu-h200", "15000×"),
    ],
)
def test_a_reference_is_written_as_its_field_asks(expression, text):
    assert resolve(expression, KNOWN).text == text


def test_a_number_knows_its_device():
    assert resolve("selu/jit@jax", KNOWN).devices == ("cpu",)
    assert resolve("selu/jit@jax on gpu-h200", KNOWN).devices == ("gpu-h200",)
    both = resolve("selu/jit@jax.first_call / selu/jit@jax on gpu-h200", KNOWN)
    assert both.devices == ("cpu", "gpu-h200")
    assert resolve("selu/eager@jax.first_call / selu/jit@jax", KNOWN).devices == ("cpu",)


@pytest.mark.parametrize(
    ("expression", "device", "reason"),
    [
        ("selu/jit@jax on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("selu/jit@jax.threads on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("selu/compile@torch on cpu", "cpu", "was not measured there"),
        ("selu/compile@torch on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("far/one@jax on cpu", "cpu", "was not measured there"),
        ("gone@jax on cpu", "cpu", "was not measured there"),
        ("selu/jit@jax / selu/jit@jax on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("selu/jit@jax / far/one@jax", None, "was not measured on one device"),
    ],
)
def test_what_could_be_measured_but_was_not_is_told_apart(expression, device, reason):
    with pytest.raises(NotRecorded, match=reason) as missing:
        resolve(expression, KNOWN)
    assert missing.value.device == device


def test_a_number_says_where_it_comes_from():
    assert resolve("selu/jit@jax", KNOWN).origin == (
        "selu/jit: jax 0.10.2 on cpu (A processor, 2 threads), 2026-01-02. "
        "7 samples, half of them from 2.5 ms to 2.5 ms."
    )
    both = resolve("selu/eager@tensorflow.first_call / selu/jit@jax", KNOWN).origin
    assert "selu/eager: tensorflow 2.21.0 on cpu" in both
    assert "; selu/jit: jax 0.10.2 on cpu" in both


NEAREST = "; the nearest are "


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("selu/jit", "is not of the form name@framework"),
        ("selu/*@jax", "is not of the form name@framework"),
        ("selu/jat@jax", f"no measurement is called 'selu/jat@jax'{NEAREST}selu/jit@jax"),
        ("selu/jit@numpy", "called 'selu/jit@numpy': there is no framework 'numpy'"),
        ("selu/jit@jaxx", f"there is no framework 'jaxx'{NEAREST}jax"),
        ("far/one@jaxx", f"there is no framework 'jaxx'{NEAREST}jax"),
        ("far/won@jax", f"no measurement is called 'far/won@jax'{NEAREST}far/one@jax"),
        ("gone@jax", "no measurement is called 'gone@jax'"),
        ("far/one@torch", "no measurement is called 'far/one@torch'"),
        ("selu/jit@jax.mean", "there is no field 'mean'; there are median, "),
        ("selu/jit@jax.origin", "there is no field 'origin'; there are median, "),
        ("selu/jit@jax on gpu-h300", f"there is no device 'gpu-h300'{NEAREST}gpu-h200"),
        ("far/one@jax on gpu-h300", f"there is no device 'gpu-h300'{NEAREST}gpu-h200"),
        ("far/one@jax / selu/jit@jax on CPU", "there is no device 'CPU'"),
        ("selu/jit@jax / selu/jit@jax / selu/jit@jax", "more than one ' / '"),
        ("selu/jit@jax.rate / selu/eager@jax.rate", "has no rate"),
        ("selu/jit@jax.rate", "has no rate"),
        ("", "is not of the form name@framework"),
    ],
)
def test_a_reference_to_nothing_is_refused(expression, problem):
    with pytest.raises(ReferenceProblem) as refused:
        resolve(expression, KNOWN)
    assert problem in str(refused.value)
    assert not isinstance(refused.value, NotRecorded)


def test_nothing_is_divided_by_zero():
    made = {("none", "jax"): {"cpu": record("none", 1, error=0.0)}}
    with pytest.raises(ReferenceProblem, match="divides by zero"):
        resolve("none@jax / none@jax.error", known(made))


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        (["selu/*"], None),
        (["selu/jit", "far/*"], None),
        (["far/one"], None),
        (["selu/jat"], f"no measurement matches selu/jat{NEAREST}selu/jit"),
        (["selu/jit", "selu/jat"], f"no measurement matches selu/jat{NEAREST}selu/jit"),
        (["zzz/*"], "no measurement matches zzz/*"),
    ],
)
def test_each_pattern_of_a_table_must_match_a_name_of_the_book(patterns, problem):
    found = KNOWN.problem(patterns)
    assert found is None if problem is None else found.startswith(problem)


def test_a_table_of_measurements_that_were_not_made_may_be_empty():
    assert KNOWN.devices_without(["far/*"]) == {"cpu"}
    assert KNOWN.devices_without(["*/compile"]) == {"cpu", "tpu-v5e"}
    assert KNOWN.devices_without(["selu/jit"]) == set()


def test_as_long_as_a_page_fails_no_name_is_wrong():
    partial = known(MADE, partial=True)
    assert partial.problem(["zzz/*"]) is None
    with pytest.raises(NotRecorded):
        resolve("selu/jat@jax", partial)
    with pytest.raises(ReferenceProblem, match="there is no framework") as refused:
        resolve("selu/jat@jacks", partial)
    assert not isinstance(refused.value, NotRecorded)


def test_a_name_that_two_pages_measure_stands_for_neither():
    doubled = known(MADE, doubled=frozenset({("selu/jit", "jax")}))
    with pytest.raises(NotRecorded, match="selu/jit@jax is measured on two pages"):
        resolve("selu/eager@jax / selu/jit@jax", doubled)
    assert resolve("selu/eager@jax", doubled).text == "10 ms"


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        ("400..1600", "holds"),
        ("601..", "wrong"),
        ("..600", "holds"),
        ("..599.9", "wrong"),
        ("600.0..600.0", "holds"),
        ("0.5..300", "wrong"),
    ],
)
def test_a_verdict_follows_from_the_records(condition, chosen):
    text = f"selu/jit@jax.first_call / selu/jit@jax in {condition} ? holds : wrong"
    found, quantity = verdict(text, KNOWN)
    assert found == chosen
    assert quantity.text == "600×"


@pytest.mark.parametrize("text", ["out of date", "not so on this device"])
def test_a_verdict_may_stand_by_itself(text):
    assert verdict(text, KNOWN) == (text, None)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("1.2.3..4", "'1.2.3..4' is no range; a range is such as 4..16, 4.. or ..0.5"),
        ("1..2..3", "'1..2..3' is no range"),
        ("1...2", "'1...2' is no range"),
        (".....4", "'.....4' is no range"),
        ("..", "'..' is no range"),
        ("4", "'4' is no range"),
        ("4.", "'4.' is no range"),
        ("4.5", "'4.5' is no range"),
        ("-1..4", "'-1..4' is no range"),
        ("1e3..", "'1e3..' is no range"),
        ("nan..", "'nan..' is no range"),
        ("²..4", "'²..4' is no range"),
        ("16..4", "the range 16..4 ends before it begins"),
        ("0.51..0.5", "the range 0.51..0.5 ends before it begins"),
        ("1" * 400 + "..", "is no range"),
    ],
)
def test_a_range_that_cannot_be_meant_is_refused(condition, problem):
    with pytest.raises(ReferenceProblem) as refused:
        verdict(f"selu/jit@jax.first_call / selu/jit@jax in {condition} ? holds : wrong", KNOWN)
    assert problem in str(refused.value)


def test_a_wrong_range_is_told_where_nothing_is_recorded_too():
    with pytest.raises(ReferenceProblem, match="is no range") as refused:
        verdict("far/one@jax in 1.2.3..4 ? holds : wrong", KNOWN)
    assert not isinstance(refused.value, NotRecorded)


@pytest.mark.parametrize(
    "text",
    [
        "selu/eager@jax / selu/jit@jax in 4..16",
        "selu/eager@jax in 4..16 ? holds",
        "selu/eager@jax in 4 .. 16 ? holds : wrong",
        "selu/eager@jax ? holds : wrong",
    ],
)
def test_a_condition_of_another_form_is_refused(text):
    with pytest.raises(ReferenceProblem, match="is not of the form REFERENCE in LOW"):
        verdict(text, KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "fine",
        "selu/eager@jax / selu/jit@jax in 4.. ? fine : wrong",
        "selu/eager@jax / selu/jit@jax in 4.. ? holds : fine",
        "selu/jat@jax in 4.. ? holds : wrong",
        "selu/jit@jax.rate in 4.. ? holds : wrong",
    ],
)
def test_a_verdict_that_does_not_exist_is_refused(text):
    with pytest.raises(ReferenceProblem):
        verdict(text, KNOWN)


def alternative(name, median, other, ratio, **fields):
    floor = fields.pop("floor", 0.01)
    value, low, high = ratio
    of = {"name": "in/turns", "floor": floor}
    of["ratios"] = {other: {"value": value, "low": low, "high": high}}
    return record(name, median, comparison=of, **fields)


def turns(value, low, high, **fields):
    """Return what is known where `a` and `b` took turns, and `c` was measured alone."""
    a = alternative("a", 2.0 * value, "b@jax", (value, low, high), **fields)
    b = alternative("b", 2.0, "a@jax", (1 / value, 1 / high, 1 / low), **fields)
    c = record("c", 2.0)
    return known({(each.name, "jax"): {"cpu": each} for each in (a, b, c)})


def test_a_ratio_of_alternatives_has_its_interval():
    found = resolve("a@jax / b@jax", turns(1.5, 1.4, 1.6))
    assert found.text == "1.5×"
    assert found.ratio == Ratio(1.5, 1.4, 1.6, 0.01)
    assert "95 % interval from 1.4× to 1.6×" in found.origin
    assert "differed by 1.0%" in found.origin
    back = resolve("b@jax / a@jax", turns(1.5, 1.4, 1.6)).ratio
    assert (back.value, back.low, back.high) == pytest.approx((1 / 1.5, 1 / 1.6, 1 / 1.4))


@pytest.mark.parametrize(("interval", "floor"), [((0.9, 1.2), 0.01), ((1.04, 1.2), 0.2)])
def test_within_the_noise_there_is_no_difference(interval, floor):
    found = resolve("a@jax / b@jax", turns(1.05, *interval, floor=floor))
    assert found.text == NO_DIFFERENCE
    assert found.origin.startswith("The ratio came out as 1.1×.")


def test_rates_are_compared_the_other_way_round():
    both = turns(1.5, 1.4, 1.6, rate=1.0)
    slow = both.made["a", "jax"]["cpu"]
    fast = both.made["b", "jax"]["cpu"]
    made = {("a", "jax"): {"cpu": slow}, ("b", "jax"): {"cpu": fast}}
    object.__setattr__(fast, "rate", 1.5)
    found = resolve("b@jax.rate / a@jax.rate", known(made))
    assert (found.value, found.ratio.low, found.ratio.high) == pytest.approx((1.5, 1.4, 1.6))


@pytest.mark.parametrize("expression", ["a@jax / c@jax", "c@jax / a@jax", "c@jax / c@jax"])
def test_medians_of_different_moments_are_not_divided(expression):
    with pytest.raises(ReferenceProblem, match="divides what was measured at different moments"):
        resolve(expression, turns(1.5, 1.4, 1.6))


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"device": "gpu-h200"}, "was not measured on one device"),
        ({"page": "b/page"}, "at different moments"),
    ],
)
def test_alternatives_of_another_run_took_no_turns(other, problem):
    both = turns(1.5, 1.4, 1.6)
    elsewhere = alternative("b", 2.0, "a@jax", (1 / 1.5, 1 / 1.6, 1 / 1.4), **other)
    made = dict(both.made) | {("b", "jax"): {elsewhere.device: elsewhere}}
    with pytest.raises(ReferenceProblem, match=problem):
        resolve("a@jax / b@jax", known(made))


def test_other_fields_may_be_divided():
    assert resolve("c@jax.first_call / c@jax", turns(1.5, 1.4, 1.6)).text == "0.75×"
    assert resolve("c@jax.first_call / a@jax.first_call", turns(1.5, 1.4, 1.6)).text == "1×"


@pytest.mark.parametrize(
    ("limits", "chosen"),
    [
        ("1.3..", "holds"),
        ("1.4..1.6", "holds"),
        ("1.5..", UNDECIDED),
        ("..1.5", UNDECIDED),
        ("1.45..1.55", UNDECIDED),
        ("1.41..1.42", UNDECIDED),
        ("1.7..", "wrong"),
        ("..1.3", "wrong"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(limits, chosen):
    text = f"a@jax / b@jax in {limits} ? holds : wrong"
    assert verdict(text, turns(1.5, 1.4, 1.6))[0] == chosen


def test_an_unstable_number_says_so():
    samples = [0.5, 1.0, 1.5, 2.0, 2.5]
    made = {("x", "jax"): {"cpu": record("x", 1.5, samples=samples, rate=2.0)}}
    found = resolve("x@jax", known(made))
    assert found.unstable == "x@jax is unstable: half of its samples lie between 1 s and 2 s."
    assert resolve("x@jax.rate", known(made)).unstable
    assert resolve("x@jax.first_call / x@jax", known(made)).unstable == found.unstable
    assert not resolve("x@jax.threads", known(made)).unstable
    assert not resolve("selu/jit@jax", KNOWN).unstable
    steady = {("x", "jax"): {"cpu": record("x", 1.5, processes=[1.5, 1.0, 2.0])}}
    found = resolve("x@jax", known(steady))
    assert found.unstable == "x@jax is unstable: its medians lie between 1 s and 2 s."


def test_a_number_says_what_was_found_in_other_processes():
    more = {"processes": [2.0, 2.2, 1.9], "machine": {"repeated": 1}}
    said = resolve("x@jax", known({("x", "jax"): {"cpu": record("x", 2.0, **more)}})).origin
    assert "In 3 processes the median was 1.9 s to 2.2 s." in said
    assert "Measured again 1×" in said


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"disturbed": True}, "The machine did other work meanwhile."),
        ({"disturbed": True, "repeated": 2}, "meanwhile, although it was measured again 2×."),
    ],
)
def test_a_disturbed_number_says_so(machine, words):
    found = record("x", 2.0, machine=machine)
    assert words in resolve("x@jax", known({("x", "jax"): {"cpu": found}})).origin


def test_a_table_shows_quartiles_and_counts_what_is_far_off():
    found = record("x", 1.0, samples=[1.0, 1.0, 1.5, 2.0, 2.0, 9.0])
    assert cell_text("quartiles", found, Labels()) == "1.12 s to 2 s"
    assert cell_text("outliers", found, Labels()) == "1 of 6"
