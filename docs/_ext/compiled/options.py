"""The options of compiled programs."""

import dataclasses
import pathlib
from collections.abc import Mapping

from drawing.peaks import Peaks
from executed.options import Count, Options, Table, option


@dataclasses.dataclass(frozen=True)
class Target:
    """A device that programs are compiled for.

    platform: what JAX calls its kind: `cpu`, `cuda` or `tpu`.
    label: what readers call it; by default its short name.
    topology: JAX's name for a square of them, such as `v5e:{side}x{side}`.
    figures: a file with the figures of a GPU, a GpuTargetConfigProto as text.
    chips: on how many of them a step for many devices is compiled.
    packages: the distributions whose versions a record names.
    environment: variables that the compiler must find when it starts.
    peaks: what its vendor publishes that it can do; see `drawing.peaks.Peaks`.
    """

    platform: str
    label: str = ""
    topology: str = ""
    figures: str = ""
    chips: tuple[Count, ...] = ()
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    peaks: Peaks | None = None


@dataclasses.dataclass(frozen=True)
class CompiledOptions(Table):
    """The options of this extension, each called `book_<name>` in conf.py.

    programs: the folder of compiled programs, relative to that file.
    targets: devices that programs are compiled for, {short name: facts}; see `Target`.
    compile_command: what messages tell people to run.
    """

    programs: str = option("docs/_recorded/compiled", "env")
    targets: Mapping[str, Target] = option(dict, "env")
    compile_command: str = option("python -m _compile", "env")


OPTIONS = CompiledOptions


def programs_folder(options: Options) -> pathlib.Path:
    """Return the folder of compiled programs."""
    return options.root / options.of(CompiledOptions).programs


def compile_targets(options: Options) -> dict[str, Target]:
    """Return the targets with their labels, and their files as paths from here."""
    return {
        name: dataclasses.replace(
            target,
            label=target.label or name,
            figures=str(options.root / target.figures) if target.figures else "",
        )
        for name, target in options.of(CompiledOptions).targets.items()
    }
