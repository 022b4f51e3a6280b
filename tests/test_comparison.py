"""Two sides of many points: matched, judged, told, written, and failed on."""

from __future__ import annotations

import csv
import io
import json
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from compared_given import SIZES, changes_of, history_of, noise, relation, run_compare, swept, two_sweeps, verdicts
from given import write_store
from test_composition import configurations

from analysis.comparison.compared import RELATIONS, THRESHOLDS, Row, compare, rows_of
from analysis.comparison.sides import FOLDER, SIDE_RELATIONS, SPREADS, SideError, Stores, named_side, stores, write_side
from analysis.output import OutputError
from analysis.store import SQL, StoreError

A, B = "sweep=a", "sweep=b"


@dataclass(frozen=True)
class Pair:
    """A store with two sweeps, and both as baseline files: reading these is ten times as fast."""

    store: Path
    a: str
    b: str

    def run(self, *arguments: str) -> int:
        """Exit code of `python -m analysis compare` of the two baselines."""
        return run_compare(self.store, self.a, self.b, *arguments)

    def rows(self, name: str = "changes", thresholds: Mapping[str, float] = THRESHOLDS) -> list[Row]:
        """Rows of a relation of their comparison."""
        with compare(Path(self.a), Path(self.b), thresholds) as connection:
            return rows_of(connection, f"FROM {name}")


def saved(store: Path) -> Pair:
    """The two sweeps of a store as a pair."""
    paths = [str(store.parent / f"{store.name}-{name}.parquet") for name in "ab"]
    for side, other, path in ((A, B, paths[0]), (B, A, paths[1])):
        with stores() as held:
            without = named_side(other, store, held).run_ids
            write_side(named_side(side, store, held), held, Path(path), without)
    return Pair(store, *paths)


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Sweep b takes 20 % longer."""
    return saved(two_sweeps(tmp_path_factory.mktemp("slower") / "s", swept("b", 1.2, noise(9)), [{"torch": "2.9.1"}]))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Sweep b repeats sweep a, but: size 256 is ten times as slow, 64 crashed, 128 was skipped, 99 is new; of the
    issue time of 512 nothing is known."""
    b = [
        {**row, "wall_us": 200.0} if row["size"] == 256 else {**row, "issue_us": None} if row["size"] == 512 else row
        for row in swept("b", noise=noise(9))
    ]
    others = [
        {"size": 64, "status": "crashed", "reason": "a \x1b[31m signal"},
        {"size": 128, "status": "skipped", "reason": "too slow"},
        {"size": 99, "wall_us": 1},
    ]
    b = [*b[2:], *({"run_id": f"b{row['size']}", "sweep_id": "b", **row} for row in others)]
    return saved(two_sweeps(tmp_path_factory.mktemp("mixed") / "s", b))


# --- verdicts


def test_a_sweep_that_is_slower(slower: Pair) -> None:
    """Where a sweep takes 20 % longer, far beyond how much earlier sweeps differ, every time of every point is SLOWER;
    the other way round FASTER; memory, which is counted, is the SAME."""
    back = Pair(slower.store, slower.b, slower.a)
    for quantity in ("wall", "issue", "device"):
        assert verdicts(slower.rows(), quantity) == dict.fromkeys(SIZES, "SLOWER")
        assert verdicts(back.rows(), quantity) == dict.fromkeys(SIZES, "FASTER")
    assert verdicts(slower.rows(), "memory") == dict.fromkeys(SIZES, "SAME")


def test_a_side_compared_with_itself(tmp_path: Path) -> None:
    """Ratios are 1."""
    rows = changes_of(two_sweeps(tmp_path, []), A, A)
    assert {row["ratio"] for row in rows} == {1.0} and len(rows) == 4 * len(SIZES)


def test_precise_runs_are_the_same(tmp_path: Path) -> None:
    """Where sweeps differ by a tenth of a percent, a repeat is the SAME."""
    runs = [*history_of(4, 0.001), *swept("a", noise=noise(8, 0.001)), *swept("b", noise=noise(9, 0.001))]
    assert verdicts(changes_of(write_store(tmp_path, runs=runs), A, B), "wall") == dict.fromkeys(SIZES, "SAME")


def test_intervals_hold_the_ratio(slower: Pair) -> None:
    """The ratio is b / a, its interval about it, and the basis is repeated runs."""
    (row,) = [row for row in slower.rows() if (row["size"], row["quantity"]) == (64, "wall")]
    assert row["ratio"] == pytest.approx(row["b_value"] / row["a_value"])
    assert 1 < row["low"] < row["ratio"] < row["high"] < 1.5
    assert (row["unit"], row["basis"]) == ("us", "repeated runs")
    assert row["chance"] <= row["corrected"] <= 0.05


def test_what_changed_is_no_noise(slower: Pair, tmp_path: Path) -> None:
    """The other side's runs, and what changed since earlier ones, do not widen the intervals."""
    far = changes_of(two_sweeps(tmp_path, swept("b", 3.0, noise(9))), A, B)
    near, far_widths = (
        max(row["high"] / row["low"] for row in rows if row["quantity"] == "wall") for rows in (slower.rows(), far)
    )
    assert far_widths == pytest.approx(near)


def test_a_restless_point_is_not_believed(tmp_path: Path) -> None:
    """A point whose own runs jump by half is UNCLEAR where it jumps again, and the others are judged as ever."""
    restless = [{**row, "device_us": 3.0} for row in history_of(4) if row["size"] == 64 and row["sweep_id"] in "h1 h3"]
    steady = [row for row in history_of(4) if not (row["size"] == 64 and row["sweep_id"] in "h1 h3")]
    b = [{**row, "device_us": 3.0} if row["size"] == 64 else row for row in swept("b", 1.2, noise(9))]
    store = write_store(tmp_path, runs=[*steady, *restless, *swept("a", noise=noise(8)), *b])
    found = verdicts(changes_of(store, A, B), "device")
    assert found == {**dict.fromkeys(SIZES, "SLOWER"), 64: "UNCLEAR"}


def test_a_threshold_is_the_users(slower: Pair) -> None:
    """Beyond doubt but within the threshold is the SAME; other quantities keep theirs."""
    rows = slower.rows(thresholds={**THRESHOLDS, "wall": 0.5})
    assert verdicts(rows, "wall") == dict.fromkeys(SIZES, "SAME")
    assert verdicts(rows, "issue") == dict.fromkeys(SIZES, "SLOWER")


def test_one_sweep_each_rests_on_the_points_among_each_other(tmp_path: Path) -> None:
    """Without any repeated run the ratios of all points tell the spread: one that stands out is told, and the words say
    what cannot be."""
    b = [{**row, "wall_us": 100.0} if row["size"] == 64 else row for row in swept("b", 1.0, noise(9))]
    store = write_store(tmp_path, runs=[*swept("a", noise=noise(8)), *b])
    rows = [row for row in changes_of(store, A, B) if row["quantity"] == "wall"]
    assert {row["basis"] for row in rows} == {"points among each other"}
    assert verdicts(rows, "wall")[64] == "SLOWER"
    assert {row["verdict"] for row in rows if row["size"] != 64} <= {"SAME", "UNCLEAR"}


def test_seconds_of_compilation_and_memory(tmp_path: Path) -> None:
    """Compile seconds are judged by their own spread, a greater peak of memory is SLOWER."""
    compiled = {"compile": "true"}
    facts = {"peak_bytes": 2000, "compile": {"seconds": 10.0}, "device_method": "held"}
    b = [{**row, "facts": facts} for row in swept("b", noise=noise(9), **compiled)]
    earlier = [
        {**row, "facts": {**facts, "peak_bytes": 1000, "compile": {"seconds": 1 + 0.05 * (place % 3)}}}
        for place, row in enumerate([*history_of(4, **compiled), *swept("a", noise=noise(8), **compiled)])
    ]
    rows = changes_of(write_store(tmp_path, runs=[*earlier, *b]), A, B)
    for quantity in ("compile", "memory"):
        assert verdicts(rows, quantity) == dict.fromkeys(SIZES, "SLOWER")
    assert {row["unit"] for row in rows if row["quantity"] == "compile"} == {"s"}


def test_device_times_of_two_methods_are_not_compared(tmp_path: Path) -> None:
    """A device time by replay is another time than one behind a held stream: UNCLEAR, with the reason."""
    facts = {"device_method": "replay", "peak_bytes": 1}
    rows = changes_of(two_sweeps(tmp_path, swept("b", 2.0, facts=facts)), A, B)
    device = [row for row in rows if row["quantity"] == "device"]
    assert {row["verdict"] for row in device} == {"UNCLEAR"}
    assert device[0]["note"] == "device time was taken otherwise: held in a, replay in b"


# --- matching


def test_points_match_by_their_axes_alone(tmp_path: Path) -> None:
    """Sweep, environment, host and the workload's source may differ; the source is told."""
    a = swept("a", environment_id="old")
    b = [{**row, "point_id": f"new{place}"} for place, row in enumerate(swept("b", environment_id="new"))]
    store = write_store(tmp_path, runs=[*a, *b], environments=[{"environment_id": "old"}, {"environment_id": "new"}])
    rows = changes_of(store, "environment=old", "environment=new")
    assert len(rows) == 4 * len(SIZES)
    assert {row["note"] for row in rows} == {"the workload's source differs"}


def test_what_does_not_compare_is_listed(mixed: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Points that fail, are skipped or lack on one side have a row with the reason, and are counted in words."""
    rows = mixed.rows()
    assert verdicts(rows, None) == {64: "NEWLY FAILED", 128: "SKIPPED", 99: "ONLY IN B"}
    notes = {row["size"]: row["note"] for row in rows if row["quantity"] is None}
    assert notes == {64: "crashed: a \x1b[31m signal", 128: "skipped: too slow", 99: None}
    assert verdicts(rows, "issue")[512] == "ONLY IN A"
    back = Pair(mixed.store, mixed.b, mixed.a)
    assert verdicts(back.rows(), None) == {64: "NEWLY MEASURED", 128: "NEWLY MEASURED", 99: "ONLY IN A"}
    assert mixed.run() == 0
    out = capsys.readouterr().out
    assert "1 point newly failed in b: matmul_add size=64 fp32 eager: crashed: a \\x1b[31m signal." in out
    assert "Not compared: 1 point only in b, 1 point skipped." in out


def test_imports_take_no_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An imported trace in a store is left out, and told."""
    imported = {"run_id": "i", "source": "import", "sweep_id": "i", "workload": "trace", "size": None, "dtype": None}
    store = write_store(tmp_path / "one", runs=[*swept("a"), imported])
    other = write_store(tmp_path / "other", runs=swept("b"))
    assert run_compare(store, str(store), str(other)) == 0
    assert "Imported traces take no part (1 in a, 0 in b)" in capsys.readouterr().out
    with pytest.raises(SideError, match="imported traces alone"), stores() as held:
        named_side("sweep=i", store, held)


# --- sides


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sweep=h", "'sweep=h' names 4 sweeps of .*: there are h0 .6 runs., h1"),
        ("sweep=x", "'sweep=x' names no sweep of .*: there are a .6 runs., b"),
        ("environment=x", "'environment=x' names no environment of .*: there are env .36 runs."),
        ("torch=9", "'torch=9' names no value of torch: there are 2.9.1"),
        ("card=H", "'card=H' names no value of card: the store holds none"),
        ("sise=64", "no point has a sise: allowed are batch, .* size, .* sweep,"),
        ("sweep=a size=63", "'sweep=a size=63' holds no run"),
        ("nope", "'nope' names no point"),
        ("no/where", "there is no store and no baseline at no/where"),
        ("nowhere.parquet", "there is no store and no baseline at nowhere.parquet"),
    ],
)
def test_a_side_that_names_nothing(opened: Stores, slower: Pair, text: str, told: str) -> None:
    """One sentence with what there is."""
    with pytest.raises(StoreError, match=told):
        named_side(text, slower.store, opened)


@pytest.fixture(scope="module")
def opened() -> Iterator[Stores]:
    """Stores that several tests read."""
    with stores() as held:
        yield held


def test_sides_by_facts_of_their_environment(tmp_path: Path) -> None:
    """Two torch versions, cards or commits are two sides, each named by a piece of the fact; filters narrow them."""
    environments = [
        {
            "environment_id": "e1",
            "torch": "2.9.1",
            "device_name": "A100",
            "versions": json.dumps({"torch_git": "abc1"}),
        },
        {
            "environment_id": "e2",
            "torch": "2.11.0",
            "device_name": "H200",
            "versions": json.dumps({"torch_git": "def2"}),
        },
    ]
    runs = [*swept("a", environment_id="e1"), *swept("b", environment_id="e2")]
    store = write_store(tmp_path, runs=runs, environments=environments)
    with stores() as held:
        for text in ("torch=2.9", "card=a100", "commit=abc", f"{store} torch=2.9.1", "environment=e1"):
            assert named_side(text, store, held).run_ids == {row["run_id"] for row in runs[:6]}
        assert named_side("torch=2.9 size=64", store, held).run_ids == {"a-0"}
        assert not named_side("torch=2.9 size=64", store, held).point


def test_a_path_with_a_space(tmp_path: Path) -> None:
    """A folder's name may hold a space, with filters behind it or without."""
    store = write_store(tmp_path / "my store", runs=swept("a"))
    with stores() as held:
        assert len(named_side(str(store), Path("none"), held).run_ids) == 6
        assert len(named_side(f"{store} size=64", Path("none"), held).run_ids) == 1


def test_alike_points_of_two_environments(tmp_path: Path) -> None:
    """A side that measured a point in two environments has no one value of it: the environments are listed."""
    environments = [{"environment_id": "e1", "torch": "2.9.1"}, {"environment_id": "e2", "torch": "2.11.0"}]
    runs = [*swept("a", environment_id="e1"), *swept("b", environment_id="e2")]
    store = write_store(tmp_path, runs=runs, environments=environments)
    with pytest.raises(SideError, match=r"2 environments .*: e1 \(torch 2.9.1\); e2 .*; choose one with environment="):
        changes_of(store, str(store), A)


def test_two_points_are_compared_by_their_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sides that name one point each show steps, operators and kernels."""
    events = [
        {
            "run_id": run_id,
            "name": "gemm",
            "category": "kernel",
            "ts_ns": 0,
            "dur_ns": 10,
            "is_device": True,
            "device": 0,
        }
        for run_id in ("a-0", "a-1")
    ]
    store = write_store(tmp_path, runs=swept("a"), events=events)
    assert run_compare(store, "size=64", "a-1") == 0
    assert "kernels (a step" in capsys.readouterr().out
    for wrong in (["--format", "junit"], ["--by", "point"], ["--fail-on", "slower"]):
        with pytest.raises(OutputError, match="for sides of many points"):
            run_compare(store, "size=64", "a-1", *wrong)


def test_stores_serve_several_comparisons(slower: Pair, tmp_path: Path) -> None:
    """Once a side was written, every side of its store can still be named."""
    with stores() as held:
        for side in (A, B, A):
            chosen = named_side(side, slower.store, held)
            write_side(chosen, held, tmp_path / "x.parquet")
            assert len(chosen.run_ids) == len(SIZES)


# --- a baseline


def test_a_baseline_stands_for_its_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file, read back, gives the rows that its store gives, spread between runs included."""
    store = write_store(tmp_path / "old", runs=[*history_of(4), *swept("a", noise=noise(8))])
    new = write_store(tmp_path / "new", runs=swept("b", 1.2, noise(9)))
    file = tmp_path / "made" / "base.parquet"
    assert run_compare(store, A, "--save", str(file)) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert list(file.parent.iterdir()) == [file]
    beside = [changes_of(store, side, str(new)) for side in (A, str(file))]
    told = [
        {(row["size"], row["quantity"]): (row["verdict"], row["ratio"], row["low"]) for row in rows} for rows in beside
    ]
    assert told[0].keys() == told[1].keys()
    for key, (verdict, *numbers) in told[0].items():
        assert told[1][key] == (verdict, *(pytest.approx(number) for number in numbers))
    assert verdicts(beside[1], "wall") == dict.fromkeys(SIZES, "SLOWER")


def test_the_spread_of_one_environment_serves_both_sides(tmp_path: Path) -> None:
    """A single new sweep is judged by how much the baseline's sweeps differ, if it ran in the same environment."""
    store = write_store(tmp_path / "old", runs=history_of(4))
    new = [swept("b", environment_id=environment) for environment in ("env", "other")]
    stores_of_new = [write_store(tmp_path / str(place), runs=runs) for place, runs in enumerate(new)]
    bases = [{row["basis"] for row in changes_of(store, str(store), str(each)) if row["quantity"] == "wall"}
        for each in stores_of_new]  # fmt: skip
    assert bases == [{"repeated runs"}, {"points among each other"}]


def test_a_file_that_is_no_baseline(tmp_path: Path) -> None:
    """A run's file, or one of a later version, is refused with the cure."""
    store = write_store(tmp_path / "s", runs=swept("a"))
    run = next((store / "runs").rglob("*.parquet"))
    with pytest.raises(SideError, match="is no baseline: python -m analysis compare SIDE --save"):
        changes_of(store, str(run), A)
    with stores() as held:
        write_side(named_side(A, store, held), held, tmp_path / "x.parquet")
    frame = pl.read_parquet(tmp_path / "x.parquet").with_columns(baseline_version=9)
    frame.write_parquet(tmp_path / "later.parquet")
    with pytest.raises(SideError, match="is a baseline of version 9, this program reads version 1"):
        changes_of(store, str(tmp_path / "later.parquet"), A)


@pytest.mark.parametrize("arguments", [[A], [A, B, "--save", "x.parquet"]])
def test_a_baseline_is_one_side(slower: Pair, arguments: list[str]) -> None:
    """One side without --save, or two with it, are one sentence."""
    with pytest.raises(OutputError, match=r"two sides, A and B; or A and --save|--save writes one side"):
        run_compare(slower.store, *arguments)


# --- what else moved


def test_environments_tell_only_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first line names each fact that differs, in both sides, and no other."""
    alike = {"host_cpu": "Xeon", "device": "cuda", "device_name": "H200", "python": "3.12"}
    environments = [
        {"environment_id": "e1", "torch": "2.9.1", "variables": '{"OMP_NUM_THREADS": "1"}', **alike},
        {"environment_id": "e2", "torch": "2.11.0", "variables": "{}", **alike},
    ]
    runs = [*swept("a", environment_id="e1"), *swept("b", environment_id="e2")]
    store = write_store(tmp_path, runs=runs, environments=environments)
    assert run_compare(store, A, B) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "a and b differ in torch (2.9.1 in a, 2.11.0 in b); variable OMP_NUM_THREADS (1 in a, - in b)."
    )


def test_bounds_and_crossovers_move(tmp_path: Path) -> None:
    """A host three times as slow: points that the device bound are overhead-bound, and the crossing lies higher."""
    b = [
        {**row, "issue_us": 60.0, "wall_us": max(60, row["size"] / 32), "margin": 60 / (row["size"] / 32)}
        for row in swept("b")
    ]
    a = [{**row, "margin": 20 / (row["size"] / 32)} for row in swept("a")]
    pair = saved(write_store(tmp_path / "s", runs=[*a, *b]))
    (moved,) = pair.rows("moved_bounds")
    assert (moved["point"], moved["b_bound"], moved["is_clear"]) == (
        "matmul_add size=1024 fp32 eager", "overhead-bound", True
    )  # fmt: skip
    (crossing,) = pair.rows("moved_crossovers")
    assert (crossing["verdict"], crossing["a_text"], crossing["b_text"]) == (
        "HIGHER", "640 (512 to 1024)", "1920 (1024 to 2048)"
    )  # fmt: skip
    copy = shutil.copy(pair.a, tmp_path / "copy.parquet")
    for a_side, b_side, verdict, code in ((pair.b, pair.a, "LOWER", 3), (pair.a, str(copy), "SAME", 0)):
        other = Pair(pair.store, a_side, b_side)
        assert other.rows("moved_crossovers")[0]["verdict"] == verdict
        assert other.run("--fail-on", "crossover") == code


def test_kernels_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel of one side alone is a row with its share of the device's time; points without events are none."""
    events = [
        {"run_id": run_id, "name": name, "category": "kernel", "ts_ns": 0, "dur_ns": dur_ns, "is_device": True,
         "step": 1}
        for run_id, name, dur_ns in (("a-0", "old", 30), ("a-0", "add", 10), ("b-0", "new", 90), ("b-0", "add", 10),
            ("a-1", "old", 10))
    ]  # fmt: skip
    store = two_sweeps(tmp_path, swept("b"), events=events)
    rows = relation(store, A, B, "changed_kernels")
    assert {(row["name"], row["state"], row["a_share"], row["b_share"]) for row in rows} == {
        ("old", "only in a", 0.75, None), ("new", "only in b", None, 0.9)}  # fmt: skip
    assert run_compare(store, A, B) == 0
    assert "1 point ran other kernels: new only in b (1 point, 90 % of device time); old only in a" in (
        capsys.readouterr().out
    )


def test_a_change_of_all_points_is_told(slower: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """When a quantity moves on all points alike, the words say so."""
    assert slower.run() == 0
    assert "Issue changed on most points alike, 1.19" in capsys.readouterr().out


# --- output


def test_words_come_first(mixed: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """The second line counts the verdicts and names the worst; the table begins with what failed."""
    assert mixed.run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("Of 15 pairs of values (4 points; wall, issue, device, memory) 1 SLOWER, 0 FASTER, ")
    assert "The worst: wall of matmul_add size=256 fp32 eager, " in lines[1]
    table = next(place for place, line in enumerate(lines) if line.startswith("verdict"))
    assert [line.split()[:-1][0] for line in lines[table + 1 : table + 3]] == ["NEWLY", "SLOWER"]


def test_formats_for_programs(slower: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """csv and json hold every row, the worst first, numbers as numbers; words go to stderr; --by chooses a relation."""
    assert slower.run("--format", "json") == 0
    told = capsys.readouterr()
    rows = json.loads(told.out)
    assert len(rows) == 24 and rows[0]["verdict"] == "SLOWER" and isinstance(rows[0]["ratio"], float)
    assert told.err.startswith("a and b were measured in environments alike")
    assert slower.run("--format", "csv", "--by", "crossover", "-o", str(tmp_path / "x.csv")) == 0
    assert next(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text())))["axis"] == "size"


def test_markdown_is_safe_and_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name with markup stays text, and a long table is cut with a number."""
    hostile = "<script>|@all`*"
    runs = [
        {"run_id": f"{sweep}{size}", "sweep_id": sweep, "workload": hostile, "size": size, "wall_us": wall_us}
        for size in range(30)
        for sweep, wall_us in (("a", 1), ("b", 2))
    ]
    store = write_store(tmp_path, runs=runs)
    assert run_compare(store, A, B, "--format", "markdown") == 0
    text = capsys.readouterr().out
    assert text.startswith("**Of 30 pairs of values")
    assert "<script>" not in text and "@all" not in text
    assert "&lt;script&gt;\\|@​all\\`\\*" in text
    assert "and 10 more" in text and text.count("| SLOWER |") == 20


def test_junit(mixed: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """A test case a point and quantity: SLOWER and newly failed ones fail, unclear and unmatched ones are skipped."""
    rows = mixed.rows()
    assert mixed.run("--format", "junit") == 0
    root = ElementTree.fromstring(capsys.readouterr().out)
    cases = root.findall("./testsuite/testcase")
    assert len(cases) == len(rows) == int(root.get("tests", 0))
    failures = {(case.get("classname"), case.get("name")) for case in cases if case.find("failure") is not None}
    assert failures == {("wall", "matmul_add size=256 fp32 eager"), ("point", "matmul_add size=64 fp32 eager")}
    skipped = [case for case in cases if case.find("skipped") is not None]
    unclear = sum(row["verdict"] in ("UNCLEAR", "SKIPPED", "ONLY IN A", "ONLY IN B") for row in rows)
    assert len(skipped) == unclear == int(root.get("skipped", 0))


# --- --fail-on


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("slower", 3), ("slower:5%", 3), ("slower:40%", 0), ("slower:issue", 3), ("slower:issue:10%", 3),
        ("slower:memory", 0), ("unclear:memory", 0), ("failed", 0), ("crossover", 0),
    ],
)  # fmt: skip
def test_fail_on(slower: Pair, what: str, code: int) -> None:
    """Times 20 % longer: the exit code is 3 where the condition holds, else 0."""
    assert slower.run("--fail-on", what) == code


def test_failed_points_fail(mixed: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """A newly failed point is a reason of its own, and is measured again."""
    assert mixed.run("--fail-on", "failed") == 3
    told = capsys.readouterr().err.splitlines()
    assert told[-3:-1] == ["--fail-on failed: 1 newly failed", "measure the suspects again:"]
    assert told[-1].startswith("  python -m runner -m workload=matmul_add size=64 ")


@pytest.mark.parametrize("what", ["slow", "slower:x", "slower:-5%", "failed:5%", "slower:5%:6%", "crossover:wall"])
def test_a_wrong_condition(tmp_path: Path, what: str) -> None:
    """One sentence with what is allowed."""
    with pytest.raises(OutputError, match=r"--fail-on .*: allowed are failed, crossover, and slower or unclear"):
        run_compare(tmp_path, A, B, "--fail-on", what)


@pytest.mark.parametrize("threshold", ["wall", "wall=x", "speed=3%", "wall=-1"])
def test_a_wrong_threshold(tmp_path: Path, threshold: str) -> None:
    """One sentence with what is allowed."""
    with pytest.raises(OutputError, match=r"--threshold .*: allowed is QUANTITY=PERCENT with a quantity of wall"):
        run_compare(tmp_path, A, B, "--threshold", threshold)


def test_suspects_are_measured_again_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Suspects that differ in size alone are one command, which asks for exactly these points."""
    extra = {"dtype": "bf16", "batch": 8, "params": {"l2": "cold"}, "device": "cpu"}
    b = [row | {"wall_us": 300.0} if row["size"] in (64, 256) else row for row in swept("b", noise=noise(9), **extra)]
    runs = [*history_of(4, **extra), *swept("a", noise=noise(8), **extra), *b]
    store = write_store(tmp_path / "a store", runs=runs)
    assert run_compare(store, A, B, "--fail-on", "slower:5%") == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[-3:-1] == ["--fail-on slower by more than 5 %: 2 times", "measure the suspects again:"]
    words = shlex.split(lines[-1])
    assert words[:3] == ["python", "-m", "runner"]
    points = configurations(*words[3:])
    assert sorted(point["size"] for point in points) == [64, 256]
    assert {(p["dtype"], p["batch"], p["l2"], p["rerun"], p["store"]) for p in points} == {
        ("bf16", 8, "cold", True, str(store))}  # fmt: skip


# --- documentation


def test_relations_say_what_they_are(tmp_path: Path) -> None:
    """Every relation states its grain and has a comment; every column of a public one too."""
    files = {file.stem: file for file in FOLDER.glob("*.sql")}
    known = {*RELATIONS, *SIDE_RELATIONS, *SPREADS, "remeasure", "_history", "_history_changes", "history"}
    assert set(files) == known
    assert [name for name, file in files.items() if not file.read_text().startswith("-- Grain: one row a")] == [
        "_names"
    ]
    commented = [name for name, file in files.items() if f"{name} IS" in file.read_text()]
    assert sorted([*commented, "_names"]) == sorted(files)
    assert SQL in FOLDER.parents
    assert [
        f"{path.name}:{number}"
        for path in files.values()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ] == []


def test_no_column_lacks_a_comment(slower: Pair, tmp_path: Path) -> None:
    """Every column of a public relation of a side and of a comparison is documented."""
    query = "(SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL)"
    public = {name for name in (*RELATIONS, *SIDE_RELATIONS, *SPREADS) if not name.startswith(("_", "given_"))}
    gaps = [(row["table_name"], row["column_name"]) for row in slower.rows(query)]
    with stores() as held:
        write_side(named_side(A, slower.store, held), held, tmp_path / "x.parquet")
        gaps += held.connection(slower.store).execute(f"FROM {query}").fetchall()
    assert [gap for gap in gaps if gap[0] in public] == []


def test_one_side_named_twice_is_refused(tmp_path: Path) -> None:
    """A comparison with itself would never fail: two names of the same runs are an error, also in a copy of a store."""
    store = two_sweeps(tmp_path, swept("b"))
    copy = shutil.copytree(store, tmp_path / "copy")
    for b in (store, copy):
        with pytest.raises(SideError, match="are the same runs: name two sides"):
            Pair(store, str(store), str(b)).run()


def test_nothing_in_common_cannot_pass(tmp_path: Path) -> None:
    """Where no point lies on both sides a condition has nothing to judge, and that is no success."""
    store = two_sweeps(tmp_path, [{**row, "dtype": "bf16"} for row in swept("b")])
    assert Pair(store, A, B).run() == 0
    with pytest.raises(SideError, match="no point was measured on both sides"):
        Pair(store, A, B).run("--fail-on", "slower")
