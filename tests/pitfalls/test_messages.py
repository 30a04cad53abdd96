"""What the sources say: patterns of messages, and what the field for errors makes of them."""

import gzip
import json
import random
import re
import zipfile

import pytest

from tests.pitfalls import finder, make_messages

FILES = sorted(make_messages.OUT.glob("*.js"))
# What stands for values in the messages of the sample.
VALUES = ("x", "(3, 4)", "float32", "7")
SAMPLE = 500


def rows():
    """Return (package, type, pattern) of all files."""
    found = []
    for path in FILES:
        text = re.search(r"\] = (\[.*\]);\n", path.read_text("utf8"), re.DOTALL)[1]
        for package, kinds in json.loads(text)[1].items():
            found += [(package, kind, each[0]) for kind, some in kinds.items() for each in some]
    return found


@pytest.fixture(scope="module")
def pasted(browser):
    """Return a function that pastes a text, once, and returns what is said and the entries."""
    return finder.finder(browser)


@pytest.fixture(scope="module")
def entries():
    """Return {entry: all texts that were printed for it}."""
    return finder.told_by(finder.known())


def filled(pattern, draw):
    """Return a message that a pattern may become."""
    return re.sub("…", lambda _: draw.choice(VALUES), pattern)


def says(pattern, text):
    """Return whether a text says what a pattern does, but for quotation marks."""
    plain = [re.sub(r"[`'\"]", "", each).strip() for each in pattern.rstrip(" .:;,").split("…")]
    words = r".{0,400}?".join(r"\s+".join(map(re.escape, piece.split())) for piece in plain)
    words = words.replace(r".{0,400}?", r"\s*.{0,400}?\s*")
    return re.search(words, re.sub(r"[`'\"]", "", text), re.DOTALL | re.IGNORECASE) is not None


def worded(heading, text):
    """Return whether a text has the words of a heading."""
    return says(heading.partition(": ")[2], text)


def test_no_message_of_the_sources_is_answered_by_the_entry_of_another(pasted, entries):
    draw = random.Random(61)
    wrong = []
    for _, kind, pattern in draw.sample(rows(), SAMPLE):
        text = f"{kind}: {filled(pattern, draw)}" if kind else filled(pattern, draw)
        found = pasted(text)
        if not found["rows"] or found["said"]:
            continue
        first = found["rows"][0]
        # A quotation leaves out what differs, as a heading does.
        forms = [first, *(each for each in entries[first] if "…" in each)]
        same = any(says(pattern, each) for each in entries[first])
        if not same and not any(worded(each, text) for each in forms):
            wrong.append((text, first))
    assert not wrong


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (
            "TypeError: lax.dynamic_update_slice requires arguments to have the same dtypes, got "
            "bfloat16, float32.",
            "jax.lax.dynamic_update_slice (JAX) says",
        ),
        ("ValueError: axis 2 is out of bounds for array of dimension 2", "axes 0 to 1."),
        ("IndexError: index 10 is out of bounds for axis 0 with size 10", "the last, 9."),
        ("ValueError: Argument to inv must have shape [..., n, n], got (3, 4).", "is (3, 4)."),
        (
            "RuntimeError: Cannot find valid initial parameters. Please check your model again.",
            "NumPyro says",
        ),
        (
            "RuntimeError: Fetching value for `jax.Array` that spans non-addressable (non process "
            "local) devices is not possible.",
            "addressable_shards",
        ),
        ("NotImplementedError: Batching rule for 'my_op' not implemented", "go through my_op"),
        (
            "NotImplementedError: Forward-mode differentiation rule for 'while' not implemented",
            "no derivative of while",
        ),
        (
            "JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used "
            "65.05M of 64.00M vmem.",
            "VMEM, the fast memory",
        ),
        ("RuntimeError: CUDA error: out of memory", "of PyTorch itself"),
        ("RuntimeError: CUDA error: no kernel image is available for execution", "of PyTorch"),
        ("AttributeError: module 'numpy' has no attribute 'dtypes'", "numpy has no dtypes"),
        ("AttributeError: module 'warp' has no attribute 'context'", "warp has no context"),
        ("Fatal Python error: Segmentation fault", "crashed"),
    ],
)
def test_what_no_entry_is_about_is_answered_and_no_entry_is_said_with_certainty(
    pasted, text, known
):
    found = pasted(text)
    assert known in " ".join(found["known"])
    assert found["said"] or not found["rows"]


@pytest.mark.parametrize(
    "text",
    [
        "ImportError: cannot import name 'jit' from 'jax' (unknown location)",
        "AttributeError: module 'jax.lax' has no attribute 'scan'",
        "AttributeError: module 'jax' has no attribute 'Array'",
        "AttributeError: module 'jax' has no attribute 'tree'",
        "AttributeError: module 'jax.dtypes' has no attribute 'prng_key'",
        "TypeError: jit() got an unexpected keyword argument 'donate_argnums'",
    ],
)
def test_of_what_every_version_has_nobody_hears_that_none_has_it(pasted, text):
    known = " ".join(pasted(text)["known"])
    assert "Every JAX from 0.4.31" in known and "pip install -U jax" in known
    assert "No version" not in known and "older JAX" not in known and not pasted(text)["rows"]


def test_the_line_of_the_reader_is_shown(pasted):
    frames = (
        '  File "/home/ana/train.py", line 44, in step\n    loss.item()\n'
        '  File "/x/site-packages/jax/_src/core.py", line 9, in f\n    raise g()\n'
    )
    (line, *_) = pasted(f"{frames}ValueError: nobody has heard of it")["known"]
    assert line == "Your line: train.py:44 loss.item()"


def test_where_no_text_is_known_the_function_is_that_the_line_has_called(pasted):
    frames = (
        '  File "/home/ana/train.py", line 44, in step\n    jnp.zeros(2.5)\n'
        '  File "/x/site-packages/jax/_src/numpy/array_creation.py", line 9, in zeros\n    f()\n'
    )
    known = pasted(f"{frames}TypeError: 'float' object cannot be interpreted as an integer")[
        "known"
    ]
    assert "jax.numpy.zeros got arguments" in known[1]


def test_a_paste_loads_at_most_60_kib():
    size = {path.name: len(gzip.compress(path.read_bytes(), 6)) for path in FILES}
    static = finder.ROOT / "docs" / "_static"
    scripts = size.pop("values.js")
    for name in ("raised.js", "jax_always.js"):
        scripts += len(gzip.compress((static / name).read_bytes(), 6))
    assert len(size) > 10 and scripts + max(size.values()) < 60 * 1024


MODULE = '''
import textwrap
from warnings import warn

HINT = "Look at {} before you go on"

def _check(x, name):
    msg = f"{name} must be a scalar of {x.dtype}"
    if x:
        raise ValueError(msg)
    raise TypeError("got %s and not %d of them" % (x, 3))

def scale(x):
    _check(x, "scale")
    raise KeyError(textwrap.dedent("""
        The first line of it: {}
        The second line""").format(x))

def other(x):
    raise RuntimeError(HINT.format(x) + "!")

class WrongError(Exception):
    def __init__(self, x):
        super().__init__(f"The value {x} is wrong here")
'''


def test_patterns_are_read_from_a_wheel_with_the_public_function_that_leads_to_them(tmp_path):
    wheel = tmp_path / "jax-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("jax/__init__.py", "from jax._src.ops import scale as scale, other")
        archive.writestr("jax/_src/__init__.py", "")
        archive.writestr("jax/_src/ops.py", MODULE)
    found = make_messages.gathered([make_messages.Package(wheel)])
    assert {key[1:]: row for key, row in found.items()} == {
        ("ValueError", "… must be a scalar of …"): ["jax.scale", "1.2", "1.2"],
        ("TypeError", "got … and not … of them"): ["jax.scale", "1.2", "1.2"],
        ("KeyError", "The first line of it: …"): ["jax.scale", "1.2", "1.2"],
        ("RuntimeError", "Look at … before you go on!"): ["jax.other", "1.2", "1.2"],
        ("WrongError", "The value … is wrong here"): ["", "1.2", "1.2"],
    }


def test_a_library_without_a_wheel_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(make_messages, "OUT", tmp_path / "messages")
    wheel = tmp_path / "jax-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("jax/__init__.py", 'def f(x):\n    raise ValueError("This is too long")')
    make_messages.main(tmp_path)
    printed = capsys.readouterr().out
    assert "flax is left out" in printed and "1 patterns" in printed
    assert "This is too long" in (tmp_path / "messages" / "th.js").read_text("utf8")


def test_pages_that_the_files_name_exist():
    pages = {each for path in FILES for each in re.findall(r'"([a-z_/]+)\.html"', path.read_text())}
    assert len(pages) > 20
    assert not [each for each in pages if not (finder.ROOT / "docs" / f"{each}.md").exists()]


CHECKED = "EquinoxRuntimeError: … Above is the stack outside of JIT"


@pytest.mark.parametrize(
    "text",
    [
        # What eqx.error_if raises under eqx.filter_jit, under jax.jit, and in a library.
        "EquinoxRuntimeError: Above is the stack outside of JIT. Below is the stack inside of "
        "JIT:\n"
        '  File "/home/ana/fit.py", line 4, in root\n    x = eqx.error_if(x, x < 0, "no")\n\n'
        "equinox.EquinoxRuntimeError: x must not be negative\n\n-------------------\n\nAn error "
        "occurred during the runtime of your JAX program.",
        "jax.errors.JaxRuntimeError: INTERNAL: CpuCallback error calling callback: Traceback (most "
        'recent call last):\n  File "/x/site-packages/jax/_src/callback.py", line 102, in '
        "pure_callback_impl\n_EquinoxRuntimeError: x must not be negative\n\n--------------------\n"
        "An error occurred during the runtime of your JAX program! Unfortunately you do not appear "
        "to be using `equinox.filter_jit`",
        "EqxRuntimeError: The linear solver returned non-finite (NaN or inf) output.",
    ],
)
def test_a_check_of_equinox_is_answered_however_it_arrives(pasted, text):
    found = pasted(text)
    assert found["rows"][0].startswith(CHECKED) and not found["said"]


def test_a_solver_that_gave_up_has_an_entry_of_its_own(pasted):
    found = pasted(
        "equinox.EquinoxRuntimeError: The maximum number of solver steps was reached. Try "
        "increasing `max_steps`."
    )
    assert "maximum number of solver steps" in found["rows"][0] and not found["said"]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("ValueError: axis 2 is out of bounds for array of dimension 2", ""),
        (
            "TypeError: lax.dynamic_update_slice requires arguments to have the same dtypes, got "
            "bfloat16, float32.",
            "All 10 versions of JAX that were read, 0.4.31 to 0.12.0.1, have this text.",
        ),
        ("RuntimeError: Cannot find valid initial parameters. Please check", "NumPyro 0.22.0 has"),
        (
            "AttributeError: module 'jax.experimental' has no attribute 'io_callback'",
            "Write from jax.experimental import io_callback",
        ),
        (
            "DeprecationWarning: jax.interpreters.pxla.xla_pmap_p is deprecated as of JAX v0.8.2.",
            "is gone: JAX 0.10.2",
        ),
        ("AttributeError: 'Data' object has no attribute '_impl'", "This Data has no _impl"),
        ("F0602 09:41:17.2 11 hlo_sharding.cc:1004] Check failed: !IsManual()", "hlo_sharding.cc"),
        ("JaxRuntimeError: INTERNAL: nobody has heard of it", "This text is of XLA"),
        (
            'File "/x/jax/_src/custom_partitioning.py", line 214, in infer_sharding\n'
            "TypeError: 'NoneType' object is not callable",
            "inside of JAX, by infer_sharding",
        ),
        ("ValueError: Mismatch: 3 irreps in gated, 1 in gates", "Paste the whole traceback"),
    ],
)
def test_what_is_known_besides_the_entries_is_said(pasted, text, known):
    found = pasted(text)
    assert known in " ".join(found["known"])
    assert found["said"] or not found["rows"]


def test_a_function_that_the_text_does_not_name_is_only_one_way_to_it(pasted):
    known = " ".join(
        pasted("RuntimeError: Backend 'x' is not in the list of known backends: [1].")["known"]
    )
    assert known.startswith("JAX says") and "may come from" in known
