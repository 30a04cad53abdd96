"""Devices that programs are compiled for, as conf.py describes them. None of them has to be here.

Nothing is imported from JAX before a device is asked for.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from ..names import nearest
from ..options import Options


@dataclasses.dataclass(frozen=True)
class Target:
    """A device that programs are compiled for.

    label: what readers call it.
    platform: what JAX calls its kind: `cpu`, `cuda` or `tpu`.
    topology: JAX's name for a square of them, such as `v5e:{side}x{side}`.
    figures: a file with the figures of a GPU, a GpuTargetConfigProto as text.
    chips: on how many of them a step for many devices is compiled.
    packages: the distributions whose versions a record names.
    environment: variables that the compiler must find when it starts.
    """

    name: str
    platform: str
    label: str = ""
    topology: str = ""
    figures: pathlib.Path | None = None
    chips: tuple[int, ...] = ()
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


Targets = Mapping[str, Target]
KEYS = [field.name for field in dataclasses.fields(Target)][1:]


def configured(options: Options) -> dict[str, Target]:
    """Return the targets that `book_targets` of conf.py describes; raises ValueError."""
    found = {}
    for name, given in options.targets.items():
        try:
            for key in given:
                if key not in KEYS:
                    raise ValueError(f"there is no key '{key}'{nearest(key, KEYS)}")
            if "platform" not in given:
                raise ValueError("it needs a platform: cpu, cuda or tpu")
            facts = {"label": name, **given}
            facts |= {key: tuple(given.get(key, ())) for key in ("chips", "packages")}
            if "figures" in given:
                facts["figures"] = options.root / given["figures"]
            found[name] = Target(name, **facts)
        except (TypeError, ValueError) as error:
            raise ValueError(f"book_targets of conf.py: '{name}': {error}") from None
    return found


def devices_of(target: Target, count: int = 1) -> list[Any]:
    """Return `count` abstract devices of a target; none of them has to be here."""
    import jax
    from jax.experimental import topologies

    if target.figures:
        found = topologies.get_topology_desc(
            platform=target.platform,
            topology_name="",
            target_config=target.figures.read_text("utf8"),
            topology=f"1x1x{count}",
        )
    elif target.topology:
        name = target.topology.format(side=max(2, round(count**0.5)))
        found = topologies.get_topology_desc(platform=target.platform, topology_name=name)
    else:
        return list(jax.devices(target.platform)[:count])
    return list(found.devices[:count])
