"""How much each word says of a page, by BM25 with fields.

The formula is that of Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and
Beyond* (2009). A word counts for more where a page has it more often, where it stands in a title,
and where few pages have it. The search adds up the weights of the words that somebody asks for.
"""

import collections
import functools
import math
import re
from collections.abc import Iterable, Mapping

from selectolax.lexbor import LexborHTMLParser
from sphinx.search.en import SearchEnglish

# The parts of a page, by what selects them, and what a word counts for there. What no selector
# takes is the text.
TITLE, WORDS, HEADINGS, CODE = "h1", "[data-pagefind-weight]", ":is(h2, h3)", "pre"
ABOUT, TEXT = "description", "text"
COUNTS = {TITLE: 8.0, WORDS: 8.0, HEADINGS: 3.0, ABOUT: 2.0, TEXT: 0.5, CODE: 0.1}
# How soon a word that comes again says no more, and how much less it says in a longer part.
SOON, LONGER = 1.2, 0.5
# Weights are kept in tenths. What weighs less tells pages hardly apart, and is left out.
LEAST = 10
WORD = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
# The stems that Sphinx's script, which the page asks, returns as well. Pages share their words.
_stem = functools.cache(SearchEnglish({}).stem)


def stems(text: str) -> list[str]:
    """Return the stems of a text's words; a name with `_` is a word, and each of its parts one."""
    words = WORD.findall(text.lower())
    parts = [part for word in words if "_" in word for part in word.split("_")]
    return [_stem(word) for word in (*words, *parts)]


def about(page: LexborHTMLParser) -> str:
    """Return what a page says of itself in its head."""
    said = page.css_first('meta[name="description"]')
    return (said.attributes["content"] or "") if said else ""


def parts_of(
    tree: LexborHTMLParser, root: str, skipped: Iterable[str]
) -> dict[str, collections.Counter[str]]:
    """Return how often each stem stands in each part of a page as it is searched.

    Each part is taken out of the page once its stems are counted.
    """
    for node in tree.css(", ".join(skipped)):
        node.decompose()
    found = {ABOUT: collections.Counter(stems(about(tree)))}
    for part in (TITLE, WORDS, HEADINGS, CODE):
        nodes = tree.css(f"{root} {part}")
        found[part] = collections.Counter(stems(" ".join(node.text() for node in nodes)))
        for node in nodes:
            node.decompose()
    text = " ".join(node.text(separator=" ") for node in tree.css(root))
    return found | {TEXT: collections.Counter(stems(text))}


def weights(pages: Iterable[Mapping[str, collections.Counter[str]]]) -> dict[str, list[int]]:
    """Return {stem: [number of a page, weight, number of a page, weight, …]} of pages' parts.

    A stem that tells no pages apart has an empty list.
    """
    pages = list(pages)
    usual = {part: sum(page[part].total() for page in pages) / len(pages) for part in COUNTS}
    often = []
    for page in pages:
        times: dict[str, float] = collections.defaultdict(float)
        for part, counts in page.items():
            length = 1 - LONGER + LONGER * counts.total() / max(usual[part], 1)
            for stem, count in counts.items():
                times[stem] += COUNTS[part] * count / length
        often.append(times)
    having = collections.Counter(stem for times in often for stem in times)
    found: dict[str, list[int]] = collections.defaultdict(list)
    for number, times in enumerate(often):
        for stem, of in times.items():
            rare = math.log(1 + (len(pages) - having[stem] + 0.5) / (having[stem] + 0.5))
            weight = round(10 * rare * of * (SOON + 1) / (of + SOON))
            found[stem] += [number, weight] if weight >= LEAST else []
    return dict(sorted(found.items()))
