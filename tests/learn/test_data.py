"""What the lesson feeds a step: mirrored images, and windows of a file of tokens."""

import jax
import numpy as np

from snippets.learn import data


def test_rows_are_mirrored_by_the_number_of_the_step():
    pixels = np.random.default_rng(0).random((16, 4, 5, 3), np.float32)
    key = jax.random.key(0)
    first, again, other = (np.asarray(data.mirrored(key, n, pixels)) for n in (3, 3, 4))
    same = [np.array_equal(*rows) for rows in zip(first, pixels, strict=True)]
    turned = [np.array_equal(a, b[:, ::-1]) for a, b in zip(first, pixels, strict=True)]
    assert any(same) and any(turned)
    assert all(a != b for a, b in zip(same, turned, strict=True))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_windows_follow_one_another_and_each_has_its_next_tokens(tmp_path):
    tokens = np.random.default_rng(0).integers(0, 2**16, 33).astype(np.uint16)
    np.save(tmp_path / "tokens.npy", tokens)
    windows = data.Windows(tmp_path / "tokens.npy", length=8)
    assert isinstance(windows.tokens, np.memmap)
    assert len(windows) == 4
    found = np.concatenate([windows[i]["tokens"] for i in range(4)])
    np.testing.assert_array_equal(found, tokens[:32])
    found = np.concatenate([windows[i]["targets"] for i in range(4)])
    np.testing.assert_array_equal(found, tokens[1:])
    assert found.dtype == np.int32
    np.save(tmp_path / "tokens.npy", tokens[:32])
    assert len(data.Windows(tmp_path / "tokens.npy", length=8)) == 3
