"""Arrays of JAX sent with MPI, and the same computation with shard_map."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np

FRAME = re.compile(r'  File ".*process_mpi\.py", line (\d+) in (\w+)')


def first_program():
    """Add up arrays of all processes; send one from process 0 to 1."""
    import jax
    import jax.numpy as jnp
    import mpi4jax
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()

    @jax.jit
    def total(x):
        return mpi4jax.allreduce(x + rank, op=MPI.SUM)

    print("sum", total(jnp.zeros(3)))
    print("derivative", jax.grad(lambda x: total(x) ** 2)(1.0))
    if rank == 0:
        mpi4jax.send(jnp.array([1.0, 2.0, 3.0]), dest=1)
        print("sent")
    elif rank == 1:
        print("got", mpi4jax.recv(jnp.zeros(3), source=0))
    try:
        mpi4jax.allreduce(jnp.ones(3), op=MPI.SUM, token=None)
    except RuntimeError as error:
        print("RuntimeError:", str(error).partition(". ")[0])


def deadlock_program():
    """Receive before sending, in both processes; say where they wait."""
    import faulthandler

    import jax.numpy as jnp
    import mpi4jax
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    other = 1 - rank

    def swap(x):
        received = mpi4jax.recv(x, source=other)
        mpi4jax.send(x, dest=other)
        return received

    x = jnp.full(3, rank)
    print("process", rank, "waits for", other)
    faulthandler.dump_traceback_later(10)
    print("received", swap(x))


def waiting_where(text, program):
    """Reduce the traceback of a program to the program's own lines."""
    source = inspect.getsource(program).splitlines()
    lines = []
    for line in text.splitlines():
        frame = FRAME.match(line)
        if frame and int(frame[1]) <= len(source):
            code = source[int(frame[1]) - 1].strip()
            lines.append(f"in {frame[2]}: {code}")
        elif not line.startswith(("  File", "Thread")):
            lines.append(line)
    return "\n".join(lines)


def swap_program():
    """Swap arrays in two ways: in an order that fits, and in one call."""
    import jax
    import jax.numpy as jnp
    import mpi4jax
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    other = 1 - rank

    @jax.jit
    def in_turn(x):
        if rank == 0:
            mpi4jax.send(x, dest=other)
            return mpi4jax.recv(x, source=other)
        received = mpi4jax.recv(x, source=other)
        mpi4jax.send(x, dest=other)
        return received

    @jax.jit
    def at_once(x):
        return mpi4jax.sendrecv(x, x, source=other, dest=other)

    print("in turn", in_turn(jnp.full(3, rank)))
    print("at once", at_once(jnp.full(3, rank)))


def smooth_program():
    """Smooth four values of each process three times, in a ring."""
    import jax
    import jax.numpy as jnp
    import mpi4jax
    import numpy as np
    from mpi4py import MPI

    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    left, right = (rank - 1) % size, (rank + 1) % size

    @jax.jit
    def smooth(x):
        first, last = x[:1], x[-1:]
        from_left = mpi4jax.sendrecv(last, last, source=left, dest=right)
        from_right = mpi4jax.sendrecv(first, first, source=right, dest=left)
        wide = jnp.concatenate([from_left, x, from_right])
        return (wide[:-2] + wide[1:-1] + wide[2:]) / 3

    x = (jnp.arange(4.0) + 4 * rank) ** 2
    for _ in range(3):
        x = smooth(x)
    print(*(str(value) for value in np.asarray(x)))


def smooth_sharded(devices):
    """Do what `smooth_program` does, on devices of one process."""
    count = len(devices)
    mesh = jax.make_mesh((count,), ("ring",), devices=devices)
    by_ring = jax.P("ring")
    to_right = [(i, (i + 1) % count) for i in range(count)]
    to_left = [(target, source) for source, target in to_right]

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=by_ring, out_specs=by_ring)
    def smooth(x):
        from_left = jax.lax.ppermute(x[-1:], "ring", to_right)
        from_right = jax.lax.ppermute(x[:1], "ring", to_left)
        wide = jnp.concatenate([from_left, x, from_right])
        return (wide[:-2] + wide[1:-1] + wide[2:]) / 3

    x = jnp.arange(4.0 * count) ** 2
    x = jax.device_put(x, jax.NamedSharding(mesh, by_ring))
    for _ in range(3):
        x = smooth(x)
    return x


def gathered(finished):
    """Join the numbers that the processes printed into one float32 array."""
    return np.concatenate([np.float32(each.text.split()) for each in finished])
