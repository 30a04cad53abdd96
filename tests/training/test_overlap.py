"""Tests of snippets/training/overlap.py."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from _compile import hlo
from snippets.training import data_parallel, fsdp_by_layer
from snippets.training import overlap as page

RECORD = pathlib.Path("docs/_recorded/compiled/training.overlap.fsdp_step.scale.json")
HEADER = "HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}"
INNER = """
%multiplied (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  ROOT %product = f32[8,8]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%twice (q: f32[8,8]) -> f32[8,8] {
  %q = f32[8,8]{1,0} parameter(0)
  ROOT %nested = f32[8,8]{1,0} fusion(%q), kind=kOutput, calls=%multiplied
}

%added (r: f32[8,8]) -> f32[8,8] {
  %r = f32[8,8]{1,0} parameter(0)
  ROOT %sum = f32[8,8]{1,0} add(%r, %r)
}

%wrapped (t: f32[8,8]) -> f32[8,8] {
  %t = f32[8,8]{1,0} parameter(0)
  ROOT %all-to-all.9 = f32[8,8]{1,0} all-to-all(%t), dimensions={0}
}

%more (u: f32[8,8]) -> pred[] {
  %u = f32[8,8]{1,0} parameter(0)
  ROOT %yes = pred[] constant(true)
}
"""
# What a schedule holds, by a letter: S and D start and end a gather, S2 and D2 another one.
LINES = {
    "S": "%g.1 = (f32[1,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%x), dimensions={0}",
    "D": "%h.1 = f32[8,8]{1,0:T(8,128)(2,1)S(1)} all-gather-done(%g.1)",
    "S2": "%g.2 = ((f32[8,8]{1,0}), f32[1,8]{1,0}) reduce-scatter-start(%x), to_apply=%added",
    "D2": "%h.2 = f32[1,8]{1,0} reduce-scatter-done(%g.2)",
    "A": "%a.1 = ((f32[8,8]{1,0}), f32[8,8]{1,0}, u32[]) async-start(%x), calls=%wrapped",
    "DA": "%a.2 = f32[8,8]{1,0} async-done(%a.1), calls=%wrapped",
    "sync": "%r.1 = f32[8,8]{1,0} all-reduce(%x), to_apply=%added",
    "dot": "%d.1 = f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "fused": "%d.2 = f32[8,8]{1,0} fusion(%x), kind=kOutput, calls=%twice",
    "gemm": '%d.3 = f32[8,8]{1,0} custom-call(%x, %x), custom_call_target="__cublas$gemm"',
    "add": "%f.1 = f32[8,8]{1,0} fusion(%x), kind=kLoop, calls=%added",
    "move": "%c.1 = f32[8,8]{1,0} copy(%x)",
    "attention": '%d.4 = f32[8,8]{1,0} custom-call(%x), custom_call_target="__cudnn$fmhaSoftmax"',
    "call": "%d.5 = f32[8,8]{1,0} call(%x), to_apply=%twice",
    "part": "%e.1 = f32[8,8]{1,0} get-tuple-element(%x), index=0",
}
DONE = {"S": "D", "S2": "D2", "A": "DA"}
KIND = {"S": "all-gather", "S2": "reduce-scatter", "A": "all-to-all"}


def computation(head, words, last="ROOT %last = f32[8,8]{1,0} copy(%x)"):
    """Return a computation with these lines."""
    lines = ["%x = f32[8,8]{1,0} parameter(0)", *(LINES[word] for word in words), last]
    return f"\n{head} (x: f32[8,8]) -> f32[8,8] {{\n" + "".join(f"  {x}\n" for x in lines) + "}\n"


def program(words, **options):
    """Return a program whose entry has these lines."""
    return HEADER + "\n" + INNER + computation("ENTRY %main", words, **options)


def looped(words):
    """Return the same lines in a loop within a loop, with nothing else in the entry."""
    loop = "ROOT %while = f32[8,8]{1,0} while(%x), condition=%more, body="
    text = computation("%body", words) + computation("%outer", [], last=f"{loop}%body")
    return HEADER + "\n" + INNER + text + computation("ENTRY %main", [], last=f"{loop}%outer")


def told(text):
    """Return (kind, started, matmuls, fusions) of each collective."""
    return [(each.kind, each.started, each.matmuls, each.fusions) for each in page.overlaps(text)]


LOOPS = {
    "call": "call(%x), to_apply=%body",
    "two branches": "conditional(%p, %x, %x), true_computation=%body, false_computation=%added",
    "branches": "conditional(%p, %x, %x), branch_computations={%added, %body}",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_what_is_called_is_looked_into(loop):
    text = computation("%body", "S dot D".split())
    entry = computation("ENTRY %main", [], last=f"ROOT %last = f32[8,8]{{1,0}} {loop}")
    assert told(HEADER + "\n" + INNER + text + entry) == [("all-gather", True, 1, 0)]


def test_a_kernel_that_is_no_matmul_is_counted_by_itself():
    (gather,) = page.overlaps(program("S attention add D attention".split()))
    assert (gather.matmuls, gather.fusions, gather.kernels) == (0, 1, 1)


CASES = {
    "none": ("dot fused add", []),
    "nothing between": ("dot S D fused", [("all-gather", True, 0, 0)]),
    "what only moves": ("S move part D", [("all-gather", True, 0, 0)]),
    "a fusion": ("S add D dot", [("all-gather", True, 0, 1)]),
    "nested": ("S fused D", [("all-gather", True, 1, 0)]),
    "called": ("S call D", [("all-gather", True, 1, 0)]),
    "a library": ("S gemm dot add D", [("all-gather", True, 2, 1)]),
    "two that overlap": (
        "S dot S2 fused D add D2",
        [("all-gather", True, 2, 0), ("reduce-scatter", True, 1, 1)],
    ),
    "one in the other": (
        "S S2 dot D2 gemm D",
        [("all-gather", True, 2, 0), ("reduce-scatter", True, 1, 0)],
    ),
    "wrapped": ("A dot DA", [("all-to-all", True, 1, 0)]),
    "not asynchronous": ("sync dot", [("all-reduce", False, 0, 0)]),
    "one waits between": (
        "S sync dot D",
        [("all-gather", True, 1, 0), ("all-reduce", False, 0, 0)],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("make", [program, looped])
def test_what_is_between_start_and_done(make, case):
    words, expected = CASES[case]
    assert told(make(words.split())) == expected


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_starts_work_and_ends(seed):
    rng = np.random.default_rng(seed)
    words, running, expected = [], [], {}
    waiting = list(rng.permutation(list(KIND)))
    for _ in range(30):
        what = rng.choice(["start", "end", "dot", "fused", "gemm", "add", "move"])
        if what == "start" and waiting:
            running.append(waiting.pop())
            expected[running[-1]] = [0, 0]
            words.append(running[-1])
        elif what == "end" and running:
            words.append(DONE[running.pop(rng.integers(len(running)))])
        elif what in LINES:
            words.append(what)
            for each in running:
                expected[each][0] += what in ("dot", "fused", "gemm")
                expected[each][1] += what == "add"
    words += [DONE[each] for each in running]
    found = told(program(words))
    assert found == [(KIND[word], True, *counts) for word, counts in expected.items()]


@pytest.mark.parametrize("case", CASES)
def test_the_table_counts_as_the_page_does(case):
    words, expected = CASES[case]
    found = hlo.Optimized(looped(words.split()).splitlines()).beside_matmuls()
    assert [
        (kind, beside) for kind, several in sorted(found.items()) for beside in several
    ] == sorted((kind, matmuls > 0 if started else None) for kind, started, matmuls, _ in expected)


ON_A_TPU = """
%gathered (g: f32[1,8]) -> f32[8,8] {
  %g = f32[1,8]{1,0} parameter(0)
  ROOT %all-gather = f32[8,8]{1,0:T(8,128)} all-gather(%g), dimensions={0}
}

%async_collective_fusion.1 (k: f32[8,8]) -> f32[8,8] {
  %k = f32[8,8]{1,0} parameter(0)
  %again = f32[8,8]{1,0} all-gather(%k), dimensions={0}
  ROOT %product.1 = f32[8,8]{1,0} convolution(%k, %k), dim_labels=bf_io->bf
}

%all-reduce-scatter.1 (s: f32[8,8]) -> f32[1,8] {
  %s = f32[8,8]{1,0} parameter(0)
  ROOT %sum.1 = f32[8,8]{1,0} all-reduce(%s), to_apply=%added
}

ENTRY %main (x: f32[1,8]) -> f32[1,8] {
  %x = f32[1,8]{1,0} parameter(0)
  %async-collective-start = (f32[1,8]{1,0}, u32[]) fusion(%x), kind=kCustom, calls=%gathered
  %part = f32[1,8]{1,0} get-tuple-element(%async-collective-start), index=0
  %fusion.1 = (f32[1,8]{1,0}, u32[]) fusion(%part), kind=kCustom, calls=%async_collective_fusion.1
  %rest = f32[1,8]{1,0} get-tuple-element(%fusion.1), index=0
  %product.2 = f32[8,8]{1,0} get-tuple-element(%fusion.1), index=1
  %all-reduce.1 = f32[8,8]{1,0} all-reduce(%product.2), to_apply=%added
  %async-collective-done = f32[8,8]{1,0} fusion(%rest), kind=kCustom, calls=%gathered
  %all-gather.2 = f32[8,8]{1,0} all-gather(%x), dimensions={0}
  ROOT %fusion.2 = f32[1,8]{1,0} fusion(%all-gather.2), calls=%all-reduce-scatter.1
}
"""


def test_three_fusions_of_a_tpu_are_one_gather():
    assert told(HEADER + INNER + ON_A_TPU) == [
        ("all-gather", True, 1, 0),
        ("all-reduce", False, 0, 0),
        ("all-gather", False, 0, 0),
        ("reduce-scatter", False, 0, 0),
    ]


ON_A_SPARSE_CORE = """
%gathered (g: f32[1,8]) -> f32[8,8] {
  %g = f32[1,8]{1,0} parameter(0)
  ROOT %all-gather = f32[8,8]{1,0} all-gather(%g), dimensions={0}
}, execution_thread="sparsecore"

%body (x: f32[1,8]) -> f32[1,8] {
  %x = f32[1,8]{1,0} parameter(0)
  %c-start = ((), (), u32[]) custom-call-start(), custom_call_target="TODO(b/1)", \
called_computations={%gathered}
  %c-update = ((f32[1,8]), f32[8,8], u32[]) custom-call-update(%c-start, %x)
  %fusion.1 = f32[8,8]{1,0} fusion(%x), kind=kOutput, calls=%multiplied
  %c-done = f32[8,8]{1,0} custom-call-done(%c-update), frontend_attributes={}
  ROOT %fusion.2 = f32[8,8]{1,0} fusion(%c-done), kind=kOutput, calls=%multiplied
}

ENTRY %main (x: f32[1,8]) -> f32[1,8] {
  %x.1 = f32[1,8]{1,0} parameter(0)
  ROOT %loop = f32[1,8]{1,0} while(%x.1), condition=%cond, body=%body
}
"""


def test_three_calls_of_a_sparse_core_are_one_gather():
    text = HEADER + INNER + ON_A_SPARSE_CORE
    assert told(text) == [("all-gather", True, 1, 0)]
    assert hlo.Optimized(text.splitlines()).beside_matmuls() == {"all-gather": [True]}


def test_a_start_without_an_end_counts_to_the_end():
    assert told(program(["dot", "S", "dot", "fused"])) == [("all-gather", True, 2, 0)]


def test_the_example_of_the_page(capsys):
    page.report(page.EXAMPLE)
    assert capsys.readouterr().out.splitlines() == [
        "all-gather: 2, 2 asynchronous, 1 with a matmul between, 0 with another kernel",
        "all-reduce: 1, 0 asynchronous, 0 with a matmul between, 0 with another kernel",
    ]


def test_a_program_without_collectives_prints_nothing(capsys):
    page.report(jax.jit(lambda x: x @ x).lower(jnp.ones((8, 8))).compile().as_text())
    assert capsys.readouterr().out == ""


REFUSED = {
    "": "this is no HLO",
    "all-gather-start": "this is no HLO",
    "{ lambda ; a:f32[8]. let b:f32[8] = sin a in (b,) }": "this is no HLO",
    "HloModule jit_f, entry_computation_layout={}": "this HLO is not compiled",
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("function", [page.overlaps, page.report])
def test_other_texts_are_refused_in_words(function, text):
    with pytest.raises(ValueError, match=REFUSED[text]):
        function(text)


@pytest.mark.parametrize("dialect", ["stablehlo", "hlo"])
def test_a_lowered_program_is_refused(dialect):
    lowered = jax.jit(jnp.sin).lower(jnp.ones(8))
    with pytest.raises(
        ValueError, match="this is no HLO" if dialect == "stablehlo" else "no order yet"
    ):
        page.overlaps(lowered.as_text(dialect))


NETWORKS = fsdp_by_layer.at_once, fsdp_by_layer.by_layer, fsdp_by_layer.by_layer_twice


@pytest.mark.parametrize("network", NETWORKS)
def test_a_cpu_waits_for_each_collective_and_none_is_missed(network):
    with jax.set_mesh(jax.make_mesh((8,), ("data",))):
        params = jax.device_put(fsdp_by_layer.first_params(), jax.P(None, "data"))
        batch = jax.device_put(fsdp_by_layer.some_batch(), jax.P("data"))
        text = fsdp_by_layer.compiled_step(params, batch, network).as_text()
    found = page.overlaps(text)
    counts = data_parallel.count_collectives(text)
    kinds = [each.kind for each in found]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        kind: each["operations"] for kind, each in counts.items()
    }
    assert not any(each.started or each.matmuls for each in found)


OLD = [f"xla_gpu_enable_pipelined_{kind}" for kind in ("all_gather", "reduce_scatter")]
NEW = [f"xla_gpu_pipeline_{kind}" for kind in ("all_gather", "reduce_scatter")]


def test_pipelining_has_another_name_in_each_version():
    renamed = jax.__version_info__ >= (0, 12)
    for old, new in zip(OLD, NEW, strict=True):
        assert page.knows(old, True) == (not renamed)
        assert page.knows(new, page.PIPELINED) == renamed
    assert page.knows("xla_gpu_enable_latency_hiding_scheduler", True)
    assert not page.knows("xla_gpu_enable_nothing", True)


def test_a_wrong_value_is_no_unknown_name():
    with pytest.raises(jax.errors.JaxRuntimeError, match="is not a valid bool"):
        page.knows("xla_gpu_enable_latency_hiding_scheduler", "never")


def test_an_old_flag_is_refused(raises_declared):
    raises_declared(page.compile_with_an_old_flag)


def test_the_step_is_that_of_one_device():
    rng = np.random.default_rng(0)
    params = {
        "up": rng.normal(size=(3, 8, 16)).astype(np.float32),
        "down": rng.normal(size=(3, 16, 8)).astype(np.float32),
    }
    batch = tuple(rng.normal(size=(2, 16, 8)).astype(np.float32))

    def loss(params):
        x, target = batch
        for up, down in zip(params["up"], params["down"], strict=True):
            x = x + jnp.tanh(x @ up) @ down
        return jnp.mean((x - target) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    auto = (jax.sharding.AxisType.Auto,)
    with jax.set_mesh(jax.make_mesh((8,), ("data",), auto)):
        sharded = jax.device_put(params, jax.P(None, "data"))
        moved, found = jax.jit(page.fsdp_step)(sharded, jax.device_put(batch, jax.P("data")))
    np.testing.assert_allclose(found, value, rtol=1e-5)
    for name, x in params.items():
        np.testing.assert_allclose(moved[name], x - page.RATE * grads[name], rtol=1e-5)


@pytest.fixture(scope="module")
def runs():
    return {
        (run["case"], run["target"]): run for run in json.loads(RECORD.read_text("utf8"))["runs"]
    }


@pytest.fixture(scope="module")
def counts(runs):
    """Return {(case, target): {kind: (asynchronous, with a matmul between, waiting)}}."""
    return {
        name: {
            each["kind"]: (each["looped"], each["beside"], each["waiting"])
            for each in run["collectives"]
            if each["looped"] or each["waiting"]
        }
        for name, run in runs.items()
    }


def test_a_layer_gathers_four_times_and_one_of_them_overlaps_on_gpus(counts):
    found = counts["no option", "gpu-h200"]
    assert found == {"all-gather": (4, 1, 0), "reduce-scatter": (0, 0, 1)}


def test_without_latency_hiding_most_gathers_wait(counts):
    asynchronous, _, waiting = counts["no latency hiding", "gpu-h200"]["all-gather"]
    assert (asynchronous, waiting) == (1, 3)


def test_pipelining_overlaps_three_of_four_and_double_buffering_no_larger_share(counts):
    found = counts["pipelining", "gpu-h200"]
    assert found == {"all-gather": (4, 3, 0), "reduce-scatter": (1, 0, 0)}
    assert counts["double buffering", "gpu-h200"]["all-gather"] == (8, 2, 0)


def test_the_level_is_pipelining_with_double_buffering(counts):
    found = counts["O1", "gpu-h200"]
    assert found == counts["pipelining and double buffering", "gpu-h200"]
    assert found == {"all-gather": (8, 6, 0), "reduce-scatter": (2, 0, 0)}


def test_of_the_tpus_only_v5e_overlaps_and_only_by_fusion(counts):
    assert counts["TPU, no option", "tpu-v5e"] == {
        "all-gather": (3, 3, 1),
        "all-reduce": (0, 0, 1),
    }
    others = [("no option", "tpu-v6e"), ("no fusion", "tpu-v5e"), ("no fusion", "tpu-v6e")]
    for case, target in others:
        assert counts[f"TPU, {case}", target]["all-gather"] == (0, 0, 4)


def test_with_the_sparse_core_v6e_waits_for_no_collective_and_takes_memory(counts, runs):
    assert counts["TPU, SparseCore", "tpu-v6e"] == {
        "all-gather": (4, 3, 0),
        "all-reduce": (1, 1, 0),
    }
    most, plain = (
        runs[f"TPU, {case}", "tpu-v6e"]["memory"]["temporaries"]
        for case in ("SparseCore", "no option")
    )
    assert most > plain


def test_what_overlaps_takes_memory(runs):
    plain = runs["no option", "gpu-h200"]["memory"]["temporaries"]
    for case in "pipelining", "O1":
        assert runs[case, "gpu-h200"]["memory"]["temporaries"] > plain
