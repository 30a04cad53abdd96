"""This machine: its processor, how much of it may be used, and who may measure on it now."""

import asyncio
import contextlib
import fcntl
import functools
import math
import os
import pathlib
import platform
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator

CGROUPS = pathlib.Path("/sys/fs/cgroup")
PROC = pathlib.Path("/proc")
CPUINFO = PROC / "cpuinfo"
# What tells processors of one name apart.
NUMBERS = ("cpu family", "model")
# What a control group calls its limit of memory, what is used of it, and what of that are files, in
# version 2 and in version 1, whose groups for memory have a tree of their own.
MEMORY = {
    "": ("memory.max", "memory.current", "file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"),
}
# Where the lock lies that all builds of a machine share, whoever runs them.
LOCKS = "BOOK_LOCKS"


def places(each: float, root: pathlib.Path = CGROUPS, proc: pathlib.Path = PROC) -> int:
    """Return how many processes that hold `each` GiB of memory may run at once, at least one."""
    fit = free(root, proc) / each
    return max(1, int(min(cores(root, proc / "self" / "cgroup"), fit)))


def free(root: pathlib.Path = CGROUPS, proc: pathlib.Path = PROC) -> float:
    """Return how many GiB of memory this process may take, infinity where nothing tells."""
    return min((each / 2**30 for each in _free(root, proc)), default=math.inf)


def cores(root: pathlib.Path = CGROUPS, own: pathlib.Path = PROC / "self" / "cgroup") -> int:
    """Return how many cores this process may use: by its affinity, and by its groups' quotas."""
    return max(1, min([threads(), *(math.ceil(quota) for quota in _quotas(root, own))]))


def threads() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(root: pathlib.Path, own: pathlib.Path) -> Iterator[float]:
    """Yield the cores that the control group of this process and those above it grant."""
    for group in _groups(root, own):
        # A ValueError: there is no limit.
        with contextlib.suppress(OSError, ValueError):
            most, period = map(int, (group / "cpu.max").read_text().split())
            yield most / period


def _free(root: pathlib.Path, proc: pathlib.Path) -> Iterator[int]:
    """Yield the bytes of memory that the machine has free, and each control group with a limit."""
    with contextlib.suppress(OSError):
        facts = dict(line.split(":") for line in (proc / "meminfo").read_text().splitlines())
        yield int(facts["MemAvailable"].split()[0]) * 1024
    for tree, (limit, current, files) in MEMORY.items():
        for group in _groups(root, proc / "self" / "cgroup", tree):
            with contextlib.suppress(OSError, ValueError):
                most, used = (int((group / name).read_text()) for name in (limit, current))
                lines = (group / "memory.stat").read_text().splitlines()
                # Files are given back where memory is wanted.
                yield most - used + int(dict(line.split() for line in lines)[files])


def _groups(root: pathlib.Path, own: pathlib.Path, tree: str = "") -> Iterator[pathlib.Path]:
    """Yield the control group of this process and those above it, of one tree of version 1."""
    folder = root / tree
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, kind, path = line.split(":", 2)
            if kind == tree:
                folder = root / tree / path.strip("/")
    # In a container its own group is the top of what can be seen.
    yield from (folder, *folder.parents)


@functools.cache
def processor() -> str:
    """Return the processor's model name as the operating system gives it.

    In a virtual machine it may be that of a whole line of products. Then family and model follow:
    of two that are called the same, one may be twice as fast, and know more instructions.
    """
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in CPUINFO.read_text("utf8", "replace").splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    if any(map(str.isdigit, name)):
        return name
    more = [f"{key.removeprefix('cpu ')} {facts[key]}" for key in NUMBERS if key in facts]
    return ", ".join([name, *more])


@functools.cache
def accelerator() -> dict[str, str]:
    """Return driver and memory of the first NVIDIA GPU, as its own tool gives them."""
    command = ["nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    first = done.stdout.strip().splitlines()[:1]
    driver, _, memory = (first or [""])[0].partition(",")
    return {"driver": driver.strip(), "memory": memory.strip()}


class Machine:
    """Keeps pages that measure apart from all others that this machine executes.

    Whoever executes a page holds a lock on a file, a page that measures holds it alone. The
    system frees it when a process ends.
    """

    def __init__(self, say: Callable[[str], None], folder: pathlib.Path | None = None) -> None:
        """Take what receives a line where somebody has to wait, and the folder of the lock."""
        self._say = say
        self._said: set[str] = set()
        default = "/tmp" if pathlib.Path("/tmp").is_dir() else tempfile.gettempdir()
        self._folder = pathlib.Path(folder or os.environ.get(LOCKS) or default)

    def _tell(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)

    @contextlib.asynccontextmanager
    async def locked(self, alone: bool) -> AsyncIterator[None]:
        """Wait until nobody measures, or until nobody executes a page, and keep it so."""
        path = self._folder / "book-measuring.lock"
        with contextlib.ExitStack() as opened:
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
                opened.callback(os.close, handle)
                kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
                while not _taken(handle, kind):
                    what = "to finish" if alone else "that measures"
                    self._tell(f"waiting for another build on this machine {what}")
                    await asyncio.sleep(0.05)
            except OSError as error:
                # It cannot be written, or its file system has no locks.
                why = f"{path} cannot be used ({error.strerror})"
                self._tell(f"{why}: others may disturb measurements; {LOCKS} names another folder")
            yield


def _taken(handle: int, kind: int) -> bool:
    """Take a lock, or say that others hold it; raises OSError where there are no locks."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
