"""What a cell measures: its own statements, and those before it that they reach through names.

Where the slices of two cells are equal, both measure the same, whatever else their pages do. What
counts are imports, definitions and assignments, and statements that set something: in an object, in
a module (`config.update`), in `os.environ`; those of a function of the page as well. What is set in
a package counts for all names of it: `jax.config` for `jnp`, too. What else an expression changes
whose value is used, such as the state of a generator, is not seen.
"""

import ast
import dataclasses
import functools
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from executed.source.code import bound_names, imports, names_used, syntax

# Calls of a module that set something in it, or in what they are given.
SETTING = re.compile(
    r"(?:^|[._])(?:config|environ|putenv|set|seterr|seed|enable|disable|register|init|initialize"
    r"|clear|shuffle|copyto)(?:[._]|$)|_$"
)
# What is set here holds for everything.
EVERYWHERE = "os.environ"
ENVIRONMENT = ("os.environ", "os.putenv")


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
    before = [statement for statement in statements if statement.cell <= cell]
    later: dict[str, set[str]] = {}
    for statement in before:
        for name in statement.binds if statement.holds else ():
            later.setdefault(name, set()).update(statement.holds)
    reached = {
        number
        for number, statement in enumerate(before)
        if (statement.done and statement.cell == cell) or EVERYWHERE in statement.changes
    }
    waiting = list(reached)
    while waiting:
        number = waiting.pop()
        for name in _closure(before[number].reads, later):
            new = {*_reaching(before, number, name)} - reached
            reached |= new
            waiting += new
    chosen = [before[number] for number in sorted(reached)]
    names = sorted({statement.text for statement in chosen if not statement.done})
    actions = [statement.text for statement in chosen if statement.done]
    return hashlib.sha256(repr((names, actions)).encode()).hexdigest()


def _closure(names: Iterable[str], later: Mapping[str, Iterable[str]]) -> set[str]:
    """Return names with those that functions among them read."""
    closure, waiting = set[str](), [*names]
    while waiting:
        if (name := waiting.pop()) not in closure:
            closure.add(name)
            waiting += later.get(name, ())
    return closure


def _reaching(statements: Sequence[Statement], place: int, name: str) -> Iterator[int]:
    """Yield the statements before a place that say what a name stands for there."""
    for number in range(place - 1, -1, -1):
        statement = statements[number]
        if name in statement.binds or name in statement.changes:
            yield number
        if name in statement.binds and statement.kind in (ast.FunctionDef, ast.Assign):
            return


def _statements(sources: Iterable[str]) -> Iterator[Statement]:
    modules = set[str]()
    # Of the functions of the page: what they read and change, and which change what they are given.
    reads: dict[str, frozenset[str]] = {}
    changes: dict[str, set[str]] = {}
    fillers = set[str]()
    roots = _roots(sources)
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
            used, binds = frozenset(names_used(code)), frozenset(bound_names(code))
            changed = _changes(node, modules, fillers)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                reads[node.name], changes[node.name] = used, changed & {*used, EVERYWHERE}
                if changed & {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}:
                    fillers.add(node.name)
                binds = frozenset((node.name,))
                yield Statement(cell, ast.FunctionDef, text, used, binds, holds=used)
                continue
            for name in _closure(used, reads) & reads.keys():
                changed |= changes[name]
            packages = {roots[name] for name in changed & roots.keys()}
            changed |= {name for name, package in roots.items() if package in packages}
            if isinstance(node, (ast.For, ast.AsyncFor)):
                used -= bound_names(f"{ast.unparse(node.target)} = 0")
            calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
            called = {name.id for name in calls if isinstance(name, ast.Name)}
            holds = (used & reads.keys()) - called
            yield Statement(cell, type(node), text, used, binds, frozenset(changed), holds)


def _roots(sources: Iterable[str]) -> dict[str, str]:
    """Return the package of each name of a page that stands for something of a package."""
    roots = dict[str, str]()
    for source in sources:
        try:
            body = ast.parse(source).body
        except SyntaxError:
            continue
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                words = {name: line.split()[1] for name, line in imports(ast.Module([node], []))}
                roots |= {name: module.partition(".")[0] for name, module in words.items()}
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                package = roots.get(_plain(node.value).partition(".")[0])
                roots |= {node.targets[0].id: package} if package else {}
    return roots


def _changes(part: ast.AST, modules: Collection[str], fillers: Collection[str]) -> set[str]:
    """Return the names whose values code changes without binding the names."""
    changed = set[str]()
    for node in ast.walk(part):
        if isinstance(node, ast.Global):
            changed.update(node.names)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(
            node.ctx, ast.Load
        ):
            changed.update(_first(_dotted(node)))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            path = _dotted(node.value.func)
            base, _, rest = path.partition(".")
            if rest and (base not in modules or SETTING.search(rest)):
                changed.update(_first(path))
            if path in fillers or SETTING.search(rest):
                changed.update(part.id for part in node.value.args if isinstance(part, ast.Name))
        elif isinstance(node, ast.Call):
            base, _, rest = (path := _plain(node.func)).partition(".")
            if base in modules and SETTING.search(rest):
                changed.update(_first(path))
    return changed


def _first(path: str) -> set[str]:
    return {EVERYWHERE if path.startswith(ENVIRONMENT) else path.partition(".")[0]} - {""}


def _plain(node: ast.expr) -> str:
    """Return an expression that is nothing but names and dots, and nothing of any other."""
    names = list[str]()
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _dotted(node: ast.expr) -> str:
    """Return how an expression begins, such as `jax.config.update`."""
    names = list[str]()
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        names += [node.attr] if isinstance(node, ast.Attribute) else []
        node = node.func if isinstance(node, ast.Call) else node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""
