"""A name that the code of a page would measure is known before it is measured."""

import pytest
from _ext.measurements.declared import Gap, gaps, names, overlap

FUNCTIONS = ("measure",)
FRAMEWORKS = ("jax", "torch")


def of(*cells):
    found = names(cells, FUNCTIONS, ("compare",), FRAMEWORKS)
    return [sorted(each) for each in found]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("measure('a/b', f, x)", ["a/b"]),
        ("again = timer.measure('a/b', f)", ["a/b"]),
        ("measure(name='a/b', function=f)", ["a/b"]),
        ("measure(f'a/{size}', f)", ["a/*"]),
        ("measure(f'a/{size}/b{n!r}', f)", ["a/*/b*"]),
        ("measure(f'a/{1 + 1}', f)", ["a/*"]),
        ("name = 'a/b'\nmeasure(name, f)", ["a/b"]),
        ("n = 64\nmeasure(f'a/{n}', f)", ["a/64"]),
        ("n = 1\nn += 1\nmeasure(f'a/{n}', f)", ["a/*", "a/1"]),
        ("for n in (1, 2):\n    measure(f'a/{n}', f)", ["a/1", "a/2"]),
        ("for n in range(3):\n    measure(f'a/{n}', f)", ["a/*"]),
        ("for n, g in [('b', f), ('c', h)]:\n    measure(f'a/{n}', g)", ["a/b", "a/c"]),
        ("[measure(f'a/{n}', f) for n in ('b', 'c')]", ["a/b", "a/c"]),
        ("measure('a' if fast else 'b', f)", ["a", "b"]),
        ("measure('a', lambda: measure('b', f))", ["a", "b"]),
        (
            "with x:\n    try:\n        measure('a', f)\n    finally:\n        measure('b', f)",
            ["a", "b"],
        ),
        ("%matplotlib inline\n!pip list\nmeasure('a', f)", ["a"]),
        ("%%time\nmeasure('a', f)", ["a"]),
        ("if x:\n    %time 1\n    measure('a', f)", ["a"]),
    ],
)
def test_names_are_read_from_calls(source, found):
    assert of(source) == [found]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "measure",
        "measure()",
        "measure(name)",
        "measure(f'{name}')",
        "measure(*args)",
        "measure(names.pop())",
        "measure(f'{name}/b', f)",
        "compare(name, {'b': f})",
        "measured('a')",
        "def measure(name): pass",
        "def unused():\n    measure('a', f)",
        "measure('a', ",
        "x = 'measure(a)'",
    ],
)
def test_what_says_nothing_of_a_name_gives_none(source):
    assert of(source) == [[]]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("race('a', 3)", ["a/eager", "a/jit"]),
        ("race(size=3, name='a')", ["a/eager", "a/jit"]),
        ("race()", ["all/eager", "all/jit"]),
        ("race(name)", []),
        ("race(*args)", []),
        ("race('a')\nrace('b')", ["a/eager", "a/jit", "b/eager", "b/jit"]),
        ("[race(n) for n in ('a', 'b')]", ["a/eager", "a/jit", "b/eager", "b/jit"]),
        ("print('race')", []),
    ],
)
def test_names_are_followed_through_functions_of_the_page(call, found):
    helpers = """
def measure(name, function):
    return name

def race(name='all', size=1):
    measure(f'{name}/eager', f)
    second(name)

def second(name, *, kind='jit'):
    measure(f'{name}/{kind}', f)
"""
    assert of(helpers, call) == [[], found]


def test_a_name_belongs_to_the_cell_that_measures_it():
    cells = "def run(name):\n    measure(name, f)", "run('a')", "base = 'b'", "run(f'{base}/c')"
    assert of(*cells) == [[], ["a"], [], ["b/c"]]


def test_functions_within_functions_and_recursion_have_an_end():
    source = """
def outer(name, n):
    def inner(kind):
        measure(f'{name}/{kind}', f)
    inner('b')
    if n:
        outer(f'{name}/more', n - 1)

outer('a', 3)
"""
    assert of(source) == [["a/*"]]


def test_a_flood_of_names_becomes_a_pattern():
    numbers = ", ".join(map(str, range(100)))
    source = f"for a in ({numbers}):\n for b in ({numbers}):\n  measure(f'x/{{a}}/{{b}}', f)"
    assert of(source) == [["x/0/*", *sorted(f"x/{n}/*" for n in range(1, 100))]]


@pytest.mark.parametrize(
    ("pattern", "other", "both"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/b", "a/b/c", False),
        ("a/*", "a/b", True),
        ("a/*", "a/", True),
        ("a/*", "*/b", True),
        ("a/*/c", "*/b/*", True),
        ("a/*", "b/*", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("*", "anything", True),
        ("", "", True),
        ("", "a", False),
        ("*a*a*a*a*b", "a" * 200, False),
    ],
)
def test_patterns_overlap_where_a_name_can_match_both(pattern, other, both):
    assert overlap(pattern, other) is overlap(other, pattern) is both


def test_gaps_are_the_names_of_cells_without_outputs():
    of_cells = [frozenset({"a"}), frozenset(), frozenset({"b/*", "c"})]
    assert gaps(of_cells, "tpu", None) == (
        Gap("a", "tpu"),
        Gap("b/*", "tpu"),
        Gap("c", "tpu"),
    )
    assert gaps(of_cells, "cpu", {2: "torch"}) == (
        Gap("b/*", "cpu", "torch"),
        Gap("c", "cpu", "torch"),
    )
    assert gaps(of_cells, "cpu", {}) == ()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("compare('a', {'jax': f, 'torch': g})", ["a"]),
        ("compare('a', {'eager': f, 'jit': g}, x)", ["a/eager", "a/jit"]),
        ("compare('a', {'jax': f, 'eager@torch': g})", ["a", "a/eager"]),
        ("timer.compare('a', {'b': f} | {'c': g})", ["a/b", "a/c"]),
        ("more = {'b': f}\ncompare('a', {**more, 'c': g})", ["a/b", "a/c"]),
        ("all = {}\nall['b'] = f\nall['c'] = g\ncompare('a', all)", ["a/b", "a/c"]),
        (
            "for n in (1, 2):\n    compare(f'a/{n}', {'jax': f, 'b': g})",
            "a/1 a/1/b a/2 a/2/b".split(),
        ),
        ("compare('a', {f'b{n}': f for n in (1, 2)})", ["a*"]),
        ("compare('a', made())", ["a*"]),
        ("compare('a')", ["a*"]),
        (
            "def both(name, them):\n    compare(name, them)\n\nboth('a', {'b': f, 'c': g})",
            ["a/b", "a/c"],
        ),
        ("for n in them:\n    pass\nn = 'a'\ncompare(n, {'b': f})", ["a/b"]),
        ("them = {'x': f}\ndef both(them):\n    compare('a', them)\n\nboth(made())", ["a*"]),
    ],
)
def test_a_comparison_measures_its_alternatives(source, found):
    assert of(source) == [found]


def test_alternatives_may_be_gathered_in_several_cells():
    cells = ("all = {'jax': f}", "all['eager@torch'] = g", "compare('a', all)")
    assert of(*cells) == [[], [], ["a", "a/eager"]]
