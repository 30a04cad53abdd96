"""The files of records, and whether they belong to their functions."""

import pathlib
import re

import pytest

from _compile.__main__ import written
from compiled import program_files as store
from compiled.options import compile_targets, programs_folder
from executed.options import Options
from tests.engine.compiled.samples import (
    Sample,
    record_of,
    scale_record_of,
    text_of,
    without_a_device,
)

REPOSITORY = pathlib.Path(__file__).parents[3]


@pytest.fixture
def book(tmp_path):
    made = Sample(tmp_path)
    made.module = made.snippet()
    made.program = made.find()
    made.record = made.write(made.program)
    return made


def state(book, program=None):
    return str(store.state(book.folder, program or book.find(), book.targets)[1])


def replaced(path, before, after):
    text = path.read_text("utf8")
    assert before in text
    path.write_text(text.replace(before, after), "utf8")


def test_a_record_of_the_same_source_and_arguments_is_current(book):
    record, found = store.state(book.folder, book.program, book.targets)
    assert str(found) == "current"
    assert record.function == "a.code.double"
    replaced(book.module, "def undeclared(x):\n    return x", "def undeclared(x):\n    return -x")
    assert state(book) == "current"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("FACTOR * x", "x * FACTOR", "earlier code: the source changed"),
        ("FACTOR = 2.0", "FACTOR = 3.0", "earlier code: the source changed"),
        ("float32[4,8]", "float32[8,8]", "earlier code: the arguments changed"),
    ],
)
def test_a_record_of_other_code_or_arguments_is_stale(book, before, after, message):
    replaced(book.module, before, after)
    assert state(book) == message


def test_a_record_can_lack_a_device(book):
    book.write(book.program, without_a_device(record_of(book.program)))
    assert state(book) == "missing: not compiled for TPU v6e"
    book.record.unlink()
    assert state(book) == "missing"


def test_a_record_can_lack_a_case_or_a_number_of_devices(book):
    program = book.find("code.double", "SCALED")
    record = scale_record_of(program)
    book.write(program, record)
    assert state(book, program) == "current"
    for run in [run for run in record["runs"] if run["chips"] == 64]:
        record["runs"].remove(run)
    book.write(program, record)
    assert state(book, program) == "missing: not compiled for TPU v5e"
    book.write(program, scale_record_of(program) | {"runs": []})
    assert state(book, program) == "missing: not compiled for NVIDIA H200, TPU v5e"


def test_a_record_of_an_unknown_device_is_unreadable(book):
    record = record_of(book.program)
    of_one = {"targets": {"<b>": record["targets"]["cpu"]}}
    of_one["stablehlo"] = [{"targets": ["<b>"], "text": ["module"]}]
    book.write(book.program, record | of_one)
    assert state(book) == "unreadable: it is of the unknown device '<b>'"
    program = book.find("code.double", "SCALED")
    record = scale_record_of(program)
    record["runs"][0]["target"] = "tpu-v9"
    book.write(program, record)
    assert state(book, program) == "unreadable: it is of the unknown device 'tpu-v9'"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_text("{"), "it is no JSON"),
        (lambda path: path.write_text("[]"), "its content is [], and must be a dictionary"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "UTF-8"),
        (
            lambda path: replaced(path, '"form": 3', '"form": 2'),
            "its content['form'] is 2, and must be 3",
        ),
        (
            lambda path: replaced(path, '"flops": 32', '"flops": "32"'),
            "['flops'] is '32', and must be a number",
        ),
        (
            lambda path: replaced(path, '"command"', '"commands"'),
            "its content has no key 'commands'; the nearest are command",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_unreadable(book, damage, message):
    damage(book.record)
    assert store.state(book.folder, book.program, book.targets)[0] is None
    assert state(book).startswith("unreadable: ")
    assert message in state(book)


def test_a_record_is_read_as_it_was_written(book):
    scaled = book.find("code.double", "SCALED")
    record = store.parse(text_of(record_of(book.program)), scaled=False)
    assert record.picture.edges[0].to == 1
    assert record.targets["tpu-v5e"].traffic == 256
    assert record.targets["gpu-h200"].cost is None
    assert written(record) == text_of(record_of(book.program))
    steps = store.parse(text_of(scale_record_of(scaled)), scaled=True)
    assert (steps.runs[2].chips, steps.runs[2].moved, steps.runs[2].sent) == (4, 404, 606)
    assert steps.runs[2].memory.total == 256
    assert written(steps) == text_of(scale_record_of(scaled))
    assert max(map(len, written(record).splitlines())) < 200


# The committed records


OPTIONS = Options.from_file(REPOSITORY / "conf.py")
COMMITTED = sorted(programs_folder(OPTIONS).glob("*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_record_tells_of_no_machine(path):
    text = path.read_text("utf8")
    assert not re.search(
        r"/(?:home|root|tmp|Users|usr|work)/|\.py\b|source_file|0x[0-9a-f]{9}", text
    )
    assert written(store.read(path)) == text


def test_the_targets_of_the_book_are_described_in_full():
    for target in compile_targets(OPTIONS).values():
        assert target.label
        figures = target.figures and pathlib.Path(target.figures).read_text("utf8")
        assert not figures or "gpu_device_info" in figures
