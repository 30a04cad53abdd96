"""The body of a page in Markdown, for programs and for the notebook that readers download."""

import html

from selectolax.lexbor import LexborHTMLParser

# What is there to be used on a screen, and what only drawings say.
USED = (
    ".headerlink, .copybtn, svg, script, style, input, button, p.expanded, .device-notice, .at-home"
)
# What the page folds because few want to read it: helpers, logs, compiled programs, the words of
# old versions, the data of a tree that is there as a list. The notebook has the code.
FOLDED = "details.hide, details.earlier, .compile-view details, .picture-tree details"


def markdown(body: str) -> str:
    """Return the body of a page in Markdown; what numbers have on hover are footnotes."""
    # Imported here, for a build that writes no page.
    import html_to_markdown

    tree = LexborHTMLParser(f"<article>{body}</article>")
    for node in tree.css(f"{USED}, {FOLDED}"):
        node.decompose()
    for node in tree.css(".error-entry details"):
        node.replace_with(f" ({by})" if (by := node.attributes.get("data-by")) else "")
    for node in tree.css("details.traceback"):
        said = html.escape(node.css("summary")[0].text())
        node.replace_with(LexborHTMLParser(f"<pre>{said}</pre>").css("pre")[0])
    for node in tree.css("figcaption > details"):
        # A caption is emphasised, which data in it would end.
        if node.parent is not None:
            node.parent.insert_after(node)
        node.decompose()
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
    found = tree.css_first("article")
    options = html_to_markdown.ConversionOptions(br_in_tables=True, compact_tables=True)
    text = html_to_markdown.convert((found.html if found else "") or "", options)
    footnotes = [f"[^{number}]: {note}" for note, number in notes.items()]
    return "\n\n".join([str(getattr(text, "content", text)).strip(), *footnotes]) + "\n"
