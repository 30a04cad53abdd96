"""The table of errors that changed from one version to the next."""

RAISING = """
```{code-cell} python
:raises: ValueError no pears
raise ValueError("no pears, 3 apples")
```
"""
TABLE = """
```{errors-changed}
```
"""


def rows(project):
    table = project.soup("table").find("table")
    return [[cell.text for cell in row("td")] for row in table.tbody("tr")] if table.tbody else []


def test_each_step_between_versions_has_a_row(project):
    def says(**error):
        def change(outputs):
            outputs[0] |= error
            if not error["ename"]:
                outputs.clear()

        return change

    project.with_versions()
    project.page("one", RAISING)
    project.page("table", TABLE)
    project.recorded_on("1.0", "one", says(ename=""))
    project.recorded_on("2.0", "one", says(ename="TypeError", evalue="pears are\nout\n\nlook"))
    project.recorded_on("3.0", "one", says(ename="ValueError", evalue="no pears, 17 apples"))
    project.built()
    assert rows(project) == [
        ["one", "1.0 → 2.0", "no error", "TypeError: pears are out"],
        ["one", "2.0 → 3.0", "TypeError: pears are out", "ValueError: no pears, 17 apples"],
    ]
