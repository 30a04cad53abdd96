"""Devices to compile for, as conf.py describes them."""

import pathlib

from compiled.options import compile_targets
from executed.options import Options


def of(**targets):
    values = {"extensions": ["compiled"], "book_targets": targets}
    return compile_targets(Options.from_values(values, "book"))


def test_a_target_has_a_name_a_platform_and_its_figures_beside_conf():
    found = of(
        gpu={"platform": "cuda", "figures": "docs/gpu.txtpb", "chips": [8]}, cpu={"platform": "cpu"}
    )
    assert list(found) == ["gpu", "cpu"]
    assert pathlib.Path(found["gpu"].figures) == pathlib.Path("book/docs/gpu.txtpb")
    assert found["gpu"].chips == (8,)
    assert found["cpu"].label == "cpu"
    assert found["cpu"].figures == ""


def test_without_targets_there_are_none():
    assert of() == {}
