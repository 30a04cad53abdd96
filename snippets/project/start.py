"""A run of the program that is killed, and one that goes on."""

import contextlib
import os
import re
import signal
import sys

from snippets.programs.start.train import devices_of, main, parsed, run


def train_and_die(words, until):
    """Train up to a step, on a standard error that is read; then die."""
    options = parsed(words)
    with contextlib.redirect_stdout(sys.stderr):
        run(options, devices_of(options.devices), until)
    os.kill(os.getpid(), signal.SIGKILL)


def go_on(words):
    """Train as a command line says, on a standard error that is read."""
    with contextlib.redirect_stdout(sys.stderr):
        main(words)


def lines_of(text, places=6):
    """Return the lines of a run, without rates and folders.

    Numbers keep so many places after the point, and are not rounded.
    """
    lines = re.findall(r"^(?:step \d+:|devices:) .*", text, re.M)
    found = []
    for line in lines:
        short = re.sub(r", \d+ \w+/s$|, /.*$", "", line)
        found.append(re.sub(rf"(\.\d{{{places}}})\d+", r"\1", short))
    return found
