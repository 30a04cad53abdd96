"""A question before a cell, whose answer is found in what the cell prints."""

import dataclasses
import re
from collections.abc import Iterable

FENCE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{predict\}[ ]*(?P<question>.*)\n(?P<body>(?:.*\n)*?)(?P=fence)[ ]*$",
    re.MULTILINE,
)
ANSWER = re.compile(r'- *(?P<text>\S.*?) +~ +"(?P<fragment>.+)"')
FEWEST, MOST = 2, 4


class PredictionError(Exception):
    """The text of a question cannot be understood; the message says why.

    `line` is where it stands in the page's file.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        """Take the message and the line."""
        super().__init__(message)
        self.line = line


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer to pick, and the part of the cell's output that is there if it is right."""

    text: str
    fragment: str

    def is_in(self, printed: str) -> bool:
        """Say whether the fragment is in a text, and is no part of a longer word or number."""
        fragment = re.escape(self.fragment)
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
        match = ANSWER.fullmatch(written)
        if not match:
            raise PredictionError(
                f"'{written}' is no answer; write '- ANSWER ~ \"PART OF THE OUTPUT\"'", line
            )
        answers.append(Answer(match["text"], match["fragment"]))
    if not question.strip():
        raise PredictionError("predict needs a question", line)
    if not FEWEST <= len(answers) <= MOST:
        raise PredictionError(
            f"'{question}' has {len(answers)} answers; give {FEWEST} to {MOST} to pick from", line
        )
    texts = [answer.text for answer in answers]
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise PredictionError(f"'{question}' has the answer '{twice}' twice", line)
    return Prediction(question.strip(), tuple(answers), line)
