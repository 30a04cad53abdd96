"""Predict, then look: a question before a cell covers what the cell prints, and the build finds
the right answer in it.

What readers see without scripts is the question with its answers, and the output folded away.
"""

from collections.abc import Callable, Sequence
from typing import cast

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from executed.app import BookApp, BookEnvironment
from executed.run.schedule import Failure
from executed.source.pages import HELPERS, NOT_BEFORE_A_CELL, Cell, Page
from executed.store import outputs
from executed.store.device_outputs import DeviceResult
from executed.tabs import fold
from measured.schema import Schema

from .questions import Prediction, PredictionError, read

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
        if self.env.docname not in cast(BookEnvironment, self.env).book_pages:
            raise self.warning(NOT_BEFORE_A_CELL)
        try:
            asked = read(self.arguments[0], self.content)
        except PredictionError as error:
            raise self.error(str(error)) from None
        node = prediction()
        self.set_source_info(node)
        for text in (asked.question, *(answer.text for answer in asked.answers)):
            inline, problems = self.parse_inline(text, lineno=self.lineno)
            node += [nodes.paragraph("", "", *inline), *problems]
        return [node]


def right_answers(
    page: Page,
    editions: Sequence[DeviceResult],
    schema: Schema | None,
    label: Callable[[str], str],
) -> tuple[list[int | None], list[Failure]]:
    """Return which answer to each question of a page is right, by what its cell printed.

    An answer is None where no device has executed the cell. Beside the answers are the failures of
    questions to which not exactly one is right, the same on all devices.
    """
    right: list[int | None] = []
    failures = []
    for cell in page.cells:
        if cell.prediction is None:
            continue
        found: dict[int, str] = {}
        for edition in editions:
            holding = _holding(cell, edition, schema)
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


def _holding(cell: Cell, edition: DeviceResult, schema: Schema | None) -> list[int] | None:
    """Return the numbers of the answers that hold on a device; None where it gave nothing."""
    made = edition.outputs.cell(cell.key) if edition.outputs else None
    # What earlier code printed decides nothing about the code of today.
    if cell.prediction is None or made is None or made.missing or made.standing:
        return None
    text = outputs.printed(outputs.presentable(made.outputs, schema))
    return [n for n, answer in enumerate(cell.prediction.answers) if answer.is_in(text)]


def cover(document: nodes.document, right: Sequence[int | None] | None) -> None:
    """Put each question of a page between the code and the output of its cell."""
    asked: list[nodes.Element] = list(document.findall(prediction))
    if right is not None and len(right) != len(asked):
        # The page's text was read for questions by its own rules, which are narrower than MyST's.
        logger.warning(
            f"{len(right)} of {len(asked)} questions have a cell; write each as ':::{{predict}}'",
            location=asked[-1] if asked else document,
            type="book",
            subtype="predict",
        )
        right = []
    for node, number in zip(asked, [*(right or ()), *[None] * len(asked)], strict=False):
        cell = _cell_after(document, node)
        node.parent.remove(node)
        for output in [part for part in cell or () if _is(part, "cell_code_output")]:
            place = output.parent.index(output)
            output.parent[place : place + 1] = [
                _question(node, number),
                *_folded(node, number, output),
            ]


def _cell_after(document: nodes.document, node: nodes.Node) -> nodes.Element | None:
    """Return the first cell behind a node, but for its helpers."""
    after = False
    for each in document.findall(nodes.Element):
        after = after or each is node
        shown = str(each.get("prompt_show", ""))
        if after and _is(each, "cell_code") and not shown.startswith(HELPERS):
            return each
    return None


def _is(node: nodes.Node, part: str) -> bool:
    return isinstance(node, nodes.Element) and node.get("nb_element") == part


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
    inside = [output]
    if right is not None:
        answer = node.children[right + 1].children
        said = [nodes.Text("The answer: "), *(child.deepcopy() for child in answer)]
        inside.insert(0, nodes.paragraph("", "", *said, classes=["predict-answer"]))
    return fold(LOOK, *inside, class_="predict-output")


def raw(text: str) -> nodes.raw:
    """Return HTML that stands as it is."""
    return nodes.raw("", text, format="html")


def setup(app: BookApp) -> None:
    """Register the directive."""
    app.add_directive("predict", PredictDirective)
