"""The measurements of the whole book, out of what its pages gave; published with the site."""

import fnmatch
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from executed.book import Book, book_of
from executed.nodes import raw
from executed.status import add_notice
from executed.waiting import FillIn

from .feature import NAME, PageMeasurements
from .references import Measurements
from .schema import Earlier, Measurement

PREVIEW = (
    '<p class="device-notice">A first look: no recording is of the code that this page measures, '
    "so each number is of one call. It may be far off.</p>"
)
# The framework of what none took part in.
PLAIN = "python"
logger = logging.getLogger(__name__)


def measurements(env: BuildEnvironment) -> list[Measurement]:
    """Return the measurements of the whole book, in the order of pages and cells."""
    return book_of(env).once(_measurements)


def _measurements(book: Book) -> list[Measurement]:
    concluded: Mapping[str, PageMeasurements] = book.concluded(NAME)
    return [measurement for page in concluded.values() for measurement in page.measurements]


def matching(env: BuildEnvironment, patterns: Iterable[str]) -> list[Measurement]:
    """Return the measurements whose names match one of the patterns."""
    patterns = list(patterns)
    return [
        measurement
        for measurement in measurements(env)
        if any(fnmatch.fnmatchcase(measurement.name, pattern) for pattern in patterns)
    ]


def known_on(page: FillIn) -> Measurements:
    """Return what a page may name: all that was measured on any device."""
    return book_of(page.env).once(known)


def known(book: Book) -> Measurements:
    """Return what pages may name, of a book whose pages are all read."""
    by_name: dict[tuple[str, str], dict[str, Measurement]] = {}
    for measurement in sorted(book.once(_measurements), key=lambda each: each.device != book.home):
        devices_of = by_name.setdefault((measurement.name, measurement.framework), {})
        devices_of[measurement.device] = measurement
    recorded = (device for page in book.pages.values() for device in page.outcome.states)
    devices = dict.fromkeys((book.home, *book.options.devices, *recorded))
    frameworks = dict.fromkeys((*book.options.frameworks, *(name for _, name in by_name)))
    frameworks[PLAIN] = None
    concluded: Mapping[str, PageMeasurements] = book.concluded(NAME)
    return Measurements(
        by_name,
        book.home,
        tuple(devices),
        tuple(frameworks),
        book.partial,
        frozenset(each for page in concluded.values() for each in page.outdated),
    )


def data_node(class_: str, data: dict[str, Any]) -> nodes.Node:
    """Return data as a script of the page finds them."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return raw(f'<script type="application/json" class="{class_}">{text}</script>')


def report_duplicates(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each name that several measurements bear: a reference would be ambiguous."""
    first: dict[tuple[str, str], Measurement] = {}
    twice: dict[str, tuple[Measurement, Measurement]] = {}
    for measurement in measurements(env):
        former = first.setdefault((measurement.reference, measurement.device), measurement)
        if former is not measurement:
            twice[measurement.reference] = former, measurement
    for reference, (former, measurement) in twice.items():
        where = "this page twice" if former.page == measurement.page else f"{former.page} too"
        message = f"the measurement {reference} is made on {where}; give one of them another name"
        logger.warning(message, location=measurement.page, type="book", subtype="measured")


class SayPreview(SphinxPostTransform):
    """Say above a page that what it measures is only a first look, where no recording lends it."""

    default_priority = 910
    formats = ("html",)

    def run(self, **options: Any) -> None:
        """Change one page."""
        book = book_of(self.env)
        page = book.pages.get(self.env.docname)
        concluded: PageMeasurements | None = page.outcome.concluded(NAME) if page else None
        if concluded and any(each.earlier is Earlier.LOOK for each in concluded.measurements):
            add_notice(self.document, PREVIEW)


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Write all records of the book to `measurements.json` in the built site, one on a line."""
    if exception or app.builder.format != "html":
        return
    records = (measurement.plain() for measurement in measurements(app.env))
    lines = [json.dumps(each, sort_keys=True, ensure_ascii=False) for each in records]
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    pathlib.Path(app.outdir, "measurements.json").write_text(text, "utf8")


def setup(app: Sphinx) -> None:
    """Register the events and the notice."""
    app.connect("env-updated", report_duplicates)
    app.connect("build-finished", publish)
    app.add_post_transform(SayPreview)
