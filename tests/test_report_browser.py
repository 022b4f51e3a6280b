"""The report in a browser: nothing is asked of a network, nothing fails, and hostile text does not run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from analysis.report import write_report
from analysis.store import open_store
from tests.figures import cold, h200_store, warm
from tests.given import write_store
from tests.test_report import imported, profiled_steps

pytestmark = pytest.mark.browser

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

    def __init__(self, browser: Browser, path: Path) -> None:
        self.url = path.resolve().as_uri()
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": 1120, "height": 900})
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.url)
        self.page.wait_for_function("document.documentElement.dataset.drawn !== undefined", timeout=60_000)


@pytest.fixture(scope="module")
def report(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """The report of the H200 sweep."""
    folder = tmp_path_factory.mktemp("report")
    return Opened(browser, write_report(open_store(h200_store(folder / "store")), folder / "report.html"))


def test_the_page_says_nothing_on_the_console_and_asks_for_nothing(report: Opened) -> None:
    """No error, no warning, no violation of the policy, and no request but the file itself."""
    assert report.said == []
    assert report.requests == [report.url]


def test_every_chart_is_drawn(report: Opened) -> None:
    """Each figure holds an SVG with marks in it."""
    count = report.page.locator("figure.chart").count()
    assert count == 8
    for place in range(count):
        marks = report.page.locator("figure.chart").nth(place).locator("svg [aria-roledescription], svg path")
        assert marks.count() > 0, place


def test_both_regimes_are_written_in_the_plot(report: Opened) -> None:
    """Each crossover chart names the two regimes."""
    texts = report.page.locator("#series figure.chart svg text").all_text_contents()
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


def test_the_page_fits_its_window(report: Opened) -> None:
    """Nothing sticks out sideways, on a screen or on a phone."""
    for width in (1120, 380):
        report.page.set_viewport_size({"width": width, "height": 800})
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_prints(report: Opened) -> None:
    """On paper the navigation is gone and the charts remain."""
    report.page.emulate_media(media="print")
    assert report.page.locator("nav").is_hidden()
    assert report.page.locator("figure.chart svg").first.is_visible()
    report.page.emulate_media(media="screen")


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
    assert opened.page.locator(".missing").count() >= 9


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
