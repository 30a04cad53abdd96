"""What exercises add to the core: Markdown and notebooks go without solutions."""

from executed.hooks import Feature


class Exercised(Feature):
    """Exercises, of which a notebook has the task, the check and the hint."""

    name = "exercised"
    not_in_markdown = (".exercise-solution", ".exercise-solved")


FEATURE = Exercised
