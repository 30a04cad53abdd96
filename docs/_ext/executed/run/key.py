"""The key of a page's outputs: everything that decides what executing the page gives."""

import functools
import importlib.metadata
import sys
from collections.abc import Mapping, Sequence

from ..frameworks import by_module, versions
from ..options import Options
from ..source.code import imported_modules
from ..source.pages import Page, digest
from . import environment

# Raise it when the same cells may give other outputs.
ENGINE_VERSION = 6
# They write the outputs down, whatever a page imports.
ALWAYS = ("ipykernel", "ipython")


@functools.cache
def _distributions() -> Mapping[str, Sequence[str]]:
    return importlib.metadata.packages_distributions()


def packages(page: Page, options: Options) -> tuple[str, ...]:
    """Return the distributions whose versions a page's outputs depend on."""
    distributions: dict[str, None] = dict.fromkeys(ALWAYS)
    registry = by_module(options.registry)
    for module in (
        name for cell in page.cells for name in imported_modules(cell.source, anywhere=True)
    ):
        if module in registry:
            distributions.update(dict.fromkeys(registry[module].packages))
        elif module not in sys.stdlib_module_names:
            distributions.update(dict.fromkeys(_distributions().get(module, ())))
    marks = {cell.framework for cell in page.cells}
    for entry in options.registry:
        if entry.name in marks:
            distributions.update(dict.fromkeys(entry.packages))
    return tuple(distributions)


def _left_out(used: Sequence[str], options: Options) -> list[str]:
    """Return the frameworks among packages whose cells are left out here."""
    candidates = [entry for entry in options.registry if entry.optional or options.leave_out]
    return [
        entry.name
        for entry in candidates
        if not (entry.required or entry.installed())
        and (entry.words or not set(used).isdisjoint(entry.packages))
    ]


def environment_digest(used: Sequence[str], options: Options, device: str, benchmark: bool) -> str:
    """Return a digest of what outputs depend on besides code, for pages that use packages.

    `benchmark` says whether they measure.
    """
    facts = {
        "device": device,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "versions": dict.fromkeys(used, "") | versions(used),
        "variables": environment.passed(options) | environment.local(),
        "left_out": _left_out(used, options),
        "frameworks": [entry.variables(device.partition("-")[0]) for entry in options.registry],
        "output_limit": options.output_limit,
        "preview": benchmark and options.preview,
        "before": options.before,
        "any_outcome": options.any_outcome,
        "engine": ENGINE_VERSION,
    }
    return digest(facts)


def key(page: Page, options: Options, device: str, lent: bool = False) -> str:
    """Return the key under which a page's outputs are cached; see `schedule` for `lent`."""
    cells = [
        [
            cell.source,
            [cell.expected.type, cell.expected.fragment] if cell.expected else None,
            cell.framework,
        ]
        for cell in page.cells
    ]
    on = page.device or device
    below = environment_digest(packages(page, options), options, on, page.benchmark)
    brings = dict(page.files) | {path.name: digest for path, digest in page.named_files.items()}
    return digest([cells, brings, page.benchmark, page.device, below, lent])[:32]
