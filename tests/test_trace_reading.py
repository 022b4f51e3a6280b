"""runner.trace.cutting and runner.trace.reading: wherever a file is cut, the same rows and the same audit come out."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from runner.trace import cutting, source
from runner.trace.audit import DeviceAudit
from runner.trace.events import EVENTS, ROWS, TraceError
from runner.trace.link import Links, linked
from runner.trace.pieces import of_file
from runner.trace.pool import Pool
from runner.trace.reading import Inline, Trace, read
from runner.trace.source import Source
from runner.trace.steps import annotation_steps, marked

SMALL_CHUNK = 2000


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks, blocks and searches of a few KB."""
    monkeypatch.setattr(cutting, "CHUNK_BYTES", SMALL_CHUNK)
    monkeypatch.setattr(cutting, "_SEARCHED_BYTES", 500)
    monkeypatch.setattr(source, "BLOCK_BYTES", 700)


def event(name: str, ts: Any, dur: Any = 1, cat: str = "cpu_op", tid: Any = 1, **args: Any) -> dict[str, Any]:
    """One complete event of process 1."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def treacherous(number: int) -> list[dict[str, Any]]:
    """Events whose names and arguments look like seams between events and like the array's end."""
    names = ['a},{"ph":"X"', "}, {", "]}", "},\n{", '"},{"', "plain", "\\", '\\"},{', "µ},{日本", "}] , {"]
    nested = {"x": [{"a": 1}, {"b": [{}, {}]}, {"c": {"d": [1, 2]}}, {"e": "}],["}], "text": "},{" * 5}
    events = []
    for i in range(number):
        args = (
            nested
            if i % 3 == 0
            else {"Input Dims": [[i, 2], []]}
            if i % 3 == 1
            else {"grid": [1, 2, i], "correlation": i}
        )
        events.append(
            event(
                names[i % len(names)],
                i * 7 % 1000 + i / 8,
                i % 5,
                ["cpu_op", "kernel", "cuda_runtime"][i % 3],
                i % 4,
                **args,
            )
        )
        if i % 10 == 0:
            events.append({"ph": "M", "name": "process_name", "pid": i, "args": {"name": "},{"}})
    return events


LAYOUTS: dict[str, Any] = {
    "compact": {"separators": (",", ":")},
    "spaced": {},
    "indent 1": {"indent": 1},
    "indent 4": {"indent": 4},
    "raw": {"separators": (" ,\r\n\t", " : "), "ensure_ascii": False},
}


def file_of(events: list[Any], layout: str = "compact", **behind: Any) -> bytes:
    """JSON text of a trace, in a layout, with keys behind its events."""
    return json.dumps({"schemaVersion": 1, "traceEvents": events, **behind}, **LAYOUTS[layout]).encode()


def first_pass(data: bytes, decoder: Any = None) -> Trace:
    """A trace of these bytes."""
    return read(Source(io.BytesIO(data)), decoder or Inline())


def told(trace: Trace) -> dict[str, Any]:
    """All that a first pass says, but for the parts that it is in."""
    rows = pl.concat([ROWS.to_frame(), *trace.rows()]).sort("event_id")
    begins = rows.filter(pl.col("dur_ns").is_null()).get_column("event_id").to_list()
    arguments = [{**row, "args": row["args"] and json.loads(row["args"])} for row in rows.iter_rows(named=True)]
    figures = (
        "document", "events", "complete", "rows_read", "begun", "set_aside", "repaired", "lost", "lost_events",
        "lost_bytes", "cut_off", "damage", "digest", "json_bytes",
    )  # fmt: skip
    return {
        "rows": arguments,
        "ends": [trace.begins.get(each) for each in begins],
        "launches": trace.launches().to_dicts(),
        "marks": trace.marks().sort(pl.all()).to_dicts(),
        "work": trace.work().drop("code").sort(pl.all()).to_dicts(),
        **{name: getattr(trace, name) for name in figures},
    }


def assert_same_in_chunks(data: bytes, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...] = (700, 3001)) -> Trace:
    """Read whole and in chunks of several sizes: every figure must be equal. The trace read whole."""
    whole = first_pass(data)
    expected = told(whole)
    for size in sizes:
        with monkeypatch.context() as patch:
            patch.setattr(cutting, "CHUNK_BYTES", size)
            patch.setattr(cutting, "_SEARCHED_BYTES", max(64, size // 4))
            patch.setattr(source, "BLOCK_BYTES", size // 2 + 1)
            found = told(first_pass(data))
        for name, value in expected.items():
            assert found[name] == value, (name, size)
    return whole


# --- where it is cut


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cuts_change_nothing(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and nested arguments that look like seams are cut wrongly by guess, and read rightly all the same."""
    events = treacherous(70)
    whole = assert_same_in_chunks(file_of(events, layout, baseTimeNanoseconds=10**18, other=["]", {}]), monkeypatch)
    assert whole.events == len(events) and whole.complete == whole.rows_read == 70
    assert not whole.lost and not whole.repaired and whole.damage is None
    assert whole.base_ns == 10**18 and whole.document["other"] == ["]", {}]
    names = pl.concat(list(whole.rows())).sort("event_id").get_column("name").to_list()
    assert names == [each["name"] for each in events if each["ph"] == "X"]


@pytest.mark.parametrize(
    ("form", "document"),
    [
        ("%s", {}),
        ("\ufeff%s\n", {}),
        (" \r\n\t%s \r\n", {}),
        ('{"traceEvents":%s}', {"traceEvents": []}),
        ('\ufeff \n{ "traceEvents" \r\n : \r\n %s \r\n } \r\n', {"traceEvents": []}),
        ('{"a":{"traceEvents":[1]},"text":"\\"traceEvents\\":[","traceEvents":%s}',
        {"a": {"traceEvents": [1]}, "traceEvents": []}),
        ('{"traceEvents":%s,"baseTimeNanoseconds":7,"list":[{"x":1},{"ph":"X"}],"z":["]",[{}]]}',
        {"baseTimeNanoseconds": 7, "z": ["]", [{}]]}),
    ],
)  # fmt: skip
def test_whatever_stands_around_the_events(
    form: str, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bare array, a byte order mark, blanks, line ends of Windows, keys before and behind: all events, all keys."""
    for events in ([], treacherous(1), treacherous(30)):
        data = (form % json.dumps(events)).encode()
        trace = assert_same_in_chunks(data, monkeypatch, (200, 1000))
        assert (trace.events, trace.lost, trace.damage, trace.repaired) == (len(events), [], None, {})
        assert {key: trace.document.get(key) for key in document} == document
        assert trace.json_bytes == len(data) and trace.digest == hashlib.sha256(data).hexdigest()


def test_a_long_list_behind_the_events_is_no_event(small_chunks: None) -> None:
    """The array has ended many chunks before the file does: what follows is read as keys, whatever it looks like."""
    behind = {"after": [event("not an event", i) for i in range(200)], "baseTimeNanoseconds": 3}
    trace = first_pass(file_of([event("a", 1)] * 50, "spaced", **behind))
    assert (trace.events, trace.rows_read, trace.lost_events, trace.damage, trace.base_ns) == (50, 50, 0, None, 3)
    assert len(trace.document["after"]) == 200


def test_helpers_change_nothing(small_chunks: None) -> None:
    """Chunks decoded elsewhere, ahead of those they depend on, give the same rows in the same order."""
    data = file_of(treacherous(150), "indent 4", after=[{"x": 1}, {"y": 2}] * 100, baseTimeNanoseconds=5)
    with Pool(1) as pool:
        [each.result() for each in pool._started]
        found = told(first_pass(data, pool))
    assert found == told(first_pass(data))


def test_damage_in_one_chunk_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One damaged event in the middle: it is lost with its place in the file, all others keep their rows and ids."""
    good = [json.dumps(each) for each in treacherous(60) if each["ph"] == "X"]
    texts = [*good[:30], '{"ph": "X", "name": "broken", "ts": 1 2 3, "dur": [}', *good[30:]]
    data = ('{"traceEvents": [' + ", ".join(texts) + "]}").encode()
    trace = assert_same_in_chunks(data, monkeypatch, (2500,))
    assert (trace.rows_read, trace.lost_events, trace.damage) == (60, 1, None)
    [lost] = trace.lost
    assert data[lost.offset : lost.offset + lost.length].startswith(b'{"ph": "X", "name": "broken"')
    names = pl.concat(list(trace.rows())).sort("event_id").get_column("name").to_list()
    assert names == [json.loads(text)["name"] for text in good]


@pytest.mark.parametrize(
    ("value", "repair"), [("inf", "inf or nan"), ('"C:\\dir\\{x},{y"', "bare backslash"), ("[1,,2]", "doubled comma")]
)
def test_repairs_are_counted_once_wherever_it_is_cut(value: str, repair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event with a repaired value is kept, and counted once by its kind."""
    value = value.replace("\\\\", "\\")
    texts = [json.dumps(event("a},{", i, x="?")).replace('"?"', value) for i in range(40)]
    trace = assert_same_in_chunks(('{"traceEvents": [' + ", ".join(texts) + "]}").encode(), monkeypatch)
    assert (trace.rows_read, trace.lost_events, dict(trace.repaired)) == (40, 0, {repair: 40})


# --- begins and ends


def half(phase: str, ts: float, name: str = "a", tid: int = 1, **args: Any) -> dict[str, Any]:
    """A begin or an end; an end needs no name."""
    named = {} if phase == "E" else {"name": name, "cat": "cpu_op"}
    return {"ph": phase, **named, "pid": 1, "tid": tid, "ts": ts, **({"args": args} if args else {})}


def spans(events: list[dict[str, Any]]) -> list[tuple[int, str, int, int, Any]]:
    """event_id, name, start, duration and arguments of what `windows` gives."""
    rows = pl.concat([ROWS.to_frame(), *first_pass(file_of(events)).rows()]).sort("event_id")
    chosen = rows.select("event_id", "name", "ts_ns", "dur_ns", "args").iter_rows()
    return [(i, name, ts // 1000, dur // 1000, args and json.loads(args)) for i, name, ts, dur, args in chosen]


def test_an_end_ends_what_began_last_on_its_thread() -> None:
    """Nested pairs of two threads, in any order of the file, with the arguments of begin and end together."""
    events = [
        half("B", 0, "outer", x=1), half("B", 2, "inner"), half("B", 1, "elsewhere", tid=2), half("E", 3, y=2),
        half("E", 9, z=[3]), event("complete", 2), half("E", 5, tid=2), half("B", 10, "next"), half("E", 10),
    ]  # fmt: skip
    expected = [
        (0, "outer", 0, 9, {"x": 1, "z": [3]}), (1, "inner", 2, 1, {"y": 2}), (2, "elsewhere", 1, 4, None),
        (3, "complete", 2, 1, None), (4, "next", 10, 0, None),
    ]  # fmt: skip
    assert spans(events) == expected
    order = [0, 1, 3, 4, 2, 6, 5, 7, 8]
    assert sorted(each[1:4] for each in spans([events[i] for i in order])) == sorted(each[1:4] for each in expected)


def test_an_end_that_stands_before_its_begin_is_told_by_its_time() -> None:
    """Writers flush threads and buffers in any order."""
    assert spans([half("E", 9), half("E", 3), half("B", 2, "inner"), half("B", 0, "outer")]) == [
        (0, "inner", 2, 1, None),
        (1, "outer", 0, 9, None),
    ]


def test_begins_and_ends_without_the_other_are_counted() -> None:
    """They give no rows, and the audit says how many there were."""
    events = [
        half("E", 1),
        half("B", 2),
        half("B", 3, "b", tid=2),
        half("E", 3, tid=3),
        half("B", 4, "c"),
        half("E", 5),
    ]
    trace = first_pass(file_of(events))
    assert trace.set_aside == {"end without begin": 2, "begin without end": 2}
    assert [name for _, name, *_ in spans(events)] == ["c"]
    assert first_pass(file_of([half("E", 1)] * 3)).set_aside == {"end without begin": 3}


def test_pairs_far_apart_and_every_other_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs over many chunks and threads; instants, flows, counters and unknown phases are counted by their kind."""
    events: list[Any] = [half("B", i, f"begin {i}", tid=i % 3, at=i) for i in range(60)]
    events += [
        {"ph": phase, "name": phase, "ts": 1, "pid": 1}
        for phase in ["i", "I", "s", "f", "C", "M", "b", "e", "N", "?", "", "xx"]
    ]
    events += [half("E", 200 - i, tid=i % 3, end=i) for i in range(60)] + [
        {"name": "no phase"},
        {"ph": 7},
        None,
        3,
        "X",
        [],
    ]
    trace = assert_same_in_chunks(file_of(events, "spaced"), monkeypatch)
    assert {begin: dur_ns // 1000 for begin, (dur_ns, _) in trace.begins.items()} == {i: 200 - 2 * i for i in range(60)}
    assert trace.set_aside == {
        "instant": 2, "flow": 2, "counter": 1, "metadata": 1, "asynchronous": 2, "object": 1, "unknown phase": 5,
        "no object": 4,
    }  # fmt: skip
    assert trace.events == len(events) == trace.rows_read + 60 + sum(trace.set_aside.values())


# --- windows


def working(seed: int, number: int) -> list[dict[str, Any]]:
    """All that is linked: nested and crossing host events, steps, launches, shadows, streams that overlap."""
    rng = random.Random(seed)
    events = [event(f"ProfilerStep#{i}", 1000 * i, 990, "user_annotation", **{"External id": i}) for i in range(4)]
    events += [
        event(f"ProfilerStep#{i}", 1000 * i + 50, 700, "gpu_user_annotation", 7, **{"External id": i}) for i in range(4)
    ]
    events += [half("B", 100 + i, f"pair {i}", tid=i % 2) for i in range(20)] + [
        half("E", 3000 - i, tid=i % 2) for i in range(20)
    ]
    for i in range(number):
        ts, tid = rng.randrange(-100, 4200), rng.randrange(3)
        events.append(event(f"op {i % 7}", ts, rng.choice([0, 1, 5, 50, 1500]), "cpu_op", tid))
        call, lag = {"correlation": i} if i % 5 else {}, rng.randrange(-2, 300)
        events.append(event("cudaLaunchKernel", ts + 1, 2, "cuda_runtime", tid, **call))
        for _ in range(1 + (i % 9 == 0)):
            where = {"device": rng.randrange(2), "stream": rng.choice([7, 8])}
            length = rng.choice([0, 1, 3, 40, 400])
            kind = rng.choice(["kernel", "kernel", "gpu_memcpy"])
            events.append(event(f"kernel {i % 11}", ts + lag, length, kind, 7, correlation=i, **where))
    rng.shuffle(events)
    return events


def second_pass(trace: Trace, rows: int) -> tuple[list[dict[str, Any]], DeviceAudit, int]:
    """Linked events by their id, the audit of the device, and how many windows there were."""
    marks, audit = trace.marks(), DeviceAudit()
    steps = marked(marks)
    windows = list(trace.windows(rows))
    links = Links(trace.launches(), annotation_steps(marks, steps), steps)
    events = pl.concat([pl.DataFrame(schema=EVENTS), *linked(trace, links, audit, rows)]).sort("event_id")
    return events.to_dicts(), audit, len(windows)


@pytest.fixture
def tiny_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fourth start is remembered, so that windows of a few rows exist."""
    monkeypatch.setattr("runner.trace.pieces.SAMPLE_ROWS", 4)
    monkeypatch.setattr("runner.trace.reading.SAMPLE_ROWS", 4)


@pytest.mark.parametrize("seed", range(2))
def test_tiny_windows_link_as_one(seed: int, tiny_samples: None, small_chunks: None) -> None:
    """Nesting, steps, launches and every figure of the device are the same however the time is cut into windows."""
    trace = first_pass(file_of(working(seed, 60), baseTimeNanoseconds=10**15))
    events, audit, number = second_pass(trace, 10**9)
    assert number == 1 and any(each["depth"] > 3 for each in events)
    for rows in (4, 50):
        again, figures, parts = second_pass(trace, rows)
        assert parts > trace.rows_read / rows / 4
        assert again == events
        assert figures.facts() == audit.facts()


def test_windows_of_a_pool_are_the_same(tiny_samples: None, small_chunks: None) -> None:
    """Rows that wait in files give the same events as rows in memory."""
    data = file_of(working(7, 60))
    in_memory, figures, _ = second_pass(first_pass(data), 16)
    with Pool(1) as pool:
        trace = first_pass(data, pool)
        pool.stop()
        from_files, audit, _ = second_pass(trace, 16)
    assert from_files == in_memory
    assert audit.facts() == figures.facts()


def slow_figures(events: list[dict[str, Any]], launch_ns: dict[int, int]) -> dict[str, Any]:
    """The figures of the device's work from their definitions, by trying all pairs."""
    work = [each for each in events if each["is_device"]]
    spans = [(e["ts_ns"], e["ts_ns"] + e["dur_ns"], e["device"], e["stream"]) for e in work]
    busy = {}
    for device in {each[2] for each in spans}:
        own = [(start, end) for start, end, where, _ in spans if where == device]
        edges = sorted({edge for span in own for edge in span})
        busy[str(device)] = sum(b - a for a, b in itertools.pairwise(edges) if any(s <= a and b <= e for s, e in own))
    streams: dict[Any, list[tuple[int, int]]] = {}
    for start, end, *lane in sorted(spans, key=lambda span: span[:2]):
        streams.setdefault(tuple(lane), []).append((start, end))
    overlapping = sum(
        any(end > start for _, end in own[:i]) for own in streams.values() for i, (start, _) in enumerate(own)
    )
    long = sum(b[0] < a[1] and b[1] <= a[1] for own in streams.values() for a, b in itertools.pairwise(own))
    unlinked = [each for each in work if each["launch_id"] is None]
    return {
        "device_events": len(work), "kernels": sum(e["category"] == "kernel" for e in work),
        "busy_ns": busy,
        "device_dur_ns": sum(e["dur_ns"] for e in work), "unlinked": len(unlinked),
        "unlinked_dur_ns": sum(e["dur_ns"] for e in unlinked), "overlapping": overlapping,
        "outside_steps": sum(e["step"] is None for e in work),
        "before_launch": sum(e["launch_id"] is not None and e["ts_ns"] < launch_ns[e["launch_id"]] for e in work),
        "suspiciously_long": long,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_figures_of_the_device_are_those_of_their_definitions(seed: int, tiny_samples: None) -> None:
    """Busy time as a union, overlaps, launches and steps against an independent count over all pairs."""
    trace = first_pass(file_of(working(seed, 80)))
    for rows in (4, 10**9):
        events, audit, _ = second_pass(trace, rows)
        assert audit.facts() == slow_figures(events, {each["event_id"]: each["ts_ns"] for each in events})


# --- what must not go unsaid


def text_of(number: int) -> str:
    """The JSON list of so many events."""
    return json.dumps([event(f"e{i}", i) for i in range(number)])


@pytest.mark.parametrize(
    ("text", "rows", "damage"),
    [
        (
            f'{{"traceEvents":{text_of(20)},"z":1,"traceEvents":{text_of(7)}}}',
            20,
            "a second traceEvents of 7 events is not read",
        ),
        (f"{text_of(20)}\nhello world", 20, "11 bytes behind the list of events are no keys, and are not read"),
        (text_of(20)[:-1], 20, "the list of events does not end"),
        (text_of(20), 20, None),
    ],
    ids=["twice", "words", "open", "whole"],
)
def test_what_follows_the_events_is_read_or_told(text: str, rows: int, damage: str | None) -> None:
    """A second list, or words behind the list, are told as damage."""
    trace = first_pass(text.encode())
    assert (trace.rows_read, trace.damage) == (rows, damage)


@pytest.mark.parametrize("place", [-6, -2], ids=["checksum", "length"])
def test_a_wrong_checksum_loses_no_event(place: int) -> None:
    """The text of a gzip member is whole although its trailer is not."""
    packed = bytearray(gzip.compress(f'{{"traceEvents":{text_of(400)}}}'.encode()))
    packed[place] ^= 1
    trace = first_pass(bytes(packed))
    assert trace.rows_read == 400
    assert trace.damage is not None and trace.damage.startswith("the gzip data is damaged")


def test_what_stands_before_damaged_gzip_data_is_read() -> None:
    """Up to the damage every event is there, however small the file."""
    packed = bytearray(gzip.compress(f'{{"traceEvents":{text_of(400)}}}'.encode()))
    packed[len(packed) * 2 // 3] ^= 255
    trace = first_pass(bytes(packed))
    assert 100 < trace.rows_read < 400


@pytest.mark.parametrize(
    ("text", "base_ns", "repaired"),
    [
        ('{"a": [inf], "baseTimeNanoseconds": 1000, "traceEvents": %s}', 1000, "inf or nan beside the events"),
        ('{"traceEvents": %s, "a": "H\\q", "baseTimeNanoseconds": 1000}', 1000, "bare backslash beside the events"),
        (
            '{"traceEvents": %s, "baseTimeNanoseconds": 1000, "a": [1,}',
            0,
            "what stands beside the events cannot be read",
        ),
    ],
    ids=["header", "trailer", "lost"],
)
def test_keys_beside_the_events_are_repaired_or_told(text: str, base_ns: int, repaired: str) -> None:
    """Damage in header or trailer must not lose the base time in silence."""
    trace = first_pass((text % text_of(3)).encode())
    assert (trace.rows_read, trace.base_ns, dict(trace.repaired)) == (3, base_ns, {repaired: 1})


def test_too_many_losses_end_the_reading_but_keep_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage without end is given up, and what stood before it is there."""
    monkeypatch.setattr("runner.trace.reading.MOST_LOSSES", 50)
    monkeypatch.setattr("runner.trace.cutting.CHUNK_BYTES", 4000)
    garbage = ",".join('{"name": "a}' for _ in range(2000))
    trace = first_pass(f'{{"traceEvents":{text_of(100)[:-1]},{garbage}]}}'.encode())
    assert trace.rows_read == 100
    assert trace.damage == "more than 50 pieces are damaged, and what follows is not read"


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper reads the file itself: what it finds must be what was cut."""
    path = tmp_path / "trace.json"
    path.write_bytes(b"x" * 100)
    with pytest.raises(TraceError, match="changed while it was read"):
        of_file(path, 0, 50, 1, True, tmp_path / "rows.arrow")
