"""Rows for several processes, and packed documents, against each document by itself."""

import itertools
import re

import grain
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snippets.processes import feeding
from snippets.programs.launcher import launch


def in_order(seed=0):
    return grain.MapDataset.range(20).seed(seed).shuffle().repeat()


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_a_batch_has_the_same_rows_for_each_number_of_processes(count):
    order = in_order()
    own = [feeding.own_batches(order, 8, count, number) for number in range(count)]
    # The third batch lies in two epochs.
    for step in 0, 2, 7:
        together = np.stack([batches[step] for batches in own], axis=1).ravel()
        assert together.tolist() == [order[i] for i in range(8 * step, 8 * step + 8)]


def test_the_elastic_iterator_has_the_same_order_and_one_state():
    iterators = [
        iter(grain.experimental.ElasticIterator(in_order(), 8, grain.sharding.ShardOptions(n, 2)))
        for n in range(2)
    ]
    for step in range(4):
        for number, iterator in enumerate(iterators):
            expected = feeding.own_batches(in_order(), 8, 2, number)[step]
            assert next(iterator).tolist() == expected.tolist()
    assert iterators[0].get_state() == iterators[1].get_state() == {"global_next_index": 32}


def test_the_position_of_two_processes_is_not_one_of_a_single_process(tmp_path):
    (tmp_path / "process_0-of-2.json").write_text('{"next_index": 3}')
    iterator = iter(in_order().to_iter_dataset())
    with pytest.raises(ValueError, match=r"process_0-of-1\.json does not exist"):
        grain.checkpoint.CheckpointHandler().restore(tmp_path, iterator)


@pytest.mark.parametrize(("size", "count", "number"), [(8, 3, 0), (8, 4, 4), (8, 4, -1), (2, 4, 0)])
def test_a_size_that_does_not_divide_is_refused(size, count, number):
    with pytest.raises(ValueError, match=f"{count} processes can't share {size} rows"):
        feeding.own_batches(in_order(), size, count, number)


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_elements_that_do_not_fill_a_last_batch_are_left_out(count):
    data = grain.MapDataset.range(20).seed(0).shuffle()
    own = [feeding.own_batches(data, 8, count, number) for number in range(count)]
    assert {len(batches) for batches in own} == {2}
    # After the last batch, Grain goes on with the order of the next epoch.
    for step in range(4):
        together = np.stack([batches[step] for batches in own], axis=1).ravel()
        begin = 20 * (step // 2) + 8 * (step % 2)
        assert together.tolist() == [data[i] for i in range(begin, begin + 8)]


@pytest.mark.parametrize(("before", "after", "steps"), [(2, 4, 3), (4, 1, 5), (2, 2, 1)])
def test_slices_read_each_row_once_and_pieces_only_if_the_number_stays(before, after, steps):
    order = grain.MapDataset.range(64).seed(0).shuffle().repeat()

    def sliced(count, number):
        return feeding.own_batches(order, 8, count, number)

    def split(count, number):
        return feeding.split_batches(64, 8, count, number)

    assert feeding.times_read(sliced, before, after, steps, 64) == {1: 64}
    read = feeding.times_read(split, before, after, steps, 64)
    assert (read == {1: 64}) == (before == after)
    # As many as are missed are read twice.
    assert sum(times * rows for times, rows in read.items()) == 64


def test_four_processes_go_on_with_the_rows_of_two():
    found = {}
    for count, begin in (2, 0), (4, 2):
        for process in feeding.feed(count, begin):
            for step, rows, total in re.findall(r"step (\d): \[(.*)\] sum (\d+)", process.text):
                own = found.setdefault((count, int(step)), ([], set()))
                own[0].extend(map(int, rows.split(", ")))
                own[1].add(int(total))
    assert sorted(found) == [(2, 0), (2, 1), (2, 2), (4, 2), (4, 3), (4, 4)]
    for rows, totals in found.values():
        assert len(rows) == 8 and totals == {sum(rows)}
    assert sorted(found[2, 2][0]) == sorted(found[4, 2][0])


def test_replicas_that_differ_are_noticed_with_the_global_shape():
    texts = [process.text.splitlines() for process in launch(feeding.across_program, 2, 2)]
    assert [text[0] for text in texts] == ["(4,) sum 6", "(4,) sum 22"]
    for text in texts:
        assert text[1].startswith("ValueError: Invalid host data")


LENGTHS = st.lists(st.integers(1, 16), min_size=1, max_size=12)


@given(LENGTHS)
def test_rows_have_each_document_once_and_room_for_it(lengths):
    rows = feeding.first_fit(lengths, 16)
    assert sorted(itertools.chain(*rows)) == [*range(len(lengths))]
    held = [sum(lengths[number] for number in row) for row in rows]
    assert max(held) <= 16
    # No two rows would fit into one.
    assert all(a + b > 16 for i, a in enumerate(held) for b in held[:i])


def test_a_document_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="document 1 has 17 tokens, and a row 16"):
        feeding.first_fit([3, 17], 16)


def test_a_row_reads_as_its_documents():
    packed = feeding.Packed([np.array([5, 6, 7]), np.array([8, 9])], 7)
    x, labels = packed[0]
    assert len(packed) == 1
    assert x["tokens"].tolist() == [5, 6, 7, 8, 9, 0, 0]
    assert x["segments"].tolist() == [1, 1, 1, 2, 2, 0, 0]
    assert x["positions"].tolist() == [0, 1, 2, 0, 1, 0, 0]
    assert labels.tolist() == [6, 7, -1, 9, -1, -1, -1]
    assert {array.dtype for array in (*x.values(), labels)} == {np.dtype(np.int32)}


@pytest.mark.parametrize("lengths", [[0, 2, 0, 1], [0], [], [3, 0]])
def test_documents_without_tokens_have_no_labels(lengths):
    x, labels = feeding.packed_row([np.arange(1, 1 + n) for n in lengths], 4)
    assert (x["tokens"] > 0).sum() == (x["segments"] > 0).sum() == sum(lengths)
    assert (labels >= 0).sum() == sum(max(n - 1, 0) for n in lengths)
    _, batch = packed_batch([*lengths, 2])
    params = feeding.init_packed(jax.random.key(0))
    assert np.isfinite(feeding.loss_and_count(params, batch)[0])


@pytest.mark.parametrize("lengths", [[5], [4, 1], [3, 0, 2]])
def test_a_row_that_is_too_short_is_refused(lengths):
    with pytest.raises(ValueError, match="5 tokens don't fit into a row of 4"):
        feeding.packed_row([np.arange(n) for n in lengths], 4)


def packed_batch(lengths, size=16):
    draw = np.random.default_rng(sum(lengths))
    documents = [draw.integers(0, 64, length, np.int32) for length in lengths]
    packed = feeding.Packed(documents, size)
    rows = [packed[i] for i in range(len(packed))]
    return documents, jax.tree.map(lambda *parts: np.stack(parts), *rows)


@pytest.mark.parametrize("lengths", [[16, 1, 3, 9, 2], [1], [2, 2, 2, 2, 2, 2, 2, 2, 2]])
def test_packed_documents_have_the_loss_of_each_by_itself(lengths):
    params = feeding.init_packed(jax.random.key(0))
    documents, batch = packed_batch(lengths)
    total, count = feeding.loss_and_count(params, batch)
    expected, labels = feeding.one_by_one(params, documents, 16)
    assert count == labels == sum(lengths) - len(lengths)
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-5)


def test_a_document_does_not_see_the_others_of_its_row():
    params = feeding.init_packed(jax.random.key(1))
    _, (x, _) = packed_batch([5, 6, 4])
    y = feeding.attend_within(params, x)
    other = x | {"tokens": np.where(x["segments"] == 2, 1, x["tokens"])}
    changed = np.asarray(feeding.attend_within(params, other) != y).any(-1)
    assert changed[x["segments"] == 2].all()
    assert not changed[x["segments"] != 2].any()


@pytest.mark.parametrize("wrong", ["segments", "positions"])
def test_each_precaution_matters(wrong):
    params = feeding.init_packed(jax.random.key(0))
    _, (x, labels) = packed_batch([5, 6, 4, 9, 3])
    ones = x | {wrong: np.ones_like(labels)}
    right, _ = feeding.loss_and_count(params, (x, labels))
    found, _ = feeding.loss_and_count(params, (ones, labels))
    assert abs(found - right) > 1e-3 * right


def test_the_losses_of_packed_rows_agree_with_numpy():
    params = feeding.init_packed(jax.random.key(2))
    documents, batch = packed_batch([4, 7, 5])
    p = {name: np.asarray(value, np.float64) for name, value in params.items()}
    total = 0.0
    for document in documents:
        y = p["embedding"][document] + p["positions"][: len(document)]
        query, key, value = np.split(y @ p["qkv"], 3, axis=-1)
        scores = np.exp(query @ key.T / np.sqrt(16)) * np.tri(len(document))
        logits = (y + scores / scores.sum(1, keepdims=True) @ value) @ p["out"]
        logged = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        total -= logged[np.arange(len(document) - 1), document[1:]].sum()
    np.testing.assert_allclose(feeding.loss_and_count(params, batch)[0], total, rtol=1e-5)
