"""Let the timer take two samples, at any moment, in a build that only tries pages out.

Nobody reads the times of such a build. The timer is pasted into the pages, so its numbers are
names of theirs, and are given anew after each cell. ROUNDS stays: experiments without a clock
depend on it, and readers are asked what comes out.
"""

from IPython import get_ipython

# Of each name, what the timer and what a trial has.
NUMBERS = {
    "LONG": (1.0, 0.0),
    "LONG_ROUNDS": (7, 2),
    "LONGEST_REST": (0.2, 0.0),
    "PATIENCE": (0.5, 0.0),
    "FIRST_LOOK": (0.25, 0.0),
    "COUNTED": (4000, 1),
}


def hurry(*_):
    """Change the timer's numbers, where a page has them."""
    names = get_ipython().user_ns
    for name, (timer, trial) in NUMBERS.items():
        if names.get(name) == timer:
            names[name] = trial


get_ipython().events.register("post_run_cell", hurry)
