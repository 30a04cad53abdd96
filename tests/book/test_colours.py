"""Names of frameworks, written in their colours, can be read on light and on dark pages."""

import pathlib
import runpy

import pytest

from drawing.svg import INKS
from executed.frameworks import Colour

CONF = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "conf.py"))
COLOURS = {
    name: Colour(**facts["colour"])
    for name, facts in CONF["book_frameworks"].items()
    if "colour" in facts
}
# The grounds of the theme, and of its boxes.
LIGHT, DARK = ("#ffffff", "#f3f4f5"), ("#121212", "#14181e", "#222832")


def luminance(colour):
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ink", [*COLOURS.values(), *INKS], ids=lambda ink: ink.light)
def test_letters_in_a_colour_have_the_contrast_that_wcag_asks_for(ink):
    assert all(contrast(ink.light, ground) >= 4.5 for ground in LIGHT)
    assert all(contrast(ink.dark, ground) >= 4.5 for ground in DARK)


def test_the_frameworks_that_are_measured_have_colours_that_differ():
    assert set(COLOURS) == {"numpy", "numba", "torch", "tensorflow", "jax"}
    for theme in ("light", "dark"):
        assert len({getattr(ink, theme) for ink in COLOURS.values()}) == len(COLOURS)
