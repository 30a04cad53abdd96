"""The recorder, as far as it goes without the compilers of other devices."""

import pytest

from _compile import compiling
from _compile.jaxprs import layered, operations, picture
from compiled.declared import ProgramError
from compiled.options import Target
from compiled.programs import ProgramRecord, ScaleRecord
from tests.engine.compiled.samples import Sample

CPU = {"cpu": Target("cpu", "CPU", chips=(1,), packages=("jax",))}


def test_abstract_arguments():
    pytest.importorskip("jax")
    axes = []
    result = compiling.abstract(
        [{"a": "float32[2,3]"}, ["int32[4*chips@data,5]", "float32[]"]],
        chips=16,
        placed=lambda names: axes.append(names),
    )
    (first, (second, third)) = result
    assert (first["a"].shape, str(first["a"].dtype)) == ((2, 3), "float32")
    assert (second.shape, str(second.dtype), third.shape) == ((64, 5), "int32", ())
    assert axes == [(None, None), ("data", None), ()]
    for wrong in ("float32", "float32[2", 3, "float32[a]", "float32[2**3]", "float32[-1]"):
        with pytest.raises(ProgramError, match="no abstract argument"):
            compiling.abstract(wrong)


@pytest.fixture
def book(tmp_path):
    made = Sample(tmp_path)
    made.snippet()
    return made


def test_a_program_is_compiled_from_its_excerpt(book, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setattr("_compile.jaxprs.layered", lambda nodes, edges: (nodes, edges))
    record = compiling.record(book.find(), CPU, "a command")
    assert isinstance(record, ProgramRecord)
    assert (record.function, record.command) == ("a.code.double", "a command")
    assert record.operations == {"mul": 1}
    assert record.targets["cpu"].memory.arguments == 128
    (kernel,) = record.targets["cpu"].kernels
    assert kernel.operations == ("mul",)
    assert f"%{kernel.name} = " in record.targets["cpu"].hlo[kernel.line - 1]
    assert record.stablehlo[0].targets == ["cpu"]
    assert list(record.versions) == ["python", "jax"]
    nodes, edges = record.picture
    assert [node["label"] for node in nodes] == ["x", "mul 2", "result"]
    assert edges == [(0, 1), (1, 2)]


def test_a_step_is_compiled_for_each_number_of_devices(book):
    pytest.importorskip("jax")
    record = compiling.record(book.find("code.double", "SCALED"), CPU, "a command")
    assert isinstance(record, ScaleRecord)
    (run,) = record.runs
    assert (run.case, run.target, run.chips, run.batch) == ("it grows", "cpu", 1, 2)
    assert run.collectives == []


def test_a_constant_is_told_from_an_argument_in_each_call_of_one_function(monkeypatch):
    jax = pytest.importorskip("jax")
    monkeypatch.setattr("_compile.jaxprs.layered", lambda nodes, edges: (nodes, edges))
    inner = jax.jit(lambda x, y: x * y)
    jaxpr = jax.make_jaxpr(lambda x: inner(inner(x, 2.0), x))(1.0).jaxpr
    nodes, edges = picture(jaxpr)
    assert [node["label"] for node in nodes] == ["x", "mul 2", "mul", "result"]
    assert edges == [(0, 1), (1, 2), (0, 2), (2, 3)]
    assert operations(jaxpr) == {"mul": 2}


def test_a_drawing_has_layers_and_nothing_lies_upon_another():
    pytest.importorskip("igraph")
    nodes = [{"label": str(n), "detail": "", "kind": "operation"} for n in range(6)]
    drawn = layered(nodes, [(0, 1), (1, 2), (0, 2), (3, 2), (4, 2), (2, 5)])
    places = [(node.x, node.y) for node in drawn.nodes]
    assert len(set(places)) == len(places)
    for edge in drawn.edges:
        levels = [places[edge.from_][1], *(y for _, y in edge.through), places[edge.to][1]]
        assert levels == list(range(int(levels[0]), int(levels[-1]) + 1))
    assert layered(nodes, []) == layered(nodes, [])


def test_the_compilers_find_their_environment(monkeypatch):
    monkeypatch.delenv("A_COMPILER", raising=False)
    compiling.prepare({"x": Target("tpu", environment={"A_COMPILER": "quiet"})})
    assert compiling.os.environ.pop("A_COMPILER") == "quiet"
