"""Requests of different lengths: what an answer is checked for."""

import numpy as np

NEXT = np.array([3, 5, 0, 6, 1, 4, 2])


def accepted(accept, guesses):
    """Return what is accepted behind tokens 5 and 0, and the number of runs.

    The target writes behind each token the one that `NEXT` has there.
    """
    texts = []

    def target(text):
        texts.append(text)
        return NEXT[np.asarray(text)]

    found = accept(target, np.array([5, 0]), np.array(guesses))
    return np.asarray(found).tolist(), len(texts)


def check_accept(accept):
    """Raise AssertionError unless one run gives all tokens that it can."""
    cases = {
        (3, 6, 2): [3, 6, 2, 0],
        (3, 4, 1): [3, 6],
        (5, 4, 1): [3],
        (3, 6, 4): [3, 6, 2],
    }
    for guesses, right in cases.items():
        found, runs = accepted(accept, guesses)
        assert runs == 1, (
            f"it runs the target {runs} times for {len(guesses)} guesses; one "
            "run on all of them returns the likeliest token behind each"
        )
        same = np.array(found[: len(right)]) == right[: len(found)]
        place = int(np.cumprod(same).sum())
        assert same.all(), (
            f"of the guesses {list(guesses)} it accepts {found}, and the "
            f"target writes {right[place]} in place of {found[place]}"
        )
        assert len(found) <= len(right), (
            f"of the guesses {list(guesses)} it accepts {found}, and goes on "
            f"behind {right[-1]}, where the guess was wrong: what the target "
            "writes behind a wrong guess does not count"
        )
        assert len(found) == len(right), (
            f"of the guesses {list(guesses)} it accepts {found}, and the same "
            f"run says that {right[-1]} comes next; without it 60 such tokens "
            f"take {-(-60 // max(len(found), 1))} runs of the target, and "
            f"with it {-(-60 // len(right))}"
        )
