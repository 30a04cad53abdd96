"""What went from one version of JAX to the next, from what versions say of themselves."""

import enum
import os
import pathlib
import subprocess
import sys
import types
import warnings

import jax
import pytest

from snippets.appendix import upgrades
from snippets.appendix.upgrades import Change

ROOT = pathlib.Path(__file__).parents[2]


def test_this_version_has_what_it_says():
    names = upgrades.ask(sys.executable, upgrades.public_names, ["jax", "jax.numpy", "jax.gone"])
    assert names["jax.numpy.take"][:2] == ["a", "indices"]
    assert "jax.jit" in names
    # Neither modules nor private names.
    assert not {"jax.numpy.linalg", "jax._src"} & names.keys()


def test_what_using_a_name_comes_to():
    found = upgrades.ask(
        sys.executable, upgrades.outcomes, ["jax.jit", "jax.no_such_name", "jax.no.such"]
    )
    assert found["jax.jit"] == ""
    assert found["jax.no_such_name"].startswith("AttributeError: module 'jax' has no attribute")
    assert upgrades.is_error(found["jax.no.such"])
    assert not upgrades.is_error("ModuleNotFoundError: No module named 'absl'")


def test_the_oldest_python_comes_first_and_each_version_once(monkeypatch):
    versions = {sys.executable: "0.12.0.1", "a": "0.9.2", "b": "0.10.2", "c": "0.9.2"}
    monkeypatch.setattr(upgrades, "ask", lambda python, function: versions[python])
    monkeypatch.setenv("JAX_PYTHONS", "a:b:c".replace(":", os.pathsep))
    assert upgrades.all_pythons() == {"0.9.2": "a", "0.10.2": "b", "0.12.0.1": sys.executable}


def test_this_python_says_its_version():
    assert upgrades.ask(sys.executable, upgrades.version) == jax.__version__


def test_a_python_that_fails_is_an_error():
    with pytest.raises(subprocess.CalledProcessError):
        upgrades.ask(sys.executable, upgrades.defaults)


def test_defaults_are_those_of_the_configuration():
    found = upgrades.ask(sys.executable, upgrades.defaults, "jax_enable")
    assert found["jax_enable_x64"] == "False"


def test_a_name_went_when_it_first_raises_an_error():
    warning = "DeprecationWarning: jax.old is deprecated: use jax.new."
    said = "AttributeError: jax.old was removed: use jax.new."
    nothing = "AttributeError: module 'jax' has no attribute '{}'"
    came = {
        "0.9.2": {},
        "0.10.2": {"jax.old": warning, "jax.a": nothing.format("a"), "jax.b": nothing.format("b")},
        "0.12.0": {"jax.old": said, "jax.a": nothing.format("a"), "jax.b": nothing.format("b")},
    }
    assert upgrades.removals(came) == [
        Change(("jax.a", "b"), "0.9.2", "0.10.2", ""),
        Change(("jax.old",), "0.10.2", "0.12.0", "AttributeError: jax.… was removed: use jax.new."),
    ]
    del came["0.12.0"]
    assert upgrades.deprecated(came) == {"jax.old": warning}


def test_names_that_a_version_lacks_are_those_of_all_others():
    present = {"0.9.2": {"jax.a": None, "jax.b": None}, "0.10.2": {"jax.b": None, "jax.c": None}}
    retired = {"0.9.2": ["jax.old"], "0.10.2": []}
    assert upgrades.gone_in(present, retired, "0.9.2") == ["jax.c", "jax.old"]
    assert upgrades.gone_in(present, retired, "0.10.2") == ["jax.a", "jax.old"]


@pytest.fixture
def module(monkeypatch):
    """Return a module with a name that warns, one that is gone, an enum and a standard function."""

    def old(name):
        if name == "warns":
            warnings.warn("use new", DeprecationWarning, stacklevel=2)
            return 1
        raise AttributeError(f"made.{name} was removed; use new")

    made = types.ModuleType("made")
    made.__getattr__ = old
    made._deprecations = {"warns": None, "gone": None}
    made.new = lambda x, *rest, key=1, **more: x
    made.Colour = enum.Enum("Colour", "RED")
    made.partial = __import__("functools").partial
    monkeypatch.setitem(sys.modules, "made", made)
    return made


def test_names_come_from_a_module_and_from_what_it_has_retired(module):
    module.Colour.__module__ = module.new.__module__ = "made"
    assert upgrades.public_names(["made"]) == {
        "made.Colour": None,
        "made.new": ["x", "*rest", "key", "**more"],
    }
    assert upgrades.retired_names(["made", "no.such.module"]) == ["made.warns", "made.gone"]
    assert upgrades.outcomes(["made.warns", "made.gone", "made.new"]) == {
        "made.warns": "DeprecationWarning: use new",
        "made.gone": "AttributeError: made.gone was removed; use new",
        "made.new": "",
    }


def test_a_parameter_that_a_function_lost():
    before = {"jax.f": ["x", "old"], "jax.g": ["x"], "jax.h": ["x"], "jax.i": ["x"]}
    after = {"jax.f": ["x", "new"], "jax.g": ["x", "more"], "jax.h": None, "jax.i": ["**any"]}
    present = {"0.9.2": before, "0.10.2": after}
    expected = [Change(("jax.f", "old"), "0.9.2", "0.10.2", "f(x, new)")]
    assert upgrades.lost_parameters(present) == expected


def test_a_default_that_changed_and_one_that_went():
    before = {"jax_a": "1", "jax_b": "2", "jax_c": "3"}
    values = {"0.9.2": before, "0.10.2": {"jax_a": "1", "jax_b": "3"}}
    assert [change.texts() for change in upgrades.changed_defaults(values)] == [
        ["jax_b", "0.9.2 → 0.10.2", "2 → 3"],
        ["jax_c", "0.9.2 → 0.10.2", "3 → no such option"],
    ]


def test_the_table_shows_each_change_as_text_and_as_html():
    change = Change(("jax.f", "g"), "0.9.2", "0.10.2", "a < b")
    table = upgrades.Changes([change], ["name", "JAX", "why"])
    assert repr(table) == "jax.f, g | 0.9.2 → 0.10.2 | a < b"
    assert "<td><code>jax.f, g</code></td><td>0.9.2 → 0.10.2</td><td>a &lt; b</td>" in (
        table._repr_html_()
    )


ROWS = """
<div class="upgrade-choice" hidden></div>
<article><table><tbody>
<tr><td>jax.a</td><td>0.4.31 → 0.9.2</td><td>went</td></tr>
<tr><td>jax.b</td><td>0.9.2 → 0.10.2</td><td>went</td></tr>
<tr><td>jax.c</td><td>0.10.2 → 0.12.0.1</td><td>went</td></tr>
<tr><td>no change</td><td>at all</td></tr>
</tbody></table></article>
"""


def test_the_page_shows_what_lies_between_the_two_versions(browser):
    page = browser.new_page()
    page.set_content(ROWS)
    page.add_script_tag(path=ROOT / "docs" / "_static" / "upgrades.js")
    page.evaluate("document.dispatchEvent(new Event('DOMContentLoaded'))")

    def shown():
        return page.locator("tr:visible td:first-child").all_inner_texts()

    assert shown() == ["jax.a", "jax.b", "jax.c", "no change"]
    first, last = page.get_by_label("from JAX"), page.get_by_label("to")
    assert first.locator("option").all_inner_texts() == ["0.4.31", "0.9.2", "0.10.2", "0.12.0.1"]
    first.select_option("0.9.2")
    last.select_option("0.10.2")
    assert shown() == ["jax.b", "no change"]
    assert page.locator("output").inner_text() == "1 of 3 changes"
    first.select_option("0.10.2")
    assert page.locator("output").inner_text() == "choose a later version to go to"
    page.close()
