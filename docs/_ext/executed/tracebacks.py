"""Errors that cells show: the message is to be read at once, the way to it where somebody asks."""

from docutils import nodes

from . import tabs

# Messages of JAX explain themselves in further paragraphs, and end with an address.
LONGEST = 3


def fold(document: nodes.document) -> None:
    """Fold each traceback of a page behind the first lines of its message."""
    for block in list(document.findall(nodes.literal_block)):
        if "traceback" not in block["classes"]:
            continue
        said = message(block.astext())
        if said == block.astext().strip():
            continue
        place = block.parent.index(block)
        block.parent[place : place + 1] = tabs.fold(said, block, class_="traceback")


def message(traceback: str) -> str:
    """Return the first lines of the message at the end of a traceback, at most three."""
    lines = traceback.strip().splitlines()
    start = next(
        (n for n, line in enumerate(lines) if n and not line.startswith(" ")), len(lines) - 1
    )
    if not lines or not lines[0].startswith("Traceback"):
        start = 0
    found: list[str] = []
    for line in lines[start:]:
        if len(found) == LONGEST or not line.strip() or line.startswith(("See http", "----")):
            break
        found.append(line)
    return "\n".join(found)
