"""What counts as a measurement is said in one file, beside the timer that writes the records."""

import math
import pathlib

import pytest

from executed.options import Options
from measured.feature import Measured
from measured.ranges import Range
from measured.schema import Measurement, Schema, single
from tests.engine.records import measured

ROOT = pathlib.Path(__file__).parents[3]
PATH = ROOT / "snippets" / "programs" / "measurement.schema.json"
RECORD = measured(
    "selu/jit",
    [0.5, 0.25, 1.0],
    "jax",
    shape=[[2, 3], []],
    error=1e-7,
    versions={"jax": "0.10.2", "python": "3.11.2"},
    settings={"allocator": "glibc 2.36"},
)
(PROCESS,) = RECORD["processes"]
EAGER = RECORD | {"name": "selu/eager", "processes": [PROCESS | {"latency": [1.5, 0.5, 2.0]}]}
COMPARISON = {"version": 3, "method": 2, "name": "selu", "alternatives": [EAGER, RECORD]}


def process(**change):
    return {"processes": [PROCESS | change]}


@pytest.fixture(scope="module")
def schema():
    return Schema.load(PATH)


def test_the_schema_of_the_book_names_type_and_method(schema):
    assert schema.media_type == "application/vnd.jax-measured.record+json"
    assert schema.method == 2


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"shape": []},
        {"work": 2e9, "error": 0},
        {"framework": "python", "versions": {}, "settings": {}, "dtype": ""},
        {"name": "a$\\frac$"},
        {"device_kind": "Größe µ"},
        {"device_kind": None},
        {"processes": [PROCESS, PROCESS | {"latency": [0.5], "calls": 1000}]},
        process(date="2026-01-02T03:04:05Z"),
        process(date="2026-01-02T03:04:05.678-08:00"),
        process(first_call=None, cores=None, disturbed=True),
        process(throughput=[0.1, 0.1, 0.1]),
    ],
)
def test_what_a_timer_may_write_is_a_measurement(schema, change):
    assert schema.problem(RECORD | change) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": "3"},
        {"method": 0},
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
        {"shape": [["4"]]},
        {"shape": [[4.5]]},
        {"shape": [4]},
        {"shape": [[10**400]]},
        {"shape": [[-4]]},
        {"versions": {"jax": 1}},
        {"versions": {"j\nax": "1"}},
        {"versions": ["jax"]},
        {"settings": {"XLA_FLAGS": None}},
        {"work": -1},
        {"error": math.inf},
        {"what else": 1},
        {"page": "a/b"},
        {"median": 0.5},
        {"processes": []},
        {"processes": [{}]},
        {"processes": PROCESS},
        {"processes": [PROCESS] * 1001},
        process(latency=["1"]),
        process(latency=[True, 1.0]),
        process(latency=[]),
        process(latency=None),
        process(latency=[0]),
        process(latency=[1e-300]),
        process(latency=[1e300]),
        process(latency=[math.nan]),
        process(latency=[0.5, -math.inf]),
        process(latency=[10**400]),
        process(latency=[0.5] * 1001),
        process(latency="<b>1</b>"),
        process(throughput=[]),
        process(throughput=None),
        process(calls=False),
        process(calls=0),
        process(first_call=-1),
        process(cores=math.nan),
        process(disturbed="no"),
        process(disturbed=1),
        process(date="yesterday"),
        process(date="2026-13-02T03:04:05+00:00"),
        process(date="2026-01-02"),
        process(date="2026-01-02T03:04:05"),
        process(date=""),
        process(date="0001-01-02T03:04:05+00:00"),
        process(date=20260102),
        process(median=0.5),
    ],
)
def test_what_no_timer_writes_is_no_measurement(schema, change):
    assert schema.problem(RECORD | change)


@pytest.mark.parametrize("field", RECORD)
def test_a_record_must_be_whole(schema, field):
    assert field in schema.problem({key: of for key, of in RECORD.items() if key != field})


@pytest.mark.parametrize("field", PROCESS)
def test_a_process_must_be_whole(schema, field):
    lacking = {key: of for key, of in PROCESS.items() if key != field}
    assert field in schema.problem(RECORD | {"processes": [PROCESS, lacking]})


@pytest.mark.parametrize("value", [None, [], "text", 5, [RECORD], {1: 2}, {"x": {1, 2}}])
def test_a_record_must_be_an_object(schema, value):
    assert schema.problem(value)


@pytest.mark.parametrize("date", ["yesterday", "2026-13-02T03:04:05+00:00", "2026-W01-1T00+00:00"])
def test_a_problem_of_a_date_names_it(schema, date):
    words = "the record.processes[0].date must be date-time"
    assert schema.problem(RECORD | process(date=date)) == words


def test_a_problem_names_the_place_and_is_short(schema):
    assert schema.problem(RECORD | {"version": 2}).startswith("the record.version must be")
    problem = schema.problem(RECORD | process(latency=[1.0, "x"]))
    assert problem.startswith("the record.processes[0].latency[1] must be number")
    assert len(schema.problem(RECORD | {"dtype": "x" * 100_000})) < 300
    assert len(schema.problem(RECORD | {"version": "x" * 100_000})) < 300


def test_conf_py_names_the_schema():
    assert Measured(Options()).kind is None
    values = {"book_measurements": "snippets/programs/measurement.schema.json"}
    named = Options.from_values(values | {"extensions": ["measured"]}, ROOT)
    assert Measured(named).kind.schema.method == 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"version": 2}, "version"),
        ({"alternatives": []}, "alternatives"),
        ({"alternatives": [{"name": "x"}]}, "alternatives"),
        ({"name": "a b"}, "name"),
        ({"more": 1}, "more"),
    ],
)
def test_a_comparison_is_one_record_of_alternatives_that_took_turns(schema, change, problem):
    found = schema.problem(COMPARISON | change)
    assert found is None if problem is None else problem in found


def measurements_in(record):
    return [
        Measurement.from_plain(each | {"page": "a/b", "device": "cpu"}) for each in single(record)
    ]


def test_a_measurement_knows_its_place_and_origin():
    (found,) = measurements_in(RECORD)
    assert (found.page, found.device, found.reference) == ("a/b", "cpu", "selu/jit@jax")
    assert (found.comparison, found.shape, found.size) == ("", ((2, 3), ()), 2)
    assert found.origin == "selu/jit: jax 0.10.2 on A processor, 2026-01-02"


def test_an_accelerator_is_named_before_the_processor_beside_it():
    (found,) = measurements_in(RECORD | {"device_kind": "NVIDIA H200"})
    assert found.origin == "selu/jit: jax 0.10.2 on NVIDIA H200, A processor, 2026-01-02"


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
    assert f"selu/jit: {text} A processor" in found.origin


@pytest.mark.parametrize(
    ("shape", "size"), [([], None), ([[]], None), ([[0, 3]], None), ([[7], [2]], 7)]
)
def test_the_size_is_the_first_length_that_can_be_drawn(shape, size):
    assert measurements_in(RECORD | {"shape": shape})[0].size == size


def of_processes(*latencies, **more):
    """Return a measurement with a process for each list of times."""
    processes = [PROCESS | {"latency": latency} | more for latency in latencies]
    return measurements_in(RECORD | {"processes": processes})[0]


def test_a_number_is_the_median_of_the_medians_of_its_processes():
    found = of_processes([1.0, 1.0, 9.0, 9.0, 9.0], [2.0], [3.0, 2.5, 3.5])
    assert found.range("latency") == Range(3.0, 2.0, 9.0, 3)
    assert (found.latency, found.first_call, found.throughput) == (3.0, 1.5, None)
    assert found.range("throughput") is None


def test_a_rate_is_that_of_many_calls_where_they_were_measured():
    work = {"work": 6.0}
    (alone,) = measurements_in(RECORD | work)
    assert alone.rate == pytest.approx(12.0)
    (many,) = measurements_in(RECORD | work | process(throughput=[0.25, 0.2, 0.3]))
    assert many.rate == pytest.approx(24.0)
    assert measurements_in(RECORD)[0].rate is None


def test_the_date_is_that_of_the_last_process():
    later = PROCESS | {"date": "2026-03-01T00:00:00+00:00"}
    (found,) = measurements_in(RECORD | {"processes": [PROCESS, later, PROCESS]})
    assert found.date == "2026-03-01"


def test_alternatives_of_one_comparison_have_the_ratio_of_their_rounds():
    eager, jit = measurements_in(COMPARISON)
    assert (eager.comparison, jit.comparison) == ("selu", "selu")
    # The medians, 1.5 s and 0.5 s, would make 3; the rounds have 3, 2 and 2.
    assert eager.ratio(jit) == Range(2.0, 2.0, 2.0, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"page": "b/c"},
        {"device": "gpu-h200"},
        {"comparison": "other"},
        {"comparison": ""},
        {"processes": [PROCESS, PROCESS]},
    ],
)
def test_what_was_not_measured_together_has_no_ratio(other):
    eager, _ = measurements_in(COMPARISON)
    jit = RECORD | {"page": "a/b", "device": "cpu", "comparison": "selu"} | other
    assert eager.ratio(Measurement.from_plain(jit)) is None


def test_a_first_call_took_no_turn():
    (one,), (two,) = measurements_in(RECORD), measurements_in(EAGER | process(first_call=0.5))
    assert one.ratio(two, ("first_call", "first_call")) == Range(3.0, 3.0, 3.0, 1)
    assert one.ratio(two, ("first_call", "latency")) is None
    assert one.ratio(one, ("first_call", "latency")) == Range(3.0, 3.0, 3.0, 1)
    (unknown,) = measurements_in(RECORD | process(first_call=None))
    assert unknown.ratio(two, ("first_call", "first_call")) is None
