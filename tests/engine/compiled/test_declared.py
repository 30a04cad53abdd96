"""What modules declare to be compiled."""

import pytest

from compiled import declared
from executed.source.snippets import SnippetError
from tests.engine.compiled.samples import SNIPPET, Sample


@pytest.fixture
def book(tmp_path):
    made = Sample(tmp_path)
    made.snippet()
    return made


def test_a_program_has_the_code_that_it_needs_and_its_arguments(book):
    program = book.find()
    assert program.name == "a.code.double"
    assert program.arguments == ["float32[4,8]"]
    assert program.code.startswith("FACTOR = 2.0\n\n\ndef double(x):")
    assert book.find("a.code.both").arguments == [{"left": "float32[4,8]"}, "float32[]"]
    assert book.find("code.double", "SCALED").file == "a.code.double.scale.json"


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("code.dubble", "COMPILED", r"no snippet 'code\.dubble'; the nearest.*code\.double"),
        ("code.undeclared", "COMPILED", "has no arguments for 'undeclared'"),
        ("code.both", "SCALED", "SCALED of .* has no arguments for 'both'"),
        ("code.FACTOR", "COMPILED", "'FACTOR' of .* is no function"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(book, name, kind, message):
    with pytest.raises((SnippetError, declared.ProgramError), match=message):
        book.find(name, kind)


@pytest.mark.parametrize(
    "declaration",
    [
        *("COMPILED = [1]", "COMPILED = {}", 'COMPILED = {"double": [len("a")]}', "NOTHING = 1"),
        *('COMPILED = {"double": 3}', 'COMPILED = {"double": {"x": []}}'),
        *('COMPILED = {"double": [{1, 2}]}', 'COMPILED = {"double": [double]}'),
        'COMPILED = {"double": [COMPILED]}',
    ],
)
def test_a_declaration_that_is_no_plain_data_is_refused(book, declaration):
    book.snippet(text=f"{declaration}\n\n\ndef double(x):\n    return 2 * x\n")
    with pytest.raises(declared.ProgramError, match=r"COMPILED"):
        book.find()


@pytest.mark.parametrize("declaration", ['SCALED = {"double": ["float32[]"]}', "SCALED = 1"])
def test_many_devices_need_cases(book, declaration):
    book.snippet(text=f"{declaration}\n\n\ndef double(x):\n    return 2 * x\n")
    with pytest.raises(declared.ProgramError, match=r"SCALED of .* must be a dict"):
        book.find("code.double", "SCALED")


def test_the_code_imports_what_it_uses_once(book):
    book.snippet(
        text="import math, os.path\nfrom operator import neg as minus\nimport sys\n\n"
        'COMPILED = {"double": ["float32[]"]}\n\n\n'
        "def double(x):\n    return minus(math.pi * os.path.sep * x)\n"
    )
    imports = book.find().code.split("\n\n\n")[0].splitlines()
    assert imports == ["import math", "import os.path", "from operator import neg as minus"]


def test_a_case_can_name_options_and_targets(book):
    case = '{"arguments": ["float32[8@data]"], "options": {"a": True}, "targets": ["cpu"]}'
    book.snippet(text=SNIPPET.replace('["float32[2*chips@data,8]"]', case))
    (found,) = book.find("code.double", "SCALED").cases.values()
    assert (found.arguments, found.options) == (["float32[8@data]"], {"a": True})
    assert found.numbers("cpu", (1, 4)) == [1, 4]
    assert found.numbers("gpu-h200", (8,)) == []


def test_a_case_can_name_numbers_of_devices(book):
    case = '{"arguments": ["float32[8@data]"], "chips": [16]}'
    book.snippet(text=SNIPPET.replace('["float32[2*chips@data,8]"]', case))
    (found,) = book.find("code.double", "SCALED").cases.values()
    assert found.numbers("cpu", (1, 4)) == found.numbers("gpu-h200", ()) == [16]
