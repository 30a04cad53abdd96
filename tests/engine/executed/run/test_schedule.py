"""Pages are executed beside each other, benchmarks alone; what fails, fails its own page."""

import asyncio
import contextlib
import os
import pathlib
import re
import signal
import tempfile
import time
import types

import pytest

from executed.options import Options
from executed.run import client, machine, page_run, provisioning, schedule
from executed.run.results import run_or_load
from executed.source.pages import read_page
from executed.source.snippets import Library
from executed.store.recordings import Effort

# On a single core a page never meets another.
NEEDS_TWO = pytest.mark.skipif(
    machine.places(schedule.PAGE) < 2, reason="needs two cores, and memory for two pages"
)
PRESENCE = """
import time
def enter(name): stamp(f"open-{name}")
def leave(name): (stamps / f"open-{name}").unlink()
def others(name):
    return {path.name for path in stamps.glob("open-*")} - {f"open-{name}"}
def stay(name):
    end = time.monotonic() + 0.2
    met = set()
    while time.monotonic() < end:
        met |= others(name)
        time.sleep(0.01)
    return met
"""


@pytest.fixture
def short_folder():
    """Return a temporary folder whose name leaves room for the names of sockets in it."""
    with tempfile.TemporaryDirectory(prefix="b") as folder:
        yield pathlib.Path(folder)


@NEEDS_TWO
def test_benchmarks_run_alone_and_other_pages_beside_each_other(project, stamping):
    def page(name, *codes, **settings):
        cells = map(project.cell, (PRESENCE, f"mine = {name!r}", *codes))
        project.page(name, stamping, *cells, **settings)

    for mine, other in (("one", "two"), ("two", "one")):
        codes = f"enter(mine)\nwait_for('open-{other}')", f"stamp('met-{mine}')"
        page(mine, *codes, f"wait_for('met-{other}')", "stay(mine)", "leave(mine)")
    page("three", "enter(mine)\nstay(mine)", "leave(mine)")
    for mine in ("bench", "z-bench"):
        codes = "enter(mine)\nbefore = others(mine)\nmet = stay(mine)", "leave(mine)"
        page(mine, *codes, "assert not before and not met, (before, met)", benchmark=True)
    build = project.built()
    assert [name for _, name in build.progress][3:] == ["bench", "z-bench"]


MEETS = """
import time
stamp(mine)
wait_for(other)
"""


@NEEDS_TWO
def test_in_a_preview_pages_that_measure_meet(project, stamping, execute):
    for mine, other in (("a/one", "a/two"), ("a/two", "a/one")):
        names = f"mine, other = {mine[2:]!r}, {other[2:]!r}"
        cells = [stamping, project.cell(names + MEETS)]
        project.page(mine, *cells, benchmark=True)
    found = execute("a/one", "a/two", preview=True)
    assert not any(one.failures for one in found.values())


def test_what_a_page_waits_for_its_turn_is_not_its_time(project, execute, monkeypatch):
    passed = 0

    @contextlib.asynccontextmanager
    async def locked(self, alone):
        """Let a long time pass, as while another build measures."""
        nonlocal passed
        passed += 1000
        asyncio.get_running_loop().time = lambda: time.monotonic() + passed
        yield

    clock = types.SimpleNamespace(perf_counter=lambda: time.perf_counter() + passed)
    monkeypatch.setattr(page_run, "time", clock)
    monkeypatch.setattr(machine.Machine, "locked", locked)
    project.page("a/one", project.cell("1"), benchmark=True)
    found = execute("a/one", page_timeout=60)["a/one"]
    assert passed == 1000 and not found.failures
    assert 0 < found.outputs.facts.seconds < 60


def test_of_what_a_page_took_its_work_and_that_of_its_processes_are_told_apart(project, execute):
    work = "import time\nwhile time.process_time() < 0.5:\n    pass\n"
    start = (
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', {!r}], stdout=subprocess.PIPE)\n"
    )
    stays = f"{work}print(flush=True)\ntime.sleep(100)"
    project.page("a/alone", project.cell(work))
    project.page("a/starts", project.cell(start.format(work) + "left.wait()"))
    project.page("a/leaves", project.cell(start.format(stays) + "left.stdout.readline()"))
    project.page("a/waits", project.cell("import time\ntime.sleep(0.7)"))
    found = execute("a/alone", "a/starts", "a/leaves", "a/waits", jobs=1)
    assert not any(one.failures for one in found.values())
    facts = {name.removeprefix("a/"): one.outputs.facts for name, one in found.items()}
    # Seconds of a processor, which are the same however busy the machine is.
    work = {name: each.seconds * each.cores for name, each in facts.items()}
    assert work["alone"] > 0.45 and facts["alone"].started == 0
    assert work["starts"] > 0.45 and facts["starts"].started > 0.5
    assert facts["leaves"].started > 0.5
    assert work["waits"] < 0.45 and facts["waits"].started == 0


@pytest.mark.parametrize("preview", [False, True])
def test_a_preview_takes_little_of_a_page_that_was_recorded_for_long(project, execute, preview):
    for name in ("long", "usual"):
        project.page(name, project.cell("1 + 1"))
    said, efforts = [], {"long": Effort(1000.0), "usual": Effort(500.0)}
    execute(
        "long", "usual", efforts=efforts, say=said.append, jobs=1, lent=["long"], preview=preview
    )
    order = ["usual", "long"] if preview else ["long", "usual"]
    assert [line.split()[2] for line in said] == order


def test_of_pages_that_start_processes_one_runs_at_a_time(project, execute, stamping):
    names = "one", "two"
    for mine in names:
        code = f"enter({mine!r})\nmet = stay({mine!r})\nleave({mine!r})\nassert not met"
        project.page(mine, stamping, project.cell(PRESENCE), project.cell(code))
    found = execute(*names, efforts=dict.fromkeys(names, Effort(9.0, started=0.8)), jobs=2)
    assert not any(one.failures for one in found.values())


def test_a_page_whose_processes_wait_holds_up_none_that_starts_others(project, execute, stamping):
    efforts = {"waits": Effort(9.0, 0.9, 0.2), "starts": Effort(8.0, 0.9, 0.8)}
    efforts["usual"] = Effort(7.0)
    for mine in efforts:
        code = f"enter({mine!r})\nfor other in {sorted({*efforts} - {mine})}:\n"
        code += "    wait_for(f'open-{other}')"
        left = f"stamp({mine!r})\nfor other in {sorted(efforts)}:\n    wait_for(other)"
        project.page(mine, stamping, project.cell(PRESENCE), project.cell(code), project.cell(left))
    found = execute(*efforts, efforts=efforts, jobs=1)
    assert not any(one.failures for one in found.values())


def took(project, docname, seconds, cores):
    """Let the recording of a page say how long it took, and how many cores it kept busy."""
    path = project.root / "docs" / "_recorded" / "cpu" / f"{docname}.ipynb"
    text = re.sub(r'"seconds": [\d.]+', f'"seconds": {seconds}', path.read_text())
    path.write_text(re.sub(r'"cores": [\d.]+', f'"cores": {cores}', text))


def test_pages_with_most_work_begin_first_and_new_ones_before_them(project, monkeypatch):
    # The short one was recorded on a busy machine.
    efforts = {"b/long": (30.0, 0.9), "b/odd": ('"x"', 1.0), "b/short": (60.0, 0.1)}
    efforts |= {"a/quick": (80.0, 1.0), "c/slow": (90.0, 1.0)}
    for name in efforts:
        project.page(name, project.cell("1"))
    project.recorded()
    for name, effort in efforts.items():
        took(project, name, *effort)
    for name in (*efforts, "b/new"):
        # Pages that measure come last.
        project.page(name, project.cell("2"), benchmark=not name.startswith("b/"))
    monkeypatch.setattr(schedule.machine, "places", lambda each: 1)
    library = Library(project.root / "snippets")
    pages = [read_page(name, project.path(name), library) for name in sorted({*efforts, "b/new"})]
    found = []
    run_or_load(pages, Options(root=project.root), found.append, str, str)
    order = [result.page.docname for result in found]
    assert order == ["b/new", "b/odd", "b/long", "b/short", "c/slow", "a/quick"]


FAILURES = {
    "raises": (
        "def f():\n    raise ValueError('no luck')\nf()",
        "raised ValueError, which no snippet declares\n"
        "Traceback (most recent call last):\n"
        "  line 3\n    f()\n"
        "  line 2, in f\n    raise ValueError('no luck')\n"
        "ValueError: no luck",
    ),
    "hangs": (
        "import time\nwhile True:\n    time.sleep(0.1)",
        "took longer than its 2 s; book_cell_timeout of conf.py",
    ),
    "kills-its-kernel": (
        "import os\nos.kill(os.getpid(), 9)",
        "the cell ended the kernel's process (Killed; memory may have run out)",
    ),
    "displays-what-is-no-text": (
        "from IPython.display import display\ndisplay({'text/html': 5}, raw=True)",
        "could not be executed: NotebookValidationError: 5 is not valid",
    ),
}


def test_a_failing_cell_fails_its_own_page_until_it_is_mended(project):
    project.configure("book_cell_timeout = 2")
    later = project.cell(f"open({str(project.stamp('later'))!r}, 'w')")
    for kind, (code, _) in FAILURES.items():
        cells = project.cell("1"), "More.", project.cell(code), later
        project.page(f"a/{kind}", "Prose.", *cells)
    project.page("a/good", project.cell("41 + 1"))
    project.page("b/good", project.cell("42 + 1"), benchmark=True)

    def mend(*kinds):
        for kind in kinds:
            project.edit(project.path(f"a/{kind}"), FAILURES[kind][0], "6 * 7")

    def check(build, executed, failing):
        assert build.status == 1
        failed = sorted(("failed", f"a/{kind}") for kind in failing)
        assert sorted(build.progress) == [("executed", page) for page in executed] + failed
        count = len(build.progress)
        numbers = re.findall(rf"^\[(\d)/{count}\] \w+ \S+ in \d+\.\d s(?:;|$)", build.output, re.M)
        assert numbers == [str(1 + number) for number in range(count)]
        for kind in failing:
            code, message = FAILURES[kind]
            line = project.line(f"a/{kind}", code.split("\n")[0]) - 1
            assert f"docs/a/{kind}.md:{line}: WARNING: cell 2: {message}" in build.output
        assert len(build.warnings) == len(failing)
        assert f"{len(failing)} failed: " in build.output

    check(project.build(), ["a/good", "b/good"], FAILURES)
    assert "42" in project.html("a/good")
    assert len(project.cached()) == 2
    assert not project.stamp("later").exists()
    mend("hangs")
    lasting = [kind for kind in FAILURES if kind != "hangs"]
    check(project.build(strict=False), ["a/hangs"], lasting)
    assert len(project.cached()) == 3
    mend(*lasting)
    mended = project.built()
    assert mended.executed == sorted(f"a/{kind}" for kind in lasting)
    assert len(project.cached()) == 6


def test_a_page_that_takes_too_long_fails(project, execute):
    cells = [project.cell(f"time.sleep(0.3)  # {number}") for number in range(6)]
    project.page("a/slow", project.cell("import time"), *cells)
    (failure,) = execute("a/slow", page_timeout=1)["a/slow"].failures
    assert failure.line > project.line("a/slow", "import time")
    assert re.fullmatch(
        r"cell \d+: the page took longer than its 1 s; book_page_timeout of conf.py is the limit",
        failure.message,
    )


@pytest.mark.parametrize("benchmark", [False, True])
def test_a_kernel_that_does_not_start_fails_its_page(
    project, execute, monkeypatch, tmp_path, benchmark
):
    broken = tmp_path / "kernel.py"
    broken.write_text("raise SystemExit(3)")
    for module in (provisioning, provisioning.forkserver):
        monkeypatch.setattr(module, "KERNEL", broken)
    monkeypatch.delenv(provisioning.forkserver.SOCKET)
    project.page("a/one", project.cell("1"), benchmark=benchmark)
    (failure,) = execute("a/one")["a/one"].failures
    assert failure.line == 9 + benchmark
    assert failure.message.startswith("cell 1: the kernel did not start")


def test_cells_run_in_an_empty_folder_of_their_own(project, execute):
    for name in ("a/one", "a/two"):
        code = "import os\nassert os.listdir() == []\nopen('x', 'w').close()"
        project.page(name, project.cell(code))
    assert not any(one.failures for one in execute("a/one", "a/two").values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_build_lets_it_clean_up_and_is_its_status(number):
    async def work():
        try:
            os.kill(os.getpid(), number)
            await asyncio.sleep(25)
        finally:
            cleaned.append(number)

    cleaned = []
    # In a background it may be ignored.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit) as ended:
            with schedule._signals_end_it():
                asyncio.run(work())
    finally:
        signal.signal(number, before)
    assert ended.value.code == 128 + number
    assert cleaned == [number]


@pytest.mark.parametrize(
    ("number", "benchmark", "status"),
    [
        (signal.SIGINT, False, 2),
        (signal.SIGTERM, True, 128 + signal.SIGTERM),
        (signal.SIGKILL, False, -signal.SIGKILL),
    ],
)
def test_an_interrupted_build_loses_no_finished_page(
    project, stamping, until, short_folder, number, benchmark, status
):
    project.own_root = True
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    project.page(
        "b/slow", stamping, project.cell("stamp('busy')\nwait_for('go')"), benchmark=benchmark
    )
    project.page("c/last", stamping, project.cell("stamp('last')"), benchmark=True)
    process = project.start(TMPDIR=str(short_folder))
    until(lambda: len(project.cached()) == 2, "the quick pages never came into the cache")
    until(project.stamp("busy").exists, "the slow page never began")
    assert list(short_folder.iterdir())
    process.send_signal(number)
    build = project.wait(process)
    if number == signal.SIGKILL:
        until(lambda: not project.processes(), "kernels outlive the build")
    assert project.processes() == []
    assert build.status == status
    assert "Task was destroyed" not in build.output
    assert "never retrieved" not in build.output
    assert number == signal.SIGKILL or list(short_folder.iterdir()) == []
    assert not project.stamp("last").exists(), "pages were executed after the interrupt"
    assert "b/slow" not in build.executed
    assert len(project.cached()) == 2

    project.stamp("go").touch()
    assert project.built().executed == ["b/slow", "c/last"]


def test_an_accelerator_executes_one_page_at_a_time(project, execute, stamping):
    frameworks = {"lib": {"modules": ["colorsys"], "device": "('gpu', 'NVIDIA H200')"}}
    for name in ("one", "two"):
        project.page(
            f"a/{name}",
            project.cell("import colorsys"),
            stamping,
            project.cell(f"stamp('open-{name}')\nstamp('begun-{name}')"),
            project.cell(
                "import time\nend = time.monotonic() + 0.5\nmost = 0\n"
                "while time.monotonic() < end and most < 2:\n"
                "    most = max(most, len(list(stamps.glob('open-*'))))\n"
                "    time.sleep(0.05)\n"
                "time.sleep(0.3 * (most - 1))\n"
                f"(stamps / 'open-{name}').unlink()\nprint(most)"
            ),
        )
    found = execute("a/one", "a/two", device="gpu-h200", frameworks=frameworks)
    for execution in found.values():
        assert not execution.failures
        assert execution.outputs.facts.process == "own"
        assert execution.outputs.cells[-1].outputs[0].text == "1\n"


BABBLING = {
    "a comm that nobody knows": "import comm\ncomm.create_comm(target_name='x', data={})\nNone",
    "a message without content": (
        "k = get_ipython().kernel\nk.session.send(k.iopub_socket, 'comm_msg', {}, k.get_parent())"
    ),
}


def test_strange_messages_end_no_build(project, execute):
    names = {case: f"a/{number}" for number, case in enumerate(BABBLING)}
    for case, name in names.items():
        project.page(name, project.cell("import colorsys"), project.cell(BABBLING[case]))
    project.page("a/good", project.cell("print(6 * 7)"))
    frameworks = {"lib": {"modules": ["colorsys"], "device": "('cpu', 'cpu')"}}
    found = execute("a/good", *names.values(), frameworks=frameworks, cell_timeout=8)
    assert not found["a/good"].failures
    failures = {case: found[name].failures for case, name in names.items()}
    assert [case for case in BABBLING if failures[case]] == ["a message without content"]


def test_an_interruption_that_comes_with_a_reply_is_not_lost(project, monkeypatch):
    executed = client.Client.async_execute_cell
    begun = []

    async def losing(self, cell, number):
        begun.append(number)
        await executed(self, cell, number)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(30)

    async def interrupted(page):
        run = page_run.PageRun(page, Options(cell_timeout=30), "cpu")
        task = asyncio.create_task(run.executed())
        while not begun:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(client.Client, "async_execute_cell", losing)
    project.page("a/one", project.cell("1"), project.cell("2"))
    asyncio.run(interrupted(read_page("a/one", project.path("a/one"), Library(project.root))))
    assert begun == [0]
