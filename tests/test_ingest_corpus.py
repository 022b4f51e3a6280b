"""Every trace at hand through the command, and every figure that is known of it through `python -m analysis audits`.

The public traces lie outside the repository: CROSSOVER_TRACES names their folder, whose `expected.jsonl` holds their
figures; damaged ones lie beside it in `broken`, more of ours in `h200/traces`.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
OURS = ROOT / "tests/data/traces"
PUBLIC = Path(os.environ.get("CROSSOVER_TRACES", "/nonexistent"))
BROKEN, MORE = PUBLIC.parent / "broken", PUBLIC.parent / "h200/traces"

needs_public = pytest.mark.skipif(not PUBLIC.is_dir(), reason="CROSSOVER_TRACES names no folder")
needs_broken = pytest.mark.skipif(not BROKEN.is_dir(), reason="there is no folder `broken` beside CROSSOVER_TRACES")

FIGURES = {
    "events": "events",
    "complete_events": "complete_events",
    "gpu_events": "device_events",
    "kernels": "kernels",
    "distinct_kernel_names": "kernel_names",
    "busy_ns_by_device": "busy_ns",
    "gpu_dur_sum_ns": "device_dur_ns",
    "unlinked_gpu_events": "unlinked",
    "unlinked_dur_ns": "unlinked_dur_ns",
    "profiler_steps": "profiler_steps",
}
"""Figures of expected.jsonl, and the columns of `audits` that must equal them."""
UNFOLDED = ("busy_ns", "set_aside_why", "repaired_why", "lost")


class Read:
    """What the command made of a folder: its exit code, the reasons of refusals by file, the audits by file."""

    def __init__(self, folder: Path, store: Path) -> None:
        done = _run("runner.ingest", folder, "--store", store)
        self.code = done.returncode
        told = [line.partition(": not read: ") for line in done.stderr.splitlines()]
        self.refused = {Path(path).name: why for path, _, why in told}
        rows = json.loads(_run("analysis", "audits", "--store", store, "--format", "json").stdout)
        self.audits = {row["file"]: row | {name: json.loads(row[name]) for name in UNFOLDED} for row in rows}


def _run(module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


# -- public ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """The public traces."""
    return Read(PUBLIC, tmp_path_factory.mktemp("public") / "store")


def expected() -> dict[str, dict[str, Any]]:
    """Known figures by file; none without the folder."""
    path = PUBLIC / "expected.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {row.pop("file"): row for row in map(json.loads, lines)}


@needs_public
def test_all_files_are_accounted_for(public: Read) -> None:
    """Each is read or refused, and those refused are the ones that hold no trace; some were, so the exit code is 2."""
    no_traces = {file for file, figures in expected().items() if "refused" in figures}
    assert set(public.refused) == no_traces and set(public.audits) == set(expected()) - no_traces
    assert all(why.startswith("it holds no ") and ": it seems to be " in why for why in public.refused.values())
    assert public.code == (2 if no_traces else 0)


@needs_public
@pytest.mark.parametrize("file", sorted(file for file, figures in expected().items() if "refused" not in figures))
def test_every_figure_is_exact(public: Read, file: str) -> None:
    """Events, device work, the union of busy time of each device, sums of durations, launches that are not there."""
    audit, figures = public.audits[file], expected()[file]
    assert set(figures) == set(FIGURES)
    assert {name: audit[column] for name, column in FIGURES.items()} == figures


@needs_public
def test_nothing_is_lost_of_a_sound_file(public: Read) -> None:
    """Every complete event and what allocators did is kept, every other one set aside with its reason, and nothing had
    to be repaired."""
    for file, audit in public.audits.items():
        expect_sound(PUBLIC / file, audit)


def expect_sound(path: Path, audit: dict[str, Any]) -> None:
    """The audit of a file without damage."""
    file, data = path.name, path.read_bytes()
    memory = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).count(b'"name": "[memory]"')
    assert audit["kept"] == audit["complete_events"] + memory, file
    assert audit["kept"] == audit["events"] - sum(audit["set_aside_why"].values()), file
    assert set(audit["set_aside_why"]) <= {"metadata", "flow", "instant", "counter"}, file
    damage = {name: audit[name] for name in ("repaired", "lost_events", "lost_bytes", "truncated")}
    assert damage == {"repaired": 0, "lost_events": 0, "lost_bytes": 0, "truncated": False}, file


# -- broken ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """The damaged traces."""
    return Read(BROKEN, tmp_path_factory.mktemp("broken") / "store")


BERT = {"flow": 539, "instant": 2, "metadata": 60}
OUTCOMES: dict[str, dict[str, Any]] = {
    "inf_bandwidth.json": {
        "events": 5139, "kept": 4538, "set_aside_why": BERT, "repaired_why": {"inf or nan": 1}, "device_events": 157,
        "busy_ns": {"0": 1_225_310}, "unlinked": 1, "outside_steps": 1,
    },
    "negative_and_missing_dur.json": {
        "events": 3, "kept": 1, "set_aside_why": {"negative duration": 1, "no duration": 1}, "device_events": 1,
        "busy_ns": {"0": 0}, "unlinked": 1,
    },
    "null_fields.json": {"events": 3, "kept": 1, "set_aside_why": {"no name": 1, "no object": 1}},
    "overlap_same_stream.json": {
        "events": 5, "kept": 5, "device_events": 5, "busy_ns": {"0": 65_000}, "unlinked": 5, "overlapping": 4,
    },
    "plain_named_gz.json.gz": {
        "events": 71, "kept": 8, "set_aside_why": {"metadata": 58, "flow": 3, "instant": 2}, "device_events": 1,
        "busy_ns": {"0": 1760},
    },
    "root_array.json": {
        "events": 5138, "kept": 4537, "set_aside_why": BERT, "device_events": 156, "busy_ns": {"0": 1_225_310},
    },
    "truncated.json.gz": {
        "events": 2975, "kept": 2975, "truncated": True, "lost_events": 1,
        "lost_bytes": 288, "lost": [{"offset": 1_635_060, "bytes": 288, "why": "cut off"}],
    },
    "truncated_mid_event.json": {"events": 2682, "kept": 2682, "truncated": True},
    "two_devices_same_stream.json": {
        "events": 2, "kept": 2, "device_events": 2, "busy_ns": {"0": 10_000, "1": 10_000}, "unlinked": 2,
    },
    "windows_unescaped_backslash.json": {
        "events": 5138, "kept": 4537, "set_aside_why": BERT, "repaired_why": {"bare backslash": 384},
        "device_events": 156, "busy_ns": {"0": 1_225_310},
    },
}  # fmt: skip
NOTHING: dict[str, Any] = {
    "set_aside_why": {}, "repaired_why": {}, "lost": [], "lost_events": 0, "lost_bytes": 0, "truncated": False,
    "device_events": 0, "busy_ns": {}, "unlinked": 0, "overlapping": 0, "outside_steps": 0, "before_launch": 0,
    "suspiciously_long": 0,
}  # fmt: skip


@needs_broken
@pytest.mark.parametrize("file", OUTCOMES)
def test_a_damaged_file_gives_what_can_be_read(broken: Read, file: str) -> None:
    """The events that are whole, and every fault with its number; where nothing is expected there is nothing."""
    wanted = NOTHING | OUTCOMES[file]
    assert {name: broken.audits[file][name] for name in wanted} == wanted


@needs_broken
def test_what_is_no_trace_is_refused(broken: Read) -> None:
    """An empty file and JSON without events, each with what it seems to be; the others are read."""
    assert broken.code == 2 and set(broken.audits) == set(OUTCOMES)
    assert broken.refused == {
        "empty_file.json": "it holds no traceEvents: it seems to be an empty file",
        "no_traceEvents.json": "it holds no traceEvents: it seems to be JSON without traceEvents "
        "(its keys: schemaVersion, deviceProperties)",
    }


# -- ours --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "number"),
    [
        pytest.param(OURS, 7, id="kept"),
        pytest.param(MORE, 58, id="all", marks=pytest.mark.skipif(not MORE.is_dir(), reason="they are not here")),
    ],
)
def test_every_event_of_an_h200_is_kept(tmp_path: Path, folder: Path, number: int) -> None:
    """Counted by another reader, as are the kernels and those of them whose launch lies before the window."""
    read = Read(folder, tmp_path / "store")
    assert (read.code, read.refused, len(read.audits)) == (0, {}, number)
    for file, audit in read.audits.items():
        expect_sound(folder / file, audit)
        events = json.loads(gzip.decompress((folder / file).read_bytes()))["traceEvents"]
        assert {name: audit[name] for name in ("events", "kept", "device_events", "unlinked")} == counted(events), file


def counted(events: list[dict[str, Any]]) -> dict[str, int]:
    """The same figures, one event after the other."""
    complete = [each for each in events if each["ph"] == "X"]
    work = [each["args"]["correlation"] for each in complete if each["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    calls = {each["args"].get("correlation") for each in complete if each["cat"] in ("cuda_runtime", "cuda_driver")}
    unlinked = sum(correlation not in calls for correlation in work)
    memory = [each for each in events if each["name"] == "[memory]"]
    return {
        "events": len(events),
        "kept": len(complete) + len(memory),
        "device_events": len(work),
        "unlinked": unlinked,
    }
