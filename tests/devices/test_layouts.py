"""Layouts to try: what the page's table and its forms say, against JAX."""

import html
import itertools
import json
import math
import pathlib
import random
import re
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from jax._src.core import ShardingTypeError
from jax._src.named_sharding import DuplicateSpecError

from snippets.devices import arrays, layouts, resharding

DOCS = pathlib.Path(__file__).parents[2] / "docs"
P = jax.P
LINE, GRID = (8,), (4, 2)
MIB = 2**20
UNITS = {"MiB": MIB, "KiB": 1024, "bytes": 1}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("replica_groups={{0,1},{2,3}}, dimensions={0}", [[0, 1], [2, 3]]),
        ("source_target_pairs={{0,0},{1,2},{3,7}}", [[0, 0], [1, 2], [3, 7]]),
        ("replica_groups=[4,2]<=[8], dimensions={0}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("replica_groups=[2,4]<=[4,2]T(1,0), x", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("replica_groups=[4,2]<=[2,2,2]T(2,1,0), x", [[0, 4], [2, 6], [1, 5], [3, 7]]),
        ("replica_groups=mesh['x'=4,'y'=2] {'y'}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("replica_groups=mesh['x'=4,'y'=2] {'x'}, x", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("replica_groups=mesh['x'=4,'y'=2] {'x','y'}", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        # The second half of the first axis: devices 0 and 2, 1 and 3, and so on.
        (
            "replica_groups=mesh['x'=4,'y'=2] {'x':(2)2}",
            [[0, 2], [1, 3], [4, 6], [5, 7]],
        ),
        (
            "replica_groups=mesh['x'=4,'y'=2] {'x':(1)2,'y'}",
            [[0, 1, 4, 5], [2, 3, 6, 7]],
        ),
        (
            "replica_groups=mesh['axis_0'=2,'axis_1'=1,'axis_2'=4], "
            "device_ids=([4,2]T(1,0)) {'axis_0'}",
            [[0, 1], [2, 3], [4, 5], [6, 7]],
        ),
    ],
)
def test_groups_of_devices_are_read_as_xla_writes_them(line, expected):
    found = layouts.groups(f"%a), channel_id=1, {line}")
    assert [sorted(group) for group in found.tolist()] == expected


def along(mesh, axes):
    """Return the groups of devices along axes of a mesh, from JAX's array of its devices."""
    ids = np.vectorize(lambda device: device.id)(mesh.devices)
    places = [mesh.axis_names.index(axis) for axis in axes]
    moved = np.moveaxis(ids, places, range(-len(places), 0))
    return moved.reshape(-1, math.prod(mesh.shape[axis] for axis in axes)).tolist()


@pytest.mark.parametrize(
    ("name", "sizes", "specs", "sent", "result"),
    [
        ("a + b", LINE, [P("x"), P("x")], [], P("x")),
        ("a + b", LINE, [P("x"), P()], [], P("x")),
        ("a @ b", LINE, [P("x"), P()], [], P("x")),
        ("a @ b", LINE, [P("x"), P("x")], [("all-gather", "x", 8, 3.5 * MIB)], P("x")),
        ("a @ b", LINE, [P(None, "x"), P("x")], [("all-reduce", "x", 8, 7 * MIB)], P()),
        ("a @ b", GRID, [P("x"), P("y")], [("all-reduce", "y", 2, MIB)], P("x")),
        ("a.T", GRID, [P("x", "y")], [], P("y", "x")),
        ("a.sum(axis=0)", LINE, [P("x")], [("all-reduce", "x", 8, 7 * 1024)], P()),
        ("a.sum(axis=0)", GRID, [P("x", "y")], [("all-reduce", "x", 4, 3072)], P("y")),
        ("a.sum(axis=1)", GRID, [P("x", "y")], [("all-reduce", "y", 2, 1024)], P("x")),
        (layouts.RESHARD, LINE, [P("x"), P()], [("all-gather", "x", 8, 3.5 * MIB)], P()),
        (layouts.RESHARD, LINE, [P(), P("x")], [], P("x")),
        (
            layouts.RESHARD,
            LINE,
            [P("x"), P(None, "x")],
            [("all-to-all", "x", 8, 448 * 1024)],
            P(None, "x"),
        ),
    ],
)
def test_what_is_sent_in_cases_worked_out_by_hand(name, sizes, specs, sent, result):
    found, laid_out, _ = layouts.answer(name, sizes, specs)
    mesh = layouts.mesh_of(sizes, "Explicit")
    assert [(kind, axes, len(groups[0]), size) for kind, axes, groups, size in found] == sent
    for _, axes, groups, _ in found:
        assert groups == along(mesh, axes)
    expected = jax.NamedSharding(mesh, result)
    actual = jax.NamedSharding(mesh, laid_out.sharding.spec)
    assert actual.is_equivalent_to(expected, len(laid_out.shape))


def test_a_change_of_layout_brings_at_least_what_devices_lack():
    mesh = layouts.mesh_of(GRID, "Explicit")
    for before, after in itertools.product(layouts.SPECS[GRID], repeat=2):
        found, result, refusal = layouts.answer(layouts.RESHARD, GRID, [before, after])
        old, new = (layouts.laid_out(mesh, spec) for spec in (before, after))
        lacking = resharding.bytes_to_receive(old, new)
        received = 8 * sum(size for *_, size in found)
        assert received >= lacking, (before, after)
        assert (received > 0) == (lacking > 0), (before, after)
        sizes = {each.sharding.shard_shape(each.shape) for each in (old, new)}
        if len({math.prod(size) for size in sizes}) == 1 and len(found) == 1:
            assert received == lacking or found[0][0] == "collective-permute", (before, after)
        assert not refusal
        assert result.sharding.is_equivalent_to(new.sharding, 2)


def ran(name, sizes, kind, specs, numbers):
    """Return an operation's result for numbers that lie so, computed."""
    mesh = layouts.mesh_of(sizes, kind)
    lying = [jax.device_put(numbers, jax.NamedSharding(mesh, spec)) for spec in specs]
    return jax.jit(layouts.OPERATIONS[name])(*lying)


def test_layouts_and_refusals_are_those_that_running_gives():
    numbers = np.random.default_rng(0).integers(0, 9, (16, 16)).astype(np.float32)
    some = [("a + b", GRID, specs) for specs in [(P("x"), P("y")), (P("x"), P(None, "x"))]]
    some += [("a @ b", GRID, specs) for specs in [(P("x"), P("y")), (P(None, "y"), P("y"))]]
    some += [(name, GRID, specs) for name, specs in layouts.choices(GRID) if len(specs) == 1]
    some += [(name, LINE, specs) for name, specs in layouts.choices(LINE)]
    for name, sizes, specs in some:
        if name == layouts.RESHARD:
            continue
        _, planned, refusal = layouts.answer(name, sizes, specs)
        if refusal:
            with pytest.raises(ShardingTypeError):
                ran(name, sizes, "Explicit", specs, numbers)
        result = ran(name, sizes, "Auto" if refusal else "Explicit", specs, numbers)
        np.testing.assert_array_equal(result, layouts.OPERATIONS[name](*[numbers] * len(specs)))
        found, expected = (
            {device.id: part for device, part in each.devices_indices_map(result.shape).items()}
            for each in (result.sharding, planned.sharding)
        )
        assert found == expected, (name, specs)


def test_each_collective_of_a_program_is_read():
    for name, specs in [("a @ b", (P(None, "y"), P("x", "y"))), ("a + b", (P("x"), P("y")))]:
        auto = layouts.mesh_of(GRID, "Auto")
        lying = [layouts.laid_out(auto, spec) for spec in specs]
        counted = resharding.collectives(layouts.OPERATIONS[name], *lying)
        found, _ = layouts.compiled(layouts.OPERATIONS[name], lying)
        assert len(found) == sum(counted.values())
        assert {kind for kind, *_ in found} == set(counted)


def test_a_line_of_the_table_says_it_all():
    rows, sent = "[1024@x,1024]", "all-gather along x, 8 devices, 3670016 bytes each"
    line = layouts.row("a @ b", LINE, [P("x"), P("x")])
    *words, plain = line
    assert words == ["8", "a @ b", rows, rows, sent, rows, "accepted"]
    array = [1024, 1024], [["x"], []]
    assert json.loads(json.dumps(plain)) == {
        "mesh": [8],
        "arrays": [[*array]] * 3,
        "sent": [["all-gather", "x", [[*range(8)]], 3670016]],
        "accepted": True,
    }
    assert layouts.described("a @ b", LINE, [P("x"), P("x")]).splitlines() == [
        f"a @ b of {rows} and {rows}, mesh of 8",
        f"    sent: {sent}",
        f"    result: {rows}",
        "    explicit axes: accepted",
    ]
    *_, sent, result, explicit, plain = layouts.row("a @ b", LINE, [P(None, "x"), P("x")])
    assert sent == "all-reduce along x, 8 devices, 7340032 bytes each"
    assert result == "[1024,1024]"
    assert "ambiguous how the output should be sharded" in explicit and not plain["accepted"]
    both = layouts.laid_out(layouts.mesh_of(GRID, "Auto"), P(None, ("x", "y")))
    assert layouts.plain_array(both) == ((1024, 1024), [[], ["x", "y"]])
    assert "a.T of [1024@x,1024], mesh of 4 × 2" in layouts.described("a.T", GRID, [P("x")])


def test_the_table_is_one_of_html_with_a_head_for_other_programs():
    rows = [layouts.row(*row) for row in ROWS[:2]]
    root = ElementTree.fromstring(layouts.table(rows).data)
    assert [head.text for head in root.iter("th")] == list(layouts.Row._fields[:-1])
    found = [[cell.text or "" for cell in line.iter("td")] for line in root.iter("tr")]
    assert found[1:] == [list(row[:-1]) for row in rows]


def test_the_script_has_no_words_of_jax():
    script = (DOCS / "_static" / "layouts.js").read_text("utf8")
    for line in REFUSALS.splitlines():
        for words in re.findall(r"[A-Za-z ]{12,}", line.split(" Got shape")[0]):
            assert words.strip() not in script


def test_refusals_are_of_a_mesh_a_spec_and_a_shape():
    assert layouts.refusal(GRID, P("x"), (8, 8)) is None
    kinds = [line.split(":")[0] for line in REFUSALS.splitlines()]
    assert kinds == ["ValueError", "DuplicateSpecError", "ValueError"]


def test_the_table_has_each_choice_once():
    for sizes, specs in layouts.SPECS.items():
        found = layouts.choices(sizes)
        assert len(set(found)) == len(found)
        assert {name for name, _ in found} == set(layouts.OPERATIONS)
        changes = {operands for name, operands in found if name == layouts.RESHARD}
        assert changes == set(itertools.product(specs, repeat=2))
        # A line is found by its layouts, so no two may be written alike.
        mesh = layouts.mesh_of(sizes, "Explicit")
        written = {str(layouts.plain_array(layouts.laid_out(mesh, spec))) for spec in specs}
        assert len(written) == len(specs)


def test_the_page_has_what_the_script_looks_for():
    script = (DOCS / "_static" / "layouts.js").read_text("utf8")
    page = (DOCS / "devices" / "layouts.md").read_text("utf8")
    for selector, written in {
        ".layout-placement": "\n:::{container} layout-placement\n",
        ".layout-communication": "\n:::{container} layout-communication\n",
        ".tag_layout-table": "\n:tags: [layout-table]\n",
        ".tag_layout-refusals": "\n:tags: [layout-refusals]\n",
        ".picture-placement": "\n:picture: placement\n",
    }.items():
        assert selector in script
        assert page.count(written) == 1


# The forms.

INKS = "".join(
    f"<div class='picture-placement'><svg style='--light:{n}'></svg></div>" for n in range(8)
)


REFUSALS = "\n".join(layouts.refusal(*each) for each in layouts.REFUSED)


def printed(rows):
    """Return what the page prints for the forms."""
    found = {"refusals": f"<pre>{html.escape(REFUSALS)}</pre>"}
    if rows:
        found["table"] = layouts.table(rows).data
    return "".join(
        f"<div class='tag_layout-{name}'><div class='output'>{each}</div></div>"
        for name, each in found.items()
    )


# Chooses as a reader does, and returns what the page then says.
CHOSEN = """cases => cases.map(({ names, sizes, shape, spec }) => {
  const form = document.querySelector(".layout-placement form");
  const fields = row => [...row.querySelectorAll("input, select")];
  const [mesh, array] = [...form.querySelectorAll("fieldset")]
    .map(group => [...group.querySelectorAll("div")].map(fields));
  mesh.forEach(([name, size], n) => {
    name.value = names[n] ?? "unused";
    size.value = sizes[n] ?? 0;
  });
  array.forEach(([length]) => { length.value = ""; });
  shape.forEach((length, n) => { array[n][0].value = length; });
  form.dispatchEvent(new Event("input", { bubbles: true }));
  spec.forEach((entry, n) => {
    array[n][1].value = [...array[n][1].options].find(option => option.text === entry).value;
  });
  form.dispatchEvent(new Event("input", { bubbles: true }));
  const place = document.querySelector(".layout-placement");
  const figure = place.querySelector("figure");
  const lines = figure.hidden ? [] : [...figure.querySelectorAll(".mesh tbody tr")];
  const cells = lines.map(line => [...line.querySelectorAll("td")]);
  const words = selector => [...figure.querySelectorAll(selector)].map(each => each.textContent);
  return {
    said: place.querySelector("output").textContent,
    code: place.querySelector("output code").textContent,
    mesh: cells.map(line => line.map(cell => +cell.textContent.match(/device (\\d)/)[1])),
    heads: [words("thead th"), words("tbody th")],
    held: cells.flat().map(cell => [
      cell.querySelector("code").textContent,
      cell.querySelector("svg").getAttribute("style"),
    ]),
    whole: words(".arrays g"),
  };
})"""


@pytest.fixture
def opened(browser):
    names = "_ext/executed/static/elements.js", "_static/layouts.js"
    script = "".join((DOCS / name).read_text("utf8") for name in names)
    places = "<div class='layout-placement'></div><div class='layout-communication'></div>"
    page = browser.new_page(reduced_motion="reduce")
    style = (DOCS / "_static" / "book.css").read_text("utf8")

    def open_with(rows):
        page.set_content(
            f"<style>{style}</style>{INKS}{places}{printed(rows)}<script>{script}</script>"
        )
        return page

    yield open_with
    page.close()


def entry(axes):
    return repr(axes).replace("'", '"') if axes else "None"


def cases(count):
    """Return choices of all kinds: (axes, sizes, shape, spec)."""
    chance = random.Random(0)
    for _ in range(count):
        names = chance.sample(["x", "y", "batch", "model_2"], chance.choice([1, 2, 2]))
        sizes = [chance.choice([1, 2, 2, 3, 4, 4, 8]) for _ in names]
        shape = [
            chance.choice([1, 4, 8, 8, 12, 16, 24, 30]) for _ in range(chance.choice([1, 2, 3]))
        ]
        both = [tuple(names), tuple(names[::-1])] if len(names) > 1 else []
        spec = [chance.choice([None, None, *names, *both]) for _ in shape]
        yield names, sizes, shape, spec


def asked(names, sizes, shape, spec):
    """Return (mesh, the part of each device, None), or (None, None, why JAX refuses)."""
    try:
        mesh = jax.make_mesh(tuple(sizes), tuple(names), devices=jax.devices("cpu"))
        sharding = jax.NamedSharding(mesh, P(*spec))
        x = jax.device_put(np.zeros(shape, np.float32), sharding)
    except (ValueError, DuplicateSpecError) as refusal:
        return None, None, f"{type(refusal).__name__}: {str(refusal).split(' Got shape')[0]}"
    held = sharding.devices_indices_map(x.shape)
    parts = [
        [part.indices(length)[:2] for part, length in zip(held[device], shape, strict=True)]
        for device in sorted(held, key=lambda device: device.id)
    ]
    return mesh, parts, None


def sliced(part, shape):
    sides = zip(part, shape, strict=True)
    return f"[{', '.join(':' if b - a == n else f'{a}:{b}' for (a, b), n in sides)}]"


def test_the_form_says_of_every_mesh_shape_and_spec_what_jax_says(opened):
    choices = list(cases(400))
    given = [
        {"names": n, "sizes": s, "shape": shape, "spec": [*map(entry, spec)]}
        for n, s, shape, spec in choices
    ]
    answers = opened([]).evaluate(CHOSEN, given)
    kinds = set()
    for (names, sizes, shape, spec), answer in zip(choices, answers, strict=True):
        mesh, parts, refusal = asked(names, sizes, shape, spec)
        if refusal:
            kinds.add(refusal[:20])
            assert refusal in answer["said"], (names, sizes, shape, spec)
            assert not answer["held"]
            continue
        slices = [sliced(part, shape) for part in parts]
        assert [text for text, _ in answer["held"]] == slices, (names, sizes, shape, spec)
        inks = [ink for _, ink in answer["held"]]
        assert [slices.index(one) for one in slices] == [inks.index(one) for one in inks]
        holders = [[n for n, one in enumerate(slices) if one == each] for each in slices]
        assert answer["whole"] == [*dict.fromkeys(" ".join(map(str, each)) for each in holders)]
        ids = np.vectorize(lambda device: device.id)(mesh.devices).reshape(sizes[0], -1)
        assert answer["mesh"] == ids.tolist()
        across, down = answer["heads"]
        assert down == [f"{names[0]} = {n}" for n in range(sizes[0])]
        assert across == [f"{name} = {n}" for name in names[1:] for n in range(sizes[1])]
        block = [stop - start for start, stop in parts[0]]
        number, unit = re.search(r"([\d.]+) (\w+) on each device", answer["said"]).groups()
        assert float(number) * UNITS[unit] == 4 * math.prod(block)
        assert f"({', '.join(map(str, block))}{',' * (len(block) == 1)})" in answer["said"]
    assert len(kinds) == 3


def test_the_code_that_the_form_shows_makes_the_layout(opened):
    chosen = [case for case in cases(60) if asked(*case)[1]]
    given = [
        {"names": n, "sizes": s, "shape": shape, "spec": [*map(entry, spec)]}
        for n, s, shape, spec in chosen
    ]
    for case, answer in zip(chosen, opened([]).evaluate(CHOSEN, given), strict=True):
        namespace = {"jax": jax, "x": np.zeros(case[2], np.float32)}
        exec(answer["code"], namespace)
        found = arrays.held_by_each(x=namespace["x"])["x"]["devices"]
        assert [*map(list, found.values())] == asked(*case)[1]


def test_shards_that_are_the_same_are_named(opened):
    grid = {"names": ["x", "y"], "sizes": [4, 2], "shape": [8, 8]}
    given = [grid | {"spec": spec} for spec in (['"x"', "None"], ["None", "None"], ['"x"', '"y"'])]
    pairs, replicated, sharded = opened([]).evaluate(CHOSEN, given)
    assert "4 different shards of (2, 8)" in pairs["said"]
    assert (
        "along y, so the same shard is on devices 0 and 1; 2 and 3; 4 and 5; 6 and 7."
        in pairs["said"]
    )
    assert "Each device holds the whole array" in replicated["said"]
    assert "same shard" not in replicated["said"] + sharded["said"]


@pytest.mark.parametrize("wrong", ["", "a b", "x"])
def test_names_that_are_no_names_are_asked_for_again(opened, wrong):
    page = opened([])
    page.get_by_label("axis 2").fill(wrong)
    output = page.locator(".layout-placement output")
    assert output.inner_text().startswith("Give each axis of the mesh a name of its own")
    assert page.locator(".layout-placement figure").is_hidden()
    page.get_by_label("axis 2").fill("model")
    page.get_by_label("along").nth(1).select_option(label='"model"')
    assert 'jax.P("x", "model")' in output.inner_text()


@pytest.mark.parametrize("wrong", ["", "0", "-3", "2.5"])
def test_lengths_that_are_no_lengths_are_asked_for_again(opened, wrong):
    page = opened([])
    page.get_by_label("length 0").fill(wrong)
    assert "whole numbers from 1 on" in page.locator(".layout-placement output").inner_text()


ROWS = [
    ("a + b", LINE, [P("x"), P("x")]),
    ("a @ b", LINE, [P("x"), P("x")]),
    ("a @ b", LINE, [P(None, "x"), P("x")]),
    ("a.sum(axis=0)", GRID, [P("x", "y")]),
    (layouts.RESHARD, GRID, [P("x"), P("y")]),
    (layouts.RESHARD, GRID, [P("y"), P(None, ("x", "y"))]),
]


def test_the_form_shows_the_line_of_what_is_chosen(opened):
    page = opened([layouts.row(*row) for row in ROWS])
    place = page.locator(".layout-communication")
    output = place.locator("output")
    # It begins with a choice that JAX accepts and that sends something, where it can on a grid.
    assert "all-reduce along x, among 4 devices" in output.inner_text()
    place.get_by_label("mesh").select_option(label="8")
    place.get_by_label("operation").select_option(label="a @ b")
    assert "all-gather along x, among 8 devices: each receives 3.5 MiB" in output.inner_text()
    assert "float32[1024@x,1024]" in output.inner_text()
    place.get_by_label("a", exact=True).select_option(label='P(None, "x")')
    said = output.inner_text()
    assert "With explicit axes JAX refuses. ShardingTypeError: Contracting dimensions" in said
    assert "all-reduce along x, among 8 devices: each receives 7 MiB" in said
    assert place.locator("figure .arrays > div").count() == 3
    place.get_by_label("operation").select_option(label="a + b")
    assert "nothing is sent" in output.inner_text()
    place.get_by_label("mesh").select_option(label="4 × 2")
    assert "all-reduce along x, among 4 devices: each receives 3 KiB" in output.inner_text()
    assert place.get_by_label("b", exact=True).is_hidden()
    for _ in range(3):
        place.get_by_role("button").click()
    assert place.locator(".mesh code").all_inner_texts() == ["[0:512]", "[512:1024]"] * 4
    place.get_by_label("operation").select_option(label=layouts.RESHARD)
    place.get_by_label("to").select_option(label='P("y", None)')
    assert "collective-permute along x and y: each receives 1 MiB" in output.inner_text()
    place.get_by_label("a", exact=True).select_option(label='P("y", None)')
    assert place.get_by_label("to").input_value() == 'P(None, ("x", "y"))'
    assert "all-to-all along y, among 2 devices: each receives 256 KiB" in output.inner_text()


# Chooses a row of the table, and returns each of its steps: what is said, and for each device from
# which devices it has shards, the slices, and towards which neighbours its frame is open.
PLAYED = """rows => rows.map(chosen => {
  const place = document.querySelector(".layout-communication");
  const selects = [...place.querySelectorAll("select")];
  for (const [n, value] of chosen.entries()) {
    selects[n].value = value;
    selects[n].dispatchEvent(new Event("input", { bubbles: true }));
  }
  const steps = [];
  do {
    const cells = [...place.querySelectorAll("tbody td")];
    steps.push({
      said: [...place.querySelectorAll(".steps p")].map(each => each.textContent),
      from: cells.map(cell => [...cell.querySelectorAll(".slots > b")]
        .map(b => b.firstChild?.data ?? "")),
      slices: cells.map(cell => [...cell.querySelectorAll("code")].map(code => code.textContent)),
      framed: cells.map(cell => cell.classList.contains("together")),
      open: cells.map(cell => ["up", "left"].filter(side => cell.classList.contains(side))),
    });
    place.querySelector("button").click();
  } while (!place.querySelector(".steps").textContent.includes("Step 1"));
  return steps;
})"""


def choice(row):
    """Return what is chosen for a row of the table."""
    specs = []
    for _, spec in row.plain["arrays"][:-1]:
        entries = [entry(axes[0] if len(axes) == 1 else tuple(axes)) for axes in spec]
        specs.append(f"P({', '.join(entries)})")
    return [row.mesh, row.operation, *specs]


def frames(step, columns):
    """Return the groups of devices that are in one frame."""
    found = {}
    for device, open_to in enumerate(step["open"]):
        before = [device - {"up": columns, "left": 1}[side] for side in open_to]
        found[device] = found[before[0]] if before else [device]
        assert all(found[each] is found[device] for each in before)
        if before:
            found[device].append(device)
    return sorted({id(group): group for group in found.values()}.values())


@pytest.mark.parametrize(
    ("sizes", "specs", "axes"),
    [(LINE, (P(), P("x")), "x"), (GRID, (P(), P("x")), "x"), (GRID, (P(), P("y")), "y")],
)
def test_a_frame_holds_the_devices_along_an_axis_of_the_mesh(opened, sizes, specs, axes):
    row = layouts.row("a @ b", sizes, specs)
    [(first, step, last)] = opened([row]).evaluate(PLAYED, [choice(row)])
    groups = along(layouts.mesh_of(sizes, "Auto"), axes)
    assert frames(step, sizes[1] if len(sizes) > 1 else 1) == groups
    assert all(step["framed"]) and not any(first["framed"] + last["framed"])
    for group in groups:
        assert all(step["from"][device] == [*map(str, group)] for device in group)


def held_numbers(mesh, spec):
    """Return which of 64 numbers each device holds, as JAX lays them out."""
    held = jax.NamedSharding(mesh, spec).devices_indices_map((8, 8))
    return {device.id: {*np.arange(64).reshape(8, 8)[part].flat} for device, part in held.items()}


def test_shards_come_from_devices_that_held_them(opened):
    mesh, rows, held = layouts.mesh_of(GRID, "Explicit"), [], []
    for specs in itertools.product(layouts.SPECS[GRID], repeat=2):
        row = layouts.row(layouts.RESHARD, GRID, specs)
        if len(row.plain["sent"]) == 1:
            rows.append(row)
            held.append([held_numbers(mesh, spec) for spec in specs])
    played = opened(rows).evaluate(PLAYED, [*map(choice, rows)])
    kinds = set()
    for row, (before, after), (_, step, _) in zip(rows, held, played, strict=True):
        [[kind, *_]] = row.plain["sent"]
        kinds.add(kind)
        assert step["said"][0].startswith(f"Step 2 of 3: {kind} along ")
        for device, sources in enumerate(step["from"]):
            assert after[device] <= set().union(*(before[int(source)] for source in sources)), row
            assert step["framed"][device] == (sources != [str(device)])
    assert kinds == {"all-gather", "all-to-all", "collective-permute"}


def test_the_steps_count_what_is_sent(opened):
    rows = [layouts.row("a @ b", LINE, [P(None, "x"), P("x")]), layouts.row("a.T", GRID, [P("x")])]
    summed, nothing = opened(rows).evaluate(PLAYED, [*map(choice, rows)])
    counted = [step["said"][1].removeprefix("Received per device: ") for step in summed]
    assert counted == [f"{each} of 7 MiB" for each in ("0 bytes", "3.5 MiB", "7 MiB", "7 MiB")]
    # Each device adds up another part of the sum, and then has all of them.
    for device, parts in enumerate(summed[1]["from"]):
        assert parts == ["Σ" if n == device else "" for n in range(8)]
    assert summed[2]["from"] == [["Σ"] * 8] * 8
    assert [step["said"][1] for step in nothing] == ["Nothing is sent"] * 2
    assert [each["slices"][2] for each in nothing] == [["[256:512, :]"], ["[:, 256:512]"]]


def test_shards_move_unless_motion_is_not_wanted(opened):
    page = opened([layouts.row("a + b", LINE, [P("x"), P(None, "x")])])
    button = page.locator(".layout-communication button")
    count = page.locator(".layout-communication .steps p").nth(1)
    moving = "() => document.getAnimations().length"
    button.press("Enter")
    assert page.evaluate(moving) == 0
    assert count.inner_text() == "Received per device: 448 KiB of 448 KiB"
    assert page.evaluate("() => document.activeElement.textContent") == "Next step"
    button.press("Enter")
    assert button.inner_text() == "From the start"
    page.emulate_media(reduced_motion="no-preference")
    button.press("Enter")
    # Each lies on the shard that it comes from, and then they arrive in turn.
    away = page.evaluate("""() => {
      document.querySelector(".layout-communication button").click();
      const all = document.getAnimations();
      const places = time => {
        for (const each of all) each.pause();
        for (const each of all) each.currentTime = time;
        const targets = all.map(({ effect }) => effect.target);
        return new Map(targets.map(target => [target, target.getBoundingClientRect()]));
      };
      const [rest, first] = [places(1e6), places(0)];
      return [...first].map(([target, { x, y }]) => {
        const source = rest.get(document.querySelector(`[data-at="${target.dataset.from}"]`));
        return [target.dataset.from, Math.max(Math.abs(x - source.x), Math.abs(y - source.y))];
      });
    }""")
    assert len(dict(away)) == len(away) == 64 and max(dict(away).values()) < 1
    assert count.inner_text() == "Received per device: 0 bytes of 448 KiB"
    for place in range(1, 8):
        page.evaluate(f"""() => document.getAnimations()
          .filter(each => each.effect.target.dataset.round === "{place}")
          .map(each => each.finish())""")
        page.get_by_text(f"Received per device: {64 * place} KiB of 448 KiB").wait_for()


def test_without_a_table_the_words_of_the_page_stay(opened):
    page = opened([])
    # A table of earlier code says nothing to the form.
    page.set_content(page.content() + "<div class='tag_layout-table'><table></table></div>")
    assert page.locator(".layout-communication form").count() == 0
    assert page.locator(".layout-placement form").count() == 1
