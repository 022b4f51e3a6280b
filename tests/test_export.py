"""python -m analysis export: one flat file, and what its columns mean."""

import csv
import io
import json
from pathlib import Path

import duckdb
import polars as pl
import pytest
from given import write_store

from analysis.__main__ import main
from analysis.rules import SEVERITIES, all_rules

RUNS = [
    {"size": 64, "wall_us": 18, "issue_us": 18, "device_us": 5, "params": {"ops": 4, "kind": "a"}},
    {"size": 128, "wall_us": 36.72, "issue_us": 18, "device_us": 36, "params": {"ops": 8, "kind": "b"}},
    {"size": 256, "status": "oom", "reason": "too big", "sweep_id": "other"},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two points with axes of their own, and a failed one of another sweep."""
    return write_store(tmp_path_factory.mktemp("store"), runs=RUNS)


def exported(store: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """Rows of the csv that goes to stdout."""
    assert main(["export", *words, "--store", str(store)]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_a_row_a_point_failed_ones_included(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Axes, verdict, times, findings of every point; what is unknown is empty."""
    rows = exported(store, capsys=capsys)
    assert [(row["size"], row["bound"], row["status"], row["wall_us"]) for row in rows] == [
        ("64", "overhead-bound", "ok", "18.0"),
        ("128", "device-bound", "ok", "36.72"),
        ("256", "unknown", "oom", ""),
    ]
    assert rows[2]["reason"] == "oom: too big"


def test_further_axes_are_columns(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every axis of a workload is a column, numbers as numbers; a point that lacks it has none."""
    rows = exported(store, capsys=capsys)
    assert [(row["param_ops"], row["param_kind"]) for row in rows] == [("4.0", "a"), ("8.0", "b"), ("", "")]


def test_a_sweep_or_points(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--sweep takes the runs of one command, by a beginning of its id; POINT the points that fit."""
    assert [row["size"] for row in exported(store, "--sweep", "oth", capsys=capsys)] == ["256"]
    assert [row["size"] for row in exported(store, "size=64", "dtype=fp32", capsys=capsys)] == ["64"]
    assert main(["export", "--sweep", "nope", "--store", str(store)]) == 1
    assert "--sweep nope names 0 sweeps: there are other, sweep" in capsys.readouterr().err


def test_every_column_is_described(store: Path, tmp_path: Path) -> None:
    """The dictionary beside the file and the one in its metadata have the file's columns, each with a meaning."""
    file = tmp_path / "points.parquet"
    assert main(["export", "--store", str(store), "-o", str(file)]) == 0
    frame = pl.read_parquet(file)
    words = (tmp_path / "points.parquet.md").read_text()
    query = f"SELECT decode(value) FROM parquet_kv_metadata('{file}') WHERE decode(key) = 'crossover.dictionary'"
    [[told]] = duckdb.sql(query).fetchall()
    dictionary = json.loads(told)
    assert [each["column"] for each in dictionary] == frame.columns
    assert all(len(each["meaning"]) > 5 for each in dictionary)
    assert [line.split("`")[1] for line in words.splitlines() if line.startswith("| `")] == frame.columns
    assert words.startswith("# points.parquet\n")
    assert not [name for name, kind in frame.schema.items() if kind.is_nested()]


def test_findings_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Names and sentences of what the rules found in a run, as many as are counted, what misleads before what costs."""
    store = Path(__file__).parents[1] / "docs" / "results" / "h200_findings"
    severity = {rule.rule: rule.severity for rule in all_rules()}
    rows = exported(store, "size=64", "workload=matmul_add", capsys=capsys)
    assert any("wide_first_step" in row["findings"] for row in rows)
    for row in rows:
        names = row["findings"].split(", ") if row["findings"] else []
        assert len(names) == int(row["finding_count"])
        assert len(row["finding_sentences"].split(" | ")) == max(1, len(names))
        severities = [SEVERITIES.index(severity[name]) for name in names]
        assert severities == sorted(severities)


def test_formats_by_name(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file's name says the format, --format says otherwise, another name is an error."""
    for name in ("x.csv", "x.json", "x.PARQUET"):
        assert main(["export", "--store", str(store), "-o", str(tmp_path / name)]) == 0
    assert len(json.loads((tmp_path / "x.json").read_text())) == 3
    assert pl.read_parquet(tmp_path / "x.PARQUET").height == pl.read_csv(tmp_path / "x.csv").height == 3
    assert main(["export", "--store", str(store), "-o", str(tmp_path / "x.txt"), "--format", "csv"]) == 0
    assert main(["export", "--store", str(store), "-o", str(tmp_path / "x.xlsx")]) == 1
    assert "end it with .parquet, .csv, .json, or give --format" in capsys.readouterr().err


def test_the_dictionary_goes_where_it_is_asked(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --dictionary the rows may go to stdout; without it and without -o there is none."""
    file = tmp_path / "columns.md"
    assert len(exported(store, "--dictionary", str(file), capsys=capsys)) == 3
    assert "| `gain` | DOUBLE |" in file.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["columns.md"]


def test_never_inside_the_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the rows nor the dictionary go into a store."""
    assert main(["export", "--store", str(store), "-o", str(store / "x.csv")]) == 1
    assert main(["export", "--store", str(store), "--dictionary", str(store / "x.md")]) == 1
    assert capsys.readouterr().err.count("lies inside the store") == 2


def test_the_rows_are_not_overwritten(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows and dictionary cannot be one file."""
    file = tmp_path / "x.csv"
    assert main(["export", "--store", str(store), "-o", str(file), "--dictionary", f"{tmp_path}/./x.csv"]) == 1
    assert "two results cannot both be written to" in capsys.readouterr().err
    assert not file.exists()


def test_the_default_dictionary_stays_out_of_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link in the store leads out of it, but the file beside the link would lie within."""
    store = write_store(tmp_path / "store", runs=RUNS)
    (store / "x.csv").symlink_to(tmp_path / "x.csv")
    assert main(["export", "--store", str(store), "-o", str(store / "x.csv")]) == 1
    assert "x.csv.md lies inside the store" in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()


def test_an_empty_sweep_is_none(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty --sweep is wrong, not the sweep of 0 points, nor the one that begins with nothing."""
    with pytest.raises(SystemExit) as ended:
        main(["export", "--sweep", "", "--store", str(store)])
    assert ended.value.code == 1
    assert "argument --sweep: it is empty" in capsys.readouterr().err


def test_a_store_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That there is no store comes before which sweeps it holds."""
    for words in ([], ["--sweep", "x"]):
        assert main(["export", *words, "--store", str(tmp_path / "none")]) == 1
        assert "there is no store at" in capsys.readouterr().err


def test_further_axes_of_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Quotes of both kinds, names that differ in case alone, and names of other columns are columns of their own."""
    params = {'a"b': 1, "it's": 2, "Ops": 3, "ops": 4, "ops_2": 5, "size": 6, "a|b": 7}
    store = write_store(tmp_path / "store", runs=[{"params": params}])
    dictionary = tmp_path / "columns.md"
    [row] = exported(store, "--dictionary", str(dictionary), capsys=capsys)
    found = {name: value for name, value in row.items() if name.startswith("param_")}
    assert sorted(found.values()) == [f"{number}.0" for number in range(1, 8)]
    assert (found['param_a"b'], found["param_it's"], found["param_size"], row["size"]) == ("1.0", "2.0", "6.0", "64")
    assert {found["param_Ops"], found["param_ops_3"]} == {"3.0", "4.0"}
    assert "Further axis Ops;" in dictionary.read_text() and "`param_a\\|b`" in dictionary.read_text()
