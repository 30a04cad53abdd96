"""The body of a page in Markdown, for programs and for the notebook that readers download."""

import html
import re
from collections.abc import Sequence

from selectolax.lexbor import LexborHTMLParser

from .hooks import Feature
from .nodes import JOINER, STAYS_FOLDED

# What is there to be used on a screen, and what only drawings say.
USED = (
    *(".headerlink", ".copybtn", "svg", "script", "style", "input", "button", "p.expanded"),
    *(".device-notice", ".device-missing"),
    # What few want to read: logs, what other code printed.
    *("details.below-input", "details.earlier"),
)
# Folded code with more characters is left to the notebook.
LONGEST_CODE = 12_000
# Code, or what a row of a table can do without: spaces in its rule, empty cells at its end.
SPARE = re.compile(r"^```.*?^```$|^\|(?: --- \|)+$|(?<= \|)(?: +\|)+$", re.MULTILINE | re.DOTALL)


def markdown(body: str, features: Sequence[Feature] = (), notebook: str = "") -> str:
    """Return a page in Markdown, with notes as footnotes; its `notebook` has very long code."""
    # Imported here, for a build that writes no page.
    import html_to_markdown

    tree = LexborHTMLParser(f"<article>{body.replace(JOINER, '')}</article>")
    dropped = (selector for feature in features for selector in feature.not_in_markdown)
    for node in tree.css(", ".join((*USED, *dropped))):
        node.decompose()
    for link in tree.css("a[href]"):
        # Pages lie beside each other in Markdown, too.
        target = link.attributes["href"] or ""
        if "://" not in target:
            link.attrs["href"] = re.sub(r"\.html(?=#|$)", ".md", target)
    for node in tree.css("sup:not(.earlier)"):
        node.replace_with(f"^{node.text()}")
    _unfold(tree)
    _unfold_code(tree, notebook)
    for node in tree.css(".cell_input pre"):
        # So that it is told from its output.
        code = f'<pre><code class="language-python">{html.escape(node.text())}</code></pre>'
        node.replace_with(LexborHTMLParser(code).css("pre")[0])
    say_once(tree, features)
    notes: dict[str, int] = {}
    for node in tree.css(".note[role=tooltip]"):
        node.replace_with(f"[^{notes.setdefault(node.text(), len(notes) + 1)}]")
    for node in tree.css("td code, td samp"):
        if node.tag == "samp" and node.prev is not None:
            node.insert_before(" → ")
        if len(lines := node.text().splitlines()) > 1:
            # A row of a table is one line of Markdown.
            spans = "<br>".join(f"<code>{html.escape(line)}</code>" for line in lines)
            node.replace_with(LexborHTMLParser(f"<span>{spans}</span>").css("span")[0])
    options = html_to_markdown.ConversionOptions(br_in_tables=True, compact_tables=True)
    text = html_to_markdown.convert(tree.css("article")[0].html or "", options)
    page = SPARE.sub(_shorter, str(getattr(text, "content", text)).strip())
    footnotes = [f"[^{number}]: {note}" for note, number in notes.items()]
    return "\n\n".join([page, *footnotes]) + "\n"


def _shorter(match: re.Match[str]) -> str:
    if match[0].startswith("```"):
        return match[0]
    return match[0].replace(" ", "") if "-" in match[0] else ""


def _unfold(tree: LexborHTMLParser) -> None:
    """Leave of folds what Markdown shows."""
    for node in tree.css("details[data-by]"):
        node.replace_with(f" ({by})" if (by := node.attributes.get("data-by")) else "")
    for node in tree.css(f"details.{STAYS_FOLDED}"):
        # Between blank lines what is inside is Markdown again.
        title = node.css("summary")[0]
        start = html.escape(f"<details><summary>{title.text()}</summary>")
        title.replace_with(LexborHTMLParser(f"<p>{start}</p>").css("p")[0])
        node.insert_after(LexborHTMLParser("<p>&lt;/details&gt;</p>").css("p")[0])
        node.unwrap()
    for node in tree.css("details.traceback"):
        summary = html.escape(node.css("summary")[0].text())
        node.replace_with(LexborHTMLParser(f"<pre>{summary}</pre>").css("pre")[0])
    for node in tree.css("figcaption > details"):
        # A caption is emphasised, which data in it would end.
        if node.parent is not None:
            node.parent.insert_after(node)
        node.decompose()


def _unfold_code(tree: LexborHTMLParser, notebook: str) -> None:
    """Show the code that the page folds, so that whoever reads this can run it."""
    for node in tree.css("details.above-input"):
        summary = node.css("summary .collapsed")[0].text().strip()
        label = html.escape(re.sub("^Show (the )?(.)", lambda match: match[2].upper(), summary))
        if len(node.text()) > LONGEST_CODE:
            label += f" (in <code>{html.escape(notebook)}</code>)"
            node.css("div.cell_input")[0].decompose()
        node.css("summary")[0].replace_with(LexborHTMLParser(f"<p>{label}</p>").css("p")[0])
        node.unwrap()


def say_once(tree: LexborHTMLParser, features: Sequence[Feature]) -> None:
    """Leave out captions that the first tab has too, and the title of a link that came before."""
    once = ("figcaption", *(s for feature in features for s in feature.once_in_tabs))
    for tabs in tree.css(".sd-tab-set"):
        captions = tabs.css(", ".join(once))
        for node in captions[1:]:
            if node.html == captions[0].html:
                node.decompose()
    titles: set[str | None] = set()
    for node in tree.css("a[title]"):
        if (title := node.attributes["title"]) in titles:
            del node.attrs["title"]
        titles.add(title)
