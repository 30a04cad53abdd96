"""What each extension of the engine costs, beside the pages that use it. `nox -s prices` prints it.

Lines are counted with their docstrings. Seconds are those of one recorded build in one process,
by a profile, which makes Python slower: compare them with one another. With --write the table goes
where docs/engine.md shows it.
"""

import argparse
import collections
import cProfile
import itertools
import pathlib
import pstats
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
ENGINE = ROOT / "docs" / "_ext"
TABLE = ROOT / "docs" / "_static" / "prices.md"
sys.path.insert(0, str(ENGINE))

from sphinx.application import Sphinx  # noqa: E402

from executed.book import book_of  # noqa: E402

HEAD = ("extension", "Python", "scripts", "styles, templates", "tests", "seconds", "pages")
KINDS = ((".py",), (".js",), (".css", ".jinja", ".html"))
# They belong to each page.
EXTENSIONS = sorted(path.parent.name for path in ENGINE.glob("*/__init__.py"))
EVERYWHERE = ("executed", "light", "published", "drawing")


def lines(folder, endings):
    """Return how many lines the files of a folder have that end so."""
    paths = (path for ending in endings for path in folder.rglob(f"*{ending}"))
    return sum(len(path.read_text("utf8").splitlines()) for path in paths)


def build(out):
    """Build the recorded site under a profile; return its pages, what extensions
    conclude of which, and {file: seconds}."""
    profile = cProfile.Profile()
    folders = map(str, (ROOT / "docs", ROOT, out / "html", out / "doctrees"))
    profile.enable()
    app = Sphinx(*folders, "html", confoverrides={"book_recorded": True}, status=None)
    app.build()
    profile.disable()
    seconds = {}
    for (path, *_), (*_, own, _, _) in pstats.Stats(profile).stats.items():
        seconds[path] = seconds.get(path, 0) + own
    concluded = {name: {*book_of(app.env).concluded(name)} for name in EXTENSIONS}
    for feature in book_of(app.env).features:
        for name in app.env.found_docs:
            text = pathlib.Path(app.env.doc2path(name)).read_text("utf8")
            if any(f"\n:{option}:" in text for option in feature.cell_options):
                concluded[feature.name].add(name)
    html = {name: (out / "html" / f"{name}.html").read_text("utf8") for name in app.env.found_docs}
    return html, concluded, seconds


def classes(name):
    """Return the classes that the style sheets of an extension select."""
    sheets = (path.read_text("utf8") for path in (ENGINE / name).rglob("*.css"))
    return {word for sheet in sheets for word in re.findall(r"\.([a-z][\w-]+)", sheet)}


def rows(html, concluded, seconds):
    """Yield the rows of the table.

    A page uses what concludes something of it, what its cells have options of, or what has classes
    of its own there which not nearly all pages have.
    """
    on = {
        page: {*re.findall(r"[\w-]+", " ".join(re.findall(r'class="([^"]*)"', text)))}
        for page, text in html.items()
    }
    counts = collections.Counter(itertools.chain.from_iterable(on.values()))
    common = {name for name, count in counts.items() if count > 0.9 * len(html)}
    of_all = {name: classes(name) for name in EXTENSIONS}
    for name in EXTENSIONS:
        folder, tests = ENGINE / name, ROOT / "tests" / "engine" / name
        others = (of_all[other] for other in EXTENSIONS if other != name)
        own = of_all[name].difference(common, *others)
        used = {page for page, found in on.items() if own & found} | concluded[name]
        took = sum(of for path, of in seconds.items() if path.startswith(f"{folder}/"))
        of_kinds = [lines(folder, endings) for endings in KINDS]
        pages = len(html) if name in EVERYWHERE else len(used)
        yield (name, *of_kinds, lines(tests, [".py"]), f"{took:.1f}", pages)


def table(found):
    """Write rows as a table in Markdown."""
    written = [HEAD, ["---"] * len(HEAD), *found]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in written) + "\n"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="prices-") as folder:
        text = table(rows(*build(pathlib.Path(folder))))
    print(text)
    if arguments.write:
        TABLE.write_text(text, "utf8")


if __name__ == "__main__":
    main()
