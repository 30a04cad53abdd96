"""Snippet modules are read, not imported, and cut into what a cell needs."""

import pytest

from executed.source.snippets import Library, SnippetError


@pytest.fixture
def library(project):
    return Library(project.root / "snippets")


def excerpt(library, *names, page_lines=""):
    return library.excerpt([library.find(name, "a") for name in names], page_lines=page_lines)


def imported(found):
    return [line for each in found.imports for line in each.lines.splitlines()]


def names(found):
    return [definition.name for definition in found.definitions]


def test_an_excerpt_holds_the_source_and_only_the_imports_it_needs(project, library):
    project.snippet(
        "a.one",
        '''
        import math
        import os
        from functools import partial, reduce as fold


        @partial(lambda function: function)
        def area(radius):
            """Return the area."""
            return math.pi * radius**2


        def unused():
            return os.sep, fold
        ''',
    )
    found = excerpt(library, "one.area")
    assert imported(found) == ["import math", "from functools import partial"]
    (area,) = found.definitions
    assert area.source.startswith("@partial(lambda function: function)\ndef area(radius):\n")
    assert area.source.endswith("    return math.pi * radius**2")


def test_lines_of_the_page_bring_the_imports_and_helpers_that_they_read(project, library):
    project.snippet("a.one", "import math\nLIMIT = 3\ndef area(r): return r\n")
    found = excerpt(library, "one.area", page_lines="area(math.pi) + LIMIT")
    assert imported(found) == ["import math"]
    assert names(found) == ["area", "LIMIT"]


def test_what_lines_of_the_page_bind_themselves_is_not_brought(project, library):
    """Whatever Python says of the names in a comprehension; 3.12 says something else than 3.11."""
    project.snippet("a.one", "import math\nLIMIT = 3\ndef area(r): return r\n")
    lines = "import math\nLIMIT = 4\n[area(math.pi) + LIMIT for r in [1]]"
    found = excerpt(library, "one.area", page_lines=lines)
    assert imported(found) == []
    assert names(found) == ["area"]


def test_helpers_come_before_what_uses_them_through_several_modules(project, library):
    project.snippet("a.low", "import math\nSCALE = 2\ndef low(x): return math.floor(SCALE * x)\n")
    project.snippet("b.middle", "from snippets.a.low import low\ndef middle(x): return low(x)\n")
    project.snippet(
        "a.high", "from snippets.b.middle import middle\ndef high(x): return middle(x)\n"
    )
    found = excerpt(library, "high.high")
    assert names(found) == ["SCALE", "low", "middle", "high"]
    assert imported(found) == ["import math"]


def test_functions_and_modules_that_use_each_other_come_once(project, library):
    one = "from snippets.a.two import g\ndef f(): return h, g\ndef h(): return f\n"
    project.snippet("a.one", one)
    project.snippet("a.two", "from snippets.a.one import f\ndef g(): return f\n")
    assert sorted(names(excerpt(library, "two.g"))) == ["f", "g", "h"]


def test_a_helper_named_like_a_builtin_is_not_taken_for_the_builtin(project, library):
    project.snippet("a.one", "def sum(x): return 'mine'\ndef total(x): return sum(x)\n")
    assert names(excerpt(library, "one.total")) == ["sum", "total"]


def test_a_local_name_is_not_taken_for_a_helper(project, library):
    project.snippet(
        "a.one",
        "import math\ndef loss(x): return x\n"
        "def step(x):\n    loss = x + 1\n    return [loss for math in (loss,)]\n",
    )
    found = excerpt(library, "one.step")
    assert (names(found), imported(found)) == (["step"], [])


def test_a_global_that_is_only_written_comes_along(project, library):
    project.snippet(
        "a.one",
        "STATE = 0\nCOUNT = 0\n"
        "def f():\n    global STATE\n    STATE = 1\n"
        "def g():\n    global COUNT\n    COUNT += 1\n",
    )
    assert names(excerpt(library, "one.f")) == ["STATE", "f"]
    assert names(excerpt(library, "one.g")) == ["COUNT", "g"]


def test_two_submodules_of_one_package_are_both_imported(project, library):
    project.snippet(
        "a.one",
        """
        import xml.dom
        import xml.sax
        def both(): return xml.dom, xml.sax
        """,
    )
    assert imported(excerpt(library, "one.both")) == ["import xml.dom", "import xml.sax"]


def test_a_name_is_looked_up_in_the_chapter_of_the_page_first(project, library):
    project.snippet("a.one", "def f(): return 'chapter'\n")
    project.snippet("one", "def f(): return 'top'\ndef g(): return 'top'\n")
    assert library.find("one.f", "a").module == "a.one"
    assert library.find("a.one.f", "b").module == "a.one"
    assert library.find("one.g", "a").module == "one"


def test_an_unknown_name_is_refused_with_the_nearest_names(project, library):
    project.snippet("a.one", "def draw_twice(): ...\ndef draw_once(): ...\n")
    with pytest.raises(SnippetError, match=r"no snippet 'one.draw_twise'.*one.draw_twice"):
        library.find("one.draw_twise", "a")
    with pytest.raises(SnippetError, match="no snippet 'draw_twice'"):
        library.find("draw_twice", "a")


def test_a_constant_may_have_a_type(project, library):
    project.snippet(
        "a.one",
        "scale: int = 5\nEXPECTED_ERRORS: dict = {'f': (ValueError, 'f')}\ndef f(): return scale\n",
    )
    scale, function = excerpt(library, "one.f").definitions
    assert scale.source == "scale: int = 5"
    assert library.expected_error(function).type == "ValueError"


def test_a_name_that_the_other_module_lacks_is_refused(project, library):
    project.snippet("a.two", "def f(): ...\n")
    project.snippet("a.one", "from snippets.a.two import g\ndef h(): return g()\n")
    with pytest.raises(SnippetError, match=r"one\.py: there is no 'g' in snippets\.a\.two"):
        excerpt(library, "one.h")


@pytest.mark.parametrize("end", "\v\f\x1c\x1d\x1e\x85\u2028\u2029")
def test_only_what_ends_a_line_for_python_does(project, library, end):
    project.snippet("a.one", f"A = 'a{end}b'\n\f\ndef f(): return A\n")
    assert [d.source for d in excerpt(library, "one.f").definitions] == [
        f"A = 'a{end}b'",
        "def f(): return A",
    ]


def test_a_syntax_error_is_reported_with_file_and_line(project, library):
    path = project.snippet("a.one", "def fine(): ...\ndef broken(:\n    return 1\n")
    with pytest.raises(SnippetError) as refused:
        library.find("one.fine", "a")
    assert str(refused.value).startswith(f"{path}:2: ")


@pytest.mark.parametrize("value", ["[1]", "{'f': ValueError}", "{'f': (ValueError, g())}"])
def test_expected_errors_of_another_form_are_refused(project, library, value):
    path = project.snippet("a.one", f"EXPECTED_ERRORS = {value}\ndef f(): ...\n")
    with pytest.raises(SnippetError) as refused:
        library.find("one.f", "a")
    assert str(refused.value).startswith(f"{path}:1: EXPECTED_ERRORS must be a dict")


def test_an_expected_error_is_read_as_it_is_written(project, library):
    project.snippet(
        "a.one",
        """
        import json
        EXPECTED_ERRORS = {"f": (json.JSONDecodeError, "Expecting value")}
        def f(): ...
        def g(): ...
        """,
    )
    error = library.expected_error(library.find("one.f", "a"))
    assert (error.type, error.fragment) == ("json.JSONDecodeError", "Expecting value")
    assert library.expected_error(library.find("one.g", "a")) is None


def test_all_modules_that_a_page_reaches_have_a_digest(project, library):
    project.snippet("a.low", "def low(): ...\n")
    project.snippet("a.high", "from snippets.a.low import low\ndef high(): ...\n")
    project.snippet("a.other", "def other(): ...\n")
    before = library.reached(["a.high"])
    assert sorted(before) == ["a.high", "a.low"]
    project.snippet("a.low", "def low(): return 1\n")
    after = Library(library.root).reached(["a.high"])
    assert before["a.high"] == after["a.high"]
    assert before["a.low"] != after["a.low"]


def test_a_broken_module_makes_the_build_red_until_it_is_mended(project):
    path = project.snippet("a.one", "def f():\n    return 41 + 1\n")
    project.snippet("a.two", "def g():\n    return 7\n")
    project.page("a/one", project.cell("f()", snippet="one.f"))
    project.page("a/two", project.cell("g()", snippet="two.g"))
    project.built()

    line = project.line("a/one", "{code-cell}")
    unknown = "there is no snippet 'one.f'"
    project.edit(path, "def f():", "def f(:")
    for change, words in (
        (lambda: None, [f"{path}:1: ", f"docs/a/one.md:{line}: WARNING"]),
        (lambda: project.edit(path, "def f(:", "def renamed():"), [unknown, "one.renamed"]),
        (path.unlink, [unknown]),
    ):
        change()
        red = project.build()
        assert red.status == 1 and red.executed == [] and "Traceback" not in red.output
        assert all(each in red.output for each in words)
    project.snippet("a.one", "def f():\n    return 41 + 1\n")
    assert project.built().executed == []
    assert "42" in project.html("a/one")
