"""How much of a machine is used, and who may measure on it."""

import asyncio
import errno
import os

import pytest

from executed.run import machine
from executed.run.machine import Machine, cores, places

MANY = max(1, machine.threads())


@pytest.mark.parametrize(
    ("own", "files", "count"),
    [
        ("0::/\n", {}, MANY),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000"}, MANY),
        ("0::/a/b\n", {"a/b/cpu.max": "50000 100000"}, 1),
        ("0::/a/b\n", {"a/cpu.max": "100000 100000"}, 1),
        # In a container its own group is the top of what can be seen.
        ("0::/a/b\n", {"cpu.max": "100000 100000"}, 1),
        ("0::/a\n", {"a/cpu.max": "99900000 100000"}, MANY),
        ("0::/a\n", {"a/cpu.max": "nonsense"}, MANY),
    ],
)
def test_cores_respect_the_quotas_of_control_groups(tmp_path, own, files, count):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert cores(tmp_path / "groups", tmp_path / "own") == count


GIB = 2**30


@pytest.mark.parametrize(
    ("available", "files", "count"),
    [
        (2 * GIB, {}, 2),
        (GIB // 2, {}, 1),
        (64 * GIB, {"a": (4 * GIB, 1 * GIB, 0)}, 3),
        # Files that were read are in memory until it is wanted for something else.
        (64 * GIB, {"a": (4 * GIB, 4 * GIB, 3 * GIB)}, 3),
        (64 * GIB, {"a/b": (9 * GIB, 0, 0), "a": (2 * GIB, 0, 0)}, 2),
        (64 * GIB, {"a": ("max", 0, 0)}, 8),
        (None, {}, 8),
    ],
)
def test_no_more_processes_run_at_once_than_free_memory_holds(
    tmp_path, monkeypatch, available, files, count
):
    monkeypatch.setattr(machine, "threads", lambda: 8)
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/a/b\n")
    if available is not None:
        (proc / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {available // 1024} kB\n")
    for name, (most, used, read) in files.items():
        (groups / name).mkdir(parents=True, exist_ok=True)
        (groups / name / "memory.max").write_text(f"{most}\n")
        (groups / name / "memory.current").write_text(f"{used}\n")
        (groups / name / "memory.stat").write_text(f"anon 7\nfile {read}\nslab 8\n")
    assert places(1.0, groups, proc) == count


def test_memory_that_a_group_of_the_first_version_grants(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "threads", lambda: 8)
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("5:devices:/x\n4:memory:/a/b\n0::/\n")
    for name, most in {"memory/a/b": 2**63 - 4096, "memory/a": 4 * GIB}.items():
        (groups / name).mkdir(parents=True, exist_ok=True)
        (groups / name / "memory.limit_in_bytes").write_text(f"{most}\n")
        (groups / name / "memory.usage_in_bytes").write_text(f"{3 * GIB}\n")
        (groups / name / "memory.stat").write_text(f"cache 1\ntotal_cache {GIB}\n")
    assert places(1.0, groups, proc) == 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity")
def test_cores_respect_the_affinity(tmp_path):
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cores(tmp_path, tmp_path / "none") == 1
    finally:
        os.sched_setaffinity(0, before)


class Rooms:
    """Some builds on one machine, and the order of what they do."""

    def __init__(self, folder):
        self.said = []
        self.machines = [Machine(self.said.append, folder) for _ in range(3)]
        self.events = []

    async def do(self, number, alone, name, leave):
        async with self.machines[number].locked(alone):
            self.events.append(name)
            await leave.wait()
        self.events.append(f"{name} left")

    async def until(self, condition):
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)


def test_pages_run_beside_each_other_but_none_while_one_measures(tmp_path):
    async def scene():
        rooms = Rooms(tmp_path)
        leave = [asyncio.Event() for _ in range(4)]
        async with asyncio.TaskGroup() as group:
            group.create_task(rooms.do(0, False, "a", leave[0]))
            group.create_task(rooms.do(1, False, "b", leave[1]))
            await rooms.until(lambda: len(rooms.events) == 2)
            group.create_task(rooms.do(2, True, "measures", leave[2]))
            await rooms.until(lambda: rooms.said)
            leave[0].set()
            leave[1].set()
            await rooms.until(lambda: "measures" in rooms.events)
            group.create_task(rooms.do(0, False, "late", leave[3]))
            await rooms.until(lambda: len(rooms.said) == 2)
            leave[3].set()
            assert "late" not in rooms.events
            leave[2].set()
        assert rooms.events[4:] == ["measures", "measures left", "late", "late left"]
        return rooms.said

    assert asyncio.run(scene()) == [
        "waiting for another build on this machine to finish",
        "waiting for another build on this machine that measures",
    ]


def test_who_waits_can_be_interrupted(tmp_path):
    async def scene():
        rooms = Rooms(tmp_path)
        leave = asyncio.Event()
        first = asyncio.create_task(rooms.do(0, True, "first", leave))
        await rooms.until(lambda: rooms.events)
        second = asyncio.create_task(rooms.do(1, True, "second", leave))
        await rooms.until(lambda: rooms.said)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        leave.set()
        await first
        async with asyncio.timeout(20):
            await rooms.do(2, True, "third", leave)
        return rooms.events

    assert asyncio.run(scene()) == ["first", "first left", "third", "third left"]


def no_locks(*_):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("folder", ["none", ""])
def test_a_lock_that_cannot_be_used_is_said_and_stops_nobody(tmp_path, monkeypatch, folder):
    async def scene():
        said = []
        async with Machine(said.append, tmp_path / folder).locked(alone=True):
            return said

    monkeypatch.setattr(machine.fcntl, "flock", no_locks)
    (line,) = asyncio.run(scene())
    assert "cannot be used" in line and "BOOK_LOCKS" in line


ASKS = """
import pathlib
def setup(app):
    app.connect("env-before-read-docs", lambda *_: pathlib.Path({!r}).touch(), priority=1)
"""
MEASURES = """
stamp("in")
wait_for("asks")
time.sleep(0.4)
(stamps / "in").unlink()
"""


def test_two_builds_do_not_measure_at_the_same_time(project, empty_project, stamping, until):
    for name in ("other", "locks"):
        (project.root / name).mkdir()
    other = empty_project(project.root / "other")
    shared = {"STAMPS": str(other.stamps), "BOOK_LOCKS": str(project.root / "locks")}
    other.page("a/one", stamping, other.cell(MEASURES), benchmark=True)
    project.page("a/one", stamping, project.cell("assert not stamped('in')"), benchmark=True)
    project.configure(ASKS.format(str(other.stamp("asks"))))
    process = other.start(**shared)
    until(other.stamp("in").exists, "the other build never measured")
    builds = project.build(**shared), other.wait(process)
    assert all(build.green for build in builds), [build.output for build in builds]
    assert (project.root / "locks" / "book-measuring.lock").exists()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("cpu family : 25\nmodel : 1\nmodel name : AMD EPYC\n\nmodel : 9", "family 25, model 1"),
        ("cpu family : 6\nmodel : 85\nmodel name : Intel(R) Xeon(R) CPU @ 2.00GHz", ""),
        ("model name : Neoverse", ""),
    ],
)
def test_a_processor_whose_name_tells_little_says_its_numbers(lines, said, tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    path.write_text(lines, "utf8")
    monkeypatch.setattr(machine, "CPUINFO", path)
    name = lines.partition("model name : ")[2].splitlines()[0]
    assert machine.processor.__wrapped__() == f"{name}{said and ', '}{said}"


def test_without_a_list_of_processors_python_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "nothing")
    assert machine.processor.__wrapped__()
