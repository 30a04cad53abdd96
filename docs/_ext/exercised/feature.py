"""What exercises add to the core: Markdown and notebooks go without hints and solutions."""

from executed.hooks import Feature


class Exercised(Feature):
    """Exercises, of which a notebook has the task and the check."""

    name = "exercised"
    not_in_markdown = (".exercise-help",)


FEATURE = Exercised
