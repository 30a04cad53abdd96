"""Pages are executed beside each other, benchmarks alone; what fails, fails its own page."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import termios

import pytest
from _ext.execution import client, provisioning
from _ext.records.cache import Effort

PRESENCE = """
import time
def enter(name): stamp("open-" + name.replace("/", "-"))
def leave(name): (stamps / ("open-" + name.replace("/", "-"))).unlink()
def others(name):
    here = "open-" + name.replace("/", "-")
    return sorted(p.name for p in stamps.glob("open-*") if p.name != here)
def stay(name):
    end = time.monotonic() + 0.5
    met = set()
    while time.monotonic() < end:
        met |= set(others(name))
    return sorted(met)
"""


@pytest.fixture
def short_folder():
    """Return a temporary folder whose name leaves room for the names of sockets in it."""
    with tempfile.TemporaryDirectory(prefix="b") as folder:
        yield pathlib.Path(folder)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_benchmarks_run_alone_and_other_pages_beside_each_other(project, stamping):
    presence = project.cell(PRESENCE)
    for mine, other in (("a/one", "a/two"), ("a/two", "a/one")):
        project.page(
            mine,
            stamping,
            presence,
            project.cell(f"enter({mine!r})\nwait_for('open-' + {other.replace('/', '-')!r})"),
            project.cell(f"stamp('met-' + {mine.replace('/', '-')!r})"),
            project.cell(f"wait_for('met-' + {other.replace('/', '-')!r})"),
            project.cell(f"stay({mine!r})"),
            project.cell(f"leave({mine!r})"),
        )
    project.page(
        "a/three",
        stamping,
        presence,
        project.cell("enter('a/three')\nstay('a/three')"),
        project.cell("leave('a/three')"),
    )
    for mine in ("a/bench", "z/bench"):
        project.page(
            mine,
            stamping,
            presence,
            project.cell(f"enter({mine!r})\nbefore = others({mine!r})\nmet = stay({mine!r})"),
            project.cell(f"assert not before and not met, (before, met)\nleave({mine!r})"),
            project.cell(
                "import psutil\n"
                "kernels = psutil.Process(os.getppid()).children()\n"
                "assert len(kernels) <= 2, kernels\n"
                "[resting] = [k for k in kernels if k.pid != os.getpid()] or [None]\n"
                "before = resting and sum(resting.cpu_times())\n"
                "time.sleep(0.2)\n"
                "assert not resting or sum(resting.cpu_times()) - before < 0.1"
            ),
            benchmark=True,
        )
    build = project.build()
    assert build.green, build.output
    assert [page for _, page in build.progress][3:] == ["a/bench", "z/bench"]


MEETS = """
import time
stamp(mine)
wait_for(other)
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_in_a_preview_pages_that_measure_meet(project, stamping, execute):
    for mine, other in (("a/one", "a/two"), ("a/two", "a/one")):
        names = f"mine, other = {mine[2:]!r}, {other[2:]!r}"
        cells = [stamping, project.cell(names + MEETS)]
        project.page(mine, *cells, benchmark=True)
    found = execute("a/one", "a/two", preview=True)
    assert not any(one.failures for one in found.values())


def test_the_longest_pages_begin_first(project, execute):
    names = ["a/one", "a/two", "a/three", "a/new"]
    measuring = ["b/one", "b/two"]
    for name in names + measuring:
        project.page(name, project.cell("1"), benchmark=name in measuring)
    seconds = {"a/one": 1.0, "a/two": 3.0, "a/three": 2.0, "b/one": 50.0, "b/two": 60.0}
    efforts = {name: Effort(took) for name, took in seconds.items()}
    said = []
    found = execute(*names, *measuring, efforts=efforts, say=said.append, jobs=1)
    assert list(found) == ["a/new", "a/two", "a/three", "a/one", "b/two", "b/one"]
    assert [line.split()[2] for line in said] == list(found)


def test_what_a_page_waits_for_its_turn_is_not_its_time(project, execute):
    for name in ("a/one", "a/two"):
        project.page(name, project.cell("import time\ntime.sleep(2.5)"), benchmark=True)
    found = execute("a/one", "a/two", page_timeout=4.8)
    assert not any(one.failures for one in found.values())
    took = [one.outputs.facts.seconds for one in found.values()]
    assert all(2.5 <= seconds < 4.8 for seconds in took), took


def test_of_what_a_page_took_its_work_and_that_of_its_processes_are_told_apart(project, execute):
    work = "import time\nwhile time.process_time() < 1:\n    pass\n"
    project.page("a/alone", project.cell(work))
    started = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {work!r}])"
    project.page("a/starts", project.cell(started))
    left = f"import subprocess, sys\nleft = subprocess.Popen([sys.executable, '-c', {work!r}])"
    slept = "import time\ntime.sleep(1.5)"
    project.page("a/leaves", project.cell(left), project.cell(slept))
    project.page("a/waits", project.cell(slept))
    found = execute("a/alone", "a/starts", "a/leaves", "a/waits", jobs=1)
    facts = {name.removeprefix("a/"): one.outputs.facts for name, one in found.items()}
    # Seconds of a processor, which are the same however busy the machine is.
    work = {name: each.seconds * each.cores for name, each in facts.items()}
    assert work["alone"] > 0.9 and facts["alone"].started == 0
    assert work["starts"] > 0.9 and facts["starts"].started > 0.5
    assert facts["leaves"].started > 0.5
    assert work["waits"] < 0.9 and facts["waits"].started == 0


def test_of_pages_that_start_processes_one_runs_at_a_time(project, execute, stamping):
    presence = project.cell(PRESENCE)
    names = ("a/one", "a/two")
    for mine in names:
        cell = project.cell(
            f"enter({mine!r})\nmet = stay({mine!r})\nleave({mine!r})\nassert not met"
        )
        project.page(mine, stamping, presence, cell)
    found = execute(*names, efforts=dict.fromkeys(names, Effort(9.0, started=0.8)), jobs=2)
    assert not any(one.failures for one in found.values())


def test_what_cannot_be_kept_does_not_keep_others_from_it(project, execute):
    for name in ("a/one", "a/two", "a/three"):
        project.page(name, project.cell("1"))
    kept = []

    def done(page, execution):
        if page.docname == "a/one":
            raise OSError(28, "No space left on device")
        kept.append(page.docname)

    with pytest.raises(OSError, match="No space left") as raised:
        execute("a/one", "a/two", "a/three", done=done, efforts={"a/one": Effort(9)}, jobs=1)
    assert "the page a/one" in "".join(raised.value.__notes__)
    assert sorted(kept) == ["a/three", "a/two"]


def took(project, docname, seconds):
    """Let the cached outputs of a page say how long it took."""
    (path,) = project.root.glob(f"_cache/cpu/{docname}/*.ipynb")
    path.write_text(re.sub(r'"seconds": [\d.]+', f'"seconds": {seconds}', path.read_text()))


def test_pages_that_took_long_begin_first_and_new_ones_before_them(project):
    for name in ("b/one", "b/two"):
        project.page(name, project.cell("1"), benchmark=True)
    assert project.build().green
    took(project, "b/one", 1.5)
    took(project, "b/two", 30.0)
    for name in ("b/one", "b/two", "b/new"):
        project.page(name, project.cell("2"), benchmark=True)
    build = project.build()
    assert build.green
    *first, last = [page for _, page in build.progress]
    # The kernels of two pages start at once, and either may be there before the other.
    assert (sorted(first), last) == (["b/new", "b/two"], "b/one")


@pytest.mark.parametrize("seconds", ['"x"', "null", "[]", "-1"])
def test_damaged_durations_do_no_harm(project, seconds):
    project.page("b/one", project.cell("1"))
    assert project.build().green
    took(project, "b/one", seconds)
    project.page("b/one", project.cell("2"))
    build = project.build()
    assert build.green and build.executed == ["b/one"]


def test_each_page_has_a_line_of_progress(project):
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("1 / 0"))
    project.page("b/one", project.cell("1"), benchmark=True)
    build = project.build()
    said = r"^\[(\d)/3\] (executed|failed) (\S+) in \d+\.\d s(?:;|$)"
    lines = re.findall(said, build.output, re.M)
    assert [number for number, _, _ in lines] == ["1", "2", "3"]
    assert {(verdict, page) for _, verdict, page in lines} == {
        ("executed", "a/one"),
        ("failed", "a/two"),
        ("executed", "b/one"),
    }
    assert "page/s" not in build.output


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_terminal_has_a_bar(project):
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("1"))
    reader, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    command = [sys.executable, "-m", "sphinx", "-q", "-c", ".", "docs", "build/html"]
    process = subprocess.Popen(
        command,
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(reader, 4096):
            shown += part
    os.close(reader)
    assert process.wait() == 0
    assert b"0/2" in shown
    assert b"1/2" in shown


FAILURES = {
    "raises": (
        "def f():\n    raise ValueError('no luck')\nf()",
        "cell 2: raised ValueError, which no snippet declares\n"
        "Traceback (most recent call last):\n"
        "  line 3\n    f()\n"
        "  line 2, in f\n    raise ValueError('no luck')\n"
        "ValueError: no luck",
    ),
    "hangs": (
        "import time\nwhile True:\n    time.sleep(0.1)",
        "cell 2: took longer than its 2 s; book_cell_timeout of conf.py",
    ),
    "kills its kernel": (
        "import os\nos.kill(os.getpid(), 9)",
        "cell 2: the cell ended the kernel's process (SIGKILL)",
    ),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failing_cell_fails_its_own_page_until_it_is_mended(project, kind):
    code, message = FAILURES[kind]
    project.configure("book_cell_timeout = 2")
    bad = project.page("a/bad", "Prose.", project.cell("1"), "More.", project.cell(code))
    project.page("a/good", project.cell("41 + 1"))
    project.page("b/good", project.cell("42 + 1"), benchmark=True)

    first = project.build()
    assert first.status == 1
    assert sorted(first.progress) == [
        ("executed", "a/good"),
        ("executed", "b/good"),
        ("failed", "a/bad"),
    ]
    line = 1 + bad.read_text().splitlines().index("More.") + 2
    assert f"docs/a/bad.md:{line}: WARNING: {message}" in first.output
    assert "1 failed: a/bad" in first.output
    assert len(first.warnings) == 1
    assert "42" in project.html("a/good")
    assert len(project.cached()) == 2

    second = project.build(strict=False)
    assert second.status == 1
    assert second.progress == [("failed", "a/bad")]
    assert f"docs/a/bad.md:{line}: WARNING: {message}" in second.output
    assert len(project.cached()) == 2

    project.edit(bad, code, "6 * 7")
    mended = project.build()
    assert mended.green
    assert mended.progress == [("executed", "a/bad")]
    assert len(project.cached()) == 3


def test_a_page_that_takes_too_long_fails_until_it_is_mended(project):
    project.configure("book_page_timeout = 1")
    cells = [project.cell(f"time.sleep(0.3)  # {number}") for number in range(6)]
    project.page("a/slow", project.cell("import time"), *cells)
    for build in (project.build(), project.build(strict=False)):
        assert build.status == 1
        assert build.progress == [("failed", "a/slow")]
        (warning,) = build.warnings
        assert re.search(
            r"docs/a/slow\.md:\d+: WARNING: cell \d+: the page took longer than its 1 s; "
            "book_page_timeout of conf.py is the limit",
            warning,
        )
        assert project.cached() == []
    project.configure("book_page_timeout = 60")
    mended = project.build()
    assert mended.green
    assert mended.executed == ["a/slow"]


def test_what_comes_after_the_failing_cell_is_not_executed(project, stamping):
    project.page(
        "a/bad", stamping, project.cell("stamp('before')\n1 / 0"), project.cell("stamp('after')")
    )
    assert project.build().status == 1
    assert project.stamp("before").exists()
    assert not project.stamp("after").exists()


@pytest.mark.parametrize("benchmark", [False, True])
def test_a_kernel_that_does_not_start_fails_its_page(
    project, execute, monkeypatch, tmp_path, benchmark
):
    broken = tmp_path / "kernel.py"
    broken.write_text("raise SystemExit(3)")
    monkeypatch.setattr(provisioning, "KERNEL", broken)
    project.page("a/one", project.cell("1"), benchmark=benchmark)
    (failure,) = execute("a/one")["a/one"].failures
    assert failure.line == 9 + benchmark
    assert failure.message.startswith("cell 1: the kernel did not start")


def test_cells_run_in_an_empty_folder_of_their_own(project):
    project.page(
        "a/one", project.cell("import os\nassert os.listdir() == []\nopen('x', 'w').close()")
    )
    project.page(
        "a/two", project.cell("import os\nassert os.listdir() == []\nopen('x', 'w').close()")
    )
    assert project.build().green


@pytest.mark.parametrize(
    ("number", "benchmark", "status"),
    [
        (signal.SIGINT, False, 2),
        (signal.SIGINT, True, 2),
        (signal.SIGTERM, False, 128 + signal.SIGTERM),
        (signal.SIGHUP, False, 128 + signal.SIGHUP),
        (signal.SIGKILL, False, -signal.SIGKILL),
    ],
)
def test_an_interrupted_build_loses_no_finished_page(
    project, stamping, until, short_folder, number, benchmark, status
):
    project.own_keeper = True
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    project.page(
        "b/slow", stamping, project.cell("stamp('busy')\nwait_for('go')"), benchmark=benchmark
    )
    project.page("c/last", stamping, project.cell("stamp('last')"), benchmark=True)
    # One is a program of its own, as it is for readers.
    program = number == signal.SIGINT and not benchmark
    process = project.start(program=program, TMPDIR=str(short_folder))
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
    after = project.build()
    assert after.green
    assert after.executed == ["b/slow", "c/last"]


@pytest.mark.parametrize(("jobs", "most", "patience"), [(None, 1, 1.5), (2, 2, 10)])
def test_an_accelerator_executes_one_page_at_a_time_unless_told_otherwise(
    project, execute, stamping, jobs, most, patience
):
    frameworks = {"lib": {"modules": ["colorsys"], "device": "('gpu', 'NVIDIA H200')"}}
    for name in ("one", "two"):
        project.page(
            f"a/{name}",
            project.cell("import colorsys"),
            stamping,
            project.cell(f"stamp('open-{name}')\nstamp('begun-{name}')"),
            project.cell(
                f"import time\nend = time.monotonic() + {patience}\nmost = 0\n"
                "while time.monotonic() < end and most < 2:\n"
                "    most = max(most, len(list(stamps.glob('open-*'))))\n"
                "    time.sleep(0.05)\n"
                "time.sleep(0.3)\n"
                f"(stamps / 'open-{name}').unlink()\nprint(most)"
            ),
        )
    found = execute("a/one", "a/two", device="gpu-h200", jobs=jobs, frameworks=frameworks)
    for execution in found.values():
        assert not execution.failures
        assert execution.outputs.facts.process == "own"
        assert execution.outputs.cells[-1].outputs[0].text == f"{most}\n"


def test_what_is_no_text_though_it_is_displayed_as_one_fails_its_cell(project):
    code = "from IPython.display import display\ndisplay({'text/html': 5}, raw=True)"
    project.page("a/bad", project.cell("1"), project.cell(code))
    project.page("a/good", project.cell("41 + 1"))
    build = project.build()
    assert build.status == 1
    (warning,) = build.warnings
    assert re.search(r"docs/a/bad\.md:\d+: WARNING: cell 2: .*5 is not valid", warning)
    assert "42" in project.html("a/good")


BABBLING = {
    "a comm that nobody knows": "import comm\ncomm.create_comm(target_name='x', data={})\nNone",
    "a message without content": (
        "k = get_ipython().kernel\nk.session.send(k.iopub_socket, 'comm_msg', {}, k.get_parent())"
    ),
    "a stream that is gone": "import sys\nsys.stdout = sys.stderr = None",
    "a channel that is closed": "get_ipython().kernel.control_stream.close()",
}


@pytest.mark.parametrize("case", BABBLING)
def test_strange_messages_end_no_build(project, execute, case, monkeypatch):
    monkeypatch.setattr(client, "ANSWER", 3.0)
    project.page("a/strange", project.cell("import colorsys"), project.cell(BABBLING[case]))
    project.page("a/good", project.cell("print(6 * 7)"))
    frameworks = {"lib": {"modules": ["colorsys"], "device": "('cpu', 'cpu')"}}
    found = execute("a/strange", "a/good", frameworks=frameworks, cell_timeout=8)
    assert not found["a/good"].failures
    for failure in found["a/strange"].failures:
        assert failure.message.startswith("cell 2: ")
    assert bool(found["a/strange"].failures) == (
        case in ("a message without content", "a channel that is closed")
    )
