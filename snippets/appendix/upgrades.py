"""What each version of JAX has: public names, their parameters, defaults."""

import dataclasses
import enum
import html
import importlib
import inspect
import itertools
import json
import os
import re
import subprocess
import sys
import warnings

from snippets.appendix.years import in_order

MODULES = [
    "jax",
    "jax.core",
    "jax.custom_batching",
    "jax.custom_derivatives",
    "jax.debug",
    "jax.distributed",
    "jax.dlpack",
    "jax.dtypes",
    "jax.errors",
    "jax.experimental",
    "jax.experimental.checkify",
    "jax.experimental.export",
    "jax.experimental.host_callback",
    "jax.experimental.layout",
    "jax.experimental.maps",
    "jax.experimental.multihost_utils",
    "jax.experimental.pallas",
    "jax.experimental.pallas.tpu",
    "jax.experimental.pjit",
    "jax.experimental.shard_map",
    "jax.experimental.sparse",
    "jax.export",
    "jax.extend.backend",
    "jax.extend.core",
    "jax.extend.ffi",
    "jax.extend.linear_util",
    "jax.ffi",
    "jax.flatten_util",
    "jax.image",
    "jax.interpreters.ad",
    "jax.interpreters.batching",
    "jax.interpreters.mlir",
    "jax.interpreters.partial_eval",
    "jax.interpreters.pxla",
    "jax.interpreters.xla",
    "jax.lax",
    "jax.lax.linalg",
    "jax.lib",
    "jax.lib.xla_bridge",
    "jax.lib.xla_client",
    "jax.lib.xla_extension",
    "jax.monitoring",
    "jax.nn",
    "jax.nn.initializers",
    "jax.numpy",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.ops",
    "jax.profiler",
    "jax.random",
    "jax.scipy.linalg",
    "jax.scipy.optimize",
    "jax.scipy.signal",
    "jax.scipy.special",
    "jax.scipy.stats",
    "jax.sharding",
    "jax.stages",
    "jax.tree",
    "jax.tree_util",
    "jax.typing",
    "jax.util",
]


def public_names(modules):
    """Return {name: its parameters}, None for what has none that are known.

    Left out are modules in modules, and what begins with an underscore or is
    of Python's standard library. Of an enum, what Python says of parameters
    depends on the version of Python.
    """
    found = {}
    for module in modules:
        try:
            loaded = importlib.import_module(module)
        except (ImportError, AttributeError):
            continue
        for name in dir(loaded):
            value = getattr(loaded, name, None)
            home = str(getattr(value, "__module__", "")).split(".")[0]
            foreign = inspect.ismodule(value) or name.startswith("_")
            if foreign or home in sys.stdlib_module_names:
                continue
            try:
                signature = inspect.signature(value)
            except (TypeError, ValueError):
                signature = None
            if signature is None or isinstance(value, enum.EnumMeta):
                found[f"{module}.{name}"] = None
                continue
            found[f"{module}.{name}"] = [
                str(each).split(":")[0].split("=")[0].strip()
                for each in signature.parameters.values()
            ]
    return found


def retired_names(modules):
    """Return the names that modules have with a warning, or once had."""
    found = []
    for module in modules:
        try:
            loaded = importlib.import_module(module)
        except (ImportError, AttributeError):
            continue
        names = getattr(loaded, "_deprecations", {})
        if isinstance(names, dict):
            found += [f"{module}.{name}" for name in names]
    return found


def outcomes(names):
    """Return {name: what using it comes to}: "", a warning, or an error."""
    found = {}
    for full in names:
        module, _, name = full.rpartition(".")
        try:
            loaded = importlib.import_module(module)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                getattr(loaded, name)
        except (ImportError, AttributeError) as error:
            found[full] = f"{type(error).__name__}: {error}"
            continue
        found[full] = "".join(
            f"{each.category.__name__}: {each.message}" for each in said[:1]
        )
    return found


def defaults(start):
    """Return {name: value} of the options of jax.config that begin so."""
    import jax

    return {
        name: str(value)
        for name, value in jax.config.values.items()
        if name.startswith(start)
    }


def ask(python, function, *arguments):
    """Return what a function of this module returns in another Python.

    Raises CalledProcessError where it fails there.
    """
    source = f"""
import enum, importlib, inspect, json, sys, warnings
{inspect.getsource(function)}
print(json.dumps({function.__name__}(*json.load(sys.stdin))))
"""
    done = subprocess.run(
        [python, "-W", "ignore", "-c", source],
        input=json.dumps(arguments),
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def version():
    """Return the version of JAX."""
    import jax

    return jax.__version__


def all_pythons():
    """Return {version of JAX: Python}, the oldest first.

    They are those of the variable JAX_PYTHONS, and this one.
    """
    pythons = os.environ.get("JAX_PYTHONS", "").split(os.pathsep)
    found = {}
    for python in [sys.executable, *filter(None, pythons)]:
        found.setdefault(ask(python, version), python)
    return {each: found[each] for each in sorted(found, key=in_order)}


@dataclasses.dataclass(frozen=True)
class Change:
    """Something that code may have used up to `last`, and not from `first`.

    `said` is what JAX says in `first`.
    """

    names: tuple
    last: str
    first: str
    said: str

    def texts(self):
        """Return what a table shows: names, versions, and what is said."""
        versions = f"{self.last} → {self.first}"
        return [", ".join(self.names), versions, self.said]


def gone_in(present, retired, version):
    """Return the names that another version has, and this one has not.

    The first two map versions to their `public_names` and `retired_names`.
    """
    every = {*itertools.chain(*present.values(), *retired.values())}
    return sorted(every - present[version].keys())


def removals(came):
    """Return the names that went, as a list of `Change`.

    `came` maps versions to the `outcomes` of the names that they have not.
    What went from one module at once, with the same words, is one change.
    """
    changes = {}
    for name in sorted({*itertools.chain(*came.values())}):
        for last, first in itertools.pairwise(came):
            before, said = came[last].get(name, ""), came[first].get(name, "")
            if is_error(said) and not is_error(before):
                module, _, short = name.rpartition(".")
                key = module, last, first, without(said, short)
                changes.setdefault(key, []).append(short)
    return [
        Change((f"{module}.{names[0]}", *names[1:]), last, first, said)
        for (module, last, first, said), names in changes.items()
    ]


def deprecated(came):
    """Return {name: warning} of what the newest version has with a warning."""
    newest = [*came.values()][-1]
    return {
        name: said
        for name, said in newest.items()
        if said and not is_error(said)
    }


def is_error(outcome):
    """Say whether an outcome is an error of JAX, not a warning or nothing.

    Some versions import absl, without which they have more than they show.
    """
    kinds = "AttributeError", "ImportError", "ModuleNotFoundError"
    return outcome.startswith(kinds) and "absl" not in outcome


def without(said, name):
    """Return a message with … for a name; nothing if that is all it says."""
    said = re.sub(rf"\b{re.escape(name)}\b", "…", said.strip())
    nothing = r"AttributeError: module '[\w.]+' has no attribute '…'"
    return "" if re.fullmatch(nothing, said) else said


def lost_parameters(present):
    """Return the parameters that went from functions that stayed."""
    changes = []
    for last, first in itertools.pairwise(present):
        for name in sorted(present[last].keys() & present[first].keys()):
            before, after = present[last][name], present[first][name]
            lost = lost_of(before or (), after) if after else []
            if lost:
                now = f"{name.rpartition('.')[2]}({', '.join(after)})"
                changes.append(Change((name, *lost), last, first, now))
    return changes


def lost_of(before, after):
    """Return the parameters that are gone, unless `after` takes any."""
    if any(each.startswith("**") for each in after):
        return []
    return [each for each in before if each not in after]


def changed_defaults(values):
    """Return the options of jax.config that went, or have another value.

    `values` maps versions to their `defaults`.
    """
    changes = []
    for last, first in itertools.pairwise(values):
        for name, before in sorted(values[last].items()):
            after = values[first].get(name, "no such option")
            if after != before:
                said = f"{before} → {after}"
                changes.append(Change((name,), last, first, said))
    return changes


class Changes:
    """A table of changes."""

    def __init__(self, changes, heads):
        """Take the changes, and the heads of the columns."""
        self.changes, self.heads = changes, heads

    def __repr__(self):
        return "\n".join(" | ".join(each.texts()) for each in self.changes)

    def _repr_html_(self):
        head = "".join(f'<th scope="col">{each}</th>' for each in self.heads)
        rows = []
        for each in self.changes:
            names, versions, said = map(html.escape, each.texts())
            cells = f"<td><code>{names}</code></td><td>{versions}</td>"
            rows.append(f"<tr>{cells}<td>{said}</td></tr>")
        style = (
            'style="table-layout: fixed; width: 100%; overflow-wrap: anywhere"'
        )
        head = f"<thead><tr>{head}</tr></thead>"
        return f"<table {style}>{head}<tbody>{''.join(rows)}</tbody></table>"
