"""`python -m runner.ingest`: what becomes of every kind of file, what is told, and what is left when it is stopped."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import terminals
from store_given import files_in

from runner.import_workers import Bar, Refused, import_all
from runner.imports import stem, steps_line
from runner.ingest import main
from runner.store import Store, check

ROOT = Path(__file__).parent.parent
TRACES = ROOT / "tests/data/traces"
SMALL = TRACES / "h200_64_bf16_cold_eager_sched0.json.gz"
PATIENCE_S = 60


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the runs go."""
    return tmp_path / "store"


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No duckdb, so that no verdict is asked for: these tests look at something else."""
    monkeypatch.setitem(sys.modules, "duckdb", None)


def event(name: str = "a name", ts: float = 0, dur: float = 1, **more: Any) -> dict[str, Any]:
    """A complete event of the host."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def kernel(device: int = 0, ts: float = 0, dur: float = 1) -> dict[str, Any]:
    """A kernel without a launch."""
    return event("kernel", ts, dur, cat="kernel", args={"device": device, "stream": 7})


def write(path: Path, *events: dict[str, Any], **document: Any) -> Path:
    """A trace of these events."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**document, "traceEvents": list(events or [event()])}))
    return path


def run_ingest(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command as a user gives it."""
    options = {"capture_output": True, "cwd": ROOT, "timeout": 120, "encoding": "utf-8", **options}
    return subprocess.run([sys.executable, "-m", "runner.ingest", *map(os.fspath, arguments)], **options)


def ingest(store: Path, *arguments: str | Path) -> int:
    """The command in this process."""
    return main([*map(str, arguments), "--store", str(store)])


def runs(store: Path) -> list[dict[str, Any]]:
    """All runs of a store in the order of their file's name, facts unfolded."""
    if not store.exists():
        return []
    columns = ["run_id", "sweep_id", "point_id", "environment_id", "source", "workload", "size", "params", "status"]
    rows = Store(store).live_runs([*columns, "facts"]).to_dicts()
    unfolded = [{**row, "facts": json.loads(row["facts"])} for row in rows]
    return sorted(unfolded, key=lambda row: (row["facts"]["import"]["path"], row["run_id"]))


def expect_whole(store: Path, number: int) -> None:
    """So many runs, each with its events and environment, and nothing else."""
    report = check(store)
    assert report.problems == []
    assert sum(sweep.runs for sweep in report.sweeps) == number
    assert len(files_in(store / "events")) == number


# -- exit codes, and what is told --------------------------------------------------------------------------------------


def test_a_file_becomes_a_run_and_is_told_of(store: Path, quiet: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Its audit, its steps, its speed; the run is the file's stem with no axis and the content as its point."""
    assert ingest(store, SMALL) == 0
    told, speed, *_ = capsys.readouterr().out.splitlines()
    (run,) = runs(store)
    assert told.startswith(f"{SMALL}: run {run['run_id']}: ") and run["facts"]["audit"]["line"] in told
    assert told.endswith("; 20 steps of kind ProfilerStep (marked by the profiler)")
    assert speed.startswith("1 trace, 0.") and speed.endswith(" MB/s")
    assert (run["source"], run["workload"], run["size"], run["params"], run["status"]) == (
        "import", "h200_64_bf16_cold_eager_sched0", None, "{}", "ok",
    )  # fmt: skip
    assert run["facts"]["import"]["content"].startswith(run["point_id"])
    expect_whole(store, 1)


def test_a_bad_file_does_not_stop_the_others(
    tmp_path: Path, store: Path, quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused with what it seems to be, on stderr; exit code 2."""
    good, other = write(tmp_path / "good.json"), write(tmp_path / "other.json", event("another"))
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": "1.0.4-chakra", "nodes": []}')
    assert ingest(store, good, bad, tmp_path / "missing.json", other) == 2
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        f"{tmp_path / 'missing.json'}: not read: there is no such file or folder",
        f"{bad}: not read: it holds no traceEvents: it seems to be a PyTorch execution trace (Chakra), which holds "
        "operators without times",
    ]
    assert [line.partition(": run ")[0] for line in out.splitlines()[:2]] == [str(good), str(other)]
    expect_whole(store, 2)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("empty", "the folder holds no file that ends in .json, .json.gz or .sqlite"),
        ("missing", "there is no such file or folder"),
        ("missing/below.json", "there is no such file or folder"),
        ("pipe", "it is a pipe or a device, not a file; write its content to a file first"),
        ("loop.json", "it cannot be read: Too many levels of symbolic links"),
        ("nothing.json", "it holds no traceEvents: it seems to be an empty file"),
        ("/dev/zero", "it is a pipe or a device, not a file; write its content to a file first"),
        ("/proc/self/mem", "it cannot be read: Input/output error"),
        ("x" * 300, "it cannot be read: File name too long"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, store: Path, quiet: None, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    """One sentence; exit code 1, since nothing else was read. Nothing waits for a pipe."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing.json").touch()
    (tmp_path / "loop.json").symlink_to("loop.json")
    os.mkfifo(tmp_path / "pipe")
    assert ingest(store, tmp_path / name) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{tmp_path / name}: not read: {why}\n")
    assert runs(store) == []


def without_privileges(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command as one who may not read and write everything, which root may."""
    command = [sys.executable, "-m", "runner.ingest", *map(str, arguments)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read everything, and setpriv is not here")
        less = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={less}", f"--inh-caps={less}", *command]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_a_file_without_permission_is_refused(tmp_path: Path, store: Path) -> None:
    """As is a folder, and one below a folder; the reason is the system's."""
    secret, hidden = write(tmp_path / "in/secret.json"), tmp_path / "in/hidden"
    secret.chmod(0)
    hidden.mkdir(mode=0)
    done = without_privileges(tmp_path / "in", hidden, "--store", store)
    told = [f"{path}: not read: it cannot be read: Permission denied" for path in (hidden, secret)]
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (1, "", told)


def test_a_store_that_may_only_be_read_is_told(tmp_path: Path, store: Path) -> None:
    """Before anything is read; nothing is written elsewhere."""
    store.mkdir(mode=0o555)
    done = without_privileges(SMALL, "--store", store)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"python -m runner.ingest: store={store}: cannot be written: Permission denied\n"


def test_a_file_that_vanishes_is_refused(tmp_path: Path, store: Path) -> None:
    """Between the finding and the reading, alone or beside others."""
    gone, good = tmp_path / "gone.json", write(tmp_path / "good.json")
    refused = Refused(gone, "it cannot be read: No such file or directory")
    assert list(import_all([gone], store, None)) == [refused]
    first, second = import_all([gone, good], store, None)
    assert first == refused and second.path == good


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the following arguments are required: FILE_OR_FOLDER (--help lists what is allowed)"),
        (["x.json", "--step", "("], "argument --step: '(' is no regular expression: missing ), unterminated"),
        (["x.json", "--steps"], "unrecognized arguments: --steps (--help"),
    ],
)
def test_wrong_usage_is_told(store: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    """One line; exit code 1; no store is made."""
    with pytest.raises(SystemExit) as end:
        ingest(store, *arguments)
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith(f"python -m runner.ingest: {told}")
    assert not store.exists()


def test_help_needs_no_store_and_nothing_heavy(tmp_path: Path) -> None:
    """No torch, no duckdb, no altair; nothing is written."""
    code = (
        "import sys, runner.ingest as ingest\n"
        "assert not {'torch', 'duckdb', 'altair', 'analysis', 'hydra'} & set(sys.modules), sys.modules\n"
        "ingest.main(['--help'])"
    )
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=path)
    assert done.returncode == 0, done.stderr
    assert "--step REGEX" in done.stdout and "exit code:" in done.stdout
    assert list(tmp_path.iterdir()) == []


# -- folders and names -------------------------------------------------------------------------------------------------


def test_a_folder_gives_every_trace_below_it_once(
    tmp_path: Path, store: Path, quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its ending, at any depth; links to folders are not followed, given twice is read once, and pipes are told."""
    folder = tmp_path / "folder"
    write(folder / "a.json", event("a"))
    write(folder / "deep/er/b.JSON", event("b"))
    write(folder / "notes.txt", event("c"))
    (folder / "c.json.gz").write_bytes(gzip.compress(write(tmp_path / "c", event("c")).read_bytes()))
    (folder / "round").symlink_to(folder)
    (folder / "again.json").symlink_to("a.json")
    (folder / "dangling.json").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.json")
    assert ingest(store, folder, folder / "a.json", folder) == 2
    out, err = capsys.readouterr()
    assert [line.partition(": run ")[0] for line in out.splitlines()[:3]] == [
        str(folder / name) for name in ("a.json", "c.json.gz", "deep/er/b.JSON")
    ]
    assert {line.partition(": not read: ")[0] for line in err.splitlines()} == {
        str(folder / name) for name in ("dangling.json", "pipe.json")
    }
    assert [run["workload"] for run in runs(store)] == ["a", "c", "b"]


HOSTILE = [
    "'quo\"te.json",
    "$(touch owned).json",
    "; rm -rf x.json",
    "new\nline.json",
    "\x1b[31mred\x1b[0m\r.json",
    os.fsdecode(b"\xff\xfe\x80.json"),
    "-dash.json",
    "ünïcödé ‮.json",
    "%s {0} \\N{DASH}.json",
    "x" * 250 + ".json",
    ".json",
]


def test_hostile_names_are_told_plainly_and_harm_nothing(tmp_path: Path, store: Path) -> None:
    """A line each, without a control character; the store has names of its own; nothing is run or written elsewhere."""
    folder = tmp_path / "in"
    for number, name in enumerate(HOSTILE):
        write(folder / name, event(f"event {number}"))
    before = files_in(tmp_path)
    code = "import sys; sys.modules['duckdb'] = None; from runner.ingest import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--store", store, "--", *(folder / name for name in HOSTILE)]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b": run ") == len(HOSTILE) and not set(done.stdout) & (set(range(32)) - {10})
    assert all(line.startswith(os.fsencode(folder)) for line in done.stdout.splitlines()[: len(HOSTILE)])
    expect_whole(store, len(HOSTILE))
    assert {run["workload"] for run in runs(store)} >= {"-dash", ".json", "new\nline", "???", "x" * 250}
    assert {name for name in files_in(tmp_path) if not name.startswith("store/")} == before


def test_a_path_does_not_lead_out_of_the_store(tmp_path: Path, quiet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`../../x.json` is a file like any other: what it becomes lies in the store."""
    deep = tmp_path / "a/b/c"
    deep.mkdir(parents=True)
    write(tmp_path / "a/x.json")
    monkeypatch.chdir(deep)
    assert main(["../../x.json", "--store", "store"]) == 0
    expect_whole(deep / "store", 1)
    assert {name.split("/")[1] for name in files_in(tmp_path)} == {"x.json", "b"}
    assert {name.split("/")[3] for name in files_in(tmp_path) if "/b/" in name} == {"store"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rank0.json.gz", "rank0"),
        ("worker0.pt.trace.json", "worker0"),
        ("timeline.raw.json.gz", "timeline.raw"),
        ("x.json.json", "x"),
        ("plain", "plain"),
        (".json", ".json"),
        (".json.gz", ".json"),
    ],
)
def test_the_stem_has_no_ending_of_traces(name: str, expected: str) -> None:
    """Nor is it ever empty."""
    assert stem(Path(name)) == expected


# -- the same content --------------------------------------------------------------------------------------------------


def test_the_same_content_becomes_one_run(
    tmp_path: Path, store: Path, quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plain, packed and copied, read by several processes at once: one run, and every file is told of."""
    text = gzip.decompress(SMALL.read_bytes())
    for number in range(4):
        (tmp_path / f"plain{number}.json").write_bytes(text)
        (tmp_path / f"packed{number}.json.gz").write_bytes(gzip.compress(text, number))
    assert ingest(store, tmp_path) == 0
    (run,) = runs(store)
    told = capsys.readouterr().out.splitlines()[:8]
    assert sum(f": run {run['run_id']} has the same content, nothing was written: " in line for line in told) == 7
    expect_whole(store, 1)


def test_it_is_noticed_by_a_later_command(
    tmp_path: Path, store: Path, quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which writes nothing, and tells the audit of the run that is there; other content is another run."""
    assert ingest(store, SMALL) == 0
    first, before = capsys.readouterr().out.splitlines()[0], files_in(store)
    assert ingest(store, SMALL) == 0
    again = capsys.readouterr().out.splitlines()[0]
    assert again == first.replace(runs(store)[0]["run_id"], "{} has the same content, nothing was written").format(
        runs(store)[0]["run_id"]
    )
    assert files_in(store) == before
    assert ingest(store, write(tmp_path / SMALL.name.removesuffix(".gz"))) == 0
    expect_whole(store, 2)


def test_other_steps_are_a_run_of_their_own(tmp_path: Path, store: Path, quiet: None) -> None:
    """The same content with another --step: another run of the same point."""
    path = write(tmp_path / "x.json", event("load 1"), event("run 2", 5), event("run 3", 9))
    for step in ((), ("--step", "run"), ("--step", "load"), ("--step", "run"), ()):
        assert ingest(store, path, *step) == 0
    found = runs(store)
    assert [run["facts"]["import"]["step"] for run in found] == [None, "run", "load"]
    assert len({run["point_id"] for run in found}) == 1
    expect_whole(store, 3)


# -- steps, ranks, environments ----------------------------------------------------------------------------------------


def spans(kind: str, *steps: list[int]) -> dict[str, Any]:
    """A kind of step as facts hold it."""
    return {"kind": kind, "steps": list(steps)}


@pytest.mark.parametrize(
    ("method", "reason", "kinds", "expected"),
    [
        ("window", "nothing repeats", [spans("window", [0, 0])], "no steps: nothing repeats"),
        (None, None, [], "no steps"),
        ("profiler", None, [spans("ProfilerStep", [3, 3])], "1 step of kind ProfilerStep (marked by the profiler)"),
        (
            "sequence", "no range has a name in which 'x' is found", [spans("A", [0, 1]), spans("B", [2, 1041])],
            "2 steps of kind A, 1,040 steps of kind B (kernels that repeat); no range has a name in which 'x' is found",
        ),
        (
            "annotation", None, [spans(f"k{n}", [n, n]) for n in range(8)],
            ", ".join(f"1 step of kind k{n}" for n in range(6)) + " and 2 more kinds (by --step)",
        ),
        ("annotation", None, [spans("x" * 99, [0, 0], [2, 3])], f"3 steps of kind {'x' * 57}... (by --step)"),
    ],
)  # fmt: skip
def test_steps_are_told(method: str | None, reason: str | None, kinds: list[dict[str, Any]], expected: str) -> None:
    """How many of which kind, how they were found, and why not otherwise."""
    number = sum(last - first + 1 for each in kinds for first, last in each["steps"])
    assert steps_line({"method": method, "reason": reason, "kinds": kinds, "number": number}) == expected


def test_kinds_of_step_are_told_as_the_pattern_says(
    tmp_path: Path, store: Path, quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first group is the kind; events of another kind of name are in no step."""
    names = ["prefill of 3", "decode of 3", "decode of 7", "idle"]
    path = write(tmp_path / "x.json", *(event(name, 10 * n) for n, name in enumerate(names)), kernel(ts=12))
    assert ingest(store, path, "--step", r"(\w+) of \d") == 0
    assert "; 1 step of kind prefill, 2 steps of kind decode (by --step)\n" in capsys.readouterr().out
    events = pl.read_parquet(next((store / "events").rglob("*.parquet"))).sort("event_id")
    assert events["step"].to_list() == [0, 1, 2, None, None]


@pytest.mark.parametrize(
    ("name", "document", "expected"),
    [
        ("trace.json", {}, {}),
        ("rank3.json", {}, {"rank": 3}),
        ("mtia_Rank-12.json", {}, {"rank": 12}),
        ("x_rank_7_of_8.json", {}, {"rank": 7}),
        ("rank9999999999.json", {}, {}),
        ("rank3.json", {"distributedInfo": {"rank": 5, "world_size": 8}}, {"rank": 5, "world_size": 8}),
        ("x.json", {"distributedInfo": {"rank": "5", "world_size": None}}, {"rank": 5}),
        ("x.json", {"distributedInfo": {"rank": 0.5, "world_size": 10**30}}, {}),
        ("x.json", {"distributedInfo": [1]}, {}),
    ],
)
def test_rank_and_world_size(
    tmp_path: Path, store: Path, quiet: None, name: str, document: dict[str, Any], expected: dict[str, int]
) -> None:
    """From distributedInfo, else the rank from the file's name; what is neither is missing."""
    assert ingest(store, write(tmp_path / name, **document)) == 0
    facts = runs(store)[0]["facts"]
    assert {key: facts[key] for key in ("rank", "world_size") if key in facts} == expected


CARD = {
    "id": 1, "name": "NVIDIA H200", "totalGlobalMem": 150_000_000_000, "computeMajor": 9, "computeMinor": 0,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "numSms": "132",
    "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip
KNOWN = {
    "device": "cuda", "device_name": "NVIDIA H200", "compute_capability": "9.0", "multiprocessors": 132,
    "memory_bytes": 150_000_000_000, "threads_per_multiprocessor": 2048, "registers_per_multiprocessor": 65536,
    "shared_memory_per_multiprocessor_bytes": 233472,
}  # fmt: skip


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, {"device": "cuda"}),
        ({"deviceProperties": [{"id": 0, "name": "idle"}, CARD]}, KNOWN),
        ({"computeProperties": [CARD], "cuda_driver_version": 13000, "cuda_runtime_version": 12090},
         {**KNOWN, "driver": "13000", "cuda_runtime": "12090"}),
        ({"deviceProperties": [{"id": 7, "name": ""}], "hip_runtime_version": 70, "hip_driver_version": True},
         {"device": "cuda", "cuda_runtime": "70"}),
        ({"deviceProperties": [{"id": 1, "numSms": 10**30, "name": 5, "computeMajor": 9}, None]}, {"device": "cuda"}),
        ({"deviceProperties": {"a": 1}}, {"device": "cuda"}),
    ],
)  # fmt: skip
def test_the_environment_is_what_the_trace_says(
    tmp_path: Path, store: Path, quiet: None, document: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Of the device that worked most (1, not 0), under its names of every generation; the rest is unknown."""
    path = write(tmp_path / "x.json", kernel(0, 0, 2), kernel(1, 0, 5), kernel(2, 9, 1), **document)
    assert ingest(store, path) == 0
    (run,) = runs(store)
    row = Store(store).environment(run["environment_id"])
    assert row is not None and row.pop("environment_id") == run["environment_id"]
    assert {key: value for key, value in row.items() if value is not None} == expected
    assert run["facts"]["audit"]["busy_ns"] == {"0": 2000, "1": 5000, "2": 1000}


def test_names_that_are_no_text_do_not_cost_the_trace(tmp_path: Path, store: Path, quiet: None) -> None:
    """Half of a surrogate pair, in a device's name, a version, an event's name and a kind of step."""
    path = write(
        tmp_path / "x.json", event("a \ud800"), deviceProperties=[{"name": "\ud800"}], cuda_driver_version="\udfff"
    )
    assert ingest(store, path, "--step", "a (.)") == 0
    expect_whole(store, 1)
    (kind,) = runs(store)[0]["facts"]["steps"]["kinds"]
    assert kind["kind"].encode()


def test_equal_environments_are_one(tmp_path: Path, store: Path, quiet: None) -> None:
    """Ranks of one job share the row; a trace without device work is of a CPU."""
    for rank in range(2):
        write(tmp_path / "in" / f"rank{rank}.json", kernel(ts=rank), deviceProperties=[CARD])
    write(tmp_path / "in" / "cpu.json")
    assert ingest(store, tmp_path / "in") == 0
    cpu, *ranks = [run["environment_id"] for run in runs(store)]
    assert len({*ranks}) == 1 and cpu not in ranks
    row = Store(store).environment(cpu)
    assert row is not None and {key for key, value in row.items() if value is not None} == {"device", "environment_id"}


# -- verdicts ----------------------------------------------------------------------------------------------------------


def test_a_verdict_follows_and_what_to_run_next(store: Path) -> None:
    """One line by `analysis`, and two commands that work as they stand."""
    done = run_ingest(SMALL, "--store", store)
    assert (done.returncode, done.stderr) == (0, "")
    _, _, verdict, *following = done.stdout.splitlines()
    assert verdict.startswith("verdict: Of a profiled step of ") and "overhead-bound" in verdict
    for line in following:
        command = line.removeprefix("next:").split("     ")[0].split()
        if "--open" not in command:
            assert subprocess.run([sys.executable, *command[1:]], cwd=ROOT, capture_output=True).returncode == 0, line
    assert following[1].endswith(
        f"analysis trace {runs(store)[0]['run_id']} --store {store} --open     the trace in Perfetto"
    )
    assert "\x1b" not in done.stdout and "\r" not in done.stdout


@pytest.mark.parametrize(
    ("events", "commands"),
    [
        ([], ["audits"]),
        ([{"ph": "i", "name": "x", "ts": 1}], ["audits"]),
        ([event()], ["trace"]),
        ([kernel()], ["gaps", "trace"]),
    ],
)
def test_the_next_commands_have_something_to_show(
    tmp_path: Path,
    store: Path,
    quiet: None,
    capsys: pytest.CaptureFixture[str],
    events: list[dict[str, Any]],
    commands: list[str],
) -> None:
    """No gaps without a device, no trace without events."""
    (tmp_path / "x.json").write_text(json.dumps({"traceEvents": events}))
    assert ingest(store, tmp_path / "x.json") == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "python -m analysis " in line]
    assert [line.partition("python -m analysis ")[2].split()[0] for line in told] == commands


def test_ranks_are_judged_in_their_order(tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line each by rank, not by name, those without a rank last; then how many there are of each."""
    text = json.loads(gzip.decompress(SMALL.read_bytes()))
    for name, rank in (("a", 10), ("b", 2), ("c", None)):
        text["distributedInfo"] = {} if rank is None else {"rank": rank, "world_size": 16}
        (tmp_path / f"{name}.json").write_text(json.dumps(text))
    assert ingest(store, tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": host without the profiler / device = ")[0] for line in lines[4:7]] == [
        "rank 2, b.json: overhead-bound", "rank 10, a.json: overhead-bound", "c.json: overhead-bound",
    ]  # fmt: skip
    assert lines[7] == "3 runs: 3 overhead-bound"
    assert lines[8].startswith("next: python -m analysis audits --store ")


def test_a_run_behind_a_later_one_of_its_content_says_so(
    tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A point has one verdict, that of its latest run; an earlier one with other steps is not given it."""
    path = write(tmp_path / "x.json", event("run"), kernel())
    assert ingest(store, path) == ingest(store, path, "--step", "run") == 0
    capsys.readouterr()
    assert ingest(store, path) == 0
    assert "verdict: not told, since the same content was read again later, with other steps" in capsys.readouterr().out


def test_without_duckdb_there_is_no_verdict(store: Path, quiet: None, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says so; the import stands."""
    assert ingest(store, SMALL) == 0
    assert capsys.readouterr().out.splitlines()[2] == (
        "no verdict: duckdb, which finds it, is not installed here (pip install duckdb)"
    )
    expect_whole(store, 1)


def test_a_verdict_that_fails_costs_nothing(tmp_path: Path, store: Path) -> None:
    """The last line of the complaint is told; the import stands, and so does its exit code."""
    (tmp_path / "duckdb.py").write_text("raise ImportError('of another Python')")
    done = run_ingest(SMALL, "--store", store, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2] == "no verdict: ImportError: of another Python"
    expect_whole(store, 1)


# -- where it is written and told --------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["file", "file/store", "/proc/store"])
def test_a_store_that_cannot_be_is_told(
    tmp_path: Path, quiet: None, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """Before anything is read: one sentence, exit code 1."""
    (tmp_path / "file").write_text("in the way")
    assert ingest(tmp_path / place, SMALL) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"python -m runner.ingest: store={tmp_path / place}: cannot be written: ")


@pytest.mark.parametrize("folder", ["events", "environments", "runs"])
def test_a_place_that_cannot_be_written_is_told(
    tmp_path: Path, store: Path, quiet: None, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    """As in a folder that may only be read (a file in the way: root may write anywhere); nothing half-done is left."""
    store.mkdir()
    (store / folder).write_text("in the way")
    assert ingest(store, SMALL) == 1
    assert " not read: " in (err := capsys.readouterr().err) and "cannot be written: " in err
    left = {name for name in files_in(store) if not name.startswith("environments/")}
    assert left <= {folder}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_told_and_leaves_nothing(
    small_disk: Path, tmp_path: Path, quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """No run, no events, no temporary file; a smaller trace still fits behind it."""
    large = write(tmp_path / "large.json", *(event(f"{n**7}", n) for n in range(20_000)))
    assert ingest(small_disk, large, write(tmp_path / "small.json")) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"{large}: not read: ") and "cannot be written: No space left on device" in err
    expect_whole(small_disk, 1)


def test_a_full_disk_of_temporary_files_is_told(small_disk: Path, tmp_path: Path) -> None:
    """Rows wait there between the two passes: the file is refused as one that cannot be read here."""
    large = write(tmp_path / "large.json", *(event(f"{n**7}", n) for n in range(20_000)))
    done = run_ingest(large, "--store", tmp_path / "store", env={**os.environ, "TMPDIR": str(small_disk)})
    assert done.returncode == 1 and "No space left on device" in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(small_disk.iterdir()) == [] and runs(tmp_path / "store") == []


@pytest.mark.parametrize("end", ["| true", ">&-", ">/dev/full"])
def test_a_closed_output_ends_no_import(tmp_path: Path, store: Path, end: str) -> None:
    """Nothing can be said, and everything is read; no traceback."""
    paths = [write(tmp_path / f"{n}.json", event(str(n))) for n in range(2)]
    command = shlex.join([sys.executable, "-m", "runner.ingest", *map(str, paths), "--store", str(store)])
    done = subprocess.run(["sh", "-c", f"{command} {end}"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    expect_whole(store, 2)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_is_drawn_on_a_terminal_after_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five times a second at most, and cleared; elsewhere nothing at all."""
    (tmp_path / "x.json").write_bytes(bytes(1000))
    ours, theirs = pty.openpty()
    clock = Clock()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        bar = Bar([tmp_path / "x.json"], clock)
        for clock.now, read_bytes in ((0.9, 100), (1.0, 250), (1.1, 300), (1.3, 2000)):
            bar.draw(read_bytes)
        bar.clear()
        bar.clear()
    drawn = b"".join(terminals.pieces(ours))
    assert drawn == b"\r1 file: 25 % read\x1b[K\r1 file: read; linking its events\x1b[K\r\x1b[K"
    os.close(ours)
    monkeypatch.setattr(sys, "stderr", elsewhere := io.StringIO())
    clock.now = 0
    bar = Bar([tmp_path / "x.json"], clock)
    clock.now = 9
    bar.draw(500)
    bar.clear()
    assert elsewhere.getvalue() == ""


# -- stopped -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three traces of 30 MB."""
    folder = tmp_path_factory.mktemp("large")
    paths = []
    for number in range(3):
        lines = (
            f'{{"ph":"X","cat":"cpu_op","name":"aten::operator {n % 90}","pid":{number},"tid":{n % 3},"ts":{n}.125,'
            f'"dur":0.5,"args":{{"External id":{n},"Sequence number":{n}}}}}'
            for n in range(200_000)
        )
        paths.append(folder / f"rank{number}.json")
        paths[-1].write_text('{"traceEvents": [\n' + ",\n".join(lines) + "\n]}\n")
    return paths


def started(tmp_path: Path, paths: list[Path]) -> subprocess.Popen[str]:
    """The command, once it is in the middle of reading: chunks of every file wait in its temporary folders."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "runner.ingest", *map(str, paths), "--store", str(tmp_path / "store")]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: len({chunk.parent for chunk in scratch.glob("crossover-*/*.arrow")}) >= min(2, len(paths)))
    return process


def until(happened: Callable[[], bool]) -> None:
    """Wait for something that comes soon."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.002)


def children(pid: int) -> list[int]:
    """Processes that a process has started and that still run."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("files", [1, 3])
def test_a_stopped_import_leaves_nothing(
    tmp_path: Path, large: list[Path], number: signal.Signals, code: int, files: int
) -> None:
    """No run, no events, no temporary folder, no process, no traceback."""
    process = started(tmp_path, large[:files])
    helpers = children(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (code, "", "")
    assert files_in(tmp_path / "store") == set() and list((tmp_path / "scratch").iterdir()) == []
    until(lambda: not any(map(alive, helpers)))


def test_ctrl_c_reaches_all_processes_and_one_cleans_up(tmp_path: Path, large: list[Path]) -> None:
    """A terminal sends it to every process of the command, here twice: still no traceback and nothing left."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "runner.ingest", *map(str, large), "--store", str(tmp_path / "store")]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: bool(list(scratch.glob("crossover-*/*.arrow"))))
    os.killpg(process.pid, signal.SIGINT)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (130, "", "")
    assert files_in(tmp_path / "store") == set() and list(scratch.iterdir()) == []


@pytest.mark.parametrize("files", [1, 3])
def test_a_killed_import_leaves_no_run_and_works_again(tmp_path: Path, large: list[Path], files: int) -> None:
    """At most temporary files stay, and the readers end by themselves; the same command then reads everything."""
    process = started(tmp_path, large[:files])
    helpers = children(process.pid)
    process.kill()
    process.wait(PATIENCE_S)
    until(lambda: not any(map(alive, helpers)))
    process.communicate(timeout=PATIENCE_S)
    assert runs(tmp_path / "store") == []
    assert all(name.endswith(".tmp") for name in files_in(tmp_path / "store"))
    assert run_ingest(*large[:files], "--store", tmp_path / "store").returncode == 0
    found = runs(tmp_path / "store")
    assert [run["facts"]["audit"]["kept"] for run in found] == [200_000] * files


def test_a_reader_that_is_killed_costs_no_file(tmp_path: Path, large: list[Path]) -> None:
    """As when memory runs out: what the killed process had not finished is read again by itself."""
    process = started(tmp_path, large)
    readers = [pid for pid in children(process.pid) if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(readers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, ""), err
    assert out.count(": run ") == 3
    assert [run["facts"]["audit"]["kept"] for run in runs(tmp_path / "store")] == [200_000] * 3
