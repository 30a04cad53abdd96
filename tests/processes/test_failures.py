"""What real processes write when one is missing, fails or dies."""

import itertools
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snippets.processes import failures
from snippets.programs.launcher import launch

ABORTED = -signal.SIGABRT
# (program, devices of each process): how its processes end.
STATUSES = {
    (failures.missing_program, 2): [ABORTED],
    (failures.exit_program, 2): [ABORTED, 7],
    (failures.exit_program, 1): [ABORTED, 7],
    (failures.exception_program, 2): [ABORTED, ABORTED],
    (failures.coordinator_program, 2): [7, ABORTED],
}


@pytest.fixture(scope="module")
def wrote():
    """Return {(program, devices): what each process wrote}; most of them wait most of the time."""

    def ended(program, devices):
        statuses = STATUSES[program, devices]
        finished = launch(program, len(statuses), devices, statuses=statuses)
        return [failures.essence(process.text) for process in finished]

    with ThreadPoolExecutor(len(STATUSES)) as pool:
        texts = dict(zip(STATUSES, pool.map(ended, *zip(*STATUSES, strict=True)), strict=True))
    for text in itertools.chain.from_iterable(texts.values()):
        assert not re.search(r"0x[0-9a-f]{6}|\d{4} \d\d:\d\d|127\.0\.0\.1|\d{9}", text)
    return texts


def test_one_that_never_comes_cannot_be_caught(wrote):
    expected = ["fatal: DEADLINE_EXCEEDED: Deadline Exceeded"]
    assert wrote[failures.missing_program, 2] == expected


def test_an_exception_ends_all_after_the_wait_for_the_others(wrote):
    waiting, raising = wrote[failures.exception_program, 2]
    assert waiting.startswith("fatal: INTERNAL: Shutdown barrier has failed.")
    assert "# of tasks that reached the barrier: 1/2" in waiting
    assert "The first task at the barrier: 1." in waiting
    assert raising.startswith('Traceback (most recent call last):\n  File "process_1.py"')
    assert "ValueError: a row without a label\nfatal: INTERNAL: Shutdown barrier" in raising


@pytest.mark.parametrize(("devices", "error"), [(2, "JaxRuntimeError"), (1, "ValueError")])
def test_a_death_is_an_exception_first_and_the_end_afterwards(wrote, devices, error):
    left, died = wrote[failures.exit_program, devices]
    assert died == "[0. 1.]"
    assert left.startswith(f"[0. 1.]\ncaught {error} UNKNOWN: Gloo AllGather failed")
    assert "connection lost\nfatal: UNAVAILABLE: The following tasks are unhealthy" in left
    assert "\n1\n" in left


def test_the_others_can_go_on_without_a_process_that_died():
    finished = launch(failures.survivors_program, 3, 1, statuses=[None, 7, 0], until="2 sum")
    steps = [re.findall(r"^\d .*", process.text, re.MULTILINE) for process in finished]
    left = ["0 sum 3.0", "1 failed, lost 1 device", "2 sum 2.0"]
    assert steps == [left, left[:1], left]


def test_the_end_of_the_coordinator_ends_all(wrote):
    gone, left = wrote[failures.coordinator_program, 2]
    assert gone == "[0. 1.]"
    assert left.startswith("[0. 1.]\nfatal: UNAVAILABLE: Failed to send RPC to coordination")


FATAL = """\
computed 3
W1121 04:45:33.354999   17959 preemption_sync_manager.cc:147] Failed: Stream removed
:UNAVAILABLE:Stream removed (Socket closed)
E1121 04:34:52.267325    4627 coordination_service.cc:1549] [{number}] Use error polling
1
F1121 04:34:52.267977    4640 client.h:80] Terminating process because. absl::Status: BAD: {text}
# of tasks: 1/2. Id: Shutdown::{number}::0. [type.googleapis.com/tensorflow.X='']

RPC: /xla.coordination.CoordinationService/PollForError [type.googleapis.com/x='']
*** Check failure stack trace: ***
    @     0x7ffabd240634  absl::lts_20260107::log_internal::LogMessage::SendToLog()
"""


@given(st.integers(10**9, 10**19), st.text("abc .", min_size=1, max_size=30))
def test_the_essence_is_the_same_for_any_number(number, text):
    written = FATAL.format(number=number, text=text)
    assert failures.essence(written) == (
        f"computed 3\nfatal: BAD: {text}\n# of tasks: 1/2. Id: Shutdown."
    )


@given(st.sampled_from(["Connection reset by peer", "Connection closed by peer"]), st.integers(0))
def test_a_lost_connection_reads_the_same_however_it_was_lost(how, port):
    if "closed" in how:
        text = f"caught UNKNOWN: [external/gloo/pair.cc:5] {how} [127.0.0.1]:{port}"
    else:
        text = f"caught UNKNOWN: [external/gloo/pair.cc:5] Read error [127.0.0.1]:{port}: {how}"
    assert failures.essence(text) == "caught UNKNOWN: connection lost"


def test_the_essence_keeps_plain_output():
    assert failures.essence("one\ntwo\n") == "one\ntwo"
