"""What counts as a measurement is said in one file, beside the timer that writes the records."""

import json
import math
import pathlib

import pytest
from _ext.measurements.schema import Measurement, Ratio, Schema, SchemaError, single
from _ext.options import Options

ROOT = pathlib.Path(__file__).parents[3]
PATH = ROOT / "snippets" / "timing" / "measurement.schema.json"
RECORD = {
    "version": 1,
    "name": "selu/jit",
    "framework": "jax",
    "device_kind": "cpu",
    "processor": "A processor",
    "threads": 2,
    "shape": [[2, 3], []],
    "dtype": "float32",
    "precision": "highest",
    "samples": [0.5, 0.5],
    "calls_per_sample": 1,
    "first_call": 1.5,
    "work": None,
    "error": 1e-7,
    "median": 0.5,
    "spread": 0.01,
    "stable": True,
    "rate": None,
    "versions": {"jax": "0.10.2", "python": "3.11.2"},
    "date": "2026-01-02T03:04:05+00:00",
}


@pytest.fixture(scope="module")
def schema():
    return Schema.load(PATH)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes the schema of the book with changes, and gives its path."""

    def write(change):
        rules = json.loads(PATH.read_text("utf8"))
        change(rules)
        path = tmp_path / "measurement.schema.json"
        path.write_text(json.dumps(rules), "utf8")
        return path

    return write


def test_the_schema_of_the_book_names_type_version_and_function(schema):
    assert schema.media_type == "application/vnd.jax-measured.record+json"
    assert schema.versions == (1, 2)
    assert schema.functions == ("measure",)
    assert schema.comparisons == ("compare",)
    assert schema.frameworks == ("numpy", "jax", "torch", "tensorflow")
    assert schema.framework == "python"


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"shape": []},
        {"work": 2e9, "rate": 4e9, "error": 0},
        {"date": "2026-01-02T03:04:05Z"},
        {"date": "2026-01-02T03:04:05.678-08:00"},
        {"framework": "python", "versions": {}, "threads": 0, "dtype": ""},
        {"name": "a$\\frac$"},
        {"stable": False, "spread": 3.2},
        {"device_kind": "Größe µ"},
    ],
)
def test_what_a_timer_may_write_is_a_measurement(schema, change):
    assert schema.problem(RECORD | change) is None


@pytest.mark.parametrize(
    "change",
    [
        {"median": "<b>1</b>"},
        {"median": True},
        {"threads": True},
        {"calls_per_sample": False},
        {"samples": ["1"]},
        {"samples": [True, 1.0]},
        {"samples": []},
        {"name": None},
        {"name": ""},
        {"name": "x" * 1000},
        {"name": "two words"},
        {"name": "x\n"},
        {"name": "x@y"},
        {"name": "x/*"},
        {"name": "x\x1b[31m"},
        {"name": "\ud800"},
        {"framework": "jax\n"},
        {"framework": "a-b"},
        {"processor": "x\x1b[31m"},
        {"processor": "A\n"},
        {"stable": "no"},
        {"stable": 1},
        {"shape": [["4"]]},
        {"shape": [[4.5]]},
        {"shape": [4]},
        {"versions": {"jax": 1}},
        {"versions": {"j\nax": "1"}},
        {"versions": ["jax"]},
        {"median": 0},
        {"first_call": -1},
        {"samples": [10**400]},
        {"shape": [[10**400]]},
        {"shape": [[-4]]},
        {"spread": None},
        {"spread": 1e30},
        {"median": 1e-300},
        {"median": 1e300},
        {"median": math.nan},
        {"spread": math.nan},
        {"error": math.inf},
        {"samples": [0.5, -math.inf]},
        {"samples": [0.5] * 1001},
        {"date": "yesterday"},
        {"date": "2026-13-02T03:04:05+00:00"},
        {"date": "2026-01-02"},
        {"date": "2026-01-02T03:04:05"},
        {"date": ""},
        {"date": "0001-01-02T03:04:05+00:00"},
        {"date": "9999-01-02T03:04:05+00:00"},
        {"date": 20260102},
        {"what else": 1},
        {"page": "a/b"},
    ],
)
def test_what_no_timer_writes_is_no_measurement(schema, change):
    assert schema.problem(RECORD | change)


@pytest.mark.parametrize("field", RECORD)
def test_a_record_must_be_whole(schema, field):
    problem = schema.problem({key: value for key, value in RECORD.items() if key != field})
    assert "version none" in problem if field == "version" else field in problem


@pytest.mark.parametrize("value", [None, [], "text", 5, [RECORD], {1: 2}, {"x": {1, 2}}])
def test_a_record_must_be_an_object(schema, value):
    assert schema.problem(value)


@pytest.mark.parametrize("version", [0, 3, True, 1.5, "1", None, [1]])
def test_a_record_of_another_version_says_to_measure_again(schema, version):
    problem = schema.problem(RECORD | {"version": version})
    assert f"it is of version {str(version).lower()}, where version 2 is needed" in problem
    assert "measure again" in problem


def test_a_problem_names_the_place_and_is_short(schema):
    assert schema.problem(RECORD | {"median": True}).startswith("median: True is not")
    assert schema.problem(RECORD | {"samples": [1.0, "x"]}).startswith("samples.1: 'x' is not")
    assert len(schema.problem(RECORD | {"dtype": "x" * 100_000})) < 300
    assert len(schema.problem(RECORD | {"version": "x" * 100_000})) < 300


def measurement(rules):
    return rules["$defs"]["measurement"]["required"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rules: rules.pop("mediaType"), "it does not say 'mediaType'"),
        (lambda rules: rules.pop("functions"), "it does not say 'functions'"),
        (lambda rules: rules["properties"].pop("version"), "it does not say 'version'"),
        (lambda rules: rules.update(mediaType=5), "of the wrong type"),
        (lambda rules: rules.update(type="thing"), "it is no JSON schema: 'thing' is not valid"),
        (lambda rules: measurement(rules).remove("median"), "it does not require 'median'"),
    ],
)
def test_a_file_that_is_no_schema_of_measurements_says_why(written, change, message):
    path = written(change)
    with pytest.raises(SchemaError) as refused:
        Schema.load(path)
    assert message in str(refused.value)
    assert path.name in str(refused.value)


@pytest.mark.parametrize(
    "rules",
    [
        {"prefixItems": [{"maximum": 0.1}]},
        {"unevaluatedItems": {"maximum": 0.1}},
        {"$ref": "#/$defs/samples", "maxItems": 1},
        {"items": {"$ref": "#/$defs/seconds", "maximum": 0.1}},
    ],
    ids=str,
)
def test_rules_that_older_drafts_do_not_have_count_too(written, rules):
    def change(schema):
        schema["$defs"]["measurement"]["properties"]["samples"] = rules

    assert Schema.load(written(change)).problem(RECORD).startswith("samples")


@pytest.mark.parametrize("text", ["", "[]", "null", "5", '"x"', "{", "{}", "\x00"])
def test_a_file_of_anything_else_says_that_it_is_no_schema(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text, "utf8")
    with pytest.raises(SchemaError, match=r"x\.json"):
        Schema.load(path)


def test_a_missing_file_is_told():
    with pytest.raises(SchemaError, match="there is no such file"):
        Schema.load(PATH.with_name("nothing.json"))


def test_conf_py_names_the_schema():
    assert Schema.of(Options()) is None
    named = Options(measurements="snippets/timing/measurement.schema.json", root=ROOT)
    assert Schema.of(named).versions == (1, 2)


def test_a_measurement_knows_its_place_and_origin():
    found = Measurement.from_plain(RECORD | {"page": "a/b", "device": "cpu"})
    assert (found.page, found.device, found.reference) == ("a/b", "cpu", "selu/jit@jax")
    assert found.shape == ((2, 3), ())
    assert found.size == 2
    assert found.origin == ("selu/jit: jax 0.10.2 on cpu (A processor, 2 threads), 2026-01-02")


@pytest.mark.parametrize(
    ("framework", "versions", "text"),
    [
        ("tensorflow", {"tensorflow-cpu": "2.21.0"}, "tensorflow 2.21.0 on"),
        ("tensorflow", {"tensorflow-cpu": "1", "tensorflow": "2"}, "tensorflow 2 on"),
        ("torch", {"torchvision": "1", "jax": "2"}, "torch on"),
        ("python", {}, "python on"),
    ],
)
def test_the_version_is_that_of_the_frameworks_package(framework, versions, text):
    changed = RECORD | {"framework": framework, "versions": versions}
    found = Measurement.from_plain(changed | {"page": "a/b", "device": "cpu"})
    assert f"selu/jit: {text} cpu" in found.origin


@pytest.mark.parametrize(
    ("shape", "size"), [([], None), ([[]], None), ([[0, 3]], None), ([[7], [2]], 7)]
)
def test_the_size_is_the_first_length_that_can_be_drawn(shape, size):
    found = Measurement.from_plain(RECORD | {"shape": shape, "page": "a/b", "device": "cpu"})
    assert found.size == size


NEWER = {
    "version": 2,
    "quartiles": [0.5, 0.5],
    "outliers": 0,
    "machine": {
        "load": 0.1,
        "steal": None,
        "others": 0.0,
        "megahertz": None,
        "limits": {"cores": "2 of 2"},
        "disturbed": False,
    },
}
JIT = RECORD | NEWER
EAGER = JIT | {"name": "selu/eager", "samples": [1.9, 2.1], "median": 2.0}
COMPARISON = {
    "version": 2,
    "name": "selu",
    "alternatives": [EAGER, JIT],
    "control": [2.0, 2.0],
    "floor": 0.01,
    "ratios": [
        {"above": "selu/eager@jax", "below": "selu/jit@jax", "ratio": 4, "low": 3.2, "high": 5.0}
    ],
}


def test_a_record_of_the_second_version_is_a_measurement_too(schema):
    assert schema.problem(JIT) is None
    assert schema.problem(JIT | {"processes": [0.5, 0.6, 0.4]}) is None


@pytest.mark.parametrize("field", NEWER)
def test_the_second_version_asks_for_more(schema, field):
    assert schema.problem({key: value for key, value in JIT.items() if key != field})


def test_a_comparison_is_one_record(schema):
    assert schema.problem(COMPARISON) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"alternatives": []},
        {"alternatives": [{"name": "x"}]},
        {"floor": -0.1},
        {"floor": None},
        {"control": []},
        {"ratios": [{"above": "x", "below": "y", "ratio": 1}]},
        {"ratios": [COMPARISON["ratios"][0] | {"low": 0}]},
        {"name": "<b>"[:2] + " b"},
        {"more": 1},
    ],
)
def test_what_is_no_comparison_is_refused(schema, change):
    assert schema.problem(COMPARISON | change)


@pytest.mark.parametrize(
    "change",
    [
        {"processor": "A\u202eB"},
        {"versions": {"jax": "0.1\u2066"}},
        {"versions": {"j\u2069ax": "0.1"}},
        {"name": "x/\u202d"},
    ],
)
def test_a_text_that_turns_the_direction_of_writing_is_refused(schema, change):
    assert "it holds the character U+20" in (schema.problem(RECORD | change) or "")


def ratios(*changes):
    return {"ratios": [COMPARISON["ratios"][0] | change for change in changes]}


TURNED = {"above": "selu/jit@jax", "below": "selu/eager@jax"}
TURNED |= {"ratio": 0.25, "low": 0.2, "high": 0.3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (ratios({"low": 5.0, "high": 3.2}), "selu/jit@jax is 4, outside of 5 to 3.2"),
        (ratios({"low": 4.5}), "selu/eager@jax / selu/jit@jax is 4, outside of 4.5 to 5"),
        (ratios({"high": 3.5}), "is 4, outside of 3.2 to 3.5"),
        (ratios({"below": "selu/other@jax"}), "is not of two alternatives of selu"),
        (ratios({"above": "selu/eager"}), "is not of two alternatives of selu"),
        (ratios({"above": "selu/jit@jax"}), "is not of two alternatives of selu"),
        (ratios({}, {}), "selu/eager@jax / selu/jit@jax is given twice"),
        (ratios({}, TURNED), "selu/jit@jax / selu/eager@jax is given twice"),
        (ratios({"ratio": 4.9}), "is 4.9, and by the samples 3.99"),
        (ratios({"ratio": 0.25, "low": 0.2, "high": 0.3}), "is 0.25, and by the samples 3.99"),
        ({"floor": 1e5}, "floor: it is 1e+05, and by the samples 0.0012"),
        ({"control": [1.0, 1.0]}, "floor: it is 0.01, and by the samples 0.99"),
        ({"control": [2.0]}, "alternatives: selu/eager@jax has 2 samples in 1 rounds"),
        ({"alternatives": [EAGER, EAGER]}, "there are two selu/eager@jax"),
        ({"alternatives": [EAGER | {"median": 1.8}, JIT]}, "median: 1.8 s of selu/eager@jax is"),
    ],
)
def test_a_comparison_that_disagrees_with_itself_is_refused(schema, change, message):
    assert message in (schema.problem(COMPARISON | change) or "")


def test_a_median_lies_among_its_samples(schema):
    message = "median: 0.6 s of selu/jit@jax is outside of its samples"
    assert schema.problem(RECORD | {"median": 0.6}) == message


def measurements_in(record):
    return [
        Measurement.from_plain(each | {"page": "a/b", "device": "cpu"}) for each in single(record)
    ]


def test_a_record_of_one_measurement_holds_that():
    assert list(single(RECORD)) == [RECORD]
    (found,) = measurements_in(RECORD)
    assert (found.comparison, found.ratios) == ("", {})


def test_each_alternative_is_a_measurement_that_knows_its_ratios():
    eager, jit = measurements_in(COMPARISON)
    assert (eager.reference, eager.median, eager.comparison) == ("selu/eager@jax", 2.0, "selu")
    assert eager.ratios == {"selu/jit@jax": Ratio(4, 3.2, 5.0, 0.01)}
    assert jit.ratios == {"selu/eager@jax": Ratio(0.25, 0.2, 0.3125, 0.01)}


def test_an_interval_holds_what_other_processes_found():
    (ratio,) = COMPARISON["ratios"]
    eager, _ = measurements_in(COMPARISON | {"ratios": [ratio | {"processes": [4, 2.5, 4.5]}]})
    assert eager.ratios["selu/jit@jax"] == Ratio(4, 2.5, 5.0, 0.01)


@pytest.mark.parametrize(
    ("ratio", "different"),
    [
        (Ratio(1.2, 1.1, 1.3, 0.05), True),
        (Ratio(0.8, 0.7, 0.9, 0.05), True),
        (Ratio(1.2, 0.99, 1.3, 0.05), False),
        (Ratio(1.2, 1.1, 1.3, 0.21), False),
        (Ratio(0.8, 0.7, 0.9, 0.26), False),
        (Ratio(0.8, 0.7, 0.9, 0.24), True),
    ],
)
def test_a_difference_is_one_beyond_interval_and_floor(ratio, different):
    assert ratio.different is different


def of_samples(*samples):
    median = sorted(samples)[len(samples) // 2]
    (found,) = measurements_in(RECORD | {"samples": list(samples), "median": median})
    return found


def test_quartiles_are_taken_from_the_samples_of_every_version():
    found = of_samples(1.0, 2.0, 3.0, 4.0, 5.0)
    assert found.quartiles == (2.0, 4.0)
    assert found.spread == pytest.approx(2 / 3)
    assert of_samples(1.0).quartiles == (1.0, 1.0)


def test_one_outlier_makes_no_measurement_unstable():
    found = of_samples(*[1.0, 1.01, 1.02] * 5, 50.0)
    assert (found.outliers, found.stable, found.unstable) == (1, True, False)
    assert of_samples(1.0, 1.2, 0.8, 1.3, 0.7).unstable
    assert of_samples(1.0, 2.0, 3.0, 4.0, 5.0).outliers == 0


def test_the_variation_is_between_the_medians_of_processes():
    record = JIT | {"processes": [0.5, 0.55, 0.45]}
    assert measurements_in(record)[0].variation == pytest.approx(0.2)
    assert measurements_in(JIT)[0].variation is None


def test_unstable_where_the_medians_of_processes_lie_far_apart():
    for processes, far in (([0.5, 0.55, 0.46], False), ([0.5, 0.55, 0.44], True)):
        found = measurements_in(JIT | {"processes": processes})[0]
        assert (found.stable, found.unstable) == (True, far)
