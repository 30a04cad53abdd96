"""Outputs are shown without the places of the machine that made them, each thing once."""

import pathlib

import nbformat
import pytest

from executed.store.outputs import cleaned, presentable, scrubbed
from measured.processes import MeasurementKind
from measured.schema import Schema
from tests.engine.records import measured

ROOT = pathlib.Path(__file__).parents[4]
SCHEMA = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")
KINDS = (MeasurementKind(SCHEMA),)


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def measurement(name, kind="display_data"):
    data = {"text/plain": f"{name} 1 ms", SCHEMA.media_type: {"name": name}}
    return nbformat.v4.new_output(kind, data=data)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in /tmp/ipykernel_123/456.py:3", "in this page:3"),
        ("/home/me/v/lib/python3.11/site-packages/jax/core.py:7", "jax/core.py:7"),
        ("/usr/lib/python3/dist-packages/torch/x.py", "torch/x.py"),
        ("/usr/lib/python3.11/json/decoder.py:3", "json/decoder.py:3"),
        ('File "/opt/py/lib/python3.13t/json/decoder.py", line', 'File "json/decoder.py", line'),
        ("at /home/me/.uv/cpython-3.12/lib/python3.12/os.py", "at os.py"),
        ("/v/lib64/python3.11/site-packages/numpy/lib/_npyio.py", "numpy/lib/_npyio.py"),
        ("wrote /tmp/book-ab_c1/work/x.txt", "wrote ./x.txt"),
        ("<function f at 0x7f00deadbeef>", "<function f at 0x…>"),
        ("<cell at 0x7f12: int object at 0x9c1e40>", "<cell at 0x7f12: int object at 0x…>"),
        (
            "<bound method A.f of <a.A object at 0x7F00DEADBEEF>>",
            "<bound method A.f of <a.A object at 0x…>>",
        ),
        ("<function <lambda> at 0x7f00deadbeef>", "<function <lambda> at 0x…>"),
        (
            "[f(x=<weakref at 0x7f00deadbeef; to 'A' at 0x7f00deadbee0>), <memory at 0x7f00dead>]",
            "[f(x=<weakref at 0x…; to 'A' at 0x…>), <memory at 0x…>]",
        ),
        ("a -> <code object f at 0x7f00dead, line 1>", "a -> <code object f at 0x…, line 1>"),
        ("<a.B 140159451864832> in <list 94352127300000>[0]", "<a.B …> in <list …>[0]"),
    ],
)
def test_places_and_addresses_are_taken_out(text, shown):
    assert scrubbed(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "dtype 0x10, 3/4, a:b",
        "lib/python3.11/os.py of the source, /usr/lib/python3/x",
        "0xdeadbeef1234",
        "the bits of 1.0 are 0x3f800000, of 1.0 in 64 bits 0x3ff0000000000000",
        "starts at 0x3f800000",
        "<register at 0x10>",
        "<x 12345>, if n <limit 140159451864832 > 0",
        "E0000 00:00:1763690000.123456 1234 cuda_dnn.cc:8310] not logged, but printed",
    ],
)
def test_ordinary_output_is_left_alone(text):
    assert scrubbed(text) == text


def test_streams_and_results_are_scrubbed():
    result = nbformat.v4.new_output("execute_result", {"text/plain": "<f at 0x7f00deadbeef>"})
    outputs = [stream("<g at 0x7f00deadbeef>\n"), result]
    shown = cleaned(outputs)
    assert shown[0].text == "<g at 0x…>\n"
    assert shown[1]["data"]["text/plain"] == "<f at 0x…>"


def test_pieces_of_one_stream_become_one_block():
    shown = presentable([stream("a\n"), stream("b\n"), stream("c\n", "stderr"), stream("d\n")])
    assert [(out.name, out.text) for out in shown] == [
        ("stdout", "a\nb\n"),
        ("stderr", "c\n"),
        ("stdout", "d\n"),
    ]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a\n", " 0%\r", " 50%\r", "100%\n", "b\n"], "a\n100%\nb\n"),
        (["1/2\r", "2/2"], "2/2"),
        (["a\r\nb\r\n"], "a\nb\n"),
        (["1/2\r2/2\r\n"], "2/2\n"),
        (["a\r"], "a"),
        # Two bars of tqdm, the inner of which goes when it is full.
        (["\r0/2", "\n\r0/9\x1b[A", "\n\r9/9\x1b[A", "\n\r   \r\x1b[A", "\r1/2\n"], "1/2\n   "),
    ],
)
def test_of_a_line_that_is_written_again_and_again_the_last_text_stays(pieces, text):
    (shown,) = presentable([stream(piece) for piece in pieces])
    assert shown.text == text


def test_a_measurement_is_shown_as_a_line_and_only_once():
    outputs = [measurement("x"), measurement("y"), measurement("x", "execute_result")]
    assert [out.text for out in presentable(outputs, KINDS)] == ["x 1 ms\ny 1 ms\n"]


def test_the_line_of_a_measurement_is_that_of_all_its_processes():
    each = [measured("x", [seconds], "jax", {"first_call": 2.0}) for seconds in (0.5, 0.4, 0.61)]
    record = each[0] | {"processes": [process for one in each for process in one["processes"]]}
    data = {"text/plain": "as it was in the first process", SCHEMA.media_type: record}
    (shown,) = presentable([nbformat.v4.new_output("display_data", data=data)], KINDS)
    assert shown.text == "x [jax] 500 ms (400–610), first call 2.00 s\n"


def test_without_a_schema_nothing_is_a_measurement():
    outputs = [measurement("x"), measurement("x")]
    assert [output.data for output in presentable(outputs)] == [{"text/plain": "x 1 ms"}] * 2


class Listed:
    """Lists of lines, as an output kind."""

    def __init__(self, media_type):
        self.media_type = media_type

    def problem(self, data):
        return None if isinstance(data, list) else "no list"

    def text(self, data):
        return "\n".join(data)


def test_the_data_of_a_kind_may_be_a_list_and_is_shown_once_for_each_kind():
    kinds = [Listed("application/x.one+json"), Listed("application/x.other+json")]
    outputs = [
        nbformat.v4.new_output("display_data", data={kind.media_type: lines, "text/plain": ""})
        for kind in kinds
        for lines in (["a", "b"], ["c"], ["a", "b"])
    ]
    assert [shown.text for shown in presentable(outputs, kinds)] == ["a\nb\nc\n" * 2]


def test_native_logs_of_libraries_are_dropped_but_not_their_errors():
    log = (
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
        "I0000 00:00:1763690000.123456 1234 cpu_feature_guard.cc:227] optimized\n"
        "E0000 00:00:1763690000.123456 1234 cuda_dnn.cc:8310] Unable to register\n"
    )
    (shown,) = presentable([stream(log, "stderr")])
    assert shown.text == "E… cuda_dnn.cc:8310] Unable to register\n"
    assert presentable([stream("".join(log.splitlines(True)[:2]), "stderr")]) == []
    (at_night,) = presentable([stream("E1121 22:00:06.166617   21831 x.cc:7] failed\n", "stderr")])
    assert at_night.text == "E… x.cc:7] failed\n"
    (printed,) = presentable([stream(log)])
    assert printed.text == log
