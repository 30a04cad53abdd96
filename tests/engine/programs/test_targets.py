"""Devices to compile for, as conf.py describes them."""

import pathlib

import pytest
from _ext.options import Options
from _ext.programs.targets import configured


def of(**targets):
    return configured(Options(targets=targets, root=pathlib.Path("book")))


def test_a_target_has_a_name_a_platform_and_its_figures_beside_conf():
    found = of(
        gpu={"platform": "cuda", "figures": "docs/gpu.txtpb", "chips": [8]}, cpu={"platform": "cpu"}
    )
    assert list(found) == ["gpu", "cpu"]
    assert found["gpu"].figures == pathlib.Path("book/docs/gpu.txtpb")
    assert found["gpu"].chips == (8,)
    assert found["cpu"].label == "cpu"
    assert found["cpu"].figures is None


def test_without_targets_there_are_none():
    assert of() == {}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"platform": "tpu", "topolgy": "v5e"}, "'gpu': there is no key 'topolgy'; .*topology"),
        ({"label": "A GPU"}, "'gpu': it needs a platform"),
        ({"platform": "cuda", "chips": 8}, "book_targets of conf.py: 'gpu': "),
    ],
)
def test_a_mistake_in_conf_is_named(facts, message):
    with pytest.raises(ValueError, match=message):
        of(gpu=facts)
