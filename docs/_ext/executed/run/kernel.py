"""The kernel in which a page is executed: an ordinary one, with bounds, and errors for readers.

It runs in the kernel's own process and imports nothing of this package: either as a script, or
called by `fork_template.py` after a fork. What it needs of a page stands in `page.json` beside the
connection file: the limit of characters that a cell may print, the code before the first cell,
and what to import before all else.
"""

import builtins
import codecs
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pathlib
import re
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from ipykernel import iostream
from ipykernel.iostream import OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.session import Session

# Nobody stops in a page, and each kernel would import the debugger for it.
sys.modules["debugpy"] = None  # type: ignore[assignment]
import ipykernel.debugger  # noqa: E402, F401

del sys.modules["debugpy"]

# A line of the file of a cell, as messages of compilers name it.
PLACE = re.compile(r"(?:\bline )?(/[^\s:'\"()]*/ipykernel_\d+/\d+\.py):(\d+)(?::\d+)?")
# How many times longer than text pictures and tables may be.
RICH = 20
# How much of what native code prints goes to the log, too.
LARGEST_ECHO = 1_000_000
# No pipe holds more: one reading empties it.
LARGEST_PIPE = 1 << 20
PR_SET_PDEATHSIG = 1
Values = dict[str, Any]


def end_with(parent: int) -> None:
    """Let the system kill this process as soon as its parent is gone, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


class ZMQInteractiveShell:
    """What `get_ipython()` gives during imports: some decide by its name what they print later."""


class Printed(io.TextIOBase):
    """What imports print. A log handler that keeps this stream later writes to stderr."""

    def __init__(self) -> None:
        self.text = ""
        self.importing = True

    def write(self, text: str) -> int:
        """Keep a text, or hand it on."""
        if not self.importing:
            return sys.stderr.write(text)
        self.text += text
        return len(text)

    def close(self) -> None:
        """Stay open: whoever keeps it did not open it."""


def imported_quietly(modules: Sequence[str]) -> bool:
    """Import modules as a notebook does; False where that fails or prints something.

    What an import prints belongs on the page: a process that has not imported shows it.
    """
    printed = Printed()
    vars(builtins)["get_ipython"] = ZMQInteractiveShell
    # What is imported stays: to look for garbage in it again and again takes a fifth of the time.
    gc.disable()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for name in modules:
                importlib.import_module(name)
    except BaseException:
        return False
    finally:
        printed.importing = False
        gc.enable()
        del vars(builtins)["get_ipython"]
    return not printed.text


class BoundedSession(Session):
    """Sends no more of what a cell prints and displays than a limit, and counts the rest."""

    limit: int
    shown = rich = left_out = 0

    def begin(self) -> None:
        """Count from zero, for the next cell."""
        self.shown = self.rich = self.left_out = 0

    def send(
        self, stream: Any, msg_or_type: Any, content: Any = None, *rest: Any, **named: Any
    ) -> Any:
        """Send a message; see the base class."""
        message = msg_or_type if isinstance(msg_or_type, dict) else None
        kind = message["header"]["msg_type"] if message else msg_or_type
        body = message["content"] if message else content
        if kind == "stream":
            body["text"] = self._text(body["text"])
            if not body["text"]:
                return None
        elif kind in ("display_data", "execute_result", "update_display_data"):
            if not self._fits(body):
                return None
        elif kind == "error":
            # It is shown whatever came before it.
            body["evalue"] = body["evalue"][: self.limit]
            lines = "\n".join(body["traceback"])
            body["traceback"] = [lines[: self.limit]]
            self.left_out += len(lines[self.limit :])
        return super().send(stream, msg_or_type, content, *rest, **named)

    def _text(self, text: str) -> str:
        """Return what may be shown of a text."""
        shown = text[: max(self.limit - self.shown, 0)]
        self.shown += len(shown)
        self.left_out += len(text) - len(shown)
        return shown

    def _fits(self, content: Values) -> bool:
        """Say whether a value in several formats may be shown, all of it; a text may be cut."""
        data = content["data"]
        if data.keys() == {"text/plain"} and isinstance(plain := data["text/plain"], str):
            data["text/plain"] = self._text(plain + "\n").removesuffix("\n")
            return bool(data["text/plain"]) or not plain
        size = len(self.pack(content))
        fits = self.rich + size <= RICH * self.limit
        self.rich += size if fits else 0
        self.left_out += 0 if fits else size
        return fits


class Stream(OutStream):
    """A stream of the kernel that loses nothing, and shows nothing with the next cell.

    Native code and child processes write past Python, into a pipe. A thread reads it, and the
    end of a cell reads what is left in it. ipykernel has no public names for the pipe (`_fid`), for
    whether it is still read (`_should_watch`), and for where the log goes.
    """

    _fid: Any

    def __init__(self, *rest: Any, **named: Any) -> None:
        self._reading, self._echoed = threading.RLock(), 0
        self._decode = codecs.getincrementaldecoder("utf8")("replace").decode
        super().__init__(*rest, **named)

    # What ipykernel's own thread does loses the end of what was written when a cell ends.
    def _watch_pipe_fd(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while self._should_watch:
                select.select([self._fid], [], [])
                self.read_pipe()

    def read_pipe(self) -> None:
        """Take over all that is in the pipe now."""
        with self._reading, contextlib.suppress(OSError, ValueError):
            # The other thread may have read it since.
            if self._should_watch and select.select([self._fid], [], [], 0)[0]:
                data = os.read(self._fid, LARGEST_PIPE)
                self.write(self._decode(data))
                self._echoed += len(data)
                # Where a kernel dies, the build reads it there.
                if self._echoed <= LARGEST_ECHO:
                    os.write(self._original_stdstream_copy, data)


class PageKernel(IPythonKernel):
    """An IPython kernel that says below a cell's output how much of it was left out."""

    session: Any
    streams: Sequence[Stream] = ()
    failed: Values | None = None

    async def do_execute(self, code: str, silent: bool, *rest: Any, **named: Any) -> Any:
        """Execute a cell; see the base class. The reply says where the cell `failed`, if it did."""
        if not silent:
            self.session.begin()
        self.failed = None
        try:
            reply = await super().do_execute(code, silent, *rest, **named)
            return reply | {"failed": self.failed}
        finally:
            for stream in self.streams:
                stream.read_pipe()
                stream.flush()
            if left_out := self.session.left_out:
                notice = f"\n… and {left_out:,} more characters\n"
                # It is shown beyond the limit.
                self.session.shown = -len(notice)
                self.streams[0].write(notice)
                self.streams[0].flush()


class Scrubber:
    """Says in messages where on the page something is, in place of the file of a cell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def cell_of(self, filename: str | None) -> int | None:
        """Return the number of the cell that was compiled under this file name, or None."""
        code_name = self.shell.compile.format_code_name(filename)
        number = re.search(r"\d+", code_name[1]) if code_name else None
        return int(number.group()) if number else None

    def is_last(self, filename: str | None) -> bool:
        """Whether a file holds the cell that is being executed."""
        # Whether the count of executions is that of this cell or of the next differs by version.
        return bool(self.cell_of(filename) == max(self.shell.compile._filename_map.values()))

    def place(self, filename: str | None, line: object) -> str:
        """Say where a frame is, in words that mean something on the page."""
        return f"line {line}" if self.is_last(filename) else f"an earlier cell, line {line}"

    def clean(self, text: str) -> str:
        """Replace the files of cells in a message, with the lines that it names."""
        return PLACE.sub(lambda match: self.place(match[1], match[2]), text)


def _show_traceback(
    shell: Any, etype: Any, value: Any, tb: Any, tb_offset: int | None = None
) -> list[str]:
    """Publish an error with the reader's own frames and its message, nothing else."""
    scrubber = Scrubber(shell)
    lines = ["Traceback (most recent call last):"]
    shell.kernel.failed = failed = {"line": 1, "unknown": ""}
    if isinstance(value, NameError) and value.name:
        failed["unknown"] = value.name
    for frame in traceback.extract_tb(tb):
        if scrubber.cell_of(frame.filename) is not None:
            if len(lines) == 1 and scrubber.is_last(frame.filename):
                failed["line"] = frame.lineno
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
    # A handler of errors has to show them itself, and IPython has no public name for that.
    shell._showtraceback(etype, message, ["\n".join(lines)])
    return lines


def main() -> None:
    """Start the kernel with the connection file that the command line names."""
    app: Any = IPKernelApp.instance()
    home = pathlib.Path(sys.argv[sys.argv.index("-f") + 1]).parent
    page = json.loads((home / "page.json").read_text("utf8"))
    # Of those that fail the page itself will hear.
    imported_quietly(page["first"])
    app.session = BoundedSession(parent=app)
    app.session.limit = page["output_limit"]
    app.kernel_class = PageKernel
    # Nobody reads it, and to begin its file takes as long as all else here.
    app.config.HistoryManager.enabled = False
    # It is imported by this name, and this file has none.
    vars(iostream)["OutStream"] = Stream
    # Read when its class was defined, which in a forked kernel was in the parent.
    app.parent_handle = int(os.environ.get("JPY_PARENT_PID") or 0)
    app.initialize()
    app.kernel.streams = sys.stdout, sys.stderr
    app.shell.set_custom_exc((Exception,), _show_traceback)
    # For a history that nobody reads IPython would format each error with the source of all its
    # frames, which takes half of a second where frames are those of JAX.
    app.shell._format_exception_for_storage = lambda error, *rest: {
        "ename": type(error).__name__,
        "evalue": "",
        "traceback": [],
    }
    warnings.formatwarning = lambda message, category, *rest, **named: (
        f"{category.__name__}: {Scrubber(app.shell).clean(str(message))}\n"
    )
    # As in Jupyter, a page may import the files beside it.
    sys.path.insert(0, "")
    exec(compile(page["prelude"], "prelude", "exec"), {"__name__": "__main__"})
    app.start()


if __name__ == "__main__":
    if parent := int(os.environ.get("JPY_PARENT_PID") or 0):
        end_with(parent)
    main()
