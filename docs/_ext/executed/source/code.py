"""What several modules ask of Python code: what it imports and binds, what two have in common."""

import ast
import contextlib
import functools
import hashlib
import re
import symtable
from collections.abc import Iterable
from typing import Any

# What says how code was written, not what it does.
IGNORED_FIELDS = {"ctx", "kind", "type_comment"}


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
    return hashlib.sha256(repr((syntax(tree), silent)).encode()).hexdigest()


def syntax(part: Any) -> Any:
    """Return the syntax of code as plain data, without docstrings."""
    if isinstance(part, list):
        return [syntax(item) for item in part]
    if not isinstance(part, ast.AST):
        return part
    fields = {name: value for name, value in ast.iter_fields(part) if name not in IGNORED_FIELDS}
    if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if ast.get_docstring(part, clean=False) is not None:
            fields["body"] = part.body[1:]
    # What only later versions of Python have is empty where it is not used.
    filled = [(name, syntax(value)) for name, value in fields.items() if value not in (None, [])]
    return type(part).__name__, filled


def imports(tree: ast.Module) -> list[tuple[str, str]]:
    """Return (name, line) of what code imports at its top level, as if written one by one."""
    imported = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                imported.append((name, ast.unparse(ast.Import([alias]))))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                line = ast.unparse(ast.ImportFrom(node.module, [alias], node.level))
                imported.append((alias.asname or alias.name, line))
    return imported


def parsed(source: str) -> ast.Module:
    """Return the syntax of a cell; empty where it has none, as a file that IPython writes."""
    with contextlib.suppress(SyntaxError):
        return ast.parse(source)
    return ast.Module([], [])


@functools.cache
def imported_modules(source: str, anywhere: bool = False) -> tuple[str, ...]:
    """Return the top-level modules that the statements of a cell import, in their order.

    With `anywhere` also those that its functions and blocks import.
    """
    tree = parsed(source)
    names = []
    for node in ast.walk(tree) if anywhere else tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    return tuple(name.split(".")[0] for name in names)


def join_code(pieces: Iterable[str]) -> str:
    """Return pieces of code as one, with the blank lines that a formatter leaves between them."""
    text, above = "", ""
    for piece in filter(None, pieces):
        kinds = [re.sub(".*(?=Def)|From", "", type(s).__name__) for s in ast.parse(piece).body]
        close = above in ("Import", "Assign") and kinds[:1] == [above]
        gap = "\n\n\n" if "Def" in (above, *kinds[:1]) else "\n" if close else "\n\n"
        text, above = f"{text}{gap}{piece}" if text else piece, (kinds or [""])[-1]
    return text


class _Generators(ast.NodeTransformer):
    """Write comprehensions as generators, which have a scope of their own in every Python.

    Since Python 3.12 a comprehension has none, so its variables seem to be bound around it.
    """

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.GeneratorExp:
        """Return a generator of the same."""
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.GeneratorExp:
        """Return a generator of pairs."""
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def symbol_tables(text: str) -> list[symtable.SymbolTable]:
    """Return the tables of a piece of code: its own first, then those within it."""
    text = ast.unparse(_Generators().visit(ast.parse(text)))
    tables = [symtable.symtable(text, "<code>", "exec")]
    for table in tables:
        tables += table.get_children()
    return tables


@functools.lru_cache(maxsize=10_000)
def names_used(text: str) -> tuple[str, ...]:
    """Return the names that a piece of code takes from around it, in the order of first use."""
    top, *within = symbol_tables(text)
    own = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_local()}
    shared = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    for table in within:
        shared |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()} - own
    names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    return tuple(name for name in dict.fromkeys(names) if name in shared)


def bound_names(source: str) -> set[str]:
    """Return the names that code binds at its top level; none where it has an error.

    Its functions may bind some of them, once they are called.
    """
    try:
        top, *within = symbol_tables(source)
    except SyntaxError:
        return set()
    changed = (s for table in within for s in table.get_symbols() if s.is_declared_global())
    symbols = (*top.get_symbols(), *changed)
    return {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}


def import_lines(source: str) -> dict[str, str]:
    """Return {name: line} of what code imports at its top level; none where it has an error."""
    # 'import a.b' and 'import a.c' both bind 'a', to the same.
    return {name: _meaning(name, line) for name, line in imports(parsed(source))}


def _meaning(name: str, line: str) -> str:
    is_whole = line.startswith("import ") and " as " not in line
    return f"import {name}" if is_whole else line


def names_bound_before(source: str, line: int) -> set[str]:
    """Return the names that a cell binds in statements which end before a line."""
    done = [node for node in parsed(source).body if (node.end_lineno or 0) < line]
    return bound_names(ast.unparse(ast.Module(done, [])))
