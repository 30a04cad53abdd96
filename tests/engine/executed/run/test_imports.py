"""Which kernels are forked, and from a parent that has imported what."""

import pytest

from executed.frameworks import first_imports
from executed.options import Options
from executed.run.imports import first_modules, warm_modules
from executed.source.code import imported_modules

REGISTRY = Options(
    frameworks={
        "jax": {},
        "torch": {"later": ["torch.late"]},
        "mpi": {"forkable": False},
        "numpy": {},
    }
).registry


@pytest.mark.parametrize(
    ("cells", "modules"),
    [
        ([], ()),
        (["1 + 1"], ()),
        (["import math"], ()),
        (["import torch", "import jax.numpy as jnp"], ("jax", "torch", "torch.late")),
        (["from numpy.random import rand\nimport jax"], ("jax", "numpy")),
        # What may never be imported is imported by no parent.
        (["def f():\n    import torch"], ()),
        (["if False:\n    import torch"], ()),
        (["text = 'import torch'"], ()),
        (["import torchvision"], ()),
    ],
)
def test_a_parent_has_imported_what_a_page_uses_and_nothing_more(cells, modules):
    assert warm_modules(cells, REGISTRY) == modules


TOUCHING = [
    "import os\nos.environ['A'] = 'b'",
    "from os import environ as e",
    "import os; os.putenv('A', 'b')",
    "import sys\nsys.modules['numpy'] = None",
    "import sys; sys.path.insert(0, '.')",
    "import os\ndel os.environ['A']",
    "import os\nos.environ['A'] += 'b'",
    "import os\nos.environ |= {'A': 'b'}",
    "import os\nos.environ.setdefault('A', 'b')",
    "import os\nwith patch.dict(os.environ, empty):\n    pass",
]


@pytest.mark.parametrize("touching", TOUCHING)
def test_a_page_that_touches_its_environment_before_an_import_has_a_process_of_its_own(touching):
    assert warm_modules([touching, "import jax"], REGISTRY) is None
    assert warm_modules([touching + "\nimport jax"], REGISTRY) is None
    assert warm_modules(["import jax", touching, "import torch"], REGISTRY) is None


@pytest.mark.parametrize("touching", TOUCHING)
def test_afterwards_or_without_a_framework_it_makes_no_difference(touching):
    assert warm_modules(["import jax", touching], REGISTRY) == ("jax",)
    assert warm_modules([touching, "import math"], REGISTRY) == ()


def test_what_starts_something_when_it_is_imported_is_not_forked():
    assert warm_modules(["import mpi, jax"], REGISTRY) is None


def test_a_relative_import_imports_no_framework():
    assert imported_modules("from . import jax\nfrom .torch import x") == ()


# What has to be imported before two of them, of which one is not installed.
AFTER = Options(
    frameworks={
        "jax": {},
        "tensorflow": {"before": ["colorsys", "not_installed"]},
        "torch": {},
        "late": {"forkable": False, "before": ["wave"]},
    }
).registry


def test_what_must_come_before_a_framework_does_wherever_the_page_imports_it():
    assert warm_modules(["import torch, tensorflow"], AFTER) == ("colorsys", "tensorflow", "torch")
    assert warm_modules(["import torch, jax"], AFTER) == ("jax", "torch")
    assert first_modules(["import jax", "import tensorflow"], AFTER) == ("colorsys",)
    assert first_modules(["def f():\n    import tensorflow, late"], AFTER) == ("colorsys", "wave")
    assert first_modules(["import torch"], AFTER) == ()


def test_programs_of_readers_import_it_where_it_is_installed():
    lines = first_imports(AFTER, ["jax", "tensorflow"])
    found = {}
    exec(lines, found)
    assert {"colorsys", "not_installed"} & found.keys() == {"colorsys"}
    assert first_imports(AFTER, ["jax"]) == ""
