import contextlib
import os
import pathlib
import statistics
import tempfile
import types

import numpy as np
import pytest
import torch
from torch._inductor import codecache, cpu_vec_isa

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


def test_the_cache_of_torch_is_empty_and_then_what_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(race, "after_a_first_program", contextlib.nullcontext)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with race.empty_torch_cache():
        folder = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert list(folder.iterdir()) == []
    assert not folder.exists()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    with race.empty_torch_cache():
        pass
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


def test_the_headers_lie_where_other_programs_find_them(monkeypatch, tmp_path):
    others = race.headers_folder()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert race.headers_folder() == others
    assert tempfile.gettempdir() == str(tmp_path)
    with race.empty_torch_cache():
        assert codecache._HEADER_DIR == others
        torch.compile(lambda x: torch.tanh(x) + 2)(torch.ones(64))
    assert not list(tmp_path.rglob("*.gch"))


def test_without_a_compiler_the_cache_is_empty_all_the_same():
    config = torch._inductor.config
    torch._dynamo.reset()
    with config.patch({"cpp.cxx": ("no-such-compiler",), "fx_graph_cache": False}):
        with race.empty_torch_cache():
            with pytest.raises(torch._inductor.exc.InductorError):
                torch.compile(lambda x: torch.tanh(x) + 4)(torch.ones(64))


def test_a_first_program_does_not_pay_what_only_the_first_in_a_process_does():
    counters = torch._dynamo.utils.counters
    # As in a process that has not compiled before.
    torch._dynamo.reset()
    counters.clear()
    with race.empty_torch_cache():
        assert counters["stats"]["unique_graphs"] == 1
        torch.compile(lambda x: torch.tanh(x) + 3)(torch.ones(64))
        assert counters["stats"]["unique_graphs"] == 2


def test_the_cache_of_torch_needs_no_trial_of_instructions():
    found = []
    # What one test has tried out, another one does not try again.
    cpu_vec_isa.valid_vec_isa_list.cache_clear()
    with race.empty_torch_cache():
        function = torch.compile(lambda x: torch.tanh(x) + 1)
        function(torch.ones(64))
        folder = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        found += [path.read_text() for path in folder.rglob("*.cpp")]
    assert any("tanh" in text for text in found)
    assert not any("__avx_chk_kernel" in text for text in found), found
    assert torch._inductor.config.cpp.vec_isa_ok is None


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
