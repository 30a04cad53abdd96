"""Unknown names of roles and directives: the warning says which known ones are nearest."""

import logging
import re
from typing import Any

from docutils.parsers.rst import directives, roles
from docutils.parsers.rst.languages import en
from sphinx.application import Sphinx

from ..names import nearest

UNKNOWN = re.compile(
    r"""Unknown (?:interpreted text role "(?P<role>.+)"\.|directive type: '(?P<directive>.+)')"""
)
# MyST warns in this module.
LOGGER = "sphinx.myst_parser.warnings_"


class Nearest(logging.Filter):
    """Completes the warnings of unknown names."""

    def __init__(self, app: Sphinx) -> None:
        """Take the application, whose extensions have registered names."""
        super().__init__()
        self.app = app

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the nearest names to a warning; let all pass."""
        message = record.getMessage()
        if found := UNKNOWN.fullmatch(message):
            kind = "directive" if found["directive"] else "role"
            hint = nearest(found[kind], self._known(kind))
            record.msg, record.args = message.removesuffix(".") + hint, ()
        return True

    def _known(self, kind: str) -> set[str]:
        """Return the names of all roles or of all directives."""
        module: Any = directives if kind == "directive" else roles
        domains = self.app.env.domains.sorted()
        return {
            *vars(en)[f"{kind}s"],
            *vars(module)[f"_{kind}s"],
            *(name for domain in domains for name in getattr(domain, f"{kind}s")),
        }


def listen(app: Any) -> None:
    """Complete the warnings of this build."""
    logging.getLogger(LOGGER).addFilter(Nearest(app))


def setup(app: Sphinx) -> None:
    """Register the event."""
    app.connect("builder-inited", listen)
