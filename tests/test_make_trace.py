"""scripts/make_trace.py: copies that are exact, behind one another, and linked within themselves only."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
OURS = ROOT / "tests/data/traces/h200_1024_float32_b8_eager.json.gz"
LAYOUTS = ("kineto", "compact", "indented", "sorted")

# One launch with its kernel, arrow and memory event, a step, an argument that means "none", and texts that a template
# or a layout could spoil.
EVENTS = [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, "ts": 10.125, "dur": 5,
     "args": {"External id": 3, "Record function id": 0, "Ev Idx": 0}},
    {"ph": "X", "cat": "cuda_runtime", "name": "100 %d \\ }, { \u00fc", "pid": 1, "tid": 1, "ts": 11, "dur": 0.5,
     "args": {"correlation": 40, "share": 0.1, "External id": "3", "Addr": 18446744073709551615}},
    {"ph": "s", "id": 40, "pid": 1, "tid": 1, "ts": 11, "cat": "ac2g", "name": "ac2g"},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 12.25, "dur": 2,
     "args": {"correlation": 40, "External id": 3}},
    {"ph": "f", "id": 40, "pid": 0, "tid": 7, "ts": 12.25, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 1, "ts": 13, "dur": 1,
     "args": {"Python id": 5, "Python parent id": None, "Ev Idx": 1}},
    {"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "tid": 0, "args": {"name": "python"}},
]  # fmt: skip
HEADER = {"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "displayTimeUnit": "ms"}


def _source(folder: Path, events: list[Any] = EVENTS, **header: Any) -> Path:
    path = folder / "source.json"
    path.write_text(json.dumps({**(header or HEADER), "traceEvents": events, "traceName": "x"}, ensure_ascii=False))
    return path


def _run(source: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/make_trace.py"), str(source), str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _made(source: Path, out: Path, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures that the command printed and the trace that it wrote, its fractions as Decimal."""
    done = _run(source, out, *options)
    assert done.returncode == 0, done.stderr
    content = out.read_bytes()
    text = gzip.decompress(content) if out.suffix == ".gz" else content
    figures = json.loads(done.stdout)
    assert figures["json_bytes"] == len(text)
    return figures, json.loads(text, parse_float=Decimal)


def _copies(trace: dict[str, Any], figures: dict[str, Any]) -> list[list[dict[str, Any]]]:
    events = trace["traceEvents"]
    size = len(events) // figures["copies"]
    return [events[i : i + size] for i in range(0, len(events), size)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_first_copy_is_the_source(tmp_path: Path, layout: str) -> None:
    """Whatever the layout, the first copy and what stands around the events equal the source to the last digit."""
    figures, trace = _made(_source(tmp_path), tmp_path / "out.json", "--mb", "0.01", "--layout", layout)
    source = json.loads((tmp_path / "source.json").read_text(), parse_float=Decimal)
    assert _copies(trace, figures)[0] == source.pop("traceEvents")
    del trace["traceEvents"]
    assert trace == source


def test_a_later_copy_differs_in_time_ids_and_step_only(tmp_path: Path) -> None:
    """Copy 2 of the small trace by hand: a copy lies 6 us, 1 step and 2 ids (the widest are 0 and 1) further."""
    figures, trace = _made(_source(tmp_path), tmp_path / "out.json", "--mb", "0.01")
    step, launch, arrow, kernel, _, function, metadata = _copies(trace, figures)[2]
    assert (step["ts"], step["dur"], step["name"]) == (Decimal("22.125"), 5, "ProfilerStep#9")
    assert step["args"] == {"External id": 7, "Record function id": 0, "Ev Idx": 4}
    assert (launch["ts"], launch["dur"], launch["name"]) == (23, Decimal("0.5"), EVENTS[1]["name"])
    assert launch["args"] == {
        "correlation": 44, "share": Decimal("0.1"), "External id": "7", "Addr": 18446744073709551615,
    }  # fmt: skip
    assert arrow["id"] == kernel["args"]["correlation"] == 44
    assert function["args"] == {"Python id": 9, "Python parent id": None, "Ev Idx": 5}
    assert metadata["args"] == EVENTS[6]["args"]


def test_copies_of_a_real_trace_lie_behind_one_another(tmp_path: Path) -> None:
    """No event of a copy begins before every event of the one before has ended, and gaps within copies are the same."""
    figures, trace = _made(OURS, tmp_path / "out.json", "--mb", "1")
    copies = [[e for e in copy if e["ph"] != "M"] for copy in _copies(trace, figures)]
    ends = [max(e["ts"] + e.get("dur", 0) for e in copy) for copy in copies]
    starts = [min(e["ts"] for e in copy) for copy in copies]
    assert all(end < start for end, start in zip(ends, starts[1:], strict=False))
    moved = [[e["ts"] - start for e in copy] for copy, start in zip(copies, starts, strict=True)]
    assert all(copy == moved[0] for copy in moved)


def test_every_copy_of_a_real_trace_links_within_itself(tmp_path: Path) -> None:
    """No correlation, event number or step occurs in two copies, and as many kernels find their launch as before."""
    figures, trace = _made(OURS, tmp_path / "out.json", "--mb", "1")
    copies = _copies(trace, figures)
    for key in ("correlation", "External id", "Ev Idx"):
        owners = Counter(n for copy in copies for n in {e["args"][key] for e in copy if key in e.get("args", {})})
        assert owners and set(owners.values()) == {1}
    steps = [{e["name"] for e in copy if e["name"].startswith("ProfilerStep#")} for copy in copies]
    assert len(set.union(*steps)) == len(copies) * len(steps[0]) > 0
    linked = [_linked(copy) for copy in copies]
    assert linked == [linked[0]] * len(copies) and linked[0] > 0


def _linked(events: list[dict[str, Any]]) -> int:
    launches = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    return sum(e["args"]["correlation"] in launches for e in events if e.get("cat") == "kernel")


def test_the_printed_figures_are_those_of_the_file(tmp_path: Path) -> None:
    """Size within half a copy, and counts as the file read back has them."""
    figures, trace = _made(OURS, tmp_path / "out.json.gz", "--mb", "1")
    events = trace["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    device = [e for e in complete if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert (figures["events"], figures["complete"], figures["device_events"]) == tuple(
        map(len, (events, complete, device))
    )
    assert abs(figures["json_bytes"] - 1e6) <= 0.6 * figures["json_bytes"] / figures["copies"]


def test_absolute_times_are_base_and_time_added_exactly(tmp_path: Path) -> None:
    """Three decimals at least, no baseTimeNanoseconds, not one nanosecond lost."""
    _, trace = _made(_source(tmp_path), tmp_path / "out.json", "--mb", "0.001", "--absolute")
    assert "baseTimeNanoseconds" not in trace
    assert str(trace["traceEvents"][0]["ts"]) == "1700000000000010.125"
    assert str(trace["traceEvents"][1]["ts"]) == "1700000000000011.000"


def test_the_layouts_look_as_named(tmp_path: Path) -> None:
    """The first event as each layout prints it."""
    texts = {}
    for layout in LAYOUTS:
        _made(_source(tmp_path, EVENTS[:1]), tmp_path / layout, "--mb", "0.0001", "--layout", layout)
        texts[layout] = (tmp_path / layout).read_text()
    assert '"traceEvents": [\n  {\n    "ph": "X", "cat": "user_annotation", ' in texts["kineto"]
    assert '\n    "ts": 10.125, "dur": 5,\n    "args": {\n      "External id": 3, ' in texts["kineto"]
    assert '"traceEvents":[{"ph":"X","cat":"user_annotation",' in texts["compact"]
    assert '\n        {\n            "ph": "X",\n' in texts["indented"]
    assert '"traceEvents": [{"args": {"Ev Idx": 0, "External id": 3, ' in texts["sorted"]


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ([], "no event"),
        ([{"ph": "X", "ts": -1.5}], "below zero"),
        ([{"ph": "X", "ts": 0}, {"ph": "X", "ts": 1700000000000000}], "more than a day"),
    ],
)
def test_a_source_that_cannot_be_repeated_is_refused(tmp_path: Path, events: list[Any], sentence: str) -> None:
    """One sentence, exit 2, and no file is left."""
    done = _run(_source(tmp_path, events), tmp_path / "out.json", "--mb", "1")
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_a_file_without_trace_events_is_refused(tmp_path: Path) -> None:
    """JSON of another kind names what is missing."""
    (tmp_path / "other.json").write_text('{"nodes": []}')
    done = _run(tmp_path / "other.json", tmp_path / "out.json", "--mb", "1")
    assert done.returncode == 2 and "no traceEvents" in done.stderr
