import statistics
import types

import numpy as np
import pytest
import torch

from snippets.benchmarks import race
from snippets.programs.timer import Comparison


def test_torch_uses_the_cpu_without_an_accelerator(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: None)
    assert race.torch_tensor(np.ones(2, np.float32)).device.type == "cpu"


def timed(first_call, *samples):
    return types.SimpleNamespace(
        first_call=first_call, median=statistics.median(samples), latency=list(samples)
    )


def compared(other, compiled):
    return Comparison("a/b", {"other": other, "compiled": compiled})


def test_without_a_compiler_there_is_none(monkeypatch):
    monkeypatch.setattr(race.shutil, "which", lambda name: None)
    assert not race.has_cpp_compiler()


def test_the_compiler_is_looked_for_by_name(monkeypatch):
    monkeypatch.setenv("CXX", "my-own-c++")
    monkeypatch.setattr(race.shutil, "which", lambda name: name == "my-own-c++")
    assert race.has_cpp_compiler()


def test_without_a_compiler_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(race.shutil, "which", lambda name: None)
    monkeypatch.setattr(torch, "compile", pytest.fail)
    race.compile_something_first()


def test_a_first_program_does_not_pay_what_only_the_first_in_a_process_does():
    counters = torch._dynamo.utils.counters
    # As in a process that has not compiled before.
    torch._dynamo.reset()
    counters.clear()
    race.compile_something_first()
    assert counters["stats"]["unique_graphs"] == 1
    torch.compile(lambda x: torch.tanh(x) + 3)(torch.ones(64))
    assert counters["stats"]["unique_graphs"] == 2


def test_largest_difference():
    assert race.largest_difference(np.float32([1, 2]), np.array([1.0, 2.5])) == 0.5


@pytest.mark.parametrize(
    ("ours", "size"),
    [
        ({10: 2.0, 100: 0.5, 1000: 0.5}, 100),
        ({10: 0.5, 100: 2.0, 1000: 0.5}, 1000),
        ({10: 0.5, 100: 1.0, 1000: 0.5}, 1000),
        ({10: 0.5, 100: 0.5, 1000: 1.0}, None),
        ({10: 0.5, 100: 0.5, 1000: 0.5}, 10),
    ],
)
def test_it_pays_from_the_size_that_no_larger_one_takes_back(ours, size):
    races = {n: compared(timed(1, 1.0), timed(1, seconds)) for n, seconds in ours.items()}
    assert race.pays_from(races, "other", "compiled") == size
