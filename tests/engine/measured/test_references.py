"""Numbers, ratios and verdicts in sentences come out of the records."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executed.options import Options
from measured import references
from measured.expressions import VERDICTS, ReferenceProblem, read
from measured.ranges import INDISTINCT, Range
from measured.references import UNDECIDED, Measurements, NotRecorded
from measured.schema import Measurement
from measured.tables import cell_text, grid
from measured.texts import compared, lines
from tests.engine.records import measured, one_process


def resolve(text, known, *write):
    return references.resolve(read("measured", text), known, *write)


def fastest(text, known):
    return str(references.fastest(read("fastest", text), known))


def paid(text, known):
    return references.paid(read("paid", text), known)


def verdict(text, known):
    return references.verdict(read("verdict", text), known)


OPTIONS = Options(frameworks={"jax": {"label": "JAX"}})
process = functools.partial(one_process, first_call=1.5)


def plain(name, *seconds, framework="jax", own=(), **fields):
    """Return a record with a process of seven rounds for each number of seconds."""
    more = {
        "page": "a/page",
        "device": "cpu",
        "versions": {"jax": "0.10.2", "tensorflow-cpu": "2.21.0"},
        "processes": [process(*[each] * 7, **dict(own)) for each in seconds],
    }
    return measured(name, [1.0], framework) | more | fields


def record(name, *seconds, **fields):
    return Measurement.from_plain(plain(name, *seconds, **fields))


def known(made, **more):
    facts = {
        "home": "cpu",
        "devices": ("cpu", "gpu-h200", "tpu-v5e"),
        "frameworks": ("jax", "torch", "tensorflow", "python"),
    }
    return Measurements(made, **facts | more)


def of(*measurements):
    """Return what is known where these were measured."""
    return known({(each.name, each.framework): {each.device: each} for each in measurements})


MADE = {
    (found.name, found.framework): {"cpu": found}
    for found in (
        record("selu/jit", 0.0025),
        record("selu/eager", 0.01, work=3.21e7),
        record("selu/eager", 0.02, framework="tensorflow"),
    )
}
MADE["selu/jit", "jax"]["gpu-h200"] = record("selu/jit", 0.0001, device="gpu-h200")
for name, framework in (("selu/compile", "torch"), ("far/one", "jax")):
    there = record(name, 0.001, framework=framework, device="gpu-h200")
    MADE[name, framework] = {"gpu-h200": there}
KNOWN = known(MADE, outdated=frozenset({("gone", "jax", "gpu-h200")}))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("selu/jit@jax", "2.50 ms (one process)"),
        ("selu/jit@jax.latency", "2.50 ms (one process)"),
        ("selu/jit@jax.first_call", "1.50 s (one process)"),
        ("selu/eager@jax.rate", "3.21 GFLOP/s"),
        ("selu/jit@jax.first_call / selu/jit@jax", "600× (one process)"),
        ("selu/jit@jax on gpu-h200", "100 µs (one process)"),
        # Of two machines: each has its own processes.
        ("selu/jit@jax.first_call / selu/jit@jax on gpu-h200", "15000×"),
    ],
)
def test_a_reference_is_written_as_its_field_asks(expression, text):
    assert resolve(expression, KNOWN).text == text


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("selu/*@jax", "selu/jit@jax"),
        ("selu/*@tensorflow", "selu/eager@tensorflow"),
        ("selu/[!j]*@*", "selu/eager@jax"),
        ("selu/* on gpu-h200", "selu/jit@jax on gpu-h200"),
        ("selu/*@tensorflow / selu/*@jax", "selu/eager@tensorflow / selu/jit@jax"),
    ],
)
def test_the_fastest_is_looked_up_where_it_was_measured(expression, found):
    for order in (MADE.items(), reversed(MADE.items())):
        assert fastest(expression, known(dict(order), outdated=KNOWN.outdated)) == found


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("selu/*@torch", "was not measured there"),
        ("selu/*@jax on tpu-v5e", "was not measured there"),
        # What was measured of other code might be faster.
        ("*@jax on gpu-h200", "was not measured there"),
        ("gone@jax on gpu-h200", "was not measured there"),
    ],
)
def test_what_is_fastest_is_not_known_where_something_is_missing(expression, problem):
    with pytest.raises(NotRecorded, match=problem):
        fastest(expression, KNOWN)


@pytest.mark.parametrize("pattern", ["sleu/*@jax", "selu/*@jaxx"])
def test_a_pattern_of_nothing_is_a_problem(pattern):
    with pytest.raises(ReferenceProblem, match="no measurement matches") as found:
        fastest(f"{pattern} / selu/*@jax", KNOWN)
    assert not isinstance(found.value, NotRecorded)
    with pytest.raises(NotRecorded):
        fastest(pattern, known(MADE, partial=True))


def test_a_number_knows_its_device():
    assert resolve("selu/jit@jax", KNOWN).devices == ("cpu",)
    assert resolve("selu/jit@jax on gpu-h200", KNOWN).devices == ("gpu-h200",)
    both = resolve("selu/jit@jax.first_call / selu/jit@jax on gpu-h200", KNOWN)
    assert both.devices == ("cpu", "gpu-h200")
    assert resolve("selu/eager@jax.first_call / selu/jit@jax.first_call", KNOWN).devices == ("cpu",)


@pytest.mark.parametrize(
    ("expression", "device", "reason"),
    [
        ("selu/jit@jax on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("selu/jit@jax.first_call on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("selu/compile@torch on cpu", "cpu", "was not measured there"),
        ("selu/compile@torch on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("far/one@jax on cpu", "cpu", "was not measured there"),
        ("gone@jax on cpu", "cpu", "was not measured there"),
        ("selu/jit@jax / selu/jit@jax on tpu-v5e", "tpu-v5e", "was not measured there"),
        ("selu/jit@jax.rate", "cpu", "the measurement of 'selu/jit@jax.rate' has no rate"),
        ("selu/jit@jax.throughput / selu/jit@jax", "cpu", "has no throughput"),
        ("selu/jit@jax / far/one@jax", None, "was not measured on one device"),
    ],
)
def test_what_could_be_measured_but_was_not_is_told_apart(expression, device, reason):
    with pytest.raises(NotRecorded, match=reason) as missing:
        resolve(expression, KNOWN)
    assert missing.value.device == device


def test_a_number_says_where_it_comes_from():
    assert resolve("selu/jit@jax", KNOWN).origin == (
        "selu/jit: jax 0.10.2 on A processor, 2026-01-02. 1 process of 7 rounds, 1.0 cores busy."
    )
    both = resolve("selu/eager@tensorflow.first_call / selu/jit@jax.first_call", KNOWN).origin
    assert "selu/eager: tensorflow 2.21.0 on A processor" in both
    assert "; selu/jit: jax 0.10.2 on A processor" in both


@pytest.mark.parametrize(
    ("processes", "words"),
    [
        ([process(1.0, 2.0)] * 3, "3 processes of 2 rounds, 1.0 cores busy."),
        ([process(1.0), process(1.0, 2.0)], "2 processes of 1 rounds to 2 rounds"),
        ([process(1.0, cores=None)], "1 process of 1 rounds."),
        ([process(1.0, disturbed=True)] * 2, " The machine did other work during 2 of them."),
    ],
)
def test_a_number_says_what_it_was_taken_of(processes, words):
    found = resolve("x@jax", of(record("x", processes=processes))).origin
    assert words.replace("1 rounds to", "1 to") in found


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
        ("gone@torch", "no measurement is called 'gone@torch'"),
        ("far/one@torch", "no measurement is called 'far/one@torch'"),
        ("selu/jit@jax.mean", "there is no field 'mean'; there are latency, "),
        ("selu/jit@jax.origin", "there is no field 'origin'; there are latency, "),
        ("selu/jit@jax on gpu-h300", f"there is no device 'gpu-h300'{NEAREST}gpu-h200"),
        ("far/one@jax on gpu-h300", f"there is no device 'gpu-h300'{NEAREST}gpu-h200"),
        ("far/one@jax / selu/jit@jax on CPU", "there is no device 'CPU'"),
        ("selu/jit@jax / selu/jit@jax / selu/jit@jax", "more than one ' / '"),
        ("", "is not of the form name@framework"),
    ],
)
def test_a_reference_to_nothing_is_refused(expression, problem):
    with pytest.raises(ReferenceProblem) as refused:
        resolve(expression, KNOWN)
    assert problem in str(refused.value)
    assert not isinstance(refused.value, NotRecorded)


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


def test_as_long_as_a_page_fails_no_name_is_wrong():
    partial = known(MADE, partial=True)
    assert partial.problem(["zzz/*"]) is None
    with pytest.raises(NotRecorded):
        resolve("selu/jat@jax", partial)
    with pytest.raises(ReferenceProblem, match="there is no framework") as refused:
        resolve("selu/jat@jacks", partial)
    assert not isinstance(refused.value, NotRecorded)


@pytest.mark.parametrize("condition", ["400..1600", "601..", "..599"])
def test_one_process_decides_no_verdict(condition):
    found, quantity = verdict(f"a@jax / b@jax in {condition} ? holds : wrong", turns([600.0]))
    assert found == "cannot tell"
    assert quantity.text == "600× (one process)"


@pytest.mark.parametrize("text", VERDICTS)
def test_a_verdict_may_stand_by_itself(text):
    assert verdict(text, KNOWN) == (text, None)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("1.2.3..4", "'1.2.3..4' is no range; a range is such as 4..16, 4.. or ..0.5"),
        ("1..2..3", "'1..2..3' is no range"),
        ("..", "'..' is no range"),
        ("4", "'4' is no range"),
        ("4.5", "'4.5' is no range"),
        ("-1..4", "'-1..4' is no range"),
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
    ],
)
def test_a_verdict_that_does_not_exist_is_refused(text):
    with pytest.raises(ReferenceProblem, match="'fine' is no verdict; there are: holds, "):
        verdict(text, KNOWN)


def turns(*ratios):
    """Return what is known where `a` and `b` took turns, with the ratios of each process' rounds.

    `c` was measured alone.
    """
    above = [process(*[2.0 * ratio for ratio in rounds]) for rounds in ratios]
    below = [process(*[2.0] * len(rounds)) for rounds in ratios]
    return of(
        record("a", comparison="in/turns", processes=above),
        record("b", comparison="in/turns", processes=below),
        record("c", processes=[process(2.0)] * len(ratios)),
    )


TEN = [[1.5 + n / 100] for n in (-5, -4, -3, -2, 0, 0, 1, 2, 3, 4)]


def test_a_ratio_of_alternatives_has_its_range():
    alone = resolve("a@jax / b@jax", turns([1.45]))
    assert (alone.text, alone.brief, alone.wordy) == ("1.4× (one process)", "1.4×", False)
    found = resolve("a@jax / b@jax", turns(*TEN))
    assert found.text == "1.50× (1.46–1.53)"
    assert (found.range.low, found.range.high) == (1.46, 1.53)
    assert not found.wordy
    assert found.origin.endswith("10 processes of 1 rounds, 1.0 cores busy.")
    back = resolve("b@jax / a@jax", turns(*TEN)).range
    assert (back.low, back.high) == pytest.approx((1 / 1.53, 1 / 1.46))
    assert resolve("a@jax / b@jax", turns(*TEN), compared).text == "1.50× slower (1.46–1.53)"
    assert resolve("b@jax / a@jax", turns(*TEN), compared).text == "1.50× faster (1.46–1.53)"


def test_two_groups_of_processes_are_told_behind_a_number():
    found = resolve("a@jax / b@jax", turns(*[[1.0]] * 6, *[[1.5]] * 4))
    assert found.origin.endswith("two groups: 6 around 1× and 4 around 1.5×.")
    made = [process(seconds) for seconds in [0.001] * 3 + [0.002] * 2]
    seconds = resolve("a@jax", of(record("a", processes=made)))
    assert seconds.origin.endswith("two groups: 3 around 1 ms and 2 around 2 ms.")


def test_a_number_has_the_range_of_its_processes():
    found = resolve("x@jax", of(record("x", 0.5, 0.4, 0.61)))
    assert found.text == "500 ms (400–610)"
    assert found.range == Range(0.5, 0.4, 0.61, 3)


def test_what_has_no_turns_may_be_divided():
    both = turns([1.5])
    assert resolve("c@jax.first_call / c@jax", both).text == "0.75× (one process)"
    assert resolve("c@jax.first_call / a@jax.first_call", both).text == "1.0× (one process)"
    rates = of(record("fast", 0.5, work=2e9), record("slow", 1.0, work=2e9))
    assert resolve("fast@jax.rate / slow@jax.rate", rates).text == "2×"


def first_calls(*processes):
    """Return what is known where `ours` and `other` took turns.

    Each process is a first call of ours, the seconds of a later one, and those of the other.
    """
    made = [process(own, first_call=first) for first, own, _ in processes]
    return of(
        record("ours", comparison="t", processes=made),
        record("other", comparison="t", processes=[process(its) for _, _, its in processes]),
    )


@pytest.mark.parametrize(
    ("processes", "text"),
    [
        # A second more at first, half a second saved by each call: after two they are even.
        ([(1.5, 0.5, 1.0)] * 3, "2 calls"),
        ([(10.5, 0.5, 1.0)], "20 calls (one process)"),
        ([(10.5 + n, 0.5, 1.0) for n in range(10)], "29 calls (22–36)"),
        ([(1000.5 + n, 0.5, 1.0) for n in (0, 50, 90)], "2100 calls (2000–2200)"),
        ([(0.9, 5.0, 1.0)] * 3, "1 call"),
        ([(10.0, 1.0, 1.0)] * 3, "never"),
        ([(10.0, 2.0, 1.0)] * 3, "never"),
        ([(10.0, 0.5, 1.0), (10.0, 1.5, 1.0), (10.0, 0.5, 1.0)], "cannot tell"),
    ],
)
def test_calls_until_a_first_call_has_paid(processes, text):
    assert paid("ours@jax / other@jax", first_calls(*processes)).text == text


def test_two_groups_of_counts_are_told_as_calls():
    counts = paid(
        "ours@jax / other@jax", first_calls(*[(1.5, 0.5, 1.0)] * 6, *[(3.5, 0.5, 1.0)] * 4)
    )
    assert counts.origin.endswith("two groups: 6 around 2 calls and 4 around 6 calls.")


@given(st.floats(1e-6, 1), st.floats(1e-6, 1), st.floats(1e-6, 100))
def test_it_pays_at_the_first_count_at_which_the_totals_meet(other, own, first):
    calls = paid("ours@jax / other@jax", first_calls(*[(first, own, other)] * 2))

    def total(count):
        return first + (count - 1) * own

    if calls.text == "never":
        assert first > other
        assert own >= other / (1 + INDISTINCT) * (1 - 1e-9)
    else:
        assert total(calls.value) <= calls.value * other * (1 + 1e-9)
        if calls.value > 1:
            assert total(calls.value - 1) > (calls.value - 1) * other * (1 - 1e-9)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("a@jax", "not of the form"),
        ("a@jax / b@jax.first_call", "names a field"),
        ("a@jax / c@jax", "at different moments"),
        ("a@jax / nobody@jax", "no measurement is called"),
    ],
)
def test_what_cannot_pay_is_refused(expression, problem):
    with pytest.raises(ReferenceProblem, match=problem):
        paid(expression, turns([1.4, 1.5, 1.6]))


def test_without_a_first_call_it_is_not_known_when_it_pays():
    made = [process(0.5, first_call=None)]
    ours = record("ours", comparison="t", processes=made)
    other = record("other", comparison="t", processes=[process(1.0)])
    with pytest.raises(NotRecorded, match="no first_call"):
        paid("ours@jax / other@jax", of(ours, other))


@pytest.mark.parametrize(
    ("limits", "chosen"),
    [
        ("1.3..", "holds"),
        ("1.46..1.53", "holds"),
        ("1.5..", UNDECIDED),
        ("..1.5", UNDECIDED),
        ("1.48..1.51", UNDECIDED),
        ("1.47..1.48", UNDECIDED),
        ("1.54..", "wrong"),
        ("..1.45", "wrong"),
    ],
)
def test_a_verdict_needs_the_whole_range_on_one_side(limits, chosen):
    text = f"a@jax / b@jax in {limits} ? holds : wrong"
    assert verdict(text, turns(*TEN))[0] == chosen


def test_a_verdict_on_a_number_needs_its_whole_range_too():
    numbers = of(record("x", 0.5, 0.4, 0.61))
    assert verdict("x@jax in ..0.7 ? holds : wrong", numbers)[0] == "holds"
    assert verdict("x@jax in ..0.6 ? holds : wrong", numbers)[0] == UNDECIDED
    assert verdict("x@jax in ..0.3 ? holds : wrong", numbers)[0] == "wrong"


COMPARISON = {
    "name": "selu",
    "alternatives": [
        plain("selu/eager", processes=[process(4.0, 2.0, 6.0, throughput=[1.0, 1.0, 1.0])]),
        plain("selu/with_jit", processes=[process(2.0, 1.0, 3.0, first_call=None)]),
    ],
}


def test_the_text_of_a_record_has_a_line_for_each_measurement_and_each_comparison():
    assert lines(COMPARISON).splitlines() == [
        "selu/eager [jax] 4.00 s (one process), of many 1.00 s (one process), "
        "first call 1.50 s (one process)",
        "selu/with_jit [jax] 2.00 s (one process)",
        "eager [jax] against with jit [jax]: 2.0× the time (one process)",
    ]
    assert lines(plain("x", 0.5, 0.4, 0.61)) == "x [jax] 500 ms (400–610), first call 1.50 s"


def test_a_table_has_the_range_of_each_number():
    found = record("x", 0.5, 0.4, 0.61, shape=[[3, 4], []], error=1.5e-7, work=2e9)
    columns = "name latency first_call rate error processes shape".split()
    assert [cell_text(column, found, OPTIONS) for column in columns] == [
        "x", "500 ms (400–610)", "1.50 s", "4 GFLOP/s", "1.5e-07", "3", "3×4, scalar",
    ]  # fmt: skip


def test_a_dagger_leads_to_what_has_changed_since_something_was_measured():
    found = [
        record("x", 0.5, device="gpu-h200", earlier="code"),
        record("y", 0.25, device="gpu-h200", earlier="code"),
        record("z", 0.25, earlier="method"),
        record("now", 0.25),
    ]
    _, rows, notes = grid(["name", "dtype"], found, OPTIONS)
    assert [row[0] for row in rows] == ["x†", "y†", "z†", "now"]
    assert notes == [
        "† gpu-h200, 2026-01-02: other code of its page has changed since.",
        "† CPU, 2026-01-02: the method has changed since.",
    ]


def test_what_was_measured_of_other_code_is_not_recorded_and_no_error():
    for device in ("", " on gpu-h200"):
        with pytest.raises(NotRecorded) as gap:
            resolve(f"gone@jax{device}", KNOWN)
        assert (gap.value.device, gap.value.outdated) == ("gpu-h200", True)
    with pytest.raises(NotRecorded) as gap:
        resolve("gone@jax on cpu", KNOWN)
    assert (gap.value.device, gap.value.outdated) == ("cpu", False)
    assert KNOWN.problem(["gone"]) is None


def test_a_note_says_once_that_its_numbers_are_of_one_process():
    alone = [record("x", 0.5), record("y", 0.25)]
    assert grid(["name", "latency"], alone, OPTIONS) == (
        ["name", "latency"],
        [["x", "500 ms"], ["y", "250 ms"]],
        ["One process: latency."],
    )
    some = [record("x", 0.5), record("y", 0.5, 0.4, 0.61)]
    assert grid(["name", "latency"], some, OPTIONS) == (
        ["name", "latency"],
        [["x", "500 ms (one process)"], ["y", "500 ms (400–610)"]],
        [],
    )


def test_a_column_of_throughput_is_there_where_there_is_one():
    columns = ["name", "throughput"]
    assert grid(columns, [record("x", 0.5)], OPTIONS) == (["name"], [["x"]], [])
    both = [record("x", 0.5), record("y", 0.5, own={"throughput": [0.1, 0.1, 0.1]})]
    assert grid(columns, both, OPTIONS) == (
        ["name", "throughput"],
        [["x", ""], ["y", "100 ms"]],
        ["One process: throughput."],
    )


def test_of_several_devices_with_other_code_that_of_the_site_is_named():
    for home in ("cpu", "gpu-h200"):
        everywhere = frozenset(("x", "jax", device) for device in ("cpu", "gpu-h200", "tpu-v5e"))
        with pytest.raises(NotRecorded) as gap:
            resolve("x@jax", known({}, outdated=everywhere, home=home))
        assert gap.value.device == home
