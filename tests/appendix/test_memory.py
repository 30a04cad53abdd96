import gc
import math
import os
from unittest import mock

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.appendix import memory

shapes = st.lists(st.integers(1, 20), min_size=1, max_size=3).map(tuple)
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


class FakeGpu:
    """Stands in for `torch.cuda`: one GPU."""

    def __init__(self):
        self.allocated, self.reserved = 0, 0

    def is_available(self):
        return True

    def memory_allocated(self):
        return self.allocated

    def memory_reserved(self):
        return self.reserved

    def empty_cache(self):
        self.reserved = self.allocated


def test_torch_counts_nothing_without_a_gpu():
    with mock.patch("torch.cuda.is_available", return_value=False):
        assert memory.torch_memory() is None
        assert memory.torch_hold_and_drop((2, 3)) == (None, None, None)


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("512, 143771\n", (512, 143771)),
        ("0, 81559", (0, 81559)),
        ("", None),
        ("[N/A], [N/A]\n", None),
        ("[Insufficient Permissions], 143771\n", None),
        ("No devices were found\n", None),
        ("512, 143771\n3, 143771\n", None),
    ],
)
def test_the_drivers_answer_is_read(text, found):
    assert memory.used_and_total(text) == found


@pytest.fixture
def no_restriction(monkeypatch):
    for name in ("JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def nvidia_smi(no_restriction, monkeypatch, tmp_path):
    """Put a program on the PATH that answers as nvidia-smi does, from a file."""
    taken = tmp_path / "taken"
    taken.write_text("25, 2000\n")
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat {taken}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return taken


def test_the_driver_is_asked_about_one_gpu(nvidia_smi, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert memory.gpu_memory() == (25, 2000)
    asked = (nvidia_smi.parent / "asked").read_text().split()
    assert asked == [
        "--id=2",
        "--query-gpu=memory.used,memory.total",
        "--format=csv,noheader,nounits",
    ]
    nvidia_smi.write_text("1500, 2000\n")
    assert memory.percent_used() == 75


def test_without_a_gpu_there_is_no_memory_and_no_process(no_restriction, monkeypatch):
    monkeypatch.setattr(memory.subprocess, "Popen", lambda *args, **named: pytest.fail())
    monkeypatch.setattr(memory.shutil, "which", lambda name: None)
    assert memory.gpu_memory() is None
    assert memory.percent_after(memory.JAX_LINES) is None


def test_a_driver_without_an_answer_counts_as_no_gpu(nvidia_smi):
    nvidia_smi.write_text("No devices were found\n")
    assert memory.percent_after(["pass"]) is None


def takes(file, used):
    """Return a line of Python after which the driver says that `used` MiB are taken."""
    return f"open({str(file)!r}, 'w').write('{used}, 2000')"


def test_memory_is_read_before_the_lines_and_after_each(nvidia_smi):
    lines = ["x = rows", takes(nvidia_smi, 1500), "assert x == 100", takes(nvidia_smi, 200)]
    assert memory.percent_after(lines) == [1, 1, 75, 75, 10]


def test_the_process_has_only_the_variables_that_are_meant(nvidia_smi, monkeypatch):
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", ".1")
    monkeypatch.setenv("BOOK_TEST", "kept")
    lines = [
        "import os",
        "assert 'XLA_CLIENT_MEM_FRACTION' not in os.environ",
        "assert os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] == 'false'",
        "assert os.environ['BOOK_TEST'] == 'kept'",
    ]
    got = memory.percent_after(lines, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    assert got == [1] * 5


def test_a_line_that_fails_is_named(nvidia_smi):
    with pytest.raises(RuntimeError, match="ended at: 1 / 0"):
        memory.percent_after(["x = 1", "1 / 0", "y = 2"])


def test_what_jax_is_asked_to_do_runs(nvidia_smi, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr(memory, "visible_gpu", lambda: "0")
    nvidia_smi.write_text("25, 40\n")
    assert memory.percent_after(memory.JAX_LINES) == [62] * 5


def test_what_torch_is_asked_to_do_runs(nvidia_smi, monkeypatch):
    on_cpu = [line.replace("'cuda'", "'cpu'") for line in memory.TORCH_LINES]
    nvidia_smi.write_text("25, 40\n")
    assert memory.percent_after(on_cpu) == [62] * 6


def test_the_settings_are_those_that_jax_reads():
    for variables in memory.JAX_SETTINGS:
        assert set(variables) <= set(memory.MEMORY_VARIABLES)
        assert memory.gpu_options(**variables) != memory.gpu_options()


def test_torch_keeps_what_a_tensor_leaves():
    gpu = FakeGpu()

    class Tensor:
        def __del__(self):
            gpu.allocated = 0

    def ones(shape, device):
        assert device == "cuda"
        gpu.allocated, gpu.reserved = 24, 40
        return Tensor()

    with mock.patch("torch.cuda", gpu), mock.patch("torch.ones", ones):
        assert memory.torch_hold_and_drop((2, 3)) == ((24, 40), (0, 40), (0, 0))


def test_first_operation_gives_an_array():
    assert memory.first_jax_operation().tolist() == [1.0]


def test_jax_memory_on_a_cpu_is_none():
    assert jax.devices()[0].platform == "cpu"
    assert memory.jax_memory() is None


def test_jax_memory_on_a_device_that_reports():
    stats = {"bytes_in_use": 2**28, "bytes_limit": 3 * 2**30, "num_allocs": 3}
    device = mock.Mock()
    device.memory_stats.return_value = stats
    with mock.patch("jax.devices", return_value=[device]):
        assert memory.jax_memory() == {"bytes_in_use": "0.2 GiB", "bytes_limit": "3.0 GiB"}


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


def test_growth_is_set_on_every_gpu():
    grown = {}
    with (
        mock.patch("tensorflow.config.list_physical_devices", return_value=["a", "b"]),
        mock.patch("tensorflow.config.experimental.set_memory_growth", grown.__setitem__),
        mock.patch("tensorflow.config.experimental.get_memory_growth", grown.get),
    ):
        assert memory.tensorflow_grow_on_demand() == [True, True]


def test_growth_without_a_gpu():
    with mock.patch("tensorflow.config.list_physical_devices", return_value=[]):
        assert memory.tensorflow_grow_on_demand() == []


@settings(max_examples=20, deadline=None)
@given(shapes)
def test_array_is_counted_while_it_lives(shape):
    gc.collect()
    assert memory.hold_and_drop(shape) == (4 * math.prod(shape), 0)


def test_live_bytes_counts_each_array():
    gc.collect()
    start = memory.live_bytes()
    arrays = [jnp.ones(3), jnp.ones((2, 2), jnp.int8)]
    assert memory.live_bytes() - start == 3 * 4 + 4
    del arrays


@settings(max_examples=20, deadline=None)
@given(shapes)
def test_bytes_agree_between_the_frameworks(shape):
    assert set(memory.array_bytes(shape).values()) == {4 * math.prod(shape)}
    assert memory.array_bytes_tensorflow(shape) == 4 * math.prod(shape)


def test_memory_over_time_goes_up_and_down_with_the_array():
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("there is no /proc")
    gc.collect()
    moments = memory.memory_over_time((500, 500))
    arrays = {moment: parts["JAX arrays"] for moment, parts in moments.items()}
    assert arrays == {"before": 0, "with the array": 1_000_000, "without it": 0}
    assert all(parts["the process"] >= 0 for parts in moments.values())
    assert memory.process_bytes() > 10**7
