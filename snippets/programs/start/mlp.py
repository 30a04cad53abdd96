"""A network of linear layers."""

from snippets.models.steps import NnxMlp


def network(rngs):
    """Return the model: images (n, 64) to logits (n, 10)."""
    return NnxMlp((64, 128, 128, 10), rngs=rngs)
