"""Tabs, the switch in the header, and questions, in a real browser."""

import re

import pytest


@pytest.fixture(scope="module")
def window(browser):
    """Open a window of a browser for most tests of this file: to open one takes long."""
    return browser.new_context().new_page()


@pytest.fixture
def page(window):
    """Return a window of a browser that remembers nothing."""
    size = window.viewport_size
    yield window
    window.evaluate("localStorage.clear()")
    window.set_viewport_size(size)


@pytest.fixture(scope="module")
def without_scripts(browser):
    """Open a window of a browser that executes no scripts."""
    return browser.new_context(java_script_enabled=False).new_page()


ASKED = """:::{predict} How much is it?
- `one` ~ "1"
- two ~ "2"
- three ~ "3"
:::"""


def of(framework, code):
    return f"```{{code-cell}} python\n:framework: {framework}\n{code}\n```"


@pytest.fixture(scope="module")
def site(lasting, served):
    """Build pages with outputs of several devices or frameworks, and one with a question.

    Yields the site's address.
    """
    lasting.page("c/asked", ASKED, lasting.cell("2"), "Prose.", ASKED, lasting.cell("3"))
    for name in ("c/one", "c/two"):
        lasting.page(name, of("jax", "'in jax'"), of("torch", "'in torch'"))
    for name, measured in (("a/one", "xy"), ("a/two", "z")):
        notes = [f"note('{letter}', {0.25 if letter == 'y' else 0.5})" for letter in measured]
        lasting.page(name, *[lasting.cell(note, snippet="a.notes.note") for note in notes])
    lasting.page("b/plain", lasting.cell("'the same everywhere'"))
    lasting.recorded()
    for name in ("a/one", "a/two"):
        lasting.recorded_elsewhere(name, (" 0.5", " 0.001"))
    lasting.recorded_elsewhere("a/one", device="tpu-v5e")
    lasting.built()
    with served(lasting.root / "build" / "html") as address:
        yield address


def shown(page):
    """Return what was measured, and how long it took, in the tabs of a page that a reader sees."""
    return [
        re.sub(r"(\w+) \[python\] ([\d.]+ ms).*", r"\1 took \2", panel.inner_text().strip())
        for panel in page.locator(".device-tabs .sd-tab-content").all()
        if panel.is_visible()
    ]


def test_all_tabs_switch_together_and_the_choice_stays(page, site):
    page.goto(f"{site}/a/one.html")
    assert shown(page) == ["x took 500 ms", "y took 250 ms"]
    page.locator(".sd-tab-label", has_text="NVIDIA H200").first.click()
    assert shown(page) == ["x took 1.00 ms", "y took 250 ms"]
    assert page.locator(".device-switch select").input_value() == "gpu-h200"
    page.goto(f"{site}/a/two.html")
    assert shown(page) == ["z took 1.00 ms"]
    page.reload()
    assert shown(page) == ["z took 1.00 ms"]


def test_the_switch_in_the_header_is_for_the_whole_site_and_remembers(page, site):
    page.goto(f"{site}/b/plain.html")
    notice = page.locator(".device-notice[data-device]:visible")
    assert notice.count() == 0
    page.get_by_label("Device").select_option("TPU v5e")
    assert notice.inner_text() == "Not recorded on TPU v5e yet: what you see is from CPU."
    page.reload()
    assert page.get_by_label("Device").input_value() == "tpu-v5e"
    assert notice.count() == 1
    page.goto(f"{site}/a/two.html")
    assert notice.count() == 1
    assert shown(page) == ["z took 500 ms"]
    page.get_by_label("Device").select_option("CPU")
    assert shown(page) == ["z took 500 ms"]
    assert notice.count() == 0


def test_a_tab_that_is_used_stays_where_it_is_on_the_screen(page, site):
    page.set_viewport_size({"width": 1000, "height": 500})
    page.goto(f"{site}/a/one.html")
    page.evaluate(
        """() => {
            document.documentElement.style.overflowAnchor = "none";
            document.querySelectorAll(".sd-tab-content")[1].style.paddingBottom = "900px";
            document.body.style.paddingBottom = "2000px";
        }"""
    )
    label = page.locator(".device-tabs").nth(1).locator(".sd-tab-label", has_text="NVIDIA H200")
    label.scroll_into_view_if_needed()
    before = label.bounding_box()["y"]
    label.click()
    assert shown(page) == ["x took 1.00 ms", "y took 250 ms"]
    assert abs(label.bounding_box()["y"] - before) < 5


def test_tabs_are_moved_by_the_keyboard(page, site):
    page.goto(f"{site}/a/two.html")
    page.locator(".device-tabs input").first.focus()
    page.keyboard.press("ArrowRight")
    assert shown(page) == ["z took 1.00 ms"]
    outline = "el => getComputedStyle(el.nextElementSibling).outlineStyle"
    assert page.locator(".device-tabs input:checked").evaluate(outline) != "none"
    page.keyboard.press("ArrowLeft")
    assert shown(page) == ["z took 500 ms"]


def test_two_windows_follow_each_other(page, site):
    two = page.context.new_page()
    page.goto(f"{site}/a/one.html")
    two.goto(f"{site}/a/two.html")
    page.locator(".sd-tab-label", has_text="NVIDIA H200").first.click()
    two.wait_for_function("document.querySelector('.device-switch select').value == 'gpu-h200'")
    assert shown(two) == ["z took 1.00 ms"]
    two.close()


def test_without_scripts_all_devices_are_shown_with_their_names(without_scripts, site):
    page = without_scripts
    page.goto(f"{site}/a/two.html")
    assert shown(page) == ["z took 500 ms", "z took 1.00 ms"]
    tabs = page.locator(".device-tabs")
    words = tabs.inner_text().split("\n")
    found = [word for word in words if word in ("CPU", "NVIDIA H200", "TPU v5e")]
    assert found == ["CPU", "NVIDIA H200"]
    assert tabs.inner_text().index("NVIDIA H200") < tabs.inner_text().index("1.00 ms")
    assert not page.locator(".device-switch").is_visible()


def test_a_browser_that_keeps_nothing_still_switches(browser, site):
    page = browser.new_page()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no') }})"
    )
    page.goto(f"{site}/a/two.html")
    page.locator(".sd-tab-label", has_text="NVIDIA H200").click()
    assert shown(page) == ["z took 1.00 ms"]
    page.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(page, site, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{site}/a/one.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    switch = page.locator(".device-switch select").bounding_box()
    assert 0 <= switch["x"] and switch["x"] + switch["width"] <= width


def test_who_picks_an_answer_is_told_and_sees_the_output(page, site):
    page.goto(f"{site}/c/asked.html")
    group = page.get_by_role("group", name="How much is it?").first
    output = page.locator(".predict-output").first
    assert not output.locator("pre").is_visible()
    group.get_by_role("button", name="two").click()
    assert group.get_by_role("status").inner_text() == "Right, as the output shows."
    assert output.locator("pre").is_visible()
    assert not page.locator(".predict-output").nth(1).locator("pre").is_visible()
    group.get_by_role("button", name="one").click(force=True)
    assert group.get_by_role("status").inner_text() == "Right, as the output shows."


def test_a_question_is_answered_by_the_keyboard(page, site):
    page.goto(f"{site}/c/asked.html")
    group = page.get_by_role("group", name="How much is it?").nth(1)
    group.get_by_role("button", name="one").focus()
    page.keyboard.press("Enter")
    assert group.get_by_role("status").inner_text() == "Not quite. It is: three"
    assert page.locator(".predict-output").nth(1).locator("pre").is_visible()
    page.locator(".predict-output summary").first.focus()
    page.keyboard.press("Enter")
    assert page.get_by_text("The answer: two").is_visible()


def test_without_scripts_the_output_is_opened_by_hand(without_scripts, site):
    page = without_scripts
    page.goto(f"{site}/c/asked.html")
    assert page.get_by_role("button", name="two").first.is_disabled()
    page.locator(".predict-output summary").first.click()
    assert page.get_by_text("The answer: two").is_visible()
    assert page.locator(".predict-output pre").first.inner_text().strip() == "2"


def test_the_framework_is_remembered_on_other_pages(page, site):
    def seen():
        return [
            each.inner_text().strip()
            for each in page.locator(".framework-tab .cell_output").all()
            if each.is_visible()
        ]

    page.goto(f"{site}/c/one.html")
    assert seen() == ["'in jax'"]
    page.locator(".sd-tab-label", has_text="PyTorch").click()
    assert seen() == ["'in torch'"]
    page.goto(f"{site}/c/two.html")
    assert seen() == ["'in torch'"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_comes_up_in_the_colours_of_the_system_without_complaint(page, site, scheme):
    problems = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{site}/c/asked.html")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert problems == []
