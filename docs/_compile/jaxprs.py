"""Count the operations of a jaxpr and draw it: the site that shows it computes no layout."""

import collections
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from compiled.programs import Edge, Node, Picture

from . import origins

# Equations that stand for the jaxpr inside of them.
DISSOLVED = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"}


def inner_jaxprs(equation: Any) -> list[Any]:
    """Return the jaxprs among the parameters of an equation."""
    jaxprs = []
    for value in equation.params.values():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if hasattr(part, "jaxpr") and hasattr(part.jaxpr, "eqns"):
                jaxprs.append(part.jaxpr)
            elif hasattr(part, "eqns"):
                jaxprs.append(part)
    return jaxprs


def operations(jaxpr: Any) -> dict[str, int]:
    """Count the operations of a jaxpr, those of inner ones included."""
    counted: collections.Counter[str] = collections.Counter()
    for equation in jaxpr.eqns:
        if equation.primitive.name not in DISSOLVED:
            counted[equation.primitive.name] += 1
        for inner in inner_jaxprs(equation):
            counted.update(operations(inner))
    return dict(sorted(counted.items()))


def picture(jaxpr: Any, file: str = "") -> Picture:
    """Return nodes with places, and edges, of a jaxpr drawn from top to bottom.

    Operations have the lines of `file` that they come from.
    """
    nodes: list[dict[str, str]] = []
    edges: dict[tuple[int, int], None] = {}
    # Of each variable, the node that it comes from, or the constant that it stands for.
    sources: dict[Any, int | None] = {}
    constants: dict[Any, Any] = {}

    def add(label: str, detail: str, kind: str, variables: Iterable[Any] = ()) -> int:
        nodes.append({"label": label, "detail": detail, "kind": kind})
        for variable in variables:
            if (source := _of(variable, sources)) is not None:
                edges[source, len(nodes) - 1] = None
        return len(nodes) - 1

    def constant(variable: Any) -> Any:
        return getattr(variable, "val", _of(variable, constants))

    def pass_on(given: Iterable[Any], taken: Iterable[Any]) -> None:
        for outer, own in zip(given, taken, strict=True):
            sources[own], constants[own] = _of(outer, sources), constant(outer)

    def walk(inner: Any, around: str = origins.NONE) -> None:
        for equation in inner.eqns:
            within = inner_jaxprs(equation)
            name = equation.primitive.name
            origin = origins.within(origins.of_equation(equation.source_info, file), around)
            if name in DISSOLVED and within:
                pass_on(equation.invars, within[0].invars)
                walk(within[0], origin)
                pass_on(within[0].outvars, equation.outvars)
                continue
            values = [constant(variable) for variable in equation.invars]
            number = add(*_words(equation, values), "operation", equation.invars)
            nodes[number]["origin"] = origin
            sources.update(dict.fromkeys(equation.outvars, number))

    names = jaxpr.debug_info.safe_arg_names(len(jaxpr.invars))
    for name, variable in zip(names, jaxpr.invars, strict=True):
        sources[variable] = add(name or "argument", variable.aval.str_short(), "argument")
    walk(jaxpr)
    for variable in jaxpr.outvars:
        add("result", variable.aval.str_short(), "result", [variable])
    return layered(nodes, list(edges))


def _of(variable: Any, known: Mapping[Any, Any]) -> Any:
    """Return what is known of a variable; of a literal, which may be no key, nothing."""
    return None if hasattr(variable, "val") else known.get(variable)


def _words(equation: Any, values: Iterable[Any]) -> tuple[str, str]:
    """Return the label of an operation, and what stands below it; `values` are its constants."""
    name = equation.primitive.name
    if name == "scan":
        within = [each for part in inner_jaxprs(equation) for each in part.eqns]
        body = ", ".join(each.primitive.name for each in within)
        return f"scan, {equation.params['length']} rounds", body
    scalars = [v for v in values if v is not None and getattr(v, "shape", ()) == ()]
    label = " ".join([name, *(f"{float(value):.6g}" for value in scalars)])
    return label, " ".join(v.aval.str_short() for v in equation.outvars[:2])


def layered(nodes: list[dict[str, str]], edges: list[tuple[int, int]]) -> Picture:
    """Give each node a place (x, y) in layers, and each long edge the points it goes through."""
    import igraph

    layer = [0] * len(nodes)
    # Edges lead from earlier to later nodes, so one pass finds the longest path to each.
    for above, below in sorted(edges, key=lambda edge: edge[1]):
        layer[below] = max(layer[below], layer[above] + 1)
    for number, node in enumerate(nodes):
        after = [layer[below] for above, below in edges if above == number]
        if node["kind"] == "argument" and after:
            layer[number] = min(after) - 1
    split: list[tuple[int, int]] = []
    chains: list[list[int]] = []
    for above, below in edges:
        chain = [above]
        for level in range(layer[above] + 1, layer[below]):
            layer.append(level)
            chain.append(len(layer) - 1)
        chains.append(chain[1:])
        split += zip(chain, [*chain[1:], below], strict=True)
    graph = igraph.Graph(n=len(layer), edges=split, directed=True)
    places = [list(place) for place in graph.layout_sugiyama(layers=layer, maxiter=500).coords]
    _spread(places, layer)
    left = min((x for x, _ in places), default=0.0)
    places = [[round(x - left, 2), layer[number]] for number, (x, _) in enumerate(places)]
    return Picture(
        [Node(**node, x=x, y=y) for node, (x, y) in zip(nodes, places, strict=False)],
        [
            Edge(above, below, [places[number] for number in chain])
            for (above, below), chain in zip(edges, chains, strict=True)
        ],
    )


def _spread(places: list[list[float]], layer: list[int]) -> None:
    """Move nodes of one layer to the right until no two of them are nearer than 1."""
    for level in set(layer):
        row = [number for number, own in enumerate(layer) if own == level]
        for before, after in itertools.pairwise(sorted(row, key=places.__getitem__)):
            places[after][0] = max(places[after][0], places[before][0] + 1)
