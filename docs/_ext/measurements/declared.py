"""What pages would measure, read from their code: names that are right before they are made."""

import ast
import dataclasses
import functools
import itertools
import re
from collections.abc import Collection, Mapping, Sequence

# What a part of a name is called that only a run can tell.
UNKNOWN = "*"
MOST_TEXTS = 200
MAGIC = re.compile(r"^([ \t]*)[%!].*", re.MULTILINE)

Texts = frozenset[str]
Scope = dict[str, Texts]
ANY = Texts({UNKNOWN})


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
    `frameworks`. Calls are followed into the page's own functions. What only a run can tell is
    `*`; a name that begins with it is left out, for nearly every name would match.
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
    """Follows the code of a page, cell by cell, and collects the names that timers are given."""

    def __init__(
        self,
        trees: Sequence[ast.Module],
        timers: Collection[str],
        comparisons: Collection[str],
        frameworks: Collection[str],
    ) -> None:
        self.timers, self.comparisons, self.frameworks = timers, comparisons, frameworks
        statements = [statement for tree in trees for statement in tree.body]
        self.functions = {f.name: f for f in statements if isinstance(f, ast.FunctionDef)}
        self.globals: Scope = {}
        self.found: set[str] = set()

    def cell(self, tree: ast.Module) -> Texts:
        """Return the names that a cell measures."""
        self.found = set()
        for statement in tree.body:
            if not isinstance(statement, ast.FunctionDef):
                self._follow(statement, self.globals, ())
        known = (name for name in self.found if name and not name.startswith(UNKNOWN))
        return frozenset(re.sub(r"\*+", UNKNOWN, name) for name in known)

    def _follow(self, node: ast.AST, scope: Scope, inside: tuple[str, ...]) -> None:
        """Collect names from code, `inside` of calls of functions."""
        match node:
            case ast.FunctionDef() | ast.Lambda():
                scope = scope | dict.fromkeys(_parameters(node.args), ANY)
            case ast.Assign():
                for target in node.targets:
                    _bind(target, node.value, scope)
            case ast.AugAssign():
                _bind(node.target, None, scope)
            case ast.For() | ast.comprehension():
                for element in _elements(node.iter) or [None]:
                    _bind(node.target, element, scope)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name in self.timers or name in self.comparisons:
                    given = [*node.args, *(k.value for k in node.keywords if k.arg == "name")]
                    found = _texts(given[0] if given else None, scope)
                    if name in self.comparisons:
                        keys = _keys(given[1] if len(given) > 1 else None, scope)
                        found = Texts(
                            self._alternative(each, key) for each in found for key in keys
                        )
                    self.found |= found
                elif name in self.functions and name not in inside:
                    function = self.functions[name]
                    inner = self.globals | _arguments(function.args, node, scope)
                    for statement in function.body:
                        self._follow(statement, inner, (*inside, name))
        # What a comprehension loops over binds names that stand before it.
        children = ast.iter_child_nodes(node)
        for child in sorted(children, key=lambda child: not isinstance(child, ast.comprehension)):
            self._follow(child, scope, inside)

    def _alternative(self, name: str, key: str) -> str:
        """Return the name of an alternative, as the timer makes it of a key."""
        if key in self.frameworks:
            return name
        label = key.partition("@")[0]
        # A key of which nothing is known may be a framework too.
        return f"{name}*" if label == UNKNOWN else f"{name}/{label}"


def _bind(target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
    """Note what else the variables of a target can be."""
    if isinstance(target, ast.Name):
        _add(target.id, _texts(value, scope), scope)
        if isinstance(value, ast.Dict):
            _add(_keys_of(target.id), _keys(value, scope), scope)
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        _add(_keys_of(target.value.id), _texts(target.slice, scope), scope)
    elif isinstance(target, ast.Tuple):
        parts = _elements(value)[: len(target.elts)]
        for name, part in itertools.zip_longest(target.elts, parts):
            _bind(name, part, scope)


def _add(name: str, texts: Texts, scope: Scope) -> None:
    scope[name] = scope.get(name, frozenset()) | texts


def _keys_of(name: str) -> str:
    """Return where a scope holds the keys of the dictionary that a name stands for."""
    return f"{name}[]"


def _elements(node: ast.expr | None) -> list[ast.expr | None]:
    return [*node.elts] if isinstance(node, (ast.Tuple, ast.List)) else []


def _parameters(arguments: ast.arguments) -> list[str]:
    return [each.arg for each in (*arguments.args, *arguments.kwonlyargs)]


def _arguments(declared: ast.arguments, call: ast.Call, scope: Scope) -> Scope:
    """Return what the parameters of a function can be in a call."""
    names = _parameters(declared)
    given = dict.fromkeys([*names, *map(_keys_of, names)], ANY)
    defaults = [*declared.defaults, *declared.kw_defaults]
    for name, value in zip(reversed(names), reversed(defaults), strict=False):
        given[name] = _texts(value, {})
    keywords = [(k.arg, k.value) for k in call.keywords if k.arg in given]
    for name, value in (*zip(names, call.args, strict=False), *keywords):
        given[name], given[_keys_of(name)] = _texts(value, scope), _keys(value, scope)
    return given


def _texts(node: ast.expr | None, scope: Scope) -> Texts:
    """Return what an expression can be as a text."""
    match node:
        case ast.Constant():
            return frozenset({str(node.value)})
        case ast.Name():
            return scope.get(node.id, ANY)
        case ast.IfExp():
            return _texts(node.body, scope) | _texts(node.orelse, scope)
        case ast.FormattedValue(format_spec=None, conversion=-1):
            return _texts(node.value, scope)
        case ast.JoinedStr():
            found = frozenset({""})
            for part in node.values:
                texts = _texts(part, scope)
                texts = texts if len(found) * len(texts) <= MOST_TEXTS else ANY
                found = frozenset(start + text for start in found for text in texts)
            return found
    return ANY


def _keys(node: ast.expr | None, scope: Scope) -> Texts:
    """Return what the keys of a dictionary can be."""
    match node:
        case ast.Dict():
            # Without a key it is another dictionary, `**more`.
            found = [
                _texts(key, scope) if key else _keys(value, scope)
                for key, value in zip(node.keys, node.values, strict=True)
            ]
            return frozenset().union(*found)
        case ast.Name():
            return scope.get(_keys_of(node.id), ANY)
        case ast.BinOp(op=ast.BitOr()):
            return _keys(node.left, scope) | _keys(node.right, scope)
    return ANY
