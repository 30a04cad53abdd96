"""A list of errors: below each entry the messages as they were printed, here and elsewhere.

An entry is an `{error-entry}`, named by the type and how the message begins, with `…` for what
differs from case to case. It becomes a section with these words as its heading.
A file that `book_versions` names as `earlier` adds what versions said that are not recorded, and
`quoted.toml` beside it what no machine of the book can print: an entry of its own, with its source.
`:fix:` of an entry names snippets that do the same without the error; see `answers`.
"""

import html
import itertools
import pathlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from executed.assets import load_on_page
from executed.book import book_of
from executed.nodes import fold, raw
from executed.options import Options
from executed.source.snippets import SnippetError, chapter_of
from executed.waiting import shows

from . import answers
from .by_version import label, span
from .feature import NAME
from .options import ErrorOptions
from .outcomes import DeclaredError
from .version_files import Text

logger = logging.getLogger(__name__)
# What may differ between two messages that say the same: numbers, addresses of pages.
VARIES = re.compile(r"0x[0-9a-f…]+|https?://\S+|\d+")
COLOURS = re.compile(r"\x1b\[[\d;]*m")
QUOTED = "quoted.toml"


PERMALINK = re.compile(r'<a class="headerlink".*?</a>')
LITERAL = 'class="docutils literal notranslate"'
REFERENCE = re.compile(r'<span class="std std-ref">([^<]*)</span>')


class error_entry(nodes.section):
    """An error of the list; its title is a literal."""


class ErrorEntryDirective(SphinxDirective):
    """A section on one error, to which the build adds the printed message."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {"fix": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the section; the messages are filled in when the page is written."""
        words = " ".join(self.arguments[0].split())
        title = nodes.title("", "", nodes.literal(words, words))
        anchor = self._anchor(words)
        node = error_entry("", title, classes=["error-entry"], ids=[anchor])
        self.state.document.set_id(node)
        node += self.parse_content_to_nodes()
        node["fix"] = self._fix()
        self.set_source_info(node)
        shows(self.env, NAME)
        # It finds a message among the entries.
        load_on_page(self.env, "errors.js")
        if path := _earlier_file(book_of(self.env).options):
            self.env.note_dependency(str(path))
            self.env.note_dependency(str(path.with_name(QUOTED)))
        return [node]

    def _fix(self) -> str:
        """Return the code of the snippets that the entry names."""
        library, names = book_of(self.env).library, self.options.get("fix", "").split()
        try:
            snippets = [library.find(name, chapter_of(self.env.docname)) for name in names]
        except SnippetError as error:
            raise self.error(str(error)) from None
        for snippet in snippets:
            self.env.note_dependency(str(library.path(snippet.module)))
        code = answers.shortened("\n".join(snippet.source for snippet in snippets))
        if names and not code:
            raise self.error(f"{' '.join(names)}: more than {answers.LONGEST} lines; name others")
        return code

    def _anchor(self, words: str) -> str:
        base = "error-" + "-".join(re.findall(r"[a-z0-9]+", words.lower())[:6])
        names = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in self.state.document.ids)


def _earlier_file(options: Options) -> pathlib.Path | None:
    name = options.of(ErrorOptions).versions.earlier
    return options.root / name if name else None


def earlier(path: pathlib.Path) -> dict[str, dict[str, str]]:
    """Return what other versions said, {how an entry begins: {version: message}}."""
    return tomllib.loads(path.read_text("utf8"))


class Quote(NamedTuple):
    """A message in a public source: its text, who says it, and the address."""

    text: str
    by: str
    source: str


def quoted(path: pathlib.Path) -> dict[str, list[Quote]]:
    """Return the messages that are quoted beside the file of earlier ones, {entry: quotes}."""
    path = path.with_name(QUOTED)
    entries = tomllib.loads(path.read_text("utf8")) if path.exists() else {}
    return {words: [Quote(**fields) for fields in quotes] for words, quotes in entries.items()}


def all_errors(env: BuildEnvironment) -> list[DeclaredError]:
    """Return the errors that pages declare, in the order of pages and cells."""
    return [error for errors in book_of(env).concluded(NAME).values() for error in errors]


def matching_errors(entry: str, errors: Iterable[DeclaredError]) -> list[DeclaredError]:
    """Return the declared errors of an entry, matched by their types and messages.

    An entry has the words of one version. Where no error says them here, what other versions say
    counts.
    """
    kind, _, words = entry.partition(": ")
    alike = [error for error in errors if kind == error.type and error.fragment in words]
    begins = re.compile(".*".join(re.escape(part.strip()) for part in words.split("…")), re.DOTALL)

    def says(outcome: Text) -> bool:
        return begins.match(outcome.message.replace("`", "")) is not None

    here = [error for error in alike if error.here is None or says(error.here)]
    return here or [error for error in alike if any(map(says, error.versions.values()))]


def error_text(outcome: Text) -> str:
    """Return what a terminal shows at the end of a traceback."""
    message = COLOURS.sub("", outcome.message)
    return f"{outcome.type}: {message}".strip() if outcome.type else ""


def differing(error: DeclaredError) -> Iterator[tuple[str, str, Text]]:
    """Return where other versions raise something else: the first and the last, and what came."""
    for outcome, group in itertools.groupby(error.versions.items(), lambda item: meaning(item[1])):
        items = list(group)
        if error.here is None or outcome != meaning(error.here):
            yield items[0][0], items[-1][0], items[0][1]


def meaning(outcome: Text) -> tuple[str, list[str]]:
    """Return what two outcomes have in common that say the same.

    Words in another order do: some messages write out a set.
    """
    first = outcome.message.strip().partition("\n\n")[0]
    return outcome.type, sorted(re.findall(r"\w+", VARIES.sub("0", first)))


class ShowErrors(SphinxPostTransform):
    """Put the messages into the entries of a list of errors."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Complete the entries of one page."""
        entries = list(self.document.findall(error_entry))
        if not entries:
            return
        errors = all_errors(self.env)
        path = _earlier_file(book_of(self.env).options)
        self.earlier = earlier(path) if path else {}
        self.quoted = quoted(path) if path else {}
        self.book = book_of(self.env)
        self.options = self.book.options
        self.package = self.options.of(ErrorOptions).versions.package
        self.label = label(self.options) if self.package else ""
        known = {entry["ids"][0]: self._complete(entry, errors) for entry in entries}
        if self.app.builder.format == "html":
            answers.write(pathlib.Path(self.app.outdir), known)

    def _complete(self, entry: error_entry, errors: Iterable[DeclaredError]) -> dict[str, str]:
        """Add the messages to an entry; return what else is known of it."""
        words = entry[0].astext()
        declared, quotes = matching_errors(words, errors), self.quoted.get(words, [])
        if not declared and not quotes:
            # The cell may stand on a page that failed.
            if any(page.outcome.failures for page in self.book.pages.values()):
                return {}
            message = f"no cell of the book declares the error '{words}'"
            logger.warning(message, location=entry, type="book", subtype="errors")
            return {}
        said = f"Quoted: {quotes[0].by}." if quotes else ""
        pages = [link["reftarget"] for link in entry.findall(addnodes.pending_xref)]
        if declared:
            best = max(declared, key=lambda error: (error.here is not None, len(error.versions)))
            said = self._versions(best) or said
            entry += self._printed(words, best)
        if quotes:
            entry += quotation(quotes)
        raises = answers.raising(declared, pages, entry["fix"])
        return {"raises": raises, "fix": entry["fix"], "versions": said}

    def _versions(self, error: DeclaredError) -> str:
        """Say which versions say what an error says here."""
        same = {
            name: meaning(text) == meaning(error.here or text)
            for name, text in error.versions.items()
        }
        if said := answers.versions_with(same, self.options):
            return said
        facts = self.book.pages[error.page].outcome.facts
        version = facts.versions.get(self.package, "") if facts else ""
        return f"Recorded with {self.label} {version} only." if version else ""

    def _printed(self, words: str, best: DeclaredError) -> list[nodes.Node]:
        shown = [*self._shown(best), *self._earlier(words)]
        by = next((heading for heading, text in shown if text), "")
        if len(shown) == 1 and best.here is not None:
            # All versions say it, or it is no error of the package.
            shown = [("", text) for _, text in shown]
        return messages(shown, by)

    def _earlier(self, words: str) -> Iterator[tuple[str, str]]:
        for begins, texts in self.earlier.items():
            if words.startswith(begins):
                yield from ((f"{self.label} {version}", text) for version, text in texts.items())

    def _shown(self, error: DeclaredError) -> Iterator[tuple[str, str]]:
        if error.here is not None and error.here.type:
            facts = self.book.pages[error.page].outcome.facts
            version = facts.versions.get(self.package, "") if facts else ""
            yield f"{self.label} {version}".strip() if version else "", error_text(error.here)
        for first, last, outcome in differing(error):
            yield span([first, last], self.options), error_text(outcome)


def messages(shown: Sequence[tuple[str, str]], by: str) -> list[nodes.Node]:
    """Return a fold with all messages of an error, each beneath its heading.

    What the page folds, Markdown leaves out, and names the version that said it, `by`.
    """
    if not shown:
        return []
    parts = []
    for heading, text in shown:
        if heading:
            parts.append(f"<p>{html.escape(heading)}{'' if text else ': no error'}</p>")
        if text:
            parts.append(f"<pre>{html.escape(text)}</pre>")
    differs = "differs" if len(shown) > 1 else ""
    return fold("The whole message", raw("".join(parts)), class_=differs, by=by)


def quotation(quotes: Sequence[Quote]) -> list[nodes.Node]:
    """Return a fold with what nobody printed here, each text beneath a link to its source."""
    parts = []
    for quote in quotes:
        text, by, source = map(html.escape, (quote.text, quote.by, quote.source))
        parts.append(f'<p><a href="{source}">{by}</a></p><pre>{text}</pre>')
    heading = f"Quoted: {quotes[0].by}"
    return fold(heading, raw("".join(parts)), by=heading)


def _visit(self: Any, node: error_entry) -> None:
    self.visit_section(node)
    node["begin"] = len(self.body)


def _depart(self: Any, node: error_entry) -> None:
    # The sign for links comes with errors.js: two hundred of them are a tenth of the page. No style
    # asks for the marks around plain words in links.
    begin = node["begin"]
    text = PERMALINK.sub("", "".join(self.body[begin:]))
    text = REFERENCE.sub(r"\1", text).replace(LITERAL, 'class="literal"')
    self.body[begin:] = [text]
    self.depart_section(node)


def setup(app: Sphinx) -> None:
    """Register the directive, and what completes it."""
    app.add_node(error_entry, html=(_visit, _depart))
    app.add_directive("error-entry", ErrorEntryDirective)
    app.add_post_transform(ShowErrors)
