"""Functions to compile and records of them, such as the recorder makes."""

import dataclasses
import json

from compiled.declared import find
from compiled.options import compile_targets, programs_folder
from executed.options import Options
from executed.source.snippets import Library

SNIPPET = '''
import math

FACTOR = 2.0
SHAPE = "float32[4,8]"
COMPILED = {"double": [SHAPE], "both": [{"left": SHAPE}, "float32[]"]}
SCALED = {"double": {"it grows": ["float32[2*chips@data,8]"]}}


def double(x):
    """Return twice `x`."""
    return FACTOR * x


def both(weights, y):
    return weights["left"] + y


def undeclared(x):
    return x
'''
TPU = {"platform": "tpu", "packages": ["a-compiler"]}


def peaks(bandwidth, shortened, rate):
    """Return what a vendor publishes, in bytes and operations a second."""
    source = f"https://vendor.example/{shortened}"
    rates = {"float32": rate / 1000, shortened: rate}
    return {"bandwidth": bandwidth, "rates": rates, "shortened": shortened, "source": source}


H200, V5E = peaks(256e6, "TF32", 8e6), peaks(128e6, "bfloat16", 5e12)
TARGETS = {
    "cpu": {"label": "CPU", "platform": "cpu"},
    "gpu-h200": {"label": "NVIDIA H200", "platform": "cuda", "chips": [8], "peaks": H200},
    "gpu-a100": {"label": "NVIDIA A100", "platform": "cuda"},
    "tpu-v5e": TPU | {"label": "TPU v5e", "chips": [1, 4, 16, 64, 256], "peaks": V5E},
    "tpu-v6e": TPU | {"label": "TPU v6e"},
}
LABELS = {name: facts["label"] for name, facts in TARGETS.items()}
CONF = f'extensions.append("sphinx_design")\nbook_targets = {TARGETS!r}'
HLO = """HloModule jit_double, entry_computation_layout={(f32[4,8]{1,0})->f32[4,8]{1,0}}

%fused_computation (param_0: f32[4,8]) -> f32[4,8] {
  %param_0 = f32[4,8]{1,0} parameter(0)
  %constant = f32[] constant(2)
  %mul.1 = f32[4,8]{1,0} broadcast(%constant), dimensions={}, metadata={op_name="jit(double)/mul"}
  ROOT %mul.0 = f32[4,8]{1,0} multiply(%param_0, %mul.1), metadata={op_name="jit(double)/mul"}
}

ENTRY %main (x: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0), metadata={op_name="x"}
  ROOT %my_fusion = f32[4,8]{1,0} fusion(%x), kind=kLoop, calls=%fused_computation
}"""
KERNEL = {"name": "my_fusion", "line": 12, "what": "fusion", "operations": ["mul"], "fused": True}
COST = {"flops": 32, "transcendentals": 0, "bytes": 256}
MEMORY = {"arguments": 128, "results": 128, "temporaries": 0}


def head(program):
    return {
        "form": 3,
        "function": program.name,
        "source": program.key,
        "arguments": program.arguments,
        "command": "a command",
        "date": "2026-01-02T03:04:05+00:00",
        "versions": {"jax": "1.2.3"},
    }


def node(label, kind, y):
    return {
        **{"label": label, "detail": "float32[4,8]", "kind": kind},
        **{"x": 0.0, "y": y, "origin": ""},
    }


def record_of(program):
    """Return the record of a function that multiplies by 2, as plain data."""
    return head(program) | {
        "jaxpr": ["{ lambda ; a:f32[4,8]. let", "    b:f32[4,8] = mul 2.0 a", "  in (b,) }"],
        "operations": {"mul": 1},
        "picture": {
            "nodes": [
                node("x", "argument", 0),
                node("mul 2", "operation", 1),
            ],
            "edges": [{"from": 0, "to": 1, "through": [[1.0, 0.5]]}],
        },
        "stablehlo": [
            {"targets": list(TARGETS), "text": ["module @jit_double {", "}"], "origins": ""}
        ],
        "unoptimized": COST,
        "targets": {
            target: {
                "device": f"device of {target}",
                "hlo": HLO.splitlines(),
                "kernels": [KERNEL],
                "copies": 0,
                "loops": False,
                "traffic": 256,
                "cost": None if target.startswith("gpu") else COST,
                "memory": MEMORY,
                "origins": "",
            }
            for target in TARGETS
        },
        "refused": {},
        "origins": "",
    }


ALL_REDUCE = {
    **{"kind": "all-reduce", "count": 1, "bytes": 404},
    **{"looped": 1, "beside": 0, "waiting": 2},
}


def scale_record_of(program):
    """Return the record of a step for many devices, as plain data."""
    return head(program) | {
        "parameters": 100,
        "runs": [
            {
                "case": case,
                "target": target,
                "device": "a device",
                "chips": chips,
                "batch": 2 * chips,
                "collectives": [ALL_REDUCE] if chips > 1 else [],
                "cost": COST,
                "memory": MEMORY,
            }
            for case in program.arguments
            for target, facts in TARGETS.items()
            for chips in facts.get("chips", ())
        ],
    }


def without_a_device(record):
    """Return a record that lacks the last target."""
    kept = {name: facts for name, facts in record["targets"].items() if name != "tpu-v6e"}
    return record | {
        "targets": kept,
        "stablehlo": [{"targets": list(kept), "text": ["module"]}],
    }


def text_of(record):
    """Return the text of a record's file."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


@dataclasses.dataclass
class Sample:
    """A book with functions to compile, in a folder."""

    root: object

    @property
    def options(self):
        return Options.from_values({"extensions": ["compiled"], "book_targets": TARGETS}, self.root)

    @property
    def targets(self):
        return compile_targets(self.options)

    @property
    def library(self):
        return Library(self.root / "snippets")

    @property
    def folder(self):
        return programs_folder(self.options)

    def snippet(self, module="a.code", text=SNIPPET):
        path = self.root.joinpath("snippets", *module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), "utf8")
        return path

    def find(self, name="code.double", kind="COMPILED"):
        return find(self.library, name, kind, "a")

    def write(self, program, record=None):
        """Write a record, a good one without one given; return its path."""
        made = record_of if program.kind == "COMPILED" else scale_record_of
        record = made(program) if record is None else record
        path = self.folder / program.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(record if isinstance(record, str) else text_of(record), "utf8")
        return path
