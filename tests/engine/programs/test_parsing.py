"""Each way in which the text of a record is none, and how its faults are named."""

import pytest
from _ext import typed_json
from _ext.programs import parsing

from tests.engine.programs.samples import Sample, record_of, scale_record_of, text_of


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    book = Sample(tmp_path_factory.mktemp("book"))
    book.snippet()
    return book.find()


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    book = Sample(tmp_path_factory.mktemp("book"))
    book.snippet()
    return book.find("code.double", "SCALED")


def edited(**changes):
    return lambda record: record | changes


def cost(value):
    def change(record):
        record["targets"]["cpu"] |= {"cost": {**record["targets"]["cpu"]["cost"], "flops": value}}
        return record

    return change


def place(value):
    def change(record):
        record["picture"]["nodes"][0]["x"] = value
        return record

    return change


def edge(**changes):
    def change(record):
        record["picture"]["edges"][0] |= changes
        return record

    return change


NO_RECORD = {
    "no JSON": (lambda record: "{", "it is no JSON"),
    "empty": (lambda record: "", "it is no JSON"),
    "no object": (lambda record: "[]", "record: [] is not of type 'object'"),
    "deep": (lambda record: "[" * 100_000, "it is no JSON"),
    "a long number": (lambda record: "9" * 100_000, "it is no JSON"),
    "merge conflict": (
        lambda record: "<<<<<<< HEAD\n" + text_of(record),
        "line 1 is a mark of a merge conflict",
    ),
    "the end of a merge conflict": (
        lambda record: text_of(record) + ">>>>>>> branch\n",
        "is a mark of a merge conflict",
    ),
    "too many lines": (
        edited(jaxpr=["a"] * 1001),
        "record.jaxpr: ['a', 'a'",
    ),
    "no line": (edited(jaxpr=[]), "record.jaxpr: [] should be non-empty"),
    "a long line": (edited(jaxpr=["a" * 2001]), "record.jaxpr[0]: 'aaaa"),
    "another form": (edited(form=2), "record.form: 1 was expected"),
    "a missing part": (
        lambda record: {k: v for k, v in record.items() if k != "jaxpr"},
        "record: 'jaxpr' is a required property",
    ),
    "an unknown part": (
        edited(html="<b>"),
        "record: Additional properties are not allowed ('html' was unexpected)",
    ),
    "text for a number": (
        cost("32"),
        "record.targets.cpu.cost.flops: '32' is not of type 'number'",
    ),
    "true for a number": (
        cost(True),
        "record.targets.cpu.cost.flops: True is not of type 'number'",
    ),
    "a negative number": (
        cost(-1),
        "record.targets.cpu.cost.flops: -1 is less than the minimum of 0",
    ),
    "a number beyond all": (cost(10**400), "record.targets.cpu.cost.flops: 10000"),
    "markup for a place": (
        place('0"/><script>'),
        "picture.nodes[0].x: '0\"/><script>' is not of type 'number'",
    ),
    "a place far away": (
        place(1e9),
        "picture.nodes[0].x: 1000000000.0 is greater than",
    ),
    "a number for a text": (
        edited(jaxpr=[1]),
        "record.jaxpr[0]: 1 is not of type 'string'",
    ),
    "control characters": (edited(jaxpr=["\x1b[2J"]), "is not a 'printable line'"),
    "half a character": (edited(function="\ud800"), "is not a 'printable line'"),
    "a name of control characters": (
        edited(versions={"\x1b[2J": "1"}),
        "record.versions: '\\x1b[2J' is not a 'printable line'",
    ),
    "a hash with more behind": (edited(source="0" * 64 + "\n"), "record.source: '000"),
    "no date": (edited(date="yesterday"), "record.date: "),
    "a number for a date": (edited(date=2026), "record.date: "),
    "an edge to nowhere": (edge(to=7), "an edge of the picture leads nowhere"),
    "an edge to half a node": (edge(to=1.0), "edges[0].to: 1.0 is not of type 'integer'"),
    "a point of one number": (edge(through=[[1.0]]), "through[0]: [1.0] is too short"),
    "a device without StableHLO": (
        edited(stablehlo=[{"targets": ["cpu"], "text": ["module"]}]),
        "it does not have StableHLO for each device",
    ),
}


@pytest.mark.parametrize("kind", NO_RECORD)
def test_what_is_no_record_is_named(program, kind):
    change, message = NO_RECORD[kind]
    changed = change(record_of(program))
    text = changed if isinstance(changed, str) else text_of(changed)
    with pytest.raises(parsing.RecordError) as error:
        parsing.parse(text, scaled=False)
    assert message in str(error.value)
    assert len(str(error.value)) <= parsing.LONGEST_MESSAGE
    assert str(error.value).isprintable()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_none(program, number):
    text = text_of(record_of(program)).replace('"flops": 32', f'"flops": {number}')
    with pytest.raises(parsing.RecordError):
        parsing.parse(text, scaled=False)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("chips", 0, "runs[0].chips: 0 is less than the minimum of 1"),
        ("batch", -1, "runs[0].batch: -1 is less than the minimum of 0"),
        (
            "collectives",
            [{"kind": "all-reduce"}],
            "collectives[0]: 'count' is a required property",
        ),
        ("memory", None, "runs[0].memory: None is not of type 'object'"),
    ],
)
def test_the_record_of_many_devices_has_its_bounds(scaled, field, value, message):
    record = scale_record_of(scaled)
    record["runs"][0][field] = value
    with pytest.raises(parsing.RecordError) as error:
        parsing.parse(text_of(record), scaled=True)
    assert message in str(error.value)


def test_the_first_of_very_many_faults_is_enough(program, monkeypatch):
    looked_at = []

    def printable(value):
        looked_at.append(value)
        return str.isprintable(value)

    record = record_of(program) | {"operations": {f"\x00{n}": -1 for n in range(999)}}
    monkeypatch.setitem(typed_json.FORMATS.checkers, "printable line", (printable, ()))
    with pytest.raises(parsing.RecordError):
        parsing.parse(text_of(record), scaled=False)
    assert len([value for value in looked_at if "\x00" in value]) == 1


def test_a_record_is_read_as_it_was_written(program, scaled):
    record = parsing.parse(text_of(record_of(program)), scaled=False)
    assert record.picture.edges[0].to == 1
    assert record.targets["tpu-v5e"].cost.estimate == 1.5e-6
    assert record.targets["gpu-h200"].cost is None
    assert parsing.written(record) == text_of(record_of(program))
    steps = parsing.parse(text_of(scale_record_of(scaled)), scaled=True)
    assert (steps.runs[2].chips, steps.runs[2].moved, steps.runs[2].sent) == (4, 404, 606)
    assert steps.runs[2].memory.total == 256
    assert parsing.written(steps) == text_of(scale_record_of(scaled))
    assert max(map(len, parsing.written(record).splitlines())) < 200
