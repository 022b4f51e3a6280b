"""The phases on the page of a point in a browser: nested blocks to scale, holders with the peak, night and print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from rule_given import Trace
from test_point_browser import HOSTILE, Opened, browser  # noqa: F401
from test_point_phases import FACTS, page_of
from test_sql_phases import training

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:  # noqa: F811
    """The page of four training steps whose memory was watched."""
    opened = Opened(browser, tmp_path, page_of(tmp_path / "store", training(), {"facts": FACTS}))
    yield opened
    opened.page.close()


def widths(opened: Opened, side: str) -> dict[str, tuple[float, float]]:
    """Path -> where its block begins and how wide it is (pixels)."""
    found = opened.page.locator(f".phases-block[data-side={side}]").evaluate_all(
        "(all) => all.map((each) => [each.dataset.path, "
        "each.firstChild.x.baseVal.value, each.firstChild.width.baseVal.value])"
    )
    return {path: (x, width) for path, x, width in found}


def test_the_section_stands_behind_the_steps(opened: Opened) -> None:
    """With a title, its queries, and not a word on the console."""
    keys = opened.page.locator("section.point-section").evaluate_all("(all) => all.map((each) => each.dataset.section)")
    assert keys[2:5] == ["steps", "phases", "kernels"]
    section = opened.page.locator(".point-phases")
    assert section.locator("h4").inner_text() == "Which phases the time of a step goes to, and who holds its memory"
    assert "FROM phases" in (section.locator(".point-sql code").text_content() or "")
    assert opened.said == []


def test_blocks_are_nested_and_to_one_scale(opened: Opened) -> None:
    """Host 100 us and device 60 us share a scale; a phase lies in the one around it, the outermost fill the step."""
    host, device = widths(opened, "host"), widths(opened, "device")
    assert device["step"][1] / host["step"][1] == pytest.approx(0.6, abs=0.01)
    outer, inner = host["forward"], host["forward / attention"]
    assert outer[0] <= inner[0] and inner[0] + inner[1] <= outer[0] + outer[1] + 1
    parts = [path for path in device if "/" not in path and path != "step"]
    assert sum(device[path][1] + 1 for path in parts) == pytest.approx(device["step"][1] + 1, abs=1)


def test_the_table_has_every_phase_and_sorts(opened: Opened) -> None:
    """The step stands out; a heading puts the phase with most device time first."""
    table = opened.page.locator(".point-phases table")
    assert table.locator("tbody tr").count() == 6
    assert table.locator("tr.point-typical").inner_text().startswith("step")
    table.locator("th button", has_text="device time").click()
    assert table.locator("tbody tr").nth(1).inner_text().startswith("backward")


def test_holders_are_stacked_and_the_peak_is_marked(opened: Opened) -> None:
    """Each phase has a bar of its holders, and the one with the peak a dot and its bytes."""
    drawing = opened.page.locator(".phases-memory-drawing svg")
    held = drawing.locator(".phases-held[data-path=backward] rect").evaluate_all(
        "(all) => all.map((each) => [each.dataset.holder, each.width.baseVal.value])"
    )
    assert [holder for holder, _ in held] == ["parameters", "gradients", "optimizer_state", "activations"]
    assert held[2][1] / held[0][1] == pytest.approx(2, abs=0.02)
    assert drawing.locator("circle.point-peak").count() == 1
    assert "peak 5 kB" in (drawing.text_content() or "")
    assert opened.page.locator(".phases-key").count() == 4


def test_hover_tells_what_a_block_is(opened: Opened) -> None:
    """Path, time, share and launches of a phase; all holders of a bar."""
    opened.page.locator(".phases-block[data-side=host][data-path=backward]").hover()
    assert "backward" in opened.page.locator("#tip").inner_text()
    assert "30 %" in opened.page.locator("#tip").inner_text()
    opened.page.locator(".phases-held[data-path=step]").hover()
    assert "optimizer state" in opened.page.locator("#tip").inner_text()


def test_dark_narrow_and_print(opened: Opened) -> None:
    """Blocks change with the theme, nothing sticks out on a phone, and paper shows both drawings."""
    fill = "() => getComputedStyle(document.querySelector('.phases-host')).fill"
    light = opened.page.evaluate(fill)
    opened.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert opened.page.evaluate(fill) != light
    opened.page.set_viewport_size({"width": 400, "height": 800})
    opened.view()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    opened.page.emulate_media(media="print")
    assert opened.page.locator(".phases-drawing svg").is_visible()
    assert opened.page.locator(".phases-memory-drawing svg").is_visible()


def test_hostile_phases_and_holders_stay_text(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    """Markup in the name of a phase or of a holder is shown and does not run."""
    trace = Trace("train_step")
    trace.step(0, 0, 100)
    trace.host(HOSTILE, 10, 60, 0, "user_annotation")
    trace.launched("product", 12, 15, 10, 0)
    entry = {"phase": HOSTILE, "order": 1, "peak_bytes": 10, "holders_at_peak": {HOSTILE: 10}}
    opened = Opened(browser, tmp_path, page_of(tmp_path / "store", trace, {"facts": {"phase_memory": [entry]}}))
    assert opened.page.title() == "point"
    assert opened.page.locator("img, section script").count() == 0
    assert HOSTILE in (opened.page.locator(".point-phases table").text_content() or "")
    assert opened.said == []
    opened.page.close()
