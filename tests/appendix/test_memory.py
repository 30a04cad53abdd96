import gc
import os

import jax
import jax.numpy as jnp
import pytest

from snippets.appendix import memory

NAMES = (
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "gpu"),
    [
        ({}, "0"),
        ({"JAX_PLATFORMS": "cuda,cpu"}, "0"),
        ({"JAX_PLATFORMS": "cpu"}, ""),
        ({"CUDA_VISIBLE_DEVICES": ""}, ""),
        ({"CUDA_VISIBLE_DEVICES": "3,4"}, "3"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8f1c"}, "GPU-8f1c"),
    ],
)
def test_the_gpu_is_the_first_that_a_program_may_use(monkeypatch, variables, gpu):
    for name in ("JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert memory.visible_gpu() == gpu


@pytest.fixture
def no_restriction(monkeypatch):
    for name in ("JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def nvidia_smi(no_restriction, monkeypatch, tmp_path):
    """Put a program on the PATH that answers as nvidia-smi does, from a file."""
    answer = tmp_path / "answer"
    answer.write_text("25\n")
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat {answer}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return answer


@pytest.fixture
def process_has(monkeypatch):
    """Say how much main memory any process has, also where there is no /proc."""
    monkeypatch.setattr(memory, "process_bytes", lambda process: 7)


def test_the_driver_is_asked_about_one_gpu(nvidia_smi, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert memory.gpu_bytes() == 25 * 2**20
    asked = (nvidia_smi.parent / "asked").read_text().split()
    assert asked == ["--id=2", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]


@pytest.mark.parametrize(
    "answer",
    ["", "[N/A]\n", "[Insufficient Permissions]\n", "No devices were found\n", "512\n3\n"],
)
def test_an_answer_without_one_number_counts_as_no_gpu(nvidia_smi, answer):
    nvidia_smi.write_text(answer)
    assert memory.gpu_bytes() is None


def test_without_a_gpu_the_main_memory_is_left(no_restriction, monkeypatch, process_has):
    monkeypatch.setattr(memory.shutil, "which", lambda name: None)
    assert memory.gpu_bytes() is None
    assert memory.memory_after({"nothing": "pass"}) == {"nothing": {"main memory": 7}}


def test_both_memories_are_read_after_each_line(nvidia_smi, process_has):
    def takes(amount):
        return f"open({str(nvidia_smi)!r}, 'w').write('{amount}')"

    steps = {"none": "x = 1", "much": takes(1500), "some": f"assert x == 1; {takes(200)}"}
    after = memory.memory_after(steps)
    assert list(after) == ["none", "much", "some"]
    assert [moment["GPU memory"] >> 20 for moment in after.values()] == [25, 1500, 200]
    assert all(moment["main memory"] == 7 for moment in after.values())


def test_the_process_has_none_of_the_switches(process_has, monkeypatch):
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", ".1")
    monkeypatch.setenv("BOOK_TEST", "kept")
    memory.memory_after(
        {
            "import": "import os",
            "switch": "assert 'XLA_CLIENT_MEM_FRACTION' not in os.environ",
            "other": "assert os.environ['BOOK_TEST'] == 'kept'",
        }
    )


def test_a_line_that_fails_is_named(process_has):
    with pytest.raises(RuntimeError, match="ended at: 1 / 0"):
        memory.memory_after({"a": "x = 1", "b": "1 / 0", "c": "y = 2"})


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="there is no /proc")
@pytest.mark.parametrize(
    ("steps", "variables", "kept"),
    [
        (memory.JAX_STEPS, {}, 0),
        (memory.TORCH_STEPS, {}, 0),
        (memory.TENSORFLOW_STEPS, {"TF_ENABLE_ONEDNN_OPTS": "1"}, 2**28),
    ],
    ids=["jax", "torch", "tensorflow"],
)
def test_who_gives_the_memory_of_an_array_back(steps, variables, kept, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    found = memory.memory_after(steps, **variables)
    after = {what: taken["main memory"] for what, taken in found.items()}
    near = 2**26
    assert after["256 MiB"] - after["one number"] == pytest.approx(2**28, abs=near)
    assert after["deleted"] - after["one number"] == pytest.approx(kept, abs=near)
    if kept:
        assert after["256 MiB again"] == pytest.approx(after["256 MiB"], abs=near)


def test_the_switches_of_the_page_are_those_that_jax_reads():
    for variables in (
        {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        {"XLA_CLIENT_MEM_FRACTION": ".50"},
        {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
    ):
        assert set(variables) <= set(memory.MEMORY_VARIABLES)
        assert memory.gpu_options(**variables) != memory.gpu_options()


def test_first_operation_gives_an_array():
    assert memory.first_jax_operation().tolist() == [1.0]


def test_default_leaves_preallocation_and_fraction_to_xla():
    assert memory.gpu_options() == {"allocator": "default"}


@pytest.mark.parametrize(
    ("variables", "option", "value"),
    [
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, "preallocate", False),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, "preallocate", True),
        ({"XLA_CLIENT_MEM_FRACTION": ".5"}, "memory_fraction", 0.5),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"}, "memory_fraction", 0.5),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, "allocator", "platform"),
    ],
)
def test_each_variable_is_read(variables, option, value):
    assert memory.gpu_options(**variables)[option] == value


def test_a_wrong_allocator_is_an_error():
    with pytest.raises(ValueError, match="XLA_PYTHON_CLIENT_ALLOCATOR"):
        memory.gpu_options(XLA_PYTHON_CLIENT_ALLOCATOR="arena")


def test_a_misspelled_name_is_no_error():
    assert memory.gpu_options(XLA_CLIENT_PREALLOCATE="false") == memory.gpu_options()


def test_switches_of_this_process_do_not_count(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    assert memory.gpu_options() == {"allocator": "default"}
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_variables_are_put_back():
    memory.gpu_options(XLA_CLIENT_MEM_FRACTION=".5")
    assert "XLA_CLIENT_MEM_FRACTION" not in os.environ


def test_both_names_raise(raises_declared):
    raises_declared(memory.both_fractions)


def test_late_changes_raise_where_a_framework_checks(raises_declared):
    raises_declared(memory.jax_change_late)
    raises_declared(memory.tensorflow_change_late)


def test_late_variables_are_ignored():
    assert memory.jax_variable_late() == jax.devices()
    assert os.environ["JAX_PLATFORMS"] == "cpu"


def test_live_bytes_counts_each_array():
    gc.collect()
    start = memory.live_bytes()
    arrays = [jnp.ones(3), jnp.ones((2, 2), jnp.int8)]
    assert memory.live_bytes() - start == 3 * 4 + 4
    del arrays


def test_memory_over_time_goes_up_and_down_with_the_array():
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("there is no /proc")
    gc.collect()
    moments = memory.memory_over_time((500, 500))
    arrays = {moment: parts["JAX arrays"] for moment, parts in moments.items()}
    assert arrays == {"before": 0, "with the array": 1_000_000, "without it": 0}
    assert all(parts["the process"] >= 0 for parts in moments.values())
    assert memory.process_bytes() > 10**7
