"""Each way in which the text of a record is none, and how its faults are named."""

import pytest
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
    "no object": (lambda record: "[]", "record is [], and must be a dictionary"),
    "merge conflict": (
        lambda record: "<<<<<<< HEAD\n" + text_of(record),
        "line 1 is a mark of a merge conflict",
    ),
    "the end of a merge conflict": (
        lambda record: text_of(record) + ">>>>>>> branch\n",
        "is a mark of a merge conflict",
    ),
    "another form": (edited(form=2), "record['form'] is 2, and must be 1"),
    "a missing part": (
        lambda record: {k: v for k, v in record.items() if k != "jaxpr"},
        "record lacks jaxpr; it needs form, function",
    ),
    "an unknown part": (edited(jaxprs=[]), "record has no key 'jaxprs'; the nearest are jaxpr"),
    "text for a number": (
        cost("32"),
        "record['targets']['cpu']['cost']['flops'] is '32', and must be a number",
    ),
    "true for a number": (cost(True), "['flops'] is True, and must be a number"),
    "a negative number": (cost(-1), "['flops'] is -1, and must be 0 or more"),
    "markup for a place": (place('0"/><script>'), "['nodes'][0]['x'] is '0\"/><script>', and"),
    "a number for a text": (edited(jaxpr=[1]), "record['jaxpr'][0] is 1, and must be a text"),
    "a number for a date": (edited(date=2026), "record['date'] is 2026, and must be a text"),
    "an edge to nowhere": (edge(to=7), "an edge of the picture leads nowhere"),
    "an edge to half a node": (edge(to=1.0), "['to'] is 1.0, and must be a whole number"),
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


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_what_is_no_number_is_none(program, number):
    text = text_of(record_of(program)).replace('"flops": 32', f'"flops": {number}')
    with pytest.raises(parsing.RecordError):
        parsing.parse(text, scaled=False)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("chips", 0, "['runs'][0]['chips'] is 0, and must be 1 or more"),
        ("batch", -1, "['batch'] is -1, and must be 0 or more"),
        ("collectives", [{"kind": "all-reduce"}], "['collectives'][0] lacks count, bytes"),
        ("memory", None, "['memory'] is None, and must be a dictionary"),
    ],
)
def test_the_record_of_many_devices_has_its_bounds(scaled, field, value, message):
    record = scale_record_of(scaled)
    record["runs"][0][field] = value
    with pytest.raises(parsing.RecordError) as error:
        parsing.parse(text_of(record), scaled=True)
    assert message in str(error.value)


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
