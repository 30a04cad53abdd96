"""Where the lines of a program come from, against what JAX itself says of its equations."""

import re

import pytest

from _compile import compiling, hlo, jaxprs, origins
from compiled.options import Target
from tests.engine.compiled.samples import Sample

CODE = """
import jax
import jax.numpy as jnp

COMPILED = {"three": ["float32[8]"]}


def halved(x):
    return jnp.cos(x)


def three(x):
    def step(i, v):
        return jnp.tanh(v)

    y = jnp.exp(x)
    z = jax.lax.fori_loop(0, 3, step, y)
    return jnp.where(z > 0, halved(z), jnp.sort(z))
"""


@pytest.fixture
def made(tmp_path):
    """Return a program, its function traced, and the lines of its code by what stands in them."""
    pytest.importorskip("jax")
    book = Sample(tmp_path)
    book.snippet(text=CODE)
    program = book.find("code.three")
    traced = compiling.load(program).trace(*compiling.abstract(program.arguments))
    lines = program.code.splitlines()
    numbers = {
        word: next(n for n, line in enumerate(lines, 1) if word in line)
        for word in ("cos(", "exp(", "tanh(", "fori_loop(", "where(")
    }
    return program, traced, {word.rstrip("("): str(number) for word, number in numbers.items()}


def equations(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs.inner_jaxprs(equation):
            yield from equations(inner)


def said_by_jax(jaxpr, file):
    """Return the innermost line of each operation, where JAX names one in this file."""
    from jax._src import source_info_util

    said = {}
    for equation in equations(jaxpr):
        summary = source_info_util.summarize(equation.source_info)
        if match := re.match(rf"{re.escape(file)}:(\d+)", summary):
            said.setdefault(equation.primitive.name, set()).add(match[1])
    return said


def test_a_jaxpr_comes_from_the_lines_that_jax_names(made):
    program, traced, at = made
    file = compiling.file_of(program)
    said = said_by_jax(traced.jaxpr.jaxpr, file)
    assert said["exp"] == {at["exp"]} and said["cos"] == {at["cos"]}
    text = str(traced.jaxpr).splitlines()
    found = origins.of_jaxpr(traced.jaxpr, file)
    assert len(found) == len(text)
    innermost = {}
    for line, origin in zip(text, found, strict=True):
        if match := re.match(r".* = (\w+)", line):
            innermost.setdefault(match[1], set()).add(origin.partition("/")[0])
    assert {name: innermost[name] for name in said} == said
    # A function that is called comes from both lines, and a loop's body from that of the loop.
    named = (re.search(r"= (\w+)", line) for line in text)
    by_name = {match[1]: origin for match, origin in zip(named, found, strict=True) if match}
    assert by_name["cos"] == f"{at['cos']}/{at['where']}"
    assert by_name["tanh"] == f"{at['tanh']}/{at['fori_loop']}"
    # JAX has no line for what a function of its own does inside: it comes from the call.
    assert by_name["select_n"] == at["where"]
    closing = next(n for n, line in enumerate(text) if line.strip() == "length=3")
    assert (found[0], found[closing], found[-1]) == ("0", at["fori_loop"], "0")


def test_an_operation_of_a_picture_comes_from_its_line(made, monkeypatch):
    program, traced, at = made
    monkeypatch.setattr("_compile.jaxprs.layered", lambda nodes, edges: nodes)
    nodes = jaxprs.picture(traced.jaxpr.jaxpr, compiling.file_of(program))
    by_name = {node["label"].split()[0].rstrip(","): node.get("origin") for node in nodes}
    assert (by_name["exp"], by_name["scan"]) == (at["exp"], at["fori_loop"])
    assert by_name["cos"] == f"{at['cos']}/{at['where']}"
    assert (by_name["select_n"], by_name["x"]) == (at["where"], None)


def test_a_lowered_program_comes_from_the_same_lines(made):
    program, traced, at = made
    lowered = traced.lower(lowering_platforms=("tpu",))
    found = origins.of_stablehlo(lowered.as_text(debug_info=True), compiling.file_of(program))
    text = compiling.stablehlo(lowered)
    assert len(found) == len(text)
    by_name = {
        match[1]: origin
        for line, origin in zip(text, found, strict=True)
        if (match := re.search(r"stablehlo\.(exponential|cosine|tanh)\b", line))
    }
    assert by_name["exponential"] == at["exp"]
    assert by_name["cosine"] == f"{at['cos']}/{at['where']}"
    assert by_name["tanh"].split("/")[0] == at["tanh"]


def test_an_optimized_program_comes_from_the_lines_of_the_operations_that_it_names(made):
    program, traced, at = made
    file = compiling.file_of(program)
    said = said_by_jax(traced.jaxpr.jaxpr, file)
    text = traced.lower().compile().as_text()
    read = hlo.Optimized(hlo.cleaned(text))
    found = origins.of_hlo(text, read, file)
    assert set(found) == {i.line for i in read.named.values()}
    checked = set()
    for i in read.named.values():
        if i.operation in ("exp", "cos", "tanh") and i.opcode != "fusion":
            assert {found[i.line].partition("/")[0]} == said[i.operation]
            checked.add(i.operation)
    assert checked >= {"exp", "cos", "tanh"}
    # A kernel comes from all that is in it, and what is in none of them from nothing.
    kernels = [found[kernel.line] for kernel in read.kernels()]
    assert set(at.values()) <= set(re.findall(r"\d+", " ".join(kernels)))
    assert any("," in kernel for kernel in kernels)
    assert {found[i.line] for i in read.computations[read.entry] if i.name == "x.1"} == {"0"}


def test_a_frame_is_looked_for_in_the_file_alone():
    text = "\n".join(
        [
            "HloModule a",
            "",
            'FileNames\n1 "/elsewhere/train.py"\n2 "<a.b>"\n',
            'FunctionNames\n1 "<a.b>"\n',
            "FileLocations",
            "1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=1 end_column=2}",
            "2 {file_name_id=2 function_name_id=1 line=20 end_line=20 column=1 end_column=2}",
            "3 {file_name_id=2 function_name_id=1 line=6 end_line=6 column=1 end_column=2}",
            "",
            "StackFrames",
            "1 {file_location_id=1 parent_frame_id=1}",
            "2 {file_location_id=2 parent_frame_id=2}",
            "3 {file_location_id=3 parent_frame_id=3}",
            "4 {file_location_id=1 parent_frame_id=4}",
            "",
            "ENTRY %main (x: f32[4]) -> f32[4] {",
            "  %x = f32[4]{0} parameter(0)",
            '  %a = f32[4]{0} exponential(%x), metadata={op_name="e" stack_frame_id=4}',
            '  %b = f32[4]{0} negate(%a), metadata={op_name="e" stack_frame_id=1}',
            '  ROOT %c = f32[4]{0} negate(%b), metadata={op_name="e" stack_frame_id=2}',
            "}",
        ]
    )
    read = hlo.Optimized(hlo.cleaned(text))
    found = origins.of_hlo(text, read, "<a.b>")
    assert [found[read.named[name].line] for name in "xabc"] == ["0", "6/20", "0", "20"]


def test_what_is_kept_is_short():
    assert origins.runs(["0", "0", "0", "6/20,19", "7", "7"]) == "0*3 6/20,19 7*2"
    assert origins.runs([]) == ""


def test_a_record_has_an_origin_for_each_line(made, monkeypatch):
    program, _, at = made
    monkeypatch.setattr("_compile.jaxprs.layered", lambda nodes, edges: (nodes, edges))
    record = compiling.record(program, {"cpu": Target("cpu", "CPU")}, "a command")
    (lowered,), compiled = record.stablehlo, record.targets["cpu"]
    for text, kept in (
        (record.jaxpr, record.origins),
        (lowered.text, lowered.origins),
        (compiled.hlo, compiled.origins),
    ):
        counts = [int(run.partition("*")[2] or 1) for run in kept.split(" ")]
        assert sum(counts) == len(text)
        assert set(at.values()) <= set(re.findall(r"\d+", re.sub(r"\*\d+", "", kept)))
