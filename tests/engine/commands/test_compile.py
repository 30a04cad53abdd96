"""The command that compiles what pages name, and lists how the records stand."""

import dataclasses
import pathlib
import subprocess
import sys

import pytest
from _ext.commands import compile as command
from _ext.programs import compiling
from _ext.programs.store import parse

from tests.engine.programs.samples import (
    CONF,
    LABELS,
    Sample,
    record_of,
    text_of,
    without_a_device,
)

ENGINE = pathlib.Path(command.__file__).parents[2]


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


def test_the_list_needs_no_framework_and_says_what_is_current(book):
    blocked = "('jax', 'jaxlib', 'torch', 'tensorflow', 'numpy', 'sphinx', 'igraph', 'libtpu')"
    code = f"import sys, runpy; sys.modules.update(dict.fromkeys({blocked}))\n"
    code += "sys.path.insert(0, sys.argv.pop()); sys.argv.append('--list')\n"
    code += "runpy.run_module('_ext.commands.compile', None, '__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(ENGINE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "a.code.double: current",
        *(f"  {target:<10} current" for target in LABELS),
    ]


def test_the_list_names_what_is_stale_missing_unreadable_or_left_over(book, capsys):
    book.page("a/other", "```{compiled} code.both\n```\n```{compiled-scale} code.double\n```\n")
    book.page("a/wrong", "\n```{compiled} code.bath\n```\n")
    book.write(book.program, without_a_device(record_of(book.program)))
    (book.record.parent / "a.code.both.json").write_text("{", "utf8")
    (book.record.parent / "a.code.gone.json").write_text("{}", "utf8")
    assert command.main(["--list"]) == 1
    shown = capsys.readouterr()
    assert "a.code.double: missing: not compiled for TPU v6e" in shown.out
    assert "  cpu        current" in shown.out
    assert "  tpu-v6e    missing" in shown.out
    assert "a.code.both: unreadable: it is no JSON" in shown.out
    assert "  cpu        unreadable" in shown.out
    assert "a.code.double at scale: missing" in shown.out
    assert "  gpu-h200   missing" in shown.out
    assert "a.code.gone.json: no page asks for it; remove it" in shown.err
    assert "wrong.md:2: there is no snippet 'code.bath'; the nearest" in shown.err
    book.module.write_text(book.module.read_text("utf8").replace("= 2.0", "= 3.0"), "utf8")
    assert command.main(["--list"]) == 1
    assert "a.code.double: earlier code: the source changed" in capsys.readouterr().out


def test_without_targets_and_pages_there_is_nothing_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["--list"]) == command.main([]) == 0
    assert capsys.readouterr() == ("", "")


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
