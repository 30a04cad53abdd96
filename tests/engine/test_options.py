"""What conf.py sets is checked before anything else, by builds and by commands alike."""

import pathlib
import re

import pytest

from executed.options import OptionError, Options, read
from light.options import LightOptions
from tests.engine.conftest import EXTENSIONS

CONF = pathlib.Path("conf.py")
FULL = dict.fromkeys(("package", "prelude", "recordings", "command"), "") | {"supported": []}


def refusal(project, *lines):
    """Return what a build and a command say of a conf.py, which must be the same."""
    project.configure(*lines)
    build, command = project.build(), project.run("list_recordings")
    assert build.status == 2 and command.returncode == 1
    assert "Configuration error!" in build.output and "Traceback" not in command.stderr
    said = command.stderr.strip()
    assert f"ConfigError: {project.root}/{said}\n" in build.output
    return said


def test_an_option_that_does_not_exist_is_refused_at_its_line(project):
    said = refusal(project, "book_output_limit = 3", "book_output_limt = 3", "")
    lines = (project.root / "conf.py").read_text("utf8").splitlines()
    line = lines.index("book_output_limt = 3") + 1
    assert said.startswith(
        f"conf.py:{line}: there is no option book_output_limt; the nearest are book_output_limit"
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("devices", ["cpu"], "book_devices is ['cpu'], and must be a dictionary"),
        ("devices", None, "book_devices is None, and must be a dictionary"),
        ("devices", {"cpu": 5}, "book_devices['cpu'] is 5, and must be a text"),
        ("frameworks", ["jax"], "book_frameworks is ['jax'], and must be a dictionary"),
        (
            "frameworks",
            {"jax": {"lable": "J"}},
            "['jax'] has no key 'lable'; the nearest are label",
        ),
        ("frameworks", {"jax": {"packages": "jax"}}, "['packages'] is 'jax', and must be a list"),
        ("sources", {"post": {"title": "A"}}, "book_sources['post'] lacks author, url"),
        ("versions", {"package": "jax"}, "book_versions lacks recorded, supported"),
        ("versions", FULL | {"recorded": "1.0"}, "['recorded'] is '1.0', and must be a list"),
        ("versions", FULL | {"record": "x"}, "book_versions has no key 'record'; the nearest are"),
        ("versions", "x", "book_versions is 'x', and must be a dictionary"),
        ("recordings", None, "book_recordings is None, and must be a text"),
        ("variables", [5], "book_variables[0] is 5, and must be a text"),
        ("variables", "A", "book_variables is 'A', and must be a list"),
        ("cache", 5, "book_cache is 5, and must be a text"),
        ("measurements", 5, "book_measurements is 5, and must be a text"),
        ("output_limit", -1, "book_output_limit is -1, and must be 1 or more"),
        ("output_limit", True, "book_output_limit is True, and must be a whole number"),
        ("page_timeout", float("nan"), "book_page_timeout is nan, and must be a finite number"),
        ("page_timeout", -1, "is -1, and must be a finite number, more than 0"),
        ("cell_timeout", 1.5, "book_cell_timeout is 1.5, and must be a whole number"),
        ("output_limit", "5", "book_output_limit is '5', and must be a whole number"),
        ("devices", {5: "CPU"}, "book_devices is 5, and must be a text"),
        ("targets", {"x": 5}, "book_targets['x'] is 5, and must be a dictionary"),
        ("targets", {"x": {"platform": "tpu", "topolgy": "v5e"}}, "the nearest are topology"),
        ("targets", {"x": {"label": "A GPU"}}, "book_targets['x'] lacks platform"),
        ("targets", {"x": {"platform": "cuda", "chips": 8}}, "['chips'] is 8, and must be a list"),
        ("search", "yes", "book_search is 'yes', and must be True or False"),
    ],
)
def test_an_option_of_a_wrong_kind_is_refused_with_what_is_expected(name, value, words):
    with pytest.raises(OptionError) as refused:
        read({"extensions": EXTENSIONS, f"book_{name}": value}, CONF)
    assert words in str(refused.value)


def versions(*patterns):
    """Return the option of versions of a package on which pages are recorded, but for some."""
    return f"book_versions = {FULL | {'recorded': [], 'without': list(patterns)}}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("book_skill = ['i*', 'indx']", "no page matches 'indx'; the nearest are index"),
        (versions("index", "none/*"), "no page matches 'none/*'"),
        ("book_modules = {'a.tmer': 't'}", "there is no module 'a.tmer' in snippets"),
        ("book_pages = 'dosc'", "there is no dosc"),
        ("book_snippets = 'snipets'", "there is no snipets"),
        ("book_preview_prelude = 'none.py'", "there is no none.py"),
        ("book_variables = ['JAX_*', 'A=1']", "[1] is 'A=1', and must be a name or a pattern"),
    ],
)
def test_an_option_that_names_what_is_not_there_is_refused_at_its_line(project, line, words):
    said = refusal(project, line)
    assert re.match(rf"conf\.py:\d+: {line.split()[0]}.*{re.escape(words)}", said)


def test_the_options_by_default_may_be():
    values = {f"book_{field.name}": getattr(Options(), field.name) for field in Options.fields()}
    assert read(values, CONF) == Options()
    assert read({"book_variables": ("A",)}, CONF).variables == ("A",)


def test_the_options_of_an_extension_are_its_own():
    with pytest.raises(OptionError, match="there is no option book_search"):
        read({"extensions": ["executed"], "book_search": True}, CONF)
    found = read({"extensions": ["executed", "light"], "book_search": True}, CONF)
    assert found.of(LightOptions).search


@pytest.mark.parametrize(
    ("command", "line", "words"),
    [
        (
            "list_recordings",
            "book_measurements = 'none.json'",
            "none.json: No such file or directory",
        ),
        ("compile", "book_targets = {'x': {'platfrom': 'cpu'}}", "['x'] has no key 'platfrom'"),
    ],
)
def test_what_a_command_alone_reads_ends_it_without_a_traceback(project, command, line, words):
    project.configure(line)
    done = project.run(command)
    assert done.returncode == 1
    assert words in done.stderr and "Traceback" not in done.stderr
