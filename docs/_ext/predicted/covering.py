"""Predict, then look: a question before a cell covers what the cell prints, and the build finds
the right answer in it.

What readers see without scripts is the question with its answers, and the output folded away. The
paragraph after the cell says what it printed, so readers see it once they have opened the output.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from executed.book import book_of
from executed.nodes import fold, raw

from .feature import NAME, NOT_BEFORE_A_CELL
from .questions import PredictionError, read

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
        if self.env.docname not in book_of(self.env).pages:
            raise self.warning(NOT_BEFORE_A_CELL)
        try:
            question = read(self.arguments[0], self.content)
        except PredictionError as error:
            raise self.error(str(error)) from None
        node = prediction()
        self.set_source_info(node)
        for text in (question.question, *(answer.text for answer in question.answers)):
            inline, problems = self.parse_inline(text, lineno=self.lineno)
            node += [nodes.paragraph("", "", *inline), *problems]
        return [node]


class CoverOutputs(SphinxTransform):
    """Put each question of a page between the code and the output of its cell."""

    default_priority = 15

    def apply(self, **options: object) -> None:
        """Change one page."""
        page = book_of(self.env).pages.get(self.env.docname)
        answers: dict[int, int | None] = (page.outcome.concluded(NAME) if page else None) or {}
        for node in list(self.document.findall(prediction)):
            if page and not page.outcome.failures and node.line not in answers:
                # What MyST reads as a question the text is not searched for.
                logger.warning(
                    "this question has no cell; write it as ':::{predict} Question?', directly "
                    "before one",
                    location=node,
                    type="book",
                    subtype="predict",
                )
            cell = _cell_after(self.document, node) if node.line in answers else None
            node.parent.remove(node)
            right = answers.get(node.line or 0)
            outputs = [part for part in cell or () if _is(part, "cell_code_output")]
            for output in outputs:
                place = output.parent.index(output)
                output.parent[place : place + 1] = [
                    _question(node, right),
                    *_folded(node, right, output),
                ]
            if cell and outputs:
                _cover_explanation(cell)


def _cell_after(document: nodes.document, node: nodes.Node) -> nodes.Element | None:
    """Return the first cell behind a node, but for its helpers."""
    after = False
    for element in document.findall(nodes.Element):
        after = after or element is node
        if after and _is(element, "cell_code") and "helpers" not in element["cell_metadata"]:
            return element
    return None


def _cover_explanation(cell: nodes.Element) -> None:
    """Put the first paragraph after a cell, and boxes around it, where the style covers them."""
    shown: nodes.Element = cell
    while not isinstance(shown.parent, nodes.section | nodes.document):
        shown = shown.parent
    place = shown.parent.index(shown) + 1
    found, beside = list[nodes.Node](), (nodes.Admonition, nodes.Invisible)
    allowed: tuple[type, ...] = (nodes.paragraph, *beside)
    for each in shown.parent[place:]:
        if not isinstance(each, allowed):
            break
        found.append(each)
        allowed = beside if isinstance(each, nodes.paragraph) else allowed
    # What names a heading stays before it.
    while found and isinstance(found[-1], nodes.Invisible):
        found.pop()
    if found:
        covered = nodes.container("", *found, classes=["predict-explanation"])
        shown.parent[place : place + len(found)] = [covered]


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
        inline = [nodes.Text("The answer: "), *(child.deepcopy() for child in answer)]
        inside.insert(0, nodes.paragraph("", "", *inline, classes=["predict-answer"]))
    return fold(LOOK, *inside, class_="predict-output")


def setup(app: Sphinx) -> None:
    """Register the directive and the transform."""
    app.add_directive("predict", PredictDirective)
    app.add_transform(CoverOutputs)
