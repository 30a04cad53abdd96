"""A process of the tests gives back what it has freed."""

import pathlib
import subprocess
import sys

import pytest

from tests import conftest, memory

ROOT = pathlib.Path(__file__).parents[2]
HELD = """
import ctypes, sys
from tests.memory import give_back

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4 // 1024

libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(60_000) for _ in range(4000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
# The last one keeps glibc from giving back the others by itself.
for block in blocks[:-1]:
    libc.free(block)
before = held()
give_back()
print(before - held())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone keeps what was freed")
def test_what_was_freed_is_given_back():
    done = subprocess.run(
        [sys.executable, "-c", HELD], cwd=ROOT, check=True, capture_output=True, encoding="utf8"
    )
    assert int(done.stdout) > 150


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says what a process holds")
def test_what_a_process_holds_is_known():
    before = memory.held()
    block = bytearray(b"x") * 200_000_000
    assert 150 < memory.held() - before < 250, len(block)


@pytest.mark.parametrize(("grown", "forgets"), [(200, 0), (400, 1)])
def test_a_process_that_grows_forgets_in_the_middle_of_a_module(monkeypatch, grown, forgets):
    forgotten, module = [], [1000]
    monkeypatch.setattr(memory, "held", lambda: 1000 + grown - 350 * len(forgotten))
    monkeypatch.setattr(conftest, "forget", lambda: forgotten.append("all"))
    for _ in range(3):
        test = conftest.bounded.__wrapped__(module)
        next(test)
        assert next(test, None) is None
    assert len(forgotten) == forgets
