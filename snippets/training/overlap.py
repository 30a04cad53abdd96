"""Count what a compiled program computes while its collectives travel."""

import dataclasses
import re

import jax

from snippets.training.fsdp_by_layer import by_layer_twice, loss

RATE = 0.001
PIPELINED = "COLLECTIVE_PIPELINING_MODE_ON"
STEP = [
    {
        "up": "bfloat16[12,2048@data,8192]",
        "down": "bfloat16[12,8192@data,2048]",
    },
    ["bfloat16[1024*chips@data,2048]", "bfloat16[1024*chips@data,2048]"],
]
FUSE_ALL_GATHER = "xla_tpu_enable_async_collective_fusion_fuse_all_gather"
GATHER_ON_SPARSE_CORE = (
    "xla_tpu_enable_sparse_core_collective_offload_all_gather"
)
REDUCE_ON_SPARSE_CORE = (
    "xla_tpu_enable_sparse_core_collective_offload_all_reduce"
)
GPU = ["gpu-h200"]
TPU = ["tpu-v5e", "tpu-v6e"]
SCALED = {
    "fsdp_step": {
        "no option": {"arguments": STEP, "targets": GPU},
        "no latency hiding": {
            "arguments": STEP,
            "targets": GPU,
            "options": {"xla_gpu_enable_latency_hiding_scheduler": False},
        },
        "pipelining": {
            "arguments": STEP,
            "targets": GPU,
            "options": {
                "xla_gpu_pipeline_all_gather": PIPELINED,
                "xla_gpu_pipeline_reduce_scatter": PIPELINED,
                "xla_gpu_pipeline_all_reduce": PIPELINED,
            },
        },
        "double buffering": {
            "arguments": STEP,
            "targets": GPU,
            "options": {"xla_gpu_enable_while_loop_double_buffering": True},
        },
        "pipelining and double buffering": {
            "arguments": STEP,
            "targets": GPU,
            "options": {
                "xla_gpu_enable_while_loop_double_buffering": True,
                "xla_gpu_pipeline_all_gather": PIPELINED,
                "xla_gpu_pipeline_reduce_scatter": PIPELINED,
                "xla_gpu_pipeline_all_reduce": PIPELINED,
            },
        },
        "O1": {
            "arguments": STEP,
            "targets": GPU,
            "options": {"optimization_level": "O1"},
        },
        "TPU, no option": {"arguments": STEP, "targets": TPU, "chips": [16]},
        "TPU, no fusion": {
            "arguments": STEP,
            "targets": TPU,
            "chips": [16],
            "options": {"xla_tpu_enable_async_collective_fusion": False},
        },
        "TPU, SparseCore": {
            "arguments": STEP,
            "targets": ["tpu-v6e"],
            "chips": [16],
            "options": {
                GATHER_ON_SPARSE_CORE: True,
                REDUCE_ON_SPARSE_CORE: True,
                FUSE_ALL_GATHER: False,
            },
        },
    }
}

EXPECTED_ERRORS = {
    "compile_with_an_old_flag": (
        jax.errors.JaxRuntimeError,
        "No such compile option",
    ),
}

KINDS = (
    "reduce-scatter",
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
LOOPS = "while", "conditional", "call"
PASSED_ON = "get-tuple-element", "custom-call-update"
COMPUTATION = re.compile(r"(ENTRY )?%?([\w.-]+) \(.*\) -> .*\{$")
INSTRUCTION = re.compile(
    r"\s+(?:ROOT )?%?([\w.-]+) = .*? ([a-z][\w-]*)\(([^)]*)\)(.*)"
)
CALLED = re.compile(
    r"\b(?:calls|called_computations|to_apply|body|branch_computations|"
    r"true_computation|false_computation|custom_call_target)="
    r"(\{[^}]*\}|%[\w.-]+|\"[^\"]*\")"
)

EXAMPLE = """\
HloModule example, is_scheduled=true

%matmul (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8] parameter(0)
  ROOT %dot = f32[8,8] dot(%p, %p)
}

ENTRY %main (w: f32[1,8], x: f32[8,8]) -> f32[8,8] {
  %w = f32[1,8] parameter(0)
  %x = f32[8,8] parameter(1)
  %all-gather-start = (f32[1,8], f32[8,8]) all-gather-start(%w)
  %all-gather-done = f32[8,8] all-gather-done(%all-gather-start)
  %all-gather-start.1 = (f32[1,8], f32[8,8]) all-gather-start(%w)
  %fusion = f32[8,8] fusion(%all-gather-done), calls=%matmul
  %all-gather-done.1 = f32[8,8] all-gather-done(%all-gather-start.1)
  ROOT %all-reduce = f32[8,8] all-reduce(%all-gather-done.1)
}
"""


@dataclasses.dataclass(frozen=True)
class Instruction:
    """An instruction of HLO: names of its operands, and of what it calls."""

    name: str
    opcode: str
    operands: tuple
    called: tuple


@dataclasses.dataclass
class Collective:
    """A collective, and what the schedule places between start and done.

    One that is not `started` alone is waited for at once. `kernels` are
    other custom calls, such as those of attention, cuDNN and Pallas.
    """

    kind: str
    started: bool
    matmuls: int = 0
    fusions: int = 0
    kernels: int = 0


def computations(text):
    """Return {computation: its instructions}; the program's is "ENTRY".

    ValueError for a text that is not that of a compiled program.
    """
    header = text.lstrip().partition("\n")[0]
    if not header.startswith("HloModule"):
        raise ValueError(
            "this is no HLO: pass jax.jit(f).lower(x).compile().as_text()"
        )
    if "is_scheduled=true" not in header:
        raise ValueError("this HLO is not compiled, so it has no order yet")
    found = {}
    for line in text.splitlines():
        if head := COMPUTATION.match(line):
            current = found.setdefault("ENTRY" if head[1] else head[2], [])
        elif one := INSTRUCTION.match(line):
            name, opcode, operands, attributes = one.groups()
            called = " ".join(CALLED.findall(attributes))
            names = (
                re.findall(r"[\w.$-]+", words) for words in (operands, called)
            )
            current.append(Instruction(name, opcode, *map(tuple, names)))
    return found


def opcodes(one, found):
    """Return the opcodes of an instruction and of what it calls."""
    inner = [
        opcodes(x, found) for name in one.called for x in found.get(name, ())
    ]
    return {one.opcode, *one.called}.union(*inner)


def multiplies(one, found):
    """Return whether an instruction computes a matmul, as far as HLO says."""
    words = "dot", "convolution", "gemm", "matmul"
    return any(word in code for code in opcodes(one, found) for word in words)


def goes_on(one):
    """Return whether a fusion of a TPU goes on with what another started."""
    return any("async_collective" in name for name in one.called)


def kind_of(one, found):
    """Return which collective an instruction runs or starts, or None."""
    if one.opcode in LOOPS or goes_on(one):
        return None
    if any("all-reduce-scatter" in name for name in one.called):
        return "reduce-scatter"
    codes = {code.removesuffix("-start") for code in opcodes(one, found)}
    return next((kind for kind in KINDS if kind in codes), None)


def begins(one):
    """Return whether an instruction only starts what it calls or names."""
    return one.opcode.endswith("-start") or "collective-start" in one.name


def ends(one):
    """Return whether an instruction waits for what another one started."""
    return one.opcode.endswith("-done") or "collective-done" in one.name


def scheduled(instructions, found):
    """Return the collectives of one computation, in their order."""
    result, running, source = [], {}, {}
    for one in instructions:
        names = [source[x] for x in one.operands if source.get(x) in running]
        name = max(names, key=names.count, default=None)
        kind = kind_of(one, found)
        if name and ends(one):
            del running[name]
        elif kind:
            result.append(Collective(kind, started=begins(one)))
            if begins(one):
                running[one.name], source[one.name] = result[-1], one.name
        else:
            if goes_on(one) or one.opcode in PASSED_ON:
                source[one.name] = name
            matmul = multiplies(one, found)
            for each in running.values():
                each.matmuls += matmul
                each.fusions += "fusion" in one.opcode and not matmul
                each.kernels += one.opcode == "custom-call" and not matmul
    return result


def overlaps(text):
    """Return the collectives of a compiled program, those of loops once.

    `text` is what `compiled.as_text()` returns; ValueError for another one.
    """
    found, result, names = computations(text), [], ["ENTRY"]
    for name in names:
        result += scheduled(found[name], found)
        for one in found[name]:
            names += one.called if one.opcode in LOOPS else ()
    return result


def report(text):
    """Print how many collectives of a compiled program overlap, by kind."""
    found = overlaps(text)
    for kind in sorted({each.kind for each in found}):
        some = [each for each in found if each.kind == kind]
        print(
            f"{kind}: {len(some)},",
            f"{sum(each.started for each in some)} asynchronous,",
            f"{sum(each.matmuls > 0 for each in some)} with a matmul between,",
            f"{sum(each.kernels > 0 for each in some)} with another kernel",
        )


def knows(option, value):
    """Return whether the compiler of the default device has an option."""
    try:
        lowered = jax.jit(lambda x: x + 1).lower(1.0)
        lowered.compile(compiler_options={option: value})
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" in str(error):
            return False
        raise
    return True


def compile_with_an_old_flag():
    """Ask for an option that XLA no longer has; raises JaxRuntimeError."""
    options = {"xla_gpu_enable_async_all_gather": True}
    jax.jit(lambda x: x + 1).lower(1.0).compile(compiler_options=options)


def fsdp_step(params, batch):
    """Return the weights after a step of gradient descent, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch, by_layer_twice)
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads), value
