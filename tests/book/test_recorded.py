"""The committed recordings are enough for the whole site."""

import os
import pathlib
import re
import zipfile

import pytest
import yaml
from selectolax.lexbor import LexborHTMLParser

from measured.recording import PROCESSES
from tests.book.conftest import ADDRESS

ROOT = pathlib.Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^()\s#]*)#?([^()\s]*)\)")


@pytest.fixture(scope="module")
def listed(without_frameworks):
    return without_frameworks("executed.commands.list_recordings")


def test_the_recordings_of_the_cpu_are_current(listed):
    assert listed.returncode == 0, listed.stdout
    of_cpu = listed.stdout.partition("\ncpu:")[2] or listed.stdout
    of_cpu = re.split(r"^\w", of_cpu.partition("\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    words = [line.split() for line in of_cpu.splitlines()]
    old = [
        each[-2] if each[-1] == "missing" else each[1] for each in words if "current" not in each
    ]
    assert words and not old, f"'nox -s record -- --changed' records {', '.join(old)} anew"


def test_every_recording_can_be_read(listed):
    assert not [line for line in listed.stdout.splitlines() if "unreadable" in line]


def test_what_was_recorded_of_a_page_goes_with_it(listed):
    # Of a page that is merged into another, the recorded cells are moved into that one's recording.
    gone = "left over: the page is gone"
    assert not [line for line in listed.stdout.splitlines() if gone in line]


def test_the_site_is_built_from_recordings_without_any_framework(recorded_site):
    assert recorded_site.returncode == 0, recorded_site.stdout
    assert "executed" not in recorded_site.stdout
    page = (recorded_site.html / "learn" / "tracing.html").read_text("utf8")
    assert "Array(" in page
    assert "Recorded 20" in page


# What no reader should see: mathematics that was not set, Python's own words for objects, and
# roles and directives that nobody resolved. The latter two may be told about in code.
ANYWHERE = re.compile(r"\$\\|mathdefault")
IN_OUTPUTS = re.compile(r"<function\b|\bobject at 0x|<bound method|\ANone\Z")
IN_PROSE = re.compile(r"\{[a-z][a-z-]*\}[`‘“]?|:[a-z]+:`|(?<!\w)`{3}")
PROSE = "p, li, td, th, dd, dt, h1, h2, h3, h4, figcaption, summary, legend"


def unwanted(html):
    """Return the texts of a page that belong on none."""
    article = LexborHTMLParser(html).css_first("article")
    if article is None:
        return []
    for hidden in article.css("script, style"):
        hidden.decompose()
    found = _around(ANYWHERE, article.text())
    # A message may name a function in Python's words, as the reader's own would.
    for output in article.css(".cell_output > :not(.traceback) pre"):
        found += _around(IN_OUTPUTS, output.text().strip())
    for code in article.css("pre, code, .compile-frame"):
        code.decompose()
    for block in article.css(PROSE):
        found += _around(IN_PROSE, block.text())
    return list(dict.fromkeys(found))


def _around(pattern, text):
    """Return what a pattern finds in a text, each with a few words around it."""
    found = []
    for match in pattern.finditer(text):
        words = text[max(0, match.start() - 40) : match.end() + 40].split()
        found.append(f"{match.group()!r} in {' '.join(words)!r}")
    return found


def test_no_page_shows_what_belongs_on_none(recorded_site):
    site, found = recorded_site.html, []
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        found += [f"{name}: {text}" for text in unwanted(path.read_text("utf8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("html", "seen"),
    [
        (r"<svg><text>$\mathdefault{10^{2}}$</text></svg>", True),
        (r"<svg><text>$\times$</text></svg>", True),
        ("<div class='cell_output'><div><pre>None\n</pre></div></div>", True),
        ("<div class='cell_output'><div><pre>None, None\n</pre></div></div>", False),
        ("<div class='cell_output'><div><pre>&lt;function f at 0x…&gt;</pre></div></div>", True),
        (
            "<div class='cell_output'><div class='traceback'><pre>&lt;function</pre></div></div>",
            False,
        ),
        ("<p>It took {measured}`x@jax`.</p>", True),
        ("<p>Write <code>{measured}</code>.</p>", False),
        ("<p>None of them.</p>", False),
        ("<script>'{measured}'</script><p>a</p>", False),
    ],
)
def test_the_search_finds_what_belongs_nowhere_and_nothing_else(html, seen):
    assert bool(unwanted(f"<article>{html}</article>")) == seen


def test_the_page_on_method_says_in_how_many_processes_pages_are_recorded():
    method = (ROOT / "docs" / "method.md").read_text("utf8")
    assert (PROCESSES, "ten fresh processes" in method) == (10, True)


@pytest.fixture(scope="module")
def skill(recorded_site):
    """Return {path: text} of the files of the Agent Skill."""
    archive = zipfile.ZipFile(recorded_site.html / "jax-measured.zip")
    found = {name: archive.read(name).decode("utf8") for name in archive.namelist()}
    assert all(name.startswith("jax-measured/") for name in found)
    return {name.removeprefix("jax-measured/"): text for name, text in found.items()}


def test_the_skill_has_the_head_and_the_sizes_that_programs_expect(skill):
    text = skill["SKILL.md"]
    head = yaml.safe_load(text.split("---\n")[1])
    assert head.keys() == {"name", "description"}
    assert head["name"] == "jax-measured"
    assert 100 < len(head["description"]) <= 1024 and not set("<>") & set(head["description"])
    assert len(text.splitlines()) < 500 and len(text) < 20_000
    assert "{" not in text
    assert {name: len(each) for name, each in skill.items() if len(each) >= 73_000} == {}


def test_a_link_of_the_skill_leads_to_a_file_beside_it_or_to_a_page_of_the_site(
    skill, recorded_site
):
    site, wrong = recorded_site.html, []
    for name, text in skill.items():
        text = re.sub(r"^(`{3,}).*?^\1|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
        for target, anchor in LINK.findall(text):
            if target.startswith("http") and not target.startswith(ADDRESS):
                continue
            beside = os.path.normpath(os.path.join(os.path.dirname(name), target))
            page = target.removeprefix(ADDRESS)
            if not target.startswith(ADDRESS):
                page = (beside if target else name).removeprefix("references/")
                page = page.removesuffix(".md") + ".html"
                wrong += [] if not target or beside in skill else [f"{name}: {target}"]
            path = site / page
            held = path.is_file() and (not anchor or f'id="{anchor}"' in path.read_text("utf8"))
            wrong += [] if held else [f"{name}: {target}#{anchor}"]
    assert not wrong, "\n".join(wrong)


def test_the_skill_has_every_error_of_the_list_and_says_who_raised_it(skill):
    source = (ROOT / "docs" / "pitfalls" / "index.md").read_text("utf8")
    entries = re.findall(r"^:::\{error-entry\} (.+)$", source, re.MULTILINE)
    parts = re.split(r"^### ", skill["references/pitfalls/index.md"], flags=re.MULTILINE)[1:]
    listed = {part.partition("\n")[0].strip("` "): part for part in parts}
    assert len(entries) > 80
    for entry in entries:
        assert entry in listed, entry
        known = re.search(r"^\(JAX \d|^\(Quoted: ", listed[entry], re.MULTILINE)
        assert known, f"no current recording raises {entry}: 'nox -s record -- --changed'"
