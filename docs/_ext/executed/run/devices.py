"""What devices are called: the kinds that frameworks report, and the short names that pages use."""

import re
import subprocess
import sys
from collections.abc import Iterable

from ..frameworks import Framework, by_module
from ..options import Options
from .environment import kernel_environment

VENDORS = re.compile(
    r"^(?:tpu|(?:nvidia|amd|intel|google|cloud|geforce|instinct|radeon|tesla|quadro)\b)[\s-]*"
)
# What follows the model: the form of the board and the size of the memory.
BOARD = re.compile(r"^(?:sxm\d*|pcie|nvl|hbm\w*|oam|\d+g[bi]?b?)$")


def model_name(kind: str) -> str:
    """Return the short name of a kind of device, such as 'h200', or 'v5e' for 'TPU v5 lite'."""
    rest = kind.strip().lower()
    while (shorter := VENDORS.sub("", rest)) not in (rest, ""):
        rest = shorter
    words = [word for word in re.split(r"[^a-z0-9]+", rest.replace(" lite", "e")) if word]
    end = next((n for n, word in enumerate(words) if n and BOARD.match(word)), len(words))
    return "".join(words[:end])


def short_name(platform: str, kind: str) -> str:
    """Return the short name of a device, such as 'cpu' or 'gpu-h200'."""
    return "cpu" if platform == "cpu" else f"{platform}-{model_name(kind)}"


def question(registry: Iterable[Framework]) -> str:
    """Return an expression for a kernel: (platform, kind), by the first framework it has imported.

    None where there is no such framework. Names of the page are none of the expression's.
    """
    pairs = ", ".join(
        f"({module!r}, lambda {module}: {framework.device})"
        for module, framework in by_module(registry).items()
        if framework.device
    )
    first = (
        "next((tuple(map(str, ask(sys.modules[module])))"
        f" for module, ask in [{pairs}] if module in sys.modules), None)"
    )
    return f"__import__('builtins').eval({first!r}, {{'sys': __import__('sys')}})"


def this_device(options: Options) -> str:
    """Return the short name of the device that the first installed framework finds here.

    Raises RuntimeError where none can be asked.
    """
    usable = [f for f in options.registry if f.device and f.installed()]
    if not usable:
        raise RuntimeError("none of the book's frameworks is installed that knows its device")
    module = usable[0].modules[0]
    # In a process of its own: asking a framework takes hold of the device.
    code = f"import {module}\nplatform, kind = {usable[0].device}\nprint(platform, kind, sep='\\n')"
    environment = kernel_environment(options, "")
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise RuntimeError(f"{usable[0].name} cannot be asked for its device: {last}")
    platform, kind = done.stdout.splitlines()[-2:]
    return short_name(platform, kind)
