"""Kernels and collectives in the text of optimized programs."""

from _compile import hlo

RAW = """HloModule jit_f, is_scheduled=true, \
entry_computation_layout={(f32[8]{0:T(256)})->f32[8]{0}}, \
allow_spmd_sharding_propagation_to_output={true}, frontend_attributes={fingerprint="40d2", a={b=c}}

FileNames
1 "/home/somebody/a.py"

FileLocations
1 {file_name_id=1 line=37}


%region (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0)
}

ENTRY %main (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0), sharding={replicated}, metadata={op_name="x"}
  %call = f32[8]{0} custom-call(%x.1), custom_call_target="__routine", \
metadata={op_name="jit(f)/transpose(jvp())/dot_general" source_file="/home/somebody/a.py" \
source_line=3}, backend_config={"a":"}\\"{","b":[{"c":1}]}
  ROOT %copy = f32[8]{0} copy(%call), metadata={stack_frame_id=4}, backend_config="opaque"
}
"""


def test_hlo_is_cleaned_of_the_machine_and_of_settings():
    assert hlo.cleaned(RAW) == [
        "HloModule jit_f, entry_computation_layout={(f32[8]{0:T(256)})->f32[8]{0}}",
        "",
        "%region (p: f32[]) -> f32[] {",
        "  ROOT %p = f32[] parameter(0)",
        "}",
        "",
        "ENTRY %main (x.1: f32[8]) -> f32[8] {",
        '  %x.1 = f32[8]{0} parameter(0), metadata={op_name="x"}',
        '  %call = f32[8]{0} custom-call(%x.1), custom_call_target="__routine", '
        'metadata={op_name="jit(f)/transpose(jvp())/dot_general"}',
        "  ROOT %copy = f32[8]{0} copy(%call)",
        "}",
    ]


def test_kernels_are_the_steps_that_compute():
    program = hlo.Optimized(hlo.cleaned(RAW))
    (kernel,) = program.kernels()
    assert kernel.name == "call"
    assert kernel.what == "custom-call __routine"
    assert kernel.operations == ("dot_general",)
    assert not kernel.fused
    assert [copy.name for copy in program.copies()] == ["copy"]
    assert not program.loops


LOOP = """
%two (taken: f32[4,8]) -> f32[4,8] {
  %taken = f32[4,8]{1,0} parameter(0)
  %squared = f32[4,8]{1,0} multiply(%taken, %taken)
  ROOT %negated = f32[4,8]{1,0} negate(%squared)
}

%body.1 (state: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %round = s32[]{:T(128)} get-tuple-element(%state), index=0
  %rows = f32[4,8]{1,0:T(8,128)} get-tuple-element(%state), index=1
  %copied = s32[]{:T(128)S(6)} copy(%round)
  %next = s32[]{:T(128)} add(%copied, %one)
  %is_first = pred[]{:T(512)S(6)} compare(%copied, %zero), direction=EQ
  %best = s32[]{:T(128)} reduce(%rows, %zero), dimensions={0,1}, to_apply=%largest
  %begun = ((f32[4,8]{1,0}), f32[4,8]{1,0}, u32[]) fusion-start(%rows), kind=kLoop, calls=%two
  %ended = f32[4,8]{1,0} fusion-done(%begun)
  ROOT %doubled = f32[4,8]{1,0:T(8,128)} add(%rows, %rows)
}

%condition.1 (state: (s32[], f32[4,8])) -> pred[] {
  %of_it = s32[] get-tuple-element(%state), index=0
  ROOT %lt = pred[] fusion(%of_it), kind=kLoop, calls=%compared
}

ENTRY %main (x: f32[4,8]) -> f32[4,8] {
  ROOT %while.1 = (s32[], f32[4,8]{1,0}) while(%x), condition=%condition.1, body=%body.1
}
"""


def test_what_counts_the_rounds_of_a_loop_is_no_kernel():
    program = hlo.Optimized(LOOP.splitlines())
    assert program.loops
    best, begun, doubled = program.kernels()
    assert (best.name, begun.name, doubled.name) == ("best", "begun", "doubled")
    assert (begun.what, begun.fused, doubled.fused) == ("fusion", True, False)
    assert program.copies() == []


COLLECTIVES = """
ENTRY %main (x: f32[8]) -> f32[8] {
  %a = (f32[8]{0}, bf16[4,2]{1,0:T(8,128)}, f32[]) all-reduce(%x, %y, %z), to_apply=%region
  %b = f32[8]{0} all-reduce-start(%x), to_apply=%region
  %c = f32[8]{0} all-reduce-done(%b)
  %d = (f32[2]{0}, f32[8]{0}) all-gather-start(%x), dimensions={0}
  %e = f32[8]{0} all-gather-done(%d)
  %f = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%x)
  %done = f32[8]{0} collective-permute-done(%f)
  %h = ((f32[8]{0}), f32[8]{0}) all-reduce-start(%x), to_apply=%region
  %i = f32[8]{0} all-reduce-done(%h)
  %g = pred[3]{0} all-to-all(%x)
}
"""


def test_collectives_are_counted_once_with_the_bytes_of_their_results():
    found = hlo.Optimized(COLLECTIVES.splitlines()).collectives()
    assert found == [
        *(("all-reduce", 32 + 16 + 4), ("all-reduce", 32), ("all-gather", 32)),
        *(("collective-permute", 32), ("all-reduce", 32), ("all-to-all", 3)),
    ]


OVERLAPPED = """
%multiplied (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  ROOT %product = f32[8,8]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (taken: f32[4,8]) -> f32[4,8] {
  %taken = f32[4,8]{1,0} parameter(0)
  %all-gather-start = (f32[4,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%taken), dimensions={0}
  %added = f32[4,8]{1,0} add(%taken, %taken)
  %all-gather-done = f32[8,8]{1,0} all-gather-done(%all-gather-start)
  %all-gather-start.1 = (f32[4,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%added), dimensions={0}
  %fusion = f32[8,8]{1,0} fusion(%all-gather-done), kind=kCustom, calls=%multiplied
  %all-gather-done.1 = f32[8,8]{1,0} all-gather-done(%all-gather-start.1)
  %reduce-scatter-start = (f32[8,8]{1,0}, f32[4,8]{1,0}) reduce-scatter-start(%fusion)
  %called = f32[8,8]{1,0} custom-call(%fusion), custom_call_target="__cublas$gemm"
  ROOT %reduce-scatter-done = f32[4,8]{1,0} reduce-scatter-done(%reduce-scatter-start)
}

%more (taken: f32[4,8]) -> pred[] {
  %taken.1 = f32[4,8]{1,0} parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %main (x: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0)
  %all-gather-start.2 = (f32[4,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%x), dimensions={0}
  %fusion.1 = f32[8,8]{1,0} fusion(%x), kind=kCustom, calls=%multiplied
  %all-gather-done.2 = f32[8,8]{1,0} all-gather-done(%all-gather-start.2)
  ROOT %while = f32[4,8]{1,0} while(%x), condition=%more, body=%body
}
"""


def test_collectives_of_loops_are_told_by_what_runs_beside_them():
    found = hlo.Optimized(OVERLAPPED.splitlines()).beside_matmuls()
    assert found == {"all-gather": [False, True], "reduce-scatter": [True]}


ON_A_TPU = """
%gathered (g: f32[4,8]) -> f32[8,8] {
  %g = f32[4,8]{1,0} parameter(0)
  ROOT %all-gather = f32[8,8]{1,0} all-gather(%g), dimensions={0}
}

%async_collective_fusion.1 (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  %again = f32[8,8]{1,0} all-gather(%p), dimensions={0}
  ROOT %product = f32[8,8]{1,0} convolution(%p, %p), dim_labels=bf_io->bf
}

%all-reduce-scatter (s: f32[8,8]) -> f32[4,8] {
  %s = f32[8,8]{1,0} parameter(0)
  ROOT %sum = f32[8,8]{1,0} all-reduce(%s)
}

%body (taken: f32[4,8]) -> f32[4,8] {
  %taken = f32[4,8]{1,0} parameter(0)
  %async-collective-start = (f32[4,8]{1,0}, u32[]) fusion(%taken), kind=kCustom, calls=%gathered
  %part = f32[4,8]{1,0} get-tuple-element(%async-collective-start), index=0
  %fusion.1 = (f32[4,8]{1,0}, u32[]) fusion(%part), kind=kCustom, calls=%async_collective_fusion.1
  %rest = f32[4,8]{1,0} get-tuple-element(%fusion.1), index=0
  %product.2 = f32[8,8]{1,0} get-tuple-element(%fusion.1), index=1
  %all-reduce.1 = f32[8,8]{1,0} all-reduce(%product.2)
  %async-collective-done = f32[8,8]{1,0} fusion(%rest), kind=kCustom, calls=%gathered
  %all-gather.2 = f32[8,8]{1,0} all-gather(%taken), dimensions={0}
  ROOT %fusion.2 = f32[4,8]{1,0} fusion(%all-gather.2), calls=%all-reduce-scatter
}

ENTRY %main (x: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0)
  ROOT %while = f32[4,8]{1,0} while(%x), condition=%more, body=%body
}
"""


def test_three_fusions_of_a_tpu_are_one_collective_and_others_are_waited_for():
    found = hlo.Optimized(ON_A_TPU.splitlines()).beside_matmuls()
    assert found == {
        **{"all-gather": [True, None], "all-reduce": [None]},
        "reduce-scatter": [None],
    }
