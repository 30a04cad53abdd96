"""What the page says of a run: its lines, without what differs between machines."""

import os
import signal

import jax
import pytest

from snippets.project import start

TEXT = """a warning of a library
devices: 8, steps done: 0, /tmp/a folder/run
step 5: loss 2.372485, test 2.140613, gradient 6.152, 14 images/s
step by step
"""


def test_lines_are_those_of_a_run_without_rates_and_folders():
    of_step = "step 5: loss 2.372485, test 2.140613, gradient 6.152"
    assert start.lines_of(TEXT) == ["devices: 8, steps done: 0", of_step]
    assert start.lines_of(TEXT, places=1)[1] == "step 5: loss 2.3, test 2.1, gradient 6.1"


def test_it_dies_after_the_step_and_the_rest_is_trained(monkeypatch, tmp_path, capfd):
    def die(process, number):
        raise InterruptedError(process, number)

    monkeypatch.setattr(start, "devices_of", lambda count: jax.devices()[:2])
    monkeypatch.setitem(start.main.__globals__, "devices_of", lambda count: jax.devices()[:2])
    monkeypatch.setattr(start.os, "kill", die)
    monkeypatch.setattr(start.main.__globals__["signal"], "signal", lambda *given: None)
    words = ["--steps", "3", "--every", "2", "--batch", "16", "--folder", str(tmp_path)]
    with pytest.raises(InterruptedError) as died:
        start.train_and_die(words, 2)
    assert died.value.args == (os.getpid(), signal.SIGKILL)
    start.go_on(words)
    first, step, again, last = start.lines_of(capfd.readouterr().err)
    assert (first, again) == ("devices: 2, steps done: 0", "devices: 2, steps done: 2")
    assert step.startswith("step 2: loss") and last.startswith("step 3: loss")
