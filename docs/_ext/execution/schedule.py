"""Execute pages: benchmarks alone, all others in parallel, each in a kernel of its own."""

import ast
import asyncio
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from tqdm import tqdm

from ..records import outputs
from . import expectations as verdicts
from . import missing as absent

KERNEL = pathlib.Path(__file__).with_name("kernel.py")
CELL_TIMEOUT = 120.0
PAGE_TIMEOUT = 300.0


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a page is red: the line of its file, the number of the cell, and what happened."""

    line: int
    message: str


@dataclasses.dataclass
class Execution:
    """What came of executing a page: facts for the status page, and the failures."""

    facts: dict
    failures: list


@dataclasses.dataclass(frozen=True)
class Limits:
    """Time limits in seconds, and the device that the kernels must find."""

    cell: float
    page: float
    device: str


class _ThisPython(KernelSpecManager):
    """Starts kernels with the interpreter of the build, whatever kernels are installed."""

    def get_kernel_spec(self, kernel_name):
        argv = [sys.executable, "-P", str(KERNEL), "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def kernel_environment(device, folder, alone):
    """Return the environment variables of a kernel that executes for `device`.

    Kernels that share a GPU with others take its memory as they need it.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XLA_FLAGS")}
    platform = "cuda" if device.startswith("gpu") else device.partition("-")[0]
    if platform == "cuda" and not alone:
        environment |= {
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        }
    if platform == "cpu":
        # PyTorch and TensorFlow would use a GPU that is there.
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment | {
        "JAX_PLATFORMS": platform if platform == "cpu" else f"{platform},cpu",
        "IPYTHONDIR": str(folder),
        # What a killed program leaves behind goes with the folder of its page.
        "TMPDIR": str(folder),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


async def execute_page(page, limits):
    """Execute the cells of a page, in place, and return its Execution."""
    started = time.perf_counter()
    date = datetime.datetime.now(datetime.UTC).isoformat("T", "seconds")
    for cell in page.code_cells:
        cell["outputs"], cell["execution_count"] = [], None
    run = _Run(page, limits)
    clock = asyncio.timeout(limits.page)
    try:
        async with clock:
            await run.cells()
    except (TimeoutError, DeadKernelError):
        # nbclient takes it for the death of the kernel when it is cancelled.
        if asyncio.current_task().cancelling():
            raise asyncio.CancelledError from None
        if clock.expired():
            run.fail(f"the page took longer than its {limits.page:g} s")
        else:
            run.fail("the cell ended the kernel's process" + run.exit_status() + run.last_words)
    except RuntimeError as error:
        run.fail(f"the kernel did not start: {error}{run.last_words}")
    facts = {"executed": date, "seconds": time.perf_counter() - started, **run.report}
    return Execution(facts | {"skipped": run.skipped}, run.failures)


class _Run:
    """One page in one kernel."""

    def __init__(self, page, limits):
        self.page = page
        self.limits = limits
        self.failures = []
        self.report = {}
        self.skipped = {}
        self.device = page.device or limits.device
        self.last_words = ""
        self.cell = page.code_cells[0]
        self.manager = AsyncKernelManager(
            kernel_name="python3", kernel_spec_manager=_ThisPython(), transport="ipc"
        )

    def fail(self, message):
        number = self.page.code_cells.index(self.cell) + 1
        line = self.page.line(self.cell)
        self.failures.append(Failure(line, f"cell {number}: {message}"))

    def exit_status(self):
        process = getattr(self.manager.provisioner, "process", None)
        code = process.poll() if process else None
        return f" ({signal.Signals(-code).name})" if code and code < 0 else ""

    async def cells(self):
        """Execute the cells one after the other, up to the first failure."""
        with tempfile.TemporaryDirectory(prefix="book-", ignore_cleanup_errors=True) as home:
            work = pathlib.Path(home, "work")
            work.mkdir()
            self.manager.connection_file = str(pathlib.Path(home, "kernel.json"))
            client = NotebookClient(
                self.page.notebook,
                km=self.manager,
                timeout=self.limits.cell,
                allow_errors=True,
                store_widget_state=False,
                shutdown_kernel="immediate",
            )
            client.log.disabled = True
            environment = kernel_environment(self.device, home, self.page.benchmark)
            # What native code writes past Python; a kernel that dies may say why here.
            log = pathlib.Path(home, "kernel.log")
            with log.open("w") as stream:
                streams = {"stdout": stream, "stderr": stream}
                try:
                    async with _kernel(client, cwd=str(work), env=environment, **streams):
                        await self._cells(client)
                except RuntimeError:
                    said = outputs.scrubbed(log.read_text("utf8", "replace")).strip()
                    self.last_words = f"\n{said[-2000:]}" if said else ""
                    raise

    async def _cells(self, client):
        without = absent.Frameworks()
        code_cells = self.page.code_cells
        for index, cell in enumerate(self.page.notebook.cells):
            if cell.cell_type != "code":
                continue
            self.cell = cell
            framework = without.needed_by(cell.source)
            if framework:
                self.skipped[str(code_cells.index(cell))] = framework
                continue
            try:
                await client.async_execute_cell(cell, index)
            except CellTimeoutError:
                return self.fail(f"took longer than its {self.limits.cell:g} s")
            problem = verdicts.judge(cell)
            if problem:
                return self.fail(problem)
        self.report = await _ask(client)
        if self.report["device"] is None:
            self.report |= {"device": self.device, "device_kind": self.device}
        if self.report["device"] != self.device:
            self.fail(
                f"the build is for device '{self.device}', but the kernel ran on "
                f"'{self.report['device']}'; set BOOK_DEVICE to the device that is meant"
            )


@contextlib.asynccontextmanager
async def _kernel(client, **options):
    try:
        await client.async_start_new_kernel(**options)
        await client.async_start_new_kernel_client()
        yield
    finally:
        # None where it has cleaned up itself, after a kernel that did not start.
        if client.km is not None:
            await client._async_cleanup_kernel()


async def _ask(client):
    """Ask the kernel on what it ran."""
    expressions = {"report": "get_ipython().report()"}
    message = client.kc.execute("", silent=True, user_expressions=expressions)
    reply = await client.async_wait_for_reply(message)
    answer = reply["content"]["user_expressions"]["report"]["data"]["text/plain"]
    return json.loads(ast.literal_eval(answer))


def execute_all(pages, limits, done, durations, say):
    """Execute pages and call `done(page, execution)` for each as soon as it is finished.

    Pages that measure run one at a time after all others. `durations` maps the
    names of pages to the seconds they last took: the longest begin first, and
    those never executed before them. `say` receives a line for each page.
    """
    ordered = sorted(pages, key=lambda p: -durations.get(p.docname, float("inf")))
    with _interrupted_by(signal.SIGTERM), _Progress(len(pages), say) as progress:

        def finished(page, execution):
            progress.line(page, execution)
            done(page, execution)

        _run_in_thread(_all(ordered, limits, finished))


async def _all(pages, limits, finished):
    slots = asyncio.Semaphore(os.cpu_count() or 1)

    async def one(page):
        async with slots:
            finished(page, await execute_page(page, limits))

    await asyncio.gather(*(one(page) for page in pages if not page.benchmark))
    for page in pages:
        if page.benchmark:
            finished(page, await execute_page(page, limits))


def _run_in_thread(work):
    """Run a coroutine beside the main thread, which alone receives Ctrl-C.

    On an interrupt the kernels are shut down, and the interrupt goes on.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    errors = []
    ended = threading.Event()

    def target():
        try:
            loop.run_until_complete(task)
        except BaseException as error:
            errors.append(error)
        finally:
            loop.close()
            ended.set()

    thread = threading.Thread(target=target)
    thread.start()
    try:
        # Not thread.join: interrupted, it takes a thread that still runs for one that has ended.
        while not ended.wait(0.2):
            pass
    except BaseException:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
        ended.wait()
        raise
    if errors:
        raise errors[0]


@contextlib.contextmanager
def _interrupted_by(number):
    """Let a signal end the build as Ctrl-C does, with the exit status it has in a shell."""

    def interrupt(received, frame):
        raise SystemExit(128 + received)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


class _Progress:
    """A line for each page; on a terminal a bar below them."""

    def __init__(self, total, say):
        self.total, self.count, self.say = total, 0, say
        self.bar = tqdm(total=total, unit="page", disable=not sys.stderr.isatty(), leave=False)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.bar.close()

    def line(self, page, execution):
        self.count += 1
        verdict = "failed" if execution.failures else "executed"
        text = f"{verdict} {page.docname} in {execution.facts['seconds']:.1f} s"
        with tqdm.external_write_mode(file=sys.stderr):
            self.say(f"[{self.count}/{self.total}] {text}")
        self.bar.update()
