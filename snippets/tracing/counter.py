"""A counter of traces."""

import functools

import jax


def counted(function):
    """Return a function like `function` whose `traces` counts the runs of its body."""

    @functools.wraps(function)
    def body(*args, **kwargs):
        body.traces += 1
        return function(*args, **kwargs)

    body.traces = 0
    return body


def count_traces(function, calls, **jit_options):
    """Return how often JAX traces `function` while it serves all `calls`.

    A call is a tuple of positional arguments or a dict of named ones.
    """
    body = counted(function)
    jitted = jax.jit(body, **jit_options)
    for call in calls:
        jitted(**call) if isinstance(call, dict) else jitted(*call)
    return body.traces
