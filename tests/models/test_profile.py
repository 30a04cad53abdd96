"""Profiles: what ran has a name and a scope, and the planted faults are found."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.models import profile, real_model, real_model_fast

FOLDER = real_model.model_folder()
CONFIG = real_model.read_config(FOLDER)


def event(name, start, end, **stats):
    return profile.Event(name, start, end, stats)


@pytest.fixture(scope="module")
def params():
    return real_model.load_params(FOLDER / "model.safetensors", CONFIG)


@pytest.fixture(scope="module")
def batch():
    return real_model_fast.random_batch(4, 16)


@pytest.fixture(scope="module")
def lowered(params, batch):
    return profile.scoped_embed.lower(params, *batch, CONFIG)


@pytest.fixture(scope="module")
def compiled(lowered):
    return lowered.compile()


def test_named_parts_compute_the_same(params, batch, compiled):
    with jax.default_matmul_precision("highest"):
        expected = real_model.embed(params, *batch, CONFIG)
    np.testing.assert_allclose(compiled(params, *batch), expected, atol=2e-5)


def test_operations_of_a_profile_lead_to_their_scopes(params, batch, compiled):
    compiled(params, *batch).block_until_ready()
    with profile.profiled() as events:
        compiled(params, *batch).block_until_ready()
    found, known = profile.operations(events), profile.instructions(compiled)
    assert len(found) > 50
    named = [each for each in found if each.name in known]
    assert len(named) > 0.8 * len(found)
    parts = {known[each.name][0].split("/")[0] for each in named}
    assert {"embeddings", "attention", "mlp", "pool"} <= parts
    sums = profile.seconds_by(events, lambda e: known.get(e.name, ("", ""))[0].split("/")[0])
    total = sum(each.end - each.start for each in found)
    assert sum(seconds for _, seconds in sums) == pytest.approx(total)
    assert [seconds for _, seconds in sums] == sorted((s for _, s in sums), reverse=True)


def test_instructions_are_read_from_the_text():
    class Compiled:
        def as_text(self):
            return (
                "  %fusion.2 = f32[8,2]{1,0} fusion(%a), kind=kLoop, calls=%c,"
                ' metadata={op_name="jit(f)/mlp/dot_general" stack_frame_id=1}\n'
                "  %b = bf16[] constant(0)"
            )

    assert profile.instructions(Compiled()) == {"fusion.2": ("mlp/dot_general", "f32")}


def test_shares_are_printed(capsys):
    profile.print_shares([("a", 3.0), ("b", 1.0), ("c", 0.0)], rows=2)
    assert capsys.readouterr().out.split() == ["75%", "a", "25%", "b"]


def test_lanes_and_idle_share():
    events = [
        event("load", 10.0, 11.0),
        event("step", 11.0, 14.0),
        event("other", 9.0, 20.0),
        event("fusion", 11.0, 12.0, hlo_op="fusion"),
        event("fusion.1", 12.0005, 14.0, hlo_op="fusion.1"),
    ]
    drawn = profile.lanes(events)
    assert drawn[:2] == [("Python", "load", 0.0, 1.0), ("Python", "step", 1.0, 4.0)]
    [(lane, name, start, end)] = drawn[2:]
    assert (lane, name) == ("device", "operations")
    assert (start, end) == pytest.approx((1.0, 4.0))
    assert profile.idle_share(events) == pytest.approx(1.0005 / 4)


def test_spans_are_merged():
    assert profile.merged([(3, 4), (0, 2), (1, 3), (6, 7)]) == [[0, 4], [6, 7]]


def test_the_loop_names_what_python_does(params, batch, compiled):
    calls = []
    with profile.profiled() as events:
        profile.run_loop(
            functools.partial(compiled, params), lambda n: batch, calls.append, count=3
        )
    names = [each.name for each in events]
    assert [names.count(name) for name in ("load", "step", "use", "wait")] == [3, 3, 3, 1]
    steps = [each.stats.get("step_num") for each in events if each.name == "loop"]
    assert steps == [0, 1, 2]
    assert len(calls) == 3


def test_a_slow_load_returns_its_batch(monkeypatch):
    slept = []
    monkeypatch.setattr(profile.time, "sleep", slept.append)
    assert profile.slow_load(0, "batch") == "batch" and slept == [0.05]


@pytest.mark.parametrize(
    ("note", "converted", "kind"),
    [(profile.note_number, 2, float), (profile.note_array, 0, jax.Array)],
)
def test_conversions_are_counted(note, converted, kind):
    history, vectors = [], jnp.arange(4.0)
    note([], vectors)
    with profile.profiled() as events:
        for _ in range(2):
            note(history, vectors)
    assert profile.conversions(events) == converted
    assert all(isinstance(each, kind) and each == 1.5 for each in history)


def test_a_forgotten_parameter_makes_matmuls_float32(params, batch):
    asked = []
    for short in (real_model_fast.in_bfloat16(params), profile.half_way(params)):
        lowered = profile.scoped_embed.lower(short, *batch, CONFIG)
        asked.append(profile.matmuls(lowered))
    whole, half = asked
    assert whole["mlp/dot_general"] == whole["attention/dot_general"] == "bf16"
    assert set(half.values()) == {"f32"}
    assert whole.keys() == half.keys()


def test_pytorch_names_its_operations_without_a_warning(batch, monkeypatch, recwarn):
    monkeypatch.setenv("KINETO_LOG_LEVEL", "0")
    profile.silence_kineto()
    model = real_model.torch_model(FOLDER)
    recwarn.clear()
    rows = profile.torch_profile(model, *batch)
    names = [name for name, _ in rows]
    assert not recwarn.list
    assert {"aten::addmm", "aten::gelu"} <= set(names)
    assert [seconds for _, seconds in rows] == sorted((s for _, s in rows), reverse=True)
