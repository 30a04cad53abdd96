"""What exercises add to the core: Markdown and notebooks go without solutions."""

from executed.hooks import Feature


class Exercised(Feature):
    """Exercises. A notebook has their tasks, checks and hints."""

    name = "exercised"
    not_in_markdown = (".exercise-solution", ".exercise-solved")


FEATURE = Exercised
