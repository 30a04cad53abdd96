"""Which cells of a page a measurement needs, and which lines a machine can run.

A cell is the text of its code. Nothing here runs any of it.
"""

import ast
import functools
import symtable

MEASURING = {"compare", "measure"}
SETTERS = ("set_", "enable_", "disable_")
WHOLE = (ast.For, ast.With, ast.If, ast.While)
# How cells ask what they run on, to choose sizes, and the answer where JAX is absent.
ASKED, ANSWER = "jax.default_backend()", "'cpu'"


class Apart(ast.NodeTransformer):
    """Makes generators of comprehensions: from Python 3.12 on these have no scope of their own."""

    def generator(self, node):
        """Return a generator of the same elements."""
        self.generic_visit(node)
        parts = [getattr(node, name, None) for name in ("elt", "key", "value")]
        element = ast.Tuple([part for part in parts if part], ast.Load())
        return ast.GeneratorExp(element, node.generators)

    visit_ListComp = visit_SetComp = visit_DictComp = generator


def scope(source):
    """Return the symbols of code; the names of a comprehension are not among its own."""
    tree = ast.fix_missing_locations(Apart().visit(ast.parse(source)))
    return symtable.symtable(ast.unparse(tree), "<cell>", "exec")


@functools.lru_cache(maxsize=10_000)
def used(source):
    """Return the names that code takes from around it, in functions' bodies too."""
    top, *tables = [scope(source)]
    found = {
        each.get_name() for each in top.get_symbols() if each.is_referenced()
    }
    tables += top.get_children()
    for table in tables:
        tables += table.get_children()
        names = {
            each.get_name() for each in table.get_symbols() if each.is_global()
        }
        found |= names
    return frozenset(found)


@functools.lru_cache(maxsize=10_000)
def bound(source):
    """Return the names that code binds: assigned, defined and imported."""
    return frozenset(
        each.get_name()
        for each in scope(source).get_symbols()
        if each.is_assigned() or each.is_imported()
    )


def changed(statement):
    """Return the names of what a statement changes without binding them anew."""
    found, nodes = set(), [statement]
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        nodes += ast.iter_child_nodes(node)
        places = list(node.targets) if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign):
            places = [node.target]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            places = [node.value.func]
        for place in places:
            if isinstance(place, ast.Tuple):
                places += place.elts
            owner = place
            while isinstance(owner, (ast.Attribute, ast.Subscript, ast.Call)):
                owner = (
                    owner.func if isinstance(owner, ast.Call) else owner.value
                )
            if isinstance(owner, ast.Name) and owner is not place:
                found.add(owner.id)
    return found


def measuring(cell):
    """Return the statements of a cell that measure, themselves or by its functions."""
    names, found = set(MEASURING), []
    for statement in ast.parse(cell).body:
        if not used(ast.unparse(statement)) & names:
            continue
        if isinstance(statement, ast.FunctionDef):
            names.add(statement.name)
        else:
            found.append(statement)
    return found


def never_filled(cells):
    """Return the names of dictionaries that begin empty and stay so."""
    empty, filled = set(), set()
    for statement in ast.parse("\n".join(cells)).body:
        names = bound(ast.unparse(statement))
        begins = isinstance(statement, ast.Assign) and isinstance(
            statement.value, ast.Dict
        )
        if begins and not statement.value.keys:
            empty |= names
        else:
            filled |= names | changed(statement)
    return empty - filled


def measuring_part(cell):
    """Return a cell up to its last statement that measures."""
    return "\n".join(cell.splitlines()[: measuring(cell)[-1].end_lineno])


def shows(statement):
    """Say whether a statement prints or measures, and does nothing else."""
    if isinstance(statement, (ast.For, ast.If)):
        return all(map(shows, statement.body + statement.orelse))
    names = used(ast.unparse(statement))
    return isinstance(statement, ast.Expr) and not names.isdisjoint(
        {"print", *MEASURING}
    )


def without_shows(cell):
    """Return a cell less the statements that print or measure, and do nothing else."""
    lines = cell.splitlines()
    for statement in reversed(ast.parse(cell).body):
        if shows(statement):
            del lines[statement.lineno - 1 : statement.end_lineno]
    return "\n".join(lines)


def imports_of(cell):
    """Return the lines of a cell that import, as text."""
    body = ast.parse(cell).body
    found = [
        each for each in body if isinstance(each, (ast.Import, ast.ImportFrom))
    ]
    return "\n".join(map(ast.unparse, found))


def needed(cells, last):
    """Return what to run of a page's cells so that `cells[last]` measures, in order.

    Those are the cells that bind or change what it uses, and what these use, less what
    they print and measure themselves. Of a cell that is needed for what it imports
    alone, its imports are returned.
    """
    wanted, chosen = set(), []
    for number in reversed(range(last + 1)):
        part = measuring_part if number == last else without_shows
        cell = part(cells[number])
        body = ast.parse(cell).body
        imported = bound(imports_of(cell))
        made = set(bound(cell)).union(*map(changed, body))
        if number != last and not made & wanted:
            continue
        if number != last and not (made - imported) & wanted:
            chosen.append(imports_of(cell))
            continue
        chosen.append(cell)
        for statement in reversed(body):
            text = ast.unparse(statement)
            names = set(used(text))
            if isinstance(statement, WHOLE):
                names -= bound(text) - changed_in_place(statement)
            elif not isinstance(
                statement, (ast.AugAssign, ast.Import, ast.ImportFrom)
            ):
                wanted -= bound(text)
            wanted |= names
    return chosen[::-1]


def changed_in_place(statement):
    """Return the names that augmented assignments in a statement go on from."""
    nodes = ast.walk(statement)
    targets = [
        each.target for each in nodes if isinstance(each, ast.AugAssign)
    ]
    return {each.id for each in targets if isinstance(each, ast.Name)}


def modules_in(cells):
    """Return the names of the top-level modules that cells import."""
    found = set()
    for node in ast.walk(ast.parse("\n".join(cells))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    return found


def sets(cells):
    """Return what cells set for their whole process, as code: options of frameworks.

    That is a call such as `torch.set_num_threads(2)` or `jax.config.update(…)`, and
    whatever of a module is given a value, such as `os.environ["A"]`. What a context
    manager sets for a while does not count.
    """
    tree = ast.parse("\n".join(cells))
    modules = bound("\n".join(map(imports_of, cells)))
    found, nodes = set(), [tree]
    for node in nodes:
        decorators = map(ast.unparse, getattr(node, "decorator_list", []))
        if any("contextmanager" in each for each in decorators):
            continue
        nodes += ast.iter_child_nodes(node)
        places = list(node.targets) if isinstance(node, ast.Assign) else []
        places += [node.func] if isinstance(node, ast.Call) else []
        for place in filter(of_attributes, places):
            *owners, last = ast.unparse(place).split(".")
            of_config = owners[-1] == "config" and last == "update"
            changes = isinstance(node, ast.Assign) or of_config
            if owners[0] in modules and (changes or last.startswith(SETTERS)):
                found.add(ast.unparse(node))
    return frozenset(found)


def of_attributes(node):
    """Say whether code names an attribute of a name, or of one, or an entry of that."""
    if isinstance(node, ast.Subscript):
        return of_attributes(node.value)
    if not isinstance(node, ast.Attribute):
        return False
    return isinstance(node.value, ast.Name) or of_attributes(node.value)


def without(cells, absent):
    """Return cells less what needs modules that are absent.

    A statement is left out if it uses what one of them, or another statement that was
    left out, would have bound; of a dictionary the entries that do, and of a list that
    is given a name.
    """
    missing, found = set(), []
    if "jax" in absent:
        cells = [cell.replace(ASKED, ANSWER) for cell in cells]
    for cell in cells:
        present(ast.parse(imports_of(cell)).body, absent, missing)
    for cell in cells:
        kept = ast.Module(present(ast.parse(cell).body, absent, missing), [])
        whole = ast.dump(kept) == ast.dump(ast.parse(cell))
        found.append(cell if whole else ast.unparse(kept))
    return found


def present(body, absent, missing):
    """Return the statements of a body that can run; `missing` learns what cannot."""
    kept = []
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            statement = importing(statement, absent, missing)
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            statement = defining(statement, missing)
        elif isinstance(statement, WHOLE):
            statement = holding(statement, absent, missing)
        else:
            entries = Fewer(missing)
            if isinstance(statement, ast.Assign) and isinstance(
                statement.value, ast.List
            ):
                elements = statement.value.elts
                statement.value.elts = [
                    e for e in elements if not entries.lacks(e)
                ]
            statement = entries.visit(statement)
            names = bound(ast.unparse(statement))
            if entries.lacks(statement):
                missing |= names
                continue
            missing -= names
        if statement is not None:
            kept.append(statement)
    return kept


def importing(statement, absent, missing):
    """Return an import less modules that are absent, or None where none is left."""
    kept = []
    for alias in statement.names:
        module = getattr(statement, "module", alias.name)
        name = alias.asname or alias.name.partition(".")[0]
        if module.partition(".")[0] in absent:
            missing.add(name)
        else:
            missing.discard(name)
            kept.append(alias)
    statement.names = kept
    return statement if kept else None


def defining(statement, missing):
    """Return a definition, or None where it cannot be made.

    One that can be made, but uses what is missing when it is called, is missing too.
    """
    name = statement.name
    lacks = (used(ast.unparse(statement)) - {name}) & missing
    at_once = lacks
    if lacks and isinstance(statement, ast.FunctionDef):
        head = ast.parse(ast.unparse(statement)).body[0]
        head.body = [ast.Pass()]
        at_once = used(ast.unparse(head)) & missing
    if lacks:
        missing.add(name)
    else:
        missing.discard(name)
    return None if at_once else statement


def holding(statement, absent, missing):
    """Return a loop, a condition or a `with` with what can run in it, or None."""
    text = ast.unparse(statement)
    head = [getattr(statement, part, None) for part in ("test", "iter")]
    head += [item.context_expr for item in getattr(statement, "items", [])]
    if any(used(ast.unparse(each)) & missing for each in head if each):
        missing |= bound(text)
        return None
    statement.body = present(statement.body, absent, missing)
    statement.orelse = present(
        getattr(statement, "orelse", []), absent, missing
    )
    return statement if statement.body else None


class Fewer(ast.NodeTransformer):
    """Takes entries out of dictionaries that use what is missing."""

    def __init__(self, missing):
        """Take the names that are missing."""
        self.missing = missing

    def lacks(self, node):
        """Say whether a part of the code uses what is missing."""
        return bool(used(ast.unparse(node)) & self.missing)

    def visit_Dict(self, node):
        """Keep the entries that can be made."""
        pairs = zip(node.keys, node.values, strict=True)
        kept = [
            pair
            for pair in pairs
            if not any(each and self.lacks(each) for each in pair)
        ]
        return ast.Dict([key for key, _ in kept], [value for _, value in kept])
