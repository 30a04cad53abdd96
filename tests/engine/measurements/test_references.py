"""Numbers, ratios and verdicts in sentences come out of the records."""

import pytest
from _ext.measurements.references import (
    NotRecorded,
    Records,
    ReferenceProblem,
    rate_text,
    ratio_text,
    resolve,
    seconds_text,
    verdict,
)


def record(name, median, framework="jax", **fields):
    return {
        "name": name,
        "framework": framework,
        "device": "cpu",
        "device_kind": "cpu",
        "processor": "A processor",
        "threads": 2,
        "samples": [median] * 7,
        "median": median,
        "spread": 0.034,
        "first_call": 1.5,
        "rate": None,
        "versions": {"jax": "0.10.2", "tensorflow-cpu": "2.21.0"},
        "date": "2026-01-02T03:04:05+00:00",
    } | fields


MADE = {
    (found["name"], found["framework"]): {"cpu": found}
    for found in (
        record("selu/jit", 0.0025),
        record("selu/eager", 0.01, rate=3.21e9),
        record("selu/eager", 0.02, framework="tensorflow"),
    )
}
MADE["selu/jit", "jax"]["gpu-h200"] = record("selu/jit", 0.0001, device="gpu-h200")
RECORDS = Records(MADE, {"torch"})


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
    [(4.04, "4×"), (0.248, "0.25×"), (17.4, "17×"), (123.4, "123×"), (99.7, "100×")],
)
def test_ratios_have_two_digits(ratio, text):
    assert ratio_text(ratio) == text


def test_rates_are_in_gflops():
    assert rate_text(3.21e9) == "3.21 GFLOP/s"
    assert rate_text(1.5e13) == "15000 GFLOP/s"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("selu/jit@jax", "2.5 ms"),
        ("selu/jit@jax.median", "2.5 ms"),
        ("selu/jit@jax.first_call", "1.5 s"),
        ("selu/jit@jax.spread", "3%"),
        ("selu/jit@jax.threads", "2"),
        ("selu/jit@jax.samples", "7"),
        ("selu/eager@jax.rate", "3.21 GFLOP/s"),
        ("selu/eager@jax / selu/jit@jax", "4×"),
        ("selu/jit@jax.first_call / selu/jit@jax", "600×"),
        ("selu/jit@jax on gpu-h200", "100 µs"),
        ("selu/jit@jax.threads on gpu-h200", "2"),
        ("selu/jit@jax / selu/jit@jax on gpu-h200", "25×"),
    ],
)
def test_a_reference_is_written_as_its_field_asks(expression, text):
    assert resolve(expression, RECORDS).text == text


def test_a_number_knows_its_device():
    assert resolve("selu/jit@jax", RECORDS).devices == ("cpu",)
    assert resolve("selu/jit@jax on gpu-h200", RECORDS).devices == ("gpu-h200",)
    both = resolve("selu/jit@jax / selu/jit@jax on gpu-h200", RECORDS)
    assert both.devices == ("cpu", "gpu-h200")
    assert resolve("selu/eager@jax / selu/jit@jax", RECORDS).devices == ("cpu",)


@pytest.mark.parametrize(
    ("expression", "device"),
    [("selu/jit@jax on tpu-v5e", "tpu-v5e"), ("selu/jit@torch", None)],
)
def test_what_could_be_measured_but_was_not_is_told_apart(expression, device):
    with pytest.raises(NotRecorded) as missing:
        resolve(expression, RECORDS)
    assert missing.value.device == device


def test_a_number_says_where_it_comes_from():
    assert resolve("selu/jit@jax", RECORDS).origin == (
        "selu/jit: jax 0.10.2 on cpu (A processor, 2 threads), 2026-01-02"
    )
    both = resolve("selu/eager@tensorflow / selu/jit@jax", RECORDS).origin
    assert "selu/eager: tensorflow 2.21.0 on cpu" in both
    assert "; selu/jit: jax 0.10.2 on cpu" in both


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("selu/jit", "is not of the form name@framework"),
        ("selu/jat@jax", "no measurement is called 'selu/jat@jax'; the nearest are selu/jit@jax"),
        ("selu/jit@numpy", "no measurement is called"),
        ("selu/jit@jax.mean", "there is no field 'mean'; there are median, "),
        ("selu/jit@jax / selu/jit@jax / selu/jit@jax", "more than one ' / '"),
        ("selu/jit@jax.rate / selu/eager@jax.rate", "has no rate"),
        ("selu/jit@jax.rate", "has no rate"),
    ],
)
def test_a_reference_to_nothing_is_refused(expression, problem):
    with pytest.raises(ReferenceProblem) as refused:
        resolve(expression, RECORDS)
    assert problem in str(refused.value)


def test_nothing_is_divided_by_zero():
    made = {("none", "jax"): {"cpu": record("none", 1, error=0.0)}}
    with pytest.raises(ReferenceProblem, match="divides by zero"):
        resolve("none@jax / none@jax.error", Records(made))


def test_where_pages_are_not_recorded_a_number_may_be_missing():
    with pytest.raises(NotRecorded, match="selu/far with jax"):
        resolve("selu/far@jax", Records(MADE, gaps=True))


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        ("4..16", "holds"),
        ("5..", "wrong"),
        ("..4", "holds"),
        ("..3.9", "wrong"),
        ("4.0..4.0", "holds"),
    ],
)
def test_a_verdict_follows_from_the_records(condition, chosen):
    text = f"selu/eager@jax / selu/jit@jax in {condition} ? holds : wrong"
    found, quantity = verdict(text, RECORDS)
    assert found == chosen
    assert quantity.text == "4×"


def test_a_verdict_may_stand_by_itself():
    assert verdict("out of date", RECORDS) == ("out of date", None)


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
        verdict(text, RECORDS)
