"""What a sweep prints: a line a point, and a summary. Nothing is drawn while a point is measured."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.law import Verdict
from runner.point import Point


class Progress:
    """Lines on stdout for people; counts for the exit code."""

    def __init__(self, points: Sequence[Point], store: Path) -> None:
        self.total, self.store = len(points), store
        self.width = max(len(point.label) for point in points)
        self.started = time.monotonic()
        self.done = self.failed = self.skipped = 0

    def begin(self, position: int, point: Point) -> None:
        """Say what is measured now, on a terminal alone: it is overwritten by the point's line."""
        if sys.stdout.isatty():
            self._say(f"\r\033[K[{position + 1}/{self.total}] {point.label} ...", end="")

    def end(self, point: Point, row: dict[str, Any], verdict: Verdict) -> None:
        """One line: the point, its status or its bound, its times."""
        self.done += 1
        self.failed += row["status"] not in ("ok", "skipped")
        self.skipped += row["status"] == "skipped"
        lead = "\r\033[K" if sys.stdout.isatty() else ""
        width = len(str(self.total))
        told = f"{row['status']}: {row['reason']}" if row["status"] != "ok" else _told(row, verdict)
        self._say(f"{lead}[{self.done:{width}}/{self.total}] {point.label:{self.width}}  {told}")

    def note(self, text: str) -> None:
        """Something that concerns the whole sweep."""
        self._say(text)

    def summary(self) -> None:
        """What was done, where it lies, and what to look at next."""
        seconds = time.monotonic() - self.started
        ok = self.done - self.failed - self.skipped
        self._say(f"{ok} ok, {self.failed} failed, {self.skipped} skipped in {seconds:.1f} s; results in {self.store}")
        option = "" if str(self.store) == "outputs/store" else f" --store {shlex.quote(str(self.store))}"
        self._say(f"Next: python -m analysis report{option}")

    def _say(self, text: str, end: str = "\n") -> None:
        """Print; where that fails (`| head`, a full disk), the sweep goes on in silence."""
        try:
            print(text, end=end, flush=True)
        except OSError:  # nobody reads any more, or the log's disk is full
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(row: dict[str, Any], verdict: Verdict) -> str:
    names = ("wall", "issue", "device") if row["device_us"] else ("wall", "floor")
    times = [f"{name} {_us(row[f'{name}_us'])}" for name in names if row[f"{name}_us"]]
    first = [sample["value"] for sample in row["samples"] if sample["quantity"] == "first"]
    if first:
        return f"{'first call':16} {duration(first[0])}, then {duration(first[-1])}"
    bound = verdict.bound if verdict.bound != "unknown" else f"unknown ({verdict.reason})"
    busy = " (something else used the host)" if json.loads(row["facts"]).get("host_contended") else ""
    return f"{bound:16} {', '.join(times)}{busy}"


def _us(value: list[float]) -> str:
    """Three significant digits, and half the interval's width in percent."""
    return f"{duration(value[0])} ±{(value[2] - value[1]) / 2 / value[0]:.1%}" if value[0] else "0 us"


def duration(us: float) -> str:
    """A time of so many microseconds, in the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= 0.9995 * size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} us"
