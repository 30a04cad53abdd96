"""Reports as one page, in the looks of the book: nothing is loaded, and it prints well."""

import html
import re

HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="color-scheme" content="light dark">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
)
# The blue of the book's mark, as light and dark pages have it.
STYLE = """
:root { --blue: #1f4fa3; --line: #d1d5da; --soft: #f3f4f5; }
@media (prefers-color-scheme: dark) {
  :root { --blue: #8ab4ff; --line: #48566b; --soft: #29313d; }
  body { background: #14181e; color: #ced6dd; }
}
body { font: 1rem/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.3; }
h2 { font-size: 1.2rem; margin-top: 2rem; }
a { color: var(--blue); }
code { background: var(--soft); border-radius: 0.2rem; padding: 0.1rem 0.25rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; }
:is(th, td) { border-bottom: 1px solid var(--line); padding: 0.3rem 0.8rem 0.3rem 0; text-align: start; }
ol > li { margin: 0.8rem 0; }
"""


def words(text):
    """Return a text as HTML, with what stands in backticks as code."""
    escaped = html.escape(str(text))
    return re.sub("`(.*?)`", r"<code>\1</code>", escaped, flags=re.DOTALL)


def link(address, text):
    """Return a link."""
    return f'<a href="{html.escape(address)}">{words(text)}</a>'


def items(texts):
    """Return a numbered list of what is HTML already; nothing for none."""
    lines = "".join(f"<li>{text}</li>\n" for text in texts)
    return f"<ol>\n{lines}</ol>\n" if lines else ""


def table(head, rows):
    """Return a table of texts; nothing without rows."""
    if not rows:
        return ""
    above = "".join(f'<th scope="col">{words(text)}</th>' for text in head)
    lines = "".join(
        f'<tr><th scope="row">{words(first)}</th>'
        + "".join(f"<td>{words(text)}</td>" for text in others)
        + "</tr>\n"
        for first, *others in rows
    )
    return f"<div><table>\n<tr>{above}</tr>\n{lines}</table></div>\n"


def section(title, inside):
    """Return a part of a page below a heading; nothing without content."""
    return f"<h2>{words(title)}</h2>\n{inside}" if inside else ""


def paragraphs(texts):
    """Return paragraphs of texts."""
    return "".join(f"<p>{words(text)}</p>\n" for text in texts)


def page(title, *parts):
    """Return the whole page: parts are HTML."""
    named = f"<title>{html.escape(title)}</title>"
    body = f"<h1>{words(title)}</h1>\n{''.join(parts)}"
    return (
        f"{HEAD}{named}<style>{STYLE}</style>\n<body>\n{body}</body></html>\n"
    )
