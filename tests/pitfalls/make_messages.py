"""Make docs/_static/messages/: what JAX and the libraries around it can say, from their sources.

`python -m tests.pitfalls.make_messages FOLDER` reads the wheels in a folder, as `nox -s messages`
fetches them, and imports nothing of them. Each text of an exception, a warning or a line of a log
becomes a pattern: its first line, with `…` where values stand. The field for errors loads the file
of a message's first letters, and the file of patterns that begin with a value.
"""

import ast
import collections
import functools
import gzip
import itertools
import json
import pathlib
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).parents[2]
OUT = ROOT / "docs" / "_static" / "messages"
PACKAGES = (
    "jax flax optax orbax_checkpoint equinox chex diffrax numpyro blackjax grain keras opt_einsum "
    "lineax optimistix"
).split()
HEAD = "// Made by tests/pitfalls/make_messages.py.\n"
HOLE = "…"
NAMED = re.compile(r"\w+(?:Error|Exception|Warning|Interrupt)$|Exception$")
LOGS = {"warning", "warn", "error", "exception", "critical", "warn_once", "log_first_n"}
FORMAT = re.compile(r"%(?:\(\w+\))?[-+ #\d.]*[a-z]")
LEFT_OUT = re.compile(
    r"(?:^|[./_])(?:tests?|testing|test_util\w*|benchmarks?|examples?)(?:[./_]|$)"
)
PRIVATE = re.compile(r"(?:^|\.)(?:_|src\b)")
LESS = re.compile(
    r"experimental|interpreters|\.(?:extend|lib|core)\b|example_libraries|contrib|linen|tf_keras|legacy"
)
# What Python itself says of any module or object, in words that a library repeats.
PYTHONS = re.compile(
    r"object has no attribute|^(?:…|module).{0,12} has no attribute|^No module named"
)
# What leads to a primitive is not called by readers, and what adds methods to arrays neither.
INNER = re.compile(r"_p$|^_|^register_jax_array_methods$")
ALTERNATIVES = 4
LONGEST = 200
# How many steps from a function to one that readers call, and how many of these a row names.
STEPS = 5
NAMES = 3
# How the pages write modules.
SHORT = {"jax.numpy": "jnp", "flax.nnx": "nnx", "equinox": "eqx", "flax.linen": "nn"}
# What one file may weigh, compressed, so that two are below 60 KiB.
HEAVIEST = 24 * 1024


def texts(node, names):
    """Return the texts that an expression may have, with a hole for what is not known."""
    match node:
        case ast.Constant(value=str(value)):
            return [value]
        case ast.JoinedStr(values=values):
            return joined([texts(each, names) for each in values])
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return joined([texts(left, names), texts(right, names)])
        case ast.BinOp(left=left, op=ast.Mod()):
            return [FORMAT.sub(HOLE, each) for each in texts(left, names)]
        case ast.Call(func=ast.Attribute(value=value, attr="format")):
            return [re.sub(r"\{[^{}]*\}", HOLE, each) for each in texts(value, names)]
        case ast.Call(func=ast.Attribute(value=value, attr="strip" | "lstrip" | "rstrip")):
            return texts(value, names)
        case ast.Call(func=ast.Attribute(attr="dedent" | "cleandoc"), args=[value, *_]):
            return texts(value, names)
        case ast.Call(func=ast.Name(id="dedent" | "cleandoc"), args=[value, *_]):
            return texts(value, names)
        case ast.Name(id=name) if name in names:
            # A name that is bound by itself has no end.
            others = {key: value for key, value in names.items() if key != name}
            found = [text for each in names[name] for text in texts(each, others)]
            return list(dict.fromkeys(found))[:ALTERNATIVES]
    return [HOLE]


def joined(parts):
    """Return the texts of parts that follow each other."""
    return ["".join(each) for each in itertools.islice(itertools.product(*parts), ALTERNATIVES)]


def first_line(text):
    """Return the first line of a text as a pattern, or nothing where it says too little."""
    line = re.sub(r"\s+", " ", text.strip().partition("\n")[0])[:LONGEST].strip()
    line = re.sub(r"\{\{|\}\}", lambda found: found[0][0], line)
    line = re.sub(rf"{HOLE}(?:\s*{HOLE})+", HOLE, line)
    said = re.findall(r"[A-Za-z]{2,}", line)
    enough = len(said) >= 3 and len("".join(said)) >= 12
    return line if enough and not PYTHONS.search(line) else ""


def last_name(node):
    """Return the last part of a dotted name."""
    return getattr(node, "attr", getattr(node, "id", ""))


def kind_of(call, scope):
    """Return the type of what a call raises or writes, "" for a log; None if it does neither."""
    name = last_name(call.func)
    if NAMED.match(name):
        return name
    if name in LOGS and isinstance(call.func, ast.Attribute):
        owner = last_name(call.func.value)
        if owner in ("warnings", "deprecations"):
            kinds = [last_name(each) for each in ast.walk(call) if NAMED.match(last_name(each))]
            return kinds[0] if kinds else "UserWarning"
        return "" if re.search("log", owner, re.I) else None
    if name == "__init__" and isinstance(call.func, ast.Attribute):
        classes = [each.name for each in scope if isinstance(each, ast.ClassDef)]
        return next((each for each in classes if NAMED.match(each)), None)
    return None


def bound(node):
    """Return {name: the expressions that are bound to it} in a function or a module."""
    names = collections.defaultdict(list)
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            if isinstance(each.value, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call):
                names[each.targets[0].id].append(each.value)
    return names


def raised(tree):
    """Yield (function, type, pattern) of each text that a module raises, warns of, or logs."""

    def visit(node, scope, names):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = [*scope, node]
        if isinstance(node, ast.FunctionDef) and not any(
            isinstance(each, ast.FunctionDef) for each in scope[:-1]
        ):
            names = {**constants, **bound(node)}
        found = []
        if isinstance(node, ast.Call) and (kind := kind_of(node, scope)) is not None:
            given = [texts(each, names) for each in node.args[:3]]
            found = [(kind, text) for each in given for text in each]
            if not kind:
                found = [(kind, FORMAT.sub(HOLE, text)) for _, text in found]
        if isinstance(node, ast.Assert) and node.msg is not None:
            found = [("AssertionError", text) for text in texts(node.msg, names)]
        for kind, text in found:
            if pattern := first_line(text):
                yield qualified(scope), kind, pattern
        for child in ast.iter_child_nodes(node):
            yield from visit(child, scope, names)

    constants = bound(ast.Module([n for n in tree.body if isinstance(n, ast.Assign)], []))
    yield from visit(tree, [], constants)


def qualified(scope):
    """Return the name of the function or the method of a module that a place is in."""
    names = [each.name for each in scope[:2]]
    return ".".join(names[:1] if isinstance(scope[0], ast.FunctionDef) else names) if scope else ""


class Package:
    """The sources of a wheel: what is public in them, and who uses what."""

    def __init__(self, wheel):
        """Read a wheel."""
        self.name, self.version = wheel.name.split("-")[:2]
        self.trees = dict(sources(wheel))
        self.imported = {name: dict(self._imports(name)) for name in self.trees}
        self.users = collections.defaultdict(set)
        self.defined = collections.defaultdict(set)
        for module, tree in self.trees.items():
            for node in tree.body:
                for name in defines(node):
                    self.defined[name].add(module)
                    for used in uses(node) - {name}:
                        self.users[used].add((module, name))
        self.public = self._public()

    def _imports(self, module):
        body = list(self.trees[module].body)
        for node in body:
            # What a function imports is not the module's.
            if isinstance(node, ast.If | ast.Try | ast.With):
                body += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            if not isinstance(node, ast.ImportFrom):
                continue
            base = module.split(".")
            # The module of a package's own file is the package.
            up = node.level - (module in self.packages)
            start = base[: len(base) - up] if node.level else []
            source = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, (source, alias.name)

    @property
    def packages(self):
        """The modules that are packages."""
        return self._packages

    @property
    def trees(self):
        """The syntax trees of modules."""
        return self._trees

    @trees.setter
    def trees(self, given):
        self._packages = {name for name, (_, package) in given.items() if package}
        self._trees = {name: tree for name, (tree, _) in given.items()}

    def _home(self, module, name, left=8):
        """Return where a name of a module is defined."""
        source = self.imported.get(module, {}).get(name)
        if source is None or source[0] not in self.trees or not left:
            return module, name
        return self._home(*source, left - 1)

    def _public(self):
        """Return {(module, name): the name under which readers have it}."""
        found = {}
        for module, tree in self.trees.items():
            if PRIVATE.search(module):
                continue
            own = [name for node in tree.body for name in defines(node)]
            for name in {*own, *self.imported[module]}:
                if INNER.search(name) or f"{module}.{name}" in self.trees:
                    continue
                full, home = f"{module}.{name}", self._home(module, name)
                rank = (bool(LESS.search(full)), full.count("."), len(full))
                if home not in found or rank < found[home][0]:
                    found[home] = rank, full
        return {home: full for home, (_, full) in found.items()}

    @functools.cache  # noqa: B019
    def function(self, module, name):
        """Return the public functions that lead to one, or that one with its file."""
        top, _, method = name.partition(".")
        if full := self.public.get((module, top)):
            return full if not method or method.startswith("_") else f"{full}.{method}"
        seen, now = {(module, top)}, {(module, top)}
        for _ in range(STEPS):
            callers = {user for each in now for user in self._users(each)} - seen
            names = {self.public[each] for each in callers if each in self.public}
            if names:
                # What is core to a package, a function at its edge uses: it says nothing of it.
                kept = {each for each in names if LESS.search(module) or not LESS.search(each)}
                return ", ".join(sorted(kept)) if len(kept) <= NAMES else ""
            seen, now = seen | callers, callers
        return ""

    def _users(self, home):
        module, name = home
        several = len(self.defined[name]) > 1
        return {user for user in self.users[name] if not several or user[0] == module}


def sources(wheel):
    """Yield the modules of a wheel: their names, trees, and whether they are packages."""
    with zipfile.ZipFile(wheel) as archive:
        for path in sorted(archive.namelist()):
            if not path.endswith(".py") or LEFT_OUT.search(path[:-3]) or "-" in path.split("/")[0]:
                continue
            parts = path[:-3].split("/")
            package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if package else parts)
            try:
                yield name, (ast.parse(archive.read(path)), package)
            except SyntaxError as error:
                sys.exit(
                    f"{wheel.name}: {path}: {error}. Run this with the latest Python that the book "
                    "supports: a wheel may need it"
                )


def defines(node):
    """Return the names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def uses(node):
    """Return the names that a statement reads."""
    return {
        last_name(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)
    }


def number(version):
    """Return a version as numbers, to compare."""
    return [int(part) for part in re.findall(r"\d+", version)]


def pages():
    """Return a function: which page of the book says most of a name, as [page, title]."""
    docs = ROOT / "docs"
    said, titles = collections.defaultdict(collections.Counter), {}
    for path in sorted(docs.glob("[a-z]*/*.md")):
        page = path.relative_to(docs).with_suffix("").as_posix()
        text = path.read_text("utf8") if page != "pitfalls/index" else ""
        titles[page] = (re.findall(r"^# (.+)", text, re.MULTILINE) or [""])[0].replace("`", "")
        for line in text.splitlines():
            for name in re.findall(r"[A-Za-z_]\w*(?:\.\w+)+", line):
                said[name][page] += 5 if line.startswith("#") else 1

    def nearest(full):
        module, _, name = full.partition(",")[0].rpartition(".")
        known = (
            said.get(f"{module}.{name}", {}),
            said.get(f"{SHORT.get(module, module)}.{name}", {}),
        )
        rank = collections.Counter(known[0]) + collections.Counter(known[1])
        (best, number), *_ = rank.most_common(1) or [("", 0)]
        return [f"{best}.html", titles[best]] if number > 1 else []

    return nearest


def gathered(packages):
    """Return {(package, type, pattern): [function, first version, last version]}."""
    found = {}
    for package in packages:
        for module, tree in package.trees.items():
            for name, kind, pattern in raised(tree):
                key = (package.name, kind, pattern)
                function = package.function(module, name) if name else ""
                row = found.setdefault(key, [function, package.version, package.version])
                row[2] = package.version
                # Versions that differ in who says it do not tell.
                same = function.rpartition(".")[2] == row[0].rpartition(".")[2]
                row[0] = function if same or not row[0] else row[0] if not function else ""
    return found


def start(pattern):
    """Return the two letters that a pattern begins with, "" where a value may come first."""
    letters = re.sub(rf"[^A-Za-z{HOLE}]", "", pattern)[:2].lower()
    return "" if HOLE in letters else letters


def content(found, nearest):
    """Return the text of a file: names with their pages, and the patterns by package and type."""
    functions = sorted({function for function, *_ in found.values() if function})
    numbers = {function: number for number, function in enumerate(functions)}
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for (package, kind, pattern), (function, *versions) in sorted(found.items()):
        row = [pattern, numbers.get(function, -1), *versions]
        rows[package][kind].append(row if package == "jax" else row[:2])
    parts = [[[function, *nearest(function)] for function in functions], rows]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).replace("]],", "]],\n")


def files(found, nearest):
    """Return {the two letters that its first pattern begins with: text}, in their order."""
    by = collections.defaultdict(dict)
    for key, row in found.items():
        by[start(key[2])][key] = row
    groups, heavy = {"": by.pop("", {})}, HEAVIEST
    for letters in sorted(by):
        heavy += (more := weight(content(by[letters], nearest)))
        if heavy > HEAVIEST:
            first, heavy = letters, more
            groups[first] = {}
        groups[first] |= by[letters]
    return {letters: content(rows, nearest) for letters, rows in groups.items()}


def weight(text):
    """Return what a text weighs, compressed."""
    return len(gzip.compress(text.encode(), 6))


def main(folder):
    """Read the wheels of a folder, and write the files."""
    wheels = sorted(pathlib.Path(folder).glob("*.whl"), key=lambda path: number(path.name))
    for missing in sorted(set(PACKAGES) - {wheel.name.split("-")[0] for wheel in wheels}):
        print(f"{missing} is left out: {folder} has no wheel of it")
    packages = [Package(wheel) for wheel in wheels]
    found = gathered(packages)
    versions = {}
    for package in packages:
        versions.setdefault(package.name, []).append(package.version)
    OUT.mkdir(exist_ok=True)
    for path in OUT.glob("*.js"):
        path.unlink()
    written = files(found, functools.cache(pages()))
    index = {"files": [letters for letters in written if letters], "versions": versions}
    for letters, text in written.items():
        assign = f"(window.book.messages ??= {{}})[{json.dumps(letters)}] = {text};\n"
        if not letters:
            assign += f"window.book.messageFiles = {json.dumps(index)};\n"
        name = letters or "values"
        OUT.joinpath(f"{name}.js").write_text(f"{HEAD}{assign}", "utf8")
        print(f"{name}: {weight(assign) / 1024:.0f} KiB compressed")
    print(len(found), "patterns")


if __name__ == "__main__":
    main(sys.argv[1])
