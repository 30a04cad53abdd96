"""Makes the files that `jax-measured new` writes, from the snippets.

A file holds the functions themselves, so that a project needs nothing of this book.

Needs the standard library alone.
"""

import functools
import pathlib
import re
import textwrap
import tomllib
from typing import Any

# Of each model: the module of its data, and what that needs besides NumPy.
MODELS = {
    "gpt": ("text", []),
    "vit": ("images", ["scikit-learn"]),
    "resnet": ("images", ["scikit-learn"]),
    "mlp": ("images", ["scikit-learn"]),
}
# What files the data is in.
DATA = {"text": ["tiny_shakespeare.txt"]}
LIBRARIES = ["jax", "flax", "optax", "orbax-checkpoint", "numpy"]
# Of each file: what it is, its page, and what it takes from the snippets; a module alone is all of
# its definitions.
FILES = {
    "data.py": (
        "The data and its batches",
        "project/start",
        ["programs.start.rows", "programs.start.{data}"],
    ),
    "model.py": ("The model", "project/start", ["programs.start.{model}"]),
    "step.py": (
        "The training step",
        "models/steps",
        [
            "models.steps: split_nnx cross_entropy gradient_of accumulated in_bfloat16 make_step",
            "project.gpt: make_optimizer",
            "training.sharded_parameters: sharded_over gathered in_shards",
            "programs.start.state",
        ],
    ),
    "train.py": ("The program", "project/start", ["programs.start.train"]),
    "write.py": ("Writes text", "project/start", ["programs.start.write"]),
    "test_train.py": ("Its tests", "project/start", ["programs.start.test_train"]),
}
# The files that one model alone has.
ALONE = {"write.py": "gpt"}
PROGRAMS = "train.py", "write.py"
# What the program imports from data.py and model.py is there for every model.
SHARED = {
    **{("programs.start.images", name): "data" for name in ("OPTIONS", "UNIT", "load")},
    ("programs.start.mlp", "network"): "model",
}
HEAD = '''"""{about}: {page}.html of JAX, Measured explains it.{others}"""

'''
MAIN = """

if __name__ == "__main__":
    main()
"""
PYPROJECT = """# project/start.html of the book JAX, Measured explains it.
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "my-model"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = [
{libraries}
]

[project.optional-dependencies]
test = ["pytest"]

# `pip install .` installs what the program needs. The program stays here.
[tool.setuptools]
py-modules = []
"""


def projects(root: pathlib.Path, course: Any) -> dict[str, str]:
    """Return the text of each file, as model/name; `course` is the module course.py."""
    source_of = functools.cache(functools.partial(course.Source, root))
    needed = oldest(root)
    made = {}
    for model, (data, more) in MODELS.items():
        wanted = {
            name: [
                (module, definition)
                for part in parts
                for module, _, names in [part.format(data=data, model=model).partition(": ")]
                for definition in names.split() or source_of(module).defined
            ]
            for name, (_, _, parts) in FILES.items()
            if ALONE.get(name, model) == model
        }
        own = {each: name.removesuffix(".py") for name, of in wanted.items() for each in of}
        for name, definitions in wanted.items():
            at = name.removesuffix(".py")
            elsewhere = {each: file for each, file in (SHARED | own).items() if file != at}
            module = course.Module(source_of, elsewhere, package="")
            for each in definitions:
                module.take(*each)
            tail = MAIN if name in PROGRAMS else ""
            made[f"{model}/{name}"] = head(root, name, module) + module.body() + tail
        for name in DATA.get(data, []):
            made[f"{model}/{name}"] = (root / "docs" / "project" / name).read_text("utf8")
        libraries = [f'    "{name}>={needed[name]}",' for name in [*LIBRARIES, *more]]
        made[f"{model}/pyproject.toml"] = PYPROJECT.format(libraries="\n".join(libraries))
    return made


def head(root: pathlib.Path, name: str, module: Any) -> str:
    """Return what a file says of itself, and which other pages teach what is in it."""
    about, page, _ = FILES[name]
    taught: dict[str, list[str]] = {}
    for each in module.texts:
        taught.setdefault(page_of(root, *each), []).append(each[1])
    taught.pop(page, None)
    lines = [f"{at}.html: {', '.join(sorted(names))}" for at, names in sorted(taught.items())]
    filled = [textwrap.fill(line, 79, subsequent_indent="    ") for line in lines]
    others = "\n".join(["\n\nOf other pages:\n", *filled, ""]) if lines else ""
    return HEAD.format(about=about, page=page, others=others)


def page_of(root: pathlib.Path, module: str, name: str) -> str:
    """Return the page that explains a definition of the snippets."""
    if module.startswith("programs.start"):
        return "project/start"
    chapter, _, topic = module.rpartition(".")
    if (root / "docs" / chapter / f"{topic}.md").is_file():
        return f"{chapter}/{topic}"
    # A module of a whole chapter: the page that shows it in the open, else one that folds it.
    for option in ("snippet", "folded"):
        for path in sorted((root / "docs" / chapter).glob("*.md")):
            line = rf"^:{option}:.* {topic}\.{name}\b"
            if re.search(line, path.read_text("utf8"), re.MULTILINE):
                return f"{chapter}/{path.stem}"
    raise ValueError(f"no page shows {module}.{name}")


def oldest(root: pathlib.Path) -> dict[str, str]:
    """Return the oldest version with which this book was tested, by the name of the library."""
    found: dict[str, str] = {}
    groups = tomllib.loads((root / "pyproject.toml").read_text("utf8"))["dependency-groups"]
    for line in [*groups["jax"], *groups["train"]]:
        name, version = re.match(r"([\w-]+)==([\w.]+)", line).groups()
        found.setdefault(name, version)
    return found
