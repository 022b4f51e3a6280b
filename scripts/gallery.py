"""The pictures of docs/report.md and of the README, taken of the reports of the repository's results.

python scripts/gallery.py [FOLDER]      # default: docs/pictures
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from analysis.naming import named_runs
from analysis.report import write_report
from analysis.store import open_store

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
H200, FINDINGS, LADDER = RESULTS / "h200", RESULTS / "h200_findings", RESULTS / "h200_ladder"
WIDTH = 1120
TRAINED = "workload=train_step size=16 optimizer=adamw impl=loop compile=false"


def main() -> int:
    """Write every picture, and say which."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/pictures"
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        print("no Chromium: install it or name it with CHROMIUM=/path/to/chromium", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        reports = {store: report(store, Path(place) / f"{store.name}.html") for store in (H200, FINDINGS, LADDER)}
        for name, (store, scheme, take) in PICTURES.items():
            page = opened(browser, reports[store], scheme)
            take(page, folder / f"{name}.png")
            shrink(folder / f"{name}.png")
            page.context.close()
            print(folder / f"{name}.png")
        browser.close()
    return 0


def report(store: Path, path: Path) -> Path:
    """The default report of a store; of the ladder's, with a page for the training steps whose events are kept."""
    with open_store(store) as connection:
        return write_report(connection, path, named_runs(connection, TRAINED) if store is LADDER else None)


def opened(browser: Browser, path: Path, scheme: Literal["light", "dark"]) -> Page:
    """A report with all its charts drawn."""
    page = browser.new_context(viewport={"width": WIDTH, "height": 1000}, color_scheme=scheme).new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]", state="attached", timeout=120_000)
    return page


def shrink(path: Path) -> None:
    """A third of the size with 128 colours, which is all that a chart has; needs Pillow, and does nothing without."""
    try:
        from PIL import Image
    except ImportError:
        return
    picture = Image.open(path).convert("RGB")
    picture.quantize(colors=128, dither=Image.Dither.NONE).save(path, optimize=True)


def union(page: Page, path: Path, *parts: Locator) -> None:
    """The smallest picture that holds all the parts."""
    boxes = [box for part in parts if (box := part.bounding_box()) is not None]
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right, foot = max(box["x"] + box["width"] for box in boxes), max(box["y"] + box["height"] for box in boxes)
    edge = 12
    clip = {"x": left - edge, "y": top - edge, "width": right - left + 2 * edge, "height": foot - top + 2 * edge}
    page.screenshot(path=path, full_page=True, clip=clip)


def without_captions(page: Page) -> None:
    """Hide what can be unfolded below charts: a picture cannot be."""
    page.evaluate("document.querySelectorAll('figcaption').forEach((each) => { each.hidden = true; })")


def overview(page: Page, path: Path) -> None:
    """From the title to the crossings of all series."""
    union(page, path, page.locator("h1"), page.locator("#answer figure").first, page.locator("#theme"))


def plots(anchor: str, *places: int) -> Callable[[Page, Path], None]:
    """The charts at these places of a section."""

    def take(page: Page, path: Path) -> None:
        without_captions(page)
        found = page.locator(f"#{anchor} figure.chart")
        union(page, path, *(found.nth(place) for place in places))

    return take


def crossings(page: Page, path: Path) -> None:
    """Where the eager series in bf16 cross, in one chart."""
    without_captions(page)
    page.locator("input[type=search]").first.fill("bf16 eager")
    page.wait_for_timeout(1500)
    union(page, path, page.locator("#answer figure").first)


def phases(page: Page, path: Path) -> None:
    """Phases of a training step whose optimizer is a loop over the weights, and who holds memory in each."""
    with open_store(LADDER) as connection:
        (trained,) = named_runs(connection, TRAINED)
    page.evaluate(f"window.location.hash = '#point={trained.point_id}'")
    page.wait_for_selector("#point[data-opened]")
    page.wait_for_timeout(500)
    union(page, path, page.locator("#point section", has_text="Phases").first)


def eager_and_compiled(page: Page, path: Path) -> None:
    """The crossover of matmul_add in bf16, eager beside compiled."""
    without_captions(page)
    titles = ["bf16 · eager: time per step against size", "bf16 · compiled: time per step against size"]
    found = [page.locator(f'#series .plot[aria-label^="{title}"]').first for title in titles]
    union(page, path, *found)


def point(first: int, last: int) -> Callable[[Page, Path], None]:
    """Sections of the page of a point, from one to another, counted from 0."""

    def take(page: Page, path: Path) -> None:
        key = page.locator("#points tbody a", has_text="reduce-overhead").first.get_attribute("href")
        page.evaluate(f"window.location.hash = {key!r}")
        page.wait_for_selector("#point[data-opened]")
        page.wait_for_timeout(500)
        found = page.locator("#point section")
        parts = [found.nth(place) for place in range(first, last + 1)]
        union(page, path, *([page.locator("#point h2").first] if first == 0 else []), *parts)

    return take


PICTURES: dict[str, tuple[Path, Literal["light", "dark"], Callable[[Page, Path], None]]] = {
    "h200": (H200, "light", eager_and_compiled),
    "report": (H200, "light", overview),
    "report-grid": (H200, "light", plots("series", 0)),
    "report-roofline": (H200, "dark", plots("roofline", 0)),
    "report-pairs": (H200, "light", plots("pairs", 0, 1, 2, 3)),
    "report-point": (FINDINGS, "light", point(0, 0)),
    "report-findings": (FINDINGS, "light", point(4, 4)),
    "report-phases": (LADDER, "light", phases),
    "h200-ladder": (LADDER, "light", crossings),
    "report-timeline": (FINDINGS, "dark", point(6, 7)),
}
"""Name of the file -> the store, by day or by night, and what is taken of its report."""


if __name__ == "__main__":
    sys.exit(main())
