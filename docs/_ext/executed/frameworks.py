"""What the engine knows of a framework: only what conf.py says of it."""

import dataclasses
import functools
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import Self


@dataclasses.dataclass(frozen=True)
class Colour:
    """A colour as it is on a light and on a dark page; both can be read as text."""

    light: str
    dark: str

    @property
    def style(self) -> str:
        """What hands the colour to the style sheet."""
        return f"--light:{self.light};--dark:{self.dark}"


@dataclasses.dataclass(frozen=True)
class Framework:
    """A framework that pages use.

    modules: the top-level modules that pages import; by default the framework's name.
    packages: the distributions whose versions its outputs depend on, the one to install first; by
        default the framework's name.
    words: texts in the code of a cell that needs it without importing it.
    device: a Python expression, evaluated in a kernel where the module is imported, that gives
        the pair (platform, kind) of its device, such as `("gpu", "NVIDIA H200")`.
    environment: variables of kernels, {platform: {variable: value}}; those under "" are for all.
    in_parallel: variables of the processes that import it for pages which run in parallel; what is
        read at its import holds there, and the pages themselves do not see them.
    before: modules that have to be imported before it in the same process, where installed.
    later: modules that it imports itself at its first use; parents of kernels have them already.
    required: without it no page is executed; its cells are never left out.
    optional: where it is not installed, builds leave its cells out, and the pages say so.
    forkable: whether a process may import it and be forked afterwards.
    label: what readers know it as; by default its name.
    colour: the colour of its measurements in charts, where names are written in it too.
    """

    name: str = ""
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    device: str = ""
    environment: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    in_parallel: Mapping[str, str] = dataclasses.field(default_factory=dict)
    before: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    required: bool = False
    optional: bool = False
    forkable: bool = True
    label: str = ""
    colour: Colour | None = None

    def named(self, name: str) -> Self:
        """Return it under the name that conf.py gives it, with what follows from the name."""
        return dataclasses.replace(
            self,
            name=name,
            modules=self.modules or (name,),
            packages=self.packages or (name,),
            label=self.label or name,
        )

    def variables(self, platform: str) -> dict[str, str]:
        """Return its environment variables for a kernel on a platform such as `cpu` or `gpu`."""
        return {**self.environment.get("", {}), **self.environment.get(platform, {})}

    def installed(self, find: Callable[[str], object] = importlib.util.find_spec) -> bool:
        """Say whether its first module can be imported here."""
        return find(self.modules[0]) is not None

    def first(self, find: Callable[[str], object] = importlib.util.find_spec) -> tuple[str, ...]:
        """Return those of `before` that are installed."""
        return tuple(name for name in self.before if find(name) is not None)


def by_module(registry: Iterable[Framework]) -> dict[str, Framework]:
    """Return {top-level module: framework}, in the order of the registry."""
    return {module: framework for framework in registry for module in framework.modules}


def first_imports(registry: Iterable[Framework], modules: Iterable[str]) -> str:
    """Return the lines for a program of readers that imports modules, empty where it needs none.

    They import, if it is installed, what has to be imported before these modules.
    """
    names = set(modules)
    wanted = [name for e in registry if names.intersection(e.modules) for name in e.before]
    lines = [f"with contextlib.suppress(ImportError):\n    import {name}" for name in wanted]
    return "\n".join(["import contextlib\n", *lines]) if lines else ""


@functools.cache
def version(package: str) -> str | None:
    """Return the version of a distribution, None where it is not installed.

    Each process looks once: every page asks for several, and each look reads a whole file.
    """
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return {distribution: version} for the installed distributions."""
    numbers = {package: version(package) for package in packages}
    return {package: number for package, number in numbers.items() if number is not None}
