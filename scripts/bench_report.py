"""How large the default report is, how long it takes to make, and how long Chromium takes to draw it.

Stores of 100, 1,000 and 10,000 points are made from kept results (see bench_analysis.py). A process of its own makes
each report, from the start of Python to its end. `view` is the time from the navigation until all that the window shows
is drawn, `all` until every chart of the page is; the middle of three openings each.

    python scripts/bench_report.py [POINTS ...]
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
POINTS = (100, 1_000, 10_000)
OPENINGS = 3
MOST_BYTES, MOST_MADE_S, MOST_DRAWN_S = 5e6, 10.0, 1.5


def main() -> int:
    """Print a line for every size of store; 2 where a figure is missed."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        print("no Chromium: install it or name it with CHROMIUM=/path/to/chromium", file=sys.stderr)
        return 1
    asked = [int(text) for text in sys.argv[1:]] or POINTS
    missed = False
    print(f"{'points':>7} {'size':>9} {'made':>9} {'view':>9} {'all':>9}")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory(prefix="bench-report-") as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for points in asked:
            report, made_s = made(points, Path(folder))
            view_s, all_s = drawn(browser, report)
            size = report.stat().st_size
            print(f"{points:>7,} {size / 1e6:>6.2f} MB {made_s:>7.2f} s {view_s:>7.2f} s {all_s:>7.2f} s", flush=True)
            missed |= size > MOST_BYTES or made_s > MOST_MADE_S or view_s > MOST_DRAWN_S
        browser.close()
    print(f"asked: at most {MOST_BYTES / 1e6:.0f} MB, {MOST_MADE_S:.0f} s to make, {MOST_DRAWN_S} s to view")
    return 2 if missed else 0


def made(points: int, folder: Path) -> tuple[Path, float]:
    """The report of a store of so many points, and the seconds that it took."""
    store, report = folder / str(points), folder / f"{points}.html"
    bench = [sys.executable, ROOT / "scripts" / "bench_analysis.py", "--make", "docs/results/h200", store, str(points)]
    subprocess.run(bench, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    begin = time.perf_counter()
    command = [sys.executable, "-m", "analysis", "report", "--store", store, "-o", report]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return report, time.perf_counter() - begin


def drawn(browser: Browser, report: Path) -> tuple[float, float]:
    """Seconds until what the window shows is drawn, and until all is."""
    found = [_opened(browser, report) for _ in range(OPENINGS)]
    view, everything = zip(*found, strict=True)
    return statistics.median(view), statistics.median(everything)


def _opened(browser: Browser, report: Path) -> tuple[float, float]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-drawn]", state="attached", timeout=120_000)
    everything = page.evaluate("performance.now()") / 1e3
    view = float(page.evaluate("document.documentElement.dataset.ready")) / 1e3
    page.close()
    return view, everything


if __name__ == "__main__":
    sys.exit(main())
