"""Errors that cells show: the message is to be read at once, the way to it where somebody asks."""

from docutils import nodes
from sphinx.transforms import SphinxTransform

from .nodes import fold

# Messages of JAX explain themselves in further paragraphs, and end with an address.
LONGEST = 3


class FoldTracebacks(SphinxTransform):
    """Fold each traceback of a page behind the first lines of its message."""

    default_priority = 10

    def apply(self, **options: object) -> None:
        """Change one page."""
        for block in list(self.document.findall(nodes.literal_block)):
            if "traceback" not in block["classes"]:
                continue
            text = message(block.astext())
            if text != block.astext().strip():
                place = block.parent.index(block)
                block.parent[place : place + 1] = fold(text, block, class_="traceback")


def message(traceback: str) -> str:
    """Return the first lines of the message at the end of a traceback, at most three."""
    lines = traceback.strip().splitlines()
    start = next(
        (n for n, line in enumerate(lines) if n and not line.startswith(" ")), len(lines) - 1
    )
    if not lines or not lines[0].startswith("Traceback"):
        start = 0
    shown: list[str] = []
    for line in lines[start:]:
        if len(shown) == LONGEST or not line.strip() or line.startswith(("See http", "----")):
            break
        shown.append(line)
    return "\n".join(shown)
