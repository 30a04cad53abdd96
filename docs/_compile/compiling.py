"""Compile a function with JAX for devices that need not be here, and make its record.

JAX and the compilers of the targets must be installed, and `prepare` must be called before JAX is
imported. No device, no Sphinx and no network is needed.
"""

import collections
import datetime
import importlib.metadata
import math
import os
import pathlib
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compiled import programs as records
from compiled.declared import Program, ProgramError
from compiled.options import Target

from . import hlo, jaxprs, origins, traffic

ABSTRACT = re.compile(r"(?P<dtype>[a-z]+\d+|bool)\[(?P<dims>[^\]]*)\]")
KERNEL_CODE = re.compile(r'backend_config = "(?:[^"\\]|\\.)*"')
DIM = re.compile(r"(?:chips|\d+)(?:\*(?:chips|\d+))*(?:@\w+)?")


def prepare(targets: Mapping[str, Target]) -> None:
    """Set the environment variables that the compilers of the targets must find."""
    for target in targets.values():
        os.environ.update(target.environment)


def devices_of(target: Target, count: int = 1) -> list[Any]:
    """Return `count` abstract devices of a target; none of them has to be here."""
    import jax
    from jax.experimental import topologies

    if target.figures:
        found = topologies.get_topology_desc(
            platform=target.platform,
            topology_name="",
            target_config=pathlib.Path(target.figures).read_text("utf8"),
            topology=f"1x1x{count}",
        )
    elif target.topology:
        name = target.topology.format(side=max(2, round(count**0.5)))
        found = topologies.get_topology_desc(platform=target.platform, topology_name=name)
    else:
        return list(jax.devices(target.platform)[:count])
    return list(found.devices[:count])


def compile_for(function: Any, arguments: Iterable[Any], **options: Any) -> Any:
    """Compile a jitted function for the devices that its abstract arguments lie on."""
    return function.lower(*arguments).compile(compiler_options=options or None)


def abstract(
    declared: Any, chips: int = 1, placed: Callable[[tuple[str | None, ...]], Any] = lambda _: None
) -> Any:
    """Return declared arguments as abstract arrays, such as "float32[32*chips@data,10]".

    `@data` says that this axis is shared out. `placed` maps the names of the
    axes, each or None, to a sharding.
    """
    import jax

    if isinstance(declared, dict):
        return {key: abstract(value, chips, placed) for key, value in declared.items()}
    if isinstance(declared, list):
        return [abstract(value, chips, placed) for value in declared]
    match = ABSTRACT.fullmatch(declared) if isinstance(declared, str) else None
    dims = [word for word in match["dims"].replace(" ", "").split(",") if word] if match else []
    if not match or not all(map(DIM.fullmatch, dims)):
        raise ProgramError(f"{declared!r} is no abstract argument such as 'float32[2,3]'")
    parts = [word.partition("@") for word in dims]
    sizes = [
        math.prod(chips if factor == "chips" else int(factor) for factor in size.split("*"))
        for size, _, _ in parts
    ]
    sharding = placed(tuple(axis or None for _, _, axis in parts))
    return jax.ShapeDtypeStruct(tuple(sizes), match["dtype"], sharding=sharding)


def file_of(program: Program) -> str:
    """Return what JAX takes for the file of a program's code."""
    return f"<{program.name}>"


def load(program: Program) -> Any:
    """Execute the self-contained code of a program and return its function, jitted."""
    import jax

    namespace: dict[str, Any] = {"__name__": program.name}
    exec(compile(program.code, file_of(program), "exec"), namespace)
    function = namespace[program.definition.name]
    return function if hasattr(function, "lower") else jax.jit(function)


def record(program: Program, targets: Mapping[str, Target], command: str) -> records.Head:
    """Compile a program for the targets and return its record, which names the command."""
    packages = dict.fromkeys(name for target in targets.values() for name in target.packages)
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    versions |= {package: importlib.metadata.version(package) for package in packages}
    head = {
        "form": records.FORM,
        "function": program.name,
        "source": program.key,
        "arguments": program.arguments,
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }
    if program.kind == "SCALED":
        return _scale_record(head, program, targets)
    return _program_record(head, program, targets)


def _program_record(
    head: dict[str, Any], program: Program, targets: Mapping[str, Target]
) -> records.ProgramRecord:
    function = load(program)
    traced = function.trace(*abstract(program.arguments))
    file, jaxpr = file_of(program), traced.jaxpr
    lowered: dict[tuple[str, str], list[str]] = {}
    compiled, refused = {}, {}
    for name, target in targets.items():
        try:
            compiled[name] = _compiled(function, program, target)
        except Exception as error:
            refused[name] = said(error)
            print(f"{program.title}: refused for {target.label}", flush=True)
            continue
        made = traced.lower(lowering_platforms=(target.platform,))
        lines = origins.of_stablehlo(made.as_text(debug_info=True), file)
        text = "\n".join(stablehlo(made))
        lowered.setdefault((text, origins.runs(lines)), []).append(name)
    return records.ProgramRecord(
        **head,
        jaxpr=str(jaxpr).splitlines(),
        origins=origins.runs(origins.of_jaxpr(jaxpr, file)),
        operations=jaxprs.operations(jaxpr.jaxpr),
        picture=jaxprs.picture(jaxpr.jaxpr, file),
        stablehlo=[
            records.Lowered(names, text.splitlines(), lines)
            for (text, lines), names in lowered.items()
        ],
        unoptimized=None if refused else cost(traced.lower()),
        targets=compiled,
        refused=refused,
    )


def _compiled(function: Any, program: Program, target: Target) -> records.Compiled:
    from jax.sharding import SingleDeviceSharding

    device = devices_of(target)[0]
    here = SingleDeviceSharding(device)
    made = compile_for(function, abstract(program.arguments, placed=lambda _: here))
    text = made.as_text()
    lines = hlo.cleaned(text)
    read = hlo.Optimized(lines)
    found = origins.of_hlo(text, read, file_of(program))
    return records.Compiled(
        device=device.device_kind,
        hlo=lines,
        origins=origins.runs([found.get(n, origins.NONE) for n in range(1, len(lines) + 1)]),
        kernels=read.kernels(),
        copies=len(read.copies()),
        loops=read.loops,
        traffic=traffic.traffic(read),
        cost=cost(made),
        memory=memory(made),
    )


def stablehlo(lowered: Any) -> list[str]:
    """Return the lines of a lowered program; the code of a kernel in it is left out."""
    text = KERNEL_CODE.sub('backend_config = "…"', lowered.as_text())
    return list(text.rstrip().splitlines())


def said(error: Exception) -> str:
    """Return what an error says, without the addresses and listings below its first paragraph."""
    paragraph, _, _ = str(error).strip().partition("\n\n")
    return f"{type(error).__name__}: {paragraph}"


def _scale_record(
    head: dict[str, Any], program: Program, targets: Mapping[str, Target]
) -> records.ScaleRecord:
    import jax
    import numpy as np
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    function = load(program)
    runs, parameters = [], 0
    for title, case in program.cases.items():
        for name, target in targets.items():
            for chips in case.numbers(name, target.chips):
                devices = devices_of(target, chips)
                mesh = Mesh(np.array(devices), ("data",), axis_types=(AxisType.Auto,))

                def placed(axes: tuple[str | None, ...], mesh: Any = mesh) -> Any:
                    return NamedSharding(mesh, PartitionSpec(*axes))

                arguments = abstract(case.arguments, chips, placed)
                with jax.set_mesh(mesh):
                    compiled = compile_for(function, arguments, **case.options)
                leaves = jax.tree.leaves(arguments)
                shared = [leaf for leaf in leaves if "data" in leaf.sharding.spec]
                if not shared:
                    raise ProgramError(f"no argument of '{title}' has an axis '@data'")
                parameters = sum(leaf.size for leaf in leaves if leaf not in shared)
                runs.append(
                    records.Run(
                        case=title,
                        target=name,
                        device=devices[0].device_kind,
                        chips=chips,
                        batch=shared[-1].shape[0],
                        collectives=collectives(compiled.as_text()),
                        cost=cost(compiled),
                        memory=memory(compiled),
                    )
                )
    return records.ScaleRecord(**head, parameters=parameters, runs=runs)


def collectives(text: str) -> list[records.Collective]:
    """Count the collectives of a program, and the bytes of their results, by kind."""
    sizes: collections.defaultdict[str, list[int]] = collections.defaultdict(list)
    program = hlo.Optimized(hlo.cleaned(text))
    for kind, size in program.collectives():
        sizes[kind].append(size)
    found = program.beside_matmuls()
    return [
        records.Collective(
            *(kind, len(sizes[kind]), sum(sizes[kind])),
            looped=sum(beside is not None for beside in found.get(kind, [])),
            beside=sum(beside is True for beside in found.get(kind, [])),
            waiting=sum(beside is None for beside in found.get(kind, [])),
        )
        for kind in sorted({*sizes, *found})
    ]


def cost(compiled: Any) -> records.Counts | None:
    """Return the compiler's counts of a program, or None where it gives none."""
    analysis = compiled.cost_analysis()
    if not analysis:
        return None
    names = "flops", "transcendentals", "bytes accessed"
    return records.Counts(*(_whole(analysis.get(name, 0.0)) for name in names))


def _whole(number: float) -> float:
    return int(number) if float(number).is_integer() else number


def memory(compiled: Any) -> records.Memory:
    """Return the bytes that a compiled program needs on each device."""
    sizes = compiled.memory_analysis()
    return records.Memory(
        arguments=sizes.argument_size_in_bytes,
        results=sizes.output_size_in_bytes,
        temporaries=sizes.temp_size_in_bytes,
    )
