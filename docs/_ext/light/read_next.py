"""The last line of a page: which page to read next, and why, as `next` of its head says."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from executed.book import book_of
from executed.names import nearest

logger = logging.getLogger(__name__)


class ReadNext(SphinxPostTransform):
    """Add the line to a page, below all else."""

    default_priority = 950

    def run(self, **options: Any) -> None:
        """Change one page."""
        env, own = self.env, self.env.docname
        name, words = _next(env, own)
        if name in env.found_docs and words.endswith("."):
            uri, title = book_of(env).relative_uri(own, name), env.titles[name].deepcopy()
            link = nodes.reference("", "", *title.children, refuri=uri, internal=True)
            line = nodes.paragraph("", "Read next: ", link, classes=["read-next"])
            for number, part in enumerate(f" {words}".split("`")):
                line += nodes.literal("", part) if number % 2 else nodes.Text(part)
            self.document += line
        elif name:
            problem = f"words that end with a full stop must follow '{name}'"
            if name not in env.found_docs:
                problem = f"there is no page '{name}'{nearest(name, env.found_docs)}"
            message = f"'next' in the head: {problem}"
            logger.warning(message, location=(own, 1), type="book", subtype="next")


def _next(env: BuildEnvironment, docname: str) -> tuple[str, str]:
    name, _, words = env.metadata[docname].get("next", "").partition(" ")
    return name, words


def renamed(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return the pages to write again, because the page that they name has another title."""
    former, titles = env.__dict__.get("named", {}), {n: t.astext() for n, t in env.titles.items()}
    env.__dict__["named"] = titles
    named = {docname: _next(env, docname)[0] for docname in sorted(env.found_docs)}
    return [docname for docname, name in named.items() if former.get(name) != titles.get(name)]


def setup(app: Sphinx) -> None:
    """Register the transform and the event."""
    app.add_post_transform(ReadNext)
    app.connect("env-updated", renamed)
