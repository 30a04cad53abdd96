"""What follows the task of an exercise: a hint and a solution, folded, and a tick of the reader."""

import html

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from executed.book import book_of
from executed.nodes import STAYS_FOLDED, fold, raw
from executed.source.snippets import SnippetError, chapter_of


class SolutionDirective(SphinxDirective):
    """The solution of an exercise, a snippet, and as content a hint."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return both, folded, and a tick; the page shows them behind the cells of the exercise."""
        self.assert_has_content()
        library = book_of(self.env).library
        written = self.arguments[0]
        try:
            definition = library.find(written, chapter_of(self.env.docname))
            solution = library.excerpt([definition]).code
        except SnippetError as error:
            raise self.error(str(error)) from None
        for name in library.reached([definition.module]):
            self.env.note_dependency(str(library.path(name)))
        exercise = html.escape(f"{self.env.docname}#{written.rpartition('.')[2]}")
        tick = f'<label class="exercise-solved" hidden><input type="checkbox" value="{exercise}">'
        return [
            nodes.container(
                "",
                *fold("A hint", *self.parse_content_to_nodes(), class_=STAYS_FOLDED),
                *fold(
                    "A solution",
                    nodes.literal_block(solution, solution, language="python"),
                    class_="exercise-solution",
                ),
                raw(f"{tick} Solved</label>"),
                classes=["exercise-help"],
            )
        ]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("solution", SolutionDirective)
