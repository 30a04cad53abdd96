"""A pasted log says which functions JAX traced again, and why: logs of six versions of JAX.

`make_logs.py` made the logs, a case for each cause. Cases of "development" may be looked at to
make the reader better. Those that are "held" are only measured.
"""

import collections
import html
import json
import pathlib
import re

import pytest

from tests.pitfalls.make_logs import CASES

ROOT = pathlib.Path(__file__).parents[2]
LOGS = {
    path.stem.removeprefix("jax-"): json.loads(path.read_text("utf8"))
    for path in sorted(pathlib.Path(__file__).with_name("logs").glob("*.json"))
}
SCRIPTS = "docs/_ext/executed/static/elements.js", "docs/_static/logs.js"
SCRIPT = "".join((ROOT / name).read_text("utf8") for name in SCRIPTS)
PAGE = (ROOT / "docs" / "tracing" / "retracing.md").read_text("utf8")
# What the table calls each cause of a case.
WORDS = {
    "alike": "no array: a static argument, or the function object",
    "committed": "committed or not",
    "device": "the device",
    "dtype": "a dtype",
    "function": "the function object",
    "cleared": "the function object",
    "layout": "the layout on a mesh",
    "mesh": "the mesh",
    "metadata": "the metadata of a pytree",
    "names": "by position or by name",
    "none": "None or a value",
    "number": "a number where an array comes back",
    "off": "an array that was on no mesh before",
    "other": "a shape, a dtype or a weak type",
    "setting": "a setting",
    "shape": "a shape",
    "static": "a static argument",
    "structure": "the structure of a pytree",
    "unexplained": "a static argument or the metadata of a pytree",
    "weak": "a weak type",
}
# What no case has: tests below have it.
ELSE = {
    "kept": "a function in the metadata of a pytree",
    "nnx": "a static attribute of an NNX module",
    "outside": "an operation without jit",
    "unsaid": "something that this log doesn't say",
}
# JAX 0.4.31 has one explanation for all changes of a pytree, and does not say which. From 0.11 on
# there is none for a static argument.
COARSER = {
    "0.4.31": {"none": "structure", "metadata": "structure"},
    "0.11.2": {"static": "unexplained"},
    "0.12.0.1": {"static": "unexplained"},
}
# In some cases JAX says less, or compares with a call that differs in something else as well.
COARSER_IN = {
    ("0.9.2", "metadata"): {"metadata": "unexplained"},
    ("0.10.2", "metadata"): {"metadata": "unexplained"},
    ("0.11.2", "metadata"): {"metadata": "unexplained"},
    ("0.12.0.1", "metadata"): {"metadata": "unexplained"},
    ("0.11.2", "several"): {"static": "shape"},
    ("0.12.0.1", "several"): {"static": "shape"},
}


def table():
    """Return the table of causes of the page, as HTML."""
    rows = re.findall(r"^\| (`.*) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)

    def cell(text):
        code = re.sub("`(.*?)`", lambda found: f"<code>{html.escape(found[1])}</code>", text)
        return f"<td>{code}</td>"

    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    table = f"<div class='log-causes'><table><tbody>{body}</tbody></table></div>"
    return f"<div class='log-field'></div>{table}"


# Pastes a text into the field, and returns what the page says of it.
PASTED = """text => {
  const field = document.querySelector("textarea");
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  const reader = document.querySelector(".log-reader");
  const functions = [...reader.querySelectorAll("ol > li")].map(entry => [
    entry.querySelector("p code").textContent,
    [...entry.querySelectorAll("ul > li")].map(
      reason => [reason.querySelector("b").textContent, reason.textContent]),
  ]);
  const fold = reader.querySelector("details pre");
  const unknown = fold ? fold.textContent : "";
  return { functions, unknown, said: reader.querySelector("output").innerText };
}"""


@pytest.fixture(scope="module")
def reader(browser):
    """Return a function that pastes a text and returns what the page says of it.

    That is a dictionary {function: {cause: times}}, the lines that it does not know, and the text.
    """
    page = browser.new_page()
    page.set_content(f"{table()}<script>{SCRIPT}</script>")

    def said(text):
        answer = page.evaluate(PASTED, text)
        functions = {}
        for function, reasons in answer["functions"]:
            causes = functions.setdefault(function, {})
            for what, times in reasons:
                causes[what] = causes.get(what, 0) + int(times.split()[0])
        return functions, answer["unknown"].splitlines(), answer["said"]

    return said


def wanted(name, version):
    """Return what the reader must say of a case: {function: {cause: times}}."""
    coarser = COARSER.get(version, {}) | COARSER_IN.get((version, name), {})
    found = {}
    for function, causes in CASES[name]["expected"].items():
        for cause, number in causes.items():
            times = found.setdefault(function, collections.Counter())
            times[WORDS[coarser.get(cause, cause)]] += number
    return found


def cases(part):
    """Return (version, name) of the cases of a part that a version can have."""
    return [
        (version, name)
        for version, logs in LOGS.items()
        for name, case in CASES.items()
        if case["part"] == part and logs[name]
    ]


@pytest.mark.parametrize(("version", "name"), cases("development"))
def test_a_log_names_the_functions_and_the_causes(reader, version, name):
    functions, unknown, _ = reader(LOGS[version][name])
    assert functions == wanted(name, version)
    assert unknown == []


@pytest.mark.parametrize("version", LOGS)
def test_most_of_the_logs_that_are_held_back_are_understood(reader, version):
    held = [name for each, name in cases("held") if each == version]
    right = [reader(LOGS[version][name])[0] == wanted(name, version) for name in held]
    assert len(held) >= 18
    assert sum(right) >= 0.95 * len(held)


def test_the_cases_have_every_cause_in_both_parts():
    for part in ("development", "held"):
        cases_of_part = [case for case in CASES.values() if case["part"] == part]
        functions = [causes for case in cases_of_part for causes in case["expected"].values()]
        assert {cause for causes in functions for cause in causes} == set(WORDS) - {"unexplained"}


def test_every_cause_leads_to_a_section_that_exists():
    rows = re.findall(r"^\| `.*` \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    headings = [
        "-".join(re.findall(r"[a-z0-9]+", heading.lower()))
        for heading in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    ]
    links = [link for row in rows for link in re.findall(r"\]\(#([\w-]+)\)", row)]
    assert len(rows) == len({*WORDS.values(), *ELSE.values()}) + 1
    assert set(links) <= set(headings)
    assert all("](" in row for row in rows if not row.startswith("nothing"))


def test_the_link_of_a_cause_comes_with_it(reader):
    link = re.search(r"\| a shape \| \[(.*?)\]", PAGE)[1]
    assert link in reader(LOGS["0.10.2"]["last_batch"])[2]


def test_a_line_that_nothing_is_known_of_is_said_to_be_unknown(reader):
    log = LOGS["0.10.2"]["four_lengths"].splitlines()
    functions, unknown, said = reader("\n".join([*log[:8], "step 3, loss 0.25", *log[8:]]))
    assert functions == wanted("four_lengths", "0.10.2")
    assert unknown == ["step 3, loss 0.25"]
    assert "1 line is unknown to this page" in said


def test_a_reason_that_is_not_in_the_table_is_shown_as_it_is(reader):
    log = LOGS["0.10.2"]["last_batch"]
    strange = log.replace("now f32[5,3] and before f32[8,3]", "the moon has another phase")
    functions, _, said = reader(strange)
    assert functions == {"train_step": {"a reason not in the table": 1}}
    assert "at batch, the moon has another phase" in said


def test_a_function_in_a_pytree_is_told_from_other_metadata(reader):
    log = LOGS["0.10.2"]["last_batch"]
    partial = "<class 'jax.tree_util.Partial'> with pytree metadata <function f.<lambda> at 0x7f"
    new = log.replace(
        "now f32[5,3] and before f32[8,3]", f"now {partial}01> and before {partial}02>"
    )
    assert reader(new)[0] == {"train_step": {ELSE["kept"]: 1}}


def test_a_text_that_is_no_log_names_no_function(reader):
    functions, unknown, said = reader("Epoch 1\nloss 0.3")
    assert functions == {}
    assert unknown == ["Epoch 1", "loss 0.3"]
    assert "no cache miss" in said


def test_an_error_is_sent_to_the_list_of_errors(reader):
    said = str(reader("Traceback (most recent call last):\nTypeError: Pred must be a scalar"))
    assert "There is an error in it. What does it mean?" in said
    assert "What does it mean?" not in str(reader("nothing that is an error"))


def test_an_empty_field_says_nothing(reader):
    reader(LOGS["0.10.2"]["last_batch"])
    assert reader("")[2] == ""


def test_a_good_program_is_told_so(reader):
    assert "Nothing was traced again" in reader(LOGS["0.9.2"]["nothing_wrong"])[2]


LOG = """\
TRACING CACHE MISS at train.py:9:4 (main):
  never seen function:
    step id=1 defined at train.py:3
Finished tracing step for jit in 0.125 sec
Compiling jit(step) with global shapes and types (ShapedArray(float32[3]),). \
Argument mapping: (UnspecifiedValue,).
Finished jaxpr to MLIR module conversion jit(step) in 0.25 sec
Finished XLA compilation of jit(step) in 4.0 sec
TRACING CACHE MISS at train.py:9:4 (main):
  for step defined at train.py:3
  all previously seen cache keys differ. For the closest previous key:
  different input types:
  * at x, now f32[2] and before f32[3]
Finished tracing step for jit in 0.5 sec
Compiling jit(step) with global shapes and types (ShapedArray(float32[2]),). \
Argument mapping: (UnspecifiedValue,).
Finished jaxpr to MLIR module conversion jit(step) in 0.25 sec
Finished XLA compilation of jit(step) in 1.5 sec
"""


def labelled(log, label):
    """Return a log with a label before each line; `{}` is the number of the line."""
    return "".join(label.format(n) + line for n, line in enumerate(log.splitlines(True), 100))


@pytest.mark.parametrize(
    "label",
    [
        "0: ",
        "worker-1  | ",
        "[pod/train-0/main] ",
        "2026-11-27T14:22:33.000{}Z ",
        "[pod/train-0/main] 2026-11-27T14:22:33.{}Z ",
        "Nov 27 14:22:33 ",
    ],
)
@pytest.mark.parametrize("name", ["last_batch", "four_lengths", "images", "body_of_a_scan"])
def test_what_a_launcher_writes_before_each_line_does_not_matter(reader, label, name):
    functions, unknown, said = reader(labelled(LOGS["0.12.0.1"][name], label))
    assert functions == wanted(name, "0.12.0.1")
    assert not unknown and "processes" not in said


def test_of_several_processes_the_first_is_read(reader):
    ours, theirs = (labelled(LOG, f"{rank}: ").splitlines() for rank in (0, 1))
    mixed = "\n".join(line for both in zip(ours, theirs, strict=True) for line in both)
    functions, unknown, said = reader(mixed)
    assert functions == {"step": {"a shape": 1}}
    assert "2 processes" in said and not unknown


# Where the second message is written into the first: in the name, and in the reason.
@pytest.mark.parametrize(
    ("last", "kept"), [("    _per_ra", 0), ("    _per_rank id=2 defined at fit.py:4\n  but se", 1)]
)
@pytest.mark.parametrize("prefix", ["", "2026-05-03 03:33:2{} jax._src.pjit WARNING: "])
def test_a_truncated_line_is_blamed_on_no_function(reader, last, kept, prefix):
    head = f"{prefix}TRACING CACHE MISS at fit.py:9:4 (main):\n  never seen function:\n"
    heads = [head.format(second) for second in range(4)]
    whole = [f"{head}    _per_rank id=1 defined at fit.py:4\n" for head in heads]
    functions, unknown, said = reader(whole[0] + heads[1] + last + whole[2] + whole[3])
    assert functions == {"_per_rank": {"the function object": 2 + kept}}
    assert ("1 entry is cut off" in said) == (not kept)
    assert not unknown


def test_operations_outside_of_jit_are_counted_by_the_line_that_ran_them(reader):
    log = LOGS["0.4.31"]["operations_without_jit"]
    line = max(re.findall(r"MISS at (\S+?:\d+):", log), key=log.count)
    said = reader(log)[2]
    assert re.search(rf"{re.escape(line)} ran \d outside of jit", said)
    assert "under jit" in said and "does not name" not in said


@pytest.mark.parametrize("version", ["0.10.2", "0.12.0.1"])
def test_where_the_log_names_no_line_the_operations_are_named(reader, version):
    said = reader(LOGS[version]["operations_without_jit"])[2]
    assert "This log does not name their lines" in said and "no_tracing" in said
    assert "_flip 2 ×" in said and "_per_rank 3" not in said


@pytest.mark.parametrize("version", ["0.10.2", "0.12.0.1"])
def test_the_static_attribute_of_a_module_that_changes_is_shown(reader, version):
    log = (ROOT / "tests" / "pitfalls" / "logs" / f"nnx-{version}.txt").read_text("utf8")
    functions, unknown, said = reader(log)
    assert functions == {"forward": {ELSE["nnx"]: 2}}
    assert "'calls', Static(value=1)" in said and "'calls', Static(value=0)" in said
    assert not unknown and max(map(len, said.splitlines())) < 400


def test_what_scan_compiles_belongs_to_its_body(reader):
    said = reader(LOGS["0.12.0.1"]["body_of_a_scan"])[2]
    assert "all but the first took" in said and "no times" not in said and "scan " not in said


def test_a_log_without_reasons_tells_what_was_compiled_again(reader):
    said = reader(LOGS["0.12.0.1"]["solver_that_captures"])[2]
    assert "no cache miss" not in said and "JAX_EXPLAIN_CACHE_MISSES=1" in said
    assert "compiled again, arguments as before: ()" in said
    bare = "\n".join(line for line in LOG.splitlines() if line.startswith("Finished"))
    functions, unknown, said = reader(bare)
    assert functions == {"step": {ELSE["unsaid"]: 1}} and not unknown
    assert "traced 2 times, all but the first took 2.25 s" in said


ERROR = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
ValueError: Incompatible shapes for broadcasting: (3,) and (4,)
"""


@pytest.mark.parametrize("text", [ERROR, ERROR.splitlines()[-1], LOG + ERROR])
def test_an_error_is_sent_to_the_box_for_errors(reader, text):
    assert "There is an error in it. What does it mean?" in reader(text)[2]
    assert "There is an error" not in reader(LOG)[2]


def test_the_cost_is_that_of_all_but_the_first(reader):
    assert "all but the first took 2.25 s" in reader(LOG)[2]


def test_a_log_without_times_says_how_to_get_them(reader):
    short = "\n".join(line for line in LOG.splitlines() if not line.startswith(("Fin", "Com")))
    assert "JAX_LOG_COMPILES=1" in reader(short)[2]
    assert "JAX_LOG_COMPILES=1" not in reader(LOG)[2]


def test_the_time_of_tracing_alone_is_read_from_the_explanation(reader):
    said = reader(LOGS["0.6.2"]["last_batch"])[2]
    spent = re.findall(r"costing ([\d.]+) ms", LOGS["0.6.2"]["last_batch"])[1]
    assert f"took {float(spent):#.3g} ms" in said


def test_colours_and_line_ends_of_a_terminal_do_not_matter(reader):
    coloured = LOG.replace("TRACING", "\x1b[33mTRACING").replace("\n", "\x1b[0m\r\n")
    assert reader(coloured)[0] == {"step": {"a shape": 1}}


@pytest.mark.parametrize(
    ("closest", "cause"),
    [("'tree'", "the structure of a pytree"), ("'x'", "by position or by name")],
)
def test_before_0_6_names_that_are_the_same_mean_another_structure(reader, closest, cause):
    log = f"""\
TRACING CACHE MISS at train.py:9:4 (main) because:
  for main.<locals>.step defined at train.py:3
  never seen passing 0 positional args and 1 keyword args with keys:
    'tree'
  closest seen passes 1 keyword args with keys:
    {closest}
"""
    assert reader(log)[0] == {"step": {cause: 1}}


def test_two_functions_of_one_name_are_kept_apart(reader):
    other = LOG.replace("train.py:3", "model.py:7").replace("id=1", "id=2")
    said = reader(LOG + other)[2]
    assert "train.py:3" in said and "model.py:7" in said
    assert said.count("traced 2 times") == 2


def test_what_is_pasted_is_text_and_no_markup(reader):
    functions, unknown, _ = reader("<b>bold</b>\n" + LOG.replace("step", "<img src=x>"))
    assert functions == {"<img src=x>": {"a shape": 1}}
    assert unknown == ["<b>bold</b>"]


def test_what_a_package_has_wrapped_is_named_by_the_line_that_called_it(reader):
    *_, said = reader(
        "TRACING CACHE MISS at train.py:20:8 (main) because:\n"
        "  never seen function:\n"
        "    step id=140 defined at /env/lib/python3.12/site-packages/equinox/_jit.py:43\n"
        "TRACING CACHE MISS at train.py:20:8 (main) because:\n"
        "  for step id=140 defined at /env/lib/python3.12/site-packages/equinox/_jit.py:43\n"
        "  * at x, now f32[5] and before f32[8]\n"
    )
    assert "step (train.py:20): traced 2 times" in said
    assert "equinox" not in said
