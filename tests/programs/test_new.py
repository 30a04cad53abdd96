"""The projects that `jax-measured new` writes, trained, killed, resumed and tested."""

import itertools
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import types

import jax
import numpy as np
import pytest
from flax import nnx

from snippets.models import steps
from snippets.programs import launcher
from snippets.programs.start import rows, state, text, train
from snippets.programs.start import write as writing
from snippets.project import gpt
from snippets.project.gpt import make_optimizer

ROOT = pathlib.Path(__file__).parents[2]
# Of the four models, two resume on fewer devices and two on one.
OTHER = {"gpt": 4, "vit": 1, "resnet": 4, "mlp": 1}
MODELS = [*OTHER]
RUN = "--steps 20 --every 5 --batch 32".split()
LINE = re.compile(r"step (\d+): loss (\S+), test (\S+), gradient (\S+), \d+ (\w+)/s")
# Trains once to the end, and once until the files of step 15 are written and get their name.
KILLED = """
import functools, os, pathlib, signal

import orbax.checkpoint as ocp
import train

train.devices_of = functools.cache(train.devices_of)
words = os.environ["WORDS"].split()
train.main([*words, "--folder", "whole"])
rename, save = os.rename, ocp.CheckpointManager.save


def rename_or_die(source, target, **of):
    if pathlib.Path(target).name == "15":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target, **of)


def save_and_wait(manager, step, **of):
    save(manager, step, **of)
    manager.wait_until_finished()


os.rename, ocp.CheckpointManager.save = rename_or_die, save_and_wait
train.main([*words, "--folder", "run"])
"""

# A scheduler sends SIGTERM in step 7.
TOLD = """
import os, signal

import train

functions_of = train.functions_of


def told(*of):
    step, testing = functions_of(*of)
    left = [7]

    def counted(**state):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(**state)

    return counted, testing


if os.environ.get("JOB_COMPLETION_INDEX") != "0":
    train.functions_of = told
train.main([*os.environ["WORDS"].split(), "--folder", "told"])
"""


@pytest.fixture
def project(package, kept_programs, tmp_path):
    """Write the project of a model; return a function that runs Python in it."""
    flags = os.environ["XLA_FLAGS"].split()
    flags = " ".join(each for each in flags if "device_count" not in each)
    own = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "WORDS": " ".join(RUN)}
    own |= kept_programs
    # Nothing of this book is there.
    inherited = {name: of for name, of in os.environ.items() if name != "PYTHONPATH"}

    def written(model, devices=8):
        place = tmp_path / f"Ein schönes Projekt/my-{model}"
        assert package.starting.write(str(place), model, devices) == 0

        def python(*words, cwd=place):
            command = [sys.executable, *map(str, words)]
            return subprocess.run(
                command, cwd=cwd, env=inherited | own, capture_output=True, encoding="utf8"
            )

        return place, python

    return written


def numbers(text):
    """Return {step: loss, test loss and norm as they were printed}."""
    return {int(found[1]): found.groups()[1:4] for found in LINE.finditer(text)}


def test_what_was_trained_writes_text(project):
    _, python = project("gpt", devices=2)
    none = python("write.py", "ROMEO:")
    assert none.returncode == 1 and "nothing is saved in" in none.stderr
    done = python("train.py", "--steps", 4, "--every", 2, "--batch", 8)
    assert done.returncode == 0, done.stderr
    said = {words: python("write.py", "ROMEO:", *words.split()) for words in ("", "--seed 1")}
    texts = [each.stdout.removesuffix("\n") for each in said.values()]
    assert [len(text) for text in texts] == [406, 406], said[""].stderr
    assert all(text.startswith("ROMEO:") for text in texts) and texts[0] != texts[1]
    assert "needs a character" in python("write.py", "").stderr


def test_text_longer_than_the_model_s_positions_follows_from_the_last():
    config = gpt.Config(length=8, width=16, layers=1)
    apply, *state = steps.split_nnx(gpt.NnxGpt(config, rngs=nnx.Rngs(0)))
    for length in (1, 5, 8, 11):
        text = np.arange(length, dtype=np.int32) + 60
        key = jax.random.key(0)
        for token in writing.write(apply, state, text, key, 0.0, config.length, 12):
            logits, _ = apply(*state, text[None, -8:], train=False)
            assert token == logits[0, -1].argmax()
            text = np.append(text, token)


@pytest.mark.parametrize("model", MODELS)
def test_a_run_that_was_killed_goes_on_as_if_nothing_had_happened(project, model):
    place, python = project(model)
    (place / "killed.py").write_text(KILLED)
    run = python("killed.py")
    assert run.returncode == -9, run.stderr
    whole, killed = map(numbers, run.stdout.split("steps done: 0")[1:])
    assert [*whole] == [5, 10, 15, 20] and killed == {n: whole[n] for n in (5, 10, 15)}
    begun = [path.name for path in (place / "run").glob("15*")]
    assert begun and "15" not in begun
    assert float(whole[20][0]) < float(whole[5][0])
    shutil.copytree(place / "run", place / "other")

    # From another folder than its own.
    resumed = python(place / "train.py", *RUN, cwd=place.parent)
    assert "devices: 8, steps done: 10," in resumed.stdout, resumed.stderr
    assert numbers(resumed.stdout) == {n: whole[n] for n in (15, 20)}
    assert python("-c", "import snippets").returncode

    devices = OTHER[model]
    other = python("train.py", *RUN, "--devices", devices, "--folder", "other")
    assert f"devices: {devices}, steps done: 10," in other.stdout, other.stderr
    for step, found in numbers(other.stdout).items():
        expected = np.array(whole[step], np.float32)
        np.testing.assert_allclose(np.array(found, np.float32), expected, rtol=2e-3)
    assert [*numbers(other.stdout)] == [15, 20]

    tested = python("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0 and "3 passed" in tested.stdout, tested.stdout


def test_two_processes_train_as_one_does_and_one_of_them_says_so(project):
    place, python = project("mlp")
    program = "import sys, train; sys.stdout = sys.stderr; train.main()"
    command = [sys.executable, "-c", program, *RUN, "--devices", "2", "--folder", "both"]
    with launcher.reserved_port() as port:
        common = launcher.clean_environment(place, 2)
        common |= {"COORDINATOR": f"localhost:{port}", "PROCESSES": "2"}
        own = [common | {"JOB_COMPLETION_INDEX": str(number)} for number in range(2)]
        first, second = launcher.run_together([command] * 2, own, place, limit=600, grace=60)
    assert first.status == second.status == 0, first.text + second.text
    alone = numbers(python("train.py", *RUN, "--devices", 4, "--folder", "alone").stdout)
    for step, found in numbers(first.text).items():
        np.testing.assert_allclose(
            np.array(found, np.float32), np.array(alone[step], np.float32), rtol=2e-3
        )
    assert [*numbers(first.text)] == [5, 10, 15, 20] and not numbers(second.text)


def test_sigterm_saves_the_step_and_the_same_command_goes_on(project):
    place, python = project("mlp")
    (place / "told.py").write_text(TOLD)
    run = python("told.py")
    assert run.returncode == os.EX_TEMPFAIL, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "stopped after step 7, which is saved"
    assert [*numbers(run.stdout)] == [5]
    rest = python("train.py", *RUN, "--folder", "told")
    assert "steps done: 7," in rest.stdout, rest.stdout + rest.stderr
    whole = numbers(python("train.py", *RUN, "--folder", "whole").stdout)
    assert numbers(rest.stdout) == {number: whole[number] for number in (10, 15, 20)}


def test_sigterm_for_one_of_two_processes_ends_both_after_the_same_step(project):
    place, _ = project("mlp")
    (place / "told.py").write_text(TOLD)
    words = "--steps 1000000 --every 1000 --batch 32 --devices 2".split()
    with launcher.reserved_port() as port:
        common = launcher.clean_environment(place, 2) | {"WORDS": " ".join(words)}
        common |= {"COORDINATOR": f"localhost:{port}", "PROCESSES": "2"}
        own = [common | {"JOB_COMPLETION_INDEX": str(number)} for number in range(2)]
        program = "import sys; sys.stdout = sys.stderr; import told"
        command = [sys.executable, "-c", program]
        first, second = launcher.run_together([command] * 2, own, place, limit=600, grace=60)
    assert first.status == second.status == os.EX_TEMPFAIL, first.text + second.text
    (step,) = re.findall(r"stopped after step (\d+), which is saved", first.text)
    assert (place / "told" / step).is_dir()


def given(folder, words=""):
    """Return the options of a short run on rows of digits."""
    common = "--steps 4 --every 2 --batch 16 --folder".split()
    return train.parsed([*common, str(folder), *words.split()])


@pytest.fixture
def small(monkeypatch):
    """Make the network of the program a small one; return a function that changes it."""

    def of(*sizes):
        network = lambda rngs: steps.NnxMlp(sizes, rngs=rngs)  # noqa: E731
        monkeypatch.setattr(state, "network", network)

    monkeypatch.setattr(train, "devices_of", lambda count: jax.devices()[:count])
    of(64, 16, 10)
    # The program sets others.
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield of
    for each, handler in before.items():
        signal.signal(each, handler)


def test_a_resumed_run_takes_the_batches_of_the_rest(small, tmp_path, capsys):
    devices = jax.devices()
    whole = train.run(given(tmp_path / "whole"), devices)
    train.run(given(tmp_path / "parts"), devices, until=2)
    rest = train.run(given(tmp_path / "parts", "--every 1"), devices[:2])
    np.testing.assert_allclose(rest, whole[2:], rtol=1e-4)
    capsys.readouterr()
    assert not len(train.run(given(tmp_path / "parts", "--steps 3"), devices))
    assert "steps done: 4," in capsys.readouterr().out


@pytest.mark.parametrize("words", ["--parts 2", "--bfloat16"])
def test_microbatches_and_bfloat16_train_alike(small, tmp_path, words):
    devices = jax.devices()[:2]
    plain = train.run(given(tmp_path / "plain"), devices)
    other = train.run(given(tmp_path / "other", words), devices)
    np.testing.assert_allclose(other, plain, rtol=2e-2 if "16" in words else 1e-4)


def test_replicated_parameters_train_like_sharded_ones_and_take_over_their_checkpoint(
    small, tmp_path
):
    devices = jax.devices()
    whole = train.run(given(tmp_path / "whole"), devices)
    train.run(given(tmp_path / "parts"), devices, until=2)
    rest = train.run(given(tmp_path / "parts", "--sharding data"), devices)
    np.testing.assert_allclose(rest, whole[2:], rtol=1e-4)
    mesh = jax.make_mesh((8,), ("data",))
    held = {}
    for kind in ("fsdp", "data"):
        shapes = state.state_on(mesh, make_optimizer(4), kind)
        sizes = [x.sharding.shard_shape(x.shape) for x in jax.tree.leaves(shapes["params"])]
        held[kind] = sum(map(math.prod, sizes))
    assert held == {"fsdp": (64 * 16 + 16 * 10 + 16) / 8 + 10, "data": 64 * 16 + 16 * 10 + 26}


def test_the_next_batch_is_made_while_a_step_runs(small, tmp_path, monkeypatch):
    """On a CPU a step waits for the one before only after that."""
    said, batches_of = [], rows.batches_of
    functions_of, wait = train.functions_of, jax.block_until_ready

    def made(data, numbers, *given):
        for number, batch in zip(numbers, batches_of(data, numbers, *given), strict=True):
            said.append(f"made {number}")
            yield batch

    def functions(options, optimizer):
        step, testing = functions_of(options, optimizer)

        def taken(**given):
            said.append("step")
            return step(**given)

        return taken, testing

    def waited(values):
        said.extend(["wait"] * len(values))
        return wait(values)

    monkeypatch.setattr(rows, "batches_of", made)
    monkeypatch.setattr(train, "functions_of", functions)
    monkeypatch.setattr(state.jax, "block_until_ready", waited)
    train.run(given(tmp_path, "--every 4"), jax.devices()[:2])
    assert " ".join(said) == ("made 0 made 1 step made 2 wait step made 3 wait step wait step")


def test_the_best_checkpoint_is_kept_beside_the_newest(small, tmp_path, monkeypatch, capsys):
    """Also where a later loss is NaN. A resumed run takes the newest."""
    devices, evaluated = jax.devices()[:2], train.evaluated
    with pytest.raises(SystemExit, match=r"nothing is saved in .*: train it"):
        train.run(given(tmp_path, "--best"), devices)
    losses = iter([3.0, 1.0, np.nan, 4.0, 5.0, 6.0])
    monkeypatch.setattr(train, "evaluated", lambda *_: next(losses))
    train.run(given(tmp_path, "--steps 6 --every 1"), devices, until=5)
    assert {path.name for path in tmp_path.iterdir()} == {"2", "4", "5"}
    assert len(train.run(given(tmp_path, "--steps 6 --every 1"), devices)) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"2", "5", "6"}
    monkeypatch.setattr(train, "evaluated", evaluated)
    train.run(given(tmp_path / "again", "--steps 6"), devices, until=2)
    of_two = re.search(r"test (\S+),", capsys.readouterr().out.splitlines()[-1])[1]
    assert not len(train.run(given(tmp_path, "--steps 6 --best"), devices[:1]))
    first, line = capsys.readouterr().out.splitlines()
    assert "devices: 1, steps done: 2," in first
    assert float(line.removeprefix("test ")) == pytest.approx(float(of_two), rel=1e-4)


def test_the_share_of_a_peak_is_that_of_the_matmuls(small, tmp_path, monkeypatch, capsys):
    """A clock that says that two steps have taken a second; without a peak no share is said."""
    clock = itertools.count()
    monkeypatch.setattr(train.time, "perf_counter", lambda: next(clock))
    flops = 6 * 16 * (64 * 16 + 16 * 10)
    peak = 2 * flops / 1e12 / 2 / 0.125
    train.run(given(tmp_path, f"--peak {peak}"), jax.devices()[:2], until=2)
    train.run(given(tmp_path), jax.devices()[:2])
    *_, with_peak, _, without = capsys.readouterr().out.splitlines()
    assert with_peak.endswith(", 32 images/s, MFU 12.5%")
    assert without.endswith(", 32 images/s")


@pytest.mark.parametrize("name", MODELS)
def test_the_matmuls_of_each_model_are_counted_in_each_layer(name, monkeypatch):
    """By hand: every multiplication of a weight, and those of attention."""
    model = __import__(f"snippets.programs.start.{name}", fromlist=["network"])
    monkeypatch.setattr(state, "network", model.network)
    data = np.zeros((3, 64), np.int32 if name == "gpt" else np.float32)
    labels = np.zeros((3, 64) if name == "gpt" else 3, np.int32)
    options = train.parsed([])
    optimizer = make_optimizer(4)
    _, testing = state.functions_of(options, optimizer)
    of = jax.eval_shape(lambda: state.first_state(jax.random.key(0), optimizer))
    # Two layers of four matrices for attention, and of an MLP four or two times as wide.
    length, width, wider = {"gpt": (64, 64, 4), "vit": (16, 32, 2)}.get(name, (0, 0, 0))
    blocks = 2 * length * ((4 + 2 * wider) * width**2 + 2 * length * width)
    ends = {
        "gpt": 64 * 64 * 128,
        "vit": 16 * 4 * 32 + 32 * 10,
        "mlp": 64 * 128 + 128 * 128 + 128 * 10,
        "resnet": 64 * 9 * 8 + 2 * 64 * 9 * 8 * 8 + 16 * 9 * (8 * 16 + 16 * 16 + 8 * 16) + 16 * 10,
    }
    share = state.share_of_peak(testing, of, (data, labels), peak=1e-12)
    assert share == 6 * 3 * (blocks + ends[name])


@pytest.mark.parametrize("sizes", [(64, 24, 10), (64, 16, 16, 10)])
def test_another_model_is_refused_in_words_and_leaves_what_was_saved(small, tmp_path, sizes):
    train.run(given(tmp_path), jax.devices(), until=2)
    small(*sizes)
    with pytest.raises(SystemExit, match=r"step 2 in .* was saved by another model .* --folder"):
        train.run(given(tmp_path), jax.devices())
    small(64, 16, 10)
    assert len(train.run(given(tmp_path), jax.devices())) == 2


def test_another_batch_is_refused_where_a_run_goes_on(small, tmp_path):
    train.run(given(tmp_path), jax.devices(), until=2)
    with pytest.raises(SystemExit, match=r"step 2 in .* with --batch 16: .* Keep the size, or"):
        train.run(given(tmp_path, "--batch 32"), jax.devices())
    # A checkpoint of an earlier version of the program doesn't say its size.
    for path in tmp_path.rglob("_CHECKPOINT_METADATA"):
        path.write_text(path.read_text().replace('"batch"', '"other"'))
    assert len(train.run(given(tmp_path, "--batch 32"), jax.devices()[:2])) == 2


def test_the_best_is_read_whatever_the_batch(small, tmp_path, capsys):
    train.run(given(tmp_path), jax.devices())
    assert len(train.run(given(tmp_path, "--best --batch 32"), jax.devices())) == 0
    assert re.search(r"^test \d", capsys.readouterr().out, re.MULTILINE)


def test_a_text_without_rows_for_the_test_is_refused(tmp_path):
    path, least = tmp_path / "text", 10 * (text.CONFIG.length + 1)
    path.write_text("a" * (least - 1))
    options = types.SimpleNamespace(text=str(path))
    with pytest.raises(SystemExit, match=f"has {least - 1} characters: at least {least} are"):
        text.load(options)
    path.write_text("a" * least)
    assert [len(tokens) for tokens, _ in text.load(options)] == [9, 1]


@pytest.mark.parametrize(
    "words", ["--count 0", "--count -5", "--temperature -1", "--temperature nan"]
)
def test_no_text_is_written_by_a_number_that_is_none(words, capsys):
    with pytest.raises(SystemExit):
        writing.main(["a", *words.split()])
    assert " is below " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--batch 64 --devices 3", "--batch 64 doesn't divide among 3 .* a multiple of 3"),
        ("--batch 4 --devices 8", "a multiple of 8"),
        ("--batch 24 --devices 8 --parts 2", "--parts 2 each: take a multiple of 16"),
        ("--batch 2048", "2048 is too large: there are 1536 rows"),
    ],
)
def test_a_batch_that_cannot_be_dealt_out_is_refused(small, tmp_path, words, said):
    with pytest.raises(SystemExit, match=said):
        train.main(["--folder", str(tmp_path), *words.split()])


@pytest.mark.parametrize("words", ["--steps 0", "--devices -1", "--every x"])
def test_what_is_no_number_from_one_on_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        train.parsed(words.split())
    assert "invalid positive value" in capsys.readouterr().err


def test_ctrl_c_takes_a_line_and_keeps_what_was_saved(small, tmp_path, monkeypatch, capfd):
    take_steps, lengths = train.take_steps, []

    def stopped(step, state, batches):
        lengths.append(1)
        if len(lengths) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return take_steps(step, state, batches)

    def leave(status):
        raise InterruptedError(status)

    monkeypatch.setattr(train, "take_steps", stopped)
    monkeypatch.setattr(train.os, "_exit", leave)
    words = "--steps 4 --every 2 --batch 16 --folder".split()
    with pytest.raises(InterruptedError, match="130"):
        train.main([*words, str(tmp_path)])
    said = capfd.readouterr()
    assert said.out.splitlines()[-1].startswith("stopped: the same command") and not said.err
    train.main([*words, str(tmp_path)])
    assert "steps done: 2," in capfd.readouterr().out


def test_a_second_run_in_a_folder_is_refused_until_the_first_ends(tmp_path):
    with train.held(tmp_path), pytest.raises(SystemExit, match="another run trains in"):
        with train.held(tmp_path):
            pytest.fail("both have it")
    with train.held(tmp_path):
        pass


def labels_of(numbers):
    pair = np.arange(12.0)[:, None], np.arange(12)
    return [labels for _, labels in rows.batches_of(pair, numbers, 4)]


def test_a_batch_follows_from_its_number_and_an_epoch_has_each_row_once():
    epochs = labels_of(range(3)), labels_of(range(3, 6))
    assert all(sorted(np.concatenate(epoch)) == list(range(12)) for epoch in epochs)
    assert not np.array_equal(*epochs)
    np.testing.assert_array_equal(labels_of(range(1, 6)), [*epochs[0][1:], *epochs[1]])
    np.testing.assert_array_equal(labels_of([4]), [epochs[1][1]])


def test_the_order_of_an_epoch_is_made_once(monkeypatch):
    seeds, make = [], np.random.default_rng

    def noted(seed):
        seeds.append(seed)
        return make(seed)

    monkeypatch.setattr(rows.np.random, "default_rng", noted)
    assert len(labels_of(range(6))) == 6
    assert seeds == [(0, 0), (0, 1)]


def test_targets_are_the_text_one_character_later(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("Grüße aus Köln! " * 100, "utf8")
    tokens, targets = text.windows(text.read(path), 64)
    assert tokens.dtype == np.int32 and tokens.shape == (24, 64)
    np.testing.assert_array_equal(tokens.ravel()[1:], targets.ravel()[:-1])
    assert bytes(tokens[0, :5].astype(np.uint8)) == b"Gr??e"
    for wrong in (tmp_path, tmp_path / "absent.txt"):
        with pytest.raises(SystemExit, match=f"--text {wrong} cannot be read"):
            text.read(wrong)


def test_norms_biases_and_positions_are_not_decayed():
    """The mask of the book's optimizer names kernels; those of all four models are called so."""
    for name in MODELS:
        model = __import__(f"snippets.programs.start.{name}", fromlist=["network"])
        _, params, _ = steps.split_nnx(nnx.eval_shape(lambda m=model: m.network(nnx.Rngs(0))))
        for path, leaf in jax.tree.leaves_with_path(params):
            named = jax.tree_util.keystr(path)
            if "kernel" not in named:
                stacked = "layers" in named and name == "gpt"
                other = "positions" in named or "embedding" in named
                assert other or leaf.ndim == 1 + stacked, named


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("my model", "cannot be the name of a package"),
        ("größe", "cannot be the name of a package"),
        ("-model", "cannot be the name of a package"),
        ("JAX", "the name of a library"),
        ("scikit_learn", "the name of a library"),
        ("full", "is not empty"),
        ("file", "cannot be written"),
    ],
)
def test_a_folder_that_will_not_do_is_refused(package, tmp_path, capsys, folder, words):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.py").write_text("dear")
    (tmp_path / "file").write_text("dear")
    before = sorted(tmp_path.rglob("*"))
    assert package.starting.write(str(tmp_path / folder), "mlp", 8) == 2
    assert words in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_writes_what_the_page_shows(command, tmp_path):
    done = command("new", "my-model", "--model", "vit", "--devices", "4")
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "project" / "start.md").read_text("utf8")
    files = {path.name: path.read_text("utf8") for path in (tmp_path / "my-model").iterdir()}
    tree = re.search(r"^my-model\n((?:[├└].*\n)+)", page, re.MULTILINE)[1]
    assert {line.split()[1] for line in tree.splitlines()} == files.keys()
    for name, content in files.items():
        assert "JAX, Measured" in content.splitlines()[0], name
        assert all(len(line) <= 79 for line in content.splitlines()), name
    assert "\nDEVICES = 4\n" in files["train.py"]
    assert len(files["train.py"].splitlines()) <= 300
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["name"] == "my-model"
    assert "cd my-model" in done.stdout and done.stdout.count("\n    ") == 3
    unknown = command("new", "other", "--model", "cnn")
    assert unknown.returncode == 2 and "choose from" in unknown.stderr
    again = command("new", "my-model", "--model", "vit")
    assert again.returncode == 2 and "not empty" in again.stderr


def test_each_model_is_offered(package):
    assert package.starting.MODELS == sorted(MODELS)
