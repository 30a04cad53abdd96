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

    `framework` is the one that its cell needs, where that was not installed.
    """

    pattern: str
    device: str
    framework: str = ""


def gaps(names: Sequence[Texts], device: str, missing: Mapping[int, str] | None) -> tuple[Gap, ...]:
    """Return the gaps of a page on a device.

    `names` are those of its cells. `missing` maps the numbers of the cells without outputs
    to the framework that they lack, or to nothing; it is None where the whole page has none.
    """
    if missing is None:
        missing = dict.fromkeys(range(len(names)), "")
    return tuple(
        Gap(name, device, framework)
        for number, framework in sorted(missing.items())
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


def names(
    sources: Sequence[str],
    functions: Collection[str],
    comparisons: Collection[str] = (),
    frameworks: Collection[str] = (),
) -> list[Texts]:
    """Return for each cell of a page the names that it measures, as texts or patterns.

    `functions` are those whose first argument is such a name, and `comparisons` those that
    take a dictionary after it: a key adds a part to the name, unless it is one of
    `frameworks`. The code is followed through calls of the page's own functions. What only a
    run can tell is `*`; a name of which nothing else is known is left out.
    """
    timers = (*functions, *comparisons)
    if not any(function in source for function in timers for source in sources):
        return [frozenset()] * len(sources)
    trees = [_parsed(source) for source in sources]
    reader = _Reader(trees, functions, comparisons, frameworks)
    return [reader.cell(tree) for tree in trees]


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


class _Reader:
    """Follows the code of a page, cell by cell, as far as names of measurements need it."""

    def __init__(
        self,
        trees: Sequence[ast.Module],
        timers: Collection[str],
        comparisons: Collection[str],
        frameworks: Collection[str],
    ) -> None:
        self.timers = frozenset(timers)
        self.comparisons = frozenset(comparisons)
        self.frameworks = frozenset(frameworks)
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
            if isinstance(value, ast.Dict):
                self._add_keys(target.id, self._keys(value, scope), scope)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self._add_keys(target.value.id, self._texts(target.slice, scope), scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = _elements(value)[: len(target.elts)]
            for part, of_part in itertools.zip_longest(target.elts, values):
                self._bind(part, of_part, scope)

    def _call(self, call: ast.Call, scope: Scope) -> None:
        called = getattr(call.func, "id", getattr(call.func, "attr", None))
        if called in self.timers | self.comparisons:
            named = next((k.value for k in call.keywords if k.arg == "name"), None)
            found = self._texts(call.args[0] if call.args else named, scope)
            if called in self.comparisons:
                keys = self._keys(call.args[1] if len(call.args) > 1 else None, scope)
                found = frozenset(self._alternative(name, key) for name in found for key in keys)
            self.found |= found
            return
        for function in self.functions.get(called or "", ()):
            self._enter(function, call, scope)

    def _enter(self, function: Function, call: ast.Call | None, scope: Scope) -> None:
        if id(function) in self.running or function.name in self.timers | self.comparisons:
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
        given |= {_keys_of(name): unknown for name, unknown in given.items()}
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
            given[_keys_of(name)] = self._keys(argument, scope)
        for keyword in call.keywords:
            if keyword.arg in given:
                given[keyword.arg] = self._texts(keyword.value, scope)
                given[_keys_of(keyword.arg)] = self._keys(keyword.value, scope)
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

    def _keys(self, node: ast.expr | None, scope: Scope) -> Texts:
        """Return what the keys of a dictionary can be."""
        match node:
            case ast.Dict():
                parts = zip(node.keys, node.values, strict=True)
                # Without a key it is another dictionary, `**more`.
                found = [
                    self._texts(key, scope) if key else self._keys(value, scope)
                    for key, value in parts
                ]
                return frozenset().union(*found)
            case ast.Name():
                return scope.get(_keys_of(node.id), frozenset({UNKNOWN}))
            case ast.BinOp() if isinstance(node.op, ast.BitOr):
                return self._keys(node.left, scope) | self._keys(node.right, scope)
        return frozenset({UNKNOWN})

    def _add_keys(self, name: str, keys: Texts, scope: Scope) -> None:
        scope[_keys_of(name)] = scope.get(_keys_of(name), frozenset()) | keys

    def _alternative(self, name: str, key: str) -> str:
        """Return the name of an alternative, as the timer makes it of a key."""
        if key in self.frameworks:
            return name
        label = key.partition("@")[0]
        # A key of which nothing is known may be a framework too.
        return f"{name}*" if label == UNKNOWN else f"{name}/{label}"

    def _joined(self, parts: Sequence[ast.expr], scope: Scope) -> Texts:
        found = frozenset({""})
        for part in parts:
            texts = self._texts(part, scope)
            if len(found) * len(texts) > MOST_TEXTS:
                texts = frozenset({UNKNOWN})
            found = frozenset(start + text for start in found for text in texts)
        return found


def _keys_of(name: str) -> str:
    """Return where a scope holds the keys of the dictionary that a name stands for."""
    return f"{name}[]"


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
