"""Refuse a site that would load anything from another host, or that is not there, when it is read.

Every file of the site that a browser understands is searched. What was found is kept beside the
doctrees with the digest of the file, so that a build that changed nothing only looks at the
list of files, and a warning comes again until it is mended.
"""

import hashlib
import json
import os
import pathlib
import posixpath
import re
import stat
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sphinx.application import Sphinx
from sphinx.util import logging

from .. import files
from . import loading

READERS: dict[str, Callable[[bytes], Iterable[loading.Request]]] = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), loading.in_page),
    ".css": loading.in_style,
    **dict.fromkeys((".js", ".mjs", ".cjs"), loading.in_script),
    ".svg": loading.in_drawing,
}
# Folders of files that readers download, which no page shows.
DOWNLOADED = ("_sources", "_downloads")
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
HERE = {"about", "blob", "data", "javascript", "mailto", "tel"}
MEMORY = "requests.json"
LARGEST_MEMORY = 50_000_000
logger = logging.getLogger(__name__)


class Kept(NamedTuple):
    """What was found in a file when it had this state and this digest.

    `outside` and `inside` are pairs of what is loaded, an address or a path in the site, and
    by what.
    """

    state: list[int]
    digest: str
    outside: list[list[str]]
    inside: list[list[str]]


def elsewhere(address: str) -> bool:
    """Whether a browser would ask another host for an address."""
    address = _cleaned(address)
    scheme = SCHEME.match(address)
    return scheme[1].lower() not in HERE if scheme else address.startswith("//")


def target(address: str, place: str, base: str = "") -> str | None:
    """Return the path in the site of an address in the file `place`; None where it names no file.

    A path that leads out of the site begins with `..`.
    """
    address = _cleaned(address)
    # What themes copy along as templates holds addresses that are still to be filled in.
    if SCHEME.match(address) or address.startswith("//") or "{{" in address:
        return None
    path = re.split(r"[?#]", address)[0]
    if not path:
        return None
    folder = posixpath.join(posixpath.dirname(place), re.split(r"[?#]", base)[0])
    found = posixpath.normpath(posixpath.join("/" if folder.startswith("/") else "", folder, path))
    found = urllib.parse.unquote(found).lstrip("/")
    return "index.html" if found in ("", ".") else found


def _cleaned(address: str) -> str:
    """Return an address as a browser reads it."""
    address = re.sub(r"[\t\n\r]", "", address).strip("".join(map(chr, range(33))))
    return address if address.lower().startswith("data:") else address.replace("\\", "/")


def requests(name: str, text: bytes) -> tuple[list[list[str]], list[list[str]]]:
    """Return what a file of the site loads from other hosts, and what from the site, sorted."""
    suffix = pathlib.PurePosixPath(name).suffix.lower()
    base = loading.base_of(text) if READERS[suffix] is loading.in_page else ""
    outside, inside = set(), set()
    for request in READERS[suffix](text):
        if elsewhere(request.address):
            outside.add((_cleaned(request.address)[:200], request.by))
        elif request.relative:
            path = target(request.address, name, base)
            if path is not None:
                inside.add((path, request.by))
    return [list(pair) for pair in sorted(outside)], [list(pair) for pair in sorted(inside)]


def check(app: Sphinx, exception: Exception | None) -> None:
    """Warn of each built file that loads what is on another host, or nowhere."""
    if exception or app.builder.format != "html":
        return
    folder = pathlib.Path(app.outdir)
    memory = pathlib.Path(app.doctreedir) / MEMORY
    known = _remembered(memory)
    found, there = {}, set()
    for path, state in _files(folder):
        there.add(path)
        if pathlib.PurePosixPath(path).suffix.lower() in READERS and not path.startswith(
            tuple(f"{name}/" for name in DOWNLOADED)
        ):
            found[path] = _looked_at(folder, path, state, known.get(path))
    if found != known:
        _remember(memory, found)
    pages = {app.builder.get_target_uri(name): name for name in app.env.found_docs}
    for path, problem in _problems(found, there):
        location = pages.get(path)
        logger.warning(
            f"{path} {problem}",
            location=(location, None) if location else None,
            type="book",
            subtype="offline",
        )


def _files(folder: pathlib.Path) -> Iterator[tuple[str, list[int]]]:
    """Return the path of each file of the site, and by what a change of it is seen."""
    root = folder.stat()
    waiting, seen = [str(folder)], {(root.st_dev, root.st_ino)}
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                try:
                    facts = entry.stat()
                except OSError:
                    # A link that leads nowhere.
                    continue
                if stat.S_ISDIR(facts.st_mode):
                    # A link may lead back up.
                    place = facts.st_dev, facts.st_ino
                    if not entry.name.startswith(".") and place not in seen:
                        seen.add(place)
                        waiting.append(entry.path)
                    continue
                path = os.path.relpath(entry.path, folder).replace(os.sep, "/")
                yield path, [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]


def _looked_at(folder: pathlib.Path, path: str, state: list[int], kept: Kept | None) -> Kept:
    """Return what is found in a file, searching it only if its content has changed."""
    if kept and kept.state == state:
        return kept
    text = (folder / path).read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    if kept and kept.digest == digest:
        return kept._replace(state=state)
    return Kept(state, digest, *requests(path, text))


def _problems(found: dict[str, Kept], there: set[str]) -> Iterator[tuple[str, str]]:
    """Return (file, what is wrong with it), in the order of the files."""
    readers: dict[str, list[str]] = {}
    for path, kept in found.items():
        for asked, _ in kept.inside:
            readers.setdefault(asked, []).append(path)
    for path in sorted(found):
        whose = ""
        if not path.endswith((".html", ".htm", ".xhtml")) and path in readers:
            whose = f", for {min(readers[path])}"
        for address, by in found[path].outside:
            yield path, f"would load from another host: {address} ({by}){whose}"
        for asked, by in found[path].inside:
            if asked not in there and f"{asked}/index.html" not in there:
                where = "is outside of" if asked.startswith("../") else "is not in"
                yield path, f"would load {asked} ({by}), which {where} the site{whose}"


def _version() -> str:
    """Return what changes when the search changes."""
    sources = [pathlib.Path(str(module)).read_bytes() for module in (__file__, loading.__file__)]
    return hashlib.sha256(b"".join(sources)).hexdigest()


def _remembered(path: pathlib.Path) -> dict[str, Kept]:
    """Return what the last build found, by file; nothing where that cannot be used."""
    try:
        content = json.loads(files.read(path, LARGEST_MEMORY))
        if content["version"] == _version():
            return {name: Kept(*kept) for name, kept in content["files"].items()}
    except (OSError, files.Unusable, ValueError, TypeError, LookupError, AttributeError):
        pass
    return {}


def _remember(path: pathlib.Path, found: dict[str, Kept]) -> None:
    content = {"version": _version(), "files": found}
    try:
        files.write(path, json.dumps(content))
    except OSError as error:
        logger.info(f"what files load could not be remembered: {error.strerror}")


def setup(app: Sphinx) -> None:
    """Register the check, of a site to which all extensions have added their files."""
    app.connect("build-finished", check, priority=800)
