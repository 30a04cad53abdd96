"""Tests of the training program: run them with `python -m pytest`."""

import numpy as np
import pytest

from snippets.programs.start.rows import in_order
from snippets.programs.start.train import devices_of, parsed, run


def losses_on(devices, folder, until=None):
    """Return the losses of six steps, or of those up to `until`."""
    words = "--steps 6 --every 3 --batch 48 --folder".split()
    return run(parsed([*words, str(folder)]), devices, until)


@pytest.fixture(scope="module")
def devices():
    """Return eight virtual devices, or those of the accelerator."""
    return devices_of(8)


@pytest.fixture(scope="module")
def whole(devices, tmp_path_factory):
    """Return the losses of all devices, in a run that nothing stopped."""
    return losses_on(devices, tmp_path_factory.mktemp("whole"))


def test_all_devices_train_as_one_does(whole, devices, tmp_path):
    """The losses are equal but for rounding."""
    alone = losses_on(devices[:1], tmp_path)
    np.testing.assert_allclose(whole, alone, rtol=1e-3)


def test_a_stopped_run_goes_on_with_the_same_losses(whole, devices, tmp_path):
    """Each loss is equal to the last bit: state and data are those saved."""
    begun = losses_on(devices, tmp_path, until=3)
    rest = losses_on(devices, tmp_path)
    np.testing.assert_array_equal([*begun, *rest], whole)


def test_each_row_is_evaluated_once():
    """What fills up the last batch has labels below 0: padding."""
    rows = np.arange(10.0)[:, None], np.arange(10)
    batches = list(in_order(rows, size=4))
    labels = np.concatenate([labels for _, labels in batches])
    assert [len(x) for x, _ in batches] == [4, 4, 4]
    assert labels[labels >= 0].tolist() == list(range(10))
