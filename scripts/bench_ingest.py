"""What importing a trace costs: `python scripts/bench_ingest.py [--mb 107 507] [--source FILE] [--rounds 3]`.

Large traces are made from a small one (make_trace.py) in a temporary folder. The import runs as a whole command, its
start included; beside it, in the same rounds, decoders that only read and decode the file, timed within their process.
The first pass fills the file cache and is watched for memory; the timed passes run unwatched, since watching takes
time from what is watched. Exit code 2 if a stated figure was not met.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from make_trace import Figures, make

ROOT = Path(__file__).parent.parent
# Of our traces the one with the shortest events, 240 bytes, as large traces of training have: the most work a MB.
SOURCE = ROOT / "tests/data/traces/h200_1024_bfloat16_b0_default.json.gz"
WATCH_S = 0.02

# The stated figures.
LEAST_MB_PER_S = 100
MOST_PEAK_MB = 400
MOST_LAYOUT_RATIO = 2

# A decoder in a process of its own prints the seconds it took and leaves without freeing what it built.
READ = """
import gzip, json, os, sys, time
from typing import Any
import msgspec
class Event(msgspec.Struct):
    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: msgspec.Raw = msgspec.Raw(b"")
class Trace(msgspec.Struct):
    traceEvents: list[Event]
decode = {decode}
start = time.perf_counter()
with (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "rb") as file:
    trace = decode(file.read())
print(time.perf_counter() - start, flush=True)
os._exit(0)
"""


@dataclass(frozen=True)
class Way:
    """A way to read a trace. decode: the Python expression of a decoder, None = the import command; memory: bytes it
    needs a byte of JSON, about."""

    title: str
    decode: str | None
    memory: float

    def command(self, file: Path, store: Path) -> list[str]:
        """What to run. store: where an import goes."""
        if self.decode is None:
            return [sys.executable, "-m", "runner.ingest", str(file), "--store", str(store)]
        return [sys.executable, "-c", READ.format(decode=self.decode), str(file)]


WAYS = {
    "ingest": Way("runner.ingest (whole)", None, 0),
    "json": Way("json.loads", "json.loads", 7),
    "untyped": Way("msgspec untyped", "msgspec.json.decode", 7),
    "typed": Way("msgspec typed", "msgspec.json.Decoder(Trace).decode", 4),
}


@dataclass(frozen=True)
class Made:
    """A trace that was made. layout: how it is printed; asked_mb: the size that was asked for."""

    path: Path
    layout: str
    asked_mb: float
    figures: Figures

    @property
    def title(self) -> str:
        """What the table calls it."""
        return f"{self.figures.json_bytes / 1e6:.0f} MB {self.layout}{' gz' if self.path.suffix == '.gz' else ''}"


@dataclass
class Case:
    """A file read in one way, and what it took. peak_mb: largest sum of PSS of the processes alive at one moment;
    upper_mb: sum of every process' own largest RSS; own: what the command itself says of its speed."""

    made: Made
    way: Way
    seconds: list[float] = field(default_factory=list)
    peak_mb: float | None = None
    upper_mb: float | None = None
    own: str = ""
    skipped: str = ""

    @property
    def megabytes(self) -> float:
        """10^6 bytes of JSON text."""
        return self.made.figures.json_bytes / 1e6

    @property
    def speed(self) -> float | None:
        """Median MB/s of JSON text; None where it was not run."""
        return self.megabytes / statistics.median(self.seconds) if self.seconds else None


class Watch(threading.Thread):
    """Follows the memory of a process and its descendants until it is told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.ended = pid, threading.Event()
        self.peak_kb, self.largest_kb = 0, dict[int, int]()

    def run(self) -> None:
        """Look every 20 ms."""
        while not self.ended.wait(WATCH_S):
            tree = list(_tree(self.pid))
            self.peak_kb = max(self.peak_kb, sum(_kilobytes(pid, "smaps_rollup", "Pss") for pid in tree))
            for pid in tree:
                self.largest_kb[pid] = max(self.largest_kb.get(pid, 0), _kilobytes(pid, "status", "VmHWM"))


def _tree(pid: int) -> Iterator[int]:
    """A process and its descendants, as far as they are still there."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in found:
            yield from _tree(int(child))


def _kilobytes(pid: int, file: str, key: str) -> int:
    """A field of a file in /proc/PID; 0 once the process has ended."""
    try:
        found = re.search(rf"^{key}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def make_all(source: Path, sizes: list[float], folder: Path) -> list[Made]:
    """Every size plain and compressed, and the smallest in every other layout."""
    wanted = [(mb, layout, end) for mb in sizes for layout, end in (("kineto", ".json"), ("kineto", ".json.gz"))]
    wanted += [(min(sizes), layout, ".json") for layout in ("compact", "indented", "sorted", "absolute")]
    made = []
    for mb, layout, end in wanted:
        path = folder / f"{mb:g}_{layout}{end}"
        absolute = layout == "absolute"
        made.append(Made(path, layout, mb, make(source, path, mb, "kineto" if absolute else layout, absolute)))
    return made


def cases_of(made: list[Made], ways: list[Way]) -> list[Case]:
    """Every way on torch's own layout, and the first of them on the others."""
    return [Case(file, way) for file in made for way in (ways if file.layout == "kineto" else ways[:1])]


def watch(case: Case, folder: Path) -> None:
    """Run a case once for its memory, and see that the import read every event; skip it where memory is short."""
    needed_mb, free_mb = case.way.memory * case.megabytes, _available_mb()
    if needed_mb > free_mb:
        case.skipped = f"needs about {needed_mb / 1e3:.1f} GB, {free_mb / 1e3:.1f} GB are free"
        return
    with tempfile.TemporaryDirectory(dir=folder) as store:
        process = _start(case, Path(store))
        watcher = Watch(process.pid)
        watcher.start()
        out = _finish(process, case)
        watcher.ended.set()
        watcher.join()
        if case.way.decode is None:
            _check(case, Path(store))
    if not watcher.peak_kb:
        raise SystemExit("memory cannot be watched here: this benchmark needs Linux and its /proc/PID/smaps_rollup")
    case.peak_mb, case.upper_mb = watcher.peak_kb * 1.024e-3, sum(watcher.largest_kb.values()) * 1.024e-3
    said = re.search(r"[\d.]+ ?MB/s", out)
    case.own = said[0] if said and case.way.decode is None else ""


def take(case: Case, folder: Path) -> None:
    """Run a case once for its time."""
    if case.skipped:
        return
    with tempfile.TemporaryDirectory(dir=folder) as store:
        start = time.perf_counter()
        out = _finish(_start(case, Path(store)), case)
        whole_s = time.perf_counter() - start
    case.seconds.append(whole_s if case.way.decode is None else float(out))


def _available_mb() -> float:
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return int(found[1]) * 1.024e-3 if found else 0


def _start(case: Case, store: Path) -> subprocess.Popen[str]:
    command = case.way.command(case.made.path, store)
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(process: subprocess.Popen[str], case: Case) -> str:
    """What it printed on stdout. Raises SystemExit with the last line of its complaint if it failed."""
    out, complaint = process.communicate()
    if process.returncode:
        last = (complaint.strip().splitlines() or ["no message"])[-1]
        raise SystemExit(f"{case.way.title} on {case.made.title} failed with exit code {process.returncode}: {last}")
    return out


def _check(case: Case, store: Path) -> None:
    """Raise SystemExit if the import did not count the events that were made."""
    runs = pl.concat([pl.read_parquet(path) for path in sorted((store / "runs").rglob("*.parquet"))])
    audit = json.loads(runs["facts"].item())["audit"]
    got = tuple(audit[key] for key in ("events", "complete", "device_events"))
    made = case.made.figures
    if got != (made.events, made.complete, made.device_events):
        raise SystemExit(f"{case.made.title}: the import counted {got} events, complete and device events, not {made}")


def table(cases: list[Case]) -> str:
    """A line a case, in columns."""
    rows: list[tuple[str, ...]] = [
        ("file", "way", "MB/s", "range", "x json.loads", "million events/s", "peak MB", "at most MB", "its own")
    ]
    rows += [_row(case, cases) for case in cases]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(case: Case, cases: list[Case]) -> tuple[str, ...]:
    head = (case.made.title, case.way.title)
    if not case.speed:
        return (*head, f"skipped: {case.skipped}", *[""] * 6)
    beside = next((c.speed for c in cases if c.made == case.made and c.way == WAYS["json"]), None)
    events_per_s = case.made.figures.events * case.speed / case.megabytes
    return (
        *head,
        f"{case.speed:.0f}",
        f"{case.megabytes / max(case.seconds):.0f} to {case.megabytes / min(case.seconds):.0f}",
        f"{case.speed / beside:.2f}" if beside else "",
        f"{events_per_s / 1e6:.2f}",
        f"{case.peak_mb:.0f}",
        f"{case.upper_mb:.0f}",
        case.own,
    )


def verdicts(cases: list[Case]) -> list[tuple[bool, str]]:
    """Each stated figure of the import: whether it was met, and the sentence."""
    ours = [case for case in cases if case.way == WAYS["ingest"] and case.speed]
    found = []
    for case in ours:
        assert case.speed and case.peak_mb is not None
        if case.made.layout == "kineto":
            found.append(
                (case.speed >= LEAST_MB_PER_S, f"{case.made.title}: {case.speed:.0f} MB/s of {LEAST_MB_PER_S}")
            )
        else:
            ratio = _beside_kineto(case, ours)
            found.append(
                (ratio <= MOST_LAYOUT_RATIO, f"{case.made.title}: {ratio:.2f} x the time of {MOST_LAYOUT_RATIO}")
            )
        found.append((case.peak_mb <= MOST_PEAK_MB, f"{case.made.title}: {case.peak_mb:.0f} MB of {MOST_PEAK_MB}"))
    return found


def _beside_kineto(case: Case, cases: list[Case]) -> float:
    """How much longer a MB takes than in torch's own layout at the same size."""
    plain = next(
        c for c in cases
        if c.made.layout == "kineto" and c.made.asked_mb == case.made.asked_mb and c.made.path.suffix == ".json"
    )  # fmt: skip
    assert case.speed and plain.speed
    return plain.speed / case.speed


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)


def main() -> int:
    """The command: make the files, run every case, print the table and what was met; 2 if a figure was not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, nargs="+", default=[107, 507], help="10^6 bytes of JSON text")
    parser.add_argument("--source", type=Path, default=SOURCE, help="the trace to repeat")
    parser.add_argument("--rounds", type=int, default=3, help="timed passes")
    parser.add_argument("--only", nargs="+", choices=sorted(WAYS), default=list(WAYS), help="ways to read")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load before the start {os.getloadavg()[0]:.1f}; MB = 10^6 bytes of JSON text")
    with tempfile.TemporaryDirectory(prefix="bench_ingest") as name:
        folder = Path(name)
        _progress("making the files")
        cases = cases_of(make_all(given.source, given.mb, folder), [WAYS[key] for key in given.only])
        for number in range(given.rounds + 1):
            for case in cases:
                _progress(f"pass {number} of {given.rounds}: {case.made.title}, {case.way.title}")
                take(case, folder) if number else watch(case, folder)
    _progress("\n")
    print(table(cases))
    met = verdicts(cases)
    print("\n".join(f"{'met    ' if good else 'NOT MET'} {sentence}" for good, sentence in met))
    return 0 if all(good for good, _ in met) else 2


if __name__ == "__main__":
    sys.exit(main())
