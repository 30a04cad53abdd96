"""Keep what the next build has to read again although no file of it has changed.

Sphinx forgets a warning once its page is read, and a page that was read but not
written when a build was broken off: the next build would be green, or show the
page as it was before.
"""

import json
import logging
import pathlib
from typing import Any

from docutils import nodes
from sphinx.util.logging import NAMESPACE, get_node_location, is_suppressed_warning

from .. import files
from .app import BookApp, BookEnvironment

EVERYTHING = "*"


class Reminder(logging.Handler):
    """Notes the pages that warnings are about, in a file beside the doctrees.

    A warning that is about no page counts for all of them.
    """

    def __init__(self, app: BookApp) -> None:
        """Take the build to listen to."""
        super().__init__(logging.WARNING)
        self.app = app
        self.path = pathlib.Path(app.doctreedir, "reminders.json")
        self.former: set[str] = set()
        self.pages: set[str] = set()

    def start(self) -> None:
        """Recall the former build; this one counts as broken off until it has finished."""
        try:
            self.former = set(json.loads(self.path.read_text("utf8")))
        except FileNotFoundError:
            pass
        except ValueError:
            # The build was killed while it wrote the file.
            self.former = {EVERYTHING}
        files.write(self.path, json.dumps([EVERYTHING]))
        logging.getLogger(NAMESPACE).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Note the page of one warning."""
        kind, subtype = getattr(record, "type", None), getattr(record, "subtype", None)
        suppressed = self.app.config.suppress_warnings
        if not is_suppressed_warning(kind or "", subtype or "", suppressed):
            self.pages.add(self._docname(getattr(record, "location", None)) or EVERYTHING)

    def _docname(self, location: Any) -> str:
        """Read a location in any of the forms that Sphinx allows."""
        if isinstance(location, tuple):
            return str(location[0])
        if isinstance(location, nodes.Node):
            location = get_node_location(location)
        place = (location or "").partition(":")[0]
        return self.app.env.path2doc(place) or place

    def outdated(self, env: BookEnvironment) -> set[str]:
        """Return the pages to read again."""
        return set(env.found_docs) if EVERYTHING in self.former else self.former

    def finish(self) -> None:
        """Keep the pages with warnings for the next build."""
        logging.getLogger(NAMESPACE).removeHandler(self)
        if self.pages:
            files.write(self.path, json.dumps(sorted(self.pages)))
        else:
            self.path.unlink(missing_ok=True)
