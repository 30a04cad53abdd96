"""Calls beside a neighbour: the neighbour, the processes, and what is recorded of them."""

import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import time

import numpy as np
import psutil
import pytest

from snippets.programs import timer
from snippets.timing import busy

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = ROOT / "snippets" / "programs"
RECORD = ROOT / "docs" / "_recorded" / "cpu" / "timing" / "busy.ipynb"


def state(process):
    """Return the letter that the system has for what a process does."""
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text("utf8")
    return stat.rpartition(")")[2].split()[0]


def computed(process):
    """Return the processor seconds of a process."""
    return sum(psutil.Process(process.pid).cpu_times()[:2])


def until(said):
    """Wait until something is so; only a hang takes ten minutes."""
    for _ in range(60_000):
        if said():
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def neighbour():
    found = busy.Neighbour()
    yield found
    found.close()


@pytest.fixture
def child(monkeypatch):
    """Return a function that makes a child process, in which the timer is found."""
    monkeypatch.setenv("PYTHONPATH", str(PROGRAMS))
    made = []

    def make(works=busy.works_numpy, **given):
        made.append(busy.Child(works, **given))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_all_frameworks_compute_the_same():
    a, numbers = (each.astype(np.float64) for each in busy.draw())
    weights, tanh = 0.05 * a, np.tanh(a @ (0.05 * a))
    exact = {
        "matmul": a @ a,
        "chain": busy.chain(numbers),
        "step": weights - 0.1 * a.T @ (2 / tanh.size * tanh * (1 - tanh**2)),
    }
    makers = busy.works_jax, busy.works_torch, busy.works_tensorflow, busy.works_numpy
    for works in makers:
        for name, call in works().items():
            found = call()
            found = found.detach() if hasattr(found, "detach") else found
            np.testing.assert_allclose(found, exact[name], rtol=1e-4, atol=1e-3, err_msg=name)


def test_each_work_is_one_of_every_framework():
    makers = busy.works_jax, busy.works_torch, busy.works_tensorflow, busy.works_numpy
    assert len({tuple(works()) for works in makers}) == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no process can be pinned")
def test_the_neighbour_keeps_to_one_core_and_counts_only_at_work(neighbour):
    assert neighbour.pinned
    assert os.sched_getaffinity(neighbour.process.pid) == {max(os.sched_getaffinity(0))}
    assert until(lambda: state(neighbour.process) == "T")
    with neighbour.at_work():
        before = computed(neighbour.process)
        assert until(lambda: computed(neighbour.process) > before)
    assert until(lambda: state(neighbour.process) == "T")


def test_the_neighbour_rests_even_where_a_call_raises(neighbour):
    with pytest.raises(ZeroDivisionError), neighbour.at_work():
        raise ZeroDivisionError
    assert until(lambda: state(neighbour.process) == "T")


def test_without_pinning_the_page_says_so(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    free = busy.Neighbour()
    assert not free.pinned
    free.close()


def test_a_child_has_the_variables_of_its_setting_alone(child, monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    as_it_comes, less = child(), child(setting="spinning_less")
    settings = [each.ask("matmul", 0)["settings"] for each in (as_it_comes, less)]
    names = "GOMP_SPINCOUNT", "OPENBLAS_THREAD_TIMEOUT", "OMP_NUM_THREADS"
    assert [settings[0].get(name) for name in names] == [None, None, None]
    assert [settings[1].get(name) for name in names] == ["30000", "20", None]


def test_a_child_that_ends_is_an_error(child):
    ended = child()
    ended.process.kill()
    ended.process.wait()
    with pytest.raises(RuntimeError, match="ended without an answer"):
        ended.ask("matmul", 1)


class Pretending:
    """A child and a neighbour that compute for as long as they say."""

    working = False

    @contextlib.contextmanager
    def at_work(self):
        self.working = True
        yield
        self.working = False

    def ask(self, name, calls):
        each = 3e-3 if self.working else 1e-3
        if calls:
            return each * calls, 2 * each * calls
        known = busy.Measurement(
            *("", "torch", "cpu", "some cpu", [], "float32", "highest", None, None, {}, {}),
            *("2026-01-31T00:00:00+00:00", 0.5, 1, [1.0], None, 1.0, False),
        )
        return dataclasses.asdict(known)


@pytest.mark.parametrize(("others", "disturbed"), [(0.0, False), (30.0, True)])
def test_what_is_on_purpose_does_not_disturb(monkeypatch, others, disturbed):
    # Beside the others' there are fifty seconds of processes that this one has started.
    taken, own = iter([(0.0, 0.0), (50.0 + others, 60.0)]), iter([7.0, 57.0])
    monkeypatch.setattr(busy, "taken_by_children", lambda: next(own))
    for module in (busy, timer):
        monkeypatch.setattr(module, "taken_by_others", lambda: next(taken))
    both = Pretending()
    found = busy.compare_busy("step", {"eager@torch": both}, both)
    assert found.ratio("eager/busy@torch", "eager/calm@torch").value == pytest.approx(3.0)
    assert {each.disturbed for each in found.alternatives.values()} == {disturbed}


def test_the_record_is_what_the_schema_allows_with_the_names_of_the_page():
    jsonschema = pytest.importorskip("jsonschema")
    both = Pretending()
    found = busy.compare_busy("step", {"eager@torch": both}, both)
    schema = json.loads((PROGRAMS / "measurement.schema.json").read_text("utf8"))
    jsonschema.validate(found.record(), schema)
    references = [each.reference for each in found.alternatives.values()]
    assert references == ["busy/step/eager/calm@torch", "busy/step/eager/busy@torch"]


def test_a_real_child_is_timed_calm_and_beside_the_neighbour(child, neighbour):
    found = busy.compare_busy("matmul", {"eager@numpy": child()}, neighbour)
    assert list(found.alternatives) == ["eager/calm@numpy", "eager/busy@numpy"]
    for each in found.alternatives.values():
        assert (each.framework, each.device_kind, each.shape[0]) == ("numpy", "cpu", [512, 512])
    assert computed(neighbour.process) > 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no process can be pinned")
def test_a_child_of_one_core_has_no_other(child):
    every = child()
    one = every.with_cores(1)
    assert os.sched_getaffinity(one.process.pid) == {min(os.sched_getaffinity(0))}
    assert os.sched_getaffinity(every.process.pid) == os.sched_getaffinity(0)
    assert one.ask("matmul", 0)["framework"] == "numpy"
    one.close()


def test_one_core_is_compared_with_all(monkeypatch):
    monkeypatch.setattr(busy, "disturbed_since", lambda *_: False)
    slow, fast = Pretending(), Pretending()
    slow.working = True
    by_cores = {"all": {"eager@torch": fast}, "one": {"eager@torch": slow}}
    found = busy.compare_cores("step", by_cores)
    assert found.ratio("eager/one@torch", "eager/all@torch").value == pytest.approx(3.0)
    references = [each.reference for each in found.alternatives.values()]
    assert references == ["cores/all/step/eager@torch", "cores/one/step/eager@torch"]


def test_the_timer_would_have_called_it_disturbed(neighbour):
    before = busy.taken_by_others()
    with neighbour.at_work():
        time.sleep(0.5)
    assert busy.disturbed_since(before)


@pytest.fixture(scope="module")
def recorded():
    """Return the median time of each call on the page, {name@framework: seconds}."""
    if not RECORD.exists():
        pytest.skip("the page is not recorded")
    found = {}
    for cell in json.loads(RECORD.read_text("utf8"))["cells"]:
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(timer.RECORD_TYPE, {})
            for each in record.get("alternatives", []):
                of_each = (statistics.median(one["latency"]) for one in each["processes"])
                found[f"{each['name']}@{each['framework']}"] = statistics.median(of_each)
    return found


def lost(recorded, work, way):
    """Return how many times as long a call takes beside the neighbour."""
    label, framework = way.split("@")
    name = f"busy/{work}/{label}"
    return recorded[f"{name}/busy@{framework}"] / recorded[f"{name}/calm@{framework}"]


def test_the_page_says_who_loses_most_and_what_helps(recorded):
    least = max(lost(recorded, "step", way) for way in ("jit@jax", "graph@tensorflow"))
    for way in ("eager@torch", "compiled@torch", "eager@numpy"):
        assert lost(recorded, "step", way) > 1.2 * least
    assert lost(recorded, "step", "one_thread@torch") < 1.1
    one, several = (f"busy/step/{way}/calm@torch" for way in ("one_thread", "eager"))
    assert recorded[one] > recorded[several]
