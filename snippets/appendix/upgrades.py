"""What each version of JAX has: public names, their parameters, defaults."""

import dataclasses
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
    "jax.experimental.multihost_utils",
    "jax.experimental.pallas",
    "jax.experimental.shard_map",
    "jax.experimental.sparse",
    "jax.export",
    "jax.extend.backend",
    "jax.extend.core",
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

    What begins with an underscore is left out, and modules in modules are.
    """
    found = {}
    for module in modules:
        try:
            loaded = importlib.import_module(module)
        except (ImportError, AttributeError):
            continue
        for name in dir(loaded):
            value = getattr(loaded, name, None)
            if name.startswith("_") or inspect.ismodule(value):
                continue
            try:
                parameters = [*inspect.signature(value).parameters]
            except (TypeError, ValueError):
                parameters = None
            found[f"{module}.{name}"] = parameters
    return found


def outcomes(names):
    """Return {name: what using it comes to}: "", a warning, or an error."""
    found = {}
    for full in names:
        module, _, name = full.rpartition(".")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                getattr(importlib.import_module(module), name)
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
import importlib, inspect, json, sys, warnings
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
    order = sorted(found, key=lambda text: [*map(int, text.split("."))])
    return {each: found[each] for each in order}


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
        return [", ".join(self.names), f"{self.last} → {self.first}", self.said]


def gone_in(present, version):
    """Return the names that another version has, and this one has not.

    `present` maps versions to what `public_names` returns in them.
    """
    every = {*itertools.chain(*present.values())}
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
    """Say whether an outcome is an error, not a warning or nothing."""
    return outcome.startswith(("AttributeError", "ImportError", "Module"))


def without(said, name):
    """Return a message with … for a name, or nothing if that is all it says."""
    said = re.sub(rf"\b{re.escape(name)}\b", "…", said.strip())
    nothing = r"AttributeError: module '[\w.]+' has no attribute '…'"
    return "" if re.fullmatch(nothing, said) else said


def lost_parameters(present):
    """Return the parameters that went from functions that stayed."""
    changes = []
    for last, first in itertools.pairwise(present):
        for name in sorted(present[last].keys() & present[first].keys()):
            before, after = present[last][name], present[first][name]
            if None not in (before, after) and (lost := [*difference(before, after)]):
                now = f"{name.rpartition('.')[2]}({', '.join(after)})"
                changes.append(Change((name, *lost), last, first, now))
    return changes


def difference(before, after):
    """Return what is in one list and not in the other."""
    return (each for each in before if each not in after)


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
        head = f"<thead><tr>{head}</tr></thead>"
        return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
