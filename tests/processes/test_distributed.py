"""Real processes: what they compute together, and how the launcher treats them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snippets.processes import distributed
from snippets.processes.distributed import (
    array_program,
    hello_program,
    shared_array,
    sums_program,
    torch_program,
    train_program,
    train_step,
)
from snippets.programs import launcher

PROGRAMS = hello_program, array_program, sums_program, train_program


def all_programs(address, count, number):
    """Run the programs one after the other, in processes that join in the first of them."""
    import jax

    for program in (hello_program, array_program, sums_program, train_program):
        program(address, count, number)
        print("next")
        jax.distributed.initialize = lambda *given: None


@pytest.fixture(scope="module")
def printed():
    """Return {program: the lines that each of two processes printed}."""
    finished = launcher.launch(all_programs, count=2, uses=[shared_array, train_step, *PROGRAMS])
    of_each = [process.text.split("next\n") for process in finished]
    texts = zip(*(map(str.splitlines, of_process) for of_process in of_each), strict=True)
    return dict(zip(PROGRAMS, texts, strict=False))


def test_each_process_knows_its_number_and_all_devices(printed):
    assert list(printed[hello_program]) == [
        [f"process {number} of 2", "2 own devices", "4 devices in all"] for number in range(2)
    ]


def test_to_join_after_computing_is_too_late():
    jnp.ones(2) + 1
    with pytest.raises(RuntimeError, match="must be called before any JAX"):
        jax.distributed.initialize("localhost:1", num_processes=1, process_id=0)


def test_an_array_of_all_processes(printed):
    for number, text in enumerate(printed[array_program]):
        own = np.arange(4.0) + 4 * number
        assert text[0] == f"own {own}"
        assert text[1] == "whole (8,)"
        assert text[2] == f"shard {4 * number} {own[:2]}"
        assert text[3] == f"shard {4 * number + 2} {own[2:]}"
        assert text[4].startswith(
            "RuntimeError: Fetching value for `jax.Array` that spans non-addr"
        )


def test_sums_of_an_array_of_all_processes(printed):
    for text in printed[sums_program]:
        assert text[1:] == [
            f"sum {np.arange(8.0).sum()}",
            f"psum {np.arange(8.0).reshape(4, 2).sum(0)}",
            f"gathered {np.arange(8.0)}",
        ]


def test_training_gives_the_losses_of_numpy_and_torch_sees_those_of_its_own_rows(printed):
    expected = distributed.train_numpy(count=2)
    assert (np.diff(expected) < 0).all()
    one, other = printed[train_program]
    assert one == other and one[0] == "rows 32 of 64"
    [losses] = distributed.losses([launcher.Finished(0, 0, "\n".join(one))])
    np.testing.assert_allclose(losses, expected, atol=1e-4)
    np.testing.assert_allclose(list(map(float, one[-1].split()[1:])), [3, -1], atol=0.6)

    by_torch = launcher.launch(torch_program, count=2)
    assert {process.text.splitlines()[-1] for process in by_torch} == {one[-1]}
    own = np.array(distributed.losses(by_torch))
    assert (own[0] != own[1]).all()
    np.testing.assert_allclose(own.mean(axis=0), losses, atol=1.5e-4)


@given(st.lists(st.lists(st.integers(0, 99_999), min_size=3, max_size=3), min_size=1, max_size=4))
def test_losses_are_read_from_the_lines_that_tell_them(values):
    texts = ["rows 3\n" + "".join(f"loss {v / 1e4:.4f}\n" for v in own) for own in values]
    finished = [launcher.Finished(n, 0, text) for n, text in enumerate(texts)]
    np.testing.assert_allclose(distributed.losses(finished), np.array(values) / 1e4, atol=1e-9)
