"""What the field for errors shows of an entry besides the page: code that raises it, code that
works, and which versions say it. Each entry has a script of its own, which loads when it is asked.
"""

import ast
import itertools
import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

from executed import files
from executed.options import Options
from executed.source.code import parsed

from .by_version import label, span
from .options import ErrorOptions
from .outcomes import DeclaredError

FOLDER = pathlib.Path("_static", "answers")
# What is longer is no example at a glance.
LONGEST = 12


def shortened(source: str) -> str:
    """Return code without imports, docstrings and blank lines; nothing where it is still long."""
    left_out: set[int] = set()
    for node in ast.walk(parsed(source)):
        gone: ast.stmt | None = node if isinstance(node, ast.Import | ast.ImportFrom) else None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            gone = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
        if gone:
            left_out.update(range(gone.lineno, (gone.end_lineno or gone.lineno) + 1))
    numbered = enumerate(source.splitlines(), 1)
    lines = [line for number, line in numbered if number not in left_out and line.strip()]
    return "\n".join(lines) if len(lines) <= LONGEST else ""


def raising(declared: Iterable[DeclaredError], pages: Sequence[str], fix: str) -> str:
    """Return the code that shows an error best.

    It is the code with the most words of the code that works; where there is none, that of the
    page that comes first, the shortest.
    """
    words = set(re.findall(r"\w+", fix))

    def rank(error: DeclaredError) -> tuple[int, int, int]:
        place = pages.index(error.page) if error.page in pages else len(pages)
        code = shortened(error.code)
        return -len(words & {*re.findall(r"\w+", code)}), place, code.count("\n")

    best = sorted((error for error in declared if shortened(error.code)), key=rank)
    return shortened(best[0].code) if best else ""


def versions_with(same: Mapping[str, bool], options: Options) -> str:
    """Say which of the recorded versions that ran a cell give a text: {name: whether}."""
    recorded, name = options.of(ErrorOptions).versions.recorded, label(options)
    spans: dict[bool, list[str]] = {True: [], False: []}
    for says, group in itertools.groupby(same, same.__getitem__):
        spans[says].append(span(list(group), options).removeprefix(f"{name} "))
    if not spans[True]:
        return ""
    count = (
        "all" if all(same.values()) and len(same) == len(recorded) else f"{sum(same.values())} of"
    )
    said = f"In {count} {len(recorded)} recorded versions of {name}, {' and '.join(spans[True])}"
    other = f"; another text in {' and '.join(spans[False])}" if spans[False] else ""
    return f"{said}{other}."


def write(folder: pathlib.Path, answers: Mapping[str, Mapping[str, str]]) -> None:
    """Write the scripts of entries, {anchor: what is known}."""
    for anchor, known in answers.items():
        text = json.dumps({key: value for key, value in known.items() if value}, ensure_ascii=False)
        path = folder / FOLDER / f"{anchor}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, f"(window.book.answers ??= {{}})[{json.dumps(anchor)}] = {text};\n")
