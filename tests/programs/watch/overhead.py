"""Prints what `jax-measured watch` adds to a step: the fastest of 2000, plain and watched, in turn.

Called as `python tests/programs/watch/overhead.py`, where `jax-measured` is installed. The step has
a hundred arrays and two readings of a clock, and computes almost nothing, so that the difference
is what the command adds to a step of any length.
"""

import pathlib
import subprocess
import sys
import tempfile

STEP = """
import time
import jax
import jax.numpy as jnp
params = [jnp.ones(8) for _ in range(100)]
step = jax.jit(lambda params: [each * 0.99 for each in params])
best = 1.0
for _ in range(2000):
    begin = time.perf_counter()
    start = time.perf_counter()
    params = jax.block_until_ready(step(params))
    spent = time.perf_counter() - start
    best = min(best, time.perf_counter() - begin)
print(best)
"""


def fastest(*command):
    """Return the seconds that a process prints."""
    done = subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True)
    return float(done.stdout)


with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder, "step.py")
    program.write_text(STEP, "utf8")
    for _ in range(5):
        plain = fastest(program)
        watched = fastest("-m", "jax_measured", "watch", program)
        added = watched - plain
        print(f"{1e6 * added:.0f} µs more than {1e6 * plain:.0f} µs: {added / 0.01:.1%} of 10 ms")
