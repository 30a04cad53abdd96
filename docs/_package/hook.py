"""Puts into the package what its command runs and what it compares with, from the recordings.

What pages show of the command imports the timer as snippets do, and in the package as its modules.

Needs the standard library alone, besides the interface of the tool that builds.
"""

import ast
import importlib
import importlib.util
import json
import pathlib
import posixpath
import re
import runpy
import statistics
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RECORD_TYPE = "application/vnd.jax-measured.record+json"
PACKAGE = "jax_measured"
# Letters that a message begins with to belong to an entry of the list of errors, as in errors.js.
FEWEST = 12
# Words may have brackets, as in `x.at[0]`.
LINK = r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((.*?)\)"
SHOWN = "table.py"
# Of the engine the package has what its command calls, and what that imports.
ENGINE, CALLED = "engine", "measured.reader"
MANY = re.MULTILINE | re.DOTALL
PACKAGES = "drawing", "executed", "measured"
OF_ENGINE = re.compile(rf"^from (?=(?:{'|'.join(PACKAGES)})\b)", re.MULTILINE)
# How checks import what they count with, in the book and in the package.
PRACTICE = "from snippets.programs.practice import", "from ..practice import"


def module(path: pathlib.Path) -> Any:
    """Import a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def displayed(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records among the outputs of a recorded cell."""
    found = [output.get("data", {}).get(RECORD_TYPE) for output in cell["outputs"]]
    return [each for each in found if each]


def records(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the same of single measurements."""
    return [part for each in displayed(cell) for part in each.get("alternatives", [each])]


def engine(root: pathlib.Path) -> Any:
    """Return the module of the engine that tells what a cell measures."""
    sys.path.insert(0, str(root / "docs" / "_ext"))
    try:
        return importlib.import_module("measured.slices")
    finally:
        sys.path.pop(0)


def summary(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the command compares with: of each process a single number by each clock."""
    processes = record["processes"]
    kept = {name: record[name] for name in ("device_kind", "processor", "shape", "versions")}
    kept["date"] = max(process["date"] for process in processes)[:10]
    kept["first_call"] = [process["first_call"] for process in processes]
    for clock in ("latency", "throughput"):
        kept[clock] = [statistics.median(each[clock]) for each in processes if each.get(clock)]
    return kept


def engine_files(root: pathlib.Path) -> dict[str, str]:
    """Return the modules of the engine that the package holds, below a package of its own."""
    found: dict[str, str] = {}
    left = [CALLED]
    while left:
        name = left.pop()
        path = root.joinpath("docs", "_ext", *name.split(".")).with_suffix(".py")
        package = name.partition(".")[0]
        if name in found or not path.is_file():
            continue
        found[name] = text = path.read_text("utf8")
        for each in ast.walk(ast.parse(text)):
            if isinstance(each, ast.Import) and not {*PACKAGES}.isdisjoint(
                alias.name.partition(".")[0] for alias in each.names
            ):
                raise ValueError(
                    f"{path}: import what is needed by name, so that it can be renamed"
                )
            if isinstance(each, ast.ImportFrom):
                of = ".".join(filter(None, [package * each.level, each.module]))
                left += [of, *(f"{of}.{alias.name}" for alias in each.names)]
    packages = {name.partition(".")[0] for name in found}
    files = {f"{ENGINE}/{name.replace('.', '/')}.py": text for name, text in found.items()}
    files |= {f"{ENGINE}/{name}__init__.py": "" for name in ("", *(f"{p}/" for p in packages))}
    # Readers may have packages of these names.
    return {name: OF_ENGINE.sub(f"from {PACKAGE}.{ENGINE}.", text) for name, text in files.items()}


def asked(root: pathlib.Path) -> dict[str, Any]:
    """Return what pages ask of measurements: in sentences, in rows of the fastest, in rooflines."""
    roles: dict[tuple[str, str], None] = {}
    works: list[str] = []
    rooflines = []
    for path in sorted((root / "docs").rglob("*.md")):
        text = path.read_text("utf8")
        found = re.findall(r"\{(measured|compared|fastest|paid|verdict)\}`([^`\n]+)`", text)
        roles |= dict.fromkeys(found)
        for lines in re.findall(r"^```\{measurement-fastest\}\n(.*?)^```$", text, MANY):
            works += [line for line in lines.splitlines() if line.strip()]
        charts = re.findall(r"^```\{measurement-chart\} ([^\n]+)\n(.*?)^```$", text, MANY)
        for patterns, rest in charts:
            options = dict(re.findall(r"^:(\w+): (.+)$", rest, re.MULTILINE))
            if options.get("x") == "intensity":
                rooflines.append({**options, "patterns": patterns})
    return {"roles": list(roles), "works": works, "rooflines": rooflines}


def book(root: pathlib.Path, version: str) -> dict[str, Any]:
    """Return all that the package holds of the book."""
    program = root / "snippets" / "programs" / PACKAGE
    offered = module(program / "offered.py").OFFERED
    needed = module(program / "cells.py").needed
    slices = engine(root).slices
    conf = runpy.run_path(str(root / "conf.py"))
    frameworks = conf["book_frameworks"].values()
    environment: dict[str, str] = {}
    for framework in frameworks:
        environment |= framework.get("environment", {}).get("", {})
    numbers: dict[str, dict[str, Any]] = {}
    measurements = []
    code: dict[str, str] = {}
    for name, (page, reference, question) in offered.items():
        for device in conf["book_devices"]:
            path = root / "docs" / "_recorded" / device / f"{page}.ipynb"
            if not path.is_file():
                continue
            cells = json.loads(path.read_text("utf8"))["cells"]
            cells = [cell for cell in cells if cell["cell_type"] == "code"]
            measured = [[f"{r['name']}@{r['framework']}" for r in records(c)] for c in cells]
            last = next((n for n, found in enumerate(measured) if reference in found), None)
            if last is None:
                continue
            for record in records(cells[last]):
                of = numbers.setdefault(device, {})
                of[f"{record['name']}@{record['framework']}"] = summary(record)
            if device == next(iter(conf["book_devices"])):
                sources = needed(["".join(cell["source"]) for cell in cells], last)
                own = {"name": name, "page": page, "question": question, "cells": sources}
                own["frameworks"] = sorted({r["framework"] for r in records(cells[last])})
                digest = slices(tuple("".join(cell["source"]) for cell in cells))[last]
                code |= {record["name"]: digest for record in displayed(cells[last])}
                measurements.append(own)
    if lost := offered.keys() - {each["name"] for each in measurements}:
        raise ValueError(f"no page has recorded what is offered as {', '.join(sorted(lost))}")
    return {
        "book": version,
        "address": conf["html_baseurl"],
        "devices": {key: conf["book_devices"][key] for key in numbers},
        "environment": environment,
        "before": sorted({name for each in frameworks for name in each.get("before", [])}),
        "measurements": measurements,
        "code": code,
        "numbers": {key: numbers[key] for key in conf["book_devices"] if key in numbers},
        "labels": {name: of.get("label", name) for name, of in conf["book_frameworks"].items()},
        **asked(root),
    }


def causes(root: pathlib.Path) -> list[tuple[list[str], str, str, str]]:
    """Return (patterns, what changed, what to do, page) of the table of what a log says."""
    found = []
    folder = "tracing"
    page = (root / "docs" / folder / "retracing.md").read_text("utf8")
    for patterns, what, fix in re.findall(r"^\| (`.*) \| (.*) \| (.*) \|$", page, re.MULTILINE):
        target = (re.findall(r"\]\((.*?)\)", fix) or ["#what-a-log-says"])[0]
        place, _, anchor = target.partition("#")
        address = posixpath.normpath(f"{folder}/{place or 'retracing.md'}")
        words = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", fix)
        patterns = re.findall("`(.*?)`", patterns)
        found.append((patterns, what, words, f"{address.removesuffix('.md')}.html#{anchor}"))
    return found


def errors(root: pathlib.Path) -> dict[str, Any]:
    """Return what tells the messages of the list of errors apart, and the packages it is about.

    Of each entry: the type, a pattern of how the message begins, for which the title stands as in
    errors.js, the title, the first two sentences, and the page of the way round.
    """
    folder = "pitfalls"
    text = (root / "docs" / folder / "index.md").read_text("utf8")
    entries = []
    for title, body in re.findall(
        r"^:::\{error-entry\} (.+)\n((?:.*\n)+?):::$", text, re.MULTILINE
    ):
        kind, _, words = title.partition(": ")
        pieces = re.split(r"(?<=\w\w)[.;] ", words)[0].rstrip(".").replace("`", "").split("…")
        # What has happened, and the way round.
        body = re.sub(r"^:\w+:.*$", "", body, flags=re.MULTILINE)
        first, *others = re.split(r"(?<=\.) ", " ".join(body.split()))
        link = re.search(LINK, " ".join([*others[:1], first, *others]))
        if link is None or len(re.sub(r"\W", "", "".join(pieces))) < FEWEST:
            continue
        place, _, anchor = link[2].partition("#")
        address = posixpath.normpath(f"{folder}/{place}").removesuffix(".md")
        end = r"\b" if re.search(r"\w$", pieces[-1]) else ""
        pattern = ".{0,300}?".join(re.escape(piece.strip()) for piece in pieces) + end
        said = re.sub(LINK, r"\1", " ".join([first, *others[:1]]))
        entries.append((kind, pattern, title, said, f"{address}.html#{anchor}"))
    files = (root / "docs" / "_static" / "messages" / "values.js").read_text("utf8")
    (versions,) = re.findall(r'"versions": (\{.*?\})', files)
    return {"packages": [*json.loads(versions)], "entries": entries}


class BookHook(BuildHookInterface):  # type: ignore[misc]
    """Adds files to the package while it is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files, and say where they belong."""
        self.folder = tempfile.TemporaryDirectory()
        # An older Python cannot read conf.py. From the package itself pip learns that it is too
        # old, says so, and installs nothing.
        if sys.version_info < (3, 11):
            return
        root = pathlib.Path(self.root)
        shown = (root / "snippets" / "programs" / PACKAGE / SHOWN).read_text("utf8")
        files = {
            "errors.json": json.dumps(errors(root), ensure_ascii=False),
            "causes.json": json.dumps(causes(root), ensure_ascii=False),
            "book.json": json.dumps(book(root, self.metadata.version), ensure_ascii=False),
            SHOWN: shown.replace("from snippets.programs.timer import", "from .timer import"),
            **engine_files(root),
        }
        for kind in ("exercises", "solutions", "checks"):
            for path in (root / "snippets" / "learn" / kind).glob("*.py"):
                text = path.read_text("utf8")
                files[f"{kind}/{path.name}"] = text.replace(*PRACTICE)
        course = module(root / "docs" / "_package" / "course.py")
        files |= {f"course/{name}": text for name, text in course.course(root).items()}
        made = module(root / "docs" / "_package" / "projects.py").projects(root, course)
        files |= {f"projects/{name}": text for name, text in made.items()}
        for name, text in files.items():
            path = pathlib.Path(self.folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf8")
            build_data["force_include"][str(path)] = f"{PACKAGE}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files, which are in the package now."""
        self.folder.cleanup()
