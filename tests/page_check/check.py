"""Look at every page of the built site: `nox -s page_check`.

The tools are Debian's chromium, and of npm what package.json names. The site is served as a host
does it, compressed. Each page is opened at 360, 390 and 1280 pixels, light and dark, and once
from its file, and asks for nothing outside of the site. Lighthouse looks at the pages that are
named on the command line, for a phone: alone on the machine, because it measures, but beside the
rest where less speed is asked for than the book's target. A table says what was found, and the
exit status whether anything misses its target.

With `--changed` only those pages are looked at whose HTML is another than when all were last found
without a fault, which looked.json keeps, and twenty others. Who looks at all pages, and finds no
fault, renews that file.

The search is asked what held.toml and counted.toml list, and answers with pages: of the first file
so many must come first, and among the first three, as HELD says; of the second that is only told.
"""

import argparse
import collections
import concurrent.futures
import functools
import gzip
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
import urllib.parse

from playwright.sync_api import sync_playwright
from selectolax.lexbor import LexborHTMLParser

HERE = pathlib.Path(__file__).parent
TOOLS = HERE / "node_modules"
KIB = 1024
# Pages of different kinds: the first, prose with code, charts, compile views, a large table.
SOME = [
    "index.html",
    "start/ten_minutes.html",
    "benchmarks/matmul.html",
    "compiled/fusion.html",
    "start/translation.html",
]
# The list of errors is the largest page, and grows with each of them.
LIMITS = 100 * KIB, 500 * KIB
# A page's own pictures and code, which are counted apart from what every page weighs.
OWN = "article svg, article img, article .highlight, article pre"
SCORES = {"performance": 99, "accessibility": 100, "best-practices": 100, "seo": 100}
# The parts of the queries in held.toml whose page comes first, and among the first three.
HELD = 0.8, 0.95
# The pages as they were when no fault was found, by digests, and how many others are looked at.
LOOKED, OTHERS = HERE / "looked.json", 20
# What says when and where a page was executed, which is new each time.
PASSING = "p.provenance, .page-status, .device-notice, script"
SIGHTS = [(390, "dark"), (1280, "light")]
NARROWEST = 360
PICTURES = {".svg", ".png", ".jpg", ".webp", ".gif"}
COMPRESSIBLE = {".html", ".css", ".js", ".json", ".svg", ".txt", ".md", ".xml"}


class Compressed(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a site as a host does, compressed, and says nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        """Print nothing."""

    def do_GET(self):
        """Send a file, compressed if that helps, or a 404."""
        path = pathlib.Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        self.send_response(200)
        if path.suffix in COMPRESSIBLE:
            content = gzip.compress(content)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(content)


def serve(site):
    """Serve a folder; return the address."""
    handler = functools.partial(Compressed, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def queries(name):
    """Return {what is searched for: pages one of which should come first} of a file."""
    return tomllib.loads((HERE / name).read_text("utf8"))


def search(address, asked, chromium):
    """Return {query: the first pages that the search of a site answers with}."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        found = {}
        for words in asked:
            page.goto(f"{address}/search.html?{urllib.parse.urlencode({'q': words})}")
            # Until it has found something or nothing, the page only says that it searches.
            page.wait_for_selector(".search-found", state="attached")
            links = page.eval_on_selector_all(
                ".search-found > li > a", "all => all.map(a => a.href)"
            )
            found[words] = [page_of(url) for url in links[:3]]
        browser.close()
    return found


def page_of(url):
    """Return the page that an address leads to, such as a/page."""
    return urllib.parse.urlsplit(url).path.strip("/").removesuffix(".html")


def rated(asked, found):
    """Return the parts of queries whose page comes first, and in three, and those not first."""
    first = [words for words, pages in asked.items() if {*found[words][:1]} & {*pages}]
    among = [words for words, pages in asked.items() if {*found[words]} & {*pages}]
    other = [words for words in asked if words not in first]
    return len(first) / len(asked), len(among) / len(asked), other


def show_search(address, chromium):
    """Print how the search does; say whether it reaches its targets."""
    good = True
    for name in ("held.toml", "counted.toml"):
        asked = queries(name)
        found = search(address, asked, chromium)
        *parts, other = rated(asked, found)
        print(f"{name}: {parts[0]:.0%} of {len(asked)} first, {parts[1]:.0%} in three")
        for words in other if name == "held.toml" else ():
            print(f"    {words}: {', '.join(found[words]) or 'nothing'}")
        if name == "held.toml":
            good = all(part >= least for part, least in zip(parts, HELD, strict=True))
    return good


def pages_of(site):
    """Return the pages of a site; those that only lead to a new address are none."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    shown = [name for name in found if not name.startswith(("_", "."))]
    return [name for name in shown if b'http-equiv="refresh"' not in (site / name).read_bytes()]


def digest(site, name):
    """Return a digest of the HTML of a page, but for what is new each time."""
    tree = LexborHTMLParser((site / name).read_bytes())
    scripts = sorted(node.attributes.get("src") or "" for node in tree.css("script"))
    for node in tree.css(PASSING):
        node.decompose()
    return hashlib.sha256(f"{scripts}{tree.html}".encode()).hexdigest()[:16]


def changed(digests):
    """Return the pages that are not as they were when last looked at, and some others."""
    looked = json.loads(LOOKED.read_text("utf8")) if LOOKED.exists() else {}
    new = [name for name, found in digests.items() if looked.get(name) != found]
    # Each change of the site brings others.
    seed = "".join(digests.values())
    rest = sorted({*digests} - {*new}, key=lambda n: hashlib.sha256((seed + n).encode()).digest())
    return sorted([*new, *rest[:OTHERS]])


def look(site, address, names, chromium):
    """Open pages in a browser of its own; return what was seen of each."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(bypass_csp=True)
        context.add_init_script(path=TOOLS / "axe-core" / "axe.min.js")
        context.add_init_script(path=HERE / "look.js")
        page, said, asked = context.new_page(), [], []
        listen(page, address, said, asked)
        seen = {}
        for name in names:
            said.clear()
            asked.clear()
            found = look_at(page, address, name)
            loaded = [urllib.parse.urlsplit(url).path.strip("/") for url in asked]
            seen[name] = weigh(site, loaded), [*found, *said]
        for name, found in outside(browser, site.as_uri(), names).items():
            seen[name][1].extend(found)
        browser.close()
    return seen


def look_at(page, address, name):
    """Return the faults of one page: it is opened once, and shown in two sizes and themes."""
    faults = []
    page.emulate_media(color_scheme=SIGHTS[0][1])
    page.set_viewport_size({"width": NARROWEST, "height": 900})
    page.goto(f"{address}/{name}", wait_until="load")
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > NARROWEST:
        faults.append(f"{wide} pixels wide on a screen of {NARROWEST}")
    for width, theme in SIGHTS:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        shown, found = page.evaluate("violations()")
        if shown != theme:
            faults.append(f"it is {shown} where {theme} is asked for")
        faults += [f"axe {width} {theme}: {fault}" for fault in found]
    return faults


def outside(browser, home, names):
    """Open pages of the site at an address; return what each asks for that lies elsewhere."""
    page, found = browser.new_page(), {}
    for name in names:
        asked = []
        listener = functools.partial(note_outside, home, asked)
        page.on("request", listener)
        page.goto(f"{home}/{name}", wait_until="load")
        page.remove_listener("request", listener)
        found[name] = asked
    page.close()
    return found


def note_outside(home, said, request):
    """Note a request that leaves the site at an address."""
    if not request.url.startswith((f"{home}/", "data:", "blob:")):
        said.append(f"leaves the site: {request.url}")


def listen(page, home, said, asked):
    """Note what a page says to the console, what it cannot load, and the addresses it loads."""
    page.on("request", functools.partial(note_outside, home, said))
    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"console: {error}"))
    page.on("requestfailed", lambda request: said.append(f"not loaded: {request.url}"))
    page.on("response", lambda got: note(got, home, said, asked))


def note(response, home, said, asked):
    """Note an address of the site, or that nothing is there."""
    if response.status >= 400:
        said.append(f"{response.status}: {response.url}")
    elif response.url.startswith(f"{home}/"):
        asked.append(response.url)


def weigh(site, names):
    """Return (compressed, raw, own compressed, own raw): bytes of the files that one page loads."""
    shared, own = [0, 0], [0, 0]
    for name in dict.fromkeys(names):
        path = site / name
        packed, raw, own_packed, own_raw = sizes(path / "index.html" if path.is_dir() else path)
        for place, size in ((shared, packed), (own, own_packed)):
            place[0] += size
        for place, size in ((shared, raw), (own, own_raw)):
            place[1] += size
    return (*shared, *own)


@functools.cache
def sizes(path):
    """Return (compressed, raw, own compressed, own raw) bytes of a file."""
    content = path.read_bytes()
    packed = len(gzip.compress(content)) if path.suffix in COMPRESSIBLE else len(content)
    if path.suffix in PICTURES:
        return 0, 0, packed, len(content)
    if path.suffix != ".html":
        return packed, len(content), 0, 0
    tree = LexborHTMLParser(content)
    for node in tree.css(OWN):
        node.decompose()
    bare = (tree.html or "").encode()
    bare_packed = len(gzip.compress(bare))
    return bare_packed, len(bare), max(0, packed - bare_packed), max(0, len(content) - len(bare))


def validate(site, names):
    """Return what html-validate says of each page."""
    command = [str(TOOLS / ".bin" / "html-validate"), "--formatter", "json", "--config"]
    command += [str(HERE / ".htmlvalidate.json"), *(str(site / name) for name in names)]
    # It leaves a pipe before all is written, so it writes into a file.
    with tempfile.TemporaryFile("w+", encoding="utf8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True)
        out.seek(0)
        text = out.read()
    if not text:
        raise SystemExit(done.stderr)
    faults = {}
    for report in json.loads(text):
        name = pathlib.Path(report["filePath"]).relative_to(site).as_posix()
        rules = collections.Counter(message["ruleId"] for message in report["messages"])
        first = {m["ruleId"]: (m["line"], m["message"]) for m in reversed(report["messages"])}
        faults[name] = [
            f"html: {rule} ({count}) line {first[rule][0]}: {first[rule][1]}"
            for rule, count in rules.items()
        ]
    return faults


def lighthouse(address, name, chromium):
    """Return the scores of a page on a phone, and what lowers them."""
    command = [str(TOOLS / ".bin" / "lighthouse"), f"{address}/{name}", "--quiet"]
    command += ["--output=json", "--chrome-flags=--headless=new --no-sandbox"]
    command += [f"--only-categories={','.join(SCORES)}"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"CHROME_PATH": chromium}
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    report = json.loads(done.stdout)
    scores = {key: round(100 * report["categories"][key]["score"]) for key in SCORES}
    low = [
        audit["id"]
        for key, target in SCORES.items()
        if scores[key] < target
        for audit in (report["audits"][ref["id"]] for ref in report["categories"][key]["auditRefs"])
        if audit["score"] is not None and audit["score"] < 0.9
    ]
    faults = [f"lighthouse: {key} {scores[key]}" for key in SCORES if scores[key] < SCORES[key]]
    return scores, [f"{fault} ({', '.join(low)})" for fault in faults]


def main():
    """Check a site, print the table, and say whether all targets are reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=pathlib.Path, default=pathlib.Path("build/html"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--performance",
        type=int,
        default=SCORES["performance"],
        help="the lowest that passes of what Lighthouse measures; lower on a busy machine, "
        "and then it looks beside the rest",
    )
    parser.add_argument(
        "--changed", action="store_true", help="only pages that changed, and some others"
    )
    parser.add_argument("--only", nargs="*", help="pages to look at, such as a/page.html")
    parser.add_argument(
        "lighthouse", nargs="*", help="pages for Lighthouse; `all`, or `some` for five"
    )
    given = parser.parse_args()
    alone = given.performance >= SCORES["performance"]
    SCORES["performance"] = given.performance
    site, chromium = given.site.resolve(), shutil.which("chromium")
    digests = {} if given.only else {name: digest(site, name) for name in pages_of(site)}
    names = given.only or (changed(digests) if given.changed else [*digests])
    known = {("all",): names, ("some",): SOME}
    chosen = known.get(tuple(given.lighthouse), given.lighthouse)
    address = serve(site)
    scores, weights, faults = {}, {}, collections.defaultdict(list)

    def rate():
        for name in chosen:
            scores[name], found = lighthouse(address, name, chromium)
            faults[name] += found

    if alone:
        rate()
    with concurrent.futures.ProcessPoolExecutor(given.workers) as pool:
        shares = [names[place :: given.workers] for place in range(given.workers)]
        seen = [pool.submit(look, site, address, share, chromium) for share in shares]
        if not alone:
            rate()
        for name, found in validate(site, names).items():
            faults[name] += found
        for share in seen:
            for name, (weight, found) in share.result().items():
                weights[name] = weight
                faults[name] += found
                for size, limit, kind in zip(
                    weight[:2], LIMITS, ("compressed", "raw"), strict=True
                ):
                    if size > limit:
                        faults[name].append(
                            f"{size / KIB:.0f} KiB {kind}, {limit / KIB:.0f} at most"
                        )
    show(names, weights, scores, faults)
    found = given.only or show_search(address, chromium)
    good = found and not any(faults[name] for name in names)
    if good and len(names) == len(digests):
        LOOKED.write_text(json.dumps(digests, indent=0) + "\n", "utf8")
    return 0 if good else 1


def show(names, weights, scores, faults):
    """Print the table: a line for each page, and below it what is wrong with it."""
    wide = max(map(len, names))
    print(f"{'page':{wide}}   KiB gz    raw   own gz    raw   Lighthouse       faults")
    for name in names:
        sizes = [size / KIB for size in weights[name]]
        rated = "/".join(map(str, scores[name].values())) if name in scores else "–"
        line = f"{name:{wide}} {sizes[0]:8.1f} {sizes[1]:6.0f} {sizes[2]:8.1f} {sizes[3]:6.0f}"
        print(f"{line}   {rated:15} {len(faults[name]) or '–'}")
        for fault in dict.fromkeys(faults[name]):
            print(f"    {fault[:200]}")
    bad = sum(bool(faults[name]) for name in names)
    print(f"{len(names) - bad} of {len(names)} pages reach every target")


if __name__ == "__main__":
    sys.exit(main())
