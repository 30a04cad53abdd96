"""Who may import whom: the rule at the top of docs/contributing.md."""

import ast
import pathlib

import pytest

ENGINE = pathlib.Path(__file__).parents[2] / "docs" / "_ext"
ORDER = (
    *("source", "drawing", "measurements", "pictures", "records"),
    *("execution", "programs", "site", "commands"),
)
COMMON = ("files", "names", "typed_json", "frameworks", "options")
SPHINX = {"sphinx", "docutils", "myst_nb", "sphinx_design", "myst_parser"}
# What a page is about; the engine knows frameworks from conf.py alone. To compile for another
# device is JAX's work, whatever the book is about.
SUBJECTS = {"jax", "jaxlib", "torch", "tensorflow", "sklearn"}
COMPILER = {"programs/compiling.py", "programs/jaxprs.py"}
MODULES = {path.relative_to(ENGINE).as_posix(): path for path in sorted(ENGINE.rglob("*.py"))}


def imported(path):
    """Yield ("", package) for what is imported from elsewhere, (".", module) from the engine."""
    here = path.relative_to(ENGINE).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.Import):
            yield from (("", alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield "", node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level], *(node.module or "").split(".")]
            base = [part for part in base if part]
            yield from ((".", ".".join([*base, alias.name])) for alias in node.names)


def place(module):
    """Return the package of the engine that a module is in, or the name of a common module."""
    return module.split(".")[0]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_the_packages_before_its_own(name):
    own = name.split("/")[0].removesuffix(".py")
    for kind, module in imported(MODULES[name]):
        if kind == "":
            assert module not in SPHINX or own == "site", f"{name} imports {module}"
            assert module not in SUBJECTS or name in COMPILER, f"{name} imports {module}"
            continue
        found = place(module)
        if own in ORDER:
            before = (*COMMON, *ORDER[: ORDER.index(own) + 1])
            allowed = tuple(part for part in before if not (own == "commands" and part == "site"))
            assert found in allowed, f"{name} imports {module}"
        elif own in COMMON:
            assert found in COMMON, f"{name} imports {module}"


def test_every_package_tells_its_story():
    for package in ORDER:
        story = ast.get_docstring(ast.parse((ENGINE / package / "__init__.py").read_text("utf8")))
        assert story and story.count(". ") + story.endswith(".") >= 1, package


def test_every_module_belongs_to_a_package_of_the_rule():
    for name in MODULES:
        top = name.split("/")[0].removesuffix(".py")
        assert top in (*ORDER, *COMMON, "__init__"), name
    rule = (ENGINE.parent / "contributing.md").read_text("utf8").split("\n## ")[0]
    for package in ORDER:
        assert f"`{package}`" in rule, f"the rule does not name {package}"


def test_the_engine_can_be_read_in_an_afternoon():
    lines = {name: len(path.read_text("utf8").splitlines()) for name, path in MODULES.items()}
    assert max(lines.values()) <= 400, max(lines, key=lines.get)
    # Before this is raised: which mechanism has no use in the book any more?
    assert sum(lines.values()) <= 11_900


def test_the_engine_names_nothing_of_this_book():
    words = {"JAX, Measured", "gpu-h200", "tpu-v5e", "nox", "docs/benchmarks", "snippets/timing"}
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
