"""What a browser asks for by itself when it shows a page: found in HTML, CSS, SVG and scripts."""

import base64
import json
import re
import urllib.parse
import xml.etree.ElementTree
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import tinycss2
import tree_sitter
import tree_sitter_javascript
from selectolax.lexbor import LexborHTMLParser


class Request(NamedTuple):
    """An address that is loaded, and by what, such as `<img src>`.

    `relative` is False where it is not known against what the address is resolved, as in a
    script: then it is of interest only if it names a host.
    """

    address: str
    by: str
    relative: bool = True


# Attributes whose value is loaded, by element; those of SVG can have any prefix.
SOURCES = {
    **dict.fromkeys(
        "audio bgsound embed fencedframe frame iframe portal script track".split(), ("src",)
    ),
    **dict.fromkeys(("img", "source"), ("src", "srcset")),
    "video": ("src", "poster"),
    "object": ("data", "codebase", "archive"),
    "html": ("manifest",),
    **dict.fromkeys(("a", "area"), ("ping",)),
    **dict.fromkeys("body table thead tbody tfoot tr td th".split(), ("background",)),
    **dict.fromkeys(
        "use image feimage mpath textpath lineargradient radialgradient pattern filter".split(),
        ("href",),
    ),
}
SOURCES["script"] = ("src", "href")
# Relations of a link that nothing is loaded for; all others are taken to load.
LINKED = set(
    """alternate author bookmark canonical contents copyright external first glossary help index
    last license me next nofollow noopener noreferrer pingback prev privacy-policy search section
    shortlink start subsection tag terms-of-service top up
    """.split()
)
PRESENTATION = "fill stroke filter mask clip-path cursor marker-start marker-mid marker-end".split()
SELECTED = ", ".join(
    [*SOURCES, *"link base meta style template input animate set feImage".split()]
    + ["linearGradient", "radialGradient", "textPath", "[style]", "[srcdoc]"]
    + [f'[{name}*="url" i], [{name}*="\\\\"]' for name in PRESENTATION]
)
HANDLER = re.compile(rb"[\s/\"'](on[a-z]+)\s*=", re.IGNORECASE)
CANDIDATE = re.compile(r"[\s,]*(\S*[^\s,])(?:,|\s[^,(]*(?:\([^)]*\)[^,(]*)*(?:,|$)|$)?")
REFRESH = re.compile(r"^[\s\d.]*[;,\s]\s*(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE)
PROGRAM = re.compile(r"(?:module|(?:text|application)/(?:x-)?(?:java|ecma|j)script\S*)?")
STYLED = re.compile(r"url|import|image|src|\\", re.IGNORECASE)


def in_page(text: str | bytes) -> Iterator[Request]:
    """Return what a page in HTML loads, with what is nested in it, in any order."""
    raw = text.encode("utf8", "replace") if isinstance(text, str) else text
    handlers = {name.decode().lower() for name in HANDLER.findall(raw)}
    selected = ", ".join([SELECTED, *(f"[{name}]" for name in sorted(handlers))])
    for node in LexborHTMLParser(raw).css(selected):
        attributes = {name: value or "" for name, value in node.attributes.items()}
        inside = ""
        if node.tag in ("style", "script"):
            inside = node.text().removeprefix("<![CDATA[").removesuffix("]]>")
        elif node.tag == "template":
            # What it holds is no part of the tree.
            yield from in_page((node.html or "").partition(">")[2].removesuffix("</template>"))
        yield from _of_element(node.tag or "", attributes, inside)


def base_of(text: bytes) -> str:
    """Return the address that the relative ones of a page are resolved against, or ''."""
    if b"<base" not in text.lower():
        return ""
    found = LexborHTMLParser(text).css_first("base[href]")
    return (found.attributes["href"] or "") if found else ""


def in_drawing(text: bytes) -> Iterator[Request]:
    """Return what a file in SVG loads."""
    for found in re.finditer(rb"<\?xml-stylesheet[^>]*?href\s*=\s*[\"']([^\"']+)", text):
        yield Request(found[1].decode("utf8", "replace"), "<?xml-stylesheet?>")
    try:
        elements = xml.etree.ElementTree.fromstring(text).iter()
    except (xml.etree.ElementTree.ParseError, ValueError, LookupError):
        yield from in_page(text)
        return
    for element in elements:
        if isinstance(element.tag, str):
            attributes = {name.rpartition("}")[2]: text for name, text in element.items()}
            inside = "".join(element.itertext())
            yield from _of_element(element.tag.rpartition("}")[2], attributes, inside)


def _of_element(tag: str, attributes: dict[str, str], inside: str) -> Iterator[Request]:
    """Return what one element loads."""
    tag = tag.rpartition(":")[2].lower()
    names = {name.rpartition(":")[2].lower(): value for name, value in attributes.items()}
    for name in SOURCES.get(tag, ()):
        if name in names:
            yield from _listed(f"<{tag} {name}>", name, names[name])
    if tag == "input" and names.get("type", "").lower() == "image" and "src" in names:
        yield from _listed("<input src>", "src", names["src"])
    elif tag == "link" and set(names.get("rel", "").lower().split()) - LINKED:
        for name in {"href", "imagesrcset"} & names.keys():
            yield from _listed(f"<link {name}>", name, names[name])
    elif tag == "base" and "href" in names:
        yield Request(names["href"], "<base href>", False)
    elif tag == "meta" and names.get("http-equiv", "").strip().lower() == "refresh":
        if found := REFRESH.match(names.get("content", "")):
            yield Request(found[1], "<meta http-equiv=refresh>")
    elif tag in ("animate", "set") and names.get("attributename", "").endswith("href"):
        for name in ("from", "to", "by", "values"):
            for address in names.get(name, "").split(";"):
                yield Request(address, f"<{tag} {name}>")
    elif tag == "style":
        yield from _within("<style>", in_style(inside))
    elif tag == "script":
        yield from _within("<script>", _of_script(names.get("type", ""), inside))
    if "srcdoc" in names:
        yield from _within("<iframe srcdoc>", in_page(names["srcdoc"]))
    for name, value in names.items():
        if name == "style" or name in PRESENTATION:
            yield from _within(f"<{tag} {name}>", in_style(value))
        elif name.startswith("on"):
            yield from _within(f"<{tag} {name}>", in_script(value))


def _listed(by: str, name: str, value: str) -> Iterator[Request]:
    """Return the addresses in the value of an attribute, some of which hold several."""
    if name.endswith("srcset"):
        for found in CANDIDATE.finditer(value):
            yield from _loaded(by, found[1])
    elif name in ("archive", "ping"):
        for address in value.split():
            yield from _loaded(by, address)
    else:
        yield from _loaded(by, value)


def _loaded(by: str, address: str, relative: bool = True) -> Iterator[Request]:
    """Return an address, and what is loaded by the text that it may hold."""
    kind, data = _data(address)
    if kind is None:
        yield Request(address, by, relative)
    elif "css" in kind:
        yield from _within(by, in_style(data))
    elif "script" in kind:
        yield from _within(by, in_script(data))
    elif "html" in kind or "xml" in kind:
        yield from _within(by, in_drawing(data.encode("utf8", "replace")))


def _data(address: str) -> tuple[str | None, str]:
    """Return the kind and the text of an address that holds a text, else None."""
    address = re.sub(r"[\t\n\r]", "", address).strip()
    scheme, _, rest = address.partition(":")
    if scheme.lower() == "javascript":
        return "script", urllib.parse.unquote(rest)
    if scheme.lower() != "data":
        return None, ""
    head, _, body = rest.partition(",")
    if not re.search("css|script|ml", head, re.IGNORECASE):
        return "other", ""
    raw = urllib.parse.unquote_to_bytes(body)
    if head.rpartition(";")[2].strip().lower() == "base64":
        try:
            raw = base64.b64decode(raw + b"==")
        except ValueError:
            raw = b""
    return head.lower(), raw.decode("utf8", "replace")


def _within(by: str, found: Iterable[Request]) -> Iterator[Request]:
    for request in found:
        yield request._replace(by=f"{by} {request.by}".strip())


def in_style(text: str | bytes) -> Iterator[Request]:
    """Return what a style sheet, or the style of one element, loads."""
    if isinstance(text, bytes):
        text = text.decode("utf8", "replace")
    if STYLED.search(text):
        yield from _of_tokens(tinycss2.parse_component_value_list(text, skip_comments=True))


def _of_tokens(tokens: list, strings: str = "") -> Iterator[Request]:
    """Return the addresses among the tokens of CSS.

    Strings are addresses where `strings` says what they stand in.
    """
    rule = ""
    for token in tokens:
        if token.type == "at-keyword":
            rule = token.lower_value
        elif token.type in ("string", "url"):
            # A namespace is a name, which is not loaded.
            if rule != "namespace" and (strings or token.type == "url" or rule == "import"):
                by = strings or ("@import" if rule == "import" else "url()")
                yield from _loaded(by, token.value)
            if rule == "import":
                rule = "imported"
        elif token.type == "function":
            name = token.lower_name
            if name in ("url", "src") and rule != "namespace":
                by = "@import" if rule == "import" else f"{name}()"
                yield from _of_tokens(token.arguments, by)
            elif name.endswith("image-set") or name in ("image", "cross-fade"):
                yield from _of_tokens(token.arguments, f"{name}()")
            else:
                yield from _of_tokens(token.arguments)
        elif token.type in ("{} block", "[] block", "() block"):
            yield from _of_tokens(token.content)
            rule = ""
        elif token == ";":
            rule = ""


LANGUAGE = tree_sitter.Language(tree_sitter_javascript.language())
# Functions and classes that load the addresses they are given, and which argument it is.
CALLED = {
    **dict.fromkeys("fetch importScripts sendBeacon addModule getScript getJSON ajax".split(), 0),
    **dict.fromkeys("Worker SharedWorker WebSocket EventSource WebTransport".split(), 0),
    **dict.fromkeys("Request Audio".split(), 0),
    **dict.fromkeys("open FontFace setAttribute".split(), 1),
}
# Those that load only where they belong to a certain object.
CALLED_OF = {
    **dict.fromkeys(("assign", "replace"), "location"),
    "register": "serviceworker",
    "get": "axios",
}
MARKUP = set("innerHTML outerHTML srcdoc insertAdjacentHTML write writeln cssText".split())
ASSIGNED = {"src", "srcset", "poster", "data"}
# Of all else `data` is anything.
EMBEDDING = re.compile("obj|embed|^el|node", re.IGNORECASE)
NODES = tree_sitter.Query(
    LANGUAGE,
    "[(import_statement) (export_statement) (call_expression) (new_expression)"
    " (assignment_expression) (variable_declarator)] @found",
)
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]+)\}|(\n)|(.))")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def _of_script(kind: str, text: str) -> Iterator[Request]:
    """Return what a script element of a kind loads; what is only data loads nothing."""
    kind = kind.strip().lower()
    if PROGRAM.fullmatch(kind):
        yield from in_script(text)
    elif kind in ("importmap", "speculationrules"):
        try:
            waiting = [json.loads(text)]
        except ValueError:
            return
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                yield Request(value, kind, False)
            elif isinstance(value, (dict, list)):
                waiting += value.values() if isinstance(value, dict) else value


def in_script(text: str | bytes) -> Iterator[Request]:
    """Return the addresses that stand as they are in what a script loads."""
    source = text.encode("utf8", "replace") if isinstance(text, str) else text
    root = tree_sitter.Parser(LANGUAGE).parse(source).root_node
    found = tree_sitter.QueryCursor(NODES).captures(root).get("found", [])
    known: dict[str, str] = {}
    for node in found:
        if node.type == "variable_declarator":
            value = _constant(node.child_by_field_name("value"), known)
            if value is not None:
                known[_source(node.child_by_field_name("name"))] = value
    for node in found:
        if node.type in ("import_statement", "export_statement"):
            address = _constant(node.child_by_field_name("source"), known)
            if address is not None:
                by = node.type.partition("_")[0]
                yield Request(address, by, address.startswith(("./", "../", "/")))
        elif node.type == "assignment_expression":
            yield from _of_assignment(node, known)
        elif node.type != "variable_declarator":
            yield from _of_call(node, known)


def _source(node: tree_sitter.Node | None) -> str:
    return node.text.decode("utf8", "replace") if node is not None and node.text else ""


def _owned(node: tree_sitter.Node) -> tuple[str, str]:
    """Return the last two names of an expression such as `a.b.c`, '' where there is no name."""
    if node.type == "subscript_expression":
        return "()", _constant(node.child_by_field_name("index"), {}) or ""
    if node.type != "member_expression":
        return "", _source(node) if node.type in ("identifier", "import") else ""
    owner = node.child_by_field_name("object")
    if owner is not None and owner.type == "member_expression":
        owner = owner.child_by_field_name("property")
    # Of an expression without a name it is known that it is there.
    whose = _source(owner) if owner is not None and owner.type != "call_expression" else "()"
    return whose[:100], _source(node.child_by_field_name("property"))


def _of_call(node: tree_sitter.Node, known: dict[str, str]) -> Iterator[Request]:
    """Return what a call, or `new` with its arguments, loads."""
    called = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    arguments = node.child_by_field_name("arguments")
    if called is None or arguments is None:
        return
    owner, name = _owned(called)
    values = [_constant(argument, known) for argument in arguments.named_children]
    if name == "import" or name in CALLED:
        place = CALLED.get(name, 0)
        if name == "setAttribute" and (values or [None])[0] not in ASSIGNED:
            return
        if name == "FontFace" and len(values) > 1 and values[1]:
            yield from _within("FontFace", in_style(values[1]))
            return
        for value in values[place:] if name == "importScripts" else values[place : place + 1]:
            if value:
                yield from _loaded(f"{name}()", value, False)
    elif name in CALLED_OF and CALLED_OF[name] in owner.lower():
        if values and values[0]:
            yield Request(values[0], f"{owner}.{name}()", False)
    elif name in MARKUP:
        for value in values:
            yield from _within(f"{name}()", _of_text(value))


def _of_assignment(node: tree_sitter.Node, known: dict[str, str]) -> Iterator[Request]:
    """Return what is loaded because a property is set."""
    left = node.child_by_field_name("left")
    value = _constant(node.child_by_field_name("right"), known)
    if not value or left is None:
        return
    owner, name = _owned(left)
    if owner and name in ASSIGNED and (name != "data" or EMBEDDING.search(owner)):
        yield from _loaded(f".{name} =", value, False)
    elif name == "location" or (
        name == "href" and re.search("location|link|style|css", owner, re.IGNORECASE)
    ):
        yield from _loaded(f".{name} =", value, False)
    elif name in MARKUP or owner == "style":
        yield from _within(f".{name} =", _of_text(value))


def _of_text(value: str | None) -> Iterator[Request]:
    """Return what a text of a script loads once it is part of the page."""
    if value:
        found = in_page(value) if "<" in value else in_style(value)
        yield from (request._replace(relative=False) for request in found)


def _constant(node: tree_sitter.Node | None, known: dict[str, str]) -> str | None:
    """Return the text that an expression stands for, or how it begins; None if not known."""
    if node is None:
        return None
    if node.type in ("string", "template_string"):
        text = _source(node)[1:-1]
        return ESCAPE.sub(_unescaped, text.partition("${")[0] if node.type != "string" else text)
    if node.type == "identifier":
        return known.get(_source(node))
    if node.type == "parenthesized_expression" and node.named_children:
        return _constant(node.named_children[0], known)
    if node.type == "binary_expression" and _source(node.child_by_field_name("operator")) == "+":
        first = _constant(node.child_by_field_name("left"), known)
        if first is not None:
            return first + (_constant(node.child_by_field_name("right"), known) or "")
    if node.type == "new_expression" and _source(node.child_by_field_name("constructor")) == "URL":
        arguments = node.child_by_field_name("arguments")
        parts = [_constant(part, known) for part in arguments.named_children] if arguments else []
        return urllib.parse.urljoin(parts[1] or "", parts[0] or "") if parts[1:] else None
    return None


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    return "" if found[4] else ESCAPES.get(found[5], found[5])
