"""Lesson 9, feeding a step: what answers are checked for."""

import jax
import numpy as np

from snippets.programs.practice import form_of, kind_of


def check_collated(collated):
    """Raise AssertionError unless each leaf is an array of all examples."""
    numbers = np.random.default_rng(0)
    examples = [
        {
            "pixels": numbers.normal(size=(2, 3)).astype(np.float32),
            "about": (np.int32(label), np.full(4, label, np.uint8)),
        }
        for label in (7, 3, 5)
    ]
    batch = collated(examples)
    assert not isinstance(batch, (list, np.ndarray)), (
        f"it returns {kind_of(batch)}, and a batch is a dictionary "
        "like each example, with arrays of all of them"
    )
    paths = jax.tree_util.tree_flatten_with_path(examples[0])[0]
    lists = jax.tree.leaves(batch, is_leaf=lambda x: isinstance(x, list))
    assert not any(isinstance(leaf, list) for leaf in lists), (
        "a leaf is a list, which JAX takes for a pytree of its elements; make "
        "one array of it"
    )
    assert jax.tree.structure(batch) == jax.tree.structure(examples[0]), (
        f"it returns {form_of(batch)}, and each example is "
        f"{form_of(examples[0])}"
    )
    for (path, leaf), found in zip(paths, jax.tree.leaves(batch), strict=True):
        place = jax.tree_util.keystr(path)
        assert isinstance(found, np.ndarray), (
            f"{place} is {kind_of(found)}; a loader, which may run in "
            "a worker process, gives arrays of NumPy"
        )
        assert found.shape == (3, *leaf.shape), (
            f"{place} has the shape {found.shape}; three examples of "
            f"{leaf.shape} make {(3, *leaf.shape)}"
        )
        assert found.dtype == leaf.dtype, (
            f"{place} is in {found.dtype}, and was in {leaf.dtype}"
        )
    rows = [jax.tree.map(lambda leaf, i=i: leaf[i], batch) for i in range(3)]
    for i, (row, example) in enumerate(zip(rows, examples, strict=True)):
        same = jax.tree.map(np.array_equal, row, example)
        assert all(jax.tree.leaves(same)), (
            f"row {i} of the batch is not example {i}"
        )
    more = jax.tree.leaves(collated(examples * 2))
    assert {len(leaf) for leaf in more} == {6}, (
        f"of six examples it makes {len(more[0])} rows"
    )
    single = jax.tree.leaves(collated(examples[:1]))
    assert [np.shape(leaf) for leaf in single] == [(1,), (1, 4), (1, 2, 3)], (
        "a batch of one example has one row as well"
    )


def check_batches_of(batches_of):
    """Raise AssertionError unless the order can be repeated and resumed."""

    def orders(count=10, size=4, **options):
        rows = batches_of(count, size, **options)
        return [tuple(map(int, batch)) for batch in rows]

    first = orders(seed=0, epoch=0)
    assert {len(rows) for rows in first} == {4}, (
        f"the batches have sizes {[len(rows) for rows in first]}; a smaller "
        "one at the end would be compiled anew, and is to be left out"
    )
    assert len(first) == 2, (
        f"10 examples make 2 batches of 4, not {len(first)}"
    )
    assert len(orders(8, seed=0, epoch=0)) == 2, (
        "8 examples make 2 batches of 4, of which none is to be left out"
    )
    seen = {row for rows in first for row in rows}
    assert len(seen) == 8, "an example occurs twice in an epoch"
    assert seen <= set(range(10)), f"{sorted(seen)} are not all below 10"
    assert orders(seed=0, epoch=0) == first, (
        "asked again for the same epoch it returns another order, so no run "
        "can be repeated"
    )
    assert any(orders(seed=0, epoch=n) != first for n in range(1, 9)), (
        "all epochs have the same order; it has to follow from the seed and "
        "the number of the epoch"
    )
    assert any(orders(seed=n, epoch=0) != first for n in range(1, 9)), (
        "all seeds have the same order"
    )
    ever = {
        row
        for n in range(30)
        for rows in orders(seed=0, epoch=n)
        for row in rows
    }
    assert len(ever) == 10, (
        f"in 30 epochs only {len(ever)} of 10 examples occur; each is to "
        "leave out others"
    )
    numbers = [*range(1, 41), 50, 64, 97, 99, 100, 101, 128, 256, 500, 512]
    numbers += [997, 999, 1000, 1001, 1009, 1024, 10_000]
    pairs = [(0, n) for n in [0, *numbers]] + [(n, 0) for n in numbers]
    owners = {}
    for pair in [*pairs, (1, 11), (11, 1), (1, 12), (11, 2)]:
        seed, epoch = pair
        first = orders(40, 8, seed=seed, epoch=epoch)[0]
        other, same = owners.setdefault(first, pair)
        assert same == epoch or other != seed, (
            f"epochs {epoch} and {same} begin with the same batch"
        )
        assert other == seed, (
            f"epoch {same} of seed {other} is epoch {epoch} of seed {seed}, "
            "so runs with different seeds see the same orders"
        )
    whole = orders(24, seed=3, epoch=2)
    for start in (1, 4, 6):
        resumed = orders(24, seed=3, epoch=2, start=start)
        assert resumed == whole[start:], (
            f"from batch {start} on it returns {len(resumed)} batches, first "
            f"{resumed[:1]}; the whole epoch has {whole[start : start + 1]} "
            f"there, and {len(whole)} in all"
        )


def check_rows_of_process(rows_of_process):
    """Raise AssertionError unless the processes together are like one."""

    def steps(order, size, processes):
        own = [
            [np.asarray(rows) for rows in rows_of_process(order, size, *each)]
            for each in ((n, processes) for n in range(processes))
        ]
        counts = [len(each) for each in own]
        assert len({*counts}) == 1, (
            f"{processes} processes have {counts} steps, so one waits for "
            "others that have ended"
        )
        return own

    order = np.random.default_rng(0).permutation(30) + 100
    for size, processes in ((4, 2), (6, 3), (8, 4), (8, 1), (15, 3), (6, 2)):
        own = steps(order, size, processes)
        said = f"of {processes} processes, with {size} examples in a step, "
        sizes = {rows.shape for each in own for rows in each}
        assert sizes == {(size // processes,)}, (
            f"{said}one reads arrays of the shapes {sorted(sizes)}, not "
            f"{(size // processes,)}"
        )
        kinds = {rows.dtype.kind for each in own for rows in each}
        assert kinds <= {*"iu"}, "indices are integers, not floats"
        every = np.concatenate(
            [np.ravel(rows) for each in own for rows in each]
        )
        assert len({*every.tolist()}) == len(every), (
            f"{said}two read the same example"
        )
        assert len(own[0]) == 30 // size, (
            f"{said}each has {len(own[0])} steps; 30 examples make "
            f"{30 // size}"
        )
        for step in range(30 // size):
            together = sorted(np.concatenate([each[step] for each in own]))
            alone = sorted(order[step * size : (step + 1) * size])
            assert together == alone, (
                f"{said}step {step} has the examples "
                f"{[int(n) for n in together]}, and on one process "
                f"{[int(n) for n in alone]}"
            )
