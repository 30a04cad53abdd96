"""The least time that an operation can take, by the roofline of a machine."""

from typing import NamedTuple

BYTES = {"float32": 4, "bfloat16": 2}


class Cost(NamedTuple):
    """What must be done: floating-point operations, and bytes to move."""

    operations: int
    moved: int


OPERATIONS = {
    "copy": lambda n, width: Cost(0, 2 * width * n),
    "elementwise": lambda n, width: Cost(n, 2 * width * n),
    "sum": lambda n, width: Cost(n, width * n),
    "product": lambda n, width: Cost(2 * n**3, 3 * width * n**2),
}


def least_time(operation, n, dtype, bytes_a_second, operations_a_second):
    """Return the least seconds by memory and by arithmetic.

    The longer is the floor. They are the bytes moved / bytes a second, and
    operations / operations a second, of an operation of `OPERATIONS` on `n`
    numbers of a `dtype`, or on n×n matrices. Each array is read or written
    once (Williams et al. 2009, doi:10.1145/1498765.1498785).
    """
    cost = OPERATIONS[operation](n, BYTES[dtype])
    return cost.moved / bytes_a_second, cost.operations / operations_a_second


def print_least_times(sizes, dtype, bytes_a_second, operations_a_second):
    """Print the least time of operations, {name: n}, and what sets it."""
    for operation, n in sizes.items():
        times = least_time(
            operation, n, dtype, bytes_a_second, operations_a_second
        )
        what = "memory" if times[0] >= times[1] else "arithmetic"
        print(f"{operation:12} {n:>12,} {max(times) * 1e3:8.3f} ms, by {what}")
