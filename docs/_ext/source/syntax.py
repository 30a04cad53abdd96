"""What the syntax of code is, whoever wrote it how."""

import ast
import functools
import hashlib
from typing import Any

# What says how code was written, not what it does.
UNSEEN = {"ctx", "kind", "type_comment"}


@functools.lru_cache(maxsize=10_000)
def fingerprint(source: str) -> str:
    """Return a digest of the syntax of code, the same in all versions of Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        # It holds lines for IPython.
        return hashlib.sha256(source.encode()).hexdigest()
    # A semicolon at the end keeps the value of a cell from being shown.
    silent = source.rstrip().endswith(";")
    return hashlib.sha256(repr((_syntax(tree), silent)).encode()).hexdigest()


def _syntax(part: Any) -> Any:
    if isinstance(part, list):
        return [_syntax(each) for each in part]
    if not isinstance(part, ast.AST):
        return part
    fields = {name: value for name, value in ast.iter_fields(part) if name not in UNSEEN}
    if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if ast.get_docstring(part, clean=False) is not None:
            fields["body"] = part.body[1:]
    # What only later versions of Python have is empty where it is not used.
    known = [(name, _syntax(value)) for name, value in fields.items() if value not in (None, [])]
    return type(part).__name__, known
