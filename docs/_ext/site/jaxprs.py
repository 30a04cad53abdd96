"""The picture of a jaxpr, whose places were found when it was recorded."""

import html

from docutils import nodes

from ..programs.records import ProgramRecord

ACROSS, DOWN, HEIGHT = 24, 74, 42


def picture(name: str, record: ProgramRecord) -> nodes.Node:
    """Return the jaxpr of a function as a drawing from top to bottom."""
    drawn, edges = record.picture.nodes, record.picture.edges
    labels = max((len(part.label) for part in drawn), default=0)
    details = max((len(part.detail) for part in drawn), default=0)
    width = round(max(90, 8.4 * labels, 6.6 * details) + 16)
    right = [part.x for part in drawn] + [x for edge in edges for x, _ in edge.through]
    total = (width + ACROSS) * max(right, default=0) + width + 4
    height = DOWN * max((part.y for part in drawn), default=0) + HEIGHT + 4

    def place(x: float, y: float) -> tuple[float, float]:
        return 2 + (width + ACROSS) * x + width / 2, 2 + DOWN * y

    shapes = []
    for edge in edges:
        above, below = drawn[edge.from_], drawn[edge.to]
        x, y = place(above.x, above.y)
        points = [(x, y + HEIGHT)]
        for through in edge.through:
            x, y = place(*through)
            points += [(x, y), (x, y + HEIGHT)]
        x, y = place(below.x, below.y)
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*points, (x, y)])
        shapes.append(f'<polyline points="{path}" fill="none" opacity="0.6"/>')
        shapes.append(
            f'<path d="M{x:.1f} {y:.1f}l-4 -8h8z" fill="currentColor" stroke="none" opacity="0.6"/>'
        )
    for part in drawn:
        x, y = place(part.x, part.y)
        dashed = "" if part.kind == "operation" else ' stroke-dasharray="4 3"'
        shapes.append(
            f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width}" height="{HEIGHT}" rx="7" '
            f'fill="none"{dashed}/>'
        )
        for text, down, style in ((part.label, 18, ' class="label"'), (part.detail, 34, "")):
            shapes.append(
                f'<text x="{x:.1f}" y="{y + down:.1f}" text-anchor="middle" stroke="none" '
                f'fill="currentColor"{style}>{html.escape(text)}</text>'
            )
    count = sum(part.kind == "operation" for part in drawn)
    title = (
        f"The jaxpr of {name}, drawn from its arguments at the top to its "
        f"result at the bottom, with {count} operation{'s' * (count != 1)} in between"
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}" '
        f'style="max-width: {total:.0f}px; min-width: {0.7 * total:.0f}px" role="img" '
        'class="jaxpr-picture" stroke="currentColor">'
        f"<title>{html.escape(title)}</title>{''.join(shapes)}</svg>"
    )
    # It scrolls on a phone, where it must be reached by keyboard.
    scrolls = '<div class="table-scroll" tabindex="0" role="group" aria-label="Picture">'
    return nodes.raw("", f"{scrolls}{svg}</div>", format="html")
