"""What a page needs besides JAX, NumPy, PyTorch and TensorFlow, it says at its beginning."""

import re

import pytest

from executed.run import key
from tests.book import pages

# Lesson 1 says how these are installed. What else is optional, pages say where they need it.
KNOWN = {"jax", "numpy", "torch", "tensorflow", "c++"}
# What goes with real weights, as the first of these pages says.
ELSEWHERE = {f"models/{name}" for name in ("real_model", "real_model_fast", "export", "profile")}
TAUGHT = re.compile(r"(start/ten_minutes|learn/|project/|models/)")
NAMED = re.compile(r"You need `pip install ([\w\- ]+)`")


def needed(page):
    """Return the packages that the cells of a page import, as pip is asked for them."""
    packages = set(key.packages(page, pages.OPTIONS))
    used = [e for e in pages.OPTIONS.registry if packages.issuperset(e.packages)]
    return {e.packages[0] for e in used if e.name not in KNOWN}


@pytest.mark.parametrize("name", sorted(filter(TAUGHT.match, pages.paths())))
def test_a_page_says_what_to_install(name):
    page = pages.page(name)
    if page is None or name in ELSEWHERE:
        return
    said = NAMED.search(pages.paths()[name].read_text("utf8"))
    assert set(said[1].split() if said else ()) == needed(page)
