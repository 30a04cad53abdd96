"""What a device can do at most, as its vendor publishes it."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Peaks:
    """The bytes a second of a device and its memory, its operations by dtype, and the `source`.

    What a matmul takes in float32 may be `shortened` to another dtype.
    """

    bandwidth: float
    rates: Mapping[str, float]
    shortened: str
    source: str

    def seconds(self, moved: float, work: float, dtype: str = "") -> float:
        """Return how long it takes at least to move bytes and do work, by default `shortened`."""
        rate = self.rates.get(dtype or self.shortened)
        return max(moved / self.bandwidth, work / rate if rate else 0)
