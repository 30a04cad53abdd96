"""What was measured on other machines is whole and undisturbed, and some of it still counts."""

import json

import pytest

from measured.machines import FEWEST, FEWEST_IN_A_TURN, problems
from measured.schema import Schema
from measured.slices import slices
from tests.book.pages import ROOT

FOLDERS = [ROOT / "docs" / "_machines", ROOT / "docs" / "_releases"]
SCHEMA = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")


def measured_today():
    """Return {name of a record: which code the cells that made it measure}, as recorded."""
    found = {}
    for path in (ROOT / "docs" / "_recorded" / "cpu").rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf8"))["cells"]
        cells = [cell for cell in cells if cell["cell_type"] == "code"]
        made = [
            (record["name"], number)
            for number, cell in enumerate(cells)
            for output in cell["outputs"]
            if (record := output.get("data", {}).get(SCHEMA.media_type))
        ]
        digests = slices(tuple("".join(cell["source"]) for cell in cells)) if made else ()
        for name, number in made:
            found.setdefault(name, set()).add(digests[number])
    return found


@pytest.mark.parametrize(
    "path",
    sorted(path for folder in FOLDERS for path in folder.glob("*")),
    ids=lambda path: path.name,
)
def test_a_machine_is_whole_and_some_of_it_counts(path):
    assert path.suffix == ".json", "only files of jax-measured belong here"
    file = json.loads(path.read_text("utf8"))
    fewest = FEWEST_IN_A_TURN if path.parent.name == "_releases" else FEWEST
    assert problems(file, SCHEMA, fewest) == []
    today = measured_today()
    counted = [name for name, digest in file["code"].items() if digest in today.get(name, ())]
    assert counted, "pages measure other code by now than all that this machine measured"
