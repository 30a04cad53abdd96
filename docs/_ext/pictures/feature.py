"""What pictures add to the core: drawings in place of the data that cells give."""

from collections.abc import Sequence

from executed.hooks import Feature, PageResults
from executed.panels import Panel
from executed.run.outcome import Failure

from .drawn import drawn


class Pictures(Feature):
    """Pictures of what cells give that ask for one with `:picture:`."""

    name = "pictures"
    cell_options = ("picture", "caption")
    # The data of a tree and of a grid say what their drawings say.
    not_in_markdown = (".picture-tree details", ".picture-grid details")

    def show(
        self, taken: PageResults, panels: Sequence[list[Panel]]
    ) -> tuple[Sequence[list[Panel]], tuple[Failure, ...]]:
        """Draw the pictures of a page."""
        return drawn(taken.page, panels, taken.failed)


FEATURE = Pictures
