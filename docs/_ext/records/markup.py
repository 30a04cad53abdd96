"""Markup from elsewhere: it can draw within its own box, and do nothing else."""

import collections
import functools
import hashlib
import re
import xml.etree.ElementTree
from collections.abc import Callable

import nh3
import tinycss2
from selectolax.lexbor import LexborHTMLParser

DRAWING = set(
    """svg g rect circle ellipse line polyline polygon path text tspan title desc defs marker
    use symbol image clipPath mask pattern linearGradient radialGradient stop
    """.split()
)
TEXT = set(
    """p div span br hr b i u s em strong small mark code kbd samp var pre sub sup ul ol li dl dt dd
    details summary figure figcaption table caption colgroup col thead tbody tfoot tr th td
    """.split()
)
ATTRIBUTES = set(
    """id class style width height viewBox xmlns xlink version role title open
    aria-label aria-labelledby aria-describedby aria-hidden
    border align valign span rowspan colspan scope
    x y x1 x2 y1 y2 cx cy r rx ry fx fy d dx dy points transform preserveAspectRatio opacity href
    fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-dasharray
    stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit vector-effect paint-order
    font-family font-size font-weight font-style font-stretch font-variant text-anchor
    dominant-baseline alignment-baseline baseline-shift textLength lengthAdjust space
    marker-end marker-mid marker-start markerWidth markerHeight markerUnits refX refY orient
    clip-path clip-rule clipPathUnits mask maskUnits maskContentUnits image-rendering
    shape-rendering pattern patternUnits patternContentUnits patternTransform
    gradientUnits gradientTransform spreadMethod offset stop-color stop-opacity color
    """.split()
)
# Attributes that may go: without them the same is shown.
SILENT = set("id type lang base baseprofile version enable-background scoped name".split())
# The classes that libraries give to what they display, and that no page uses for its own parts.
CLASSES = {"dataframe"}
COLOURS = set(
    """color background-color border-color text-decoration-color fill stroke stop-color
    """.split()
)
SIDES = [f"-{side}" for side in ("top", "right", "bottom", "left")]
BOXES = {f"{box}{side}" for box in ("margin", "padding") for side in ["", *SIDES]}
STYLES = {
    *COLOURS,
    *BOXES,
    *(f"border{part}" for part in ["", *SIDES]),
    *"""background width max-width min-width text-align vertical-align border-collapse
    border-spacing border-width border-style border-radius table-layout font font-weight font-size
    font-family font-style font-variant font-stretch line-height text-decoration
    text-decoration-line text-decoration-style white-space overflow-wrap word-break tab-size
    display overflow-x opacity box-sizing list-style list-style-type gap row-gap column-gap
    grid-template-columns align-items justify-content justify-items flex flex-wrap flex-direction
    fill-opacity fill-rule stroke-width stroke-opacity stroke-dasharray stroke-dashoffset
    stroke-linecap stroke-linejoin stroke-miterlimit text-anchor dominant-baseline
    stop-opacity clip-path clip-rule mask marker marker-start marker-mid marker-end image-rendering
    shape-rendering paint-order vector-effect
    """.split(),
}
DISPLAYS = set(
    "block inline inline-block flex inline-flex grid inline-grid table table-row table-cell".split()
)
FUNCTIONS = set("rgb rgba hsl hsla repeat minmax fit-content".split())
# Lengths in pixels; those of the window are no lengths here.
PIXELS = {"px": 1, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 37.8, "mm": 3.78, "q": 0.95}
PIXELS |= dict.fromkeys(("em", "rem", "ic", "lh"), 16) | dict.fromkeys(("ex", "ch"), 8)
# The smallest and largest number and length, where they are not 0 and LARGEST.
LARGEST = 2000
LIMITS = {
    "font-size": (6, 48),
    "font": (6, 48),
    "line-height": (1, 48),
    "stroke-dashoffset": (-LARGEST, LARGEST),
    **dict.fromkeys([*BOXES, "gap", "row-gap", "column-gap", "border-spacing"], (0, 100)),
    **{name: (0, 20) for name in STYLES if name.startswith("border") and name != "border-spacing"},
    **dict.fromkeys(("min-width", "grid-template-columns"), (0, 600)),
    "vertical-align": (0, 0),
}
NUMBERS = ("number", "dimension", "percentage")
NAME = r"[\w.:-]+"
USE = re.compile(rf"^#({NAME})$|url\(#({NAME})\)")
LOCAL = re.compile(rf"url\(\s*[\"']?#({NAME})[\"']?\s*\)")
PREFIX = re.compile(r"^out-[0-9a-f]{10}-")
# An id, or what refers to one.
PREFIXED = re.compile(r"(?<=[\"'#\s])" + PREFIX.pattern.lstrip("^"))
PICTURE = re.compile(r"data:image/(?:png|jpeg);base64,[\w+/=\s]*")
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)(?:[^\"'>]|\"[^\"]*\"|'[^']*')*+>")
BEGINNING = re.compile(r"<pre(?=[\s>])(?:[^\"'>]|\"[^\"]*\")*+>(?=\n)")
VOID = set("area base br col embed hr img input link meta param source track wbr".split())
# Elements that a browser opens once more wherever they were not closed in their place.
REOPENED = set("a b big code em font i nobr s small strike strong tt u".split())
IMPLIED = set("p li dt dd tr td th thead tbody tfoot colgroup option".split())
DEEPEST = 200
MOST_REOPENED = 10
MOST_DRAWN = 200_000
STYLE_ELEMENT = re.compile(r"<style\b[^>]*>(.*?)</style\s*>", re.DOTALL | re.IGNORECASE)
NOSCRIPT = re.compile(r"(</?)noscript\b", re.IGNORECASE)
METADATA = re.compile(r"<metadata\b.*?</metadata\s*>", re.DOTALL | re.IGNORECASE)
XLINK = "http://www.w3.org/1999/xlink"


class Refused(Exception):
    """An output is of a kind that is not accepted from elsewhere; the message says why."""


def cleaned(markup: str, tags: set[str]) -> str:
    """Return markup of these elements that can neither run, load, nor leave its place.

    Its ids get a prefix of their own. What was cleaned once is returned as it is.
    """
    _bounded(markup)
    used: set[str] = set()

    def plain(name: str) -> str:
        used.add(name)
        return PREFIX.sub("", name)

    found = _filtered(_without_styles(markup), tags, plain)
    if used:
        prefix = f"out-{hashlib.sha256(found.encode('utf8', 'replace')).hexdigest()[:10]}-"
        found = _filtered(found, tags, lambda name: prefix + name)
        _check_uses(found)
    return found


def placed(markup: str, place: str) -> str:
    """Return cleaned markup with ids that no other place of a page has."""
    return TAG.sub(lambda tag: PREFIXED.sub(rf"\g<0>{place}-", tag[0]), markup)


def lost(markup: str, tags: set[str]) -> str | None:
    """Say what cleaning would change that readers see; None where it changes nothing."""
    _bounded(markup)
    before = _effects(_without_styles(markup))
    gone = before - _effects(cleaned(markup, tags))
    return next(iter(gone), None)


def check_drawing(markup: str) -> None:
    """Raise Refused for a drawing that no browser would show as an image."""
    try:
        root = xml.etree.ElementTree.fromstring(markup)
    except (xml.etree.ElementTree.ParseError, ValueError) as error:
        raise Refused(f"holds a drawing that is no XML ({error})") from None
    if root.tag != "{http://www.w3.org/2000/svg}svg":
        raise Refused("holds a drawing that does not begin with an svg of xmlns=…/2000/svg")


def stays_within(markup: str) -> bool:
    """Say whether markup closes what it opens, and nothing else: if not, it changes its page."""
    # Where scripts run, its content is text, as that of the other is everywhere.
    shown = NOSCRIPT.sub(r"\g<1>noframes", markup)
    around = f'<body><div id="outer">{shown}\n<i id="end"></i></div><i id="after"></i>'
    tree = LexborHTMLParser(around)
    return bool(tree.css_first("#outer #end") and tree.css_first("body > #after"))


def _bounded(markup: str) -> None:
    """Raise Refused for elements that are nested so that they take minutes, or gigabytes, to read.

    What is closed out of turn is taken to stay open.
    """
    opened: list[str] = []
    reopened, position = 0, 0
    while (position := markup.find("<", position)) >= 0:
        found = TAG.match(markup, position)
        position += 1
        if found is None:
            if markup[position : position + 1].isalpha():
                # The rest is a tag without an end.
                break
            continue
        position = found.end()
        name = found[2].lower()
        if not found[1]:
            if name not in VOID and not (found[0].endswith("/>") and "svg" in opened):
                opened.append(name)
        elif name in opened:
            while opened[-1] != name and opened[-1] in IMPLIED and name not in REOPENED:
                opened.pop()
            if opened[-1] == name:
                opened.pop()
            else:
                reopened += sum(part in REOPENED for part in opened)
        if len(opened) > DEEPEST or reopened > MOST_REOPENED:
            raise Refused(
                f"holds more than {DEEPEST} elements within each other, or elements that are "
                "not closed in turn"
            )


def _without_styles(markup: str) -> str:
    """Return the markup without what describes it, and with styles where they belong.

    Matplotlib gives all lines of a drawing their ends in a style sheet, which would hold for the
    page; the drawing itself can hand them on. Of pandas' tables the page has styles of its own.
    """
    markup = METADATA.sub("", markup)
    for found in list(STYLE_ELEMENT.finditer(markup)):
        rules = tinycss2.parse_stylesheet(found[1], skip_comments=True, skip_whitespace=True)
        if not all(rule.type == "qualified-rule" for rule in rules):
            continue
        selectors = [tinycss2.serialize(rule.prelude).strip() for rule in rules]
        if all(name.startswith(".dataframe ") for name in selectors):
            markup = markup.replace(found[0], "", 1)
        elif selectors == ["*"]:
            content = tinycss2.serialize(rules[0].content).strip()
            names = {part.partition(":")[0].strip() for part in content.split(";") if part.strip()}
            start = re.search(r"<svg\b(?![^>]*\sstyle=)", markup)
            if start and names <= {"stroke-linejoin", "stroke-linecap"} and '"' not in content:
                markup = markup.replace(found[0], "", 1)
                markup = f'{markup[: start.end()]} style="{content}"{markup[start.end() :]}'
    return markup


def _filtered(markup: str, tags: set[str], rename: Callable[[str], str]) -> str:
    def kept(tag: str, name: str, value: str) -> str | None:
        return _value(tag.lower(), name, value, rename)

    found = nh3.clean(
        markup,
        tags=tags,
        attributes={"*": ATTRIBUTES},
        attribute_filter=kept,
        url_schemes={"data", "http"},
        strip_comments=True,
    )
    # A browser drops the line break that a <pre> begins with.
    found = BEGINNING.sub(r"\g<0>\n", found)
    # XML knows no such name.
    return found.replace("&nbsp;", "&#160;")


def _value(tag: str, name: str, value: str, rename: Callable[[str], str]) -> str | None:
    """Return the value of an attribute as it may stand; None where it may not."""
    if name == "class":
        return " ".join(word for word in value.split() if word in CLASSES) or None
    if name == "style":
        return _style(value, rename) or None
    if name == "id":
        return rename(value) if re.fullmatch(NAME, value) else None
    if name in ("aria-labelledby", "aria-describedby"):
        return " ".join(rename(word) for word in value.split() if re.fullmatch(NAME, word)) or None
    if name == "href":
        if found := re.fullmatch(rf"#({NAME})", value):
            return f"#{rename(found[1])}"
        return value if tag == "image" and PICTURE.fullmatch(value) else None
    if name == "xlink":
        return value if value == XLINK else None
    if name in ("width", "height", "border", "rowspan", "colspan", "span"):
        token = tinycss2.parse_one_component_value(value)
        return value if token.type in NUMBERS and _within_limits(name, token) else None
    if name == "transform" and tag == "svg":
        # It would move the drawing as a whole.
        return None
    # A backslash can hide a word.
    if "\\" in value or "url(" in LOCAL.sub("", value).lower():
        return None
    return LOCAL.sub(lambda found: f"url(#{rename(found[1])})", value)


def _style(value: str, rename: Callable[[str], str]) -> str:
    """Return the declarations of a style that stay within the place of the element."""
    kept = []
    for found in tinycss2.parse_declaration_list(value, skip_comments=True, skip_whitespace=True):
        if found.type != "declaration" or found.important or found.lower_name not in STYLES:
            continue
        if all(_harmless(found.lower_name, token) for token in found.value):
            text = tinycss2.serialize(found.value).strip()
            text = LOCAL.sub(lambda local: f"url(#{rename(local[1])})", text)
            kept.append(f"{found.lower_name}:{text}")
    return ";".join(kept)


def _harmless(name: str, token: tinycss2.ast.Node) -> bool:
    """Whether a token may stand in the value of a property."""
    if token.type == "url" or (token.type == "function" and token.lower_name == "url"):
        return bool(LOCAL.fullmatch(token.serialize()))
    if token.type == "function":
        known = FUNCTIONS | {"var"} if name in COLOURS else FUNCTIONS
        return token.lower_name in known and all(_harmless(name, part) for part in token.arguments)
    if token.type in NUMBERS:
        return _within_limits(name, token)
    if token.type == "literal":
        return token.value in (",", "/")
    if token.type == "ident" and name == "display":
        return token.lower_value in DISPLAYS
    return token.type in ("ident", "hash", "string", "whitespace", "comment")


def _within_limits(name: str, token: tinycss2.ast.Node) -> bool:
    smallest, largest = LIMITS.get(name, (0, LARGEST))
    amount = token.value
    if token.type == "percentage":
        if name in ("font", "font-size", "line-height"):
            return 50 <= amount <= 300
        return 0 <= amount <= (25 if name in BOXES else 100)
    if token.type == "number" and name == "font":
        # The height of lines; a size without a unit can be 0 alone.
        return 1 <= amount <= largest
    if token.type == "number" and name == "grid-template-columns":
        return 0 <= amount <= 24
    if token.type == "dimension":
        if token.lower_unit in ("fr", "deg"):
            return 0 <= amount <= LARGEST
        if token.lower_unit not in PIXELS:
            return False
        amount *= PIXELS[token.lower_unit]
        if name == "line-height":
            smallest = 12
    return smallest <= amount <= largest


def _effects(markup: str) -> collections.Counter[str]:
    """Count what readers may see of markup, in words: elements, attributes, classes, styles."""
    found: collections.Counter[str] = collections.Counter()
    root = LexborHTMLParser(markup).root
    for node in root.traverse() if root else ():
        tag = node.tag or ""
        if tag in ("html", "head", "body") or tag.startswith(("-", "_", "!")):
            continue
        found[f"the element <{tag}>"] += 1
        for name, value in node.attributes.items():
            local, value = name.lower().rpartition(":")[2], value or ""
            if name.startswith(("xmlns", "data-")) or local in SILENT:
                continue
            if local == "class":
                found.update(f"the class '{word}' of <{tag}>" for word in value.split())
            elif local == "style":
                parts = tinycss2.parse_declaration_list(value, True, True)
                found.update(
                    f"the style '{part.lower_name}: {tinycss2.serialize(part.value).strip()[:80]}'"
                    f" of <{tag}>"
                    if not LOCAL.search(value)
                    else f"the style '{part.lower_name}' of <{tag}>"
                    for part in parts
                    if part.type == "declaration"
                )
            else:
                found[f"the attribute '{local}' of <{tag}>"] += 1
    return found


def _check_uses(markup: str) -> None:
    """Raise Refused where the parts of a drawing that use each other are too many, or a circle."""
    tree = LexborHTMLParser(markup)
    named = {node.attributes["id"]: node for node in tree.css("[id]")}

    @functools.cache
    def drawn(name: str) -> int:
        """Count the parts of an element and of all that it uses; of the whole where it has none."""
        node = named.get(name) if name else tree.root
        total = 0
        for part in node.traverse() if node else ():
            total += 1
            for value in part.attributes.values():
                for found in USE.finditer(value or ""):
                    total += drawn(found[1] or found[2])
        if total > MOST_DRAWN:
            raise Refused(f"holds a drawing of more than {MOST_DRAWN} parts")
        return total

    try:
        drawn("")
    except RecursionError:
        problem = "holds a drawing whose parts use each other in a circle, or too deeply"
        raise Refused(problem) from None
