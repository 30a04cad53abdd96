"""Pages of a site, as a folder for programs that help people to write code."""

import re
import zipfile

import pytest

pytest.importorskip("sphinx_book_theme")


def test_the_code_of_a_page_is_all_in_its_markdown(themed):
    themed.snippet("a.low", "import math\ndef low(x): return math.floor(x)\n")
    themed.snippet("a.one", "from snippets.a.low import low\ndef f(x): return low(x) + 41\n")
    hidden = "```{code-cell} python\n:tags: [hide-input]\ny = f(1.5)\n```"
    themed.page("a/one", themed.cell("f(1.5)", "one.f"), hidden, themed.cell("print(y + 1)"))
    assert themed.build(strict=False).status == 0
    text = (themed.root / "build/html/a/one.md").read_text("utf8")
    ran = {}
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(code, ran)
    assert ran["y"] == 42 and "```\n43\n```" in text


def test_the_links_of_a_skill_hold_away_from_the_site(themed):
    themed.page("a/one", "[Two](two.md#here), [far](../b/far.md)", notebook=False)
    themed.page("a/two", "## Here", "```\n## no section\n```", themed.cell("import numpy"))
    themed.page("b/far", "Far.", notebook=False)
    conf = themed.root / "conf.py"
    text = conf.read_text("utf8")
    text += 'project = "The Fruit!"\nbook_skill = ["a/*"]\nmyst_heading_anchors = 2\n'
    conf.write_text(text, "utf8")
    built = themed.build(strict=False)

    def packed():
        archive = zipfile.ZipFile(themed.root / "build/html/the-fruit.zip")
        return {name: archive.read(name).decode("utf8") for name in archive.namelist()}

    files = packed()
    assert built.status == 0 and len(files) == 3
    assert "[Two](two.md#here), [far](../b/far.md)" in files["the-fruit/references/a/one.md"]
    start = files["the-fruit/SKILL.md"]
    assert "- [Page a/two](references/a/two.md) (numpy==" in start
    assert "  - Here" in start and "no section" not in start

    conf.write_text(f'{text}html_baseurl = "https://book.example/"\n', "utf8")
    themed.build(strict=False)
    one = packed()["the-fruit/references/a/one.md"]
    assert "https://book.example/a/one.html" in one.splitlines()[0]
    assert "[far](https://book.example/b/far.html)" in one
