"""What a release made faster or slower, of files of one machine with two of its versions."""

import json
import random

import pytest

from measured.machines import Machine
from measured.ranges import ratio_of_groups
from measured.releases import release
from measured.schema import Schema
from tests.engine.measured.test_machines import ROOT, file_of
from tests.engine.records import measured, one_process

SCHEMA = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")
STEADY = (0.99, 1.0, 1.0, 1.0, 1.01)


def timed(name, version, factors, first=3.0, **more):
    """Return the record of a function: a process for each factor."""
    found = measured(name, [1.0], **{"versions": {"python": version}, **more})
    found["processes"] = [one_process(0.25 * each, first_call=first * each) for each in factors]
    return found


def machine(folder, name, *records, fewest=5, **more):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(file_of(*records, **more)), "utf8")
    return Machine.load(path, SCHEMA, fewest)


def test_the_two_latest_versions_are_compared_and_the_turns_of_each_put_together(tmp_path):
    found = release(
        [
            machine(tmp_path, "old", timed("f", "0.9.2", STEADY)),
            machine(tmp_path, "first", timed("f", "0.10.1", STEADY)),
            machine(tmp_path, "new", timed("f", "0.11.0", [2 * each for each in STEADY])),
            machine(tmp_path, "second", timed("f", "0.10.1", STEADY)),
        ],
        "python",
    )
    assert found.versions == ("0.10.1", "0.11.0")
    (change,) = found.changes
    assert len(change.before.processes) == 10
    ratio = change.ratio("latency")
    assert ratio.value == 2 and 1.9 < ratio.low < 2 < ratio.high < 2.1


def test_other_code_arrays_or_processors_are_not_compared(tmp_path):
    def pair(**more):
        new = timed("f", "2.0", STEADY, **more)
        old = machine(tmp_path, "old", timed("f", "1.0", STEADY))
        return release([old, machine(tmp_path, "new", new)], "python").changes

    assert len(pair()) == 1
    assert not pair(shape=[[3]])
    assert not pair(processor="Another")
    old = machine(tmp_path, "old", timed("f", "1.0", STEADY))
    new = machine(tmp_path, "new", timed("f", "2.0", STEADY), code={"f": "1" * 64})
    assert not release([old, new], "python").changes
    few = machine(tmp_path, "few", timed("f", "2.0", STEADY[:4]), fewest=1)
    assert not release([old, few], "python").changes
    assert release([old], "python") is None


def test_a_page_lists_what_changed_and_counts_the_rest(project):
    project.configure('book_releases = "docs/_releases"')
    folder = project.root / "docs" / "_releases"
    folder.mkdir()
    wide = (0.5, 1.0, 1.0, 2.0, 2.0)
    for version, factor in (("1.9.0", 1.0), ("1.10.0", 1.5)):
        slower = timed("b/slower", version, [factor * each for each in STEADY])
        faster = timed("b/faster", version, [1 / factor**2 * each for each in STEADY])
        others = [timed("b/same", version, STEADY), timed("b/wide", version, wide)]
        machine(folder, f"python_{version}", slower, faster, *others)
    project.page("x/changes", "```{release-changes}\n```")
    project.built()
    soup = project.soup("x/changes")
    calls, firsts = soup.select("table")
    assert project.rows(calls) == [
        ["function", "compared", "1.9.0", "1.10.0"],
        ["b/faster", "2.25× faster (2.21–2.30)", "250 ms", "111 ms"],
        ["b/slower", "1.50× slower (1.47–1.53)", "250 ms", "375 ms"],
    ]
    assert [row[3] for row in project.rows(firsts)] == ["1.10.0", "1.33 s", "4.5 s"]
    counts = (
        "4 functions in 1.10.0, compared with 1.9.0: 1 faster, 1 slower, 1 about equal, "
        "1 cannot be told apart."
    )
    text = " ".join(soup.text.split())
    assert f"Calls of {counts}" in text and f"First calls of {counts}" in text
    assert "5 processes of each version at least, on A processor." in text


@pytest.mark.parametrize("size", [3, 5, 10])
def test_a_ratio_of_groups_misses_the_factor_as_seldom_as_it_says(size):
    draws = random.Random(size)
    missed = 0
    for _ in range(2000):
        one, other = ([draws.lognormvariate(0, 0.2) for _ in range(size)] for _ in range(2))
        found = ratio_of_groups([2 * each for each in one], other)
        assert found.low <= found.value <= found.high
        missed += not found.low <= 2 <= found.high
    # Of three and three even the whole range misses in one of ten; of more in one of a hundred.
    assert missed / 2000 <= (0.13 if size == 3 else 0.015)
    assert missed / 2000 >= 0.002


def test_the_interval_is_that_of_the_rank_sum_test():
    one, other = [*map(float, range(11, 21))], [1.0] * 10
    found = ratio_of_groups(one, other)
    # With ten and ten, the 17th of the hundred ratios from below and from above.
    ratios = sorted(each / 1 for each in one for _ in other)
    assert (found.low, found.high) == (ratios[16], ratios[-17])
