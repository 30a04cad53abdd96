"""What a cell measures: its own statements, and those before it that they reach through names.

Where the slices of two cells are equal, both measure the same, whatever else their pages do. What
counts are imports, definitions and assignments, and statements that set something: in an object, in
a module (`config.update`), in `os.environ`; those of a function of the page as well. What an
expression changes whose value is used, such as the state of a generator, is not seen.
"""

import ast
import dataclasses
import functools
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from executed.source.expansion import bound_names
from executed.source.syntax import imports, names_used, syntax

# Calls of a module that set something in it, or in what they are given.
SETTING = re.compile(
    r"(?:^|[._])(?:config|environ|set|seed|enable|disable|register|init|initialize|clear|shuffle"
    r"|copyto)(?:[._]|$)|_$"
)
# What is set here holds for everything.
EVERYWHERE = "os.environ"


@dataclasses.dataclass(frozen=True)
class Statement:
    """A statement at the top level of a page, in the cell of this number.

    `text` says its syntax. It `reads` names and `binds` some; `changes` are those of which it
    changes what they stand for. `holds` are those that it may read later, through what it binds:
    of a function all, and what is given away uncalled.
    """

    cell: int
    kind: type[ast.stmt]
    text: str
    reads: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()

    @property
    def done(self) -> bool:
        """Whether it does something, besides giving names to modules and functions."""
        return self.kind not in (ast.Import, ast.FunctionDef)


@functools.lru_cache(maxsize=1000)
def slices(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return for each cell of a page a digest of its slice."""
    statements = list(_statements(sources))
    return tuple(_slice(statements, number) for number in range(len(sources)))


def _slice(statements: Iterable[Statement], cell: int) -> str:
    before = [each for each in statements if each.cell <= cell]
    later: dict[str, set[str]] = {}
    for each in before:
        for name in each.binds if each.holds else ():
            later.setdefault(name, set()).update(each.holds)
    found = {
        number
        for number, each in enumerate(before)
        if (each.done and each.cell == cell) or EVERYWHERE in each.changes
    }
    left = list(found)
    while left:
        place = left.pop()
        for name in _closure(before[place].reads, later):
            new = {*_reaching(before, place, name)} - found
            found |= new
            left += new
    chosen = [before[number] for number in sorted(found)]
    given = sorted({each.text for each in chosen if not each.done})
    return hashlib.sha256(
        repr((given, [each.text for each in chosen if each.done])).encode()
    ).hexdigest()


def _closure(names: Iterable[str], later: Mapping[str, Iterable[str]]) -> set[str]:
    """Return names with those that functions among them read."""
    found, left = set[str](), [*names]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += later.get(name, ())
    return found


def _reaching(statements: Sequence[Statement], place: int, name: str) -> Iterator[int]:
    """Yield the statements before a place that say what a name stands for there."""
    for number in range(place - 1, -1, -1):
        each = statements[number]
        if name in each.binds or name in each.changes:
            yield number
        if name in each.binds and each.kind in (ast.FunctionDef, ast.Assign):
            return


def _statements(sources: Iterable[str]) -> Iterator[Statement]:
    modules = set[str]()
    # Of the functions of the page: what they read and change, and which change what they are given.
    reads: dict[str, frozenset[str]] = {}
    changes: dict[str, set[str]] = {}
    fillers = set[str]()
    for cell, source in enumerate(sources):
        try:
            body = ast.parse(source).body
        except SyntaxError:
            # It holds lines for IPython, which may do anything.
            yield Statement(cell, ast.Expr, source, changes=frozenset((EVERYWHERE,)))
            continue
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for name, line in imports(ast.Module([node], [])):
                    modules.add(name)
                    yield Statement(cell, ast.Import, line, binds=frozenset((name,)))
                continue
            code, text = ast.unparse(node), repr(syntax(node))
            own, binds = frozenset(names_used(code)), frozenset(bound_names(code))
            changed = _changes(node, modules, fillers)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                reads[node.name], changes[node.name] = own, changed & {*own, EVERYWHERE}
                if changed & {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}:
                    fillers.add(node.name)
                binds = frozenset((node.name,))
                yield Statement(cell, ast.FunctionDef, text, own, binds, holds=own)
                continue
            for name in _closure(own, reads) & reads.keys():
                changed |= changes[name]
            if isinstance(node, (ast.For, ast.AsyncFor)):
                own -= bound_names(f"{ast.unparse(node.target)} = 0")
            calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
            called = {each.id for each in calls if isinstance(each, ast.Name)}
            holds = (own & reads.keys()) - called
            yield Statement(cell, type(node), text, own, binds, frozenset(changed), holds)


def _changes(part: ast.AST, modules: Collection[str], fillers: Collection[str]) -> set[str]:
    """Return the names of which code changes what they stand for, without binding them."""
    found = set[str]()
    for node in ast.walk(part):
        if isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(
            node.ctx, ast.Load
        ):
            found.update(_first(_dotted(node)))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            path = _dotted(node.value.func)
            base, _, rest = path.partition(".")
            if rest and (base not in modules or SETTING.search(rest)):
                found.update(_first(path))
            if path in fillers or SETTING.search(rest):
                found.update(each.id for each in node.value.args if isinstance(each, ast.Name))
    return found


def _first(path: str) -> set[str]:
    return {EVERYWHERE if path.startswith(EVERYWHERE) else path.partition(".")[0]} - {""}


def _dotted(node: ast.expr) -> str:
    """Return how an expression begins, such as `jax.config.update`."""
    names = list[str]()
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        names += [node.attr] if isinstance(node, ast.Attribute) else []
        node = node.func if isinstance(node, ast.Call) else node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""
