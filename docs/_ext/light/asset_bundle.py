"""Make the pages of sphinx-book-theme light: what its files and pages are cut down to and patched.

The theme gives every page the whole of Bootstrap's style sheet, all of Font Awesome twice, and
Sphinx's search index. Here one style sheet and one script are made for the site. The style sheet
has only what a page or a script of the site may use, and within it the few icons that are shown.
Templates of the book load these two in place of the theme's files; they find them in `light`.

What is left out was compared with what the themes of `THEMES` need.
"""

import base64
import functools
import hashlib
import io
import logging
import pathlib
import posixpath
import re
from collections.abc import Iterable
from typing import Any

import lightningcss
import rjsmin
from selectolax.lexbor import LexborHTMLParser, LexborNode
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from executed import files
from executed.book import book_of

from .options import LightOptions

# The versions of the theme whose pages and script are patched here.
THEMES = {"sphinx-book-theme": "1.4.0", "pydata-sphinx-theme": "0.20.0"}
# What the theme's templates load before and after the files that Sphinx knows of.
FIRST_STYLES = ("basic.css", "styles/pydata-sphinx-theme.css")
LAST_SCRIPTS = ("scripts/pydata-sphinx-theme.js",)
STYLE, SCRIPT = "site.css", "site.js"
# Scripts of a lower priority number run before the page is shown, as they are.
EARLY = 100
# What Bootstrap's script, which comes only when it is needed, gives to elements.
MENUS = """show fade collapsing dropdown-menu dropup dropend dropstart tooltip tooltip-arrow
    tooltip-inner bs-tooltip-auto bs-tooltip-top bs-tooltip-bottom bs-tooltip-start bs-tooltip-end
    data-popper-placement""".split()
FONTS = {
    "fa-solid-900": {"fa-solid", "fas", "fa"},
    "fa-regular-400": {"fa-regular", "far"},
    "fa-brands-400": {"fa-brands", "fab"},
}
MARKED = re.compile(r"""\b(?:class|id|data-[\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
CUSTOM = re.compile(r"--[\w-]+")
WORD = re.compile(r"[\w-]+")
NAME = re.compile(r"(?<=[.#])-?[A-Za-z_](?:[\w-]|\\.)*")
DECLARED, READ = re.compile(r"(?<=[{;])(--[\w-]+):"), re.compile(r"var\(\s*(--[\w-]+)")
ADDRESS = re.compile(r"url\(\s*[\"']?([^\"')]+)[\"']?\s*\)")
FACE = re.compile(r"@font-face\s*\{[^}]*\}")
ICON = re.compile(r'--fa:\s*"\\?([^"]+)"')
# What folds a chapter out.
FOLD = "details:has(> summary > .toctree-toggle)"
# By CSS selectors, the attributes to set and, without a value, to leave out.
MENDED: dict[str, dict[str, str]] = {
    ".toctree-toggle": {"role": ""},
    "#pst-primary-sidebar": {"role": "region", "aria-label": "Book"},
    "th.head:not([scope])": {"scope": "col"},
    'summary[aria-label="Toggle hidden content"]': {"aria-label": ""},
    "button.search-button-field": {"title": "", "aria-label": ""},
    "button:not([type])": {"type": "button"},
}
# The theme looks whether each part of a page scrolls, and writes down what it found before it looks
# at the next, which lays out the page each time. Here it looks at all of them first, and not at
# what is folded away, which a browser need not style before somebody opens it; then it looks again.
SCROLLS = "e.scrollWidth>e.clientWidth||e.scrollHeight>e.clientHeight"
RESIZED = 'window.addEventListener("resize",t)'
# It scrolls the sidebar to the page, for which a browser lays out all that it has read. On a phone
# there is no sidebar to see, and menus.js scrolls it when it is opened.
SIDEBAR = 'if(!document.querySelector(".bd-docs-nav")'
MENDED_SCRIPT = (
    (f"{SIDEBAR})return;", f'{SIDEBAR}||matchMedia("(width < 960px)").matches)return;'),
    (
        f".forEach(e=>{{e.tabIndex={SCROLLS}?0:-1}})",
        f".forEach((e,n,all)=>{{n||[...all].map(e=>[e,e.checkVisibility()&&({SCROLLS})?0:-1])"
        ".forEach(([e,to])=>{e.tabIndex===to||(e.tabIndex=to)})})",
    ),
    (
        f"{RESIZED},",
        f'["toggle","change","transitionend"].forEach(e=>document.addEventListener(e,t,!0)),{RESIZED},',
    ),
)
# What ends in `~ *` is asked of every element, and answered by a look at all that are before it in
# their parent. A word of code has thousands before it, and is never meant.
AFTER, AFTER_BUT_WORDS = re.compile(r"~\s*\*"), "~:not(:where(span))"
# Names and brackets have the colour of text, and words in a line of text break where others do;
# they are more than half of the elements of most pages.
PLAIN = re.compile(r'<span class="(?:n|nn|p|w|pre)">([^<]*)</span>')
# In tables, a line of code may end within a long word, behind these; not within a tag. Of shorter
# words there are thousands on a page, and each such place takes time to lay out.
LONG = re.compile(r"[^\s<>]{20,}(?![^<]*>)")
JOINT = re.compile(r"\.(?=[^\W\d])|(?<=[^\W_])_(?=[^\W_])|[,(=/@](?=[\w\"'[])")
# It tells of every table of a font that it touches.
logging.getLogger("fontTools").setLevel(logging.WARNING)


def add_context(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Tell the templates what a page loads: early scripts, the bundle, and what is its own."""
    if not is_wanted(app):
        context["light"] = None
        return
    scripts, styles = builder_of(app)._orig_js_files, builder_of(app)._orig_css_files
    common = {_name(asset) for asset in (*scripts, *styles)}
    data = {k: v for js in scripts for k, v in js.attributes.items() if k.startswith("data-")}
    context["light"] = {
        "mended": patch_theme_html,
        "attributes": data,
        "version": _version(app),
        "early": [js for js in scripts if _name(js) and js.priority < EARLY],
        "styles": [css for css in context["css_files"] if _name(css) not in common],
        "scripts": [js for js in context["script_files"] if _name(js) not in {*common, ""}],
    }


def patch_theme_html(text: str) -> str:
    """Return the content of a page without what validators and readers of screens stumble over.

    All of it is written by the theme or by MyST-NB where no template or option of theirs reaches.
    Code loses the elements around words that have no colour of their own.
    """
    tree = LexborHTMLParser(PLAIN.sub(r"\1", text))
    chapters, folds = tree.css(f"a:has(+ {FOLD})"), tree.css(f"a + {FOLD}")
    for chapter, fold in zip(chapters, folds, strict=True):
        fold.css("summary")[0].attrs["aria-label"] = f"Pages of “{chapter.text().strip()}”"
    for cell in tree.css("th"):
        # The corner of a table, above its first column, heads nothing.
        if not (cell.text(strip=True) or cell.css("th :not(p)")):
            cell.inner_html = ""
            _rename(cell, "td")
    for code in tree.css("td code, td samp, th code, th samp"):
        inside = code.inner_html or ""
        code.inner_html = LONG.sub(lambda word: JOINT.sub(r"\g<0><wbr>", word[0]), inside)
    for paragraph in tree.css("summary p"):
        _rename(paragraph, "span")
    for field in tree.css("form.bd-search input:first-of-type"):
        button = '<button type="submit" class="search-submit">Search</button>'
        field.insert_after(LexborHTMLParser(button).css("button")[0])
    for selector, attributes in MENDED.items():
        for node in tree.css(selector):
            for name, value in attributes.items():
                if value:
                    node.attrs[name] = value
                elif name in node.attrs:
                    del node.attrs[name]
    return (tree.body and tree.body.inner_html) or ""


def _rename(node: LexborNode, tag: str) -> None:
    """Put an element of another name in the place of one."""
    inside = (node.html or "").removeprefix(f"<{node.tag}").removesuffix(f"</{node.tag}>")
    # Outside of a table no browser reads a cell.
    row = LexborHTMLParser(f"<table><tr><{tag}{inside}</{tag}></tr></table>")
    node.replace_with(row.css(tag)[0])


def is_wanted(app: Sphinx) -> bool:
    """Say whether pages are made light."""
    return book_of(app.env).options.of(LightOptions).light and app.builder.format == "html"


def builder_of(app: Sphinx) -> StandaloneHTMLBuilder:
    """Return the builder of a site in HTML."""
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    return app.builder


def _name(asset: Any) -> str:
    """Return the file of a style sheet or script as Sphinx knows it; empty where it has none."""
    return str(getattr(asset, "filename", None) or "")


@functools.cache
def _version(app: Sphinx) -> str:
    """Return what changes with the files that are bundled, for the address of the bundle."""
    digest = hashlib.sha256(pathlib.Path(__file__).read_bytes())
    themes = [pathlib.Path(folder) for folder in builder_of(app).theme.get_theme_dirs()]
    for path in (path for folder in (*themes, *_static(app)) for path in sorted(folder.rglob("*"))):
        if path.suffix in (".css", ".js") and path.stat().st_size < 1_000_000:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def _static(app: Sphinx) -> list[pathlib.Path]:
    """Return the folders of static files of the book and of extensions."""
    return [pathlib.Path(app.confdir, path) for path in app.config.html_static_path]


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Make the style sheet and the script of the finished site, where anything has changed."""
    if exception or not is_wanted(app):
        return
    site, static = pathlib.Path(app.outdir), pathlib.Path(app.outdir, "_static")
    styles = [*FIRST_STYLES, *_local(builder_of(app)._css_files, static)]
    later = (js for js in builder_of(app)._js_files if js.priority >= EARLY)
    scripts = [*_local(later, static), *LAST_SCRIPTS]
    pages = [page for page in site.rglob("*.html") if static not in page.parents]
    sheet = static / STYLE
    former = sheet.read_text("utf8") if sheet.is_file() else ""
    if former.startswith(f"/*{_version(app)} ") and not is_behind(sheet, app):
        return
    used = set().union(*(_words(page.read_text("utf8")) for page in pages))
    state = hashlib.sha256(repr((styles, scripts, sorted(used))).encode()).hexdigest()[:16]
    mark = f"/*{_version(app)} {state}*/"
    if former.startswith(mark):
        return
    bundled = {name: (static / name).read_text("utf8") for name in scripts}
    own = (path.read_text("utf8") for folder in _static(app) for path in folder.rglob("*.js"))
    texts = *bundled.values(), *own
    words = used | {*MENUS} | {word for text in texts for word in WORD.findall(text)}
    files.write(static / SCRIPT, script(bundled))
    files.write(sheet, mark + style_sheet(static, styles, words, used))


def is_behind(file: pathlib.Path, app: Sphinx) -> bool:
    """Say whether what is made of all pages is missing, or a page was written since it was asked.

    Kept is when pages were written: none need be newer where the clock was set back.
    """
    uris = map(app.builder.get_target_uri, sorted(app.env.found_docs))
    written = repr([(uri, pathlib.Path(app.outdir, uri).stat().st_mtime_ns) for uri in uris])
    known = pathlib.Path(app.doctreedir, f"{file.name}.pages")
    if file.is_file() and known.is_file() and known.read_text("utf8") == written:
        return False
    files.write(known, written)
    return True


def _local(assets: Iterable[Any], static: pathlib.Path) -> list[str]:
    """Return the files of the site among style sheets or scripts, in the order of loading."""
    ordered = sorted(assets, key=lambda asset: asset.priority)
    names = [_name(asset).removeprefix("_static/") for asset in ordered]
    return [name for name in dict.fromkeys(names) if name and (static / name).is_file()]


def _words(text: str) -> set[str]:
    values = {value for groups in MARKED.findall(text) for value in groups if value}
    return {word for value in values for word in value.split()} | set(CUSTOM.findall(text))


def style_sheet(
    static: pathlib.Path, names: Iterable[str], words: set[str], on_pages: set[str]
) -> str:
    """Return one style sheet in place of several, without what asks for other words.

    `on_pages` are the words of pages alone, from which it is known which icon fonts are used.
    """
    text = "\n".join(_moved((static / name).read_text("utf8"), name) for name in names)
    text = AFTER.sub(AFTER_BUT_WORDS, text)
    selected = {match.replace("\\", "") for match in NAME.findall(text)}
    text = _minified(text, selected - words)
    while unused := set(DECLARED.findall(text)) - set(READ.findall(text)) - words - {"--fa"}:
        text = _minified(text, unused)
    icons = {int(code, 16) if len(code) > 1 else ord(code) for code in ICON.findall(text)}
    text = FACE.sub(lambda match: _face(match[0], static, icons, on_pages), text)
    return _minified(text, set())


def _moved(text: str, name: str) -> str:
    """Return a style sheet as it must read in the folder of the bundle."""

    def address(match: re.Match[str]) -> str:
        if re.match(r"[a-z]+:|[/#]", match[1]):
            return match[0]
        return f'url("{posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1]))}")'

    return ADDRESS.sub(address, re.sub(r'@charset "[^"]*";', "", text))


def _minified(text: str, unused: set[str]) -> str:
    minified = lightningcss.process_stylesheet(
        text, filename=STYLE, error_recovery=True, unused_symbols=unused, minify=True
    )
    return str(minified)


def _face(rule: str, static: pathlib.Path, icons: set[int], words: set[str]) -> str:
    """Return the rule of a font: of an icon font only the icons in use, within the style sheet."""
    address = ADDRESS.search(rule)
    stem = pathlib.PurePosixPath(address[1]).stem if address else ""
    if address is None or stem not in FONTS:
        return rule
    if not FONTS[stem] & words:
        return ""
    # Imported here, for a build that draws no icon anew.
    from fontTools import subset

    options = subset.Options(flavor="woff2", layout_features=[], hinting=False)
    font = subset.load_font(str(static / address[1]), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=icons)
    subsetter.subset(font)
    drawn = io.BytesIO()
    subset.save_font(font, drawn, options)
    data = base64.b64encode(drawn.getvalue()).decode()
    return rule.replace(address[0], f"url(data:font/woff2;base64,{data})")


def script(bundled: dict[str, str]) -> str:
    """Return one script in place of several.

    What the theme tells the console is for those who work on the theme.
    """
    whole = "\n".join(
        f"((console) => {{{text}\n}})({{...console, log() {{}}, debug() {{}}}});"
        if name.startswith("scripts/")
        else f"{text};"
        for name, text in (
            (name, rjsmin.jsmin(re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.MULTILINE)))
            for name, text in bundled.items()
        )
    )
    for original, mend in MENDED_SCRIPT:
        whole = whole.replace(original, mend)
    return whole


def setup(app: Sphinx) -> None:
    """Register the events: after all who add files to a page, and before the site is checked."""
    app.connect("html-page-context", add_context, priority=900)
    app.connect("build-finished", finish, priority=700)
