"""Batches for many processes, and documents packed into rows."""

import collections

import grain
import jax
import jax.numpy as jnp
import numpy as np

from snippets.models.steps import cross_entropy, stateless
from snippets.processes.detection import slurm_variables
from snippets.programs.launcher import launch

SIZE = 8


def own_batches(data, size, count, number):
    """Return batches of the rows that process `number` of `count` reads.

    `data` is a MapDataset, in an order that is the same in all processes.
    Batch b of all processes together has its elements b * size to (b + 1) *
    size - 1, for each count. Elements that don't fill a last batch are left
    out. ValueError unless the count divides the size, and number < count.
    """
    if size % count or not 0 <= number < count:
        raise ValueError(
            f"{count} processes can't share {size} rows equally, or have no "
            f"number {number}: take a multiple, and numbers from 0"
        )
    batches = data[: len(data) // size * size]
    return batches[number::count].batch(size // count)


def feeding_program():
    """Add up three batches of row numbers, from step `BEGIN` on."""
    import os

    import grain
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.distributed.initialize()
    count, number = jax.process_count(), jax.process_index()
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.Mesh(jax.devices(), ("data",), explicit)
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    order = grain.MapDataset.range(100).seed(0).shuffle().repeat()
    batches = own_batches(order, 8, count, number)
    begin = int(os.environ["BEGIN"])
    for step in range(begin, begin + 3):
        own = np.asarray(batches[step], np.int32)
        batch = jax.make_array_from_process_local_data(by_rows, own, (8,))
        print(f"step {step}: {own.tolist()} sum {jnp.sum(batch)}")


def feed(count, begin):
    """Run the program in `count` processes of one device, from a step on."""

    def variables(port, count, process):
        return slurm_variables(port, count, process) | {"BEGIN": str(begin)}

    uses = [own_batches]
    return launch(feeding_program, count, 1, uses=uses, variables=variables)


def across_program(address, count, number):
    """Shard rows over an axis that lies within each process.

    Both processes hold all rows, and each brings other ones.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.distributed.initialize(address, count, number)
    devices = np.reshape(jax.devices(), (2, 2)).T
    explicit = (jax.sharding.AxisType.Explicit,) * 2
    mesh = jax.sharding.Mesh(devices, ("data", "model"), explicit)
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    own = np.arange(4) + 4 * number
    x = jax.make_array_from_process_local_data(by_rows, own)
    print(f"{x.shape} sum {jnp.sum(x)}")
    try:
        jax.make_array_from_process_local_data(by_rows, own, (8,))
    except ValueError as error:
        print("ValueError:", str(error).split(", ")[0])


def times_read(batches_of, before, after, steps, rows):
    """Return {times: number of rows} of an epoch that two jobs read.

    One of `before` processes takes `steps` steps; one of `after` goes on from
    there to the end. `batches_of(count, number)` are those of a process.
    """
    read = collections.Counter(dict.fromkeys(range(rows), 0))
    both = (before, range(steps)), (after, range(steps, rows // SIZE))
    for count, taken in both:
        for number in range(count):
            batches = batches_of(count, number)
            for step in taken:
                read.update(np.asarray(batches[step]).tolist())
    return dict(sorted(collections.Counter(read.values()).items()))


def split_batches(rows, size, count, number):
    """Return an epoch of a process that shuffles a piece of the rows."""
    own = grain.sharding.ShardOptions(number, count, drop_remainder=True)
    source = grain.sources.RangeDataSource(0, rows, 1)
    loader = grain.load(
        source,
        num_epochs=1,
        shuffle=True,
        seed=0,
        shard_options=own,
        batch_size=size // count,
    )
    return list(loader)


def first_fit(lengths, size):
    """Return for each row the documents that it holds, as lists of numbers.

    Each document goes into the first row that has room for it. ValueError
    for one that is longer than a row.
    """
    rows, room = [], []
    for number, length in enumerate(lengths):
        if length > size:
            raise ValueError(
                f"document {number} has {length} tokens, and a row {size}: "
                "split it"
            )
        fits = (row for row, left in enumerate(room) if left >= length)
        row = next(fits, len(rows))
        if row == len(rows):
            rows.append([])
            room.append(size)
        rows[row].append(number)
        room[row] -= length
    return rows


def packed_row(documents, size):
    """Return tokens, segments and positions, and labels, int32 (size,).

    Segments count the documents, int32 (length,), from 1 on; 0 is padding. A
    label is the next token of the document. The last token has none: -1.
    ValueError if the documents are longer than the row.
    """
    if (total := sum(map(len, documents))) > size:
        raise ValueError(f"{total} tokens don't fit into a row of {size}")
    tokens, segments, positions = np.zeros((3, size), np.int32)
    labels, end = np.full(size, -1, np.int32), 0
    for segment, document in enumerate(documents, 1):
        start, end = end, end + len(document)
        tokens[start:end] = document
        segments[start:end] = segment
        positions[start:end] = np.arange(len(document))
        labels[start:end][:-1] = document[1:]
    x = {"tokens": tokens, "segments": segments, "positions": positions}
    return x, labels


class Packed:
    """Rows of several documents each, for a loader: has `len` and `[i]`."""

    def __init__(self, documents, size):
        self.documents, self.size = documents, size
        self.rows = first_fit([*map(len, documents)], size)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        """Return a `packed_row`."""
        return packed_row([self.documents[n] for n in self.rows[i]], self.size)


def init_packed(key, tokens=64, length=32, width=16):
    """Return the float32 parameters of a layer of attention."""
    keys = jax.random.split(key, 4)
    shapes = (tokens, width), (length, width), (width, 3 * width)
    names = "embedding", "positions", "qkv", "out"
    return {
        name: jax.random.normal(own, shape) / 4
        for name, own, shape in zip(
            names, keys, (*shapes, (width, tokens)), strict=True
        )
    }


def attend_within(params, x):
    """Return logits (rows, length, tokens); documents don't see each other.

    x has tokens, segments and positions, each int32 (rows, length).
    """
    segments = x["segments"]
    y = params["embedding"][x["tokens"]] + params["positions"][x["positions"]]
    query, key, value = jnp.split((y @ params["qkv"])[:, :, None], 3, axis=-1)
    same = segments[:, None, :, None] == segments[:, None, None, :]
    attended = jax.nn.dot_product_attention(
        query, key, value, mask=same, is_causal=True
    )
    return (y + attended[:, :, 0]) @ params["out"]


@jax.jit
def loss_and_count(params, batch):
    """Return the sum of the losses of packed rows, and the count of labels."""
    loss = cross_entropy(stateless(attend_within))
    total, (count, _) = loss(params, {}, batch)
    return total, count


def one_by_one(params, documents, size):
    """Return the same of documents, each in a row by itself."""
    sums = np.zeros(2)
    for document in documents:
        batch = jax.tree.map(lambda x: x[None], packed_row([document], size))
        sums += np.array(loss_and_count(params, batch))
    return sums
