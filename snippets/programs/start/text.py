"""Text, a token for each character."""

import pathlib

import numpy as np

from snippets.programs.start.gpt import CONFIG

UNIT = "tokens"
OPTIONS = {"--text": "a file to learn from, instead of Shakespeare's plays"}
PLAYS = pathlib.Path(__file__).with_name("tiny_shakespeare.txt")


def read(path):
    """Return the characters of a file, uint8 below 128; others become "?".

    SystemExit where the file cannot be read.
    """
    try:
        text = pathlib.Path(path).read_text("utf8")
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"--text {path} cannot be read: {error}") from None
    return np.frombuffer(text.encode("ascii", "replace"), np.uint8)


def windows(text, length):
    """Return tokens and targets, both int32 (n, length).

    They are pieces of a text, and each piece one character later.
    """
    count = max(len(text) - 1, 0) // length
    text = text.astype(np.int32)
    return tuple(
        text[start : start + count * length].reshape(count, length)
        for start in (0, 1)
    )


def load(options):
    """Return (training, test): the end of the text, a tenth at most.

    SystemExit where the text is too short for a row of each.
    """
    text = read(options.text or PLAYS)
    held_back = min(len(text) // 10, 16_384)
    if held_back <= CONFIG.length:
        raise SystemExit(
            f"--text has {len(text)} characters: at least "
            f"{10 * (CONFIG.length + 1)} are needed, so that a tenth is a row"
        )
    training, test = np.split(text, [len(text) - held_back])
    return windows(training, CONFIG.length), windows(test, CONFIG.length)
