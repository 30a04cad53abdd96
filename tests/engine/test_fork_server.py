"""A forked process differs in nothing that matters from a program, and ends with the tests."""

import json
import pathlib
import signal
import subprocess
import sys

import psutil
import pytest

LOOK = """
import json, os, signal, sys, tempfile, threading
handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
print(json.dumps({
    "name": __name__,
    "arguments": sys.argv,
    "path": sys.path,
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "temporary": tempfile.gettempdir(),
    "handlers": [getattr(handler, "__name__", str(handler)) for handler in handlers],
    "blocked": [number.name for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    "input": sys.stdin.read(),
    "open": sorted(os.listdir("/proc/self/fd")),
    "threads": [thread.name for thread in threading.enumerate()],
    "group": os.getpgrp(),
    "frameworks": sorted({"jax", "torch", "tensorflow"} & set(sys.modules)),
}))
"""


@pytest.fixture
def both(project, tmp_path):
    """Return a function that runs code as a program and in a fork: their status and their words."""

    def run(code, *arguments, **variables):
        tmp_path.joinpath("look.py").write_text(code)
        program = subprocess.run(
            [sys.executable, "-m", "look", *arguments],
            cwd=project.root,
            env=project.environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        stdout, stderr = project.log("out"), project.log("err")
        fork = project.fork("look", arguments, stdout, stderr, **variables)
        ended = fork.wait(), stdout.read_text(), stderr.read_text()
        return (program.returncode, program.stdout, program.stderr), ended

    return run


def test_a_fork_meets_what_a_program_does(both, tmp_path):
    program, fork = both(LOOK, "-x", "a b", TMPDIR=str(tmp_path), OTHER="é")
    assert (program[0], fork[0], fork[2]) == (0, 0, "")
    assert json.loads(fork[1]) == json.loads(program[1])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('words')", 1),
        ("raise KeyError('words')", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os._exit(5)", 5),
        ("import atexit; atexit.register(print, 'at the end'); print('first')", 0),
    ],
)
def test_a_fork_ends_as_a_program_does(both, code, status):
    program, fork = both(code)
    assert (program[0], fork[0]) == (status, status)
    assert fork[1] == program[1]
    assert fork[2].splitlines()[-1:] == program[2].splitlines()[-1:]


def test_a_fork_takes_signals(project, until):
    project.root.joinpath("look.py").write_text("print('began')\nimport time; time.sleep(300)")
    log = project.log("out")
    fork = project.fork("look", (), log, log)
    until(lambda: log.read_text() == "began\n", "the fork never began")
    assert fork.poll() is None
    assert [process.pid for process in project.processes()] == [fork.pid]
    fork.terminate()
    assert fork.wait() == fork.poll() == fork.returncode == -signal.SIGTERM
    assert project.processes() == []


def test_a_fork_builds_the_site_that_a_program_builds(themed):
    themed.page("a/one", "Prose, `code` and $x^2$.", "```python\nprint(1)\n```", notebook=False)
    sites = []
    for program in (True, False):
        out = f"build/{program}"
        assert themed.build("-d", f"build/doctrees-{program}", out=out, program=program).green
        files = [path for path in (themed.root / out).rglob("*") if path.is_file()]
        sites.append({path.relative_to(themed.root / out): path.read_bytes() for path in files})
    assert len(sites[0]) > 20
    assert sites[0] == sites[1]


# To import what builds need takes long, and matters only to builds.
UNPREPARED = """
import importlib.util, sys
found = importlib.util.spec_from_file_location("server", {0!r})
server = importlib.util.module_from_spec(found)
found.loader.exec_module(server)
server.prepare = lambda engine, schema: sys.path.insert(0, engine)
server.main()
"""
HOLD = """
import pathlib, sys
sys.path.insert(0, {folder!r})
import conftest
conftest.FORK_SERVER = {server!r}
project = conftest.Project(pathlib.Path({root!r}))
project.root.joinpath("look.py").write_text("import time; time.sleep(300)")
log = project.log("out")
fork = project.fork("look", (), log, log)
print(fork.pid, conftest.forks().kept.pid, flush=True)
fork.wait(300)
"""


def test_no_fork_outlives_the_tests_that_were_killed(tmp_path, until):
    folder = pathlib.Path(__file__).parent
    server, root = tmp_path / "fork_server.py", tmp_path / "book"
    server.write_text(UNPREPARED.format(str(folder / server.name)))
    root.mkdir()
    code = HOLD.format(folder=str(folder), server=str(server), root=str(root))
    tests = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    fork, root = (psutil.Process(int(pid)) for pid in tests.stdout.readline().split())
    parent = fork.parent()
    assert root.parent() == parent
    assert parent.is_running() and parent.pid != tests.pid
    assert parent.cmdline()[1] == str(server)
    tests.kill()
    tests.wait()
    tests.stdout.close()
    until(lambda: not running(fork), "the fork outlives the tests")
    until(lambda: not running(parent), "the server outlives the tests")
    until(lambda: not running(root), "the root outlives the tests")


def running(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
