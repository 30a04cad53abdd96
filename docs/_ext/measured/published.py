"""The measurements of the whole book, out of the state of its pages; published with the site."""

import fnmatch
import json
import pathlib
import weakref
from collections.abc import Iterable
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.util import logging

from executed.app import BookApp, BookEnvironment
from executed.options import Options

from .references import Measurements
from .schema import Measurement, Schema, SchemaError

# The framework of what none took part in.
PLAIN = "python"
logger = logging.getLogger(__name__)


def configure(app: Sphinx, config: Config) -> None:
    """Read the schema of measurements; what it says is an option like others."""
    options = Options.from_values({"book_measurements": config.book_measurements}, app.confdir)
    try:
        found = Schema.of(options)
    except SchemaError as error:
        raise ConfigError(f"book_measurements of conf.py: {error}") from None
    config.book_measurement_rules = dict(found.rules) if found else None


def schema(config: Config) -> Schema | None:
    """Return the schema of measurements, if there is one."""
    return Schema(config.book_measurement_rules) if config.book_measurement_rules else None


def all_records(env: BookEnvironment) -> list[dict[str, Any]]:
    """Return the records of the whole book, in the order of pages and cells."""
    return [
        record for docname in sorted(env.book_pages) for record in env.book_pages[docname].records
    ]


# What was made of the records of an environment, for as long as they are the same ones.
_MADE: weakref.WeakKeyDictionary[BookEnvironment, list[tuple[dict[str, Any], Measurement]]] = (
    weakref.WeakKeyDictionary()
)


def measurements(env: BookEnvironment) -> list[Measurement]:
    """Return the measurements of the whole book, in the order of pages and cells."""
    records, made = all_records(env), _MADE.get(env, [])
    if len(records) != len(made) or any(
        record is not of for record, (of, _) in zip(records, made, strict=True)
    ):
        made = _MADE[env] = [(record, Measurement.from_plain(record)) for record in records]
    return [measurement for _, measurement in made]


def matching(env: BookEnvironment, patterns: Iterable[str]) -> list[Measurement]:
    """Return the measurements whose names match one of the patterns."""
    patterns = list(patterns)
    return [
        each
        for each in measurements(env)
        if any(fnmatch.fnmatchcase(each.name, pattern) for pattern in patterns)
    ]


def known(env: BookEnvironment) -> Measurements:
    """Return what pages may name: all that was measured on any device."""
    made: dict[tuple[str, str], dict[str, Measurement]] = {}
    for each in sorted(measurements(env), key=lambda each: each.device != env.book_home):
        made.setdefault((each.name, each.framework), {})[each.device] = each
    pages = env.book_pages.values()
    devices = dict.fromkeys(
        (env.book_home, *env.config.book_devices, *(d for page in pages for d in page.states))
    )
    frameworks = dict.fromkeys((*env.config.book_frameworks, *(name for _, name in made)))
    frameworks[PLAIN] = None
    return Measurements(
        made,
        env.book_home,
        tuple(devices),
        tuple(frameworks),
        any(page.failures or page.incomplete for page in pages),
        frozenset(each for page in pages for each in page.outdated),
    )


def report_duplicates(env: BookEnvironment) -> None:
    """Warn of each name that several measurements bear: a reference would be ambiguous."""
    first: dict[tuple[str, str], Measurement] = {}
    twice: dict[str, tuple[Measurement, Measurement]] = {}
    for each in measurements(env):
        of = first.setdefault((each.reference, each.device), each)
        if of is not each:
            twice[each.reference] = each, of
    for reference, (each, of) in twice.items():
        where = f"{of.page} too" if of.page != each.page else "this page twice"
        message = f"the measurement {reference} is made on {where}; give one of them another name"
        logger.warning(message, location=each.page, type="book", subtype="measured")


def publish(env: BookEnvironment, outdir: str | pathlib.Path) -> None:
    """Write all records of the book to `measurements.json` in the built site, one on a line."""
    records = all_records(env)
    lines = [json.dumps(each, sort_keys=True, ensure_ascii=False) for each in records]
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    pathlib.Path(outdir, "measurements.json").write_text(text, "utf8")


def setup(app: BookApp) -> None:
    """Register what follows from the options."""
    app.add_config_value("book_measurement_rules", None, "env", (dict,))
    app.connect("config-inited", configure)
