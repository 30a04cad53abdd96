"""No time makes a build red: pages measure with a clock that lies."""

import pytest

from tests.engine.conftest import REPOSITORY

# Each of its readings is later than the last, by anything.
LYING_CLOCK = """
import random, time
def lying(clock, by=random.Random(1)):
    last = [0.0, 0.0]
    def read():
        now = clock()
        last[0], last[1] = now, last[1] + (now - last[0]) * 20 ** by.uniform(-1, 1)
        return last[1]
    return read
time.perf_counter, time.process_time = lying(time.perf_counter), lying(time.process_time)
"""
PAGE = """from timer import compare
compare("sum", {{"short": sum, "long": lambda x: sum(sorted(x))}}, range({}));"""


@pytest.mark.parametrize("preview", [0, 1])
def test_pages_that_measure_with_a_clock_that_lies_are_built(project, preview):
    timer = REPOSITORY / "snippets" / "programs" / "timer.py"
    project.snippet("timer", timer.read_text("utf8"))
    project.configure('book_modules = {"timer": "timer"}')
    question = ':::{predict} Which?\n- this ~ "faster"\n- that ~ "slower"\n- neither ~ "equal"\n:::'
    sentences = (
        "{measured}`sum/long@python`, {compared}`sum/long@python / sum/short@python`, "
        "{paid}`sum/short@python / sum/long@python`, {fastest}`sum/*@python`, "
        "{verdict}`sum/long@python / sum/short@python in 2..9 ? holds : wrong`"
    )
    measured = project.cell(PAGE.format(1000))
    parts = [project.cell(LYING_CLOCK), f"{question}\n\n{measured}" if preview else measured]
    parts += [sentences]
    parts += ["```{measurements} sum/*\n:columns: name latency first_call\n```"]
    parts += ["```{measurement-chart} sum/*\n\nA caption.\n```"]
    page = project.page("a/bench", *parts, benchmark=True)
    build = project.build("-D", f"book_preview={preview}")
    assert build.green, build.output
    if preview:
        # Nor does a recording's number after the code has changed.
        project.edit(page, "range(1000)", "range(1001)")
        assert project.build("-D", "book_preview=1").green
