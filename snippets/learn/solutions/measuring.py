"""Lesson 16, measuring: solutions."""

import itertools


def seconds(clock, function, x):
    """Return the seconds of a compiled call, until its result is ready.

    `clock()` returns the time in seconds, as `time.perf_counter` does, and
    `function` is jitted, with an array as its result. No other call is under
    way while one is timed.
    """
    function(x).block_until_ready()
    start = clock()
    function(x).block_until_ready()
    return clock() - start


def train(step, state, batches, every):
    """Take a step for each batch; return the state and some losses.

    `step(state, batch)` returns the new state and the loss, an array. The
    losses are floats, of step 0, `every`, 2 * `every` and so on; no other
    loss is waited for, and those are not before the step after them has been
    dispatched.
    """
    losses = []
    for number, batch in enumerate(batches):
        state, loss = step(state, batch)
        if number % every == 0:
            losses.append(loss)
    return state, [float(loss) for loss in losses]


def flops_of_gradient(sizes, rows):
    """Return the operations of all matmuls in a gradient of a network.

    The network has a matmul for each pair of neighbouring `sizes`, without
    biases, and a batch of `rows`. To multiply and to add are two operations.
    The gradient is that for the weights; nobody needs it for the inputs.
    """
    pairs = list(itertools.pairwise(sizes))
    forward = sum(2 * rows * inputs * outputs for inputs, outputs in pairs)
    first = 2 * rows * sizes[0] * sizes[1]
    return 3 * forward - first
