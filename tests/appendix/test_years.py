"""Versions of JAX in turns: with processes that only pretend, and with one that is real."""

import json
import pathlib
import re
import runpy
import stat
import sys

import jax
import numpy as np
import pytest

from measured.across import direction_of
from measured.machines import Machine
from measured.releases import release
from measured.schema import Schema
from snippets.appendix import years

ROOT = pathlib.Path(__file__).parents[2]
RECORD = ROOT / "docs" / "_recorded" / "cpu" / "appendix" / "years.ipynb"
PAGE = (ROOT / "docs" / "appendix" / "years.md").read_text("utf8")
# What the page has timed, with the functions that each is sent with.
TIMED = {
    years.small_call: [],
    years.without_jit: [],
    years.small_pmap: [],
    years.first_call: [years.perceptron],
    years.training_step: [years.perceptron],
    years.product: [],
    years.chain: [],
    years.loop: [],
    years.sorting: [],
    years.convolution: [],
    years.small_systems: [],
    years.neighbours: [years.roughness],
    years.neighbours_gradient: [years.roughness, years.neighbours],
}
# A Python that answers as if it had a version of JAX, and ends where it is told to.
PRETENDING = """#!{python}
import json, os, sys
computed = 0.0
for line in sys.stdin:
    name, arguments = json.loads(line)
    if name == "versions":
        reply = {{"python": "3.0", "jax": "{version}", "jaxlib": "{version}"}}
    elif name == "prepare":
        reply = 0.5, [[4]], "float32"
    elif name == "seconds":
        slow = 2 if "slow" in os.environ.get("XLA_FLAGS", "") else 1
        taken = {each} * arguments[0] * slow
        computed += 1.5 * taken
        reply = taken, 1.5 * taken, computed
    elif name == "outcome":
        reply = "gone" if arguments[0] in {gone!r} else ""
    else:
        sys.exit(1)
    print(json.dumps({{"returned": reply}}), flush=True)
"""


@pytest.fixture
def pretend(tmp_path):
    """Return a function that makes a process of such a Python."""
    made = []

    def make(version, each=1e-3, gone=()):
        path = tmp_path / f"python-{version}-{len(made)}"
        text = PRETENDING.format(python=sys.executable, version=version, each=each, gone=gone)
        path.write_text(text, "utf8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        process = years.Elsewhere(str(path))
        process.versions = process.ask("versions")
        made.append(process)
        return process

    yield make
    for process in made:
        process.close()


@pytest.fixture(scope="module")
def real():
    """Return a process of this Python, with this JAX."""
    process = years.Elsewhere(sys.executable)
    yield process
    process.close()


def test_ratios_come_from_rounds(pretend):
    processes = {"0.4.31": pretend("0.4.31"), "0.5.3": pretend("0.5.3", each=3e-3)}
    found = years.across("a/b", years.small_call, processes)
    assert found.ratio("0.5.3", "0.4.31").value == pytest.approx(3.0)
    assert found.ratio("0.5.3", "0.4.31").different
    of = found.alternatives["0.5.3"]
    assert of.reference == "a/b/0.5.3@jax"
    assert of.versions == {"python": "3.0", "jax": "0.5.3", "jaxlib": "0.5.3"}
    assert (of.first_call, of.shape, of.dtype) == (0.5, [[4]], "float32")
    assert of.cores == 1.5


def test_the_record_is_what_the_schema_of_the_timer_allows(pretend):
    jsonschema = pytest.importorskip("jsonschema")
    found = years.across("a/b", years.small_call, {"0.4.31": pretend("0.4.31")})
    schema = json.loads((ROOT / "snippets/programs/measurement.schema.json").read_text("utf8"))
    jsonschema.validate(found.record(), schema)


def test_nothing_is_timed_without_a_process():
    assert years.across("a/b", years.small_call, {}) is None


def test_flags_are_given_to_versions_that_are_there(pretend, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--of-the-page")
    processes = {"0.4.31": pretend("0.4.31")}
    flags = {"0.4.31": "", "0.4.31/slow": "--slow", "9.9.9/slow": "--slow"}
    chosen = years.with_flags(processes, flags)
    assert list(chosen) == ["0.4.31", "0.4.31/slow"]
    found = years.across("a/b", years.small_call, chosen)
    assert found.ratio("0.4.31/slow", "0.4.31").value == pytest.approx(2.0)
    told = [each.settings.get("XLA_FLAGS") for each in found.alternatives.values()]
    assert told == [None, "--slow"]
    assert all("" not in each.settings.values() for each in found.alternatives.values())
    for process in chosen.values():
        process.close()


def test_all_pythons_of_the_variable_are_found_the_oldest_first(pretend, monkeypatch):
    pythons = [pretend(version).process.args[0] for version in ("0.4.9", "0.4.31", "0.4.9")]
    monkeypatch.setenv("JAX_PYTHONS", ":".join(pythons))
    monkeypatch.setattr(years.sys, "executable", pretend("0.12.0.1").process.args[0])
    found = years.all_versions()
    assert list(found) == ["0.4.9", "0.4.31", "0.12.0.1"]
    for process in found.values():
        process.close()


def test_a_process_that_ends_is_named(pretend):
    process = pretend("0.4.31")
    with pytest.raises(RuntimeError, match=r"python-0\.4\.31-0 ended without an answer"):
        process.ask("something else")


def test_what_the_processes_compute_is_not_the_work_of_others(pretend, monkeypatch):
    """A machine of which nothing is heard but what these processes have computed."""
    known = {"0.4.31": pretend("0.4.31"), "0.5.3": pretend("0.5.3")}
    monkeypatch.setattr(years, "taken_by_others", lambda: (years.computed_by(known), 0.0))
    seen = []
    monkeypatch.setattr(
        years, "disturbed_since", lambda before, own: seen.append((before[0], own)) or False
    )
    found = years.across("a/b", years.small_call, known)
    ((before, own),) = seen
    assert own == pytest.approx(years.computed_by(known) - before)
    # What was computed before the samples, in the first calls, is not among it.
    assert before == pytest.approx(2 * 1.5e-3)
    assert own > 50 * before
    assert not any(each.disturbed for each in found.alternatives.values())


def test_a_real_process_tells_its_version_and_what_failed(real):
    assert real.ask("versions")["jax"] == jax.__version__
    assert real.ask("outcome", "jax.nothing") == (
        "AttributeError: module 'jax' has no attribute 'nothing'"
    )
    assert real.ask("outcome", "jax.jit") == ""
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        real.ask("prepare", "def wrong(): 1 / 0", "wrong")


def test_no_message_names_a_folder():
    said = years.outcome("from jax.experimental import nothing")
    assert said == "ImportError: cannot import name 'nothing' from 'jax.experimental'"


@pytest.mark.parametrize("function", TIMED, ids=lambda function: function.__name__)
def test_what_is_sent_is_enough_to_time_it(real, function):
    source = "\n".join(map(years.inspect.getsource, (*TIMED[function], function)))
    timed = years.TimedElsewhere(real, source, function.__name__)
    assert timed.first_call > 0
    elapsed, used = timed.run(1)
    assert elapsed > 0
    assert used >= 0
    assert real.computed > 0


def test_the_page_sends_what_the_tests_send():
    calls = re.findall(r"^across\(\s*\"years/(\w+)\", (\w+), processes", PAGE, re.MULTILINE)
    assert [function.__name__ for function in TIMED] == [name for _, name in calls]
    assert all(name == measured for measured, name in calls)


def test_a_training_step_lowers_the_loss():
    step, parameters, x, y = years.perceptron(width=8, batch=4, inputs=3, outputs=2)
    before, changed = step(parameters, x, y)
    after, _ = step(changed, x, y)
    assert after < before


def test_a_first_call_compiles_each_time(caplog):
    anew = years.first_call()
    with jax.log_compiles(True):
        losses = [anew()[0] for _ in range(3)]
    compiled = [text for text in caplog.messages if text.startswith("Compiling jit(<lambda>)")]
    assert len(compiled) == 3
    assert len(set(map(float, losses))) == 1


def test_roughness_is_the_sum_of_squared_differences():
    x = np.arange(24.0).reshape(2, 3, 4) ** 2
    expected = sum(np.sum(np.diff(x, axis=axis) ** 2) for axis in range(3))
    assert years.roughness(x) == pytest.approx(expected)


def test_small_systems_are_solved():
    timed = years.small_systems()
    a, b = timed.args
    assert np.allclose(np.einsum("nij,nj->ni", a, timed()), b, atol=1e-4)


def test_the_table_says_where_a_name_was_last_and_what_its_absence_says(pretend):
    old, new = pretend("0.4.31"), pretend("0.5.3", gone=["jax.old"])
    names = [("jax.old", "0.5.0", "jax.new", "jax.new"), ("jax.kept", "9.0", "jax.new", "")]
    table = years.GoneTable({"0.4.31": old, "0.5.3": new}, names)
    first = "Removed in 0.5.0; works in 0.4.31, fails in 0.5.3 with"
    assert [row.texts() for row in table.rows] == [
        ["jax.old", "jax.new", first, "gone"],
        [
            *("jax.kept", "jax.new"),
            *("Removed in 9.0; works in 0.5.3, fails in none of these", ""),
        ],
    ]
    assert f"{first} <samp>gone</samp>" in table._repr_html_()
    assert f"jax.old | jax.new | {first} | gone" in repr(table)


def test_advice_that_fails_in_the_newest_version_is_refused(pretend):
    old, new = pretend("0.4.31"), pretend("0.5.3", gone=["jax.new"])
    with pytest.raises(RuntimeError, match=r"instead of jax\.old: gone"):
        names = [("jax.old", "0.5.0", "jax.new", "jax.new")]
        years.GoneTable({"0.4.31": old, "0.5.3": new}, names)


@pytest.mark.parametrize("name", years.NAMES, ids=lambda name: name[0])
def test_a_name_is_gone_and_what_replaces_it_is_there(name):
    code, _, _, check = name
    assert years.outcome(code)
    assert years.outcome(check) == ""


def recorded_rows():
    """Return the code and the history of each name in the recorded table."""
    for cell in json.loads(RECORD.read_text("utf8"))["cells"]:
        for output in cell["outputs"]:
            text = "".join(output.get("data", {}).get("text/plain", []))
            if "; works in " in text:
                return [line.split(" | ")[::2] for line in text.splitlines()]
    return []


def test_what_the_versions_say_agrees_with_the_changelog():
    rows = recorded_rows()
    assert [code for code, _ in rows] == [name[0] for name in years.NAMES]
    for code, history in rows:
        removed, works, fails = re.fullmatch(
            r"Removed in ([\d.]+)(?: or before)?; works in ([\d.]+|none of these), "
            r"fails in ([\d.]+) with",
            history,
        ).groups()
        assert years.in_order(removed) <= years.in_order(fails), code
        assert works == "none of these" or years.in_order(works) < years.in_order(removed), code


def test_the_charts_of_the_page_have_a_bar_for_each_version():
    known = runpy.run_path(str(ROOT / "conf.py"))["book_versions"]["recorded"]
    record = RECORD.read_text("utf8")
    charts = re.findall(r"^```\{measurement-chart\} years/(\w+)/\*", PAGE, re.MULTILINE)
    assert charts
    for name in charts:
        assert [version for version in known if f'"years/{name}/{version}"' in record] == known
    assert f"years/small_call/{known[-1]}@jax / years/small_call/{known[0]}@jax" in PAGE


def test_the_latest_release_changed_what_the_page_says():
    schema = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")
    files = sorted((ROOT / "docs" / "_releases").glob("*.json"))
    found = release([Machine.load(each, schema, 1) for each in files], "jax")
    assert f"In JAX {found.versions[1]}, many first calls are faster than in " in PAGE
    firsts = [direction_of(ratio) for each in found.changes if (ratio := each.ratio("first_call"))]
    assert firsts.count("<") > len(firsts) / 10 > 10 * firsts.count(">")
    sums = [each for each in found.changes if each.after.name.endswith("0000/cumsum")]
    assert [direction_of(each.ratio("latency")) for each in sums] == [">", ">"]
