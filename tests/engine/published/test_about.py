"""A page in Markdown reads as the page does."""

from executed.hooks import features
from executed.markdown import markdown
from executed.nodes import JOINER
from executed.options import Options
from tests.engine.conftest import EXTENSIONS

MEASURED = (
    '<p>It takes <span class="noted"><span class="measured" tabindex="0">{0}</span>'
    '<span class="note" role="tooltip" id="note-1">{1}</span></span>'
    '<span class="on-device at-home"> CPU</span>.</p>'
)


# What features show on pages alone.
FEATURES = features(Options(extensions=EXTENSIONS))


def test_what_a_number_has_on_hover_is_a_footnote():
    body = "".join(
        MEASURED.format(*each)
        for each in [("2×", "from 1 to 3"), (f"5 s (4–{JOINER}6)", "on cpu"), ("3×", "from 1 to 3")]
    )
    assert markdown(body, FEATURES).split("\n\n") == [
        "It takes 2×[^1].",
        "It takes 5 s (4–6)[^2].",
        "It takes 3×[^1].",
        "[^1]: from 1 to 3",
        "[^2]: on cpu\n",
    ]


def test_lines_of_code_in_a_table_stay_lines_and_its_result_stands_outside():
    body = (
        "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td><code>n = 1\n"
        "n &lt; 2</code><samp>True</samp></td><td><code>n</code></td></tr></tbody></table>"
    )
    assert markdown(body).splitlines()[2] == "| `n = 1`<br>`n < 2` → `True` | `n` |"


def test_rows_of_a_table_have_no_empty_cells_at_their_end_and_code_stays_as_it_is():
    body = (
        "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody>"
        '<tr><td colspan="2">One</td></tr><tr><td>1</td><td></td></tr><tr><td></td><td>2</td></tr>'
        "</tbody></table><pre>| --- | --- |\n| 1 | |</pre>"
    )
    table, code = markdown(body).split("\n\n", 1)
    assert table.splitlines()[1:4] == ["|---|---|", "| One |", "| 1 |"]
    assert table.splitlines()[4].split() == ["|", "|", "2", "|"]
    assert code == "```\n| --- | --- |\n| 1 | |\n```\n"


def test_what_the_page_folds_is_left_out_and_what_a_question_covers_is_not():
    body = (
        '<details class="admonition hide below-input"><summary>Show</summary><pre>raw</pre>'
        '</details><details class="traceback"><summary>TypeError: no &lt;array&gt;</summary>'
        "<pre>Traceback\n  line 1</pre></details>"
        '<details class="predict-output"><summary>Look</summary><pre>42</pre></details>'
        "<details><summary>The numbers as a table</summary><p>7</p></details>"
    )
    text = markdown(body)
    assert "raw" not in text and "line 1" not in text
    assert all(words in text for words in ("TypeError: no <array>", "42", "7"))


def folded_code(code):
    return (
        '<details class="admonition hide above-input"><summary><span class="collapsed">Show the '
        'helpers used below: f</span><span class="expanded">Hide</span></summary>'
        f'<div class="cell_input"><pre>{code}</pre></div></details>'
    )


def test_folded_code_is_there_so_that_a_program_can_run_the_page():
    body = f"{folded_code('def f(): ...')}<pre>f()</pre>"
    text = "Helpers used below: f\n\n```python\ndef f(): ...\n```\n\n```\nf()\n```\n"
    assert markdown(body) == text


def test_folded_code_that_is_very_long_is_left_to_the_notebook():
    text = markdown(folded_code("x = 1\n" * 5000), (), "https://a.example/_sources/b/c.ipynb")
    assert text == "Helpers used below: f (in `https://a.example/_sources/b/c.ipynb`)\n"


def test_a_fold_that_is_open_has_no_label():
    body = (
        '<details class="predict-output"><summary>Look</summary><pre>42</pre></details>'
        '<div class="chart-figure"><details><summary>As a table</summary><p>7</p></details>'
        "</div>"
    )
    assert markdown(body, FEATURES) == "```\n42\n```\n\n7\n"


def test_a_caption_stands_once_above_the_tabs_that_all_have_it():
    caption = '<div class="chart-caption"><p>{}</p></div><p>numbers of {}</p>'
    tab = f'<div class="sd-tab-content">{caption}</div>'
    tabs = tab.format("By size.", "one"), tab.format("By size.", "two"), tab.format("By age.", 3)
    body = f'<div class="sd-tab-set">{"".join(tabs)}</div>'
    lines = markdown(body, FEATURES).split("\n\n")
    assert lines == ["By size.", "numbers of one", "numbers of two", "By age.", "numbers of 3\n"]


def test_the_source_of_quotes_is_named_at_the_first():
    quote = '<p><a class="quoted" href="a.html" title="{}">“{}”</a></p>'
    quotes = [("by Ann", "one"), ("by Ann", "two"), ("by Bob", "six")]
    assert markdown("".join(quote.format(*each) for each in quotes)).split("\n\n") == [
        '[“one”](a.md "by Ann")',
        "[“two”](a.md)",
        '[“six”](a.md "by Bob")\n',
    ]


def test_the_data_of_a_picture_stand_below_its_caption_unless_a_list_says_them():
    page = (
        '<figure class="picture{}"><figcaption>One call.<details><summary>The data</summary>'
        "<pre>[1, 2]</pre></details></figcaption></figure>"
    )
    assert markdown(page.format("")) == "*One call.*\n\n**The data**\n\n```\n[1, 2]\n```\n"
    assert markdown(page.format(" picture-tree"), FEATURES) == "*One call.*\n"


def test_markdown_keeps_powers_apart_from_their_base():
    assert markdown("<p>Scales of 2<sup>16</sup> and <b>2<sup>40</sup></b>.</p>") == (
        "Scales of 2^16 and **2^40**.\n"
    )
