"""A build says what is done, what runs, and how long the rest will take."""

import asyncio
import math

import pytest

from executed.run import progress


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_line_says_what_is_done_how_long_the_rest_takes_and_what_runs(clock):
    lines = []
    build = progress.Progress({"a/long": 80.0, "a/short": 15.0, "a/tiny": 5.0}, lines.append)
    build.begin("a/tiny")
    build.begin("a/long")
    clock.now = 30.0
    build.end("a/tiny", "executed", 30.0)
    build.begin("a/short")
    build.end("a/long", "failed", 1.25)
    clock.now = 170.0
    build.end("a/short", "executed", 140.0)
    assert lines == [
        # A twentieth of the work says nothing of the rest.
        "[1/3] executed a/tiny in 30.0 s; now a/long",
        "[2/3] failed a/long in 1.2 s; less than 1 min left; now a/short",
        "[3/3] executed a/short in 140.0 s",
    ]


def test_the_rest_takes_as_long_for_its_work_as_what_is_done(clock):
    lines = []
    build = progress.Progress({"a": 20.0, "b": 60.0, "new": math.inf}, lines.append)
    clock.now = 60.0
    build.end("a", "executed", 60.0)
    # Of a page of which nothing is known the usual work is expected: 40.
    assert lines == ["[1/3] executed a in 60.0 s; about 5 min left"]


def test_a_silence_is_broken(clock, monkeypatch):
    lines, slept = [], []

    async def sleep(seconds):
        slept.append(seconds)
        clock.now += seconds
        if len(slept) == 3:
            raise asyncio.CancelledError

    async def build_with_a_long_page():
        build = progress.Progress({"a/long": 1.0, "a/b": 1.0}, lines.append)
        build.begin("a/long")
        async with build.watched():
            while len(slept) < 3:
                await waiting()

    async def waiting():
        await real_sleep(0)

    real_sleep = asyncio.sleep
    monkeypatch.setattr(progress.asyncio, "sleep", sleep)
    asyncio.run(build_with_a_long_page())
    assert slept == [progress.SILENCE] * 3
    assert lines == ["[0/2] still executing; now a/long"] * 2
