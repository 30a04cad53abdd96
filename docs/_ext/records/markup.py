"""HTML in outputs: cleaned when it goes to another machine or comes from one, ids kept apart."""

import hashlib
import re

import nh3
from selectolax.lexbor import LexborHTMLParser

ELEMENTS = set(
    """p div span br hr b i u s em strong small mark code kbd samp var pre sub sup ul ol li dl dt dd
    details summary figure figcaption table caption colgroup col thead tbody tfoot tr th td
    svg g title desc rect circle ellipse line polyline polygon path text tspan
    """.split()
)
ATTRIBUTES = set(
    """id style width height title open role aria-label aria-hidden scope rowspan colspan span
    xmlns viewBox x y x1 x2 y1 y2 cx cy r rx ry dx dy d points transform opacity
    fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-dasharray
    stroke-linecap stroke-linejoin font-family font-size font-weight font-style
    text-anchor dominant-baseline
    """.split()
)
STYLES = set(
    """margin padding border background color opacity width max-width min-width text-align
    vertical-align border-collapse border-spacing table-layout font-family font-size font-weight
    font-style line-height text-decoration white-space overflow-wrap overflow-x display gap
    grid-template-columns align-items
    """.split()
)
PREFIX = re.compile(r"^out-[0-9a-f]{10}-")
BEGINNING = re.compile(r"<pre\b[^>]*>(?=\n)")
PREFIXED = re.compile(r'(?<= id=")out-[0-9a-f]{10}-')


class Refused(Exception):
    """An output is of a kind that is not accepted from elsewhere; the message says why."""


def cleaned(html: str) -> str:
    """Return HTML of the elements, attributes and styles above, and nothing else.

    Its ids get a prefix of their own. What was cleaned once is returned as it is.
    """
    found = _filtered(html, "")
    return _filtered(found, f"out-{hashlib.sha256(found.encode()).hexdigest()[:10]}-")


def placed(html: str, place: str) -> str:
    """Return cleaned HTML with ids that no other place of a page has."""
    return PREFIXED.sub(rf"\g<0>{place}-", html)


def lost(html: str) -> list[str]:
    """Return the elements, attributes and styles that cleaning takes away, in words."""
    return sorted(_parts(html) - _parts(cleaned(html)))


def _filtered(html: str, prefix: str) -> str:
    def kept(tag: str, name: str, value: str) -> str | None:
        if name == "id":
            return prefix + PREFIX.sub("", value)
        if name == "style":
            styles = _styles(value).items()
            return ";".join(f"{key}:{text}" for key, text in styles if key in STYLES) or None
        return value

    # nh3's own filter of styles empties functions within functions, as in repeat(2, minmax(…)).
    found = nh3.clean(html, tags=ELEMENTS, attributes={"*": ATTRIBUTES}, attribute_filter=kept)
    # A parser drops the line break that a <pre> begins with.
    return BEGINNING.sub(r"\g<0>\n", found)


def _styles(value: str) -> dict[str, str]:
    parts = (part.partition(":") for part in value.split(";") if part.strip())
    return {name.strip().lower(): text.strip() for name, _, text in parts}


def _parts(html: str) -> set[str]:
    found = set()
    for node in LexborHTMLParser(html).css("*"):
        found.add(f"<{node.tag}>")
        for name, value in node.attributes.items():
            found.add(f"the attribute {name} of <{node.tag}>")
            if name == "style":
                found |= {f"the style {key} of <{node.tag}>" for key in _styles(value or "")}
    return found
