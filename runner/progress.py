"""What a sweep prints: a line a point, a summary; on a terminal a bar below, drawn only when a point begins or ends."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner import tables
from runner.config import Job
from runner.law import BALANCED, DEVICE, OVERHEAD, SERIAL
from runner.pace import Pace, kind_of
from runner.resume import is_failure
from runner.words import clock, counted, duration

HERE = os.environ.get("PWD", "")
MANY = 1000
BAR_COLUMNS = 20
PYTHON = "python" if shutil.which("python") == sys.executable else shlex.quote(sys.executable.removeprefix(f"{HERE}/"))
"""As a user would call this interpreter from this folder."""
COLOURS = {OVERHEAD: "yellow", DEVICE: "blue", BALANCED: "green", SERIAL: "magenta"}


class Progress:
    """Lines on stdout for people; counts for the exit code."""

    def __init__(self, paces: Counter[str], width: int, store: Path) -> None:
        self.left, self.total, self.width, self.store = Counter(paces), paces.total(), width, store
        self.pace, self.devices = Pace({}), 1
        self.started = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.before: Counter[str] = Counter()
        self._ended = self.started
        self._now: dict[str, str] = {}
        self._bar = _Bar(self._known_total()) if sys.stdout is not None and sys.stdout.isatty() else None

    @property
    def done(self) -> int:
        """Points that are in the store, whether measured now or before."""
        return self.counts.total() + self.before.total()

    @property
    def failed(self) -> int:
        """Points that failed, now or before."""
        return _failures(self.counts) + _failures(self.before)

    def begin(self, job: Job, device: str) -> None:
        """A point is handed out."""
        if not self.counts:
            self._ended = time.monotonic()
        self._now[device] = job.label
        self._draw()

    def stands(self, job: Job, status: str) -> None:
        """A point is in the store already."""
        self.before[status] += 1
        self.left[kind_of(job.point)] -= 1

    def end(self, job: Job, device: str, row: dict[str, Any]) -> None:
        """One line: the point, its status or its bound, its times."""
        self._now.pop(device, None)
        self.counts[row["status"]] += 1
        self._learn(job, row)
        place = f" {device}" if self.devices > 1 else ""
        self._say(f"[{self._count()}]{place} {job.label:{self.width}}  {told(row)}")
        self._draw()

    def note(self, text: str) -> None:
        """Something that concerns the whole sweep."""
        self._say(text)

    def summary(self) -> None:
        """What was done, where it lies, and what to look at next."""
        self.close()
        if self.counts:
            seconds = time.monotonic() - self.started
            skipped, bad = self.counts["skipped"], _failures(self.counts)
            ok = self.counts.total() - skipped - bad
            self._say(f"{ok} ok, {bad} failed, {skipped} skipped in {seconds:.1f} s; results in {self.store}")
        else:
            self._say(f"Nothing is left to measure; results in {self.store}")
        if self.before:
            told_before = ", ".join(f"{count} {status}" for status, count in sorted(self.before.items()))
            self._say(f"Measured before: {told_before}; rerun=true measures again.")
        option = "" if str(self.store) == "outputs/store" else f" --store {shlex.quote(str(self.store))}"
        if self.counts.total() > MANY:
            self._say(f"{PYTHON} -m runner.store compact{option} makes so many runs quick to read.")
        self._say(f"Next: {PYTHON} -m analysis report{option}")

    def stopped(self, why: str, done: int) -> None:
        """The sweep ends before its last point: what is done, and the command that goes on."""
        self.close()
        self._say(f"{why}: {self._extent(done)}; results in {self.store}")
        self._say(f"The same command goes on: {command()}")

    def _known_total(self) -> int | None:
        return self.total

    def _count(self) -> str:
        return f"{self.done:{len(str(self.total))}}/{self.total}"

    def _extent(self, done: int) -> str:
        return f"{done} of {self.total} points are done"

    def _left(self) -> str:
        return f"{clock(self.pace.seconds(self.left, self.devices))} left"

    def _learn(self, job: Job, row: dict[str, Any]) -> None:
        """What the point took on its device, with all that went before it since the last one."""
        kind, now = kind_of(job.point), time.monotonic()
        self.left[kind] -= 1
        if row["status"] != "skipped":
            self.pace.learn(kind, (now - self._ended) * self.devices)
        self._ended = now

    def _draw(self) -> None:
        if self._bar is not None:
            self._bar.draw(self.done, self.failed, self._left(), ", ".join(self._now.values()))

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _say(self, text: str) -> None:
        say(text, self._bar.print if self._bar is not None else print)


class SearchProgress(Progress):
    """The same for a search, which nobody knows the number of points of: series that are decided count."""

    def __init__(self, series: int, width: int, store: Path) -> None:
        self.series, self.lines = series, dict[int, str]()
        super().__init__(Counter(), width, store)

    def decide(self, index: int, line: str) -> None:
        """A series is decided: its number, and what was found."""
        self.lines[index] = line

    def summary(self) -> None:
        """Before all else what was found, a line a series."""
        self.close()
        for _, line in sorted(self.lines.items()):
            self._say(line)
        super().summary()

    def _known_total(self) -> int | None:
        return None

    def _count(self) -> str:
        return str(self.done)

    def _extent(self, done: int) -> str:
        return f"{counted(done, 'run')} done, {self._left()}"

    def _left(self) -> str:
        return f"{len(self.lines)} of {self.series} series decided"


def say(text: str, how: Callable[[str], object] = print) -> None:
    """Print a line; where that fails (`| head`, a full disk, a closed or an ASCII output), go on in silence."""
    if sys.stdout is None:
        return
    try:
        how(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        how(text.encode("ascii", "replace").decode())
    except OSError:  # nobody reads any more, or the log's disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command() -> str:
    """The command that was given, to be given again."""
    return shlex.join([PYTHON, "-m", "runner", *sys.argv[1:]])


class _Bar:
    """The line below: how far, how long, what now. It has no thread of its own, since that would disturb a CPU."""

    def __init__(self, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Rich

        self._console = Console(highlight=False, soft_wrap=True)
        self._total = total
        columns = (BarColumn(BAR_COLUMNS), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._rich = Rich(*columns, console=self._console, auto_refresh=False, transient=True)
        self._task = self._rich.add_task("starting", total=total)
        self._rich.start()

    def print(self, text: str) -> None:
        """A line above the bar, bounds in their colours."""
        from rich.text import Text

        line = Text(text)
        for bound, colour in COLOURS.items():
            line.highlight_words([f" {bound} "], colour)
        line.highlight_words([f" {status}: " for status in ("failed", "crashed", "timeout", "oom")], "bold red")
        self._console.print(line)

    def draw(self, done: int, failed: int, left: str, now: str) -> None:
        """Draw once. What is measured now is cut where the line ends."""
        told = [f"{failed} failed"] if failed else []
        told += [left] + ([now] if now else [])
        room = max(10, self._console.width - BAR_COLUMNS - 2 * len(str(self._total or done)) - 5)
        text = " · ".join(told)
        self._rich.update(self._task, completed=done, description=text if len(text) <= room else f"{text[: room - 1]}…")
        self._rich.refresh()

    def close(self) -> None:
        """Take the bar away."""
        self._rich.stop()


def _failures(counts: Counter[str]) -> int:
    return sum(count for status, count in counts.items() if is_failure(status))


def told(row: dict[str, Any]) -> str:
    """A run in a few words: its status and why, or its bound and its times."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['reason']}"
    facts = json.loads(row["facts"])
    return _times(row) + "".join(f" ({each})" for each in _warnings(facts))


def _times(row: dict[str, Any]) -> str:
    first = [sample["value"] for sample in row["samples"] if sample["quantity"] == "first"]
    if first:
        return f"{'first call':16} {duration(first[0])}, then {duration(first[-1])}"
    names = ("wall", "issue", "device") if row["device_us"] else ("wall", "floor")
    times = [f"{name} {_us(row[f'{name}_us'])}" for name in names if row[f"{name}_us"]]
    if not times:
        return "done"
    verdict = tables.verdict(row)
    bound = verdict.bound if verdict.bound != "unknown" else f"unknown ({verdict.reason})"
    return f"{bound:16} {', '.join(times)}"


def _warnings(facts: dict[str, Any]) -> list[str]:
    others = facts.get("condition", {}).get("other_processes")
    busy = ["something else used the host"] if facts.get("host_contended") else []
    return busy + ([f"{others} other process{'es' if others > 1 else ''} on the device"] if others else [])


def _us(value: list[float]) -> str:
    """At most three digits, and half the interval's width in percent; where that says nothing, the interval."""
    if not value[0]:
        return "0 us"
    half_width_frac = (value[2] - value[1]) / 2 / value[0]
    if half_width_frac > 1:
        return f"{duration(value[0])} ({duration(value[1])} to {duration(value[2])})"
    return f"{duration(value[0])} ±{half_width_frac:.1%}"
