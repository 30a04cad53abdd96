"""What a page quotes from documentation is written there, word for word."""

import operator
import pathlib
import re
import tomllib

import pytest

CLAIMS = pathlib.Path(__file__).parents[2] / "docs" / "claims"
KEPT = {path.stem: tomllib.loads(path.read_text("utf8")) for path in sorted(CLAIMS.glob("*.toml"))}
EVERY = [(page, key) for page, sources in KEPT.items() for key in sources]
QUOTED = re.compile(r"\{quoted\}`([^`:]+):\s*([^`]+)`")
# A sentence or two, so that nobody's page is kept here.
LONGEST = 400


def plain(text):
    """Return a text without its markup and line breaks."""
    return " ".join(re.sub(r":\w+:(?=`)|[`*]", "", text).split())


def text_of(page):
    return (CLAIMS / f"{page}.md").read_text("utf8")


def quoted(page, key):
    return [quote.strip() for source, quote in QUOTED.findall(text_of(page)) if source == key]


def not_said(quotes, kept):
    """Return the quotes that none of the kept sentences contains."""
    return [quote for quote in quotes if not any(quote in plain(sentence) for sentence in kept)]


@pytest.mark.parametrize(("page", "key"), EVERY)
def test_every_quote_is_in_a_sentence_of_its_source(page, key):
    assert quoted(page, key), "a source that its page does not quote"
    assert not_said(quoted(page, key), KEPT[page][key]["quotes"]) == []


@pytest.mark.parametrize(("page", "key"), EVERY)
def test_only_what_is_quoted_is_kept(page, key):
    for sentence in KEPT[page][key]["quotes"]:
        assert len(sentence) <= LONGEST
        assert any(quote in plain(sentence) for quote in quoted(page, key)), sentence


@pytest.mark.parametrize(("page", "key"), EVERY)
def test_every_source_is_one_revision_that_its_page_links_to(page, key):
    source = KEPT[page][key]
    assert source["licence"] and source["changed"] and source["author"] and source["title"]
    assert re.search(r"/blob/[0-9a-f]{40}/|/docs/\d+\.\d+/|/v?\d+\.\d+(\.\d+)?/", source["url"])
    assert any(f"({source.get(at)})" in text_of(page) for at in ("url", "page"))


DOCSTRINGS = [(page, key) for page, key in EVERY if "docstring" in KEPT[page][key]]


@pytest.mark.parametrize(("page", "key"), DOCSTRINGS)
def test_what_is_quoted_from_a_docstring_is_in_the_installed_library(page, key):
    module, _, name = KEPT[page][key]["docstring"].partition(".")
    said = plain(operator.attrgetter(name)(pytest.importorskip(module)).__doc__)
    assert [each for each in KEPT[page][key]["quotes"] if plain(each) not in said] == []


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("will fall back to eager", True),
        ("tensor and ndarray share", True),
        ("will fall ahead", False),
        ("fall .* eager", False),
    ],
)
def test_a_quote_is_looked_for_word_by_word(quote, said):
    kept = ["we will\n fall back to `eager`", "The returned tensor and :attr:`ndarray` share"]
    assert (not_said([quote], kept) == []) is said
