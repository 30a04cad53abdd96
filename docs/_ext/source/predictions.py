"""A question before a cell, whose answer is found in what the cell prints."""

import dataclasses
import re
from collections.abc import Iterable, Iterator

from .snippets import split_lines

FENCE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{predict\}[ ]*(?P<question>.*)\n(?P<body>(?:.*\n)*?)(?P=fence)[ ]*$",
    re.MULTILINE,
)
FEWEST, MOST = 2, 4


class PredictionError(Exception):
    """The text of a question cannot be understood; the message says why."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer to pick, and what holds of the cell's outputs where it is right.

    The condition is a fragment of the output in double quotes, or `REFERENCE in LOW..HIGH` over
    what the cell has measured.
    """

    text: str
    condition: str

    @property
    def fragment(self) -> str | None:
        """The fragment of the output, or None where the condition is over measurements."""
        quoted = len(self.condition) > 2 and self.condition[0] == self.condition[-1] == '"'
        return self.condition[1:-1] if quoted else None

    def is_in(self, printed: str) -> bool:
        """Say whether the fragment is in a text, and is no part of a longer word or number."""
        fragment = re.escape(self.fragment or "")
        return bool(re.search(rf"(?<!\w)(?<!\d\.){fragment}(?!\w|\.\d)", printed))


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A question, and the answers to pick from; `line` is where in the page's file."""

    question: str
    answers: tuple[Answer, ...]
    line: int = 0


def read(question: str, body: Iterable[str], line: int = 0) -> Prediction:
    """Read a question and the lines of its answers, such as `- twice ~ "traces: 2"`.

    Raises PredictionError.
    """
    answers = []
    for written in filter(None, map(str.strip, body)):
        text, tilde, condition = written.removeprefix("- ").rpartition(" ~ ")
        if not written.startswith("- ") or not tilde or not text.strip():
            raise PredictionError(
                f"'{written}' is no answer; write '- ANSWER ~ \"PART OF THE OUTPUT\"', or "
                "'- ANSWER ~ REFERENCE in LOW..HIGH'"
            )
        answers.append(Answer(text.strip(), condition.strip()))
    if not question.strip():
        raise PredictionError("predict needs a question")
    if not FEWEST <= len(answers) <= MOST:
        raise PredictionError(
            f"'{question}' has {len(answers)} answers; give {FEWEST} to {MOST} to pick from"
        )
    texts = [answer.text for answer in answers]
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise PredictionError(f"'{question}' has the answer '{twice}' twice")
    return Prediction(question.strip(), tuple(answers), line)


def in_prose(text: str, line: int) -> Iterator[tuple[Prediction, bool]]:
    """Yield the questions in the Markdown of a cell that begins at a line of its page.

    Beside each is whether nothing follows it. Raises PredictionError.
    """
    for found in FENCE.finditer(text):
        place = line + text.count("\n", 0, found.start())
        prediction = read(found["question"], split_lines(found["body"]), place)
        yield prediction, not text[found.end() :].strip()
