"""The committed records against a fresh compile, as far as this machine can compile."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import jax
import pytest

from _compile import compiling, hlo, jaxprs, origins
from _compile.__main__ import find_all
from _compile.traffic import traffic
from compiled import program_files as store
from compiled.options import compile_targets, programs_folder
from executed.options import Options
from executed.source.snippets import Library

ROOT = pathlib.Path(__file__).parents[2]
ENGINE = ROOT / "docs" / "_ext"
OPTIONS = Options.from_file(ROOT / "conf.py")
RECORDS, TARGETS = programs_folder(OPTIONS), compile_targets(OPTIONS)
PROGRAMS, PROBLEMS = find_all(Library.of(OPTIONS))
COMPILED = [program for program in PROGRAMS.values() if program.kind == "COMPILED"]
# Those whose programs a page shows line by line.
SHOWN = [program for program in COMPILED if program.name.startswith("compiled.")]
COMPILERS = ("libtpu", "jax_cuda13_plugin", "igraph")
ABSENT = [name for name in COMPILERS if importlib.util.find_spec(name) is None]


def record_of(program):
    record, state = store.state(RECORDS, program, TARGETS)
    assert state.current, f"{program.title} is {state}"
    return record


def for_the_cpu(program):
    """Return the record of a program; a kernel of a TPU is none for a CPU."""
    record = record_of(program)
    if "cpu" in record.refused:
        pytest.skip(record.refused["cpu"])
    return record


def same_version(record):
    if record.versions["jax"] != jax.__version__:
        pytest.skip(f"recorded with jax {record.versions['jax']}, here is {jax.__version__}")


def test_every_function_that_a_module_declares_can_be_found():
    assert PROBLEMS == []
    names = {program.definition.name for program in COMPILED}
    assert names == {
        *("selu", "softmax", "matrix_product", "convolution"),
        *("attention_layer", "running_average", "gradient"),
        *("loop_gradient", "loop_remat_gradient", "scan_gradient", "scan_remat_gradient"),
        *("loop_offload_gradient", "scan_offload_gradient"),
        *("attention", "plain_attention", "narrow_softmax", "large_softmax", "sorted_rows"),
    }
    assert {path.name for path in RECORDS.glob("*.json")} == set(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.title)
def test_a_record_is_current(program):
    assert record_of(program)


def test_only_kernels_are_refused_and_only_where_pallas_has_no_backend_or_a_page_shows_it():
    refused = {p.name: {*record_of(p).refused} for p in COMPILED if record_of(p).refused}
    elsewhere = {name for name, target in TARGETS.items() if target.platform != "tpu"}
    shown = {"narrow_softmax", "large_softmax", "sorted_rows"}
    for name in ("softmax", "attention"):
        assert refused.pop(f"compiled.kernels.{name}") == elsewhere
    assert refused == {f"compiled.kernels.{name}": {*TARGETS} for name in shown}


@pytest.mark.parametrize("program", COMPILED, ids=lambda program: program.name)
def test_tracing_and_lowering_give_what_was_recorded(program):
    record = record_of(program)
    same_version(record)
    function = compiling.load(program)
    traced = function.trace(*compiling.abstract(program.arguments))
    assert str(traced.jaxpr).splitlines() == record.jaxpr
    assert jaxprs.operations(traced.jaxpr.jaxpr) == record.operations
    for part in record.stablehlo:
        for target in part.targets:
            platform = TARGETS[target].platform
            lowered = traced.lower(lowering_platforms=(platform,))
            assert compiling.stablehlo(lowered) == part.text


@pytest.mark.parametrize("program", SHOWN, ids=lambda program: program.name)
def test_each_line_of_a_program_has_the_lines_of_the_code_that_it_comes_from(program):
    record = record_of(program)
    texts = [(record.jaxpr, record.origins)]
    texts += [(part.text, part.origins) for part in record.stablehlo]
    texts += [(compiled.hlo, compiled.origins) for compiled in record.targets.values()]
    code = ["", *program.code.splitlines()]
    for text, kept in texts:
        runs = [run.partition("*") for run in kept.split(" ")]
        assert sum(int(times or 1) for _, _, times in runs) == len(text)
        numbers = {number for run, _, _ in runs for number in re.split("[/,]", run)} - {"0"}
        assert numbers and all(code[int(number)].strip() for number in numbers)
    # Where a docstring or a blank line is added, the record is current and its lines are not.
    traced = compiling.load(program).trace(*compiling.abstract(program.arguments))
    now = origins.runs(origins.of_jaxpr(traced.jaxpr, compiling.file_of(program)))
    named = [set(re.findall(r"(?<![*\d])\d+", kept)) for kept in (now, record.origins)]
    assert named[0] == named[1]


@pytest.mark.parametrize("program", COMPILED, ids=lambda program: program.name)
def test_the_program_for_the_cpu_has_the_recorded_operations_and_sizes(program):
    record = for_the_cpu(program)
    same_version(record)
    function = compiling.load(program)
    arguments = compiling.abstract(program.arguments)
    compiled = compiling.compile_for(function, arguments)
    recorded = record.targets["cpu"]
    memory = compiling.memory(compiled)
    for part in ("arguments", "results"):
        assert getattr(memory, part) == getattr(recorded.memory, part)

    def computed(lines):
        kernels = hlo.Optimized(lines).kernels()
        return {name for kernel in kernels for name in kernel.operations}

    # How they are put together depends on the processor and on the number of its cores.
    assert computed(hlo.cleaned(compiled.as_text())) == computed(recorded.hlo)
    flops = compiling.cost(compiled).flops
    assert flops == pytest.approx(recorded.cost.flops, rel=0.05)


@pytest.mark.parametrize("program", COMPILED, ids=lambda program: program.name)
def test_what_is_said_of_a_program_stands_in_its_text(program):
    for compiled in record_of(program).targets.values():
        text = hlo.Optimized(compiled.hlo)
        assert text.kernels() == compiled.kernels
        assert (len(text.copies()), text.loops) == (compiled.copies, compiled.loops)
        assert traffic(text) == compiled.traffic


@pytest.mark.parametrize("program", COMPILED, ids=lambda program: program.name)
def test_the_bytes_counted_in_a_text_are_those_that_the_compiler_counts(program):
    # Only the CPU's have no other memory. What counts a loop's rounds is left out in the text.
    compiled = for_the_cpu(program).targets["cpu"]
    assert 0 <= compiled.cost.bytes - compiled.traffic <= (400 if compiled.loops else 0)


@pytest.mark.skipif(bool(ABSENT), reason=f"compiling for all devices needs {', '.join(ABSENT)}")
def test_a_fresh_compile_for_all_devices_gives_the_committed_records(tmp_path):
    names = ["fusion.selu", "fusion.softmax", "fusion.gradient"]
    same_version(record_of(PROGRAMS["compiled.fusion.selu.json"]))
    for part in (
        "conf.py",
        "pyproject.toml",
        "snippets",
        "docs/_targets",
        "docs/_recorded/compiled",
    ):
        path = tmp_path / part
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, path)
    done = subprocess.run(
        [sys.executable, "-m", "_compile", "--again", *names],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "docs", ENGINE)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("unchanged") == len(names)
