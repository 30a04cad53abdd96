"""A name that is nearly right is answered with the one that is."""

import pytest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{messured}`x`", 'Unknown interpreted text role "messured"; the nearest are measured'),
        ("```{measurments} x\n```", "directive type: 'measurments'; the nearest are measurements"),
        ("```{liste-table}\n```", "'liste-table'; the nearest are list-table"),
        ("{zzzzzz}`x`", 'Unknown interpreted text role "zzzzzz" ['),
    ],
)
def test_an_unknown_role_or_directive_is_red_with_the_nearest_names(project, text, words):
    project.page("a/one", "Prose.", text)
    build = project.build()
    assert build.status == 1
    (warning,) = build.warnings
    assert "docs/a/one.md:" in warning and words in warning
