"""What code binds and takes from around it, in whatever Python reads it."""

from executed.source.code import bound_names, names_used


def test_a_comprehension_binds_nothing_around_it_in_any_python():
    code = "a = {k: v + b for k, v in c.items()}\nd = [e for e in a for f in e]\ng = {h for h in d}"
    assert bound_names(code) == {"a", "d", "g"}
    assert set(names_used(code)) == {"a", "b", "c", "d"}
