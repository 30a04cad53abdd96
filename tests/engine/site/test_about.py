"""A page in Markdown reads as the page does."""

from _ext.site.markdown import markdown

MEASURED = (
    '<p>It takes <span class="noted"><span class="measured" tabindex="0">{0}</span>'
    '<span class="note" role="tooltip" id="note-1">{1}</span></span>'
    '<span class="on-device at-home"> CPU</span>.</p>'
)


def test_what_a_number_has_on_hover_is_a_footnote():
    body = "".join(
        MEASURED.format(*each)
        for each in [("2×", "from 1 to 3"), ("5 s", "on cpu"), ("3×", "from 1 to 3")]
    )
    assert markdown(body).split("\n\n") == [
        "It takes 2×[^1].",
        "It takes 5 s[^2].",
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


def test_what_the_page_folds_is_left_out_and_what_a_question_covers_is_not():
    body = (
        '<details class="admonition hide above-input"><summary>Show</summary><pre>helper</pre>'
        '</details><details class="traceback"><summary>TypeError: no &lt;array&gt;</summary>'
        "<pre>Traceback\n  line 1</pre></details>"
        '<details class="predict-output"><summary>Look</summary><pre>42</pre></details>'
        "<details><summary>The numbers as a table</summary><p>7</p></details>"
    )
    text = markdown(body)
    assert "helper" not in text and "line 1" not in text
    assert all(words in text for words in ("TypeError: no <array>", "42", "7"))


def test_the_data_of_a_picture_stand_below_its_caption_unless_a_list_says_them():
    page = (
        '<figure class="picture{}"><figcaption>One call.<details><summary>The data</summary>'
        "<pre>[1, 2]</pre></details></figcaption></figure>"
    )
    assert markdown(page.format("")) == "*One call.*\n\n**The data**\n\n```\n[1, 2]\n```\n"
    assert markdown(page.format(" picture-tree")) == "*One call.*\n"
