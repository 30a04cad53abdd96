"""A build does not look for garbage at its end, when all of it is given back anyway."""

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
