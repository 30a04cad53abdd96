"""What pages would measure, read from their code: names that are right before they are made."""

import ast
import dataclasses
import functools
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

# What a part of a name is called that only a run can tell.
UNKNOWN = "*"
MOST_TEXTS = 200
MAGIC = re.compile(r"^([ \t]*)[%!].*", re.MULTILINE)

Texts = frozenset[str]
Scope = dict[str, Texts]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Gap:
    """A name, or a pattern of names, that a page would measure on a device where it was not run.

    `reason` says why, where it was run but for some cells.
    """

    pattern: str
    device: str
    reason: str = ""


def gaps(names: Sequence[Texts], device: str, missing: Mapping[int, str] | None) -> tuple[Gap, ...]:
    """Return the gaps of a page on a device.

    `names` are those of its cells. `missing` maps the numbers of the cells without outputs
    to the reason; it is None where the whole page has none.
    """
    reasons = dict.fromkeys(range(len(names)), "") if missing is None else missing
    return tuple(
        Gap(name, device, reason)
        for number, reason in sorted(reasons.items())
        for name in sorted(names[number])
    )


def overlap(pattern: str, other: str) -> bool:
    """Say whether there can be a name that both patterns match; `*` and `?` are special."""

    @functools.cache
    def meet(i: int, j: int) -> bool:
        if i == len(pattern) or j == len(other):
            return not pattern[i:].strip("*") and not other[j:].strip("*")
        if pattern[i] == "*" or other[j] == "*":
            return meet(i + 1, j) or meet(i, j + 1)
        return (pattern[i] == other[j] or "?" in (pattern[i], other[j])) and meet(i + 1, j + 1)

    return meet(0, 0)


def names(sources: Sequence[str], functions: Collection[str]) -> list[Texts]:
    """Return for each cell of a page the names that it measures, as texts or patterns.

    `functions` are those whose first argument is such a name. The code is followed through
    calls of the page's own functions. What only a run can tell is `*`; a name of which
    nothing else is known is left out.
    """
    if not any(function in source for function in functions for source in sources):
        return [frozenset()] * len(sources)
    trees = [_parsed(source) for source in sources]
    reader = _Reader(trees, functions)
    return [reader.cell(tree) for tree in trees]


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


class _Reader:
    """Follows the code of a page, cell by cell, as far as names of measurements need it."""

    def __init__(self, trees: Sequence[ast.Module], timers: Collection[str]) -> None:
        self.timers = frozenset(timers)
        self.functions: dict[str, list[Function]] = {}
        for node in itertools.chain.from_iterable(map(ast.walk, trees)):
            if isinstance(node, Function):
                self.functions.setdefault(node.name, []).append(node)
        self.top = {id(node) for tree in trees for node in tree.body}
        self.globals: Scope = {}
        self.found: set[str] = set()
        self.entered: set[object] = set()
        self.running: list[int] = []

    def cell(self, tree: ast.Module) -> Texts:
        """Return the names that a cell measures."""
        self.found, self.entered = set(), set()
        self._visit(tree, self.globals)
        found = {re.sub(r"\*+", UNKNOWN, name) for name in self.found}
        return frozenset(found - {UNKNOWN, ""})

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in node.decorator_list:
                    self._visit(decorator, scope)
                return
            case ast.Lambda():
                inner = scope | dict.fromkeys(_parameters(node.args), frozenset({UNKNOWN}))
                self._visit(node.body, inner)
                return
            case ast.Assign():
                for target in node.targets:
                    self._bind(target, node.value, scope)
            case ast.AnnAssign() | ast.NamedExpr() if node.value:
                self._bind(node.target, node.value, scope)
            case ast.AugAssign():
                self._bind(node.target, None, scope)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                for element in _elements(node.iter) or [None]:
                    self._bind(node.target, element, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for generator in node.generators:
                    self._visit(generator, scope)
            case ast.Call():
                self._call(node, scope)
            case ast.Name() if isinstance(node.ctx, ast.Load):
                # A function that is handed on may be called with anything.
                for function in self.functions.get(node.id, ()):
                    self._enter(function, None, scope)
        for child in ast.iter_child_nodes(node):
            called = isinstance(node, ast.Call) and child is node.func
            if not (called and isinstance(child, ast.Name)):
                self._visit(child, scope)

    def _bind(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = scope.get(target.id, frozenset()) | self._texts(value, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = _elements(value)[: len(target.elts)]
            for part, of_part in itertools.zip_longest(target.elts, values):
                self._bind(part, of_part, scope)

    def _call(self, call: ast.Call, scope: Scope) -> None:
        called = getattr(call.func, "id", getattr(call.func, "attr", None))
        if called in self.timers:
            named = next((k.value for k in call.keywords if k.arg == "name"), None)
            self.found |= self._texts(call.args[0] if call.args else named, scope)
            return
        for function in self.functions.get(called or "", ()):
            self._enter(function, call, scope)

    def _enter(self, function: Function, call: ast.Call | None, scope: Scope) -> None:
        if id(function) in self.running or function.name in self.timers:
            return
        given = self._arguments(function, call, scope)
        on_top = id(function) in self.top
        key = (id(function), frozenset(given.items()))
        if on_top and key in self.entered:
            return
        self.entered.add(key)
        self.running.append(id(function))
        inner = (self.globals if on_top else scope) | given
        for statement in function.body:
            self._visit(statement, inner)
        self.running.pop()

    def _arguments(self, function: Function, call: ast.Call | None, scope: Scope) -> Scope:
        given = dict.fromkeys(_parameters(function.args), frozenset({UNKNOWN}))
        if call is None:
            return given
        positional = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        defaults = function.args.defaults
        for name, default in zip(reversed(positional), reversed(defaults), strict=False):
            given[name] = self._texts(default, self.globals)
        for each, chosen in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            given[each.arg] = self._texts(chosen, self.globals)
        if isinstance(call.func, ast.Attribute) and positional[:1] in (["self"], ["cls"]):
            del positional[0]
        for name, argument in zip(positional, call.args, strict=False):
            if isinstance(argument, ast.Starred):
                given |= dict.fromkeys(positional, frozenset({UNKNOWN}))
                break
            given[name] = self._texts(argument, scope)
        for keyword in call.keywords:
            if keyword.arg in given:
                given[keyword.arg] = self._texts(keyword.value, scope)
        return given

    def _texts(self, node: ast.expr | None, scope: Scope) -> Texts:
        """Return what an expression can be as a text."""
        match node:
            case ast.Constant():
                return frozenset({str(node.value)})
            case ast.Name():
                return scope.get(node.id, frozenset({UNKNOWN}))
            case ast.IfExp():
                return self._texts(node.body, scope) | self._texts(node.orelse, scope)
            case ast.FormattedValue() if node.format_spec is None and node.conversion == -1:
                return self._texts(node.value, scope)
            case ast.JoinedStr():
                return self._joined(node.values, scope)
            case ast.BinOp() if isinstance(node.op, ast.Add) and _is_text(node):
                return self._joined([node.left, node.right], scope)
        return frozenset({UNKNOWN})

    def _joined(self, parts: Sequence[ast.expr], scope: Scope) -> Texts:
        found = frozenset({""})
        for part in parts:
            texts = self._texts(part, scope)
            if len(found) * len(texts) > MOST_TEXTS:
                texts = frozenset({UNKNOWN})
            found = frozenset(start + text for start in found for text in texts)
        return found


def _elements(node: ast.expr | None) -> list[ast.expr | None]:
    return [*node.elts] if isinstance(node, (ast.Tuple, ast.List)) else []


def _is_text(node: ast.expr) -> bool:
    """Say whether an expression is certainly a text, not a number."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    rest = [each for each in (arguments.vararg, arguments.kwarg) if each]
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest):
        yield each.arg
