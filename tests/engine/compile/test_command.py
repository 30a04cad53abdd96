"""The command that compiles what modules declare."""

import dataclasses
import os
import sys

import pytest

from _compile import __main__ as command
from _compile import compiling
from compiled import program_files
from executed import files
from tests.engine.compiled.samples import CONF, SNIPPET, Sample, record_of, text_of


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book whose programs are recorded, as the folder to work in."""
    made = Sample(tmp_path)
    made.module = made.snippet()
    made.program = made.find()
    made.record = made.write(made.program)
    made.write(made.find("code.both"))
    made.write(made.find(kind="SCALED"))
    (tmp_path / "conf.py").write_text("extensions = ['compiled']\n" + CONF + "\n", "utf8")
    monkeypatch.chdir(tmp_path)
    return made


def test_without_targets_and_modules_there_is_nothing_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main([]) == 0
    assert capsys.readouterr() == ("", "")


def test_all_that_modules_declare_is_compiled_be_it_shown_or_not(book, capsys):
    book.snippet("a.b.deeper")
    book.snippet("a.nothing", "COMPILED = 1\n")
    programs, problems = command.find_all(book.library)
    names = [".".join(file.split(".")[:-1]) for file in programs]
    assert names == [
        *("a.b.deeper.double", "a.b.deeper.both", "a.b.deeper.double.scale"),
        *("a.code.double", "a.code.both", "a.code.double.scale"),
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SNIPPET.replace('"both": [', '"bath": ['), "there is no snippet 'a.code.bath'; the near"),
        ('COMPILED = {"double": 1}\n', "COMPILED of snippets/a/code.py must be a dict"),
        ("COMPILED = \n", "snippets/a/code.py:1: invalid syntax"),
    ],
)
def test_a_module_that_declares_what_cannot_be_is_a_problem(book, capsys, text, problem):
    book.snippet("b.right")
    book.write(book.find("b.right.double"))
    book.snippet(text=text)
    assert command.main(["right.double"]) == 1
    shown = capsys.readouterr()
    assert problem in shown.err
    assert "b.right.double: current" in shown.out


def test_a_name_that_no_module_declares_is_refused_with_the_nearest(book):
    found = {"f": book.program}
    with pytest.raises(SystemExit, match=r"function 'dubble'.*a\.code\.double"):
        command.chosen(found, ["dubble"])
    with pytest.raises(SystemExit, match=r"function 'ouble'"):
        command.chosen(found, ["ouble"])
    assert command.chosen(found, ["code.double"]) == [book.program]
    assert command.chosen(found, ["double", "a.code.double"]) == [book.program]
    assert command.chosen(found, []) == [book.program]


@pytest.fixture
def compiled(book, monkeypatch):
    """Let the recorder give the records of samples; return the programs that it compiled."""
    found = []

    def record(program, targets, command):
        found.append(program.name)
        record = program_files.parse(text_of(record_of(program)), scaled=False)
        return dataclasses.replace(record, date="2027-01-01T00:00:00+00:00")

    monkeypatch.setattr(compiling, "record", record)
    return found


def test_only_what_is_not_current_is_compiled(book, compiled, capsys):
    assert command.main([]) == 0
    assert compiled == []
    assert command.main(["--again", "both"]) == 0
    assert "a.code.both: unchanged" in capsys.readouterr().out
    book.record.unlink()
    assert command.main([]) == 0
    assert "a.code.double: written" in capsys.readouterr().out
    assert compiled == ["a.code.both", "a.code.double"]


def test_a_function_that_does_not_compile_stops_no_other(book, monkeypatch, capsys):
    def record(program, targets, command):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(compiling, "record", record)
    assert command.main(["--again"]) == 1
    shown = capsys.readouterr().err
    assert "a.code.double: RuntimeError: no compiler" in shown
    assert "a.code.both: RuntimeError: no compiler" in shown


# What is kept


def made(program, **changes):
    return program_files.parse(text_of(record_of(program) | changes), scaled=False)


def state(book):
    return str(program_files.state(book.folder, book.program, book.targets)[1])


def test_recording_the_same_again_keeps_the_file_and_its_date(book):
    before = book.record.read_bytes(), book.record.stat().st_mtime_ns
    assert not command.keep(book.record, made(book.program, date="2027-01-01T00:00:00+00:00"))
    assert (book.record.read_bytes(), book.record.stat().st_mtime_ns) == before
    later = made(book.program, date="2027-01-01T00:00:00+00:00", versions={"jax": "2.0"})
    assert command.keep(book.record, later)
    assert "2027-01-01" in book.record.read_text("utf8")


def test_a_damaged_record_is_replaced(book):
    book.record.write_text("{")
    assert command.keep(book.record, made(book.program))
    assert state(book) == "current"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jaxpr": ["a" * 1999] * 300}, "larger than 400000 bytes"),
        ({"jaxpr": [f"in {sys.prefix}/a.py"]}, "would hold"),
    ],
)
def test_a_record_that_is_too_large_or_tells_of_the_machine_is_not_written(book, changes, message):
    before = book.record.read_bytes(), os.listdir(book.folder)
    with pytest.raises(files.Unusable, match=message):
        command.keep(book.record, made(book.program, **changes))
    assert (book.record.read_bytes(), os.listdir(book.folder)) == before


def test_a_failed_write_leaves_the_old_record_and_nothing_else(book, monkeypatch):
    before = book.record.read_bytes(), os.listdir(book.folder)

    def full(self, target):
        raise OSError("no space")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="no space"):
        command.keep(book.record, made(book.program, versions={"jax": "2.0"}))
    assert (book.record.read_bytes(), os.listdir(book.folder)) == before
