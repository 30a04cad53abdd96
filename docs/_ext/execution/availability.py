"""Cells that cannot run because a framework is not installed: which, and what follows from them."""

import ast
import importlib.util
import symtable
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ..frameworks import Framework
from ..source.expansion import bound_names
from .imports import imported

Reason = TypeVar("Reason")


class UnavailableNames(Generic[Reason]):
    """The names that cells would have made, had they gone well, each with the reason."""

    def __init__(self) -> None:
        self.names: dict[str, Reason] = {}

    def reason(self, source: str) -> Reason | None:
        """Return why a cell cannot run that takes over names from those before it, or None."""
        if not self.names:
            return None
        try:
            taken = _taken_over(ast.parse(source))
        except SyntaxError:
            return None
        return next((self.names[name] for name in taken if name in self.names), None)

    def note(self, source: str, reason: Reason | None, kept: Iterable[str] = ()) -> None:
        """Note that the names which a cell binds are lost, all but those kept; or that none is."""
        for name in bound_names(source):
            if reason is not None and name not in kept:
                self.names[name] = reason
            else:
                self.names.pop(name, None)


class Frameworks:
    """Goes through the cells of a page in order, and knows what those left out would have made."""

    def __init__(
        self,
        registry: Iterable[Framework],
        find: Callable[[str], object] = importlib.util.find_spec,
    ) -> None:
        """Take the registered frameworks, and what finds an installed module or returns None."""
        registry = list(registry)
        self.absent = {
            module: framework
            for framework in registry
            for module in framework.modules
            if find(module) is None
        }
        self.words = {
            word: each for each in registry if not each.installed(find) for word in each.words
        }
        self.lost: UnavailableNames[Framework] = UnavailableNames()

    def needed_by(self, source: str, own: str = "") -> Framework | None:
        """Return the framework that is absent and without which a cell cannot run, or None.

        `own` is the name of the framework whose cell it is, if a page says so.
        """
        if not self.absent and not self.words:
            return None
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return None
        needed = next((self.absent[n] for n in imported(source) if n in self.absent), None)
        needed = needed or next((each for each in self.absent.values() if each.name == own), None)
        needed = needed or next((self.words[word] for word in self.words if word in source), None)
        needed = needed or self.lost.reason(source)
        self.lost.note(source, needed, kept=_bound(self._imports(tree)))
        return needed

    def imports(self, source: str) -> str:
        """Return the imports of a cell that need nothing which is absent.

        Later cells may use them, so they are made where the rest of the cell is left out.
        """
        return ast.unparse(self._imports(ast.parse(source)))

    def _imports(self, tree: ast.Module) -> ast.Module:
        """Return the statements among those of a cell that import what is there."""
        found: list[ast.stmt] = [
            node
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            and self.absent.keys().isdisjoint(imported(ast.unparse(node)))
        ]
        return ast.Module(found, [])


def _taken_over(tree: ast.Module) -> list[str]:
    """Return the names that a cell reads and that earlier cells must have made, sorted.

    Not among them are the arguments and local names of its functions, and what the
    cell binds before it reads it.
    """
    taken: set[str] = set()
    bound: set[str] = set()
    for node in tree.body:
        new = _bound(ast.Module([node], []))
        # A loop or a block binds its own names before it reads them.
        own = new if isinstance(node, (ast.For, ast.While, ast.With, ast.If, ast.Try)) else set()
        text = ast.unparse(_Functions().visit(node))
        taken |= _globals_read(symtable.symtable(text, "cell", "exec")) - bound - own
        bound |= new
    return sorted(taken)


class _Functions(ast.NodeTransformer):
    """Makes functions of comprehensions, for since Python 3.12 they have no table of their own."""

    def _apart(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return ast.parse(f"(lambda: {ast.unparse(node)})()", mode="eval").body

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _apart


def names_bound_before(source: str, line: int) -> set[str]:
    """Return the names that a cell binds in statements which end before a line."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return set()
    return _bound(ast.Module([node for node in body if (node.end_lineno or 0) < line], []))


def _globals_read(table: symtable.SymbolTable) -> set[str]:
    """Return the names that a piece of code looks up outside of all its functions."""
    top = table.get_type() == "module"
    read = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (top or symbol.is_global())
    }
    return read.union(*(_globals_read(child) for child in table.get_children()))


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a cell defines at its top level."""
    return bound_names(ast.unparse(tree))
