"""A line of Python lights up what it became, and the other way round, in a browser."""

import pytest

from tests.engine.compiled.samples import CONF, TARGETS, Sample, record_of

SNIPPET = """
COMPILED = {"scaled": ["float32[4,8]"]}


def halved(x):
    return x / 2


def scaled(x):
    y = 2 * x
    unused = len(x.shape)
    return halved(y) + 1
"""
# From the code, in which line 2 is in `halved`, called by line 8.
JAXPR = ["{ lambda ; a. let", "    b = mul 2.0 a", "    c = div b 2.0", "    d = add c 1.0"]
LOWERED = ["module {", "%0 = stablehlo.multiply", "%1 = stablehlo.divide", "%2 = stablehlo.add"]
HLO = [
    "HloModule jit_scaled",
    "%fused (p: f32[4,8]) -> f32[4,8] {",
    "  %d = f32[4,8]{1,0} divide(%p, %half)",
    "  ROOT %a = f32[4,8]{1,0} add(%d, %one)",
    "}",
    "ENTRY %main (x: f32[4,8]) -> f32[4,8] {",
    "  %copied = f32[4,8]{1,0} sort(%x)",
    "  %doubled = f32[4,8]{1,0} multiply(%x, %two)",
    "  ROOT %fusion = f32[4,8]{1,0} fusion(%doubled), kind=kLoop, calls=%fused",
    "}",
]


def kernel(name, line, *operations, fused=False):
    what = "fusion" if fused else name
    return {
        **{"name": name, "line": line, "what": what},
        **{"operations": list(operations), "fused": fused},
    }


def record(program):
    made = record_of(program)
    made |= {"jaxpr": JAXPR, "origins": "0 6 2/8 8"}
    made["stablehlo"] = [{"targets": list(TARGETS), "text": LOWERED, "origins": "0 6 2/8 8"}]
    labels = {"x": "", "mul": "6", "div": "2/8", "add": "8"}
    made["picture"]["nodes"] = [
        {"label": label, "detail": "", "kind": "operation", "x": 0, "y": y, "origin": origin}
        for y, (label, origin) in enumerate(labels.items())
    ]
    made["picture"]["edges"] = []
    kernels = [
        kernel("copied", 7),
        kernel("doubled", 8, "mul"),
        kernel("fusion", 9, "div", fused=True),
    ]
    for compiled in made["targets"].values():
        compiled |= {"hlo": HLO, "kernels": kernels, "origins": "0*2 2/8 8 0*3 6 2/8,8 0"}
    return made


@pytest.fixture(scope="module")
def site(empty_project, tmp_path_factory):
    """A site with a page that has a view, and one that has none."""
    project = empty_project(tmp_path_factory.mktemp("site"))
    project.configure(CONF)
    book = Sample(project.root)
    book.snippet(text=SNIPPET)
    book.write(book.find("code.scaled"), record(book.find("code.scaled")))
    book.snippet("a.plain")
    book.write(book.find("plain.double"))
    project.page("a/view", "```{compiled} code.scaled\n```", notebook=False)
    project.page("a/plain", "```{compiled} plain.double\n```", notebook=False)
    project.page("a/none", "A text.", notebook=False)
    project.built()
    return project


@pytest.fixture
def opened(browser, site):
    """Return the function that opens a page from its file."""
    contexts = []

    def open_page(name="a/view", **settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto((site.root / "build" / "html" / f"{name}.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def everything(page):
    """Return what is lit: in the source, the jaxpr, the picture, and on the first device."""
    stages, device = page.locator(".stage-tabs > .stage-tab"), page.locator(".device-tab").first
    places = {
        "source": page.locator(".compile-source"),
        "jaxpr": stages.nth(0),
        "picture": page.locator("svg.jaxpr-picture"),
        "StableHLO": stages.nth(2),
        "kernels": device.locator("ul"),
        "HLO": device.locator("pre"),
    }
    return {
        name: [text.split()[0] for text in place.locator(".lit").all_text_contents()]
        for name, place in places.items()
    }


def line(page, text, place=".compile-source"):
    return page.locator(f"{place} [data-origin]", has_text=text).first


DOUBLED = {
    "source": ["y"],
    "jaxpr": ["b"],
    "picture": ["mul"],
    "StableHLO": ["%0"],
    "kernels": ["doubled:"],
    "HLO": ["%doubled"],
}
RETURNED = {
    "source": ["return"],
    "jaxpr": ["c", "d"],
    "picture": ["div", "add"],
    "StableHLO": ["%1", "%2"],
    "kernels": ["fusion:"],
    "HLO": ["%d", "ROOT", "ROOT"],
}
# What comes of the line of a function that is called is a part of what comes of the call.
HALVED = {
    "source": ["return", "return"],
    "jaxpr": ["c"],
    "picture": ["div"],
    "StableHLO": ["%1"],
    "kernels": ["fusion:"],
    "HLO": ["%d", "ROOT"],
}


NOTHING = {name: [] for name in DOUBLED}


def test_a_line_lights_up_what_it_became_on_each_device(opened):
    page = opened()
    assert everything(page) == NOTHING
    line(page, "y =").hover()
    assert everything(page) == DOUBLED
    assert page.locator(".device-tab .compile-kernels .lit").count() == len(TARGETS)
    said = page.locator(".compile-lit").inner_text()
    assert said.startswith("Kernels: CPU 1 of 3, NVIDIA H200 1 of 3,")
    line(page, "return halved").hover()
    assert everything(page) == RETURNED
    page.locator("h1, .bd-header, body").first.hover(position={"x": 0, "y": 0})
    assert everything(page) == NOTHING
    assert page.errors == []


def test_what_a_line_became_lights_up_the_line(opened):
    page = opened()
    line(page, "mul 2.0 a", ".stage-tab").hover()
    assert everything(page) == DOUBLED
    line(page, "div b 2.0", ".stage-tab").hover()
    assert everything(page) == HALVED
    page.locator(".stage-tabs > label", has_text="optimized HLO").click()
    line(page, "doubled", ".compile-kernels").hover()
    assert everything(page) == DOUBLED
    # All that is in a kernel, and nothing of what is not.
    line(page, "fusion", ".compile-kernels").hover()
    assert everything(page) == RETURNED | {"source": ["return", "return"]}
    # Only what comes from somewhere can be pointed at.
    page.locator(".compile-kernels li", has_text="copied").first.hover()
    assert everything(page) == NOTHING


def test_what_has_the_focus_stays_lit(opened):
    page = opened()
    line(page, "y =").focus()
    assert everything(page) == DOUBLED
    page.keyboard.press("ArrowDown")
    assert everything(page) == RETURNED
    # There is one stop in each text, and the rest of the page can be looked at meanwhile.
    assert page.locator(".compile-source pre [tabindex='0']").all_text_contents() == [
        "    return halved(y) + 1\n",
        "    return x / 2\n",
    ]
    page.locator(".stage-tabs > label", has_text="optimized HLO").click()
    line(page, "doubled", ".compile-kernels").hover()
    assert everything(page) == DOUBLED
    page.locator(".stage-tabs > label", has_text="cost").hover()
    assert everything(page) == RETURNED
    line(page, "return halved").focus()
    page.keyboard.press("Escape")
    assert everything(page) == NOTHING


def test_a_tap_lights_up_and_a_second_one_ends_it(opened):
    page = opened(has_touch=True, viewport={"width": 390, "height": 800})
    line(page, "y =").tap()
    assert everything(page) == DOUBLED
    page.locator(".stage-tabs > label", has_text="cost").tap()
    assert everything(page) == DOUBLED
    line(page, "return halved").tap()
    assert everything(page) == RETURNED
    line(page, "return halved").tap()
    assert everything(page) == NOTHING


def test_the_texts_are_the_same_with_and_without_scripts(opened):
    texts = [
        page.locator("pre").all_text_contents()
        for page in (opened(), opened(java_script_enabled=False))
    ]
    assert texts[0] == texts[1] and any("copied" in text for text in texts[0])
    page = opened(java_script_enabled=False)
    assert not page.locator(".compile-lit").is_visible()


def test_the_script_is_on_pages_with_a_view_alone(site, opened):
    assert "origins.js" in site.html("a/view")
    assert "origins.js" not in site.html("a/none")
    # Records that do not have it show what they did.
    page = opened("a/plain")
    assert not page.locator("[data-origins], .compile-lit").count() and page.errors == []
