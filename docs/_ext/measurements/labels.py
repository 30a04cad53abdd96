"""What readers know devices, frameworks and measurements as, and the colours of frameworks."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Self

from ..frameworks import Colour
from ..options import Options


@dataclasses.dataclass(frozen=True)
class Labels:
    """The names of devices and frameworks; what has none is called by its key.

    `inks` are the colours of frameworks that have one.
    """

    devices: Mapping[str, str] = dataclasses.field(default_factory=dict)
    frameworks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    inks: Mapping[str, Colour] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return what conf.py says."""
        return cls(
            options.devices,
            {each.name: each.label for each in options.registry},
            {each.name: each.colour for each in options.registry if each.colour},
        )

    def device(self, key: str) -> str:
        """Return the name of a device."""
        return self.devices.get(key, key)

    def framework(self, key: str) -> str:
        """Return the name of a framework."""
        return self.frameworks.get(key, key)


def short(names: Iterable[str]) -> dict[str, str]:
    """Return {name: name without the leading parts, up to a `/`, that all of them share}."""
    parts = {name: name.split("/") for name in names}
    shared = 0
    if len(parts) > 1:
        least = min(map(len, parts.values())) - 1
        while shared < least and len({each[shared] for each in parts.values()}) == 1:
            shared += 1
    return {name: "/".join(each[shared:]) for name, each in parts.items()}
