"""Makes importable modules of functions that the book teaches, from the snippets.

A function brings what it needs: others of the snippets, constants and imports, and nothing else of
its module. So a reader needs the libraries of what is used, and no other.

Needs the standard library alone.
"""

import ast
import functools
import pathlib
import re
import symtable
import sys
from collections.abc import Callable, Iterable

# Of each module: the page that teaches it, and its functions as module.name of the snippets.
MODULES = {
    "steps": (
        "models/steps",
        "models.steps: stateless split_nnx cross_entropy mean_squared mean_of gradient_of "
        "make_step train accumulated rematerialized to_bfloat16 in_bfloat16",
    ),
    "of_equinox": ("models/steps", "models.steps: split_equinox split_stateful_equinox"),
    "layouts": (
        "training/sharded_parameters",
        "devices.resharding: replicate",
        "training.data_parallel: axis_of_devices collectives",
        "training.sharded_parameters: sharded_over gathered in_shards gradient_by_hand",
        "training.sharded_parameters: bytes_on_each_device",
        "processes.cluster: by_machine mesh_of_machines",
    ),
    "shares": (
        "training/stages",
        "training.stages: in_a_row pipeline attention ring_attention every_expert balance_loss "
        "capacity_experts ragged_experts send_padded",
    ),
    "of_torch": ("models/modules", "models.modules: from_torch into_nnx into_equinox"),
    "generation": (
        "project/generation",
        "project.gpt: Config init_gpt gpt generate generate_long generate_sharded encode decode",
    ),
}
DEFINED = r"@|def |class "
# Of a project that `jax-measured new` writes: its modules.
OWN = ("data", "model", "step", "train")
HEAD = '''"""From the book JAX, Measured: {page}.html explains it.

Made from its snippets, whose tests are those of the book.
"""

'''
LAZY = '''"""Functions of the book JAX, Measured: `from jax_measured.course import make_step`.

Each is loaded when it is asked for, so that only the libraries of what is used need be there. Its
module names the page that explains it.
"""

import importlib

MODULES = {modules}
__all__ = {names}


def __getattr__(name):
    """Return a function from its module."""
    if name not in MODULES:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    return getattr(importlib.import_module(f".{{MODULES[name]}}", __name__), name)


def __dir__():
    """Return the names of all functions."""
    return __all__
'''


class Source:
    """A module of the snippets: where each of its names comes from."""

    def __init__(self, root: pathlib.Path, module: str) -> None:
        """Read it; `module` is such as 'models.steps'."""
        path = root.joinpath("snippets", *module.split(".")).with_suffix(".py")
        self.lines = path.read_text("utf8").splitlines()
        self.defined: dict[str, list[ast.stmt]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        for node in ast.parse("\n".join(self.lines)).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imports(node)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = _changed(node) or node.name
                self.defined.setdefault(name, []).append(node)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    for name in _names(target):
                        self.defined.setdefault(name, []).append(node)

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        own = module.removeprefix("snippets.") if module.startswith("snippets.") else ""
        before = f"from {module} import" if module else "import"
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            said = f"{before} {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
            self.imported[name] = (own, alias.name) if own else ("", said)

    def text(self, node: ast.stmt) -> str:
        """Return the source of a definition, with its decorators."""
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        return "\n".join(self.lines[first - 1 : node.end_lineno])


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _used(text: str) -> set[str]:
    """Return the names that a definition takes from its module, and no local ones."""

    def of(table: symtable.SymbolTable) -> set[str]:
        whole = table.get_type() == "module"
        own = {
            each.get_name()
            for each in table.get_symbols()
            if each.is_referenced() and (whole or each.is_global())
        }
        return own.union(*map(of, table.get_children()))

    return of(symtable.symtable(text, "", "exec"))


def _changed(node: ast.FunctionDef | ast.ClassDef) -> str | None:
    """Return the name that a decorator changes, such as f in `@f.defjvp`."""
    for each in node.decorator_list:
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            if each.attr.startswith("def"):
                return each.value.id
    return None


class Module:
    """A module in the making."""

    def __init__(
        self,
        source_of: Callable[[str], Source],
        elsewhere: dict[tuple[str, str], str],
        package: str = ".",
    ) -> None:
        """Take what other modules define from them: {(module of snippets, name): module}.

        `package` is what stands before their names: nothing where there is no package.
        """
        self.source_of, self.elsewhere, self.package = source_of, elsewhere, package
        self.imports: dict[str, str] = {}
        self.texts: dict[tuple[str, str], str] = {}

    def take(self, module: str, name: str) -> None:
        """Take a definition, after all that it needs."""
        source = self.source_of(module)
        if (module, name) in self.texts:
            return
        self.texts[module, name] = ""
        nodes = source.defined[name]
        # What is defined elsewhere under this name would be another thing.
        if any(other == name and where != module for where, other in self.texts):
            raise ValueError(f"two definitions of {name}: that of {module}, and another")
        for used in sorted(set().union(*(_used(source.text(node)) for node in nodes)) - {name}):
            self._need(module, used)
        text = "\n\n\n".join(source.text(node) for node in nodes)
        del self.texts[module, name]
        self.texts[module, name] = text

    def _need(self, module: str, name: str) -> None:
        source = self.source_of(module)
        if name in source.defined:
            where, what = module, name
        elif name in source.imported:
            where, what = source.imported[name]
            if not where:
                self.imports[name] = what
                return
        else:
            return
        if other := self.elsewhere.get((where, what)):
            self.imports[name] = f"from {self.package}{other} import {what}"
        else:
            self.take(where, what)

    def text(self, page: str) -> str:
        """Return the source of the module."""
        return HEAD.format(page=page) + self.body()

    def body(self) -> str:
        """Return the source below the head: imports, constants, functions and classes."""
        made = {name for (_, name), text in self.texts.items() if re.match(DEFINED, text)}
        constants, texts = [], []
        for (_, name), text in self.texts.items():
            # What is made by a function of the module stands below that.
            below = name in made or _used(text) & made
            (texts if below else constants).append(text)
        above = [imports(self.imports.values()), "\n".join(constants)]
        return "\n\n\n".join(["\n\n".join(filter(None, above)), *texts]) + "\n"


def imports(lines: Iterable[str]) -> str:
    """Return imports with a statement for each module, those of the standard library first."""
    whole, names = set(), {}
    for line in lines:
        before, _, name = line.partition(" import ")
        if name:
            names.setdefault(before.removeprefix("from "), set()).add(name)
        else:
            whole.add(line)
    groups: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for line in sorted(whole):
        groups[line.split()[1].split(".")[0] not in sys.stdlib_module_names].append(line)
    for module, found in sorted(names.items()):
        line = f"from {module} import {', '.join(sorted(found))}"
        if len(line) > 79:
            line = "\n    ".join([f"from {module} import (", *(f"{n}," for n in sorted(found))])
            line += "\n)"
        own = module.startswith(".") or module in OWN
        standard = module.split(".")[0] in sys.stdlib_module_names
        groups[2 if own else 0 if standard else 1].append(line)
    return "\n\n".join("\n".join(group) for group in groups.values() if group)


def course(root: pathlib.Path) -> dict[str, str]:
    """Return the sources of the modules, and of the one that offers all their names."""
    wanted = {
        name: [
            (module, function)
            for line in lines
            for module, _, functions in [line.partition(": ")]
            for function in functions.split()
        ]
        for name, (_, *lines) in MODULES.items()
    }
    source_of = functools.cache(functools.partial(Source, root))
    texts = {}
    for name, own in wanted.items():
        elsewhere = {each: at for at, others in wanted.items() if at != name for each in others}
        module = Module(source_of, elsewhere)
        for each in own:
            module.take(*each)
        texts[f"{name}.py"] = module.text(MODULES[name][0])
    of = {function: name for name, own in wanted.items() for _, function in own}
    texts["__init__.py"] = LAZY.format(modules=of, names=sorted(of))
    return texts
