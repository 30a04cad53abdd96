import pathlib
import runpy

import IPython
import pytest

from snippets.timing import timer

PATH = pathlib.Path(__file__).parents[2] / "docs" / "_trial" / "prelude.py"


@pytest.fixture
def shell(monkeypatch):
    """Return a shell in whose kernel the prelude was executed, as get_ipython gives it."""
    shell = IPython.core.interactiveshell.InteractiveShell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    shell.prelude = runpy.run_path(str(PATH))
    return shell


def test_the_numbers_of_the_timer_are_those_of_a_trial_from_the_next_cell_on(shell):
    numbers = shell.prelude["NUMBERS"]
    for name, (ours, _) in numbers.items():
        shell.run_cell(f"{name} = {getattr(timer, name)!r}")
        assert getattr(timer, name) == ours
    assert {name: shell.user_ns[name] for name in numbers} == {
        name: trial for name, (_, trial) in numbers.items()
    }


def test_a_page_keeps_its_own_numbers(shell):
    shell.run_cell("LONG, other = 2, 1.5")
    assert (shell.user_ns["LONG"], shell.user_ns["other"]) == (2, 1.5)
    assert "LONG_ROUNDS" not in shell.user_ns
