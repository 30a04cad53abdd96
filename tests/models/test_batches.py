import jax
import numpy as np
import pytest

from snippets.models import batches


@pytest.fixture(scope="module")
def images():
    return batches.Images(side=8)


def test_both_libraries_give_the_same_batches(images):
    whole = batches.DataLoader(images, 16, collate_fn=batches.numpy_collate)
    pairs = zip(whole, batches.grain.MapDataset.source(images).batch(16), strict=True)
    for from_torch, from_grain in pairs:
        assert type(from_torch["pixels"]) is np.ndarray
        assert np.array_equal(from_torch["pixels"], from_grain["pixels"])
        assert np.array_equal(from_torch["label"], from_grain["label"])


def test_a_step_refuses_tensors(raises_declared, images):
    raises_declared(batches.mean_of, next(iter(batches.DataLoader(images, 16))))


def test_the_last_batch_is_traced_again_unless_padded_or_dropped(images):
    whole = batches.DataLoader(images, 16, collate_fn=batches.numpy_collate)
    assert batches.sizes_traced([*whole, *whole]) == [16, 8]
    assert batches.sizes_traced(map(batches.padded, whole)) == [16]
    assert batches.sizes_traced(batches.seeded_loader(images)) == [16]


def test_padding_does_not_change_a_masked_mean(images):
    *_, last = batches.DataLoader(images, 16, collate_fn=batches.numpy_collate)
    assert len(last["label"]) == 8
    padded = batches.padded(last)
    assert padded["mask"].sum() == 8
    assert np.allclose(batches.masked_mean(padded), batches.mean_of(last))


def test_a_seed_gives_the_same_order_and_each_epoch_another(images):
    first = batches.labels_of(list(batches.shuffled(images)[:14]))
    assert first == batches.labels_of(list(batches.shuffled(images)[:14]))
    assert first != batches.labels_of(list(batches.shuffled(images, seed=1)[:14]))
    one, two = ([x for labels in first[n : n + 7] for x in labels] for n in (0, 7))
    # No epoch has an example twice, and each leaves out eight others.
    assert len(set(one)) == len(set(two)) == 112
    assert set(one) != set(two) and one != two
    loader = batches.seeded_loader(images)
    one, two = batches.labels_of(loader), batches.labels_of(loader)
    again = batches.seeded_loader(images)
    assert (batches.labels_of(again), batches.labels_of(again)) == (one, two)
    assert one != two


def test_random_changes_do_not_depend_on_the_number_of_readers(images):
    runs = [list(batches.flipped(images, threads)) for threads in (0, 1, 4)]
    for run in runs[1:]:
        for one, other in zip(runs[0], run, strict=True):
            assert np.array_equal(one["pixels"], other["pixels"])
    mirrored = 0
    for batch in runs[0]:
        for pixels, label in zip(batch["pixels"], batch["label"], strict=True):
            mirrored += not np.array_equal(pixels, images[label]["pixels"])
    assert 30 < mirrored < 90


class Counting(batches.Images):
    """Images that count how often they are read."""

    read = 0

    def __getitem__(self, i):
        self.read += 1
        return super().__getitem__(i)


def test_an_iterator_resumes_at_the_same_example_without_reading_the_others():
    images = Counting(side=8)
    reading = batches.grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    iterator = iter(batches.shuffled(images).to_iter_dataset(reading))
    for _ in range(3):
        next(iterator)
    position = iterator.get_state()
    expected = batches.labels_of([next(iterator) for _ in range(9)])
    images.read = 0
    resumed = iter(batches.shuffled(images).to_iter_dataset(reading))
    resumed.set_state(position)
    assert batches.labels_of([next(resumed)]) == expected[:1]
    assert images.read == 16
    assert batches.labels_of([next(resumed) for _ in range(8)]) == expected[1:]


def test_an_epoch_of_a_loader_resumes_from_its_number_and_a_batch(images):
    whole = batches.labels_of(batches.epoch_from(images, epoch=2))
    assert len(whole) == 7
    assert batches.labels_of(batches.epoch_from(images, epoch=2, start=3)) == whole[3:]
    assert batches.labels_of(batches.epoch_from(images, epoch=3)) != whole


def test_a_forked_worker_is_warned_of():
    loader = batches.DataLoader(range(4), num_workers=1, multiprocessing_context="fork")
    assert any("incompatible with multithreaded" in text for text in batches.warnings_of(loader))
    assert batches.warnings_of(batches.DataLoader(range(4))) == []


def test_batches_are_sent_ahead_in_their_order():
    taken = []

    def source():
        for number in range(4):
            taken.append(number)
            yield {"label": np.int32(number)}

    ahead = batches.prefetched(source(), count=2)
    first = next(ahead)
    assert isinstance(first["label"], jax.Array)
    assert taken == [0, 1]
    assert [int(first["label"]), *(int(b["label"]) for b in ahead)] == [0, 1, 2, 3]
