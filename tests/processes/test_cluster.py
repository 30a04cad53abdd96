"""One program under every launcher, and the launch files as far as one machine can."""

import contextlib
import os
import pathlib
import re
import stat
import subprocess
import sys
import types

import jax
import numpy as np
import pytest
import yaml
from jax.experimental import mesh_utils, multihost_utils

from snippets.processes import cluster, distributed, failures, hanging
from snippets.programs.launcher import (
    clean_environment,
    find_mpirun,
    launch,
    reserved_port,
    run_together,
    write_program,
)
from snippets.training import ddp_and_fsdp

FUNCTIONS = [cluster.join_by_launcher, cluster.own_rows, cluster.train_step]
LAUNCH = pathlib.Path(__file__).parents[2] / "snippets" / "processes" / "launch"
SCRIPTS = ["train.sh", "train.sbatch"]


def expected_losses():
    x = np.random.default_rng(0).normal(size=(64, 2))
    y, params, losses = 3 * x[:, 0] - x[:, 1], np.zeros(2), []
    for _ in range(5):
        losses.append(np.mean((x @ params - y) ** 2))
        params -= 0.4 * x.T @ (x @ params - y) / 64
    return losses


def check(texts, rows):
    """Require the losses from process 0 alone, and the rows from each."""
    text = "\n".join(texts)
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)$", text, re.MULTILINE)]
    np.testing.assert_allclose(losses, expected_losses(), atol=1.5e-4)
    assert re.findall(r"rows (\d+) of 64", text) == [str(rows)] * (64 // rows)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the program as train.py and a `python` that is this one."""
    write_program(tmp_path / "train.py", cluster.everywhere_program, uses=FUNCTIONS)
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    executable(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    return tmp_path


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run(folder, *command, path="", **variables):
    """Run a launch file in the folder, with the folder as home, and return its output."""
    environment = clean_environment(folder, 2) | {"HOME": str(folder)} | variables
    environment["PATH"] = f"{path}:{environment['PATH']}"
    [finished] = run_together([command], [environment], folder, 600, 0)
    assert finished.status == 0, finished.text
    return finished.text


def test_alone():
    [process] = launch(cluster.everywhere_program, 1, 8, uses=FUNCTIONS, variables=cluster.alone)
    check([process.text], rows=64)


@pytest.fixture
def port():
    with reserved_port() as port:
        yield port


def test_the_file_for_open_mpi_starts_the_program(folder, port, mpi):
    (folder / "hosts").write_text("localhost slots=2\n")
    text = run(
        folder,
        *("bash", LAUNCH / "train.sh"),
        path=os.path.dirname(find_mpirun()),
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        JAX_COORDINATOR_ADDRESS=f"localhost:{port}",
    )
    check([text], rows=32)


def test_the_file_for_slurm_starts_the_program(folder, port):
    executable(
        folder / "venv" / "bin" / "srun",
        f"""#!/bin/bash
test "$1 $2" = "--kill-on-bad-exit=1 --cpus-per-task=8" || exit 2
shift 2
export SLURM_JOB_ID=1 SLURM_STEP_NODELIST=localhost SLURM_NTASKS=2
export JAX_COORDINATOR_PORT={port}
for number in 0 1; do
    SLURM_PROCID=$number SLURM_LOCALID=$number "$@" &
done
wait -n && wait -n
""",
    )
    given = {"SLURM_CPUS_PER_TASK": "8", "http_proxy": "http://nowhere"}
    check([run(folder, "bash", LAUNCH / "train.sbatch", **given)], rows=32)


def test_the_container_of_kubernetes_starts_the_program(folder, port):
    _, job = objects()
    [container] = job["spec"]["template"]["spec"]["containers"]
    shell, option, line = container["command"]
    install, start = line.split(" && ")
    assert (shell, option) == ("bash", "-c") and install.startswith("pip install 'jax[")
    start = start.replace("/program/", f"{folder}/").replace("python", sys.executable)
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    count = int(variables["PROCESSES"])
    variables["COORDINATOR"] = f"localhost:{port}"
    variables |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    environments = [
        clean_environment(folder, 2) | variables | {"JOB_COMPLETION_INDEX": str(number)}
        for number in range(count)
    ]
    finished = run_together([[shell, option, start]] * count, environments, folder, 600, 2)
    assert [process.status for process in finished] == [0] * count
    # JAX does not look for the pods by itself, which needs a package and permissions.
    assert not any("Kubernetes environment detected" in process.text for process in finished)
    check([process.text for process in finished], rows=64 // count)


@pytest.mark.parametrize("name", [*SCRIPTS, "train.yaml"])
def test_a_launch_file_says_how_far_it_was_tested(name):
    lines = (LAUNCH / name).read_text().splitlines()
    assert any(re.match("# (Not t|T)ested ", line) for line in lines[:2])


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_shell_scripts_are_correct(name):
    subprocess.run(["bash", "-n", LAUNCH / name], check=True)
    shellcheck = pathlib.Path(sys.executable).with_name("shellcheck")
    if not shellcheck.exists():
        pytest.skip("shellcheck missing: 'nox --install-only -s tests'")
    found = subprocess.run([shellcheck, LAUNCH / name], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    assert "set -euo pipefail" in (LAUNCH / name).read_text()


def test_slurm_starts_one_process_for_each_gpu():
    lines = (LAUNCH / "train.sbatch").read_text().splitlines()
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", "\n".join(lines), re.MULTILINE))
    assert lines[0] == "#!/bin/bash"
    assert options["ntasks-per-node"] == options["gpus-per-node"]
    first = next(n for n, line in enumerate(lines) if line and not line.startswith("#"))
    assert not [line for line in lines[first:] if line.startswith("#SBATCH")]


def test_hosts_have_slots():
    lines = (LAUNCH / "hosts").read_text().splitlines()
    assert lines and all(re.fullmatch(r"\S+ slots=\d+", line) for line in lines)


def objects():
    return list(yaml.safe_load_all((LAUNCH / "train.yaml").read_text()))


@pytest.fixture
def validate():
    """Return a function that checks an object against the newest schema of Kubernetes."""
    schemas = pytest.importorskip("kubernetes_validate")
    newest = schemas.latest_version()
    return lambda described: schemas.validate(described, newest, strict=True)


def test_the_yaml_fits_the_schema_of_kubernetes(validate):
    assert [described["kind"] for described in objects()] == ["Service", "Job"]
    for described in objects():
        validate(described)


def test_a_wrong_field_does_not_fit_the_schema(validate):
    _, job = objects()
    job["spec"]["completionsMode"] = "Indexed"
    with pytest.raises(Exception, match="completionsMode"):
        validate(job)


def test_the_names_in_the_yaml_fit_together():
    service, job = objects()
    assert (service["kind"], job["kind"]) == ("Service", "Job")
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    name = job["metadata"]["name"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == int(variables["PROCESSES"])
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    assert re.fullmatch(rf"{name}-0\.{pod['subdomain']}:\d+", variables["COORDINATOR"])
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    [mount] = container["volumeMounts"]
    assert f"{mount['mountPath']}/train.py" in container["command"][-1]


class Made(Exception):
    """Ends a program once it has made its mesh."""


@pytest.mark.parametrize(
    "program",
    [
        cluster.everywhere_program,
        lambda: distributed.shared_array("", 2, 0),
        lambda: distributed.train_program("", 2, 0),
        lambda: hanging.summed(0),
        lambda: hanging.other_program("", 2, 0),
        lambda: failures.survivors_program("", 2, 0),
        ddp_and_fsdp.jax_program,
    ],
)
def test_each_program_has_a_mesh_on_two_machines(program, monkeypatch):
    def made(sharding, *_):
        assert sharding.mesh.shape == {"data": 8}
        assert set(sharding.mesh.axis_types) == {jax.sharding.AxisType.Explicit}
        raise Made

    monkeypatch.setattr(jax, "devices", lambda: cluster.two_machines(4))
    monkeypatch.setattr(jax.distributed, "initialize", lambda *_, **__: None)
    monkeypatch.setattr(jax.config, "update", lambda *_: None)
    monkeypatch.setattr(multihost_utils, "live_devices", contextlib.nullcontext)
    monkeypatch.setattr(jax, "make_array_from_process_local_data", made)
    monkeypatch.setattr(jax, "NamedSharding", lambda mesh, _: types.SimpleNamespace(mesh=mesh))
    monkeypatch.setattr(jax, "set_mesh", lambda mesh: made(types.SimpleNamespace(mesh=mesh)))
    for name in ("JAX_COORDINATOR_ADDRESS", "WORLD_SIZE", "RANK"):
        monkeypatch.setenv(name, "1")
    with pytest.raises(Made):
        program()


def test_a_mesh_of_machines_has_an_axis_for_them(raises_declared):
    mesh = cluster.mesh_of_machines(cluster.two_machines(4)[::-1])
    assert mesh.shape == {"machines": 2, "data": 4}
    assert [{d.slice_index for d in row} for row in mesh.devices] == [{1}, {0}]
    # The hybrid mesh of JAX has the same devices in each machine.
    hybrid = mesh_utils.create_hybrid_device_mesh((1, 4), (2, 1), cluster.two_machines(4))
    assert hybrid.shape == (2, 4)
    raises_declared(cluster.make_mesh_of_machines)


def test_machines_with_different_numbers_of_devices_are_refused():
    with pytest.raises(ValueError, match=r"different numbers of devices, {0: 4, 1: 3}"):
        cluster.by_machine(cluster.two_machines(4)[:7])


def test_devices_of_a_cpu_are_those_of_one_machine():
    assert cluster.by_machine(jax.devices("cpu")).shape == (1, 8)
