"""Fewer cases of a product, in which every two values still meet."""

import itertools
import os

# `nox -s composition` takes each case.
ALL = "BOOK_ALL_CASES" in os.environ


def met(case):
    """Return what meets in a case: every two of its values, with their places."""
    return set(itertools.combinations(enumerate(case), 2))


def covering(cases):
    """Return a few of the cases, in which any two values meet that meet in one of them.

    All cases are returned where BOOK_ALL_CASES is set.
    """
    cases = list(cases)
    if ALL:
        return cases
    left, chosen = set().union(*map(met, cases)), []
    while left:
        chosen.append(max(cases, key=lambda case: len(left & met(case))))
        left -= met(chosen[-1])
    return chosen
