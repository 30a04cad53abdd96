"""Functions as code, and texts as HTML, in tables of code that is run."""

import html
import inspect
import textwrap


def code(function):
    """Return the code of a function: what it returns, and what is before."""
    source = textwrap.dedent(inspect.getsource(function)).strip()
    if function.__name__ == "<lambda>":
        return source.removesuffix(",").partition(": ")[2]
    body = textwrap.dedent(source.partition("\n")[2])
    return "".join(body.rsplit("return ", 1))


def element(tag, text, **attributes):
    """Return an HTML element that holds text."""
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{given}>{html.escape(text, quote=False)}</{tag}>"
