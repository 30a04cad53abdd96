"""The kernel in which a page is executed: an ordinary one, with tracebacks made for readers.

Runs as a script in the kernel's own process and imports nothing of this package.
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import traceback
import warnings

from ipykernel.kernelapp import IPKernelApp

PACKAGES = ("jax", "jaxlib", "torch", "tensorflow", "tensorflow-cpu", "numpy")
INSTALLED = re.compile(r"(?:/[^\s:'\"()]+)?/(?:site|dist)-packages/")


class Scrubber:
    """Takes the places of this machine out of messages: files of cells, installed packages."""

    def __init__(self, shell):
        """Take the shell whose cells are meant."""
        self.shell = shell

    def cell_of(self, filename):
        """Return the number of the cell that was compiled under this file name, or None."""
        known = self.shell.compile.format_code_name(filename)
        return int(re.search(r"\d+", known[1]).group()) if known else None

    def place(self, filename, line):
        """Say where a frame is, in words that mean something on the page."""
        here = self.cell_of(filename) == max(self.shell.compile._filename_map.values())
        return f"line {line}" if here else f"an earlier cell, line {line}"

    def clean(self, text):
        """Replace the places of this machine in a message."""
        for filename in self.shell.compile._filename_map:
            text = re.sub(
                r"(?:\bline )?" + re.escape(filename) + r":(\d+)(?::\d+)?",
                lambda found, name=filename: self.place(name, found.group(1)),
                text,
            ).replace(filename, "this page")
        return INSTALLED.sub("", text)


def show_traceback(shell, etype, value, tb, tb_offset=None):
    """Publish an error with the reader's own frames and its message, nothing else."""
    scrubber = Scrubber(shell)
    lines = ["Traceback (most recent call last):"]
    for frame in traceback.extract_tb(tb):
        if scrubber.cell_of(frame.filename) is not None:
            inside = "" if frame.name == "<module>" else f", in {frame.name}"
            lines.append(f"  {scrubber.place(frame.filename, frame.lineno)}{inside}")
            lines.append(f"    {frame.line}")
    message = scrubber.clean(str(value))
    if isinstance(value, SyntaxError) and scrubber.cell_of(value.filename) is not None:
        lines.append(f"  {scrubber.place(value.filename, value.lineno)}")
        lines.append(f"    {(value.text or '').strip()}")
        message = value.msg
    lines.append(f"{etype.__name__}: {message}" if message else etype.__name__)
    for note in getattr(value, "__notes__", ()):
        if "JAX_TRACEBACK_FILTERING" not in note:
            lines.append(scrubber.clean(note))
    shell._showtraceback(etype, message, ["\n".join(lines)])
    return lines


def device():
    """Return (short name, kind) of the device that the page's frameworks used.

    Both are None where the page used no framework.
    """
    if "jax" in sys.modules:
        import jax

        first = jax.devices()[0]
        kind = first.device_kind
        if first.platform == "cpu":
            return "cpu", "cpu"
        return f"{first.platform}-{model_name(kind)}", kind
    if "torch" in sys.modules:
        import torch

        if torch.cuda.is_available():
            kind = torch.cuda.get_device_name()
            return f"gpu-{model_name(kind)}", kind
        return "cpu", "cpu"
    return ("cpu", "cpu") if "tensorflow" in sys.modules else (None, None)


def model_name(kind):
    """Return the short name of a kind of device, such as 'h200' or 'v5e' (for 'TPU v5 lite')."""
    model = re.sub(r"^(nvidia|tpu|amd)\b", "", kind.lower()).replace(" lite", "e")
    return re.sub("[^a-z0-9]+", "", model)


def gpu_facts():
    """Return the driver and the memory of the first NVIDIA GPU, as its own tool gives them."""
    command = ["nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    first = done.stdout.strip().splitlines()[:1]
    driver, _, memory = (first or [""])[0].partition(",")
    return {"driver": driver.strip(), "memory": memory.strip()}


def processor_name():
    """Return the processor's model name as the operating system gives it."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def report():
    """Return, as JSON, on what this kernel ran: device, processor, Python, versions."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        name, kind = device()
    except RuntimeError as error:
        name = kind = f"none: {error}"
    facts = {
        "device": name,
        "device_kind": kind,
        "processor": processor_name(),
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "versions": versions,
    }
    return json.dumps(facts | (gpu_facts() if (name or "").startswith("gpu") else {}))


def main():
    """Start the kernel with the connection file that the command line names."""
    app = IPKernelApp.instance()
    app.initialize()
    app.shell.set_custom_exc((Exception,), show_traceback)
    app.shell.report = report
    warnings.formatwarning = lambda message, category, *rest, **named: (
        f"{category.__name__}: {Scrubber(app.shell).clean(str(message))}\n"
    )
    app.start()


if __name__ == "__main__":
    main()
