import numpy as np

from snippets.tracing import counter


def scale(x, factor=2.0):
    return x * factor


def test_counted_keeps_result_and_counts():
    body = counter.counted(scale)
    assert body(3, factor=2) == 6 and body(3) == 6.0
    assert body.traces == 2
    assert body.__name__ == "scale"


def test_calls_by_position_and_by_name_are_made():
    seen = []

    def remember(x, factor=2.0):
        seen.append((x.shape, factor.shape))
        return x

    x, factor = np.ones(3), np.ones((1, 2))
    assert counter.count_traces(remember, [(x, factor), {"factor": factor, "x": x}]) == 2
    assert seen == [((3,), (1, 2))] * 2


def test_options_reach_jit():
    calls = [(1.0, 2), (1.0, 3), (1.0, 2)]
    assert counter.count_traces(scale, calls) == 1
    assert counter.count_traces(scale, calls, static_argnames="factor") == 2
