"""Build the site and run the tests under load, and say which verdict each came to: `nox -s stress`.

Nobody's machine is idle, and a verdict must not depend on that. Each row of the table is a whole
build from nothing, or all tests, under one condition:

    python tests/stress.py [condition ...] [--only docs|tests] [-- arguments of the command]
"""

import argparse
import contextlib
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parents[1]
# As many processes as the commands of noxfile.py run.
PLACES = runpy.run_path(str(ROOT / "docs" / "_ext" / "executed" / "run" / "machine.py"))["places"]
BUSY = [sys.executable, "-c", "while True: pass"]
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
MEMORY = 4 * 2**30
# Each write waits for the disk.
SLOW_DISK = """
import os, sys
handle = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_SYNC)
while True:
    os.pwrite(handle, bytes(4_000_000), 0)
"""
# libfaketime takes the time of a sleep for one of the clock that jumps, and calls it invalid.
SLEEP = """
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest)
{ return syscall(SYS_clock_nanosleep, clock, flags, until, rest) ? errno : 0; }
"""
GROUPS = pathlib.Path("/sys/fs/cgroup")
FAKETIME = sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
SUMMARY = re.compile(r"^(?:=+ )?(\d+ (?:passed|failed|error).*?)(?: =+)?$", re.MULTILINE)
REASON = re.compile(r"^(?:.*(?:WARNING|ERROR): |FAILED |ERROR ).*$", re.MULTILINE)


@contextlib.contextmanager
def processes(commands):
    """Let other programs run meanwhile."""
    running = [subprocess.Popen(words) for words in commands]
    try:
        yield {}
    finally:
        for each in running:
            each.kill()
            each.wait()


@contextlib.contextmanager
def quiet(folder):
    """Change nothing."""
    yield {}


@contextlib.contextmanager
def one_core(folder):
    """Leave one core."""
    os.sched_setaffinity(0, CORES[:1])
    try:
        yield {}
    finally:
        os.sched_setaffinity(0, CORES)


def busy_loops(folder):
    """Keep each core busy with two loops."""
    return processes([BUSY] * 2 * len(CORES))


def slow_disk(folder):
    """Let two programs write to the same disk all the time, and wait for it."""
    files = (folder / f"written-{number}" for number in range(2))
    return processes([[sys.executable, "-c", SLOW_DISK, str(each)] for each in files])


@contextlib.contextmanager
def little_memory(folder):
    """Leave 4 GiB of memory, by a control group, which root alone may make."""
    old = GROUPS / "memory"
    top, limit = (old, "memory.limit_in_bytes") if old.is_dir() else (GROUPS, "memory.max")
    group = top / "book-stress"
    try:
        if top is GROUPS:
            (top / "cgroup.subtree_control").write_text("+memory")
        group.mkdir(exist_ok=True)
        (group / limit).write_text(str(MEMORY))
    except OSError as error:
        raise SystemExit(f"little_memory: no control group can be made here: {error}") from None
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield {}
    finally:
        (top / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def jumping_clock(folder):
    """Let the clock of the day go back or forth by up to two hours every three seconds."""
    if not FAKETIME:
        raise SystemExit("jumping_clock: install libfaketime, on Debian 'apt-get install faketime'")
    offset, ended = folder / "offset", threading.Event()
    sleep = folder / "sleep.so"
    words = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(sleep), "-"]
    subprocess.run(words, input=SLEEP, text=True, check=True)
    offset.write_text("+0", "utf8")

    def jump():
        minutes = 0
        while not ended.wait(3):
            minutes = (minutes + 50) % 240
            offset.write_text(f"{(minutes - 120) * 60:+d}", "utf8")

    thread = threading.Thread(target=jump)
    thread.start()
    try:
        yield {
            "LD_PRELOAD": f"{sleep}:{FAKETIME[0]}",
            "FAKETIME_TIMESTAMP_FILE": str(offset),
            "FAKETIME_CACHE_DURATION": "1",
            # No program expects that of the clock that never goes back.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    finally:
        ended.set()
        thread.join()


CONDITIONS = {
    each.__name__: each
    for each in (quiet, one_core, busy_loops, little_memory, slow_disk, jumping_clock)
}


def commands(folder, more):
    """Return the two commands, of which a build begins with nothing and leaves nothing here."""
    cache = ["-D", f"book_cache={folder / 'cache'}", "-d", str(folder / "doctrees")]
    jobs = ["-j", str(min(PLACES(0.5), 4) + 1)]
    build = ["sphinx-build", "-W", "--keep-going", *jobs, "-c", ".", *cache, *more]
    tests = ["pytest", "-n", str(min(PLACES(2), 4)), "--dist", "worksteal", *more]
    return {"docs": [*build, "docs", str(folder / "html")], "tests": tests}


def verdict(status, output):
    """Say what came of a command, and of a red one the first lines that say why."""
    found = SUMMARY.findall(output)
    said = [found[-1]] if found else []
    if status:
        said += REASON.findall(output)[:5]
    return "; ".join(["red" if status else "green", *said])


def row(name, command, more):
    """Run a command under a condition; return the line of the table."""
    with tempfile.TemporaryDirectory(prefix="stress-") as place:
        folder = pathlib.Path(place)
        with CONDITIONS[name](folder) as variables:
            start = time.monotonic()
            done = subprocess.run(
                commands(folder, more)[command],
                cwd=ROOT,
                env=os.environ | variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            minutes = (time.monotonic() - start) / 60
        kept = ROOT / "build" / "stress"
        kept.mkdir(parents=True, exist_ok=True)
        (kept / f"{name}-{command}.log").write_text(done.stdout, "utf8")
    return f"| {name} | {command} | {minutes:.1f} | {verdict(done.returncode, done.stdout)} |"


def main():
    """Print the table; leave with 1 where a row is red."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("conditions", nargs="*", help=f"of {', '.join(CONDITIONS)}; or all")
    parser.add_argument("--only", choices=["docs", "tests"])
    own, more = sys.argv[1:], []
    if "--" in own:
        place = own.index("--")
        own, more = own[:place], own[place + 1 :]
    chosen = parser.parse_args(own)
    if unknown := {*chosen.conditions} - {*CONDITIONS}:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(CONDITIONS)}")
    if not shutil.which("sphinx-build"):
        parser.error("it needs the environment of the book: 'nox -s stress'")
    print("| condition | command | minutes | verdict |\n|---|---|---|---|", flush=True)
    lines = []
    for name in chosen.conditions or CONDITIONS:
        for command in [chosen.only] if chosen.only else ["docs", "tests"]:
            lines.append(row(name, command, more))
            print(lines[-1], flush=True)
    sys.exit(any("| red" in line for line in lines))


if __name__ == "__main__":
    main()
