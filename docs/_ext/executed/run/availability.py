"""Cells that cannot run because a framework is not installed, and what cells leave behind."""

import ast
import importlib.util
from collections.abc import Callable, Iterable

from ..frameworks import Framework, by_module
from ..source.code import imported_modules, parsed


class Frameworks:
    """Says which cells need a framework that is absent."""

    def __init__(
        self,
        registry: Iterable[Framework],
        find: Callable[[str], object] = importlib.util.find_spec,
    ) -> None:
        """Take the registered frameworks, and what finds an installed module or returns None."""
        registry = list(registry)
        self.absent = {
            module: framework
            for module, framework in by_module(registry).items()
            if find(module) is None
        }
        self.words = {
            word: entry for entry in registry if not entry.installed(find) for word in entry.words
        }

    def needed_by(self, source: str, own: str = "") -> Framework | None:
        """Return the absent framework that a cell imports, is marked with or names, or None.

        `own` is the name of the framework whose cell it is, if a page says so.
        """
        needed = next((self.absent[n] for n in imported_modules(source) if n in self.absent), None)
        needed = needed or next((e for e in self.absent.values() if e.name == own), None)
        return needed or next((self.words[word] for word in self.words if word in source), None)

    def imports(self, source: str) -> str:
        """Return the imports of a cell that need nothing which is absent.

        Later cells may use them, so they are made where the rest of the cell is left out.
        """
        statements: list[ast.stmt] = [
            node
            for node in parsed(source).body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            and self.absent.keys().isdisjoint(imported_modules(ast.unparse(node)))
        ]
        return ast.unparse(ast.Module(statements, []))
