"""What a cell measures: which edits of a page change it, and which do not."""

import pytest

from measured.slices import slices

BEFORE = (
    "import jax\nimport torch\nfrom timer import measure",
    "def double(x):\n    return scaled(x)",
    "def scaled(x):\n    return FACTOR * x\n\n\nFACTOR = 2",
    "x = jax.numpy.ones(3)",
    "found = []\nprint('a text')",
    "step = jax.jit(double)\nmeasure('a', step, x)",
)


def same(edit, before=BEFORE):
    """Say whether the last cell of a page measures the same after an edit of what is before."""
    return slices(before)[-1] == slices(tuple(edit([*before])))[-1]


def replaced(old, new):
    """Return an edit that replaces a text in all cells."""

    def edit(cells):
        assert any(old in cell for cell in cells)
        return [cell.replace(old, new) for cell in cells]

    return edit


def added(text, at=-1):
    """Return an edit that adds a cell."""
    return lambda cells: [*cells[:at], text, *cells[at:]]


NOTHING = {
    "a text": replaced("a text", "another"),
    "a docstring": replaced("return scaled", '"""Twice."""\n    return scaled'),
    "a cell that prints": added("print(x, step if x else 0)\nassert x is not None"),
    "a name that it does not read": added("y = x + 1"),
    "a function that it does not reach": added("def other(x):\n    return x"),
    "another measurement": added("measure('b', double, x)"),
    "an import in another place": lambda cells: [cells[0] + "\nimport numpy", *cells[1:]],
    "an import twice": added("import jax", -2),
    "the order of definitions": lambda cells: [cells[n] for n in (0, 2, 1, 3, 4, 5)],
    "a cell in two": lambda cells: [*cells[:2], *cells[2].split("\n\n\n"), *cells[3:]],
    "a name that is bound again": lambda cells: ["x = 4", *cells],
    "a setting of another module": added("torch.set_num_threads(1)"),
    "an object that it does not reach": added("found.append(x)"),
    "a call that sets nothing": added("jax.block_until_ready(x)"),
    "a new array with an element set": added("y = jax.numpy.zeros(3).at[0].set(1)"),
}
SOMETHING = {
    "an argument": replaced("ones(3)", "ones(4)"),
    "a constant that a function reads": replaced("FACTOR = 2", "FACTOR = 3"),
    "a function that a function calls": replaced("FACTOR * x", "x * FACTOR"),
    "its own statement": replaced("'a', step", "'a', double"),
    "a constant that is bound again": added("FACTOR = 3"),
    "a name that is bound in a branch": added("if torch:\n    x = 4"),
    "an element": added("x[0] = 4"),
    "an attribute": added("double.factor = 4"),
    "a method": added("x.sort()"),
    "a setting of its module": added("jax.config.update('a', 1)"),
    "an attribute of its module": added("jax.config.a = 1"),
    "a setting whose value is kept": added("old = jax.config.update('a', 1)"),
    "a setting by another name": added("config = jax.config\nconfig.update('a', 1)"),
    "the environment, by another call": added("import os\nos.putenv('A', '1')"),
    "a function that sets": added("def sets():\n    jax.config.update('a', 1)\n\n\nsets()"),
    "a function that calls one": added(
        "def sets():\n    jax.config.update('a', 1)\n\n\ndef calls():\n    sets()\n\n\ncalls()"
    ),
    "a function that fills": added("def fills(a):\n    a[0] = 4\n\n\nfills(x)"),
    "a call that fills": added("torch.nn.init.normal_(x)"),
    "the environment": added("import os\nos.environ['A'] = '1'"),
    "the environment, by a call": added("import os\nos.environ.setdefault('A', '1')"),
    "a line for IPython": added("%matplotlib inline"),
    "an import of something else": replaced("import jax\n", "import numpy as jax\n"),
    "a global name": added("def sets():\n    global x\n    x = 4\n\n\nsets()"),
    "what it rests on, gone": lambda cells: [*cells[:3], *cells[4:]],
}


@pytest.mark.parametrize("edit", NOTHING.values(), ids=NOTHING)
def test_an_edit_that_changes_nothing_of_what_is_measured(edit):
    assert same(edit)


@pytest.mark.parametrize("edit", SOMETHING.values(), ids=SOMETHING)
def test_an_edit_that_changes_what_is_measured(edit):
    assert not same(edit)


def test_a_loop_binds_its_own_names():
    loop = "for x in range(3):\n    print(x)"
    assert same(replaced("x = 1", "x = 2"), ("x = 1", loop))
    assert not same(replaced("y = 1", "y = 2"), ("y = 1", f"{loop}\n    print(y)"))


def test_each_cell_has_a_slice_of_its_own():
    found = slices((*BEFORE, "measure('b', scaled, x)"))
    assert len(found) == len(BEFORE) + 1
    assert found[-1] != found[-2]
    assert slices(BEFORE) == found[:-1]


def test_a_setting_of_a_package_counts_for_all_of_its_names():
    before = ("import jax\nimport jax.numpy as jnp", "x = jnp.ones(3)", "jnp.sum(x)")
    assert not same(added("jax.config.update('jax_enable_x64', True)"), before)
    assert same(added("import torch\ntorch.set_num_threads(1)"), before)
    before = ("import torch\nimport torch.nn.functional as F", "x = 1", "F.relu(x)")
    assert not same(added("old = torch.set_num_threads(1)"), before)
    before = ("import numpy as np", "x = np.ones(3)", "np.log(x)")
    assert not same(added("np.seterr(all='ignore')"), before)


def test_a_slice_has_the_same_digest_in_every_python():
    # It stands in the files of machines, which come from one Python and are read with another.
    cells = ("n = 1\nnames = {n: k + 1 for n, k in {}.items()}", "print([n for n in names])")
    assert slices(cells)[-1] == "de644884bd8f6aa18253047c06d6338145cfd5249e50d2004fdcecea6d729026"
