"""The page of a point in a browser: it draws, moves and obeys keys without a word; hostile text stays text."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from point_harness import write_page
from rule_given import H200, Trace
from test_point_page import GEMM, RUN, crowded, steps

from analysis.report.point import point_pages
from analysis.store import open_store

pytestmark = pytest.mark.browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=\'document.title="owned"\'>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium: the one that CHROMIUM names, else the one on PATH."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.skip("no Chromium: install it or name it with CHROMIUM=/path/to/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


class Opened:
    """A page of one point, and all that it said and asked for."""

    def __init__(self, browser: Browser, folder: Path, data: dict[str, Any]) -> None:
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": 1100, "height": 900})
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = write_page(folder / "point.html", data).resolve().as_uri()
        self.page.goto(self.url)
        self.page.wait_for_function("document.querySelector('canvas')?.dataset.from !== undefined")

    @property
    def canvas(self) -> Locator:
        """The timeline."""
        return self.page.locator("canvas.timeline-canvas")

    def view(self) -> tuple[float, float]:
        """The part of the window that is in view, in nanoseconds, once it is drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return tuple(float(self.canvas.get_attribute(f"data-{end}") or "nan") for end in ("from", "to"))  # type: ignore[return-value]

    def selected(self) -> str | None:
        """The id of the selected event."""
        self.view()
        return self.canvas.get_attribute("data-selected")


def data_of(folder: Path, trace: Trace, run: dict[str, Any] | None = None, budget: int = 150_000) -> dict[str, Any]:
    """Data of the page of a run with this trace."""
    store = write_store(folder / "store", runs=[RUN | (run or {})], events=trace.events(), environments=[H200])
    with open_store(store) as connection:
        return point_pages(connection, ["r000"], budget)["r000"]


def with_memory(trace: Trace) -> Trace:
    """The trace with two changes of the device's memory."""
    for place, total in enumerate((1000, 5000)):
        args = {"Device Type": 1, "Device Id": 0, "Total Allocated": total, "Total Reserved": 8000}
        trace.host("[memory]", 4 + place, 0, 0, "cpu_instant_event", bytes=1, args=json.dumps(args))
    return trace


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """The page of five steps."""
    opened = Opened(browser, tmp_path, data_of(tmp_path, with_memory(steps())))
    yield opened
    opened.page.close()


def test_every_section_is_drawn_without_a_word(opened: Opened) -> None:
    """Nine sections with a title, a reading and their SQL; nothing on the console, no request but the page."""
    sections = opened.page.locator("section.point-section")
    keys = sections.evaluate_all("(all) => all.map((each) => each.dataset.section)")
    assert keys == ["times", "samples", "steps", "kernels", "findings", "operators", "timeline", "flame", "memory"]
    for place in range(9):
        assert sections.nth(place).locator("h4").inner_text()
        assert sections.nth(place).locator(".point-reading").inner_text().endswith(".")
        assert "FROM" in (sections.nth(place).locator(".point-sql code").text_content() or "")
    assert opened.page.locator(".point-strip svg circle").count() == 2
    assert opened.page.locator(".point-strip svg .point-cross").count() == 1
    assert "peak 5 kB" in (opened.page.locator(".point-memory svg").text_content() or "")
    assert opened.said == []
    assert opened.requests == [opened.url]


def test_the_timeline_is_drawn_in_colours(opened: Opened) -> None:
    """The canvas holds more than its ground: host, device and text."""
    colours = opened.page.evaluate(
        "() => { const canvas = document.querySelector('canvas');"
        "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        "const seen = new Set(); for (let at = 0; at < data.length; at += 4)"
        "seen.add(data[at] + ',' + data[at + 1] + ',' + data[at + 2]); return seen.size; }"
    )
    assert colours > 30


def test_the_wheel_zooms_at_the_cursor(opened: Opened) -> None:
    """What is under the cursor stays there, and a turn narrows the view; the page does not scroll."""
    opened.canvas.scroll_into_view_if_needed()
    before = opened.view()
    scrolled = opened.page.evaluate("window.scrollY")
    box = opened.canvas.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 60)
    opened.page.mouse.wheel(0, -200)
    opened.page.wait_for_function(f"Number(document.querySelector('canvas').dataset.from) !== {before[0]}")
    after = opened.view()
    assert after[1] - after[0] < 0.7 * (before[1] - before[0])
    at = [view[0] + (view[1] - view[0]) / 4 for view in (before, after)]
    assert at[1] == pytest.approx(at[0], abs=0.01 * (before[1] - before[0]))
    assert opened.page.evaluate("window.scrollY") == scrolled


def test_dragging_moves_the_view(opened: Opened) -> None:
    """A drag to the left shows what lies to the right, at the same scale, and selects nothing."""
    opened.canvas.scroll_into_view_if_needed()
    before = opened.view()
    box = opened.canvas.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + 400, box["y"] + 70)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 300, box["y"] + 70, steps=4)
    opened.page.mouse.up()
    after = opened.view()
    assert after[0] > before[0]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0])
    assert not opened.selected()


@pytest.mark.parametrize(
    ("key", "narrower", "moved"),
    [
        ("w", True, 0),
        ("s", False, 0),
        ("d", None, 1),
        ("a", None, -1),
        ("ArrowRight", None, 1),
        ("ArrowLeft", None, -1),
    ],
)
def test_keys_zoom_and_move(opened: Opened, key: str, narrower: bool | None, moved: int) -> None:
    """W and S change the width of the view, A and D its place, arrow keys as well."""
    opened.canvas.focus()
    before = opened.view()
    opened.page.keyboard.press(key)
    after = opened.view()
    widths = [view[1] - view[0] for view in (before, after)]
    if narrower is None:
        assert widths[1] == pytest.approx(widths[0])
        assert (after[0] - before[0]) * moved > 0
    else:
        assert (widths[1] < widths[0]) == narrower


def test_home_shows_all(opened: Opened) -> None:
    """The first view is a part of the trace, Home the whole."""
    opened.canvas.focus()
    before = opened.view()
    opened.page.keyboard.press("Home")
    after = opened.view()
    assert after[0] < before[0]
    assert after[1] > before[1]


def test_the_keyboard_reaches_an_event_and_its_neighbours(opened: Opened) -> None:
    """Enter selects what is in the middle, N and P go on and back, Escape lets go; the panel tells what it is."""
    opened.canvas.focus()
    opened.page.keyboard.press("Enter")
    first = opened.selected()
    assert first
    opened.page.keyboard.press("n")
    second = opened.selected()
    assert second not in ("", first)
    opened.page.keyboard.press("[")
    assert opened.selected() == first
    assert opened.page.locator(".timeline-panel dl dt").first.is_visible()
    opened.page.keyboard.press("Escape")
    assert opened.selected() == ""


def test_a_click_selects_and_hover_tells(opened: Opened) -> None:
    """Over the outermost event of the first lane the tip has its name; a click puts it into the panel."""
    opened.canvas.scroll_into_view_if_needed()
    box = opened.canvas.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 62)
    assert "ProfilerStep#2" in opened.page.locator("#tip").inner_text()
    opened.page.mouse.down()
    opened.page.mouse.up()
    assert opened.page.locator(".timeline-panel h5").inner_text() == "ProfilerStep#2"


def test_a_finding_leads_to_its_event(opened: Opened) -> None:
    """The button below a finding selects the late call of its evidence; the panel leads to its kernel and back."""
    button = opened.page.locator("[data-rule=host_late] > .point-evidence button").first
    button.click()
    assert opened.selected() == button.get_attribute("data-event")
    title = opened.page.locator(".timeline-panel h5")
    assert title.inner_text() == "cudaLaunchKernel"
    opened.page.locator(".timeline-panel button", has_text="to what it launches").click()
    assert title.inner_text() == GEMM
    opened.page.locator(".timeline-panel button", has_text="to its launch").click()
    assert title.inner_text() == "cudaLaunchKernel"


def test_the_flame_graph_turns_switches_and_zooms(opened: Opened) -> None:
    """Device time has another width than host time, the flame has its root below, a click fills the width."""
    box = opened.page.locator(".flame-box")
    root = box.locator(".flame-node", has_text="ProfilerStep#2")
    assert root.evaluate("(node) => node.style.top") == "0px"
    opened.page.locator(".flame-bar button", has_text="flame").click()
    assert root.evaluate("(node) => node.offsetTop") > 50
    opened.page.locator(".flame-bar button", has_text="device time").click()
    assert box.get_attribute("data-value") == "device"
    assert box.locator(".flame-device").count() == 1
    opened.page.locator(".flame-bar button", has_text="host time").click()
    product = box.locator(".flame-node", has_text="aten::mm")
    product.click()
    wide = product.evaluate("(node) => node.offsetWidth / node.parentElement.offsetWidth")
    assert wide == pytest.approx(1, abs=0.01)
    opened.page.keyboard.press("Escape")
    assert box.get_attribute("data-focus") == "-1"


def test_a_heading_sorts_the_operators(opened: Opened) -> None:
    """Numbers begin with the largest, names with the first; the heading tells the direction."""
    section = opened.page.locator(".point-operators")
    head = section.locator("th", has_text="name")
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    names = section.locator("tbody tr td:first-child").all_inner_texts()
    assert names == sorted(names, key=str.lower)


def test_dark_and_narrow_and_print(opened: Opened) -> None:
    """The canvas takes the colours of the theme, nothing sticks out on a phone, and the page prints its charts."""
    pixel = "() => [...document.querySelector('canvas').getContext('2d').getImageData(2, 2, 1, 1).data].slice(0, 3)"
    light = opened.page.evaluate(pixel)
    opened.page.evaluate(
        "document.documentElement.dataset.theme = 'dark'; document.dispatchEvent(new Event('themechange'))"
    )
    opened.view()
    assert sum(opened.page.evaluate(pixel)) < 120 < sum(light)
    opened.page.set_viewport_size({"width": 400, "height": 800})
    opened.view()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    opened.page.emulate_media(media="print")
    assert opened.canvas.is_visible()
    assert opened.page.locator(".flame-bar").is_hidden()


def test_closing_removes_the_page_and_its_listeners(opened: Opened) -> None:
    """After pointClose nothing is left, and a change of the theme does no harm."""
    opened.page.evaluate("document.dispatchEvent(new Event('close-point'))")
    assert opened.page.locator("#target *").count() == 0
    opened.page.evaluate("document.dispatchEvent(new Event('themechange'))")
    opened.page.set_viewport_size({"width": 700, "height": 800})
    opened.page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
    assert opened.said == []


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    """Markup in names of kernels, workloads, shapes and reasons is shown and does not run."""
    trace = steps(3, HOSTILE)
    trace.host(HOSTILE, 130, 5, 2, shapes=HOSTILE)
    opened = Opened(browser, tmp_path, data_of(tmp_path, trace, {"workload": "matmul_add", "params": {"x": HOSTILE}}))
    opened.canvas.focus()
    for key in ("Enter", "n", "n", "Home"):
        opened.page.keyboard.press(key)
    assert opened.page.title() == "point"
    assert opened.page.locator("img, section script").count() == 0
    assert opened.said == []
    assert HOSTILE in (opened.page.locator(".point-kernels code").first.text_content() or "")
    opened.page.close()


def test_what_is_put_together_says_what_it_holds(browser: Browser, tmp_path: Path) -> None:
    """Where short events share a block, the note has the numbers and the panel of the block as well."""
    opened = Opened(browser, tmp_path, data_of(tmp_path, crowded(600), budget=0))
    assert "are drawn as" in opened.page.locator(".point-timeline .point-note").nth(1).inner_text()
    opened.canvas.focus()
    for _ in range(80):
        opened.page.keyboard.press("n")
        if "holds" in opened.page.locator(".timeline-panel").inner_text():
            break
    assert "events of" in opened.page.locator(".timeline-panel").inner_text()
    opened.page.close()
