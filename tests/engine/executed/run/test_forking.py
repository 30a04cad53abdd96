"""Kernels are forked from warm parents; a page looks the same as in a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from executed.run import forkserver, page_run, provisioning
from tests.engine.conftest import ENGINE

pytestmark = pytest.mark.skipif(not provisioning.can_fork(), reason="kernels are not forked here")


@pytest.fixture(autouse=True)
def own_root(project):
    """Let each build start a root, as it does for readers."""
    project.own_root = True


LIBRARY = {"lib": {"modules": ["colorsys"]}, "more": {"modules": ["ftplib"]}}


def plain(execution):
    """Return all that a page prints, as plain data; how a stream is cut into pieces is chance."""
    assert not execution.failures, execution.failures
    found = []
    for cell in execution.outputs.cells:
        streams, others = {}, []
        for output in json.loads(json.dumps(cell.outputs)):
            if output["output_type"] == "stream":
                streams[output["name"]] = streams.get(output["name"], "") + output["text"]
            else:
                others.append(output)
        found.append((streams, others))
    return found


def printed(execution):
    assert not execution.failures, execution.failures
    return ["".join(o.get("text", "") for o in cell.outputs) for cell in execution.outputs.cells]


# ruff: noqa: E501
SAME = {
    "a framework": "import colorsys\ncolorsys.rgb_to_hls(0.1, 0.2, 0.3)",
    "arguments": "import sys\nlen(sys.argv), sys.argv[1], sys.flags.safe_path",
    "path": "import sys\nsys.path",
    "folder": "import os\nos.listdir(), os.path.basename(os.getcwd())",
    "environment": "import os\n{k: v for k, v in os.environ.items() if '/' not in v and 'PID' not in k}",
    "names of variables": "import os\nsorted(os.environ)",
    "main": "import sys\nsorted(vars(sys.modules['__main__'])), __name__",
    "signals": "import signal\n[signal.getsignal(n) in (signal.SIG_DFL, signal.SIG_IGN) for n in (1, 2, 15)]",
    "group": "import os\nos.getpgid(0) == os.getsid(0) == os.getpid()",
    "streams": "import sys, os\nprint('out')\nprint('err', file=sys.stderr)\nos.system('echo native')",
    "input": "import subprocess\nsubprocess.run(['cat'], timeout=600).returncode",
    "pickles": "import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A())))",
    "depth": "def depth(n=0):\n    try: return depth(n + 1)\n    except RecursionError: return n\ndepth()",
    "warnings": "import warnings\nwarnings.warn('careful')\nwarnings.filters[:3]",
    "temporary files": "import os, tempfile\nos.path.samefile(tempfile.gettempdir(), os.environ['TMPDIR'])",
    "open files": "import os\nsorted(os.listdir('/proc/self/fd'), key=int)[:3]",
    "a pool": "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1]))",
    "threads": "import threading\nt = threading.Thread(target=print, args=('x',)); t.start(); t.join()",
    "a display": "from IPython.display import HTML\nHTML('<b>x</b>')",
    "garbage": "import gc\nassert gc.isenabled() and gc.get_threshold()[0]",
    "async": "import asyncio\nawait asyncio.sleep(0)\nprint('slept')",
}


def test_a_page_is_the_same_either_way(both, project):
    project.snippet(
        "a.one",
        """
        import json
        EXPECTED_ERRORS = {"load": (json.JSONDecodeError, "Expecting value")}


        def load(text):
            return json.loads(text)
        """,
    )
    cells = *map(project.cell, SAME.values()), project.cell("load('x')", "one.load")
    forked, own = both(*cells, frameworks=LIBRARY)
    assert (forked.outputs.facts.process, own.outputs.facts.process) == ("forked", "own")
    for case, first, second in zip((*SAME, "error"), plain(forked), plain(own), strict=True):
        assert first == second, case


def test_a_page_finds_only_the_frameworks_that_it_imports(project, execute):
    # Not written as what makes a page need a process of its own.
    code = "import sys\nloaded = getattr(sys, 'mod' + 'ules')\n"
    code += "print('colorsys' in loaded, 'ftplib' in loaded)"
    imports = {"none": "", "one": "import colorsys", "both": "import ftplib, colorsys"}
    for name, line in imports.items():
        project.page(f"a/{name}", project.cell(code), project.cell(f"{line}\n1"))
    found = execute(*(f"a/{name}" for name in imports), frameworks=LIBRARY)
    first = {name: printed(one)[0] for name, one in found.items()}
    assert first == {
        "a/none": "False False\n",
        "a/one": "True False\n",
        "a/both": "True True\n",
    }


def test_nothing_is_shared_between_kernels(project, execute):
    code = """
        import random, uuid, tempfile, os
        import colorsys, numpy
        assert not hasattr(colorsys, "mine")
        colorsys.mine = 1
        os.environ["MINE"] = "1"
        # Backwards: a path would be taken out of what is printed.
        folder = os.path.dirname(tempfile.mkdtemp())[::-1]
        print(random.random(), uuid.uuid4(), folder, numpy.random.rand())
    """
    pytest.importorskip("numpy")
    for name in ("a/one", "a/two"):
        project.page(name, project.cell(code))
    found = execute("a/one", "a/two", frameworks=LIBRARY | {"numpy": {}})
    one, two = (printed(found[name])[0].split() for name in ("a/one", "a/two"))
    assert [a == b for a, b in zip(one, two, strict=True)] == [False] * 4


def test_an_import_that_prints_or_fails_happens_on_the_page(project, execute, installed):
    names = "says", "fails"
    for name in names:
        project.page(name, project.cell(f"import {name}"))
    found = execute(*names, frameworks={"says": {}, "fails": {}})
    says, fails = (found[name] for name in names)
    assert says.outputs.facts.process == fails.outputs.facts.process == "own"
    assert printed(says) == ["hello from says\n"]
    assert "ValueError: no luck" in fails.failures[0].message


def test_what_a_kernel_has_started_ends_with_it(project, execute, until):
    start = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'], start_new_session={})"
    names = [f"a/{benchmark}{apart}" for benchmark in (0, 1) for apart in (0, 1)]
    for name in names:
        benchmark, apart = (digit == "1" for digit in name[2:])
        cell = project.cell(f"{start.format(apart)}\nprint(child.pid)")
        project.page(name, cell, benchmark=benchmark)
    for execution in execute(*names).values():
        number = int(printed(execution)[0])
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(number)
            until(lambda process=process: not alive(process), "what a kernel started lives on")


LEFT = {
    "by a kernel that ended": "import os, subprocess\n"
    "subprocess.Popen(['sleep', '1000'], start_new_session=True)\nos._exit(1)",
    "by a shell that ended": "import os, time\n"
    "os.system('setsid sleep 1000 > /dev/null 2>&1 &')\ntime.sleep(0.3)",
}


def test_what_is_left_behind_ends_with_its_page(project):
    for left in LEFT:
        for chapter, benchmark in (("forked", False), ("own", True)):
            name = f"{chapter}/{left.split()[2]}"
            project.page(name, project.cell(LEFT[left]), benchmark=benchmark)
    build = project.build()
    assert sorted(build.progress) == [
        ("executed", "forked/shell"),
        ("executed", "own/shell"),
        ("failed", "forked/kernel"),
        ("failed", "own/kernel"),
    ]
    assert project.processes() == []


@pytest.mark.parametrize("victim", ["build", "root", "watch"])
def test_nothing_outlives_a_build_of_which_a_part_is_killed(project, stamping, until, victim):
    project.configure('book_frameworks = {"lib": {"modules": ["colorsys"]}}')
    project.page(
        "a/one",
        project.cell("import colorsys"),
        stamping,
        project.cell("import os\nstamp(f'pid-{os.getpid()}')\nwait_for('go')"),
    )
    process = project.start()
    until(lambda: list(project.stamps.glob("pid-*")), "the page never began")
    (kernel,) = (int(path.name[4:]) for path in project.stamps.glob("pid-*"))
    above = psutil.Process(kernel).parents()
    chain = dict(zip(("watch", "lib", "environment", "root", "build"), above[:5], strict=True))
    assert chain["build"].pid == process.pid
    others = [*(p for n, p in chain.items() if n != victim), psutil.Process(kernel)]
    chain[victim].kill()
    if victim != "build":
        # The page is executed once more, in a process of its own.
        project.stamp("go").touch()
    build = project.wait(process)
    until(lambda: not project.processes(), "something outlives the build")
    until(lambda: not any(map(alive, others)), "something outlives the build")
    assert victim == "build" or build.green, build.output


def alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@pytest.fixture
def lasting_root(until):
    """Return a function that starts a root beside a command, and returns its process.

    The input of the command ends with the test, also where the root was killed before it.
    """
    processes = []

    def start(*command, **variables):
        process = subprocess.Popen(
            [sys.executable, "-m", forkserver.__name__, "--", *command],
            env=os.environ | {"PYTHONPATH": str(ENGINE)} | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


SAYS_WHERE = "import os, sys\nprint(os.environ['BOOK_KERNELS'], flush=True)\nsys.stdin.read()"
# The parent of what watches the kernel.
PARENT = "import os, colorsys\nprint(open(f'/proc/{os.getppid()}/stat').read().split()[3])"


def test_parents_stay_warm_between_builds(project, execute, monkeypatch, until, lasting_root):
    process = lasting_root(sys.executable, "-c", SAYS_WHERE)
    monkeypatch.setenv(forkserver.SOCKET, process.stdout.readline().strip())
    project.page("a/one", project.cell(PARENT))
    first, second = (printed(execute("a/one", frameworks=LIBRARY)["a/one"]) for _ in range(2))
    assert first == second
    parent = psutil.Process(int(first[0]))
    assert process.pid in [one.pid for one in parent.parents()]

    # Another environment needs other parents, and those of the old one go.
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    third = printed(execute("a/one", frameworks=LIBRARY)["a/one"])
    assert third != second
    until(lambda: not alive(parent), "the parent stays that nobody needs any more")

    new = psutil.Process(int(third[0]))
    process.kill()
    process.wait()
    until(lambda: not alive(new), "a parent outlives its root")
    # Without the root a build starts its own.
    assert printed(execute("a/one", frameworks=LIBRARY)["a/one"]) not in (second, third)


def test_a_killed_build_leaves_the_lasting_parents_and_takes_its_kernels(
    project, until, stamping, lasting_root
):
    process = lasting_root(
        sys.executable, "-c", SAYS_WHERE, STAMPS=str(project.stamps), PYTHONUNBUFFERED="1"
    )
    path = process.stdout.readline().strip()
    project.page(
        "a/one", stamping, project.cell("import os\nstamp(f'pid-{os.getpid()}')\nwait_for('go')")
    )
    build = project.start(BOOK_KERNELS=path)
    until(lambda: list(project.stamps.glob("pid-*")), "the page never began")
    (kernel,) = (int(found.name[4:]) for found in project.stamps.glob("pid-*"))
    kernel = psutil.Process(kernel)
    parent = kernel.parent().parent()
    build.kill()
    project.wait(build)
    until(lambda: not alive(kernel), "a kernel outlives its build")
    assert alive(parent)
    process.send_signal(signal.SIGTERM)
    process.wait()
    until(lambda: not alive(parent), "a parent outlives its root")


def test_the_command_beside_a_root_has_the_last_word(lasting_root):
    process = lasting_root(sys.executable, "-c", "raise SystemExit(7)")
    assert process.wait() == 7


# One ends its process where another is not imported before it; others print, fail or log.
BEFORE = {
    "reads": "import os\nFOUND = os.environ['WAITS']\n",
    "says": "print('hello from says')",
    "fails": "raise ValueError('no luck')",
    "needed": "",
    "library": "import os, sys\n'needed' in sys.modules or os.kill(os.getpid(), 11)",
    "logging_library": "import logging\n"
    "log = logging.getLogger('of_the_library')\n"
    "log.addHandler(logging.StreamHandler())",
}


@pytest.fixture
def installed(project, monkeypatch):
    """Install the modules of BEFORE for this process, parents and kernels."""
    folder = project.root / "installed"
    folder.mkdir()
    for name, code in BEFORE.items():
        (folder / f"{name}.py").write_text(code, "utf8")
    whole = page_run.environment.kernel_environment

    def with_folder(*rest, **named):
        return whole(*rest, **named) | {"PYTHONPATH": str(folder)}

    monkeypatch.setattr(page_run.environment, "kernel_environment", with_folder)
    monkeypatch.syspath_prepend(folder)


def test_what_must_come_before_a_framework_is_imported_first(project, execute, installed):
    codes = (
        "import library",
        "def late():\n    import library\nlate()",
        "import os\nos.environ['A'] = 'b'\nimport library",
    )
    names = [f"{chapter}/{number}" for chapter in ("forked", "own") for number in range(len(codes))]
    for name in names:
        chapter, number = name.split("/")
        cells = project.cell("import colorsys"), project.cell(codes[int(number)])
        project.page(name, *cells, benchmark=chapter == "own")
    frameworks = {"library": {"before": ["needed"]}, "colorsys": {}}
    found = execute(*names, frameworks=frameworks)
    for name in names:
        assert not found[name].failures, name


def test_a_framework_reads_what_holds_beside_other_pages_and_the_page_sees_its_own(
    both, project, installed
):
    cells = "import reads", "import os\nprint(reads.FOUND, os.environ['WAITS'])"
    declared = {"environment": {"": {"WAITS": "long"}}, "in_parallel": {"WAITS": "short"}}
    forked, own = both(*map(project.cell, cells), frameworks={"reads": declared})
    assert printed(forked)[1] == "short long\n"
    assert printed(own)[1] == "long long\n"


def test_what_a_library_logs_is_shown_wherever_it_was_imported(both, project, installed):
    cells = (
        project.cell("import logging_library"),
        project.cell("logging_library.log.warning('careful')"),
    )
    for execution in both(*cells, frameworks={"logging_library": {}}):
        assert printed(execution) == ["", "careful\n"]
