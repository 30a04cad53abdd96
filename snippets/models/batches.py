"""Batches for a JAX step from Grain and from PyTorch's DataLoader."""

import collections
import warnings
import zlib

import grain
import jax
import numpy as np
import torch
from torch.utils.data import DataLoader

SIZE = 16
EXPECTED_ERRORS = {"mean_of": (TypeError, "Error interpreting argument to")}


class Images:
    """Compressed images; reading one unpacks it. Has `len` and `[i]`."""

    def __init__(self, count=120, side=128):
        self.side, rng = side, np.random.default_rng(0)
        pixels = rng.integers(0, 64, (count, side, side, 3), dtype=np.uint8)
        self.packed = [zlib.compress(each.tobytes()) for each in pixels]

    def __len__(self):
        return len(self.packed)

    def __getitem__(self, i):
        """Return pixels, float32 (side, side, 3) in [0, 1], and a label."""
        pixels = np.frombuffer(zlib.decompress(self.packed[i]), np.uint8)
        pixels = (
            pixels.reshape(self.side, self.side, 3).astype(np.float32) / 63
        )
        return {"pixels": pixels, "label": np.int32(i)}


def numpy_collate(examples):
    """Return one batch of NumPy arrays from a list of examples."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *examples)


@jax.jit
def mean_of(batch):
    """Return the mean over all pixels of a batch."""
    return batch["pixels"].mean()


def sizes_traced(batches):
    """Return the sizes of batches for which a jitted function is traced."""
    sizes = []

    @jax.jit
    def step(batch):
        sizes.append(len(batch["label"]))
        return batch["pixels"].mean()

    for batch in batches:
        step(batch)
    return sizes


def padded(batch, size=SIZE):
    """Return a batch padded with zeros to `size`, and a mask of examples."""
    count = len(batch["label"])

    def fill(array):
        return np.pad(array, [(0, size - count)] + [(0, 0)] * (array.ndim - 1))

    return jax.tree.map(fill, batch) | {"mask": np.arange(size) < count}


@jax.jit
def masked_mean(batch):
    """Return the mean over the pixels of the real examples of a batch."""
    per_image = batch["pixels"].mean(axis=(1, 2, 3))
    return per_image.mean(where=batch["mask"])


def labels_of(batches):
    """Return the labels of all batches, a list of lists."""
    return [batch["label"].tolist() for batch in batches]


def shuffled(images, seed=0):
    """Return endless batches, each epoch shuffled in its own order."""
    data = grain.MapDataset.source(images).seed(seed).shuffle()
    return data.batch(SIZE, drop_remainder=True).repeat()


def seeded_loader(images, seed=0):
    """Return a DataLoader whose order follows from a seed."""
    generator = torch.Generator().manual_seed(seed)
    return DataLoader(
        images,
        SIZE,
        shuffle=True,
        generator=generator,
        drop_last=True,
        collate_fn=numpy_collate,
    )


def epoch_from(images, epoch, start=0, seed=0):
    """Return a DataLoader of an epoch, from batch `start` on."""
    order = np.random.default_rng((seed, epoch)).permutation(len(images))
    rest = order[start * SIZE :].tolist()
    return DataLoader(
        images, SIZE, sampler=rest, drop_last=True, collate_fn=numpy_collate
    )


def flip(example, rng):
    """Return the example, its image mirrored or not."""
    pixels = example["pixels"]
    return example | {
        "pixels": pixels[:, ::-1] if rng.random() < 0.5 else pixels
    }


def flipped(images, threads):
    """Return batches of mirrored images, read by `threads` threads."""
    data = grain.MapDataset.source(images).seed(0).shuffle().random_map(flip)
    reading = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=32)
    return data.to_iter_dataset(reading).batch(SIZE)


def warnings_of(iterable):
    """Return the RuntimeWarnings about forks while reading to the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        collections.deque(iterable, maxlen=0)
    texts = [str(w.message) for w in caught if w.category is RuntimeWarning]
    return [text for text in texts if "fork" in text]


def prefetched(batches, count=2):
    """Yield batches on the device, while later ones are being copied."""
    ready = collections.deque()
    for batch in batches:
        ready.append(jax.device_put(batch))
        if len(ready) == count:
            yield ready.popleft()
    yield from ready
