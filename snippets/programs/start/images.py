"""Images of digits, from scikit-learn."""

from snippets.models.steps import digits

UNIT = "images"
OPTIONS = {}


def load(options):
    """Return (training, test), each images (n, 64) and labels (n,)."""
    return digits()
