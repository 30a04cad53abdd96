"""Python looks for garbage as often after a build as before it, and not as it ends."""

import gc

from _ext.site import garbage

CONF = """
import gc

BEFORE = gc.get_threshold()


def setup(app):
    app.connect("env-updated", lambda app, env: say("during", BEFORE))
    app.connect("build-finished", lambda app, error: say("after", BEFORE), priority=2000)


def say(when, before):
    print(when, "as before" if gc.get_threshold() == before else "other")
"""


def test_the_process_is_as_before_when_a_build_has_finished(project):
    project.page("a/one", "Prose.")
    project.configure(CONF)
    build = project.build()
    assert build.green, build.output
    assert "during other" in build.output
    assert "after as before" in build.output


ENDING = """
import atexit
import gc

# Registered before the engine does, so called after it.
atexit.register(lambda: print("to be searched:", len(gc.get_objects())))
"""


def test_a_process_that_ends_has_nothing_left_to_search(project):
    project.page("a/one", "Prose.")
    project.configure(ENDING)
    build = project.build(program=True)
    assert build.green, build.output
    assert int(build.output.rpartition("to be searched:")[2]) < 1000


def test_what_was_there_is_not_searched_when_the_former_thresholds_are_back():
    searched = []
    gc.collect()
    gc.callbacks.append(lambda phase, facts: searched.append(facts["generation"]))
    try:
        with garbage.seldom():
            kept = [[] for _ in range(100_000)]
        more = [[] for _ in range(100)]
    finally:
        gc.callbacks.pop()
    assert len(kept) + len(more) == 100_100
    assert not searched
