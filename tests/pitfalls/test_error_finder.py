"""A pasted message finds its entry, or hears that it is not sure: messages from public issues.

`messages.json` names the issue that each is from, and the entries that are right, none where the
list has nothing; they were chosen before the ranking saw the message. Those for development may be
looked at. The others are only counted: whoever looks at which of them are wrong moves all of them
to development, and collects new ones.
"""

import inspect
import itertools
import json
import re

import jax
import jax.numpy as jnp
import pytest
from docutils import nodes

from snippets.appendix.years import in_order
from tests.book.test_errors import ENTRIES
from tests.pitfalls import finder, make_habits
from tests.pitfalls.finder import EARLIER, FRESH, MESSAGES, QUOTED, RECENT, is_right

NOTHING = [
    "hello",
    "make: *** [all] Error 2",
    "KeyError: 'weights'",
    "ModuleNotFoundError: No module named 'flax'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    "ImportError: cannot import name 'Foo' from 'bar'",
    "RuntimeWarning: overflow encountered in exp",
    "AssertionError",
    "IndexError: list index out of range",
    "NameError: name 'params' is not defined",
    "INFO:werkzeug:Press CTRL+C to quit",
]


@pytest.fixture(scope="module")
def pasted(browser):
    """Return a function that pastes a text, once, and returns what is said and the entries."""
    return finder.finder(browser)


def counted(messages, pasted):
    """Return {issue: row} of what is wrong and not doubted, and the issues whose row is missing."""
    wrong, missing = {}, []
    for message in messages:
        found = pasted(message["text"])
        if found["rows"] and not found["said"] and not is_right(message, found["rows"][0]):
            wrong[message["from"]] = found["rows"][0]
        if message["rows"] and not any(is_right(message, each) for each in found["rows"]):
            missing.append(message["from"])
    return wrong, missing


@pytest.mark.parametrize("half, names", [("development", True), ("held back", False)])
def test_a_wrong_row_is_doubted_and_the_right_one_is_offered(pasted, half, names):
    messages = MESSAGES[half]
    listed = [message for message in messages if message["rows"]]
    wrong, missing = counted(messages, pasted)
    shown = f": {wrong}, {missing}" if names else ""
    assert len(wrong) <= 0.05 * len(messages), f"{len(wrong)} of {len(messages)}{shown}"
    assert len(missing) <= 0.15 * len(listed), f"{len(missing)} of {len(listed)}{shown}"


@pytest.mark.parametrize("half", MESSAGES)
def test_most_messages_that_are_listed_find_their_row_without_a_doubt(pasted, half):
    listed = [message for message in MESSAGES[half] if message["rows"]]
    found = [(message, pasted(message["text"])) for message in listed]
    sure = sum(
        not got["said"] and any(is_right(message, each) for each in got["rows"][:1])
        for message, got in found
    )
    assert sure >= 0.6 * len(listed), f"{sure} of {len(listed)}"


def test_there_are_enough_messages_and_each_is_from_another_issue():
    sources = [each["from"] for half in MESSAGES.values() for each in half]
    assert len(set(sources)) == len(sources) >= 200
    assert len(MESSAGES["held back"]) >= 100
    unlisted = [each for each in MESSAGES["held back"] + RECENT["counted"] if not each["rows"]]
    assert len(unlisted) >= 20


def test_most_recent_messages_find_their_entry_and_none_another_without_a_doubt(pasted):
    found = finder.counts(RECENT["development"], pasted)
    number = len(RECENT["development"])
    shown = {what: [each["from"] for each in found[what]] for what in found if what != "first"}
    assert len(found["first"]) >= 0.85 * number, shown
    assert len(found["first"]) + len(found["offered"]) >= 0.95 * number, shown
    assert not found["wrong"], shown


def test_of_fresh_messages_two_thirds_find_their_entry_and_none_another_without_a_doubt(pasted):
    listed = finder.listed(FRESH["development"])
    found = finder.counts(listed, pasted)
    shown = {what: [each["from"] for each in found[what]] for what in found if what != "first"}
    assert len(found["first"]) >= 0.65 * len(listed), shown
    assert not finder.counts(FRESH["development"], pasted)["wrong"]


def test_nine_of_ten_fresh_messages_are_told_something_or_find_their_entry(pasted):
    messages = FRESH["development"]
    answers = {message["from"]: (message, pasted(message["text"])) for message in messages}
    bare = [
        name
        for name, (message, found) in answers.items()
        if not found["known"] and not any(is_right(message, row) for row in found["rows"])
    ]
    assert len(bare) <= 0.1 * len(messages), bare


def test_recent_messages_are_of_threads_that_nobody_tuned_to_before():
    halves = [*RECENT.values(), *FRESH.values()]
    sources = [each["from"] for half in halves for each in half]
    earlier = {each["from"] for half in MESSAGES.values() for each in half}
    assert len(set(sources)) == len(sources) and not earlier & {*sources}
    assert len(RECENT["development"]) == len(RECENT["counted"]) == 40
    assert all(each["when"] >= "2025" for half in halves for each in half)


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_message_of_the_book_finds_nothing_without_a_doubt(pasted, text):
    found = pasted(text)
    assert found["said"].startswith("Not sure:" if found["rows"] else "This list has nothing like")
    assert found["said"].endswith("Search JAX's issues.")


def test_rows_that_are_close_are_offered_together(pasted):
    found = pasted("NameError: unbound axis name: i")
    assert found["said"] == "It may be one of these. "
    assert {each.partition(": ")[2][:7] for each in found["rows"][:2]} == {"Found a", "unbound"}


def test_what_is_quoted_is_found(pasted):
    for row, quotes in QUOTED.items():
        for quote in quotes:
            assert row in pasted(quote.text)["rows"], quote


def test_every_message_names_its_issue_and_an_entry_that_exists():
    entries = [f"{kind}: {words}" for kind, words in ENTRIES]
    for message in itertools.chain(*MESSAGES.values(), *RECENT.values(), *FRESH.values()):
        assert "#" in message["from"]
        for words in message["rows"]:
            assert any(each.startswith(words) for each in entries), words


@pytest.mark.parametrize("begins", EARLIER)
def test_what_older_versions_said_belongs_to_one_entry(begins):
    assert sum(f"{kind}: {words}".startswith(begins) for kind, words in ENTRIES) == 1


@pytest.mark.parametrize("kind", ["InconclusiveDimensionOperation", "UnexpectedTracerError"])
def test_a_class_is_found_by_its_name_alone(pasted, kind):
    found = pasted(f"{kind}                 Traceback (most recent call last)")
    assert found["rows"][0].startswith(f"{kind}: ")


def test_the_line_that_raises_an_error_is_not_taken_for_the_error(pasted):
    row = "IndexError: … Got slice(None"
    message = (
        "Array slice indices must have static start/stop/step to be used with NumPy indexing "
        "syntax. Got slice(None, JitTracer(int32[]), None) at position 0."
    )
    line = f"IndexError: {message}"
    found = pasted(line)
    assert (found["said"], found["rows"][0]) == ("", row)
    assert pasted(f"in validate_slices\n    raise IndexError(msg)\n{line}") == found
    assert pasted(f"raise jax.errors.IndexError('{message}')")["rows"][0] == row


def test_frames_before_an_error_change_nothing(pasted):
    frames = (
        "ValueError          Traceback (most recent call last)\n      raise RuntimeError(msg)\n"
    )
    texts = [quotes[0].text for quotes in QUOTED.values()]
    texts = [text for text in texts if re.match(r"\w+(?:Error|Warning): ", text)]
    same = [pasted(frames + text)["rows"][:1] == pasted(text)["rows"][:1] for text in texts]
    assert len(texts) > 30 and sum(same) == len(same)


def test_a_message_that_is_worded_as_a_heading_is_not_doubted(pasted):
    for text in (
        "AttributeError: module 'flax.nnx' has no attribute 'Quux'",
        "ShardingTypeError: sharding rule for quux is not implemented. Nobody has said the rest.",
    ):
        assert pasted(text)["rows"] and not pasted(text)["said"], text


CARRY = "scan body function carry input and carry output must have equal types, but they differ:"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (
            f"TypeError: {CARRY}\n\nThe input carry c has type float32[2]{{V:replicas}} but the "
            "corresponding output carry component has type float32[2], so the manual axis types do "
            "not match.\n\nRevise the function so that all output types match the input types.",
            "so the manual axis types",
        ),
        (
            f"TypeError: {CARRY}\n\nThe input carry c has type float32[2]{{V:replicas}} but the "
            "corresponding output carry component has type float32[2], so the varying manual axes "
            "do not match.",
            "so the manual axis types",
        ),
        (
            "TypeError: Abstract value passed to `bool`, which requires a concrete value. The "
            "function to be transformed can't be traced at the required level of abstraction.",
            "TracerBoolConversionError",
        ),
        (
            "TypeError: list indices must be integers or slices, not BatchTracer",
            "TracerIntegerConversionError",
        ),
        ("flax.errors.InvalidRngError: rngs should be of type KeyArray", "InvalidRngError"),
        *(
            (
                f"ValueError: For primitive {name}, context mesh AbstractMesh('i': 4, axis_types="
                "(Explicit,), device_kind=cpu, num_cores=None) should match the aval mesh "
                "AbstractMesh('i': 8, axis_types=(Explicit,), device_kind=cpu, num_cores=None) "
                "for shape float32[8@i]. This error occurs at source: a.py:7:11 (f)",
                "should match the aval mesh",
            )
            for name in ("dot_general", "dynamic_slice", "sub")
        ),
        (
            "ValueError: Custom node type mismatch: expected type: <class 'flax.nnx.variablelib."
            "Param'>, value: JitTracer(float32[2,1]).",
            "different types at key path",
        ),
        (
            "Closed-over constant <class 'jaxlib._jax.ArrayImpl'>: f32[300,10] in step at a.py:7",
            "constants were captured",
        ),
        (
            "XlaRuntimeError: INTERNAL: Generated function failed: CpuCallback error: OSError: no",
            "CpuCallback error",
        ),
        (
            '  File "/x/site-packages/jax/_src/callback.py", line 98, in pure_callback_impl\n'
            "    return tree_util.tree_map(np.asarray, callback(*args))\n"
            "  File \"/x/sim.py\", line 31, in host\n    return table['mass']\nKeyError: 'mass'",
            "CpuCallback error",
        ),
        (
            "2026-04-02 10:11:40.33: F external/xla/xla/pjrt/distributed/client.h:77] Terminating "
            "process because the JAX distributed service detected fatal errors. absl::Status: "
            "DEADLINE_EXCEEDED: Failed to connect to coordination service\n"
            "    @     0x7f2 xla::CoordinationServiceAgent::SetError()",
            "coordination service",
        ),
    ],
)
def test_words_of_older_versions_and_of_special_cases_are_told_from_others(pasted, text, row):
    found = pasted(text)
    assert not found["said"] and row in found["rows"][0]


def test_an_error_of_numpy_that_begins_like_one_of_an_entry_is_doubted(pasted):
    text = "ValueError: setting an array element with a sequence. The requested array has an "
    found = pasted(f"{text}inhomogeneous shape after 1 dimensions.")
    assert "of NumPy itself" in found["known"][0] and found["said"].startswith("Not sure")


@pytest.mark.parametrize(
    ("before", "message", "row"),
    [
        (
            "RuntimeError: ",
            "ABORTED: The TPU is already in use by process with pid 7.",
            "in use by",
        ),
        ("I0420 10:15:02 xla_bridge.py:841] ", "INTERNAL: Failed to open libtpu.so", "libtpu"),
        (
            "INFO:2026-04-20:jax._src.xla_bridge:841: ",
            "INTERNAL: Failed to open libtpu.so",
            "libtpu",
        ),
    ],
)
def test_a_tpu_that_is_taken_and_one_that_is_not_there_are_told_apart(pasted, before, message, row):
    found = pasted(f"{before}Unable to initialize backend 'tpu': {message}")
    assert not found["said"] and row in found["rows"][0]


@pytest.mark.parametrize(
    ("text", "row", "known"),
    [
        ("AttributeError: module 'jax' has no attribute 'tree_map'", "'jax' has", "JAX 0.6.0. JAX"),
        ("AttributeError: module 'jax.core' has no attribute 'Shape'", "'jax.core'", "tuple[int"),
        ("AttributeError: module 'jax' has no attribute 'set_mesh'", "'jax' has", "JAX 0.7.2 has"),
        ("ImportError: cannot import name 'linear_util' from 'jax' (/a.py)", "import", "0.4.24"),
        ("ImportError: cannot import name 'api' from 'jax._src' (/a.py)", "import", "is private"),
        ("ImportError: cannot import name 'nothing' from 'jax' (/a.py)", "import", "No version"),
        ("ModuleNotFoundError: No module named 'jax.experimental.maps'", "jax.config", "0.4.31"),
        ("ImportError: cannot import name 'maps' from 'jax.experimental'", "import", "0.4.31"),
        ("ImportError: cannot import name 'f' from 'jax.extend.core'", "import", "went before"),
        (
            "AttributeError: module 'jax.interpreters.xla' has no attribute 'DeviceArray'",
            "'jax' has",
            "0.4.11",
        ),
        ("AttributeError: module 'jax' has no attribute 'array_ref'", "'jax' has", "after JAX 0.4"),
        ("ModuleNotFoundError: No module named 'jaxlib.xla_extension'", "jax.config", "JAX 0.6.2"),
        ("ModuleNotFoundError: No module named 'jax.ffi'", "jax.config", "newer than your JAX"),
        ("TypeError: clip() got an unexpected keyword argument 'a_max'", "clip()", "max=…"),
        ("TypeError: shard_map() got an unexpected keyword argument 'check_rep'", "clip()", "vma"),
        ("TypeError: make_mesh() got an unexpected keyword argument 'axis_shapes'", "clip()", "_s"),
        ("ModuleNotFoundError: No module named 'jax.memory'", "jax.config", "came after JAX 0.4"),
        (
            "ModuleNotFoundError: No module named 'jax.lib.xla_client'",
            "jax.config",
            "client is gone",
        ),
        (
            "TypeError: broadcast() got an unexpected keyword argument 'sharding'",
            "clip()",
            "JAX 0.4.38 has it, but JAX 0.4.31 and JAX 0.5.3 don't",
        ),
    ],
)
def test_a_name_of_another_version_is_told_since_when_and_what_to_write(pasted, text, row, known):
    found = pasted(text)
    assert not found["said"] and row in found["rows"][0]
    assert known in " ".join(found["known"])


def test_who_asks_for_what_is_gone_is_named(pasted):
    frame = '  File "/x/site-packages/numpyro/ops/provenance.py", line 6, in <module>\n'
    error = "ImportError: cannot import name 'pjit_p' from 'jax.experimental.pjit' (/x/pjit.py)"
    (known,) = pasted(frame + error)["known"]
    assert "that of numpyro: update this package" in known and "jit_p" in known


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("TypeError: Tower.__init__() got an unexpected keyword argument 'width'", "no parameter"),
        ("TypeError: fit() missing 1 required positional argument: 'y'", "error of Python itself"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", "of PyTorch"),
        ("ValueError: shapes (3,) and (4,) not aligned: 3 (dim 0) != 4 (dim 0)", "of NumPy"),
        ("W0000 00:00:17.1 2 tfrt.cc:5] something that nobody has heard of", "line of a log"),
        ("W external/xla/xla/dots.cc:5] something that nobody has heard of", "line of a log"),
        ("UserWarning: nobody has heard of it", "This is a warning"),
        (
            "ImportError: DLL load failed while importing _jax: A dynamic link library (DLL) "
            "initialization routine failed.",
            "Redistributable",
        ),
        (
            ".venv/lib/python3.13/site-packages/equinox/__init__.py:3: in <module>\n"
            "    from . import debug as debug\n"
            ".venv/lib/python3.13/site-packages/equinox/internal/_noinline.py:185: in _Transform\n"
            "    batch_axes: PyTree[batching.NotMapped | int]",
            "only the frames of a traceback",
        ),
        (
            'File "C:\\Users\\mia\\Lib\\site-packages\\brax\\envs.py", line 7, in step\n'
            "ValueError: nobody has heard of it",
            "The last line of the traceback is in brax",
        ),
        (
            "RuntimeError: Unable to initialize backend 'cpu': [enforce fail at "
            "external/xla++third_party_ext+gloo/gloo/transport/tcp/device.cc:99] rv == 0. -2 vs 0 "
            "(set JAX_PLATFORMS='' to automatically choose an available backend)",
            "to /etc/hosts: several processes",
        ),
        ("ValueError: so. See https://docs.jax.dev/en/latest/201/gpu-memory.html.", "see memory."),
    ],
)
def test_what_a_text_is_besides_is_said(pasted, text, known):
    found = pasted(text)
    assert known in " ".join(found["known"]) and (found["said"] or not found["rows"])


def test_a_log_of_compilations_is_sent_to_the_field_for_logs(pasted):
    log = "WARNING:jax: TRACING CACHE MISS at fit.py:4:1 (step) because:\n  never seen function"
    assert "field for logs" in pasted(log)["known"][0] and not pasted(log)["rows"]


@pytest.mark.parametrize(
    ("frame", "repository"),
    [("flax/nnx/graph.py", "google/flax"), ("jax/_src/pjit.py", "jax-ml/jax"), ("", "jax-ml/jax")],
)
def test_where_nothing_is_known_the_search_leads_to_those_who_may_know(pasted, frame, repository):
    text = f'  File "/x/site-packages/{frame}", line 5, in f\nQuuxError: The frobnicator 17 of'
    search = pasted(f"{text} /home/ana/x.py float32[3] is xla::Unheard of at 0x7f")["search"]
    query = "https://github.com/{}/issues?q=is%3Aissue+QuuxError%20The%20frobnicator%20of%20is%20of%20at"
    assert search == query.format(repository)


def test_pages_that_the_finder_names_exist():
    text = (finder.ROOT / "docs" / "_static" / "pasted.js").read_text("utf8")
    places = re.findall(r'"([a-z_]+/[a-z_]+)\.html(?:#([\w-]+))?"', text)
    assert len(places) > 25
    for page, anchor in places:
        path = finder.ROOT / "docs" / f"{page}.md"
        headings = re.findall(r"^#+ (.+)", path.read_text("utf8"), re.MULTILINE)
        anchors = [nodes.make_id(each) for each in headings]
        assert not anchor or anchor in anchors, (page, anchor)


def by_name(table):
    """Return {name: since} of a table of the file of names."""
    return {
        f"{module}.{name}": since
        for module, rows in table.items()
        for group, since, *_ in rows
        for name in group.split()
    }


def only_placed(function):
    """Say whether no argument of a function can be given by its name."""
    given = inspect.signature(function).parameters.values()
    return all(each.kind == each.POSITIONAL_ONLY for each in given)


def test_names_by_version_are_those_that_the_page_on_upgrades_recorded():
    path = finder.ROOT / "docs" / "_recorded" / "cpu" / "appendix" / "upgrades.ipynb"
    cells = json.loads(path.read_text("utf8"))["cells"]
    shown = [out["data"] for cell in cells for out in cell.get("outputs", ()) if "data" in out]
    removed, lost, _ = ("".join(data["text/plain"]).splitlines() for data in shown)
    text = (finder.ROOT / "docs" / "_static" / "jax_names.js").read_text("utf8")
    names = json.loads(text.split(" = ", 1)[1].rstrip(";\n"))
    gone, came = by_name(names["gone"]), by_name(names["new"])
    missing = []
    # The page has no absl beside the older versions, without which they import no part of Pallas.
    for full, versions, _ in (line.split(" | ", 2) for line in removed if ".pallas" not in line):
        first, *others = full.split(", ")
        module = first.rpartition(".")[0]
        # What a later version has again is not gone, or goes later.
        for name in {first, *(f"{module}.{each}" for each in others)} - came.keys():
            late = in_order(gone.get(name, "0")) >= in_order(versions.split(" → ")[1])
            if not late and module not in names["modules"]:
                missing.append((name, versions, gone.get(name)))
    assert len(removed) > 50 and not missing
    # Of a parameter with a star, and of one that is private, no message speaks.
    named = re.compile(r"jax\.numpy\.(\w+)(?:, (?:\*\S*|_\w*))*, [a-z]")
    functions = {found[1] for line in lost if (found := named.match(line.split(" | ")[0]))}
    # Nor of one that is only given by its place.
    placed = {name for name in functions if only_placed(getattr(jnp, name))}
    assert functions - placed and functions - placed <= names["parameters"].keys()
    assert in_order(names["oldest"]) < in_order(names["newest"])


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("TypeError: _sum() got an unexpected keyword argument 'dim'", "Write axis;"),
        ("TypeError: _mean() got an unexpected keyword argument 'keepdim'", "Write keepdims;"),
        ("AttributeError: module 'jax.numpy' has no attribute 'cat'", "jnp.concatenate("),
        ("AttributeError: module 'jax.numpy' has no attribute 'softmax'", "jax.nn.softmax(x)"),
        ("AttributeError: module 'jax.numpy' has no attribute 'relu'", "jax.nn.relu(x)"),
        ("AttributeError: module 'jax.random' has no attribute 'randn'", "jax.random.normal("),
        (
            "AttributeError: module 'jax.nn' has no attribute 'cross_entropy'",
            "softmax_cross_entropy_with_integer_labels(",
        ),
        (
            "AttributeError: 'jaxlib._jax.ArrayImpl' object has no attribute 'backward'",
            "jax.grad(",
        ),
        ("AttributeError: 'ArrayImpl' object has no attribute 'unsqueeze'", "v[None]"),
        ("AttributeError: 'DynamicJaxprTracer' object has no attribute 'detach'", "stop_gradient"),
        ("AttributeError: 'numpy.ndarray' object has no attribute 'at'", "jnp.asarray(x).at["),
    ],
)
def test_a_habit_of_pytorch_is_answered_from_the_translation_table(pasted, text, known):
    found = pasted(text)
    assert known in found["known"][0] and "translation table" in found["known"][0]
    assert not found["rows"]


ARGUMENT = "TypeError: {}() got an unexpected keyword argument '{}'"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("No module named 'jax.experimental.host_callback'", "Write jax.pure_callback, "),
        (
            "No module named 'jax.experimental.export'",
            "JAX 0.4.38 has it no more. Write jax.export.",
        ),
        ("No module named 'jax.experimental.loops'", "since JAX 0.3.16. Write jax.lax.scan, "),
        ("No module named 'jax.abstract_arrays'", "Write jax.core.ShapedArray."),
        ("cannot import name 'in1d' from 'jax.numpy' (x)", "since JAX 0.4.24. Write jnp.isin."),
        ("module 'jax.sharding' has no attribute 'PositionalSharding'", "Write jax.NamedSharding."),
        # A list grows old: a later JAX may lack what all of its versions have.
        ("No module named 'jax.interpreters.xla'", "yours is older, or later than this list"),
        # An earlier form of the function is elsewhere, or was between two versions.
        (ARGUMENT.format("shard_map", "axis_names"), "JAX 0.6.2 has it. Update JAX"),
        (ARGUMENT.format("make_mesh", "axis_types"), "JAX 0.4.38 has it. Update JAX"),
        (ARGUMENT.format("Mesh.__new__", "axis_types"), "Mesh(axis_types=…) is newer"),
        (
            ARGUMENT.format("percentile", "interpolation"),
            "any more: JAX 0.9.2 has it not. Write method.",
        ),
        (
            ARGUMENT.format("ShapeDtypeStruct.__init__", "named_shape"),
            "Write nothing in its place.",
        ),
        # No version took these by name.
        (ARGUMENT.format("logaddexp", "x1"), "None of JAX's functions logaddexp"),
    ],
)
def test_modules_and_parameters_that_came_or_went_are_answered(pasted, text, known):
    kinds = {
        "No module": "ModuleNotFoundError: ",
        "cannot": "ImportError: ",
        "module": "AttributeError: ",
    }
    head = next((kinds[each] for each in kinds if text.startswith(each)), "")
    assert known in " ".join(pasted(head + text)["known"])


def test_names_of_jax_itself_are_answered_as_before(pasted):
    found = pasted("AttributeError: module 'jax' has no attribute 'tree_map'")
    assert "is gone" in found["known"][0]
    found = pasted("AttributeError: 'ArrayImpl' object has no attribute 'spec'")
    assert found["known"] == ["Matched: object no attribute spec"] and found["rows"]


def test_habits_are_those_of_the_translation_table():
    assert make_habits.OUT.read_text("utf8") == make_habits.text()
    names, _ = make_habits.habits()
    rows = {row.name for row in make_habits.all_rows()}
    assert {row for _, row in names.values()} <= rows and len(names) > 90


@pytest.mark.parametrize("name", make_habits.OTHERS)
def test_what_no_row_calls_can_be_written(name):
    given = {"jnp": jnp, "jax": jax, "x": jnp.arange(6.0).reshape(2, 3), "f": lambda x: x.sum()}
    with jax.enable_x64(True):
        exec(make_habits.OTHERS[name][0], given)
