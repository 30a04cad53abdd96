"""Real processes: what they compute together, and how the launcher treats them."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snippets.processes import distributed, launcher

ROOT = pathlib.Path(__file__).parents[2]


def lines(finished):
    return [process.text.splitlines() for process in finished]


def test_each_process_knows_its_number_and_all_devices():
    finished = launcher.launch(distributed.hello_program, count=3, devices=2)
    assert [process.status for process in finished] == [0, 0, 0]
    assert lines(finished) == [
        [f"process {number} of 3", "2 own devices", "6 devices in all"] for number in range(3)
    ]


def test_to_join_after_computing_is_too_late():
    jnp.ones(2) + 1
    with pytest.raises(RuntimeError, match="must be called before any JAX"):
        jax.distributed.initialize("localhost:1", num_processes=1, process_id=0)


def test_an_array_of_all_processes():
    finished = launcher.launch(distributed.array_program, uses=[distributed.shared_array])
    for number, text in enumerate(lines(finished)):
        own = np.arange(4.0) + 4 * number
        assert text[0] == f"own {own}"
        assert text[1] == "whole (16,)"
        assert text[2] == f"shard {4 * number} {own[:2]}"
        assert text[3] == f"shard {4 * number + 2} {own[2:]}"
        assert text[4].startswith(
            "RuntimeError: Fetching value for `jax.Array` that spans non-addr"
        )


def test_sums_of_an_array_of_all_processes():
    finished = launcher.launch(distributed.sums_program, uses=[distributed.shared_array])
    for text in lines(finished):
        assert text[1:] == [
            f"sum {np.arange(16.0).sum()}",
            f"psum {np.arange(16.0).reshape(8, 2).sum(0)}",
            f"gathered {np.arange(16.0)}",
        ]


def test_training_gives_the_errors_of_numpy_in_every_process():
    finished = launcher.launch(distributed.train_program, uses=[distributed.gradient_step])
    expected = distributed.train_numpy(count=4)
    np.testing.assert_allclose(distributed.errors(finished), [expected] * 4, atol=1e-4)
    assert (np.diff(expected) < 0).all()
    for text in lines(finished):
        assert text[0] == "rows 16 of 64"
        assert text[6] == lines(finished)[0][6]
        weights = [float(weight) for weight in text[6].split()[1:]]
        np.testing.assert_allclose(weights, [3, -1], atol=0.3)


def test_one_process_with_all_rows_learns_the_same():
    step = distributed.gradient_step
    [process] = launcher.launch(distributed.train_program, count=1, devices=8, uses=[step])
    np.testing.assert_allclose(
        distributed.errors([process])[0], distributed.train_numpy(count=1), atol=1e-4
    )


def test_torch_learns_the_weights_of_jax_and_sees_own_errors():
    by_torch = launcher.launch(distributed.torch_program, count=2)
    step = distributed.gradient_step
    by_jax = launcher.launch(distributed.train_program, count=2, uses=[step])
    weights = {text[-1] for text in lines(by_torch)} | {text[-1] for text in lines(by_jax)}
    assert len(weights) == 1
    own = np.array(distributed.errors(by_torch))
    assert (own[0] != own[1]).all()
    np.testing.assert_allclose(own.mean(axis=0), distributed.errors(by_jax)[0], atol=1.5e-4)


@given(st.lists(st.lists(st.integers(0, 99_999), min_size=3, max_size=3), min_size=1, max_size=4))
def test_errors_are_read_from_the_lines_that_tell_them(values):
    texts = ["rows 3\n" + "".join(f"error {v / 1e4:.4f}\n" for v in own) for own in values]
    finished = [launcher.Finished(n, 0, text) for n, text in enumerate(texts)]
    np.testing.assert_allclose(distributed.errors(finished), np.array(values) / 1e4, atol=1e-9)
