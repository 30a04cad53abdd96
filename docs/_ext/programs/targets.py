"""The abstract devices that programs are compiled for. None of them has to be here.

Nothing is imported from JAX before a device is asked for.
"""

import pathlib
from typing import Any

from ..options import Target


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
