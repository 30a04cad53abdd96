"""Compile the functions that pages name, for devices that are not here, and record the programs.

`nox -s compile` calls it in an environment with JAX, libtpu and the CUDA plugin
(requirements/compile.txt). It needs no device, no Sphinx and no network:

    PYTHONPATH=docs python -m _ext.programs.compiling [--again] [function ...]
"""

import argparse
import collections
import contextlib
import datetime
import difflib
import getpass
import importlib.metadata
import itertools
import os
import pathlib
import platform
import re
import socket
import sys
import time

from . import functions as programs
from . import hlo

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    # Whatever machine compiles, its processor counts as this one: one core, with AVX2.
    "PJRT_NPROC": "1",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    # libtpu then asks no one which TPU it is on.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
}
PACKAGES = ("jax", "jaxlib", "libtpu", "jax-cuda13-plugin", "nvidia-cuda-nvcc")
# Figures of the cards as OpenXLA publishes them, in xla/backends/gpu/target_config/specs of
# https://github.com/openxla/xla (h200.txtpb and a100_sxm_80.txtpb).
SPEC = """
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {shared_memory_per_core}
  threads_per_core_limit: 2048
  core_count: {cores}
  fpus_per_core: {fpus_per_core}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth}
  l2_cache_size: {l2_cache}
  clock_rate_ghz: {clock}
  device_memory_size: {memory}
  shared_memory_per_block_optin: {shared_memory_per_block}
  cuda_compute_capability {{ major: {capability} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
device_description_str: "{name}"
"""
GPUS = {
    "gpu-h200": {
        "name": "NVIDIA H200",
        "cores": 132,
        "fpus_per_core": 128,
        "clock": 1.98,
        "memory": 151397597184,
        "bandwidth": 4800000000000,
        "l2_cache": 52428800,
        "shared_memory_per_core": 233472,
        "shared_memory_per_block": 232448,
        "capability": 9,
    },
    "gpu-a100": {
        "name": "NVIDIA A100-SXM4-80GB",
        "cores": 108,
        "fpus_per_core": 64,
        "clock": 1.41,
        "memory": 85100068864,
        "bandwidth": 2039040000000,
        "l2_cache": 41943040,
        "shared_memory_per_core": 167936,
        "shared_memory_per_block": 166912,
        "capability": 8,
    },
}
PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
ABSTRACT = re.compile(r"(?P<dtype>[a-z]+\d+|bool)\[(?P<dims>[^\]]*)\]")
# Equations that stand for the jaxpr inside of them.
DISSOLVED = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"}


def devices_of(target, count=1):
    """Return `count` abstract devices of a target; none of them has to be here."""
    import jax
    from jax.experimental import topologies

    if target == "cpu":
        return jax.devices("cpu")[:count]
    if target.startswith("gpu-"):
        found = topologies.get_topology_desc(
            platform="cuda",
            topology_name="",
            target_config=SPEC.format(**GPUS[target]),
            topology=f"1x1x{count}",
        )
    else:
        side = max(2, round(count**0.5))
        name = f"{target.removeprefix('tpu-')}:{side}x{side}"
        found = topologies.get_topology_desc(platform="tpu", topology_name=name)
    return found.devices[:count]


def compile_for(function, arguments):
    """Compile a function for the devices that its abstract arguments lie on."""
    import jax

    jitted = function if hasattr(function, "lower") else jax.jit(function)
    return jitted.lower(*arguments).compile()


def abstract(declared, chips=1, placed=lambda axes: None):
    """Return declared arguments as abstract arrays, such as "float32[32*chips@data,10]".

    `@data` says that this axis is shared out. `placed` maps the names of the
    axes, each or None, to a sharding.
    """
    import jax

    if isinstance(declared, str):
        match = ABSTRACT.fullmatch(declared)
        if not match:
            raise programs.ProgramError(f"'{declared}' is not of the form float32[2,3]")
        dims = [word for word in match["dims"].replace(" ", "").split(",") if word]
        sizes, axes = zip(*(_dim(word, chips) for word in dims), strict=True) if dims else ((), ())
        return jax.ShapeDtypeStruct(sizes, match["dtype"], sharding=placed(axes))
    if isinstance(declared, dict):
        return {key: abstract(value, chips, placed) for key, value in declared.items()}
    if isinstance(declared, (list, tuple)):
        return [abstract(value, chips, placed) for value in declared]
    raise programs.ProgramError(f"{declared!r} is no abstract argument such as 'float32[2,3]'")


def _dim(word, chips):
    size, _, axis = word.partition("@")
    factors = [chips if factor == "chips" else int(factor) for factor in size.split("*")]
    product = 1
    for factor in factors:
        product *= factor
    return product, axis or None


def load(program):
    """Execute the self-contained code of a program and return its function."""
    namespace = {"__name__": program.name}
    exec(compile(program.code, f"<{program.name}>", "exec"), namespace)
    return namespace[program.definition.name]


def head(program):
    """Return what every record begins with."""
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in PACKAGES:
        versions[package] = importlib.metadata.version(package)
    return {
        "form": programs.FORM,
        "function": program.name,
        "source": program.key,
        "arguments": program.arguments,
        "command": programs.COMMAND,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }


def record_program(program):
    """Compile a program for one device of each target; return its record."""
    import jax
    from jax.sharding import SingleDeviceSharding

    function = load(program)
    jitted = function if hasattr(function, "trace") else jax.jit(function)
    traced = jitted.trace(*abstract(program.arguments))
    texts, targets = {}, {}
    for target in programs.TARGETS:
        lowered = traced.lower(lowering_platforms=(PLATFORMS[target[:3]],))
        texts.setdefault(lowered.as_text().rstrip(), []).append(target)
        device = devices_of(target)[0]
        here = SingleDeviceSharding(device)
        compiled = compile_for(function, abstract(program.arguments, placed=lambda axes: here))  # noqa: B023
        targets[target] = {
            "device": device.device_kind,
            "hlo": hlo.cleaned(compiled.as_text()),
            "cost": cost(compiled.cost_analysis()),
            "memory": memory(compiled.memory_analysis()),
        }
    unoptimized = cost(traced.lower().cost_analysis())
    unoptimized.pop("estimate")
    return head(program) | {
        "jaxpr": str(traced.jaxpr).splitlines(),
        "operations": dict(sorted(operations(traced.jaxpr.jaxpr).items())),
        "picture": picture(traced.jaxpr.jaxpr),
        "stablehlo": [
            {"targets": names, "text": text.splitlines()} for text, names in texts.items()
        ],
        "unoptimized": unoptimized,
        "targets": targets,
    }


def record_scale(program):
    """Compile a step for many devices; return the record of its collectives and memory."""
    import jax
    import numpy as np
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    function = load(program)
    runs, parameters = [], 0
    for case, declared in program.arguments.items():
        for target, counts in programs.CHIPS.items():
            for chips in counts:
                devices = devices_of(target, chips)
                mesh = Mesh(np.array(devices), ("data",), axis_types=(AxisType.Auto,))

                def placed(axes, mesh=mesh):
                    return NamedSharding(mesh, PartitionSpec(*axes))

                arguments = abstract(declared, chips, placed)
                compiled = compile_for(function, arguments)
                leaves = jax.tree.leaves(arguments)
                shared = [leaf for leaf in leaves if "data" in leaf.sharding.spec]
                parameters = sum(leaf.size for leaf in leaves if leaf not in shared)
                runs.append(
                    {
                        "case": case,
                        "target": target,
                        "device": devices[0].device_kind,
                        "chips": chips,
                        "batch": shared[0].shape[0],
                        "collectives": collectives(compiled.as_text()),
                        "cost": cost(compiled.cost_analysis()),
                        "memory": memory(compiled.memory_analysis()),
                    }
                )
    return head(program) | {"parameters": parameters, "runs": runs}


def collectives(text):
    """Count the collectives of a program, and the bytes of their results, by kind."""
    found = {}
    for kind, size in hlo.Program(hlo.cleaned(text)).collectives():
        entry = found.setdefault(kind, {"kind": kind, "count": 0, "bytes": 0})
        entry["count"] += 1
        entry["bytes"] += size
    return [found[kind] for kind in sorted(found)]


def cost(analysis):
    """Return the compiler's counts, or None where it gives none."""
    if not analysis:
        return None
    estimate = analysis.get("optimal_seconds")
    return {
        "flops": _whole(analysis.get("flops", 0.0)),
        "transcendentals": _whole(analysis.get("transcendentals", 0.0)),
        "bytes": _whole(analysis.get("bytes accessed", 0.0)),
        # Each step that the compiler cannot estimate counts as -1 second.
        "estimate": estimate if estimate is not None and estimate > 0 else None,
    }


def _whole(number):
    return int(number) if float(number).is_integer() else number


def memory(analysis):
    """Return the bytes that a compiled program needs on each device."""
    return {
        "arguments": analysis.argument_size_in_bytes,
        "results": analysis.output_size_in_bytes,
        "temporaries": analysis.temp_size_in_bytes,
    }


def inner_jaxprs(equation):
    """Return the jaxprs among the parameters of an equation."""
    found = []
    for value in equation.params.values():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if hasattr(part, "jaxpr") and hasattr(part.jaxpr, "eqns"):
                found.append(part.jaxpr)
            elif hasattr(part, "eqns"):
                found.append(part)
    return found


def operations(jaxpr):
    """Count the operations of a jaxpr, those of inner ones included."""
    counted = collections.Counter()
    for equation in jaxpr.eqns:
        if equation.primitive.name not in DISSOLVED:
            counted[equation.primitive.name] += 1
        for inner in inner_jaxprs(equation):
            counted += operations(inner)
    return counted


def picture(jaxpr):
    """Return nodes with places, and edges, of a jaxpr drawn from top to bottom."""
    nodes, edges, source = [], [], {}

    def add(label, detail, kind):
        nodes.append({"label": label, "detail": detail, "kind": kind})
        return len(nodes) - 1

    def walk(inner):
        for equation in inner.eqns:
            within = inner_jaxprs(equation)
            name = equation.primitive.name
            if name in DISSOLVED and within:
                for outer, own in zip(equation.invars, within[0].invars, strict=True):
                    if not hasattr(outer, "val"):
                        source[own] = source.get(outer)
                    else:
                        literals[own] = outer.val
                walk(within[0])
                for outer, own in zip(equation.outvars, within[0].outvars, strict=True):
                    source[outer] = source.get(own) if not hasattr(own, "val") else None
                continue
            known = [_value(v) for v in equation.invars if _value(v) is not None]
            label = " ".join([name, *(f"{float(value):.6g}" for value in known)])
            detail = " ".join(v.aval.str_short() for v in equation.outvars[:2])
            if name == "scan":
                body = ", ".join(inner.primitive.name for part in within for inner in part.eqns)
                label, detail = f"scan, {equation.params['length']} rounds", body
            number = add(label, detail, "operation")
            for variable in equation.invars:
                if not hasattr(variable, "val") and source.get(variable) is not None:
                    edges.append((source[variable], number))
            for variable in equation.outvars:
                source[variable] = number

    literals = {}

    def _value(variable):
        value = getattr(variable, "val", None)
        if value is None and not hasattr(variable, "val"):
            value = literals.get(variable)
        return value if value is not None and getattr(value, "shape", ()) == () else None

    names = jaxpr.debug_info.safe_arg_names(len(jaxpr.invars))
    for name, variable in zip(names, jaxpr.invars, strict=True):
        source[variable] = add(name or "argument", variable.aval.str_short(), "argument")
    walk(jaxpr)
    for variable in jaxpr.outvars:
        number = add("result", variable.aval.str_short(), "result")
        if not hasattr(variable, "val") and source.get(variable) is not None:
            edges.append((source[variable], number))
    return layered(nodes, list(dict.fromkeys(edges)))


def layered(nodes, edges):
    """Give each node a place (x, y) in layers, and each long edge the points it goes through."""
    import igraph

    layer = [0] * len(nodes)
    # Edges lead from earlier to later nodes, so one pass finds the longest path to each.
    for above, below in sorted(edges, key=lambda edge: edge[1]):
        layer[below] = max(layer[below], layer[above] + 1)
    for number, node in enumerate(nodes):
        after = [layer[below] for above, below in edges if above == number]
        if node["kind"] == "argument" and after:
            layer[number] = min(after) - 1
    split, chains = [], []
    for above, below in edges:
        chain = [above]
        for level in range(layer[above] + 1, layer[below]):
            layer.append(level)
            chain.append(len(layer) - 1)
        chains.append(chain[1:])
        split += zip(chain, [*chain[1:], below], strict=True)
    graph = igraph.Graph(n=len(layer), edges=split, directed=True)
    places = [list(place) for place in graph.layout_sugiyama(layers=layer, maxiter=500).coords]
    _spread(places, layer)
    left = min((x for x, _ in places), default=0.0)
    places = [[round(x - left, 2), layer[number]] for number, (x, _) in enumerate(places)]
    return {
        "nodes": [node | {"x": x, "y": y} for node, (x, y) in zip(nodes, places, strict=False)],
        "edges": [
            {"from": above, "to": below, "through": [places[number] for number in chain]}
            for (above, below), chain in zip(edges, chains, strict=True)
        ],
    }


def _spread(places, layer):
    """Move nodes of one layer to the right until no two of them are nearer than 1."""
    for level in set(layer):
        row = [number for number, own in enumerate(layer) if own == level]
        for before, after in itertools.pairwise(sorted(row, key=places.__getitem__)):
            places[after][0] = max(places[after][0], places[before][0] + 1)


def leaks(text):
    """Return what in a text tells of this machine: folders, the names of the user and the host."""
    private = [os.getcwd(), str(pathlib.Path.home()), sys.prefix, socket.gethostname()]
    with contextlib.suppress(KeyError, OSError):
        private.append(f"/{getpass.getuser()}/")
    return sorted({word for word in private if len(word) > 3 and word in text})


def keep(path, record):
    """Write a record, unless the one that is there differs in nothing but its date.

    Return whether it was written. Raises RecordError for one that is too large
    or that tells of this machine.
    """
    text = programs.written(record)
    if found := leaks(text):
        raise programs.RecordError(f"it would hold {', '.join(found)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError, programs.RecordError):
        if same(path, record):
            return False
    half_written = path.with_name(f"half-written-{path.name}")
    half_written.write_text(text, "utf8")
    try:
        programs.read(half_written)
    except programs.RecordError:
        half_written.unlink()
        raise
    half_written.replace(path)
    return True


def same(path, record):
    """Say whether the record in a file differs from a new one in nothing but its date."""
    return programs.read(path) | {"date": ""} == programs.plain(record) | {"date": ""}


def chosen(found, names):
    """Return the programs of `found` with these names; all without a name."""
    if not names:
        return list(found.values())
    picked = []
    for name in names:
        fitting = [
            program
            for program in found.values()
            if program.name == name or program.name.endswith("." + name)
        ]
        if not fitting:
            known = sorted({program.name for program in found.values()})
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            hint = f"; the nearest names are {', '.join(near)}" if near else ""
            raise SystemExit(f"no page names a function '{name}'{hint}")
        picked += fitting
    return picked


def main():
    """Compile what is not current, or what is asked for; leave with 1 after a problem."""
    parser = argparse.ArgumentParser(prog=f"{programs.COMMAND} --", description=__doc__)
    parser.add_argument("function", nargs="*", help="only these, as module.function")
    parser.add_argument("--again", action="store_true", help="compile what is current as well")
    parser.add_argument("--check", action="store_true", help="compile all, compare, write nothing")
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    found, problems = programs.find_all()
    for program in chosen(found, options.function):
        state = programs.state(programs.RECORDS, program)[1]
        if state.word == "current" and not (options.again or options.check):
            print(f"{program.title}: current")
            continue
        started = time.monotonic()
        make = record_program if program.kind == "COMPILED" else record_scale
        path = programs.RECORDS / program.file
        try:
            made = make(program)
            if options.check:
                word = "the same" if same(path, made) else "differs"
            else:
                word = "written" if keep(path, made) else "unchanged"
        except Exception as error:
            problems.append(f"{program.title}: {type(error).__name__}: {error}")
            continue
        print(f"{program.title}: {word}, {time.monotonic() - started:.1f} s", flush=True)
        if word == "differs":
            problems.append(f"{program.title}: a fresh compile gives another record than {path}")
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
