"""The model at speed: shapes, traces, and the same vectors from everybody."""

import jax
import numpy as np
import pytest
import torch

from snippets.models import real_model, real_model_fast

FOLDER = real_model.model_folder()
CONFIG = real_model.read_config(FOLDER)


@pytest.fixture(scope="module")
def params():
    return real_model.load_params(FOLDER / "model.safetensors", CONFIG)


@pytest.fixture(scope="module")
def rows():
    tokenizer = real_model.read_tokenizer(FOLDER)
    tokenizer.no_padding()
    sentences = real_model_fast.many_sentences(160)
    return [each.ids for each in tokenizer.encode_batch(sentences)]


def test_texts_are_the_same_each_time_and_most_are_short(rows):
    assert real_model_fast.many_sentences(160) == real_model_fast.many_sentences(160)
    lengths = sorted(map(len, rows))
    assert lengths[0] < 16 and lengths[80] < 32 and 64 < lengths[-1] <= 128


def test_batches_keep_all_in_order():
    assert real_model_fast.batches(list(range(10)), 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize(
    ("pad", "length"), [(real_model_fast.to_longest, 17), (real_model_fast.to_bucket, 32)]
)
def test_rows_are_padded(pad, length):
    ids, mask = pad([[5, 6], list(range(1, 18))])
    assert ids.shape == mask.shape == (2, length)
    assert ids.dtype == np.int32 and mask.dtype == bool
    assert ids[0].tolist() == [5, 6] + [0] * (length - 2)
    assert mask.sum(axis=1).tolist() == [2, 17]


def test_a_row_that_fits_exactly_needs_no_larger_bucket():
    assert real_model_fast.to_bucket([[1] * 16])[0].shape == (1, 16)


def test_a_row_longer_than_all_buckets_is_refused():
    with pytest.raises(StopIteration):
        real_model_fast.to_bucket([[1] * 129])


def test_buckets_need_few_traces_and_more_padding(params, rows):
    groups = real_model_fast.batches(rows)
    ways = [
        [pad(group) for group in groups]
        for pad in (real_model_fast.to_longest, real_model_fast.to_bucket)
    ]
    traces = []
    for inputs in ways:
        calls = [(params, *each) for each in inputs]
        traces.append(
            real_model_fast.count_traces(lambda *args: real_model.embed(*args, CONFIG), calls)
        )
        assert traces[-1] == len({ids.shape for ids, _ in inputs})
    assert traces == [13, 3]
    longest, buckets = map(real_model_fast.padding_share, ways)
    in_order = [
        real_model_fast.to_bucket(group) for group in real_model_fast.batches(sorted(rows, key=len))
    ]
    assert real_model_fast.padding_share(in_order) < longest < buckets


def test_padding_share_counts_what_is_padding():
    mask = np.array([[True, False], [True, True]])
    assert real_model_fast.padding_share([(None, mask)]) == 0.25


def test_traces_are_counted_without_computing():
    calls = [(jax.ShapeDtypeStruct((n,), np.float32),) for n in (3, 4, 3)]
    assert real_model_fast.count_traces(jax.numpy.negative, calls) == 2


def test_all_alternatives_give_the_same_vectors(params):
    ids, mask = real_model_fast.random_batch(3, 8)
    with jax.default_matmul_precision("highest"):
        vectors = real_model.embed(params, ids, mask, CONFIG)
        mapped = real_model_fast.embed_mapped(params, ids, mask, CONFIG)
    np.testing.assert_allclose(mapped, vectors, atol=2e-5)
    model = real_model_fast.on_accelerator(real_model.torch_model(FOLDER))
    tensors = real_model_fast.torch_batch(ids, mask, model)
    theirs = real_model_fast.torch_vectors(model, *tensors)
    assert theirs.is_inference()
    np.testing.assert_allclose(theirs.cpu(), vectors, atol=2e-5)


def test_bfloat16_halves_the_bytes_and_moves_cosines_a_little(params):
    short = real_model_fast.in_bfloat16(params)
    size = [sum(x.nbytes for x in jax.tree.leaves(p)) for p in (params, short)]
    assert size[0] == 2 * size[1]
    tokenizer = real_model.read_tokenizer(FOLDER)
    batch = real_model.tokenize(tokenizer, real_model.LIBRARY)
    exact, rough = (
        np.asarray(real_model.embed(p, *batch, CONFIG), np.float32) for p in (params, short)
    )
    change = abs(exact @ exact.T - rough @ rough.T).max()
    assert 1e-4 < change < 0.03


def test_layers_are_compiled_one_by_one(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: compiled.append(type(self)))
    model = real_model.torch_model(FOLDER)
    assert real_model_fast.compile_layers(model) is model
    assert [each.__name__ for each in compiled] == ["BertLayer"] * 6
