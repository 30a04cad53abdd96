"""Outputs that go to other machines or come from them: cleaned when written, checked when read."""

import base64
import binascii
import copy
import getpass
import json
import pathlib
import re
import socket

import nbformat
import nh3

from ..measurements.schema import Schema
from .outputs import NATIVE_LOG, record, scrubbed

LARGEST_OUTPUT = 400_000
DRAWING = set(
    """svg g rect circle ellipse line polyline polygon path text tspan title desc defs marker
    """.split()
)
TEXT = set(
    """p div span br b i em strong code pre sub sup ul ol li details summary figure figcaption
    table caption thead tbody tfoot tr th td
    """.split()
)
ATTRIBUTES = set(
    """class style width height viewBox xmlns role aria-label aria-labelledby rowspan colspan scope
    x y x1 x2 y1 y2 cx cy r rx ry d dx dy points transform preserveAspectRatio opacity
    fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-dasharray stroke-linecap
    stroke-linejoin font-family font-size font-weight font-style text-anchor dominant-baseline
    alignment-baseline marker-end marker-start markerWidth markerHeight refX refY orient
    """.split()
)
STYLES = set(
    """color background-color width max-width min-width height text-align vertical-align padding
    margin border border-collapse border-spacing table-layout font-weight font-size font-family
    font-style white-space display overflow-x opacity fill stroke
    """.split()
)


class Refused(Exception):
    """An output is of a kind that is not accepted from elsewhere."""


def recordable(outputs, schema: Schema | None = None):
    """Return the outputs as they are recorded: cleaned, and without what says nothing.

    Names of this machine and of who used it are taken out too. What is not
    accepted from elsewhere raises Refused here already.
    """
    names = _own_names()
    kept = []
    for output in copy.deepcopy(outputs):
        if output.output_type == "stream":
            text = NATIVE_LOG.sub("", output.text) if output.name == "stderr" else output.text
            if kept and kept[-1].output_type == "stream" and kept[-1].name == output.name:
                kept[-1]["text"] += text
                continue
            output["text"] = text
        kept.append(output)
    cleaned = []
    for output in kept:
        if output.output_type == "stream" and not output.text:
            continue
        plain = json.loads(json.dumps(output), object_hook=lambda found: _cleaned(found, names))
        if plain["output_type"] == "execute_result":
            plain["execution_count"] = None
        cleaned.append(accepted(nbformat.from_dict(plain), schema))
    return cleaned


def _own_names():
    """Return what this machine and its user are called, with what is said instead."""
    host = socket.gethostname()
    names = {str(pathlib.Path.home()): "~", host: "host", host.partition(".")[0]: "host"}
    try:
        names[getpass.getuser()] = "user"
    except (KeyError, OSError):
        pass
    # These name nobody.
    common = {"root", "/root", "localhost"}
    return {name: word for name, word in names.items() if len(name) > 1 and name not in common}


def _cleaned(found, names):
    """Scrub the texts of one level of an output."""
    for key, value in found.items():
        lines = value if isinstance(value, list) else [value]
        if key in ("output_type", "name") or not all(isinstance(line, str) for line in lines):
            continue
        lines = [_without(names, scrubbed(line)) for line in lines]
        found[key] = lines if isinstance(value, list) else lines[0]
    return found


def _without(names, text):
    for name, instead in names.items():
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", instead, text)
    return text


def accepted(output, schema: Schema | None = None):
    """Return an output from elsewhere fit to be shown; raises Refused for what is not known.

    What is no measurement by the schema is refused too; without one, so are all records.
    """
    try:
        size = len(json.dumps(output, allow_nan=False))
    except ValueError:
        raise Refused("holds a number that is none") from None
    if size > LARGEST_OUTPUT:
        raise Refused(f"is larger than {LARGEST_OUTPUT} characters")
    if output.output_type not in ("stream", "error", "display_data", "execute_result"):
        raise Refused(f"is of the unknown type {output.output_type}")
    if output.output_type == "stream" and output.name not in ("stdout", "stderr"):
        raise Refused(f"is of the unknown stream {output.name}")
    if "metadata" in output:
        output["metadata"] = {}
    measured = record(output, schema)
    if measured is not None:
        if problem := schema.problem(measured):
            raise Refused(f"holds a measurement that is none ({problem})")
        if "text/plain" not in output["data"]:
            raise Refused("holds a measurement without its text")
    for kind, value in output.get("data", {}).items():
        if measured is not None and kind == schema.media_type:
            continue
        if kind not in CHECKS:
            raise Refused(f"holds {kind}, which is not accepted")
        output["data"][kind] = CHECKS[kind](value)
    return output


def _text(value):
    if not isinstance(value, str):
        raise Refused("holds a text that is none")
    return value


def _png(value):
    try:
        start = base64.b64decode(_text(value), validate=False)[:8]
    except binascii.Error:
        start = b""
    if start != b"\x89PNG\r\n\x1a\n":
        raise Refused("holds a PNG image that is none")
    return value


def _markup(tags):
    def sanitised(value):
        return nh3.clean(
            _text(value),
            tags=tags,
            attributes={"*": ATTRIBUTES},
            attribute_filter=lambda tag, name, value: None if _points_away(value) else value,
            filter_style_properties=STYLES,
            strip_comments=True,
        )

    return sanitised


def _points_away(value):
    """Whether an attribute names anything outside the page, as `url(...)` does."""
    inside = re.fullmatch(r"\s*url\(#[\w-]+\)\s*", value)
    # In a style a backslash can hide the word.
    return not inside and ("\\" in value or "url(" in value.lower())


CHECKS = {
    "text/plain": _text,
    "text/html": _markup(TEXT | DRAWING),
    "image/svg+xml": _markup(DRAWING),
    "image/png": _png,
}
