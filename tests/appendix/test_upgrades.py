"""What went from one version of JAX to the next, from what versions say of themselves."""

import subprocess
import sys

import jax
import pytest

from snippets.appendix import upgrades
from snippets.appendix.upgrades import Change


def test_this_version_has_what_it_says():
    names = upgrades.ask(sys.executable, upgrades.public_names, ["jax", "jax.numpy", "jax.gone"])
    assert names["jax.numpy.take"][:2] == ["a", "indices"]
    assert "jax.jit" in names
    # Neither modules nor private names.
    assert not {"jax.numpy.linalg", "jax._src"} & names.keys()


def test_each_module_is_one_of_some_version_that_is_supported():
    names = upgrades.ask(sys.executable, upgrades.public_names, upgrades.MODULES)
    found = {name.rpartition(".")[0] for name in names}
    gone = {"jax.experimental.shard_map", "jax.interpreters.xla", "jax.util", "jax.lib.xla_bridge"}
    gone |= {"jax.lib.xla_client", "jax.lib.xla_extension", "jax.core", "jax.interpreters.pxla"}
    gone |= {"jax.lib", "jax.interpreters.partial_eval"}
    assert set(upgrades.MODULES) - found <= gone


def test_what_using_a_name_comes_to():
    found = upgrades.ask(
        sys.executable, upgrades.outcomes, ["jax.jit", "jax.no_such_name", "jax.no.such"]
    )
    assert found["jax.jit"] == ""
    assert found["jax.no_such_name"].startswith("AttributeError: module 'jax' has no attribute")
    assert upgrades.is_error(found["jax.no.such"])


def test_the_oldest_python_comes_first_and_each_version_once(monkeypatch):
    monkeypatch.setenv("JAX_PYTHONS", sys.executable)
    assert upgrades.all_pythons() == {jax.__version__: sys.executable}


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
    assert upgrades.gone_in(present, "0.9.2") == ["jax.c"]
    assert upgrades.gone_in(present, "0.10.2") == ["jax.a"]


def test_a_parameter_that_a_function_lost():
    present = {
        "0.9.2": {"jax.f": ["x", "old"], "jax.g": ["x"], "jax.h": ["x"]},
        "0.10.2": {"jax.f": ["x", "new"], "jax.g": ["x", "more"], "jax.h": None},
    }
    expected = [Change(("jax.f", "old"), "0.9.2", "0.10.2", "f(x, new)")]
    assert upgrades.lost_parameters(present) == expected


def test_a_default_that_changed_and_one_that_went():
    values = {"0.9.2": {"jax_a": "1", "jax_b": "2", "jax_c": "3"}, "0.10.2": {"jax_a": "1", "jax_b": "3"}}
    assert [change.texts() for change in upgrades.changed_defaults(values)] == [
        ["jax_b", "0.9.2 → 0.10.2", "2 → 3"],
        ["jax_c", "0.9.2 → 0.10.2", "3 → no such option"],
    ]


def test_the_table_shows_each_change_as_text_and_as_html():
    table = upgrades.Changes([Change(("jax.f", "g"), "0.9.2", "0.10.2", "a < b")], ["name", "JAX", "why"])
    assert repr(table) == "jax.f, g | 0.9.2 → 0.10.2 | a < b"
    assert "<td><code>jax.f, g</code></td><td>0.9.2 → 0.10.2</td><td>a &lt; b</td>" in (
        table._repr_html_()
    )
