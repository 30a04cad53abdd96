"""Which cell of a page an output belongs to, after its code was edited.

What counts is the syntax of the code: docstrings, comments and formatting may change. An output
belongs to its cell as long as the code of the cell and of all cells before it is the same; an
output of a kind of its own as long as what decides it is, see `output_kinds.OutputKind`.
"""

import collections
import dataclasses
import difflib
import hashlib
from collections.abc import Sequence

from ..source.code import fingerprint
from ..source.pages import Page
from .output_format import CellOutputs, PageOutputs
from .output_kinds import OutputKind
from .outputs import kind_of
from .states import CellStanding

# Two texts that have less than this in common are two cells, not one that was edited.
ALIKE = 0.4


def lineages(sources: Sequence[str]) -> list[str]:
    """Return for each cell a digest of its code and the code of all cells before it."""
    digests, before = [], ""
    for source in sources:
        before = hashlib.sha256((before + fingerprint(source)).encode()).hexdigest()[:16]
        digests.append(before)
    return digests


def align(outputs: PageOutputs, page: Page, kinds: Sequence[OutputKind] = ()) -> PageOutputs:
    """Return what was recorded of a page, under the keys of its cells today.

    A cell of which nothing was recorded has none; one whose code was edited has what its former
    code gave.
    """
    now = tuple(cell.source for cell in page.cells)
    then = tuple(cell.source for cell in outputs.cells)
    pairs = _pairs([*map(fingerprint, then)], [*map(fingerprint, now)], then, now)
    asked = kinds if then != now else ()
    digests = {kind: (kind.deciding(then), kind.deciding(now)) for kind in asked}
    matched: list[CellOutputs] = []
    same = True
    for number, cell in enumerate(page.cells):
        other = pairs.get(number)
        same = same and other == number and fingerprint(then[number]) == fingerprint(cell.source)
        if other is None:
            continue
        recorded = dataclasses.replace(outputs.cells[other], key=cell.key)
        if not same:
            changed = fingerprint(then[other]) != fingerprint(cell.source)
            standing = CellStanding.CHANGED if changed else CellStanding.AFTER
            alike = all(
                before[other] == after[number]
                for kind, (before, after) in digests.items()
                if any(kind_of(output, [kind]) for output in recorded.outputs)
            )
            recorded = dataclasses.replace(recorded, standing=standing, kind_stands=alike)
        matched.append(recorded)
    return dataclasses.replace(outputs, cells=tuple(matched))


def _pairs(
    then_prints: Sequence[str], now_prints: Sequence[str], then: Sequence[str], now: Sequence[str]
) -> dict[int, int]:
    """Return {number of a cell today: number of what was recorded for it}."""
    matcher = difflib.SequenceMatcher(None, then_prints, now_prints, autojunk=False)
    steps = matcher.get_opcodes()
    pairs = {
        new: old
        for kind, low, high, first, last in steps
        if kind == "equal"
        for old, new in zip(range(low, high), range(first, last), strict=True)
    }
    # Cells that have changed places.
    left = collections.defaultdict(list)
    for old in sorted(set(range(len(then))) - set(pairs.values())):
        left[then_prints[old]].append(old)
    for new in range(len(now)):
        if new not in pairs and left[now_prints[new]]:
            pairs[new] = left[now_prints[new]].pop(0)
    # Cells that were edited where they stand.
    taken = set(pairs.values())
    for kind, low, high, first, last in steps:
        if kind != "replace":
            continue
        alike = sorted(
            (
                (-_likeness(then[old], now[new]), new, old)
                for old in range(low, high)
                for new in range(first, last)
                if old not in taken and new not in pairs
            ),
        )
        for ratio, new, old in alike:
            if -ratio >= ALIKE and old not in taken and new not in pairs:
                pairs[new] = old
                taken.add(old)
    return pairs


def _likeness(one: str, other: str) -> float:
    """Return how much two texts have in common; zero where that is less than `ALIKE`.

    Two upper bounds, which cost little, are asked first.
    """
    matcher = difflib.SequenceMatcher(None, one, other)
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < ALIKE:
        return 0.0
    return matcher.ratio()


def changes(outputs: PageOutputs, page: Page) -> tuple[str, ...]:
    """Say in what aligned outputs are not those of the page today, as texts."""
    keys = {cell.key for cell in outputs.cells}
    count = collections.Counter(cell.standing for cell in outputs.cells)
    counts = {
        "edited": count[CellStanding.CHANGED],
        "new": sum(cell.key not in keys for cell in page.cells),
        "after earlier code": count[CellStanding.AFTER],
    }
    return tuple(f"{n} cell{'s' * (n > 1)} {words}" for words, n in counts.items() if n)
