"""Write SVG whose widths are percentages: it fits any page, and its letters never shrink."""

import decimal
import html
import math
from collections.abc import Mapping, Sequence

from executed.frameworks import Colour

# Pixels that a letter takes, and a bold one.
LETTER = 6.8
BOLD = 8.2
LINE = 15
# Of the numbers under an axis that is as narrow as on a phone.
MOST_LETTERS = 26
# For what has no colour of its own.
INKS = (
    Colour("#0d6e78", "#5fd0dc"),
    Colour("#7a44a8", "#c9a0f0"),
    Colour("#a8326e", "#f59ac6"),
    Colour("#5a606a", "#b3b9c4"),
    Colour("#6b5b00", "#d6c55a"),
    Colour("#2f4fb0", "#9db4ff"),
    Colour("#8f3d1e", "#f0a988"),
    Colour("#2d6b2f", "#8fd08f"),
)


def element(tag: str, *children: str, **attributes: object) -> str:
    """Write an element; `class_` stands for class and `text_anchor` for text-anchor."""
    texts = {
        name.rstrip("_").replace("_", "-"): f"{round(v, 2):g}" if isinstance(v, float) else str(v)
        for name, v in attributes.items()
        if v is not None and v != ""
    }
    written = "".join(f' {name}="{html.escape(text)}"' for name, text in texts.items())
    return f"<{tag}{written}>{''.join(children)}</{tag}>" if children else f"<{tag}{written}/>"


def percent(fraction: float) -> str:
    """Write a part of the width."""
    return f"{round(100 * fraction, 2):g}%"


def text(content: str, **attributes: object) -> str:
    """Write a text."""
    return element("text", html.escape(content), **attributes)


def point(hint: str, *children: str, style: str = "", class_: str = "", **data: object) -> str:
    """Write a part of a drawing that says something where somebody points at it, or tabs to it.

    `data` are attributes for scripts.
    """
    return element(
        "g",
        element("title", html.escape(hint)),
        *children,
        text(hint, class_="said", y=12),
        class_=f"point {class_}".rstrip(),
        style=style,
        tabindex=0,
        role="img",
        **data,
    )


def drawing(
    parts: Sequence[str],
    size: str,
    title: str,
    heading: str,
    class_: str,
    margins: tuple[float, float],
    data: Mapping[str, object] | None = None,
) -> str:
    """Write a drawing: its title for those who do not see it, and a heading on its first line.

    What is pointed at takes the place of the heading. `size` is what the style sheet makes its
    height of, `margins` are pixels at the left and right, and `data` attributes for scripts.
    """
    left, right = map(math.ceil, margins)
    return element(
        "svg",
        element("title", html.escape(title)),
        text(heading, class_="heading", y=12),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"drawing {class_}",
        role="group",
        style=f"--left:{left}px;--right:{right}px;{size}",
        **(data or {}),
    )


def number(value: float) -> str:
    """Write a number in plain decimals, however large or small."""
    return f"{decimal.Decimal(f'{value:.12g}'):,f}"


def round_numbers(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> list[float]:
    """Return the numbers that a logarithmic axis shows around two positive ones.

    They are of the form step · 10ⁿ, or powers of ten alone where these would be more than nine.
    """
    numbers = _around(low, high, steps)
    return numbers if len(numbers) <= 9 else _around(low, high, (1,))


def _around(low: float, high: float, steps: Sequence[int]) -> list[float]:
    """Return the fewest of the numbers step · 10ⁿ that enclose low and high: at least two."""
    exponents = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    numbers = [float(f"{step}e{exponent}") for exponent in exponents for step in steps]
    first = max(n for n, value in enumerate(numbers) if value <= low)
    last = next(n for n, value in enumerate(numbers) if value >= high and n > first)
    return numbers[first : last + 1]


def place(value: float, low: float, high: float) -> float:
    """Return where a number is on a logarithmic axis, as a part of its length."""
    return math.log(value / low) / math.log(high / low) if high > low else 0.5


def apart(wanted: Mapping[str, tuple[float, float]], bottom: float) -> dict[str, float]:
    """Return where labels go that would lie on one another, of {label: (top, height)}.

    None ends below `bottom` as long as there is room for all.
    """
    order = sorted(wanted, key=lambda label: wanted[label][0])
    tops: dict[str, float] = {}
    end = -math.inf
    for label in order:
        tops[label] = max(wanted[label][0], end)
        end = tops[label] + wanted[label][1]
    for label in reversed(order):
        bottom = tops[label] = min(tops[label], bottom - wanted[label][1])
    return tops
