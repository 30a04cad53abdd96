"""What goes to other machines names none of them, and what comes from them is known."""

import math
import pathlib

import nbformat
import pytest

from executed.store.outputs import cleaned
from executed.store.sanitising import Refused, accepted, recordable
from measured.processes import MeasurementKind
from measured.schema import Schema
from tests.engine.records import KIND, measured

ROOT = pathlib.Path(__file__).parents[4]
SCHEMA = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")
KINDS = (MeasurementKind(SCHEMA),)


def display(**data):
    kinds = {"html": "text/html", "svg": "image/svg+xml", "png": "image/png"}
    bundle = {kinds.get(name, name): value for name, value in data.items()}
    return nbformat.from_dict({"output_type": "display_data", "data": bundle, "metadata": {}})


RECORD = measured("x", [0.5, 0.5], "jax")
PROCESS = RECORD["processes"][0]


def measurement(record):
    return display(**{KIND: dict(record), "text/plain": "x took 0.5"})


def test_a_measurement_passes():
    assert accepted(measurement(RECORD), KINDS).data[KIND] == RECORD


def test_without_a_schema_no_record_is_a_measurement():
    with pytest.raises(Refused, match="which is not accepted"):
        accepted(measurement(RECORD))


NONE = "a measurement that is none"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (display(**{"text/javascript": "alert(1)"}), "which is not accepted"),
        (display(**{"application/vnd.jupyter.widget-view+json": {}}), "which is not accepted"),
        (measurement(RECORD | {"work": True}), f"{NONE}: the record.work must be"),
        (measurement(RECORD | {"processes": []}), NONE),
        (measurement(RECORD | {"processes": [PROCESS | {"latency": [math.nan]}]}), NONE),
        (measurement(RECORD | {"error": math.inf}), NONE),
    ],
)
def test_other_kinds_and_what_the_schema_does_not_allow_are_refused(output, words):
    with pytest.raises(Refused, match=words):
        accepted(output, KINDS)


def test_what_an_output_says_about_itself_is_dropped():
    output = display(png="AAAA")
    output.metadata = nbformat.from_dict({"image/png": "x", "scrapbook": {"name": "x"}})
    assert accepted(output).metadata == {}


@pytest.mark.parametrize("picture", [{"png": "AAAA"}, {"svg": "<svg><a href='x'/></svg>"}])
def test_pictures_pass_as_they_are(picture):
    assert recordable([display(**picture)]) == [display(**picture)]


def test_streams_are_joined_and_logs_of_libraries_left_out():
    stream = nbformat.v4.new_output
    found = cleaned(
        [
            stream("stream", text="a\n"),
            stream("stream", text="b\n"),
            stream("stream", name="stderr", text="I0000 00:00:00.1 1 x.cc:1] noise\n"),
            stream("execute_result", data={"text/plain": "1"}, execution_count=7),
        ]
    )
    assert [output.output_type for output in found] == ["stream", "execute_result"]
    assert found[0].text == "a\nb\n"
    assert recordable(found)[1].execution_count is None


def test_names_of_the_machine_leave_tracebacks_and_tables_too(machine):
    machine("somebody", "node7.lab.example")
    traceback = ["ran on node7.lab.example", "in /home/somebody/x.py"]
    error = nbformat.v4.new_output(
        "error", ename="OSError", evalue="node7.lab.example", traceback=traceback
    )
    found = recordable([error, display(html="<p>node7.lab.example</p>")])
    assert found[0].traceback == ["ran on host", "in ~/x.py"]
    assert found[0].evalue == "host"
    assert found[1].data["text/html"] == "<p>host</p>"


@pytest.fixture
def machine(monkeypatch):
    """Return a function that gives the machine another user and host."""

    def give(user, host):
        monkeypatch.setattr("socket.gethostname", lambda: host)
        monkeypatch.setattr("getpass.getuser", lambda: user)
        monkeypatch.setenv("HOME", f"/home/{user}")

    return give


@pytest.mark.parametrize(
    "name", ["jax", "gpu", "cpu", "user", "python", "x", "float32", "gpu-h200"]
)
def test_a_name_that_is_a_word_changes_no_text_and_no_record(machine, name):
    machine(name, name)
    text = f"{name} is faster: jit@{name}, {name}/core.py, {name}=1, [{name}], {name}.numpy"
    record = RECORD | {
        "name": f"{name}/jit",
        "framework": name.replace("-", "_"),
        "device_kind": name,
    }
    printed = nbformat.v4.new_output("stream", text=text)
    output = measurement(record)
    output.data["text/plain"] = f"/home/{name}/x took 0.5"
    assert recordable([printed, output], KINDS) == [printed, output]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/jax/x.py", "~/x.py"),
        ("file:///home/jax", "file:///home/user"),
        ("/scratch/jax/run, /Users/jax/x", "/scratch/user/run, /Users/user/x"),
        ("jax@gpu:~$", "user@host:~$"),
        ("on gpu.lab.example", "on host"),
        ("/home/jaxon/x, /opt/jax/gpu", "/home/jaxon/x, /opt/jax/gpu"),
    ],
)
def test_names_are_taken_out_where_users_and_machines_are_named(machine, text, left):
    machine("jax", "gpu.lab.example")
    assert recordable([nbformat.v4.new_output("stream", text=text)])[0].text == left


def test_a_name_that_is_no_word_is_taken_out_anywhere(machine):
    machine("root", "f3a9b2c4d5e6")
    assert recordable([nbformat.v4.new_output("stream", text="on f3a9b2c4d5e6!")])[0].text == (
        "on host!"
    )
