"""The index of the search is written whole, or the build fails."""

import json
import types

import pytest
from sphinx.errors import ExtensionError

from executed.options import Options
from light import page_weights, search

ENTRY = json.dumps({"languages": {"en": {"page_count": 1}}})


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a site of a page, whose index is written by a fake, and the texts that this writes."""
    page = "<html><body><article><h1>One</h1><p>Words.</p></article></body></html>"
    (tmp_path / "one.html").write_text(page, "utf8")
    written = []

    def index(texts, folder):
        assert list(texts) == ["one.html"]
        folder.mkdir(exist_ok=True)
        (folder / search.ENTRY).write_text(written.pop(0), "utf8")

    monkeypatch.setattr(search, "_index", index)
    builder = types.SimpleNamespace(format="html", get_target_uri=lambda name: f"{name}.html")
    values = {"extensions": ["light"], "book_search": True}
    book = types.SimpleNamespace(options=Options.from_values(values, tmp_path))
    env = types.SimpleNamespace(found_docs={"one"}, book=book, metadata={"one": {}})
    app = types.SimpleNamespace(outdir=tmp_path, doctreedir=tmp_path, builder=builder, env=env)
    return app, written


def test_a_heading_has_the_name_of_its_section_so_that_a_search_leads_there():
    page = (
        '<html><head></head><body><section class="a" id="one"><span></span><h1>One</h1>'
        '<section id="two"><p>Words.</p><h2>Two</h2></section></section></body></html>'
    )
    assert search.searched(page) == (
        '<html><head></head><body><section class="a"><span></span><h1 id="one">One</h1>'
        '<section><p>Words.</p><h2 id="two">Two</h2></section></section></body></html>'
    )


def test_the_words_of_a_page_are_below_its_title_in_what_is_searched():
    page = (
        '<html><head><meta name="description" content="All of it."></head><body><h1>Theme</h1>'
        '<article><section id="one"><h1>One</h1><p>Words.</p></section></article></body></html>'
    )
    found = search.searched(page, "a < b, recompile")
    assert (
        '<article><section><h1 id="one">One</h1><p data-pagefind-weight="8" '
        'data-pagefind-meta="words, description[title]" title="All of it.">a &lt; b, recompile</p>'
        "<p>Words.</p>"
    ) in found
    assert found.count("data-pagefind-weight") == 1


TABLE = """<html><body><article><h1>A table</h1><section><h2 id="two">Of one_hot</h2><table>
<tbody id="torch-fill"><tr><th>Fill <em>differs</em></th></tr>
<tr><td><code>v.masked_fill(mask, 0.0)</code></td><td><code>tf.where(mask, v)</code></td>
<td><code>jnp.where(mask, 0.0, v)</code></td></tr><tr><td><samp>1</samp></td></tr></tbody>
<tbody id="torch-where"><tr><th>Choose</th></tr><tr><td><code>torch.where(m, a)</code></td>
<td><code>tf.masked_fill(m)</code></td><td><code>jnp.where(m, a)</code></td></tr></tbody>
<tbody><tr><td><code>torch.no_address(1)</code></td></tr></tbody></table></section>
</article></body></html>"""


def test_rows_are_listed_by_what_their_code_calls_and_headings_by_their_words():
    listed = search.listed({"a/table.html": TABLE})
    assert listed["words"] == ["one_hot", "table"]
    assert listed["rows"] == {
        # In the first column, and nowhere in the last.
        "masked_fill": ("a/table.html#torch-fill", "Fill", True),
        "where": ("a/table.html#torch-where", "Choose", False),
    }


PAGE = """<html><head><meta name="description" content="{}"></head><body><article><h1>{}
<a class="headerlink">#</a></h1><h2>{}</h2><p>{}</p><pre>x = 1</pre></article></body></html>"""


def weighed(stem, **pages):
    """Return {page: weight of a stem}."""
    listed = search.listed({name: PAGE.format(*parts) for name, parts in pages.items()})
    names, given = [name for name, *_ in listed["pages"]], listed["weights"].get(stem, [])
    return {names[given[i]]: given[i + 1] for i in range(0, len(given), 2)}


def test_a_word_weighs_most_in_a_title_then_in_what_a_page_is_about_then_in_its_text():
    pages = {
        "title": ("", "Scatter", "Two", "words"),
        "heading": ("", "One", "Scatter", "words"),
        "about": ("scatter", "One", "Two", "words"),
        "text": ("", "One", "Two", "scatter words"),
        **{f"other{n}": ("", "One", "Two", "words") for n in range(40)},
    }
    found = weighed("scatter", **pages)
    assert [*sorted(found, key=found.get, reverse=True)] == ["title", "heading", "about", "text"]


def test_a_word_of_all_pages_tells_none_apart_and_a_rare_one_does():
    pages = {f"page{n}": ("", "One", "Two", "words of all") for n in range(20)}
    assert weighed("word", **pages) == {}
    # What is typed is this word all the same, and not the beginning of another.
    listed = search.listed({name: PAGE.format(*parts) for name, parts in pages.items()})
    assert listed["weights"]["word"] == []
    assert set(weighed("rare", **pages, rare=("", "One", "Two", "words, rarely"))) == {"rare"}


def test_a_name_is_found_by_its_parts_and_a_verb_in_any_form():
    assert page_weights.stems("Compiling block_until_ready") == [
        *("compil", "block_until_readi", "block", "until", "readi")
    ]
    pages = {f"page{n}": ("", "One", "Two", "words") for n in range(9)}
    found = weighed("compil", **pages, code=("", "How it was compiled", "Two", "words"))
    assert set(found) == {"code"}


def test_a_page_is_listed_with_what_its_head_says():
    page = search.searched(PAGE.format("All of it.", "One", "Two", "words"), "first, other")
    assert search.listed({"a.html": page})["pages"] == [
        ["a.html", "One", "All of it.", "first, other"]
    ]


def test_an_index_that_is_not_whole_is_made_again_although_no_page_is_newer(site):
    app, written = site
    written += [ENTRY, "left"]
    search.finish(app, None)
    search.finish(app, None)
    assert written == ["left"]
    (app.outdir / search.FOLDER / search.ENTRY).write_text("", "utf8")
    written[:] = [ENTRY]
    search.finish(app, None)
    assert written == []


@pytest.mark.parametrize("entry", ["", "{}", '{"languages": {"en": {"page_count": 0}}}'])
def test_an_index_without_its_pages_fails_the_build(site, entry):
    app, written = site
    written += [entry]
    with pytest.raises(ExtensionError, match="does not have the 1 pages that were to be searched"):
        search.finish(app, None)
    assert written == []
