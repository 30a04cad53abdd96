"""A page's own outputs beside its recordings: a result for each device."""

import dataclasses
from collections.abc import Iterable

from ..source.pages import Page
from .output_format import PageOutputs
from .recordings import Recordings
from .states import State


@dataclasses.dataclass(frozen=True)
class DeviceResult:
    """What a page gave on one device.

    `outputs` are None where there are none to show. `recorded` says how the recording of the
    device stands, and `recording` what it holds. `live` is true where the outputs were made,
    or cached, by this build.
    """

    device: str
    outputs: PageOutputs | None
    recorded: State
    recording: PageOutputs | None
    live: bool


def device_results(
    page: Page,
    live: PageOutputs | None,
    recordings: Recordings,
    home: str,
    devices: Iterable[str],
) -> list[DeviceResult]:
    """Put a page's outputs beside its recordings; the device that it is executed on comes first.

    `home` is that device, `live` what it gave, None where only recordings are shown.
    """
    results = []
    for device in dict.fromkeys([home, *devices]):
        if page.device is not None and device != home:
            if not recordings.path(device, page.docname).exists():
                continue
        state, recording = recordings.state(device, page.docname, page)
        own = live if device == home else None
        results.append(DeviceResult(device, own or recording, state, recording, own is not None))
    return results
