"""What a page with the theme of the book loads, and what it says of itself to programs."""

import json
import os
import pathlib
import re

import pytest
from selectolax.lexbor import LexborHTMLParser

from light import asset_bundle

pytest.importorskip("sphinx_book_theme")
ROOT = pathlib.Path(__file__).parents[3]
THEMES = asset_bundle.THEMES
SEARCH = "\nbook_search = True\n"


@pytest.fixture(scope="module")
def built(lasting):
    """Build a site of three pages, with the index of its search."""
    conf = lasting.root / "conf.py"
    conf.write_text(conf.read_text("utf8") + SEARCH, "utf8")
    lasting.page(
        "a/one", "Words about tracers.\n\n## A section of two\n\nMore words.", notebook=False
    )
    lasting.page("a/two", lasting.cell("print('an output of two')"))
    lasting.page("index", "```{toctree}\na/one\na/two\na/three\n```", notebook=False)
    page = lasting.page("a/three", "A page with a script of its own.", notebook=False)
    page.write_text(page.read_text("utf8").replace("---", "---\nscripts: layouts.js", 1), "utf8")
    lasting.built()
    return lasting


def loaded(text):
    """Return the files that a page loads, without their versions."""
    tree = LexborHTMLParser(text)
    nodes = tree.css("script[src], link[rel=stylesheet], link[rel=preload]")
    addresses = [node.attributes.get("src") or node.attributes["href"] for node in nodes]
    return [address.partition("?")[0].rpartition("/")[2] for address in addresses]


def test_a_page_loads_one_style_sheet_and_one_script_besides_the_early_one(built):
    assert loaded(built.html("a/one")) == ["site.css", "devices.js", "site.js"]
    assert loaded(built.html("search")) == ["site.css", "devices.js", "site.js"]


def test_a_script_of_one_page_is_loaded_there_alone_and_its_words_have_their_styles(built):
    assert loaded(built.html("a/three")) == ["site.css", "devices.js", "site.js", "layouts.js"]
    static = built.root / "build/html/_static"
    assert "layout-placement" not in (static / "site.js").read_text("utf8")
    assert "form.layouts" in (static / "site.css").read_text("utf8")


def test_the_style_sheet_has_what_pages_use_and_no_more(built):
    text = (built.root / "build/html/_static/site.css").read_text("utf8")
    for used in (".bd-sidebar-primary", ".tooltip-inner", ".theme-switch"):
        assert used in text
    for unused in (".carousel", ".accordion", "fa-regular-400", "fa-brands-400"):
        assert unused not in text
    assert len(text) < 200_000
    # The icons that pages show, within the style sheet.
    assert re.search(r'--fa:\s*"', text) and "url(data:font/woff2;base64," in text


def test_the_script_looks_at_all_that_may_scroll_before_it_writes_anything(built):
    text = (built.root / "build/html/_static/site.js").read_text("utf8")
    for found, mend in asset_bundle.MENDED_SCRIPT:
        assert mend in text and (found not in text or found in mend)


def test_on_a_phone_the_menu_opens_at_the_page_that_is_shown(built, browser):
    from playwright.sync_api import expect

    page = browser.new_page(viewport={"width": 390, "height": 120})
    page.goto((built.root / "build/html/a/two.html").as_uri())
    page.locator(".primary-toggle").first.click()
    menu = page.locator("dialog[open]")
    menu.wait_for()
    link = menu.locator(".bd-docs-nav .active > a").last
    assert link.inner_text() == "Page a/two"
    expect(link).to_be_in_viewport(ratio=1)
    page.close()


def test_where_no_index_can_be_asked_a_title_comes_before_a_section(built, browser):
    page = browser.new_page()
    page.goto(f"{(built.root / 'build/html/search.html').as_uri()}?q=two")
    found = page.locator("#search-results li > a")
    found.first.wait_for()
    titles = found.all_inner_texts()
    page.close()
    assert titles[0] == "Page a/two" and "Page a/one" in titles


def test_a_second_build_writes_nothing_of_it_again(built):
    names = ("_static/site.css", "_static/site.js", "pagefind/pagefind-entry.json", "llms.txt")
    paths = [built.root / "build/html" / name for name in names]
    before = [path.stat().st_mtime_ns for path in paths]
    built.built()
    assert [path.stat().st_mtime_ns for path in paths] == before


def test_the_index_of_the_search_knows_the_sections(built):
    folder = built.root / "build/html/pagefind"
    entry = json.loads((folder / "pagefind-entry.json").read_text("utf8"))
    assert entry["languages"]["en"]["page_count"] == 4
    assert not list(folder.glob("*ui*"))


def test_a_page_says_what_it_is_about_and_lies_there_in_markdown(built):
    head = LexborHTMLParser(built.html("a/one"))
    found = head.css_first('meta[name="description"]').attributes["content"]
    assert found == "Words about tracers."
    assert len(head.css('meta[name="viewport"]')) == 1
    address = head.css_first('link[rel="alternate"]').attributes["href"]
    assert (built.root / "build/html/a" / address).read_text("utf8").startswith("# ")
    assert "an output of two" in (built.root / "build/html/a/two.md").read_text("utf8")
    assert "(a/two.md)" in (built.root / "build/html/llms.txt").read_text("utf8")


def test_a_list_of_pages_says_what_each_is_about_and_not_their_sections(built):
    def listed():
        body = LexborHTMLParser(built.html("index")).css_first("article")
        return [[node.text(strip=True) for node in body.css(name)] for name in ("dt", "dd", "li")]

    third = "A page with a script of its own."
    titles = ["Page a/one", "Page a/two", "Page a/three"]
    assert listed() == [titles, ["Words about tracers.", "", third], []]
    page = built.path("a/three")
    built.edit(page, third, "Other words.")
    built.built()
    assert listed()[1][2] == "Other words."
    built.edit(page, "Other words.", third)
    built.built()


def test_a_word_that_is_new_on_a_page_brings_its_style(themed):
    page = themed.page("a/one", "Words.", notebook=False)
    themed.built()
    sheet = themed.root / "build/html/_static/site.css"
    assert ".sd-card-title" not in sheet.read_text("utf8")
    page.write_text(page.read_text("utf8") + "\n\n```{card} A title\nMore.\n```\n", "utf8")
    themed.built()
    assert ".sd-card-title" in sheet.read_text("utf8")


def test_the_theme_is_of_the_version_whose_pages_are_patched():
    lock = (ROOT / "requirements.lock").read_text("utf8")
    locked = re.findall(r"^(\w+-\w+-theme)==(\S+)", lock, re.MULTILINE)
    assert locked == sorted(THEMES.items()), (
        "compare with the theme before: its layout.html with light/templates/layout.html, its "
        "pages with `patch_theme_html`, its script with MENDED_SCRIPT, what Bootstrap gives to "
        "elements with MENUS, the buttons of its header with executed/downloads.py, and the site "
        "on a phone and a desktop, light and dark; then change THEMES"
    )


def test_what_stands_within_strings_survives(tmp_path):
    (tmp_path / "a.css").write_text(
        '.gone{color:red}.kept{--kept:url("data:x;y}z");--gone:1;background:var(--kept)}'
        ".kept:after{content:'.gone{}'}"
    )
    text = asset_bundle.style_sheet(tmp_path, ["a.css"], {"kept"}, set())
    assert text.count("gone") == 1 and "--kept:url(" in text and "data:x;y}z" in text


def test_no_style_asks_a_word_of_code_for_all_that_are_before_it(tmp_path):
    (tmp_path / "a.css").write_text(".kept p ~ *{color:red}.kept p~*,.kept ~ b{margin:0}")
    text = asset_bundle.style_sheet(tmp_path, ["a.css"], {"kept"}, set())
    assert text.count("p~:not(:where(span))") == 2 and ".kept~b{" in text and "~*" not in text


def test_names_in_tables_break_between_their_words_and_are_copied_as_they_are(browser):
    code = "torch.nn.functional.scaled_dot_product_attention(q, key=jax.lax.stop_gradient(k))"
    text = asset_bundle.patch_theme_html(in_row(f"<td><code>{code}</code></td>"))
    page = browser.new_page()
    page.set_content(f"<div style='width: 0; overflow-wrap: break-word'>{text}</div>")
    page.locator("code").evaluate("code => getSelection().selectAllChildren(code)")
    copied = page.evaluate("getSelection().toString()")
    lines = page.locator("code").evaluate(
        """code => {
          const lines = new Map(), range = new Range();
          for (const text of [...code.childNodes].filter((each) => each.data)) {
            for (let n = 0; n < text.length; n++) {
              range.setStart(text, n);
              range.setEnd(text, n + 1);
              const { top } = range.getBoundingClientRect();
              lines.set(top, (lines.get(top) ?? "") + text.data[n]);
            }
          }
          return [...lines.values()].map((line) => line.trim());
        }"""
    )
    page.close()
    assert copied == code
    assert len(lines) > 5 and all(line[-1] in ".,(_=)" for line in lines)


def in_row(cells):
    return f"<table><tbody><tr>{cells}</tr></tbody></table>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '<summary aria-label="Toggle hidden content">\n<p class="collapsed">x</p></summary>',
            '<summary>\n<span class="collapsed">x</span></summary>',
        ),
        (
            '<a href="b.html">B &amp; C</a><details><summary>'
            '<span class="toctree-toggle" role="presentation">v</span></summary></details>',
            '<a href="b.html">B &amp; C</a><details><summary aria-label="Pages of “B &amp; C”">'
            '<span class="toctree-toggle">v</span></summary></details>',
        ),
        (
            '<form class="bd-search d"><i></i><input type="search"><span>K</span></form>',
            '<form class="bd-search d"><i></i><input type="search">'
            '<button type="submit" class="search-submit">Search</button><span>K</span></form>',
        ),
        ('<button class="a">x</button>', '<button class="a" type="button">x</button>'),
        (
            '<button class="a search-button-field" title="Search" aria-label="Search">x</button>',
            '<button class="a search-button-field" type="button">x</button>',
        ),
        ('<button type="submit">x</button>', '<button type="submit">x</button>'),
        (in_row('<th class="head"><p></p></th>'), in_row('<td class="head"></td>')),
        (in_row('<th><img src="a.png"></th>'), in_row('<th><img src="a.png"></th>')),
        (
            in_row('<th class="stub head"><p>a</p></th><th class="head" scope="colgroup">b</th>'),
            in_row(
                '<th class="stub head" scope="col"><p>a</p></th>'
                '<th class="head" scope="colgroup">b</th>'
            ),
        ),
        (
            in_row('<td><code>x.at <i class="a.b">__call__(one_argument)</i> x.at</code></td>'),
            in_row(
                '<td><code>x.at <i class="a.b">__call__(<wbr>one_<wbr>argument)</i> x.at</code>'
                "</td>"
            ),
        ),
        (
            '<span class="n">x</span><span class="o">=</span><span class="p">(</span>',
            'x<span class="o">=</span>(',
        ),
    ],
)
def test_what_validators_stumble_over_is_mended(before, after):
    assert asset_bundle.patch_theme_html(before) == after


def test_a_changed_page_is_looked_at_though_the_clock_was_set_back(built):
    site = built.root / "build/html"
    sheet, entry = site / "_static/site.css", site / "pagefind/pagefind-entry.json"
    for path in site.rglob("*"):
        os.utime(path, (4e9, 4e9))
    indexed, path = entry.read_text("utf8"), built.path("a/one")
    before = path.read_text("utf8")
    path.write_text(f"{before}\n```{{tip}}\nA new word.\n```\n", "utf8")
    built.built()
    assert ".tip" in sheet.read_text("utf8") and entry.read_text("utf8") != indexed
    path.write_text(before, "utf8")
    built.built()
