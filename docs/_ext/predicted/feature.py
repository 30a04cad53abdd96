"""What questions add to the core: which answers are right, judged by what cells printed."""

from collections.abc import Iterator, Sequence
from typing import Any

from executed.hooks import Conclusion, Feature, PageResults
from executed.run.outcome import Failure
from executed.source.pages import Cell, Page
from executed.store import outputs
from executed.store.device_outputs import DeviceResult

from .questions import FENCE, Prediction, PredictionError, read

NAME = "predicted"
NOT_BEFORE_A_CELL = "a predict must stand directly before the code cell that it asks about"


class Predicted(Feature):
    """Questions before cells, whose right answers are found in what the cells print."""

    name = NAME
    not_in_markdown = (".predict-output > summary",)

    def conclude(self, taken: PageResults) -> Conclusion:
        """Find the right answer to each question, {line of the question: number of the answer}.

        An answer is None where no device has executed the cell. A question to which not exactly
        one answer is right, the same on all devices, is a failure.
        """
        right: dict[int, int | None] = {}
        failures = []
        try:
            for question, cell in _questions(taken.page):
                right[question.line], problem = self._answer(question, cell, taken.results)
                if problem and not taken.failed:
                    message = f"predict '{question.question}': {problem}"
                    failures.append(Failure(question.line, message))
        except PredictionError as error:
            failures.append(Failure(error.line, str(error)))
        return Conclusion(right, tuple(failures)) if right or failures else Conclusion()

    def _answer(
        self, question: Prediction, cell: Cell, results: Sequence[DeviceResult]
    ) -> tuple[int | None, str]:
        """Return the number of the right answer, and what is wrong with the question."""
        labels: dict[int, str] = {}
        for result in results:
            holding = self._matches(question, cell, result)
            if holding is None:
                continue
            label = self.options.label(result.device)
            if len(holding) != 1:
                texts = [question.answers[n].text for n in holding]
                matching = " and ".join(f"'{text}'" for text in texts) or "none"
                return next(iter(labels), None), (
                    f"one answer must match what the cell printed on {label}, "
                    f"and {matching} of them {'do' if len(texts) > 1 else 'does'}"
                )
            labels.setdefault(holding[0], label)
        problem = ""
        if len(labels) > 1:
            parts = (f"'{question.answers[n].text}' on {label}" for n, label in labels.items())
            problem = f"the answers differ: {', '.join(parts)}"
        return next(iter(labels), None), problem

    def _matches(self, question: Prediction, cell: Cell, result: DeviceResult) -> list[int] | None:
        """Return the numbers of the answers that hold on a device; None where it gave nothing."""
        cell_outputs = result.outputs.cell(cell.key) if result.outputs else None
        # What earlier code printed decides nothing about the code of today.
        if cell_outputs is None or cell_outputs.lacking or cell_outputs.standing:
            return None
        # Nor does a first look, whose numbers may say anything.
        looked = self.options.preview and result.is_own(cell_outputs)
        if looked and any(outputs.kind_of(each, self.kinds) for each in cell_outputs.outputs):
            return None
        text = outputs.printed(outputs.presentable(cell_outputs.outputs, self.kinds))
        return [n for n, answer in enumerate(question.answers) if answer.is_in(text)]

    def prose(self, cell: Any) -> str:
        """Return the question, which readers of a notebook are to answer before they look."""
        container = cell.css_first(".predict")
        if container is None:
            return ""
        question = container.css("legend")[0].inner_html
        answers = "".join(f"<li>{answer.inner_html}</li>" for answer in container.css("button"))
        return f"<p><strong>Before you look:</strong> {question}</p><ul>{answers}</ul>"


FEATURE = Predicted


def _questions(page: Page) -> Iterator[tuple[Prediction, Cell]]:
    """Yield the questions of a page with the cells that they ask about; raises PredictionError."""
    cells = iter(page.cells)
    question: Prediction | None = None
    for node, line in zip(page.notebook.cells, page.notebook.metadata["source_map"], strict=True):
        if node.cell_type != "code":
            if question:
                raise PredictionError(NOT_BEFORE_A_CELL, question.line)
            question = _question(node.source, line)
            continue
        cell = next(cells)
        if question and not cell.has_helpers:
            yield question, cell
            question = None
    if question:
        raise PredictionError(NOT_BEFORE_A_CELL, question.line)


def _question(text: str, line: int) -> Prediction | None:
    """Return the question at the end of prose that begins at a line; raises PredictionError."""
    for match in FENCE.finditer(text):
        at = line + text.count("\n", 0, match.start())
        if text[match.end() :].strip():
            raise PredictionError(NOT_BEFORE_A_CELL, at)
        return read(match["question"], match["body"].split("\n"), at)
    return None
