"""The picture of a jaxpr, whose places were found when it was recorded."""

import html

from docutils import nodes

from drawing import svg

from .programs import ProgramRecord

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
        tip = f"M{x:.1f} {y:.1f}l-4 -8h8z"
        shapes += [
            svg.element("polyline", points=path, fill="none", opacity=0.6),
            svg.element("path", d=tip, fill="currentColor", stroke="none", opacity=0.6),
        ]
    for part in drawn:
        x, y = place(part.x, part.y)
        left, dashes = x - width / 2, "" if part.kind == "operation" else "4 3"
        box = {"x": left, "y": y, "width": width, "height": HEIGHT, "rx": 7}
        written = {"x": x, "text_anchor": "middle", "stroke": "none", "fill": "currentColor"}
        shapes += [
            svg.element("rect", **box, fill="none", stroke_dasharray=dashes),
            svg.text(part.label, **written, y=y + 18, class_="label"),
            svg.text(part.detail, **written, y=y + 34),
        ]
    count = sum(part.kind == "operation" for part in drawn)
    title = (
        f"The jaxpr of {name}, drawn from its arguments at the top to its "
        f"result at the bottom, with {count} operation{'s' * (count != 1)} in between"
    )
    drawing = svg.element(
        "svg",
        svg.element("title", html.escape(title)),
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {total:.0f} {height:.0f}",
        style=f"max-width: {total:.0f}px; min-width: {0.7 * total:.0f}px",
        role="img",
        class_="jaxpr-picture",
        stroke="currentColor",
    )
    # It scrolls on a phone, where it must be reached by keyboard.
    scrolls = '<div class="table-scroll" tabindex="0" role="group" aria-label="Picture">'
    return nodes.raw("", f"{scrolls}{drawing}</div>", format="html")
