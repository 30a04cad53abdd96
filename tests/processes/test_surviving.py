"""Real jobs that are killed or stopped, and started again on other numbers of processes."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from snippets.processes import surviving
from snippets.programs.launcher import launch

SECOND_SAVE = r"open .*/10\.[^/]*/.*process_"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Return what jobs have printed that were killed as they saved step 20, or never, by name."""
    folder, names = tmp_path_factory.mktemp("jobs"), [*surviving.STAGES][1:]
    with ThreadPoolExecutor() as pool:
        killed = [pool.submit(surviving.kill_at, surviving.STAGES[n], folder / n) for n in names]
        whole = pool.submit(surviving.run_job, folder / "whole", 30)
        newest = [each.result() for each in killed]
    assert newest == [10, 10, 20]
    counts = zip(names, newest, (2, 1, 2), strict=True)
    with ThreadPoolExecutor() as pool:
        again = [pool.submit(surviving.run_job, folder / n, new + 5, c) for n, new, c in counts]
        return {
            name: surviving.losses_of(each.result())
            for name, each in zip([*names, "whole"], [*again, whole], strict=True)
        }


@pytest.fixture
def whole(started):
    """Return {step: loss} of a run that nobody kills."""
    losses, others = started["whole"]
    assert losses == others and [*losses] == [*range(1, 31)]
    assert losses[30] < losses[1] / 2
    return losses


def test_losses_equal_those_of_one_device_without_any_saves(whole):
    rng = np.random.default_rng
    params = [np.asarray(x, np.float64) for x in one_device_start()]
    momenta = [np.zeros_like(x) for x in params]
    for number in range(1, 31):
        x = rng(number).normal(size=(64, 8)).astype(np.float32).astype(np.float64)
        y = np.sin(x)
        hidden = np.tanh(x @ params[0])
        difference = hidden @ params[1] - y
        np.testing.assert_allclose(whole[number], np.mean(difference**2), rtol=1e-5)
        back = 2 * difference / difference.size
        grads = [x.T @ ((back @ params[1].T) * (1 - hidden**2)), hidden.T @ back]
        momenta = [0.9 * m + g for m, g in zip(momenta, grads, strict=True)]
        params = [p - 0.1 * m for p, m in zip(params, momenta, strict=True)]


def one_device_start():
    import jax

    mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",), (jax.sharding.AxisType.Explicit,))
    state = surviving.first_state(mesh)
    assert not any(x.any() for x in state["opt_state"])
    return state["params"]


@pytest.mark.parametrize(
    ("name", "first", "count"),
    [
        ("while process 1 writes", 11, 2),
        ("written, not yet renamed", 11, 1),
        ("while an old one is removed", 21, 2),
    ],
)
def test_a_killed_job_goes_on_with_the_losses_of_the_whole_run(started, whole, name, first, count):
    resumed = started[name]
    assert len(resumed) == count and resumed[0] == resumed[-1]
    assert [*resumed[0]] == [*range(first, first + 5)]
    expected = {step: whole[step] for step in resumed[0]}
    if count == 2:
        assert resumed[0] == expected
    else:
        np.testing.assert_allclose([*resumed[0].values()], [*expected.values()], rtol=1e-5)


def test_all_save_the_same_step_if_one_gets_the_signal(tmp_path):
    stage, statuses = (1, SECOND_SAVE), [os.EX_TEMPFAIL] * 2
    stopped = surviving.run_job(
        tmp_path, 10**6, stage=stage, number=signal.SIGTERM, statuses=statuses
    )
    last, other = map(max, surviving.losses_of(stopped))
    assert last == other == surviving.newest_in(tmp_path) > 10


def asking_program(address, count, number):
    """Ask in each step, after a signal; the first handler is never called."""
    import os
    import signal

    import jax
    from jax.experimental import multihost_utils

    signal.signal(signal.SIGTERM, lambda *_: print("first handler"))
    jax.distributed.initialize(address, count, number)
    ask = multihost_utils.reached_preemption_sync_point
    os.kill(os.getpid(), signal.SIGTERM)
    step = 1
    while not ask(step):
        step += 1
    print(ask(step + 1), ask(step + 9), ask(step - 1), ask(step))
    signal.signal(signal.SIGTERM, lambda *_: print("second handler"))
    os.kill(os.getpid(), signal.SIGTERM)
    print("alive")


def test_jax_takes_the_signal_and_is_true_for_one_number():
    [process] = launch(asking_program, 1, 1)
    lines = [line for line in process.text.splitlines() if "SIGTERM caught" not in line]
    assert lines == ["False False False True", "second handler", "alive"]


def test_without_the_same_folder_nothing_is_ever_complete(tmp_path):
    def variables(port, count, process):
        folder = {"FOLDER": str(tmp_path / str(process)), "UNTIL": "30"}
        never = {"EVENT": surviving.NEVER[1], "SIGNAL": "9"}
        return surviving.slurm_variables(port, count, process) | folder | never

    uses = [getattr(surviving, name) for name in "first_state batch_of train_step".split()]
    launch(
        surviving.surviving_program,
        2,
        uses=[*uses, surviving.train, surviving.signal_at],
        statuses=[None, None],
        until=r"step 10 ",
        variables=variables,
    )
    for number in range(2):
        with pytest.raises(ValueError, match="empty"):
            surviving.newest_in(tmp_path / str(number))


def test_only_complete_saves_count(tmp_path):
    for name in "1", "10", "20.orbax-checkpoint-tmp":
        (tmp_path / name).mkdir()
    assert surviving.newest_in(tmp_path) == 10


def test_a_checkpoint_of_step_0_counts_and_the_last_step_is_saved(tmp_path, capsys):
    import jax
    import orbax.checkpoint as ocp

    mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",), (jax.sharding.AxisType.Explicit,))
    options = ocp.CheckpointManagerOptions(save_interval_steps=10)
    with jax.set_mesh(mesh), ocp.CheckpointManager(tmp_path, options=options) as manager:
        first = surviving.first_state(mesh)
        state = {name: [x + 1 for x in arrays] for name, arrays in first.items()}
        manager.save(0, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
        assert surviving.train(manager, mesh, 3) is False
        manager.wait_until_finished()
        *_, loss = surviving.train_step(**state, batch=surviving.batch_of(1, mesh))
        assert surviving.train(manager, mesh, 3) is False
        assert manager.all_steps() == [0, 3]
    losses = [float(line.split()[2]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 3
    np.testing.assert_allclose(losses[0], loss, rtol=1e-5)
