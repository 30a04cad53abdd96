"""Execute one page in one kernel, and say what came of it."""

import asyncio
import dataclasses
import datetime
import json
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from ..frameworks import versions
from ..options import Options
from ..source.code import bound_names, names_bound_before
from ..source.pages import Cell, Page
from ..store import outputs
from ..store.output_format import CellOutputs, PageOutputs, Process, RunMetadata
from . import devices, environment, imports, machine, provisioning
from .availability import Frameworks
from .client import Client, this_task
from .expectations import judge
from .outcome import Failure, Result


class PageRun:
    """One page in one kernel: forked from `warm` parents, or, without them, started for it."""

    def __init__(
        self,
        page: Page,
        options: Options,
        device: str,
        warm: provisioning.Parents | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        """Take the page, the device it must run on, and the modules that a parent has imported."""
        self.page, self.options, self.device = page, options, device
        self.warm, self.modules = warm, modules
        self.clock = asyncio.timeout(options.page_timeout)
        self.cells = page.cells
        self.failures: list[Failure] = []
        self.kind = device
        self.variables: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.imports: dict[str, str] = {}
        # Names that cells would have bound, had they been executed to their end, each with the why.
        self.lost: dict[str, str] = {}
        self.status: int | None = None
        self.used = self.used_by_others = 0.0
        self.last_words = ""
        # The cells that are executed, in a notebook of their own: the page stays as it is.
        code = [nbformat.v4.new_code_cell(cell.source) for cell in self.cells]
        self.notebook = nbformat.v4.new_notebook(cells=code)
        self.number = 0

    def _fail(self, message: str) -> None:
        line = self.cells[self.number].line
        self.failures.append(Failure(line, f"cell {self.number + 1}: {message}"))

    async def executed(self) -> Result:
        """Execute the page, and return what came of it.

        Raises ParentLost where the parent of its kernel ended before it did.
        """
        started = time.perf_counter()
        date = datetime.datetime.now(datetime.UTC).isoformat("T", "seconds")
        with tempfile.TemporaryDirectory(prefix="book-", ignore_cleanup_errors=True) as home:
            if self._find_missing():
                await self._in_time(pathlib.Path(home))
            seconds = time.perf_counter() - started
            work = self.used + self.used_by_others
            facts = RunMetadata(
                page=self.page.docname,
                device=self.device,
                device_kind=self.kind,
                executed=date,
                seconds=seconds,
                cores=round(work / seconds, 2),
                started=round(self.used_by_others / work, 2) if work else 0.0,
                processor=machine.processor(),
                threads=machine.threads(),
                versions=used_versions(self.options),
                process=Process.OWN if self.warm is None else Process.FORKED,
                **(machine.accelerator() if self.device.startswith("gpu") else {}),
            )
            page_outputs = PageOutputs(facts, tuple(self._outputs()))
            return Result(self.page, page_outputs, tuple(self.failures), True)

    def _outputs(self) -> Iterator[CellOutputs]:
        for cell, executed in zip(self.cells, self.notebook.cells, strict=True):
            for output in executed.outputs:
                if output.output_type == "execute_result":
                    output["execution_count"] = None
            missing = self.missing.get(cell.key, "")
            yield CellOutputs(cell.key, tuple(executed.outputs), missing, cell.source)

    def _find_missing(self) -> bool:
        """Note the cells that cannot be executed; False where that fails the page."""
        frameworks = Frameworks(self.options.registry)
        for number, cell in enumerate(self.cells):
            framework = frameworks.needed_by(cell.source, cell.framework)
            if framework is None:
                continue
            if framework.required or not (framework.optional or self.options.leave_out):
                self.number = number
                self._fail(
                    f"needs {framework.name}, which is not installed; "
                    f"install it with 'pip install {framework.packages[0]}'"
                )
                return False
            self.missing[cell.key] = framework.name
            self.imports[cell.key] = frameworks.imports(cell.source)
        return True

    async def _in_time(self, home: pathlib.Path) -> None:
        try:
            async with self.clock:
                await self._in_kernel(home)
        except (TimeoutError, DeadKernelError):
            # nbclient takes it for the death of the kernel when it is cancelled.
            if this_task().cancelling():
                raise asyncio.CancelledError from None
            if self.clock.expired():
                self._fail(
                    f"the page took longer than its {self.options.page_timeout:g} s; "
                    "book_page_timeout of conf.py is the limit"
                )
            else:
                number = -(self.status or 0)
                why = "; memory may have run out" if number == signal.SIGKILL else ""
                name = f" ({signal.strsignal(number)}{why})" if number > 0 else ""
                self._fail(f"the cell ended the kernel's process{name}{self.last_words}")
        except provisioning.ParentLost:
            raise
        except RuntimeError as error:
            self._fail(f"the kernel did not start: {error}{self.last_words}")
        except Exception as error:
            # A full disk, or a page that sends messages which nobody understands.
            self._fail(f"could not be executed: {type(error).__name__}: {error}")

    async def _in_kernel(self, home: pathlib.Path) -> None:
        """Start a kernel, execute the cells, and end it with all that it has started."""
        work, log, connection = home / "work", home / "kernel.log", home / "kernel.json"
        work.mkdir()
        for name, text in self.page.files.items():
            (work / f"{name}.py").write_text(text, "utf8")
        for path in self.page.named_files:
            (work / path.name).symlink_to(path.resolve())
        facts = {
            "output_limit": self.options.output_limit,
            "prelude": self.options.before,
            "first": imports.first_modules([c.source for c in self.cells], self.options.registry),
        }
        (home / "page.json").write_text(json.dumps(facts), "utf8")
        kernel, process = provisioning.manager(connection, self.warm, self.modules)
        client = Client(
            self.notebook,
            km=kernel,
            timeout=self.options.cell_timeout,
            allow_errors=True,
            store_widget_state=False,
            record_timing=False,
            shutdown_kernel="immediate",
        )
        variables = environment.kernel_environment(self.options, self.device) | self.variables
        # What a killed program leaves behind goes with the folder of its page.
        variables |= dict.fromkeys(provisioning.OF_A_PAGE, str(home))
        with log.open("a") as stream:
            try:
                await client.async_start_new_kernel(
                    cwd=str(work),
                    env=variables,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                )
                await client.connect()
                await self._cells(client)
            except (RuntimeError, DeadKernelError):
                end = log.read_bytes()[-10_000:].decode("utf8", "replace")
                tail = outputs.scrubbed(end).strip()
                self.last_words = f"\n{tail[-2000:]}" if tail else ""
                raise
            finally:
                self.used, self.used_by_others = process.used()
                try:
                    self.status = await process.end()
                finally:
                    # What `async_setup_kernel` of nbclient does at its end, for whoever connects by
                    # itself.
                    await client._async_cleanup_kernel()

    async def _cells(self, client: Client) -> None:
        """Execute the cells one after the other, up to the first failure.

        Those go on that do not need what a cell would have made that was left out or, where any
        outcome is kept, that failed.
        """
        for number, (cell, code) in enumerate(zip(self.cells, self.notebook.cells, strict=True)):
            self.number = number
            if why := self.missing.get(cell.key):
                # Its imports remain, for those that follow.
                imported = self.imports[cell.key]
                await self._forget(client, cell.source, why, bound_names(imported))
                node = nbformat.v4.new_code_cell(imported)
                await self._cell(client, dataclasses.replace(cell, expected=None), node)
            else:
                await self._cell(client, cell, code)
            # asyncio.wait_for, through which nbclient waits, loses what comes with a reply.
            if this_task().cancelling():
                raise asyncio.CancelledError
            if self.failures:
                return
        await self._check_device(client)

    async def _forget(self, client: Client, source: str, why: str, kept: Iterable[str]) -> None:
        """Let the kernel not know the names that a cell would have bound, but for those kept.

        A cell that uses one of them would else find what an earlier cell made under this name.
        """
        names = sorted(bound_names(source).difference(kept))
        self.lost |= dict.fromkeys(names, why)
        code = f"[globals().pop(name, None) for name in {names}];"
        shown = self.notebook.cells[self.number]
        await client.async_execute_cell(nbformat.v4.new_code_cell(code), self.number)
        # nbclient has put there what it executed last.
        self.notebook.cells[self.number] = shown

    async def _cell(self, client: Client, cell: Cell, code: NotebookNode) -> None:
        """Execute code for a cell, and compare what came with what the cell declares."""
        try:
            await client.async_execute_cell(code, self.number)
        except CellTimeoutError:
            return self._fail(
                f"took longer than its {self.options.cell_timeout:g} s; "
                "book_cell_timeout of conf.py is the limit"
            )
        code.outputs = outputs.cleaned(code.outputs)
        error = outputs.error(code.outputs)
        if error:
            bound = names_bound_before(code.source, client.failed.get("line", 1))
            if why := self.lost.get(client.failed.get("unknown", "")):
                self.missing[cell.key] = why
                code.outputs = []
                return await self._forget(client, code.source, why, bound)
        problem = judge(code.outputs, cell.expected)
        if problem and not self.options.any_outcome:
            return self._fail(problem)
        if problem and error:
            await self._forget(client, code.source, f"cell {self.number + 1}", bound)

    async def _check_device(self, client: Client) -> None:
        answer, problem = await client.value_of(devices.question(self.options.registry))
        if problem:
            return self._fail(
                f"cannot be asked on which device the page ran ({problem}); a page must leave the "
                "framework as it found it, and BOOK_DEVICE must name a device of this machine, "
                f"not '{self.device}'"
            )
        if answer is None:
            return
        platform, kind = answer
        device = devices.short_name(platform, kind)
        if device != self.device:
            return self._fail(
                f"the page is executed for device '{self.device}', but the kernel ran on "
                f"'{device}'; set BOOK_DEVICE to the device that is meant"
            )
        self.kind = kind


def used_versions(options: Options) -> dict[str, str]:
    """Return the versions that outputs depend on: Python's, and those of all frameworks."""
    packages = dict.fromkeys(name for entry in options.registry for name in entry.packages)
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python} | versions(packages)
