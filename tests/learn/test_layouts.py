"""What collectives move, and what the lesson says of the worked problems."""

import jax
import numpy as np
import pytest

from snippets.learn import layouts
from snippets.learn.checks.layouts import automatic_mesh, compiled_gradient

ROWS, COLUMNS = jax.P("data"), jax.P(None, "data")
PROBLEMS = {
    "replicas": ({"data": 8}, (ROWS, jax.P(), jax.P()), 160, ["all-reduce: 224 KiB"]),
    "fsdp": (
        {"data": 8},
        (ROWS, ROWS, ROWS),
        48,
        ["all-gather: 112 KiB", "all-reduce: 224 KiB"],
    ),
    "tensor": ({"data": 8}, (jax.P(), COLUMNS, ROWS), 272, ["all-reduce: 896 KiB"]),
    "both": (
        {"data": 2, "model": 4},
        (ROWS, jax.P(None, "model"), jax.P("model")),
        160,
        ["all-reduce: 416 KiB"],
    ),
}


def test_an_all_gather_of_what_a_reduce_scatter_leaves_is_an_all_reduce():
    before, scattered, gathered = np.asarray(layouts.moved(automatic_mesh(data=4)))
    assert np.array_equal(before, np.full((4, 4), 0.25))
    assert np.array_equal(scattered, np.eye(4))
    assert np.array_equal(gathered, np.broadcast_to(before.sum(axis=0), (4, 4)))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_compiled_program_sends_and_holds_what_the_lesson_predicts(problem, capsys):
    sizes, specs, held, sent = PROBLEMS[problem]
    specs = dict(zip(("x", "up", "down"), specs, strict=True))
    layouts.report(compiled_gradient(automatic_mesh(**sizes), specs, rows=1024))
    first, *others, last = capsys.readouterr().out.splitlines()
    assert first.endswith(f", holds {held} KiB")
    assert others == sent
    total = sum(int(line.split()[1]) for line in sent)
    assert last == f"sends in all: {total} KiB"


def test_a_device_computes_about_an_eighth_of_six_operations_for_each_weight_and_row():
    specs = {"x": ROWS, "up": jax.P(), "down": jax.P()}
    program = compiled_gradient(automatic_mesh(data=8), specs, rows=1024)
    by_hand = 6 * (2 * 64 * 256) * 1024 / 8
    assert program.cost_analysis()["flops"] == pytest.approx(by_hand, rel=0.02)
