"""Predict, then look: a question before a cell covers what the cell prints, and the build finds
the right answer in it.

What readers see without scripts is the question with its answers, and the output folded away.
"""

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from ..execution.schedule import Failure
from ..measurements import references
from ..measurements.schema import Measurement, Schema, single
from ..records import outputs
from ..records.device_outputs import DeviceResult
from ..source.pages import HELPERS, NOT_BEFORE_A_CELL, Cell, Page
from ..source.predictions import Answer, Prediction, PredictionError, read
from .app import BookApp, BookEnvironment
from .states import pages_of

logger = logging.getLogger(__name__)
LOOK = "Show the output"


class prediction(nodes.General, nodes.Element):
    """A question; its children are the question and the answers, as paragraphs."""


class PredictDirective(SphinxDirective):
    """A question about the cell that follows; the content is a list of answers."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the question, which is put into its cell once the page is parsed."""
        try:
            asked = read(self.arguments[0], self.content)
        except PredictionError as error:
            raise self.error(str(error)) from None
        node = prediction()
        self.set_source_info(node)
        for text in (asked.question, *(answer.text for answer in asked.answers)):
            inline, problems = self.parse_inline(text, lineno=self.lineno)
            node += [nodes.paragraph("", "", *inline), *problems]
        for answer in node.children[1:]:
            if any(answer.findall(_is_link)):
                raise self.error(f"the answer '{answer.astext()}' is a button and has no links")
        return [node]


def right_answers(
    page: Page, editions: Iterable[DeviceResult], schema: Schema | None, label: Callable[[str], str]
) -> tuple[list[int | None], list[Failure]]:
    """Return which answer to each question of a page is right, by what its cell printed.

    It is None where no device has executed the cell. Beside the answers are the failures of
    questions to which not exactly one is right, the same on all devices.
    """
    editions = list(editions)
    right: list[int | None] = []
    failures = []
    for cell in page.cells:
        if cell.prediction is None:
            continue
        found: dict[int, str] = {}
        for edition in editions:
            holding = _holding(cell, page, edition, schema)
            if holding is None:
                continue
            if len(holding) != 1:
                texts = [cell.prediction.answers[n].text for n in holding]
                matching = " and ".join(f"'{text}'" for text in texts) or "none"
                failures.append(
                    _failure(
                        cell.prediction,
                        f"one answer must match what the cell printed on {label(edition.device)}, "
                        f"and {matching} of them {'do' if len(texts) > 1 else 'does'}",
                    )
                )
                break
            found.setdefault(holding[0], label(edition.device))
        if len(found) > 1:
            each = (f"'{cell.prediction.answers[n].text}' on {on}" for n, on in found.items())
            failures.append(_failure(cell.prediction, f"the answers differ: {', '.join(each)}"))
        right.append(next(iter(found), None))
    return right, failures


def _failure(asked: Prediction, problem: str) -> Failure:
    return Failure(asked.line, f"predict '{asked.question}': {problem}")


def _holding(
    cell: Cell, page: Page, edition: DeviceResult, schema: Schema | None
) -> list[int] | None:
    """Return the numbers of the answers that hold on a device; None where it gave nothing."""
    made = edition.outputs.cell(cell.key) if edition.outputs else None
    if cell.prediction is None or edition.outputs is None or made is None or made.missing:
        return None
    # What earlier code printed decides nothing about the code of today.
    if made.standing:
        return None
    known: references.Measurements | None = None
    text = outputs.printed(outputs.presentable(made.outputs, schema))
    holding = []
    for number, answer in enumerate(cell.prediction.answers):
        if answer.fragment is None:
            known = known or _measured(page, edition, schema)
            holds = _is_measured(answer, known)
        else:
            holds = answer.is_in(text)
        holding += [number] if holds else []
    return holding


def _measured(page: Page, edition: DeviceResult, schema: Schema | None) -> references.Measurements:
    """Return what a page measured on one device."""
    place = {"page": page.docname, "device": edition.device}
    made: dict[tuple[str, str], dict[str, Measurement]] = {}
    for cell in edition.outputs.cells if edition.outputs else ():
        for record in outputs.records(cell.outputs, schema):
            if cell.standing or schema is None or schema.problem(record):
                continue
            for each in single(record):
                measured = Measurement.from_plain(each | place)
                made[measured.name, measured.framework] = {edition.device: measured}
    return references.Measurements(made, edition.device, (edition.device,), [f for _, f in made])


def _is_measured(answer: Answer, known: references.Measurements) -> bool:
    """Say whether a condition over measurements holds; one that cannot be read never does."""
    try:
        return references.verdict(f"{answer.condition} ? holds : wrong", known)[0] == "holds"
    except references.ReferenceProblem:
        return False


def cover(document: nodes.document, right: Sequence[int | None]) -> None:
    """Put each question of a page between the code and the output of its cell."""
    asked: list[nodes.Element] = list(document.findall(prediction))
    for node, number in zip(asked, [*right, *[None] * len(asked)], strict=False):
        cell = _cell_after(document, node)
        node.parent.remove(node)
        if cell is None:
            continue
        place = next(
            (n for n, part in enumerate(cell.children) if _is(part, "cell_code_output")), None
        )
        if place is None:
            continue
        output = cell[place]
        cell.remove(output)
        parts = [_question(node, number), *_folded(node, number, output)]
        for part in reversed(parts):
            cell.insert(place, part)


def _cell_after(document: nodes.document, node: nodes.Node) -> nodes.Element | None:
    """Return the first cell behind a node, but for its helpers."""
    after = False
    for each in document.findall(nodes.Element):
        after = after or each is node
        if after and _is(each, "cell_code") and each.get("prompt_show") != HELPERS:
            return each
    return None


def _is(node: nodes.Node, part: str) -> bool:
    return isinstance(node, nodes.Element) and node.get("nb_element") == part


def _is_link(node: nodes.Node) -> bool:
    return isinstance(node, nodes.reference | addnodes.pending_xref)


def _question(node: nodes.Element, right: int | None) -> nodes.container:
    """Return the question with its answers as buttons, which scripts switch on."""
    question, *answers = [child.children for child in node.children]
    container = nodes.container(classes=["predict"])
    container += raw(f'<fieldset disabled data-right="{"" if right is None else right}"><legend>')
    container += [nodes.inline("", "", *question), raw("</legend>")]
    for answer in answers:
        container += [raw('<button type="button">'), *answer, raw("</button>")]
    container += raw('<p class="predict-verdict" role="status"></p></fieldset>')
    return container


def _folded(node: nodes.Element, right: int | None, output: nodes.Node) -> list[nodes.Node]:
    """Return the output of a cell, folded, behind the right answer."""
    found: list[nodes.Node] = [
        raw(f'<details class="predict-output"><summary>{html.escape(LOOK)}</summary>')
    ]
    if right is not None:
        answer = node.children[right + 1].children
        said = [nodes.Text("The answer: "), *(child.deepcopy() for child in answer)]
        found.append(nodes.paragraph("", "", *said, classes=["predict-answer"]))
    return [*found, output, raw("</details>")]


def raw(text: str) -> nodes.raw:
    """Return HTML that stands as it is."""
    return nodes.raw("", text, format="html")


class QuestionsWithoutCells(SphinxTransform):
    """Take out the questions of pages on which no cell is shown, where nothing covers an output."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Warn of each, where the page was not refused before."""
        refused = self.env.docname in pages_of(cast(BookEnvironment, self.env))
        for node in list(self.document.findall(prediction)):
            if not refused:
                logger.warning(NOT_BEFORE_A_CELL, location=node, type="book", subtype="page")
            node.parent.remove(node)


def setup(app: BookApp) -> None:
    """Register the directive."""
    app.add_directive("predict", PredictDirective)
    app.add_transform(QuestionsWithoutCells)
