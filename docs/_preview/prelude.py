"""Let the timer take three rounds, at any moment, in a build that only previews measurements.

It is executed in the folder of a page, whose copy of the timer is changed, before the first cell.
ROUNDS stays: experiments without a clock depend on it, and readers are asked what comes out.
"""

import pathlib

if (_timer := pathlib.Path("timer.py")).exists():
    with _timer.open("a") as _file:
        _file.write(
            "\nLONG, LONG_ROUNDS = 0.0, 3\n"
            "LONGEST_REST, PATIENCE, FIRST_LOOK, COUNTED = 0.0, 0.0, 0.0, 1\n"
        )
    del _file
