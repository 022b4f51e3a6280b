"""Back again: an exported trace has the layout that Perfetto and readers know, and imports as the same events."""

from __future__ import annotations

import dataclasses
import gzip
import http.client
import json
import os
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from given import EVENTS, Row, write_store
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analysis.__main__ import main
from analysis.naming import Run, named_run
from analysis.output import OutputError
from analysis.perfetto import SITE, Server, by_hand, reason_not_to_open, show
from analysis.store import StoreError, open_store
from analysis.trace import export
from runner.trace import Event, read_trace

TRACES = sorted((Path(__file__).parent / "data" / "traces").glob("*.json.gz"))
CORPUS = os.environ.get("CROSSOVER_TRACES")
BASE_NS = 1_790_857_026_000_000_000

HOST = {"category": "cuda_runtime", "pid": "415", "tid": "415", "is_device": False, "depth": 0}
KERNEL = {"category": "kernel", "pid": "0", "tid": "7", "is_device": True, "device": 0, "stream": 7, "depth": 0}


def event(number: int, **given: Any) -> dict[str, Any]:
    """A row of `events`: a host call of 1 us that starts `number` microseconds behind the base."""
    return {"name": "call", "ts_ns": BASE_NS + 1000 * number, "dur_ns": 1000, **HOST, **given}


def exported(folder: Path, events: list[Any], runs: list[Row] | None = None, **tables: list[Row]) -> dict[str, Any]:
    """The document that the export of run r000 is, every number as it is written."""
    store = write_store(folder / "store", runs=runs or [{}], events=events, **tables)
    with open_store(store) as connection:
        export(connection, named_run(connection, "r000"), folder / "x.json")
    return json.loads((folder / "x.json").read_text(encoding="utf-8"), parse_float=Decimal)


def of_phase(document: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    """Objects of the trace with a phase."""
    return [each for each in document["traceEvents"] if each["ph"] == phase]


# --- the same events again


def valued(events: list[Event]) -> list[dict[str, Any]]:
    """Events with their JSON texts as values: a reader may print a text anew."""
    return [
        dataclasses.asdict(each) | {name: json.loads(getattr(each, name) or "null") for name in ("shapes", "args")}
        for each in events
    ]


@pytest.mark.parametrize("file", TRACES, ids=lambda file: file.name)
def test_real_traces_come_back(tmp_path: Path, file: Path) -> None:
    """Every column of every event of a real trace is the same after export and import."""
    events = read_trace(file.read_bytes())
    store = write_store(tmp_path / "store", runs=[{}], events=[dataclasses.asdict(each) for each in events])
    with open_store(store) as connection:
        assert export(connection, named_run(connection, "r000"), tmp_path / "x.json.gz") == len(events)
    assert valued(read_trace((tmp_path / "x.json.gz").read_bytes())) == valued(events)


@pytest.mark.skipif(CORPUS is None, reason="CROSSOVER_TRACES names no folder of public traces")
@pytest.mark.parametrize("name", ["hta_cupti_counters", "kineto_2021-02_resnet50_w0", "tl_vllm_piecewise_exec"])
def test_public_traces_come_back(tmp_path: Path, name: str) -> None:
    """So are those of other programs and years: counters, texts as thread ids, graph launches."""
    test_real_traces_come_back(tmp_path, Path(str(CORPUS)) / f"{name}.json.gz")


HOSTILE = ['"', "\\", "</script>", "\x00\x1f\x7f", "\n\t", "😀", "\u2028", "{", "}", ", ", "'", "a\\", "ProfilerStep#3"]
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
INTEGERS = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, st.floats(allow_nan=False, allow_infinity=False), TEXTS)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(TEXTS, SCALARS, max_size=2))
COLUMNS = [
    "correlation", "device", "stream", "grid", "block", "registers per thread", "shared memory", "bytes", "Bytes",
]  # fmt: skip
ROWS = st.one_of(INTEGERS, st.sampled_from(["0", "-0", "007", "stream 7", "9" * 30, ""]), TEXTS, st.none())
ARGUMENTS = st.dictionaries(
    st.one_of(st.sampled_from([*COLUMNS, "Input Dims"]), TEXTS),
    st.one_of(VALUES, INTEGERS, st.integers(), st.lists(INTEGERS, min_size=3, max_size=3)),
    max_size=6,
)
RAW = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "name": TEXTS,
        "cat": st.sampled_from(
            ["cpu_op", "cpu_instant_event", "kernel", "gpu_memcpy", "cuda_runtime", "cuda_sync", "user_annotation", ""]
        ),
        "ts": st.integers(0, 10**10),
        "dur": st.integers(0, 10**7),
    },
    optional={"pid": ROWS, "tid": ROWS, "args": ARGUMENTS},
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A store without rows, whose `events` a test replaces."""
    with open_store(tmp_path_factory.mktemp("empty")) as opened:
        yield opened


def again(connection: duckdb.DuckDBPyConnection, folder: Path, events: list[Event]) -> list[Event]:
    """Events after a store, an export and an import."""
    rows = [{"run_id": "r000", **dataclasses.asdict(each)} for each in events]
    pl.DataFrame(rows, schema=EVENTS).write_parquet(folder / "events.parquet")
    connection.execute(f"CREATE OR REPLACE VIEW events AS FROM read_parquet('{folder / 'events.parquet'}')")
    run = Run("r000", "p", None, "w", "ok", None, "", {})
    export(connection, run, folder / "x.json")
    return read_trace((folder / "x.json").read_bytes())


@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(raw=st.lists(RAW, min_size=1, max_size=12))
def test_any_events_come_back(connection: duckdb.DuckDBPyConnection, tmp_path: Path, raw: list[dict[str, Any]]) -> None:
    """Whatever names, rows and arguments a trace has, its export reads as the same events."""
    events = read_trace(json.dumps({"traceEvents": raw}).encode())
    assert valued(again(connection, tmp_path, events)) == valued(events)


def test_more_events_than_are_sorted_at_a_time(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """The order of event ids is that of the file, however the rows lie, across the parts that are sorted."""
    raw = [{"ph": "X", "name": "n", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at, "dur": 1} for at in range(9)]
    events = read_trace(json.dumps({"traceEvents": raw}).encode())
    far = [dataclasses.replace(each, event_id=each.event_id * 60_000) for each in events]
    back = again(connection, tmp_path, [*reversed(far)])
    assert [each.ts_ns for each in back] == [each.ts_ns for each in events]


# --- the layout


def test_header_is_todays_layout(tmp_path: Path) -> None:
    """The keys before the events, with the device as far as the environment knows it, and the rank."""
    card = {"device_name": "NVIDIA H200", "multiprocessors": 132, "compute_capability": "9.0"}
    runs = [{"facts": {"rank": 3, "world_size": 8}}]
    document = exported(tmp_path, [event(0), event(1, **KERNEL)], runs, environments=[card])
    del document["traceEvents"]
    assert document == {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9, "computeMinor": 0}],
        "distributedInfo": {"rank": 3, "world_size": 8},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }


def test_times_are_exact_decimals(tmp_path: Path) -> None:
    """Microseconds have three digits, and no nanosecond is lost far from zero."""
    far = event(0, ts_ns=BASE_NS + 9_007_199_254_740_993, dur_ns=1)
    exported(tmp_path, [event(0), far])
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert '"ts": 0.000, "dur": 1.000' in text
    assert '"ts": 9007199254740.993, "dur": 0.001' in text


def test_columns_stand_before_the_stored_arguments(tmp_path: Path) -> None:
    """Columns come back under Kineto's names; the text of the other arguments is untouched."""
    kernel = KERNEL | {
        "correlation": 5, "grid": [1, 2, 3], "block": [128, 1, 1], "registers_per_thread": 32,
        "shared_memory_bytes": 0, "args": '{"x":1.50,  "y": "}"}',
    }  # fmt: skip
    exported(tmp_path, [event(0, **kernel), event(1, shapes="[[2, 3], []]"), event(2)])
    lines = (tmp_path / "x.json").read_text(encoding="utf-8").splitlines()
    first, second, third = [line.rstrip(",") for line in lines if '"ph": "X"' in line]
    assert first.endswith(
        '"args": {"device": 0, "stream": 7, "correlation": 5, "grid": [1,2,3], "block": [128,1,1], '
        '"registers per thread": 32, "shared memory": 0, "x":1.50,  "y": "}"}}'
    )
    assert second.endswith('"args": {"Input Dims": [[2, 3], []]}}')
    assert third.endswith('"dur": 1.000}')


def test_what_an_allocator_did_is_an_instant_again(tmp_path: Path) -> None:
    """It has no duration but the scope that viewers ask for, and its bytes stand under Kineto's name."""
    memory = {
        "name": "[memory]",
        "category": "cpu_instant_event",
        "dur_ns": 0,
        "bytes": -512,
        "args": '{"Device Id":0}',
    }
    document = exported(tmp_path, [event(0), event(1, **memory)])
    assert of_phase(document, "i") == [
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 415, "tid": 415, "ts": 1,
         "args": {"Bytes": -512, "Device Id": 0}}
    ]  # fmt: skip


def test_rows_keep_their_texts(tmp_path: Path) -> None:
    """What looks like a whole number is one, all else stays a text."""
    rows = [("0", "stream 7"), ("007", "-5"), ("", "12345678901234567890")]
    document = exported(tmp_path, [event(place, pid=pid, tid=tid) for place, (pid, tid) in enumerate(rows)])
    found = [(each["pid"], each["tid"]) for each in of_phase(document, "X")]
    assert found == [(0, "stream 7"), ("007", -5), ("", "12345678901234567890")]


def test_host_rows_stand_above_devices(tmp_path: Path) -> None:
    """Processes, threads and streams have names and places, the host's first."""
    events = [event(0), event(1, **KERNEL), event(2, **KERNEL | {"pid": "1", "device": 1}), event(3, tid="77")]
    rows = of_phase(exported(tmp_path, events), "M")
    told = {(row["name"], row["pid"], row["tid"]): next(iter(row["args"].values())) for row in rows}
    assert told["process_name", 415, 0] == "host 415"
    assert told["process_labels", 1, 0] == "GPU 1"
    assert told["process_sort_index", 415, 0] < told["process_sort_index", 0, 0] < told["process_sort_index", 1, 0]
    assert (told["thread_name", 0, 7], told["thread_name", 415, 77]) == ("stream 7", "thread 77")
    assert told["thread_sort_index", 415, 77] != told["thread_sort_index", 415, 415]


def test_arrows_lead_from_launches_to_kernels(tmp_path: Path) -> None:
    """One arrow for each launched event, with an id of its own even where one call launches two."""
    events = [
        event(0, name="cudaGraphLaunch"),
        event(5, **KERNEL, launch_id=0),
        event(7, **KERNEL, launch_id=0),
        event(9, **KERNEL),
    ]
    document = exported(tmp_path, events)
    starts, ends = of_phase(document, "s"), of_phase(document, "f")
    assert [(each["pid"], each["tid"], each["ts"]) for each in starts] == [(415, 415, 0), (415, 415, 0)]
    assert sorted((each["pid"], each["tid"], each["ts"], each["bp"]) for each in ends) == [
        (0, 7, 5, "e"),
        (0, 7, 7, "e"),
    ]
    assert len({each["id"] for each in starts}) == 2
    assert sorted(each["id"] for each in starts) == sorted(each["id"] for each in ends)
    assert {each["cat"] for each in starts + ends} == {"ac2g"}


# --- the command


def run_command(store: Path, *arguments: str) -> int:
    """Exit code of `python -m analysis trace`."""
    return main(["trace", "--store", str(store), *arguments])


def test_command_writes_the_default_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file lies in outputs/traces under a plain name, whatever the workload is called; stdout is its path."""
    store = write_store(tmp_path / "s", runs=[{"workload": "../a b/c.py:f"}], events=[event(0)])
    monkeypatch.chdir(tmp_path)
    assert run_command(store, "r000") == 0
    assert capsys.readouterr().out == "outputs/traces/a_b_c.py_f_r000.json.gz\n"
    with gzip.open("outputs/traces/a_b_c.py_f_r000.json.gz") as file:
        assert len(of_phase(json.load(file), "X")) == 1


def test_command_takes_filters_and_a_plain_file(tmp_path: Path) -> None:
    """Filters are words of the command line; a name without .gz gives plain JSON."""
    store = write_store(tmp_path / "s", runs=[{}, {"size": 8}], events=[event(0)])
    assert run_command(store, "workload=matmul_add", "size=64", "-o", str(tmp_path / "x.json")) == 0
    assert json.loads((tmp_path / "x.json").read_text())["schemaVersion"] == 1


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"status": "oom", "reason": "CUDA out of memory"}, "has no events: oom: CUDA out of memory"),
        ({"facts": {"profile": {"reason": "CUPTI is missing"}}}, "has no events: CUPTI is missing"),
        ({}, "has no events: it was measured without a profile"),
    ],
)
def test_a_point_without_events_says_why(tmp_path: Path, run: Row, why: str) -> None:
    """The reason is the run's, its profile's, or that there was none."""
    with open_store(write_store(tmp_path / "s", runs=[run])) as connection, pytest.raises(StoreError, match=why):
        export(connection, named_run(connection, "r000"), tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_an_earlier_run_with_events_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where an earlier run of the point has a profile, the error names it."""
    store = write_store(tmp_path / "s", runs=[{"point_id": "p"}, {"point_id": "p"}], events=[event(0)])
    assert run_command(store, "p", "-o", str(tmp_path / "x.json")) == 1
    assert "its run r000 has some" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder in the place of the file is one sentence and exit code 1."""
    store = write_store(tmp_path / "s", runs=[{}], events=[event(0)])
    assert run_command(store, "r000", "-o", str(tmp_path)) == 1
    assert "is not a file" in capsys.readouterr().err


# --- Perfetto


def fetch(port: int, path: str, host: str | None = None) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a GET."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    client.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = client.getresponse()
    told = answer.status, dict(answer.getheaders()), answer.read()
    client.close()
    return told


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Server, threading.Thread, list[bool]]]:
    """A server of a file of 7 bytes on a free port, and what `serve` returns when it ends."""
    path = tmp_path / "a trace.json.gz"
    path.write_bytes(b"content")
    ended: list[bool] = []
    with Server(path, port=0) as server:
        thread = threading.Thread(target=lambda: ended.append(server.serve(limit_s=20)))
        thread.start()
        yield server, thread, ended
        server.fetched = True
        thread.join()


def test_the_file_is_served_once(served: tuple[Server, threading.Thread, list[bool]]) -> None:
    """Perfetto's site alone may read the answer, and the server ends behind it."""
    server, thread, ended = served
    status, headers, body = fetch(server.server_port, "/a_trace.json.gz")
    thread.join(10)
    assert (status, body, ended) == (200, b"content", [True])
    assert headers["Access-Control-Allow-Origin"] == SITE
    assert server.link == f"{SITE}/#!/?url=http://127.0.0.1:{server.server_port}/a_trace.json.gz"


@pytest.mark.parametrize("path", ["/", "/a trace.json.gz".replace(" ", "%20"), "/../a_trace.json.gz", "/etc/passwd"])
def test_nothing_else_is_served(served: tuple[Server, threading.Thread, list[bool]], path: str) -> None:
    """Any other path is not found, and does not end the server."""
    server, thread, _ = served
    status, _, body = fetch(server.server_port, path)
    assert (status, b"content" in body, thread.is_alive()) == (404, False, True)


def test_another_name_for_the_address_is_refused(served: tuple[Server, threading.Thread, list[bool]]) -> None:
    """A site that gives its own name this address reads nothing."""
    server, _, _ = served
    status, _, body = fetch(server.server_port, "/a_trace.json.gz", host=f"evil.example:{server.server_port}")
    assert (status, b"content" in body) == (403, False)


def test_a_silent_client_keeps_nobody_waiting(served: tuple[Server, threading.Thread, list[bool]]) -> None:
    """A connection on which nothing is sent does not stop the next one."""
    server, _, _ = served
    silent = http.client.HTTPConnection("127.0.0.1", server.server_port)
    silent.connect()
    assert fetch(server.server_port, "/a_trace.json.gz")[0] == 200
    silent.close()


def test_the_server_ends_at_its_limit(tmp_path: Path) -> None:
    """Nobody fetches: the server ends and says so."""
    with Server(tmp_path / "x", port=0) as server:
        assert server.serve(limit_s=0) is False


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """Another program on the port is one sentence, with the cure."""
    with (
        Server(tmp_path / "x", port=0) as server,
        pytest.raises(OutputError, match=f"port {server.server_port} .*end the program that holds it"),
    ):
        Server(tmp_path / "y", port=server.server_port)


def test_the_browser_gets_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a display the browser is opened, and the command ends once it has fetched the file."""
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    (tmp_path / "x.json").write_bytes(b"content")

    def browse(link: str) -> bool:
        port = int(link.rpartition(":")[2].partition("/")[0])
        threading.Thread(target=fetch, args=(port, "/x.json")).start()
        return True

    assert show(tmp_path / "x.json", browse, port=0)
    assert f"opening {SITE}/#!/?url=http://127.0.0.1:" in capsys.readouterr().err


def test_over_ssh_the_tunnel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over SSH no browser is opened here: the tunnel and the link are told."""
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22")
    monkeypatch.setenv("DISPLAY", ":0")
    assert reason_not_to_open() == "this is an SSH session"
    told = by_hand(f"{SITE}/#!/?url=http://127.0.0.1:9001/x.json")
    assert "ssh -N -L 9001:127.0.0.1:9001 " in told
    assert told.endswith(f"{SITE}/#!/?url=http://127.0.0.1:9001/x.json")
