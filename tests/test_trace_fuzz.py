"""The reader against what is cut off, mutated or hostile: an answer or a TraceError, in bounded time and memory."""

from __future__ import annotations

import gzip
import io
import json
import random
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from runner.trace import TraceError, cutting, source
from runner.trace.audit import DeviceAudit
from runner.trace.link import Links, linked
from runner.trace.reading import Inline, Trace, read
from runner.trace.source import Source
from runner.trace.steps import annotation_steps, marked

TRACE = Path(__file__).parent / "data" / "traces" / "h200_64_bfloat16_b0_max-autotune-no-cudagraphs.json.gz"
PLAIN = gzip.decompress(TRACE.read_bytes())
MOST_MEMORY_BYTES = 2**30


def first_pass(data: bytes) -> Trace:
    """A trace of these bytes."""
    return read(Source(io.BytesIO(data)), Inline())


def imported(data: bytes) -> tuple[Trace, pl.DataFrame, dict[str, Any]] | None:
    """The whole reader: trace, linked events and figures of the device; None where it refuses with a sentence."""
    try:
        trace = first_pass(data)
    except TraceError as error:
        assert str(error) and "\n" not in str(error)
        return None
    marks, audit = trace.marks(), DeviceAudit()
    steps = marked(marks)
    links = Links(trace.launches(), annotation_steps(marks, steps), steps)
    windows = list(linked(trace, links, audit))
    events = (
        pl.concat(windows)
        if windows
        else pl.DataFrame(schema={"name": pl.String, "ts_ns": pl.Int64, "dur_ns": pl.Int64})
    )
    assert trace.events == trace.complete + 2 * len(trace.begins) + _others(trace)
    assert events.height == trace.rows_read - trace.set_aside["begin without end"]
    return trace, events, audit.facts()


def _others(trace: Trace) -> int:
    """Events that gave no rows; those of phase X among them are complete as well."""
    bad = trace.complete + trace.begun - trace.rows_read
    return sum(trace.set_aside.values()) - bad


def names(events: pl.DataFrame) -> Counter[tuple[str, int, int]]:
    """Name, start and duration of each event."""
    return Counter(events.select("name", "ts_ns", "dur_ns").iter_rows())


# --- cut off


def whole_events(text: bytes) -> list[int]:
    """Where each event of the file that is kept ends."""
    events = json.loads(text)["traceEvents"]
    decoder, place, ends = json.JSONDecoder(), text.index(b'"traceEvents"'), []
    string = text.decode()
    assert string.isascii()
    place = string.index("[", place) + 1
    for event in events:
        while string[place] in " \n\r,":
            place += 1
        _, place = decoder.raw_decode(string, place)
        if event["ph"] == "X" or event["name"] == "[memory]":
            ends.append(place)
    return ends


def test_a_file_cut_at_any_byte_gives_every_whole_event() -> None:
    """Exactly the events that end before the cut, at most one lost, and the audit says that the file is not whole."""
    kernel = PLAIN.rindex(b'"ph": "X"')
    data = PLAIN[: PLAIN.index(b"{", PLAIN.index(b'"traceEvents"'))] + PLAIN[PLAIN.rindex(b"{", 0, kernel - 3000) :]
    ends = whole_events(data)
    for size in [*range(len(data) - 3000, len(data) - 1000, 5), *range(len(data) - 1000, len(data))]:
        trace = first_pass(data[:size])
        assert trace.rows_read == sum(end <= size for end in ends)
        assert trace.damage or data.rindex(b"]") < size
        assert trace.lost_events <= 1


def test_a_packed_file_cut_at_any_byte_gives_what_was_unpacked() -> None:
    """Every whole event before the cut, and never an exception other than a TraceError."""
    packed = TRACE.read_bytes()
    ends, least = whole_events(PLAIN), 0
    for size in range(len(packed) - 1000, len(packed), 11):
        trace = first_pass(packed[:size])
        assert trace.damage == "the gzip data ends early"
        assert trace.rows_read == sum(end <= trace.json_bytes for end in ends) >= least
        least = trace.rows_read


# --- mutated

MUTATIONS: dict[str, Callable[[random.Random, bytes, int, int], bytes]] = {
    "flip": lambda rng, data, at, size: data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :],
    "delete": lambda rng, data, at, size: data[:at] + data[at + size :],
    "insert": lambda rng, data, at,
    size: data[:at] + rng.choice([b'"', b"{", b"}", b"]", b"[", b",", b"\\", b"\0", b"\xff", b"},{"]) + data[at:],
    "duplicate": lambda rng, data, at, size: data[: at + size] + data[at:],
    "swap": lambda rng, data, at,
    size: data[:at] + data[at + size : at + 2 * size] + data[at : at + size] + data[at + 2 * size :],
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("chunk_bytes", [cutting.CHUNK_BYTES, 5000])
def test_mutated_files_are_read_or_refused(mutation: str, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some bytes changed: undamaged events stay, all is counted, and nothing but a TraceError is raised."""
    monkeypatch.setattr(cutting, "CHUNK_BYTES", chunk_bytes)
    sound = imported(PLAIN)
    assert sound is not None
    all_names = names(sound[1])
    start = PLAIN.index(b'"ph"')
    for seed in range(15):
        rng = random.Random(seed)
        data, times = PLAIN, 1 + seed % 3
        for _ in range(times):
            data = MUTATIONS[mutation](rng, data, rng.randrange(start, len(PLAIN) - 2000), rng.randrange(1, 40))
        found = imported(data)
        assert found is not None
        assert (all_names - names(found[1])).total() <= 8 * times, seed


@pytest.mark.parametrize("seed", range(20))
def test_mutated_packed_files_are_read_or_refused(seed: int) -> None:
    """A damaged gzip stream gives what was unpacked before the damage."""
    rng, packed = random.Random(seed), TRACE.read_bytes()
    at = rng.randrange(len(packed))
    found = imported(packed[:at] + bytes([packed[at] ^ (1 << rng.randrange(8))]) + packed[at + 1 :])
    if found is not None:
        assert found[0].json_bytes <= len(PLAIN) + 1000


def test_any_bytes_are_read_or_refused() -> None:
    """Tokens of JSON in any order, with and without the beginning of a trace."""
    tokens = [
        b'{"ph":"X","name":"a","ts":1,"dur":1}',
        b'"traceEvents":[',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b'"',
        b"\\",
        b"null",
        b"1e9",
        b'"a":',
        b"\xff",
        b"\x00",
        b"\n",
    ]
    for seed in range(150):
        rng = random.Random(seed)
        body = b"".join(rng.choices(tokens, k=rng.randrange(40)))
        for data in (body, b'{"traceEvents":[' + body, b"[" + body, gzip.compress(body)):
            imported(data)


# --- hostile


def hostile(*events: str, before: str = "") -> bytes:
    """A trace of texts of events."""
    return ("{" + before + '"traceEvents":[' + ",".join(events) + "]}").encode()


def one(**values: Any) -> str:
    """Text of a complete event."""
    return json.dumps({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1, **values})


@pytest.mark.parametrize(
    "filling", [bytes(2**20), b" " * 2**20, (one() + ",").encode() * 4000], ids=["zeros", "blanks", "events"]
)
def test_a_gzip_bomb_is_refused(filling: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to a multiple of its size is no trace."""
    monkeypatch.setattr(source, "BOMB_BYTES", 2**23)
    with pytest.raises(TraceError, match="unpacks to more than"):
        first_pass(gzip.compress(b'{"traceEvents":[') + gzip.compress(filling) * 40)


@pytest.mark.parametrize(
    "text", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "[" * 100_000, '{"a":' * 100_000]
)
def test_nesting_without_end_is_lost_alone(text: str) -> None:
    """The events around it stay, whether its brackets are closed or not."""
    damaged = '{"ph":"X","name":"deep","args":' + text + "}"
    trace = first_pass(hostile(one(), damaged, one()))
    assert (trace.lost_events, trace.rows_read) == (1, 2)


def test_nesting_without_end_before_the_events_costs_only_the_keys() -> None:
    """The events are found by their key."""
    text = "[" * 100_000 + "]" * 100_000
    assert first_pass(hostile(one(), before=f'"x":{text},')).rows_read == 1


def test_ids_and_times_beyond_64_bits_are_kept_or_set_aside() -> None:
    """Ids as arguments and text, times by a reason; sums of the largest times stay exact."""
    far = one(
        ts=3 * 10**15,
        dur=3 * 10**15,
        cat="kernel",
        args={"device": 2**64, "correlation": 2**63, "stream": -1},
        tid=2**70,
    )
    late = one(ts=2**63)
    found = imported(hostile(far, late, one(dur=2**64), before=f'"baseTimeNanoseconds":{3 * 10**18},'))
    assert found is not None
    trace, events, figures = found
    assert trace.set_aside == {"time out of range": 1, "duration out of range": 1}
    [row] = events.to_dicts()
    assert (row["ts_ns"], row["dur_ns"], row["tid"]) == (6 * 10**18, 3 * 10**18, str(2**70))
    assert (row["correlation"], json.loads(row["args"])) == (None, {"device": 2**64, "correlation": 2**63})
    assert figures["busy_ns"] == {"1": 3 * 10**18}
    assert first_pass(hostile(one(), before=f'"baseTimeNanoseconds":{2**63 - 1},')).base_ns == 0
    many = imported(hostile(*[far] * 10))
    assert many is not None and many[2]["device_dur_ns"] == 30 * 10**18


def test_a_header_full_of_false_beginnings_is_refused() -> None:
    """Each place that looks like the events is proved by reading all before it, so that only some are."""
    with pytest.raises(TraceError, match="no traceEvents"):
        first_pass(b'{"x":1 2,' + b'"y":{"traceEvents":[]},' * 50_000 + b'"x":1}')


MANY = 20_000
LARGE: dict[str, Callable[[], bytes]] = {
    "a long name": lambda: hostile(one(), one(name="n" * 40_000_000), one()),
    "a name of seams": lambda: hostile(one(), one(name="},{" * 4_000_000), one()),
    "nulls": lambda: hostile(one(), *["null"] * 200_000),
    "brackets": lambda: b'{"traceEvents":[' + b"]" * 1_000_000 + b"]}",
    "quotes": lambda: hostile(one()) + b'"' * 1_000_000,
    "seams": lambda: hostile(one()).replace(b"]}", b"") + b",{}" * 300_000,
    "threads": lambda: hostile(*(one(ts=i, tid=i) for i in range(MANY))),
    "categories": lambda: hostile(*(one(ts=i, cat=f"c{i}") for i in range(MANY))),
    "one time": lambda: hostile(*[one()] * MANY),
    "crossing": lambda: hostile(*(one(ts=i, dur=MANY) for i in range(MANY))),
    "nested": lambda: hostile(*(one(ts=i, dur=2 * (MANY - i)) for i in range(MANY))),
    "streams": lambda: hostile(*(one(ts=i, cat="kernel", args={"device": i, "stream": i}) for i in range(MANY))),
    "one correlation": lambda: hostile(*(one(ts=i, cat=("kernel", "cuda_runtime")[i % 2],
    args={"correlation": 1}) for i in range(MANY))),
    "begins": lambda: hostile(*(one(ph="B", ts=i) for i in range(MANY)), *(one(ph="E", ts=i) for i in range(MANY))),
    "steps": lambda: hostile(*(one(ts=i, cat="user_annotation", name=f"ProfilerStep#{i}") for i in range(MANY))),
    "damaged": lambda: hostile(*['{"ph":"X","name":"a" "b"}'] * MANY),
    "a lost event without an end": lambda: hostile(one(), '{"ph":"X","name":"a" "b"}', *['{"x":1}'] * 200_000),
}  # fmt: skip


@pytest.mark.parametrize("case", LARGE)
def test_what_is_large_is_read_in_bounded_memory(case: str) -> None:
    """Each in a process of its own, whose memory is looked at when it ends; one that hangs is ended."""
    code = f"import test_trace_fuzz as fuzz; fuzz.imported(fuzz.LARGE[{case!r}]()); fuzz.tell_memory()"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < MOST_MEMORY_BYTES


def tell_memory() -> None:
    """The most memory that this process has held, in bytes.

    Linux hands `ru_maxrss` of the process that forked down to the program it starts, so VmHWM is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        print(next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) * 1024)
    else:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
