"""Code of functions, and texts as HTML."""

from snippets.start import rows


def doubled(x):
    y = 2 * x
    return y


def test_the_code_of_a_function_is_its_body_without_return():
    assert rows.code(doubled) == "y = 2 * x\ny"


def test_an_element_holds_text_and_has_attributes():
    assert rows.element("td", 'a < "b"', id="c") == '<td id="c">a &lt; "b"</td>'
