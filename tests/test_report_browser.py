"""The report in a browser: nothing is asked of a network, nothing fails, and hostile text does not run."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from analysis.report import write_report
from analysis.store import open_store
from tests.figures import cold, h200_store, warm
from tests.given import write_store
from tests.test_report import imported, profiled_steps

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("script_made_once")]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
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
    """A page that was opened and drawn, with all that it said and asked for."""

    def __init__(self, browser: Browser, path: Path, scheme: Literal["light", "dark"] = "light") -> None:
        self.url = path.resolve().as_uri()
        self.said: list[str] = []
        self.requests: list[str] = []
        context = browser.new_context(viewport={"width": 1120, "height": 900}, color_scheme=scheme)
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.url)
        self.drawn()

    def drawn(self) -> None:
        """Wait until every chart is drawn."""
        self.page.wait_for_selector("html[data-drawn]", state="attached", timeout=60_000)

    def choose(self, facet: str, *values: str) -> None:
        """Open a facet, press values, and wait until the page has followed."""
        box = self.page.locator("#filters details", has=self.page.locator("summary", has_text=facet))
        box.locator("summary").click()
        for value in values:
            box.locator("button", has_text=re.compile(f"^{re.escape(value)}$")).click()
        box.locator("summary").press("Escape")
        self.drawn()

    def show_all(self) -> None:
        """Take all filters back."""
        self.page.locator("#clear").click()
        self.drawn()

    def texts(self, anchor: str) -> list[str]:
        """All texts in the charts of a section that can be seen."""
        figures = self.page.locator(f"#{anchor} figure.chart:not([hidden]) svg text")
        return figures.all_text_contents()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the report of the H200 sweep."""
    folder = tmp_path_factory.mktemp("report")
    return write_report(open_store(h200_store(folder / "store")), folder / "report.html")


@pytest.fixture(scope="module")
def report(browser: Browser, written: Path) -> Opened:
    """The report of the H200 sweep, open."""
    return Opened(browser, written)


def test_the_page_says_nothing_on_the_console_and_asks_for_nothing(report: Opened) -> None:
    """No error, no warning, no violation of the policy, and no request but the file itself."""
    assert report.said == []
    assert report.requests == [report.url]


def test_every_chart_is_drawn(report: Opened) -> None:
    """Each figure holds an SVG with marks in it."""
    count = report.page.locator("figure.chart").count()
    assert count >= 10
    for place in range(count):
        marks = report.page.locator("figure.chart").nth(place).locator("svg [aria-roledescription], svg path")
        assert marks.count() > 0, place


def test_both_regimes_are_written_in_the_plot(report: Opened) -> None:
    """Each crossover chart names the two regimes."""
    texts = report.texts("series")
    assert texts.count("overhead-bound") == texts.count("device-bound") == 2


def test_hover_shows_the_number_with_its_interval(report: Opened) -> None:
    """Over a marker the tip gives quantity, size and value with interval; beside it the tip goes away."""
    marker = report.page.locator("#series .mark-symbol path").last
    marker.scroll_into_view_if_needed()
    marker.hover()
    assert "µs (" in report.page.locator("#tip").inner_text()
    report.page.mouse.move(2, 2)
    assert report.page.locator("#tip").is_hidden()


def test_a_heading_sorts_the_table_by_number_both_ways(report: Opened) -> None:
    """Times sort as numbers, unknown ones last in both directions, and the heading tells which way."""
    head = report.page.locator("#points th", has_text="wall")
    for direction, first in (("ascending", "18.0"), ("descending", "228")):
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == direction
        cells = report.page.locator("#points tbody tr td:nth-child(4)").all_inner_texts()
        assert cells[0].startswith(first)
        assert cells[-1] == "–"


# --- filters ----------------------------------------------------------------------------------------------------------


def test_a_facet_changes_every_chart_and_the_table(report: Opened) -> None:
    """Of the eager points alone no chart and no row says compiled, and taking the choice back brings them again."""
    anchors = ("answer", "series", "map", "roofline", "law")
    before = {anchor: report.texts(anchor) for anchor in anchors}
    rows = report.page.locator("#points tbody tr").count()
    report.choose("compile", "eager")
    assert report.page.locator("#chosen").inner_text() == "12 of 17 points"
    assert report.page.locator("#points tbody tr").count() < rows
    assert "compiled" not in report.page.locator("#points tbody").inner_text()
    for anchor in anchors:
        after = report.texts(anchor)
        assert after, anchor
        assert after != before[anchor] or anchor in ("roofline", "law"), anchor
        assert not any("compiled" in text for text in after), anchor
    report.show_all()
    assert {anchor: report.texts(anchor) for anchor in anchors} == before


def marks_of(report: Opened, anchor: str) -> int:
    """Markers in the charts of a section."""
    return report.page.locator(f"#{anchor} figure.chart:not([hidden]) .mark-symbol path").count()


def test_a_facet_takes_markers_out_of_charts_of_all_points(report: Opened) -> None:
    """Charts that hold every point lose those that are not chosen."""
    before = {anchor: marks_of(report, anchor) for anchor in ("roofline", "law")}
    report.choose("compile", "compiled")
    assert all(0 < marks_of(report, anchor) < before[anchor] for anchor in before)
    report.show_all()
    assert {anchor: marks_of(report, anchor) for anchor in before} == before


def test_values_of_a_facet_add_up_and_facets_narrow(report: Opened) -> None:
    """Two values of one facet choose either; a second facet chooses among them; a section left without says so."""
    report.choose("compile", "eager", "compiled")
    assert report.page.locator("#chosen").inner_text() == "17 of 17 points" or "17 points"
    report.choose("warm-up", "cold")
    assert report.page.locator("#chosen").inner_text() == "2 of 17 points"
    assert report.page.locator("#law .unseen").is_visible()
    assert report.page.locator("#law figure.chart").first.is_hidden()
    report.show_all()
    assert report.page.locator("#law .unseen").is_hidden()


def test_words_are_searched_in_names_bounds_and_sentences(report: Opened) -> None:
    """Every word must be found; a search without a result empties the table and says so."""
    search = report.page.locator("#filters input")
    for words, count in (("compute-bound 4096 eager", "1 of 17 points"), ("nothing like it", "0 of 17 points")):
        search.fill(words)
        report.page.wait_for_selector(f"#chosen:text-is('{count}')")
        report.drawn()
    assert report.page.locator("#points .none").last.inner_text() == "None of the points chosen."
    report.show_all()
    assert report.page.locator("#chosen").inner_text() == "17 points"


# --- looks ------------------------------------------------------------------------------------------------------------

CONTRAST = """() => {
  const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const parsed = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parsed(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.5) return colour;
    }
    return [255, 255, 255];
  };
  const faults = [];
  for (const element of document.querySelectorAll("body *:not(script)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || !box.height) continue;
    if (element.closest("svg .mark-text")) continue; // letters on coloured cells: tests of the theme hold those
    const style = getComputedStyle(element);
    const ink = parsed(element.closest("svg") ? style.fill : style.color);
    const [low, high] = [light(ink), light(ground(element))].sort((one, other) => one - other);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) faults.push(`${element.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return [...new Set(faults)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_legible(browser: Browser, written: Path, scheme: Literal["light", "dark"]) -> None:
    """Contrast of 4.5 (WCAG 2 AA) or more between all text and its ground, by day and by night."""
    opened = Opened(browser, written, scheme)
    assert opened.page.locator("html").get_attribute("data-theme") == scheme
    assert opened.page.evaluate(CONTRAST) == []


def test_a_button_turns_the_page_dark_and_back(report: Opened) -> None:
    """Ground, text and charts change together; on paper the page is light whatever the button says."""
    ground = "getComputedStyle(document.body).backgroundColor"
    title = "getComputedStyle(document.querySelector('#law svg .role-title-text text')).fill"
    day = [report.page.evaluate(each) for each in (ground, title)]
    report.page.locator("#theme").press("Enter")
    night = [report.page.evaluate(each) for each in (ground, title)]
    assert all(one != other for one, other in zip(day, night, strict=True))
    report.page.emulate_media(media="print")
    assert [report.page.evaluate(each) for each in (ground, title)] == day
    report.page.emulate_media(media="screen")
    report.page.locator("#theme").press("Enter")
    assert [report.page.evaluate(each) for each in (ground, title)] == day


def test_the_page_fits_its_window(report: Opened) -> None:
    """Nothing sticks out sideways, on a screen or on a phone."""
    for width in (1120, 380):
        report.page.set_viewport_size({"width": width, "height": 800})
        report.page.wait_for_timeout(400)
        report.drawn()
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width
    report.page.set_viewport_size({"width": 1120, "height": 900})
    report.page.wait_for_timeout(400)
    report.drawn()


def test_wide_charts_are_drawn_narrower_on_a_phone(report: Opened) -> None:
    """A plot of 900 pixels is not shrunk until its letters are unreadable: it is drawn for the room there is."""
    report.page.set_viewport_size({"width": 420, "height": 800})
    report.page.wait_for_timeout(400)
    report.drawn()
    letters = report.page.locator("#law svg .role-axis-label text").first
    assert letters.bounding_box()["height"] >= 9
    report.page.set_viewport_size({"width": 1120, "height": 900})
    report.page.wait_for_timeout(400)
    report.drawn()


def test_the_page_prints(report: Opened) -> None:
    """On paper the navigation is gone, of the filters what they left is told, and the charts remain."""
    report.page.emulate_media(media="print")
    assert report.page.locator("nav").is_hidden()
    assert report.page.locator("#filters input").is_hidden()
    assert report.page.locator("#chosen").is_visible()
    assert report.page.locator("figure.chart svg").first.is_visible()
    report.page.emulate_media(media="screen")


PLACE = """() => {
  const at = document.activeElement;
  const places = { nav: "nav", "#filters": "facet", th: "heading", ".plot": "plot", figcaption: "fold" };
  const found = Object.entries(places).find(([selector]) => at.closest(selector));
  return found ? found[1] : at.id;
}"""
"""What has the focus, in a word."""


def test_everything_is_reached_by_keyboard(report: Opened) -> None:
    """Tabbing from the top comes by the theme, the contents, the search, facets, a chart, its fold and a heading."""
    report.page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached: set[str] = set()
    for _ in range(200):
        report.page.keyboard.press("Tab")
        reached.add(report.page.evaluate(PLACE))
    assert {"theme", "nav", "facet", "plot", "fold", "heading"} <= reached


# --- the page of a point ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traces(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """A report of one imported trace with hostile names, and of a point without events."""
    folder = tmp_path_factory.mktemp("traces")
    runs = [imported("trace", run_id="r000"), warm(64, 18, 18, 5, run_id="r001", point_id="plain")]
    events = profiled_steps("r000", 100, 50, steps=3, kernel=HOSTILE)
    store = write_store(folder / "store", runs=runs, events=events)
    return Opened(browser, write_report(open_store(store), folder / "report.html"))


def open_point(opened: Opened, name: str) -> None:
    """Follow the link of a point's row."""
    opened.page.locator("#points tbody a", has_text=name).first.click()
    opened.page.wait_for_selector("#point[data-opened]")


def test_a_name_opens_the_points_page_and_back_leads_to_the_report(traces: Opened) -> None:
    """The address says which point, so that it can be sent; the browser's way back closes it; focus moves to it."""
    open_point(traces, "trace")
    assert traces.page.url.endswith("#point=trace")
    assert traces.page.locator("main").is_hidden()
    assert traces.page.evaluate("document.activeElement.id") == "point-title"
    assert traces.page.locator("#point canvas").count() >= 1
    traces.page.go_back()
    assert traces.page.locator("main").is_visible()
    assert traces.page.locator("#point").is_hidden()


def test_a_point_without_a_page_says_how_to_get_one(traces: Opened) -> None:
    """Its verdict stands there, and the command that makes a report with its page."""
    open_point(traces, "matmul_add")
    text = traces.page.locator("#point").inner_text()
    assert "python -m analysis report --points plain" in text
    assert "18.0 µs" in text
    traces.page.go_back()


def test_the_timeline_moves(traces: Opened) -> None:
    """W zooms in: the picture changes, and the key for all brings the first one back."""
    open_point(traces, "trace")
    canvas = traces.page.locator("#point canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    traces.page.keyboard.press("0")
    traces.page.wait_for_timeout(200)
    first = canvas.screenshot()
    for _ in range(4):
        traces.page.keyboard.press("w")
    traces.page.wait_for_timeout(200)
    assert canvas.screenshot() != first
    traces.page.keyboard.press("0")
    traces.page.wait_for_timeout(200)
    assert canvas.screenshot() == first
    traces.page.go_back()


def test_hostile_names_of_a_points_page_stay_text(traces: Opened) -> None:
    """A kernel whose name is a script adds no element, and neither the page nor the policy says anything."""
    open_point(traces, "trace")
    assert HOSTILE in traces.page.locator("#point").inner_text()
    assert traces.page.locator("img").count() == 0
    assert "owned" not in traces.page.title()
    traces.page.go_back()
    assert traces.said == []
    assert all(request.startswith(traces.url) for request in traces.requests)


def test_an_address_that_is_no_encoding_breaks_nothing(traces: Opened) -> None:
    """A link that was cut in the middle of an escape shows the report."""
    traces.page.goto("about:blank")
    traces.page.goto(f"{traces.url}#point=%E0%A4%A")
    traces.drawn()
    assert traces.page.locator("main").is_visible()
    assert traces.said == []


def test_back_from_a_link_that_was_sent_leads_to_the_points(traces: Opened) -> None:
    """Who comes by the address of a point has not seen the report: the way back is its table of points."""
    traces.page.goto("about:blank")
    traces.page.goto(f"{traces.url}#point=trace")
    traces.page.wait_for_selector("#point[data-opened]")
    traces.page.locator("#point .back").click()
    traces.drawn()
    traces.page.wait_for_timeout(1500)  # the window glides there
    box = traces.page.locator("#points").bounding_box()
    assert box is not None and abs(box["y"]) < 300


def test_imported_traces_follow_the_filters(traces: Opened) -> None:
    """Their table is no table of points, but its rows are."""
    traces.page.goto(traces.url)
    traces.drawn()
    row = traces.page.locator("#imports tbody tr")
    assert row.is_visible()
    traces.choose("workload", "matmul_add")
    assert row.is_hidden()
    assert traces.page.locator("#words").is_visible()
    traces.show_all()
    assert row.is_visible()


def test_values_that_would_leave_nothing_are_struck_out(report: Opened) -> None:
    """Of cold points none has a bound: the bounds that others have are dimmed, not taken away."""
    report.choose("warm-up", "cold")
    struck = report.page.locator("#filters .values button.without").all_text_contents()
    assert "overhead-bound" in struck and "cold" not in struck
    report.show_all()
    assert report.page.locator("#filters .values button.without").count() == 0


def test_tiny_and_huge_times_do_not_stop_the_page(browser: Browser, tmp_path: Path) -> None:
    """A time that no clock tells is written in powers of ten."""
    runs = [warm(64, 1e-120, 1e-120, 1e-121), warm(128, 1e30, 18, 1e30)]
    opened = Opened(browser, write_report(open_store(write_store(tmp_path / "s", runs=runs)), tmp_path / "r.html"))
    assert opened.said == []
    assert "1.00e−120 µs" in opened.page.locator("#points").inner_text()


def test_an_address_of_no_point_shows_the_report(traces: Opened) -> None:
    """A link to a point that this report does not hold is no dead end."""
    traces.page.goto(f"{traces.url}#point=nobody")
    assert traces.page.locator("main").is_visible()


# --- what may come ----------------------------------------------------------------------------------------------------


def test_hostile_names_and_reasons_do_not_run(browser: Browser, tmp_path: Path) -> None:
    """Markup in names, params, reasons and the device's model is shown as text, in tables, charts and tips."""
    runs = [warm(*each, workload=HOSTILE, params={"note": HOSTILE}) for each in ((64, 18, 18, 5), (4096, 220, 20, 220))]
    runs += [
        cold(64, 18.5, workload=HOSTILE),
        {"workload": HOSTILE, "size": 8192, "status": "failed", "reason": HOSTILE},
    ]
    store = write_store(tmp_path / "store", runs=runs, environments=[{"device": "cuda", "device_name": HOSTILE}])
    opened = Opened(browser, write_report(open_store(store), tmp_path / "report.html"))
    opened.page.locator("#series .mark-symbol path").last.hover()
    assert "owned" not in opened.page.title()
    assert opened.page.locator("img").count() == 0
    assert opened.said == []
    assert opened.requests == [opened.url]
    assert HOSTILE in opened.page.locator("#failed").inner_text()


def test_an_empty_store_makes_a_quiet_page(browser: Browser, tmp_path: Path) -> None:
    """Without charts the page still loads without a word."""
    opened = Opened(browser, write_report(open_store(write_store(tmp_path / "store")), tmp_path / "report.html"))
    assert opened.said == []
    assert opened.page.locator(".missing").count() >= 8


def test_hostile_traces_do_not_run(browser: Browser, tmp_path: Path) -> None:
    """Markup in names of files, steps and kernels and in audit lines is shown as text, and the page fits a phone."""
    runs = [imported(HOSTILE, "annotation", [{"kind": HOSTILE, "steps": [[0, 9]]}], line=HOSTILE)]
    events = profiled_steps("r000", 100, 50, steps=3, kernel=HOSTILE, mark=HOSTILE)
    store = write_store(tmp_path / "store", runs=runs, events=events)
    opened = Opened(browser, write_report(open_store(store), tmp_path / "report.html"))
    assert "owned" not in opened.page.title()
    assert opened.page.locator("img").count() == 0
    assert opened.said == []
    assert opened.requests == [opened.url]
    assert opened.page.locator("#imports tbody td").last.inner_text() == HOSTILE
    opened.page.set_viewport_size({"width": 380, "height": 800})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 380
