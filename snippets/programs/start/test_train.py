"""Tests of the training program: run them with `python -m pytest`."""

import numpy as np

from snippets.programs.start.rows import in_order
from snippets.programs.start.train import devices_of, parsed, run


def losses_on(devices, folder, until=None):
    """Return the losses of six steps, or of those up to `until`."""
    batch = 8 * len(devices_of(8))
    words = f"--steps 6 --every 3 --batch {batch} --folder".split()
    return run(parsed([*words, str(folder)]), devices, until)


def test_all_devices_train_as_one_does(tmp_path):
    """The losses are equal but for rounding."""
    devices = devices_of(8)
    together = losses_on(devices, tmp_path / "all")
    alone = losses_on(devices[:1], tmp_path / "one")
    np.testing.assert_allclose(together, alone, rtol=1e-3)


def test_a_run_that_stopped_goes_on_with_the_same_losses(tmp_path):
    """Each loss is equal to the last bit: state and data are those saved."""
    devices = devices_of(8)
    whole = losses_on(devices, tmp_path / "whole")
    begun = losses_on(devices, tmp_path / "stopped", until=3)
    rest = losses_on(devices, tmp_path / "stopped")
    np.testing.assert_array_equal([*begun, *rest], whole)


def test_each_row_is_evaluated_once():
    """What fills up the last batch has labels below 0: padding."""
    rows = np.arange(10.0)[:, None], np.arange(10)
    batches = list(in_order(rows, size=4))
    labels = np.concatenate([labels for _, labels in batches])
    assert [len(x) for x, _ in batches] == [4, 4, 4]
    assert labels[labels >= 0].tolist() == list(range(10))
