"""The command that compiles what pages name."""

import dataclasses

import pytest

from compiled import command as command
from compiled import compiling
from compiled.program_files import parse
from tests.engine.compiled.samples import CONF, Sample, record_of, text_of


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book whose one program is recorded, as the folder to work in."""
    made = Sample(tmp_path)
    made.module = made.snippet()
    made.page("a/page", "```{compiled} code.double\n```\n")
    made.program = made.find()
    made.record = made.write(made.program)
    (tmp_path / "conf.py").write_text("extensions = []\n" + CONF + "\n", "utf8")
    monkeypatch.chdir(tmp_path)
    return made


def test_without_targets_and_pages_there_is_nothing_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main([]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_function_that_there_is_not_is_a_problem_at_its_line(book, capsys):
    book.page("a/wrong", "\n```{compiled} code.bath\n```\n")
    assert command.main([]) == 1
    assert "wrong.md:2: there is no snippet 'code.bath'; the nearest" in capsys.readouterr().err


def test_a_name_that_no_page_asks_for_is_refused_with_the_nearest(book):
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
        record = parse(text_of(record_of(program)), scaled=False)
        return dataclasses.replace(record, date="2027-01-01T00:00:00+00:00")

    monkeypatch.setattr(compiling, "record", record)
    return found


def test_only_what_is_not_current_is_compiled(book, compiled, capsys):
    assert command.main([]) == 0
    assert compiled == []
    assert command.main(["--again"]) == 0
    assert "a.code.double: unchanged" in capsys.readouterr().out
    book.record.unlink()
    assert command.main(["code.double"]) == 0
    assert "a.code.double: written" in capsys.readouterr().out
    assert compiled == ["a.code.double"] * 2


def test_a_function_that_does_not_compile_stops_no_other(book, monkeypatch, capsys):
    book.page("a/other", "```{compiled} code.both\n```\n")

    def record(program, targets, command):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(compiling, "record", record)
    assert command.main(["--again"]) == 1
    shown = capsys.readouterr().err
    assert "a.code.double: RuntimeError: no compiler" in shown
    assert "a.code.both: RuntimeError: no compiler" in shown
