"""Who may import whom: the extensions of docs/_ext, and the walls between them."""

import ast
import pathlib
import re
import runpy

import pytest

from executed.source.code import imported_modules

ENGINE = pathlib.Path(__file__).parents[2] / "docs" / "_ext"
CORE = "executed"
FEATURES = (
    *("measured", "compiled", "errors", "predicted", "pictures", "exercised", "light"),
    "published",
)
EXTENSIONS = (CORE, *FEATURES)
LIBRARY = "drawing"
SPHINX = {"sphinx", "docutils", "myst_nb", "sphinx_design", "myst_parser"}
# What a page is about; the engine knows frameworks from conf.py alone.
SUBJECTS = {"jax", "jaxlib", "torch", "tensorflow", "sklearn"}
# What compiles programs for other devices, with JAX, is beside the engine; no site loads it.
PROGRAM = ENGINE.with_name("_compile")
MODULES = {path.relative_to(ENGINE).as_posix(): path for path in sorted(ENGINE.rglob("*.py"))}


def imported(path):
    """Return the top-level name of each module that a file imports from elsewhere."""
    return imported_modules(path.read_text("utf8"), anywhere=True)


@pytest.mark.parametrize("name", MODULES)
def test_the_core_knows_no_feature_and_no_feature_another(name):
    own = name.split("/")[0]
    others = {*EXTENSIONS, LIBRARY} - {own}
    allowed = {CORE: set(), LIBRARY: {CORE}}.get(own, {CORE, LIBRARY})
    for module in imported(MODULES[name]):
        assert module not in others - allowed, f"{name} imports {module}"
        assert module not in SUBJECTS | {PROGRAM.name}, f"{name} imports {module}"


def imports_within(name, modules):
    """Return the modules of the engine that a module imports, those for types too."""
    folder, found = pathlib.PurePosixPath(name).parent, set()
    for node in ast.walk(ast.parse(modules[name].read_text("utf8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".") if node.module else []
        base = folder.parents[node.level - 2] if node.level > 1 else folder if node.level else ""
        place = pathlib.PurePosixPath(base, *parts)
        paths = [place.with_name(f"{place.name}.py")] if place.name else []
        paths += [place / f"{alias.name}.py" for alias in node.names]
        found |= {path.as_posix() for path in paths} & modules.keys()
    return found


def test_no_modules_import_one_another_in_a_circle():
    waiting = {name: imports_within(name, MODULES) for name in MODULES}
    assert sum(map(len, waiting.values())) > 300
    while free := {name for name, needs in waiting.items() if not needs & waiting.keys()}:
        waiting = {name: needs for name, needs in waiting.items() if name not in free}
    assert not waiting, "these wait for one another"


def test_what_compiles_programs_knows_only_what_is_compiled():
    modules = {module for path in PROGRAM.glob("*.py") for module in imported(path)}
    assert modules & {*EXTENSIONS, LIBRARY} == {CORE, "compiled"}


def test_every_folder_is_an_extension_that_conf_py_lists():
    listed = runpy.run_path(str(ENGINE.parents[1] / "conf.py"))["extensions"]
    folders = sorted(path.parent.name for path in ENGINE.glob("*/__init__.py"))
    assert folders == sorted((*EXTENSIONS, LIBRARY))
    assert tuple(listed[: len(EXTENSIONS)]) == EXTENSIONS


def classes(*folders):
    """Return the classes that the style sheets of extensions select."""
    sheets = (
        path.read_text("utf8") for name in folders for path in ENGINE.glob(f"{name}/**/*.css")
    )
    return {name for sheet in sheets for name in re.findall(r"\.([a-z][\w-]+)", sheet)}


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith((CORE, LIBRARY))])
def test_the_core_selects_no_class_of_a_feature(name):
    # The last two are of MyST-NB.
    others = classes(*FEATURES) - classes(CORE, LIBRARY) - {"collapsed", "expanded"}
    nodes = ast.walk(ast.parse(MODULES[name].read_text("utf8")))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    selected = {name for text in map(str, texts) for name in re.findall(r"\.([\w-]+)", text)}
    assert not selected & others


@pytest.mark.parametrize("feature", FEATURES)
def test_who_draws_loads_the_styles_of_drawings(feature):
    folder = ENGINE / feature
    own = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    draws = any(LIBRARY in imported(path) for path in own)
    assert ('"drawing.css"' in (folder / "__init__.py").read_text("utf8")) == draws


def test_each_folder_says_what_its_modules_are_for():
    for name, path in MODULES.items():
        folder = path.parent if path.name != "__init__.py" else path.parent.parent
        if folder != ENGINE:
            said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf8")))
            module = path.stem if path.name != "__init__.py" else path.parent.name
            assert f"`{module}`" in said, f"{folder.name}/__init__.py does not name {name}"


def test_no_module_has_the_name_of_another():
    names = [path.stem for path in MODULES.values()]
    conventional = {"__init__", "feature", "options"}
    assert {name for name in names if names.count(name) > 1} == conventional


def test_each_module_can_be_read_at_a_sitting():
    lines = {name: len(path.read_text("utf8").splitlines()) for name, path in MODULES.items()}
    assert max(lines.values()) <= 350, max(lines, key=lines.get)


def test_the_engine_names_nothing_of_this_book():
    words = {"JAX, Measured", "gpu-h200", "tpu-v5e", "nox", "docs/benchmarks", "snippets/programs"}
    for name, path in MODULES.items():
        text = path.read_text("utf8")
        code = "\n".join(
            ast.unparse(node)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant)
        )
        docs = {
            ast.get_docstring(node, clean=False)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
        }
        for doc in filter(None, docs):
            code = code.replace(repr(doc), "")
        found = [word for word in words if word in code]
        assert not found, f"{name} names {found}"
