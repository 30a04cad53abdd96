"""Make docs/_static/jax_names.js: which names and parameters came and went with versions of JAX.

`python tests/pitfalls/make_names.py PYTHON ...` asks each of these Pythons, which have JAX of
different versions, as nox makes them for `nox -s jax_versions`; some modules of JAX also need
absl-py, tensorstore and flatbuffers there. The page on errors tells with this
file since when a name is gone, and which version is needed for one that is new.
"""

import collections
import itertools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
OUT = ROOT / "docs" / "_static" / "jax_names.js"
ALWAYS = OUT.with_name("jax_always.js")
HEAD = "// Made by tests/pitfalls/make_names.py.\n"
# What nobody imports by itself, or what has thousands of names that come and go.
LEFT_OUT = ("jax2tf", "tools", "mosaic", "dialects", "colocated_python", "pallas.ops", "test")
# Modules whose functions people call with named parameters.
CALLED = re.compile(
    r"jax(\.(numpy|lax|nn|scipy|random|sharding|distributed|export|tree|tree_util|debug|profiler"
    r"|image|checkpoint|experimental\.(pallas|shard_map|multihost_utils|checkify|mesh_utils))"
    r"(\.\w+)*)?"
)
# Modules whose names nobody is told of, because they always come and go.
SELDOM = re.compile(r"experimental|interpreters|extend|example_libraries|jaxlib")

# Run by each Python: prints its version, its modules, and its names with their parameters.
ASKED = """
import enum, importlib, inspect, json, pathlib, sys, warnings
warnings.simplefilter("ignore")
import jax, jaxlib

def modules_of(package):
    folder = pathlib.Path(package.__path__[0])
    for path in [*folder.rglob("*.py"), *folder.rglob("*.so")]:
        parts = (package.__name__, *path.relative_to(folder).parts[:-1], path.name.split(".")[0])
        yield ".".join(each for each in parts if each != "__init__")

left_out = sys.argv[1].split()
public = {name for name in modules_of(jax) if "._" not in name}
modules = sorted(name for name in public if not any(each in name for each in left_out))
names, said, broken = {}, {}, []
for module in modules:
    try:
        loaded = importlib.import_module(module)
    except Exception:
        broken.append(module)
        continue
    for name in dir(loaded):
        value, full = getattr(loaded, name, None), f"{module}.{name}"
        home = str(getattr(value, "__module__", "")).split(".")[0]
        foreign = inspect.ismodule(value) and not value.__name__.startswith("jax")
        if name.startswith("_") or foreign or home in sys.stdlib_module_names:
            continue
        try:
            signature = inspect.signature(value)
            parameters = [("*" * (each.kind == 2) + "**" * (each.kind == 4)) + each.name
                          for each in signature.parameters.values()
                          if each.kind != each.POSITIONAL_ONLY]
            names[full] = None if isinstance(value, enum.EnumMeta) else parameters
        except (TypeError, ValueError):
            names[full] = None
    retired = getattr(loaded, "_deprecations", {})
    for name in retired if isinstance(retired, dict) else ():
        try:
            getattr(loaded, name)
            names.setdefault(f"{module}.{name}")
        except AttributeError as error:
            said[f"{module}.{name}"] = str(error)
        except Exception:
            pass
modules += [name for name in modules_of(jaxlib) if name.count(".") < 2]
print(json.dumps([jax.__version__, sorted(modules), names, said, broken]))
"""


def ask(python):
    """Return [version, modules, {name: parameters}, {name that is gone: what JAX says}, broken].

    What is broken are modules that cannot be imported on this machine.
    """
    environment = {"JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin"}
    command = [python, "-W", "ignore", "-c", ASKED, " ".join(LEFT_OUT)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def number(version):
    """Return a version as numbers, to compare."""
    return [int(part) for part in version.split(".")]


def repaired(asked):
    """Return the names of each version; a module that is broken in it has those of the next."""
    have = [dict(names) for _, _, names, _, _ in asked]
    for n in reversed(range(len(asked) - 1)):
        broken = set(asked[n][4])
        have[n] |= {k: v for k, v in have[n + 1].items() if k.rpartition(".")[0] in broken}
    return have


def changed(have, versions):
    """Yield (name, since, came, *first): each name that not all versions have.

    `since` is the first version without it, or with it if it `came`; of what came and went, `first`
    is the first with it.
    """
    for name in sorted(set().union(*have)):
        there = [name in each for each in have]
        turns = [n for n in range(1, len(there)) if there[n] != there[n - 1]]
        if turns:
            first = [] if there[0] or there[-1] else [versions[turns[0]]]
            yield name, versions[turns[-1]], there[-1], *first


def advice(said, name):
    """Return the version that JAX says a name was removed in, and its advice, "" for none.

    In the advice `…` stands for the name.
    """
    found = re.search(r"removed in JAX v?([\d.]*\d)", said)
    told = said[found.end() :] if found else said
    told = re.sub(rf"\b{re.escape(name)}\b", "…", told)
    told = re.sub(r",? and see https?://\S+ for details", "", told).strip(" .:;,")
    return (found[1] if found else ""), told if re.search(r"\b[Uu]se\b|instead", told) else ""


def grouped(rows):
    """Return {module: [[names, *the rest], …]}: what is alike in all but the name is one row."""
    groups = collections.defaultdict(list)
    for full, *rest in rows:
        module, _, name = full.rpartition(".")
        groups[module, *rest].append(name)
    found = collections.defaultdict(list)
    for (module, *rest), names in groups.items():
        found[module].append([" ".join(names), *rest])
    return dict(found)


def turns(known, module):
    """Yield [parameter, since, came, module, *first] of a function in versions that have it.

    `known` are [(version, parameters)]. Of what came and went, `first` is the first with it.
    """
    now, came_in = set(known[-1][1]) if known else set(), {}
    for (_, before), (version, after) in itertools.pairwise(known):
        for names, others, came in ((before, after, 0), (after, before, 1)):
            if any(each.startswith("**") for each in others):
                continue
            for each in names:
                if each in others or each[0] in "*_":
                    continue
                if (each in now) == bool(came):
                    yield [each, version, came, module, *came_in.get(each, ())]
                elif came:
                    came_in[each] = [version]


def parameters(have, versions):
    """Return {name of a function: [[parameter, since, came, module, *first], …]}.

    Of a function that came, all parameters came that no function of its name had: one of another
    module may be called, or an earlier form of it.
    """
    found = collections.defaultdict(list)
    had = collections.defaultdict(set)
    for full, given in have[0].items():
        had[full.rpartition(".")[2]].update(given or ())
    for full in sorted(set().union(*have)):
        module, _, name = full.rpartition(".")
        if not CALLED.fullmatch(module):
            continue
        known = [(v, each.get(full)) for v, each in zip(versions, have, strict=True)]
        known = [(v, each) for v, each in known if each is not None]
        if known and full not in have[0] and (module == "jax" or name in had):
            since, given = known[0]
            left = {*given}.intersection(have[-1].get(full) or ()) - had.get(name, set())
            found[name] += [
                [each, since, 1, module] for each in given if each in left and each[0] not in "*_"
            ]
        found[name] += turns(known, module)
    shortest = {}
    for name, rows in found.items():
        for row in rows:
            key = (name, row[0], row[2])
            if key not in shortest or len(row[3]) < len(shortest[key][3]):
                shortest[key] = row
    result = collections.defaultdict(list)
    for (name, _, _), row in sorted(shortest.items()):
        result[name].append(row)
    return dict(result)


def always(newest, found):
    """Return what no version lacks: {module: names} and {function: parameters}.

    It is what the newest has, without all that came or went.
    """
    moved = {
        f"{module}.{name}"
        for table in (found["gone"], found["new"])
        for module, rows in table.items()
        for names, *_ in rows
        for name in names.split()
    }
    _, modules, have, _, _ = newest
    kept = [each for each in modules if each not in found["modules"] and "._" not in each]
    names, parameters = collections.defaultdict(list), collections.defaultdict(set)
    for full, given in sorted(have.items()):
        module, _, name = full.rpartition(".")
        if full in moved or module not in kept or SELDOM.search(module):
            continue
        names[module].append(name)
        if not CALLED.fullmatch(module):
            continue
        changed = {row[0] for row in found["parameters"].get(name, ())}
        parameters[name] |= {each for each in given or () if each[0] not in "*_"} - changed
    tables = {name: sorted(each) for name, each in parameters.items() if each}
    return {"modules": kept, "names": dict(names), "parameters": tables}


def always_text(newest, found):
    """Return these as text, with words in one string."""
    known = always(newest, found)
    text = {"modules": " ".join(known["modules"])}
    for key in ("names", "parameters"):
        text[key] = {name: " ".join(each) for name, each in known[key].items()}
    return json.dumps(text, separators=(",", ":")).replace('",', '",\n')


def content(asked):
    """Return what the file says: all that the answers of Pythons differ in."""
    asked = sorted(asked, key=lambda each: number(each[0]))
    versions = [each[0] for each in asked]
    said = {}
    for _, _, _, texts, _ in asked:
        for name, text in texts.items():
            version, told = advice(text, name.rpartition(".")[2])
            kept = said.get(name, ("", ""))
            said[name] = (version or kept[0], told or kept[1])
    came_or_went = changed([set(each[1]) for each in asked], versions)
    have = repaired(asked)
    # What was a name of the module above it before had not yet to come.
    modules = {
        name: [since, int(came), *(first if name not in have[0] else ())]
        for name, since, came, *first in came_or_went
    }
    gone, new = [], []
    for name, since, came, *first in changed([set(each) for each in have], versions):
        if came and name.rpartition(".")[0] not in modules:
            new.append((name, since))
        if not came:
            gone.append((name, since, *said.get(name, ("", "")), *first))
    # What warned in the oldest version already, and is in none.
    missing = said.keys() - {name for name, *_ in gone} - have[-1].keys()
    gone += [(name, "", *said[name]) for name in sorted(missing)]
    return {
        "oldest": versions[0],
        "newest": versions[-1],
        "gone": grouped(gone),
        "new": grouped(new),
        "modules": modules,
        "parameters": parameters(have, versions),
    }


def main():
    """Ask all Pythons, and write the file."""
    asked = [ask(python) for python in sys.argv[1:]]
    newest = max(asked, key=lambda each: number(each[0]))
    found = content(asked)
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    lines = re.sub(r'(?<=[\]}]),(?=")', ",\n", text)
    OUT.write_text(f"{HEAD}window.book.jaxNames = {lines};\n", "utf8")
    ALWAYS.write_text(f"{HEAD}window.book.jaxAlways = {always_text(newest, found)};\n", "utf8")


if __name__ == "__main__":
    main()
