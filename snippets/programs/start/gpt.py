"""The small GPT of the book, on characters."""

from snippets.project.gpt import Config, NnxGpt

CONFIG = Config(length=64, width=64, heads=4, layers=2)


def network(rngs):
    """Return the model: tokens (n, length) to logits (n, length, 128)."""
    return NnxGpt(CONFIG, rngs=rngs)
