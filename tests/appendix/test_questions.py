"""The counts of the page of questions are those of its table."""

import collections
import pathlib
import random
import re

PAGE = pathlib.Path(__file__).parents[2] / "docs/appendix/questions.md"
ROW = re.compile(
    r"^\| (?P<question>.*\?) \| \[(?P<thread>\w+#\d+)\]\((?P<address>\S+)\)"
    r" \| (?P<answer>.*?) ?\| (?P<before>at once|digging|no)"
    r" \| (?P<now>at once|digging|no|held) \|$",
    re.M,
)


def test_the_counts_are_those_of_the_table():
    text = PAGE.read_text("utf8")
    rows = [row.groupdict() for row in ROW.finditer(text)]
    assert len(rows) == len({row["address"] for row in rows}) == 30
    held = [row["now"] == "held" for row in rows]
    drawn = random.Random(2026).sample(range(30), 20)
    assert [i for i in range(30) if not held[i]] == sorted(drawn)
    counts = collections.Counter()
    for row in rows:
        kind = "ten, held" if row["now"] == "held" else "twenty, before"
        counts[kind, row["before"]] += 1
        if row["now"] != "held":
            counts["twenty, now", row["now"]] += 1
        assert bool(re.search(r"\]\(.*\.md\)", row["answer"])) or "at once" not in row.values()
    for kind in "twenty, before", "twenty, now", "ten, held":
        numbers = [counts[kind, each] for each in ("at once", "digging", "no")]
        assert f"| {kind} | {numbers[0]} | {numbers[1]} | {numbers[2]} |" in text
    before = collections.Counter(row["before"] for row in rows)
    assert (before["at once"], before["digging"], before["no"]) == (9, 8, 13)
