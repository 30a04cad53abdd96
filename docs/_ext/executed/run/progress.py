"""What a build says while it executes pages: what is done, what runs, and how long it will take."""

import asyncio
import contextlib
import math
import statistics
import time
from collections.abc import AsyncIterator, Callable, Mapping

# Seconds of silence after which somebody wonders whether the build still runs.
SILENCE = 30.0
# The part of the work after which its pace says something of the rest.
TELLING = 0.1


class Progress:
    """Says a line for each page that is done, and one where none was for a while.

    `expected` maps the pages to the work that each will take, in any unit; infinite where nothing
    is known.
    """

    def __init__(self, expected: Mapping[str, float], say: Callable[[str], None]) -> None:
        """Take the pages that will be executed, and what receives the lines."""
        known = [work for work in expected.values() if math.isfinite(work)]
        usual = statistics.median(known) if known else 1.0
        self.left = {
            name: work if math.isfinite(work) else usual for name, work in expected.items()
        }
        self.count, self.work = len(expected), sum(self.left.values())
        self.running: dict[str, None] = {}
        self.started = self.said = time.monotonic()
        self._say = say

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Break silences meanwhile."""
        watching = asyncio.create_task(self._break_silences())
        try:
            yield
        finally:
            watching.cancel()

    async def _break_silences(self) -> None:
        while True:
            await asyncio.sleep(max(1.0, self.said + SILENCE - time.monotonic()))
            if self.running and time.monotonic() >= self.said + SILENCE:
                self._tell(f"[{self.count - len(self.left)}/{self.count}] still executing")

    def begin(self, name: str) -> None:
        """Note that a page is being executed."""
        self.running[name] = None

    def end(self, name: str, verdict: str, seconds: float) -> None:
        """Say that a page was executed."""
        self.running.pop(name, None)
        self.left.pop(name, None)
        done = self.count - len(self.left)
        self._tell(f"[{done}/{self.count}] {verdict} {name} in {seconds:.1f} s")

    def _tell(self, line: str) -> None:
        self.said = time.monotonic()
        parts = [line, self._rest()]
        if self.running:
            parts.append(f"now {', '.join(self.running)}")
        self._say("; ".join(filter(None, parts)))

    def _rest(self) -> str:
        """Say how long the rest will take, where that can be told and anything is left."""
        left = sum(self.left.values())
        done = self.work - left
        if not left or done < TELLING * self.work:
            return ""
        minutes = (self.said - self.started) * left / done / 60
        return f"about {math.ceil(minutes)} min left" if minutes > 1 else "less than 1 min left"
